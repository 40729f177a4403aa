use std::fmt::Display;
use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use contract::{Engine, EngineDescription};
use tokio::runtime;
use tokio::sync::watch;

use super::Limits;
use super::StartError;
use super::engine_state::EngineLost;
use super::handle::QueueHandle;
use super::passes::Passes;
use super::shared::Shared;
use super::supervisor::Supervisor;

/// The thread that owns the engine.
pub struct EngineThread {
    /// Closed when the thread ends.
    ended: mpsc::Receiver<()>,
    lost: watch::Receiver<Option<EngineLost>>,
    /// Which engine it owned at first.
    pub description: EngineDescription,
}

impl EngineThread {
    /// Waits until the thread has answered all jobs, which it does once every [`QueueHandle`] is gone, but no
    /// longer than this: an engine that hangs would never let it end. Whether it ended.
    pub fn join(self, timeout: Duration) -> bool {
        self.ended.recv_timeout(timeout) == Err(mpsc::RecvTimeoutError::Disconnected)
    }

    /// Waits until there is no engine any more and none can be made; says why. All that waited has been told
    /// so by then. `None` if the thread ended in order before that.
    pub fn lost(&self) -> impl Future<Output = Option<EngineLost>> + Send + use<> {
        let mut lost = self.lost.clone();
        async move { lost.wait_for(Option::is_some).await.ok().and_then(|lost| lost.clone()) }
    }

    /// Whether the thread has ended.
    pub fn is_finished(&self) -> bool {
        self.ended.try_recv() == Err(mpsc::TryRecvError::Disconnected)
    }
}

/// Starts the thread, makes the engine on it, and returns both ends: the queue to put jobs in and
/// the thread to join in the end. Callers may wait on any runtime; their deadlines are watched on `timer`.
/// `make_engine` is called again for another engine when one has failed. `within` bounds the time in which the first is
/// there.
///
/// # Errors
/// If the thread can't be started or the engine can't be made.
pub fn start<F, E>(
    limits: Limits,
    timer: &runtime::Handle,
    within: Option<Duration>,
    make_engine: F,
) -> Result<(QueueHandle, EngineThread), StartError<E>>
where
    F: FnMut() -> Result<Box<dyn Engine>, E> + Send + 'static,
    E: Display + Send + 'static,
{
    let shared = Arc::new(Shared::new(limits));
    let handle = QueueHandle::new(shared.clone());
    let lost = shared.lost();
    timer.spawn(watch(shared.clone()));
    let (started, has_started) = mpsc::sync_channel(1);
    let (until_ended, ended) = mpsc::channel();
    std::thread::Builder::new()
        .name("kindred-engine".into())
        .spawn(move || {
            let _until_ended: mpsc::Sender<()> = until_ended;
            let passes = Passes::new(shared.clone(), limits.max_batch_queries);
            let restarts = limits.engine_max_restarts;
            let mut supervisor = Supervisor::new(make_engine, passes, shared, restarts);
            match supervisor.make() {
                Ok(engine) => {
                    // Nobody waits for this any more only if `start` itself is gone.
                    let _ = started.send(Ok(engine.description()));
                    supervisor.run(engine);
                }
                Err(e) => {
                    let _ = started.send(Err(e));
                }
            }
        })
        .map_err(StartError::Thread)?;
    let description = match within {
        None => has_started.recv().map_err(|_| mpsc::RecvTimeoutError::Disconnected),
        Some(within) => has_started.recv_timeout(within),
    };
    let description = description.unwrap_or_else(|e| {
        Err(StartError::Broken(match e {
            mpsc::RecvTimeoutError::Timeout => "it took longer than engine_hang_timeout_ms".into(),
            mpsc::RecvTimeoutError::Disconnected => "its thread ended".into(),
        }))
    })?;
    Ok((handle, EngineThread { ended, lost, description }))
}

/// Tells callers whose time is over so, at most this much later, and sees to it that no pass takes for ever. One
/// timer for all: with a timer for each, all HTTP threads would take the timers' one lock twice a request.
async fn watch(shared: Arc<Shared>) {
    const EVERY: Duration = Duration::from_millis(10);
    while shared.watch(Instant::now()) {
        tokio::time::sleep(EVERY).await;
    }
}
