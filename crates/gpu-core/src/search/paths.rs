//! Which kinds of pass the engine may use, and how often it used them.

/// Which kinds of pass the engine may use; tests and benchmarks choose, all other callers use
/// [`Paths::default`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Paths {
    /// Use only kernels that every supported device can run.
    pub portable: bool,
    /// Build and scan the 8-bit table. Otherwise every query reads the float32 table.
    pub int8: bool,
    /// Build the 4-bit table and scan it for queries that come alone.
    pub int4: bool,
    /// In scans of the float32 table, score rows in float32 first, and only those that may be an
    /// answer in float64. Otherwise every row is scored in float64.
    pub float32: bool,
    /// Tables of fewer rows are scanned in float32.
    pub certified_from_rows: usize,
}

impl Default for Paths {
    fn default() -> Self {
        Self { portable: false, int8: true, int4: true, float32: true, certified_from_rows: 16_384 }
    }
}

contract::counters! {
    /// Passes and rows since the engine started: what the certificates cost.
    Counters {
        /// Passes over a table.
        passes: "passes",
        /// Queries answered by a certified pass.
        certified: "certified",
        /// Queries that read the float32 table because no certified pass takes them, for example
        /// because they ask for very many hits.
        exact: "exact",
        /// Queries whose sets have so few rows that all of them were read, and no other.
        gathered: "gathered",
        /// Queries that the 4-bit scan left with too many rows in doubt; the 8-bit scan then took
        /// them.
        retried: "retried",
        /// Queries of certified passes, and queries for ranks, that left too many rows in doubt; a
        /// scan of all rows then took them.
        fallbacks: "fallbacks",
        /// Rows that scans could not rule out.
        candidates: "candidates",
        /// Rows that were scored in float64 after a scan.
        survivors: "survivors",
        /// Queries for ranks that were counted on tensor cores.
        ranked: "ranked",
        /// Queries answered by full passes.
        full_passes: "full_pass_queries",
        /// Texts whose class scores were computed.
        classified: "classified",
        /// Texts that were expanded.
        expanded: "expanded_parts",
        /// Passes whose vectors the device fetched from where callers had put them. A service has
        /// none, because only callers in its own process fill such memory.
        staged,
    }
}
