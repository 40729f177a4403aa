//! What a model's queue and engine have counted, for metrics.

use super::Histogram;
use scheduler::{BATCH_SIZE_BOUNDS, LaneStatistics, PASS_SECONDS_BOUNDS, ReplicaState};

/// What the queue and the engine of one model have counted. Counts never go back while the service
/// runs.
#[derive(Debug, Clone, Default)]
pub struct EngineFigures {
    /// The model's name.
    pub model: String,
    /// Number of rows.
    pub rows: usize,
    /// Number of components per row.
    pub dim: usize,
    /// Bytes of its table: vectors and norms.
    pub bytes: u64,
    /// Files that were found damaged: its own, or those that its heads need.
    pub damaged_files: u64,
    /// Searches, full passes, classified texts and expanded texts.
    pub lanes: [LaneFigures; 4],
    /// Slots of the queue, which the lanes share.
    pub queue_capacity: u64,
    /// Jobs that were refused because the queue was full.
    pub refused: u64,
    /// Expired jobs: their deadlines passed first.
    pub late: u64,
    /// Cancelled jobs: their callers hung up first.
    pub hung_up: u64,
    /// Jobs of passes that failed, and jobs that arrived while there was no engine.
    pub failed: u64,
    /// Jobs that were asked again of another engine after theirs had failed.
    pub asked_again: u64,
    /// The state of each engine.
    pub replicas: Vec<ReplicaState>,
    /// How often the engine was restarted.
    pub restarts: u64,
    /// What the engine itself counts: [`Device::counters`](kindred::contract::Device::counters).
    pub counters: Vec<(&'static str, u64)>,
}

/// One kind of pass, and the queries that wait for it.
#[derive(Debug, Clone, Default)]
pub struct LaneFigures {
    /// `search`, `full_pass`, `classify` or `expand`.
    pub lane: &'static str,
    /// Passes over the table.
    pub passes: u64,
    /// Queries in these passes.
    pub queries: u64,
    /// Queries per pass.
    pub batch: Histogram,
    /// Seconds per pass.
    pub pass_seconds: Histogram,
    /// The estimated cost of the queries, as [`LaneStatistics::work`].
    pub work: u64,
    /// Slots of the queue that are taken by queries that wait or run.
    pub slots_taken: u64,
}

impl LaneFigures {
    /// What the queue has counted for the lane of this name.
    pub fn new(lane: &'static str, counted: &LaneStatistics) -> Self {
        let buckets = |bounds: &mut dyn Iterator<Item = f64>, counts: &[u64]| {
            bounds.chain([f64::INFINITY]).zip(counts.iter().copied()).collect()
        };
        let sizes = &mut BATCH_SIZE_BOUNDS.iter().map(|&bound| bound as f64);
        let seconds = &mut PASS_SECONDS_BOUNDS.iter().copied();
        Self {
            lane,
            passes: counted.passes,
            queries: counted.queries,
            batch: Histogram {
                buckets: buckets(sizes, &counted.batch_sizes),
                sum: counted.queries as f64,
            },
            pass_seconds: Histogram {
                buckets: buckets(seconds, &counted.pass_seconds),
                sum: counted.pass_seconds_sum,
            },
            work: counted.work,
            slots_taken: u64::from(counted.slots_taken),
        }
    }
}

/// The counters of engines: the engine's own name, the metric's name, and what it means.
pub(super) const COUNTERS: [(&str, &str, &str); 16] = [
    ("passes", "kindred_scan_passes", "Certified passes over the derived table"),
    ("certified", "kindred_scan_certified_queries", "Queries answered with a certificate"),
    (
        "full",
        "kindred_scan_uncertified_queries",
        "Queries answered by scoring every row, without trying a certificate",
    ),
    (
        "exact",
        "kindred_scan_uncertified_queries",
        "Queries answered by scoring every row, without trying a certificate",
    ),
    (
        "retried",
        "kindred_scan_retried_queries",
        "Queries answered by a second certified scan with more bits",
    ),
    (
        "fallbacks",
        "kindred_scan_fallbacks",
        "Queries without a certificate, which fell back to scoring every row",
    ),
    (
        "second_looks",
        "kindred_scan_second_looks",
        "Rows that the first comparison did not rule out",
    ),
    ("candidates", "kindred_scan_candidates", "Rows that the scan did not rule out"),
    ("survivors", "kindred_scan_survivors", "Rows rescored by the formula after a certified scan"),
    (
        "ranked",
        "kindred_ranked_queries",
        "Queries for ranks that the device counted in a pass of its own",
    ),
    ("full_pass_queries", "kindred_full_pass_queries", "Queries answered by full passes"),
    ("classified", "kindred_classified_texts", "Texts that heads classified"),
    (
        "expanded_parts",
        "kindred_expanded_parts",
        "Parts of texts that heads expanded, of a few tokens each",
    ),
    ("expanded", "kindred_expanded_texts", "Texts that heads expanded"),
    (
        "cut_texts",
        "kindred_cut_texts",
        "Texts for heads that were too long, so a part was left out",
    ),
    (
        "texts_with_unknown_words",
        "kindred_texts_with_unknown_words",
        "Texts for heads with words that the head does not know",
    ),
];

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use cpu_core::{CpuEngine, Options};
    use kindred::ModelStore;
    use kindred::contract::Device;

    use super::*;

    #[test]
    fn whatever_the_engine_counts_has_a_metric() {
        let rows = [("a", &[1.0f32, 0.0][..]), ("b", &[1.0, 1.0])];
        let model = Arc::new(ModelStore::from_rows("two", 2, rows).unwrap());
        let engine = CpuEngine::new(model, Options::default()).unwrap();
        let known: Vec<&str> = COUNTERS.iter().map(|(name, ..)| *name).collect();
        for (name, _) in engine.counters() {
            assert!(known.contains(&name), "{name}");
        }
    }
}
