//! Which kinds of pass the engine may use, and how often it used them.

use std::ops::Add;

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

/// Passes and rows since the engine started: what the certificates cost.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Passes over a table.
    pub passes: u64,
    /// Queries answered by a certified pass.
    pub certified: u64,
    /// Queries that read the float32 table because no certified pass takes them, for example
    /// because they ask for very many hits.
    pub exact: u64,
    /// Queries that the 4-bit scan left with too many rows in doubt; the 8-bit scan then took them.
    pub retried: u64,
    /// Queries of certified passes, and queries for ranks, that left too many rows in doubt; a scan
    /// of all rows then took them.
    pub fallbacks: u64,
    /// Rows that scans could not rule out.
    pub candidates: u64,
    /// Rows that were scored in float64 after a scan.
    pub survivors: u64,
    /// Queries for ranks that were counted on tensor cores.
    pub ranked: u64,
    /// Queries answered by full passes.
    pub full_passes: u64,
    /// Texts whose class scores were computed.
    pub classified: u64,
    /// Texts that were expanded.
    pub expanded: u64,
    /// Passes whose vectors the device fetched from where callers had put them.
    pub staged: u64,
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            passes: self.passes + other.passes,
            certified: self.certified + other.certified,
            exact: self.exact + other.exact,
            retried: self.retried + other.retried,
            fallbacks: self.fallbacks + other.fallbacks,
            candidates: self.candidates + other.candidates,
            survivors: self.survivors + other.survivors,
            ranked: self.ranked + other.ranked,
            full_passes: self.full_passes + other.full_passes,
            classified: self.classified + other.classified,
            expanded: self.expanded + other.expanded,
            staged: self.staged + other.staged,
        }
    }
}
