//! The journal of a graph that is being made: what graph it is, and which rows are done, with their
//! checksums.

use super::Identity;
use crate::journal::{line, whole_lines};

/// A range of rows that is done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Done {
    /// Neighbours of all its rows.
    pub(super) edges: u64,
    /// The CRC-32 of its part of indices and scores.
    pub(super) checksums: [u32; 2],
}

/// What a journal says.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    /// Which graph it is of.
    pub(super) identity: Identity,
    /// The number of each range that is done, counted from 0.
    pub(super) done: Vec<(u64, Done)>,
    /// Its length without what was torn, in bytes.
    pub(super) length: usize,
}

/// The line that begins a journal.
pub(super) fn head(identity: &Identity) -> String {
    line(&serde_json::to_string(identity).expect("numbers and texts are JSON"))
}

/// The line for a range.
pub(super) fn range(number: u64, done: Done) -> String {
    let Done { edges, checksums: [indices, scores] } = done;
    line(&format!("{number} {edges} {indices:08x} {scores:08x}"))
}

/// Reads a journal up to the first line that is not whole. `None` if the head is not whole: nothing
/// counts then.
pub(super) fn read(bytes: &[u8]) -> Option<Read> {
    let mut length = 0;
    let mut texts = whole_lines(bytes).map(|(text, end)| {
        length = end;
        text
    });
    let identity = serde_json::from_str(texts.next()?).ok()?;
    let done: Vec<_> = texts.map_while(parse).collect();
    Some(Read { identity, done, length })
}

fn parse(text: &str) -> Option<(u64, Done)> {
    let mut fields = text.split(' ');
    let number = fields.next()?.parse().ok()?;
    let edges = fields.next()?.parse().ok()?;
    let mut checksum = || u32::from_str_radix(fields.next()?, 16).ok();
    Some((number, Done { edges, checksums: [checksum()?, checksum()?] }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal() -> (Identity, Vec<(u64, Done)>, String) {
        let identity = Identity {
            format: 1,
            model: "a \"quoted\"\nname".into(),
            version: "7fbc8351f31644a7".into(),
            metric: "cosine".into(),
            rows: 400_000,
            k: 10,
            min_score: Some(0.1),
            rows_per_range: 1024,
        };
        let done: Vec<(u64, Done)> = [3, 0, 1]
            .map(|number| (number, Done { edges: number * 7, checksums: [number as u32, 0xffee] }))
            .into();
        let lines = done.iter().map(|&(number, done)| range(number, done));
        let text = lines.fold(head(&identity), |text, line| text + &line);
        (identity, done, text)
    }

    #[test]
    fn what_is_written_is_read() {
        let (identity, done, text) = journal();
        let length = text.len();
        assert_eq!(read(text.as_bytes()), Some(Read { identity, done, length }));
    }

    #[test]
    fn torn_at_any_byte_only_whole_lines_count() {
        let (identity, done, text) = journal();
        let head = head(&identity).len();
        for length in 0..text.len() {
            let lines = text[..length].matches('\n').count();
            match read(&text.as_bytes()[..length]) {
                None => assert!(length < head, "{length}"),
                Some(found) => {
                    assert!(lines > 0 && found.identity == identity);
                    assert_eq!(found.done, done[..lines - 1], "{length}");
                    assert!(text[..found.length].ends_with('\n'));
                }
            }
        }
    }

    #[test]
    fn a_byte_that_changed_ends_what_counts() {
        let (identity, done, text) = journal();
        let head = head(&identity).len();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let before = text[..at].matches('\n').count();
            match read(&bytes) {
                None => assert!(at < head, "{at}"),
                Some(found) => assert_eq!(found.done, done[..before - 1], "{at}"),
            }
        }
    }
}
