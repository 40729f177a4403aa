use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model_store::{
    Engine, EngineDescription, EngineError, FullPassQuery, Query, QueryBatch, QueryVector,
};
use tokio::runtime;
use tracing::{debug, error, info};

use super::Limits;
use super::hand_out::Finished;
use super::handle::QueueHandle;
use super::lane::Lane;
use super::shared::{Arrived, HasLane, Shared};
use crate::engines::EngineStartError;

/// Different vectors that one full pass compares the rows with, at most: past this the arithmetic, not the
/// table, takes the time, and a longer pass would only keep searches waiting. One query with more takes a
/// pass of its own.
const FULL_PASS_VECTORS: usize = 64;

/// The thread that owns the engine.
pub struct EngineThread {
    thread: JoinHandle<()>,
    /// Which engine it owns.
    pub description: EngineDescription,
}

impl EngineThread {
    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }

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
                    arrived: Arrived::default(),
                    searches: Lane::new(),
                    full_passes: Lane::new(),
                    last_was_search: false,
                    finished: None,
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
    arrived: Arrived,
    searches: Lane<Query>,
    full_passes: Lane<FullPassQuery>,
    /// What the last pass was: the next one is of the other kind, if such queries wait.
    last_was_search: bool,
    /// What the last search finished, handed out as soon as the device is at work on the next pass.
    finished: Option<Finished<Query>>,
    /// How many callers had hung up when their jobs were last looked for.
    hung_up: u64,
}

/// The engine panicked. It may be in any state and is not used again.
struct Panicked;

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
            if self.pass().is_err() {
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
        self.take_arrived(false)
            && (!self.searches.is_empty() || !self.full_passes.is_empty() || self.wait_for_work())
    }

    fn wait_for_work(&mut self) -> bool {
        self.hand_out();
        self.take_arrived(true)
    }

    fn hand_out(&mut self) {
        if let Some(finished) = self.finished.take() {
            finished.hand_out();
        }
    }

    fn take_arrived(&mut self, may_sleep: bool) -> bool {
        if !self.shared.take(&mut self.arrived, may_sleep) {
            return false;
        }
        self.searches.add(&mut self.arrived.searches);
        self.full_passes.add(&mut self.arrived.full_passes);
        // To the front: the probe asks whether the engine works, not how long the queue is.
        if let Some(probe) = self.arrived.probe.take() {
            self.searches.add_first(probe);
        }
        true
    }

    fn drop_the_dead(&mut self) {
        let hung_up = self.shared.hung_up();
        let somebody_hung_up = std::mem::replace(&mut self.hung_up, hung_up) != hung_up;
        self.searches.drop_the_dead(&self.shared, somebody_hung_up);
        self.full_passes.drop_the_dead(&self.shared, somebody_hung_up);
    }

    /// One pass over the table, of the kind whose turn it is, if anything waits.
    fn pass(&mut self) -> Result<(), Panicked> {
        let full_passes_turn = self.last_was_search || self.searches.is_empty();
        if full_passes_turn && !self.full_passes.is_empty() {
            self.last_was_search = false;
            self.full_pass()
        } else if !self.searches.is_empty() {
            self.last_was_search = true;
            self.search()
        } else {
            Ok(())
        }
    }

    /// One pass for as many of the waiting searches as it takes.
    fn search(&mut self) -> Result<(), Panicked> {
        let waiting = self.searches.len();
        let room = self.engine.preferred_batch(waiting).min(self.max_batch).max(1);
        self.searches.choose(room);
        self.lend_replies();
        let batch: QueryBatch<'_> = self.searches.chosen().collect();
        let (size, started) = (batch.len(), Instant::now());
        let (engine, finished) = (&mut self.engine, &mut self.finished);
        let mut meanwhile = || {
            if let Some(finished) = finished.take() {
                finished.hand_out();
            }
        };
        let result =
            catch_unwind(AssertUnwindSafe(|| engine.search_meanwhile(&batch, &mut meanwhile)));
        let took = started.elapsed();
        self.hand_out();
        self.take_replies_back();
        debug!(queries = size, microseconds = took.as_micros() as u64, "pass");
        let (lane, shared) = (&mut self.searches, &self.shared);
        if let Some(answers) = answers(result, size, lane, shared)? {
            shared.note_pass::<Query>(size, took);
            self.finished = Some(lane.finish(shared, answers, started, took));
        }
        Ok(())
    }

    /// One pass for as many of the waiting full-pass queries as it takes. It is long, so its answers do not
    /// wait for the pass after it, nor the last search's for this one.
    fn full_pass(&mut self) -> Result<(), Panicked> {
        self.hand_out();
        let number = fit_together(self.full_passes.queries());
        self.full_passes.choose(number);
        self.lend_replies();
        let queries: Vec<&FullPassQuery> = self.full_passes.chosen().collect();
        let places = queries.iter().map(|query| query.scoring().vectors().len()).sum();
        let (size, started) = (queries.len(), Instant::now());
        let engine = &mut self.engine;
        let result = catch_unwind(AssertUnwindSafe(|| engine.full_pass(&queries)));
        let took = started.elapsed();
        self.take_replies_back();
        debug!(queries = size, microseconds = took.as_micros() as u64, "full pass");
        let (lane, shared) = (&mut self.full_passes, &self.shared);
        if let Some(answers) = answers(result, size, lane, shared)? {
            shared.note_pass::<FullPassQuery>(places, took);
            lane.finish(shared, answers, started, took).hand_out();
        }
        Ok(())
    }

    /// Of both lanes: a pass of the one keeps the other waiting.
    fn lend_replies(&mut self) {
        self.searches.lend_replies(&self.shared);
        self.full_passes.lend_replies(&self.shared);
    }

    fn take_replies_back(&mut self) {
        self.searches.take_replies_back(&self.shared);
        self.full_passes.take_replies_back(&self.shared);
    }
}

/// How many of these queries one full pass takes: at least one, and as many as compare rows with no more
/// than [`FULL_PASS_VECTORS`] vectors in all. Equal rows count once, for they are compared once.
fn fit_together<'a>(queries: impl Iterator<Item = &'a FullPassQuery>) -> usize {
    let (mut rows, mut others) = (HashSet::new(), 0);
    let fits = |query: &&FullPassQuery| {
        for asked in query.scoring().vectors() {
            match &asked.vector {
                QueryVector::Row(row) => drop(rows.insert(*row)),
                QueryVector::Components(_) => others += 1,
            }
        }
        rows.len() + others <= FULL_PASS_VECTORS
    };
    queries.take_while(fits).count().max(1)
}

/// A pass's answers. If it failed, its jobs, and no others, are told so.
fn answers<Q: HasLane>(
    result: std::thread::Result<Result<Vec<Q::Found>, EngineError>>,
    size: usize,
    lane: &mut Lane<Q>,
    shared: &Shared,
) -> Result<Option<Vec<Q::Found>>, Panicked> {
    match result {
        Ok(Ok(answers)) => Ok(Some(answers)),
        Ok(Err(e)) => {
            error!("a pass of {size} queries failed: {e}");
            lane.fail_pass(shared);
            Ok(None)
        }
        Err(_) => {
            error!("the engine panicked in a pass of {size} queries and is not used again");
            lane.fail_pass(shared);
            Err(Panicked)
        }
    }
}

#[cfg(test)]
mod tests;
