//! A full pass in slices: what it has come to so far, and how long a slice may be.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use contract::{FullPassPart, FullPassQuery};

use super::lane::Lane;
use super::share::COMPONENTS_OF_A_VECTOR;

/// A slice of a full pass takes at least so long, for it takes a while to begin one.
const SHORTEST_SLICE: Duration = Duration::from_micros(100);
/// And no longer than this, also if nobody else waits: then callers who hung up or whose time is over are dropped.
const LONGEST_SLICE: Duration = Duration::from_millis(10);
/// Vectors of one caller in a full pass while there are others.
pub(super) const VECTORS_BESIDE_OTHERS: usize = 16;

/// What a query of a full pass costs beside others: its part of the arithmetic.
pub(super) fn work(query: &FullPassQuery) -> usize {
    query.scoring().vectors().len() * COMPONENTS_OF_A_VECTOR + query.row_work()
}

/// A full pass under way.
pub(super) struct Slices {
    pub(super) parts: Vec<FullPassPart>,
    /// Which job each of them is for, by [`Running::number`](super::hand_out::Running).
    jobs: Vec<u64>,
    /// The row where the next slice begins.
    pub(super) from: usize,
    pub(super) started: Instant,
    /// All slices so far.
    pub(super) took: Duration,
}

impl Slices {
    /// Of a full pass for the queries that the lane has chosen.
    pub(super) fn new(lane: &Lane<FullPassQuery>, now: Instant) -> Self {
        let (mut parts, mut jobs) = (Vec::new(), Vec::new());
        for running in &lane.waiting {
            parts.extend(running.chosen().cloned().map(FullPassPart::new));
            jobs.resize(parts.len(), running.number);
        }
        Self { parts, jobs, from: 0, started: now, took: Duration::ZERO }
    }

    /// What is left of it for the jobs that the lane still has, if anything is.
    pub(super) fn of(mut self, lane: &Lane<FullPassQuery>) -> Option<Self> {
        let jobs: HashSet<u64> = lane.waiting.iter().map(|running| running.number).collect();
        let parts = self.parts.into_iter().zip(self.jobs);
        (self.parts, self.jobs) = parts.filter(|(_, job)| jobs.contains(job)).unzip();
        (!self.parts.is_empty()).then_some(self)
    }

    /// Whether a slice that began then goes on: for as long as a search pass lately took, and then until somebody
    /// else comes.
    pub(super) fn go_on(
        began: Instant,
        search_took: Duration,
        has_arrived: impl Fn() -> bool + Sync,
    ) -> impl Fn() -> bool + Sync {
        let shortest = search_took.clamp(SHORTEST_SLICE, LONGEST_SLICE);
        move || {
            let took = began.elapsed();
            took < shortest || (took < LONGEST_SLICE && !has_arrived())
        }
    }
}
