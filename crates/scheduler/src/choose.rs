//! Chooses the requests of the next pass: how the waiting jobs of a lane share it.
//!
//! A pass has room for a certain cost, and callers share it by max-min fairness: each caller gets
//! all that it has left, up to a level that is the same for all and as high as the room allows. The
//! jobs of one caller share its part in the same way. So a batch of a thousand gets what others
//! leave: all of the room if it is alone, but a single request never waits for the next pass if the
//! pass has room for one request of each caller.
//!
//! If requests share work or differ in cost, room is left over. The jobs fill it in turns, one
//! request each, until nothing more fits.
//!
//! A job that a pass leaves unfinished goes behind the jobs that had no room in it. So jobs take
//! turns as well if more of them wait than fit.

use std::collections::VecDeque;
use std::collections::hash_map::Entry;
use std::time::Instant;

use contract::Workload;

use crate::account::{ByCaller, Turns};
use crate::job::{Asker, Failure};

/// A job, or what passes have left of it.
pub(crate) struct Waiting<W: Workload> {
    pub(crate) requests: std::vec::IntoIter<W::Request>,
    /// What they cost.
    pub(crate) cost: usize,
    pub(crate) deadline: Instant,
    pub(crate) caller: Option<u64>,
    pub(crate) asker: Asker<W::Response>,
    /// The failure of a device that had it, if one had.
    pub(crate) failed_in: Option<Failure>,
    /// How many of its requests earlier passes have taken.
    pub(crate) taken: usize,
    /// How many the next pass takes, and what they cost.
    pub(crate) chosen: usize,
    pub(crate) chosen_cost: usize,
}

impl<W: Workload> Waiting<W> {
    /// Notes that a device failed while it had these requests. Returns whether they may be asked
    /// again: no other device has failed while it had them, or others of their job.
    pub(crate) fn may_be_asked_again(&mut self, failure: Failure) -> bool {
        match &self.asker {
            Asker::Whole(_) => *self.failed_in.get_or_insert(failure) == failure,
            Asker::Split(split) => split.note_failure(failure),
        }
    }

    /// Whether its caller no longer waits. Checks whether it hung up only if `somebody_hung_up`.
    pub(crate) fn is_expired(&self, now: Instant, somebody_hung_up: bool) -> bool {
        // A job of which one part failed needs no pass for the rest.
        let may_be_over = somebody_hung_up || matches!(self.asker, Asker::Split(_));
        now >= self.deadline || (may_be_over && self.asker.is_over())
    }

    /// Where its caller's clock stands. A probe comes before all.
    pub(crate) fn clock(&self, turns: &Turns) -> u64 {
        self.caller.map_or(0, |caller| turns.clock(caller))
    }

    /// The caller's id. All probes count as one caller's.
    pub(crate) fn caller(&self) -> u64 {
        self.caller.unwrap_or(u64::MAX)
    }
}

/// How some room is divided among callers, or among the jobs of one caller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Level {
    /// What every one of them may have.
    pub(crate) share: usize,
    /// The first n of those with more left get one more.
    pub(crate) more: usize,
}

impl Level {
    /// As [`of`](Self::of), but all together may have less left than `room`.
    fn of_any(room: usize, left: &mut [usize]) -> Self {
        if left.iter().sum::<usize>() <= room {
            return Self { share: usize::MAX, more: 0 };
        }
        Self::of(room, left)
    }

    /// For jobs with these amounts left, together more than `room`. Sorts the amounts.
    pub(crate) fn of(mut room: usize, left: &mut [usize]) -> Self {
        let mut jobs = left.len();
        if jobs >= room {
            return Self { share: 0, more: room };
        }
        left.sort_unstable();
        for &left in &*left {
            let share = room / jobs;
            if left > share {
                return Self { share, more: room % jobs };
            }
            room -= left;
            jobs -= 1;
        }
        Self { share: usize::MAX, more: 0 }
    }

    /// What a job with this amount left gets. To be called in the order of the jobs.
    pub(crate) fn take(&mut self, left: usize) -> usize {
        if left <= self.share {
            left
        } else if self.more > 0 {
            self.more -= 1;
            self.share + 1
        } else {
            self.share
        }
    }
}

/// The jobs of one caller: what each has left, in order, how they share the caller's part, and what
/// they were given.
#[derive(Default)]
pub(crate) struct OfCaller {
    left: Vec<usize>,
    level: Option<Level>,
    given: usize,
}

/// The room of a pass.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Room {
    pub(crate) all: usize,
    pub(crate) of_one_caller: usize,
}

/// Chooses the requests of the next pass: sets [`Waiting::chosen`].
pub(crate) fn choose<W: Workload>(
    workload: &W,
    device: &W::Device,
    waiting: &mut VecDeque<Waiting<W>>,
    room: Room,
) {
    let unchosen = |job: &mut Waiting<W>| {
        (job.chosen, job.chosen_cost) = (0, 0);
        job.cost
    };
    let cost: usize = waiting.iter_mut().map(unchosen).sum();
    if cost <= room.all && (cost <= room.of_one_caller || fits_each_caller(waiting, room)) {
        for job in waiting {
            (job.chosen, job.chosen_cost) = (job.requests.len(), job.cost);
        }
        return;
    }
    let mut pass = Gathering::new(workload, device, room);
    let mut callers: ByCaller<OfCaller> = ByCaller::default();
    if has_as_many_callers_as(waiting, room.all) {
        one_of_each_caller(&mut pass, waiting, &mut callers);
    } else {
        by_level(&mut pass, waiting, &mut callers);
    }
    fill(&mut pass, waiting, &mut callers);
}

/// Shares the room by levels, of callers and of each caller's jobs.
pub(crate) fn by_level<W: Workload>(
    pass: &mut Gathering<'_, W>,
    waiting: &mut VecDeque<Waiting<W>>,
    callers: &mut ByCaller<OfCaller>,
) {
    let room = pass.room;
    for job in &*waiting {
        callers.entry(job.caller()).or_default().left.push(job.cost);
    }
    let wanted = |of: &OfCaller| of.left.iter().sum::<usize>().min(room.of_one_caller);
    let mut all_wanted: Vec<usize> = callers.values().map(wanted).collect();
    let mut of_all = Level::of_any(room.all, &mut all_wanted);
    for job in waiting {
        let of_caller = callers.entry(job.caller()).or_default();
        let level = of_caller.level.get_or_insert_with(|| {
            let gets = of_all.take(of_caller.left.iter().sum::<usize>().min(room.of_one_caller));
            Level::of_any(gets, &mut of_caller.left)
        });
        let gets = level.take(job.cost);
        // The first request of a job may cost more than the job gets.
        while gets > 0 && (job.chosen == 0 || job.chosen_cost < gets) {
            let Some(request) = job.requests.as_slice().get(job.chosen) else { break };
            let cost = pass.workload.cost(pass.device, request);
            if job.chosen > 0 && job.chosen_cost + cost > gets {
                break;
            }
            let Some(added) = pass.add(request, cost) else { break };
            (job.chosen, job.chosen_cost) = (job.chosen + 1, job.chosen_cost + cost);
            of_caller.given += added;
        }
    }
}

/// As [`by_level`] where every caller's level is 1 or 0: the first request of each caller, in turn.
/// It looks at no more jobs than it chooses, however many wait: with thousands of connections the
/// lock of `dispatch` is held for this.
fn one_of_each_caller<W: Workload>(
    pass: &mut Gathering<'_, W>,
    waiting: &mut VecDeque<Waiting<W>>,
    callers: &mut ByCaller<OfCaller>,
) {
    for job in waiting {
        if callers.len() == pass.room.all {
            return;
        }
        let Entry::Vacant(new) = callers.entry(job.caller()) else { continue };
        let of_caller = new.insert(OfCaller::default());
        let Some(request) = job.requests.as_slice().first() else { continue };
        let cost = pass.workload.cost(pass.device, request);
        if let Some(added) = pass.add(request, cost) {
            (job.chosen, job.chosen_cost) = (1, cost);
            of_caller.given = added;
        }
    }
}

/// Whether there are at least this many callers.
fn has_as_many_callers_as<W: Workload>(waiting: &VecDeque<Waiting<W>>, room: usize) -> bool {
    let mut callers: ByCaller<()> = ByCaller::default();
    waiting.len() >= room
        && waiting.iter().any(|job| {
            callers.insert(job.caller(), ());
            callers.len() >= room
        })
}

/// Gives the remaining room to jobs that have more requests, in turns.
pub(crate) fn fill<W: Workload>(
    pass: &mut Gathering<'_, W>,
    waiting: &mut VecDeque<Waiting<W>>,
    callers: &mut ByCaller<OfCaller>,
) {
    let mut open: Vec<usize> = (0..waiting.len()).collect();
    while !open.is_empty() && pass.cost < pass.room.all {
        open.retain(|&index| {
            let job = &mut waiting[index];
            let of_caller = callers.entry(job.caller()).or_default();
            let Some(request) = job.requests.as_slice().get(job.chosen) else { return false };
            if of_caller.given >= pass.room.of_one_caller {
                return false;
            }
            let cost = pass.workload.cost(pass.device, request);
            let Some(added) = pass.add(request, cost) else { return false };
            (job.chosen, job.chosen_cost) = (job.chosen + 1, job.chosen_cost + cost);
            of_caller.given += added;
            true
        });
    }
}

fn fits_each_caller<W: Workload>(waiting: &VecDeque<Waiting<W>>, room: Room) -> bool {
    let mut callers: ByCaller<usize> = ByCaller::default();
    waiting.iter().all(|job| {
        let has = callers.entry(job.caller()).or_default();
        *has += job.cost;
        *has <= room.of_one_caller
    })
}

/// A pass while its requests are chosen.
pub(crate) struct Gathering<'a, W: Workload> {
    workload: &'a W,
    device: &'a W::Device,
    gathered: W::Gathered,
    cost: usize,
    room: Room,
}

impl<'a, W: Workload> Gathering<'a, W> {
    pub(crate) fn new(workload: &'a W, device: &'a W::Device, room: Room) -> Self {
        Self { workload, device, gathered: W::Gathered::default(), cost: 0, room }
    }

    /// Adds a request if it fits; the first always does. Returns the cost that it adds.
    fn add(&mut self, request: &W::Request, cost: usize) -> Option<usize> {
        let left = if self.cost == 0 {
            usize::MAX
        } else if self.cost < self.room.all {
            self.room.all - self.cost
        } else {
            return None;
        };
        let added = self.workload.gather(&mut self.gathered, request, cost, left)?;
        self.cost += added.max(1);
        Some(added)
    }
}
