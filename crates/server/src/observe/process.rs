//! The process as the system sees it, as metrics.

use super::family::{Family, Samples, gauges, only};
use crate::system::{Figures, figures};

/// The current figures of this process, by the names that all of Prometheus's client libraries use.
/// Without those that the system does not report.
pub(super) fn families() -> Vec<Family> {
    of_figures(figures())
}

fn of_figures(figures: Figures) -> Vec<Family> {
    let gauge = |name, help, value: Option<f64>| Some(gauges(name, help, only(value?)));
    let whole = |name, help, value: Option<u64>| gauge(name, help, value.map(|value| value as f64));
    let cpu_seconds = figures.cpu_seconds.map(|seconds| Family {
        name: "process_cpu_seconds",
        help: "User and system CPU time",
        samples: Samples::Sum(seconds),
    });
    [
        cpu_seconds,
        whole("process_resident_memory_bytes", "Resident memory", figures.resident_bytes),
        whole(
            "process_virtual_memory_bytes",
            "Virtual memory, including mapped models",
            figures.virtual_bytes,
        ),
        whole("process_open_fds", "Open file descriptors", figures.open_files),
        whole("process_max_fds", "Limit of open file descriptors", figures.max_files),
        whole("process_threads", "Threads", figures.threads),
        gauge(
            "process_start_time_seconds",
            "Start time of the process, in seconds since 1970",
            figures.started,
        ),
        whole(
            "kindred_process_anonymous_bytes",
            "Resident memory without mapped files, such as models",
            figures.anonymous_bytes,
        ),
    ]
    .into_iter()
    .flatten()
    .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(figures: Figures) -> Vec<&'static str> {
        of_figures(figures).iter().map(|family| family.name).collect()
    }

    #[test]
    fn only_what_the_system_reports_is_a_metric() {
        assert_eq!(names(Figures::default()), [""; 0]);
        let figures = Figures { threads: Some(3), cpu_seconds: Some(0.5), ..Figures::default() };
        assert_eq!(names(figures), ["process_cpu_seconds", "process_threads"]);
        let families = of_figures(figures);
        let Samples::Sum(seconds) = &families[0].samples else { panic!("{families:?}") };
        let Samples::Gauges(threads) = &families[1].samples else { panic!("{families:?}") };
        assert_eq!((*seconds, threads[0].1), (0.5, 3.0));
    }
}
