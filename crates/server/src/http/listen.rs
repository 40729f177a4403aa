//! The threads and the sockets under the routes. The yardstick of the load tests shares them.

use std::io;

use axum::serve::{Listener, ListenerExt};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};

/// The threads that HTTP runs on: one for each core.
///
/// # Errors
/// If the system has no threads left.
pub fn runtime() -> io::Result<Runtime> {
    Builder::new_multi_thread().enable_all().build()
}

/// A listener whose connections send small writes at once: an answer is one of them and should not
/// wait for another.
pub fn without_delay(listener: TcpListener) -> impl Listener<Addr = std::net::SocketAddr> {
    listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    })
}
