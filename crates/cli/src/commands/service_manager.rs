//! The service manager that started the program, such as systemd with `Type=notify`. It is told
//! when the service is ready, reloads and stops (sd_notify(3)).

use std::ffi::{OsStr, OsString};
use std::io;

use tracing::warn;

/// The variable that names the manager's socket: a path, or `@` and a name without one.
const VARIABLE: &str = "NOTIFY_SOCKET";

/// The service manager, if one waits for messages. Messages that it does not get are logged, and
/// change nothing else.
pub(super) struct ServiceManager {
    socket: Option<OsString>,
}

impl ServiceManager {
    /// The one that the environment names.
    pub(super) fn of_environment() -> Self {
        Self { socket: std::env::var_os(VARIABLE).filter(|socket| !socket.is_empty()) }
    }

    /// Says that requests are answered, after the start or after a reload.
    pub(super) fn ready(&self) {
        self.tell("READY=1");
    }

    /// Says that a reload begins. Must be followed by [`ready`](Self::ready), whatever comes of it.
    pub(super) fn reloading(&self) {
        // With this time, systemd can tell the next `ready` from one before its signal.
        match monotonic_microseconds() {
            Some(now) => self.tell(&format!("RELOADING=1\nMONOTONIC_USEC={now}")),
            None => self.tell("RELOADING=1"),
        }
    }

    /// Says that the service stops.
    pub(super) fn stopping(&self) {
        self.tell("STOPPING=1");
    }

    fn tell(&self, message: &str) {
        let Some(socket) = &self.socket else { return };
        if let Err(e) = send(socket, message) {
            warn!("can't send {message:?} to the service manager that {VARIABLE} names: {e}");
        }
    }
}

#[cfg(unix)]
fn send(socket: &OsStr, message: &str) -> io::Result<()> {
    use std::os::unix::net::UnixDatagram;
    UnixDatagram::unbound()?.send_to_addr(message.as_bytes(), &address(socket)?).map(drop)
}

#[cfg(unix)]
fn address(socket: &OsStr) -> io::Result<std::os::unix::net::SocketAddr> {
    use std::os::unix::net::SocketAddr;
    #[cfg(target_os = "linux")]
    {
        use std::os::linux::net::SocketAddrExt;
        use std::os::unix::ffi::OsStrExt;
        if let Some(name) = socket.as_bytes().strip_prefix(b"@") {
            return SocketAddr::from_abstract_name(name);
        }
    }
    SocketAddr::from_pathname(socket)
}

/// There are no such managers.
#[cfg(not(unix))]
fn send(_: &OsStr, _: &str) -> io::Result<()> {
    Err(io::ErrorKind::Unsupported.into())
}

/// The time of the system's monotonic clock, which the standard library does not tell.
#[cfg(unix)]
fn monotonic_microseconds() -> Option<u64> {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    let (seconds, nanoseconds) =
        (u64::try_from(now.tv_sec).ok()?, u64::try_from(now.tv_nsec).ok()?);
    Some(seconds * 1_000_000 + nanoseconds / 1_000)
}

#[cfg(not(unix))]
fn monotonic_microseconds() -> Option<u64> {
    None
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::net::UnixDatagram;
    use std::time::Duration;

    use super::*;

    fn next(socket: &UnixDatagram) -> String {
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        let mut buffer = [0; 200];
        let length = socket.recv(&mut buffer).unwrap();
        String::from_utf8(buffer[..length].to_vec()).unwrap()
    }

    fn all_messages_arrive(manager: &ServiceManager, socket: &UnixDatagram) {
        manager.ready();
        assert_eq!(next(socket), "READY=1");
        let before = monotonic_microseconds().unwrap();
        manager.reloading();
        let message = next(socket);
        let time = message.strip_prefix("RELOADING=1\nMONOTONIC_USEC=").unwrap();
        let after = monotonic_microseconds().unwrap();
        assert!(
            (before..=after).contains(&time.parse::<u64>().unwrap()),
            "{before} {time} {after}"
        );
        manager.stopping();
        assert_eq!(next(socket), "STOPPING=1");
    }

    #[test]
    fn messages_arrive_at_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notify");
        let socket = UnixDatagram::bind(&path).unwrap();
        all_messages_arrive(&ServiceManager { socket: Some(path.into()) }, &socket);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn messages_arrive_at_a_name_without_a_path() {
        let name = format!("kindred-test-{}", std::process::id());
        let socket = OsString::from(format!("@{name}"));
        let bound = UnixDatagram::bind_addr(&address(&socket).unwrap()).unwrap();
        all_messages_arrive(&ServiceManager { socket: Some(socket) }, &bound);
    }

    #[test]
    fn without_a_manager_and_with_one_that_is_gone_nothing_happens() {
        let gone = ServiceManager { socket: Some("/no/such/socket".into()) };
        for manager in [ServiceManager { socket: None }, gone] {
            manager.ready();
            manager.reloading();
            manager.stopping();
        }
        assert!(send(OsStr::new("/no/such/socket"), "READY=1").is_err());
    }
}
