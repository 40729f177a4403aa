//! The weights of words in texts, where texts are sums of words: `weights.npy`, float64 `[rows]`.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::write_file;
use crate::ModelError;
use crate::format::Checksum;
use crate::mapped::Mapped;
use crate::npy::{Numbers, head};
use crate::number::Number;

pub(super) const WEIGHTS_FILE: &str = "weights.npy";

/// Weights by smooth inverse frequency: `a / (a + p)` (Arora, Liang and Ma 2017, "A Simple but
/// Tough-to-Beat Baseline for Sentence Embeddings").
const SIF: &str = "sif";

/// The weight of a word that is no row of the file: `p` is 0.
const UNSEEN: f64 = 1.0;

/// The part of `encoder.json` that is about weights.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Described {
    kind: String,
    rows: u64,
    bytes: u64,
    checksum: Checksum,
}

/// The weights of the rows that a model had when it was prepared, mapped.
#[derive(Debug)]
pub struct TextWeights {
    path: PathBuf,
    file: Mapped,
    /// Where the numbers begin.
    start: usize,
    checksum: Checksum,
}

impl TextWeights {
    /// The name of the formula.
    pub fn kind(&self) -> &'static str {
        SIF
    }

    /// The weight of a row by its number, which a fold keeps. Rows that were put later, also in the
    /// place of others, have the weight of words that never occur: 1.
    pub fn of(&self, number: u32) -> f64 {
        self.all().get(number as usize).copied().unwrap_or(UNSEEN)
    }

    /// The weights, `[rows]`.
    pub fn all(&self) -> &[f64] {
        bytemuck::cast_slice(&self.file[self.start..])
    }

    pub(super) fn open(
        path: &Path,
        found: Described,
        open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<Self, ModelError> {
        let Described { kind, rows, bytes, checksum } = found;
        if kind != SIF {
            let reason = format!(
                "it has weights of the kind `{kind}`, which this program does not know; use a newer \
                 kindred"
            );
            return Err(ModelError::damaged(path, reason));
        }
        let path = path.with_file_name(WEIGHTS_FILE);
        let file = open(&path)?.of_size(bytes, &path)?;
        let numbers = Numbers::read(&file).map_err(|reason| ModelError::damaged(&path, reason))?;
        let is_expected = numbers.number == Number::F64
            && numbers.shape == [rows]
            && numbers.bytes(&file).is_ok()
            && numbers.start.is_multiple_of(size_of::<f64>() as u64);
        if !is_expected {
            let reason = format!("it does not have {rows} aligned float64 numbers");
            return Err(ModelError::damaged(&path, reason));
        }
        Ok(Self { path, start: numbers.start as usize, file, checksum })
    }

    pub(super) fn verify_while(&self, goes_on: &dyn Fn() -> bool) -> Result<(), ModelError> {
        super::verify_file(&self.path, &self.file, self.checksum, goes_on)?;
        match self.all().iter().position(|weight| !(*weight > 0.0 && *weight <= UNSEEN)) {
            None => Ok(()),
            Some(row) => {
                let reason = format!("the weight of row {row} is not above 0 and at most 1");
                Err(ModelError::damaged(&self.path, reason))
            }
        }
    }
}

/// Writes the weights of rows. Returns their part of the description.
pub(super) fn write(
    weights: &[f64],
    folder: &Path,
    goes_on: &mut dyn FnMut() -> bool,
) -> Result<Described, ModelError> {
    let rows = weights.len() as u64;
    let numbers: Vec<u8> = weights.iter().flat_map(|weight| weight.to_le_bytes()).collect();
    let pieces = [head("'<f8'", &[rows]).into(), numbers.into()];
    let (bytes, checksum) = write_file(&folder.join(WEIGHTS_FILE), pieces, goes_on)?;
    Ok(Described { kind: SIF.to_owned(), rows, bytes, checksum })
}
