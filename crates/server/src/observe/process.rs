//! The process as the system sees it. Only on Linux; elsewhere there are no such figures.

use std::fs;

use super::family::Family;

/// The number in the first line of this file that begins with `name`. `None` if there is no such
/// file, line or number.
pub(crate) fn number_in(file: &str, name: &str) -> Option<u64> {
    let text = fs::read_to_string(file).ok()?;
    let rest = text.lines().find_map(|line| line.strip_prefix(name))?;
    rest.split_whitespace().next()?.parse().ok()
}

/// The current figures of this process, by the names that all of Prometheus's client libraries use.
/// Empty if the system does not report them.
pub(super) fn families() -> Vec<Family> {
    read().unwrap_or_default()
}

#[cfg(target_os = "linux")]
fn read() -> Option<Vec<Family>> {
    use rustix::param::{clock_ticks_per_second, page_size};
    use rustix::process::{Resource, getrlimit};

    use super::family::{Samples, gauges, only};

    let stat = fs::read_to_string("/proc/self/stat").ok()?;
    // The fields of proc_pid_stat(5) from the third on. The second is the program's name, which may
    // contain spaces and parentheses.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    let field = |number: usize| fields.get(number - 3)?.parse::<u64>().ok();
    let ticks = clock_ticks_per_second() as f64;
    let cpu_seconds = (field(14)? + field(15)?) as f64 / ticks;
    let started = number_in("/proc/stat", "btime ")? as f64 + field(22)? as f64 / ticks;
    let open_files = fs::read_dir("/proc/self/fd").ok()?.count();
    let max_files = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
    let gauge = |name, help, value: f64| gauges(name, help, only(value));
    let mut families = vec![
        Family {
            name: "process_cpu_seconds",
            help: "User and system CPU time",
            samples: Samples::Sum(cpu_seconds),
        },
        gauge(
            "process_resident_memory_bytes",
            "Resident memory",
            (field(24)? * page_size() as u64) as f64,
        ),
        gauge(
            "process_virtual_memory_bytes",
            "Virtual memory, including mapped models",
            field(23)? as f64,
        ),
        gauge("process_open_fds", "Open file descriptors", open_files as f64),
        gauge("process_max_fds", "Limit of open file descriptors", max_files as f64),
        gauge("process_threads", "Threads", field(20)? as f64),
        gauge(
            "process_start_time_seconds",
            "Start time of the process, in seconds since 1970",
            started,
        ),
    ];
    if let Some(kibibytes) = number_in("/proc/self/status", "RssAnon:") {
        let help = "Resident memory without mapped files, such as models";
        let bytes = (kibibytes << 10) as f64;
        families.push(gauge("kindred_process_anonymous_bytes", help, bytes));
    }
    Some(families)
}

#[cfg(not(target_os = "linux"))]
fn read() -> Option<Vec<Family>> {
    None
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::time::SystemTime;

    use super::super::family::Samples;
    use super::*;

    /// The values of some gauges.
    fn values<const N: usize>(names: [&str; N]) -> [f64; N] {
        let families = families();
        names.map(|name| {
            let family = families.iter().find(|family| family.name == name).unwrap();
            let Samples::Gauges(samples) = &family.samples else { panic!("{name}") };
            samples[0].1
        })
    }

    #[test]
    fn memory_and_files_that_are_taken_are_seen() {
        const MEMORY: [&str; 2] =
            ["process_resident_memory_bytes", "kindred_process_anonymous_bytes"];
        let before = values(MEMORY);
        let taken = vec![1_u8; 256 << 20];
        let files: Vec<_> = (0..20).map(|_| tempfile::tempfile().unwrap()).collect();
        let after = values(MEMORY);
        for (before, after) in before.into_iter().zip(after) {
            assert!(after >= before + f64::from(128 << 20), "{before} {after}");
        }
        let [open, max] = values(["process_open_fds", "process_max_fds"]);
        assert!(open >= 20.0 && open < max, "{open} of {max}");
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap();
        let [started] = values(["process_start_time_seconds"]);
        let age = now.as_secs_f64() - started;
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
