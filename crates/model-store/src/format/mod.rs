//! The contents of a model folder, each in a format that other tools open:
//!
//! - `vectors.safetensors`: the tensors `vectors` float32 `[rows, dim]` in the order of the vectors
//!   file, `norms` float64 `[rows]` and `word_offsets` uint64 `[rows + 1]`, with checksums and
//!   provenance in its metadata ([`Header`]); a model under the dot product may have `biases`
//!   float32 `[rows]`;
//! - `words.txt`: one word per line, in row order, UTF-8; word `i` starts at byte `word_offsets[i]`
//!   and ends before the line feed at byte `word_offsets[i + 1] − 1`;
//! - `words.fst`: a map from word to row, as the `fst` crate writes it;
//! - `attributes`: a folder with the attributes of the rows, if they have any;
//! - `encoder`: a folder with the vectors of n-grams, if words that are no rows have vectors.
//!
//! A model folder is written in one step and never changes afterwards, but for one digit: the first
//! change of a row raises the format version by 2. A fold of changes puts a new base into a folder
//! in it, and a file in the place of `vectors.safetensors` that leads there.

mod checksum;
mod folded;
mod header;
mod layout;
mod provenance;
mod raise;
mod table_id;

pub use checksum::Checksum;
pub use folded::{
    Folded, NEW_POINTER_FILE, Pointer, REQUESTS_FILE, UNFINISHED, base_name, is_base_or_unfinished,
};
pub use header::{Checksums, Header};
pub use layout::Layout;
pub use provenance::Provenance;
pub use raise::{raise_format, raised};
pub use table_id::TableId;

use contract::Metric;

/// Numbers and metadata of the model.
pub const VECTORS_FILE: &str = "vectors.safetensors";
/// Row → word.
pub const WORDS_FILE: &str = "words.txt";
/// Word → row.
pub const INDEX_FILE: &str = "words.fst";
/// The files of a model folder beside its attributes.
pub(crate) const MODEL_FILES: [&str; 3] = [VECTORS_FILE, WORDS_FILE, INDEX_FILE];
/// The folder of the attributes, inside the model's.
pub const ATTRIBUTES_FOLDER: &str = "attributes";
/// The folder of the changes, inside the model's.
pub const CHANGES_FOLDER: &str = "changes";
/// The description of a head, in a folder of its own: a folder that has it is no model's.
pub(crate) const HEAD_FILE: &str = "head.json";

/// The version of the format of models under a metric. There is a new one whenever an older kindred
/// could misread the folder: one that knows only cosines would give wrong answers from a model
/// under the dot product.
pub const fn format_version(metric: Metric) -> u32 {
    // Those with changes have 3 and 4, bases of folds 5 and 6, and what leads to them 7.
    match metric {
        Metric::Cosine => 1,
        Metric::Dot => 2,
    }
}

/// The offset of the first tensor in `vectors.safetensors`. The header is padded up to here with
/// spaces, so that the table is aligned to a page and the header can be written after the data.
pub const DATA_START: usize = 16 * 1024;

#[cfg(target_endian = "big")]
compile_error!("model folders are little-endian and mapped as they are");
