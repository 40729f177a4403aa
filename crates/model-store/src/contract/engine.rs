use super::{FullPassAnswer, FullPassQuery, Hit, QueryBatch};

/// Answers batches of queries exactly, as the [contract](super) says.
///
/// One thread makes an engine, owns it and calls it; nothing else does. So it need not be `Send`.
pub trait Engine {
    /// Which engine this is, for logs and clients.
    fn description(&self) -> EngineDescription;

    /// How many of so many queries that wait the next pass should take, at least one: where a larger
    /// batch stops paying for the time that it makes its first query wait. A larger batch is answered all
    /// the same.
    fn preferred_batch(&self, waiting: usize) -> usize;

    /// What the engine has counted since it started, for people: name and count. Empty if it counts
    /// nothing.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// For each query of the batch, in order, its best `k` rows, best first.
    ///
    /// # Errors
    /// Only for faults of the engine or its caller; every [`Query`](super::Query) made for this
    /// engine's table has an answer.
    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError>;

    /// As [`search`](Self::search), for a caller with other work to do: `meanwhile` is called, perhaps more
    /// than once, while a device searches; first, if there is none; not at all, if there is nothing to
    /// search or an error.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    fn search_meanwhile(
        &mut self,
        batch: &QueryBatch<'_>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Vec<Hit>>, EngineError> {
        meanwhile();
        self.search(batch)
    }

    /// For each query, in order, its best rows and the ranks that it asks for. The queries may be of any
    /// number; vectors that they share are compared with each row once.
    ///
    /// # Errors
    /// As [`search`](Self::search); and [`EngineError::SearchOnly`] by an engine that has no full pass,
    /// which must be joined with one that has.
    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let _ = queries;
        Err(EngineError::SearchOnly(self.description().name))
    }
}

/// Which engine answers, and on what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDescription {
    /// A short stable name, as in `--device`: `cpu`, `cuda`; `reference` for the oracle.
    pub name: &'static str,
    /// What it runs on and how, for people.
    pub detail: String,
}

/// Why a batch could not be answered.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A query was made for a table of another shape.
    #[error("a query of this batch was made for another table than this engine's")]
    ForeignQuery,
    /// The engine has no full pass of its own.
    #[error("the engine `{0}` can only search; full passes need an engine beside it")]
    SearchOnly(&'static str),
    /// The device failed. It may answer again, or never.
    #[error("the device failed: {0}")]
    Device(String),
}
