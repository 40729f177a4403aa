//! The entries of the journal of bulk work: how far it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::source::Position;

/// How far the work is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Checkpoint {
    /// What was read.
    pub(super) input: Position,
    /// The length of what was written, in bytes.
    pub(super) written: u64,
    /// Its CRC-32.
    pub(super) checksum: u32,
    /// Rows that have an error, by its code.
    pub(super) errors: BTreeMap<String, u64>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::journal::{Description, Recorded, line, read};

    #[test]
    fn what_is_written_is_read_as_far_as_it_is_whole() {
        let model = ("model".to_owned(), "a \"b\"\n".into());
        let begun = Description::from_iter([("work".to_owned(), "classify".into()), model]);
        let checkpoint = |rows| Checkpoint {
            input: Position { rows, lines: 9, bytes: 7, hash: "ff".into() },
            written: 3 * rows,
            checksum: u32::MAX,
            errors: BTreeMap::from([("not_json".to_owned(), 2)]),
        };
        let lines = [1, 2].map(|rows| line(&checkpoint(rows)));
        let text = line(&begun) + &lines.concat();
        for length in 0..=text.len() {
            let lines = text[..length].matches('\n').count();
            let found = read::<Checkpoint>(&text.as_bytes()[..length]);
            let Some(Recorded { description, head: end, entries }) = found else {
                assert_eq!(lines, 0, "{length}");
                continue;
            };
            assert!(description == begun && end == line(&begun).len());
            let found: Vec<Checkpoint> = entries.iter().map(|(found, _)| found.clone()).collect();
            assert_eq!(found, (1..lines as u64).map(checkpoint).collect::<Vec<_>>(), "{length}");
            let ends = entries.iter().map(|(_, end)| &text[..*end]);
            assert!(ends.enumerate().all(|(n, text)| text.matches('\n').count() == n + 2));
        }
    }
}
