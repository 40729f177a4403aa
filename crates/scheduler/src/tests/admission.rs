//! Which jobs are admitted, and when their slots are free again.

use super::super::DeviceState;
use super::*;

#[tokio::test]
async fn a_full_queue_refuses_at_once_and_takes_again_when_it_has_drained() {
    let setup = setup(3);
    let jobs = [setup.submit([1], later()), setup.submit([2, 3], later())];
    settle().await;
    let refused = setup.submit([4], later()).await.unwrap();
    assert!(matches!(refused, Err(SubmitError::Full { .. })), "{refused:?}");
    (0..2).for_each(|_| setup.order(Order::Answer));
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    setup.order(Order::Answer);
    assert_eq!(setup.submit([4], later()).await.unwrap(), Ok(vec![4]));
}

#[tokio::test]
async fn a_job_larger_than_the_queue_is_let_in_when_it_is_empty() {
    let setup = setup(3);
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(setup.submit(1..=8, later()).await.unwrap(), Ok((1..=8).collect()));
}

impl Setup {
    fn slots_taken(&self) -> u32 {
        let statistics = self.handle.statistics();
        statistics.searches.slots_taken + statistics.full_passes.slots_taken
    }

    /// Slots are freed a moment before callers get their answers; callers that hung up get none.
    async fn until_slots_taken(&self, number: u32) {
        let deadline = later();
        while self.slots_taken() != number {
            assert!(Instant::now() < deadline, "{} slots are taken", self.slots_taken());
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
}

#[tokio::test]
async fn a_batch_and_as_many_single_queries_have_the_same_rule() {
    for jobs in [vec![1; 6], vec![3, 3], vec![2, 1, 3], vec![2; 3]] {
        let setup = setup(6);
        let let_in: Vec<_> =
            jobs.iter().map(|&job| setup.submit((0..job).map(|k| k + 1), later())).collect();
        settle().await;
        assert_eq!(setup.slots_taken(), 6, "{jobs:?}");
        for refused in [1, 2, 6, 7, 1000] {
            let refused = setup.submit(1..=refused, later()).await.unwrap();
            assert!(matches!(refused, Err(SubmitError::Full { .. })), "{refused:?}");
        }
        assert_eq!((setup.slots_taken(), setup.handle.statistics().refused_full), (6, 5));
        drop(setup.go);
        for job in let_in {
            job.await.unwrap().unwrap();
        }
    }
}

#[tokio::test]
async fn a_job_larger_than_the_queue_takes_half_of_it_and_leaves_the_rest_to_others() {
    let setup = setup(8);
    let others: Vec<_> = (0..5).map(|_| setup.submit([1], later())).collect();
    setup.until_slots_taken(5).await;
    let large = setup.submit(1..=20, later()).await.unwrap();
    assert!(matches!(large, Err(SubmitError::Full { asked: 4, free: 3, .. })), "{large:?}");
    (0..2).for_each(|_| setup.order(Order::Answer));
    for other in others {
        other.await.unwrap().unwrap();
    }
    setup.until_slots_taken(0).await;
    let large = setup.submit(1..=20, later());
    setup.until_slots_taken(4).await;
    let others: Vec<_> = (0..4).map(|_| setup.submit([1], later())).collect();
    setup.until_slots_taken(8).await;
    drop(setup.go);
    assert_eq!(large.await.unwrap(), Ok((1..=20).collect()));
    for other in others {
        other.await.unwrap().unwrap();
    }
}

#[tokio::test]
async fn a_caller_holds_no_more_than_it_leaves_free_for_others() {
    let setup = setup(12);
    let hog = Account::new();
    let held: Vec<_> = (0..6).map(|_| setup.submit_for(&hog, [1], later())).collect();
    setup.until_slots_taken(6).await;
    let refused = setup.submit_for(&hog, [1], later()).await.unwrap();
    let full = Err(SubmitError::Full {
        asked: 1,
        held: 6,
        free: 6,
        capacity: 12,
        retry_after: Duration::ZERO,
    });
    assert_eq!(refused, full);
    let other = Account::new();
    let others: Vec<_> = (0..3).map(|_| setup.submit_for(&other, [1], later())).collect();
    setup.until_slots_taken(9).await;
    let first_of_a_third = setup.submit([1, 2, 3], later());
    setup.until_slots_taken(12).await;
    drop(setup.go);
    for job in held.into_iter().chain(others).chain([first_of_a_third]) {
        job.await.unwrap().unwrap();
    }
    assert_eq!(hog.slots(), 0);
}

#[tokio::test]
async fn places_are_free_again_however_a_job_ends() {
    let setup = setup(10);
    for (order, restarts) in [
        (Order::Answer, false),
        (Order::Refuse, false),
        (Order::Fail, true),
        (Order::Panic, true),
        (Order::Forget, true),
    ] {
        let passes = setup.passes.lock().unwrap().len();
        let job = setup.submit([1, 2, 3], later());
        setup.until_passes(passes + 1).await;
        let soon = Instant::now() + Duration::from_millis(50);
        let (hung_up, too_late) = (setup.submit([4, 5], later()), setup.submit([6], soon));
        settle().await;
        assert_eq!(setup.slots_taken(), 6);
        hung_up.abort();
        assert_eq!(too_late.await.unwrap(), Err(SubmitError::DeadlinePassed));
        if restarts {
            setup.remake.send((Order::Answer, Order::Answer)).unwrap();
        }
        setup.order(order);
        assert_eq!(job.await.unwrap().is_ok(), order == Order::Answer);
        setup.until_slots_taken(0).await;
        assert_eq!(setup.passes.lock().unwrap().len(), passes + 1, "nobody waited for another");
        while setup.handle.state() != DeviceState::Working {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    let statistics = setup.handle.statistics();
    assert_eq!((statistics.deadline_passed, statistics.hung_up), (5, 5));
    assert_eq!((statistics.failed, statistics.restarts), (4, 3));
    assert_eq!((statistics.searches.passes, statistics.searches.queries), (1, 3));
}

#[tokio::test]
async fn whose_deadline_has_passed_hears_that_and_never_that_the_queue_is_full() {
    let setup = setup(2);
    let jobs = setup.submit([1, 2], later());
    setup.until_passes(1).await;
    let now = Instant::now();
    assert_eq!(setup.submit([3], now).await.unwrap(), Err(SubmitError::DeadlinePassed));
    let full_pass = setup.full_pass(full([3], 2), now).await.unwrap();
    assert_eq!(full_pass, Err(SubmitError::DeadlinePassed));
    let probe = setup.handle.search.probe(queries([1]).remove(0), now).await;
    assert_eq!(probe.unwrap_err(), SubmitError::DeadlinePassed);
    setup.order(Order::Answer);
    jobs.await.unwrap().unwrap();
    assert_eq!(setup.passes.lock().unwrap().len(), 1);
    assert_eq!(setup.handle.statistics().deadline_passed, 3);
}

#[tokio::test]
async fn who_is_refused_hears_how_long_the_waiting_ones_will_take() {
    const PASS: Duration = Duration::from_millis(40);
    let setup = setup(40);
    // Two passes of 4 queries, 10 ms for each query.
    for pass in 1..=2 {
        let job = setup.submit(1..=4, later());
        setup.until_passes(pass).await;
        tokio::time::sleep(PASS).await;
        setup.order(Order::Answer);
        job.await.unwrap().unwrap();
    }
    let waiting = [setup.submit(1..=20, later()), setup.submit(1..=20, later())];
    settle().await;
    let refused = setup.submit([1], later()).await.unwrap();
    let Err(SubmitError::Full { retry_after, .. }) = refused else { panic!("{refused:?}") };
    assert!((10 * PASS..100 * PASS).contains(&retry_after), "{retry_after:?}");
    drop(setup.go);
    for job in waiting {
        job.await.unwrap().unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_queue_never_holds_more_than_its_capacity() {
    const CAPACITY: u32 = 7;
    let setup = setup(CAPACITY);
    let submitters: Vec<_> = (0..8)
        .map(|submitter| {
            let (handle, account) = (setup.handle.clone(), Account::new());
            tokio::spawn(async move {
                let (mut answered, mut refused) = (0, 0);
                for round in 0..300 {
                    let number = (submitter + round) % 5 + 1;
                    let asked: Vec<usize> = (0..number).map(|i| i + round + 1).collect();
                    match handle
                        .search
                        .submit(&account, queries(asked.iter().copied()), later(), None)
                        .await
                    {
                        Ok(answer) => {
                            let found = rows(answer.responses).into_iter().map(|row| row as usize);
                            assert_eq!(found.collect::<Vec<_>>(), asked);
                            answered += number;
                        }
                        Err(SubmitError::Full { .. }) => refused += 1,
                        Err(e) => panic!("{e}"),
                    }
                }
                (answered, refused)
            })
        })
        .collect();
    // Released by hand, so that the queue fills in between.
    let watched = {
        let (handle, go) = (setup.handle.clone(), setup.go.clone());
        tokio::spawn(async move {
            loop {
                let statistics = handle.statistics();
                assert!(statistics.searches.slots_taken <= CAPACITY, "{statistics:?}");
                if go.send(Order::Answer).is_err() {
                    return;
                }
                tokio::task::yield_now().await;
            }
        })
    };
    let (mut answered, mut refused) = (0, 0);
    for submitter in submitters {
        let (more_answered, more_refused) = submitter.await.unwrap();
        answered += more_answered;
        refused += more_refused;
    }
    watched.abort();
    assert!(refused > 0, "8 submitters of up to 5 queries don't fit");
    setup.until_slots_taken(0).await;
    let statistics = setup.handle.statistics();
    assert_eq!((statistics.searches.queries, statistics.refused_full), (answered as u64, refused));
}
