//! The state of each replica: workers and the timer set it, callers and operators see it.

use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::state::{DeviceState, ReplicaState};
use crate::sync::{AtomicBool, AtomicU32, Condvar, Mutex, Ordering, lock, wait_at_most};

/// What callers hear while the first device is being made: nobody knows how long that takes.
const STARTING: Duration = Duration::from_secs(1);

pub(crate) struct States {
    /// How many replicas work. Outside the lock, because every request reads it.
    working: AtomicU32,
    all: Mutex<Vec<Replica>>,
    /// Notified when a state changes.
    changed: Condvar,
}

struct Replica {
    state: ReplicaState,
    /// Whether it failed more often than it may. It goes on trying while there is hope for another.
    fails_too_often: bool,
    /// Whether it is told to retire. Its worker reads this in every turn; written under the lock.
    retires: Arc<AtomicBool>,
}

impl Replica {
    /// Whether it works and is not told to retire.
    fn stays(&self) -> bool {
        self.state == ReplicaState::Working && !self.retires.load(Ordering::SeqCst)
    }
}

impl States {
    /// Of no replica: the workers have not started.
    pub(crate) fn new() -> Self {
        let (working, all) = (AtomicU32::new(0), Mutex::new(Vec::new()));
        Self { working, all, changed: Condvar::new() }
    }

    /// Begins with these states. Returns, for each replica, whether it is told to retire, from now
    /// on.
    pub(crate) fn start(&self, states: &[ReplicaState]) -> Vec<Arc<AtomicBool>> {
        let mut all = lock(&self.all);
        let replica = |&state: &ReplicaState| Replica {
            state,
            fails_too_often: false,
            retires: Arc::new(AtomicBool::new(false)),
        };
        *all = states.iter().map(replica).collect();
        self.note(&all);
        all.iter().map(|replica| replica.retires.clone()).collect()
    }

    fn note(&self, all: &[Replica]) {
        let working = all.iter().filter(|one| one.state == ReplicaState::Working).count();
        self.working.store(working as u32, Ordering::SeqCst);
        self.changed.notify_all();
    }

    pub(crate) fn working(&self) -> u32 {
        self.working.load(Ordering::Acquire)
    }

    pub(crate) fn all(&self) -> Vec<ReplicaState> {
        lock(&self.all).iter().map(|one| one.state).collect()
    }

    /// The state of all together, as callers see it.
    pub(crate) fn together(&self) -> DeviceState {
        let all = lock(&self.all);
        let mut retry_after = None;
        for one in all.iter() {
            let after = match one.state {
                ReplicaState::Working => return DeviceState::Working,
                ReplicaState::Restarting { retry_after } => retry_after,
                ReplicaState::Starting => STARTING,
                ReplicaState::Hanging | ReplicaState::Lost | ReplicaState::Retired => continue,
            };
            retry_after = Some(retry_after.map_or(after, |least: Duration| least.min(after)));
        }
        match retry_after {
            Some(retry_after) => DeviceState::Restarting { retry_after },
            // Before the workers start nothing is lost.
            None if all.is_empty() => DeviceState::Working,
            None => DeviceState::Lost,
        }
    }

    /// Sets a replica's state. `false` if it was lost already: then it stays lost.
    pub(crate) fn set(&self, replica: usize, state: ReplicaState) -> bool {
        let mut all = lock(&self.all);
        if all[replica].state == ReplicaState::Lost {
            return false;
        }
        all[replica].state = state;
        all[replica].fails_too_often &= state != ReplicaState::Working;
        self.note(&all);
        true
    }

    pub(crate) fn is_lost(&self, replica: usize) -> bool {
        lock(&self.all)[replica].state == ReplicaState::Lost
    }

    /// A replica no longer works. Returns whether another does: then nothing is lost but time.
    pub(crate) fn fails(&self, replica: usize) -> bool {
        let mut all = lock(&self.all);
        if all[replica].state != ReplicaState::Lost {
            all[replica].state = ReplicaState::Restarting { retry_after: Duration::ZERO };
        }
        self.note(&all);
        others(&all, replica).any(|one| one.state == ReplicaState::Working)
    }

    /// A replica hangs. Returns whether another works; if none does, nothing changes.
    pub(crate) fn hangs(&self, replica: usize) -> bool {
        let mut all = lock(&self.all);
        let others_work = others(&all, replica).any(|one| one.state == ReplicaState::Working);
        if others_work {
            // Those that work must stay, if all of them are about to retire: nobody else would
            // answer.
            if !others(&all, replica).any(Replica::stays) {
                all.iter().for_each(|one| one.retires.store(false, Ordering::SeqCst));
            }
            all[replica].state = ReplicaState::Hanging;
            self.note(&all);
        }
        others_work
    }

    /// A replica failed more often than it may. Returns whether it goes on trying nevertheless:
    /// while another works, or may soon work, because it has not failed too often itself.
    pub(crate) fn may_go_on(&self, replica: usize) -> bool {
        let mut all = lock(&self.all);
        all[replica].fails_too_often = true;
        others(&all, replica).any(|one| match one.state {
            ReplicaState::Working | ReplicaState::Starting => true,
            ReplicaState::Restarting { .. } => !one.fails_too_often,
            ReplicaState::Hanging | ReplicaState::Lost | ReplicaState::Retired => false,
        })
    }

    /// Tells a replica to retire, if another works. Returns whether it was told.
    pub(crate) fn retire(&self, replica: usize) -> bool {
        let all = lock(&self.all);
        let others_work = others(&all, replica).any(Replica::stays);
        if others_work {
            all[replica].retires.store(true, Ordering::SeqCst);
        }
        others_work
    }

    /// A replica without a device retires, if it is told to and not to start again by now. Calls
    /// `leave` if it retires, before anybody can tell it to start again.
    pub(crate) fn retires_now(&self, replica: usize, leave: impl FnOnce()) -> bool {
        let mut all = lock(&self.all);
        let retires = all[replica].retires.load(Ordering::SeqCst);
        if retires {
            leave();
            all[replica].state = ReplicaState::Retired;
            self.note(&all);
        }
        retires
    }

    /// Tells a replica not to retire. Returns whether it has retired already, so that it must be
    /// started again.
    pub(crate) fn start_again(&self, replica: usize) -> bool {
        let mut all = lock(&self.all);
        all[replica].retires.store(false, Ordering::SeqCst);
        let was_retired = all[replica].state == ReplicaState::Retired;
        if was_retired {
            all[replica].state = ReplicaState::Starting;
            self.note(&all);
        }
        was_retired
    }

    /// Waits until a replica is in this state, but no longer than `timeout`. Returns whether it is.
    pub(crate) fn wait(&self, replica: usize, state: ReplicaState, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        let mut all = lock(&self.all);
        while all[replica].state != state {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return false;
            }
            (all, _) = wait_at_most(&self.changed, all, left);
        }
        true
    }
}

fn others(all: &[Replica], replica: usize) -> impl Iterator<Item = &Replica> {
    all.iter().enumerate().filter(move |(index, _)| *index != replica).map(|(_, one)| one)
}
