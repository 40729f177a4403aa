//! From many callers to few devices: bounded lanes of jobs, a fair share of device time for each caller, and threads
//! that own a device each.
//!
//! The scheduler knows neither words nor HTTP. A [`Workload`] says what its requests are, how they batch, what they
//! cost and how a device runs them; each workload has a [`Lane`]. There is no artificial delay: while one pass runs,
//! the next one gathers and the last one is handed out.
//!
//! A job's way:
//!
//! ```text
//! Lane::submit ─▶ admission (shared) ─▶ inbox, in shards ─▶ lane ─▶ pass ─▶ device
//!      ▲                                     collected by workers, under the lock of `dispatch`
//!      └───────── hand_out ◀─────────────────────────────────────┘
//! ```
//!
//! **Turns.** A pass may be cut into slices. Before each slice the caller on which the devices have spent the least
//! time decides which lane is served (`dispatch.rs`, `account/turns.rs`). So callers of an expensive workload can't
//! take more than their share from callers of a cheap one, and nobody waits longer than one slice or one uncut pass.
//! Within a lane callers, and the jobs of each, share each pass fairly (`share.rs`).
//!
//! **Admission** has one rule, whether a job has one request or a thousand: it takes slots, as many as its workload
//! says, and has them until it is answered, fails or is dropped. It is let in if that many slots are free and its
//! caller then holds no more than it leaves free ([`account`]). More than half of the slots count as half. A refusal
//! says how long the devices will take for the slots that are taken, at their present rate.
//!
//! **Several workers** take from the same lanes. Callers write to shards and to one counter; the lock of `dispatch` is
//! for workers alone, so no lock is taken by all callers and all workers for every request.
//!
//! **Deadlines** are looked at on entry, before each slice, while a slice runs, and when the answer is there. Jobs whose
//! callers hung up are dropped before the next slice.
//!
//! **Supervision.** A pass that fails or panics fails its own jobs; then its device is dropped and made again
//! (`supervisor.rs`). What waits goes on waiting; while no device works, new jobs are refused. A device that can't be
//! made again, or that hangs, is lost: [`Workers::lost`] tells the process to end.
#![forbid(unsafe_code)]

pub mod account;
mod core;
mod dispatch;
mod error;
mod hand_out;
mod handle;
mod inbox;
mod job;
mod lane;
mod parking;
mod pass;
mod share;
mod shared;
mod start;
mod state;
mod statistics;
mod supervisor;
mod sync;
mod worker;

pub use contract::Workload;
pub use error::{StartError, SubmitError};
pub use handle::Lane;
pub use job::Answered;
pub use start::{Limits, Scheduler, Workers};
pub use state::{DeviceState, EngineLost};
pub use statistics::{BATCH_SIZE_BOUNDS, Counted, LaneStatistics, PASS_SECONDS_BOUNDS};

#[cfg(all(test, feature = "shuttle"))]
mod schedules;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
