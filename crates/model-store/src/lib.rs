//! Word vectors: from a vectors file to a model in memory.
//!
//! The data's path through this crate:
//!
//! 1. [`prepare`] reads a vectors file and writes a model folder, complete or not at all;
//! 2. [`format`](mod@format) defines that folder, byte by byte;
//! 3. [`ModelStore`] maps the folder into memory and provides its [`Table`] and [`Words`];
//! 4. [`attributes`] has what the rows are, beside the vectors;
//! 5. [`export`] writes it in formats that other programs read;
//! 6. [`synth`] generates models of any size without a file;
//! 7. [`head`] is for folders of heads: classifiers over a model's rows;
//! 8. [`npy`] reads and writes the heads of NumPy files;
//! 9. [`delimited`] cuts CSV and TSV into rows.
//!
//! [`Table`]: contract::Table

pub mod attributes;
pub mod delimited;
mod encoder;
mod error;
pub mod export;
pub mod format;
pub mod head;
mod lfs;
mod mapped;
mod moves;
pub mod npy;
mod number;
pub mod prepare;
mod store;
pub mod synth;
mod whole;
mod words;

pub use encoder::{
    EncoderFiles, NO_ENCODER, NewEncoder, NewFiles, NewNgrams, NgramLengths, NgramVectors, Ngrams,
    TextWeights,
};
pub use error::{ModelError, cut};
pub use mapped::{Mapped, MappedMut};
pub use moves::{replace_file, sync_folder, sync_parent};
pub use number::{Number, from_float16};
pub use store::{ArrayError, ArrayRows, ModelStore, SharedComponents};
pub use words::{MAX_SUGGESTED_WORD_CHARS, MAX_SUGGESTIONS, Words, mistaken_for};
