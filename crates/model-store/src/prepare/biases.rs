//! A file of biases, one for each row of the vectors file.

use std::path::{Path, PathBuf};

use super::Input;
use super::array::{self, Array};
use super::encoding::TextEncoding;
use super::formats::{MAX_RECORD_BYTES, Parsed, parse_component};
use super::lines::for_each_line;
use super::unpack::{self, Unpacked, file_name};
use crate::{ModelError, npy};

/// Maximum length of a line; a longer one is no number.
const MAX_LINE_BYTES: usize = 4096;

/// Biases in the order of the vectors file, also of rows that are skipped.
#[derive(Debug)]
pub(super) struct Biases {
    path: PathBuf,
    /// What messages call a number's place, and the place of the first.
    unit: (&'static str, usize),
    biases: Vec<f32>,
    /// A warning if the end of the file was left out.
    warning: Option<String>,
}

impl Biases {
    /// Reads a NumPy file, or text in an encoding, compressed or not.
    pub(super) fn read(path: &Path, encoding: Option<TextEncoding>) -> Result<Self, ModelError> {
        unpack::read(Input::File(path), None, |unpacked| {
            let mut head = Vec::new();
            let more = unpacked.fill(&mut head, MAX_RECORD_BYTES)?;
            let (unit, (biases, warning)) = if npy::Numbers::begins(&head) {
                (("row", 0), read_npy(unpacked, head, more)?)
            } else {
                (("line", 1), read_text(unpacked, head, more, encoding)?)
            };
            Ok(Self { path: path.to_owned(), unit, biases, warning })
        })
    }

    /// The file's name, for messages.
    pub(super) fn name(&self) -> String {
        file_name(&self.path)
    }

    /// The warning, with the file's name.
    pub(super) fn warning(&self) -> Option<String> {
        let warning = self.warning.as_ref()?;
        Some(format!("{}: {warning}", self.name()))
    }

    /// The biases of the good rows of a chunk, behind `before` records. `row_name` names a row of
    /// the vectors file.
    pub(super) fn of_chunk(
        &self,
        before: u64,
        parsed: &Parsed,
        source: &Path,
        row_name: impl Fn(u64) -> String,
    ) -> Result<Vec<f32>, ModelError> {
        let count = self.biases.len();
        let end = before + parsed.records;
        let Some(all) = self.biases.get(before as usize..end as usize) else {
            let (source, row) = (file_name(source), row_name(count as u64));
            return Err(self.wrong_count(&source, &format!("{source} goes on: {row} has none")));
        };
        let mut bad = parsed.bad.iter().peekable();
        let is_good = |&(record, _): &(u32, _)| bad.next_if(|&&bad| bad == record).is_none();
        Ok((0..).zip(all).filter(is_good).map(|(_, &bias)| bias).collect())
    }

    /// Checks that there are no more biases than records.
    pub(super) fn check_end(&self, records: u64, source: &Path) -> Result<(), ModelError> {
        if self.biases.len() as u64 == records {
            return Ok(());
        }
        let (source, (unit, first)) = (file_name(source), self.unit);
        let left = first as u64 + records;
        let reason = format!("{source} has only {records} rows: {unit} {left} belongs to none");
        Err(self.wrong_count(&source, &reason))
    }

    fn wrong_count(&self, source: &str, reason: &str) -> ModelError {
        let count = self.biases.len();
        let reason = format!(
            "it has {count} biases, but {reason}; give one bias for each row of {source}, in the same order, also \
             for rows that are skipped or repeated"
        );
        ModelError::BadInput { path: self.path.clone(), reason: reason.into() }
    }
}

/// Numbers, and what was left out at the end.
fn read_npy(
    unpacked: &mut Unpacked<'_>,
    bytes: Vec<u8>,
    more: bool,
) -> Result<(Vec<f32>, Option<String>), ModelError> {
    let so_far = unpacked.progress().clone();
    let Array { numbers: biases, warning, .. } = array::read_npy(unpacked, bytes, more, |shape| {
        let found = shape.len();
        if found == 1 {
            return Ok(());
        }
        Err(format!(
            "its array has {found} dimensions instead of 1 (one number for each row); save it with \
             numpy.save(path, array.ravel())"
        ))
    })?;
    match biases.iter().position(|bias| !bias.is_finite()) {
        None => Ok((biases, warning)),
        Some(row) => Err(so_far.bad(format!(
            "row {row}: the bias is not a finite float32: {}; every bias is a finite number",
            biases[row]
        ))),
    }
}

/// Numbers, and what was left out at the end.
fn read_text(
    unpacked: &mut Unpacked<'_>,
    head: Vec<u8>,
    more: bool,
    encoding: Option<TextEncoding>,
) -> Result<(Vec<f32>, Option<String>), ModelError> {
    let mut biases = Vec::new();
    let what = "a file of biases is .npy, or text with one finite number per line";
    let warning = for_each_line(unpacked, head, more, encoding, MAX_LINE_BYTES, what, |line| {
        let text = line.trim_ascii();
        if text.is_empty() {
            return Err("it is empty".into());
        }
        biases.push(parse_component(text).map_err(|reason| format!("the bias {reason}"))?);
        Ok(())
    })?;
    Ok((biases, warning))
}
