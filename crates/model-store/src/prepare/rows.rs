//! Passes parsed rows into the model, and says which were bad.

use std::io::{self, Seek, Write};

use super::beside::Beside;
use super::formats::{BadRecord, Parsed, RecordUnit, Watch};
use super::input::ReadSoFar;
use super::pipeline::{Position, byte_name};
use super::separator::Separator;
use super::word_signs::WordSigns;
use super::{ModelWriter, PrepareOptions, Progress};
use crate::ModelError;

/// Passes rows into the model.
pub(super) struct Rows<'a, W> {
    pub(super) writer: ModelWriter<W>,
    pub(super) beside: Beside,
    pub(super) options: &'a PrepareOptions,
    pub(super) so_far: ReadSoFar,
    /// The format, for the model's provenance.
    pub(super) description: String,
    pub(super) unit: RecordUnit,
    /// What the first column may be instead of what it is taken for.
    pub(super) column: Option<Watch>,
    /// Signs of all words, if the text contains its words.
    pub(super) signs: Option<WordSigns>,
    /// Warnings: a sentence for each.
    pub(super) warnings: Vec<String>,
    /// The number of rows, if only the first ones were wanted.
    pub(super) first_rows: Option<u64>,
    pub(super) first_bad: Option<(u64, String)>,
    pub(super) bad: u64,
    pub(super) repeated: u64,
    /// Records that are no rows of the model, ascending, if there are attributes.
    pub(super) dropped: Option<Vec<u64>>,
}

impl<'a, W: Write + Seek> Rows<'a, W> {
    /// No rows so far, of a file of this format.
    pub(super) fn new(
        writer: ModelWriter<W>,
        beside: Beside,
        options: &'a PrepareOptions,
        so_far: ReadSoFar,
        (description, unit): (String, RecordUnit),
    ) -> Self {
        Self {
            writer,
            options,
            so_far,
            description,
            unit,
            column: None,
            signs: None,
            warnings: beside.warnings().collect(),
            first_rows: None,
            first_bad: None,
            bad: 0,
            repeated: 0,
            dropped: beside.attributes.as_ref().map(|_| Vec::new()),
            beside,
        }
    }

    pub(super) fn progress(&self) -> Progress {
        Progress {
            bytes_read: self.so_far.bytes_read(),
            bytes_total: self.so_far.bytes_total,
            rows: self.writer.rows(),
        }
    }

    pub(super) fn take(
        &mut self,
        position: Position,
        parsed: Parsed,
        can_not_write: impl Fn(io::Error) -> ModelError,
    ) -> Result<(), ModelError> {
        if position.records == 0 && self.begins_big_endian(&parsed) {
            let reason = "its components are big-endian, but those of word2vec's binary format \
                          are little-endian; write them again as such, as numpy's astype('<f4') \
                          does";
            return Err(self.so_far.bad(reason));
        }
        if let Some(first) = &parsed.first_bad {
            if !self.options.skip_bad_rows || !first.may_be_skipped {
                return Err(self.bad_record(position, first));
            }
            self.bad += parsed.bad.len() as u64;
            let number = self.number(position.records + first.record);
            self.first_bad.get_or_insert((number, first.reason.clone()));
        }
        if position.records == 0 && self.begins_with_numbers_of_columns(&parsed) {
            let line = self.number(0);
            self.warnings.push(format!(
                "line {line} was read as a row, but its numbers count the columns; if it names \
                 them, remove it"
            ));
        }
        if position.records == 0 && self.begins_with_counts(&parsed) {
            self.warnings.push(
                "its rows are a word and one whole number, such as its count in GloVe's vocab.txt; \
                 if so, prepare the file of vectors instead (with --dim 1, this is not said)"
                    .into(),
            );
        }
        if let Some(column) = &mut self.column {
            column.see(&parsed);
        }
        if let Some(signs) = &mut self.signs {
            signs.see(&parsed);
        }
        let biases = self.beside.biases.as_ref().map_or(Ok(Vec::new()), |biases| {
            let row_name = |record| format!("{} {}", self.unit.name(), self.number(record));
            biases.of_chunk(position.records, &parsed, &self.so_far.path, row_name)
        })?;
        let repeated = self.writer.add_parsed(&parsed, &biases).map_err(can_not_write)?;
        self.repeated += repeated.len() as u64;
        if let Some(dropped) = &mut self.dropped {
            dropped.extend(dropped_of(&parsed, &repeated).map(|record| position.records + record));
        }
        Ok(())
    }

    /// Whether this is text that contains its words.
    fn is_text_with_words(&self) -> bool {
        self.signs.is_some()
    }

    /// Whether the components of the first line are 0, 1, 2 and so on, or 1, 2, 3, as the names of
    /// columns that pandas and R give.
    fn begins_with_numbers_of_columns(&self, parsed: &Parsed) -> bool {
        /// Fewer say nothing.
        const FEWEST: usize = 8;
        let is_good = parsed.first_bad.as_ref().is_none_or(|bad| bad.record != 0);
        let first = parsed.components.get(..self.writer.dim()).unwrap_or_default();
        let counts =
            |from: u32| first.iter().zip(from..).all(|(x, n)| f64::from(*x) == f64::from(n));
        self.is_text_with_words() && is_good && first.len() >= FEWEST && (counts(0) || counts(1))
    }

    /// Whether the first rows have one component, which is a whole number as counts are.
    fn begins_with_counts(&self, parsed: &Parsed) -> bool {
        /// Fewer say nothing.
        const FEWEST: usize = 3;
        let is_count = |x: &f32| *x >= 0.0 && x.fract() == 0.0;
        self.is_text_with_words()
            && self.writer.dim() == 1
            && self.options.dim.is_none()
            && parsed.components.len() >= FEWEST
            && parsed.components.iter().all(is_count)
    }

    /// Whether the components of the first rows, of word2vec's binary format, are of usual sizes
    /// only if their bytes are in the other order.
    fn begins_big_endian(&self, parsed: &Parsed) -> bool {
        /// Fewer say nothing.
        const FEWEST: usize = 32;
        let is_usual = |x: f32| x == 0.0 || (1e-12..1e6).contains(&x.abs());
        let turned = |x: f32| f32::from_bits(x.to_bits().swap_bytes());
        let components = &parsed.components;
        // The other formats without lines have their words elsewhere.
        self.unit == RecordUnit::Row
            && self.options.words.is_none()
            && components.len() >= FEWEST
            && components.iter().filter(|x| is_usual(**x)).count() < components.len() / 2
            && components.iter().all(|x| is_usual(turned(*x)))
    }

    /// The number in messages: lines count from 1, rows from 0.
    fn number(&self, record: u64) -> u64 {
        match self.unit {
            RecordUnit::Line { first } => first + record,
            RecordUnit::Row => record,
            RecordUnit::Record => record + 1,
        }
    }

    fn bad_record(&self, position: Position, bad: &BadRecord) -> ModelError {
        let path = self.so_far.path.clone();
        let number = self.number(position.records + bad.record);
        let mut reason = bad.reason.clone();
        match self.unit {
            RecordUnit::Line { .. } if !bad.may_be_skipped => {
                self.so_far.bad(format!("line {number}: {reason}"))
            }
            RecordUnit::Line { .. } => {
                if number == 1 {
                    let about = self.about_line_1(&reason);
                    reason += about;
                }
                ModelError::BadLine { path, line: number, reason }
            }
            RecordUnit::Record => self.so_far.bad(format!(
                "record {number}: {reason}; correct it, or add --skip-bad-rows to leave such records \
                 out"
            )),
            RecordUnit::Row => {
                let byte = byte_name(position.bytes + bad.byte as u64, &self.so_far);
                if bad.may_be_skipped {
                    ModelError::BadRow { path, row: number, byte, reason }
                } else {
                    self.so_far.bad(format!("row {number}, {byte}: {reason}"))
                }
            }
        }
    }

    /// Another explanation of a first line with this fault.
    pub(super) fn about_line_1(&self, reason: &str) -> &'static str {
        // Some numbers have a cure of their own.
        let is_no_number = reason.contains("not a number") && reason.ends_with('`');
        match (self.options.separator, self.options.dim) {
            _ if is_no_number && reason.contains('\r') => {
                "; if the lines end in carriage returns alone, convert them: tr '\\r' '\\n' < FILE"
            }
            (_, Some(_)) if reason.contains(" components instead of ") => {
                "; if all lines have as many, --dim is wrong"
            }
            (Separator::Space, None) if is_no_number => {
                "; if the first word contains spaces, give --dim; if line 1 names the columns, \
                 remove it: tail -n +2 FILE"
            }
            (Separator::Space, _) if !is_no_number => "",
            _ if is_no_number || reason == "the word is empty" => {
                "; if line 1 names the columns, remove it: tail -n +2 FILE"
            }
            _ => "",
        }
    }
}

/// The records of a chunk that are no rows of the model: bad ones, and those with repeated words,
/// by their places among the good ones.
fn dropped_of(parsed: &Parsed, repeated: &[u32]) -> impl Iterator<Item = u64> {
    let (mut bad, mut repeated) = (parsed.bad.iter().peekable(), repeated.iter().peekable());
    let mut good = 0;
    (0..parsed.records).filter(move |&record| {
        if bad.next_if(|&&bad| u64::from(bad) == record).is_some() {
            return true;
        }
        let is_repeated = repeated.next_if(|&&row| row == good).is_some();
        good += 1;
        is_repeated
    })
}
