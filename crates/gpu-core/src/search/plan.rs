//! The sizes of a certified pass, by its number of queries and their k: what is sampled, where
//! thresholds are raised, and the capacity for hits.

use super::abi::TileWalk;

/// The few tiles that are scanned first in a pass for all hits: one in this many.
const FEW_TILES: usize = 64;

/// A range of k. Passes of one class use their buffers in the same shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// k up to 16.
    Small,
    /// k up to 128.
    Medium,
    /// k up to 1024.
    Large,
}

impl Class {
    pub(crate) const ALL: [Self; 3] = [Self::Small, Self::Medium, Self::Large];

    /// The class for this k; `None` if no certified pass takes it.
    pub(crate) fn of(k: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|class| k <= class.stride())
    }

    /// The capacity for a query's hits.
    pub(crate) fn stride(self) -> usize {
        match self {
            Self::Small => 16,
            Self::Medium => 128,
            Self::Large => 1024,
        }
    }

    /// The maximum number of queries in a pass: more would leave each too little room for
    /// candidates.
    pub(crate) fn max_batch(self) -> usize {
        match self {
            Self::Small => 1024,
            Self::Medium => 512,
            Self::Large => 64,
        }
    }

    /// The cost of a query, in small queries of a full batch. Medium queries share a pass with
    /// small ones; 64 large ones took 1.117 ms, and 1,024 small ones 1.229 ms
    /// (docs/performance.md).
    pub(crate) fn cost(self) -> usize {
        match self {
            Self::Small | Self::Medium => 1,
            Self::Large => 16,
        }
    }

    /// The sample is one in this many tiles.
    fn sampling(self, batch: usize) -> usize {
        match (self, batch) {
            (Self::Small, 0..=64) => 20,
            (Self::Small, _) => 32,
            (Self::Medium, _) => 16,
            (Self::Large, _) => 8,
        }
    }

    /// The number of blocks that divide the candidates of a query with more than a few hits among
    /// themselves to score them.
    pub(crate) fn rescoring_parts(self, batch: usize) -> usize {
        match (self, batch) {
            (Self::Small, _) => 1,
            // Most queries of a pass have few hits. Those with many must not take much longer.
            (Self::Medium, 0..=256) => 8,
            (Self::Medium, _) => 4,
            (Self::Large, _) => 16,
        }
    }
}

/// The tiles of a pass: a sample, then all of them in phases between which thresholds are raised.
///
/// The tiles of a table are in the order of its rows, which may mean something: in most models,
/// frequent words come first. So the sample and each phase take every n-th tile.
#[derive(Debug, Clone)]
pub(crate) struct Phases {
    pub(crate) sample: TileWalk,
    /// Each tile is in one of them.
    pub(crate) scans: Vec<TileWalk>,
}

impl Phases {
    /// For the first `tiles` tiles of the table. `max_sample` is the capacity of the buffer of
    /// bounds, in tiles. A sample that is a multiple of `multiprocessors` keeps them equally busy.
    pub(crate) fn new(
        class: Class,
        batch: usize,
        tiles: usize,
        max_sample: usize,
        multiprocessors: usize,
    ) -> Self {
        let wanted = tiles.div_ceil(class.sampling(batch)).max(64);
        let even = wanted / multiprocessors * multiprocessors;
        let sample = if even > 0 { even } else { wanted }.min(tiles).min(max_sample);
        // A raise pays once the candidates of many queries cost more than its launch; with still
        // more candidates, two raises pay.
        let cuts: &[usize] = match (class, batch) {
            (Class::Small, 0..=64) => &[],
            (Class::Small, 65..=512) | (Class::Medium, _) => &[8],
            (Class::Small, _) => &[16, 4],
            (Class::Large, _) => &[8, 2],
        };
        let mut scans = Vec::new();
        let mut scanned = 0;
        for &cut in cuts.iter().filter(|&cut| tiles / cut >= multiprocessors) {
            scans.push(every(cut, scanned, tiles));
            scanned = cut;
        }
        scans.push(every(1, scanned, tiles));
        Self { sample: self::sample(sample, tiles), scans }
    }
}

/// The tiles of a pass whose thresholds are known before: a few, and the rest. The few show which
/// queries have too many candidates.
pub(crate) fn few_and_rest(tiles: usize, multiprocessors: usize) -> Vec<TileWalk> {
    if tiles / FEW_TILES < multiprocessors {
        return vec![every(1, 0, tiles)];
    }
    vec![every(FEW_TILES, 0, tiles), every(1, FEW_TILES, tiles)]
}

/// `count` of `tiles` tiles. The first ones are all taken, because queries with a limit have no
/// others.
fn sample(count: usize, tiles: usize) -> TileWalk {
    let dense = count.div_ceil(8);
    let spacing = ((tiles - dense) / (count - dense).max(1)).max(1);
    TileWalk {
        count: count as u32,
        dense: dense as u32,
        start: 0,
        spacing: spacing as u32,
        reciprocal: 0,
    }
}

/// Every `nth` tile; of these not each `scanned / nth`-th, unless `scanned` is 0. `nth` divides
/// `scanned`.
fn every(nth: usize, scanned: usize, tiles: usize) -> TileWalk {
    let left_out = if scanned == 0 { 0 } else { tiles.div_ceil(scanned) };
    let count = (tiles.div_ceil(nth) - left_out) as u32;
    let (start, spacing, reciprocal) = match scanned / nth {
        0 => (0, nth, 0),
        1 => unreachable!("a phase has tiles"),
        2 => (nth, 2 * nth, 0),
        period => (nth, nth, (1u64 << 32).div_ceil(period as u64 - 1) as u32),
    };
    TileWalk { count, dense: 0, start: start as u32, spacing: spacing as u32, reciprocal }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_take_what_fits() {
        assert_eq!(Class::of(10), Some(Class::Small));
        assert_eq!(Class::of(16), Some(Class::Small));
        assert_eq!(Class::of(17), Some(Class::Medium));
        assert_eq!(Class::of(1024), Some(Class::Large));
        assert_eq!(Class::of(1025), None);
    }

    /// As `tile_at` in tile_walk.cuh.
    fn tiles_of(walk: &TileWalk) -> Vec<usize> {
        let tile_at = |i: u32| {
            let Some(j) = i.checked_sub(walk.dense) else { return i };
            let left_out = ((u64::from(j) * u64::from(walk.reciprocal)) >> 32) as u32;
            walk.dense + walk.start + (j + left_out) * walk.spacing
        };
        (0..walk.count).map(|i| tile_at(i) as usize).collect()
    }

    #[test]
    fn phases_cover_all_tiles_once() {
        for class in Class::ALL {
            for batch in [1, 64, 128, 1024] {
                for tiles in [1, 2, 63, 64, 131, 132, 1000, 1057, 4000, 17_157, 80_000] {
                    let phases = Phases::new(class, batch, tiles, 600, 132);
                    let sample = tiles_of(&phases.sample);
                    assert!((1..=tiles.min(600)).contains(&sample.len()));
                    assert!(
                        sample.is_sorted_by(|a, b| a < b)
                            && sample.iter().all(|&tile| tile < tiles)
                    );
                    let mut all: Vec<usize> = Vec::new();
                    for scan in &phases.scans {
                        let scanned = tiles_of(scan);
                        assert!(!scanned.is_empty() && scanned.is_sorted_by(|a, b| a < b));
                        all.extend(scanned);
                    }
                    all.sort_unstable();
                    assert_eq!(all, (0..tiles).collect::<Vec<_>>(), "{class:?}, {batch}, {tiles}");
                }
            }
        }
    }

    #[test]
    fn samples_are_spread_over_all_tiles() {
        let phases = Phases::new(Class::Small, 256, 17_157, 2000, 132);
        let sample = tiles_of(&phases.sample);
        assert_eq!((sample.len(), sample[65], sample[66]), (528, 65, 66));
        assert!(sample[527] > 16_500, "{}", sample[527]);
    }
}
