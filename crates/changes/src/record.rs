//! Records, of which a log is made: a header of 48 bytes, then a payload.
//!
//! ```text
//!  0  u32  "KREC"
//!  4  u32  kind: 1 a batch, 2 a reservation of positions
//!  8  u64  the log's own number at random
//! 16  u64  position: of the batch, or of the last batch before a reservation
//! 24  u64  bytes of the payload, a multiple of 8
//! 32  u64  bytes of this log that were on disk for certain when the record was written
//! 40  u32  CRC-32 of the payload
//! 44  u32  CRC-32 of the 44 bytes before
//! ```
//!
//! The number at random keeps apart records and what looks like one: bytes that a caller chose, and
//! what the disk had there before. The bytes at 32 decide what a bad record means. If a later one
//! says that it was on disk, it was damaged afterwards. Otherwise it was never acknowledged: the
//! system writes pages in any order, so that a power cut may leave what follows and not it.

use super::fields::{Aligned, Fields};

/// Bytes of a header.
pub(crate) const HEADER_BYTES: usize = 48;
/// Records begin at multiples of this.
pub(crate) const ALIGNMENT: usize = 8;

const MAGIC: u32 = u32::from_le_bytes(*b"KREC");
const CHECKED: usize = HEADER_BYTES - size_of::<u32>();

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Batch,
    /// Positions up to the number in the payload may have been given to batches that are lost.
    Reservation,
}

/// The header of a record, beside what is computed from the payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordHeader {
    pub(crate) kind: Kind,
    pub(crate) log: u64,
    pub(crate) position: u64,
    pub(crate) synced: u64,
}

/// A record as it is in a log.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Record<'a> {
    pub(crate) header: RecordHeader,
    pub(crate) payload: &'a [u8],
    /// Where it ends in the log.
    pub(crate) end: usize,
}

/// Pads a record whose payload follows room for its header, and returns the payload's checksum: the
/// slow part of [`seal`].
pub(crate) fn pad(record: &mut Aligned) -> u32 {
    record.pad();
    crc32fast::hash(&record.bytes()[HEADER_BYTES..])
}

/// Writes the header of a record that is padded, with its payload's checksum.
pub(crate) fn seal(record: &mut Aligned, header: RecordHeader, payload_crc: u32) {
    let RecordHeader { kind, log, position, synced } = header;
    let kind = match kind {
        Kind::Batch => 1_u32,
        Kind::Reservation => 2,
    };
    let bytes = record.bytes_mut();
    let length = (bytes.len() - HEADER_BYTES) as u64;
    let mut at = 0;
    let mut put = |field: &[u8]| {
        bytes[at..at + field.len()].copy_from_slice(field);
        at += field.len();
    };
    put(&MAGIC.to_le_bytes());
    put(&kind.to_le_bytes());
    for field in [log, position, length, synced] {
        put(&field.to_le_bytes());
    }
    put(&payload_crc.to_le_bytes());
    let crc = crc32fast::hash(&bytes[..CHECKED]);
    bytes[CHECKED..HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
}

/// A record that reserves the positions up to this one.
pub(crate) fn reservation(through: u64, header: RecordHeader) -> Aligned {
    let mut record = Aligned::of_parts(&[&[0; HEADER_BYTES], &through.to_le_bytes()]);
    let crc = pad(&mut record);
    seal(&mut record, RecordHeader { kind: Kind::Reservation, ..header }, crc);
    record
}

/// Reads the record at an offset of a log; `None` if there is none, or not a whole one.
pub(crate) fn read(log: &[u8], offset: usize, id: u64) -> Option<Record<'_>> {
    let mut fields = Fields(log.get(offset..)?);
    let (head, checked) = (fields.bytes(HEADER_BYTES)?, &log[offset..offset + CHECKED]);
    let mut head = Fields(head);
    let is_one = head.u32()? == MAGIC;
    let kind = head.u32()?;
    let (log_id, position, length, synced) = (head.u64()?, head.u64()?, head.u64()?, head.u64()?);
    let (payload_crc, crc) = (head.u32()?, head.u32()?);
    if !is_one || log_id != id || crc != crc32fast::hash(checked) {
        return None;
    }
    let kind = match kind {
        1 => Kind::Batch,
        2 => Kind::Reservation,
        _ => return None,
    };
    let length = usize::try_from(length).ok()?;
    let payload = fields.bytes(length)?;
    if !length.is_multiple_of(ALIGNMENT) || payload_crc != crc32fast::hash(payload) {
        return None;
    }
    let header = RecordHeader { kind, log: log_id, position, synced };
    Some(Record { header, payload, end: offset + HEADER_BYTES + length })
}

/// Where a record behind this offset says that what is at the offset was on disk.
pub(crate) fn proof_of_damage(log: &[u8], offset: usize, id: u64) -> Option<usize> {
    let mut at = offset.next_multiple_of(ALIGNMENT);
    while at < log.len() {
        match read(log, at, id) {
            Some(record) if record.header.synced > offset as u64 => return Some(at),
            Some(record) => at = record.end,
            None => at += ALIGNMENT,
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: u64 = 7;

    fn record(payload: &[u8], position: u64, synced: u64) -> Vec<u8> {
        let mut record = Aligned::of_parts(&[&[0; HEADER_BYTES], payload]);
        let crc = pad(&mut record);
        let header = RecordHeader { kind: Kind::Batch, log: ID, position, synced };
        seal(&mut record, header, crc);
        record.bytes().to_vec()
    }

    #[test]
    fn a_record_is_read_only_if_it_is_whole_and_of_this_log() {
        let bytes = record(b"0123456789", 3, 128);
        let found = read(&bytes, 0, ID).unwrap();
        assert_eq!((found.header.position, found.header.synced, found.end), (3, 128, 64));
        assert_eq!(found.payload, b"0123456789\0\0\0\0\0\0");
        assert!(read(&bytes, 0, ID + 1).is_none());
        for length in 0..bytes.len() {
            assert!(read(&bytes[..length], 0, ID).is_none(), "{length}");
        }
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(read(&changed, 0, ID).is_none(), "bit {bit}");
        }
    }

    #[test]
    fn damage_is_proved_by_a_later_record_that_saw_it_on_disk() {
        let (first, second) = (record(b"first", 1, 0), record(b"second", 2, 56));
        let mut log = [&first[..], &second].concat();
        log[50] ^= 1;
        assert!(read(&log, 0, ID).is_none());
        assert_eq!(proof_of_damage(&log, 0, ID), Some(first.len()));
        // Written in one group: nobody was told of the first.
        let mut log = [&first[..], &record(b"second", 2, 0), &record(b"third", 3, 0)].concat();
        log[50] ^= 1;
        assert_eq!(proof_of_damage(&log, 0, ID), None);
        // The same bytes, chosen by a caller, in the payload of a record that was cut.
        let inner = record(&record(b"x", 9, 1000), 1, 0);
        let mut log = record(&inner, 1, 0);
        log[40] ^= 1;
        assert_eq!(proof_of_damage(&log, 0, ID + 1), None);
    }
}
