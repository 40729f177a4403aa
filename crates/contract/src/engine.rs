use super::{FullPassAnswer, FullPassPart, FullPassQuery, Hit, Query, QueryBatch};

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
    /// Only for faults of the engine or its caller; every [`Query`] made for this
    /// engine's table has an answer.
    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError>;

    /// As [`search`](Self::search), for a caller with other work to do: `meanwhile` is called, perhaps more
    /// than once, while a device searches; first, if there is none; not at all, if there is nothing to
    /// search or an error.
    ///
    /// `None` for a query that takes far longer than a search should: it has no certificate, or asks for too
    /// large a part of the table. The caller asks for it by a full pass, which can be cut into slices, with
    /// [`FullPassQuery::of_search`]: the answer is the same.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    fn search_meanwhile(
        &mut self,
        batch: &QueryBatch<'_>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        meanwhile();
        Ok(self.search(batch)?.into_iter().map(Some).collect())
    }

    /// What this query takes of a search pass, in plain queries (k = 10, all rows) of a full batch: at least 1. An
    /// estimate from the query's form.
    fn search_cost(&self, query: &Query) -> usize {
        let _ = query;
        1
    }

    /// A slice of a full pass: looks at rows from `from` on for all these queries. They may be of any number;
    /// vectors that they share are compared with each row once. All of them have looked at the rows before `from`,
    /// and at no others.
    ///
    /// `go_on` is asked between small pieces of work, perhaps from several threads. The slice ends soon after it
    /// says `false`, but not before it has got at least one piece further. `Some`: the row where the next slice
    /// begins, which is `from` again as long as the slice was spent on the rows whose ranks are asked for. `None`:
    /// all rows were looked at, so that each part has its [answer](FullPassPart::into_answer).
    ///
    /// # Errors
    /// As [`search`](Self::search); and [`EngineError::SearchOnly`] by an engine that has no full pass,
    /// which must be joined with one that has. After an error the parts are of no use.
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        let _ = (parts, from, go_on);
        Err(EngineError::SearchOnly(self.description().name))
    }

    /// For each query, in order, its best rows and the ranks that it asks for: a full pass in one slice.
    ///
    /// # Errors
    /// As [`full_pass_part`](Self::full_pass_part).
    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let parts = queries.iter().map(|&query| FullPassPart::new(query.clone()));
        let mut parts: Vec<FullPassPart> = parts.collect();
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.full_pass_part(&mut parts, from, &|| true)?;
        }
        Ok(parts.into_iter().map(FullPassPart::into_answer).collect())
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
    #[error("a query of this batch was made for a different table")]
    ForeignQuery,
    /// The engine has no full pass of its own.
    #[error("the engine `{0}` can only search; full passes need another engine beside it")]
    SearchOnly(&'static str),
    /// The device failed. It may answer again, or never.
    #[error("the device failed: {0}")]
    Device(String),
}
