//! Searches: the best rows for each query of a batch.

use std::sync::Arc;

use crate::{Device, EngineError, Hit, Query, Table, UsualCosts};

/// Searches for batches of queries.
///
/// Answers are `[queries][hits]`, in the batch's order: at most `k` hits for each query, best
/// first. Costs and batches are counted in plain queries (k = 10, all rows).
///
/// # Errors
/// Only if the engine or its caller is faulty: [`EngineError::Device`], or
/// [`EngineError::ForeignQuery`] for a query of another table. Every [`Query`] made for this
/// engine's table has an answer.
pub trait SearchEngine: Device {
    /// The preferred batch size for the next pass when `waiting` queries are waiting; at least 1.
    /// Beyond it, a larger batch adds more latency than throughput. The engine answers larger
    /// batches too.
    fn preferred_batch(&self, waiting: usize) -> usize;

    /// For each query of the batch, in order, its best `k` rows, best first.
    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError>;

    /// Like [`search`](Self::search), for a caller with other work to do. The engine calls
    /// `meanwhile`, possibly more than once, while a device searches. Without a device it calls it
    /// first. If there is nothing to search, or on an error, it does not call it.
    ///
    /// Returns `None` for a query that would take far longer than a search should, because it has
    /// no certificate or asks for too large a part of the table. The caller then runs it as a full
    /// pass, which can be cut into slices, with
    /// [`FullPassQuery::of_search`](crate::FullPassQuery::of_search): the answer is the same.
    fn search_overlapped(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        meanwhile();
        Ok(self.search(batch)?.into_iter().map(Some).collect())
    }

    /// Starts a search and returns while the device works on it, after searches that were started
    /// before. Returns `false`, and starts nothing, if that is not possible for this batch, or with
    /// this engine.
    ///
    /// Every started search is [finished](Self::finish_search), in the order of all starts; while
    /// there is one, [`search`](Self::search) and [`search_overlapped`](Self::search_overlapped)
    /// are not called. After an error none of them needs to be finished.
    fn start_search(&mut self, batch: &[&Query]) -> Result<bool, EngineError> {
        let _ = batch;
        Ok(false)
    }

    /// Waits for the search that was started first, which was for this batch. Returns its answers,
    /// as [`search_overlapped`](Self::search_overlapped) does.
    fn finish_search(&mut self, batch: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.search_overlapped(batch, &mut || ())
    }

    /// Puts rows behind those that the engine has, if there is room for them on its device: from
    /// then on searches see them. Full passes and heads do not, so [`search`](Self::search) is not
    /// called any more, and a query that [`search_overlapped`](Self::search_overlapped) leaves
    /// open is about all rows. Sets may be of as many rows as there were at any time, and have none
    /// of those after them. Returns how many rows it took: the first ones.
    fn append(&mut self, rows: &Table<'_>) -> Result<usize, EngineError> {
        let _ = rows;
        Ok(0)
    }

    /// Estimates the cost of this query in a search pass, in plain queries (k = 10, all rows) of a
    /// full batch. At least 1.
    fn search_cost(&self, query: &Query) -> usize {
        let _ = query;
        1
    }

    /// What requests usually cost, for admission. `None` if the engine does not know.
    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        None
    }
}
