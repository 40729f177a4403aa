//! Replicas that retire and start again, and starts that do not wait for all.

use super::*;

const LONG: Duration = Duration::from_secs(30);

/// Calls from a thread that may wait.
async fn waits<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    tokio::task::spawn_blocking(work).await.unwrap()
}

async fn retire(cast: &Cast, replica: usize, timeout: Duration) -> Result<(), NotRetired> {
    let replicas = cast.replicas();
    waits(move || replicas.retire(replica, timeout)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_after_another_retires_and_starts_again_under_load_and_nobody_notices() {
    let cast = cast(3, MANY);
    let load = cast.load();
    for replica in [0, 2, 1] {
        retire(&cast, replica, LONG).await.unwrap();
        assert_eq!(cast.stage.alive.load(Ordering::SeqCst), 2, "its device is dropped by now");
        assert_eq!(cast.counted().replicas[replica], ReplicaState::Retired);
        let before = cast.stage.passes().len();
        until(|| cast.stage.passes().len() > before + 20).await;
        let passes = cast.stage.passes();
        assert!(passes[before + 1..].iter().all(|(by, _)| *by != replica), "it is not asked");
        cast.replicas().start_again(replica);
        cast.until_all_work().await;
    }
    assert!(load.end().await > 0);
    let counted = cast.counted();
    assert_eq!((counted.failed, counted.asked_again), (0, 0));
    assert_eq!(cast.stage.most_alive.load(Ordering::SeqCst), 3);
    cast.end().await;
}

#[tokio::test]
async fn idle_replicas_retire_but_not_the_last_that_works() {
    let cast = cast(3, MANY);
    retire(&cast, 0, LONG).await.unwrap();
    retire(&cast, 1, LONG).await.unwrap();
    assert_eq!(retire(&cast, 2, LONG).await, Err(NotRetired::LastOne));
    assert_eq!(cast.submit([1]).await.unwrap(), Ok(vec![1]));
    assert_eq!(cast.handle.state(), DeviceState::Working);
    assert_eq!(cast.stage.alive.load(Ordering::SeqCst), 1);
    let replicas = cast.replicas();
    cast.end().await;
    assert!(replicas.until_ended(LONG));
    // The timer ends a little later.
    until(|| replicas.states().is_empty()).await;
    assert_eq!(replicas.retire(0, LONG), Err(NotRetired::Ended));
}

/// What a retiring replica has begun it finishes; what waits is for the others.
#[tokio::test]
async fn a_replica_that_is_busy_retires_after_its_pass() {
    let cast = cast(2, MANY);
    let jobs = cast.hold(2).await;
    let waiting = cast.submit([3, 4]);
    let short = Duration::from_millis(50);
    let too_slow = retire(&cast, 0, short).await;
    assert_eq!(too_slow, Err(NotRetired::TooSlow { replica: 0, milliseconds: 50 }));
    cast.stage.let_go(0);
    until(|| cast.counted().replicas[0] == ReplicaState::Retired).await;
    assert_eq!(cast.stage.passes().len(), 2, "it begins nothing");
    assert!(!waiting.is_finished());
    cast.stage.let_go(1);
    assert_eq!(waiting.await.unwrap(), Ok(vec![3, 4]));
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    cast.end().await;
}

#[tokio::test]
async fn a_replica_that_did_not_retire_in_time_may_stay() {
    let cast = cast(2, MANY);
    let jobs = cast.hold(2).await;
    retire(&cast, 0, Duration::from_millis(20)).await.unwrap_err();
    cast.replicas().start_again(0);
    (0..2).for_each(|replica| cast.stage.let_go(replica));
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    settle().await;
    assert_eq!(cast.counted().replicas, [ReplicaState::Working; 2]);
    assert_eq!(cast.stage.made.load(Ordering::SeqCst), 2, "it is still the first");
    cast.end().await;
}

#[tokio::test]
async fn a_replica_retires_while_it_waits_to_be_made_again() {
    let cast = cast(2, Limits { max_restarts: 0, ..MANY });
    cast.stage.tell(0, Told::Fail);
    until(|| {
        drop(cast.submit([3]));
        matches!(cast.counted().replicas[0], ReplicaState::Restarting { .. })
    })
    .await;
    // Its pause is 10 seconds.
    retire(&cast, 0, Duration::from_secs(5)).await.unwrap();
    assert_eq!(cast.stage.made.load(Ordering::SeqCst), 2);
    cast.replicas().start_again(0);
    cast.until_all_work().await;
    cast.end().await;
}

#[tokio::test]
async fn a_start_that_waits_for_the_first_answers_while_the_others_are_made() {
    let stage = Arc::<Stage>::default();
    stage.tell_maker(1, Some(Told::Hold));
    stage.tell_maker(2, Some(Told::Fail));
    let (handle, workers) = start_until(Until::First, MANY, makers(&stage, 3)).unwrap();
    let cast = Cast { handle, workers, stage };
    assert_eq!(cast.workers.descriptions.len(), 1);
    assert_eq!(cast.counted().replicas[..2], [ReplicaState::Working, ReplicaState::Starting]);
    assert_eq!(cast.submit([1]).await.unwrap(), Ok(vec![1]));
    // A maker that fails is asked again, like that of a device that failed.
    until(|| matches!(cast.counted().replicas[2], ReplicaState::Restarting { .. })).await;
    cast.stage.tell_maker(2, None);
    cast.stage.tell_maker(1, None);
    cast.stage.let_go(1);
    cast.until_all_work().await;
    cast.end().await;
}

#[tokio::test]
async fn a_start_of_which_one_fails_leaves_no_devices() {
    let stage = Arc::<Stage>::default();
    stage.tell_maker(0, Some(Told::Fail));
    let started = start(MANY, makers(&stage, 3));
    assert!(started.is_err());
    assert_eq!(stage.made.load(Ordering::SeqCst), 3);
    assert_eq!(stage.alive.load(Ordering::SeqCst), 0, "they are dropped when the start returns");
}

/// Two replicas work on a job each. The one that began later is told to retire, and retires after
/// its pass; meanwhile the other hangs.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replica_stays_if_the_other_hangs_before_it_has_retired() {
    const HANGS: Limits = Limits { hang_timeout: Duration::from_millis(400), ..MANY };
    let cast = cast(2, HANGS);
    cast.stage.tell(0, Told::Hold);
    cast.stage.tell(1, Told::Hold);
    let ask = || {
        let (search, deadline) =
            (cast.handle.search.clone(), Instant::now() + Duration::from_secs(20));
        let submit = async move {
            search.submit(&Account::new(), queries([1]), deadline, None).await.map(drop)
        };
        tokio::spawn(submit)
    };
    let first = ask();
    cast.stage.until_held(1).await;
    let hung = cast.stage.held.lock().unwrap()[0];
    tokio::time::sleep(Duration::from_millis(250)).await;
    let second = ask();
    cast.stage.until_held(2).await;
    let other = 1 - hung;
    let told = retire(&cast, other, Duration::from_millis(10)).await;
    assert!(matches!(told, Err(NotRetired::TooSlow { .. })), "{told:?}");
    until(|| cast.counted().replicas[hung] == ReplicaState::Hanging).await;
    cast.stage.let_go(other);
    assert_eq!(first.await.unwrap(), Ok(()));
    assert_eq!(second.await.unwrap(), Ok(()));
    assert_eq!(cast.counted().replicas[other], ReplicaState::Working);
    cast.stage.let_go(hung);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_one_does_not_retire_beside_one_that_is_about_to() {
    let cast = cast(2, MANY);
    let jobs = cast.hold(2).await;
    let short = Duration::from_millis(10);
    let told = [retire(&cast, 0, short).await, retire(&cast, 1, short).await];
    (0..2).for_each(|replica| cast.stage.let_go(replica));
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    assert_eq!(told[1], Err(NotRetired::LastOne));
    until(|| cast.counted().replicas == [ReplicaState::Retired, ReplicaState::Working]).await;
}
