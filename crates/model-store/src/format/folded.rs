//! The part of a header that only the base of a fold has, and the small file that says which base is
//! the one that counts.
//!
//! A fold writes a new base into a folder of its own, beside the old one, and then puts a file
//! `vectors.safetensors` of a header alone, the *pointer*, in the place of the one before. Its
//! format version is one that no program knows which knows no folds.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use safetensors::tensor::SafeTensors;

use super::Checksum;
use crate::ModelError;

/// By how much the format version of a base of a fold is raised: 5 for cosine, 6 for dot.
pub(crate) const FOLDED: u32 = 4;
/// The format version of a pointer.
pub(crate) const POINTER: u32 = 7;

/// The beginning of the names of folders that have bases.
pub(crate) const BASE_PREFIX: &str = "base-";
/// The end of the name of one that is being written.
pub const UNFINISHED: &str = ".new";
/// The pointer, while it is being written.
pub const NEW_POINTER_FILE: &str = "vectors.safetensors.new";
/// In the folder of a base: the idempotency keys that were kept when it was made.
pub const REQUESTS_FILE: &str = "requests.jsonl";

/// What a base is of the table whose changes were folded into it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Folded {
    /// The version of the content from which positions count.
    pub version: String,
    /// The number of the base: 2 for the first that a fold made.
    pub generation: u64,
    /// The position at which it has the rows that lived.
    pub position: u64,
    /// The number that the first row behind it has.
    pub next_row: u32,
    /// The first log that has batches behind the position.
    pub first_log: u64,
    /// The log before that: its number at random, and its bytes that count.
    pub log_before: Option<(u64, u64)>,
    /// The tensor `rows`: the number of each row.
    pub rows: Checksum,
    /// The file of the idempotency keys: its bytes and its checksum.
    pub requests: (u64, Checksum),
}

const VERSION: &str = "table_version";

impl Folded {
    pub(super) fn texts(&self) -> [(&'static str, String); 9] {
        let (id, bytes) = self.log_before.unwrap_or_default();
        [
            (VERSION, self.version.clone()),
            ("generation", self.generation.to_string()),
            ("position", self.position.to_string()),
            ("next_row", self.next_row.to_string()),
            ("first_log", self.first_log.to_string()),
            ("log_before", format!("{id} {bytes}")),
            ("checksum_rows", self.rows.to_string()),
            ("requests_bytes", self.requests.0.to_string()),
            ("checksum_requests", self.requests.1.to_string()),
        ]
    }

    pub(super) fn from_texts(texts: &HashMap<String, String>) -> Result<Self, String> {
        fn read<T: std::str::FromStr>(
            texts: &HashMap<String, String>,
            key: &str,
        ) -> Result<T, String> {
            let text = texts.get(key).ok_or_else(|| format!("its metadata has no `{key}`"))?;
            text.parse().map_err(|_| format!("`{key}` in its metadata is impossible"))
        }
        let before: String = read(texts, "log_before")?;
        let before = before
            .split_once(' ')
            .and_then(|(id, bytes)| Some((id.parse().ok()?, bytes.parse().ok()?)))
            .ok_or("`log_before` in its metadata is impossible")?;
        let folded = Self {
            version: read(texts, VERSION)?,
            generation: read(texts, "generation")?,
            position: read(texts, "position")?,
            next_row: read(texts, "next_row")?,
            first_log: read(texts, "first_log")?,
            log_before: (before != (0, 0)).then_some(before),
            rows: read(texts, "checksum_rows")?,
            requests: (read(texts, "requests_bytes")?, read(texts, "checksum_requests")?),
        };
        let is_version = folded.version.len() == 16;
        match is_version && folded.generation >= 2 && folded.first_log > 0 {
            true => Ok(folded),
            false => Err("its metadata are those of no fold".to_owned()),
        }
    }
}

/// A file that says in which folder the base is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pointer {
    /// The name of the folder, in that of the model.
    pub base: String,
}

impl Pointer {
    /// The content of the file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut metadata =
            BTreeMap::from([("kindred_format", POINTER.to_string()), ("base", self.base.clone())]);
        let content = serde_json::to_string(&metadata).expect("texts become JSON");
        metadata.insert("checksum_header", Checksum::of(content.as_bytes()).to_string());
        let header = BTreeMap::from([("__metadata__", metadata)]);
        let mut json = serde_json::to_vec(&header).expect("texts become JSON");
        json.resize(json.len().next_multiple_of(8), b' ');
        [&(json.len() as u64).to_le_bytes()[..], &json].concat()
    }

    /// Reads a file, if it is one: `None` if it is anything else.
    ///
    /// # Errors
    /// If it was one, and is damaged.
    pub fn read(path: &Path, file: &[u8]) -> Result<Option<Self>, ModelError> {
        /// The header of a table is longer.
        const MAX_BYTES: usize = 4096;
        if file.len() > MAX_BYTES {
            return Ok(None);
        }
        let Ok((_, found)) = SafeTensors::read_metadata(file) else { return Ok(None) };
        let Some(texts) = found.metadata() else { return Ok(None) };
        if texts.get("kindred_format").is_none_or(|format| *format != POINTER.to_string()) {
            return Ok(None);
        }
        let pointer = texts.get("base").map(|base| Self { base: base.clone() });
        match pointer.filter(|pointer| pointer.to_bytes() == file && is_base(&pointer.base)) {
            Some(pointer) => Ok(Some(pointer)),
            None => Err(ModelError::damaged(path, "it was changed after it was written")),
        }
    }
}

/// The name of a folder for a base: no other base ever has it, so that no copy has a mixture.
pub fn base_name(generation: u64, random: u64) -> String {
    format!("{BASE_PREFIX}{generation:08}-{:08x}", random as u32)
}

/// Whether a folder of this name has a base that is complete.
pub(crate) fn is_base(name: &str) -> bool {
    let parts = name.strip_prefix(BASE_PREFIX).and_then(|rest| rest.split_once('-'));
    parts.is_some_and(|(generation, random)| {
        generation.len() >= 8
            && generation.bytes().all(|byte| byte.is_ascii_digit())
            && random.len() == 8
            && random.bytes().all(|byte| byte.is_ascii_hexdigit())
    })
}

/// Whether a folder of this name has a base, or one that is being written.
pub fn is_base_or_unfinished(name: &str) -> bool {
    is_base(name.strip_suffix(UNFINISHED).unwrap_or(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_reads_as_itself_and_no_changed_bit_passes() {
        let pointer = Pointer { base: base_name(2, 0xabc) };
        assert_eq!(pointer.base, "base-00000002-00000abc");
        let (path, bytes) = (Path::new("vectors.safetensors"), pointer.to_bytes());
        assert_eq!(Pointer::read(path, &bytes).unwrap(), Some(pointer));
        for bit in 0..bytes.len() * 8 {
            let mut changed = bytes.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(!matches!(Pointer::read(path, &changed), Ok(Some(_))), "bit {bit}");
        }
        for length in 0..bytes.len() {
            assert!(!matches!(Pointer::read(path, &bytes[..length]), Ok(Some(_))), "{length}");
        }
        for name in ["base-1-00000abc", "base-00000002", "base-00000002-../../xy", "../base-00"] {
            let forged = Pointer { base: name.to_owned() }.to_bytes();
            assert!(Pointer::read(path, &forged).is_err(), "{name}");
        }
    }

    #[test]
    fn names_of_bases_are_told_from_others() {
        for (name, complete, either) in [
            ("base-00000002-00000abc", true, true),
            ("base-00000002-00000abc.new", false, true),
            ("base-123456789-0123abcd", true, true),
            ("base-00000002-abc", false, false),
            ("base-camp", false, false),
            ("attributes", false, false),
        ] {
            assert_eq!((is_base(name), is_base_or_unfinished(name)), (complete, either), "{name}");
        }
    }
}
