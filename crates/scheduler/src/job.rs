//! A job: the requests that one caller submits together, and how the caller gets its answer.
//!
//! From the call to the answer a job has these forms, and its [`Ticket`] goes along:
//!
//! - `Job`: in the inbox, from `Lane::submit` until a worker collects it.
//! - `Waiting` (`choose.rs`): in the lane, under the lock of `dispatch`; then in the pass that
//!   takes all of it, held by a worker; then in `Finished`, until it is handed out on the caller's
//!   runtime. A pass that takes a part of a job gets a `Waiting` of its own, and both share a
//!   [`Split`].
//! - `AnsweredJob` (`hand_out.rs`): a job of several passes, once all of its responses are there.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contract::Workload;
use tokio::sync::oneshot;

use crate::account::Slots;
use crate::error::SubmitError;
use crate::shared::{LaneShared, Shared};
use crate::statistics::Statistics;
use crate::sync::Home;
use crate::timeline::{JobTimes, PassTimes};

/// Requests that are answered together.
pub(crate) struct Job<W: Workload> {
    pub(crate) requests: Vec<W::Request>,
    /// After this, the caller no longer waits.
    pub(crate) deadline: Instant,
    pub(crate) ticket: Ticket<W::Response>,
}

/// Where the answer goes, and what the job holds until then.
pub(crate) struct Ticket<R> {
    /// `None` once the caller has an answer or an error.
    pub(crate) reply: Option<Reply<R>>,
    pub(crate) home: Home,
    pub(crate) entered: Instant,
    /// Its slots of the queue. A probe has none.
    pub(crate) slots: Option<Slots>,
    /// Where its passes are noted, if its caller wants to know them.
    pub(crate) times: Option<Arc<JobTimes>>,
}

impl<R> Ticket<R> {
    /// That of a job which enters the queue now, from here.
    pub(crate) fn new(
        reply: Reply<R>,
        entered: Instant,
        slots: Option<Slots>,
        times: Option<Arc<JobTimes>>,
    ) -> Self {
        Self { reply: Some(reply), home: Home::current(), entered, slots, times }
    }

    /// Takes all that the ticket holds.
    pub(crate) fn take(&mut self) -> Self {
        Self {
            reply: self.reply.take(),
            home: self.home.clone(),
            entered: self.entered,
            slots: self.slots.take(),
            times: self.times.take(),
        }
    }

    /// Notes a pass that answered the job, or a part of it.
    pub(crate) fn note(&self, pass: &PassTimes) {
        if let Some(times) = &self.times {
            times.note(*pass);
        }
    }
}

pub(crate) type Reply<R> = oneshot::Sender<Result<Answered<R>, SubmitError>>;

/// The answer to a job.
#[derive(Debug)]
pub struct Answered<R> {
    /// For each request, in order, its response.
    pub responses: Vec<R>,
    /// From entering the queue to the start of the first pass.
    pub queued: Duration,
    /// The time in passes.
    pub device: Duration,
}

impl<R> Default for Answered<R> {
    fn default() -> Self {
        Self { responses: Vec::new(), queued: Duration::ZERO, device: Duration::ZERO }
    }
}

/// Counts errors, and sends an answer: who has it finds it counted. If the caller has hung up,
/// nothing is counted.
pub(crate) fn tell<R>(
    reply: Option<Reply<R>>,
    result: Result<Answered<R>, SubmitError>,
    statistics: &Statistics,
) {
    let Some(reply) = reply else { return };
    let counter = match &result {
        Ok(_) => None,
        Err(SubmitError::DeadlinePassed) => Some(&statistics.deadline_passed),
        Err(_) => Some(&statistics.failed),
    };
    if let Some(counter) = counter.filter(|_| !reply.is_closed()) {
        counter.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    }
    // If the caller hangs up just now, nobody wants it.
    let _ = reply.send(result);
}

/// The ticket of a job, or of a part of one.
pub(crate) enum Asker<R> {
    /// All requests of the job are together.
    Whole(Ticket<R>),
    /// They are spread over passes, perhaps on several devices.
    Split(Arc<Split<R>>),
}

/// Tells the failures of devices apart: one failure may hit several parts of a job.
pub(crate) type Failure = u64;

/// A job whose requests are answered by several passes.
pub(crate) struct Split<R>(Mutex<SplitState<R>>);

struct SplitState<R> {
    ticket: Ticket<R>,
    responses: Vec<Option<R>>,
    missing: usize,
    queued: Option<Duration>,
    device: Duration,
    /// The failure of a device that had some of its requests, if one had.
    failed_in: Option<Failure>,
}

impl<R> Split<R> {
    /// A job of n requests, none of which has been answered, but which may have been in a failure.
    pub(crate) fn new(ticket: Ticket<R>, requests: usize, failed_in: Option<Failure>) -> Arc<Self> {
        Arc::new(Self(Mutex::new(SplitState {
            ticket,
            responses: (0..requests).map(|_| None).collect(),
            missing: requests,
            queued: None,
            device: Duration::ZERO,
            failed_in,
        })))
    }

    /// Notes that a device failed while it had some of the requests. Returns whether it is the only
    /// one so far.
    pub(crate) fn note_failure(&self, failure: Failure) -> bool {
        *self.lock().failed_in.get_or_insert(failure) == failure
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, SplitState<R>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    /// Whether the rest is no longer needed: the caller has an answer or an error, or hung up.
    pub(crate) fn is_over(&self) -> bool {
        is_over(self.lock().ticket.reply.as_ref())
    }

    pub(crate) fn fail(&self, error: SubmitError, statistics: &Statistics) {
        let reply = self.lock().ticket.reply.take();
        tell(reply, Err(error), statistics);
    }

    /// Takes the responses to the requests from index `first` on. Returns the ticket and the whole
    /// answer once all are there.
    pub(crate) fn deliver(
        &self,
        first: usize,
        responses: impl Iterator<Item = R>,
        pass: &PassTimes,
    ) -> Option<(Ticket<R>, Answered<R>)> {
        let parts = &mut *self.lock();
        parts.ticket.note(pass);
        for (slot, response) in parts.responses[first..].iter_mut().zip(responses) {
            *slot = Some(response);
            parts.missing -= 1;
        }
        let entered = parts.ticket.entered;
        parts.queued.get_or_insert_with(|| pass.started.saturating_duration_since(entered));
        parts.device += pass.device;
        if parts.missing > 0 || parts.ticket.reply.is_none() {
            return None;
        }
        let ticket = parts.ticket.take();
        let responses = std::mem::take(&mut parts.responses).into_iter().flatten().collect();
        let queued = parts.queued.unwrap_or_default();
        Some((ticket, Answered { responses, queued, device: parts.device }))
    }

    /// Returns the slots of the job if this was its last part.
    pub(crate) fn release(split: Arc<Self>) -> Option<Slots> {
        let parts = Arc::into_inner(split)?.0.into_inner();
        parts.expect("nothing panics while it holds this lock").ticket.slots
    }
}

/// Whether the caller no longer waits for this reply.
pub(crate) fn is_over<R>(reply: Option<&Reply<R>>) -> bool {
    reply.is_none_or(oneshot::Sender::is_closed)
}

impl<R> Asker<R> {
    pub(crate) fn is_over(&self) -> bool {
        match self {
            Self::Whole(ticket) => is_over(ticket.reply.as_ref()),
            Self::Split(split) => split.is_over(),
        }
    }

    /// Sends the caller an error, if it has nothing yet.
    pub(crate) fn fail(&mut self, error: SubmitError, statistics: &Statistics) {
        match self {
            Self::Whole(ticket) => tell(ticket.reply.take(), Err(error), statistics),
            Self::Split(split) => split.fail(error, statistics),
        }
    }

    /// Ends this part of the job with an error: frees its slots, unless other passes still hold
    /// them, and tells the caller if it has nothing yet.
    pub(crate) fn end(self, error: SubmitError, shared: &Shared, lane: &LaneShared) {
        let (reply, slots) = match self {
            Self::Whole(ticket) => (ticket.reply, ticket.slots),
            Self::Split(split) => {
                let reply = split.lock().ticket.reply.take();
                (reply, Split::release(split))
            }
        };
        // Freed first, so that the caller's next request can use them.
        shared.free(lane, slots.as_ref().map_or(0, Slots::number));
        drop(slots);
        tell(reply, Err(error), &shared.statistics);
    }
}
