//! The journal of bulk work: what work it is, and how far it is.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::source::Position;
use crate::journal::{line, whole_lines};

/// What decides every byte of the output, by name. Devices do not, where the contract says so.
pub(super) type Identity = Map<String, Value>;

/// How far the work is.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Done {
    /// What was read.
    pub(super) input: Position,
    /// The length of what was written, in bytes.
    pub(super) written: u64,
    /// Its CRC-32.
    pub(super) checksum: u32,
    /// Rows that have an error, by its code.
    pub(super) errors: BTreeMap<String, u64>,
}

/// What a journal says.
#[derive(Debug, PartialEq)]
pub(super) struct Read {
    pub(super) identity: Identity,
    /// Where the line with it ends.
    pub(super) head: usize,
    /// Each state that was entered, in order, and where its line ends.
    pub(super) done: Vec<(Done, usize)>,
}

/// The line that begins a journal.
pub(super) fn head(identity: &Identity) -> String {
    line(&serde_json::to_string(identity).expect("it is JSON"))
}

/// The line for a state.
pub(super) fn state(done: &Done) -> String {
    line(&serde_json::to_string(done).expect("numbers and texts are JSON"))
}

/// Reads a journal up to the first line that is not whole. `None` if the head is not whole: nothing
/// counts then.
pub(super) fn read(bytes: &[u8]) -> Option<Read> {
    let mut lines = whole_lines(bytes);
    let (identity, head) = lines.next()?;
    let identity = serde_json::from_str(identity).ok()?;
    let done = lines.map_while(|(text, end)| Some((serde_json::from_str(text).ok()?, end)));
    Some(Read { identity, head, done: done.collect() })
}

/// In what two works differ: there, and here.
pub(super) fn difference(there: &Identity, here: &Identity) -> Option<String> {
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
    let mut names: Vec<&String> = there.keys().chain(here.keys()).collect();
    names.sort();
    names.dedup();
    let differs = names.into_iter().filter(|&name| there.get(name) != here.get(name));
    let differences: Vec<String> = differs
        .map(|name| {
            format!("{} instead of {}", said(name, there.get(name)), said(name, here.get(name)))
        })
        .collect();
    (!differences.is_empty()).then(|| differences.join(", "))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn identity(value: Value) -> Identity {
        let Value::Object(identity) = value else { panic!("{value}") };
        identity
    }

    #[test]
    fn what_is_written_is_read_as_far_as_it_is_whole() {
        let identity = identity(json!({"work": "classify", "model": "a \"b\"\n"}));
        let done = |rows| Done {
            input: Position { rows, lines: 9, bytes: 7, hash: "ff".into() },
            written: 3 * rows,
            checksum: u32::MAX,
            errors: BTreeMap::from([("not_json".to_owned(), 2)]),
        };
        let text = head(&identity) + &state(&done(1)) + &state(&done(2));
        for length in 0..=text.len() {
            let lines = text[..length].matches('\n').count();
            let Some(found) = read(&text.as_bytes()[..length]) else {
                assert_eq!(lines, 0, "{length}");
                continue;
            };
            assert!(found.identity == identity && found.head == head(&identity).len());
            let states: Vec<Done> = found.done.iter().map(|(done, _)| done.clone()).collect();
            assert_eq!(states, (1..lines as u64).map(done).collect::<Vec<_>>(), "{length}");
            let ends = found.done.iter().map(|(_, end)| &text[..*end]);
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
