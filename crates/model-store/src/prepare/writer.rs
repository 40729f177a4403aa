//! Writes the files of a model, row by row.

use std::io::{self, Seek, SeekFrom, Write};

use indexmap::IndexSet;

use super::formats::Parsed;
use crate::format::Layout;
use crate::format::{Checksum, Checksums, DATA_START, Header, Provenance, TableId};
use crate::words::{index_of, text_of};
use contract::{Metric, score};

/// Writes a model row by row: vectors are written immediately, the rest when all rows are known.
pub struct ModelWriter<W> {
    vectors: W,
    vectors_hasher: blake3::Hasher,
    dim: usize,
    norms: Vec<f64>,
    words: IndexSet<Box<str>>,
    metric: Metric,
    /// One for each row, or none at all.
    biases: Vec<f32>,
    attributes: Option<Checksum>,
    encoder: Option<Checksum>,
    table_id: Option<TableId>,
}

impl<W: Write + Seek> ModelWriter<W> {
    /// A writer for rows of `dim` components under a metric; `vectors` becomes
    /// `vectors.safetensors`.
    ///
    /// # Errors
    /// If `vectors` can't be written.
    pub fn new(mut vectors: W, dim: usize, metric: Metric) -> io::Result<Self> {
        assert!(dim > 0, "a row has at least one component");
        // The header is written last; reserve its space.
        vectors.seek(SeekFrom::Start(DATA_START as u64))?;
        Ok(Self {
            vectors,
            vectors_hasher: blake3::Hasher::new(),
            dim,
            norms: Vec::new(),
            words: IndexSet::new(),
            metric,
            biases: Vec::new(),
            attributes: None,
            encoder: None,
            table_id: None,
        })
    }

    /// Adds a row of finite components, with its bias: either every row has one, which is finite,
    /// or none has. A repeated word keeps its first row; returns `false` then.
    ///
    /// # Errors
    /// If the vectors can't be written or there are too many rows to count.
    pub fn add(&mut self, word: &str, components: &[f32], bias: Option<f32>) -> io::Result<bool> {
        assert_eq!(components.len(), self.dim, "every row has the dimension of the first");
        debug_assert!(components.iter().all(|c| c.is_finite()), "components are finite");
        debug_assert!(bias.is_none_or(f32::is_finite), "biases are finite");
        let is_new = self.add_word(word)?;
        if is_new {
            self.norms.push(score::norm(components));
            self.write(components)?;
            self.biases.extend(bias);
        }
        Ok(is_new)
    }

    /// Adds the good rows of a chunk, with their biases, if there are any. Returns which of them
    /// have repeated words, ascending.
    ///
    /// # Errors
    /// As [`ModelWriter::add`].
    pub(super) fn add_parsed(&mut self, parsed: &Parsed, biases: &[f32]) -> io::Result<Vec<u32>> {
        let mut repeated = Vec::new();
        // Rows from here on are not written yet; write as many as possible together.
        let mut unwritten = 0;
        for (row, word) in parsed.words().enumerate() {
            if self.add_word(word)? {
                self.norms.push(parsed.norms[row]);
                self.biases.extend(biases.get(row));
            } else {
                repeated.push(u32::try_from(row).expect("a chunk is a few MiB"));
                self.write(&parsed.components[unwritten * self.dim..row * self.dim])?;
                unwritten = row + 1;
            }
        }
        self.write(&parsed.components[unwritten * self.dim..])?;
        Ok(repeated)
    }

    /// Whether the word is new; then it has the next row.
    fn add_word(&mut self, word: &str) -> io::Result<bool> {
        debug_assert!(!word.is_empty() && !word.contains('\n'), "a word is one line of words.txt");
        if self.words.contains(word) {
            return Ok(false);
        }
        if self.rows() >= u32::MAX as usize {
            return Err(io::Error::other("a model has at most 4,294,967,295 rows"));
        }
        self.words.insert(word.into());
        Ok(true)
    }

    fn write(&mut self, components: &[f32]) -> io::Result<()> {
        let bytes = bytemuck::cast_slice(components);
        self.vectors_hasher.update(bytes);
        self.vectors.write_all(bytes)
    }

    /// Rows so far.
    pub fn rows(&self) -> usize {
        self.words.len()
    }

    /// The words of the rows so far.
    pub(super) fn words(&self) -> impl ExactSizeIterator<Item = &str> {
        self.words.iter().map(|word| &**word)
    }

    /// The row of a word, if it has been added.
    pub(super) fn row(&self, word: &str) -> Option<usize> {
        self.words.get_index_of(word)
    }

    /// The rows have attributes, whose description has this checksum.
    pub fn with_attributes(self, description: Checksum) -> Self {
        Self { attributes: Some(description), ..self }
    }

    /// The model has the encoder whose description has this checksum.
    pub(crate) fn with_encoder(self, description: Checksum) -> Self {
        Self { encoder: Some(description), ..self }
    }

    /// It is a table that may begin without rows.
    pub fn with_table_id(self, id: TableId) -> Self {
        Self { table_id: Some(id), ..self }
    }

    /// Components in a row.
    pub fn dim(&self) -> usize {
        self.dim
    }

    /// Writes everything after and before the vectors. Returns the writer of the vectors, the
    /// content of `words.txt` and that of `words.fst`.
    ///
    /// # Errors
    /// If the vectors can't be written.
    ///
    /// # Panics
    /// If some rows have biases and others do not, or the metric has no biases.
    pub fn finish(mut self, provenance: Provenance) -> io::Result<(W, Vec<u8>, Vec<u8>)> {
        let (words, word_offsets) = text_of(self.words.iter().map(|word| &**word));
        let index = index_of(self.rows(), |row| &self.words[row]).expect("each word is there once");

        let has_biases = !self.biases.is_empty();
        assert!(!has_biases || self.metric == Metric::Dot, "only the dot product has biases");
        assert!(!has_biases || self.biases.len() == self.rows(), "one bias for each row, or none");
        let layout = Layout::new(self.rows(), self.dim, has_biases, false)
            .expect("a table that was written has a size");
        let norms = bytemuck::cast_slice(&self.norms);
        let word_offsets = bytemuck::cast_slice(&word_offsets);
        self.vectors.write_all(&vec![0; layout.alignment.len()])?;
        self.vectors.write_all(norms)?;
        self.vectors.write_all(word_offsets)?;
        let biases = bytemuck::cast_slice(&self.biases);
        self.vectors.write_all(biases)?;

        let header = Header {
            rows: self.rows(),
            dim: self.dim,
            metric: self.metric,
            words_bytes: words.len() as u64,
            index_bytes: index.len() as u64,
            checksums: Checksums {
                vectors: Checksum::from_hasher(&self.vectors_hasher),
                norms: Checksum::of(norms),
                word_offsets: Checksum::of(word_offsets),
                words: Checksum::of(&words),
                index: Checksum::of(&index),
                biases: has_biases.then(|| Checksum::of(biases)),
                attributes: self.attributes,
                encoder: self.encoder,
            },
            table_id: self.table_id,
            folded: None,
            provenance,
        };
        self.vectors.seek(SeekFrom::Start(0))?;
        self.vectors.write_all(&header.to_bytes().expect("there is room for any file name"))?;
        self.vectors.flush()?;
        Ok((self.vectors, words, index))
    }
}
