//! Devices that hang while others work.

use std::cell::RefCell;

use super::*;

const HANGS: Limits = Limits { hang_timeout: Duration::from_millis(150), ..MANY };

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn when_one_of_three_hangs_under_load_no_caller_sees_an_error_and_it_works_again_once_it_returns()
 {
    let cast = cast(3, HANGS);
    let lost = tokio::spawn(cast.workers.lost());
    let load = cast.load();
    for replica in [2, 0] {
        let before = cast.counted();
        cast.stage.tell(replica, Told::Hold);
        cast.stage.until_held(1).await;
        until(|| cast.counted().replicas[replica] == ReplicaState::Hanging).await;
        until(|| cast.counted().asked_again > before.asked_again).await;
        // The others go on for a while.
        settle().await;
        assert_eq!(cast.counted().replicas[replica], ReplicaState::Hanging);
        assert_eq!(cast.handle.state(), DeviceState::Working);
        assert_eq!(cast.stage.alive.load(Ordering::SeqCst), 3);
        cast.stage.let_go(replica);
        cast.until_all_work().await;
        assert_eq!(cast.counted().restarts, before.restarts + 1, "its device is another");
    }
    assert!(load.end().await > 0);
    assert_eq!((cast.counted().failed, lost.is_finished()), (0, false));
    assert_eq!(cast.stage.most_alive.load(Ordering::SeqCst), 3, "dropped before it is made again");
    cast.end().await;
}

#[tokio::test]
async fn of_a_job_that_hangs_devices_the_second_is_the_last() {
    let cast = cast(3, HANGS);
    (0..3).for_each(|replica| cast.stage.tell(replica, Told::Hold));
    // One replica after another holds it.
    let hangs = cast.submit([1]);
    assert_eq!(hangs.await.unwrap(), Err(SubmitError::EngineFailed));
    let states = cast.counted().replicas;
    let hanging = states.iter().filter(|&&state| state == ReplicaState::Hanging).count();
    assert_eq!(hanging, 2, "{states:?}");
    assert_eq!(cast.handle.state(), DeviceState::Working);
    cast.stage.passes_do.lock().unwrap().clear();
    assert_eq!(cast.submit([2]).await.unwrap(), Ok(vec![2]));
    (0..3).for_each(|replica| cast.stage.let_go(replica));
    cast.until_all_work().await;
    cast.end().await;
}

#[tokio::test]
async fn the_last_that_works_is_lost_when_it_hangs() {
    let cast = cast(2, HANGS);
    let lost = tokio::spawn(cast.workers.lost());
    (0..2).for_each(|replica| cast.stage.tell(replica, Told::Hold));
    let jobs = [cast.submit([1]), cast.submit([2])];
    for job in jobs {
        assert_eq!(job.await.unwrap(), Err(SubmitError::EngineGone));
    }
    let lost = tokio::time::timeout(Duration::from_secs(30), lost).await.unwrap().unwrap();
    assert_eq!(lost, Some(EngineLost::Hangs { doing: "a search", milliseconds: 150 }));
    assert_eq!(cast.submit([3]).await.unwrap(), Err(SubmitError::EngineGone));
    assert_eq!(cast.handle.statistics().searches.slots_taken, 0);
    (0..2).for_each(|replica| cast.stage.let_go(replica));
}

#[tokio::test]
async fn a_restart_that_hangs_is_waited_for_while_another_works() {
    let cast = cast(2, HANGS);
    cast.stage.tell_maker(0, Some(Told::Hold));
    cast.stage.tell(0, Told::Fail);
    until(|| {
        drop(cast.submit([3]));
        cast.counted().replicas[0] == ReplicaState::Hanging
    })
    .await;
    assert_eq!(cast.submit([1]).await.unwrap(), Ok(vec![1]));
    cast.stage.let_go(0);
    cast.until_all_work().await;
    assert_eq!(cast.counted().restarts, 1);
    cast.end().await;
}

#[tokio::test]
async fn who_waits_on_a_device_that_hangs_hears_when_its_time_is_over_and_is_not_asked_again() {
    let cast = cast(2, Limits { hang_timeout: Duration::from_millis(300), ..MANY });
    (0..2).for_each(|replica| cast.stage.tell(replica, Told::Hold));
    let (search, soon) = (cast.handle.search.clone(), Instant::now() + Duration::from_millis(100));
    let late = tokio::spawn(async move {
        search.submit(&Account::new(), queries([1]), soon, None).await.map(|_| ())
    });
    assert_eq!(late.await.unwrap(), Err(SubmitError::DeadlinePassed));
    until(|| cast.counted().replicas.contains(&ReplicaState::Hanging)).await;
    settle().await;
    assert_eq!(
        cast.stage.passes().len(),
        1,
        "the deadline has passed, so no other device is asked"
    );
    assert_eq!(cast.handle.statistics().searches.slots_taken, 0);
    cast.stage.passes_do.lock().unwrap().clear();
    (0..2).for_each(|replica| cast.stage.let_go(replica));
    cast.until_all_work().await;
    cast.end().await;
}

#[tokio::test]
async fn a_pass_that_takes_long_is_asked_of_another_long_before_a_device_is_given_up() {
    let soon = Limits { hang_timeout_beside_others: Duration::from_millis(150), ..MANY };
    let cast = cast(2, soon);
    cast.stage.tell(0, Told::Hold);
    // Either replica may take a job, so there are jobs until this one has taken one.
    let jobs = RefCell::new(Vec::new());
    until(|| {
        jobs.borrow_mut().push(cast.submit([1]));
        !cast.stage.held.lock().unwrap().is_empty()
    })
    .await;
    for job in jobs.into_inner() {
        assert_eq!(job.await.unwrap(), Ok(vec![1]));
    }
    until(|| cast.counted().replicas.contains(&ReplicaState::Hanging)).await;
    (0..2).for_each(|replica| cast.stage.let_go(replica));
    cast.until_all_work().await;
    cast.end().await;

    // Without another, it is waited for.
    let cast = self::cast(1, soon);
    cast.stage.tell(0, Told::Hold);
    let job = cast.submit([1]);
    cast.stage.until_held(1).await;
    tokio::time::sleep(Duration::from_millis(400)).await;
    assert_eq!(cast.counted().replicas, [ReplicaState::Working]);
    cast.stage.let_go(0);
    assert_eq!(job.await.unwrap(), Ok(vec![1]));
    cast.end().await;
}
