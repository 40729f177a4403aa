//! Words of a question that the model has no rows for, with the vectors of their subwords: rows of
//! that question alone, behind all others.

use changes::TableAt;
use contract::{Metric, Row, TableRows, score};
use encoders::{MAX_SUBWORD_BYTES, subwords, vector_of_subwords};
use model_store::Ngrams;
use serde::{Deserialize, Serialize};

/// Most n-grams that an answer tells of a word.
const MAX_NGRAMS: usize = 256;

/// The model that words are added to: its number of rows, and its vectors of n-grams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Model<'a> {
    pub(crate) rows: usize,
    pub(crate) ngrams: Option<&'a Ngrams>,
}

/// The words that one question adds.
#[derive(Debug, Default)]
pub struct AddedWords {
    /// The row of the first.
    first: u32,
    words: Vec<AddedWord>,
}

#[derive(Debug)]
struct AddedWord {
    word: String,
    vector: Vec<f32>,
    norm: f64,
}

/// A word whose vector is that of its subwords. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SubwordsOf {
    /// The word, as it was written.
    pub word: String,
    /// With `explain`: its n-grams that have a vector, at most 256.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ngrams: Option<Vec<String>>,
}

impl SubwordsOf {
    /// Bytes of its texts, with what surrounds them.
    pub fn bytes(&self) -> usize {
        let each = |text: &String| text.len() + size_of::<String>();
        each(&self.word) + self.ngrams.iter().flatten().map(each).sum::<usize>()
    }
}

impl AddedWords {
    /// Bytes that it takes, above its own.
    pub(crate) fn bytes(&self) -> usize {
        let each = |added: &AddedWord| {
            size_of::<AddedWord>() + added.word.len() + size_of_val(&*added.vector)
        };
        self.words.iter().map(each).sum()
    }

    /// The row of a word that the model does not have, or the word if there is no vector for it.
    /// Repeated words have one row.
    pub(crate) fn row_of(&mut self, of: Model<'_>, word: String) -> Result<Row, String> {
        if let Some(place) = self.words.iter().position(|added| added.word == word) {
            return Ok(Row(self.first + place as u32));
        }
        let Some(ngrams) = of.ngrams else { return Err(word) };
        let (count, place) = (of.rows, self.words.len());
        let Ok(row) = u32::try_from(count + place) else { return Err(word) };
        let mut vector = vec![0.0; ngrams.dim()];
        if vector_of_subwords(ngrams, &word, &mut vector).is_none() {
            debug_assert!(word.len() > MAX_SUBWORD_BYTES, "all shorter words have one");
            return Err(word);
        }
        let norm = score::norm(&vector);
        self.first = count as u32;
        self.words.push(AddedWord { word, vector, norm });
        Ok(Row(row))
    }

    /// Takes the last word's vector.
    pub(crate) fn into_vector(mut self) -> Option<Vec<f32>> {
        Some(self.words.pop()?.vector)
    }

    /// Whether a row is one of these words.
    pub(crate) fn has(&self, row: Row) -> bool {
        self.get(row).is_some()
    }

    /// The word of a row, if it is one of these.
    pub fn word(&self, row: Row) -> Option<&str> {
        self.get(row).map(|added| &*added.word)
    }

    fn get(&self, row: Row) -> Option<&AddedWord> {
        self.words.get(row.0.checked_sub(self.first)? as usize)
    }

    /// The words as answers tell them; `None` without any. With their n-grams, if these are wanted.
    pub(crate) fn told(&self, of: Model<'_>, with_ngrams: bool) -> Option<Vec<SubwordsOf>> {
        let ngrams = |word: &str| {
            let found = subwords(of.ngrams?, word).into_iter();
            let found = found.filter(|(_, has_vector)| *has_vector).map(|(text, _)| text);
            Some(found.take(MAX_NGRAMS).collect())
        };
        let told = |added: &AddedWord| SubwordsOf {
            word: model_store::cut(added.word.clone()),
            ngrams: if with_ngrams { ngrams(&added.word) } else { None },
        };
        (!self.words.is_empty()).then(|| self.words.iter().map(told).collect())
    }
}

/// The numbers of rows: those of a table at a position, then those that a question adds.
#[derive(Debug, Clone, Copy)]
pub struct AllRows<'a> {
    table: TableAt<'a>,
    added: Option<&'a AddedWords>,
}

impl<'a> AllRows<'a> {
    pub(crate) fn new(table: TableAt<'a>, added: Option<&'a AddedWords>) -> Self {
        Self { table, added }
    }

    fn added(&self, row: Row) -> Option<&'a AddedWord> {
        self.added?.get(row)
    }
}

impl TableRows for AllRows<'_> {
    fn rows(&self) -> usize {
        self.table.rows() + self.added.map_or(0, |added| added.words.len())
    }

    fn dim(&self) -> usize {
        self.table.dim()
    }

    fn metric(&self) -> Metric {
        self.table.metric()
    }

    fn row(&self, row: Row) -> &[f32] {
        self.added(row).map_or_else(|| self.table.row(row), |added| &added.vector)
    }

    fn norm(&self, row: Row) -> f64 {
        self.added(row).map_or_else(|| self.table.norm(row), |added| added.norm)
    }

    fn bias(&self, row: Row) -> f32 {
        self.added(row).map_or_else(|| self.table.bias(row), |_| 0.0)
    }

    fn beyond_engines(&self, row: Row) -> Option<&[f32]> {
        self.added(row).map(|added| &added.vector[..])
    }
}
