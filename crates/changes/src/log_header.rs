//! The first 128 bytes of a log, written before the log has its name.
//!
//! ```text
//!   0  8 bytes   "kindrlog"
//!   8  u32       format, 2
//!  12  u32       zero
//!  16  u64       the log's number, which is its name
//!  24  u64       a number at random
//!  32  u64       that of the log before, 0 if there is none
//!  40  u64       bytes of the log before: the rest of it does not count
//!  48  u64       position of the last batch before this log
//!  56  u64       positions up to this one may have been given to batches that are lost
//!  64  16 bytes  the version of the base
//!  80  u64       a hash of the schema: dimension, metric, attributes
//!  88  36 bytes  zero
//! 124  u32       CRC-32 of the 124 bytes before
//! ```
//!
//! In logs of format 1 no batch has positions of sources. Nothing is appended to them any more.

use super::fields::Fields;

/// Bytes of the header.
pub(crate) const LOG_HEADER_BYTES: usize = 128;

const MAGIC: [u8; 8] = *b"kindrlog";
/// The format of logs that are begun.
pub(crate) const FORMAT: u32 = 2;
const CHECKED: usize = LOG_HEADER_BYTES - size_of::<u32>();
/// Digits of a base's version.
const VERSION_BYTES: usize = 16;

/// The header of a log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LogHeader {
    pub(crate) format: u32,
    pub(crate) number: u64,
    pub(crate) id: u64,
    pub(crate) previous: Option<Previous>,
    pub(crate) after: u64,
    pub(crate) reserved: u64,
    pub(crate) version: String,
    pub(crate) fingerprint: u64,
}

/// The log before, and how much of it counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Previous {
    pub(crate) id: u64,
    pub(crate) bytes: u64,
}

impl LogHeader {
    pub(crate) fn to_bytes(&self) -> [u8; LOG_HEADER_BYTES] {
        let previous = self.previous.unwrap_or(Previous { id: 0, bytes: 0 });
        let mut bytes = [0; LOG_HEADER_BYTES];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&self.format.to_le_bytes());
        let numbers =
            [self.number, self.id, previous.id, previous.bytes, self.after, self.reserved];
        for (index, number) in numbers.into_iter().enumerate() {
            bytes[16 + index * 8..][..8].copy_from_slice(&number.to_le_bytes());
        }
        bytes[64..64 + VERSION_BYTES].copy_from_slice(self.version.as_bytes());
        bytes[80..88].copy_from_slice(&self.fingerprint.to_le_bytes());
        let crc = crc32fast::hash(&bytes[..CHECKED]);
        bytes[CHECKED..].copy_from_slice(&crc.to_le_bytes());
        bytes
    }

    /// Reads the header of a log.
    ///
    /// # Errors
    /// Says why it is none.
    pub(crate) fn read(log: &[u8]) -> Result<Self, String> {
        let bytes = log.get(..LOG_HEADER_BYTES).ok_or("it ends inside its header")?;
        let damaged = || "its header is damaged".to_owned();
        let mut fields = Fields(bytes);
        if fields.bytes(MAGIC.len()) != Some(&MAGIC) {
            return Err("it is no log of changes".to_owned());
        }
        let (format, zero) = fields.u32().zip(fields.u32()).ok_or_else(damaged)?;
        let crc = crc32fast::hash(&bytes[..CHECKED]);
        if bytes[CHECKED..] != crc.to_le_bytes() || zero != 0 {
            return Err(damaged());
        }
        if !(1..=FORMAT).contains(&format) {
            return Err(format!(
                "it has format {format}, but this kindred reads formats up to {FORMAT}"
            ));
        }
        let mut number = || fields.u64().ok_or_else(damaged);
        let (number, id, previous) =
            (number()?, number()?, [number()?, number()?, number()?, number()?]);
        let [previous_id, previous_bytes, after, reserved] = previous;
        let version = fields.bytes(VERSION_BYTES).and_then(|bytes| std::str::from_utf8(bytes).ok());
        let version = version.ok_or_else(damaged)?.to_owned();
        let fingerprint = fields.u64().ok_or_else(damaged)?;
        let previous = Previous { id: previous_id, bytes: previous_bytes };
        let previous = (previous.id != 0).then_some(previous);
        Ok(Self { format, number, id, previous, after, reserved, version, fingerprint })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_reads_back_and_no_bit_of_it_may_differ() {
        let header = LogHeader {
            format: FORMAT,
            number: 3,
            id: 5,
            previous: Some(Previous { id: 4, bytes: 1000 }),
            after: 17,
            reserved: 4096,
            version: "0123456789abcdef".to_owned(),
            fingerprint: 99,
        };
        let bytes = header.to_bytes();
        assert_eq!(LogHeader::read(&bytes), Ok(header.clone()));
        let first = LogHeader { previous: None, format: 1, ..header };
        assert_eq!(LogHeader::read(&first.to_bytes()), Ok(first.clone()));
        let later = LogHeader { format: FORMAT + 1, ..first };
        let refused = LogHeader::read(&later.to_bytes()).unwrap_err();
        assert!(refused.contains("it has format 3"), "{refused}");
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes;
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(LogHeader::read(&changed).is_err(), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(LogHeader::read(&bytes[..length]).is_err(), "{length}");
        }
    }
}
