//! Passes that fail on one of several devices.

use super::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_one_of_three_fails_under_load_no_caller_sees_an_error() {
    for told in [Told::Fail, Told::Panic, Told::Forget] {
        let cast = cast(3, MANY);
        let load = cast.load();
        for replica in [1, 2, 0] {
            let before = cast.counted();
            cast.stage.tell(replica, told);
            until(|| cast.counted().restarts > before.restarts).await;
            assert!(cast.counted().asked_again > before.asked_again);
            cast.until_all_work().await;
        }
        assert!(load.end().await > 0);
        let counted = cast.counted();
        assert_eq!((counted.failed, counted.refused_without_device, counted.restarts), (0, 0, 3));
        cast.end().await;
    }
}

#[tokio::test]
async fn jobs_of_a_failed_pass_run_alone_and_those_that_waited_together() {
    let cast = cast(2, MANY);
    let first = cast.hold(2).await;
    let others = [3, 4, 5].map(|k| cast.submit([k]));
    settle().await;
    // The next pass of replica 0 takes those that wait, and fails.
    cast.stage.tell(0, Told::Fail);
    cast.stage.tell_maker(0, Some(Told::Hold));
    cast.stage.let_go(0);
    until(|| cast.counted().asked_again == 3).await;
    let late = [6, 7].map(|k| cast.submit([k]));
    settle().await;
    cast.stage.let_go(1);
    for job in first.into_iter().chain(others).chain(late) {
        assert!(job.await.unwrap().is_ok());
    }
    let passes: Vec<Vec<usize>> =
        cast.stage.passes().into_iter().skip(2).map(|(_, ks)| ks).collect();
    assert_eq!(passes, [vec![3, 4, 5], vec![3], vec![4], vec![5], vec![6, 7]]);
    assert_eq!(cast.counted().replicas[1], ReplicaState::Working);
    cast.stage.until_held(1).await;
    cast.stage.let_go(0);
    cast.until_all_work().await;
    cast.end().await;
}

/// Jobs that are asked again are many; others have their turns nevertheless.
#[tokio::test]
async fn who_was_in_no_failed_pass_does_not_wait_for_all_that_were() {
    let cast = cast(2, MANY);
    cast.stage.all_at_once.store(true, Ordering::Relaxed);
    let first = cast.hold(2).await;
    let many: Vec<_> = (0..100).map(|k| cast.submit([10 + k])).collect();
    settle().await;
    cast.stage.tell(0, Told::Fail);
    cast.stage.tell_maker(0, Some(Told::Fail));
    cast.stage.let_go(0);
    until(|| cast.counted().asked_again == 100).await;
    let other = cast.submit([5]);
    settle().await;
    cast.stage.let_go(1);
    for job in first.into_iter().chain(many).chain([other]) {
        assert!(job.await.unwrap().is_ok());
    }
    let passes = cast.stage.passes();
    let others = passes.iter().skip(3).position(|(_, ks)| *ks == [5]).unwrap();
    assert_eq!((others, passes.len()), (8, 3 + 101), "{passes:?}");
    cast.stage.tell_maker(0, None);
    cast.until_all_work().await;
    cast.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_job_that_kills_devices_kills_two_and_the_thousand_beside_it_are_answered() {
    let cast = cast(4, MANY);
    cast.stage.all_at_once.store(true, Ordering::Relaxed);
    let first = cast.hold(4).await;
    let mut innocent: Vec<_> = (0..500).map(|k| cast.submit([1000 + k])).collect();
    let poison = cast.submit([POISON]);
    innocent.extend((500..1000).map(|k| cast.submit([1000 + k])));
    let all_wait = || cast.handle.statistics().searches.slots_taken == 4 + 1001;
    until(all_wait).await;
    cast.stage.let_go(2);
    until(|| cast.counted().asked_again > 0).await;
    [0, 1, 3].into_iter().for_each(|replica| cast.stage.let_go(replica));
    for (k, job) in innocent.into_iter().enumerate() {
        assert_eq!(job.await.unwrap(), Ok(vec![1000 + k as u32]));
    }
    assert_eq!(poison.await.unwrap(), Err(SubmitError::EngineFailed));
    for job in first {
        job.await.unwrap().unwrap();
    }
    cast.until_all_work().await;
    let killed = cast.stage.passes().iter().filter(|(_, ks)| ks.contains(&POISON)).count();
    let counted = cast.counted();
    assert_eq!((killed, counted.restarts, counted.failed), (2, 2, 1));
    assert_eq!(counted.asked_again, 1001);
    cast.end().await;
}

/// Its parts are asked one after another, and each of them would kill a device.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_large_job_that_kills_devices_with_every_part_fails_as_a_whole() {
    let cast = cast(4, MANY);
    let held = cast.hold(4).await;
    // Only one goes on, and has the parts one after another.
    cast.stage.let_go(2);
    cast.stage.until_held(3).await;
    let poison = cast.submit(std::iter::repeat_n(POISON, 40));
    until(|| cast.counted().asked_again > 0).await;
    cast.stage.let_go(0);
    assert_eq!(poison.await.unwrap(), Err(SubmitError::EngineFailed));
    [1, 3].into_iter().for_each(|replica| cast.stage.let_go(replica));
    for job in held {
        job.await.unwrap().unwrap();
    }
    cast.until_all_work().await;
    let killed = cast.stage.passes().iter().filter(|(_, ks)| ks.contains(&POISON)).count();
    assert_eq!(killed, 2, "{:?}", cast.stage.passes());
    cast.end().await;
}

#[tokio::test]
async fn when_all_fail_at_once_the_last_pass_fails_as_with_one_device() {
    let cast = cast(2, MANY);
    (0..2).for_each(|replica| {
        cast.stage.tell(replica, Told::Fail);
        cast.stage.tell_maker(replica, Some(Told::Hold));
    });
    assert_eq!(cast.submit([1]).await.unwrap(), Err(SubmitError::EngineFailed));
    let counted = cast.counted();
    assert_eq!((counted.asked_again, counted.failed), (1, 1));
    assert!(matches!(counted.state, DeviceState::Restarting { .. }), "{:?}", counted.state);
    for replica in 0..2 {
        cast.stage.tell_maker(replica, None);
        cast.stage.let_go(replica);
    }
    cast.until_all_work().await;
    assert_eq!(cast.submit([2]).await.unwrap(), Ok(vec![2]));
    cast.end().await;
}

#[tokio::test]
async fn one_that_fails_too_often_goes_on_trying_while_there_is_hope_for_another() {
    let cast = cast(2, Limits { max_restarts: 1, ..MANY });
    let lost = tokio::spawn(cast.workers.lost());
    cast.stage.tell_maker(0, Some(Told::Fail));
    let fail = async |replica: usize| {
        cast.stage.tell(replica, Told::Fail);
        // Each is asked by turns.
        until(|| {
            drop(cast.submit([3]));
            !cast.stage.passes_do.lock().unwrap().contains_key(&replica)
        })
        .await;
    };
    fail(0).await;
    until(|| cast.stage.made.load(Ordering::SeqCst) >= 3).await;
    settle().await;
    assert!(!lost.is_finished(), "the other works");
    let state = cast.counted().replicas[0];
    assert!(
        matches!(state, ReplicaState::Restarting { retry_after } if retry_after.as_secs() >= 10),
        "{state:?}"
    );
    // The other fails for the first time and is made again.
    cast.stage.tell(1, Told::Panic);
    assert_eq!(cast.submit([1]).await.unwrap(), Err(SubmitError::EngineFailed));
    until(|| cast.handle.state() == DeviceState::Working).await;
    assert_eq!(cast.submit([1]).await.unwrap(), Ok(vec![1]));
    assert!(!lost.is_finished());
    // Its second failure within a minute is one too many.
    cast.stage.tell(1, Told::Panic);
    assert_eq!(cast.submit([1]).await.unwrap(), Err(SubmitError::EngineFailed));
    let lost = tokio::time::timeout(Duration::from_secs(30), lost).await.unwrap().unwrap();
    assert!(matches!(lost, Some(EngineLost::TooManyRestarts { most: 1, .. })), "{lost:?}");
}

/// A device works on two passes, and fails in one call: any of the two may be the reason.
#[tokio::test]
async fn passes_that_were_started_are_asked_again_as_well_and_never_started_beside_others() {
    use super::super::overlap::overlap_with;
    let setups = overlap_with(LIMITS, 2);
    let (handle, go, events) = (setups.handle, setups.go, setups.events);
    let submit = |ks: Vec<usize>| {
        let (handle, queries) = (handle.clone(), queries(ks));
        tokio::spawn(async move {
            let answer = handle.search.submit(&Account::new(), queries, later(), None).await?;
            Ok::<_, SubmitError>(rows(answer.responses))
        })
    };
    let of = |replica: usize| {
        let events = events.lock().unwrap();
        let own = events.iter().filter(|(one, _)| *one == replica);
        own.map(|(_, event)| event.clone()).collect::<Vec<_>>()
    };
    let waits = |replica: usize| of(replica).last().is_some_and(|last| last == "wait");
    let first = submit(vec![1]);
    until(|| waits(0) || waits(1)).await;
    let second = submit(vec![1]);
    until(|| waits(0) && waits(1)).await;
    let behind = submit(vec![2]);
    settle().await;
    go[0].send(Order::Answer).unwrap();
    until(|| of(0).last().is_some_and(|last| last == "finish [1]")).await;
    assert_eq!(of(0), ["start [1]", "wait", "start [2]", "finish [1]"]);
    go[0].send(Order::Fail).unwrap();
    until(|| handle.search.counted().asked_again == 2).await;
    (0..5).for_each(|_| go[1].send(Order::Answer).unwrap());
    for job in [first, second, behind] {
        job.await.unwrap().unwrap();
    }
    let again: Vec<String> = of(0).into_iter().skip(4).chain(of(1).into_iter().skip(2)).collect();
    for k in [1, 2] {
        assert!(again.contains(&format!("search [{k}]")), "{again:?}");
    }
    assert!(!again.iter().any(|event| event.starts_with("start")), "{again:?}");
}
