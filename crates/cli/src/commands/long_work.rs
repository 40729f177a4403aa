//! What `graph` and `bulk` have in common: an engine that is kept busy with jobs, on a model that is
//! verified meanwhile, until the work is done or somebody stops it.

use std::sync::Arc;

use indicatif::HumanCount;
use kindred::live::Live;
use kindred::queue::Limits;
use kindred::{Kindred, ModelStore, Settings};
use serde::Serialize;
use serde_json::{Value, json};

use super::beside::Verification;
use super::signals::Interrupt;
use super::{CommandError, own_engine, start};
use crate::arguments::DeviceArguments;

/// Jobs in flight for each replica: one in work, one that is started, and those that are being
/// read, made or written.
const JOBS_PER_REPLICA: usize = 8;
const MOST_JOBS: usize = 64;

/// Long work that has begun.
pub(super) struct LongWork {
    pub(super) kindred: Kindred,
    pub(super) interrupt: Interrupt,
    pub(super) verification: Verification,
}

impl LongWork {
    /// Starts the engine. Its queue has room for the maximum number of jobs of `slots_per_job`
    /// slots each. `kept` is said if the work does not stop by itself after Ctrl-C.
    pub(super) fn start(
        (model, live): (&Arc<ModelStore>, Option<&Arc<Live>>),
        devices: &DeviceArguments,
        slots_per_job: u32,
        kept: &'static str,
    ) -> Result<Self, CommandError> {
        let own = own_engine(&devices.device, devices.threads);
        let limits = Limits { capacity_slots: slots_per_job * MOST_JOBS as u32, ..own.limits };
        let settings = Settings { placement: devices.placement, limits, ..own };
        let interrupt = Interrupt::watch(kept);
        let verification = Verification::start(model)?;
        let kindred = start(model, live, settings)?;
        Ok(Self { kindred, interrupt, verification })
    }

    /// Jobs in flight, at least this number.
    pub(super) fn jobs(kindred: &Kindred, least: usize) -> usize {
        let replicas = kindred.statistics().counted.replicas.len();
        (JOBS_PER_REPLICA * replicas).clamp(least, MOST_JOBS)
    }
}

/// A summary as JSON, with the engine and the pace.
pub(super) fn report(summary: &impl Serialize, engine: &str, rows_per_second: f64) -> Value {
    let mut report = json!(summary);
    report["engine"] = json!(engine);
    report["rows_per_second"] = json!(rows_per_second);
    report
}

/// The number of rows that earlier runs did, for a summary; nothing if there are none.
pub(super) fn resumed(rows: u64) -> String {
    match rows {
        0 => String::new(),
        rows => format!(", {} of them earlier", HumanCount(rows)),
    }
}
