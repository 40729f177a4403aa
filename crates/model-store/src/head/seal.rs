//! The checksum of `head.json`, over everything else in it: labels, temperature and tokens decide
//! answers as much as the weights do. It has that of `weights.safetensors`, and both files are
//! written together.

use std::path::Path;

use serde::Serialize;
use serde_json::Value;

use super::{HEAD, HEAD_FILE, HeadError};
use crate::error::Reason;
use crate::format::Checksum;
use crate::whole::NewFolder;

/// The field with the checksum. Heads of earlier versions do not have it.
const FIELD: &str = "checksum";

/// The checksum of a description: of its JSON without this field, with sorted keys and without
/// white space.
pub(super) fn checksum_of(description: &impl Serialize) -> String {
    // By way of its text, in which a float32 has fewer digits than the same number in float64.
    let json = serde_json::to_string(description).expect("a description is JSON");
    of_value(serde_json::from_str(&json).expect("it was just written")).to_string()
}

fn of_value(mut json: Value) -> Checksum {
    if let Value::Object(fields) = &mut json {
        fields.remove(FIELD);
    }
    // Without the Cargo feature `preserve_order` they are sorted anyway.
    json.sort_all_objects();
    Checksum::of(json.to_string().as_bytes())
}

/// Checks a description that can be read, if it has a checksum.
pub(super) fn check(path: &Path, json: &[u8]) -> Result<(), HeadError> {
    let damaged = |reason: Reason| HeadError::Damaged { path: path.to_owned(), reason };
    let json: Value = serde_json::from_slice(json).map_err(|error| damaged(error.into()))?;
    let Some(expected) = json.get(FIELD).cloned() else { return Ok(()) };
    let found = of_value(json).to_string();
    if expected.as_str() == Some(&found) {
        return Ok(());
    }
    let reason =
        format!("its checksum is {found}, not {expected}; it was changed after it was made");
    Err(damaged(reason.into()))
}

/// Checks the content of a folder's other file against the checksum in its description.
pub(super) fn check_file(
    folder: &Path,
    name: &str,
    content: &[u8],
    expected: &str,
) -> Result<(), HeadError> {
    let found = Checksum::of(content).to_string();
    if found == expected {
        return Ok(());
    }
    let reason = format!("its checksum is {found}, not {expected}");
    Err(HeadError::Damaged { path: folder.join(name), reason: reason.into() })
}

/// Writes a head's folder, complete or not at all. The description has both checksums.
pub(super) fn write(
    out: &Path,
    replace: bool,
    description: &impl Serialize,
    other: (&str, &[u8]),
) -> Result<(), HeadError> {
    let folder = NewFolder::beside(&HEAD, out, replace.into())?;
    let json = to_json(description);
    folder.complete(&[(HEAD_FILE, json.as_bytes()), other])?;
    Ok(())
}

pub(super) fn to_json(description: &impl Serialize) -> String {
    serde_json::to_string_pretty(description).expect("a description is JSON") + "\n"
}
