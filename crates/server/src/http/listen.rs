//! The threads and the sockets under the routes. The yardstick of the load tests shares them.

use std::io;

use axum::serve::{Listener, ListenerExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

/// The runtime that the yardstick runs on, as most services do: threads that share all connections. 0
/// threads are as many as the service takes for 0.
///
/// # Errors
/// If the system has no threads left.
pub fn shared_runtime(threads: usize) -> io::Result<Runtime> {
    let threads = super::threads::number(threads)?;
    Builder::new_multi_thread().worker_threads(threads).enable_all().build()
}

/// A listener whose connections send small writes at once: an answer is one of them and should not
/// wait for another.
pub fn without_delay(
    listener: TcpListener,
) -> impl Listener<Io = TcpStream, Addr = std::net::SocketAddr> {
    listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    })
}
