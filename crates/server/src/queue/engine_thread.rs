use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model_store::{Engine, EngineDescription, Hit, QueryBatch};
use tokio::runtime::Handle;
use tokio::sync::mpsc;
use tracing::{debug, error};

use super::Limits;
use super::handle::{Message, QueueHandle, Shared};
use super::job::{Answer, Job, JobError};
use crate::engines::EngineStartError;

/// The thread that owns the engine.
pub struct EngineThread {
    thread: JoinHandle<()>,
    /// Which engine it owns.
    pub description: EngineDescription,
}

impl EngineThread {
    /// Waits until the thread has answered all jobs, which it does once every [`QueueHandle`] is
    /// gone.
    pub fn join(self) {
        if self.thread.join().is_err() {
            error!("the engine's thread panicked");
        }
    }
}

/// Starts the thread, makes the engine on it, and returns both ends: the queue to put jobs in and
/// the thread to join in the end. Answers of many jobs are handed out by tasks of `runtime`, if there
/// is one: to wake a task is cheap for a thread of its runtime and takes microseconds for any other,
/// which the engine would spend idle.
///
/// # Errors
/// If the thread can't be started or the engine can't be made.
pub fn start<F>(
    limits: Limits,
    runtime: Option<Handle>,
    make_engine: F,
) -> Result<(QueueHandle, EngineThread), EngineStartError>
where
    F: FnOnce() -> Result<Box<dyn Engine>, EngineStartError> + Send + 'static,
{
    let (messages, receiver) = mpsc::unbounded_channel();
    let shared = Arc::new(Shared::new(limits.capacity_queries));
    let handle = QueueHandle { messages, shared: shared.clone() };
    let (started, has_started) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("kindred-engine".into()).spawn(move || {
        match make_engine() {
            Ok(engine) => {
                let max_batch = limits.max_batch_queries.min(engine.preferred_batch()).max(1);
                let waiting = VecDeque::new();
                let messages = receiver;
                let loop_ = EngineLoop { engine, max_batch, messages, shared, waiting, runtime };
                // Nobody waits for this any more only if `start` itself is gone.
                let _ = started.send(Ok(loop_.engine.description()));
                loop_.run();
            }
            Err(e) => {
                let _ = started.send(Err(e));
            }
        }
    })?;
    match has_started.recv() {
        Ok(description) => Ok((handle, EngineThread { thread, description: description? })),
        Err(_) => Err(EngineStartError::Broken),
    }
}

struct EngineLoop {
    engine: Box<dyn Engine>,
    max_batch: usize,
    messages: mpsc::UnboundedReceiver<Message>,
    shared: Arc<Shared>,
    /// Jobs with queries that no pass has taken yet, first come first.
    waiting: VecDeque<Running>,
    runtime: Option<Handle>,
}

/// Up to so many jobs are answered by the engine's thread itself, the rest in parts of so many.
const HANDED_OUT_TOGETHER: usize = 64;
const HANDED_OUT_HERE: usize = 2;

/// A job on its way: one larger than a batch takes several passes.
struct Running {
    job: Job,
    hits: Vec<Vec<Hit>>,
    /// How many of its queries the pass at hand takes.
    in_pass: usize,
    queued: Option<Duration>,
    engine: Duration,
}

impl Running {
    fn new(job: Job) -> Self {
        let hits = Vec::with_capacity(job.queries.len());
        Self { job, hits, in_pass: 0, queued: None, engine: Duration::ZERO }
    }

    fn reply(self) {
        let Running { job, hits, queued, engine, .. } = self;
        let answer = Answer { hits, queued: queued.unwrap_or_default(), engine };
        // Whoever hung up does not hear this.
        let _ = job.reply.send(Ok(answer));
    }

    fn left(&self) -> usize {
        self.job.queries.len() - self.hits.len()
    }
}

impl EngineLoop {
    fn run(mut self) {
        while self.gather() {
            self.drop_the_dead();
            if !self.waiting.is_empty() && self.pass().is_err() {
                // The engine may be in any state. What waits gets no answer but an error: the
                // channel closes with this thread, and the probe's slot must not outlive it.
                self.messages.close();
                *self.shared.probe.lock().expect("nothing panics while it holds this lock") = None;
                return;
            }
        }
        debug!("every handle is gone and every job is answered");
    }

    /// Takes whatever is waiting, and waits if nothing is. `false` when there will never be more.
    fn gather(&mut self) -> bool {
        if self.waiting.is_empty() {
            match self.messages.blocking_recv() {
                Some(message) => self.take(message),
                None => return false,
            }
        }
        while let Ok(message) = self.messages.try_recv() {
            self.take(message);
        }
        true
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Job(job) => self.waiting.push_back(Running::new(job)),
            // To the front: the probe asks whether the engine works, not how long the queue is.
            Message::Probe => {
                let probe = self
                    .shared
                    .probe
                    .lock()
                    .expect("nothing panics while it holds this lock")
                    .take();
                if let Some(probe) = probe {
                    self.waiting.push_front(Running::new(probe));
                }
            }
        }
    }

    /// Work that nobody waits for is not done.
    fn drop_the_dead(&mut self) {
        let now = Instant::now();
        let is_dead = |running: &Running| now >= running.job.deadline || running.job.is_abandoned();
        let (dead, alive): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(is_dead);
        self.waiting = alive;
        for running in dead {
            // Whoever hung up does not hear this.
            let _ = running.job.reply.send(Err(JobError::DeadlinePassed));
        }
    }

    /// One pass over the table, for as many of the waiting queries as it takes. An error means that
    /// the engine panicked.
    fn pass(&mut self) -> Result<(), ()> {
        let mut room = self.max_batch;
        for running in &mut self.waiting {
            running.in_pass = running.left().min(room);
            room -= running.in_pass;
        }
        let batch: QueryBatch<'_> = self
            .waiting
            .iter()
            .take_while(|running| running.in_pass > 0)
            .flat_map(|running| &running.job.queries[running.hits.len()..][..running.in_pass])
            .collect();
        let (size, started) = (batch.len(), Instant::now());
        let engine = &mut self.engine;
        let result = catch_unwind(AssertUnwindSafe(|| engine.search(&batch)));
        let took = started.elapsed();
        debug!(queries = size, microseconds = took.as_micros() as u64, "pass");
        match result {
            Ok(Ok(answers)) => {
                self.shared.note_pass(size, took);
                self.hand_out(answers, started, took);
                Ok(())
            }
            Ok(Err(e)) => {
                error!("a pass of {size} queries failed: {e}");
                self.fail_pass();
                Ok(())
            }
            Err(_) => {
                error!("the engine panicked in a pass of {size} queries and is not used again");
                self.fail_pass();
                Err(())
            }
        }
    }

    fn hand_out(&mut self, answers: Vec<Vec<Hit>>, started: Instant, took: Duration) {
        let mut answers = answers.into_iter();
        for running in self.waiting.iter_mut().take_while(|running| running.in_pass > 0) {
            running.hits.extend(answers.by_ref().take(running.in_pass));
            running.queued.get_or_insert_with(|| started.duration_since(running.job.entered));
            running.engine += took;
        }
        let done = self.waiting.iter().take_while(|running| running.left() == 0).count();
        let mut done = self.waiting.drain(..done);
        match &self.runtime {
            Some(runtime) if done.len() > HANDED_OUT_HERE => {
                while done.len() > 0 {
                    let part: Vec<Running> = done.by_ref().take(HANDED_OUT_TOGETHER).collect();
                    runtime.spawn(async move { part.into_iter().for_each(Running::reply) });
                }
            }
            _ => done.for_each(Running::reply),
        }
    }

    fn fail_pass(&mut self) {
        while self.waiting.front().is_some_and(|running| running.in_pass > 0) {
            if let Some(running) = self.waiting.pop_front() {
                let _ = running.job.reply.send(Err(JobError::EngineFailed));
            }
        }
    }
}

impl Shared {
    /// Keeps a moving average of a query's share of the passes.
    fn note_pass(&self, queries: usize, took: Duration) {
        let now = (took.as_nanos() / queries.max(1) as u128).min(u128::from(u64::MAX)) as u64;
        let average = &self.nanoseconds_per_query;
        let before = average.load(Ordering::Relaxed);
        let after = if before == 0 { now } else { before - before / 8 + now / 8 };
        average.store(after, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests;
