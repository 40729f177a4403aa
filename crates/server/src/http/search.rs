//! Checked queries through the queue and what comes back.

use std::time::Instant;

use model_store::{Hit, ModelStore, Query};

use super::ApiError;
use super::answer::{Neighbors, Notes};
use super::request::Prepared;
use super::server_timing::Timing;
use super::state::AppState;
use crate::queue::{Answer, SubmitError};

/// What was found for one query.
#[derive(Debug)]
pub(super) struct Found {
    hits: Vec<Hit>,
    with_vectors: bool,
    notes: Notes,
}

impl Found {
    /// As it is to be written.
    pub(super) fn neighbors<'a>(&'a self, store: &'a ModelStore) -> Neighbors<'a> {
        Neighbors { store, hits: &self.hits, with_vectors: self.with_vectors, notes: &self.notes }
    }
}

/// What was found for some queries, in their order, and how long it took.
pub(super) struct Searched {
    pub(super) found: Vec<Found>,
    pub(super) timing: Timing,
}

/// Asks all of them together.
pub(super) async fn search(
    state: &AppState,
    prepared: Vec<Prepared>,
) -> Result<Searched, ApiError> {
    let deadline = Instant::now() + state.request_timeout;
    let (queries, asked): (Vec<_>, Vec<_>) =
        prepared.into_iter().map(|one| (one.query, (one.with_vectors, one.notes))).unzip();
    let answer = submit(state, queries, deadline).await?;
    let timing = Timing { queue: answer.queued, engine: answer.engine };
    let found = answer.hits.into_iter().zip(asked);
    let found = found.map(|(hits, (with_vectors, notes))| Found { hits, with_vectors, notes });
    Ok(Searched { found: found.collect(), timing })
}

async fn submit(
    state: &AppState,
    queries: Vec<Query>,
    deadline: Instant,
) -> Result<Answer, ApiError> {
    state.queue.submit(queries, deadline).await.map_err(|e| match e {
        SubmitError::Full { retry_after } => ApiError::QueueFull {
            // Whole seconds, rounded up, and not so many that a client gives up.
            retry_after_seconds: (retry_after.as_secs() + 1).min(60),
        },
        SubmitError::DeadlinePassed => ApiError::DeadlinePassed,
        SubmitError::EngineFailed => ApiError::EngineFailed,
        SubmitError::EngineGone if state.is_draining() => ApiError::Draining,
        SubmitError::EngineGone => ApiError::EngineGone,
    })
}
