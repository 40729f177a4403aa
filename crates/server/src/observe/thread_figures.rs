//! What one HTTP thread counts.

use std::time::Duration;

use super::counter::{Counter, Durations};
use super::labels::{MAX_ROUTES, METHOD_COUNT, STATUS_COUNT};

/// Where the time of a request that searched went.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stages {
    /// In the queue, before the first pass.
    pub(crate) queue: Duration,
    /// In passes of the engine.
    pub(crate) engine: Duration,
    /// Writing the answer, if that is measured apart.
    pub(crate) encode: Option<Duration>,
}

/// What one HTTP thread has counted. It alone writes here; others read now and then. No two threads' numbers
/// share a cache line, nor the pair of lines that processors fetch together.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct ThreadFigures {
    /// Requests that came.
    pub(crate) begun: Counter,
    /// Requests whose callers hung up before the answer.
    pub(crate) abandoned: Counter,
    /// Bytes of bodies that were answered.
    pub(crate) response_bytes: Counter,
    /// What stages outside the engine were estimated to take, in nanoseconds.
    pub(crate) stage_nanoseconds: Counter,
    /// Requests of which the access log takes one in n.
    pub(crate) sampled: Counter,
    /// In the queue, before the first pass.
    pub(crate) queue: Durations,
    /// In passes of the engine.
    pub(crate) engine: Durations,
    /// Writing the answer.
    pub(crate) encode: Durations,
    /// From the head of a request to its answer, by route.
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
    /// A request of this route and method was answered with this status, each by its index.
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

    /// Requests of this route and method that were answered with this status, each by its index.
    pub(crate) fn requests(&self, route: usize, method: usize, status: usize) -> u64 {
        self.requests[cell(route, method, status)].get()
    }
}

fn cell(route: usize, method: usize, status: usize) -> usize {
    (route * METHOD_COUNT + method) * STATUS_COUNT + status
}
