use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model_store::{Engine, EngineDescription, Hit, QueryBatch};
use tokio::runtime;
use tracing::{debug, error, info};

use super::Limits;
use super::hand_out::{Finished, Running};
use super::handle::QueueHandle;
use super::job::{Job, JobError, Reply};
use super::shared::Shared;
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
/// the thread to join in the end. Callers may wait on any runtime; their deadlines are watched on `timer`.
///
/// # Errors
/// If the thread can't be started or the engine can't be made.
pub fn start<F>(
    limits: Limits,
    timer: &runtime::Handle,
    make_engine: F,
) -> Result<(QueueHandle, EngineThread), EngineStartError>
where
    F: FnOnce() -> Result<Box<dyn Engine>, EngineStartError> + Send + 'static,
{
    let shared = Arc::new(Shared::new(limits.capacity_queries));
    timer.spawn(watch_deadlines(shared.clone()));
    let handle = QueueHandle::new(shared.clone());
    let (started, has_started) = std::sync::mpsc::sync_channel(1);
    let thread = std::thread::Builder::new().name("kindred-engine".into()).spawn(move || {
        match make_engine() {
            Ok(engine) => {
                let loop_ = EngineLoop {
                    engine,
                    max_batch: limits.max_batch_queries,
                    shared,
                    arrived: Vec::new(),
                    waiting: VecDeque::new(),
                    finished: None,
                    lent: Vec::new(),
                    hung_up: 0,
                };
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

/// Tells callers whose time is over so, at most this much later. One timer for all: with a timer for each,
/// all HTTP threads would take the timers' one lock twice a request.
async fn watch_deadlines(shared: Arc<Shared>) {
    const EVERY: Duration = Duration::from_millis(10);
    while shared.expire(Instant::now()) {
        tokio::time::sleep(EVERY).await;
    }
}

struct EngineLoop {
    engine: Box<dyn Engine>,
    max_batch: usize,
    shared: Arc<Shared>,
    /// Room for what comes out of the queue; empty between passes.
    arrived: Vec<Job>,
    /// Jobs with queries that no pass has taken yet, first come first.
    waiting: VecDeque<Running>,
    /// What the last pass finished, handed out as soon as the device is at work on the next one.
    finished: Option<Finished>,
    /// What is lent to `shared` in each pass; empty between passes.
    lent: Vec<(Instant, Option<Reply>)>,
    /// How many callers had hung up when their jobs were last looked for.
    hung_up: u64,
}

/// However the thread ends, nobody waits for it in vain.
impl Drop for EngineLoop {
    fn drop(&mut self) {
        self.shared.engine_is_gone();
    }
}

impl EngineLoop {
    fn run(mut self) {
        while self.gather() {
            self.drop_the_dead();
            if !self.waiting.is_empty() && self.pass().is_err() {
                // The engine may be in any state and is not used again.
                return;
            }
        }
        debug!("every handle is gone and every job is answered");
        let counters = self.engine.counters();
        if !counters.is_empty() {
            let counted: Vec<String> =
                counters.iter().map(|(name, count)| format!("{name} {count}")).collect();
            info!("the engine counted: {}", counted.join(", "));
        }
    }

    /// Takes whatever is waiting, and waits if nothing is. `false` when there will never be more.
    fn gather(&mut self) -> bool {
        self.take_arrived(false) && (!self.waiting.is_empty() || self.wait_for_work())
    }

    fn wait_for_work(&mut self) -> bool {
        if let Some(finished) = self.finished.take() {
            finished.hand_out();
        }
        self.take_arrived(true)
    }

    fn take_arrived(&mut self, may_sleep: bool) -> bool {
        let Some(probe) = self.shared.take(&mut self.arrived, may_sleep) else { return false };
        self.waiting.extend(self.arrived.drain(..).map(Running::new));
        // To the front: the probe asks whether the engine works, not how long the queue is.
        if let Some(probe) = probe {
            self.waiting.push_front(Running::new(probe));
        }
        true
    }

    /// Work that nobody waits for is not done.
    fn drop_the_dead(&mut self) {
        let now = Instant::now();
        let hung_up = self.shared.hung_up();
        let somebody_hung_up = std::mem::replace(&mut self.hung_up, hung_up) != hung_up;
        let is_dead = |running: &Running| {
            now >= running.job.deadline || (somebody_hung_up && running.job.is_abandoned())
        };
        if !self.waiting.iter().any(is_dead) {
            return;
        }
        let (dead, alive): (VecDeque<_>, VecDeque<_>) = self.waiting.drain(..).partition(is_dead);
        self.waiting = alive;
        self.shared.free(dead.iter().map(|running| running.job.places).sum());
        for running in dead {
            running.fail(JobError::DeadlinePassed);
        }
    }

    /// One pass over the table, for as many of the waiting queries as it takes. An error means that
    /// the engine panicked.
    fn pass(&mut self) -> Result<(), ()> {
        let waiting = self.waiting.iter().map(Running::left).sum();
        let mut room = self.engine.preferred_batch(waiting).min(self.max_batch).max(1);
        for running in &mut self.waiting {
            running.in_pass = running.left().min(room);
            room -= running.in_pass;
        }
        self.lend_replies();
        let batch: QueryBatch<'_> = self
            .waiting
            .iter()
            .take_while(|running| running.in_pass > 0)
            .flat_map(|running| &running.job.queries[running.done()..][..running.in_pass])
            .collect();
        let size = batch.len();
        let started = Instant::now();
        let (engine, finished) = (&mut self.engine, &mut self.finished);
        let mut meanwhile = || {
            if let Some(finished) = finished.take() {
                finished.hand_out();
            }
        };
        let result =
            catch_unwind(AssertUnwindSafe(|| engine.search_meanwhile(&batch, &mut meanwhile)));
        meanwhile();
        let took = started.elapsed();
        self.take_replies_back();
        debug!(queries = size, microseconds = took.as_micros() as u64, "pass");
        match result {
            Ok(Ok(answers)) => {
                self.shared.note_pass(size, took);
                self.finish(answers, started, took);
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

    /// While the engine searches, `watch_deadlines` has the callers.
    fn lend_replies(&mut self) {
        let lend = |running: &mut Running| (running.job.deadline, running.job.reply.take());
        self.lent.extend(self.waiting.iter_mut().map(lend));
        self.shared.lend(&mut self.lent);
    }

    fn take_replies_back(&mut self) {
        self.shared.lend(&mut self.lent);
        for (running, (_, reply)) in self.waiting.iter_mut().zip(self.lent.drain(..)) {
            running.job.reply = reply;
        }
    }

    fn finish(&mut self, mut answers: Vec<Vec<Hit>>, started: Instant, took: Duration) {
        let is_finished = |running: &&Running| running.in_pass == running.left();
        let finished = self.waiting.iter().take_while(is_finished).count();
        // At most one job is left with some of its queries searched: the last of the pass.
        if let Some(running) = self.waiting.get_mut(finished) {
            let first = answers.len() - running.in_pass;
            running.take(&mut answers.drain(first..), started, took);
        }
        let jobs = self.take_out(finished);
        self.finished = Some(Finished { jobs, answers, started, took });
    }

    fn fail_pass(&mut self) {
        let in_pass = self.waiting.iter().take_while(|running| running.in_pass > 0).count();
        for running in self.take_out(in_pass) {
            running.fail(JobError::EngineFailed);
        }
    }

    /// Takes the first so many jobs out of the queue, which has room for as many again before any
    /// caller hears of it.
    fn take_out(&mut self, jobs: usize) -> VecDeque<Running> {
        let left = self.waiting.split_off(jobs);
        let jobs = std::mem::replace(&mut self.waiting, left);
        self.shared.free(jobs.iter().map(|running| running.job.places).sum());
        jobs
    }
}

#[cfg(test)]
mod tests;
