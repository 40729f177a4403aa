//! Questions of an evaluation through the queue, beside other callers.

use std::time::Instant;

use crate::queue::SubmitError;
use contract::{Query, Row};

use super::run::Answers;
use crate::asking::{Asking, Times};

/// The queue, for all questions of one evaluation. Each chunk of them waits until the one before is answered. So
/// other callers' turns come in between, and no evaluation takes more slots than one chunk, however small the queue
/// is.
pub struct QueueAnswers<'a, F> {
    asking: Asking<'a>,
    before: F,
    /// All chunks together.
    pub times: Times,
}

impl<'a, F: FnMut(usize)> QueueAnswers<'a, F> {
    /// Asks through this; `before` gets the number of queries of each chunk before it is asked.
    pub fn new(asking: Asking<'a>, before: F) -> Self {
        Self { asking, before, times: Times::default() }
    }

    /// Checked here, because a chunk without queries does not reach the queue, which checks deadlines.
    fn begin(&mut self, queries: usize) -> Result<(), SubmitError> {
        if Instant::now() >= self.asking.deadline() {
            return Err(SubmitError::DeadlinePassed);
        }
        (self.before)(queries);
        Ok(())
    }
}

impl<F: FnMut(usize)> Answers for QueueAnswers<'_, F> {
    type Error = SubmitError;

    /// Few, so that other callers wait for a few passes only.
    const TOGETHER: usize = 64;

    async fn search(&mut self, queries: Vec<Query>) -> Result<Vec<Option<Row>>, SubmitError> {
        self.begin(queries.len())?;
        let answer = self.asking.search(queries).await?;
        self.times.queue += answer.queued;
        self.times.engine += answer.engine;
        Ok(answer.hits.iter().map(|hits| hits.first().map(|hit| hit.row)).collect())
    }
}
