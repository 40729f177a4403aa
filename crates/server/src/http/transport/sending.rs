//! Answers of an HTTP/2 connection, in pieces that are watched until the client takes them.
//!
//! In HTTP/1.1 a client that does not read blocks its socket. In HTTP/2 it may keep one stream's
//! window closed and continue with others. So each answer records when the client last took some of
//! it, and the connection closes if an answer waits for too long ([`super::timeouts`]).

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::response::Response;
use hyper::body::{Frame, SizeHint};

use super::activity::{Activity, UnsentAnswer};

/// Bytes that are handed to HTTP/2 at a time. It keeps them until the client takes them.
const PIECE: usize = 16 << 10;

/// An answer that is watched until it is sent.
pub(super) fn watched(response: Response, activity: &Arc<Activity>) -> Response {
    if response.body().is_end_stream() {
        return response;
    }
    let unsent = Arc::new(activity.unsent());
    response.map(|body| Body::new(Watched { body, rest: Bytes::new(), unsent }))
}

struct Watched {
    body: Body,
    /// Bytes of the body that have not been handed out yet.
    rest: Bytes,
    unsent: Arc<UnsentAnswer>,
}

/// A piece of an answer. The answer is unsent until the last of them is dropped.
struct Piece {
    bytes: Bytes,
    _unsent: Arc<UnsentAnswer>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        // A frame is requested only when the client has room for more.
        self.unsent.progress();
        while self.rest.is_empty() {
            let frame = match std::task::ready!(Pin::new(&mut self.body).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.into_data() {
                Ok(bytes) => self.rest = bytes,
                Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
            }
        }
        let length = self.rest.len().min(PIECE);
        let bytes = self.rest.split_to(length);
        let piece = Piece { bytes, _unsent: self.unsent.clone() };
        Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let (rest, body) = (self.rest.len() as u64, self.body.size_hint());
        let mut hint = SizeHint::new();
        hint.set_lower(rest + body.lower());
        if let Some(upper) = body.upper() {
            hint.set_upper(rest + upper);
        }
        hint
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn an_answer_is_unsent_until_its_last_piece_is_gone() {
        let activity = Activity::new();
        let body: Vec<u8> = (0..PIECE * 2 + 1).map(|i| i as u8).collect();
        let response = watched(Response::new(Body::from(body.clone())), &activity);
        assert_eq!(response.body().size_hint().exact(), Some(body.len() as u64));
        let created = activity.unsent_since().unwrap();
        let mut watched = response.into_body();
        let mut pieces = Vec::new();
        while !watched.is_end_stream() {
            tokio::time::advance(Duration::from_secs(1)).await;
            let frame = std::future::poll_fn(|c| Pin::new(&mut watched).poll_frame(c)).await;
            pieces.push(frame.unwrap().unwrap().into_data().unwrap());
            let since = activity.unsent_since().unwrap().duration_since(created);
            assert_eq!(since, Duration::from_secs(pieces.len() as u64), "the oldest progress");
        }
        assert_eq!(pieces.concat(), body);
        drop(watched);
        let last = pieces.pop();
        drop(pieces);
        assert!(activity.unsent_since().is_some(), "the last piece is on its way");
        drop(last);
        assert!(activity.unsent_since().is_none());
        let empty = super::watched(Response::new(Body::empty()), &activity);
        assert!(activity.unsent_since().is_none() && empty.body().is_end_stream());
    }
}
