//! Checksums, as model folders hold them.

use std::fmt;
use std::str::FromStr;

use serde::de::{Deserialize, Deserializer, Error};
use serde::ser::{Serialize, Serializer};

/// Bytes that are hashed before somebody is asked whether to go on.
const ASK_EVERY_BYTES: usize = 32 << 20;

/// A BLAKE3 checksum, written as `blake3:` and 64 hexadecimal digits (`b3sum` prints the same).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Checksum(blake3::Hash);

impl Checksum {
    /// The checksum of these bytes, computed on all cores.
    pub fn of(bytes: &[u8]) -> Self {
        Self(blake3::Hasher::new().update_rayon(bytes).finalize())
    }

    /// The same, in parts; `None` as soon as `goes_on` says no.
    pub(crate) fn of_while(bytes: &[u8], goes_on: &dyn Fn() -> bool) -> Option<Self> {
        let mut hasher = blake3::Hasher::new();
        for part in bytes.chunks(ASK_EVERY_BYTES) {
            if !goes_on() {
                return None;
            }
            hasher.update_rayon(part);
        }
        Some(Self::from_hasher(&hasher))
    }

    /// The checksum of what a hasher has seen.
    pub fn from_hasher(hasher: &blake3::Hasher) -> Self {
        Self(hasher.finalize())
    }
}

impl fmt::Display for Checksum {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "blake3:{}", self.0.to_hex())
    }
}

impl Serialize for Checksum {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Checksum {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

impl FromStr for Checksum {
    type Err = String;

    fn from_str(s: &str) -> Result<Self, Self::Err> {
        s.strip_prefix("blake3:")
            .and_then(|hex| blake3::Hash::from_hex(hex).ok())
            .map(Self)
            .ok_or_else(|| format!("`{s}` is not a checksum (`blake3:` and 64 hexadecimal digits)"))
    }
}
