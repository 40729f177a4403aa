//! The rows of a static model, where they lie in its safetensors file.

use std::ops::Range;
use std::path::Path;

use model_store::{Mapped, Number, from_float16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::EncoderError;

/// What the tensor of the rows is named, by Model2Vec and by sentence-transformers.
const ROWS: [&str; 3] = ["embeddings", "embedding.weight", "0"];

/// The rows of the tokens.
#[derive(Debug)]
pub(super) struct Rows {
    file: Mapped,
    /// Where the rows are, in bytes of the file.
    place: Range<usize>,
    kind: Kind,
    dim: usize,
    /// The row and the weight of each token. A small vocabulary of rows may be shared by many.
    tokens: Vec<(u32, f32)>,
}

/// The type of stored components.
#[derive(Debug, Clone, Copy)]
enum Kind {
    F16,
    F32,
    /// Plain integers: the file has no scale, so they are known up to a factor.
    I8,
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Self::I8 => 1,
            Self::F16 => 2,
            Self::F32 => 4,
        }
    }
}

impl Rows {
    /// Finds the row of each token in a file. The path names it in errors.
    pub(super) fn of(path: &Path, file: Mapped, tokens: &[String]) -> Result<Self, EncoderError> {
        let faulty = |reason: String| EncoderError::Faulty { path: path.to_owned(), reason };
        let tensors = SafeTensors::deserialize(&file).map_err(|error| faulty(error.to_string()))?;
        let optional = |name: &str| tensors.tensor(name).ok();
        let Some(rows) = ROWS.into_iter().find_map(optional) else {
            let names = ROWS.join("`, `");
            return Err(faulty(format!("it has no tensor named `{names}`")));
        };
        let &[count, dim @ 1..=usize::MAX] = rows.shape() else {
            return Err(faulty(format!("its rows have the shape {:?}", rows.shape())));
        };
        let kind = match rows.dtype() {
            Dtype::F16 => Kind::F16,
            Dtype::F32 => Kind::F32,
            Dtype::I8 => Kind::I8,
            other => {
                let reason = format!(
                    "its rows are {other:?}; F16, F32 and I8 are read: save them as one of these"
                );
                return Err(EncoderError::Unsupported { path: path.to_owned(), reason });
            }
        };
        let mapping = match optional("mapping") {
            Some(mapping) => {
                integers(&mapping).map_err(|error| faulty(format!("mapping: {error}")))?
            }
            None => (0..count as u64).collect(),
        };
        let weights = match optional("weights") {
            Some(weights) => {
                floats(&weights).map_err(|error| faulty(format!("weights: {error}")))?
            }
            None => vec![1.0; mapping.len()],
        };
        // Rows behind those of the tokens are padding.
        for (name, length) in [("rows", mapping.len()), ("weights", weights.len())] {
            if length < tokens.len() {
                let reason = format!("{length} {name} for {} tokens", tokens.len());
                return Err(faulty(reason));
            }
        }
        let of_token = |(row, weight): (&u64, &f32)| match u32::try_from(*row) {
            Ok(row) if u64::from(row) < count as u64 => Ok((row, *weight)),
            _ => Err(faulty(format!("mapping: row {row} of {count}"))),
        };
        let found = mapping.iter().zip(&weights).take(tokens.len()).map(of_token);
        let tokens = found.collect::<Result<_, _>>()?;
        let start = rows.data().as_ptr() as usize - file.as_ptr() as usize;
        let place = start..start + rows.data().len();
        Ok(Self { place, kind, dim, tokens, file })
    }

    /// All bytes of the file.
    pub(super) fn file(&self) -> &[u8] {
        &self.file
    }

    pub(super) fn dim(&self) -> usize {
        self.dim
    }

    /// Calls for each component of a token's row, times its weight, with its place.
    pub(super) fn for_each(&self, token: u32, mut each: impl FnMut(usize, f64)) {
        let (row, weight) = self.tokens[token as usize];
        let (rows, bytes) = (&self.file[self.place.clone()], self.dim * self.kind.bytes());
        let row = &rows[row as usize * bytes..][..bytes];
        let weight = f64::from(weight);
        let mut each = |at: usize, component: f32| each(at, f64::from(component) * weight);
        match self.kind {
            Kind::F16 => {
                for (at, bytes) in row.as_chunks().0.iter().enumerate() {
                    each(at, from_float16(u16::from_le_bytes(*bytes)));
                }
            }
            Kind::F32 => {
                for (at, bytes) in row.as_chunks().0.iter().enumerate() {
                    each(at, f32::from_le_bytes(*bytes));
                }
            }
            Kind::I8 => {
                for (at, byte) in row.iter().enumerate() {
                    each(at, f32::from(byte.cast_signed()));
                }
            }
        }
    }
}

/// The numbers of a list of rows.
fn integers(tensor: &TensorView<'_>) -> Result<Vec<u64>, String> {
    let [_] = tensor.shape() else { return Err(format!("its shape is {:?}", tensor.shape())) };
    let data = tensor.data();
    let of = |number: i64| u64::try_from(number).map_err(|_| format!("a row is {number}"));
    match tensor.dtype() {
        Dtype::I32 => {
            data.as_chunks().0.iter().map(|bytes| of(i32::from_le_bytes(*bytes).into())).collect()
        }
        Dtype::I64 => {
            data.as_chunks().0.iter().map(|bytes| of(i64::from_le_bytes(*bytes))).collect()
        }
        other => Err(format!("it is {other:?} instead of I32 or I64")),
    }
}

/// The numbers of a list of weights.
fn floats(tensor: &TensorView<'_>) -> Result<Vec<f32>, String> {
    let [_] = tensor.shape() else { return Err(format!("its shape is {:?}", tensor.shape())) };
    let Some(number) = Number::of(tensor.dtype()) else {
        return Err(format!("it is {:?} and no floating-point number", tensor.dtype()));
    };
    let mut floats = Vec::new();
    number.read(tensor.data(), &mut floats);
    Ok(floats)
}
