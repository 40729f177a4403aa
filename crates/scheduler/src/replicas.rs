//! Retires single workers of a running scheduler, and starts them again: so that a new version can
//! take their devices one after another.

use std::io;
use std::sync::{Arc, Weak, mpsc};
use std::time::Duration;

use contract::{Device, Engine};

use crate::core::Core;
use crate::state::ReplicaState;
use crate::supervisor::Supervisor;

/// Kept by each worker's thread until it ends.
pub(crate) type Alive = Arc<mpsc::Sender<()>>;

/// Starts the thread of a worker.
pub(crate) fn spawn(alive: &Alive, work: impl FnOnce() + Send + 'static) -> io::Result<()> {
    let until_ended = alive.clone();
    let work = move || {
        let _until_ended: Alive = until_ended;
        work();
    };
    std::thread::Builder::new().name("kindred-engine".into()).spawn(work).map(drop)
}

/// The workers of a scheduler. Clones are for the same workers; they keep neither the workers nor
/// their devices.
pub struct Replicas<D: ?Sized = dyn Engine> {
    core: Weak<Core<D>>,
    alive: Weak<mpsc::Sender<()>>,
    number: usize,
}

impl<D: ?Sized> Clone for Replicas<D> {
    fn clone(&self) -> Self {
        Self { core: self.core.clone(), alive: self.alive.clone(), number: self.number }
    }
}

/// Why a worker has not retired.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotRetired {
    /// No other works, so nobody would answer.
    #[error("no other replica works")]
    LastOne,
    /// It has not finished its pass, or not dropped its device.
    #[error("replica {replica} did not let go of its engine within {milliseconds} ms")]
    TooSlow {
        /// Its index.
        replica: usize,
        /// How long it had.
        milliseconds: u128,
    },
    /// The scheduler has ended.
    #[error("the engines have ended")]
    Ended,
}

impl<D: Device + ?Sized + 'static> Replicas<D> {
    pub(crate) fn new(core: &Arc<Core<D>>, alive: &Alive, number: usize) -> Self {
        Self { core: Arc::downgrade(core), alive: Arc::downgrade(alive), number }
    }

    /// How many there are, in whatever state.
    pub fn number(&self) -> usize {
        self.number
    }

    /// The state of each. Empty once all have ended.
    pub fn states(&self) -> Vec<ReplicaState> {
        self.core.upgrade().map(|core| core.shared.states.all()).unwrap_or_default()
    }

    /// Retires a worker: it finishes what it has begun, leaves other jobs to the others, and drops
    /// its device; then its thread ends. Returns when the device is dropped.
    ///
    /// # Errors
    /// If no other works, and nothing happens. If it takes longer than `timeout`: then it may still
    /// retire later, until it is told to [start again](Self::start_again).
    pub fn retire(&self, replica: usize, timeout: Duration) -> Result<(), NotRetired> {
        let core = self.core.upgrade().ok_or(NotRetired::Ended)?;
        if !core.retire(replica) {
            return Err(NotRetired::LastOne);
        }
        if !core.shared.states.wait(replica, ReplicaState::Retired, timeout) {
            return Err(NotRetired::TooSlow { replica, milliseconds: timeout.as_millis() });
        }
        Ok(())
    }

    /// Starts a retired worker again, or keeps one from retiring. Its maker is called until it has
    /// made a device.
    pub fn start_again(&self, replica: usize) {
        let (Some(core), Some(alive)) = (self.core.upgrade(), self.alive.upgrade()) else { return };
        if let Some(make) = core.start_again(replica) {
            let supervisor = Supervisor::new(make, core, replica);
            // Without a thread the supervisor is dropped, and that replica is lost.
            let _ = spawn(&alive, move || supervisor.make_and_run());
        }
    }

    /// Waits until a replica works. `false` if it does not within `timeout`.
    pub fn until_it_works(&self, replica: usize, timeout: Duration) -> bool {
        let core = self.core.upgrade();
        core.is_some_and(|core| core.shared.states.wait(replica, ReplicaState::Working, timeout))
    }

    /// Waits until all threads have ended and all devices are dropped. `false` if that takes longer
    /// than `timeout`.
    pub fn until_ended(&self, timeout: Duration) -> bool {
        let until = std::time::Instant::now() + timeout;
        while self.alive.strong_count() > 0 {
            if std::time::Instant::now() >= until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(2));
        }
        true
    }
}
