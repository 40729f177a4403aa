//! What `graph` and `bulk` have in common: an engine that is kept busy with jobs.

use kindred::queue::Limits;
use kindred::{Kindred, Settings};

use super::own_engine;
use crate::arguments::DeviceArguments;

/// Jobs in flight for each replica: one in work, one that is started, and those that are being
/// read, made or written.
const JOBS_PER_REPLICA: usize = 8;
const MOST_JOBS: usize = 64;

/// Settings with a queue for the most jobs, each of this number of slots.
pub(super) fn settings(devices: &DeviceArguments, slots_per_job: u32) -> Settings {
    let own = own_engine(&devices.device, devices.threads);
    let limits = Limits { capacity_queries: slots_per_job * MOST_JOBS as u32, ..own.limits };
    Settings { placement: devices.placement, limits, ..own }
}

/// Jobs in flight, at least this number.
pub(super) fn jobs(kindred: &Kindred, least: usize) -> usize {
    let replicas = kindred.statistics().counted.replicas.len();
    (JOBS_PER_REPLICA * replicas).clamp(least, MOST_JOBS)
}
