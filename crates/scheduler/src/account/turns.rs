//! Whose turn it is, where callers share something that takes time.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::time::{Duration, Instant};

/// Start-time fair queueing (Goyal, Vin and Cheng 1996): each caller has a clock, which advances by
/// the time that is spent on it, and the caller furthest behind goes first. A new or returning
/// caller starts at the clock of those being served: nobody saves up time by asking for nothing.
#[derive(Debug, Default)]
pub struct Turns {
    /// Nanoseconds, by caller. Those behind `now` are forgotten now and then.
    clocks: ByCaller<u64>,
    now: u64,
    /// How many clocks were left when some were last forgotten.
    kept: usize,
}

impl Turns {
    /// Where a caller's clock stands. The lowest comes first.
    pub fn clock(&self, caller: u64) -> u64 {
        self.clocks.get(&caller).map_or(self.now, |&clock| clock.max(self.now))
    }

    /// A caller with this clock has its turn now.
    pub fn begin(&mut self, clock: u64) {
        self.now = self.now.max(clock);
    }

    /// Charges a caller for the time that was spent on it.
    pub fn charge(&mut self, caller: u64, time: Duration) {
        let nanoseconds = u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
        let clock = self.clock(caller).saturating_add(nanoseconds);
        self.clocks.insert(caller, clock);
        // All clocks may be ahead. So the next look at all of them waits until there are twice as
        // many: each charge pays for at most two of them, however many callers there are.
        const MANY: usize = 4096;
        if self.clocks.len() > MANY.max(2 * self.kept) {
            let now = self.now;
            self.clocks.retain(|_, &mut clock| clock > now);
            self.kept = self.clocks.len();
        }
    }
}

/// Whether there is more than one caller.
#[derive(Debug, Default)]
pub struct Contention {
    last: Option<u64>,
    /// When a request last came from another caller than the one before it.
    changed: Option<Instant>,
}

impl Contention {
    /// A caller that waits for its answer before it asks again still counts.
    const REMEMBERED: Duration = Duration::from_secs(1);

    /// A caller asks; `None` is a probe.
    pub fn note(&mut self, caller: Option<u64>, now: Instant) {
        if caller.is_some() && caller != self.last {
            // The first caller of all is alone.
            if self.last.is_some() {
                self.changed = Some(now);
            }
            self.last = caller;
        }
    }

    /// Whether there were two callers recently.
    pub fn is_there(&self, now: Instant) -> bool {
        self.changed.is_some_and(|changed| now.duration_since(changed) < Self::REMEMBERED)
    }
}

/// A map by [`Account::id`](super::Account::id), which clients can't choose.
pub type ByCaller<T> = HashMap<u64, T, BuildHasherDefault<ById>>;

/// Spreads ids that count up: one multiplication.
#[derive(Debug, Default)]
pub struct ById(u64);

impl Hasher for ById {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, _: &[u8]) {
        unreachable!("ids are u64")
    }

    fn write_u64(&mut self, id: u64) {
        // Fibonacci hashing (Knuth, volume 3, section 6.4).
        self.0 = id.wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Serves the first caller, n times; returns how often each was served.
    fn served(turns: &mut Turns, callers: &[(u64, u64)], times: usize) -> Vec<usize> {
        let mut served = vec![0; callers.len()];
        for _ in 0..times {
            let first = (0..callers.len()).min_by_key(|&i| turns.clock(callers[i].0)).unwrap();
            let (caller, takes) = callers[first];
            turns.begin(turns.clock(caller));
            turns.charge(caller, Duration::from_millis(takes));
            served[first] += 1;
        }
        served
    }

    #[test]
    fn callers_get_the_same_time_whatever_they_ask_for() {
        let found = served(&mut Turns::default(), &[(1, 1), (2, 10), (3, 5)], 1300);
        assert!(found[0].abs_diff(1000) <= 10 && found[1].abs_diff(100) <= 2, "{found:?}");
        assert!(found[2].abs_diff(200) <= 3, "{found:?}");
    }

    #[test]
    fn nobody_saves_up_time() {
        let mut turns = Turns::default();
        served(&mut turns, &[(1, 10)], 100);
        assert_eq!(served(&mut turns, &[(1, 10), (2, 10)], 10), [5, 5], "2 is new");
        served(&mut turns, &[(2, 10)], 100);
        let found = served(&mut turns, &[(1, 10), (2, 10)], 10);
        assert!(found[0] <= 6, "1 was away: {found:?}");
    }

    #[test]
    fn one_caller_is_no_contention_and_two_are_for_a_while() {
        let (mut contention, now) = (Contention::default(), Instant::now());
        for _ in 0..3 {
            contention.note(Some(1), now);
            contention.note(None, now);
            assert!(!contention.is_there(now));
        }
        contention.note(Some(2), now);
        assert!(contention.is_there(now + Duration::from_millis(999)));
        assert!(!contention.is_there(now + Duration::from_millis(1000)));
    }

    #[test]
    fn who_is_long_past_is_forgotten() {
        let mut turns = Turns::default();
        for caller in 0..100_000 {
            turns.begin(turns.clock(caller));
            turns.charge(caller, Duration::from_nanos(1));
            turns.begin(turns.clock(caller));
        }
        assert!(turns.clocks.len() <= 4097, "{}", turns.clocks.len());
    }

    #[test]
    fn a_charge_costs_the_same_however_many_callers_are_ahead() {
        let time_with = |callers: u64| {
            let mut turns = Turns::default();
            let charge = |turns: &mut Turns, caller| turns.charge(caller, Duration::from_millis(1));
            (0..callers).for_each(|caller| charge(&mut turns, caller));
            let began = Instant::now();
            (0..1000).for_each(|caller| charge(&mut turns, caller));
            began.elapsed()
        };
        let times = |callers| (0..5).map(|_| time_with(callers)).min().unwrap();
        let (few, many) = (times(1000), times(5000));
        assert!(many < 50 * few, "1000 callers: {few:?}, 5000: {many:?}");
    }
}
