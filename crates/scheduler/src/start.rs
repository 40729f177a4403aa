//! Starts the workers: a thread for each device, which makes it, owns it and makes it again if it
//! fails.

use std::fmt::Display;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use contract::{Device, Engine, EngineDescription, Workload};
use tokio::runtime;
use tokio::sync::watch;

use crate::core::Core;
use crate::dispatch::Dispatch;
use crate::error::StartError;
use crate::inbox::{Inbox, LaneParts};
use crate::lane::{CallersEnd, Lane};
use crate::lane_state::{AnyLane, LaneState};
use crate::replicas::{Alive, Replicas, spawn};
use crate::shared::{LaneShared, Limits, Shared};
use crate::state::{EngineLost, ReplicaState};
use crate::supervisor::Supervisor;

/// Which devices a start waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Until {
    /// All of them.
    All,
    /// The first. The other makers may still work, or wait for something. If one of them fails, it
    /// is called again, like that of a device that failed.
    First,
}

/// Builds a scheduler: first its lanes, then its workers.
pub struct Scheduler<D: ?Sized> {
    callers: Arc<CallersEnd>,
    lanes: Vec<Box<dyn AnyLane<D>>>,
}

impl<D: Device + ?Sized + 'static> Scheduler<D> {
    /// A scheduler without lanes.
    pub fn new(limits: Limits) -> Self {
        let callers = Arc::new(CallersEnd(Arc::new(Shared::new(limits))));
        Self { callers, lanes: Vec::new() }
    }

    /// Adds a lane for the requests of a workload. Requests may be submitted immediately; they are
    /// answered once there are workers.
    pub fn lane<W: Workload<Device = D>>(&mut self, workload: W) -> Lane<W> {
        let (lane, shared) = (Arc::<LaneShared>::default(), self.callers.0.clone());
        let (index, inbox) = (self.lanes.len(), Inbox::new(lane.clone()));
        let parts = Arc::new(LaneParts { index, workload, inbox, lane, shared });
        self.lanes.push(Box::new(LaneState::new(parts.clone())));
        Lane { parts, callers: self.callers.clone() }
    }

    /// What workers in these states share.
    pub(crate) fn core(self, states: &[ReplicaState]) -> Arc<Core<D>> {
        Arc::new(Core::new(self.callers.0.clone(), Dispatch::new(self.lanes), states))
    }

    /// Starts a worker for each of these makers, waits until the devices that `until` names are
    /// made, and returns what joins the workers in the end. Callers' deadlines are watched on
    /// `timer`. If a device fails, its maker is called again. `within` bounds the wait.
    ///
    /// # Errors
    /// If a thread can't be started or a device that is waited for can't be made. The devices that
    /// were made are dropped by then, unless that takes longer than `within`.
    ///
    /// # Panics
    /// If there is no maker.
    pub fn start<F, E>(
        self,
        timer: &runtime::Handle,
        until: Until,
        within: Option<Duration>,
        makers: Vec<F>,
    ) -> Result<DeviceThreads<D>, StartError<E>>
    where
        F: FnMut() -> Result<Box<D>, E> + Send + 'static,
        E: Display + Send + 'static,
    {
        assert!(!makers.is_empty(), "a scheduler has at least one worker");
        let waited_for = match until {
            Until::All => makers.len(),
            Until::First => 1,
        };
        let deadline = within.map(|within| Instant::now() + within);
        let mut states = vec![ReplicaState::Working; waited_for];
        states.resize(makers.len(), ReplicaState::Starting);
        let core = self.core(&states);
        let lost = core.shared.lost();
        timer.spawn(watch(core.clone()));
        let (alive, ended) = mpsc::channel();
        let alive: Alive = Arc::new(alive);
        let replicas = Replicas::new(&core, &alive, makers.len());
        let mut starting = Vec::new();
        for (index, make) in makers.into_iter().enumerate() {
            let mut supervisor = Supervisor::new(make, core.clone(), index);
            if index >= waited_for {
                spawn(&alive, move || supervisor.make_and_run()).map_err(StartError::Thread)?;
                continue;
            }
            let (started, has_started) = mpsc::sync_channel(1);
            let work = move || match supervisor.make() {
                Ok(device) => {
                    // This fails only if `start` has returned already.
                    let _ = started.send(Ok(device.description()));
                    supervisor.run(device);
                }
                Err(e) => {
                    let _ = started.send(Err(e));
                }
            };
            spawn(&alive, work).map_err(StartError::Thread)?;
            starting.push(has_started);
        }
        drop(alive);
        let mut descriptions = Vec::new();
        for has_started in starting {
            let description = match deadline {
                None => has_started.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
                Some(deadline) => {
                    let left = deadline.saturating_duration_since(Instant::now());
                    has_started.recv_timeout(left)
                }
            };
            let description = description.unwrap_or_else(|e| {
                Err(StartError::Broken(match e {
                    mpsc::RecvTimeoutError::Timeout => {
                        "it took longer than engine_hang_timeout_ms".into()
                    }
                    mpsc::RecvTimeoutError::Disconnected => "its thread ended".into(),
                }))
            });
            match description {
                Ok(description) => descriptions.push(description),
                Err(e) => {
                    // The others must not stand in the way of whoever tries next, with the memory
                    // of their devices.
                    core.shared.parking.callers_are_gone();
                    let left = deadline.map_or(core.shared.limits.hang_timeout, |deadline| {
                        deadline.saturating_duration_since(Instant::now())
                    });
                    let _ = ended.recv_timeout(left);
                    return Err(e);
                }
            }
        }
        Ok(DeviceThreads { ended, lost, replicas, descriptions })
    }
}

/// The threads that own the devices.
pub struct DeviceThreads<D: ?Sized = dyn Engine> {
    /// Closed when all of them have ended.
    ended: mpsc::Receiver<()>,
    lost: watch::Receiver<Option<EngineLost>>,
    replicas: Replicas<D>,
    /// The first devices of the workers that the start waited for.
    pub descriptions: Vec<EngineDescription>,
}

impl<D: ?Sized> DeviceThreads<D> {
    /// The device of the first worker.
    pub fn description(&self) -> &EngineDescription {
        &self.descriptions[0]
    }

    /// The workers, to retire one and to start it again.
    pub fn replicas(&self) -> &Replicas<D> {
        &self.replicas
    }

    /// Waits for `timeout` at most until all jobs are answered and the threads have ended. They end
    /// once every [`Lane`] is gone, unless a device hangs. Returns whether they ended.
    pub fn join(self, timeout: Duration) -> bool {
        self.ended.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Disconnected)
    }

    /// Waits until there is no device any more; returns why. All waiting jobs have got an error by
    /// then. `None` if the threads end in order before that.
    pub fn lost(&self) -> impl Future<Output = Option<EngineLost>> + Send + use<D> {
        let mut lost = self.lost.clone();
        async move { lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone()) }
    }

    /// Whether the threads have ended.
    pub fn is_finished(&self) -> bool {
        self.ended.try_recv() == Err(mpsc::TryRecvError::Disconnected)
    }
}

/// Answers callers whose deadline has passed, at most `EVERY` later, and gives up a device whose
/// slice takes too long. One timer serves all callers: with one for each, all HTTP threads would
/// take the timers' lock twice a request.
async fn watch<D: ?Sized>(core: Arc<Core<D>>) {
    const EVERY: Duration = Duration::from_millis(10);
    while core.watch(Instant::now()) {
        tokio::time::sleep(EVERY).await;
    }
}
