//! A query's floor, shared by all threads of a pass.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// A lower bound of the `k`-th best score, which only rises.
#[derive(Debug)]
pub(crate) struct Floor {
    /// A float32, in an order-preserving form ([`ordered`]).
    floor: AtomicU32,
    k: usize,
    /// The `k` best lower bounds so far, the worst of them on top.
    best: Mutex<BinaryHeap<Reverse<u32>>>,
}

impl Floor {
    /// `k` is above 0; `least` is the initial floor.
    pub(crate) fn new(k: usize, least: f32) -> Self {
        let best = BinaryHeap::with_capacity(k.min(1024));
        Self { floor: AtomicU32::new(ordered(least)), k, best: Mutex::new(best) }
    }

    pub(crate) fn get(&self) -> f32 {
        // It publishes no other memory. A stale value costs time, never correctness.
        unordered(self.floor.load(Ordering::Relaxed))
    }

    /// Raises it to a number that at least `k` rows that pass the query's filter reach.
    pub(crate) fn raise(&self, least: f32) {
        self.floor.fetch_max(ordered(least), Ordering::Relaxed);
    }

    /// Offers lower bounds of the scores of rows that pass the query's filter. Each row may be
    /// offered only once.
    pub(crate) fn offer(&self, bounds: impl Iterator<Item = f32>) {
        let mut best = self.best.lock().unwrap_or_else(PoisonError::into_inner);
        for bound in bounds {
            let bound = ordered(bound);
            if best.len() < self.k {
                best.push(Reverse(bound));
            } else if let Some(mut worst) = best.peek_mut()
                && bound > worst.0
            {
                worst.0 = bound;
            }
        }
        if best.len() == self.k
            && let Some(worst) = best.peek()
        {
            self.floor.fetch_max(worst.0, Ordering::Relaxed);
        }
    }
}

/// An integer form that orders like the floats. No bound is NaN; it would be above or below all.
fn ordered(x: f32) -> u32 {
    let bits = x.to_bits();
    if bits >> 31 == 0 { bits | 1 << 31 } else { !bits }
}

fn unordered(bits: u32) -> f32 {
    f32::from_bits(if bits >> 31 == 1 { bits & !(1 << 31) } else { !bits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_floor_is_the_kth_best_bound_or_the_least(
            bounds in prop::collection::vec(-1.0f32..1.0, 0..50),
            k in 1usize..20,
            least in prop_oneof![Just(f32::NEG_INFINITY), -1.0f32..1.0],
        ) {
            let floor = Floor::new(k, least);
            for part in bounds.chunks(7) {
                floor.offer(part.iter().copied());
            }
            let mut sorted = bounds;
            sorted.sort_by(|a, b| b.total_cmp(a));
            let kth = sorted.get(k - 1).copied().unwrap_or(f32::NEG_INFINITY);
            prop_assert_eq!(floor.get(), kth.max(least));
        }

        #[test]
        fn ordered_keeps_order(a in any::<f32>(), b in any::<f32>()) {
            prop_assume!(!a.is_nan() && !b.is_nan());
            prop_assert_eq!(unordered(ordered(a)).to_bits(), a.to_bits());
            prop_assert!(a >= b || ordered(a) < ordered(b));
        }
    }
}
