//! How the waiting jobs share a pass.
//!
//! A search pass has room for so much, counted in plain queries, and the callers share it by max-min fairness: every
//! caller gets as much as it has left, but no more than a level that all have in common, and the level is as high as
//! the room allows. A caller's jobs share what it gets in the same way. So a batch of a thousand gets what others
//! leave it: all of the room if it is alone, and never so much that a single query has to wait for the next pass
//! while no more callers wait than the pass has room for. While there are other callers, one gets no more than a part
//! of the room ([`part_of_one`]): a pass can't be stopped, and whoever comes meanwhile waits for it.
//!
//! A full pass has room for n different vectors, and for as much arithmetic beside them. The callers take turns,
//! a query each, until nothing more fits.
//!
//! In both, a job that a pass leaves unfinished goes behind those that the pass had no room for
//! ([`Lane::finish`]). So where more jobs wait than fit, they take turns as well.

use std::collections::HashSet;

use contract::{FullPassQuery, Query, QueryVector, Row};

use super::hand_out::Running;
use super::job::Ask;
use super::lane::Lane;
use crate::account::ByCaller;

/// Different vectors that one full pass compares the rows with, at most: past this the arithmetic, not the
/// table, takes the time. One query with more takes a pass of its own.
const FULL_PASS_VECTORS: usize = 64;

/// What a vector counts for beside [`FullPassQuery::row_work`], which is counted in components.
pub(super) const COMPONENTS_OF_A_VECTOR: usize = 128;

/// What one caller gets of a pass's room at most while there are others. A few queries more hardly make it longer.
pub(super) fn part_of_one(room: usize) -> usize {
    (room / 8).max(8)
}

/// What each caller, or each job of one, gets of some room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    /// The most that all get.
    pub(super) share: usize,
    /// So many of those with more left, first come first, get one more.
    pub(super) more: usize,
}

impl Level {
    /// For as much as wants some of `room`, which may be less than all of it.
    fn of_any(room: usize, left: &mut [usize]) -> Self {
        if left.iter().sum::<usize>() <= room {
            return Self { share: usize::MAX, more: 0 };
        }
        Self::of(room, left)
    }

    /// For jobs with so many queries left each, more than `room` in all. Sorts them.
    pub(super) fn of(mut room: usize, left: &mut [usize]) -> Self {
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

    /// What a job with so many left gets; to be asked in the order of the jobs.
    pub(super) fn take(&mut self, left: usize) -> usize {
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

/// What the jobs of one caller have left, in their order, and how they share what it gets.
#[derive(Default)]
struct OfCaller {
    left: Vec<usize>,
    level: Option<Level>,
}

impl Lane<Query> {
    /// Gives the next pass, which has so much room, queries of those that wait. Each caller gets no more than
    /// `most_of_one`. Whether all that wait go into it.
    pub(super) fn choose(
        &mut self,
        room: usize,
        most_of_one: usize,
        cost: impl Fn(&Query) -> usize,
    ) -> bool {
        let all: usize = self.waiting.iter().map(|running| running.cost_left).sum();
        if all <= room && (all <= most_of_one || self.nobody_has_more_than(most_of_one)) {
            for running in &mut self.waiting {
                running.in_pass = running.left();
            }
            return true;
        }
        let mut callers: ByCaller<OfCaller> = ByCaller::default();
        for running in &self.waiting {
            callers.entry(caller(running)).or_default().left.push(running.cost_left);
        }
        let wanted = |of_caller: &OfCaller| of_caller.left.iter().sum::<usize>().min(most_of_one);
        let mut all_wanted: Vec<usize> = callers.values().map(wanted).collect();
        let mut of_all = Level::of_any(room, &mut all_wanted);
        let mut spent = 0;
        for running in &mut self.waiting {
            let of_caller = callers.entry(caller(running)).or_default();
            let level = of_caller.level.get_or_insert_with(|| {
                let gets = of_all.take(of_caller.left.iter().sum::<usize>().min(most_of_one));
                Level::of_any(gets, &mut of_caller.left)
            });
            // The first query of a job may cost more than the job gets, but not once the room is used up.
            let gets = if spent < room { level.take(running.cost_left) } else { 0 };
            let (mut taken, mut in_pass) = (0, 0);
            for query in running.job.queries[running.done()..].iter().take(gets) {
                let more = cost(query);
                if taken > 0 && taken + more > gets {
                    break;
                }
                (taken, in_pass) = (taken + more, in_pass + 1);
            }
            running.in_pass = in_pass;
            spent += taken;
        }
        false
    }

    fn nobody_has_more_than(&self, most_of_one: usize) -> bool {
        let mut callers: ByCaller<usize> = ByCaller::default();
        self.waiting.iter().all(|running| {
            let has = callers.entry(caller(running)).or_default();
            *has += running.cost_left;
            *has <= most_of_one
        })
    }
}

/// Whose a job is. All probes are one caller's.
fn caller<Q: Ask>(running: &Running<Q>) -> u64 {
    running.job.caller().unwrap_or(u64::MAX)
}

impl Lane<FullPassQuery> {
    /// Gives the next full pass the queries that fit together: at least one. No caller gets more than n
    /// vectors' room.
    pub(super) fn choose(&mut self, vectors_of_one: usize) {
        let most_of_one = vectors_of_one * COMPONENTS_OF_A_VECTOR;
        let (mut room, mut callers) = (VectorRoom::default(), ByCaller::<usize>::default());
        let mut open: Vec<usize> = (0..self.waiting.len()).collect();
        for running in &mut self.waiting {
            running.in_pass = 0;
        }
        while !open.is_empty() {
            open.retain(|&place| {
                let running = &mut self.waiting[place];
                let of_caller = callers.entry(caller(running)).or_default();
                let next = running.job.queries.get(running.done() + running.in_pass);
                let may = *of_caller == 0 || *of_caller < most_of_one;
                let taken = next.filter(|_| may).and_then(|query| room.take(query));
                *of_caller += taken.unwrap_or(0);
                running.in_pass += usize::from(taken.is_some());
                taken.is_some()
            });
        }
    }
}

/// The work of a full pass, in components for each row.
#[derive(Default)]
struct VectorRoom {
    rows: HashSet<Row>,
    taken: usize,
}

impl VectorRoom {
    /// Takes a query in, if it fits; the first always does. What it adds: equal rows are compared once, but each
    /// query has a formula and ranks of its own.
    fn take(&mut self, query: &FullPassQuery) -> Option<usize> {
        let vectors = query.scoring().vectors().iter().map(|asked| &asked.vector);
        let new: Vec<Option<Row>> = vectors
            .filter_map(|vector| match vector {
                QueryVector::Row(row) if self.rows.contains(row) => None,
                QueryVector::Row(row) => Some(Some(*row)),
                QueryVector::Components(_) => Some(None),
            })
            .collect();
        let adds = new.len() * COMPONENTS_OF_A_VECTOR + query.row_work();
        if self.taken > 0 && self.taken + adds > FULL_PASS_VECTORS * COMPONENTS_OF_A_VECTOR {
            return None;
        }
        self.rows.extend(new.into_iter().flatten());
        self.taken += adds;
        Some(adds)
    }
}
