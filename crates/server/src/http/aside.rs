//! What would keep the other connections of a thread waiting, on threads that may take their time.

use std::convert::Infallible;

use axum::response::Response;
use tokio::runtime::Handle;
use tokio::sync::{Semaphore, oneshot};
use tracing::{Instrument, Span};

use super::ApiError;
use crate::models::{Call, LARGE_BODY, ServedModel};

/// Work on more numbers or words than this is done aside.
const LARGE_WORK: usize = 20_000;

/// Large bodies that are worked on at the same time; others wait. Each takes a thread of those that there are for work
/// aside, of which it may need another: there must always be some left.
const LARGE_AT_ONCE: usize = 64;

static LARGE: Semaphore = Semaphore::const_new(LARGE_AT_ONCE);

/// Reading a large body and looking its words up takes milliseconds, in which no other connection of this
/// thread would be served: so it happens on another one, until there is an answer or the caller has gone.
pub(super) async fn read_aside_if_large(
    bytes: usize,
    answered: impl Future<Output = Result<Response, ApiError>> + Send + 'static,
) -> Result<Response, ApiError> {
    if bytes <= LARGE_BODY {
        return answered.await;
    }
    // Closed never; so this waits for its turn.
    let _turn = LARGE.acquire().await;
    let runtime = Handle::current();
    let (_until_gone, gone) = oneshot::channel::<Infallible>();
    let answered_or_gone = async {
        tokio::select! {
            answered = answered => answered,
            _ = gone => Err(ApiError::Internal),
        }
    };
    // What is logged there is still about this request.
    let answered_or_gone = answered_or_gone.in_current_span();
    let aside = tokio::task::spawn_blocking(move || runtime.block_on(answered_or_gone));
    aside.await.unwrap_or(Err(ApiError::Internal))
}

/// Whether work on so many numbers or words keeps others waiting.
pub(super) fn is_large(size: usize) -> bool {
    size > LARGE_WORK
}

/// Does what takes time in proportion to so many numbers or words: many of them where that keeps nobody
/// else waiting.
pub(super) async fn work_aside_if_large<T: Send + 'static>(
    call: &Call,
    size: usize,
    work: impl FnOnce(&ServedModel) -> T + Send + 'static,
) -> Result<T, ApiError> {
    if !is_large(size) {
        return Ok(work(call));
    }
    let (served, span) = (call.served().clone(), Span::current());
    let done = tokio::task::spawn_blocking(move || span.in_scope(|| work(&served)));
    done.await.map_err(|_| ApiError::Internal)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test]
    async fn a_large_request_ends_when_its_caller_goes() {
        for bytes in [LARGE_BODY, LARGE_BODY + 1] {
            let (alive, mut ended) = oneshot::channel::<Infallible>();
            let never = async move {
                let _alive = alive;
                std::future::pending().await
            };
            let caller = tokio::spawn(read_aside_if_large(bytes, never));
            tokio::time::sleep(Duration::from_millis(20)).await;
            assert!(ended.try_recv() == Err(oneshot::error::TryRecvError::Empty), "it waits");
            caller.abort();
            let ended = tokio::time::timeout(Duration::from_secs(5), ended).await;
            assert!(ended.expect("it ends").is_err());
        }
    }
}
