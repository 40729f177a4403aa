//! Full passes beside searches.

use super::*;

/// With one pass held, these jobs wait in the queue; then all passes are let go.
async fn first_held(
    setup: &Setup,
    account: &Arc<Account>,
    wait: impl FnOnce() -> Vec<Submitted>,
) -> Vec<Submitted> {
    let mut jobs = vec![setup.submit_for(account, [1], later())];
    setup.until_passes(1).await;
    jobs.extend(wait());
    settle().await;
    (0..20).for_each(|_| setup.order(Order::Answer));
    jobs
}

async fn answered(jobs: Vec<Submitted>) -> Vec<Vec<u32>> {
    let mut answers = Vec::new();
    for job in jobs {
        answers.push(job.await.unwrap().unwrap());
    }
    answers
}

#[tokio::test]
async fn searches_and_full_passes_of_a_caller_take_turns_and_neither_starves() {
    let (setup, account) = (setup(1000), Account::new());
    let jobs = first_held(&setup, &account, || {
        let full = (10..14).map(|k| setup.full_pass_for(&account, full([k], 40), later()));
        full.chain([setup.submit_for(&account, 2..=10, later())]).collect()
    })
    .await;
    let answers = answered(jobs).await;
    assert_eq!(answers[5], (2..=10).collect::<Vec<u32>>());
    assert_eq!(answers[1..5], [[10], [11], [12], [13]]);
    let passes = setup.passes.lock().unwrap();
    let is_full: Vec<bool> = passes.iter().map(|pass| pass[0] >= 1000).collect();
    assert_eq!(is_full, [false, true, false, true, false, true, false, true], "{passes:?}");
    assert_eq!(passes[1], [1010], "two with 40 vectors each are too many for one pass");
}

#[tokio::test]
async fn full_passes_take_as_many_queries_as_share_64_vectors() {
    let (setup, account) = (setup(10_000), Account::new());
    let same = full([7], 3).remove(0);
    let jobs = first_held(&setup, &account, || {
        let ask = |queries| setup.full_pass_for(&account, queries, later());
        vec![ask(vec![same; 100]), ask(full(20..40, 6)), ask(full([15], 80))]
    })
    .await;
    let answers = answered(jobs).await;
    assert_eq!(answers[2], (20..40).collect::<Vec<u32>>());
    assert_eq!(answers[3], [15]);
    let sizes: Vec<_> = setup.passes.lock().unwrap().iter().map(Vec::len).collect();
    assert_eq!((sizes.iter().sum::<usize>(), sizes[0]), (122, 1));
    // 3 vectors are shared, and 6 are each query's own; formulas take as much again.
    assert!(sizes[1] > 2 && sizes.iter().all(|&size| size <= 64 * 128 / 22), "{sizes:?}");
    let alone = setup.passes.lock().unwrap().iter().position(|pass| pass.contains(&1015));
    assert_eq!(sizes[alone.unwrap()], 1, "more vectors than fit have a pass of their own");
}

#[tokio::test]
async fn both_lanes_share_the_places_and_a_full_pass_takes_one_for_each_vector() {
    let setup = setup(16);
    let first = setup.full_pass(full([1], 2), later());
    setup.until_passes(1).await;
    let second = setup.submit(2..=9, later());
    let third = setup.submit(10..=14, later());
    settle().await;
    let refused = setup.full_pass(full([3], 2), later()).await.unwrap();
    assert!(matches!(refused, Err(SubmitError::Full { .. })), "{refused:?}");
    let fourth = setup.full_pass(full([4], 1), later());
    settle().await;
    let refused = setup.submit([5], later()).await.unwrap();
    assert!(matches!(refused, Err(SubmitError::Full { .. })), "{refused:?}");
    drop(setup.go);
    let answers = answered(vec![first, second, third, fourth]).await;
    assert_eq!(answers, [vec![1], (2..=9).collect(), (10..=14).collect(), vec![4]]);
}

#[tokio::test]
async fn whoever_hung_up_or_waited_too_long_gets_no_full_pass() {
    let setup = setup(1000);
    let soon = Instant::now() + Duration::from_millis(100);
    let held = setup.submit([1], later());
    setup.until_passes(1).await;
    let too_long = setup.full_pass(full([2], 3), soon);
    let hung_up = setup.full_pass(full([3], 3), later());
    let alive = setup.full_pass(full([4], 3), later());
    settle().await;
    hung_up.abort();
    let answer = too_long.await.unwrap();
    assert_eq!(answer, Err(SubmitError::DeadlinePassed), "told while the engine is busy");
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(answered(vec![held, alive]).await, [[1], [4]]);
    assert_eq!(*setup.passes.lock().unwrap(), [vec![1], vec![1004]]);
}

#[tokio::test]
async fn who_waits_for_a_search_hears_during_a_full_pass_that_its_time_is_over() {
    let setup = setup(1000);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    // Taken out of the queue together, after the first pass; the full pass's turn comes first.
    let full_pass = setup.full_pass(full([3], 3), later());
    let search = setup.submit([2], Instant::now() + Duration::from_millis(200));
    settle().await;
    setup.order(Order::Answer);
    setup.until_passes(2).await;
    assert_eq!(setup.passes.lock().unwrap()[1], [1003]);
    assert_eq!(search.await.unwrap(), Err(SubmitError::DeadlinePassed));
    setup.order(Order::Answer);
    assert_eq!(answered(vec![first, full_pass]).await, [[1], [3]]);
}

#[tokio::test]
async fn a_failed_full_pass_fails_its_jobs_and_a_panic_no_others() {
    let setup = setup(1000);
    let first = setup.full_pass(full([1], 3), later());
    setup.until_passes(1).await;
    let second = setup.submit([2], later());
    settle().await;
    setup.order(Order::Refuse);
    setup.order(Order::Answer);
    assert_eq!(first.await.unwrap(), Err(SubmitError::EngineFailed));
    assert_eq!(second.await.unwrap(), Ok(vec![2]));
    let third = setup.full_pass(full([3], 3), later());
    setup.until_passes(3).await;
    let others = [setup.submit([4], later()), setup.full_pass(full([5], 3), later())];
    settle().await;
    setup.order(Order::Panic);
    assert_eq!(third.await.unwrap(), Err(SubmitError::EngineFailed));
    let late = setup.full_pass(full([6], 3), later()).await.unwrap();
    assert!(matches!(late, Err(SubmitError::EngineRestarting { .. })), "{late:?}");
    setup.remake.send((Order::Answer, Order::Answer)).unwrap();
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(answered(others.into()).await, [[4], [5]]);
}

#[tokio::test]
async fn when_all_handles_are_gone_waiting_full_passes_are_answered() {
    let setup = setup(1000);
    let jobs =
        vec![setup.full_pass(full([1], 40), later()), setup.full_pass(full([2], 40), later())];
    settle().await;
    drop(setup.handle);
    drop(setup.go);
    assert_eq!(answered(jobs).await, [[1], [2]]);
    ended(setup.thread).await;
}

#[tokio::test]
async fn between_the_slices_of_a_full_pass_others_have_their_turn() {
    let setup = setup(1000);
    setup.slices.store(5, Ordering::Relaxed);
    let long = setup.full_pass(full([10], 3), later());
    for slice in 1..=5 {
        // It waits to be let go.
        setup.until_passes(2 * slice - 1).await;
        let search = setup.submit([slice], later());
        settle().await;
        (0..2).for_each(|_| setup.order(Order::Answer));
        assert_eq!(search.await.unwrap(), Ok(vec![slice as u32]));
    }
    setup.order(Order::Answer);
    assert_eq!(long.await.unwrap(), Ok(vec![10]));
    let passes = setup.passes.lock().unwrap();
    let expected = (1..=5).flat_map(|slice| [vec![1010], vec![slice]]).chain([vec![1010]]);
    assert_eq!(*passes, expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn whoever_hangs_up_between_slices_gets_no_more_and_the_others_of_the_pass_go_on() {
    let (setup, account) = (setup(1000), Account::new());
    setup.slices.store(3, Ordering::Relaxed);
    let held = setup.submit_for(&account, [1], later());
    setup.until_passes(1).await;
    let ask = |k, deadline| setup.full_pass_for(&account, full([k], 3), deadline);
    let soon = Instant::now() + Duration::from_millis(150);
    let (hangs_up, stays, is_late) = (ask(2, later()), ask(3, later()), ask(4, soon));
    settle().await;
    setup.order(Order::Answer);
    setup.until_passes(2).await;
    hangs_up.abort();
    assert_eq!(is_late.await.unwrap(), Err(SubmitError::DeadlinePassed));
    drop(setup.go);
    assert_eq!(answered(vec![held, stays]).await, [[1], [3]]);
    let passes = setup.passes.lock().unwrap();
    assert_eq!(passes[1..], [vec![1002, 1003, 1004], vec![1003], vec![1003], vec![1003]]);
}

#[tokio::test]
async fn a_full_pass_that_nobody_waits_for_any_more_ends_at_its_next_slice() {
    let setup = setup(1000);
    setup.slices.store(1000, Ordering::Relaxed);
    let alone = setup.full_pass(full([2], 3), later());
    setup.until_passes(1).await;
    alone.abort();
    settle().await;
    let next = setup.submit([7], later());
    drop(setup.go);
    assert_eq!(next.await.unwrap(), Ok(vec![7]));
    assert_eq!(*setup.passes.lock().unwrap(), [vec![1002], vec![7]]);
}

#[tokio::test]
async fn callers_share_the_time_of_the_engine_whatever_they_ask_for() {
    let setup = setup(10_000);
    setup.slices.store(200, Ordering::Relaxed);
    (0..1000).for_each(|_| setup.order(Order::Answer));
    // One asks for a long full pass, another for searches that take no time.
    let long = setup.full_pass(full([10], 3), later());
    setup.until_passes(2).await;
    for k in 1..=50 {
        assert_eq!(setup.submit([k], later()).await.unwrap(), Ok(vec![k as u32]));
    }
    let passes = setup.passes.lock().unwrap().clone();
    let slices = passes.iter().filter(|pass| pass[0] == 1010).count();
    assert!(slices < 130, "{slices} slices beside 50 searches");
    assert!(!long.is_finished());
    assert_eq!(long.await.unwrap(), Ok(vec![10]));
}
