//! The workers' end of a lane: jobs of one workload that wait for their passes.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use contract::Workload;

use crate::account::{ByCaller, Contention, Turns};
use crate::choose::{Room, Waiting, choose};
use crate::error::SubmitError;
use crate::inbox::LaneParts;
use crate::job::{Asker, Failure, Job, Split, tell};
use crate::pass::{AnyPass, Lent, LentJobs, Pass};
use crate::shared::LaneShared;

/// A lane, whatever its workload is.
pub(crate) trait AnyLane<D: ?Sized>: Send {
    /// Takes the jobs out of the inbox.
    fn collect(&mut self, device: &D, contention: &mut Contention);
    fn is_empty(&self) -> bool;
    /// The number of callers that wait. Looks at all jobs.
    fn callers(&self) -> usize;
    /// Drops jobs whose callers no longer wait. Checks for callers that hung up only if
    /// `somebody_hung_up`.
    fn drop_expired(&mut self, now: Instant, somebody_hung_up: bool);
    /// The lowest clock of the waiting callers, if anybody waits. A probe comes before all.
    fn first_clock(&self, turns: &Turns) -> Option<u64>;
    /// Begins a pass with the requests that it chooses.
    fn begin(&mut self, device: &D, has_others: bool, now: Instant) -> Box<dyn AnyPass<D>>;
    /// Takes back the jobs of a pass of this lane that will not be finished.
    fn take_back(&mut self, jobs: Box<dyn Lent>, why: Back);
    /// Answers callers whose deadline has passed.
    fn answer_expired(&mut self, now: Instant);
    /// Fails all waiting jobs with this error; if `for_good`, later ones as well.
    fn fail_all(&mut self, error: SubmitError, for_good: bool);
    fn shared(&self) -> Arc<LaneShared>;
}

/// Why a lane takes back the jobs of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Back {
    /// The device failed in another pass: they begin again.
    Unfinished,
    /// The device failed while it had them: they are asked again, apart from others, if this is
    /// their first failure.
    Failed(Failure),
    /// Nobody will answer them: they get this error.
    Over(SubmitError),
}

/// The most passes apart in a row. After them, other jobs get a pass.
const APART_IN_A_ROW: u8 = 8;

pub(crate) struct LaneState<W: Workload> {
    parts: Arc<LaneParts<W>>,
    /// In the order of their turns.
    waiting: VecDeque<Waiting<W>>,
    /// Jobs that are asked again, each in a pass of its own. One of them may be the reason why a
    /// device failed: alone it takes no other jobs with it when it fails the next device, and gets
    /// its error then.
    again: VecDeque<Waiting<W>>,
    /// The passes apart since the last pass of other jobs.
    apart_in_a_row: u8,
    /// A reused buffer for the inbox's jobs; empty between calls.
    spare: Vec<Job<W>>,
}

impl<W: Workload> LaneState<W> {
    pub(crate) fn new(parts: Arc<LaneParts<W>>) -> Self {
        Self {
            parts,
            waiting: VecDeque::new(),
            again: VecDeque::new(),
            apart_in_a_row: 0,
            spare: Vec::new(),
        }
    }

    /// Chooses the jobs of the next pass. Returns also whether it must run apart.
    fn choose(&mut self, device: &W::Device, has_others: bool) -> (VecDeque<Waiting<W>>, bool) {
        let workload = &self.parts.workload;
        let rests = !self.waiting.is_empty() && self.apart_in_a_row >= APART_IN_A_ROW;
        if !rests && let Some(job) = self.again.pop_front() {
            self.apart_in_a_row = self.apart_in_a_row.saturating_add(1);
            let (all, of_one_caller) = (workload.room(device, job.cost).max(1), usize::MAX);
            let mut one = VecDeque::from([job]);
            choose(workload, device, &mut one, Room { all, of_one_caller });
            let jobs = take_chosen(&mut one);
            one.into_iter().for_each(|rest| self.again.push_front(rest));
            return (jobs, true);
        }
        self.apart_in_a_row = 0;
        let waiting = self.waiting.iter().map(|job| job.cost).sum();
        let all = workload.room(device, waiting).max(1);
        let of_one_caller = if has_others {
            workload.max_room_per_caller(workload.room(device, usize::MAX)).max(1)
        } else {
            usize::MAX
        };
        choose(workload, device, &mut self.waiting, Room { all, of_one_caller });
        (take_chosen(&mut self.waiting), false)
    }
}

/// Takes the chosen requests out. What stays: jobs that got no room, then the rest of jobs that
/// were split.
fn take_chosen<W: Workload>(waiting: &mut VecDeque<Waiting<W>>) -> VecDeque<Waiting<W>> {
    // Most passes take whole jobs from the front. Then the others, perhaps thousands, stay where
    // they are.
    let is_whole = |job: &Waiting<W>| job.chosen == job.requests.len();
    let whole = waiting.iter().position(|job| !is_whole(job)).unwrap_or(waiting.len());
    if waiting.iter().skip(whole).all(|job| job.chosen == 0) {
        return waiting.drain(..whole).collect();
    }
    let before = std::mem::take(waiting);
    let (mut taken, mut unfinished) = (VecDeque::with_capacity(before.len()), Vec::new());
    for mut job in before {
        if job.chosen == 0 {
            waiting.push_back(job);
        } else if job.chosen == job.requests.len() {
            taken.push_back(job);
        } else {
            taken.push_back(job.split_off());
            unfinished.push(job);
        }
    }
    waiting.extend(unfinished);
    taken
}

impl<W: Workload> Waiting<W> {
    /// Takes the chosen requests out of a job that has more.
    fn split_off(&mut self) -> Self {
        if let Asker::Whole(ticket) = &mut self.asker {
            let split = Split::new(ticket.take(), self.requests.len(), self.failed_in);
            self.asker = Asker::Split(split);
        }
        let Asker::Split(split) = &self.asker else { unreachable!("it was split just now") };
        let requests: Vec<W::Request> = self.requests.by_ref().take(self.chosen).collect();
        let (taken, chosen, cost) = (self.taken, self.chosen, self.chosen_cost);
        self.taken += chosen;
        self.cost = self.cost.saturating_sub(cost);
        let (deadline, caller, chosen_cost) = (self.deadline, self.caller, cost);
        let (requests, asker) = (requests.into_iter(), Asker::Split(split.clone()));
        let failed_in = self.failed_in;
        Self { requests, cost, deadline, caller, asker, failed_in, taken, chosen, chosen_cost }
    }
}

impl<W: Workload> AnyLane<W::Device> for LaneState<W> {
    fn collect(&mut self, device: &W::Device, contention: &mut Contention) {
        let Self { parts, waiting, spare, .. } = self;
        if !parts.lane.is_filled() {
            return;
        }
        let now = Instant::now();
        let mut wait = |job: Job<W>| {
            let Job { requests, deadline, ticket } = job;
            let caller = ticket.slots.as_ref().map(|slots| slots.caller());
            contention.note(caller, now);
            Waiting {
                cost: requests.iter().map(|request| parts.workload.cost(device, request)).sum(),
                requests: requests.into_iter(),
                deadline,
                caller,
                asker: Asker::Whole(ticket),
                failed_in: None,
                taken: 0,
                chosen: 0,
                chosen_cost: 0,
            }
        };
        parts.inbox.take(spare, |job, is_probe| match is_probe {
            false => waiting.push_back(wait(job)),
            // To the front: the probe asks whether the device works, not how long the queue is.
            true => waiting.push_front(wait(job)),
        });
    }

    fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.again.is_empty()
    }

    fn callers(&self) -> usize {
        let callers: ByCaller<()> =
            self.waiting.iter().chain(&self.again).map(|job| (job.caller(), ())).collect();
        callers.len()
    }

    fn drop_expired(&mut self, now: Instant, somebody_hung_up: bool) {
        let is_expired = |job: &Waiting<W>| job.is_expired(now, somebody_hung_up);
        for waiting in [&mut self.waiting, &mut self.again] {
            if !waiting.iter().any(is_expired) {
                continue;
            }
            let (expired, others): (VecDeque<_>, VecDeque<_>) =
                waiting.drain(..).partition(is_expired);
            *waiting = others;
            for job in expired {
                job.asker.end(SubmitError::DeadlinePassed, &self.parts.shared, &self.parts.lane);
            }
        }
    }

    fn first_clock(&self, turns: &Turns) -> Option<u64> {
        self.waiting.iter().chain(&self.again).map(|job| job.clock(turns)).min()
    }

    fn begin(
        &mut self,
        device: &W::Device,
        has_others: bool,
        now: Instant,
    ) -> Box<dyn AnyPass<W::Device>> {
        let (jobs, is_apart) = self.choose(device, has_others);
        Box::new(Pass::new(self.parts.clone(), jobs, is_apart, now))
    }

    fn take_back(&mut self, jobs: Box<dyn Lent>, why: Back) {
        let lent = jobs.into_any().downcast::<LentJobs<W>>();
        let lent = lent.expect("a pass goes back to its own lane");
        let is_apart = lent.is_apart;
        let LaneParts { shared, lane, .. } = &*self.parts;
        match why {
            Back::Unfinished => {
                let to = if is_apart { &mut self.again } else { &mut self.waiting };
                lent.into_jobs().rev().for_each(|job| to.push_front(job));
            }
            Back::Failed(failure) => {
                for mut job in lent.into_jobs() {
                    if job.may_be_asked_again(failure) {
                        shared.statistics.asked_again.fetch_add(1, Ordering::Relaxed);
                        self.again.push_back(job);
                    } else {
                        job.asker.end(SubmitError::EngineFailed, shared, lane);
                    }
                }
            }
            Back::Over(error) => {
                lent.into_jobs().for_each(|job| job.asker.end(error, shared, lane));
            }
        }
    }

    fn answer_expired(&mut self, now: Instant) {
        let statistics = &self.parts.shared.statistics;
        let waiting = self.waiting.iter_mut().chain(&mut self.again);
        for job in waiting.filter(|job| now >= job.deadline) {
            job.asker.fail(SubmitError::DeadlinePassed, statistics);
        }
        self.parts.inbox.for_each(|job| {
            if now >= job.deadline {
                tell(job.ticket.reply.take(), Err(SubmitError::DeadlinePassed), statistics);
            }
        });
    }

    fn fail_all(&mut self, error: SubmitError, for_good: bool) {
        let LaneParts { inbox, shared, lane, .. } = &*self.parts;
        let waiting = std::mem::take(&mut self.waiting);
        for job in waiting.into_iter().chain(std::mem::take(&mut self.again)) {
            job.asker.end(error, shared, lane);
        }
        for job in inbox.empty(for_good) {
            Asker::Whole(job.ticket).end(error, shared, lane);
        }
    }

    fn shared(&self) -> Arc<LaneShared> {
        self.parts.lane.clone()
    }
}
