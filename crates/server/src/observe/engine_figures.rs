//! The counts of a model's queue and engines, for metrics.

use std::time::Duration;

use kindred::filters::FilterCounts;
use kindred::queue::QueueStatistics;

/// The counts of one model's queue and engines, which never go back while the service runs.
#[derive(Debug, Clone)]
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
    /// The systems that the table follows, as far as their followers have reported.
    pub sources: Vec<SourceFigures>,
    /// The counts of the sets of rows that filters have made.
    pub filters: FilterCounts,
    /// The counts of the queue, and with them those of the engines themselves.
    pub queue: QueueStatistics,
    /// Counts of texts for heads, by the names in `COUNTERS`; none without heads.
    pub texts: Vec<(&'static str, u64)>,
}

/// How far a table is behind a system that it follows.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceFigures {
    /// The source's name.
    pub name: String,
    /// Bytes or messages that were not applied at the last report.
    pub behind: u64,
    /// Time by which the table may be behind.
    pub behind_by: Duration,
    /// Bytes that the system keeps for the table's follower.
    pub retained: u64,
}

/// The counters of engines: the engine's own name, the metric's name, and what it means.
pub(super) const COUNTERS: [(&str, &str, &str); 17] = [
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
        "gathered",
        "kindred_scan_gathered_queries",
        "Queries for which only the rows of their sets were read, because they are few",
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
