//! Whether there is room for another model.

use model_store::ModelStore;

/// Bytes of memory that programs may still take, as the system says, within the bounds of a container if the
/// process is in one. `None` where the system does not say.
pub(super) fn available() -> Option<u64> {
    let mut system = sysinfo::System::new();
    system.refresh_memory();
    let of_machine = system.available_memory();
    let of_container = system.cgroup_limits().map(|limits| limits.free_memory);
    let available = of_container.map_or(of_machine, |container| container.min(of_machine));
    (system.total_memory() > 0).then_some(available)
}

/// Bytes that a model takes in memory beside others: its files, which are mapped, and a byte for each component
/// that engines derive.
pub(super) fn needed(model: &ModelStore) -> u64 {
    let (rows, dim) = (model.rows() as u64, model.dim() as u64);
    let (header, rounded_dim) = (model.header(), dim.next_multiple_of(64));
    let files = rows * (4 * dim + 16) + header.words_bytes + header.index_bytes;
    files + rows * (rounded_dim + 64)
}
