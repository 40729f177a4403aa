//! Several replicas of which one fails, hangs, retires or starts later: callers notice nothing but
//! time.
//!
//! The engine and the set-up that the files in `replicas/` share.

use std::collections::HashMap;
use std::sync::atomic::AtomicBool;

use super::super::{EngineLost, NotRetired, Replicas};
use super::*;

mod asked_again;
mod hangs;
mod retires;

/// What a replica is told to do in its next pass, or when it is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Told {
    Fail,
    Panic,
    /// One answer too few.
    Forget,
    /// Waits until it is let go, and answers then.
    Hold,
}

/// The k of a query that no device survives.
const POISON: usize = 666;

/// What a test tells its replicas, and what they did.
#[derive(Default)]
struct Stage {
    /// For each replica, what its next pass does.
    passes_do: Mutex<HashMap<usize, Told>>,
    /// For each replica, what it does each time it is made.
    makers_do: Mutex<HashMap<usize, Told>>,
    /// The replicas that are let go.
    go: Mutex<Vec<usize>>,
    /// The replicas that are held.
    held: Mutex<Vec<usize>>,
    /// All passes: their replicas and their queries.
    passes: Mutex<Vec<(usize, Vec<usize>)>>,
    /// How many devices there are, and how many there were at most.
    alive: AtomicUsize,
    most_alive: AtomicUsize,
    /// How often a replica was made, or tried to be.
    made: AtomicUsize,
    /// Whether passes take all that waits.
    all_at_once: AtomicBool,
}

impl Stage {
    fn tell(&self, replica: usize, told: Told) {
        self.passes_do.lock().unwrap().insert(replica, told);
    }

    fn tell_maker(&self, replica: usize, told: Option<Told>) {
        let mut all = self.makers_do.lock().unwrap();
        match told {
            Some(told) => drop(all.insert(replica, told)),
            None => drop(all.remove(&replica)),
        }
    }

    fn let_go(&self, replica: usize) {
        self.go.lock().unwrap().push(replica);
    }

    fn hold(&self, replica: usize) {
        self.held.lock().unwrap().push(replica);
        loop {
            let mut go = self.go.lock().unwrap();
            if let Some(position) = go.iter().position(|&one| one == replica) {
                go.remove(position);
                self.held.lock().unwrap().retain(|&one| one != replica);
                return;
            }
            drop(go);
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    fn obey(&self, replica: usize, told: Option<Told>) -> Result<usize, EngineError> {
        match told {
            None => return Ok(0),
            Some(Told::Forget) => return Ok(1),
            Some(Told::Fail) => return Err(EngineError::Device("as ordered".into())),
            Some(Told::Panic) => std::panic::resume_unwind(Box::new("as ordered")),
            Some(Told::Hold) => self.hold(replica),
        }
        Ok(0)
    }

    fn passes(&self) -> Vec<(usize, Vec<usize>)> {
        self.passes.lock().unwrap().clone()
    }

    async fn until_held(&self, replicas: usize) {
        until(|| self.held.lock().unwrap().len() == replicas).await;
    }
}

async fn until(is_so: impl Fn() -> bool) {
    let until = Instant::now() + Duration::from_secs(20);
    while !is_so() {
        assert!(Instant::now() < until, "it never is");
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
}

struct Replica {
    stage: Arc<Stage>,
    index: usize,
}

impl Replica {
    fn make(stage: &Arc<Stage>, index: usize) -> Result<Box<dyn Engine>, EngineError> {
        stage.made.fetch_add(1, Ordering::SeqCst);
        let told = stage.makers_do.lock().unwrap().get(&index).copied();
        stage.obey(index, told)?;
        let alive = stage.alive.fetch_add(1, Ordering::SeqCst) + 1;
        stage.most_alive.fetch_max(alive, Ordering::SeqCst);
        Ok(Box::new(Self { stage: stage.clone(), index }))
    }
}

impl Drop for Replica {
    fn drop(&mut self) {
        self.stage.alive.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Device for Replica {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "replica", detail: self.index.to_string() }
    }
}

impl SearchEngine for Replica {
    fn preferred_batch(&self, waiting: usize) -> usize {
        if self.stage.all_at_once.load(Ordering::Relaxed) { waiting } else { waiting.min(4) }
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let ks: Vec<usize> = batch.iter().map(|query| query.k).collect();
        self.stage.passes.lock().unwrap().push((self.index, ks.clone()));
        let told = self.stage.passes_do.lock().unwrap().remove(&self.index);
        let forgotten = self.stage.obey(self.index, told)?;
        if ks.contains(&POISON) {
            return Err(EngineError::Device("poisoned".into()));
        }
        Ok(ks.into_iter().skip(forgotten).map(hits).collect())
    }
}

impl FullPassEngine for Replica {}

impl HeadEngine for Replica {}

/// Replicas on a stage.
struct Cast {
    handle: Handle,
    workers: DeviceThreads,
    stage: Arc<Stage>,
}

fn cast(replicas: usize, limits: Limits) -> Cast {
    let stage = Arc::<Stage>::default();
    let (handle, workers) = start(limits, makers(&stage, replicas)).unwrap();
    Cast { handle, workers, stage }
}

fn makers(
    stage: &Arc<Stage>,
    replicas: usize,
) -> Vec<impl FnMut() -> Result<Box<dyn Engine>, EngineError> + Send + use<>> {
    let maker = |index| {
        let stage = stage.clone();
        move || Replica::make(&stage, index)
    };
    (0..replicas).map(maker).collect()
}

const MANY: Limits = Limits { capacity_slots: 100_000, ..LIMITS };

impl Cast {
    fn replicas(&self) -> Replicas {
        self.workers.replicas().clone()
    }

    fn submit(&self, ks: impl IntoIterator<Item = usize>) -> Submitted {
        let (handle, queries) = (self.handle.clone(), queries(ks));
        tokio::spawn(async move {
            let answer = handle.search.submit(&Account::new(), queries, later(), None).await?;
            Ok(rows(answer.responses))
        })
    }

    /// Has all n replicas hold a job each.
    async fn hold(&self, replicas: usize) -> Vec<Submitted> {
        (0..replicas).for_each(|replica| self.stage.tell(replica, Told::Hold));
        let mut jobs = Vec::new();
        for number in 0..replicas {
            jobs.push(self.submit([1]));
            self.stage.until_held(number + 1).await;
        }
        jobs
    }

    /// Asks from many callers until the guard is dropped, and checks every answer.
    fn load(&self) -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let caller = |caller: usize| {
            let (handle, stop) = (self.handle.clone(), stop.clone());
            tokio::spawn(async move {
                let (account, mut answered) = (Account::new(), 0);
                while !stop.load(Ordering::Relaxed) {
                    // Some are larger than a pass.
                    let ks = 1 + caller..2 + caller + answered % 7;
                    let answer =
                        handle.search.submit(&account, queries(ks.clone()), later(), None).await;
                    let found = answer.map(|answer| rows(answer.responses));
                    assert_eq!(found, Ok(ks.map(|k| k as u32).collect()));
                    answered += 1;
                }
                answered
            })
        };
        Load { callers: (0..12).map(caller).collect(), stop }
    }

    async fn until_all_work(&self) {
        let works = |state| state == ReplicaState::Working;
        until(|| self.replicas().states().into_iter().all(works)).await;
    }

    fn counted(&self) -> crate::Counted {
        self.handle.search.counted()
    }

    /// Checks that nothing is left of any job, and that the workers end.
    async fn end(self) {
        assert_eq!(self.handle.statistics().searches.slots_taken, 0);
        let (stage, workers) = (self.stage, self.workers);
        drop(self.handle);
        ended(workers).await;
        assert_eq!(stage.alive.load(Ordering::SeqCst), 0);
    }
}

struct Load {
    callers: Vec<tokio::task::JoinHandle<usize>>,
    stop: Arc<AtomicBool>,
}

impl Load {
    /// Lets the callers finish. Returns how many answers they got.
    async fn end(self) -> usize {
        self.stop.store(true, Ordering::Relaxed);
        let mut answered = 0;
        for caller in self.callers {
            answered += caller.await.unwrap();
        }
        answered
    }
}

/// How often the thread that calls has slept so far.
#[cfg(target_os = "linux")]
fn slept(thread: &std::path::Path) -> u64 {
    let status = std::fs::read_to_string(thread.join("status")).unwrap();
    let line = status.lines().find(|line| line.starts_with("voluntary_ctxt_switches")).unwrap();
    line.split_whitespace().last().unwrap().parse().unwrap()
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn workers_without_work_do_not_wake_up() {
    let threads = Arc::<Mutex<Vec<std::path::PathBuf>>>::default();
    let stage = Arc::<Stage>::default();
    let maker = |index| {
        let (threads, stage) = (threads.clone(), stage.clone());
        move || {
            let own = std::fs::read_link("/proc/thread-self").unwrap();
            threads.lock().unwrap().push(std::path::Path::new("/proc").join(own));
            Replica::make(&stage, index)
        }
    };
    let (handle, workers) = start(MANY, (0..4).map(maker).collect()).unwrap();
    handle.search.submit(&Account::new(), queries([1]), later(), None).await.unwrap();
    // Long enough for all of them to fall asleep.
    tokio::time::sleep(Duration::from_millis(100)).await;
    let threads = threads.lock().unwrap().clone();
    let before: Vec<u64> = threads.iter().map(|thread| slept(thread)).collect();
    tokio::time::sleep(Duration::from_millis(500)).await;
    let after: Vec<u64> = threads.iter().map(|thread| slept(thread)).collect();
    assert_eq!((threads.len(), before), (4, after));
    drop(handle);
    ended(workers).await;
}
