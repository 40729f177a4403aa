use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use contract::{
    Engine, EngineDescription, EngineError, Filter, Hit, Query, QueryBatch, QueryVector, Row,
};
use model_store::ModelStore;
use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use super::engine_state::EngineState;
use super::handle::QueueHandle;
use super::passes::Passes;
use super::shared::Shared;
use super::supervisor::Supervisor;
use super::{Limits, SubmitError};
use crate::account::Account;

const CAPACITY: u32 = 4;
const HOUR: Duration = Duration::from_secs(3600);
/// What no test waits for by the clock.
const LIMITS: Limits = Limits {
    capacity_queries: CAPACITY,
    max_batch_queries: 2,
    engine_max_restarts: 2,
    engine_hang_timeout: HOUR,
};

/// Answers each query with the row of its k, and fails in one pass.
struct Rows {
    passes: usize,
    fails_in: usize,
}

impl Engine for Rows {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "rows", detail: String::new() }
    }

    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.passes += 1;
        thread::yield_now();
        if self.passes == self.fails_in {
            return Err(EngineError::Device("as ordered".into()));
        }
        let hit = |query: &&Query| vec![Hit { row: Row(query.k() as u32), score: 1.0 }];
        Ok(batch.queries().iter().map(hit).collect())
    }
}

/// A queue and its engine's thread. The first engine fails in this pass, from 1; and so many attempts to make
/// another fail.
struct Setup {
    handle: QueueHandle,
    shared: Arc<Shared>,
    engine: JoinHandle<()>,
}

fn setup(fails_in: usize, failed_attempts: usize) -> Setup {
    let shared = Arc::new(Shared::new(LIMITS));
    let handle = QueueHandle::new(shared.clone());
    let mut attempts = 0;
    let make = move || {
        attempts += 1;
        thread::yield_now();
        if attempts <= failed_attempts {
            return Err("as ordered");
        }
        Ok(Box::new(Rows { passes: 0, fails_in: 0 }) as Box<dyn Engine>)
    };
    let passes = Passes::new(shared.clone(), LIMITS.max_batch_queries);
    let supervisor = Supervisor::new(make, passes, shared.clone(), LIMITS.engine_max_restarts);
    let engine = thread::spawn(move || supervisor.run(Box::new(Rows { passes: 0, fails_in })));
    Setup { handle, shared, engine }
}

impl Setup {
    /// All handles but those of other threads are gone, and what has been asked is over.
    fn end(self) -> Arc<Shared> {
        drop(self.handle);
        self.engine.join().unwrap();
        let statistics = self.shared.statistics();
        let taken = statistics.searches.places_taken + statistics.full_passes.places_taken;
        assert_eq!(taken, 0, "{statistics:?}");
        self.shared
    }
}

fn queries(ks: impl IntoIterator<Item = usize>) -> Vec<Query> {
    static QUERY: OnceLock<Query> = OnceLock::new();
    let query = QUERY.get_or_init(|| {
        let model = ModelStore::from_rows("one", 1, [("a", &[1.0f32][..])]).unwrap();
        Query::new(&model.table(), QueryVector::Row(Row(0)), 1, Filter::default()).unwrap()
    });
    ks.into_iter().map(|k| query.clone().with_k(k)).collect()
}

/// Asks these, waits, and checks an answer.
fn ask(handle: &QueueHandle, shared: &Shared, ks: std::ops::Range<usize>) -> Option<SubmitError> {
    let answer =
        block_on(handle.submit(&Account::new(), queries(ks.clone()), Instant::now() + 10 * HOUR));
    assert!(shared.statistics().searches.places_taken <= CAPACITY);
    match answer {
        Ok(answer) => {
            let rows: Vec<usize> = answer.hits.iter().map(|hits| hits[0].row.index()).collect();
            assert_eq!(rows, ks.collect::<Vec<_>>());
            None
        }
        Err(e) => Some(e),
    }
}

/// Each of these on a thread of its own, one after another; what became of them.
fn callers(setup: &Setup, jobs: [&[usize]; 3]) -> Vec<JoinHandle<Vec<Option<SubmitError>>>> {
    let caller = |(caller, sizes): (usize, &[usize])| {
        let (handle, shared, sizes) = (setup.handle.clone(), setup.shared.clone(), sizes.to_vec());
        thread::spawn(move || {
            let first = 100 * (caller + 1);
            sizes.iter().map(|size| ask(&handle, &shared, first..first + size)).collect()
        })
    };
    jobs.into_iter().enumerate().map(caller).collect()
}

fn over(callers: Vec<JoinHandle<Vec<Option<SubmitError>>>>) -> Vec<Option<SubmitError>> {
    callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
}

/// At random, and with few but ill-timed switches.
fn check(test: impl Fn() + Copy + Send + Sync + 'static) {
    shuttle::check_random(test, 5000);
    shuttle::check_pct(test, 5000, 3);
}

#[test]
fn every_job_is_answered_or_refused_and_leaves_no_places() {
    check(|| {
        let setup = setup(0, 0);
        let results = over(callers(&setup, [&[1, 3], &[2, 1], &[5]]));
        for error in results.into_iter().flatten() {
            assert!(matches!(error, SubmitError::Full { .. }), "{error:?}");
        }
        setup.end();
    });
}

#[test]
fn whoever_hangs_up_leaves_no_places_and_harms_nobody() {
    check(|| {
        let setup = setup(0, 0);
        let others = callers(&setup, [&[1, 1], &[1], &[]]);
        let handle = setup.handle.clone();
        let hangs_up = thread::spawn(move || {
            let account = Account::new();
            let mut answer =
                Box::pin(handle.submit(&account, queries(7..9), Instant::now() + 10 * HOUR));
            let waits = answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
            thread::yield_now();
            drop(answer);
            waits
        });
        let results = over(others);
        assert!(results.iter().flatten().all(|e| matches!(e, SubmitError::Full { .. })));
        let waited = hangs_up.join().unwrap();
        let shared = setup.end();
        assert_eq!(shared.hung_up(), u64::from(waited));
    });
}

#[test]
fn whose_time_is_over_hears_one_thing_and_leaves_no_places() {
    check(|| {
        let setup = setup(0, 0);
        let others = callers(&setup, [&[1, 2], &[3], &[1]]);
        let shared = setup.shared.clone();
        let timer = thread::spawn(move || {
            for _ in 0..3 {
                // Deadlines are over, by a clock on which nothing has hung yet.
                shared.tell_the_late(Instant::now() + 20 * HOUR);
                thread::yield_now();
            }
        });
        for error in over(others).into_iter().flatten() {
            let expected = matches!(error, SubmitError::Full { .. } | SubmitError::DeadlinePassed);
            assert!(expected, "{error:?}");
        }
        timer.join().unwrap();
        setup.end();
    });
}

#[test]
fn an_engine_that_is_given_up_at_any_moment_leaves_nobody_waiting() {
    check(|| {
        let setup = setup(0, 0);
        let others = callers(&setup, [&[1, 2], &[3], &[1]]);
        let shared = setup.shared.clone();
        let watch = thread::spawn(move || {
            while shared.watch(Instant::now() + 2 * HOUR) {
                thread::yield_now();
            }
        });
        for error in over(others).into_iter().flatten() {
            let expected = matches!(error, SubmitError::Full { .. } | SubmitError::EngineGone);
            assert!(expected, "{error:?}");
        }
        drop(setup.handle);
        setup.engine.join().unwrap();
        watch.join().unwrap();
    });
}

#[test]
fn an_engine_that_fails_and_is_made_again_fails_one_pass_and_loses_nobody() {
    for failed_attempts in [0, 1] {
        check(move || {
            let setup = setup(2, failed_attempts);
            let others = callers(&setup, [&[1, 2, 1], &[3], &[1]]);
            for error in over(others).into_iter().flatten() {
                assert_ne!(error, SubmitError::EngineGone);
                assert_ne!(error, SubmitError::DeadlinePassed);
            }
            while setup.shared.engine_state() != EngineState::Working {
                thread::yield_now();
            }
            let statistics = setup.shared.statistics();
            assert_eq!(statistics.searches.places_taken, 0, "{statistics:?}");
            assert!(statistics.engine_restarts <= 1);
            let last = ask(&setup.handle, &setup.shared, 1..2);
            assert!(matches!(last, None | Some(SubmitError::EngineFailed)), "{last:?}");
            setup.end();
        });
    }
}

#[test]
fn an_engine_that_can_not_be_made_again_leaves_nobody_waiting() {
    check(|| {
        let setup = setup(1, 2);
        let others = callers(&setup, [&[1, 2], &[3], &[1]]);
        assert!(over(others).iter().all(Option::is_some), "there never was an answer");
        setup.engine.join().unwrap();
        assert_eq!(setup.shared.engine_state(), EngineState::Lost);
        assert_eq!(ask(&setup.handle, &setup.shared, 1..2), Some(SubmitError::EngineGone));
    });
}

/// The checker sees what it is for: without the condition, one of these schedules would hang.
#[test]
#[should_panic(expected = "deadlock")]
fn a_queue_whose_engine_never_comes_is_found_to_hang() {
    shuttle::check_random(
        || {
            let shared = Arc::new(Shared::new(LIMITS));
            let handle = QueueHandle::new(shared);
            let account = Account::new();
            let future = handle.submit(&account, queries(1..2), Instant::now() + HOUR);
            let _ = block_on(future);
        },
        1,
    );
}
