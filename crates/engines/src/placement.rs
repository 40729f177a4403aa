//! Decides which GPU gets which rows of a model: a copy on each GPU, or shards.

use std::fmt;
use std::ops::Range;

use gpu_core::GpuMemory;

use crate::device::Placement;

/// Which GPU has which rows of a model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The replicas: each has all rows, in shards on one or more GPUs.
    pub replicas: Vec<Vec<Shard>>,
}

/// Some rows on one GPU.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shard {
    /// The GPU's index in the driver's order, from 0.
    pub gpu: u32,
    /// Its name.
    pub name: String,
    /// The rows.
    pub rows: Range<usize>,
    /// Memory that the engine takes there for these rows, in bytes; if it is not at full speed, at
    /// least this.
    pub bytes: u64,
    /// Whether that is enough for full speed. If not, some queries are slower.
    pub at_full_speed: bool,
}

/// A model does not fit on the GPUs that it may use.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the model does not fit: {}; {cure}", lacks.join(", "))]
pub struct DoesNotFit {
    /// What each GPU would need.
    lacks: Vec<String>,
    /// What helps.
    cure: &'static str,
}

impl Placed {
    /// Whether the model is in shards.
    pub fn is_sharded(&self) -> bool {
        self.replicas.iter().any(|shards| shards.len() > 1)
    }

    /// The memory that it takes on a GPU, in bytes.
    pub fn bytes_on(&self, gpu: u32) -> u64 {
        let on_gpu = self.replicas.iter().flatten().filter(|shard| shard.gpu == gpu);
        on_gpu.map(|shard| shard.bytes).sum()
    }
}

/// For people: `2 replicas: cuda:0 (18.30 GB); cuda:1 (18.30 GB)`.
impl fmt::Display for Placed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shard = |shard: &Shard| {
            let slower = if shard.at_full_speed { "" } else { ", some queries are slower" };
            format!("cuda:{} ({:.2} GB{slower})", shard.gpu, shard.bytes as f64 / 1e9)
        };
        let replica = |shards: &Vec<Shard>| {
            let gpus: Vec<String> = shards.iter().map(shard).collect();
            gpus.join(" + ")
        };
        let each: Vec<String> = self.replicas.iter().map(replica).collect();
        match (each.len(), self.is_sharded()) {
            (1, false) => write!(f, "one GPU: {}", each[0]),
            (1, true) => write!(f, "{} shards: {}", self.replicas[0].len(), each[0]),
            (n, false) => write!(f, "{n} replicas: {}", each.join("; ")),
            (n, true) => {
                let shards = self.replicas[0].len();
                write!(f, "{n} replicas of {shards} shards: {}", each.join("; "))
            }
        }
    }
}

/// Places a model of n rows on these GPUs, one of which may be there several times. `memory` is
/// what an engine for some rows takes, in bytes: the least, and for full speed.
///
/// # Errors
/// If there is no way.
///
/// # Panics
/// If there are no GPUs.
pub fn place(
    gpus: &[GpuMemory],
    rows: usize,
    memory: impl Fn(usize) -> (u64, u64),
    placement: Placement,
) -> Result<Placed, DoesNotFit> {
    assert!(!gpus.is_empty(), "a model is placed on GPUs");
    // What each entry of a GPU that is there several times may take.
    let shared: Vec<GpuMemory> = gpus
        .iter()
        .map(|gpu| {
            let entries = gpus.iter().filter(|other| other.ordinal == gpu.ordinal).count() as u64;
            GpuMemory { free: gpu.free / entries, ..gpu.clone() }
        })
        .collect();
    let all = Ask { gpus: &shared, rows, memory: &memory };
    match placement {
        Placement::Replicate => all.in_groups(1, false),
        Placement::Shard => {
            all.in_groups(gpus.len(), true).or_else(|_| all.in_groups(gpus.len(), false))
        }
        Placement::Auto => {
            let mut sizes = (1..=gpus.len()).filter(|size| gpus.len().is_multiple_of(*size));
            let first = sizes.find_map(|size| all.in_groups(size, true).ok());
            // With fewer tables rather than not at all, and then on as many GPUs as there are.
            first.map_or_else(|| all.in_groups(gpus.len(), false), Ok)
        }
    }
}

/// What is to be placed.
struct Ask<'a> {
    gpus: &'a [GpuMemory],
    rows: usize,
    memory: &'a dyn Fn(usize) -> (u64, u64),
}

impl Ask<'_> {
    /// A replica on each group of n GPUs.
    fn in_groups(&self, size: usize, at_full_speed: bool) -> Result<Placed, DoesNotFit> {
        let groups = self.gpus.chunks(size).map(|group| self.in_shards(group, at_full_speed));
        let mut replicas = Vec::new();
        let mut lacks = Vec::new();
        for group in groups {
            match group {
                Ok(shards) => replicas.push(shards),
                Err(mut each) => lacks.append(&mut each),
            }
        }
        if lacks.is_empty() {
            return Ok(Placed { replicas });
        }
        let cure = match size {
            1 if self.gpus.len() > 1 => {
                "use --placement shard, which keeps a part of the rows on each GPU, free some memory, or use --device cpu"
            }
            1 => "use several GPUs with --placement shard, free some memory, or use --device cpu",
            _ => "use more GPUs, free some memory, or use --device cpu",
        };
        Err(DoesNotFit { lacks, cure })
    }

    /// Equal shards on these GPUs; if one has too little memory for its own, shards in proportion
    /// to their free memory.
    fn in_shards(
        &self,
        gpus: &[GpuMemory],
        at_full_speed: bool,
    ) -> Result<Vec<Shard>, Vec<String>> {
        self.these(gpus, &shards::split_evenly(self.rows, gpus.len()), at_full_speed).or_else(
            |lacks| {
                // What does not grow with the rows is needed in any case.
                let fixed = (self.memory)(0).0;
                let free = gpus.iter().map(|gpu| u128::from(gpu.free.saturating_sub(fixed)));
                let all = free.clone().sum::<u128>().max(1);
                let ends = free.scan(0, |before, free| {
                    *before += free;
                    Some((self.rows as u128 * *before / all) as usize)
                });
                let mut start = 0;
                let ranges: Vec<Range<usize>> =
                    ends.map(|end| std::mem::replace(&mut start, end)..end).collect();
                self.these(gpus, &ranges, at_full_speed).map_err(|_| lacks)
            },
        )
    }

    fn these(
        &self,
        gpus: &[GpuMemory],
        ranges: &[Range<usize>],
        at_full_speed: bool,
    ) -> Result<Vec<Shard>, Vec<String>> {
        let (mut shards, mut lacks) = (Vec::new(), Vec::new());
        for (gpu, rows) in gpus.iter().zip(ranges) {
            // Without rows there is no engine.
            let (least, full) = if rows.is_empty() { (0, 0) } else { (self.memory)(rows.len()) };
            let fits_fully = full <= gpu.free;
            let needed = if at_full_speed { full } else { least };
            if needed > gpu.free {
                let gigabytes = |bytes: u64| bytes as f64 / 1e9;
                lacks.push(format!(
                    "cuda:{} ({}) would need {:.2} GB, and has {:.2} of {:.2} GB free",
                    gpu.ordinal,
                    gpu.name,
                    gigabytes(needed),
                    gigabytes(gpu.free),
                    gigabytes(gpu.total)
                ));
            }
            let bytes = if fits_fully { full } else { least };
            let (gpu, name, rows) = (gpu.ordinal, gpu.name.clone(), rows.clone());
            shards.push(Shard { gpu, name, rows, bytes, at_full_speed: fits_fully });
        }
        if lacks.is_empty() { Ok(shards) } else { Err(lacks) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GB: u64 = 1_000_000_000;

    fn gpus(free: &[u64]) -> Vec<GpuMemory> {
        let gpu = |(ordinal, free): (u32, &u64)| GpuMemory {
            ordinal,
            name: "H".to_owned(),
            free: free * GB,
            total: 140 * GB,
        };
        (0..).zip(free).map(gpu).collect()
    }

    /// A million rows take 1 GB, with all tables 2 GB, and an engine 1 GB.
    fn memory(rows: usize) -> (u64, u64) {
        let rows = rows as u64 * 1000;
        (rows + GB, 2 * rows + GB)
    }

    fn auto(free: &[u64], millions: usize) -> Result<Placed, DoesNotFit> {
        place(&gpus(free), millions * 1_000_000, memory, Placement::Auto)
    }

    fn sizes(placed: &Placed) -> Vec<usize> {
        placed.replicas.iter().map(Vec::len).collect()
    }

    #[test]
    fn auto_takes_the_smallest_groups_that_fit() {
        assert_eq!(sizes(&auto(&[140; 4], 60).unwrap()), [1, 1, 1, 1]);
        assert_eq!(sizes(&auto(&[140; 4], 100).unwrap()), [2, 2]);
        assert_eq!(sizes(&auto(&[140; 4], 200).unwrap()), [4]);
        assert_eq!(sizes(&auto(&[140; 6], 200).unwrap()), [3, 3]);
        assert_eq!(sizes(&auto(&[140; 3], 100).unwrap()), [3]);
        assert_eq!(sizes(&auto(&[140; 1], 10).unwrap()), [1]);
        // One GPU is too small for a copy.
        assert_eq!(sizes(&auto(&[140, 100], 60).unwrap()), [2]);
        for placed in [auto(&[140; 6], 200).unwrap(), auto(&[140, 10, 90], 80).unwrap()] {
            for shards in &placed.replicas {
                let mut end = 0;
                for shard in shards {
                    assert_eq!(shard.rows.start, end);
                    end = shard.rows.end;
                }
                assert_eq!(end % 40_000_000, 0, "{placed}");
                assert!(shards.iter().all(|shard| shard.at_full_speed));
            }
        }
    }

    #[test]
    fn shards_are_unequal_where_memory_is() {
        let placed = auto(&[140, 10, 90], 80).unwrap();
        let rows: Vec<usize> = placed.replicas[0].iter().map(|one| one.rows.len()).collect();
        assert_eq!(rows.iter().sum::<usize>(), 80_000_000);
        assert!(rows[1] < 4_500_000 && rows[0] > rows[2], "{rows:?}");
    }

    #[test]
    fn a_gpu_without_free_memory_gets_no_rows() {
        for free in [[140, 0, 140, 140], [140, 1, 140, 140]] {
            let placed = auto(&free, 100).unwrap();
            let rows: Vec<usize> = placed.replicas[0].iter().map(|one| one.rows.len()).collect();
            assert_eq!((rows[1], rows.iter().sum::<usize>()), (0, 100_000_000), "{placed}");
            assert_eq!(placed.bytes_on(1), 0);
        }
    }

    #[test]
    fn a_reload_counts_no_memory_that_nobody_has() {
        // All tables take 69.75 GB; 67 are free, of which an engine with some of the tables takes
        // 63.5.
        let memory = |rows: usize| (50_000 * rows as u64 + GB, 68_750 * rows as u64 + GB);
        let first = place(&gpus(&[67]), 1_000_000, memory, Placement::Replicate).unwrap();
        assert!(!first.replicas[0][0].at_full_speed);
        let mut beside = gpus(&[0]);
        beside[0].free = 3_500_000_000 + first.bytes_on(0);
        let again = place(&beside, 1_000_000, memory, Placement::Replicate).unwrap();
        assert!(!again.replicas[0][0].at_full_speed, "no more than 67 GB can be free");
    }

    #[test]
    fn fewer_tables_rather_than_none() {
        let placed = auto(&[50, 50], 80).unwrap();
        assert!(placed.replicas[0].iter().all(|shard| !shard.at_full_speed), "{placed}");
        assert!(placed.to_string().contains("slower"), "{placed}");
        let placed = place(&gpus(&[50, 50]), 40_000_000, memory, Placement::Replicate).unwrap();
        assert_eq!(sizes(&placed), [1, 1]);
        assert!(!placed.replicas[0][0].at_full_speed);
    }

    #[test]
    fn what_is_asked_for_is_done_or_refused() {
        let shard = place(&gpus(&[140; 4]), 1_000_000, memory, Placement::Shard).unwrap();
        assert_eq!(sizes(&shard), [4]);
        assert_eq!(shard.bytes_on(2), 1_500_000_000);
        let refused = place(&gpus(&[30; 2]), 40_000_000, memory, Placement::Replicate).unwrap_err();
        let said = refused.to_string();
        assert!(
            said.contains("cuda:1 (H) would need 41.00 GB, and has 30.00 of 140.00 GB free"),
            "{said}"
        );
        assert!(said.contains("--placement shard"), "{said}");
        let refused = auto(&[30; 2], 90).unwrap_err();
        let said = refused.to_string();
        assert!(said.contains("cuda:0 (H) would need 46.00 GB"), "{said}");
        assert!(said.contains("more GPUs"), "{said}");
    }

    #[test]
    fn a_gpu_that_is_there_twice_shares_its_memory() {
        let twice = [gpus(&[100]), gpus(&[100])].concat();
        assert_eq!(sizes(&place(&twice, 20_000_000, memory, Placement::Auto).unwrap()), [1, 1]);
        let placed = place(&twice, 40_000_000, memory, Placement::Auto).unwrap();
        assert_eq!(sizes(&placed), [2]);
        assert_eq!(placed.bytes_on(0), 82 * GB);
        assert_eq!(placed.to_string(), "2 shards: cuda:0 (41.00 GB) + cuda:0 (41.00 GB)");
    }
}
