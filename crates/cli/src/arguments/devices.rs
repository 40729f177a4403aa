//! Flags that say what long work, such as `graph` and `bulk`, runs on.

use clap::Args;
use kindred::device::{Device, Placement};

use super::thread_counts;

/// What works.
#[derive(Debug, Clone, Args)]
pub struct DeviceArguments {
    /// Devices to work on: auto (a GPU if there is one, else the CPU), cpu, cuda (the first GPU, an
    /// error without one), cuda:all, or some GPUs, as in cuda:1 or cuda:0,2
    #[arg(long, default_value_t = Device::Auto)]
    pub device: Device,
    /// Placement of the model on several GPUs: replicate, shard, or auto (copies if they fit, else
    /// shards)
    #[arg(long, default_value_t = Placement::Auto)]
    pub placement: Placement,
    /// Number of CPU engine threads; 0 means one per core
    #[arg(long, value_name = "N", default_value_t = 0, value_parser = thread_counts())]
    pub threads: usize,
}
