//! The workers' end of a lane: jobs of one workload that wait for their passes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::Workload;

use crate::account::{Contention, Turns};
use crate::choose::{Room, Waiting, choose};
use crate::error::SubmitError;
use crate::inbox::Inbox;
use crate::job::{Asker, Job, Split};
use crate::pass::{AnyPass, Pass};
use crate::shared::{LaneShared, Shared};

/// A lane, whatever its workload is.
pub(crate) trait AnyLane<D: ?Sized>: Send {
    /// Takes the jobs out of the inbox.
    fn collect(&mut self, device: &D, contention: &mut Contention);
    /// The inbox, to see whether jobs wait there.
    fn inbox(&self) -> Arc<dyn Filled>;
    fn is_empty(&self) -> bool;
    /// Drops jobs whose callers no longer wait. Checks for callers that hung up only if `somebody_hung_up`.
    fn drop_expired(&mut self, now: Instant, somebody_hung_up: bool);
    /// The lowest clock of the waiting callers, if anybody waits. A probe comes before all.
    fn first_clock(&self, turns: &Turns) -> Option<u64>;
    /// Begins a pass with the requests that it chooses.
    fn begin(&mut self, device: &D, has_others: bool, now: Instant) -> Box<dyn AnyPass<D>>;
    /// Takes back the jobs of a pass of this lane that will not be finished.
    fn put_back(&mut self, pass: Box<dyn AnyPass<D>>);
    /// Answers callers whose deadline has passed.
    fn answer_expired(&mut self, now: Instant);
    /// Fails all waiting jobs with this error; if `for_good`, later ones as well.
    fn fail_all(&mut self, error: SubmitError, for_good: bool);
    /// How long recent slices took, on average.
    fn slice_took(&self) -> Duration;
    fn note_slice(&mut self, took: Duration);
    fn shared(&self) -> Arc<LaneShared>;
}

/// Whether jobs wait in an inbox.
pub(crate) trait Filled: Send + Sync {
    fn is_filled(&self) -> bool;
}

impl<W: Workload> Filled for Inbox<W> {
    fn is_filled(&self) -> bool {
        Inbox::is_filled(self)
    }
}

pub(crate) struct LaneState<W: Workload> {
    workload: Arc<W>,
    inbox: Arc<Inbox<W>>,
    lane: Arc<LaneShared>,
    shared: Arc<Shared>,
    /// In the order of their turns.
    waiting: VecDeque<Waiting<W>>,
    /// A reused buffer for the inbox's jobs; empty between calls.
    spare: Vec<Job<W>>,
    slice_took: Duration,
}

impl<W: Workload> LaneState<W> {
    pub(crate) fn new(
        workload: Arc<W>,
        inbox: Arc<Inbox<W>>,
        lane: Arc<LaneShared>,
        shared: Arc<Shared>,
    ) -> Self {
        let (waiting, spare) = (VecDeque::new(), Vec::new());
        let slice_took = Duration::from_millis(1);
        Self { workload, inbox, lane, shared, waiting, spare, slice_took }
    }

    /// Takes the chosen requests out. What stays: jobs that got no room, then the rest of jobs that were split.
    fn take_chosen(&mut self) -> VecDeque<Waiting<W>> {
        let waiting = std::mem::take(&mut self.waiting);
        if waiting.iter().all(|job| job.chosen == job.requests.len()) {
            return waiting;
        }
        let (mut taken, mut unfinished) = (VecDeque::with_capacity(waiting.len()), Vec::new());
        for mut job in waiting {
            if job.chosen == 0 {
                self.waiting.push_back(job);
            } else if job.chosen == job.requests.len() {
                taken.push_back(job);
            } else {
                taken.push_back(job.split_off());
                unfinished.push(job);
            }
        }
        self.waiting.extend(unfinished);
        taken
    }
}

impl<W: Workload> Waiting<W> {
    /// Takes the chosen requests out of a job that has more.
    fn split_off(&mut self) -> Self {
        if let Asker::Whole(ticket) = &mut self.asker {
            let whole = crate::job::Ticket {
                reply: ticket.reply.take(),
                home: ticket.home.clone(),
                entered: ticket.entered,
                slots: ticket.slots.take(),
            };
            self.asker = Asker::Split(Split::new(whole, self.requests.len()));
        }
        let Asker::Split(split) = &self.asker else { unreachable!("it was split just now") };
        let requests: Vec<W::Request> = self.requests.by_ref().take(self.chosen).collect();
        let (taken, chosen, cost) = (self.taken, self.chosen, self.chosen_cost);
        self.taken += chosen;
        self.cost = self.cost.saturating_sub(cost);
        let (deadline, caller, chosen_cost) = (self.deadline, self.caller, cost);
        let (requests, asker) = (requests.into_iter(), Asker::Split(split.clone()));
        Self { requests, cost, deadline, caller, asker, taken, chosen, chosen_cost }
    }
}

impl<W: Workload> AnyLane<W::Device> for LaneState<W> {
    fn collect(&mut self, device: &W::Device, contention: &mut Contention) {
        if !self.inbox.is_filled() {
            return;
        }
        let now = Instant::now();
        let Self { workload, inbox, waiting, spare, .. } = self;
        let mut wait = |job: Job<W>| {
            let Job { requests, deadline, ticket } = job;
            let caller = ticket.slots.as_ref().map(|slots| slots.caller());
            contention.note(caller, now);
            let cost = requests.iter().map(|request| workload.cost(device, request)).sum();
            let (requests, asker) = (requests.into_iter(), Asker::Whole(ticket));
            let (taken, chosen, chosen_cost) = (0, 0, 0);
            Waiting { requests, cost, deadline, caller, asker, taken, chosen, chosen_cost }
        };
        inbox.take(spare, |job, is_probe| match is_probe {
            false => waiting.push_back(wait(job)),
            // To the front: the probe asks whether the device works, not how long the queue is.
            true => waiting.push_front(wait(job)),
        });
    }

    fn inbox(&self) -> Arc<dyn Filled> {
        self.inbox.clone()
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    fn drop_expired(&mut self, now: Instant, somebody_hung_up: bool) {
        let is_expired = |job: &Waiting<W>| {
            // A job of which one part failed needs no pass for the rest.
            let may_be_over = somebody_hung_up || matches!(job.asker, Asker::Split(_));
            now >= job.deadline || (may_be_over && job.asker.is_over())
        };
        if !self.waiting.iter().any(is_expired) {
            return;
        }
        let (expired, others): (VecDeque<_>, VecDeque<_>) =
            self.waiting.drain(..).partition(is_expired);
        self.waiting = others;
        for job in expired {
            job.asker.end(SubmitError::DeadlinePassed, &self.shared, &self.lane);
        }
    }

    fn first_clock(&self, turns: &Turns) -> Option<u64> {
        let clock = |job: &Waiting<W>| job.caller.map_or(0, |caller| turns.clock(caller));
        self.waiting.iter().map(clock).min()
    }

    fn begin(
        &mut self,
        device: &W::Device,
        has_others: bool,
        now: Instant,
    ) -> Box<dyn AnyPass<W::Device>> {
        let workload = &*self.workload;
        let waiting = self.waiting.iter().map(|job| job.cost).sum();
        let all = workload.room(device, waiting).max(1);
        let of_one_caller = if has_others {
            workload.max_room_per_caller(workload.room(device, usize::MAX)).max(1)
        } else {
            usize::MAX
        };
        choose(workload, device, &mut self.waiting, Room { all, of_one_caller });
        let jobs = self.take_chosen();
        let (workload, lane) = (self.workload.clone(), self.lane.clone());
        Box::new(Pass::new(workload, jobs, lane, self.shared.clone(), now))
    }

    fn put_back(&mut self, pass: Box<dyn AnyPass<W::Device>>) {
        let pass = pass.into_any().downcast::<Pass<W>>().expect("a pass goes back to its own lane");
        for job in pass.jobs.into_iter().rev() {
            self.waiting.push_front(job);
        }
    }

    fn answer_expired(&mut self, now: Instant) {
        let statistics = &self.shared.statistics;
        for job in self.waiting.iter_mut().filter(|job| now >= job.deadline) {
            job.asker.fail(SubmitError::DeadlinePassed, statistics);
        }
        self.inbox.for_each(|job| {
            if now >= job.deadline {
                crate::job::tell(
                    job.ticket.reply.take(),
                    Err(SubmitError::DeadlinePassed),
                    statistics,
                );
            }
        });
    }

    fn fail_all(&mut self, error: SubmitError, for_good: bool) {
        for job in std::mem::take(&mut self.waiting) {
            job.asker.end(error, &self.shared, &self.lane);
        }
        for job in self.inbox.empty(for_good) {
            Asker::Whole(job.ticket).end(error, &self.shared, &self.lane);
        }
    }

    fn slice_took(&self) -> Duration {
        self.slice_took
    }

    fn note_slice(&mut self, took: Duration) {
        self.slice_took = (self.slice_took * 7 + took) / 8;
    }

    fn shared(&self) -> Arc<LaneShared> {
        self.lane.clone()
    }
}
