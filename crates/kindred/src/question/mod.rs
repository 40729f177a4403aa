//! From what people write to checked queries, and back to words.
//!
//! The path of a question: a [`Target`] and [`Options`](crate::Options) → `look_up` and `text`
//! (words to rows), [`filters`] (which rows) → `formula` (how rows are scored) →
//! [`prepare`] (a checked query) → `search` (through the queue) → `explain`.

mod compare;
mod distinct;
mod encode;
mod excluded;
mod explain;
mod formula;
mod included;
mod look_up;
mod notes;
mod pick;
mod prepare;
mod rank;
mod target;
mod text;
mod with_added;

pub use compare::{
    MAX_COMPARED_WORDS, MAX_SET_WORDS, MIN_COMPARED_WORDS, OddOneOut, Side, Similarity,
    odd_one_out, similarity,
};
pub use encode::{EncodeOptions, EncodedText, MAX_ENCODED_WORDS, encode};
pub use explain::{Explanation, Part, Placed, Term, WordSimilarity, placed};
pub use formula::{Formula, MAX_FACTORS};
pub use included::Included;
pub use look_up::unknown_words;
pub use notes::Notes;
pub(crate) use pick::Next;
pub use pick::Pick;
pub use prepare::{Checked, Common, Prepared, meeting, prepare};
pub use rank::{MAX_RANKED, prepare_rank};
pub use target::{Target, WordWithWeight};
pub use text::{MAX_TEXT_WORDS, TEXT_MUST_BE};
pub use with_added::vector_of_unknown;
