//! A model: its table of vectors and its words.

use std::fmt;
use std::path::Path;
use std::sync::Arc;

use contract::{Filter, Hit, Query, QueryVector, Row};
use encoders::text_encoder;
use model_store::{ModelError, ModelStore};
use rayon::prelude::*;

use crate::question::{EncodeOptions, Side, encode, odd_one_out, similarity, vector_of_unknown};
use crate::{Error, demo};

/// A model: a table of word vectors, `[rows, dim]` float32, and the word of each row. Clones share
/// it.
///
/// ```
/// use kindred::Model;
///
/// let rows = [("frog", [1.0, 0.1]), ("toad", [1.0, 0.2]), ("car", [0.0, 1.0])];
/// let model = Model::from_rows("tiny", &rows)?;
/// assert_eq!((model.rows(), model.dim()), (3, 2));
/// assert_eq!((model.row("toad"), model.word(2)), (Some(1), Some("car")));
/// assert!(model.similarity("frog", "toad").unwrap() > model.similarity("frog", "car").unwrap());
/// # Ok::<(), kindred::ModelError>(())
/// ```
#[derive(Clone)]
pub struct Model(Arc<ModelStore>);

impl Model {
    /// Opens a model folder, as [`prepare_folder`](crate::prepare::prepare_folder) writes it. Its
    /// vectors are mapped, not read.
    ///
    /// # Errors
    /// If the folder is no model folder, was written by another version, or is damaged.
    pub fn open(folder: impl AsRef<Path>) -> Result<Self, ModelError> {
        let store = ModelStore::open(folder.as_ref())?;
        text_encoder(&store)?;
        Ok(store.into())
    }

    /// The built-in model: 30,000 English words × 100 dimensions. Its first use prepares it in the
    /// user's cache folder; where that is not possible it is prepared in memory.
    ///
    /// ```
    /// let model = kindred::Model::demo()?;
    /// assert_eq!((model.name(), model.rows(), model.dim()), ("demo", 30_000, 100));
    /// # Ok::<(), kindred::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// If the system has no memory left.
    pub fn demo() -> Result<Self, ModelError> {
        demo::open(Path::new("")).map(Self::from)
    }

    /// A model of these rows, in memory.
    ///
    /// # Errors
    /// If the system has no memory left.
    ///
    /// # Panics
    /// If there are no rows, a row has another number of components than the first or none, or a
    /// word is empty or holds a line feed.
    pub fn from_rows<W: AsRef<str>, V: AsRef<[f32]>>(
        name: &str,
        rows: &[(W, V)],
    ) -> Result<Self, ModelError> {
        let dim = rows.first().map_or(0, |(_, vector)| vector.as_ref().len());
        let rows = rows.iter().map(|(word, vector)| (word.as_ref(), vector.as_ref()));
        ModelStore::from_rows(name, dim, rows).map(Self::from)
    }

    /// Table and words, as engines take them.
    pub fn store(&self) -> &Arc<ModelStore> {
        &self.0
    }

    /// The model's name: its folder's, unless it was given another.
    pub fn name(&self) -> &str {
        self.0.name()
    }

    /// The version of the model's content: other content has another version.
    pub fn version(&self) -> &str {
        self.0.version()
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.0.rows()
    }

    /// Components in a row.
    pub fn dim(&self) -> usize {
        self.0.dim()
    }

    /// The row of a word, by its exact bytes; rows count from 0, the most frequent word first.
    pub fn row(&self, word: &str) -> Option<u32> {
        self.0.words().row(word).map(|row| row.0)
    }

    /// The word of a row.
    pub fn word(&self, row: u32) -> Option<&str> {
        self.is_row(row).then(|| self.0.words().word(Row(row)))
    }

    /// The vector of a row, `[dim]`.
    pub fn vector(&self, row: u32) -> Option<&[f32]> {
        self.is_row(row).then(|| self.0.table().row(Row(row)))
    }

    /// The vector of a word that is no row, `[dim]`, as fastText computes it from the word's n-grams.
    /// `None` if the model was not prepared from a fastText model, or for words longer than 65,536
    /// bytes. A word without n-grams has a zero vector.
    pub fn subword_vector(&self, word: &str) -> Option<Vec<f32>> {
        vector_of_unknown(&self.0, word).map(|(vector, _)| vector)
    }

    /// The vector of a text, `[dim]`, by the model's encoder: the one that a search for the text has.
    /// Of a model of words it is the sum of their unit vectors, with their weights if these have any,
    /// divided by its norm.
    ///
    /// ```
    /// let model = kindred::Model::demo()?;
    /// assert_eq!(model.encode("a small boat", &Default::default())?.len(), 100);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the text has no words, or is too long and must not be cut;
    /// [`Error::UnknownWord`], with suggestions, if the model has none of them; [`Error::ZeroQuery`]
    /// if a word or the vector is zero.
    pub fn encode(&self, text: &str, options: &EncodeOptions) -> Result<Vec<f32>, Error> {
        let encoded = encode(&self.0, text, options);
        encoded.map(|text| text.vector).map_err(|error| error.with_suggestions(&self.0))
    }

    /// The vectors of texts, `[texts, dim]`, on all cores: those of [`encode`](Self::encode).
    ///
    /// # Errors
    /// As there, with the place of the first text that has no vector.
    pub fn encode_all(
        &self,
        texts: &[impl AsRef<str> + Sync],
        options: &EncodeOptions,
    ) -> Result<Vec<f32>, (usize, Error)> {
        let mut all = vec![0.0; texts.len() * self.dim()];
        let vectors = all.par_chunks_exact_mut(self.dim()).zip(texts).enumerate();
        let faults = vectors.filter_map(|(place, (vector, text))| {
            let encoded = encode(&self.0, text.as_ref(), options);
            encoded.map(|text| vector.copy_from_slice(&text.vector)).err().map(|why| (place, why))
        });
        match faults.min_by_key(|(place, _)| *place) {
            None => Ok(all),
            Some((place, error)) => Err((place, error.with_suggestions(&self.0))),
        }
    }

    fn is_row(&self, row: u32) -> bool {
        Row(row).index() < self.rows()
    }

    /// The most frequent words that begin with `prefix`, at most `limit`.
    pub fn words_with_prefix(&self, prefix: &str, limit: usize) -> Vec<&str> {
        let rows = self.0.words().with_prefix(prefix, limit);
        rows.into_iter().map(|row| self.0.words().word(row)).collect()
    }

    /// Words that resemble one, the likeliest first.
    ///
    /// ```
    /// let model = kindred::Model::demo()?;
    /// assert!(model.suggestions("frogg").contains(&"frog"));
    /// # Ok::<(), kindred::ModelError>(())
    /// ```
    pub fn suggestions(&self, word: &str) -> Vec<&str> {
        self.0.words().suggestions(word)
    }

    /// How alike two words or sets of words are: the contract's cosine, from −1 to 1. A set is the
    /// sum of the unit vectors of its words.
    ///
    /// # Errors
    /// [`Error::UnknownWord`] with suggestions; [`Error::ZeroQuery`] if a word or a sum is a zero
    /// vector; [`Error::InvalidValue`] if a set is empty or has more than 256 words.
    pub fn similarity(&self, a: impl Into<Side>, b: impl Into<Side>) -> Result<f64, Error> {
        let similarity = similarity(&self.0, [a.into(), b.into()], None);
        similarity.map(|found| found.score).map_err(|error| error.with_suggestions(&self.0))
    }

    /// The score of every row for a vector `[dim]`, by the contract's formula, on all cores; NaN
    /// for a row that has none. For a few rows or many, in no order; a search finds the best far
    /// faster.
    ///
    /// ```
    /// use kindred::Model;
    ///
    /// let model = Model::from_rows("tiny", &[("a", [1.0, 0.0]), ("b", [0.0, 1.0])])?;
    /// assert_eq!(model.scores(&[2.0, 0.0]).unwrap(), [1.0, 0.0]);
    /// # Ok::<(), kindred::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::DimensionMismatch`], [`Error::NotFinite`] or [`Error::ZeroQuery`].
    pub fn scores(&self, vector: &[f32]) -> Result<Vec<f64>, Error> {
        let table = self.0.table();
        let vector = QueryVector::from(vector.to_vec());
        let query = Query::new(&table, vector, 1, Filter::default())?;
        let score = |row: u32| query.score(&table, Row(row)).unwrap_or(f64::NAN);
        Ok((0..self.rows() as u32).into_par_iter().map(score).collect())
    }

    /// Some words with their cosine to the mean of all of them, highest first: the odd one is the
    /// last.
    ///
    /// ```
    /// let model = kindred::Model::demo()?;
    /// let ranked = model.odd_one_out(["breakfast", "lunch", "dinner", "piano"])?;
    /// assert_eq!(ranked.last().map(|(word, _)| &**word), Some("piano"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::InvalidValue`] unless there are 3 to 256 words; [`Error::UnknownWord`] with
    /// suggestions; [`Error::ZeroQuery`] if a word or their sum is a zero vector.
    pub fn odd_one_out<W: Into<String>>(
        &self,
        words: impl IntoIterator<Item = W>,
    ) -> Result<Vec<(String, f64)>, Error> {
        let words = words.into_iter().map(Into::into).collect();
        let odd =
            odd_one_out(&self.0, words, None).map_err(|error| error.with_suggestions(&self.0))?;
        let named = |hit: &Hit| (odd.word(&self.0, hit.row).to_owned(), hit.score);
        Ok(odd.ranked.iter().map(named).collect())
    }

    /// Reads everything and checks every checksum. `progress` gets the name of each step.
    ///
    /// # Errors
    /// Names the first file that is wrong.
    pub fn verify(&self, progress: impl FnMut(&'static str)) -> Result<(), ModelError> {
        self.0.verify(progress)
    }
}

impl From<ModelStore> for Model {
    fn from(store: ModelStore) -> Self {
        Self(Arc::new(store))
    }
}

impl From<Arc<ModelStore>> for Model {
    fn from(store: Arc<ModelStore>) -> Self {
        Self(store)
    }
}

impl fmt::Debug for Model {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} [{}, {}]", self.name(), self.version(), self.rows(), self.dim())
    }
}
