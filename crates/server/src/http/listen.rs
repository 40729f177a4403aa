//! The threads and the sockets under the routes. The yardstick of the load tests shares them.

use std::io;

use axum::serve::{Listener, ListenerExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// The threads that HTTP runs on; 0 for half as many as there are cores, but two: the other half is the
/// engine's and the kernel's, which sends and receives. With a thread for each core fewer requests are
/// answered (docs/performance.md, "HTTP").
///
/// # Errors
/// If the system has no threads left.
pub fn runtime(threads: usize) -> io::Result<Runtime> {
    let cores = std::thread::available_parallelism()?.get();
    let threads = if threads == 0 { (cores / 2).max(2) } else { threads };
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// A listener whose connections send small writes at once: an answer is one of them and should not
/// wait for another.
pub fn without_delay(listener: TcpListener) -> impl Listener<Addr = std::net::SocketAddr> {
    listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    })
}
