//! Memory in which callers put many vectors together, where a device can fetch them without the
//! help of its engine's thread.

use std::sync::{Arc, Mutex, TryLockError};

/// Components of a page of memory: devices take whole pages.
const PAGE: usize = 4096 / size_of::<f32>();

/// A few blocks of components. A caller fills one that nobody uses, and its queries refer to it;
/// when they are gone, it is free again. An engine may make the blocks known to its device.
///
/// The addresses of the blocks never change.
#[derive(Debug)]
pub struct Staging {
    blocks: Vec<Block>,
    len: usize,
}

#[derive(Debug)]
struct Block {
    /// Held only while a caller fills the block. The block is free if this is its only reference.
    memory: Mutex<Arc<Vec<f32>>>,
    /// The first component of the part that is handed out, and its address: that of a page.
    from: usize,
    address: usize,
}

impl Staging {
    /// Blocks of at least this many components each.
    pub fn new(blocks: usize, components: usize) -> Self {
        let len = components.next_multiple_of(PAGE);
        let block = |_| {
            let memory = vec![0.0f32; len + PAGE];
            let start = memory.as_ptr().addr();
            let from = (start.next_multiple_of(PAGE * size_of::<f32>()) - start) / size_of::<f32>();
            let address = start + from * size_of::<f32>();
            Block { memory: Mutex::new(Arc::new(memory)), from, address }
        };
        Self { blocks: (0..blocks).map(block).collect(), len }
    }

    /// The address and the bytes of each block: whole pages, that stay allocated as long as this.
    pub fn blocks(&self) -> impl Iterator<Item = (usize, usize)> {
        self.blocks.iter().map(|block| (block.address, self.len * size_of::<f32>()))
    }

    /// Lets `fill` write the first `components` of a block that nobody uses. Returns the memory,
    /// the index of the first component in it, and what `fill` returns; `None` if there is no such
    /// block.
    pub fn fill<R>(
        &self,
        components: usize,
        fill: impl FnOnce(&mut [f32]) -> R,
    ) -> Option<(Arc<Vec<f32>>, usize, R)> {
        if components > self.len {
            return None;
        }
        for block in &self.blocks {
            let mut memory = match block.memory.try_lock() {
                Ok(memory) => memory,
                // `fill` panicked. What it left is overwritten.
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => continue,
            };
            if let Some(free) = Arc::get_mut(&mut memory) {
                let filled = fill(&mut free[block.from..][..components]);
                return Some((memory.clone(), block.from, filled));
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_has_one_user_until_the_last_reference_is_gone() {
        let staging = Staging::new(2, 3);
        let fill = |value: f32| staging.fill(3, |to| to.fill(value));
        let (one, one_from, ()) = fill(1.0).unwrap();
        let (two, two_from, ()) = fill(2.0).unwrap();
        assert!(fill(3.0).is_none(), "both are in use");
        let also_two = Arc::clone(&two);
        drop(two);
        assert!(fill(3.0).is_none(), "both are still in use");
        assert_eq!(also_two[two_from..][..3], [2.0; 3]);
        drop(one);
        let (three, three_from, ()) = fill(3.0).unwrap();
        assert_eq!((three_from, &three[three_from..][..3]), (one_from, &[3.0; 3][..]));
        assert_eq!(also_two[two_from..][..3], [2.0; 3], "nobody wrote to it");
    }

    #[test]
    fn blocks_are_whole_pages_apart_from_each_other() {
        let staging = Staging::new(3, 1025);
        let mut blocks: Vec<(usize, usize)> = staging.blocks().collect();
        blocks.sort_unstable();
        assert!(blocks.iter().all(|(address, bytes)| address % 4096 == 0 && *bytes == 8192));
        assert!(blocks.windows(2).all(|pair| pair[0].0 + pair[0].1 <= pair[1].0));
        let (memory, from, ()) = staging.fill(2048, |to| to.fill(1.0)).unwrap();
        let address = memory[from..].as_ptr().addr();
        assert!(blocks.iter().any(|block| block.0 == address), "{address} of {blocks:?}");
    }

    #[test]
    fn more_than_a_block_takes_is_not_filled() {
        let staging = Staging::new(1, 1024);
        assert!(staging.fill(1025, |_| unreachable!("it is too large")).is_none());
        assert!(staging.fill(1024, |_| ()).is_some());
    }

    #[test]
    fn a_panic_while_a_block_is_filled_does_not_lose_it() {
        let staging = Staging::new(1, 8);
        let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            staging.fill(8, |_| panic!("on purpose"))
        }));
        assert!(panicked.is_err());
        assert!(staging.fill(8, |_| ()).is_some());
    }
}
