//! A call: the models as one request sees them, and its deadline.

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::FromRequestParts;
use axum::http::Extensions;
use axum::http::request::Parts;

use super::set::Held;
use super::{ServedModel, Service};
use scheduler::account::Account;

/// The models as one request sees them, which one it asks, and its deadline.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    held: Arc<Held>,
    /// The index of the model that it asks.
    model: usize,
    /// The caller's.
    account: Arc<Account>,
    arrived: Instant,
    /// The time-out in the request's header: milliseconds, or that it can't be read.
    allowed: Option<Result<u64, NotMilliseconds>>,
}

/// A time-out, in the header or the field of this name, that is not a whole number of milliseconds from 1 up.
#[derive(Debug, Clone, Copy)]
pub(crate) struct NotMilliseconds(pub(crate) &'static str);

impl Call {
    /// A request of this caller that arrived then, for the model at this position. `allowed` is what its header says.
    pub(crate) fn new(
        held: Arc<Held>,
        model: usize,
        account: Arc<Account>,
        arrived: Instant,
        allowed: Option<&[u8]>,
    ) -> Self {
        let parse = |text: &[u8]| {
            let text = std::str::from_utf8(text).ok();
            let milliseconds = text.and_then(|text| text.trim().parse::<u64>().ok());
            milliseconds.filter(|&ms| ms > 0).ok_or(NotMilliseconds("Request-Timeout-Ms"))
        };
        Self { held, model, account, arrived, allowed: allowed.map(parse) }
    }

    /// The call of a request, which `front` puts among its extensions.
    ///
    /// # Panics
    /// If the request did not come that way.
    pub(crate) fn of(extensions: &Extensions) -> &Self {
        extensions.get().expect("`front` puts every request's call there")
    }

    /// The model.
    pub(crate) fn served(&self) -> &Arc<ServedModel> {
        &self.held.set().models()[self.model]
    }

    /// The account of its caller.
    pub(crate) fn account(&self) -> &Arc<Account> {
        &self.account
    }

    /// All models that were served when the request came.
    pub(crate) fn all_models(&self) -> &[Arc<ServedModel>] {
        self.held.set().models()
    }

    /// What is shared by all models.
    pub(crate) fn service(&self) -> &Service {
        self.held.service()
    }

    /// When the request came.
    pub(crate) fn arrived(&self) -> Instant {
        self.arrived
    }

    /// The latest that the deadline can be, before the body has been read. A header that can't be read becomes an error
    /// later.
    pub(crate) fn latest(&self) -> Instant {
        self.deadline(None).unwrap_or_else(|_| self.arrived + self.service().timeouts.request)
    }

    /// The deadline: the service's own bound, or an earlier time in the request's header or in its field `timeout_ms`.
    ///
    /// # Errors
    /// If one of them is not a number of milliseconds.
    pub(crate) fn deadline(&self, timeout_ms: Option<u64>) -> Result<Instant, NotMilliseconds> {
        if timeout_ms == Some(0) {
            return Err(NotMilliseconds("timeout_ms"));
        }
        let asked = [self.allowed.transpose()?, timeout_ms].into_iter().flatten();
        let longest = self.service().timeouts.request;
        Ok(self.arrived + asked.map(Duration::from_millis).fold(longest, Duration::min))
    }
}

impl Deref for Call {
    type Target = Arc<ServedModel>;

    fn deref(&self) -> &Arc<ServedModel> {
        self.served()
    }
}

impl<S: Send + Sync> FromRequestParts<S> for Call {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(Self::of(&parts.extensions).clone())
    }
}
