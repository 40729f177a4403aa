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
use crate::hand_out::{AnsweredJob, Finished, HandOut};
use crate::inbox::LaneParts;
use crate::job::{Asker, Split};
use crate::statistics::Statistics;
use crate::timeline::PassTimes;

pub(crate) struct Pass<W: Workload> {
    parts: Arc<LaneParts<W>>,
    /// Whole jobs, and parts of jobs, without their requests. While they are lent, none.
    jobs: VecDeque<Waiting<W>>,
    /// For each job, its requests. Shared with the timer while the jobs are lent.
    requests: Requests<W>,
    state: W::Pass,
    responses: Vec<W::Response>,
    /// Whether its jobs must run apart from others, because a device failed while it had them.
    is_apart: bool,
    started: Instant,
    /// The time of all slices so far.
    took: Duration,
    slices: usize,
}

type Requests<W> = Arc<Vec<std::vec::IntoIter<<W as Workload>::Request>>>;

/// A pass, whatever its workload is.
pub(crate) trait AnyPass<D: ?Sized> {
    fn name(&self) -> &'static str;
    fn len(&self) -> usize;
    /// Whether nothing else may be on the device with it.
    fn is_apart(&self) -> bool;
    /// The lowest clock of its callers. A probe comes before all.
    fn first_clock(&self, turns: &Turns) -> u64;
    /// Runs a slice. Returns whether it was the last.
    fn run(&mut self, device: &mut D, slice: Slice<'_>) -> Result<bool, PassError>;
    /// Starts the pass as a whole, if the device can, and if it is not too long where requests of
    /// other workloads wait. Returns whether it did.
    fn start(&mut self, device: &mut D, beside_others: bool) -> Result<bool, PassError>;
    /// Waits for it.
    fn complete(&mut self, device: &mut D) -> Result<(), PassError>;
    /// Whether it had a slice.
    fn has_begun(&self) -> bool;
    /// Whether it was over after its first slice.
    fn had_one_slice(&self) -> bool;
    fn note_slice(&mut self, took: Duration);
    fn took(&self) -> Duration;
    /// Charges its callers for the time of a slice, in proportion to what their requests cost.
    fn charge(&self, turns: &mut Turns, took: Duration);
    /// Drops shares that nobody waits for. Returns whether nothing is left of the pass.
    fn drop_expired(&mut self, now: Instant, somebody_hung_up: bool) -> bool;
    /// Lends its jobs to the timer, so that it can answer late callers while this thread runs the
    /// slice, and ask others if the device hangs. `is_on_device`: whether the device is at work on
    /// them.
    fn lend(&mut self, is_on_device: bool) -> Box<dyn Lent>;
    fn take_back(&mut self, lent: Box<dyn Lent>);
    /// Gives up the pass and returns its jobs, to be taken back by their lane.
    fn give_up(self: Box<Self>, is_on_device: bool) -> Box<dyn Lent>;
    /// After the last slice, which this worker ran: counts the pass, frees slots, and returns the
    /// answers, ready to be handed out.
    fn finish(self: Box<Self>, worker: usize) -> Box<dyn HandOut>;
    /// Fails its jobs, each as a whole.
    fn fail(self: Box<Self>, error: SubmitError);
}

/// The jobs of a pass, while a device works on it or after it failed.
pub(crate) trait Lent: Send {
    /// The index of their lane.
    fn lane(&self) -> usize;
    /// Whether the device is at work on them. Otherwise it had them at most in slices that are
    /// over.
    fn is_on_device(&self) -> bool;
    /// Answers callers whose deadline has passed.
    fn answer_expired(&mut self, now: Instant, statistics: &Statistics);
    fn into_any(self: Box<Self>) -> Box<dyn Any>;
}

pub(crate) struct LentJobs<W: Workload> {
    jobs: VecDeque<Waiting<W>>,
    requests: Requests<W>,
    index: usize,
    is_on_device: bool,
    pub(crate) is_apart: bool,
}

impl<W: Workload> LentJobs<W> {
    /// The jobs with their requests. If a device hangs that has the requests, these are copies.
    pub(crate) fn into_jobs(self) -> impl DoubleEndedIterator<Item = Waiting<W>> {
        let requests = Arc::unwrap_or_clone(self.requests);
        debug_assert_eq!(self.jobs.len(), requests.len());
        let with = |(job, requests)| Waiting { requests, ..job };
        self.jobs.into_iter().zip(requests).map(with)
    }
}

impl<W: Workload> Lent for LentJobs<W> {
    fn lane(&self) -> usize {
        self.index
    }

    fn is_on_device(&self) -> bool {
        self.is_on_device
    }

    fn answer_expired(&mut self, now: Instant, statistics: &Statistics) {
        for job in self.jobs.iter_mut().filter(|job| now >= job.deadline) {
            job.asker.fail(SubmitError::DeadlinePassed, statistics);
        }
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

impl<W: Workload> Pass<W> {
    /// A pass of these jobs.
    pub(crate) fn new(
        parts: Arc<LaneParts<W>>,
        mut jobs: VecDeque<Waiting<W>>,
        is_apart: bool,
        started: Instant,
    ) -> Self {
        Self {
            parts,
            requests: Arc::new(jobs.iter_mut().map(|job| take(&mut job.requests)).collect()),
            jobs,
            state: W::Pass::default(),
            responses: Vec::new(),
            is_apart,
            started,
            took: Duration::ZERO,
            slices: 0,
        }
    }

    fn slots(&self) -> usize {
        let slots = |request| self.parts.workload.slots(request);
        requests::<W>(&self.requests).into_iter().map(slots).sum()
    }

    fn cost(&self) -> usize {
        self.jobs.iter().map(|job| job.cost).sum()
    }
}

fn requests<W: Workload>(requests: &Requests<W>) -> Vec<&W::Request> {
    requests.iter().flat_map(|of_job| of_job.as_slice()).collect()
}

/// These responses, if there are enough.
fn complete<R>(responses: Vec<R>, wanted: usize) -> Result<Vec<R>, PassError> {
    if responses.len() == wanted {
        Ok(responses)
    } else {
        Err(PassError::Device(format!("it returned {} answers", responses.len()).into()))
    }
}

impl<W: Workload> AnyPass<W::Device> for Pass<W> {
    fn name(&self) -> &'static str {
        self.parts.workload.name()
    }

    fn len(&self) -> usize {
        self.requests.iter().map(ExactSizeIterator::len).sum()
    }

    fn is_apart(&self) -> bool {
        self.is_apart
    }

    fn first_clock(&self, turns: &Turns) -> u64 {
        self.jobs.iter().map(|job| job.clock(turns)).min().unwrap_or(0)
    }

    fn run(&mut self, device: &mut W::Device, slice: Slice<'_>) -> Result<bool, PassError> {
        let requests = requests::<W>(&self.requests);
        match self.parts.workload.run(device, &requests, &mut self.state, slice)? {
            None => Ok(false),
            Some(responses) => {
                self.responses = complete(responses, requests.len())?;
                Ok(true)
            }
        }
    }

    fn start(&mut self, device: &mut W::Device, beside_others: bool) -> Result<bool, PassError> {
        self.parts.workload.start(device, &requests::<W>(&self.requests), beside_others)
    }

    fn complete(&mut self, device: &mut W::Device) -> Result<(), PassError> {
        let requests = requests::<W>(&self.requests);
        let responses = self.parts.workload.finish(device, &requests)?;
        self.responses = complete(responses, requests.len())?;
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
        let is_expired = |job: &Waiting<W>| job.is_expired(now, somebody_hung_up);
        if self.jobs.iter().any(is_expired) {
            let lists = Arc::get_mut(&mut self.requests).expect("nothing is lent between slices");
            // Asked once, for callers hang up meanwhile.
            let expired: Vec<bool> = self.jobs.iter().map(is_expired).collect();
            let stays: Vec<bool> = expired
                .iter()
                .zip(&*lists)
                .flat_map(|(is_expired, list)| std::iter::repeat_n(!is_expired, list.len()))
                .collect();
            self.parts.workload.retain(&mut self.state, &mut |index| stays[index]);
            let jobs = take(&mut self.jobs).into_iter().zip(take(lists));
            for ((job, list), is_expired) in jobs.zip(expired) {
                if is_expired {
                    let LaneParts { shared, lane, .. } = &*self.parts;
                    job.asker.end(SubmitError::DeadlinePassed, shared, lane);
                } else {
                    self.jobs.push_back(job);
                    lists.push(list);
                }
            }
        }
        self.jobs.is_empty()
    }

    fn lend(&mut self, is_on_device: bool) -> Box<dyn Lent> {
        let (jobs, requests) = (take(&mut self.jobs), self.requests.clone());
        let (index, is_apart) = (self.parts.index, self.is_apart);
        Box::new(LentJobs { jobs, requests, index, is_on_device, is_apart })
    }

    fn take_back(&mut self, lent: Box<dyn Lent>) {
        let lent = lent.into_any().downcast::<LentJobs<W>>();
        self.jobs = lent.expect("a pass gets back what it has lent").jobs;
    }

    fn give_up(mut self: Box<Self>, is_on_device: bool) -> Box<dyn Lent> {
        // The pass is dropped, so the requests are not shared and need not be copied.
        self.lend(is_on_device)
    }

    fn finish(self: Box<Self>, worker: usize) -> Box<dyn HandOut> {
        let (requests, cost, slots) = (AnyPass::len(&*self), self.cost(), self.slots());
        let Self { parts, mut jobs, requests: lists, responses, started, took, slices, .. } = *self;
        let LaneParts { lane, shared, .. } = &*parts;
        let (ended, batch) = (Instant::now(), requests);
        let times = PassTimes { started, ended, device: took, batch, slices, replica: worker };
        let lists = Arc::into_inner(lists).expect("nothing is lent after the last slice");
        for (job, list) in jobs.iter_mut().zip(lists) {
            job.requests = list;
        }
        lane.counters.count(requests, took, cost);
        lane.note_pass(slots, took);
        let number = |slots: Option<&Slots>| slots.map_or(0, Slots::number);
        let own = |job: &Waiting<W>| match &job.asker {
            Asker::Whole(ticket) => {
                ticket.note(&times);
                number(ticket.slots.as_ref())
            }
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
                if let Some((ticket, answered)) = split.deliver(job.taken, own, &times) {
                    freed += number(ticket.slots.as_ref());
                    finished.split.push(AnsweredJob { ticket, deadline: job.deadline, answered });
                } else {
                    freed += number(Split::release(split).as_ref());
                }
            }
        }
        shared.free(lane, freed);
        Box::new(finished)
    }

    fn fail(self: Box<Self>, error: SubmitError) {
        let Self { jobs, parts, .. } = *self;
        for job in jobs {
            job.asker.end(error, &parts.shared, &parts.lane);
        }
    }
}
