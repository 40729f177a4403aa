//! Sockets: how the service listens. The baseline of the load tests (`examples/bare.rs`) listens
//! the same way.

use std::io;
use std::net::SocketAddr;

use axum::serve::{Listener, ListenerExt};
use tokio::net::{TcpListener, TcpSocket, TcpStream};

/// Maximum number of connections that wait to be accepted; the system may allow fewer. If a
/// thousand clients connect together and there is no room, some of them wait for a fifth of a
/// second.
const BACKLOG: u32 = 4096;

/// Takes `address`, which is a host and a port, without listening there yet. If the host has
/// several addresses, takes the first that works.
///
/// # Errors
/// If there is no such host, or the port can't be used.
pub async fn bind(address: &str) -> io::Result<TcpSocket> {
    let mut last = None;
    for address in tokio::net::lookup_host(address).await? {
        match bind_one(address) {
            Ok(socket) => return Ok(socket),
            Err(e) => last = Some(e),
        }
    }
    Err(last.unwrap_or_else(|| io::Error::new(io::ErrorKind::NotFound, "there is no such host")))
}

fn bind_one(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    // Allows a service that was just stopped to start again immediately. On Windows this option
    // means something else.
    #[cfg(unix)]
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Listens where [`bind`] has taken an address. Must be called within a tokio runtime.
///
/// # Errors
/// If another process began to listen there after this one had taken the address.
pub fn start_listening(socket: TcpSocket) -> io::Result<TcpListener> {
    socket.listen(BACKLOG)
}

/// A listener whose connections send small writes immediately: an answer is one write, and should
/// not wait for another.
pub fn without_delay(listener: TcpListener) -> impl Listener<Io = TcpStream, Addr = SocketAddr> {
    listener.tap_io(|connection| {
        let _ = connection.set_nodelay(true);
    })
}
