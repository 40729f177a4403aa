//! What the engine thread does with an engine that works: gather, drop expired jobs, one pass, hand out.
//!
//! A search pass answers its queries at once. A full pass is long, and made in slices: between two of them searches
//! have their turn, and expired jobs are dropped. Callers take turns by the time that the engine has spent on them
//! ([`Turns`]), whatever they ask for.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{Engine, EngineError, FullPassPart, FullPassQuery, Query, QueryBatch};
use tracing::{debug, error};

use super::SubmitError;
use super::job::{Ask, Job};
use super::lane::Lane;
use super::share::part_of_one;
use super::shared::Shared;
use super::slices::{Slices, VECTORS_BESIDE_OTHERS, work};
use super::state::Arrived;
use crate::account::{Contention, Turns};

/// The jobs in the engine thread's hands. They outlive an engine that fails.
pub(super) struct Passes {
    shared: Arc<Shared>,
    max_batch: usize,
    /// Room for what comes out of the queue; empty between passes.
    arrived: Arrived,
    searches: Lane<Query>,
    full_passes: Lane<FullPassQuery>,
    /// The full pass that is under way, whose queries are those that [`Lane::chosen`] has.
    slices: Option<Slices>,
    /// Whose turn it is.
    turns: Turns,
    contention: Contention,
    /// What the last pass was: between two callers whose turn it is, the next one is of the other kind.
    last_was_search: bool,
    /// How long a search pass takes, lately: a slice of a full pass takes no longer while others wait.
    search_took: Duration,
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

impl Fault {
    fn of(error: EngineError) -> Self {
        match error {
            EngineError::ForeignQuery | EngineError::SearchOnly(_) => Self::Question(error),
            _ => Self::Engine(error.to_string()),
        }
    }
}

impl Passes {
    pub(super) fn new(shared: Arc<Shared>, max_batch: usize) -> Self {
        Self {
            shared,
            max_batch,
            arrived: Arrived::default(),
            searches: Lane::new(),
            full_passes: Lane::new(),
            slices: None,
            turns: Turns::default(),
            contention: Contention::default(),
            last_was_search: false,
            search_took: Duration::from_millis(1),
            hung_up: 0,
        }
    }

    /// Answers whatever is asked, with this engine.
    pub(super) fn run(&mut self, engine: &mut dyn Engine) -> End {
        loop {
            if !self.take_arrived(engine, false) {
                return End::NobodyAsks;
            }
            if self.searches.is_empty() && self.full_passes.is_empty() && !self.sleep(engine) {
                return End::NobodyAsks;
            }
            self.drop_expired();
            if let Err(end) = self.pass(engine) {
                return end;
            }
        }
    }

    /// Until there is work. `false` when there will never be more.
    fn sleep(&mut self, engine: &mut dyn Engine) -> bool {
        self.hand_out();
        self.shared.statistics.note(engine.counters());
        self.take_arrived(engine, true)
    }

    fn hand_out(&self) {
        if let Some(finished) = self.shared.take_finished() {
            finished.hand_out(&self.shared.statistics);
        }
    }

    fn take_arrived(&mut self, engine: &dyn Engine, may_sleep: bool) -> bool {
        if !self.shared.take(&mut self.arrived, may_sleep) {
            return false;
        }
        let (searches, full_passes) = (&mut self.arrived.searches, &mut self.arrived.full_passes);
        if !searches.is_empty() || !full_passes.is_empty() {
            let now = Instant::now();
            let callers = searches.iter().map(Job::caller);
            for caller in callers.chain(full_passes.iter().map(Job::caller)) {
                self.contention.note(caller, now);
            }
        }
        let cost = |query: &Query| engine.search_cost(query);
        self.searches.add(searches, cost);
        self.full_passes.add(full_passes, work);
        // To the front: the probe asks whether the engine works, not how long the queue is.
        if let Some(probe) = self.arrived.probe.take() {
            self.searches.add_first(probe, cost);
        }
        true
    }

    fn drop_expired(&mut self) {
        let hung_up = self.shared.hung_up();
        let somebody_hung_up = std::mem::replace(&mut self.hung_up, hung_up) != hung_up;
        self.searches.drop_expired(&self.shared, somebody_hung_up);
        if self.full_passes.drop_expired(&self.shared, somebody_hung_up) {
            self.slices = self.slices.take().and_then(|slices| slices.of(&self.full_passes));
        }
    }

    /// A search pass, or a slice of a full pass, for the caller whose turn it is, if anything waits.
    fn pass(&mut self, engine: &mut dyn Engine) -> Result<(), End> {
        let is_search = match (self.searches.is_empty(), self.full_passes.is_empty()) {
            (true, true) => return Ok(()),
            (is_empty, true) => !is_empty,
            (true, false) => false,
            (false, false) => {
                let search = self.searches.first_clock(&self.turns);
                let full_pass = self.full_passes.first_clock(&self.turns);
                self.turns.begin(search.min(full_pass));
                if search == full_pass { !self.last_was_search } else { search < full_pass }
            }
        };
        self.last_was_search = is_search;
        if is_search { self.search(engine) } else { self.slice(engine) }
    }

    /// One pass for as many of the waiting searches as it takes.
    fn search(&mut self, engine: &mut dyn Engine) -> Result<(), End> {
        // Counted in plain queries, of which one that is dear is worth many.
        let room = engine.preferred_batch(self.searches.cost()).min(self.max_batch).max(1);
        let started = Instant::now();
        let (room, most_of_one) = if self.contention.is_there(started) {
            let largest = engine.preferred_batch(usize::MAX).min(self.max_batch);
            (room, part_of_one(largest))
        } else {
            (room, room)
        };
        let all_go = self.searches.choose(room, most_of_one, |query| engine.search_cost(query));
        self.begin("a search", started);
        let batch: QueryBatch<'_> = self.searches.chosen().collect();
        let size = batch.len();
        // It may be alone in its pass, or the first of many.
        let is_probe = self.searches.waiting.front().is_some_and(|job| job.job.caller().is_none());
        let result = caught(|| {
            let mut found = engine.search_meanwhile(&batch, &mut || self.hand_out())?;
            if is_probe && let (Some(None), Some(asked)) = (found.first(), batch.queries().first())
            {
                let asked = FullPassQuery::of_search(asked);
                found[0] = engine.full_pass(&[&asked])?.pop().map(|answer| answer.hits);
            }
            Ok(found)
        });
        let took = started.elapsed();
        self.hand_out();
        self.end()?;
        debug!(queries = size, microseconds = took.as_micros() as u64, "pass");
        match checked(result, size) {
            Ok(answers) => {
                self.search_took = (self.search_took * 7 + took) / 8;
                self.shared.statistics.searches.count(size, took);
                self.shared.statistics.refresh(started, || engine.counters());
                let cost = |query: &Query| engine.search_cost(query);
                // While nobody has to wait for others, nobody has more than its share.
                if !all_go || !self.full_passes.is_empty() {
                    self.searches.charge(&mut self.turns, took, cost);
                }
                let finished = self.searches.finish(answers, started, took, cost);
                self.shared.statistics.searches.count_work(finished.work);
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

    /// A slice of a full pass: of the one under way, or the first of one for as many of the waiting queries as fit
    /// together. Its answers do not wait for what comes after it, nor the last search's for it.
    fn slice(&mut self, engine: &mut dyn Engine) -> Result<(), End> {
        self.hand_out();
        let started = Instant::now();
        let mut slices = self.slices.take().unwrap_or_else(|| {
            let others = self.contention.is_there(started);
            self.full_passes.choose(if others { VECTORS_BESIDE_OTHERS } else { usize::MAX >> 8 });
            Slices::new(&self.full_passes, started)
        });
        self.begin("a full pass", started);
        let shared = self.shared.clone();
        let go_on = Slices::go_on(started, self.search_took, move || shared.has_arrived());
        let parts = &mut slices.parts[..];
        let result = caught(|| engine.full_pass_part(parts, slices.from, &go_on));
        let took = started.elapsed();
        self.end()?;
        slices.took += took;
        self.full_passes.charge(&mut self.turns, took, work);
        let size = slices.parts.len();
        match result.map_err(Fault::Engine).and_then(|slice| slice.map_err(Fault::of)) {
            Ok(Some(next)) => {
                slices.from = next;
                self.slices = Some(slices);
                Ok(())
            }
            Ok(None) => {
                let Slices { parts, started, took, .. } = slices;
                debug!(queries = size, microseconds = took.as_micros() as u64, "full pass");
                self.shared.statistics.full_passes.count(size, took);
                self.shared.statistics.refresh(started, || engine.counters());
                let places = self.full_passes.chosen().map(Ask::places).sum();
                let answers = parts.into_iter().map(FullPassPart::into_answer).collect();
                let finished = self.full_passes.finish(answers, started, took, work);
                self.shared.statistics.full_passes.count_work(finished.work);
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
                    "the engine failed in a pass of {size} queries and will be replaced: {reason}"
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
        self.slices = None;
        self.searches.fail_all(error, &self.shared);
        self.full_passes.fail_all(error, &self.shared);
        self.shared.fail_arrived(error);
    }
}

/// Runs something of the engine's. A panic is an error, with what it said.
pub(super) fn caught<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).map_err(|panic| format!("it panicked: {}", said(&*panic)))
}

fn said(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}

/// A pass's answers, if they are as many as the questions.
fn checked<T>(
    result: Result<Result<Vec<T>, EngineError>, String>,
    size: usize,
) -> Result<Vec<T>, Fault> {
    match result {
        Ok(Ok(answers)) if answers.len() == size => Ok(answers),
        Ok(Ok(answers)) => Err(Fault::Engine(format!("it returned {} answers", answers.len()))),
        Ok(Err(e)) => Err(Fault::of(e)),
        Err(panic) => Err(Fault::Engine(panic)),
    }
}
