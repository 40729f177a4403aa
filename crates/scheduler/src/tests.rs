//! The scheduler against an engine that can be held, counted and broken.
//!
//! One long file: the engine and the set-up that the files in `tests/` share, and the tests of
//! batching.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc as std_mpsc;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use contract::{
    Device, Engine, EngineDescription, EngineError, Filter, FullPassEngine, FullPassPart,
    FullPassQuery, HeadEngine, Hit, Query, QueryVector, Row, Scoring, SearchEngine,
};
use model_store::ModelStore;
use tokio::runtime;

use contract::workload::{Costs, FullPass, Search, SearchResponse};

use super::{
    DeviceState, DeviceThreads, Lane, LaneStatistics, Limits, ReplicaState, Scheduler, StartError,
    SubmitError, Until,
};
use crate::account::Account;

/// Waits before each pass until it is let go, and answers each query with the row of its k. Of a
/// full pass it notes k + 1000.
struct HeldEngine {
    go: Arc<Mutex<std_mpsc::Receiver<Order>>>,
    passes: Arc<Mutex<Vec<Vec<usize>>>>,
    dropped: Order,
    /// Slices of a full pass before the last.
    slices: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Order {
    Answer,
    /// Fails, with the request at fault.
    Refuse,
    /// Fails, with the device at fault.
    Fail,
    Panic,
    /// One answer too few.
    Forget,
}

impl Drop for HeldEngine {
    fn drop(&mut self) {
        if self.dropped == Order::Panic && !std::thread::panicking() {
            panic!("as ordered, when dropped");
        }
    }
}

impl Device for HeldEngine {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "held", detail: String::new() }
    }
}

impl SearchEngine for HeldEngine {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting.min(4)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let forgotten = self.wait(batch.iter().map(|query| query.k).collect())?;
        Ok(batch.iter().skip(forgotten).map(|query| hits(query.k)).collect())
    }
}

impl FullPassEngine for HeldEngine {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.wait(parts.iter().map(|part| part.query().k + 1000).collect())?;
        if from < self.slices.load(Ordering::Relaxed) {
            while go_on() {
                std::thread::yield_now();
            }
            return Ok(Some(from + 1));
        }
        for part in parts {
            let mut share = part.share();
            part.add_scores(&mut share, Row(part.query().k as u32), &[1.0]);
            part.merge(share);
        }
        Ok(None)
    }
}

impl HeadEngine for HeldEngine {}

impl HeldEngine {
    /// Returns how many answers to leave out.
    fn wait(&self, pass: Vec<usize>) -> Result<usize, EngineError> {
        self.passes.lock().unwrap().push(pass);
        let order = self.go.lock().unwrap().recv().unwrap_or(Order::Answer);
        match order {
            Order::Answer => Ok(0),
            Order::Forget => Ok(1),
            Order::Refuse => Err(EngineError::ForeignQuery),
            Order::Fail => Err(EngineError::Device("as ordered".into())),
            Order::Panic => std::panic::resume_unwind(Box::new("as ordered")),
        }
    }
}

fn hits(k: usize) -> Vec<Hit> {
    vec![Hit { row: Row(k as u32), score: 1.0 }]
}

/// Both lanes of an engine.
#[derive(Clone)]
struct Handle {
    search: Lane<Search>,
    full_pass: Lane<FullPass>,
}

#[derive(Debug)]
struct Statistics {
    searches: LaneStatistics,
    full_passes: LaneStatistics,
    refused_full: u64,
    refused_without_device: u64,
    deadline_passed: u64,
    hung_up: u64,
    failed: u64,
    restarts: u64,
    state: DeviceState,
}

impl Handle {
    fn state(&self) -> DeviceState {
        self.search.state()
    }

    fn statistics(&self) -> Statistics {
        let counted = self.full_pass.counted();
        Statistics {
            searches: self.search.statistics(),
            full_passes: self.full_pass.statistics(),
            refused_full: counted.refused_full,
            refused_without_device: counted.refused_without_device,
            deadline_passed: counted.deadline_passed,
            hung_up: counted.hung_up,
            failed: counted.failed,
            restarts: counted.restarts,
            state: counted.state,
        }
    }
}

/// The first row of each answer.
fn rows(found: Vec<SearchResponse>) -> Vec<u32> {
    let row = |found: SearchResponse| match found {
        SearchResponse::Hits(hits) => hits[0].row.0,
        SearchResponse::Unproven(query) => panic!("{query:?}"),
    };
    found.into_iter().map(row).collect()
}

struct Setup {
    handle: Handle,
    thread: DeviceThreads,
    go: std_mpsc::Sender<Order>,
    passes: Arc<Mutex<Vec<Vec<usize>>>>,
    slices: Arc<AtomicUsize>,
    /// How each attempt to make an engine again ends, and what that engine does when it is dropped.
    /// Each attempt waits for this.
    remake: std_mpsc::Sender<(Order, Order)>,
}

fn setup(capacity_slots: u32) -> Setup {
    setup_with(Limits { capacity_slots, ..LIMITS })
}

const LIMITS: Limits = Limits {
    capacity_slots: 100,
    max_restarts: 5,
    hang_timeout: MINUTE,
    hang_timeout_beside_others: MINUTE,
    linger: Duration::ZERO,
};
const MINUTE: Duration = Duration::from_secs(60);

fn setup_with(limits: Limits) -> Setup {
    let (go, orders) = std_mpsc::channel();
    let orders = Arc::new(Mutex::new(orders));
    let passes = Arc::new(Mutex::new(Vec::new()));
    let engine_passes = passes.clone();
    let slices = Arc::new(AtomicUsize::new(0));
    let engine_slices = slices.clone();
    let (remake, attempts) = std_mpsc::channel();
    remake.send((Order::Answer, Order::Answer)).unwrap();
    let make = move || {
        let (order, dropped) = attempts.recv().unwrap_or((Order::Answer, Order::Answer));
        match order {
            Order::Answer => {}
            Order::Panic => std::panic::resume_unwind(Box::new("as ordered")),
            _ => return Err("as ordered"),
        }
        let (go, passes, slices) = (orders.clone(), engine_passes.clone(), engine_slices.clone());
        Ok(Box::new(HeldEngine { go, passes, dropped, slices }) as Box<dyn Engine>)
    };
    let (handle, thread) = start(limits, vec![make]).unwrap();
    Setup { handle, thread, go, passes, slices, remake }
}

/// A worker for each maker.
fn start<F, E>(limits: Limits, makers: Vec<F>) -> Result<(Handle, DeviceThreads), StartError<E>>
where
    F: FnMut() -> Result<Box<dyn Engine>, E> + Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    start_until(Until::All, limits, makers)
}

fn start_until<F, E>(
    until: Until,
    limits: Limits,
    makers: Vec<F>,
) -> Result<(Handle, DeviceThreads), StartError<E>>
where
    F: FnMut() -> Result<Box<dyn Engine>, E> + Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    let mut scheduler = Scheduler::new(limits);
    let search = scheduler.lane(Search { max_batch: 10_000, costs: Costs::default() });
    let handle = Handle { search, full_pass: scheduler.lane(FullPass::default()) };
    let workers = scheduler.start(&runtime::Handle::current(), until, None, makers)?;
    Ok((handle, workers))
}

/// Queries that are told apart by their k.
fn queries(ks: impl IntoIterator<Item = usize>) -> Vec<Query> {
    let model = ModelStore::from_rows("one", 1, [("a", &[1.0f32][..])]).unwrap();
    let query =
        |k| Query::new(&model.table(), QueryVector::Row(Row(0)), k, Filter::default()).unwrap();
    ks.into_iter().map(query).collect()
}

/// Full-pass queries that are told apart by their k, each with this many vectors of its own.
fn full(ks: impl IntoIterator<Item = usize>, vectors: usize) -> Vec<FullPassQuery> {
    let words: Vec<String> = (0..2000).map(|word| format!("w{word}")).collect();
    let rows = words.iter().map(|word| (word.as_str(), &[1.0f32][..]));
    let model = ModelStore::from_rows("many", 1, rows).unwrap();
    let query = |k: usize| {
        let rows: Vec<Row> = (0..vectors).map(|i| Row((k * vectors + i) as u32)).collect();
        let scoring = Scoring::three_cos_mul(&model.table(), &rows, &[]).unwrap();
        FullPassQuery::new(scoring, k, Filter::default(), Vec::new())
    };
    ks.into_iter().map(query).collect()
}

fn later() -> Instant {
    Instant::now() + Duration::from_secs(60)
}

type Submitted = tokio::task::JoinHandle<Result<Vec<u32>, SubmitError>>;

impl Setup {
    /// Submits queries for a new caller.
    fn submit(&self, ks: impl IntoIterator<Item = usize>, deadline: Instant) -> Submitted {
        self.submit_for(&Account::new(), ks, deadline)
    }

    fn submit_for(
        &self,
        account: &Arc<Account>,
        ks: impl IntoIterator<Item = usize>,
        deadline: Instant,
    ) -> Submitted {
        let (handle, account, queries) = (self.handle.clone(), account.clone(), queries(ks));
        tokio::spawn(async move {
            let answer = handle.search.submit(&account, queries, deadline, None).await?;
            Ok(rows(answer.responses))
        })
    }

    /// Submits queries for a new caller.
    fn full_pass(&self, queries: Vec<FullPassQuery>, deadline: Instant) -> Submitted {
        self.full_pass_for(&Account::new(), queries, deadline)
    }

    fn full_pass_for(
        &self,
        account: &Arc<Account>,
        queries: Vec<FullPassQuery>,
        deadline: Instant,
    ) -> Submitted {
        let (handle, account) = (self.handle.clone(), account.clone());
        tokio::spawn(async move {
            let answer = handle.full_pass.submit(&account, queries, deadline, None).await?;
            Ok(answer.responses.iter().map(|answer| answer.hits[0].row.0).collect())
        })
    }

    fn probe(&self) -> Submitted {
        let (handle, query) = (self.handle.clone(), queries([99]).remove(0));
        tokio::spawn(async move { Ok(rows(handle.search.probe(query, later()).await?.responses)) })
    }

    async fn until_passes(&self, number: usize) {
        let deadline = later();
        while self.passes.lock().unwrap().len() < number {
            assert!(Instant::now() < deadline, "{:?}", self.passes.lock().unwrap());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn order(&self, order: Order) {
        self.go.send(order).unwrap();
    }
}

async fn ended<D: ?Sized + 'static>(thread: DeviceThreads<D>) {
    let joined = tokio::task::spawn_blocking(move || thread.join(Duration::from_secs(60)));
    assert!(joined.await.unwrap(), "the thread ends");
}

/// Long enough for a spawned submission to be in the queue.
async fn settle() {
    tokio::time::sleep(Duration::from_millis(30)).await;
}

mod admission;
mod fairness;
mod full_passes;
mod overlap;
mod replicas;
mod several_workers;
mod share;
mod supervision;
mod timeline;
mod workloads;

#[tokio::test]
async fn what_waits_while_a_pass_runs_goes_together_into_the_next() {
    let setup = setup(100);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let others = [setup.submit([2], later()), setup.submit([3, 4], later())];
    settle().await;
    setup.order(Order::Answer);
    setup.order(Order::Answer);
    assert_eq!(first.await.unwrap(), Ok(vec![1]));
    let [second, third] = others;
    assert_eq!((second.await.unwrap(), third.await.unwrap()), (Ok(vec![2]), Ok(vec![3, 4])));
    assert_eq!(*setup.passes.lock().unwrap(), [vec![1], vec![2, 3, 4]]);
}

#[tokio::test]
async fn answers_do_not_wait_for_the_pass_after_theirs() {
    let setup = setup(100);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let second = setup.submit([2], later());
    settle().await;
    setup.order(Order::Answer);
    assert_eq!(first.await.unwrap().unwrap(), [1]);
    setup.until_passes(2).await;
    assert!(!second.is_finished(), "its pass is held");
    setup.order(Order::Answer);
    assert_eq!(second.await.unwrap().unwrap(), [2]);
}

#[tokio::test]
async fn a_worker_that_lingers_finds_work_before_and_after_it_sleeps() {
    let setup = setup_with(Limits { linger: Duration::from_millis(20), ..LIMITS });
    for (job, pause) in [0, 1, 1, 40, 1].into_iter().enumerate() {
        tokio::time::sleep(Duration::from_millis(pause)).await;
        let answer = setup.submit([job], later());
        setup.order(Order::Answer);
        assert_eq!(answer.await.unwrap(), Ok(vec![job as u32]));
    }
}

#[tokio::test]
async fn a_job_larger_than_a_batch_takes_several_passes() {
    let setup = setup(100);
    let job = setup.submit(1..=10, later());
    (0..3).for_each(|_| setup.order(Order::Answer));
    assert_eq!(job.await.unwrap(), Ok((1..=10).collect()));
    let sizes: Vec<_> = setup.passes.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!(sizes, [4, 4, 2]);
}

#[tokio::test]
async fn a_probe_gets_through_a_full_queue_and_past_its_waiting_jobs() {
    let setup = setup(9);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let waiting = setup.submit(2..=9, later());
    settle().await;
    let probe = setup.probe();
    settle().await;
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(probe.await.unwrap(), Ok(vec![99]));
    assert!(!waiting.is_finished());
    (0..2).for_each(|_| setup.order(Order::Answer));
    first.await.unwrap().unwrap();
    waiting.await.unwrap().unwrap();
    assert_eq!(setup.passes.lock().unwrap()[1], [99, 2, 3, 4]);
}

#[tokio::test]
async fn whoever_hung_up_or_waited_too_long_is_dropped_before_the_pass() {
    let setup = setup(100);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let hung_up = setup.submit([2], later());
    let too_long = setup.submit([3], Instant::now() + Duration::from_millis(50));
    let alive = setup.submit([4], later());
    settle().await;
    hung_up.abort();
    assert_eq!(too_long.await.unwrap(), Err(SubmitError::DeadlinePassed));
    (0..2).for_each(|_| setup.order(Order::Answer));
    first.await.unwrap().unwrap();
    assert_eq!(alive.await.unwrap(), Ok(vec![4]));
    assert_eq!(*setup.passes.lock().unwrap(), [vec![1], vec![4]]);
}

#[tokio::test]
async fn a_caller_hears_that_its_time_is_over_while_the_engine_has_its_job() {
    let setup = setup(2);
    let soon = Instant::now() + Duration::from_millis(50);
    let too_long = setup.submit([1], soon);
    setup.until_passes(1).await;
    let patient = setup.submit([2], later());
    assert_eq!(too_long.await.unwrap(), Err(SubmitError::DeadlinePassed));
    assert!((soon..soon + Duration::from_secs(5)).contains(&Instant::now()));
    // Its slot stays taken while the engine works for it.
    settle().await;
    let refused = setup.submit([3], later()).await.unwrap();
    assert!(matches!(refused, Err(SubmitError::Full { .. })), "{refused:?}");
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(patient.await.unwrap(), Ok(vec![2]));
    setup.order(Order::Answer);
    assert_eq!(setup.submit([3], later()).await.unwrap(), Ok(vec![3]));
}

#[tokio::test]
async fn a_failed_pass_fails_its_jobs_and_no_others() {
    let setup = setup(100);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let second = setup.submit([2], later());
    settle().await;
    setup.order(Order::Refuse);
    setup.order(Order::Answer);
    assert_eq!(first.await.unwrap(), Err(SubmitError::EngineFailed));
    assert_eq!(second.await.unwrap(), Ok(vec![2]));
}

#[tokio::test]
async fn when_all_handles_are_gone_what_waits_is_answered_and_the_thread_ends() {
    let setup = setup(100);
    let jobs = [setup.submit([1], later()), setup.submit([2], later())];
    settle().await;
    drop(setup.handle);
    drop(setup.go);
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    ended(setup.thread).await;
}
