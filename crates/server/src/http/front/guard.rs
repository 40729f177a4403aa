//! A guard against panics: a panic in a handler is answered with 500, and the connection continues.

use std::any::Any;
use std::future::poll_fn;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::task::Poll;

use axum::response::{IntoResponse, Response};
use tracing::error;

use super::{Answer, Seen};
use crate::http::ApiError;
use crate::http::edge::request_id::RequestId;

/// The response, or 500 if making it panics.
pub(super) async fn guarded(
    mut response: Pin<&mut impl Future<Output = Response<Answer>>>,
    id: &RequestId,
) -> Response<Answer> {
    poll_fn(|context| {
        let poll = AssertUnwindSafe(|| response.as_mut().poll(context));
        catch_unwind(poll).unwrap_or_else(|panic| Poll::Ready(panicked(&*panic, id)))
    })
    .await
}

fn panicked(panic: &(dyn Any + Send), id: &RequestId) -> Response<Answer> {
    let said = panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied());
    error!(id = id.as_str(), "a handler panicked: {}", said.unwrap_or("without a message"));
    Seen::default().beside(ApiError::Internal.into_response())
}

#[cfg(test)]
mod tests {
    use std::pin::pin;

    use axum::http::HeaderMap;

    use super::*;

    #[tokio::test]
    async fn a_panic_becomes_a_problem_document() {
        let id = RequestId::of(&HeaderMap::new());
        for words in ["as ordered", ""] {
            let broken = async { if words.is_empty() { panic!() } else { panic!("{words}") } };
            assert_eq!(guarded(pin!(broken), &id).await.status(), 500);
        }
    }
}
