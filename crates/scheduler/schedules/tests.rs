//! Tests the scheduler's protocol (its locks, and what is lent, freed and given up) with a model
//! checker: the scheduler runs with shuttle's locks and threads under thousands of random
//! schedules. A caller that is never answered is a deadlock, which shuttle reports with the
//! schedule that led there. A module of the scheduler's own source, as this package builds it.

use std::sync::{Arc, OnceLock};
use std::task::{Context, Waker};
use std::time::{Duration, Instant};

use contract::workload::{Costs, Search, SearchResponse};
use contract::{
    Device, Engine, EngineDescription, EngineError, Filter, FullPassEngine, HeadEngine, Hit, Query,
    QueryVector, Row, SearchEngine,
};
use model_store::ModelStore;
use shuttle::future::block_on;
use shuttle::thread::{self, JoinHandle};

use crate::account::Account;
use crate::core::Core;
use crate::supervisor::Supervisor;
use crate::{DeviceState, Lane, Limits, ReplicaState, Scheduler, SubmitError};

const CAPACITY: u32 = 4;
const HOUR: Duration = Duration::from_secs(3600);
/// Limits whose times no test reaches by the clock.
const LIMITS: Limits = Limits {
    capacity_slots: CAPACITY,
    max_restarts: 2,
    hang_timeout: HOUR,
    hang_timeout_beside_others: HOUR,
    linger: Duration::ZERO,
};

/// Answers each query with the row of its k, and fails in one pass. Two of three searches it starts
/// and finishes later.
#[derive(Default)]
struct Rows {
    passes: usize,
    fails_in: usize,
    starts: usize,
}

impl Device for Rows {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "rows", detail: String::new() }
    }

    fn overlaps(&self) -> bool {
        true
    }

    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        thread::yield_now();
        Ok(())
    }
}

impl SearchEngine for Rows {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.passes += 1;
        thread::yield_now();
        if self.passes == self.fails_in {
            return Err(EngineError::Device("as ordered".into()));
        }
        let hit = |query: &&Query| vec![Hit { row: Row(query.k as u32), score: 1.0 }];
        Ok(batch.iter().map(hit).collect())
    }

    fn start_search(&mut self, _: &[&Query]) -> Result<bool, EngineError> {
        self.starts += 1;
        Ok(!self.starts.is_multiple_of(3))
    }
}

impl FullPassEngine for Rows {}

impl HeadEngine for Rows {}

/// A lane and its workers.
struct Setup {
    lane: Lane<Search>,
    core: Arc<Core<dyn Engine>>,
    workers: Vec<JoinHandle<()>>,
}

/// A set-up with one worker. Its first engine fails in this pass, from 1; then this many attempts
/// to make another fail.
fn setup(fails_in: usize, failed_attempts: usize) -> Setup {
    setup_with(&[(fails_in, failed_attempts)])
}

/// A set-up with one worker for each of these pairs.
fn setup_with(workers: &[(usize, usize)]) -> Setup {
    let mut scheduler = Scheduler::new(LIMITS);
    let lane = scheduler.lane(Search { max_batch: 2, costs: Costs::default() });
    let core = scheduler.core(&vec![ReplicaState::Working; workers.len()]);
    let worker = |(index, &(fails_in, failed_attempts)): (usize, &(usize, usize))| {
        let core = core.clone();
        thread::spawn(move || {
            let mut attempts = 0;
            let make = move || {
                attempts += 1;
                thread::yield_now();
                if attempts <= failed_attempts {
                    return Err("as ordered");
                }
                Ok(Box::new(Rows::default()) as Box<dyn Engine>)
            };
            let supervisor = Supervisor::new(make, core, index);
            supervisor.run(Box::new(Rows { fails_in, ..Rows::default() }));
        })
    };
    let workers = workers.iter().enumerate().map(worker).collect();
    Setup { lane, core, workers }
}

impl Setup {
    /// Drops this handle, waits for the workers to end, and checks that no slot is taken.
    fn end(self) -> Arc<Core<dyn Engine>> {
        let lane = self.core.dispatch().shared_lanes().remove(0);
        drop(self.lane);
        self.workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(lane.statistics().slots_taken, 0, "{:?}", lane.statistics());
        self.core
    }
}

fn queries(ks: impl IntoIterator<Item = usize>) -> Vec<Query> {
    static QUERY: OnceLock<Query> = OnceLock::new();
    let query = QUERY.get_or_init(|| {
        let model = ModelStore::from_rows("one", 1, [("a", &[1.0f32][..])]).unwrap();
        Query::new(&model.table(), QueryVector::Row(Row(0)), 1, Filter::default()).unwrap()
    });
    let with_k = |k| {
        let mut query = query.clone();
        query.k = k;
        query
    };
    ks.into_iter().map(with_k).collect()
}

/// Submits these queries as one job, waits, and checks the answer.
fn ask(lane: &Lane<Search>, ks: std::ops::Range<usize>) -> Option<SubmitError> {
    let answer = block_on(lane.submit(
        &Account::new(),
        queries(ks.clone()),
        Instant::now() + 10 * HOUR,
        None,
    ));
    assert!(lane.statistics().slots_taken <= CAPACITY);
    match answer {
        Ok(answer) => {
            let row = |found: &SearchResponse| match found {
                SearchResponse::Hits(hits) => hits[0].row.index(),
                SearchResponse::Unproven(query) => panic!("{query:?}"),
            };
            let rows: Vec<usize> = answer.responses.iter().map(row).collect();
            assert_eq!(rows, ks.collect::<Vec<_>>());
            None
        }
        Err(e) => Some(e),
    }
}

/// Starts a thread for each list, which submits jobs of these sizes one after another. Each thread
/// returns the errors.
fn callers(setup: &Setup, jobs: [&[usize]; 3]) -> Vec<JoinHandle<Vec<Option<SubmitError>>>> {
    let caller = |(caller, sizes): (usize, &[usize])| {
        let (lane, sizes) = (setup.lane.clone(), sizes.to_vec());
        thread::spawn(move || {
            let first = 100 * (caller + 1);
            sizes.iter().map(|size| ask(&lane, first..first + size)).collect()
        })
    };
    jobs.into_iter().enumerate().map(caller).collect()
}

fn over(callers: Vec<JoinHandle<Vec<Option<SubmitError>>>>) -> Vec<Option<SubmitError>> {
    callers.into_iter().flat_map(|caller| caller.join().unwrap()).collect()
}

/// Runs a test under random schedules, and under schedules with few but ill-timed switches.
fn check(test: impl Fn() + Copy + Send + Sync + 'static) {
    shuttle::check_random(test, 5000);
    shuttle::check_pct(test, 5000, 3);
}

#[test]
fn every_job_is_answered_or_refused_and_leaves_no_slots() {
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
fn whoever_hangs_up_leaves_no_slots_and_harms_nobody() {
    check(|| {
        let setup = setup(0, 0);
        let others = callers(&setup, [&[1, 1], &[1], &[]]);
        let lane = setup.lane.clone();
        let hangs_up = thread::spawn(move || {
            let account = Account::new();
            let mut answer =
                Box::pin(lane.submit(&account, queries(7..9), Instant::now() + 10 * HOUR, None));
            let waits = answer.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending();
            thread::yield_now();
            drop(answer);
            waits
        });
        let results = over(others);
        assert!(results.iter().flatten().all(|e| matches!(e, SubmitError::Full { .. })));
        let waited = hangs_up.join().unwrap();
        let core = setup.end();
        assert_eq!(core.shared.hung_up(), u64::from(waited));
    });
}

#[test]
fn whose_time_is_over_hears_one_thing_and_leaves_no_slots() {
    check(|| {
        let setup = setup(0, 0);
        let others = callers(&setup, [&[1, 2], &[3], &[1]]);
        let core = setup.core.clone();
        let timer = thread::spawn(move || {
            for _ in 0..3 {
                // Deadlines are over, by a clock on which nothing has hung yet.
                core.answer_expired(Instant::now() + 20 * HOUR);
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
        let core = setup.core.clone();
        let watch = thread::spawn(move || {
            while core.watch(Instant::now() + 2 * HOUR) {
                thread::yield_now();
            }
        });
        for error in over(others).into_iter().flatten() {
            let expected = matches!(error, SubmitError::Full { .. } | SubmitError::EngineGone);
            assert!(expected, "{error:?}");
        }
        drop(setup.lane);
        setup.workers.into_iter().for_each(|worker| worker.join().unwrap());
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
            while setup.lane.state() != DeviceState::Working {
                thread::yield_now();
            }
            assert_eq!(setup.lane.statistics().slots_taken, 0);
            assert!(setup.lane.counted().restarts <= 1);
            let last = ask(&setup.lane, 1..2);
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
        setup.workers.into_iter().for_each(|worker| worker.join().unwrap());
        assert_eq!(setup.lane.state(), DeviceState::Lost);
        assert_eq!(ask(&setup.lane, 1..2), Some(SubmitError::EngineGone));
    });
}

#[test]
fn two_workers_answer_every_job_once_and_none_sleeps_while_there_is_work() {
    check(|| {
        let setup = setup_with(&[(0, 0), (0, 0)]);
        let results = over(callers(&setup, [&[1, 3], &[2, 1], &[5]]));
        for error in results.into_iter().flatten() {
            assert!(matches!(error, SubmitError::Full { .. }), "{error:?}");
        }
        setup.end();
    });
}

#[test]
fn of_two_workers_one_fails_and_the_other_goes_on() {
    for failed_attempts in [0, 2] {
        check(move || {
            let setup = setup_with(&[(1, failed_attempts), (0, 0)]);
            for error in over(callers(&setup, [&[1, 2], &[3], &[1]])).into_iter().flatten() {
                assert!(matches!(error, SubmitError::Full { .. }), "{error:?}");
            }
            assert_eq!(setup.lane.state(), DeviceState::Working);
            setup.end();
        });
    }
}

#[test]
fn of_two_workers_one_hangs_at_any_moment_and_the_other_answers_its_jobs_once() {
    check(|| {
        let setup = setup_with(&[(0, 0), (0, 0)]);
        let others = callers(&setup, [&[1, 2], &[3], &[1]]);
        let core = setup.core.clone();
        let watch = thread::spawn(move || {
            for _ in 0..5 {
                core.check_hang(0, Instant::now() + 2 * HOUR);
                // Once only: a job that a second device fails with fails.
                // The state first: a device that works again was counted before.
                let works = core.shared.states.all()[0] == ReplicaState::Working;
                if !works || core.shared.counted().restarts > 0 {
                    return;
                }
                thread::yield_now();
            }
        });
        for error in over(others).into_iter().flatten() {
            assert!(matches!(error, SubmitError::Full { .. }), "{error:?}");
        }
        watch.join().unwrap();
        let core = setup.end();
        assert!(core.shared.lost().borrow().is_none());
    });
}

#[test]
fn a_worker_retires_and_starts_again_at_any_moment_and_no_job_is_left() {
    check(|| {
        let setup = setup_with(&[(0, 0), (0, 0)]);
        let others = callers(&setup, [&[1, 2], &[3, 1], &[1]]);
        let core = setup.core.clone();
        let operator = thread::spawn(move || {
            assert!(core.retire(1));
            for _ in 0..3 {
                thread::yield_now();
            }
            let make = core.start_again(1);
            make.map(|make| {
                let supervisor = Supervisor::new(make, core, 1);
                thread::spawn(move || supervisor.make_and_run())
            })
        });
        for error in over(others).into_iter().flatten() {
            assert!(matches!(error, SubmitError::Full { .. }), "{error:?}");
        }
        let again = operator.join().unwrap();
        setup.end();
        if let Some(again) = again {
            again.join().unwrap();
        }
    });
}

#[test]
fn a_worker_that_retires_and_stays_away_leaves_no_job() {
    check(|| {
        let setup = setup_with(&[(0, 0), (0, 0)]);
        let others = callers(&setup, [&[1, 2], &[3], &[1]]);
        assert!(setup.core.retire(0));
        for error in over(others).into_iter().flatten() {
            assert!(matches!(error, SubmitError::Full { .. }), "{error:?}");
        }
        while setup.core.shared.states.all()[0] != ReplicaState::Retired {
            thread::yield_now();
        }
        assert_eq!(ask(&setup.lane, 1..2), None);
        setup.end();
    });
}

/// The checker sees what it is for: without the condition, one of these schedules would hang.
#[test]
#[should_panic(expected = "deadlock")]
fn a_queue_whose_engine_never_comes_is_found_to_hang() {
    shuttle::check_random(
        || {
            let mut scheduler = Scheduler::<dyn Engine>::new(LIMITS);
            let lane = scheduler.lane(Search { max_batch: 2, costs: Costs::default() });
            let account = Account::new();
            let future = lane.submit(&account, queries(1..2), Instant::now() + HOUR, None);
            let _ = block_on(future);
        },
        1,
    );
}
