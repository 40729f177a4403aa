//! The memory that a model may still take.

/// Bytes of available memory, as reported by the system, within the limits of the container if
/// there is one. `None` if the system does not report it, as only Linux does.
pub(crate) fn available_memory() -> Option<u64> {
    #[cfg(target_os = "linux")]
    return of_linux();
    #[cfg(not(target_os = "linux"))]
    None
}

#[cfg(target_os = "linux")]
fn of_linux() -> Option<u64> {
    use super::number_in;
    let of_machine = |name| number_in("/proc/meminfo", name).map(|kibibytes| kibibytes << 10);
    let (total, available) = (of_machine("MemTotal:")?, of_machine("MemAvailable:")?);
    // Of control groups of version 2, or else 1.
    let of_container = [
        ("memory.current", "memory.max"),
        ("memory/memory.usage_in_bytes", "memory/memory.limit_in_bytes"),
    ]
    .into_iter()
    .find_map(|(used, limit)| {
        let bytes = |file| number_in(&format!("/sys/fs/cgroup/{file}"), "");
        // Without a limit, there is `max` or a number larger than any machine.
        Some(bytes(limit).map_or(total, |limit| limit.min(total)).saturating_sub(bytes(used)?))
    });
    Some(of_container.map_or(available, |container| container.min(available)))
}
