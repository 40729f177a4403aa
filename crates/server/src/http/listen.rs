//! The sockets under the routes. The yardstick of the load tests shares them.

use std::io;
use std::net::SocketAddr;

use axum::serve::{Listener, ListenerExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Connections that may wait to be let in; the system may allow fewer. Where a thousand clients come at
/// once and there is no room, some of them wait for a fifth of a second.
const BACKLOG: u32 = 4096;

/// Listens on `address`, which is a host and a port; the first that can be had, if the host has several.
///
/// # Errors
/// If there is no such host, or the port can't be had.
pub async fn bind(address: &str) -> io::Result<TcpListener> {
    let mut last = None;
    for address in tokio::net::lookup_host(address).await? {
        match bind_one(address) {
            Ok(listener) => return Ok(listener),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such host")))
}

fn bind_one(address: SocketAddr) -> io::Result<TcpListener> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // A service that was just stopped may start again at once. On Windows this would mean something else.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    socket.listen(BACKLOG)
}

/// A listener whose connections send small writes at once: an answer is one of them and should not
/// wait for another.
pub fn without_delay(listener: TcpListener) -> impl Listener<Io = TcpStream, Addr = SocketAddr> {
    listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    })
}
