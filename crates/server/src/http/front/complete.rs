//! The last step of every answer: writes its problem document, if it is an error, and counts its
//! memory.

use std::sync::Arc;

use axum::body::HttpBody;
use axum::http::header;
use axum::response::{IntoResponse, Response};

use super::Connection;
use crate::http::ApiError;
use crate::http::edge::request_id::RequestId;
use crate::http::render::caching;
use crate::http::render::size::UNCOUNTED_ANSWER;
use crate::http::render::{IsCounted, counted};
use crate::http::transport::kept_with;
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
        } else {
            self.count(response, account, id, is_head);
        }
        let headers = response.headers_mut();
        headers.entry(header::CACHE_CONTROL).or_insert(const { caching::REVALIDATE });
    }

    /// Counts the memory of a large answer that its handler did not count. If the caller may not
    /// hold that much, the answer is dropped immediately, and a problem document takes its place.
    fn count(
        &self,
        response: &mut Response,
        account: &Arc<Account>,
        id: &RequestId,
        is_head: bool,
    ) {
        let bytes = response.body().size_hint().lower();
        if bytes <= UNCOUNTED_ANSWER || response.extensions_mut().remove::<IsCounted>().is_some() {
            return;
        }
        let memory = &self.front.reloader.models().service().memory;
        match memory.take(account, Pool::Answers, bytes) {
            Ok(room) => {
                let body = std::mem::take(response.body_mut());
                *response.body_mut() = kept_with(body, Arc::new(room));
            }
            Err(full) => {
                let full = ApiError::from(full);
                *response = full.clone().into_response();
                response.extensions_mut().remove::<ApiError>();
                self.write_problem(response, full, account, id, is_head);
            }
        }
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
