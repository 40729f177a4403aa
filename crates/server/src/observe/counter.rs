//! Counters that one thread writes and others read.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Counts up. Only one thread may add: it loads and stores, which costs as much as with a plain
/// number. An atomic addition, for several threads, would lock the cache line. Any thread may read.
#[derive(Debug, Default)]
pub(crate) struct Counter(AtomicU64);

impl Counter {
    #[inline]
    pub(crate) fn add(&self, more: u64) {
        self.0.store(self.0.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
    }

    pub(crate) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Upper bounds of the buckets for times, in nanoseconds: from a search of a small model to the
/// default timeout of a request.
pub(crate) const BOUNDS_NANOSECONDS: [u64; 20] = [
    10_000,
    25_000,
    50_000,
    100_000,
    250_000,
    500_000,
    1_000_000,
    2_500_000,
    5_000_000,
    10_000_000,
    25_000_000,
    50_000_000,
    100_000_000,
    250_000_000,
    500_000_000,
    1_000_000_000,
    2_500_000_000,
    5_000_000_000,
    10_000_000_000,
    30_000_000_000,
];

const BUCKETS: usize = BOUNDS_NANOSECONDS.len() + 1;

/// A histogram of times. Written by one thread, as a [`Counter`].
#[derive(Debug, Default)]
pub(crate) struct Durations {
    /// One bucket for each bound, and one for longer times.
    buckets: [Counter; BUCKETS],
    nanoseconds: Counter,
}

impl Durations {
    #[inline]
    pub(crate) fn note(&self, took: Duration) {
        let nanoseconds = u64::try_from(took.as_nanos()).unwrap_or(u64::MAX);
        let bucket = BOUNDS_NANOSECONDS.partition_point(|&bound| bound < nanoseconds);
        self.buckets[bucket].add(1);
        self.nanoseconds.add(nanoseconds);
    }
}

/// A histogram as it is written out: the sums of all threads.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Histogram {
    /// The upper bound of each bucket (inclusive; the last one is infinite), and how many values
    /// are in it. Not cumulative: values in lower buckets are not counted again.
    pub buckets: Vec<(f64, u64)>,
    /// The sum of all values.
    pub sum: f64,
}

impl Histogram {
    pub(crate) fn count(&self) -> u64 {
        self.buckets.iter().map(|(_, count)| count).sum()
    }

    /// The sum of these histograms, in seconds.
    pub(crate) fn of<'a>(parts: impl IntoIterator<Item = &'a Durations>) -> Self {
        let bounds = BOUNDS_NANOSECONDS.iter().map(|&bound| bound as f64 / 1e9);
        let mut buckets: Vec<(f64, u64)> =
            bounds.chain([f64::INFINITY]).map(|bound| (bound, 0)).collect();
        let mut nanoseconds = 0_u64;
        for part in parts {
            for (bucket, counted) in buckets.iter_mut().zip(&part.buckets) {
                bucket.1 += counted.get();
            }
            nanoseconds = nanoseconds.wrapping_add(part.nanoseconds.get());
        }
        Self { buckets, sum: nanoseconds as f64 / 1e9 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_on_a_bound_belongs_below_it_and_threads_are_summed() {
        let threads = [Durations::default(), Durations::default()];
        threads[0].note(Duration::from_micros(10));
        threads[0].note(Duration::from_nanos(10_001));
        threads[1].note(Duration::from_micros(10));
        threads[1].note(Duration::from_secs(3600));
        threads[1].note(Duration::ZERO);
        let histogram = Histogram::of(&threads);
        assert_eq!(histogram.buckets[..2], [(0.00001, 3), (0.000025, 1)]);
        assert_eq!(histogram.buckets.last(), Some(&(f64::INFINITY, 1)));
        assert_eq!(histogram.count(), 5);
        assert!((histogram.sum - 3600.000030001).abs() < 1e-9, "{}", histogram.sum);
    }

    #[test]
    fn what_one_thread_counts_another_reads() {
        let counter = Counter::default();
        std::thread::scope(|scope| {
            scope.spawn(|| (0..1000).for_each(|_| counter.add(2)));
        });
        assert_eq!(counter.get(), 2000);
    }
}
