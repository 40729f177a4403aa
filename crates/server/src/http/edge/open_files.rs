//! Room for connections: each is an open file.

/// Files that the process has open besides: the log, the model, engines, threads' event queues.
const OTHER_FILES: u64 = 256;

/// Raises this process's limit of open files as far as it may go, and says in the log if that is not enough
/// for so many connections.
#[cfg(unix)]
pub fn make_room(max_connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let current = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // None is without limit.
    let Some(files) = current else { return };
    let needed = max_connections as u64 + OTHER_FILES;
    if files < needed {
        tracing::warn!(
            "max_connections is {max_connections}, but this process may open only {files} files: raise its \
             hard limit to {needed} (ulimit -Hn, or LimitNOFILE= of systemd), or set max_connections to {}",
            files.saturating_sub(OTHER_FILES).max(1)
        );
    }
}

/// Nothing to do: such a limit is only on Unix.
#[cfg(not(unix))]
pub fn make_room(_max_connections: usize) {}
