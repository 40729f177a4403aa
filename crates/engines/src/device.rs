//! The devices that search, as `--device` names them, and how a model is placed on several:
//! `--placement`.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The devices that search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Device {
    /// A GPU if there is one, else the CPU.
    Auto,
    /// The CPU.
    Cpu,
    /// CUDA GPUs, or an error if they are not there.
    Cuda(Gpus),
}

/// Which GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gpus {
    /// The first.
    First,
    /// All that the driver knows.
    All,
    /// Those with these indices of the driver's, from 0. An index that is repeated gives the GPU
    /// several engines: with that, what happens on several GPUs can be tried on one.
    These(Vec<u32>),
}

impl Device {
    /// Calls `make` with the first GPU that is asked for: its index, or `None` for the first that
    /// there is. Returns `None` if the CPU is to be used: it was asked for, or `auto` found no GPU.
    /// In the second case `why_not` gets the error.
    ///
    /// # Errors
    /// That of `make`, if a GPU was asked for.
    pub(crate) fn on_first_gpu<T, E>(
        &self,
        make: impl FnOnce(Option<u32>) -> Result<T, E>,
        why_not: impl FnOnce(E),
    ) -> Result<Option<T>, E> {
        match self {
            Self::Cpu => Ok(None),
            Self::Auto => Ok(make(None).map_err(why_not).ok()),
            Self::Cuda(Gpus::First | Gpus::All) => make(None).map(Some),
            Self::Cuda(Gpus::These(indices)) => make(indices.first().copied()).map(Some),
        }
    }
}

impl Gpus {
    /// The only GPU, if it is one: its index, or `None` for the first.
    pub fn only(&self) -> Option<Option<u32>> {
        match self {
            Self::First => Some(None),
            Self::These(indices) => match indices[..] {
                [index] => Some(Some(index)),
                _ => None,
            },
            Self::All => None,
        }
    }
}

impl FromStr for Device {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let gpus = match text {
            "auto" => return Ok(Self::Auto),
            "cpu" => return Ok(Self::Cpu),
            "cuda" => Some(Gpus::First),
            "cuda:all" => Some(Gpus::All),
            _ => text.strip_prefix("cuda:").and_then(|indices| {
                let indices = indices.split(',').map(str::parse);
                Some(Gpus::These(indices.collect::<Result<_, _>>().ok()?))
            }),
        };
        gpus.map(Self::Cuda).ok_or_else(|| {
            format!(
                "unknown device `{text}`; use auto, cpu, cuda (the first GPU), cuda:all, or cuda: with the numbers of GPUs, \
                 like cuda:1 or cuda:0,2 (cuda:0 is the first)"
            )
        })
    }
}

impl fmt::Display for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.write_str("auto"),
            Self::Cpu => f.write_str("cpu"),
            Self::Cuda(Gpus::First) => f.write_str("cuda"),
            Self::Cuda(Gpus::All) => f.write_str("cuda:all"),
            Self::Cuda(Gpus::These(indices)) => {
                let indices: Vec<String> = indices.iter().map(u32::to_string).collect();
                write!(f, "cuda:{}", indices.join(","))
            }
        }
    }
}

impl From<Device> for String {
    fn from(device: Device) -> Self {
        device.to_string()
    }
}

impl TryFrom<String> for Device {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

/// How a model is placed on several GPUs. On one GPU, or the CPU, all are the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Placement {
    /// A copy on each GPU if all have room for one. Otherwise shards on all of them, in as many
    /// equal groups as possible.
    #[default]
    Auto,
    /// A copy on each GPU, for throughput.
    Replicate,
    /// A part of the rows on each GPU, for tables that one GPU does not hold, and for lower
    /// latency.
    Shard,
}

contract::names! { Placement { Auto: "auto", Replicate: "replicate", Shard: "shard" } }

impl FromStr for Placement {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let unknown = || format!("unknown placement `{text}`; use auto, replicate or shard");
        Self::named(text).ok_or_else(unknown)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_auto_goes_on_without_a_gpu() {
        let tried = |device: &str, works: bool| {
            let (mut asked, mut said) = (None, None);
            let make = |gpu| {
                asked = Some(gpu);
                if works { Ok("a GPU") } else { Err("none") }
            };
            let device: Device = device.parse().unwrap();
            let made = device.on_first_gpu(make, |why| said = Some(why));
            (asked, made, said)
        };
        for works in [true, false] {
            assert_eq!(tried("cpu", works), (None, Ok(None), None));
        }
        assert_eq!(tried("auto", true), (Some(None), Ok(Some("a GPU")), None));
        assert_eq!(tried("auto", false), (Some(None), Ok(None), Some("none")));
        for (device, first) in [("cuda", None), ("cuda:all", None), ("cuda:2,1", Some(2))] {
            assert_eq!(tried(device, true), (Some(first), Ok(Some("a GPU")), None));
            assert_eq!(tried(device, false), (Some(first), Err("none"), None));
        }
    }

    #[test]
    fn devices_read_as_they_are_written() {
        for text in
            ["auto", "cpu", "cuda", "cuda:0", "cuda:7", "cuda:all", "cuda:0,2", "cuda:3,3,1"]
        {
            assert_eq!(text.parse::<Device>().unwrap().to_string(), text);
        }
        for text in ["", "gpu", "cuda:", "cuda:x", "cuda:-1", "cuda:0,", "cuda:0;1", "CPU"] {
            assert!(text.parse::<Device>().unwrap_err().contains("cuda:0,2"), "{text}");
        }
        for placement in Placement::ALL {
            assert_eq!(placement.to_string().parse(), Ok(placement));
        }
        assert!("split".parse::<Placement>().unwrap_err().contains("shard"));
    }
}
