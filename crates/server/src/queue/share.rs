//! How the waiting jobs share a pass.
//!
//! A search pass has room for so many queries, and they share it by max-min fairness: every job gets as many
//! as it has left, but no more than a level that all have in common, and the level is as high as the room
//! allows. So a batch of a thousand gets what others leave it: all of the room if it is alone, and never so
//! much that a single query has to wait for the next pass while no more jobs wait than the pass has room for.
//!
//! A full pass has room for so many different vectors. The jobs take turns, a query each, until nothing more
//! fits; whose turn it would be then is first in the next pass.
//!
//! In both, a job that a pass leaves unfinished goes behind those that the pass had no room for
//! ([`Lane::finish`](super::lane::Lane::finish)). So where more jobs wait than fit, they take turns as well.

use std::collections::{HashSet, VecDeque};

use model_store::{FullPassQuery, QueryVector, Row};

use super::hand_out::Running;

/// Different vectors that one full pass compares the rows with, at most: past this the arithmetic, not the
/// table, takes the time, and a longer pass would only keep searches waiting. One query with more takes a
/// pass of its own.
const FULL_PASS_VECTORS: usize = 64;

/// What each job gets of a pass's room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Level {
    /// The most that all get.
    pub(super) share: usize,
    /// So many of those with more left, first come first, get one more.
    pub(super) more: usize,
}

impl Level {
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

/// Gives each job its part of the next full pass: at least one query to the first. Those that get something
/// are the first so many.
pub(super) fn share_full_pass(jobs: &mut VecDeque<Running<FullPassQuery>>) {
    let mut room = VectorRoom::default();
    let mut open: Vec<usize> = Vec::new();
    let mut is_full = false;
    for (place, running) in jobs.iter_mut().enumerate() {
        running.in_pass = 0;
        is_full = is_full || !room.take(&running.job.queries[running.done()]);
        if !is_full {
            running.in_pass = 1;
            open.push(place);
        }
    }
    while !open.is_empty() {
        open.retain(|&place| {
            let running = &mut jobs[place];
            let next = running.job.queries.get(running.done() + running.in_pass);
            let fits = next.is_some_and(|query| room.take(query));
            running.in_pass += usize::from(fits);
            fits
        });
    }
}

/// The vectors of a full pass. Equal rows count once, for they are compared once.
#[derive(Default)]
struct VectorRoom {
    rows: HashSet<Row>,
    others: usize,
}

impl VectorRoom {
    /// Takes a query in, if it fits; the first always does.
    fn take(&mut self, query: &FullPassQuery) -> bool {
        let is_first = self.rows.is_empty() && self.others == 0;
        let (mut new, mut others) = (HashSet::new(), 0);
        for asked in query.scoring().vectors() {
            match &asked.vector {
                QueryVector::Row(row) if !self.rows.contains(row) => drop(new.insert(*row)),
                QueryVector::Row(_) => {}
                QueryVector::Components(_) => others += 1,
            }
        }
        let after = self.rows.len() + self.others + new.len() + others;
        let fits = is_first || after <= FULL_PASS_VECTORS;
        if fits {
            self.rows.extend(new);
            self.others += others;
        }
        fits
    }
}
