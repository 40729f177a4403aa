//! Engines that start a search before the last one is over.

use super::super::EngineLost;
use super::*;

/// Starts every search but those for [`ALONE`]. The test lets each of its waits go.
struct Overlapping {
    replica: usize,
    events: Events,
    go: Arc<Mutex<std_mpsc::Receiver<Order>>>,
}

/// What happened, and at which replica.
type Events = Arc<Mutex<Vec<(usize, String)>>>;

/// The k of a query that can't be started.
const ALONE: usize = 77;
/// The k of a query at whose start the device fails.
const BREAKS: usize = 66;

fn ks(batch: &[&Query]) -> Vec<usize> {
    batch.iter().map(|query| query.k).collect()
}

impl Overlapping {
    fn note(&self, what: &str, batch: Option<&[&Query]>) {
        let batch = batch.map_or(String::new(), |batch| format!(" {:?}", ks(batch)));
        self.events.lock().unwrap().push((self.replica, format!("{what}{batch}")));
    }

    fn wait(&self) -> Result<(), EngineError> {
        let order = self.go.lock().unwrap().recv().unwrap_or(Order::Answer);
        match order {
            Order::Fail => Err(EngineError::Device("as ordered".into())),
            Order::Panic => std::panic::resume_unwind(Box::new("as ordered")),
            _ => Ok(()),
        }
    }
}

impl Device for Overlapping {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "overlapping", detail: String::new() }
    }

    fn overlaps(&self) -> bool {
        true
    }

    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        self.note("wait", None);
        self.wait()
    }
}

impl SearchEngine for Overlapping {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting.min(4)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.note("search", Some(batch));
        self.wait()?;
        Ok(ks(batch).into_iter().map(hits).collect())
    }

    fn start_search(&mut self, batch: &[&Query]) -> Result<bool, EngineError> {
        if ks(batch).contains(&ALONE) {
            return Ok(false);
        }
        self.note("start", Some(batch));
        if ks(batch).contains(&BREAKS) {
            return Err(EngineError::Device("it breaks".into()));
        }
        Ok(true)
    }

    fn finish_search(&mut self, batch: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.note("finish", Some(batch));
        self.wait()?;
        Ok(ks(batch).into_iter().map(|k| Some(hits(k))).collect())
    }
}

impl FullPassEngine for Overlapping {}

impl HeadEngine for Overlapping {}

struct Overlap {
    handle: Handle,
    thread: DeviceThreads,
    go: std_mpsc::Sender<Order>,
    events: Events,
}

/// Several on one queue. Each has its own orders.
pub(super) struct Overlaps {
    pub(super) handle: Handle,
    thread: DeviceThreads,
    pub(super) go: Vec<std_mpsc::Sender<Order>>,
    pub(super) events: Events,
}

fn overlap(limits: Limits) -> Overlap {
    let Overlaps { handle, thread, mut go, events } = overlap_with(limits, 1);
    Overlap { handle, thread, go: go.remove(0), events }
}

pub(super) fn overlap_with(limits: Limits, replicas: usize) -> Overlaps {
    let (events, mut go, mut makers) = (Events::default(), Vec::new(), Vec::new());
    for replica in 0..replicas {
        let (own, orders) = std_mpsc::channel();
        let (orders, events) = (Arc::new(Mutex::new(orders)), events.clone());
        go.push(own);
        makers.push(move || {
            let (events, go) = (events.clone(), orders.clone());
            Ok::<_, &str>(Box::new(Overlapping { replica, events, go }) as Box<dyn Engine>)
        });
    }
    let (handle, thread) = start(limits, makers).unwrap();
    Overlaps { handle, thread, go, events }
}

impl Overlap {
    fn submit(&self, ks: impl IntoIterator<Item = usize>, deadline: Instant) -> Submitted {
        let (handle, queries) = (self.handle.clone(), queries(ks));
        tokio::spawn(async move {
            let answer = handle.search.submit(&Account::new(), queries, deadline, None).await?;
            Ok(rows(answer.responses))
        })
    }

    fn order(&self, order: Order) {
        self.go.send(order).unwrap();
    }

    async fn until(&self, event: &str) {
        while self.events().last().is_none_or(|last| last != event) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }

    fn events(&self) -> Vec<String> {
        self.events.lock().unwrap().iter().map(|(_, event)| event.clone()).collect()
    }
}

#[tokio::test]
async fn the_next_search_starts_before_the_last_one_is_finished() {
    let setup = overlap(LIMITS);
    let first = setup.submit([1], later());
    setup.until("wait").await;
    let second = setup.submit([2, 3], later());
    settle().await;
    setup.order(Order::Answer);
    setup.until("finish [1]").await;
    assert_eq!(setup.events(), ["start [1]", "wait", "start [2, 3]", "finish [1]"]);
    setup.order(Order::Answer);
    // Its answer does not wait for the second search.
    assert_eq!(first.await.unwrap(), Ok(vec![1]));
    assert!(!second.is_finished());
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(second.await.unwrap(), Ok(vec![2, 3]));
    assert_eq!(setup.events()[4..], ["wait", "finish [2, 3]"]);
    let statistics = setup.handle.statistics();
    assert_eq!((statistics.searches.passes, statistics.searches.slots_taken), (2, 0));
}

#[tokio::test]
async fn what_can_not_be_started_waits_until_the_started_search_is_finished() {
    let setup = overlap(LIMITS);
    let first = setup.submit([1], later());
    setup.until("wait").await;
    let alone = setup.submit([ALONE], later());
    settle().await;
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(first.await.unwrap(), Ok(vec![1]));
    setup.until("search [77]").await;
    assert_eq!(setup.events(), ["start [1]", "wait", "finish [1]", "search [77]"]);
    setup.order(Order::Answer);
    assert_eq!(alone.await.unwrap(), Ok(vec![ALONE as u32]));
}

#[tokio::test]
async fn when_a_started_search_fails_the_one_behind_it_begins_again() {
    for (order, waits) in [(Order::Fail, 1), (Order::Panic, 1), (Order::Fail, 0)] {
        let setup = overlap(LIMITS);
        let first = setup.submit([1], later());
        setup.until("wait").await;
        let second = setup.submit([2], later());
        settle().await;
        (0..waits).for_each(|_| setup.order(Order::Answer));
        setup.order(order);
        assert_eq!(first.await.unwrap(), Err(SubmitError::EngineFailed));
        (0..2).for_each(|_| setup.order(Order::Answer));
        assert_eq!(second.await.unwrap(), Ok(vec![2]), "{:?}", setup.events());
        let statistics = setup.handle.statistics();
        assert_eq!((statistics.restarts, statistics.searches.slots_taken), (1, 0));
    }
}

#[tokio::test]
async fn when_a_start_fails_the_search_before_it_begins_again() {
    let setup = overlap(LIMITS);
    let first = setup.submit([1], later());
    setup.until("wait").await;
    let broken = setup.submit([BREAKS], later());
    settle().await;
    setup.order(Order::Answer);
    assert_eq!(broken.await.unwrap(), Err(SubmitError::EngineFailed));
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(first.await.unwrap(), Ok(vec![1]), "{:?}", setup.events());
    assert_eq!(setup.handle.statistics().restarts, 1);
}

#[tokio::test]
async fn callers_of_started_searches_hear_when_they_are_late() {
    let setup = overlap(LIMITS);
    let soon = || Instant::now() + Duration::from_millis(60);
    let first = setup.submit([1], soon());
    setup.until("wait").await;
    let second = setup.submit([2], soon());
    settle().await;
    setup.order(Order::Answer);
    // Now both are on the device.
    assert_eq!(first.await.unwrap(), Err(SubmitError::DeadlinePassed));
    assert_eq!(second.await.unwrap(), Err(SubmitError::DeadlinePassed));
    (0..3).for_each(|_| setup.order(Order::Answer));
    setup.until("finish [2]").await;
    let third = setup.submit([3], later());
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(third.await.unwrap(), Ok(vec![3]));
    assert_eq!(setup.handle.statistics().deadline_passed, 2);
}

#[tokio::test]
async fn when_the_device_hangs_all_callers_of_started_searches_are_told() {
    for waits in [0, 1] {
        let hang_timeout = Duration::from_millis(150);
        let setup = overlap(Limits { hang_timeout, ..LIMITS });
        let lost = setup.thread.lost();
        let first = setup.submit([1], later());
        setup.until("wait").await;
        let second = setup.submit([2], later());
        settle().await;
        (0..waits).for_each(|_| setup.order(Order::Answer));
        assert_eq!(first.await.unwrap(), Err(SubmitError::EngineGone));
        assert_eq!(second.await.unwrap(), Err(SubmitError::EngineGone));
        let lost = tokio::time::timeout(Duration::from_secs(30), lost).await.expect("it is lost");
        assert!(matches!(lost, Some(EngineLost::Hangs { .. })), "{lost:?}");
    }
}
