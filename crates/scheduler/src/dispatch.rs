//! Whose turn it is: all lanes, and the clocks of all callers. Its lock is for workers, once before
//! and once after each slice, and for the timer; callers never take it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::account::{Contention, Turns};
use crate::error::SubmitError;
use crate::lane_state::{AnyLane, Back};
use crate::pass::{AnyPass, Lent};
use crate::shared::LaneShared;

/// The minimum time of a slice, because beginning a slice takes time too.
const SHORTEST_SLICE: Duration = Duration::from_micros(100);
/// A pass that has taken less time than this takes turns with other lanes, whatever its callers
/// have used: otherwise one that has begun would be in the way of others of its lane.
const SHORT_PASS: Duration = Duration::from_micros(2500);
/// A lane whose last pass was short may begin the next one although its callers' clocks are ahead
/// of others by up to this many nanoseconds. Clocks of callers who ask for the same kinds of
/// requests drift apart by chance; without this, those that are ahead would wait for all others.
const MAX_AHEAD: u64 = 20_000_000;
/// The maximum rest of a lane, in times of its last pass.
const MAX_REST: usize = 3;
/// The maximum time of a slice, even if nobody else waits: between slices, jobs of callers that
/// hung up or are late are dropped.
pub(crate) const LONGEST_SLICE: Duration = Duration::from_millis(10);

pub(crate) struct Dispatch<D: ?Sized> {
    lanes: Vec<Box<dyn AnyLane<D>>>,
    /// How long recent slices of each lane took, on average.
    slices: Vec<Duration>,
    rests: Vec<Rest>,
    turns: Turns,
    contention: Contention,
    /// The lane that was served last: on a tie, the next lane after it goes first.
    last: usize,
    /// How many callers had hung up when the lanes were last checked for them.
    hung_up: u64,
}

/// A lane since its last pass. A pass takes about as long for few requests as for many, so after it
/// the lane rests: requests gather for the next one while other lanes have their turns. It rests
/// for as long as the pass took, times the callers that wait in other lanes for each that waits in
/// it, [`MAX_REST`] at most: so their share of the device is not less than its callers are due. Few
/// callers elsewhere are no reason to rest.
#[derive(Debug, Clone, Copy, Default)]
struct Rest {
    /// The time that the last pass took.
    pass: Duration,
    /// The time of other lanes' slices since then.
    others: Duration,
}

impl Rest {
    /// `callers`: those who wait in the lane, and elsewhere. They are counted only if that decides.
    fn is_over(&self, callers: impl FnOnce() -> (usize, usize)) -> bool {
        if self.others >= self.pass * MAX_REST as u32 {
            return true;
        }
        let (own, elsewhere) = callers();
        let times = elsewhere / own.max(1);
        times < 2 || self.others >= self.pass * times.min(MAX_REST) as u32
    }
}

/// What a worker does next.
#[derive(Debug, Clone)]
pub(crate) struct Turn {
    pub(crate) lane: usize,
    /// Whether others wait: then callers are charged for the slice.
    pub(crate) is_contended: bool,
    /// Whether requests of other lanes wait.
    pub(crate) beside_others: bool,
    /// How long the slice goes on even if others arrive.
    pub(crate) slice: Duration,
}

impl<D: ?Sized> Dispatch<D> {
    pub(crate) fn new(lanes: Vec<Box<dyn AnyLane<D>>>) -> Self {
        let slices = vec![Duration::from_millis(1); lanes.len()];
        let (turns, contention) = (Turns::default(), Contention::default());
        let rests = vec![Rest::default(); lanes.len()];
        Self { lanes, slices, rests, turns, contention, last: 0, hung_up: 0 }
    }

    pub(crate) fn shared_lanes(&self) -> Vec<Arc<LaneShared>> {
        self.lanes.iter().map(|lane| lane.shared()).collect()
    }

    /// Takes in what has arrived, and drops what nobody waits for any more. `hung_up`: how many
    /// callers have hung up so far.
    pub(crate) fn collect(&mut self, device: &D, now: Instant, hung_up: u64) {
        let somebody_hung_up = std::mem::replace(&mut self.hung_up, hung_up) != hung_up;
        for lane in &mut self.lanes {
            lane.collect(device, &mut self.contention);
            lane.drop_expired(now, somebody_hung_up);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.is_empty())
    }

    /// Drops jobs that nobody waits for, while there is no device.
    pub(crate) fn drop_expired(&mut self, now: Instant) {
        self.lanes.iter_mut().for_each(|lane| lane.drop_expired(now, true));
    }

    /// Chooses the next slice of a worker that has these passes under way, at most one for each
    /// lane. Begins a pass if the chosen lane has none and the worker may begin one. `None` if
    /// nothing waits for this worker.
    pub(crate) fn next(
        &mut self,
        device: &D,
        under_way: &mut [Option<Box<dyn AnyPass<D>>>],
        may_begin: bool,
        now: Instant,
    ) -> Option<Turn> {
        let lanes = self.lanes.len();
        let has_work = |&lane: &usize| {
            under_way[lane].is_some() || (may_begin && !self.lanes[lane].is_empty())
        };
        // The lane after the last one comes first, so that it wins a tie.
        let in_turn = (1..=lanes).map(|step| (self.last + step) % lanes);
        let waiting: Vec<usize> = in_turn.filter(has_work).collect();
        let lane = match waiting[..] {
            [] => return None,
            // By far the most common case, and it needs no clocks.
            [only] => only,
            _ => {
                let clock = |lane: usize| match &under_way[lane] {
                    Some(pass) => pass.first_clock(&self.turns),
                    None => self.lanes[lane].first_clock(&self.turns).unwrap_or(u64::MAX),
                };
                let clocks: Vec<u64> = waiting.iter().map(|&lane| clock(lane)).collect();
                let first = *clocks.iter().min()?;
                self.turns.begin(first);
                let callers = |lane: usize| {
                    let callers: Vec<usize> =
                        self.lanes.iter().map(|lane| lane.callers()).collect();
                    (callers[lane], callers.iter().sum::<usize>() - callers[lane])
                };
                let has_turn = |&(lane, clock): &(usize, u64)| {
                    let rest = &self.rests[lane];
                    match &under_way[lane] {
                        // Its callers were charged for its first slice, and others wait behind it.
                        Some(pass) => clock == first || pass.took() < SHORT_PASS,
                        None if clock == 0 => true,
                        None => {
                            let is_short = rest.pass < SHORT_PASS;
                            let latest =
                                if is_short { first.saturating_add(MAX_AHEAD) } else { first };
                            clock <= latest && rest.is_over(|| callers(lane))
                        }
                    }
                };
                let mut with_clocks = waiting.iter().copied().zip(clocks);
                let furthest_behind = with_clocks.clone().find(|(_, clock)| *clock == first);
                with_clocks.find(has_turn).or(furthest_behind)?.0
            }
        };
        self.last = lane;
        if under_way[lane].is_none() {
            let has_others = self.contention.is_there(now);
            under_way[lane] = Some(self.lanes[lane].begin(device, has_others, now));
        }
        let others = |other: &usize| *other != lane;
        let slice = (0..lanes).filter(others).map(|other| self.slices[other]).min();
        Some(Turn {
            lane,
            is_contended: waiting.len() > 1 || !self.lanes[lane].is_empty(),
            beside_others: waiting.len() > 1,
            slice: slice.unwrap_or(LONGEST_SLICE).clamp(SHORTEST_SLICE, LONGEST_SLICE),
        })
    }

    /// Notes the time of a slice of a pass, and charges its callers.
    pub(crate) fn note_slice(&mut self, turn: &Turn, pass: &dyn AnyPass<D>, took: Duration) {
        let average = &mut self.slices[turn.lane];
        *average = (*average * 7 + took) / 8;
        self.rests.iter_mut().for_each(|rest| rest.others += took);
        self.rests[turn.lane] = Rest { pass: pass.took(), others: Duration::ZERO };
        // A pass that is over in one slice and kept nobody waiting is not charged: nobody got more
        // than its share.
        if turn.is_contended || !pass.had_one_slice() || took >= LONGEST_SLICE {
            if !turn.beside_others {
                // `next` chose without clocks. Its callers have used time that no other lane
                // wanted, so whoever comes next starts where they are; and clocks that are behind
                // can be forgotten.
                self.turns.begin(pass.first_clock(&self.turns));
            }
            pass.charge(&mut self.turns, took);
        }
    }

    pub(crate) fn take_back(&mut self, jobs: Box<dyn Lent>, why: Back) {
        self.lanes[jobs.lane()].take_back(jobs, why);
    }

    pub(crate) fn answer_expired(&mut self, now: Instant) {
        self.lanes.iter_mut().for_each(|lane| lane.answer_expired(now));
    }

    pub(crate) fn fail_all(&mut self, error: SubmitError, for_good: bool) {
        self.lanes.iter_mut().for_each(|lane| lane.fail_all(error, for_good));
    }
}
