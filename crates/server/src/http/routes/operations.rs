//! Routes for operators: health checks, metrics and reloads.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Uri, header};
use axum::response::IntoResponse;
use kindred::queue::ReplicaState;
use serde_json::{Value, json};

use super::search::{Answered, Answering, Timed};
use crate::http::ApiError;
use crate::http::offload::{Cost, offloaded};
use crate::http::parse::negotiation::{self, JSON, OPEN_METRICS, TEXT, check_plain_get};
use crate::http::parse::query_string;
use crate::http::render;
use crate::http::render::server_timing::Timing;
use crate::models::{Call, NotReady, ReloadError, Reloader, ServedModel};
use crate::observe::Known;
use crate::workers::Cancellation;

/// `GET /health/live`: whether the process answers.
pub(super) async fn live(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &JSON)?;
    Ok(render::json(&json!({"status": "live"}), None))
}

/// `GET /health/ready`: whether, for every model, a probe has passed through its queue with the
/// right answer, now or within the last second.
pub(super) async fn ready(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &JSON)?;
    check(&call).await?;
    let models: Vec<_> = call.all_models().iter().map(|served| replicas(served)).collect();
    Ok(render::json(&json!({"status": "ready", "models": models}), None))
}

/// How many replicas of a model's engine work, of how many. Those that have retired count for
/// neither.
fn replicas(served: &ServedModel) -> Value {
    let states = served.queue.replicas();
    let number = |is_so: fn(&&ReplicaState) -> bool| states.iter().filter(is_so).count();
    let all = number(|state| **state != ReplicaState::Retired);
    let working = number(|state| **state == ReplicaState::Working);
    json!({"model": served.name(), "replicas": all, "replicas_working": working})
}

/// Whether the service is ready, or why not.
async fn check(call: &Call) -> Result<(), ApiError> {
    if call.service().is_draining() {
        return Err(ApiError::Draining);
    }
    for served in call.all_models() {
        let heads = served.heads.load_full();
        served.readiness.check(&served.queue, &heads).await.map_err(|why| match why {
            NotReady::Engine(why) => ApiError::from(why),
            NotReady::TooSlow(_) | NotReady::WrongAnswer | NotReady::Damaged => {
                ApiError::NotReady { reason: format!("the model `{}`: {why}", served.name()) }
            }
        })?;
        check_lag(call, served)?;
    }
    Ok(())
}

/// Whether a table is not too far behind the systems that it follows.
fn check_lag(call: &Call, served: &ServedModel) -> Result<(), ApiError> {
    let Some(most) = call.service().timeouts.lag else { return Ok(()) };
    for (name, report) in served.sources() {
        let behind = report.map(|report| report.behind_now());
        let fault = match behind {
            Some(behind) if behind <= most => continue,
            Some(behind) => format!(
                "may be {:.1} s behind its source `{name}`, more than max_lag_seconds = {}: its \
                 follower (kindred follow) has not caught up, or has stopped",
                behind.as_secs_f64(),
                most.as_secs()
            ),
            None => format!(
                "follows the source `{name}`, whose follower (kindred follow) has not reported since \
                 the service started"
            ),
        };
        let reason = format!("the table `{}` {fault}", served.name());
        return Err(ApiError::NotReady { reason });
    }
    Ok(())
}

/// How long `/metrics` waits for the engine's probe: much less than Prometheus waits for
/// `/metrics`.
const READY_WITHIN: Duration = Duration::from_secs(2);

/// `GET /metrics`: all figures, in the requested format.
pub(super) async fn get_metrics(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    query_string::nothing(uri.query().unwrap_or_default())?;
    let is_open_metrics = negotiation::is_named(&headers, &OPEN_METRICS);
    let media_type = if is_open_metrics {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        negotiation::check(&headers, &TEXT)?;
        "text/plain; version=0.0.4; charset=utf-8"
    };
    let ready = tokio::time::timeout(READY_WITHIN, check(&call)).await;
    let is_ready = matches!(ready, Ok(Ok(())));
    // This adds up all threads' figures and reads system files, so it does not run between two
    // requests of a connection.
    const NUMBERS: usize = 5000;
    let same = call.clone();
    let write = move |_: &Cancellation| {
        let (service, models) = (same.service(), same.all_models());
        let (engine, memory) =
            (models.first().map_or("none", |first| first.engine.name), &service.memory);
        let known = Known { engine, is_ready, memory, traces: service.traces.figures() };
        let figures: Vec<_> = models.iter().map(|model| model.figures()).collect();
        Ok(service.observer.write(known, &figures, is_open_metrics))
    };
    let text = offloaded(&call, Cost::of_writing(NUMBERS), call.latest(), write).await?;
    Ok(([(header::CONTENT_TYPE, media_type)], text).into_response())
}

/// `POST /admin/reload`: reads keys, certificates and the settings' models again, as SIGHUP does,
/// and returns the outcome. The reload continues if the caller hangs up.
pub(super) fn post_reload(call: Call, request: Request, reloader: &Arc<Reloader>) -> Answering {
    // A reload may wait for the last request that holds the old models. It must not be its own.
    drop(call);
    Box::pin(reload(request.into_parts().0, reloader.clone()))
}

async fn reload(head: Parts, reloader: Arc<Reloader>) -> Timed {
    check_plain_get(&head.headers, &head.uri, &JSON)?;
    let reloaded = reloader.reload().await.map_err(|e| match e {
        ReloadError::InProgress => ApiError::ReloadInProgress,
        e => ApiError::ReloadFailed { reason: e.to_string() },
    })?;
    Ok((render::json(&reloaded, None), Timing::default()))
}
