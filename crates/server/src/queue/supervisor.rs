//! What the engine thread does when the engine fails: it latches that, drops the engine and makes another, with
//! growing pauses, until one works or the failures are too many.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use contract::Engine;
use tracing::{debug, error, info, warn};

use super::SubmitError;
use super::engine_state::EngineLost;
use super::passes::{End, Passes, caught};
use super::shared::Shared;
use crate::engines::EngineStartError;

/// Within so long there may be no more than `engine_max_restarts` attempts.
const WINDOW: Duration = Duration::from_secs(60);
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

pub(super) struct Supervisor<F> {
    make_engine: F,
    passes: Passes,
    shared: Arc<Shared>,
    max_restarts: u32,
    /// When the attempts within the [`WINDOW`] began.
    attempts: VecDeque<Instant>,
    /// How long it last took to make an engine.
    making_took: Duration,
}

/// However the thread ends, nobody waits for it in vain.
impl<F> Drop for Supervisor<F> {
    fn drop(&mut self) {
        self.shared.engine_is_lost(EngineLost::ThreadEnded);
    }
}

impl<F> Supervisor<F>
where
    F: FnMut() -> Result<Box<dyn Engine>, EngineStartError>,
{
    pub(super) fn new(
        make_engine: F,
        passes: Passes,
        shared: Arc<Shared>,
        max_restarts: u32,
    ) -> Self {
        let (attempts, making_took) = (VecDeque::new(), Duration::ZERO);
        Self { make_engine, passes, shared, max_restarts, attempts, making_took }
    }

    /// Makes an engine.
    ///
    /// # Errors
    /// As the maker says; [`EngineStartError::Broken`] if it panics.
    pub(super) fn make(&mut self) -> Result<Box<dyn Engine>, EngineStartError> {
        let started = Instant::now();
        let made = caught(&mut self.make_engine).map_err(EngineStartError::Broken).flatten();
        self.making_took = started.elapsed();
        made
    }

    /// Answers what is asked, with this engine and those after it, until nobody asks any more or there is none.
    pub(super) fn run(mut self, mut engine: Box<dyn Engine>) {
        loop {
            match self.passes.run(&mut *engine) {
                End::NobodyAsks => {
                    debug!("every handle is dropped and every job is answered");
                    say_counters(&*engine);
                    return;
                }
                End::GivenUp => return,
                End::EngineFailed(reason) => match self.replace(engine, reason) {
                    Some(another) => engine = another,
                    None => return,
                },
            }
        }
    }

    /// Another engine in place of one that failed. `None` if there is none, or nobody to ask it.
    fn replace(&mut self, engine: Box<dyn Engine>, failure: String) -> Option<Box<dyn Engine>> {
        self.shared.engine_restarts(self.pause() + self.making_took);
        self.passes.begin("dropping the failed engine", Instant::now());
        let dropped = caught(|| drop(engine));
        self.passes.end().ok()?;
        if let Err(reason) = dropped {
            error!("dropping the failed engine failed: {reason}");
        }
        self.shared.statistics.engine_is_dropped();
        let mut last = failure;
        loop {
            let now = Instant::now();
            self.attempts.retain(|&attempt| now.saturating_duration_since(attempt) < WINDOW);
            if self.attempts.len() >= self.max_restarts as usize {
                self.passes.fail_all(SubmitError::EngineGone);
                self.shared
                    .engine_is_lost(EngineLost::TooManyRestarts { most: self.max_restarts, last });
                return None;
            }
            let pause = self.pause();
            self.attempts.push_back(now);
            // Whoever waits already goes on waiting, with its deadline watched.
            self.passes.begin("a pause", Instant::now() + pause);
            let goes_on = self.shared.pause(pause);
            self.passes.end().ok()?;
            if !goes_on {
                return None;
            }
            self.passes.begin("restarting the engine", Instant::now());
            let made = self.make();
            self.passes.end().ok()?;
            match made {
                Ok(engine) => {
                    self.shared.statistics.engine_restarts.fetch_add(1, Relaxed);
                    info!("the engine is restarted");
                    return self.shared.engine_works().then_some(engine);
                }
                Err(reason) => {
                    warn!("restarting the engine failed: {reason}");
                    last = reason.to_string();
                    let retry_after = self.pause() + self.making_took;
                    self.shared.engine_restarts(retry_after);
                    self.passes.fail_all(SubmitError::EngineRestarting { retry_after });
                }
            }
        }
    }

    /// How long to wait before the next attempt.
    fn pause(&self) -> Duration {
        let doubled = FIRST_PAUSE.saturating_mul(1 << self.attempts.len().min(16));
        doubled.min(LONGEST_PAUSE)
    }
}

fn say_counters(engine: &dyn Engine) {
    let counters = engine.counters();
    if !counters.is_empty() {
        let counted: Vec<String> =
            counters.iter().map(|(name, count)| format!("{name} {count}")).collect();
        info!("counts of the engine: {}", counted.join(", "));
    }
}
