//! A request's hold on the models, and its deadline.

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

/// One request's hold on the model that it speaks to, as it was when the request came, and until when its
/// answer is of use.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    held: Arc<Held>,
    /// Which of the models it speaks to.
    model: usize,
    /// Of whoever asks.
    account: Arc<Account>,
    arrived: Instant,
    /// What the request's header says of its time: milliseconds, or nothing that can be read.
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

    /// The call that a request is: `front` leaves it among the extensions.
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

    /// What its caller holds.
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

    /// Until when an answer may be of use, as far as is known before the body has been read. A header that makes no
    /// sense is an error that is found later.
    pub(crate) fn latest(&self) -> Instant {
        self.deadline(None).unwrap_or_else(|_| self.arrived + self.service().timeouts.request)
    }

    /// Until when an answer is of use: the service's own bound, or an earlier time that the request's header
    /// or its field `timeout_ms` names.
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
