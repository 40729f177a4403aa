//! The figures that one HTTP thread counts.

use std::time::Duration;

use super::counter::{Counter, Durations};
use super::labels::{MAX_ROUTES, METHOD_COUNT, STATUS_COUNT};

/// Where the time of a request that searched went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stages {
    /// Time in the queue, before the first pass.
    pub(crate) queue: Duration,
    /// Time in passes of the engine.
    pub(crate) engine: Duration,
    /// Time for writing the answer, if that is measured separately.
    pub(crate) encode: Option<Duration>,
}

/// The counts of one HTTP thread. Only this thread writes them; others read them now and then.
/// Aligned so that the numbers of two threads share neither a cache line nor a pair of lines that
/// processors fetch together.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ThreadFigures {
    /// Requests that arrived.
    pub(crate) begun: Counter,
    /// Requests whose callers hung up before the answer.
    pub(crate) abandoned: Counter,
    /// Bytes of the answers' bodies.
    pub(crate) response_bytes: Counter,
    /// Estimated time of stages outside the engine, in nanoseconds.
    pub(crate) stage_nanoseconds: Counter,
    /// Requests that the access log has counted, to log one in n.
    pub(crate) sampled: Counter,
    // As in `Stages`.
    pub(crate) queue: Durations,
    pub(crate) engine: Durations,
    pub(crate) encode: Durations,
    /// Time from the head of a request to its answer, by route.
    pub(crate) whole: [Durations; MAX_ROUTES],
    requests: [Counter; MAX_ROUTES * METHOD_COUNT * STATUS_COUNT],
}

impl Default for ThreadFigures {
    fn default() -> Self {
        Self {
            begun: Counter::default(),
            abandoned: Counter::default(),
            response_bytes: Counter::default(),
            stage_nanoseconds: Counter::default(),
            sampled: Counter::default(),
            queue: Durations::default(),
            engine: Durations::default(),
            encode: Durations::default(),
            whole: std::array::from_fn(|_| Durations::default()),
            requests: std::array::from_fn(|_| Counter::default()),
        }
    }
}

impl ThreadFigures {
    /// Counts a request of this route and method that was answered with this status, each given by
    /// its index.
    #[inline]
    pub(crate) fn answered(
        &self,
        (route, method, status): (usize, usize, usize),
        took: Duration,
        stages: Option<Stages>,
        bytes: u64,
    ) {
        self.requests[cell(route, method, status)].add(1);
        self.whole[route].note(took);
        self.response_bytes.add(bytes);
        if let Some(Stages { queue, engine, encode }) = stages {
            self.queue.note(queue);
            self.engine.note(engine);
            if let Some(encode) = encode {
                self.encode.note(encode);
            }
        }
    }

    /// The number of requests of this route and method that were answered with this status, each
    /// given by its index.
    pub(crate) fn requests(&self, route: usize, method: usize, status: usize) -> u64 {
        self.requests[cell(route, method, status)].get()
    }
}

fn cell(route: usize, method: usize, status: usize) -> usize {
    (route * METHOD_COUNT + method) * STATUS_COUNT + status
}
