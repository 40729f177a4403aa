//! How jobs of all sizes share the passes of an engine that takes 4 queries each.

use super::*;

#[tokio::test]
async fn a_batch_does_not_keep_single_queries_from_the_next_pass() {
    let setup = setup(10_000);
    let batch = setup.submit(1000..2024, later());
    setup.until_passes(1).await;
    for pass in 1..=50 {
        let singles = [setup.submit([1], later()), setup.submit([2], later())];
        settle().await;
        setup.order(Order::Answer);
        setup.until_passes(pass + 1).await;
        let taken = setup.passes.lock().unwrap()[pass].clone();
        assert!(taken.contains(&1) && taken.contains(&2) && taken.len() == 4, "{taken:?}");
        // Their answers do not wait for the rest of the batch.
        if pass == 50 {
            setup.order(Order::Answer);
            for single in singles {
                single.await.unwrap().unwrap();
            }
        }
    }
    drop(setup.go);
    assert_eq!(batch.await.unwrap(), Ok((1000..2024).collect()));
}

#[tokio::test]
async fn more_jobs_than_a_pass_has_room_for_take_turns() {
    let setup = setup(10_000);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let batches: Vec<_> =
        (1..=6).map(|b| setup.submit((0..6).map(|i| 100 * b + i), later())).collect();
    let single = setup.submit([2], later());
    settle().await;
    drop(setup.go);
    first.await.unwrap().unwrap();
    single.await.unwrap().unwrap();
    for (batch, first) in batches.into_iter().zip((1..).map(|b| 100 * b)) {
        assert_eq!(batch.await.unwrap(), Ok((first..first + 6).collect()));
    }
    let passes = setup.passes.lock().unwrap();
    assert_eq!(passes[1..3], [vec![100, 200, 300, 400], vec![500, 600, 2, 101]]);
    assert!(passes[1..].iter().rev().skip(1).all(|pass| pass.len() == 4), "{passes:?}");
}

#[tokio::test]
async fn a_batch_that_fails_in_a_later_pass_fails_as_a_whole_and_once() {
    let setup = setup(100);
    let batch = setup.submit(10..20, later());
    setup.until_passes(1).await;
    let single = setup.submit([1], later());
    settle().await;
    setup.order(Order::Answer);
    setup.until_passes(2).await;
    let after = setup.submit([2], later());
    settle().await;
    setup.order(Order::Refuse);
    setup.order(Order::Answer);
    assert_eq!(batch.await.unwrap(), Err(SubmitError::EngineFailed));
    assert_eq!(single.await.unwrap(), Err(SubmitError::EngineFailed));
    assert_eq!(after.await.unwrap(), Ok(vec![2]));
    assert_eq!(setup.passes.lock().unwrap()[2], [2], "the rest of the batch is not searched");
    assert_eq!(setup.handle.statistics().searches.slots_taken, 0);
}

#[tokio::test]
async fn a_job_with_many_full_passes_does_not_hold_the_lane() {
    let setup = setup(10_000);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let many = setup.full_pass(full(10..30, 40), later());
    let one = setup.full_pass(full([50], 30), later());
    settle().await;
    (0..3).for_each(|_| setup.order(Order::Answer));
    first.await.unwrap().unwrap();
    assert_eq!(one.await.unwrap(), Ok(vec![50]));
    assert!(!many.is_finished());
    assert_eq!(setup.passes.lock().unwrap()[1..3], [[1010], [1050]]);
    drop(setup.go);
    assert_eq!(many.await.unwrap(), Ok((10..30).collect()));
}

#[tokio::test]
async fn whoever_hangs_up_between_the_passes_of_its_batch_gets_no_more_of_them() {
    let setup = setup(100);
    let batch = setup.submit(10..50, later());
    setup.until_passes(1).await;
    setup.order(Order::Answer);
    setup.until_passes(2).await;
    let alive = setup.submit([1], later());
    settle().await;
    batch.abort();
    settle().await;
    (0..2).for_each(|_| setup.order(Order::Answer));
    assert_eq!(alive.await.unwrap(), Ok(vec![1]));
    let passes: Vec<_> = setup.passes.lock().unwrap().clone();
    assert_eq!(passes, [vec![10, 11, 12, 13], vec![14, 15, 16, 17], vec![1]]);
}
