//! Engines that fail, can't be made again, or hang.

use super::super::{DeviceState, EngineLost};
use super::*;

fn is_restarting<T>(answer: &Result<T, SubmitError>) -> bool {
    matches!(answer, Err(SubmitError::EngineRestarting { .. }))
}

impl Setup {
    async fn until_it_works(&self) {
        while self.handle.state() != DeviceState::Working {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

const GOOD: (Order, Order) = (Order::Answer, Order::Answer);

#[tokio::test(flavor = "multi_thread")]
async fn an_engine_that_nobody_can_ask_any_more_ends_and_is_not_lost() {
    let setup = setup_with(LIMITS);
    let lost = setup.thread.lost();
    drop(setup.handle);
    let ended = tokio::time::timeout(Duration::from_secs(30), lost).await.expect("it ends");
    assert_eq!(ended, None);
    assert!(setup.thread.join(Duration::from_secs(30)));
}

#[tokio::test]
async fn an_engine_that_fails_or_panics_is_replaced_and_who_waits_is_answered_by_the_next() {
    for order in [Order::Fail, Order::Panic, Order::Forget] {
        let setup = setup(100);
        let first = setup.submit([1], later());
        setup.until_passes(1).await;
        let waits = setup.submit(2..=9, later());
        settle().await;
        setup.order(order);
        assert_eq!(first.await.unwrap(), Err(SubmitError::EngineFailed));
        let state = setup.handle.state();
        assert!(matches!(state, DeviceState::Restarting { .. }), "{state:?}");
        assert!(is_restarting(&setup.submit([3], later()).await.unwrap()));
        assert!(is_restarting(&setup.probe().await.unwrap()));
        assert!(!waits.is_finished());
        setup.remake.send(GOOD).unwrap();
        (0..3).for_each(|_| setup.order(Order::Answer));
        assert_eq!(waits.await.unwrap(), Ok((2..=9).collect()));
        assert_eq!(setup.submit([4], later()).await.unwrap(), Ok(vec![4]));
        let statistics = setup.handle.statistics();
        assert_eq!((statistics.restarts, statistics.refused_without_device), (1, 2));
        assert_eq!(statistics.state, DeviceState::Working);
    }
}

#[tokio::test]
async fn an_engine_that_panics_when_it_is_dropped_is_replaced_as_well() {
    let setup = setup(100);
    for (restart, dropped) in [(1, Order::Panic), (2, Order::Answer)] {
        setup.order(Order::Fail);
        assert_eq!(setup.submit([1], later()).await.unwrap(), Err(SubmitError::EngineFailed));
        setup.remake.send((Order::Answer, dropped)).unwrap();
        setup.until_it_works().await;
        assert_eq!(setup.handle.statistics().restarts, restart);
    }
    setup.order(Order::Answer);
    assert_eq!(setup.submit([2], later()).await.unwrap(), Ok(vec![2]));
}

#[tokio::test]
async fn who_waits_hears_of_a_restart_that_fails_and_the_next_attempt_counts() {
    for failure in [Order::Fail, Order::Panic] {
        let setup = setup(100);
        let first = setup.submit([1], later());
        setup.until_passes(1).await;
        let waits = [setup.submit([2], later()), setup.full_pass(full([3], 2), later())];
        settle().await;
        setup.order(Order::Fail);
        assert_eq!(first.await.unwrap(), Err(SubmitError::EngineFailed));
        setup.remake.send((failure, Order::Answer)).unwrap();
        for job in waits {
            assert!(is_restarting(&job.await.unwrap()));
        }
        assert!(is_restarting(&setup.submit([4], later()).await.unwrap()));
        setup.remake.send(GOOD).unwrap();
        setup.until_it_works().await;
        setup.order(Order::Answer);
        assert_eq!(setup.submit([5], later()).await.unwrap(), Ok(vec![5]));
        let statistics = setup.handle.statistics();
        assert_eq!(statistics.searches.slots_taken + statistics.full_passes.slots_taken, 0);
    }
}

#[tokio::test]
async fn who_waits_for_a_new_engine_is_told_when_its_time_is_over() {
    let setup = setup(100);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let soon = setup.submit([2], Instant::now() + Duration::from_millis(200));
    settle().await;
    setup.order(Order::Fail);
    first.await.unwrap().unwrap_err();
    assert_eq!(soon.await.unwrap(), Err(SubmitError::DeadlinePassed));
    assert_ne!(setup.handle.state(), DeviceState::Working);
}

#[tokio::test]
async fn an_engine_that_fails_too_often_is_lost_and_everybody_is_told() {
    let setup = setup_with(Limits { max_restarts: 2, ..LIMITS });
    // One restart that works, and one that does not.
    setup.order(Order::Fail);
    setup.submit([1], later()).await.unwrap().unwrap_err();
    setup.remake.send(GOOD).unwrap();
    setup.until_it_works().await;
    setup.order(Order::Fail);
    setup.submit([2], later()).await.unwrap().unwrap_err();
    assert_ne!(setup.handle.state(), DeviceState::Lost);
    setup.remake.send((Order::Fail, Order::Answer)).unwrap();
    let lost = tokio::time::timeout(Duration::from_secs(30), setup.thread.lost()).await.unwrap();
    let Some(EngineLost::TooManyRestarts { most: 2, last }) = lost else { panic!("{lost:?}") };
    assert!(last.contains("as ordered"), "{last}");
    assert_eq!(setup.handle.state(), DeviceState::Lost);
    assert_eq!(setup.submit([3], later()).await.unwrap(), Err(SubmitError::EngineGone));
    assert_eq!(setup.probe().await.unwrap(), Err(SubmitError::EngineGone));
    ended(setup.thread).await;
}

#[tokio::test]
async fn an_engine_that_may_not_be_restarted_is_lost_with_its_first_failure() {
    let setup = setup_with(Limits { max_restarts: 0, ..LIMITS });
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let waits = [setup.submit([2], later()), setup.full_pass(full([3], 2), later())];
    settle().await;
    setup.order(Order::Panic);
    assert_eq!(first.await.unwrap(), Err(SubmitError::EngineFailed));
    for job in waits {
        assert_eq!(job.await.unwrap(), Err(SubmitError::EngineGone));
    }
    assert!(setup.thread.lost().await.is_some());
}

#[tokio::test]
async fn a_pass_that_hangs_loses_the_engine_and_nobody_waits_for_it() {
    let timeout = Duration::from_millis(200);
    let setup = setup_with(Limits { hang_timeout: timeout, ..LIMITS });
    let started = Instant::now();
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let waits = [setup.submit([2], later()), setup.full_pass(full([3], 2), later())];
    let probe = setup.probe();
    assert_eq!(first.await.unwrap(), Err(SubmitError::EngineGone));
    assert!((timeout..timeout * 20).contains(&started.elapsed()), "{:?}", started.elapsed());
    for job in waits.into_iter().chain([probe]) {
        assert_eq!(job.await.unwrap(), Err(SubmitError::EngineGone));
    }
    let lost = setup.thread.lost().await;
    assert_eq!(lost, Some(EngineLost::Hangs { doing: "a search", milliseconds: 200 }));
    assert_eq!(setup.submit([4], later()).await.unwrap(), Err(SubmitError::EngineGone));
    // If it returns after all, no caller gets its answer, and the thread ends.
    setup.order(Order::Answer);
    ended(setup.thread).await;
    assert_eq!(setup.passes.lock().unwrap().len(), 1);
}

#[tokio::test]
async fn a_restart_that_hangs_loses_the_engine_too() {
    let timeout = Duration::from_millis(300);
    let setup = setup_with(Limits { hang_timeout: timeout, ..LIMITS });
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let waits = setup.submit([2], later());
    settle().await;
    setup.order(Order::Fail);
    first.await.unwrap().unwrap_err();
    // The attempt gets no order, so it hangs.
    assert_eq!(waits.await.unwrap(), Err(SubmitError::EngineGone));
    let lost = setup.thread.lost().await;
    let hangs = EngineLost::Hangs { doing: "restarting the engine", milliseconds: 300 };
    assert_eq!(lost, Some(hangs));
    drop(setup.remake);
    ended(setup.thread).await;
}

#[tokio::test]
async fn answers_that_were_there_before_the_engine_hung_are_given() {
    /// Never calls `meanwhile`.
    struct Silent(HeldEngine);
    impl Device for Silent {
        fn description(&self) -> EngineDescription {
            self.0.description()
        }
    }

    impl SearchEngine for Silent {
        fn preferred_batch(&self, waiting: usize) -> usize {
            self.0.preferred_batch(waiting)
        }

        fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
            self.0.search(batch)
        }

        fn search_overlapped(
            &mut self,
            batch: &[&Query],
            _: &mut dyn FnMut(),
        ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
            Ok(self.0.search(batch)?.into_iter().map(Some).collect())
        }
    }

    impl FullPassEngine for Silent {}

    impl HeadEngine for Silent {}
    let (go, orders) = std_mpsc::channel();
    let orders = Arc::new(Mutex::new(orders));
    let passes = Arc::new(Mutex::new(Vec::new()));
    let engine_passes = passes.clone();
    let limits = Limits { hang_timeout: Duration::from_millis(500), ..LIMITS };
    let make = move || -> Result<_, &str> {
        let (go, passes) = (orders.clone(), engine_passes.clone());
        Ok(Box::new(Silent(HeldEngine {
            go,
            passes,
            dropped: Order::Answer,
            slices: Arc::default(),
        })) as Box<dyn Engine>)
    };
    let (handle, thread) = start(limits, vec![make]).unwrap();
    let setup =
        Setup { handle, thread, go, passes, slices: Arc::default(), remake: std_mpsc::channel().0 };
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let second = setup.submit([2], later());
    settle().await;
    setup.order(Order::Answer);
    assert_eq!(first.await.unwrap(), Ok(vec![1]));
    assert_eq!(second.await.unwrap(), Err(SubmitError::EngineGone));
}

#[tokio::test]
async fn a_service_that_stops_does_not_wait_for_an_engine_that_hangs_or_restarts() {
    let setup = setup(100);
    let hung_up = setup.submit([1], later());
    setup.until_passes(1).await;
    hung_up.abort();
    let _ = hung_up.await;
    drop(setup.handle);
    let thread = setup.thread;
    let joined = tokio::task::spawn_blocking(move || thread.join(Duration::from_millis(100)));
    assert!(!joined.await.unwrap(), "the pass goes on");
    setup.go.send(Order::Answer).unwrap();
}

#[test]
fn an_engine_that_can_not_be_made_at_first_is_an_error_of_the_start() {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let said = |make: fn() -> Result<Box<dyn Engine>, &'static str>| {
        let _within = runtime.enter();
        let started = start(LIMITS, vec![make]);
        started.err().expect("no engine, no queue").to_string()
    };
    assert!(said(|| Err("no")).contains("no"));
    assert!(said(|| std::panic::resume_unwind(Box::new("by itself"))).contains("by itself"));
}
