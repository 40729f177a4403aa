//! The last step of every answer: writes its problem document, if it is an error.

use std::sync::Arc;

use axum::http::header;
use axum::response::Response;

use super::Connection;
use crate::http::ApiError;
use crate::http::edge::request_id::RequestId;
use crate::http::render::size::UNCOUNTED_ANSWER;
use crate::http::render::{caching, counted};
use scheduler::account::{Account, Pool};

impl Connection {
    /// Adds what all answers have: headers, and the problem document of an error.
    #[inline]
    pub(super) fn complete(
        &self,
        response: &mut Response,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
    ) {
        if let Some(error) = response.extensions_mut().remove::<ApiError>() {
            self.write_problem(response, error, account, id, is_head);
        }
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(const { caching::REVALIDATE });
    }

    /// Puts the problem document into its answer; that of a HEAD has only its length.
    fn write_problem(
        &self,
        response: &mut Response,
        error: ApiError,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
    ) {
        let mut document = error.document(id.as_str());
        let mut room = None;
        // It may repeat words, which may be as long as the request's body.
        if document.len() as u64 > UNCOUNTED_ANSWER {
            let memory = &self.front.reloader.models().service().memory;
            match memory.take(account, Pool::Answers, document.len() as u64) {
                Ok(held) => room = Some(held),
                Err(full) => {
                    let full = ApiError::from(full);
                    document = full.document(id.as_str());
                    *response.status_mut() = full.kind().0;
                    if let Some(seconds) = full.retry_after_seconds() {
                        response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
                    }
                }
            }
        }
        // An answer that could not be kept may have been tagged.
        response.headers_mut().remove(header::ETAG);
        response.headers_mut().insert(header::CONTENT_LENGTH, document.len().into());
        if !is_head {
            *response.body_mut() = match room {
                Some(room) => counted(document, room).into(),
                None => document.into(),
            };
        }
    }
}
