//! A graph as .npz: a zip of stored .npy arrays.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;

use model_store::npy::head;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipWriter};

use super::Identity;
use super::live_rows::LiveRows;
use super::tables::{Table, Tables};

/// Arrays begin at multiples of this, in bytes, as NumPy aligns them in its own files.
const ALIGNMENT: u16 = 64;

/// Writes what both tables have.
pub(super) fn write(to: &Path, tables: &Tables, live: &LiveRows<'_>) -> io::Result<()> {
    // 1980-01-01: the same graph is the same file, whenever it was made. Every entry has its zip64
    // form, so that there is one form to test for all sizes.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::DEFAULT)
        .large_file(true)
        .with_alignment(ALIGNMENT);
    let identity = &tables.identity;
    let Identity { rows, k, model, version, position, metric, .. } = identity;
    let mut zip = ZipWriter::new(File::create(to)?);
    let mut bytes = Vec::new();
    for (name, kind, table) in
        [("indices.npy", "'<i8'", Table::Indices), ("scores.npy", "'<f8'", Table::Scores)]
    {
        zip.start_file(name, options)?;
        zip.write_all(&head(kind, &[*rows, *k]))?;
        for range in 0..identity.ranges() {
            tables.read(table, &identity.range(range), &mut bytes)?;
            zip.write_all(&bytes)?;
        }
    }
    for (name, array) in [
        ("k.npy", [head("'<i8'", &[]), k.to_le_bytes().to_vec()].concat()),
        ("model.npy", text(model)),
        ("version.npy", text(version)),
        ("metric.npy", text(metric)),
    ] {
        zip.start_file(name, options)?;
        zip.write_all(&array)?;
    }
    if let Some(position) = position {
        zip.start_file("position.npy", options)?;
        zip.write_all(&[head("'<i8'", &[]), position.to_le_bytes().to_vec()].concat())?;
        zip.start_file("numbers.npy", options)?;
        zip.write_all(&head("'<i8'", &[*rows]))?;
        let mut out = BufWriter::new(&mut zip);
        for place in 0..*rows {
            out.write_all(&i64::from(live.number(place)).to_le_bytes())?;
        }
        out.flush()?;
        drop(out);
    }
    zip.finish()?.sync_all()
}

/// A text as an array without dimensions: UTF-32, as NumPy keeps text.
fn text(text: &str) -> Vec<u8> {
    // NumPy has no text of length 0; zeros at the end are no part of a text.
    let padded = text.chars().map(u32::from).chain(text.is_empty().then_some(0));
    let characters: Vec<u8> = padded.flat_map(u32::to_le_bytes).collect();
    [head(&format!("'<U{}'", characters.len() / 4), &[]), characters].concat()
}
