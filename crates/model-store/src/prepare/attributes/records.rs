//! Reads a file of attributes, of either format, line by line.

use std::path::Path;

use super::super::Input;
use super::super::encoding::TextEncoding;
use super::super::lines::{CHUNK_BYTES, begin};
use super::super::unpack::{self, Unpacked};
use super::line::{Read, Take};
use super::{csv_file, json_lines};
use crate::ModelError;

/// The signature of Parquet.
const PARQUET: &[u8] = b"PAR1";

/// Passes each line of a file to `take`, decompressed and decoded.
pub(super) fn read(
    input: Input<'_>,
    encoding: Option<TextEncoding>,
    take: Take<'_>,
) -> Result<Read, ModelError> {
    unpack::read(input, None, |unpacked| read_unpacked(unpacked, encoding, take))
}

fn read_unpacked(
    unpacked: &mut Unpacked<'_>,
    encoding: Option<TextEncoding>,
    take: Take<'_>,
) -> Result<Read, ModelError> {
    let mut start = Vec::new();
    let more = unpacked.fill(&mut start, CHUNK_BYTES)?;
    if start.starts_with(PARQUET) {
        return Err(unpacked.progress().bad(
            "it is a Parquet file, and attributes are read as CSV or JSON lines; convert it: \
             duckdb -c \"COPY (FROM 'FILE') TO 'attributes.jsonl'\"",
        ));
    }
    let (start, more) = begin(unpacked, start, more, encoding)?;
    match start.trim_ascii_start().first() {
        Some(b'{') => json_lines::read(unpacked, start, more, take),
        Some(b'[') => Err(unpacked.progress().bad(
            "it is a JSON array; write each of its objects into a line of its own: \
             jq -c '.[]' FILE",
        )),
        _ => csv_file::read(unpacked, start, more, take),
    }
}

/// The whole content of a file that can be read only once, such as a pipe, decompressed.
pub(super) fn read_whole(path: &Path) -> Result<Vec<u8>, ModelError> {
    unpack::read(Input::File(path), None, |unpacked| {
        let mut content = Vec::new();
        while unpacked.fill(&mut content, CHUNK_BYTES)? {}
        Ok(content)
    })
}
