//! The limit of open files, which connections count against. Only Unix has one.

/// Number of files that the process opens besides connections: the log, the model, engines,
/// threads' event queues.
#[cfg(unix)]
const OTHER_FILES: u64 = 256;

/// Raises this process's limit of open files as far as it may go, and logs a warning if that is not
/// enough for `max_connections`.
#[cfg(unix)]
pub fn raise_file_limit(max_connections: usize) {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let needed = max_connections as u64 + OTHER_FILES;
    let Rlimit { current, maximum } = getrlimit(Resource::Nofile);
    let set = |current| setrlimit(Resource::Nofile, Rlimit { current, maximum }).is_ok();
    let Some(files) = raised(current, maximum, needed, set) else { return };
    if files < needed {
        tracing::warn!(
            "max_connections is {max_connections}, but this process may open only {files} files: \
             raise its hard limit to {needed} (ulimit -Hn, or LimitNOFILE= of systemd), or set \
             max_connections to {}",
            files.saturating_sub(OTHER_FILES).max(1)
        );
    }
}

/// Does nothing, because only Unix has such a limit.
#[cfg(not(unix))]
pub fn raise_file_limit(_max_connections: usize) {}

/// Raises a limit by `set`, which says whether the system accepts it, and returns the one in force.
/// `None` means no limit.
#[cfg(any(unix, test))]
fn raised(
    current: Option<u64>,
    maximum: Option<u64>,
    needed: u64,
    set: impl Fn(Option<u64>) -> bool,
) -> Option<u64> {
    /// macOS names no maximum, and yet refuses more than `kern.maxfilesperproc`, or this.
    const OPEN_MAX: u64 = 10_240;
    let is_more = |wanted: Option<u64>| match (wanted, current) {
        (_, None) => false,
        (None, Some(_)) => true,
        (Some(wanted), Some(current)) => wanted > current,
    };
    let tries = [maximum, Some(needed), Some(OPEN_MAX)];
    tries.into_iter().find(|&wanted| is_more(wanted) && set(wanted)).unwrap_or(current)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_is_the_highest_that_the_system_accepts() {
        // As on Linux.
        let up_to = |most: u64| move |wanted: Option<u64>| wanted.is_some_and(|it| it <= most);
        assert_eq!(raised(Some(1024), Some(524_288), 700, up_to(524_288)), Some(524_288));
        assert_eq!(raised(Some(1024), Some(1024), 2000, up_to(1024)), Some(1024));
        assert_eq!(raised(None, None, 2000, |_| panic!("there is none")), None);
        assert_eq!(raised(Some(1024), None, 2000, |_| true), None);
        // As on macOS.
        assert_eq!(raised(Some(256), None, 20_000, up_to(61_440)), Some(20_000));
        assert_eq!(raised(Some(256), None, 20_000, up_to(10_240)), Some(10_240));
        assert_eq!(raised(Some(256), None, 20_000, |_| false), Some(256));
    }

    #[test]
    fn whatever_the_system_is_it_can_be_asked() {
        raise_file_limit(1);
    }
}
