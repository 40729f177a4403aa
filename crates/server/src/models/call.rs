//! A call: the models as one request sees them, and its deadline.

use std::ops::Deref;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::set::ThreadModels;
use super::{Pinned, ServedModel, Service};
use crate::observe::LoggedRequest;
use kindred::asking::Asking;
use kindred::queue::Timeline;
use kindred::rows::{AtPosition, Rows};
use scheduler::account::Account;

/// The models as one request sees them, the one that it queries, and its deadline.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    held: Arc<ThreadModels>,
    /// The index of the model that it queries.
    model: usize,
    /// The position of its rows, if they change: one request never mixes two.
    at: Option<Arc<AtPosition>>,
    pub(crate) account: Arc<Account>,
    pub(crate) arrived: Instant,
    /// The timeout in the request's header, in milliseconds, or the error if it can't be parsed.
    allowed: Option<Result<u64, NotMilliseconds>>,
    /// Where the times of its jobs are noted, if it is traced.
    timeline: Option<Arc<Timeline>>,
    /// Its entry for the access log, if there is one.
    log: Option<Arc<LoggedRequest>>,
}

/// A timeout that is not a whole number of milliseconds, at least 1.
#[derive(Debug, Clone)]
pub(crate) enum NotMilliseconds {
    /// The value of the header.
    Header(Box<str>),
    /// The field is 0.
    Field,
}

impl Call {
    /// A request that arrived at `arrived`, for the model with index `model`. `allowed` is the
    /// timeout in its header.
    pub(crate) fn new(
        held: Arc<ThreadModels>,
        model: usize,
        account: Arc<Account>,
        arrived: Instant,
        allowed: Option<&[u8]>,
    ) -> Self {
        let parse = |value: &[u8]| {
            let text = String::from_utf8_lossy(value);
            let milliseconds = text.trim().parse::<u64>().ok().filter(|&ms| ms > 0);
            milliseconds.ok_or_else(|| NotMilliseconds::Header(text.into()))
        };
        let (allowed, timeline, log) = (allowed.map(parse), None, None);
        let served = held.set.models().get(model);
        let at = served.and_then(|served| served.live.as_ref()).map(|live| live.now());
        Self { held, model, at, account, arrived, allowed, timeline, log }
    }

    /// Notes the times of its jobs in this timeline.
    pub(crate) fn noted_in(self, timeline: Arc<Timeline>) -> Self {
        Self { timeline: Some(timeline), ..self }
    }

    /// Notes its model, its head and the number of its queries in this entry of the access log.
    pub(crate) fn logged_in(self, log: Arc<LoggedRequest>) -> Self {
        Self { log: Some(log), ..self }
    }

    /// Notes its model for the access log.
    pub(crate) fn log_model(&self) {
        if let Some(log) = &self.log {
            log.model.get_or_init(|| self.served().name().to_owned());
        }
    }

    /// Notes for the access log which head it asks.
    pub(crate) fn log_head(&self, name: &str) {
        if let Some(log) = &self.log {
            log.head.get_or_init(|| name.to_owned());
        }
    }

    /// Notes for the access log how many queries, texts or pairs it has.
    #[inline]
    pub(crate) fn log_queries(&self, number: usize) {
        if let Some(log) = &self.log {
            log.queries.get_or_init(|| number);
        }
    }

    /// Whether there is a model that the request queries: none may have been made yet.
    #[inline]
    pub(crate) fn has_model(&self) -> bool {
        self.model < self.held.set.models().len()
    }

    /// The model that the request queries.
    ///
    /// # Panics
    /// If there is none: a route of a model is only reached with one.
    pub(crate) fn served(&self) -> &Arc<ServedModel> {
        &self.held.set.models()[self.model]
    }

    /// The model with its rows at the position that the request is about.
    #[inline]
    pub(crate) fn pinned(&self) -> Pinned<'_> {
        Pinned::new(self.served(), self.at.as_ref())
    }

    /// The same request, about the rows at this position of its table.
    pub(crate) fn at(self, position: Arc<AtPosition>) -> Self {
        Self { at: Some(position), ..self }
    }

    /// The same request, about the model of this name, if one has it.
    pub(crate) fn about(self, name: &str) -> Self {
        match self.held.set.position(name) {
            Some(model) if model != self.model => {
                let at = self.held.set.models()[model].live.as_ref().map(|live| live.now());
                Self { model, at, ..self }
            }
            _ => self,
        }
    }

    /// The position of its rows, if they change.
    pub(crate) fn position(&self) -> Option<&Arc<AtPosition>> {
        self.at.as_ref()
    }

    /// The rows that the request is about.
    #[inline]
    pub(crate) fn rows(&self) -> &dyn Rows {
        self.pinned().rows()
    }

    /// Asks the model that the request queries, on its caller's account.
    #[inline]
    pub(crate) fn asking(&self, deadline: Instant) -> Asking<'_> {
        Asking::new(&self.queue, &self.account, deadline, self.timeline.as_ref())
    }

    /// All models that were served when the request arrived.
    pub(crate) fn all_models(&self) -> &[Arc<ServedModel>] {
        self.held.set.models()
    }

    pub(crate) fn service(&self) -> &Service {
        &self.held.service
    }

    /// The latest possible deadline, as known before the body is read. A header that can't be
    /// parsed becomes an error later.
    pub(crate) fn latest(&self) -> Instant {
        self.deadline(None).unwrap_or_else(|_| self.arrived + self.service().timeouts.request)
    }

    /// The deadline: the service's own limit, or an earlier one from the request's header or its
    /// field `timeout_ms`.
    ///
    /// # Errors
    /// If the header or the field is not a valid number of milliseconds.
    pub(crate) fn deadline(&self, timeout_ms: Option<u64>) -> Result<Instant, NotMilliseconds> {
        if timeout_ms == Some(0) {
            return Err(NotMilliseconds::Field);
        }
        let asked = [self.allowed.clone().transpose()?, timeout_ms].into_iter().flatten();
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
