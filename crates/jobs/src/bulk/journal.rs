//! The journal of bulk work: what work it is, and how far it is.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::source::Position;
use crate::journal::Description;

/// What decides every byte of the output, by name. Devices do not, where the contract says so.
pub(super) type Identity = Map<String, Value>;

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

impl Description for Identity {
    const SAME: &'static str = "the input, the options and the model";

    fn phrases(there: &Self, here: &Self) -> Vec<[String; 2]> {
        let all = |identity: &Identity| {
            let mut all = BTreeMap::new();
            for (name, value) in identity {
                match value {
                    Value::Object(fields) => all.extend(fields.clone()),
                    value => drop(all.insert(name.clone(), value.clone())),
                }
            }
            all.retain(|_, value| !value.is_null());
            all
        };
        let (there, here) = (all(there), all(here));
        let said = |name: &str, value: Option<&Value>| match value {
            None => format!("no {name}"),
            Some(Value::String(text)) => format!("{name} {text}"),
            Some(value) if name == "input_bytes" => format!("an input of {value} bytes"),
            Some(value) => format!("{name} {value}"),
        };
        let names: BTreeSet<&String> = there.keys().chain(here.keys()).collect();
        names.into_iter().map(|name| [&there, &here].map(|all| said(name, all.get(name)))).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::journal::{Recorded, difference, line, read};

    fn identity(value: Value) -> Identity {
        let Value::Object(identity) = value else { panic!("{value}") };
        identity
    }

    #[test]
    fn what_is_written_is_read_as_far_as_it_is_whole() {
        let identity = identity(json!({"work": "classify", "model": "a \"b\"\n"}));
        let checkpoint = |rows| Checkpoint {
            input: Position { rows, lines: 9, bytes: 7, hash: "ff".into() },
            written: 3 * rows,
            checksum: u32::MAX,
            errors: BTreeMap::from([("not_json".to_owned(), 2)]),
        };
        let lines = [1, 2].map(|rows| line(&checkpoint(rows)));
        let text = line(&identity) + &lines.concat();
        for length in 0..=text.len() {
            let lines = text[..length].matches('\n').count();
            let found = read::<Identity, Checkpoint>(&text.as_bytes()[..length]);
            let Some(Recorded { description, head: end, entries }) = found else {
                assert_eq!(lines, 0, "{length}");
                continue;
            };
            assert!(description == identity && end == line(&identity).len());
            let found: Vec<Checkpoint> = entries.iter().map(|(found, _)| found.clone()).collect();
            assert_eq!(found, (1..lines as u64).map(checkpoint).collect::<Vec<_>>(), "{length}");
            let ends = entries.iter().map(|(_, end)| &text[..*end]);
            assert!(ends.enumerate().all(|(n, text)| text.matches('\n').count() == n + 2));
        }
    }

    #[test]
    fn differences_are_said_by_name() {
        let one = identity(
            json!({"work": "classify", "options": {"top": 3, "threshold": null}, "input_bytes": 7}),
        );
        let other =
            identity(json!({"work": "classify", "options": {"threshold": 0.5}, "input_bytes": 8}));
        assert_eq!(difference(&one, &one), None);
        assert_eq!(
            difference(&one, &other).unwrap(),
            "an input of 7 bytes instead of an input of 8 bytes, no threshold instead of threshold 0.5, top 3 instead of no top"
        );
    }
}
