//! Opens a model folder, verifies it, or keeps a model in memory.

use std::io::Cursor;
use std::path::{Path, PathBuf};

use bytemuck::cast_slice;

use crate::format::{
    Checksum, DATA_START, Header, INDEX_FILE, Provenance, VECTORS_FILE, WORDS_FILE,
};
use crate::mapped::Mapped;
use crate::prepare::{ModelFiles, ModelWriter};
use crate::{ModelError, Words};
use contract::{Row, Table, score};

/// A model in memory: a table of vectors and the words of its rows, mapped and not parsed.
///
/// ```
/// use contract::Row;
/// use model_store::ModelStore;
///
/// let rows: [(&str, &[f32]); 2] = [("frog", &[3.0, 4.0]), ("toad", &[4.0, 3.0])];
/// let model = ModelStore::from_rows("tiny", 2, rows)?;
/// assert_eq!((model.name(), model.rows(), model.dim()), ("tiny", 2, 2));
/// assert_eq!(model.words().row("toad"), Some(Row(1)));
///
/// let table = model.table();
/// assert_eq!(table.norm(Row(0)), 5.0);
/// assert_eq!(table.score(table.row(Row(0)), table.norm(Row(0)), Row(1)), Some(24.0 / 25.0));
/// # Ok::<(), model_store::ModelError>(())
/// ```
///
/// A folder that `kindred prepare` wrote is opened by [`open`](Self::open).
#[derive(Debug)]
pub struct ModelStore {
    name: String,
    folder: PathBuf,
    on_disk: bool,
    version: String,
    header: Header,
    vectors: Mapped,
    words: Words,
}

impl ModelStore {
    /// Maps a model folder. Checks the header, all sizes and the word map, in milliseconds;
    /// [`ModelStore::verify`] checks the other checksums.
    ///
    /// # Errors
    /// If the folder is not a model, has another format version, or is truncated or damaged.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        let vectors_path = folder.join(VECTORS_FILE);
        if !vectors_path.is_file() {
            let reason = if folder.is_dir() {
                format!("it has no file {VECTORS_FILE}")
            } else if folder.exists() {
                "it is a file, not a folder".to_owned()
            } else {
                "there is no such folder".to_owned()
            };
            return Err(ModelError::NotAModel { path: folder.to_owned(), reason });
        }
        let vectors = Mapped::open(&vectors_path)?;
        let header = Header::from_file(&vectors_path, &vectors)?;
        let open_sized = |name: &str, expected: u64| {
            let path = folder.join(name);
            let file = Mapped::open(&path)?;
            let found = file.len() as u64;
            if found == expected {
                Ok(file)
            } else {
                Err(ModelError::Size { path, found, expected })
            }
        };
        let words = open_sized(WORDS_FILE, header.words_bytes)?;
        let index = open_sized(INDEX_FILE, header.index_bytes)?;
        let store = Self::from_parts(folder.to_owned(), header, vectors, words, index)?;
        Ok(Self { on_disk: true, ..store })
    }

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
        Self::from_parts(folder, header, vectors, words, index)
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
        let no_memory = |e| ModelError::io("keep in memory", Path::new(name))(e);
        let mut writer = ModelWriter::new(Cursor::new(Vec::new()), dim).map_err(no_memory)?;
        for (word, components) in rows {
            writer.add(word, components).map_err(no_memory)?;
        }
        assert!(writer.rows() > 0, "a model has at least one row");
        let (vectors, words, index) =
            writer.finish(Provenance::of_memory(name)).map_err(no_memory)?;
        Self::from_memory(name, &ModelFiles { vectors: vectors.into_inner(), words, index })
    }

    fn from_parts(
        folder: PathBuf,
        header: Header,
        vectors: Mapped,
        words: Mapped,
        index: Mapped,
    ) -> Result<Self, ModelError> {
        let range = header.layout().word_offsets;
        let offsets = DATA_START + range.start..DATA_START + range.end;
        // Otherwise a request would be the first to find a damaged map; checking it takes milliseconds.
        if Checksum::of(&index) != header.checksums.index {
            let reason = "the checksum of its word map is wrong";
            return Err(ModelError::damaged(&folder.join(INDEX_FILE), reason));
        }
        let words = Words::new(&folder, words, index, vectors.clone(), offsets)?;
        // The folder's real name, even if it is given as `.` or ends in `..`.
        let name = folder
            .canonicalize()
            .as_deref()
            .unwrap_or(&folder)
            .file_name()
            .map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned());
        vectors.will_need();
        let version = header.version();
        Ok(Self { name, folder, on_disk: false, version, header, vectors, words })
    }

    /// The folder it was opened from; `None` for a model in memory.
    pub fn folder(&self) -> Option<&Path> {
        self.on_disk.then_some(self.folder.as_path())
    }

    /// The same model under another name.
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The model's name; by default its folder's.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The version of the model's content: see [`Header::version`].
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Shapes, checksums and provenance.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Number of rows.
    pub fn rows(&self) -> usize {
        self.header.rows
    }

    /// Components in a row.
    pub fn dim(&self) -> usize {
        self.header.dim
    }

    /// The words of the rows.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The numbers: components `[rows, dim]` and norms `[rows]`.
    pub fn table(&self) -> Table<'_> {
        let layout = self.header.layout();
        // Both casts are checked: the start is page-aligned, and the layout keeps the alignment.
        Table::new(
            cast_slice(self.data(layout.vectors)),
            cast_slice(self.data(layout.norms)),
            self.header.dim,
        )
    }

    fn data(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.vectors[DATA_START..][range]
    }

    /// Reads everything and verifies every checksum, that components are finite, that norms follow the contract, and
    /// that both word maps agree. Calls `progress` with the name of each step.
    ///
    /// # Errors
    /// Names the first damaged file.
    pub fn verify(&self, mut progress: impl FnMut(&'static str)) -> Result<(), ModelError> {
        let (layout, sums) = (self.header.layout(), &self.header.checksums);
        for (step, file, bytes, expected) in [
            ("vectors", VECTORS_FILE, self.data(layout.vectors), sums.vectors),
            ("norms", VECTORS_FILE, self.data(layout.norms), sums.norms),
            ("word offsets", VECTORS_FILE, self.data(layout.word_offsets), sums.word_offsets),
            ("words", WORDS_FILE, self.words.text(), sums.words),
            ("word map", INDEX_FILE, self.words.index_bytes(), sums.index),
        ] {
            progress(step);
            let found = Checksum::of(bytes);
            if found != expected {
                let reason = format!("the checksum of its {step} is {found}, not {expected}");
                return Err(ModelError::damaged(&self.folder.join(file), reason));
            }
        }
        progress("contents");
        self.verify_contents()
    }

    fn verify_contents(&self) -> Result<(), ModelError> {
        let (table, vectors_path) = (self.table(), self.folder.join(VECTORS_FILE));
        if self.data(self.header.layout().alignment).iter().any(|&b| b != 0) {
            return Err(ModelError::damaged(&vectors_path, "its tensor `alignment` is not zero"));
        }
        for row in (0..self.rows() as u32).map(Row) {
            let components = table.row(row);
            if components.iter().any(|c| !c.is_finite()) {
                let reason = format!("row {row} has a component that is not finite");
                return Err(ModelError::damaged(&vectors_path, reason));
            }
            if score::norm(components).to_bits() != table.norm(row).to_bits() {
                let reason = format!("the norm of row {row} is not the norm of its components");
                return Err(ModelError::damaged(&vectors_path, reason));
            }
            if self.words.row(self.words.word(row)) != Some(row) {
                let reason = format!("the word of row {row} leads to another row");
                return Err(ModelError::damaged(&self.folder.join(INDEX_FILE), reason));
            }
        }
        Ok(())
    }
}
