//! The process as the system sees it. Only Linux says so in a way that we read; elsewhere there is nothing.

/// Figures of this process, by the names that Prometheus's own client libraries use.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ProcessFigures {
    /// Memory that is really there.
    pub(super) resident_bytes: u64,
    /// Of that, what is not mapped from files: a model folder is.
    pub(super) anonymous_bytes: Option<u64>,
    pub(super) virtual_bytes: u64,
    pub(super) open_files: u64,
    /// How many it may open.
    pub(super) max_files: u64,
    pub(super) threads: u64,
    /// User and system time together.
    pub(super) cpu_seconds: f64,
    /// Since 1970.
    pub(super) start_seconds: f64,
}

/// What the system says now; `None` where it does not.
#[cfg(target_os = "linux")]
pub(super) fn figures() -> Option<ProcessFigures> {
    use procfs::process::{LimitValue, Process};

    let process = Process::myself().ok()?;
    let stat = process.stat().ok()?;
    let ticks = procfs::ticks_per_second() as f64;
    let started = procfs::boot_time_secs().ok()? as f64 + stat.starttime as f64 / ticks;
    Some(ProcessFigures {
        resident_bytes: stat.rss * procfs::page_size(),
        anonymous_bytes: process.status().ok()?.rssanon.map(|kibibytes| kibibytes << 10),
        virtual_bytes: stat.vsize,
        open_files: process.fd_count().ok()? as u64,
        max_files: match process.limits().ok()?.max_open_files.soft_limit {
            LimitValue::Value(files) => files,
            LimitValue::Unlimited => u64::MAX,
        },
        threads: u64::try_from(stat.num_threads).unwrap_or_default(),
        cpu_seconds: (stat.utime + stat.stime) as f64 / ticks,
        start_seconds: started,
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
}
