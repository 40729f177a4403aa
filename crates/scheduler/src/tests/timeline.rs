//! What a timeline tells about a job: when it waited, its passes, and who shared them.

use super::*;
use crate::timeline::{JobTimes, Timeline};

/// Submits queries for a new caller, who wants to know when they ran.
fn timed(
    setup: &Setup,
    timeline: &Arc<Timeline>,
    ks: impl IntoIterator<Item = usize>,
    deadline: Instant,
) -> Submitted {
    let (handle, timeline, queries) = (setup.handle.clone(), timeline.clone(), queries(ks));
    tokio::spawn(async move {
        let (account, timeline) = (Account::new(), Some(&timeline));
        let answer = handle.search.submit(&account, queries, deadline, timeline).await?;
        Ok(rows(answer.responses))
    })
}

fn only(timeline: &Timeline) -> Arc<JobTimes> {
    let mut jobs = timeline.jobs();
    assert_eq!(jobs.len(), 1);
    jobs.remove(0)
}

#[tokio::test]
async fn a_job_knows_its_pass_and_how_many_requests_shared_it() {
    let setup = setup(100);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let timeline = Arc::default();
    let before = Instant::now();
    let jobs = [timed(&setup, &timeline, [2, 3], later()), setup.submit([4], later())];
    settle().await;
    (0..2).for_each(|_| setup.order(Order::Answer));
    first.await.unwrap().unwrap();
    for job in jobs {
        job.await.unwrap().unwrap();
    }
    let job = only(&timeline);
    assert_eq!((job.workload, job.requests), ("a search", 2));
    let [pass] = job.passes()[..] else { panic!("{job:?}") };
    assert_eq!((pass.batch, pass.slices, pass.replica), (3, 1, 0));
    assert!(before <= job.entered && job.entered < pass.started && pass.started < pass.ended);
    assert!(pass.started - job.entered >= Duration::from_millis(20), "it waited for the first");
    assert!(pass.device <= pass.ended - pass.started && pass.ended <= Instant::now());
}

#[tokio::test]
async fn a_job_of_several_passes_knows_each() {
    let setup = setup(100);
    let timeline = Arc::default();
    let job = timed(&setup, &timeline, 1..=10, later());
    (0..3).for_each(|_| setup.order(Order::Answer));
    assert_eq!(job.await.unwrap(), Ok((1..=10).collect()));
    let job = only(&timeline);
    let passes = job.passes();
    assert_eq!(job.requests, 10);
    assert_eq!(passes.iter().map(|pass| pass.batch).collect::<Vec<_>>(), [4, 4, 2]);
    assert!(passes.windows(2).all(|two| two[0].ended <= two[1].ended));
    assert!(passes.iter().all(|pass| job.entered <= pass.started));
}

#[tokio::test]
async fn a_job_without_an_answer_has_no_pass_and_a_refused_one_is_no_job() {
    let setup = setup(2);
    let first = setup.submit([1], later());
    setup.until_passes(1).await;
    let (late, refused) = (Arc::default(), Arc::default());
    let soon = Instant::now() + Duration::from_millis(50);
    let too_late = timed(&setup, &late, [2], soon);
    settle().await;
    let full = timed(&setup, &refused, [3], later()).await.unwrap();
    assert!(matches!(full, Err(SubmitError::Full { .. })), "{full:?}");
    assert_eq!(too_late.await.unwrap(), Err(SubmitError::DeadlinePassed));
    (0..2).for_each(|_| setup.order(Order::Answer));
    first.await.unwrap().unwrap();
    assert_eq!(only(&late).passes(), []);
    assert!(refused.jobs().is_empty());
}
