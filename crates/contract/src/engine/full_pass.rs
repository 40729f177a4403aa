//! Full passes: scores of every row, and ranks.

use crate::{
    COMPONENTS_OF_A_VECTOR, Device, EngineError, FullPassAnswer, FullPassPart, FullPassQuery, Hit,
    Query,
};

/// Beyond this many distinct vectors, the arithmetic of a full pass takes the time, not the table.
const FULL_PASS_VECTORS: usize = 64;

/// Scores every row for queries, and counts ranks. An engine that only searches refuses: the
/// defaults are its.
///
/// Answers are `[queries]`, in order: of each query its best rows, at most `k`, and a rank for each
/// row that was asked for. Costs are counted in components of vectors that each row is multiplied
/// with.
///
/// # Errors
/// [`EngineError::ForeignQuery`] for a query of another table, [`EngineError::Device`].
/// [`EngineError::SearchOnly`] if the engine has no full pass; it must be joined with one that has.
/// After an error the parts can't be used.
pub trait FullPassEngine: Device {
    /// Runs a slice of a full pass: processes rows from `from` on for all these queries. There may
    /// be any number of queries; vectors that they share are compared with each row once. All of
    /// them have processed exactly the rows before `from`, but for those that are
    /// [answered](FullPassPart::is_answered): the engine leaves these out.
    ///
    /// The engine calls `go_on` between small pieces of work, possibly from several threads. The
    /// slice ends soon after `go_on` returns `false`, but not before at least one piece is done.
    /// Returns the row where the next slice starts; that is `from` again while slices are spent on
    /// the rows whose ranks are requested. Returns `None` when all rows are processed and each part
    /// has its [answer](FullPassPart::into_answer).
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        let _ = (parts, from, go_on);
        Err(EngineError::SearchOnly(self.description().name))
    }

    /// The number of vectors that a full pass should have at most, however many wait.
    fn full_pass_vectors(&self) -> usize {
        FULL_PASS_VECTORS
    }

    /// Estimates the cost of this query in a full pass, in components of vectors that each row is
    /// multiplied with. A query costs as much less as it shares vectors with others of the pass.
    fn full_pass_cost(&self, query: &FullPassQuery) -> usize {
        query.scoring.vectors().len() * COMPONENTS_OF_A_VECTOR + query.row_work()
    }

    /// Starts counting the ranks of these queries and returns while the device works on it, after
    /// searches and countings that were started before. Returns `false`, and starts nothing, if
    /// that is not possible for all of them, or with this engine.
    ///
    /// It is [finished](Self::finish_ranks) like a
    /// [started search](crate::SearchEngine::start_search), in the order of all starts.
    fn start_ranks(&mut self, queries: &[&FullPassQuery]) -> Result<bool, EngineError> {
        let _ = queries;
        Ok(false)
    }

    /// Waits for the counting that was started first, which was for these queries. Those that are
    /// not [answered](FullPassPart::is_answered) need a full pass.
    fn finish_ranks(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassPart>, EngineError> {
        Ok(queries.iter().map(|&query| FullPassPart::new(query.clone())).collect())
    }

    /// Runs a full pass in one slice: for each query, in order, its best rows and the requested
    /// ranks.
    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let parts = queries.iter().map(|&query| FullPassPart::new(query.clone()));
        self.full_pass_of(parts.collect())
    }

    /// The best rows of each query of a search, by a full pass in one slice.
    fn search_in_full_pass(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let part = |query: &&Query| FullPassPart::new(FullPassQuery::of_search(query));
        let answers = self.full_pass_of(batch.iter().map(part).collect())?;
        Ok(answers.into_iter().map(|answer| answer.hits).collect())
    }

    /// As [`full_pass`](Self::full_pass), for parts of which no row was processed; those that are
    /// [answered](FullPassPart::is_answered) stay as they are.
    fn full_pass_of(
        &mut self,
        mut parts: Vec<FullPassPart>,
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let mut next = Some(0);
        while let Some(from) = next {
            next = self.full_pass_part(&mut parts, from, &|| true)?;
        }
        Ok(parts.into_iter().map(FullPassPart::into_answer).collect())
    }
}
