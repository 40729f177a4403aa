//! What an engine must do: the trait and its error.

use std::error::Error;
use std::sync::Arc;

use super::{
    COMPONENTS_OF_A_VECTOR, Expansion, FullPassAnswer, FullPassPart, FullPassQuery, Hit,
    PartOfExpansion, Query, QueryBatch, Term, TokenText, UsualCosts,
};

/// Beyond this many distinct vectors, the arithmetic of a full pass takes the time, not the table.
const FULL_PASS_VECTORS: usize = 64;

/// Tokens whose sums take a millisecond or two on two cores.
const TOKENS_PER_PASS: usize = 2048;

/// Answers batches of queries exactly, as defined by the [contract](super).
///
/// One thread creates, owns and calls an engine, so it need not be `Send`.
pub trait Engine {
    /// The engine's name and details, for logs and clients.
    fn description(&self) -> EngineDescription;

    /// The preferred batch size for the next pass when `waiting` queries are waiting; at least 1.
    /// Beyond it, a larger batch adds more latency than throughput. The engine answers larger
    /// batches too.
    fn preferred_batch(&self, waiting: usize) -> usize;

    /// The engine's counters since it started, as names and counts. Empty if there are none.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }

    /// For each query of the batch, in order, its best `k` rows, best first.
    ///
    /// # Errors
    /// Only if the engine or its caller is faulty; every [`Query`] made for this
    /// engine's table has an answer.
    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError>;

    /// Like [`search`](Self::search), for a caller with other work to do. The engine calls
    /// `meanwhile`, possibly more than once, while a device searches. Without a device it calls it
    /// first. If there is nothing to search, or on an error, it does not call it.
    ///
    /// Returns `None` for a query that would take far longer than a search should, because it has
    /// no certificate or asks for too large a part of the table. The caller then runs it as a full
    /// pass, which can be cut into slices, with [`FullPassQuery::of_search`]: the answer is the
    /// same.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn search_overlapped(
        &mut self,
        batch: &QueryBatch<'_>,
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        meanwhile();
        Ok(self.search(batch)?.into_iter().map(Some).collect())
    }

    /// Whether searches can be [started](Self::start_search) before the last one is over.
    fn overlaps(&self) -> bool {
        false
    }

    /// Starts a search and returns while the device works on it, after searches that were started
    /// before. Returns `false`, and starts nothing, if that is not possible for this batch, or with
    /// this engine.
    ///
    /// Every started search is [finished](Self::finish_search), in the order of their starts; while
    /// there is one, [`search`](Self::search) and [`search_overlapped`](Self::search_overlapped)
    /// are not called. After an error none of them needs to be finished.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn start_search(&mut self, batch: &QueryBatch<'_>) -> Result<bool, EngineError> {
        let _ = batch;
        Ok(false)
    }

    /// Waits until the search that was started first is almost over: when it is time to start
    /// another, so that the device does not have to wait.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        Ok(())
    }

    /// Waits for the search that was started first, which was for this batch. Returns its answers,
    /// as [`search_overlapped`](Self::search_overlapped) does.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn finish_search(
        &mut self,
        batch: &QueryBatch<'_>,
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.search_overlapped(batch, &mut || ())
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
    ///
    /// # Errors
    /// See [`search`](Self::search). [`EngineError::SearchOnly`] if the engine has no full pass; it
    /// must be joined with one that has. After an error the parts can't be used.
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
        query.scoring().vectors().len() * COMPONENTS_OF_A_VECTOR + query.row_work()
    }

    /// Starts counting the ranks of these queries and returns while the device works on it, after
    /// searches and countings that were started before. Returns `false`, and starts nothing, if
    /// that is not possible for all of them, or with this engine.
    ///
    /// It is [finished](Self::finish_ranks) like a [started search](Self::start_search), in the
    /// order of all starts.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn start_ranks(&mut self, queries: &[&FullPassQuery]) -> Result<bool, EngineError> {
        let _ = queries;
        Ok(false)
    }

    /// Waits for the counting that was started first, which was for these queries. Those that are
    /// not [answered](FullPassPart::is_answered) need a full pass.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn finish_ranks(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassPart>, EngineError> {
        Ok(queries.iter().map(|&query| FullPassPart::new(query.clone())).collect())
    }

    /// Runs a full pass in one slice: for each query, in order, its best rows and the requested
    /// ranks.
    ///
    /// # Errors
    /// See [`full_pass_part`](Self::full_pass_part).
    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let parts = queries.iter().map(|&query| FullPassPart::new(query.clone()));
        self.full_pass_of(parts.collect())
    }

    /// The same for parts of which no row was processed; those that are
    /// [answered](FullPassPart::is_answered) stay as they are.
    ///
    /// # Errors
    /// See [`full_pass_part`](Self::full_pass_part).
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

    /// The class scores of each text, in order. What is computed from a classifier's weights is
    /// made when it is asked for the first time, and dropped when nobody else has the classifier
    /// any more.
    ///
    /// # Errors
    /// See [`search`](Self::search). [`EngineError::NoHeads`] if the engine classifies no texts.
    fn classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        let _ = texts;
        Err(EngineError::NoHeads(self.description().name))
    }

    /// Runs a slice of a pass that classifies texts. Returns the class scores of the first of these
    /// texts: of all if `go_on` stays true; perhaps of none if what is computed from a classifier's
    /// weights is not ready, but then a part of that is done.
    ///
    /// The engine calls `go_on` between small pieces of work. The slice ends soon after it returns
    /// `false`.
    ///
    /// # Errors
    /// As [`classify`](Self::classify).
    fn classify_part(
        &mut self,
        texts: &[&TokenText],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<f64>>, EngineError> {
        let _ = go_on;
        self.classify(texts)
    }

    /// Estimates the cost of classifying this text, in tokens that the engine has met before.
    fn classification_cost(&self, text: &TokenText) -> usize {
        text.tokens().len()
    }

    /// Starts classifying these texts and returns while the device works on them, after passes that
    /// were started before. Returns `false`, and starts nothing, if that is not possible for all of
    /// them, or with this engine.
    ///
    /// It is [finished](Self::finish_classify) like a [started search](Self::start_search), in the
    /// order of all starts.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn start_classify(&mut self, texts: &[&TokenText]) -> Result<bool, EngineError> {
        let _ = texts;
        Ok(false)
    }

    /// Waits for the texts that were started first, which were these. Returns the class scores of
    /// each.
    ///
    /// # Errors
    /// See [`search`](Self::search).
    fn finish_classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        let _ = texts;
        Err(EngineError::Device("no texts were started".into()))
    }

    /// The number of tokens that one pass should classify at most, of all texts together.
    fn tokens_per_pass(&self) -> usize {
        TOKENS_PER_PASS
    }

    /// Runs a slice of a pass that expands texts: searches for the terms of tokens that have not
    /// been searched, and [adds](PartOfExpansion::add) what it finds. All tokens have been searched
    /// in the end if `go_on` stays true.
    ///
    /// The engine calls `go_on` between small pieces of work. The slice ends soon after it returns
    /// `false`, but not before at least one piece is done. What is derived from an expander's terms
    /// is made when it is asked for the first time, and dropped when nobody else has the expander
    /// any more.
    ///
    /// # Errors
    /// See [`search`](Self::search). [`EngineError::NoExpander`] if the engine expands no texts, or
    /// none of an expander. After an error the parts can't be used.
    fn expand_part(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        let _ = (parts, go_on);
        let reason = format!("`{}` has no expanders; use `--device cpu`", self.description().name);
        Err(EngineError::NoExpander(reason.into()))
    }

    /// Estimates the cost of expanding this text, in plain queries (k = 10, all rows) of a full
    /// batch.
    fn expansion_cost(&self, text: &Expansion) -> usize {
        text.tokens()
    }

    /// Expands texts in one slice: the terms of each, in order, best first.
    ///
    /// # Errors
    /// See [`expand_part`](Self::expand_part).
    fn expand(&mut self, texts: &[&Expansion]) -> Result<Vec<Vec<Term>>, EngineError> {
        let parts = texts.iter().map(|&text| PartOfExpansion::new(text.clone()));
        let mut parts: Vec<PartOfExpansion> = parts.collect();
        while !parts.iter().all(PartOfExpansion::is_complete) {
            self.expand_part(&mut parts, &|| true)?;
        }
        Ok(parts.into_iter().map(PartOfExpansion::into_terms).collect())
    }
}

/// Name and details of an engine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EngineDescription {
    /// A short stable name, as in `--device`: `cpu`, `cuda`; `reference` for the oracle.
    pub name: &'static str,
    /// Hardware and method, for people.
    pub detail: String,
}

/// Why a batch failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// A query was made for a table of a different shape.
    #[error("a query of this batch was made for a different table")]
    ForeignQuery,
    /// The engine has no full pass.
    #[error("the engine `{0}` can only search; full passes need another engine beside it")]
    SearchOnly(&'static str),
    /// The engine classifies no texts.
    #[error("the engine `{0}` classifies no texts")]
    NoHeads(&'static str),
    /// The engine expands no texts, or none of this expander.
    #[error("the engine can't expand this text: {0}")]
    NoExpander(#[source] Box<dyn Error + Send + Sync>),
    /// The device failed, temporarily or for good.
    #[error("the device failed: {0}")]
    Device(#[source] Box<dyn Error + Send + Sync>),
}

/// Errors with the same message are equal.
impl PartialEq for EngineError {
    fn eq(&self, other: &Self) -> bool {
        self.to_string() == other.to_string()
    }
}
