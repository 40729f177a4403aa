//! The sizes of a certified pass, by its number of queries and their k: what is sampled, where thresholds are
//! raised, and the capacity for hits.

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

    /// The class for this k and number of excluded rows; `None` if no certified pass takes them.
    pub(crate) fn of(k: usize, excluded: usize) -> Option<Self> {
        Self::ALL.into_iter().find(|class| k <= class.stride() && k + excluded <= class.max_rank())
    }

    /// The capacity for a query's hits.
    pub(crate) fn stride(self) -> usize {
        match self {
            Self::Small => 16,
            Self::Medium => 128,
            Self::Large => 1024,
        }
    }

    /// The maximum of k + excluded rows: a threshold is the bound with that rank in a sample.
    fn max_rank(self) -> usize {
        match self {
            Self::Small => 48,
            Self::Medium => 384,
            Self::Large => 2048,
        }
    }

    /// The maximum number of queries in a pass: more would leave each too little room for candidates.
    pub(crate) fn max_batch(self) -> usize {
        match self {
            Self::Small => 1024,
            Self::Medium => 512,
            Self::Large => 64,
        }
    }

    /// The cost of a query, in small queries of a full batch: 64 medium queries took 0.376 ms, 64 large ones
    /// 1.117 ms, and 1,024 small ones 1.229 ms (docs/performance.md).
    pub(crate) fn cost(self) -> usize {
        match self {
            Self::Small => 1,
            Self::Medium => 4,
            Self::Large => 16,
        }
    }

    /// The sample is one in this many tiles.
    fn sampling(self) -> usize {
        match self {
            Self::Small => 32,
            Self::Medium => 16,
            Self::Large => 8,
        }
    }

    /// The number of blocks that divide a query's candidates among themselves to score them.
    pub(crate) fn rescoring_parts(self, batch: usize) -> usize {
        // Enough blocks to fill a device when queries are few.
        match (self, batch) {
            (Self::Large, _) => 16,
            (_, 0..=64) => 4,
            (_, 65..=128) => 2,
            _ => 1,
        }
    }
}

/// The tiles of a pass: a sample, then all of them in phases between which thresholds are raised.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Phases {
    /// The number of tiles that are sampled, from the first on.
    pub(crate) sample: usize,
    /// The tile at which each phase ends; the last is the number of tiles.
    pub(crate) ends: Vec<usize>,
}

impl Phases {
    /// `max_sample` is the capacity of the buffer of bounds, in tiles. A sample that is a multiple of
    /// `multiprocessors` keeps them equally busy.
    pub(crate) fn new(
        class: Class,
        batch: usize,
        tiles: usize,
        max_sample: usize,
        multiprocessors: usize,
    ) -> Self {
        let wanted = tiles.div_ceil(class.sampling()).max(64);
        let even = wanted / multiprocessors * multiprocessors;
        let sample = if even > 0 { even } else { wanted }.min(tiles).min(max_sample);
        // One raise pays once the candidates of many queries cost more than its launch; with still more
        // candidates, two raises pay.
        let cuts: &[usize] = match (class, batch) {
            (Class::Small, 0..=512) | (Class::Medium, _) => &[8],
            (Class::Small, _) => &[16, 4],
            (Class::Large, _) => &[8, 2],
        };
        let mut ends: Vec<usize> =
            cuts.iter().map(|cut| tiles / cut).filter(|&end| end >= multiprocessors).collect();
        ends.push(tiles);
        Self { sample, ends }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_take_what_fits() {
        assert_eq!(Class::of(10, 1), Some(Class::Small));
        assert_eq!(Class::of(16, 32), Some(Class::Small));
        assert_eq!(Class::of(16, 33), Some(Class::Medium));
        assert_eq!(Class::of(17, 0), Some(Class::Medium));
        assert_eq!(Class::of(1000, 1000), Some(Class::Large));
        assert_eq!(Class::of(1024, 1025), None);
        assert_eq!(Class::of(1025, 0), None);
    }

    #[test]
    fn phases_cover_all_tiles_once() {
        for class in Class::ALL {
            for batch in [1, 64, 128, 1024] {
                for tiles in [1, 2, 63, 64, 131, 132, 1000, 17_157, 80_000] {
                    let phases = Phases::new(class, batch, tiles, 600, 132);
                    assert!((1..=tiles.min(600)).contains(&phases.sample));
                    assert!(phases.ends[0] > 0 && phases.ends.is_sorted_by(|a, b| a < b));
                    assert_eq!(phases.ends.last(), Some(&tiles));
                }
            }
        }
    }
}
