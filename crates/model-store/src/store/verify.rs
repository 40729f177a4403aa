//! Verifies a whole model.

use bytemuck::cast_slice;

use super::ModelStore;
use crate::ModelError;
use crate::format::{Checksum, INDEX_FILE, VECTORS_FILE, WORDS_FILE};
use contract::{Row, score};

/// Rows that are checked before somebody is asked whether to go on.
const ASK_EVERY_ROWS: u32 = 4096;

impl ModelStore {
    /// Reads everything and verifies every checksum, that components and biases are finite, that
    /// norms follow the contract, that both word maps agree, and the attributes. Calls `progress`
    /// with the name of each step.
    ///
    /// # Errors
    /// Names the first damaged file.
    pub fn verify(&self, progress: impl FnMut(&'static str)) -> Result<(), ModelError> {
        self.verify_while(progress, || true)
    }

    /// As [`verify`](Self::verify), but stops soon after `goes_on` has said no.
    ///
    /// # Errors
    /// As [`verify`](Self::verify); [`ModelError::Cancelled`] if it stopped.
    pub fn verify_while(
        &self,
        mut progress: impl FnMut(&'static str),
        goes_on: impl Fn() -> bool,
    ) -> Result<(), ModelError> {
        self.verify_all(&mut progress, &goes_on)
    }

    /// Compiled in this crate, which tests optimise, and once.
    fn verify_all(
        &self,
        progress: &mut dyn FnMut(&'static str),
        goes_on: &dyn Fn() -> bool,
    ) -> Result<(), ModelError> {
        let (layout, sums) = (self.header.layout(), &self.header.checksums);
        let biases = sums.biases.map(|sum| ("biases", VECTORS_FILE, self.data(layout.biases), sum));
        let numbers = self.numbers_bytes().map(|(bytes, sum)| ("rows", VECTORS_FILE, bytes, sum));
        for (step, file, bytes, expected) in [
            ("vectors", VECTORS_FILE, cast_slice(self.components()), sums.vectors),
            ("norms", VECTORS_FILE, self.data(layout.norms), sums.norms),
            ("word offsets", VECTORS_FILE, self.data(layout.word_offsets), sums.word_offsets),
            ("words", WORDS_FILE, self.words.text(), sums.words),
            ("word map", INDEX_FILE, self.words.index_bytes(), sums.index),
        ]
        .into_iter()
        .chain(biases)
        .chain(numbers)
        {
            progress(step);
            let found = Checksum::of_while(bytes, goes_on).ok_or(ModelError::Cancelled)?;
            if found != expected {
                let reason = format!("the checksum of its {step} is {found}, not {expected}");
                return Err(ModelError::damaged(&self.file(file), reason));
            }
        }
        if let Some(attributes) = &self.attributes {
            progress("attributes");
            attributes.verify_while(goes_on)?;
        }
        if let Some(encoder) = &self.encoder {
            progress("encoder");
            encoder.verify_while(goes_on)?;
        }
        progress("contents");
        self.verify_contents(goes_on)
    }

    fn verify_contents(&self, goes_on: &dyn Fn() -> bool) -> Result<(), ModelError> {
        self.check_biases()?;
        let (table, vectors_path) = (self.table(), self.file(VECTORS_FILE));
        self.check_alignment()?;
        for row in (0..self.rows() as u32).map(Row) {
            if row.0.is_multiple_of(ASK_EVERY_ROWS) && !goes_on() {
                return Err(ModelError::Cancelled);
            }
            let components = table.row(row);
            if components.iter().any(|c| !c.is_finite()) {
                let reason = format!("row {row} has a component that is not finite");
                return Err(ModelError::damaged(&vectors_path, reason));
            }
            if score::norm(components).to_bits() != table.norm(row).to_bits() {
                let reason = format!("the norm of row {row} is not the norm of its components");
                return Err(ModelError::damaged(&vectors_path, reason));
            }
            if self.words.row(self.words.word(row)) != Some(row) {
                let reason = format!("the word of row {row} leads to another row");
                return Err(ModelError::damaged(&self.file(INDEX_FILE), reason));
            }
        }
        Ok(())
    }

    /// Checks that what is between the tensors, which has no checksum, is zero.
    ///
    /// # Errors
    /// If it is not.
    pub fn check_alignment(&self) -> Result<(), ModelError> {
        match self.data(self.header.layout().alignment).iter().all(|&byte| byte == 0) {
            true => Ok(()),
            false => {
                let reason = "its tensor `alignment` is not zero";
                Err(ModelError::damaged(&self.file(VECTORS_FILE), reason))
            }
        }
    }

    /// Cheap beside the rest: a row has one bias.
    pub(super) fn check_biases(&self) -> Result<(), ModelError> {
        let biases = self.biases().unwrap_or_default();
        match biases.iter().position(|bias| !bias.is_finite()) {
            None => Ok(()),
            Some(row) => {
                let reason = format!("the bias of row {row} is not finite");
                Err(ModelError::damaged(&self.file(VECTORS_FILE), reason))
            }
        }
    }
}
