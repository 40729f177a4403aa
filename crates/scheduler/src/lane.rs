//! The callers' end of a lane.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use contract::Workload;
use tokio::sync::oneshot;

use crate::account::Account;
use crate::error::SubmitError;
use crate::inbox::{Inbox, LaneParts};
use crate::job::{Answered, Job, Ticket};
use crate::shared::Shared;
use crate::state::{DeviceState, ReplicaState};
use crate::statistics::{Counted, LaneStatistics};
use crate::timeline::Timeline;

/// Where callers submit requests of one workload. Clones share it. When all clones of all lanes are
/// gone, the workers end.
pub struct Lane<W: Workload> {
    pub(crate) parts: Arc<LaneParts<W>>,
    pub(crate) callers: Arc<CallersEnd>,
}

impl<W: Workload> Clone for Lane<W> {
    fn clone(&self) -> Self {
        Self { parts: self.parts.clone(), callers: self.callers.clone() }
    }
}

pub(crate) struct CallersEnd(pub(crate) Arc<Shared>);

impl Drop for CallersEnd {
    fn drop(&mut self) {
        self.0.parking.callers_are_gone();
    }
}

impl<W: Workload> Lane<W> {
    /// Its workload.
    pub fn workload(&self) -> &W {
        &self.parts.workload
    }

    fn shared(&self) -> &Shared {
        &self.parts.shared
    }

    /// Waits for the responses to some requests. Dropping the future abandons them: requests that
    /// have not run by then never will.
    ///
    /// A caller on a tokio runtime gets the answer from a task there, any other caller from the
    /// worker.
    ///
    /// Notes in the timeline, if there is one, when the job enters the queue, and its passes.
    ///
    /// # Errors
    /// Immediately if the deadline has passed, the queue is full or no device works; later if the
    /// deadline passes or the device fails.
    pub async fn submit(
        &self,
        account: &Arc<Account>,
        requests: Vec<W::Request>,
        deadline: Instant,
        timeline: Option<&Arc<Timeline>>,
    ) -> Result<Answered<W::Response>, SubmitError> {
        if requests.is_empty() {
            return Ok(Answered::default());
        }
        let now = self.enter(deadline)?;
        let LaneParts { workload, lane, .. } = &*self.parts;
        let usual = requests.iter().map(|request| workload.slots(request)).sum();
        let slots = self.shared().admit(lane, account, requests.len(), usual)?;
        let (reply, answer) = oneshot::channel();
        let times = timeline.map(|one| one.enter(workload.name(), requests.len(), now));
        let ticket = Ticket::new(reply, now, Some(slots), times);
        self.put(Job { requests, deadline, ticket }, Inbox::put)?;
        self.wait(answer).await
    }

    /// As [`submit`](Self::submit), through the slot that is kept for readiness checks. Only one
    /// may be under way: a second takes the slot of the first.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), but never because the queue is full.
    pub async fn probe(
        &self,
        request: W::Request,
        deadline: Instant,
    ) -> Result<Answered<W::Response>, SubmitError> {
        let now = self.enter(deadline)?;
        let (reply, answer) = oneshot::channel();
        let ticket = Ticket::new(reply, now, None, None);
        self.put(Job { requests: vec![request], deadline, ticket }, Inbox::put_probe)?;
        self.wait(answer).await
    }

    /// The time, if its caller has some left and a device works.
    fn enter(&self, deadline: Instant) -> Result<Instant, SubmitError> {
        let now = Instant::now();
        // First: a caller without time left must not be told to retry.
        if now >= deadline {
            self.shared().statistics.deadline_passed.fetch_add(1, Ordering::Relaxed);
            return Err(SubmitError::DeadlinePassed);
        }
        self.shared().check_devices()?;
        Ok(now)
    }

    fn put(
        &self,
        job: Job<W>,
        put: impl FnOnce(&Inbox<W>, Job<W>) -> Result<(), Job<W>>,
    ) -> Result<(), SubmitError> {
        match put(&self.parts.inbox, job) {
            Ok(()) => {
                self.shared().parking.wake_one();
                Ok(())
            }
            Err(mut job) => {
                let slots = job.ticket.slots.take().map_or(0, |slots| slots.number());
                self.shared().free(&self.parts.lane, slots);
                self.shared().statistics.refused_without_device.fetch_add(1, Ordering::Relaxed);
                Err(SubmitError::EngineGone)
            }
        }
    }

    async fn wait<A>(
        &self,
        answer: oneshot::Receiver<Result<A, SubmitError>>,
    ) -> Result<A, SubmitError> {
        let mut caller = Caller { shared: self.shared(), is_answered: false };
        // No timer of its own: `watch` has one for all.
        let answer = answer.await;
        caller.is_answered = true;
        // The worker ended while it had the job.
        answer.unwrap_or(Err(SubmitError::EngineGone))
    }

    /// The state of the devices.
    pub fn state(&self) -> DeviceState {
        self.shared().state()
    }

    /// The state of each device.
    pub fn replicas(&self) -> Vec<ReplicaState> {
        self.shared().states.all()
    }

    /// What this lane has counted so far.
    pub fn statistics(&self) -> LaneStatistics {
        self.parts.lane.statistics()
    }

    /// What the scheduler has counted so far, over all lanes.
    pub fn counted(&self) -> Counted {
        self.shared().counted()
    }
}

/// A caller that waits. It is dropped after its receiver: once its hang-up is counted, workers see
/// that its job is abandoned.
struct Caller<'a> {
    shared: &'a Shared,
    is_answered: bool,
}

impl Drop for Caller<'_> {
    fn drop(&mut self) {
        if !self.is_answered {
            self.shared.hang_up();
        }
    }
}
