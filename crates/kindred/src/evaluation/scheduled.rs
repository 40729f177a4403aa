//! Questions of an evaluation through the queue, beside other callers.

use std::time::Instant;

use crate::queue::SubmitError;
use contract::{Query, Row};

use super::run::Answers;
use crate::asking::Asking;

/// The queue, for all questions of one evaluation. Each chunk of them waits until the one before is
/// answered. So other callers' turns come in between, and no evaluation takes more slots than one
/// chunk, however small the queue is.
pub(crate) struct QueueAnswers<'a>(pub(crate) Asking<'a>);

impl Answers for QueueAnswers<'_> {
    type Error = SubmitError;

    /// Few, so that other callers wait for a few passes only.
    const TOGETHER: usize = 64;

    async fn search(&mut self, queries: Vec<Query>) -> Result<Vec<Option<Row>>, SubmitError> {
        // Checked here, because a chunk without queries does not reach the queue, which checks
        // deadlines.
        if Instant::now() >= self.0.deadline() {
            return Err(SubmitError::DeadlinePassed);
        }
        let answer = self.0.search(queries).await?;
        Ok(answer.hits.iter().map(|hits| hits.first().map(|hit| hit.row)).collect())
    }
}
