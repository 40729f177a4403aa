//! A model over an array of components that somebody else keeps, or that is copied.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use bytemuck::cast_slice;
use rayon::prelude::*;

use super::ModelStore;
use crate::ModelError;
use crate::format::{Checksum, Checksums, DATA_START, Header, Layout, Provenance};
use crate::mapped::{Mapped, MappedMut};
use crate::words::{index_of, text_of};
use contract::{Metric, Row, score};

/// Components `[rows, dim]` that other code keeps. They must never change and never move: answers
/// are proved for the numbers that were there when the model was made.
#[derive(Clone)]
pub struct SharedComponents(Arc<dyn AsRef<[f32]> + Send + Sync>);

impl SharedComponents {
    /// Components that stay as they are.
    pub fn new(components: impl AsRef<[f32]> + Send + Sync + 'static) -> Self {
        Self(Arc::new(components))
    }

    pub(super) fn all(&self) -> &[f32] {
        (*self.0).as_ref()
    }
}

impl fmt::Debug for SharedComponents {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} shared components", self.all().len())
    }
}

/// The rows of a model that is made of an array.
#[derive(Debug)]
pub struct ArrayRows {
    /// Components, `[rows, dim]`.
    pub components: SharedComponents,
    /// Components of a row.
    pub dim: usize,
    /// The word of each row. `None`: its number, from `0`.
    pub words: Option<Vec<String>>,
    /// How a vector and a row become a score.
    pub metric: Metric,
    /// A bias for each row; only under the dot product.
    pub biases: Option<Vec<f32>>,
}

/// Why an array is no model.
#[derive(Debug, thiserror::Error)]
pub enum ArrayError {
    /// It has no rows, no components, or more rows than there are numbers for.
    #[error(
        "an array of {rows} rows × {dim} components is no model: it needs at least one of each, and at most 4,294,967,295 rows"
    )]
    Shape {
        /// Number of rows.
        rows: usize,
        /// Components of a row.
        dim: usize,
    },
    /// There is not one for each row.
    #[error("{what}: {found} for {rows} rows; give one for each row")]
    Number {
        /// Words or biases.
        what: &'static str,
        /// How many there are.
        found: usize,
        /// Number of rows.
        rows: usize,
    },
    /// A component or bias is NaN or infinite.
    #[error("row {row} has a {what} that is not finite; replace it, or leave the row out")]
    NotFinite {
        /// The row.
        row: Row,
        /// Component or bias.
        what: &'static str,
    },
    /// A word can't be one.
    #[error("the word of row {row} {reason}")]
    Word {
        /// The row.
        row: Row,
        /// What is wrong, and the cure.
        reason: &'static str,
    },
    /// Two rows have the same word.
    #[error(
        "rows {first} and {second} have the same word, `{word}`; give each row a word of its own, or none at all"
    )]
    Repeated {
        /// The word.
        word: String,
        /// The first row.
        first: Row,
        /// Another row.
        second: Row,
    },
    /// Biases under another metric.
    #[error("biases have a meaning only under the metric `dot`")]
    Biases,
    /// There is not enough memory.
    #[error(transparent)]
    Model(#[from] ModelError),
}

impl ModelStore {
    /// A model of the rows of an array. The components are not copied.
    ///
    /// ```
    /// use contract::{Metric, Row};
    /// use model_store::{ArrayRows, ModelStore, SharedComponents};
    ///
    /// let components = SharedComponents::new(vec![3.0, 4.0, 4.0, 3.0, 0.0, 1.0]);
    /// let rows = ArrayRows { components, dim: 2, words: None, metric: Metric::Cosine, biases: None };
    /// let model = ModelStore::of_array("points", rows)?;
    /// assert_eq!((model.rows(), model.words().row("2")), (3, Some(Row(2))));
    /// # Ok::<(), model_store::ArrayError>(())
    /// ```
    ///
    /// # Errors
    /// See [`ArrayError`].
    pub fn of_array(name: &str, array: ArrayRows) -> Result<Self, ArrayError> {
        let ArrayRows { components, dim, words, metric, biases } = array;
        let all = components.all();
        let rows = all.len().checked_div(dim).unwrap_or(0);
        let layout = Layout::new(rows, dim, biases.is_some(), false);
        let is_whole = dim > 0 && rows > 0 && rows * dim == all.len();
        let Some(layout) = layout.filter(|_| is_whole && u32::try_from(rows).is_ok()) else {
            return Err(ArrayError::Shape { rows, dim });
        };
        if biases.is_some() && metric != Metric::Dot {
            return Err(ArrayError::Biases);
        }
        check_number("words", words.as_ref().map(Vec::len), rows)?;
        check_number("biases", biases.as_ref().map(Vec::len), rows)?;
        let not_finite =
            |what| move |row: usize| ArrayError::NotFinite { row: Row(row as u32), what };
        if let Some(row) = biases.iter().flatten().position(|bias| !bias.is_finite()) {
            return Err(not_finite("bias")(row));
        }
        let words = match words {
            Some(words) => words,
            None => (0..rows).map(|row| row.to_string()).collect(),
        };
        let (text, word_offsets) = text_of(words.iter().map(String::as_str));
        check_words(&words)?;
        let index = index_of(rows, |row| &words[row]).map_err(|(first, second)| {
            let word = words[first.index()].clone();
            ArrayError::Repeated { word, first, second }
        })?;
        // Only what is written takes memory: the components' place stays empty.
        let failed = ModelError::io("keep in memory", name.as_ref());
        let mut vectors = MappedMut::zeroed(DATA_START + layout.end()).map_err(failed)?;
        let data = &mut vectors[DATA_START..];
        let norms: &mut [f64] = bytemuck::cast_slice_mut(&mut data[layout.norms.clone()]);
        let bad = norms.par_iter_mut().zip(all.par_chunks(dim)).enumerate().filter_map(
            |(row, (norm, components))| {
                *norm = score::norm(components);
                components.iter().any(|component| !component.is_finite()).then_some(row)
            },
        );
        if let Some(row) = bad.min() {
            return Err(not_finite("component")(row));
        }
        let biases: Option<&[u8]> = biases.as_ref().map(|biases| cast_slice(biases));
        data[layout.word_offsets.clone()].copy_from_slice(cast_slice(&word_offsets));
        data[layout.biases.clone()].copy_from_slice(biases.unwrap_or_default());
        let header = Header {
            rows,
            dim,
            metric,
            words_bytes: text.len() as u64,
            index_bytes: index.len() as u64,
            checksums: Checksums {
                vectors: Checksum::of(cast_slice(all)),
                norms: Checksum::of(&data[layout.norms]),
                word_offsets: Checksum::of(&data[layout.word_offsets]),
                words: Checksum::of(&text),
                index: Checksum::of(&index),
                biases: biases.map(Checksum::of),
                attributes: None,
                encoder: None,
            },
            table_id: None,
            folded: None,
            provenance: Provenance::of_memory(name),
        };
        let folder = PathBuf::from(name);
        let failed = || ModelError::io("keep in memory", &folder);
        let vectors = vectors.freeze().map_err(failed())?;
        let text = Mapped::copy_of(&text).map_err(failed())?;
        let index = Mapped::copy_of(&index).map_err(failed())?;
        let store = Self::from_parts(folder.clone(), header, vectors, text, index, None)?;
        Ok(Self { components: Some(components), ..store }.named(name))
    }
}

fn check_number(what: &'static str, found: Option<usize>, rows: usize) -> Result<(), ArrayError> {
    match found {
        Some(found) if found != rows => Err(ArrayError::Number { what, found, rows }),
        _ => Ok(()),
    }
}

fn check_words(words: &[String]) -> Result<(), ArrayError> {
    let fault = |word: &String| match word {
        word if word.is_empty() => Some("is empty; give it another, or give no words at all"),
        word if word.contains('\n') => Some("has a line feed; replace it, for example by a space"),
        _ => None,
    };
    let first = words.iter().enumerate().find_map(|(row, word)| Some((row, fault(word)?)));
    match first {
        Some((row, reason)) => Err(ArrayError::Word { row: Row(row as u32), reason }),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn array(components: Vec<f32>, dim: usize, words: Option<&[&str]>) -> ArrayRows {
        let words = words.map(|words| words.iter().map(|&word| word.to_owned()).collect());
        let components = SharedComponents::new(components);
        ArrayRows { components, dim, words, metric: Metric::Cosine, biases: None }
    }

    #[test]
    fn it_is_the_model_that_its_rows_make() {
        let words = ["frog", "toad", "a b"];
        let components = [3.0f32, 4.0, 1.0, 4.0, 3.0, -1.0, 0.0, 0.5, 0.0];
        let rows = words.iter().copied().zip(components.chunks(3));
        let expected = ModelStore::from_rows("m", 3, rows).unwrap();
        let store = ModelStore::of_array("m", array(components.to_vec(), 3, Some(&words))).unwrap();
        assert_eq!(store.version(), expected.version());
        assert_eq!(store.table().components(), expected.table().components());
        assert_eq!(store.table().norm(Row(1)).to_bits(), expected.table().norm(Row(1)).to_bits());
        assert_eq!(store.words().row("a b"), Some(Row(2)));
        store.verify(|_| ()).unwrap();
    }

    #[test]
    fn biases_count_under_dot_only() {
        let dot = || ArrayRows {
            metric: Metric::Dot,
            biases: Some(vec![0.5, -1.0]),
            ..array(vec![3.0, 4.0, 4.0, 3.0], 2, None)
        };
        let store = ModelStore::of_array("m", dot()).unwrap();
        assert_eq!(store.table().score(&[1.0, 1.0], 0.0, Row(1)), Some(6.0));
        store.verify(|_| ()).unwrap();
        let cosine = ArrayRows { metric: Metric::Cosine, ..dot() };
        assert!(matches!(ModelStore::of_array("m", cosine), Err(ArrayError::Biases)));
        let one = ArrayRows { biases: Some(vec![0.5]), ..dot() };
        assert!(matches!(ModelStore::of_array("m", one), Err(ArrayError::Number { .. })));
        let nan = ArrayRows { biases: Some(vec![0.5, f32::NAN]), ..dot() };
        let error = ModelStore::of_array("m", nan).unwrap_err().to_string();
        assert_eq!(error, "row 1 has a bias that is not finite; replace it, or leave the row out");
    }

    #[test]
    fn what_is_no_model_is_said() {
        let error = |rows| ModelStore::of_array("m", rows).unwrap_err().to_string();
        for (components, dim) in [(vec![], 2), (vec![1.0], 0), (vec![1.0, 2.0, 3.0], 2)] {
            assert!(error(array(components, dim, None)).contains("is no model"));
        }
        let three = || vec![1.0, 2.0, 3.0];
        assert!(
            error(array(vec![1.0, f32::INFINITY, f32::NAN], 1, None))
                .starts_with("row 1 has a component")
        );
        assert!(error(array(three(), 1, Some(&["a", "b"]))).starts_with("words: 2 for 3 rows"));
        assert!(
            error(array(three(), 1, Some(&["a", "", "b"])))
                .starts_with("the word of row 1 is empty")
        );
        assert!(
            error(array(three(), 1, Some(&["a", "b", "c\n"]))).contains("row 2 has a line feed")
        );
        let repeated = error(array(three(), 1, Some(&["b", "a", "b"])));
        assert!(repeated.starts_with("rows 0 and 2 have the same word, `b`"), "{repeated}");
    }
}
