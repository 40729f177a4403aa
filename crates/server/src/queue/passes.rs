//! What the engine thread does with an engine that works: gather, drop the dead, one pass, hand out.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use model_store::{Engine, EngineError, FullPassQuery, Hit, Query, QueryBatch};
use tracing::{debug, error};

use super::SubmitError;
use super::lane::Lane;
use super::shared::Shared;
use super::state::Arrived;

/// The jobs in the engine thread's hands. They outlive an engine that fails.
pub(super) struct Passes {
    shared: Arc<Shared>,
    max_batch: usize,
    /// Room for what comes out of the queue; empty between passes.
    arrived: Arrived,
    searches: Lane<Query>,
    full_passes: Lane<FullPassQuery>,
    /// What the last pass was: the next one is of the other kind, if such queries wait.
    last_was_search: bool,
    /// How many callers had hung up when their jobs were last looked for.
    hung_up: u64,
}

/// Why there are no more passes with this engine.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum End {
    /// Every handle is gone and every job is answered.
    NobodyAsks,
    /// It failed, may be in any state and must not be used again.
    EngineFailed(String),
    /// It was given up, while it worked.
    GivenUp,
}

/// Why a pass has no answers.
enum Fault {
    /// What was asked: a fault of ours.
    Question(EngineError),
    /// The engine.
    Engine(String),
}

impl Passes {
    pub(super) fn new(shared: Arc<Shared>, max_batch: usize) -> Self {
        Self {
            shared,
            max_batch,
            arrived: Arrived::default(),
            searches: Lane::new(),
            full_passes: Lane::new(),
            last_was_search: false,
            hung_up: 0,
        }
    }

    /// Answers whatever is asked, with this engine.
    pub(super) fn run(&mut self, engine: &mut dyn Engine) -> End {
        loop {
            if !self.take_arrived(false) {
                return End::NobodyAsks;
            }
            if self.searches.is_empty() && self.full_passes.is_empty() && !self.sleep(engine) {
                return End::NobodyAsks;
            }
            self.drop_the_dead();
            if let Err(end) = self.pass(engine) {
                return end;
            }
        }
    }

    /// Until there is work. `false` when there will never be more.
    fn sleep(&mut self, engine: &mut dyn Engine) -> bool {
        self.hand_out();
        self.shared.statistics.note(engine.counters());
        self.take_arrived(true)
    }

    fn hand_out(&self) {
        if let Some(finished) = self.shared.take_finished() {
            finished.hand_out(&self.shared.statistics);
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
    fn pass(&mut self, engine: &mut dyn Engine) -> Result<(), End> {
        let full_passes_turn = self.last_was_search || self.searches.is_empty();
        if full_passes_turn && !self.full_passes.is_empty() {
            self.last_was_search = false;
            self.full_pass(engine)
        } else if !self.searches.is_empty() {
            self.last_was_search = true;
            self.search(engine)
        } else {
            Ok(())
        }
    }

    /// One pass for as many of the waiting searches as it takes.
    fn search(&mut self, engine: &mut dyn Engine) -> Result<(), End> {
        let room = engine.preferred_batch(self.searches.len()).min(self.max_batch).max(1);
        self.searches.choose(room);
        let started = Instant::now();
        self.begin("a search", started);
        let batch: QueryBatch<'_> = self.searches.chosen().collect();
        let size = batch.len();
        let result = caught(|| {
            let found = engine.search_meanwhile(&batch, &mut || self.hand_out())?;
            by_full_pass(engine, &batch, found)
        });
        let took = started.elapsed();
        self.hand_out();
        self.end()?;
        debug!(queries = size, microseconds = took.as_micros() as u64, "pass");
        match checked(result, size) {
            Ok(answers) => {
                self.shared.statistics.searches.count(size, took);
                self.shared.statistics.refresh(started, || engine.counters());
                let finished = self.searches.finish(answers, started, took);
                self.shared.pass_is_done::<Query>(finished.places(), size, took);
                self.shared.keep_finished(finished);
                Ok(())
            }
            Err(fault) => {
                let result = self.failed(fault, size);
                self.searches.fail_pass(&self.shared);
                result
            }
        }
    }

    /// One pass for as many of the waiting full-pass queries as it takes. It is long, so its answers do not
    /// wait for the pass after it, nor the last search's for this one.
    fn full_pass(&mut self, engine: &mut dyn Engine) -> Result<(), End> {
        self.hand_out();
        self.full_passes.choose();
        let started = Instant::now();
        self.begin("a full pass", started);
        let queries: Vec<&FullPassQuery> = self.full_passes.chosen().collect();
        let places = queries.iter().map(|query| query.scoring().vectors().len()).sum();
        let size = queries.len();
        let result = caught(|| engine.full_pass(&queries));
        let took = started.elapsed();
        self.end()?;
        debug!(queries = size, microseconds = took.as_micros() as u64, "full pass");
        match checked(result, size) {
            Ok(answers) => {
                self.shared.statistics.full_passes.count(size, took);
                self.shared.statistics.refresh(started, || engine.counters());
                let finished = self.full_passes.finish(answers, started, took);
                self.shared.pass_is_done::<FullPassQuery>(finished.places(), places, took);
                finished.hand_out(&self.shared.statistics);
                Ok(())
            }
            Err(fault) => {
                let result = self.failed(fault, size);
                self.full_passes.fail_pass(&self.shared);
                result
            }
        }
    }

    /// What a fault means for the engine. Who hears that its pass failed must not be told a moment later that
    /// the service is ready: so the state comes first.
    fn failed(&self, fault: Fault, size: usize) -> Result<(), End> {
        match fault {
            Fault::Question(reason) => {
                error!("a pass of {size} queries failed: {reason}");
                Ok(())
            }
            Fault::Engine(reason) => {
                error!(
                    "the engine failed in a pass of {size} queries and is not used again: {reason}"
                );
                self.shared.engine_restarts(Duration::ZERO);
                Err(End::EngineFailed(reason))
            }
        }
    }

    /// Before the engine does what may take long. Of both lanes: a pass of the one keeps the other waiting.
    pub(super) fn begin(&mut self, doing: &'static str, now: Instant) {
        self.searches.lend_replies();
        self.full_passes.lend_replies();
        self.shared.begin(doing, now, &mut self.searches.lent, &mut self.full_passes.lent);
    }

    /// After it.
    pub(super) fn end(&mut self) -> Result<(), End> {
        let goes_on = self.shared.end(&mut self.searches.lent, &mut self.full_passes.lent);
        self.searches.take_replies_back();
        self.full_passes.take_replies_back();
        if goes_on { Ok(()) } else { Err(End::GivenUp) }
    }

    /// All that wait, here and in the queue, hear this.
    pub(super) fn fail_all(&mut self, error: SubmitError) {
        self.searches.fail_all(error, &self.shared);
        self.full_passes.fail_all(error, &self.shared);
        self.shared.fail_arrived(error);
    }
}

/// The answers of a search, with those that it left to a full pass.
fn by_full_pass(
    engine: &mut dyn Engine,
    batch: &QueryBatch<'_>,
    mut found: Vec<Option<Vec<Hit>>>,
) -> Result<Vec<Vec<Hit>>, EngineError> {
    let none = |(place, hits): (usize, &Option<Vec<Hit>>)| hits.is_none().then_some(place);
    let left: Vec<usize> = found.iter().enumerate().filter_map(none).collect();
    if !left.is_empty() {
        let queries = left.iter().map(|&place| FullPassQuery::of_search(batch.queries()[place]));
        let queries: Vec<FullPassQuery> = queries.collect();
        let answers = engine.full_pass(&queries.iter().collect::<Vec<_>>())?;
        for (place, answer) in left.into_iter().zip(answers) {
            found[place] = Some(answer.hits);
        }
    }
    Ok(found.into_iter().flatten().collect())
}

/// Runs something of the engine's. A panic is an error, with what it said.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| format!("it panicked: {}", said(&*panic)))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a word")
}

/// A pass's answers, if they are as many as the questions.
fn checked<T>(
    result: Result<Result<Vec<T>, EngineError>, String>,
    size: usize,
) -> Result<Vec<T>, Fault> {
    match result {
        Ok(Ok(answers)) if answers.len() == size => Ok(answers),
        Ok(Ok(answers)) => Err(Fault::Engine(format!("it gave {} answers", answers.len()))),
        Ok(Err(e @ (EngineError::ForeignQuery | EngineError::SearchOnly(_)))) => {
            Err(Fault::Question(e))
        }
        Ok(Err(e)) => Err(Fault::Engine(e.to_string())),
        Err(panic) => Err(Fault::Engine(panic)),
    }
}
