//! The process as the system sees it.

/// Figures of this process. Those that the system does not report are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(crate) struct Figures {
    /// User and system CPU time.
    pub(crate) cpu_seconds: Option<f64>,
    /// Resident memory.
    pub(crate) resident_bytes: Option<u64>,
    /// Resident memory without mapped files.
    pub(crate) anonymous_bytes: Option<u64>,
    /// Virtual memory.
    pub(crate) virtual_bytes: Option<u64>,
    /// Open file descriptors.
    pub(crate) open_files: Option<u64>,
    /// The limit of open file descriptors; `u64::MAX` if there is none.
    pub(crate) max_files: Option<u64>,
    /// Threads.
    pub(crate) threads: Option<u64>,
    /// Start time, in seconds since 1970.
    pub(crate) started: Option<f64>,
}

/// The current figures of this process.
pub(crate) fn figures() -> Figures {
    #[cfg(target_os = "linux")]
    if let Some(figures) = of_linux() {
        return figures;
    }
    of_any_system()
}

#[cfg(target_os = "linux")]
fn of_linux() -> Option<Figures> {
    use rustix::param::{clock_ticks_per_second, page_size};

    use super::number_in;

    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The fields of proc_pid_stat(5) from the third on. The second is the program's name, which may
    // contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = clock_ticks_per_second() as f64;
    let booted = number_in("/proc/stat", "btime ")? as f64;
    Some(Figures {
        cpu_seconds: Some((field(14)? + field(15)?) as f64 / ticks),
        resident_bytes: Some(field(24)? * page_size() as u64),
        anonymous_bytes: number_in("/proc/self/status", "RssAnon:").map(|kibi| kibi << 10),
        virtual_bytes: field(23),
        open_files: Some(std::fs::read_dir("/proc/self/fd").ok()?.count() as u64),
        max_files: Some(max_files()),
        threads: field(20),
        started: Some(booted + field(22)? as f64 / ticks),
    })
}

/// Those that every Unix reports in the same way.
#[cfg(unix)]
fn of_any_system() -> Figures {
    use rustix::time::{ClockId, clock_gettime};
    let used = clock_gettime(ClockId::ProcessCPUTime);
    let open_files = std::fs::read_dir("/dev/fd").ok().map(|files| files.count() as u64);
    Figures {
        cpu_seconds: Some(used.tv_sec as f64 + used.tv_nsec as f64 / 1e9),
        open_files,
        max_files: Some(max_files()),
        ..Figures::default()
    }
}

#[cfg(not(unix))]
fn of_any_system() -> Figures {
    Figures::default()
}

#[cfg(unix)]
fn max_files() -> u64 {
    use rustix::process::{Resource, getrlimit};
    getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_system_can_be_asked() {
        assert!(figures().cpu_seconds.is_none_or(|seconds| seconds >= 0.0));
    }

    #[cfg(unix)]
    #[test]
    fn every_unix_has_cpu_time_and_files() {
        let figures = of_any_system();
        let before = figures.cpu_seconds.unwrap();
        let mut sum = 0_u64;
        while of_any_system().cpu_seconds.unwrap() == before {
            sum = std::hint::black_box(sum + 1);
        }
        let open = figures.open_files.unwrap();
        assert!(open > 0 && open <= figures.max_files.unwrap(), "{figures:?}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn memory_and_files_that_are_taken_are_seen() {
        use std::time::SystemTime;

        let memory = |figures: Figures| [figures.resident_bytes, figures.anonymous_bytes];
        let before = memory(figures());
        let taken = vec![1_u8; 256 << 20];
        let files: Vec<_> = (0..20).map(|_| tempfile::tempfile().unwrap()).collect();
        let figures = figures();
        for (before, after) in before.into_iter().zip(memory(figures)) {
            assert!(after.unwrap() >= before.unwrap() + (128 << 20), "{before:?} {after:?}");
        }
        let [open, max] = [figures.open_files, figures.max_files].map(Option::unwrap);
        assert!(open >= 20 && open < max, "{open} of {max}");
        assert!(of_any_system().open_files.unwrap() >= 20);
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let age = now.as_secs_f64() - figures.started.unwrap();
        assert!((-2.0..3600.0).contains(&age), "{age}");
        let [linux, any] = [figures, of_any_system()].map(|figures| figures.cpu_seconds.unwrap());
        assert!((-0.1..60.0).contains(&(any - linux)), "{linux} {any}");
        drop((taken, files));
    }
}
