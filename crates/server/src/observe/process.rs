//! The process as the system sees it. Only on Linux; elsewhere there are no such figures.

use std::fs;

/// Figures of this process, by the names that Prometheus's own client libraries use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessFigures {
    /// Resident memory.
    pub(super) resident_bytes: u64,
    /// Resident memory that is not mapped from files, as model folders are.
    pub(super) anonymous_bytes: Option<u64>,
    pub(super) virtual_bytes: u64,
    pub(super) open_files: u64,
    /// Maximum number of open files.
    pub(super) max_files: u64,
    pub(super) threads: u64,
    /// User and system time together.
    pub(super) cpu_seconds: f64,
    /// The time of the start, in seconds since 1970.
    pub(super) start_seconds: f64,
}

/// The number in the first line of this file that begins with `name`. `None` if there is no such
/// file, line or number.
pub(crate) fn number_in(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The current figures; `None` if the system does not report them.
#[cfg(target_os = "linux")]
pub(super) fn figures() -> Option<ProcessFigures> {
    use rustix::param::{clock_ticks_per_second, page_size};
    use rustix::process::{Resource, getrlimit};

    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The fields of proc_pid_stat(5) from the third on. The second is the program's name, which may
    // contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = clock_ticks_per_second() as f64;
    let anonymous = number_in("/proc/self/status", "RssAnon:").map(|kibibytes| kibibytes << 10);
    Some(ProcessFigures {
        resident_bytes: field(24)? * page_size() as u64,
        anonymous_bytes: anonymous,
        virtual_bytes: field(23)?,
        open_files: fs::read_dir("/proc/self/fd").ok()?.count() as u64,
        max_files: getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX),
        threads: field(20)?,
        cpu_seconds: (field(14)? + field(15)?) as f64 / ticks,
        start_seconds: number_in("/proc/stat", "btime ")? as f64 + field(22)? as f64 / ticks,
    })
}

#[cfg(not(target_os = "linux"))]
pub(super) fn figures() -> Option<ProcessFigures> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::SystemTime;

    use super::*;

    #[test]
    fn memory_and_files_that_are_taken_are_seen() {
        let before = figures().unwrap();
        let taken = vec![1_u8; 256 << 20];
        let files: Vec<_> = (0..20).map(|_| tempfile::tempfile().unwrap()).collect();
        let after = figures().unwrap();
        assert!(
            after.resident_bytes >= before.resident_bytes + (128 << 20),
            "{before:?} {after:?}"
        );
        let anonymous = |figures: ProcessFigures| figures.anonymous_bytes.unwrap();
        assert!(anonymous(after) >= anonymous(before) + (128 << 20), "{before:?} {after:?}");
        assert!(after.open_files >= 20 && after.open_files < after.max_files, "{after:?}");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - after.start_seconds;
        assert!((-2.0..3600.0).contains(&age), "{age}");
        drop((taken, files));
    }

    #[test]
    fn numbers_are_read_by_the_beginnings_of_their_lines() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "max\nMemTotal:   12 kB\nMemFree: x\n").unwrap();
        let number = |name: &str| number_in(file.path().to_str().unwrap(), name);
        assert_eq!(number("MemTotal:"), Some(12));
        assert_eq!([number("MemFree:"), number("Mem "), number("")], [None; 3]);
        assert_eq!(number_in("/no/such/file", ""), None);
    }
}
