//! Threads for work that would hold up the other connections of an HTTP thread: parsing large
//! bodies, looking up many words, finding similar words, writing and compressing large answers.
//!
//! Callers take turns by the time that their work has taken ([`Turns`]). One caller never gets all
//! threads, so that the work of others starts immediately. The number of waiting tasks is bounded,
//! per caller and in total. A task does not start if its caller has hung up or its deadline has
//! passed, and long tasks check their [`Cancellation`] now and then.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use tokio::sync::oneshot;
use tracing::Span;

use scheduler::account::{Account, ByCaller, Turns};

/// Maximum number of waiting tasks of one caller.
const MAX_WAITING_PER_CALLER: usize = 256;
/// Maximum number of waiting tasks in total.
const MAX_WAITING: usize = 4096;

/// Why work was not done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WorkError {
    /// The deadline passed before the work was done.
    Expired,
    /// Too many tasks are waiting already, of this caller or in total.
    QueueFull {
        /// Number of waiting tasks.
        waiting: usize,
        /// Maximum number of waiting tasks.
        most: usize,
    },
    /// The work panicked.
    Panicked,
}

/// Whether the result of work is still wanted.
#[derive(Debug, Clone)]
pub(crate) struct Cancellation {
    deadline: Instant,
    /// Alive while the caller waits; `None` if the work runs on the caller's own thread.
    caller: Option<Weak<()>>,
}

impl Cancellation {
    /// For work that runs on the caller's own thread.
    pub(crate) fn until(deadline: Instant) -> Self {
        Self { deadline, caller: None }
    }

    /// For the same caller, with the earlier of its deadline and this one.
    pub(crate) fn at_most(&self, deadline: Instant) -> Self {
        Self { deadline: self.deadline.min(deadline), caller: self.caller.clone() }
    }

    /// Whether the deadline has passed or the caller has hung up.
    pub(crate) fn is_cancelled(&self) -> bool {
        let is_gone = self.caller.as_ref().is_some_and(|caller| caller.strong_count() == 0);
        is_gone || Instant::now() >= self.deadline
    }
}

/// The worker threads. They end when this is dropped and no task is waiting.
pub(crate) struct Workers(Arc<Shared>);

struct Shared {
    lines: Mutex<Lines>,
    changed: Condvar,
}

type Task = Box<dyn FnOnce() + Send>;

/// The waiting tasks, in one line per caller.
#[derive(Default)]
struct Lines {
    by_caller: ByCaller<VecDeque<Task>>,
    /// Number of threads that work for each caller.
    threads: ByCaller<usize>,
    /// Maximum number of threads for one caller.
    most_threads: usize,
    waiting: usize,
    turns: Turns,
    is_closed: bool,
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tasks waiting", self.0.lock().waiting)
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        self.0.lock().is_closed = true;
        self.0.changed.notify_all();
    }
}

impl Workers {
    /// Starts one thread for every two cores, at least two. `begin` runs first on each thread.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub(crate) fn start(begin: fn()) -> io::Result<Self> {
        let cores = thread::available_parallelism().map_or(1, usize::from);
        Self::with_threads((cores / 2).max(2), begin)
    }

    fn with_threads(threads: usize, begin: fn()) -> io::Result<Self> {
        let lines = Lines { most_threads: (threads - 1).max(1), ..Lines::default() };
        let shared = Arc::new(Shared { lines: Mutex::new(lines), changed: Condvar::new() });
        // If a thread can't be started, dropping this ends the others.
        let workers = Self(shared);
        for _ in 0..threads {
            let shared = workers.0.clone();
            thread::Builder::new().name("kindred-work".into()).spawn(move || {
                begin();
                shared.work();
            })?;
        }
        Ok(workers)
    }

    /// Runs `work` when it is this caller's turn, and waits for it until the deadline. If the
    /// caller stops waiting, work that has begun continues until it checks its [`Cancellation`].
    ///
    /// # Errors
    /// If the work was not done.
    pub(crate) async fn run<T: Send + 'static>(
        &self,
        account: &Account,
        deadline: Instant,
        work: impl FnOnce(&Cancellation) -> T + Send + 'static,
    ) -> Result<T, WorkError> {
        let (reply, mut result) = oneshot::channel();
        let work = move |cancellation: &Cancellation| {
            // This fails if the caller has hung up.
            let _ = reply.send(work(cancellation));
        };
        self.run_boxed(account, deadline, Box::new(work)).await?;
        result.try_recv().map_err(|_| WorkError::Panicked)
    }

    /// The same, of work that leaves its result elsewhere: compiled once, for results of all types.
    async fn run_boxed(
        &self,
        account: &Account,
        deadline: Instant,
        work: Box<dyn FnOnce(&Cancellation) + Send>,
    ) -> Result<(), WorkError> {
        let waits = Arc::new(());
        let cancellation = Cancellation { deadline, caller: Some(Arc::downgrade(&waits)) };
        let (reply, done) = oneshot::channel();
        let span = Span::current();
        let task = move || {
            let result = if cancellation.is_cancelled() {
                Err(WorkError::Expired)
            } else {
                let work = AssertUnwindSafe(|| span.in_scope(|| work(&cancellation)));
                catch_unwind(work).map_err(|_| WorkError::Panicked)
            };
            // This fails if the caller has hung up.
            let _ = reply.send(result);
        };
        self.0.put(account.id(), Box::new(task))?;
        let done = tokio::time::timeout_at(deadline.into(), done).await;
        drop(waits);
        done.map_or(Err(WorkError::Expired), |done| done.unwrap_or(Err(WorkError::Panicked)))
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().expect("nothing panics while it holds this lock")
    }

    fn put(&self, caller: u64, task: Task) -> Result<(), WorkError> {
        let mut lines = self.lock();
        let of_caller = lines.by_caller.get(&caller).map_or(0, VecDeque::len);
        // A caller without waiting tasks is admitted even when others are refused.
        let most_of_all = if of_caller == 0 { 2 * MAX_WAITING } else { MAX_WAITING };
        for (waiting, most) in [(of_caller, MAX_WAITING_PER_CALLER), (lines.waiting, most_of_all)] {
            if waiting >= most {
                return Err(WorkError::QueueFull { waiting, most });
            }
        }
        lines.by_caller.entry(caller).or_default().push_back(task);
        lines.waiting += 1;
        drop(lines);
        self.changed.notify_one();
        Ok(())
    }

    /// The loop of one thread.
    fn work(&self) {
        let mut lines = self.lock();
        loop {
            let Some((caller, task)) = lines.next() else {
                if lines.is_closed {
                    return;
                }
                lines = self.changed.wait(lines).expect("nothing panics while it holds this lock");
                continue;
            };
            drop(lines);
            let begun = Instant::now();
            task();
            let took = begun.elapsed();
            lines = self.lock();
            // Even a task that did not start is charged a little time.
            lines.turns.charge(caller, took.max(Duration::from_micros(1)));
            lines.leave(caller);
            // This caller may use one more thread now. Wake a sleeping one, because it may be this
            // caller's turn again.
            if !lines.by_caller.is_empty() {
                self.changed.notify_one();
            }
        }
    }
}

impl Lines {
    /// The next task by turn, and its caller.
    fn next(&mut self) -> Option<(u64, Task)> {
        let has_threads_left =
            |caller: &u64| self.threads.get(caller).is_none_or(|&has| has < self.most_threads);
        let may = self.by_caller.keys().copied().filter(has_threads_left);
        let caller = may.min_by_key(|&caller| self.turns.clock(caller))?;
        self.turns.begin(self.turns.clock(caller));
        *self.threads.entry(caller).or_default() += 1;
        let line = self.by_caller.get_mut(&caller)?;
        let task = line.pop_front();
        if line.is_empty() {
            self.by_caller.remove(&caller);
        }
        self.waiting -= 1;
        Some((caller, task?))
    }

    fn leave(&mut self, caller: u64) {
        match self.threads.get_mut(&caller) {
            Some(threads) if *threads > 1 => *threads -= 1,
            _ => drop(self.threads.remove(&caller)),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    fn later() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    fn workers() -> Arc<Workers> {
        Arc::new(Workers::with_threads(1, || ()).unwrap())
    }

    /// Occupies the only thread until the returned sender is dropped.
    async fn hold(workers: &Arc<Workers>) -> mpsc::Sender<()> {
        let (hold, held) = mpsc::channel::<()>();
        let (began, begins) = oneshot::channel();
        let workers = workers.clone();
        tokio::spawn(async move {
            let work = move |_: &Cancellation| {
                let _ = began.send(());
                let _ = held.recv();
            };
            let _ = workers.run(&Account::new(), later(), work).await;
        });
        begins.await.unwrap();
        hold
    }

    #[tokio::test]
    async fn one_caller_with_much_work_does_not_keep_others_waiting_and_is_refused_first() {
        let workers = workers();
        let held = hold(&workers).await;
        let (hog, other) = (Account::new(), Account::new());
        let order = Arc::new(Mutex::new(Vec::new()));
        let put = |account: &Arc<Account>, name: &'static str| {
            let (workers, account, order) = (workers.clone(), account.clone(), order.clone());
            tokio::spawn(async move {
                let work = move |_: &Cancellation| {
                    thread::sleep(Duration::from_millis(2));
                    order.lock().unwrap().push(name);
                };
                workers.run(&account, later(), work).await
            })
        };
        let many: Vec<_> = (0..MAX_WAITING_PER_CALLER + 10).map(|_| put(&hog, "hog")).collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        let one = put(&other, "other");
        tokio::time::sleep(Duration::from_millis(50)).await;
        drop(held);
        one.await.unwrap().unwrap();
        assert!(order.lock().unwrap().len() <= 3, "{:?}", order.lock().unwrap());
        let mut refused = 0;
        for one in many {
            match one.await.unwrap() {
                Err(WorkError::QueueFull {
                    waiting: MAX_WAITING_PER_CALLER,
                    most: MAX_WAITING_PER_CALLER,
                }) => {
                    refused += 1;
                }
                done => done.unwrap(),
            }
        }
        assert_eq!(refused, 10);
    }

    #[tokio::test]
    async fn one_caller_never_has_all_threads() {
        let workers = Arc::new(Workers::with_threads(3, || ()).unwrap());
        let (hold, held) = mpsc::channel::<()>();
        let (held, hog) = (Arc::new(Mutex::new(held)), Account::new());
        let running: Vec<_> = (0..10)
            .map(|_| {
                let (workers, hog, held) = (workers.clone(), hog.clone(), held.clone());
                tokio::spawn(async move {
                    let work = move |_: &Cancellation| {
                        let _ = held.lock().map(|held| held.recv());
                    };
                    workers.run(&hog, later(), work).await
                })
            })
            .collect();
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert_eq!(workers.0.lock().threads.values().sum::<usize>(), 2);
        for _ in 0..100 {
            assert_eq!(workers.run(&Account::new(), later(), |_| 1).await, Ok(1));
        }
        drop(hold);
        for one in running {
            one.await.unwrap().unwrap();
        }
        let lines = workers.0.lock();
        assert!(lines.by_caller.is_empty() && lines.waiting == 0);
    }

    #[tokio::test]
    async fn what_is_late_or_abandoned_is_not_begun() {
        let workers = workers();
        let held = hold(&workers).await;
        let account = Account::new();
        let begun = Arc::new(());
        let (late, gone) = (begun.clone(), begun.clone());
        let soon = Instant::now() + Duration::from_millis(30);
        assert_eq!(workers.run(&account, soon, move |_| drop(late)).await, Err(WorkError::Expired));
        assert!(soon.elapsed() < Duration::from_secs(5));
        let abandoned = {
            let (workers, account) = (workers.clone(), account.clone());
            let work = move |_: &Cancellation| panic!("{gone:?}");
            tokio::spawn(async move { workers.run(&account, later(), work).await })
        };
        tokio::time::sleep(Duration::from_millis(30)).await;
        abandoned.abort();
        let _ = abandoned.await;
        drop(held);
        assert_eq!(workers.run(&account, later(), |_| 1).await, Ok(1));
        assert_eq!(Arc::strong_count(&begun), 1, "what they held is free");
    }

    #[tokio::test]
    async fn work_that_goes_on_learns_that_nobody_waits() {
        let workers = workers();
        let (began, begins) = oneshot::channel();
        let (ended, ends) = oneshot::channel();
        let work = move |cancellation: &Cancellation| {
            let _ = began.send(());
            while !cancellation.is_cancelled() {
                thread::yield_now();
            }
            let _ = ended.send(());
        };
        let (on, account) = (workers.clone(), Account::new());
        let running = tokio::spawn(async move { on.run(&account, later(), work).await });
        begins.await.unwrap();
        running.abort();
        tokio::time::timeout(Duration::from_secs(10), ends).await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn a_panic_fails_its_own_work_only() {
        let workers = workers();
        let account = Account::new();
        let broken = workers.run(&account, later(), |_| std::panic::resume_unwind(Box::new(0)));
        assert_eq!(broken.await, Err::<(), _>(WorkError::Panicked));
        assert_eq!(workers.run(&account, later(), |_| 1).await, Ok(1));
    }
}
