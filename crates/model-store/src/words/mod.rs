//! Row → word and word → row.

mod files;
mod prefix;
mod suggest;
mod table;

use std::ops::Range;
use std::path::Path;
use std::sync::OnceLock;

use bytemuck::cast_slice;

pub(crate) use files::{index_of, text_of};
use table::WordTable;

pub use suggest::{MAX_SUGGESTED_WORD_CHARS, MAX_SUGGESTIONS, mistaken_for};

use crate::ModelError;
use crate::error::because;
use crate::format::{INDEX_FILE, VECTORS_FILE, WORDS_FILE};
use crate::mapped::Mapped;
use contract::Row;

/// The words of a model: row → word by stored offsets, word → row by an `fst` map. Words are
/// compared by their exact bytes.
///
/// ```
/// use contract::Row;
/// use model_store::ModelStore;
///
/// let words = ["from", "frog", "Frog", "frogs"].map(|word| (word, &[1.0][..]));
/// let model = ModelStore::from_rows("tiny", 1, words)?;
/// let words = model.words();
/// assert_eq!(words.row("frog"), Some(Row(1)));
/// assert_eq!(words.word(Row(3)), "frogs");
/// assert_eq!(words.with_prefix("fro", 2), [Row(0), Row(1)]);
/// assert_eq!(words.suggestions("FROG"), ["frog", "Frog"]);
/// # Ok::<(), model_store::ModelError>(())
/// ```
#[derive(Debug)]
pub struct Words {
    text: Mapped,
    index: fst::Map<Mapped>,
    /// The file with the offsets, and their position in it.
    offsets_file: Mapped,
    offsets: Range<usize>,
    /// For faster look-ups, once [`make_table`](Self::make_table) was called.
    table: OnceLock<WordTable>,
}

impl Words {
    pub(crate) fn new(
        folder: &Path,
        text: Mapped,
        index: Mapped,
        offsets_file: Mapped,
        offsets: Range<usize>,
    ) -> Result<Self, ModelError> {
        let words_path = folder.join(WORDS_FILE);
        let index_path = folder.join(INDEX_FILE);
        let whole = std::str::from_utf8(&text)
            .map_err(|e| because(format!("it is not UTF-8: {e}"), e))
            .map_err(|reason| ModelError::damaged(&words_path, reason))?;
        check_offsets(whole, cast_slice(&offsets_file[offsets.clone()]))
            .map_err(|reason| ModelError::damaged(&folder.join(VECTORS_FILE), reason))?;
        let index = fst::Map::new(index)
            .map_err(|e| because(format!("it is not a word map ({e})"), e))
            .map_err(|reason| ModelError::damaged(&index_path, reason))?;
        let words = Self { text, index, offsets_file, offsets, table: OnceLock::new() };
        if words.index.len() != words.len() {
            let reason = format!("it has {} words, not {}", words.index.len(), words.len());
            return Err(ModelError::damaged(&index_path, reason));
        }
        Ok(words)
    }

    /// Where each line begins, and the end of the last.
    pub fn offsets(&self) -> &[u64] {
        cast_slice(&self.offsets_file[self.offsets.clone()])
    }

    /// Number of words, one per row.
    pub fn len(&self) -> usize {
        self.offsets().len() - 1
    }

    /// Whether there are no words: so it is with a table that begins without rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The word of a row.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn word(&self, row: Row) -> &str {
        std::str::from_utf8(self.bytes(row)).expect("checked when the model was opened")
    }

    /// The word of a row as UTF-8 bytes, for copying.
    ///
    /// # Panics
    /// If there is no such row.
    pub fn bytes(&self, row: Row) -> &[u8] {
        let offsets = self.offsets();
        let (start, end) = (offsets[row.index()] as usize, offsets[row.index() + 1] as usize);
        &self.text[start..end - 1]
    }

    /// Whether a word contains a byte for which this is true. One sweep over all words is much
    /// faster than checking each word. Line feeds, which no word has, count as well.
    pub fn any_byte(&self, is_wanted: impl Fn(u8) -> bool) -> bool {
        /// Bytes checked together.
        const TOGETHER: usize = 64;
        // No early exit within them, so that the compiler can vectorise it.
        let any = |bytes: &[u8]| bytes.iter().fold(false, |any, &byte| any | is_wanted(byte));
        self.text.chunks(TOGETHER).any(any)
    }

    /// The row of a word, if the model has it.
    pub fn row(&self, word: &str) -> Option<Row> {
        if let Some(table) = self.table.get() {
            return table.row(self, word);
        }
        // A damaged map could name a row that does not exist.
        self.index.get(word).filter(|&row| row < self.len() as u64).map(|row| Row(row as u32))
    }

    /// Makes a hash table of all words, unless there is one: [`row`](Self::row) is then several
    /// times as fast. For those who look up many words. A million words take about a tenth of a
    /// second, and 5 to 10 MB.
    pub fn make_table(&self) {
        self.table.get_or_init(|| WordTable::new(self));
    }

    /// The whole of `words.txt`.
    pub fn text(&self) -> &[u8] {
        &self.text
    }

    /// The map from words to rows.
    pub fn index(&self) -> &fst::Map<Mapped> {
        &self.index
    }

    /// The whole of `words.fst`.
    pub fn index_bytes(&self) -> &[u8] {
        self.index.as_fst().as_bytes()
    }
}

/// Checks that consecutive offsets enclose one line each; every later look-up relies on it.
fn check_offsets(text: &str, offsets: &[u64]) -> Result<(), &'static str> {
    let bytes = text.as_bytes();
    if offsets.first() != Some(&0) || offsets.last() != Some(&(bytes.len() as u64)) {
        return Err("its word offsets do not cover words.txt");
    }
    let ascending = offsets.windows(2).all(|pair| pair[0] < pair[1]);
    // A line feed is never part of a longer UTF-8 sequence, so slices between them are UTF-8.
    if !ascending || offsets[1..].iter().any(|&end| bytes[end as usize - 1] != b'\n') {
        return Err("its word offsets are not the starts of the lines of words.txt");
    }
    Ok(())
}
