//! The HTTP threads. Each has its own runtime, and a connection stays on its thread: its events,
//! requests and answers never move to another thread. Threads that share their work wake each other
//! for it, which costs more than a request's own work (docs/performance.md, "HTTP").

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Threads for connections. When this is dropped, they end, together with what runs on them.
pub struct HttpThreads(Vec<HttpThread>);

struct HttpThread {
    runtime: Handle,
    /// One reference for each connection, and this one.
    connections: Arc<()>,
    _until_dropped: oneshot::Sender<Infallible>,
}

impl HttpThreads {
    /// Starts `threads` threads; 0 means three for every four cores, at least two. The other cores
    /// are for the engine.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub fn start(threads: usize) -> io::Result<Self> {
        let cores = std::thread::available_parallelism()?.get();
        let threads = if threads == 0 { (cores * 3 / 4).max(2) } else { threads };
        (0..threads).map(|_| HttpThread::start()).collect::<io::Result<_>>().map(Self)
    }

    /// Puts a connection on the thread that has the fewest.
    pub(super) fn put(&self, connection: impl Future<Output = ()> + Send + 'static) {
        let least = self.0.iter().min_by_key(|thread| Arc::strong_count(&thread.connections));
        let thread = least.expect("there is a thread");
        let counted = thread.connections.clone();
        thread.runtime.spawn(async move {
            connection.await;
            drop(counted);
        });
    }
}

impl HttpThread {
    fn start() -> io::Result<Self> {
        // The runtime checks the sockets after every 4 tasks. hyper answers 16 pipelined requests
        // of one connection at a time, and other connections must not wait longer than that.
        let runtime = Builder::new_current_thread().enable_all().event_interval(4).build()?;
        let handle = runtime.handle().clone();
        let (until_dropped, dropped) = oneshot::channel();
        std::thread::Builder::new().name("kindred-http".into()).spawn(move || {
            let _ = runtime.block_on(dropped);
            runtime.shutdown_background();
        })?;
        Ok(Self { runtime: handle, connections: Arc::new(()), _until_dropped: until_dropped })
    }
}
