//! Which requests are traced.
//!
//! A request without a caller's span is traced at random. For others the caller decides, as
//! OpenTelemetry's parent-based sampler has it, but within a limit: a client that asks for a trace
//! of every request must not fill the collector. What is traced at random does not count, so that
//! such a client hides nothing.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use axum::http::HeaderMap;

use super::context::Parent;

/// The ids of a traced request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sampled {
    pub(super) trace: u128,
    /// The caller's span, if it asked for the trace.
    pub(super) parent: Option<u64>,
}

pub(super) struct Sampler {
    /// A trace is sampled if the lower 63 bits of its id are below, so that other services with the
    /// same ratio choose the same.
    below: u64,
    /// Traces that callers may ask for within a second; 0 if their headers are ignored.
    asked_per_second: u32,
    started: Instant,
    /// The second since the start, in the upper half, and how many traces were asked for in it.
    asked: AtomicU64,
    refused: AtomicU64,
}

impl Sampler {
    pub(super) fn new(ratio: f64, asked_per_second: u32) -> Self {
        let below = (ratio * (1u64 << 63) as f64) as u64;
        let (asked, refused) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { below, asked_per_second, started: Instant::now(), asked, refused }
    }

    /// Whether a request with these headers is traced, and with which ids.
    #[inline]
    pub(super) fn sample(&self, headers: &HeaderMap, arrived: Instant) -> Option<Sampled> {
        if self.asked_per_second > 0
            && let Some(parent) = Parent::of(headers)
        {
            let Parent { trace, span, is_sampled } = parent;
            let is_traced = is_sampled && self.has_room(arrived);
            return is_traced.then_some(Sampled { trace, parent: Some(span) });
        }
        let low = fastrand::u64(..);
        if low & (u64::MAX >> 1) >= self.below {
            return None;
        }
        // An id of zero is invalid.
        let trace = (u128::from(fastrand::u64(..)) << 64 | u128::from(low)).max(1);
        Some(Sampled { trace, parent: None })
    }

    /// Takes a place among the traces of this second, if one is left.
    fn has_room(&self, now: Instant) -> bool {
        let second = now.saturating_duration_since(self.started).as_secs();
        let count = |asked: u64| if asked >> 32 < second { 0 } else { asked as u32 };
        let next = |asked: u64| {
            let one_more = count(asked) + 1;
            // A thread may be late with the last second.
            let second = second.max(asked >> 32);
            (one_more <= self.asked_per_second).then_some(second << 32 | u64::from(one_more))
        };
        let has_room = self.asked.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok();
        if !has_room {
            self.refused.fetch_add(1, Ordering::Relaxed);
        }
        has_room
    }

    pub(super) fn refused(&self) -> u64 {
        self.refused.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use axum::http::HeaderValue;

    use super::*;

    fn asking(flags: &str) -> HeaderMap {
        let sent = format!("00-000000000000000000000000000000ab-00000000000000cd-{flags}");
        HeaderMap::from_iter([(
            "traceparent".parse().unwrap(),
            HeaderValue::try_from(sent).unwrap(),
        )])
    }

    fn sampled(sampler: &Sampler, headers: &HeaderMap, requests: usize) -> usize {
        let now = Instant::now();
        (0..requests).filter(|_| sampler.sample(headers, now).is_some()).count()
    }

    #[test]
    fn at_random_means_the_ratio() {
        let none = HeaderMap::new();
        assert_eq!(sampled(&Sampler::new(0.0, 1), &none, 10_000), 0);
        assert_eq!(sampled(&Sampler::new(1.0, 1), &none, 10_000), 10_000);
        // Six standard deviations of the binomial distribution.
        for (ratio, about) in [(0.01, 600), (0.25, 2600)] {
            let found = sampled(&Sampler::new(ratio, 1), &none, 1_000_000);
            let expected = (ratio * 1e6) as usize;
            assert!(found.abs_diff(expected) <= about, "{found} of a million at {ratio}");
        }
    }

    #[test]
    fn ids_are_never_the_same_and_the_same_ids_are_chosen_elsewhere() {
        let sampler = Sampler::new(0.5, 1);
        let none = HeaderMap::new();
        let traces = (0..10_000).filter_map(|_| sampler.sample(&none, Instant::now()));
        let ids: std::collections::HashSet<u128> = traces.map(|one| one.trace).collect();
        assert!(ids.len() > 4000);
        // As `TraceIdRatioBased` of the SDK has it.
        assert!(ids.iter().all(|&id| (id as u64) << 1 >> 1 < 1 << 62));
    }

    #[test]
    fn a_caller_decides_and_keeps_its_ids() {
        let always = Sampler::new(1.0, 10);
        assert_eq!(always.sample(&asking("00"), Instant::now()), None);
        let never = Sampler::new(0.0, 10);
        let expected = Some(Sampled { trace: 0xab, parent: Some(0xcd) });
        assert_eq!(never.sample(&asking("01"), Instant::now()), expected);
    }

    #[test]
    fn callers_get_so_many_traces_a_second_and_no_more() {
        let sampler = Sampler::new(0.0, 10);
        let start = sampler.started;
        let at = |seconds: u64| {
            let now = start + Duration::from_secs(seconds);
            (0..1000).filter(|_| sampler.sample(&asking("01"), now).is_some()).count()
        };
        assert_eq!([at(0), at(0), at(1), at(5), at(5)], [10, 0, 10, 10, 0]);
        assert_eq!(at(4), 0, "a thread that is late");
        assert_eq!(sampler.refused(), 6000 - 30);
        // Requests are traced at random meanwhile.
        let full = Sampler::new(1.0, 1);
        let now = Instant::now();
        assert_eq!(sampled(&full, &asking("01"), 100), 1);
        assert!(full.sample(&HeaderMap::new(), now).is_some());
    }

    #[test]
    fn many_threads_share_the_limit() {
        let sampler = Sampler::new(0.0, 500);
        let (now, headers) = (Instant::now(), asking("01"));
        let count = || (0..1000).filter(|_| sampler.sample(&headers, now).is_some()).count();
        let found: usize = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(count)).collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).sum()
        });
        assert_eq!(found, 500);
    }

    #[test]
    fn a_limit_of_zero_ignores_callers() {
        let sampler = Sampler::new(1.0, 0);
        let found = sampler.sample(&asking("00"), Instant::now()).unwrap();
        assert_eq!(found.parent, None);
        assert_ne!(found.trace, 0xab);
    }
}
