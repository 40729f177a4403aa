//! What the queue and its engine have done so far, for whoever watches the service.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use super::engine_state::EngineState;

/// Upper bounds, inclusive, of [`LaneStatistics::pass_seconds`], in seconds. One more bucket holds what is
/// above the last.
pub const PASS_SECONDS_BOUNDS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Upper bounds, inclusive, of [`LaneStatistics::batch_sizes`], in queries. One more bucket holds what is above
/// the last.
pub const BATCH_SIZE_BOUNDS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// What was counted since the start, and what waits now.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueStatistics {
    /// Of searches.
    pub searches: LaneStatistics,
    /// Of full passes.
    pub full_passes: LaneStatistics,
    /// Places that both lanes share.
    pub capacity_places: u32,
    /// Jobs refused because the queue was full.
    pub refused_full: u64,
    /// Jobs refused because there was no working engine.
    pub refused_without_engine: u64,
    /// Jobs whose callers were told that their deadline had passed.
    pub deadline_passed: u64,
    /// Jobs whose callers went without waiting for an answer.
    pub hung_up: u64,
    /// Jobs that failed with their pass or with the engine.
    pub failed: u64,
    /// Engines made after the first.
    pub engine_restarts: u64,
    /// How the engine is.
    pub engine_state: EngineState,
    /// What the engines counted, summed over all that there were: at most 250 ms old while there is work.
    pub engine_counters: Vec<(&'static str, u64)>,
}

/// One lane's part of [`QueueStatistics`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneStatistics {
    /// Passes that answered.
    pub passes: u64,
    /// Queries that they answered: the sum of all batch sizes.
    pub queries: u64,
    /// Passes by their number of queries, not cumulative; see [`BATCH_SIZE_BOUNDS`].
    pub batch_sizes: [u64; BATCH_SIZE_BOUNDS.len() + 1],
    /// Passes by their time, not cumulative; see [`PASS_SECONDS_BOUNDS`].
    pub pass_seconds: [u64; PASS_SECONDS_BOUNDS.len() + 1],
    /// The sum of their times, in seconds.
    pub pass_seconds_sum: f64,
    /// What their queries were estimated to cost: of searches in plain queries
    /// ([`Engine::search_cost`](contract::Engine::search_cost)), of full passes in components of each row.
    pub work: u64,
    /// Places taken now, by jobs that wait or are in work.
    pub places_taken: u32,
}

/// Where it is counted.
#[derive(Default)]
pub(super) struct Statistics {
    pub(super) searches: LaneCounters,
    pub(super) full_passes: LaneCounters,
    /// Seldom counted, by any thread.
    pub(super) deadline_passed: AtomicU64,
    /// Seldom counted, by any thread.
    pub(super) failed: AtomicU64,
    pub(super) engine_restarts: AtomicU64,
    engine: Mutex<EngineCounters>,
}

/// Only the engine thread writes here, each pass; apart from what callers write, so that they don't take the
/// cache line from each other.
#[derive(Default)]
#[repr(align(128))]
pub(super) struct LaneCounters {
    queries: AtomicU64,
    nanoseconds: AtomicU64,
    work: AtomicU64,
    batch_sizes: [AtomicU64; BATCH_SIZE_BOUNDS.len() + 1],
    pass_seconds: [AtomicU64; PASS_SECONDS_BOUNDS.len() + 1],
}

#[derive(Default)]
struct EngineCounters {
    refreshed: Option<Instant>,
    now: Vec<(&'static str, u64)>,
    /// Of engines that are no more.
    before: Vec<(&'static str, u64)>,
}

/// Of the one thread that writes it: no other thread's addition can be lost.
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Ordering::Relaxed) + number, Ordering::Relaxed);
}

fn all<const N: usize>(counters: &[AtomicU64; N]) -> [u64; N] {
    std::array::from_fn(|i| counters[i].load(Ordering::Relaxed))
}

impl LaneCounters {
    /// For the engine thread: a pass of so many queries that took so long.
    pub(super) fn count(&self, queries: usize, took: Duration) {
        let seconds = took.as_secs_f64();
        let size = BATCH_SIZE_BOUNDS.partition_point(|&bound| bound < queries as u64);
        let time = PASS_SECONDS_BOUNDS.partition_point(|&bound| bound < seconds);
        add(&self.queries, queries as u64);
        add(&self.nanoseconds, took.as_nanos() as u64);
        add(&self.batch_sizes[size], 1);
        add(&self.pass_seconds[time], 1);
    }

    /// For the engine thread: what the queries of a pass were estimated to cost.
    pub(super) fn count_work(&self, work: usize) {
        add(&self.work, work as u64);
    }

    pub(super) fn snapshot(&self, places_taken: u32) -> LaneStatistics {
        let batch_sizes = all(&self.batch_sizes);
        LaneStatistics {
            passes: batch_sizes.iter().sum(),
            queries: self.queries.load(Ordering::Relaxed),
            batch_sizes,
            pass_seconds: all(&self.pass_seconds),
            pass_seconds_sum: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            work: self.work.load(Ordering::Relaxed),
            places_taken,
        }
    }
}

impl Statistics {
    /// For the engine thread: asks the engine for its counters, if it was not asked lately.
    pub(super) fn refresh(
        &self,
        now: Instant,
        counters: impl FnOnce() -> Vec<(&'static str, u64)>,
    ) {
        const EVERY: Duration = Duration::from_millis(250);
        let mut engine = self.engine.lock().expect("nothing panics while it holds this lock");
        if engine.refreshed.is_none_or(|last| now.saturating_duration_since(last) >= EVERY) {
            engine.refreshed = Some(now);
            // An engine that panics here would leave the lock poisoned.
            drop(engine);
            let now = counters();
            self.engine.lock().expect("nothing panics while it holds this lock").now = now;
        }
    }

    /// For the engine thread: the engine goes to sleep, or away; what it counted last.
    pub(super) fn note(&self, counters: Vec<(&'static str, u64)>) {
        self.engine.lock().expect("nothing panics while it holds this lock").now = counters;
    }

    /// For the engine thread: the engine is no more; another one counts from 0 again.
    pub(super) fn engine_is_dropped(&self) {
        let mut engine = self.engine.lock().expect("nothing panics while it holds this lock");
        let before = engine.sum();
        *engine = EngineCounters { before, ..EngineCounters::default() };
    }

    /// What the engines counted.
    pub(super) fn engine_counters(&self) -> Vec<(&'static str, u64)> {
        self.engine.lock().expect("nothing panics while it holds this lock").sum()
    }
}

impl EngineCounters {
    fn sum(&self) -> Vec<(&'static str, u64)> {
        let mut sum = self.before.clone();
        for &(name, count) in &self.now {
            match sum.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known += count,
                None => sum.push((name, count)),
            }
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passes_are_counted_in_the_buckets_of_their_size_and_time() {
        let counters = LaneCounters::default();
        let ms = Duration::from_millis;
        for (queries, took) in
            [(1, ms(1)), (2, ms(2)), (3, ms(0)), (1024, ms(10_000)), (1025, ms(10_001))]
        {
            counters.count(queries, took);
            counters.count_work(10 * queries);
        }
        let found = counters.snapshot(7);
        assert_eq!((found.passes, found.queries, found.places_taken), (5, 2055, 7));
        assert_eq!(found.work, 20_550);
        assert_eq!(found.batch_sizes, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        let times = [1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
        assert_eq!(found.pass_seconds, times);
        assert!((found.pass_seconds_sum - 20.004).abs() < 1e-9);
    }

    #[test]
    fn an_engine_is_asked_four_times_a_second_and_its_counts_outlive_it() {
        let statistics = Statistics::default();
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        statistics.refresh(at(0), || vec![("passes", 1)]);
        statistics.refresh(at(249), || panic!("too soon"));
        statistics.refresh(at(250), || vec![("passes", 5), ("rows", 7)]);
        assert_eq!(statistics.engine_counters(), [("passes", 5), ("rows", 7)]);
        statistics.engine_is_dropped();
        assert_eq!(statistics.engine_counters(), [("passes", 5), ("rows", 7)]);
        statistics.refresh(at(251), || vec![("passes", 1)]);
        assert_eq!(statistics.engine_counters(), [("passes", 6), ("rows", 7)]);
        statistics.note(vec![("passes", 3)]);
        assert_eq!(statistics.engine_counters(), [("passes", 8), ("rows", 7)]);
    }
}
