//! Whether the process answers, and whether it answers right.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{HeaderMap, Uri};
use axum::response::Response;
use model_store::{Filter, Hit, ModelStore, Query, QueryVector, Row};
use serde_json::json;

use super::search::whole_seconds;
use super::state::AppState;
use super::{ApiError, answer, negotiation};
use crate::queue::{EngineState, QueueHandle, SubmitError};

/// How long a good answer counts.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// A query whose answer is known, for finding out whether the engine still gives it.
pub(super) struct Readiness {
    /// `None` if every row is zero: then there is nothing to ask.
    question: Option<(Query, Hit)>,
    timeout: Duration,
    last_good: Mutex<Option<Instant>>,
    /// One check at a time; who comes meanwhile takes its good result.
    checking: tokio::sync::Mutex<()>,
}

impl Readiness {
    /// The first row that is not zero, looked for among the rows up to itself, finds itself, with
    /// the score that the contract's formula gives.
    pub(super) fn new(model: &ModelStore, timeout: Duration) -> Self {
        let table = model.table();
        let row = table.norms().iter().position(|&norm| norm > 0.0).map(|row| Row(row as u32));
        let question = row.and_then(|row| {
            let mut filter = Filter::default();
            filter.first_rows = Some(row.0 + 1);
            let query = Query::new(&table, QueryVector::Row(row), 1, filter).ok()?;
            let score = table.score(table.row(row), table.norm(row), row)?;
            Some((query, Hit { row, score }))
        });
        Self {
            question,
            timeout,
            last_good: Mutex::new(None),
            checking: tokio::sync::Mutex::new(()),
        }
    }

    fn is_fresh(&self) -> bool {
        let last = *self.last_good.lock().expect("nothing panics while it holds this lock");
        last.is_some_and(|last| last.elapsed() < GOOD_FOR)
    }

    fn too_slow(&self) -> ApiError {
        let reason = format!("a query took longer than {} ms", self.timeout.as_millis());
        ApiError::NotReady { reason }
    }

    async fn check(&self, queue: &QueueHandle) -> Result<(), ApiError> {
        // An engine that failed since makes the last good answer worth nothing.
        match queue.engine_state() {
            EngineState::Working => {}
            EngineState::Restarting { retry_after } => {
                let retry_after_seconds = whole_seconds(retry_after);
                return Err(ApiError::EngineRestarting { retry_after_seconds });
            }
            EngineState::Lost => return Err(ApiError::EngineGone),
        }
        if self.is_fresh() {
            return Ok(());
        }
        let Ok(_one_at_a_time) = tokio::time::timeout(self.timeout, self.checking.lock()).await
        else {
            return Err(self.too_slow());
        };
        if self.is_fresh() {
            return Ok(());
        }
        if let Some((query, expected)) = &self.question {
            let deadline = Instant::now() + self.timeout;
            let answer =
                queue.submit_probe(query.clone(), deadline).await.map_err(|e| match e {
                    SubmitError::EngineGone => ApiError::EngineGone,
                    SubmitError::EngineFailed => ApiError::EngineFailed,
                    SubmitError::EngineRestarting { retry_after } => ApiError::EngineRestarting {
                        retry_after_seconds: whole_seconds(retry_after),
                    },
                    SubmitError::Full { .. } | SubmitError::DeadlinePassed => self.too_slow(),
                })?;
            if answer.hits != [[*expected]] {
                let reason = "the engine gives a wrong answer to a query whose answer is known";
                return Err(ApiError::NotReady { reason: reason.into() });
            }
        }
        *self.last_good.lock().expect("nothing panics while it holds this lock") =
            Some(Instant::now());
        Ok(())
    }
}

/// `GET /health/live`: the process answers.
pub(super) async fn live(headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    Ok(answer::json(&json!({"status": "live"})))
}

/// `GET /health/ready`: a query went through the queue and came back right, within the last second
/// or now.
pub(super) async fn ready(
    State(state): State<Arc<AppState>>,
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::JSON)?;
    if state.is_draining() {
        return Err(ApiError::Draining);
    }
    state.readiness.check(&state.queue).await?;
    Ok(answer::json(&json!({"status": "ready"})))
}
