//! Models in memory, without a folder.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use super::ModelStore;
use crate::ModelError;
use crate::attributes::{AttributeError, Attributes};
use crate::format::{ATTRIBUTES_FOLDER, Header, Provenance, VECTORS_FILE};
use crate::mapped::Mapped;
use crate::prepare::{ModelFiles, ModelWriter};
use contract::Metric;

impl ModelStore {
    /// Opens a model that was prepared in memory, without a folder.
    ///
    /// # Errors
    /// If there is not enough memory.
    pub fn from_memory(name: &str, files: &ModelFiles) -> Result<Self, ModelError> {
        let folder = PathBuf::from(name);
        let copy =
            |bytes| Mapped::copy_of(bytes).map_err(ModelError::io("keep in memory", &folder));
        let (vectors, words, index) =
            (copy(&files.vectors)?, copy(&files.words)?, copy(&files.index)?);
        let header = Header::from_file(&folder.join(VECTORS_FILE), &vectors)?;
        let attributes = files.attributes.as_ref().map(|attributes| {
            Attributes::from_memory(attributes, &folder.join(ATTRIBUTES_FOLDER), header.rows)
        });
        let attributes = attributes.transpose()?;
        Self::from_parts(folder, header, vectors, words, index, attributes)
    }

    /// The same model in memory with these attributes, in place of those that it has.
    ///
    /// # Errors
    /// If they have another number of rows.
    pub fn with_attributes(mut self, attributes: Attributes) -> Result<Self, AttributeError> {
        let (found, rows) = (attributes.rows(), self.rows());
        if found != rows {
            let name = attributes.columns()[0].name().to_owned();
            return Err(AttributeError::Rows { name, found, rows });
        }
        self.header.checksums.attributes = Some(attributes.checksum());
        (self.version, self.content) = (self.header.version(), self.header.content());
        // Its folder, if it has one, has another version.
        Ok(Self { on_disk: false, attributes: Some(attributes), ..self })
    }

    /// Creates a model of these rows in memory, for tests, benchmarks and computed tables.
    ///
    /// # Errors
    /// If there is not enough memory.
    ///
    /// # Panics
    /// If there are no rows, `dim` is 0, a row has another number of components, or a word is empty
    /// or holds a line feed.
    pub fn from_rows<'a>(
        name: &str,
        dim: usize,
        rows: impl IntoIterator<Item = (&'a str, &'a [f32])>,
    ) -> Result<Self, ModelError> {
        Self::of_rows(name, dim, Metric::Cosine, rows, None)
    }

    /// The same under the dot product, with one bias for each of `rows`, or none at all.
    ///
    /// ```
    /// use contract::{Metric, Row};
    /// use model_store::ModelStore;
    ///
    /// let rows: [(&str, &[f32]); 2] = [("frog", &[3.0, 4.0]), ("toad", &[4.0, 3.0])];
    /// let model = ModelStore::from_rows_under_dot("tiny", 2, rows, Some(&[0.5, -1.0]))?;
    /// assert_eq!(model.metric(), Metric::Dot);
    /// assert_eq!(model.table().score(&[1.0, 1.0], 0.0, Row(1)), Some(4.0 + 3.0 - 1.0));
    /// # Ok::<(), model_store::ModelError>(())
    /// ```
    ///
    /// # Errors
    /// As [`from_rows`](Self::from_rows).
    ///
    /// # Panics
    /// As [`from_rows`](Self::from_rows), and if there is not one finite bias for each row.
    pub fn from_rows_under_dot<'a>(
        name: &str,
        dim: usize,
        rows: impl IntoIterator<Item = (&'a str, &'a [f32])>,
        biases: Option<&[f32]>,
    ) -> Result<Self, ModelError> {
        Self::of_rows(name, dim, Metric::Dot, rows, biases)
    }

    fn of_rows<'a>(
        name: &str,
        dim: usize,
        metric: Metric,
        rows: impl IntoIterator<Item = (&'a str, &'a [f32])>,
        biases: Option<&[f32]>,
    ) -> Result<Self, ModelError> {
        let mut left = biases.unwrap_or_default().iter();
        assert!(left.clone().all(|bias| bias.is_finite()), "biases are finite");
        let write = || {
            let mut writer = ModelWriter::new(Cursor::new(Vec::new()), dim, metric)?;
            for (word, row) in rows {
                let bias = biases.map(|_| *left.next().expect("one bias for each row"));
                writer.add(word, row, bias)?;
            }
            assert!(left.next().is_none(), "one bias for each row");
            assert!(writer.rows() > 0, "a model has at least one row");
            writer.finish(Provenance::of_memory(name))
        };
        let (vectors, words, index) =
            write().map_err(ModelError::io("keep in memory", Path::new(name)))?;
        let vectors = vectors.into_inner();
        Self::from_memory(name, &ModelFiles { vectors, words, index, attributes: None })
    }
}
