//! From many callers to few devices: bounded lanes of jobs, a fair share of device time for each
//! caller, and threads that own a device each.
//!
//! The scheduler knows neither words nor HTTP. A [`Workload`] says what its requests are, how they
//! batch, what they cost and how a device runs them; each workload has a [`Lane`]. There is no
//! artificial delay: while one pass runs, the next one gathers and the last one is handed out.
//!
//! The path of a job:
//!
//! ```text
//! Lane::submit ─▶ admission (shared) ─▶ inbox, in shards ─▶ lane ─▶ pass ─▶ device
//!      ▲                                     collected by workers, under the lock of `dispatch`
//!      └───────── hand_out ◀─────────────────────────────────────┘
//! ```
//!
//! **Turns.** A pass may be cut into slices. Before each slice, the lane is chosen whose caller has
//! used the least device time (`dispatch.rs`, `account/turns.rs`). So callers of an expensive
//! workload can't take more than their share from callers of a cheap one, and whoever's turn it is
//! waits for one slice or one uncut pass. Two exceptions let requests of few callers share passes
//! where many wait elsewhere: after a pass their lane rests, for three times as long as the pass
//! took at most; and if that was short, they may be ahead of the others by 20 ms. Within a lane,
//! callers share each pass fairly, and so do the jobs of one caller (`choose.rs`).
//!
//! **Admission** has one rule for jobs of one request or a thousand. A job takes as many slots as
//! its workload says and keeps them until it is answered, fails or is dropped. It is admitted if
//! that many slots are free and its caller then holds no more than it leaves free ([`account`]). A
//! job that needs more than half of the slots counts as half, and one that needs more than an
//! eighth only because its requests are dear counts as an eighth. A refusal says how long the
//! devices will need for the slots that are taken, at their present rate.
//!
//! **Several workers** take from the same lanes. Callers write to shards and to a few atomics. The
//! lock of `dispatch` is for workers and the timer; callers never take it. So no lock is taken by
//! all callers and all workers for every request.
//!
//! **Deadlines** are checked on entry, before each slice, while a slice runs, and before the answer
//! is sent. Jobs whose callers hung up are dropped before the next slice.
//!
//! **Supervision.** When a device fails or panics, it is dropped and made again (`supervisor.rs`),
//! with growing pauses. Waiting jobs stay in the queue. While no device works, new jobs are
//! refused.
//!
//! - If it was the only one that worked, the jobs of the failed pass fail.
//! - While another works, the jobs of all passes that were on the device are asked again, and
//!   nobody sees an error. Any of them may be the reason for the failure, so each runs in a pass of
//!   its own, with nothing else on the device. If a device fails a second time while it has a job,
//!   or parts of it, the job fails. So one request can fail two devices, and it is the only one
//!   that fails with the second. Eight passes apart go before a pass of other jobs.
//! - A device that hangs can't be stopped. While another works, the jobs are taken from it and
//!   asked again, as copies. If the call returns after all, its answers are dropped, and the device
//!   is made again.
//! - A device that fails more often than it may is lost; so is one that hangs as the last:
//!   [`DeviceThreads::lost`] tells the process to end. While another works, or may soon work, a
//!   device that fails too often goes on trying instead, with the longest pause.
//!
//! **Replicas** ([`Replicas`]) can retire one by one, and start again, while the others answer.
#![forbid(unsafe_code)]

pub mod account;
mod choose;
mod core;
mod dispatch;
mod error;
mod hand_out;
mod inbox;
mod job;
mod lane;
mod lane_state;
mod parking;
mod pass;
mod replicas;
mod shared;
mod start;
mod state;
mod states;
mod statistics;
mod supervisor;
#[cfg(not(feature = "shuttle"))]
mod sync;
#[cfg(feature = "shuttle")]
#[path = "../schedules/sync.rs"]
mod sync;
mod timeline;
mod worker;

pub use contract::Workload;
pub use error::{StartError, SubmitError};
pub use job::Answered;
pub use lane::Lane;
pub use replicas::{NotRetired, Replicas};
pub use shared::Limits;
pub use start::{DeviceThreads, Scheduler, Until};
pub use state::{DeviceState, EngineLost, ReplicaState};
pub use statistics::{BATCH_SIZE_BOUNDS, Counted, LaneStatistics, PASS_SECONDS_BOUNDS};
pub use timeline::{JobTimes, PassTimes, Timeline};

#[cfg(all(test, feature = "shuttle"))]
#[path = "../schedules/tests.rs"]
mod schedules;
#[cfg(all(test, not(feature = "shuttle")))]
mod tests;
