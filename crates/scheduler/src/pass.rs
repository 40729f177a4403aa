//! A pass: the requests of one workload that a worker runs together, in one slice or in several.

use std::any::Any;
use std::collections::VecDeque;
use std::mem::take;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::Workload;
use contract::workload::{PassError, Slice};

use crate::account::{Slots, Turns};
use crate::choose::Waiting;
use crate::error::SubmitError;
use crate::hand_out::{Done, Finished, HandOut};
use crate::job::{Asker, Reply, Split, tell};
use crate::shared::{LaneShared, Shared};
use crate::statistics::Statistics;

pub(crate) struct Pass<W: Workload> {
    workload: Arc<W>,
    /// Whole jobs, and parts of jobs.
    pub(crate) jobs: VecDeque<Waiting<W>>,
    state: W::Pass,
    responses: Vec<W::Response>,
    lane: Arc<LaneShared>,
    shared: Arc<Shared>,
    started: Instant,
    /// The time of all slices so far.
    took: Duration,
    slices: usize,
}

/// A pass, whatever its workload is.
pub(crate) trait AnyPass<D: ?Sized> {
    fn name(&self) -> &'static str;
    /// How many requests it has.
    fn len(&self) -> usize;
    /// The lowest clock of its callers. A probe comes before all.
    fn first_clock(&self, turns: &Turns) -> u64;
    /// Runs a slice. Returns whether it was the last.
    fn run(&mut self, device: &mut D, slice: Slice<'_>) -> Result<bool, PassError>;
    /// Starts the pass as a whole, if the device can, and if it is not too long where requests of other workloads wait. Returns
    /// whether it did.
    fn start(&mut self, device: &mut D, beside_others: bool) -> Result<bool, PassError>;
    /// Waits for it.
    fn complete(&mut self, device: &mut D) -> Result<(), PassError>;
    /// Whether it had a slice.
    fn has_begun(&self) -> bool;
    /// Whether it was over after its first slice.
    fn had_one_slice(&self) -> bool;
    /// Notes the time of a slice.
    fn note_slice(&mut self, took: Duration);
    fn took(&self) -> Duration;
    /// Charges its callers for the time of a slice, in proportion to what their requests cost.
    fn charge(&self, turns: &mut Turns, took: Duration);
    /// Drops shares that nobody waits for. Returns whether nothing is left of the pass.
    fn drop_expired(&mut self, now: Instant, somebody_hung_up: bool) -> bool;
    /// Lends the reply channels to the timer, so that it can answer late callers while this thread runs the slice.
    fn lend(&mut self) -> Box<dyn Lent>;
    /// Takes back the channels that are left.
    fn take_back(&mut self, lent: Box<dyn Lent>);
    /// After the last slice: counts the pass, frees slots, and returns the answers, ready to be handed out.
    fn finish(self: Box<Self>) -> Box<dyn HandOut>;
    /// Fails its jobs, each as a whole.
    fn fail(self: Box<Self>, error: SubmitError);
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

/// The reply channels of a pass while a slice runs.
pub(crate) trait Lent: Send {
    /// Answers callers whose deadline has passed.
    fn answer_expired(&mut self, now: Instant, statistics: &Statistics);
    /// Sends all callers an error.
    fn tell_all(&mut self, error: SubmitError, statistics: &Statistics);
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

struct LentReplies<R>(Vec<(Instant, LentReply<R>)>);

enum LentReply<R> {
    Whole(Option<Reply<R>>),
    Split(Arc<Split<R>>),
}

impl<R> LentReply<R> {
    fn tell(&mut self, error: SubmitError, statistics: &Statistics) {
        match self {
            Self::Whole(reply) => tell(reply.take(), Err(error), statistics),
            Self::Split(split) => split.fail(error, statistics),
        }
    }
}

impl<R: Send + 'static> Lent for LentReplies<R> {
    fn answer_expired(&mut self, now: Instant, statistics: &Statistics) {
        for (_, reply) in self.0.iter_mut().filter(|(deadline, _)| now >= *deadline) {
            reply.tell(SubmitError::DeadlinePassed, statistics);
        }
    }

    fn tell_all(&mut self, error: SubmitError, statistics: &Statistics) {
        for (_, reply) in &mut self.0 {
            reply.tell(error, statistics);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl<W: Workload> Pass<W> {
    pub(crate) fn new(
        workload: Arc<W>,
        jobs: VecDeque<Waiting<W>>,
        lane: Arc<LaneShared>,
        shared: Arc<Shared>,
        started: Instant,
    ) -> Self {
        let (state, responses) = (W::Pass::default(), Vec::new());
        let (took, slices) = (Duration::ZERO, 0);
        Self { workload, jobs, state, responses, lane, shared, started, took, slices }
    }

    fn slots(&self) -> usize {
        let requests = self.jobs.iter().flat_map(|job| job.requests.as_slice());
        requests.map(|request| self.workload.slots(request)).sum()
    }

    fn cost(&self) -> usize {
        self.jobs.iter().map(|job| job.cost).sum()
    }
}

fn requests<W: Workload>(jobs: &VecDeque<Waiting<W>>) -> Vec<&W::Request> {
    jobs.iter().flat_map(|job| job.requests.as_slice()).collect()
}

/// These responses, if there are enough.
fn complete<R>(responses: Vec<R>, wanted: usize) -> Result<Vec<R>, PassError> {
    if responses.len() == wanted {
        Ok(responses)
    } else {
        Err(PassError::Device(format!("it returned {} answers", responses.len())))
    }
}

impl<W: Workload> AnyPass<W::Device> for Pass<W> {
    fn name(&self) -> &'static str {
        self.workload.name()
    }

    fn len(&self) -> usize {
        self.jobs.iter().map(|job| job.requests.len()).sum()
    }

    fn first_clock(&self, turns: &Turns) -> u64 {
        let clock = |job: &Waiting<W>| job.caller.map_or(0, |caller| turns.clock(caller));
        self.jobs.iter().map(clock).min().unwrap_or(0)
    }

    fn run(&mut self, device: &mut W::Device, slice: Slice<'_>) -> Result<bool, PassError> {
        let requests = requests(&self.jobs);
        match self.workload.run(device, &requests, &mut self.state, slice)? {
            None => Ok(false),
            Some(responses) => {
                self.responses = complete(responses, requests.len())?;
                Ok(true)
            }
        }
    }

    fn start(&mut self, device: &mut W::Device, beside_others: bool) -> Result<bool, PassError> {
        self.workload.start(device, &requests(&self.jobs), beside_others)
    }

    fn complete(&mut self, device: &mut W::Device) -> Result<(), PassError> {
        let requests = requests(&self.jobs);
        self.responses = complete(self.workload.finish(device, &requests)?, requests.len())?;
        Ok(())
    }

    fn has_begun(&self) -> bool {
        self.slices > 0
    }

    fn had_one_slice(&self) -> bool {
        self.slices == 1
    }

    fn note_slice(&mut self, took: Duration) {
        self.took += took;
        self.slices += 1;
    }

    fn took(&self) -> Duration {
        self.took
    }

    fn charge(&self, turns: &mut Turns, took: Duration) {
        let all = self.cost().max(1) as f64;
        for job in &self.jobs {
            if let Some(caller) = job.caller {
                turns.charge(caller, took.mul_f64(job.cost as f64 / all));
            }
        }
    }

    fn drop_expired(&mut self, now: Instant, somebody_hung_up: bool) -> bool {
        let is_expired = |job: &Waiting<W>| {
            let may_be_over = somebody_hung_up || matches!(job.asker, Asker::Split(_));
            now >= job.deadline || (may_be_over && job.asker.is_over())
        };
        if self.jobs.iter().any(is_expired) {
            let stays: Vec<bool> = self
                .jobs
                .iter()
                .flat_map(|job| std::iter::repeat_n(!is_expired(job), job.requests.len()))
                .collect();
            self.workload.retain(&mut self.state, &mut |index| stays[index]);
            let (expired, others) = take(&mut self.jobs).into_iter().partition(is_expired);
            self.jobs = others;
            let expired: VecDeque<Waiting<W>> = expired;
            for job in expired {
                job.asker.end(SubmitError::DeadlinePassed, &self.shared, &self.lane);
            }
        }
        self.jobs.is_empty()
    }

    fn lend(&mut self) -> Box<dyn Lent> {
        let lend = |job: &mut Waiting<W>| {
            let reply = match &mut job.asker {
                Asker::Whole(ticket) => LentReply::Whole(ticket.reply.take()),
                Asker::Split(split) => LentReply::Split(split.clone()),
            };
            (job.deadline, reply)
        };
        Box::new(LentReplies(self.jobs.iter_mut().map(lend).collect()))
    }

    fn take_back(&mut self, lent: Box<dyn Lent>) {
        let lent = lent.into_any().downcast::<LentReplies<W::Response>>();
        let lent = lent.expect("a pass gets back what it has lent");
        for (job, (_, lent)) in self.jobs.iter_mut().zip(lent.0) {
            if let (Asker::Whole(ticket), LentReply::Whole(reply)) = (&mut job.asker, lent) {
                ticket.reply = reply;
            }
        }
    }

    fn finish(self: Box<Self>) -> Box<dyn HandOut> {
        let (requests, cost, slots) = (AnyPass::len(&*self), self.cost(), self.slots());
        let Self { jobs, responses, lane, shared, started, took, .. } = *self;
        lane.counters.count(requests, took, cost);
        lane.note_pass(slots, took);
        let number = |slots: Option<&Slots>| slots.map_or(0, Slots::number);
        let own = |job: &Waiting<W>| match &job.asker {
            Asker::Whole(ticket) => number(ticket.slots.as_ref()),
            Asker::Split(_) => 0,
        };
        let mut freed = jobs.iter().map(own).sum();
        let mut finished = Finished { whole: jobs, responses, split: Vec::new(), started, took };
        // In most passes all jobs are whole, and everything stays where it is.
        if finished.whole.iter().any(|job| matches!(job.asker, Asker::Split(_))) {
            let (jobs, responses) = (take(&mut finished.whole), take(&mut finished.responses));
            let mut responses = responses.into_iter();
            for job in jobs {
                let own = responses.by_ref().take(job.requests.len());
                let Asker::Split(split) = job.asker else {
                    finished.responses.extend(own);
                    finished.whole.push_back(job);
                    continue;
                };
                if let Some((ticket, answered)) = split.deliver(job.taken, own, started, took) {
                    freed += number(ticket.slots.as_ref());
                    finished.split.push(Done { ticket, deadline: job.deadline, answered });
                } else {
                    freed += number(Split::release(split).as_ref());
                }
            }
        }
        shared.free(&lane, freed);
        Box::new(finished)
    }

    fn fail(self: Box<Self>, error: SubmitError) {
        let Self { jobs, shared, lane, .. } = *self;
        for job in jobs {
            job.asker.end(error, &shared, &lane);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}
