//! What the scheduler and its devices have done so far, for metrics.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard};
use std::time::{Duration, Instant};

use crate::state::{DeviceState, ReplicaState};

/// Upper bounds, inclusive, of [`LaneStatistics::pass_seconds`], in seconds. One more bucket holds
/// what is above the last.
pub const PASS_SECONDS_BOUNDS: [f64; 16] = [
    0.0001, 0.00025, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5,
    5.0, 10.0,
];

/// Upper bounds, inclusive, of [`LaneStatistics::batch_sizes`], in queries. One more bucket holds
/// what is above the last.
pub const BATCH_SIZE_BOUNDS: [u64; 11] = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024];

/// What a scheduler has counted since its start.
#[derive(Debug, Clone, PartialEq)]
pub struct Counted {
    /// Slots that all lanes share.
    pub capacity_slots: u32,
    /// Jobs refused because the queue was full.
    pub refused_full: u64,
    /// Jobs refused because there was no working device.
    pub refused_without_device: u64,
    /// Jobs whose callers were told that their deadline had passed.
    pub deadline_passed: u64,
    /// Jobs whose callers hung up before the answer.
    pub hung_up: u64,
    /// Jobs that failed with their pass or with the device.
    pub failed: u64,
    /// Jobs, and parts of jobs, that were asked again of another device after theirs had failed.
    pub asked_again: u64,
    /// Devices made after the first of each worker.
    pub restarts: u64,
    /// The state of the devices.
    pub state: DeviceState,
    /// The state of each device.
    pub replicas: Vec<ReplicaState>,
    /// What the devices counted, summed over all devices so far; at most 250 ms old while there is
    /// work.
    pub device_counters: Vec<(&'static str, u64)>,
}

/// What one lane has counted since the start, and what it holds now.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LaneStatistics {
    /// Passes that answered.
    pub passes: u64,
    /// Requests that they answered: the sum of all batch sizes.
    pub queries: u64,
    /// Passes by their number of queries, not cumulative; see [`BATCH_SIZE_BOUNDS`].
    pub batch_sizes: [u64; BATCH_SIZE_BOUNDS.len() + 1],
    /// Passes by their time, not cumulative; see [`PASS_SECONDS_BOUNDS`].
    pub pass_seconds: [u64; PASS_SECONDS_BOUNDS.len() + 1],
    /// The sum of their times, in seconds.
    pub pass_seconds_sum: f64,
    /// The estimated cost of their requests, in the workload's unit.
    pub work: u64,
    /// Slots taken now, by jobs that wait or run.
    pub slots_taken: u32,
}

/// Rare events, counted by any thread.
#[derive(Default)]
pub(crate) struct Statistics {
    pub(crate) deadline_passed: AtomicU64,
    pub(crate) failed: AtomicU64,
    pub(crate) refused_full: AtomicU64,
    pub(crate) refused_without_device: AtomicU64,
    /// How many callers hung up. While it stays the same, nobody needs to look for their jobs.
    pub(crate) hung_up: AtomicU64,
    pub(crate) asked_again: AtomicU64,
    pub(crate) restarts: AtomicU64,
}

/// Workers write here after each pass. Apart from what callers write, so that the two don't contend
/// for a cache line.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct LaneCounters {
    requests: AtomicU64,
    nanoseconds: AtomicU64,
    work: AtomicU64,
    batch_sizes: [AtomicU64; BATCH_SIZE_BOUNDS.len() + 1],
    pass_seconds: [AtomicU64; PASS_SECONDS_BOUNDS.len() + 1],
}

/// What the devices of one worker count.
#[derive(Default)]
pub(crate) struct DeviceCounters(Mutex<Devices>);

#[derive(Default)]
struct Devices {
    refreshed: Option<Instant>,
    now: Vec<(&'static str, u64)>,
    /// Of earlier devices.
    before: Vec<(&'static str, u64)>,
}

fn all<const N: usize>(counters: &[AtomicU64; N]) -> [u64; N] {
    std::array::from_fn(|i| counters[i].load(Ordering::Relaxed))
}

impl LaneCounters {
    /// Counts a pass: its requests, its time, and the estimated cost.
    pub(crate) fn count(&self, requests: usize, took: Duration, work: usize) {
        let seconds = took.as_secs_f64();
        let size = BATCH_SIZE_BOUNDS.partition_point(|&bound| bound < requests as u64);
        let time = PASS_SECONDS_BOUNDS.partition_point(|&bound| bound < seconds);
        let add = |counter: &AtomicU64, number| {
            counter.fetch_add(number, Ordering::Relaxed);
        };
        add(&self.requests, requests as u64);
        add(&self.nanoseconds, took.as_nanos() as u64);
        add(&self.work, work as u64);
        add(&self.batch_sizes[size], 1);
        add(&self.pass_seconds[time], 1);
    }

    pub(crate) fn snapshot(&self, slots_taken: u32) -> LaneStatistics {
        let batch_sizes = all(&self.batch_sizes);
        LaneStatistics {
            passes: batch_sizes.iter().sum(),
            queries: self.requests.load(Ordering::Relaxed),
            batch_sizes,
            pass_seconds: all(&self.pass_seconds),
            pass_seconds_sum: self.nanoseconds.load(Ordering::Relaxed) as f64 / 1e9,
            work: self.work.load(Ordering::Relaxed),
            slots_taken,
        }
    }
}

impl DeviceCounters {
    fn lock(&self) -> MutexGuard<'_, Devices> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    /// Asks the device for its counters, if it was not asked lately.
    pub(crate) fn refresh(
        &self,
        now: Instant,
        counters: impl FnOnce() -> Vec<(&'static str, u64)>,
    ) {
        const EVERY: Duration = Duration::from_millis(250);
        let mut devices = self.lock();
        if devices.refreshed.is_none_or(|last| now.saturating_duration_since(last) >= EVERY) {
            devices.refreshed = Some(now);
            // A device that panics here would leave the lock poisoned.
            drop(devices);
            self.note(counters());
        }
    }

    pub(crate) fn note(&self, counters: Vec<(&'static str, u64)>) {
        self.lock().now = counters;
    }

    /// Keeps the counts of a dropped device; the next one counts from 0 again.
    pub(crate) fn device_is_dropped(&self) {
        let mut devices = self.lock();
        let mut before = Vec::new();
        devices.add_to(&mut before);
        *devices = Devices { before, ..Devices::default() };
    }

    pub(crate) fn add_to(&self, sum: &mut Vec<(&'static str, u64)>) {
        self.lock().add_to(sum);
    }
}

impl Devices {
    fn add_to(&self, sum: &mut Vec<(&'static str, u64)>) {
        for &(name, count) in self.before.iter().chain(&self.now) {
            match sum.iter_mut().find(|(known, _)| *known == name) {
                Some((_, known)) => *known += count,
                None => sum.push((name, count)),
            }
        }
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    #[test]
    fn passes_are_counted_in_the_buckets_of_their_size_and_time() {
        let counters = LaneCounters::default();
        let ms = Duration::from_millis;
        for (queries, took) in
            [(1, ms(1)), (2, ms(2)), (3, ms(0)), (1024, ms(10_000)), (1025, ms(10_001))]
        {
            counters.count(queries, took, 10 * queries);
        }
        let found = counters.snapshot(7);
        assert_eq!((found.passes, found.queries, found.slots_taken), (5, 2055, 7));
        assert_eq!(found.work, 20_550);
        assert_eq!(found.batch_sizes, [1, 1, 1, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
        let times = [1, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1];
        assert_eq!(found.pass_seconds, times);
        assert!((found.pass_seconds_sum - 20.004).abs() < 1e-9);
    }

    #[test]
    fn an_engine_is_asked_four_times_a_second_and_its_counts_outlive_it() {
        let statistics = DeviceCounters::default();
        let counted = || {
            let mut sum = Vec::new();
            statistics.add_to(&mut sum);
            sum
        };
        let now = Instant::now();
        let at = |ms| now + Duration::from_millis(ms);
        statistics.refresh(at(0), || vec![("passes", 1)]);
        statistics.refresh(at(249), || panic!("too soon"));
        statistics.refresh(at(250), || vec![("passes", 5), ("rows", 7)]);
        assert_eq!(counted(), [("passes", 5), ("rows", 7)]);
        statistics.device_is_dropped();
        assert_eq!(counted(), [("passes", 5), ("rows", 7)]);
        statistics.refresh(at(251), || vec![("passes", 1)]);
        assert_eq!(counted(), [("passes", 6), ("rows", 7)]);
        statistics.note(vec![("passes", 3)]);
        assert_eq!(counted(), [("passes", 8), ("rows", 7)]);
    }
}
