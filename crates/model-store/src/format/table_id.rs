//! The number at random of a table that began without rows: two of one shape are two tables, and
//! what becomes of one is no version of the other.

use std::fmt;
use std::hash::{BuildHasher, RandomState};
use std::str::FromStr;
use std::time::SystemTime;

/// A number of 128 bits, written as 32 hexadecimal digits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableId([u8; 16]);

impl TableId {
    /// One that no other table has.
    pub fn random() -> Self {
        // The standard library takes its keys from the system; the rest tells processes apart that
        // were begun as copies of one.
        let mut hasher = blake3::Hasher::new();
        for round in 0_u64..4 {
            hasher.update(&RandomState::new().hash_one(round).to_le_bytes());
        }
        hasher.update(format!("{} {:?}", std::process::id(), SystemTime::now()).as_bytes());
        let first = hasher.finalize().as_bytes().first_chunk().copied();
        Self(first.expect("a hash has 32 bytes"))
    }
}

impl fmt::Display for TableId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl FromStr for TableId {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = u128::from_str_radix(text, 16).ok().map(u128::to_be_bytes).map(Self);
        // Only as it is written: no sign, no capitals.
        let same = digits.filter(|id| id.to_string() == text);
        same.ok_or_else(|| format!("`{text}` is not a table's number (32 hexadecimal digits)"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_differ_and_read_back() {
        let [one, other] = [TableId::random(), TableId::random()];
        assert_ne!(one, other);
        assert_eq!(one.to_string().parse(), Ok(one));
        let small = TableId([0; 16]);
        assert_eq!(small.to_string().parse(), Ok(small));
        for bad in ["", "0", "+0000000000000000000000000000000", &"F".repeat(32), &"0".repeat(33)] {
            assert!(bad.parse::<TableId>().is_err(), "{bad}");
        }
    }
}
