//! The words of a fastText file, where they lie in it.

use std::hash::BuildHasher;

use hashbrown::{DefaultHashBuilder, HashTable};
use model_store::Mapped;

use super::cursor::Cursor;
use crate::EncoderError;

/// The bytes behind a word: a 0, the number of its occurrences, and whether it is a label.
const BEHIND_WORD: u64 = 1 + 8 + 1;

/// The words: where each begins in the file, and the row of each.
pub(super) struct Dictionary {
    /// Where each word begins. It ends before the next 0.
    starts: Vec<u64>,
    rows: HashTable<u32>,
    hasher: DefaultHashBuilder,
}

impl Dictionary {
    /// Reads the numbers of entries, and all of these.
    pub(super) fn read(cursor: &mut Cursor<'_>, file: &Mapped) -> Result<Self, EncoderError> {
        let at = cursor.at();
        let size = cursor.count("the number of entries")?;
        let words = cursor.count("the number of words")?;
        let labels = cursor.count("the number of labels")?;
        if u64::from(words) + u64::from(labels) != u64::from(size) {
            let reason = format!("{size} entries are not {words} words and {labels} labels");
            return Err(cursor.damaged(at, reason));
        }
        cursor.i64("the number of tokens")?;
        let at = cursor.at();
        let pruned = cursor.i64("the number of n-grams that are left")?;
        let least = u64::from(size) * BEHIND_WORD;
        if least > cursor.left() as u64 {
            let reason = format!(
                "{size} entries need at least {least} bytes, and the file ends after {}",
                cursor.left()
            );
            return Err(cursor.damaged(cursor.at(), reason));
        }
        let mut dictionary = Self {
            starts: Vec::with_capacity(words as usize),
            rows: HashTable::with_capacity(words as usize),
            hasher: DefaultHashBuilder::default(),
        };
        for entry in 0..size {
            let start = cursor.at();
            let word = cursor.until_zero("an entry")?;
            cursor.i64("how often an entry occurred")?;
            let at = cursor.at();
            let kind = cursor.i8("the kind of an entry")?;
            // fastText writes the words first: the row of a word is its place among the entries.
            let expected = i8::from(entry >= words);
            if kind != expected {
                let reason = format!("entry {entry} has the kind {kind} instead of {expected}");
                return Err(cursor.damaged(at, reason));
            }
            if entry < words {
                dictionary.insert(file, start as u64, word);
            }
        }
        if pruned >= 0 {
            return Err(
                cursor.damaged(at, "n-grams were pruned, which is done to quantised models alone")
            );
        }
        Ok(dictionary)
    }

    /// Adds a word behind the others. Of two that are equal, the first is found.
    fn insert(&mut self, file: &Mapped, start: u64, word: &[u8]) {
        let row = self.starts.len() as u32;
        self.starts.push(start);
        let Self { starts, rows, hasher } = self;
        let hash = hasher.hash_one(word);
        if rows.find(hash, |row| word_at(file, starts[*row as usize]) == word).is_none() {
            let of = |row: &u32| hasher.hash_one(word_at(file, starts[*row as usize]));
            rows.insert_unique(hash, row, of);
        }
    }

    pub(super) fn words(&self) -> u32 {
        self.starts.len() as u32
    }

    /// Where the word of a row begins in the file.
    pub(super) fn byte(&self, row: u32) -> u64 {
        self.starts[row as usize]
    }

    /// The word of a row.
    pub(super) fn word<'a>(&self, file: &'a Mapped, row: u32) -> &'a [u8] {
        word_at(file, self.starts[row as usize])
    }

    /// The number of occurrences of a row's word in the text that the model was trained on.
    pub(super) fn count(&self, file: &Mapped, row: u32) -> i64 {
        let start = self.starts[row as usize] as usize;
        let end = start + word_at(file, start as u64).len() + 1;
        i64::from_le_bytes(file[end..end + 8].try_into().expect("eight bytes"))
    }

    /// The row of a word.
    pub(super) fn find(&self, file: &Mapped, word: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(word);
        self.rows.find(hash, |row| self.word(file, *row) == word).copied()
    }
}

/// The word that begins at a byte.
fn word_at(file: &Mapped, start: u64) -> &[u8] {
    let rest = &file[start as usize..];
    &rest[..memchr::memchr(0, rest).expect("each word was found to end")]
}
