use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use model_store::Query;
use tokio::sync::{Semaphore, mpsc, oneshot};

use super::job::{Answer, Job, JobError};

/// The callers' end of the queue. Clones share it; when the last is gone the engine thread ends.
#[derive(Clone)]
pub struct QueueHandle {
    pub(super) messages: mpsc::UnboundedSender<Message>,
    pub(super) shared: Arc<Shared>,
}

/// What goes through the channel. It is unbounded because the places bound it.
pub(super) enum Message {
    Job(Job),
    /// There is a probe in its slot.
    Probe,
}

/// What both ends of the queue see.
pub(super) struct Shared {
    /// One permit for each query that may be in the queue or in work.
    places: Arc<Semaphore>,
    capacity: u32,
    /// The readiness check's own place, which no load can take away.
    pub(super) probe: Mutex<Option<Job>>,
    /// Nanoseconds that a query has lately taken of the engine's time.
    pub(super) nanoseconds_per_query: AtomicU64,
}

impl Shared {
    pub(super) fn new(capacity: u32) -> Self {
        Self {
            places: Arc::new(Semaphore::new(capacity as usize)),
            capacity,
            probe: Mutex::new(None),
            nanoseconds_per_query: AtomicU64::new(0),
        }
    }
}

/// Why queries were not answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SubmitError {
    /// The queue is full; when it should have drained at the present rate.
    #[error("the queue is full")]
    Full {
        /// How long to wait before asking again.
        retry_after: Duration,
    },
    /// The deadline passed before the answer was there.
    #[error("the deadline passed")]
    DeadlinePassed,
    /// The pass that these queries were part of failed.
    #[error("the engine failed in this pass")]
    EngineFailed,
    /// There is no engine any more.
    #[error("the engine is gone")]
    EngineGone,
}

impl QueueHandle {
    /// Waits for the answers to some queries. Dropping the future abandons them: what has not been
    /// searched by then never will be.
    ///
    /// # Errors
    /// At once if the queue is full; later if the deadline passes or the engine fails.
    pub async fn submit(
        &self,
        queries: Vec<Query>,
        deadline: Instant,
    ) -> Result<Answer, SubmitError> {
        if queries.is_empty() {
            return Ok(Answer::default());
        }
        // More queries than the queue holds are let in when it is otherwise empty.
        let wanted = u32::try_from(queries.len()).unwrap_or(u32::MAX).min(self.shared.capacity);
        let places = self
            .shared
            .places
            .clone()
            .try_acquire_many_owned(wanted)
            .map_err(|_| SubmitError::Full { retry_after: self.time_to_drain() })?;
        let (reply, answer) = oneshot::channel();
        let entered = Instant::now();
        let job = Job { queries, deadline, entered, reply, places: Some(places) };
        self.messages.send(Message::Job(job)).map_err(|_| SubmitError::EngineGone)?;
        wait(answer, deadline).await
    }

    /// As [`submit`](Self::submit), through the place that is kept for readiness checks. Only one
    /// may be under way: a second takes the place of the first.
    ///
    /// # Errors
    /// As [`submit`](Self::submit), but never because the queue is full.
    pub async fn submit_probe(
        &self,
        query: Query,
        deadline: Instant,
    ) -> Result<Answer, SubmitError> {
        let (reply, answer) = oneshot::channel();
        let entered = Instant::now();
        let job = Job { queries: vec![query], deadline, entered, reply, places: None };
        *self.shared.probe.lock().expect("nothing panics while it holds this lock") = Some(job);
        self.messages.send(Message::Probe).map_err(|_| SubmitError::EngineGone)?;
        wait(answer, deadline).await
    }

    /// How long the engine needs for what is in the queue now, as far as can be told.
    fn time_to_drain(&self) -> Duration {
        let free = self.shared.places.available_permits() as u64;
        let taken = u64::from(self.shared.capacity).saturating_sub(free);
        let each = self.shared.nanoseconds_per_query.load(Ordering::Relaxed);
        Duration::from_nanos(taken.saturating_mul(each))
    }
}

async fn wait(
    answer: oneshot::Receiver<Result<Answer, JobError>>,
    deadline: Instant,
) -> Result<Answer, SubmitError> {
    match tokio::time::timeout_at(deadline.into(), answer).await {
        Ok(Ok(Ok(answer))) => Ok(answer),
        Err(_) | Ok(Ok(Err(JobError::DeadlinePassed))) => Err(SubmitError::DeadlinePassed),
        Ok(Ok(Err(JobError::EngineFailed))) => Err(SubmitError::EngineFailed),
        // The engine thread ended with the job in its hands.
        Ok(Err(_)) => Err(SubmitError::EngineGone),
    }
}
