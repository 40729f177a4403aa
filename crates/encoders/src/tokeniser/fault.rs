//! How parts of `tokenizer.json` are read, and why one is not. The file's path is added where it is
//! known.

use serde::Deserialize;
use serde_json::Value;

/// Why a part is not read.
#[derive(Debug)]
pub(super) enum Fault {
    /// It contradicts itself or another part.
    Faulty(String),
    /// It is of a kind that is not read; the text says so, and has the cure.
    Unsupported(String),
}

/// The cure where a part is not read and nothing in the file can be changed for it.
pub(super) const WITHOUT_TEXTS: &str =
    "the model's rows without texts can be prepared from its safetensors file";

/// A part that is of a kind that is not read.
pub(super) fn not_read(part: &str, found: &str, read: &[&str]) -> Fault {
    let read = read.join(", ");
    Fault::Unsupported(format!(
        "its {part} is {found}, and only these are read: {read}; {WITHOUT_TEXTS}"
    ))
}

/// The type that a part says it has.
pub(super) fn kind(part: &Value) -> &str {
    part["type"].as_str().unwrap_or("without a type")
}

/// Sequences within sequences that are read; more than this is no use.
const MAX_DEPTH: usize = 16;

/// Reads something of a part.
type Read<T> = fn(&Value) -> Result<T, Fault>;

/// The steps of a part of the file, those of sequences one after the other; without a part there
/// are none. `parts` has those of a sequence, and `step` reads any other part.
pub(super) fn steps<S>(
    part: &Value,
    parts: Read<Vec<Value>>,
    step: Read<S>,
) -> Result<Vec<S>, Fault> {
    let mut steps = Vec::new();
    if !part.is_null() {
        push(part, 0, (parts, step), &mut steps)?;
    }
    Ok(steps)
}

fn push<S>(
    part: &Value,
    depth: usize,
    read: (Read<Vec<Value>>, Read<S>),
    steps: &mut Vec<S>,
) -> Result<(), Fault> {
    let (parts, step) = read;
    if kind(part) == "Sequence" && depth < MAX_DEPTH {
        return parts(part)?.iter().try_for_each(|part| push(part, depth + 1, read, steps));
    }
    steps.push(step(part)?);
    Ok(())
}

/// The fields of a part.
pub(super) fn fields<T: for<'a> Deserialize<'a>>(name: &str, part: &Value) -> Result<T, Fault> {
    T::deserialize(part).map_err(|error| Fault::Faulty(format!("its {name}: {error}")))
}
