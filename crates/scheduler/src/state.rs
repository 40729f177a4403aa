//! The state of the devices, as callers see it, and why a device may be given up.

use std::time::Duration;

/// The state of the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DeviceState {
    /// At least one works, as far as is known.
    Working,
    /// None does, and one is being made again. Requests are refused meanwhile.
    Restarting {
        /// When the next attempt should be over.
        retry_after: Duration,
    },
    /// They failed for good: the process is about to end.
    Lost,
}

/// The state of one of several devices: of a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplicaState {
    /// Its first device is being made, or waits to be made.
    Starting,
    /// It works, as far as is known.
    Working,
    /// Its device failed and is being made again.
    Restarting {
        /// When the next attempt should be over.
        retry_after: Duration,
    },
    /// Its device neither answers nor fails. Others work; if the call returns after all, the device
    /// is made again.
    Hanging,
    /// It failed for good: the process is about to end.
    Lost,
    /// It was told to drop its device. It counts neither as working nor as lost.
    Retired,
}

impl ReplicaState {
    /// The names of all states of replicas that are not retired.
    pub const NAMES: [&str; 5] = ["starting", "working", "restarting", "hanging", "lost"];

    /// Its name in metrics.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Working => "working",
            Self::Restarting { .. } => "restarting",
            Self::Hanging => "hanging",
            Self::Lost => "lost",
            Self::Retired => "retired",
        }
    }
}

/// Why there will be no engine any more.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EngineLost {
    /// It failed too often.
    #[error(
        "the engine failed after {most} restarts within a minute, the maximum that engine_max_restarts \
         allows; last error: {last}"
    )]
    TooManyRestarts {
        /// The setting.
        most: u32,
        /// The last failure.
        last: String,
    },
    /// It neither answers nor fails. Its thread can't be stopped, and its memory and its device are
    /// in use.
    #[error(
        "the engine hangs: {doing} took longer than engine_hang_timeout_ms ({milliseconds} ms)"
    )]
    Hangs {
        /// What it was doing.
        doing: &'static str,
        /// The setting.
        milliseconds: u128,
    },
    /// A bug in Kindred.
    #[error("the engine thread ended; see the log")]
    ThreadEnded,
}
