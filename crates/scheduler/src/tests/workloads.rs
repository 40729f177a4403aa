//! A third workload, and a device that is no search engine: lanes do not depend on the other two
//! workloads.

use std::collections::HashMap;

use contract::Workload;
use contract::workload::{PassError, Slice};

use super::*;
use crate::Scheduler;

type Worked = Arc<Mutex<HashMap<&'static str, Duration>>>;

/// Adds up how long it worked for each workload.
#[derive(Default)]
pub(super) struct Calculator {
    worked: Worked,
}

impl Device for Calculator {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "calculator", detail: String::new() }
    }
}

impl Calculator {
    fn work(&self, workload: &'static str, duration: Duration) {
        let started = Instant::now();
        while started.elapsed() < duration {
            std::hint::spin_loop();
        }
        *self.worked.lock().unwrap().entry(workload).or_default() += started.elapsed();
    }
}

/// Squares numbers, up to 4 in a pass, each pass as long as given. A number takes this many slots.
struct Squares(&'static str, Duration, usize);

impl Workload for Squares {
    type Device = Calculator;
    type Request = u64;
    type Response = u64;
    type Gathered = ();
    type Pass = ();

    fn name(&self) -> &'static str {
        self.0
    }

    fn slots(&self, _: &u64) -> usize {
        self.2
    }

    fn cost(&self, _: &Calculator, _: &u64) -> usize {
        1
    }

    fn room(&self, _: &Calculator, _: usize) -> usize {
        4
    }

    fn run(
        &self,
        device: &mut Calculator,
        numbers: &[&u64],
        (): &mut (),
        slice: Slice<'_>,
    ) -> Result<Option<Vec<u64>>, PassError> {
        (slice.meanwhile)();
        if numbers.iter().any(|&&number| number == u64::MAX) {
            return Err(PassError::Request("too large to be squared".into()));
        }
        device.work(self.0, self.1);
        Ok(Some(numbers.iter().map(|&&number| number * number).collect()))
    }
}

/// Counts up to its numbers, all of a pass together, a step a slice; equal numbers are counted to
/// once. When a request leaves its pass, what is in here is dropped.
#[derive(Default)]
pub(super) struct CountUp(Arc<Mutex<Option<Box<dyn Send>>>>);

#[derive(Default)]
pub(super) struct Steps(Vec<u64>);

impl Workload for CountUp {
    type Device = Calculator;
    type Request = u64;
    type Response = u64;
    type Gathered = std::collections::HashSet<u64>;
    type Pass = Steps;

    fn name(&self) -> &'static str {
        "counting"
    }

    fn slots(&self, _: &u64) -> usize {
        1
    }

    fn cost(&self, _: &Calculator, number: &u64) -> usize {
        *number as usize
    }

    fn room(&self, _: &Calculator, _: usize) -> usize {
        100
    }

    fn max_room_per_caller(&self, largest: usize) -> usize {
        largest
    }

    fn gather(
        &self,
        gathered: &mut Self::Gathered,
        number: &u64,
        cost: usize,
        left: usize,
    ) -> Option<usize> {
        let adds = if gathered.contains(number) { 0 } else { cost };
        let fits = adds <= left;
        if fits {
            gathered.insert(*number);
        }
        fits.then_some(adds)
    }

    fn run(
        &self,
        device: &mut Calculator,
        numbers: &[&u64],
        steps: &mut Steps,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<u64>>, PassError> {
        (slice.meanwhile)();
        if steps.0.is_empty() {
            steps.0.resize(numbers.len(), 0);
        }
        if steps.0.len() != numbers.len() {
            return Err(PassError::Request("the steps are not of these numbers".into()));
        }
        device.work("counting", Duration::from_micros(200));
        for (step, &&number) in steps.0.iter_mut().zip(numbers) {
            *step = (*step + 1).min(number);
        }
        let is_over = steps.0.iter().zip(numbers).all(|(step, number)| *step == **number);
        Ok(is_over.then(|| std::mem::take(&mut steps.0)))
    }

    fn retain(&self, steps: &mut Steps, stays: &mut dyn FnMut(usize) -> bool) {
        let mut index = 0..;
        steps.0.retain(|_| stays(index.next().unwrap()));
        drop(self.0.lock().unwrap().take());
    }
}

/// A calculator for these lanes, and how long it worked for each of them.
fn start(scheduler: Scheduler<Calculator>) -> (DeviceThreads<Calculator>, Worked) {
    let worked = Worked::default();
    let device = worked.clone();
    let make = move || -> Result<_, &str> { Ok(Box::new(Calculator { worked: device.clone() })) };
    let timer = runtime::Handle::current();
    (scheduler.start(&timer, Until::All, None, vec![make]).unwrap(), worked)
}

struct Three {
    cheap: Lane<Squares>,
    dear: Lane<Squares>,
    counting: Lane<CountUp>,
    workers: DeviceThreads<Calculator>,
    worked: Worked,
}

fn three() -> Three {
    let mut scheduler = Scheduler::new(Limits { capacity_slots: 100_000, ..LIMITS });
    let cheap = scheduler.lane(Squares("cheap", Duration::from_micros(500), 1));
    let dear = scheduler.lane(Squares("dear", Duration::from_millis(5), 1));
    let counting = scheduler.lane(CountUp::default());
    let (workers, worked) = start(scheduler);
    Three { cheap, dear, counting, workers, worked }
}

/// A caller submits this many jobs, each as large as a pass.
fn ask(lane: &Lane<Squares>, jobs: usize) {
    let account = Account::new();
    for _ in 0..jobs {
        let (lane, account) = (lane.clone(), account.clone());
        let asks = async move { lane.submit(&account, vec![1, 2, 3, 4], later(), None).await };
        drop(tokio::spawn(asks));
    }
}

/// 40 callers ask for more cheap work than the device does during a test.
async fn busy_with_cheap_work(three: &Three) {
    for _ in 0..40 {
        let (lane, account) = (three.cheap.clone(), Account::new());
        let numbers = vec![1; 2000];
        drop(tokio::spawn(async move { lane.submit(&account, numbers, later(), None).await }));
    }
    let until = later();
    while three.cheap.statistics().passes < 20 {
        assert!(Instant::now() < until);
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

#[tokio::test]
async fn any_workload_is_batched_sliced_and_answered() {
    let three = three();
    let account = Account::new();
    let squares = three.cheap.submit(&account, (0..10).collect(), later(), None).await.unwrap();
    assert_eq!(squares.responses, (0..10).map(|n| n * n).collect::<Vec<u64>>());
    assert_eq!(three.cheap.statistics().passes, 3, "4 at a time");
    let counted =
        three.counting.submit(&account, vec![30, 30, 30, 60, 30], later(), None).await.unwrap();
    assert_eq!(counted.responses, [30, 30, 30, 60, 30]);
    assert_eq!(three.counting.statistics().passes, 1, "shared work is gathered once");
    let failed = three.cheap.submit(&account, vec![1, u64::MAX], later(), None).await;
    assert_eq!(failed.unwrap_err(), SubmitError::EngineFailed);
    let alive = three.dear.submit(&account, vec![3], later(), None).await.unwrap();
    assert_eq!(alive.responses, [9], "the device was not to blame");
    assert_eq!(three.cheap.counted().restarts, 0);
    drop((three.cheap, three.dear, three.counting));
    ended(three.workers).await;
}

#[tokio::test]
async fn whoever_leaves_a_pass_between_its_slices_leaves_the_others_their_own_steps() {
    let three = three();
    let (account, lane) = (Account::new(), three.counting.clone());
    let impatient = {
        let (lane, account) = (lane.clone(), account.clone());
        let soon = Instant::now() + Duration::from_millis(5);
        tokio::spawn(async move { lane.submit(&account, vec![90], soon, None).await })
    };
    let patient =
        tokio::spawn(async move { lane.submit(&account, vec![10, 80], later(), None).await });
    assert_eq!(impatient.await.unwrap().unwrap_err(), SubmitError::DeadlinePassed);
    assert_eq!(patient.await.unwrap().unwrap().responses, [10, 80]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_hangs_up_while_another_one_leaves_the_pass_leaves_the_others_their_own_steps() {
    let mut scheduler = Scheduler::new(LIMITS);
    let hangs_up = Arc::<Mutex<Option<Box<dyn Send>>>>::default();
    let lane = scheduler.lane(CountUp(hangs_up.clone()));
    let (workers, worked) = start(scheduler);
    let ask = |number| {
        let lane = lane.clone();
        async move { lane.submit(&Account::new(), vec![number], later(), None).await }
    };
    let until = |is_so: &dyn Fn() -> bool| {
        let deadline = later();
        while !is_so() {
            assert!(Instant::now() < deadline, "{:?}", lane.statistics());
            std::thread::sleep(Duration::from_micros(100));
        }
    };
    let mut gone = 0;
    // On a busy machine the pass may be over before anybody leaves it.
    for _ in 0..20 {
        // Whoever has this lock holds up the device: until all have come, and while one leaves.
        let (other, first, third);
        {
            let mut held_up = worked.lock().unwrap();
            held_up.clear();
            other = tokio::spawn(ask(1));
            until(&|| lane.statistics().slots_taken == 1);
            first = tokio::spawn(ask(90));
            let mut second = Box::pin(ask(90));
            let mut context = std::task::Context::from_waker(std::task::Waker::noop());
            assert!(second.as_mut().poll(&mut context).is_pending());
            *hangs_up.lock().unwrap() = Some(Box::new(second));
            third = tokio::spawn(ask(90));
            until(&|| lane.statistics().slots_taken == 4);
        }
        let some_steps = || {
            let worked = worked.lock().unwrap();
            let steps = worked.get("counting").copied().unwrap_or_default();
            (steps > Duration::from_millis(1)).then_some(worked)
        };
        {
            let _held_up = loop {
                if let Some(held_up) = some_steps() {
                    break held_up;
                }
            };
            first.abort();
            until(&|| first.is_finished());
        }
        assert_eq!(third.await.unwrap().unwrap().responses, [90]);
        assert_eq!(other.await.unwrap().unwrap().responses, [1]);
        gone = lane.counted().hung_up;
        if hangs_up.lock().unwrap().take().is_none() {
            break;
        }
    }
    assert!(gone >= 2, "one hangs up, and another meanwhile");
    drop(lane);
    ended(workers).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dear_jobs_leave_room_for_other_callers() {
    let mut scheduler = Scheduler::new(Limits { capacity_slots: 64, ..LIMITS });
    let lane = scheduler.lane(Squares("dear", Duration::ZERO, 5));
    let (workers, worked) = start(scheduler);
    // Whoever has this lock holds up the device.
    let held_up = worked.lock().unwrap();
    let ask = |numbers: Vec<u64>| {
        let lane = lane.clone();
        tokio::spawn(async move { lane.submit(&Account::new(), numbers, later(), None).await })
    };
    let until = |is_so: &dyn Fn() -> bool| {
        let deadline = later();
        while !is_so() {
            assert!(Instant::now() < deadline, "{:?}", lane.statistics());
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    let waiting: Vec<_> = (0..6).map(|_| ask(vec![2; 4])).collect();
    let single = ask(vec![3]);
    until(&|| lane.statistics().slots_taken == 6 * 8 + 5);
    let many = ask((0..11).collect());
    until(&|| lane.statistics().slots_taken == 64);
    let refused = ask(vec![1]);
    until(&|| refused.is_finished());
    drop(held_up);
    let refused = refused.await.unwrap();
    assert!(matches!(refused, Err(SubmitError::Full { asked: 5, free: 0, .. })), "{refused:?}");
    for job in waiting {
        assert_eq!(job.await.unwrap().unwrap().responses, [4; 4]);
    }
    assert_eq!(single.await.unwrap().unwrap().responses, [9]);
    assert_eq!(many.await.unwrap().unwrap().responses.len(), 11);
    drop(lane);
    ended(workers).await;
}

/// While callers of both kinds wait, each has half of the device's time, though one's passes take
/// ten times as long.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_of_dear_work_take_no_time_from_callers_of_cheap_work() {
    let three = three();
    // More than the device does during this test, so that both callers always wait for something.
    ask(&three.cheap, 4000);
    ask(&three.dear, 400);
    let until = later();
    let waits = |lane: &Lane<Squares>| lane.statistics().slots_taken >= 1000;
    while !(waits(&three.cheap) && waits(&three.dear)) {
        assert!(Instant::now() < until, "{:?}", three.cheap.statistics());
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let worked = || {
        let worked = three.worked.lock().unwrap();
        ["cheap", "dear"].map(|lane| worked.get(lane).copied().unwrap_or_default())
    };
    let [cheap_before, dear_before] = worked();
    tokio::time::sleep(Duration::from_millis(400)).await;
    let [cheap, dear] = worked();
    assert!(waits(&three.cheap) && waits(&three.dear), "both still wait");
    let (cheap, dear) = (cheap - cheap_before, dear - dear_before);
    let share = cheap.div_duration_f64(cheap + dear);
    assert!((0.4..0.6).contains(&share), "{cheap:?} and {dear:?}");
}

/// A pass of five slices, of 1 ms together, is over after a few passes of others, although its
/// caller has used far more time than each of them. One that takes longer has to wait for its
/// caller's turns.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_short_pass_takes_turns_with_other_lanes_and_a_long_one_waits_for_its_callers_turns() {
    let three = three();
    busy_with_cheap_work(&three).await;
    let passes_beside = async |number| {
        let before = three.cheap.statistics().passes;
        let answered =
            three.counting.submit(&Account::new(), vec![number], later(), None).await.unwrap();
        assert_eq!(answered.responses, [number]);
        three.cheap.statistics().passes - before
    };
    let beside_short = passes_beside(5).await;
    assert!(beside_short <= 20, "{beside_short}");
    let beside_long = passes_beside(40).await;
    assert!(beside_long >= 100, "{beside_long}");
}

/// Who has used a device that nobody else wanted is not behind those who come later.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn time_that_nobody_else_wanted_is_not_held_against_its_user() {
    let three = three();
    let worked = |name: &str| three.worked.lock().unwrap().get(name).copied().unwrap_or_default();
    // A long time alone, with jobs that wait behind each pass.
    ask(&three.dear, 2000);
    let until = later();
    while worked("dear") < Duration::from_millis(300) {
        assert!(Instant::now() < until, "{:?}", worked("dear"));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    ask(&three.cheap, 4000);
    while worked("cheap") < Duration::from_millis(20) {
        assert!(Instant::now() < until, "{:?}", worked("cheap"));
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let (dear, cheap) = (worked("dear"), worked("cheap"));
    tokio::time::sleep(Duration::from_millis(300)).await;
    let (dear, cheap) = (worked("dear") - dear, worked("cheap") - cheap);
    let share = cheap.div_duration_f64(cheap + dear);
    assert!((0.35..0.65).contains(&share), "{cheap:?} and {dear:?}");
}

/// Callers who ask for the same kinds of requests drift apart by chance. Who is a little ahead does
/// not wait until 40 others have used as much; who is far ahead does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_is_a_little_ahead_does_not_wait_for_all_others_and_who_is_far_ahead_does() {
    let three = three();
    busy_with_cheap_work(&three).await;
    // Each takes 1 ms, in five slices, and the other 40 need 80 passes for as much.
    let passes_beside = async |account: &Arc<Account>, requests| {
        let before = three.cheap.statistics().passes;
        for _ in 0..requests {
            three.counting.submit(account, vec![5], later(), None).await.unwrap();
        }
        three.cheap.statistics().passes - before
    };
    // On a busy machine a few of them may take 20 ms.
    let (mut account, mut beside_first) = (Account::new(), u64::MAX);
    for _ in 0..10 {
        account = Account::new();
        beside_first = beside_first.min(passes_beside(&account, 4).await);
        if beside_first <= 150 {
            break;
        }
    }
    assert!(beside_first <= 150, "{beside_first}");
    let beside_others = passes_beside(&account, 40).await;
    assert!(beside_others >= 600, "{beside_others}");
}

/// While many callers wait in another lane, a lane rests between its passes, so that more of its
/// requests share each of them.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_of_few_callers_gather_while_many_wait_elsewhere() {
    let three = three();
    busy_with_cheap_work(&three).await;
    let worked = |name: &str| three.worked.lock().unwrap().get(name).copied().unwrap_or_default();
    let before = worked("cheap");
    let callers: Vec<_> = (0..8)
        .map(|_| {
            let (lane, account) = (three.counting.clone(), Account::new());
            tokio::spawn(async move {
                for _ in 0..10 {
                    lane.submit(&account, vec![5], later(), None).await.unwrap();
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let passes = three.counting.statistics().passes;
    assert!(passes <= 25, "80 requests in {passes} passes");
    // Three times as much for others between passes, and their passes between slices.
    let times = (worked("cheap") - before).div_duration_f64(worked("counting"));
    assert!((2.5..25.0).contains(&times), "{times}");
}
