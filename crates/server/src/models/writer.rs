//! Commits batches of changes for the callers of one table, on a thread of its own: what waits is
//! written together, with one sync.
//!
//! ```text
//! loop:
//!     wait until somebody waits
//!     group ← batches of the callers in turn, up to a size
//!     write and sync the group, show it, tell each caller its outcome
//! ```
//!
//! Callers take turns by the bytes that they have written ([`Turns`]), so one with many batches does
//! not keep others waiting. The number of waiting batches is bounded, per caller and in total. A
//! batch whose caller has hung up or whose deadline has passed is not begun; once its group is
//! begun, it is committed, whether its caller still waits or not.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};
use std::{fmt, io, thread};

use kindred::live::changes::{
    BadRows, ChangeError, Changes, Committed, MAX_GROUP_BYTES, ReadyBatch,
};
use scheduler::account::{Account, ByCaller, Full, Turns};
use tokio::sync::{oneshot, watch};

use super::sources::SourceReports;

/// Maximum number of waiting batches of one caller.
const MAX_WAITING_PER_CALLER: usize = 256;
/// Maximum number of waiting batches in total.
const MAX_WAITING: usize = 4096;
/// Maximum number of batches of a group.
const MAX_GROUP: usize = 1024;

/// Why a batch was not committed.
#[derive(Debug)]
pub(crate) enum WriteError {
    /// The deadline passed before it was begun.
    Expired,
    /// Too many batches are waiting already, of this caller or in total.
    QueueFull {
        /// Number of waiting batches.
        waiting: usize,
        /// Maximum number of waiting batches.
        most: usize,
    },
    /// The question which rows it is about can't be answered.
    Question(kindred::Error),
    /// The caller may not have so much memory now.
    Memory(Full),
    /// Some of its rows are bad.
    Bad(BadRows),
    /// It can't be written.
    Change(ChangeError),
    /// The thread panicked.
    Panicked,
}

/// Makes a batch of the rows as they are when its turn has come; `None` if there is nothing to do.
/// Nothing is committed between the two.
pub(crate) type Make = Box<dyn FnOnce() -> Result<Option<ReadyBatch>, WriteError> + Send + 'static>;

/// A batch, or how it is made.
pub(crate) enum Write {
    Ready(ReadyBatch),
    Made(Make),
}

/// The outcome of a batch: where it was committed; `None` if there was nothing to do.
pub(crate) type Written = Result<Option<Committed>, WriteError>;

/// Commits batches to one table. The thread ends when this is dropped and nothing waits.
pub(crate) struct Writer {
    shared: Arc<Shared>,
    positions: watch::Receiver<u64>,
    /// What followers report of the systems that the table follows.
    pub(crate) reports: SourceReports,
}

struct Shared {
    lines: Mutex<Lines>,
    changed: Condvar,
}

/// A batch that waits.
struct Waiting {
    write: Write,
    deadline: Instant,
    /// Set by whoever is first: the thread that begins it, or the caller that gives it up.
    is_taken: Arc<AtomicBool>,
    reply: oneshot::Sender<Written>,
}

/// The waiting batches, in one line per caller.
#[derive(Default)]
struct Lines {
    by_caller: ByCaller<VecDeque<Waiting>>,
    waiting: usize,
    turns: Turns,
    is_closed: bool,
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} batches waiting", self.shared.lock().waiting)
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        self.shared.lock().is_closed = true;
        self.shared.changed.notify_all();
    }
}

/// Gives a batch up that nobody waits for any more, if it was not begun.
struct GivenUp(Arc<AtomicBool>);

impl Drop for GivenUp {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Writer {
    /// Starts the thread that commits to this table.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub(crate) fn start(changes: Arc<Changes>) -> io::Result<Self> {
        let shared = Arc::new(Shared { lines: Mutex::default(), changed: Condvar::new() });
        let (position, positions) = watch::channel(changes.snapshot().position());
        let of_thread = shared.clone();
        thread::Builder::new().name("kindred-write".into()).spawn(move || {
            of_thread.work(&changes, &position);
        })?;
        Ok(Self { shared, positions, reports: SourceReports::default() })
    }

    /// Commits a batch when it is this caller's turn.
    ///
    /// # Errors
    /// If it was not committed. Nothing of it is kept then; after [`WriteError::Change`] of a failed
    /// sync it may be.
    pub(crate) async fn write(
        &self,
        account: &Account,
        deadline: Instant,
        write: Write,
    ) -> Written {
        let is_taken = Arc::new(AtomicBool::new(false));
        let (reply, mut told) = oneshot::channel();
        let given_up = GivenUp(is_taken.clone());
        let waiting = Waiting { write, deadline, is_taken: is_taken.clone(), reply };
        self.shared.put(account.id(), waiting)?;
        let told = match tokio::time::timeout_at(deadline.into(), &mut told).await {
            Ok(told) => told,
            Err(_) if !is_taken.swap(true, Ordering::AcqRel) => return Err(WriteError::Expired),
            // It is being written.
            Err(_) => told.await,
        };
        drop(given_up);
        told.unwrap_or(Err(WriteError::Panicked))
    }

    /// Waits until the table has come so far, which batches and reports may change, or the time has
    /// come.
    pub(crate) async fn reaches(&self, has_come: impl Fn() -> bool, until: Instant) -> bool {
        let (mut positions, mut told) = (self.positions.clone(), self.reports.told());
        let coming = async {
            while !has_come() {
                let changed = tokio::select! {
                    changed = positions.changed() => changed,
                    changed = told.changed() => changed,
                };
                if changed.is_err() {
                    return false;
                }
            }
            true
        };
        tokio::time::timeout_at(until.into(), coming).await.unwrap_or(false)
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Lines> {
        self.lines.lock().expect("nothing panics while it holds this lock")
    }

    fn put(&self, caller: u64, waiting: Waiting) -> Result<(), WriteError> {
        let mut lines = self.lock();
        let of_caller = lines.by_caller.get(&caller).map_or(0, VecDeque::len);
        // A caller without waiting batches is admitted even when others are refused.
        let most_of_all = if of_caller == 0 { 2 * MAX_WAITING } else { MAX_WAITING };
        for (waiting, most) in [(of_caller, MAX_WAITING_PER_CALLER), (lines.waiting, most_of_all)] {
            if waiting >= most {
                return Err(WriteError::QueueFull { waiting, most });
            }
        }
        lines.by_caller.entry(caller).or_default().push_back(waiting);
        lines.waiting += 1;
        drop(lines);
        self.changed.notify_one();
        Ok(())
    }

    /// The loop of the thread.
    fn work(&self, changes: &Changes, position: &watch::Sender<u64>) {
        let mut lines = self.lock();
        loop {
            let group = lines.next_group();
            if group.is_empty() {
                if lines.is_closed {
                    return;
                }
                lines = self.changed.wait(lines).expect("nothing panics while it holds this lock");
                continue;
            }
            drop(lines);
            let caller = commit(changes, group);
            position.send_replace(changes.snapshot().position());
            lines = self.lock();
            if let Some((caller, took)) = caller {
                lines.turns.charge(caller, took);
            }
        }
    }
}

/// A batch of a group, and whose it is.
struct Begun {
    caller: u64,
    write: Write,
    reply: oneshot::Sender<Written>,
}

impl Lines {
    /// The next batches by turn that are written together. One that is yet to be made is alone.
    fn next_group(&mut self) -> Vec<Begun> {
        let (mut group, mut total) = (Vec::new(), 0);
        while let Some(caller) =
            self.by_caller.keys().copied().min_by_key(|&caller| self.turns.clock(caller))
        {
            let line = self.by_caller.get_mut(&caller).expect("it is one of the keys");
            let Some(first) = line.front() else {
                self.by_caller.remove(&caller);
                continue;
            };
            let bytes = match &first.write {
                Write::Ready(batch) => batch.bytes(),
                Write::Made(_) => MAX_GROUP_BYTES,
            };
            let is_late = Instant::now() >= first.deadline;
            if !is_late
                && !group.is_empty()
                && (total + bytes > MAX_GROUP_BYTES || group.len() == MAX_GROUP)
            {
                break;
            }
            let Some(Waiting { write, is_taken, reply, .. }) = line.pop_front() else { continue };
            self.waiting -= 1;
            if is_taken.swap(true, Ordering::AcqRel) {
                continue;
            }
            if is_late {
                // This fails if the caller has hung up.
                let _ = reply.send(Err(WriteError::Expired));
                continue;
            }
            self.turns.begin(self.turns.clock(caller));
            self.turns.charge(caller, cost(bytes));
            total += bytes;
            group.push(Begun { caller, write, reply });
        }
        group
    }
}

/// About how long it takes to write a batch: its bytes at 1 GB/s, and a part of the sync.
fn cost(bytes: usize) -> Duration {
    Duration::from_nanos(bytes as u64) + Duration::from_micros(50)
}

/// Commits a group, and tells each caller. Returns the caller whose batch had to be made, and how
/// long that took.
fn commit(changes: &Changes, group: Vec<Begun>) -> Option<(u64, Duration)> {
    let started = Instant::now();
    let mut made_for = None;
    let (mut batches, mut replies) = (Vec::new(), Vec::new());
    for Begun { caller, write, reply } in group {
        let ready = match write {
            Write::Ready(batch) => Ok(Some(batch)),
            Write::Made(make) => {
                made_for = Some(caller);
                catch_unwind(AssertUnwindSafe(make)).unwrap_or(Err(WriteError::Panicked))
            }
        };
        match ready {
            Ok(Some(batch)) => {
                batches.push(batch);
                replies.push(reply);
            }
            // This fails if the caller has hung up.
            Ok(None) => drop(reply.send(Ok(None))),
            Err(why) => drop(reply.send(Err(why))),
        }
    }
    // Nobody is told if it panics.
    let committed = catch_unwind(AssertUnwindSafe(|| changes.commit_all(batches)));
    for (reply, outcome) in replies.into_iter().zip(committed.unwrap_or_default()) {
        let _ = reply.send(outcome.map(Some).map_err(WriteError::Change));
    }
    made_for.map(|caller| (caller, started.elapsed()))
}
