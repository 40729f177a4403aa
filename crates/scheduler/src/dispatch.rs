//! Whose turn it is: all lanes, and the clocks of all callers. Workers lock this once before and once after each slice;
//! callers never do.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::account::{Contention, Turns};
use crate::error::SubmitError;
use crate::lane::{AnyLane, Filled};
use crate::pass::AnyPass;
use crate::shared::LaneShared;

/// A slice takes at least so long, for it takes a while to begin one.
const SHORTEST_SLICE: Duration = Duration::from_micros(100);
/// And no longer than this, also if nobody else waits: then callers who hung up or whose time is over are dropped.
pub(crate) const LONGEST_SLICE: Duration = Duration::from_millis(10);

pub(crate) struct Dispatch<D: ?Sized> {
    lanes: Vec<Box<dyn AnyLane<D>>>,
    turns: Turns,
    contention: Contention,
    /// The lane that was served last: between two callers whose turn it is, the one in a later lane comes first.
    last: usize,
    /// How many callers had hung up when their jobs were last looked for.
    hung_up: u64,
}

/// What a worker is to do next.
pub(crate) struct Turn {
    pub(crate) lane: usize,
    /// Whether others wait: then the callers are charged for their time.
    pub(crate) is_contended: bool,
    /// For how long a slice goes on even if others come.
    pub(crate) slice: Duration,
}

impl<D: ?Sized> Dispatch<D> {
    pub(crate) fn new(lanes: Vec<Box<dyn AnyLane<D>>>) -> Self {
        let (turns, contention) = (Turns::default(), Contention::default());
        Self { lanes, turns, contention, last: 0, hung_up: 0 }
    }

    pub(crate) fn inboxes(&self) -> Vec<Arc<dyn Filled>> {
        self.lanes.iter().map(|lane| lane.inbox()).collect()
    }

    pub(crate) fn shared_lanes(&self) -> Vec<Arc<LaneShared>> {
        self.lanes.iter().map(|lane| lane.shared()).collect()
    }

    /// Takes in what has arrived, and drops what nobody waits for any more. `hung_up`: how many callers have hung up
    /// so far.
    pub(crate) fn collect(&mut self, device: &D, now: Instant, hung_up: u64) {
        let somebody_hung_up = std::mem::replace(&mut self.hung_up, hung_up) != hung_up;
        for lane in &mut self.lanes {
            lane.collect(device, &mut self.contention);
            lane.drop_expired(now, somebody_hung_up);
        }
    }

    /// Whether no job waits for a pass.
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_empty())
    }

    /// Drops jobs that nobody waits for, while there is no device.
    pub(crate) fn drop_expired(&mut self, now: Instant) {
        self.lanes.iter_mut().for_each(|lane| lane.drop_expired(now, true));
    }

    /// The next slice of a worker that has these passes under way, one for each lane at most; begins a pass where the
    /// turn is a lane's that has none. `None` if nothing waits.
    pub(crate) fn next(
        &mut self,
        device: &D,
        under_way: &mut [Option<Box<dyn AnyPass<D>>>],
        now: Instant,
    ) -> Option<Turn> {
        let lanes = self.lanes.len();
        let has_work = |&lane: &usize| under_way[lane].is_some() || !self.lanes[lane].is_empty();
        // From the lane after the last one on, so that of equals that one comes first.
        let in_turn = (1..=lanes).map(|step| (self.last + step) % lanes);
        let waiting: Vec<usize> = in_turn.filter(has_work).collect();
        let lane = match waiting[..] {
            [] => return None,
            // By far the most common, and looking at all clocks takes a while.
            [only] => only,
            _ => {
                let clock = |lane: usize| match &under_way[lane] {
                    Some(pass) => pass.first_clock(&self.turns),
                    None => self.lanes[lane].first_clock(&self.turns).unwrap_or(u64::MAX),
                };
                let clocks = waiting.iter().map(|&lane| (clock(lane), lane));
                let (first, lane) = clocks.min_by_key(|(clock, _)| *clock)?;
                self.turns.begin(first);
                lane
            }
        };
        self.last = lane;
        if under_way[lane].is_none() {
            let has_others = self.contention.is_there(now);
            under_way[lane] = Some(self.lanes[lane].begin(device, has_others, now));
        }
        let others = |other: &usize| *other != lane;
        let slice = (0..lanes).filter(others).map(|other| self.lanes[other].slice_took()).min();
        Some(Turn {
            lane,
            is_contended: waiting.len() > 1 || !self.lanes[lane].is_empty(),
            slice: slice.unwrap_or(LONGEST_SLICE).clamp(SHORTEST_SLICE, LONGEST_SLICE),
        })
    }

    /// After a slice of a pass, or all of it, that took so long.
    pub(crate) fn note_slice(&mut self, turn: &Turn, pass: &dyn AnyPass<D>, took: Duration) {
        self.lanes[turn.lane].note_slice(took);
        // A pass that is over in one slice and kept nobody waiting is nobody's debt: there nobody has more than its
        // share.
        if turn.is_contended || !pass.had_one_slice() || took >= LONGEST_SLICE {
            pass.charge(&mut self.turns, took);
        }
    }

    /// Takes back the jobs of a pass that is not run to its end.
    pub(crate) fn put_back(&mut self, lane: usize, pass: Box<dyn AnyPass<D>>) {
        self.lanes[lane].put_back(pass);
    }

    /// Tells callers that wait and whose time is over so.
    pub(crate) fn tell_late(&mut self, now: Instant) {
        self.lanes.iter_mut().for_each(|lane| lane.tell_late(now));
    }

    /// All that wait hear this; if `for_good`, whoever asks from now on is refused as well.
    pub(crate) fn fail_all(&mut self, error: SubmitError, for_good: bool) {
        self.lanes.iter_mut().for_each(|lane| lane.fail_all(error, for_good));
    }
}
