//! The threads that HTTP runs on. Each has a runtime of its own, and a connection stays where it was put:
//! its events, its requests and their answers never go to another thread. Threads that share their work
//! wake each other for it, and that costs more than a request's own work does (docs/performance.md, "HTTP").

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// Threads for connections. They end, and what runs on them, when this is dropped.
pub struct HttpThreads(Vec<HttpThread>);

struct HttpThread {
    runtime: Handle,
    /// One reference for each connection, and this one.
    connections: Arc<()>,
    _until_dropped: oneshot::Sender<Infallible>,
}

impl HttpThreads {
    /// Starts this many; 0 means three for every four cores, at least two. The other cores are for the engine.
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
        // Between n tasks it looks at the sockets: one connection's pipelined requests, of which hyper answers 16
        // at a time, must not keep the others waiting for longer.
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
