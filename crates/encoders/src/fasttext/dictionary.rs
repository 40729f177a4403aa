//! The words and labels of a fastText file, where they lie in it, and which n-grams are left.

use std::hash::BuildHasher;
use std::ops::Range;

use hashbrown::{DefaultHashBuilder, HashMap, HashTable};
use model_store::Mapped;

use super::cursor::Cursor;
use crate::EncoderError;

/// The bytes behind a word: a 0, the number of its occurrences, and whether it is a label.
const BEHIND_WORD: u64 = 1 + 8 + 1;

/// The bytes of an n-gram that is left: its old row and its new one.
const PAIR: u64 = 4 + 4;

/// The entries: where each begins in the file, and the place of each. The words come first, and
/// the place of a word is its row; labels, which only classifiers keep, follow.
pub(super) struct Dictionary {
    words: u32,
    /// Where each entry begins. It ends before the next 0.
    starts: Vec<u64>,
    places: HashTable<u32>,
    hasher: DefaultHashBuilder,
    /// The rows of n-grams behind those of the words, by the rows that they had before the model
    /// was pruned; `None` if it was not.
    left: Option<HashMap<u32, u32>>,
}

impl Dictionary {
    /// Reads the numbers of entries, all of these, and which n-grams are left.
    pub(super) fn read(
        cursor: &mut Cursor<'_>,
        file: &Mapped,
        is_classifier: bool,
    ) -> Result<Self, EncoderError> {
        let at = cursor.at();
        let size = cursor.count("the number of entries")?;
        let words = cursor.count("the number of words")?;
        let labels = cursor.count("the number of labels")?;
        if u64::from(words) + u64::from(labels) != u64::from(size) {
            let reason = format!("{size} entries are not {words} words and {labels} labels");
            return Err(cursor.damaged(at, reason));
        }
        cursor.i64("the number of tokens")?;
        let pruned_at = cursor.at();
        let pruned = cursor.i64("the number of n-grams that are left")?;
        let least = u64::from(size) * BEHIND_WORD;
        if least > cursor.left() as u64 {
            let reason = format!(
                "{size} entries need at least {least} bytes, and the file ends after {}",
                cursor.left()
            );
            return Err(cursor.damaged(cursor.at(), reason));
        }
        let kept = if is_classifier { size } else { words };
        let mut dictionary = Self {
            words,
            starts: Vec::with_capacity(kept as usize),
            places: HashTable::with_capacity(kept as usize),
            hasher: DefaultHashBuilder::default(),
            left: None,
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
            if entry < kept {
                dictionary.insert(file, start as u64, word);
            }
        }
        match u64::try_from(pruned) {
            // Nothing was pruned.
            Err(_) => {}
            Ok(_) if !is_classifier => {
                let reason = "n-grams were pruned, which is done to quantised models alone";
                return Err(cursor.damaged(pruned_at, reason));
            }
            Ok(pairs) => dictionary.left = Some(pairs_of(cursor, pairs)?),
        }
        Ok(dictionary)
    }

    /// Adds an entry behind the others. Of two that are equal, the first is found.
    fn insert(&mut self, file: &Mapped, start: u64, word: &[u8]) {
        let place = self.starts.len() as u32;
        self.starts.push(start);
        let Self { starts, places, hasher, .. } = self;
        let hash = hasher.hash_one(word);
        if places.find(hash, |place| word_at(file, starts[*place as usize]) == word).is_none() {
            let of = |place: &u32| hasher.hash_one(word_at(file, starts[*place as usize]));
            places.insert_unique(hash, place, of);
        }
    }

    pub(super) fn words(&self) -> u32 {
        self.words
    }

    /// The places of labels.
    pub(super) fn labels(&self) -> Range<u32> {
        self.words..self.starts.len() as u32
    }

    /// Whether rows of n-grams were left out.
    pub(super) fn is_pruned(&self) -> bool {
        self.left.is_some()
    }

    /// How many rows n-grams have, of so many buckets.
    pub(super) fn ngram_rows(&self, buckets: u32) -> u64 {
        self.left.as_ref().map_or(u64::from(buckets), |left| left.len() as u64)
    }

    /// The row of an n-gram's bucket; `None` if it was pruned.
    pub(super) fn row_of_bucket(&self, bucket: u32) -> Option<u32> {
        let place = match &self.left {
            None => bucket,
            Some(left) => *left.get(&bucket)?,
        };
        Some(self.words + place)
    }

    /// Where an entry begins in the file.
    pub(super) fn byte(&self, row: u32) -> u64 {
        self.starts[row as usize]
    }

    /// The entry at a place: the word of a row, or a label.
    pub(super) fn word<'a>(&self, file: &'a Mapped, row: u32) -> &'a [u8] {
        word_at(file, self.starts[row as usize])
    }

    /// The number of occurrences of an entry in the text that the model was trained on.
    pub(super) fn count(&self, file: &Mapped, row: u32) -> i64 {
        let start = self.starts[row as usize] as usize;
        let end = start + word_at(file, start as u64).len() + 1;
        i64::from_le_bytes(file[end..end + 8].try_into().expect("eight bytes"))
    }

    /// The place of an entry: the row of a word, or that of a label.
    pub(super) fn find(&self, file: &Mapped, word: &[u8]) -> Option<u32> {
        let hash = self.hasher.hash_one(word);
        self.places.find(hash, |place| self.word(file, *place) == word).copied()
    }
}

/// Reads which n-grams are left: the row of each before and after.
fn pairs_of(cursor: &mut Cursor<'_>, pairs: u64) -> Result<HashMap<u32, u32>, EncoderError> {
    if pairs > cursor.left() as u64 / PAIR {
        let left = cursor.left();
        let reason = format!("{pairs} n-grams that are left do not fit into {left} bytes");
        return Err(cursor.damaged(cursor.at(), reason));
    }
    let mut left = HashMap::with_capacity(pairs as usize);
    for _ in 0..pairs {
        let at = cursor.at();
        let (before, after) = (cursor.count("a pruned row")?, cursor.count("its new row")?);
        if u64::from(after) >= pairs {
            let reason = format!("an n-gram has row {after} of {pairs}");
            return Err(cursor.damaged(at, reason));
        }
        if left.insert(before, after).is_some() {
            return Err(cursor.damaged(at, format!("the n-gram {before} is there twice")));
        }
    }
    Ok(left)
}

/// The entry that begins at a byte.
fn word_at(file: &Mapped, start: u64) -> &[u8] {
    let rest = &file[start as usize..];
    &rest[..memchr::memchr(0, rest).expect("each word was found to end")]
}
