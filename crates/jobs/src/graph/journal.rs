//! The entries of the journal of a graph that is being made: which rows are done, with their
//! checksums.

use serde::{Deserialize, Serialize};

/// A range of rows whose neighbours are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct WrittenRange {
    /// Counted from 0.
    pub(super) number: u64,
    /// Neighbours of all its rows.
    pub(super) edges: u64,
    /// The CRC-32 of its part of indices and scores.
    pub(super) checksums: [u32; 2],
}

#[cfg(test)]
mod tests {
    use super::super::Identity;
    use super::*;
    use crate::journal::{Description, Recorded, line};

    type Read = Recorded<WrittenRange>;

    fn read(bytes: &[u8]) -> Option<Read> {
        crate::journal::read(bytes)
    }

    /// The ranges alone.
    fn ranges(read: &Read) -> Vec<WrittenRange> {
        read.entries.iter().map(|(range, _)| *range).collect()
    }

    fn journal() -> (Description, Vec<WrittenRange>, String) {
        let identity = Identity {
            position: None,
            format: 1,
            model: "a \"quoted\"\nname".into(),
            version: "7fbc8351f31644a7".into(),
            metric: "cosine".into(),
            rows: 400_000,
            k: 10,
            min_score: Some(0.1),
            filter: Some("price < 80".into()),
            rows_per_range: 1024,
        }
        .description();
        let written: Vec<WrittenRange> = [3, 0, 1]
            .map(|number| {
                let checksums = [number as u32, 0xffee];
                WrittenRange { number, edges: number * 7, checksums }
            })
            .into();
        let text = written.iter().map(line).fold(line(&identity), |text, line| text + &line);
        (identity, written, text)
    }

    #[test]
    fn what_is_written_is_read() {
        let (identity, written, text) = journal();
        let found = read(text.as_bytes()).unwrap();
        assert_eq!((found.head, ranges(&found)), (line(&identity).len(), written));
        assert_eq!(found.entries.last().unwrap().1, text.len());
        assert_eq!(found.description, identity);
    }

    #[test]
    fn torn_at_any_byte_only_whole_lines_count() {
        let (identity, written, text) = journal();
        let head = line(&identity).len();
        for length in 0..text.len() {
            let lines = text[..length].matches('\n').count();
            match read(&text.as_bytes()[..length]) {
                None => assert!(length < head, "{length}"),
                Some(found) => {
                    assert!(lines > 0 && found.description == identity);
                    assert_eq!(ranges(&found), written[..lines - 1], "{length}");
                    let end = found.entries.last().map_or(found.head, |(_, end)| *end);
                    assert!(text[..end].ends_with('\n'));
                }
            }
        }
    }

    #[test]
    fn a_byte_that_changed_ends_what_counts() {
        let (identity, written, text) = journal();
        let head = line(&identity).len();
        for at in 0..text.len() {
            let mut bytes = text.clone().into_bytes();
            bytes[at] ^= 1;
            let before = text[..at].matches('\n').count();
            match read(&bytes) {
                None => assert!(at < head, "{at}"),
                Some(found) => assert_eq!(ranges(&found), written[..before - 1], "{at}"),
            }
        }
    }
}
