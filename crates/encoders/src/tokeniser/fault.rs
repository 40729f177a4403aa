//! Why a part of `tokenizer.json` is not read. The file's path is added where it is known.

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

/// The fields of a part.
pub(super) fn fields<T: for<'a> Deserialize<'a>>(name: &str, part: &Value) -> Result<T, Fault> {
    T::deserialize(part).map_err(|error| Fault::Faulty(format!("its {name}: {error}")))
}
