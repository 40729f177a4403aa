//! Reads a file of attributes, of any format, line by line.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use indexmap::IndexMap;

use super::super::Input;
use super::super::encoding::TextEncoding;
use super::super::lines::{CHUNK_BYTES, begin};
use super::super::unpack::{self, Unpacked};
use super::line::{Line, Read, Take, TakeAt, Wanted};
use super::{TableReader, csv_file, json_lines, table_file};
use crate::ModelError;
use crate::attributes::AttributeType;

/// The signature of Parquet.
const PARQUET: &[u8] = b"PAR1";

/// Passes each line of a file to `take`, decompressed and decoded, without the fields that are not
/// wanted, if it matters which are: what those have is not looked at.
pub(in crate::prepare) fn read_wanted(
    input: Input<'_>,
    encoding: Option<TextEncoding>,
    parquet: Option<&dyn TableReader>,
    wanted: Option<Wanted<'_>>,
    take: TakeAt<'_>,
) -> Result<Read, ModelError> {
    if let Some((path, reader)) = with_schema(&input, parquet)? {
        return table_file::read(path, reader, &mut |line| take(line, None));
    }
    let is_read = parquet.is_some();
    unpack::read(input, None, |unpacked| {
        let so_far = unpacked.progress().clone();
        let take = &mut |line: &Line<'_>| take(line, Some(so_far.bytes_read()));
        read_unpacked(unpacked, encoding, is_read, wanted, take)
    })
}

/// The names and types of the columns, if the file has a schema that says them.
pub(super) fn declared(
    input: &Input<'_>,
    parquet: Option<&dyn TableReader>,
) -> Result<Option<IndexMap<String, AttributeType>>, ModelError> {
    let found = with_schema(input, parquet)?;
    found.map(|(path, reader)| table_file::columns(path, reader)).transpose()
}

/// The path and the reader of a file of Parquet, which is not read from its beginning to its end.
fn with_schema<'a, 'b>(
    input: &Input<'a>,
    parquet: Option<&'b dyn TableReader>,
) -> Result<Option<(&'a Path, &'b dyn TableReader)>, ModelError> {
    let (&Input::File(path), Some(reader)) = (input, parquet) else { return Ok(None) };
    if !path.is_file() {
        return Ok(None);
    }
    let mut start = Vec::new();
    File::open(path)
        .and_then(|file| file.take(PARQUET.len() as u64).read_to_end(&mut start))
        .map_err(ModelError::io("read", path))?;
    Ok((start == PARQUET).then_some((path, reader)))
}

fn read_unpacked(
    unpacked: &mut Unpacked<'_>,
    encoding: Option<TextEncoding>,
    is_parquet_read: bool,
    wanted: Option<Wanted<'_>>,
    take: Take<'_>,
) -> Result<Read, ModelError> {
    let mut start = Vec::new();
    let more = unpacked.fill(&mut start, CHUNK_BYTES)?;
    if start.starts_with(PARQUET) {
        return Err(unpacked.progress().bad(match is_parquet_read {
            true => {
                "it is Parquet in a compressed file or a pipe; Parquet is compressed within, so \
                 name a file of it"
            }
            false => {
                "it is a Parquet file, which this build does not read; build with \
                 `cargo build --release --features parquet`, or convert it: \
                 duckdb -c \"COPY (FROM 'FILE') TO 'attributes.jsonl'\""
            }
        }));
    }
    let (start, more) = begin(unpacked, start, more, encoding)?;
    match start.trim_ascii_start().first() {
        Some(b'{') => json_lines::read(unpacked, start, more, wanted, take),
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
