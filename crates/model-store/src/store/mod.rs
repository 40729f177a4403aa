//! Opens a model folder, verifies it, or keeps a model in memory.

mod in_memory;
mod numbers;
mod of_array;
mod verify;

use std::io;
use std::path::{Path, PathBuf};

pub use of_array::{ArrayError, ArrayRows, SharedComponents};

use bytemuck::cast_slice;

use crate::attributes::Attributes;
use crate::encoder::{ENCODER_FOLDER, Encoder, EncoderFiles, Ngrams, TextWeights};
use crate::format::{
    ATTRIBUTES_FOLDER, Checksum, DATA_START, Folded, HEAD_FILE, Header, INDEX_FILE, Pointer,
    REQUESTS_FILE, VECTORS_FILE, WORDS_FILE,
};
use crate::mapped::Mapped;
use crate::{ModelError, Words};
use contract::{HasTable, Metric, Table};

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
    /// The folder of its files, which is that of the model or one in it.
    files: PathBuf,
    on_disk: bool,
    version: String,
    content: String,
    header: Header,
    vectors: Mapped,
    /// If they are not in `vectors`, where their place is empty then.
    components: Option<SharedComponents>,
    words: Words,
    attributes: Option<Attributes>,
    encoder: Option<Encoder>,
    /// The idempotency keys that a fold has kept.
    requests: Option<Mapped>,
}

impl ModelStore {
    /// Maps a model folder. Checks the header, all sizes, the word map and that biases are finite,
    /// in milliseconds; and reads the codes of attributes once. [`ModelStore::verify`] checks the
    /// other checksums.
    ///
    /// # Errors
    /// If the folder is not a model, has another format version, or is truncated or damaged.
    pub fn open(folder: &Path) -> Result<Self, ModelError> {
        match Self::open_base(folder)? {
            (model, false) => Ok(model),
            (_, true) => Err(ModelError::HasChanges { path: folder.join(VECTORS_FILE) }),
        }
    }

    /// Opens the base of a model that may have changes beside it, and tells whether it has: then
    /// its rows are not all of the model's, and `Changes` has the others.
    ///
    /// # Errors
    /// As [`open`](Self::open), which refuses a model with changes.
    pub fn open_base(folder: &Path) -> Result<(Self, bool), ModelError> {
        let vectors_path = folder.join(VECTORS_FILE);
        if !vectors_path.is_file() {
            let is_closed = |e: io::Error| e.kind() == io::ErrorKind::PermissionDenied;
            let reason = if vectors_path.metadata().is_err_and(is_closed) {
                "this user may not look into it (permission denied)".to_owned()
            } else if folder.join(HEAD_FILE).is_file() {
                "it is a head, which is named with --head".to_owned()
            } else if folder.is_dir() {
                format!("it has no file {VECTORS_FILE}")
            } else if folder.exists() {
                "it is a file, not a folder".to_owned()
            } else {
                "there is no such folder".to_owned()
            };
            return Err(ModelError::NotAModel { path: folder.to_owned(), reason: reason.into() });
        }
        Self::open_base_by(folder, &Mapped::open)
    }

    /// Opens a folder that may have changes beside it, and says whether it has: its files are those
    /// that `open` opens, by their paths.
    ///
    /// # Errors
    /// If a file can't be opened or is damaged.
    pub fn open_base_by(
        folder: &Path,
        open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<(Self, bool), ModelError> {
        let vectors_path = folder.join(VECTORS_FILE);
        let vectors = open(&vectors_path)?;
        match Pointer::read(&vectors_path, &vectors)? {
            None => Self::open_files(folder, folder, vectors, open),
            Some(Pointer { base }) => {
                let base = folder.join(base);
                let vectors = open(&base.join(VECTORS_FILE))?;
                Self::open_files(folder, &base, vectors, open)
            }
        }
    }

    /// Opens the files of a base, which are in the model's folder or in one of its own.
    fn open_files(
        folder: &Path,
        files: &Path,
        vectors: Mapped,
        open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
    ) -> Result<(Self, bool), ModelError> {
        let vectors_path = files.join(VECTORS_FILE);
        let (header, has_changes) = Header::of_base(&vectors_path, &vectors)?;
        if header.folded.is_some() != (folder != files) {
            let reason = match folder == files {
                true => "it is the base of a table; open the folder that this one is in",
                false => "it is not the base of a fold",
            };
            return Err(ModelError::NotAModel { path: files.to_owned(), reason: reason.into() });
        }
        let has_changes = has_changes || header.folded.is_some();
        let open_sized = |name: &str, expected: u64| {
            let path = files.join(name);
            open(&path)?.of_size(expected, &path)
        };
        let words = open_sized(WORDS_FILE, header.words_bytes)?;
        let index = open_sized(INDEX_FILE, header.index_bytes)?;
        let attributes = open_attributes(files, &header, open)?;
        let requests = match &header.folded {
            Some(folded) => Some(open_requests(files, folded, open)?),
            None => None,
        };
        let encoder = open_encoder(folder, &header, open)?;
        let store = Self::from_parts(files.to_owned(), header, vectors, words, index, attributes)?;
        let (name, folder) = (name_of(folder), folder.to_owned());
        let store = Self { name, folder, on_disk: true, encoder, requests, ..store };
        store.check_numbers()?;
        Ok((store, has_changes))
    }

    fn from_parts(
        folder: PathBuf,
        header: Header,
        vectors: Mapped,
        words: Mapped,
        index: Mapped,
        attributes: Option<Attributes>,
    ) -> Result<Self, ModelError> {
        if attributes.as_ref().map(Attributes::checksum) != header.checksums.attributes {
            let reason = "the model's header is not that of a model with these attributes";
            return Err(ModelError::damaged(&folder.join(ATTRIBUTES_FOLDER), reason));
        }
        let range = header.layout().word_offsets;
        let offsets = DATA_START + range.start..DATA_START + range.end;
        // Otherwise a request would be the first to find a damaged map; checking it takes
        // milliseconds.
        if Checksum::of(&index) != header.checksums.index {
            let reason = "the checksum of its word map is wrong";
            return Err(ModelError::damaged(&folder.join(INDEX_FILE), reason));
        }
        let words = Words::new(&folder, words, index, vectors.clone(), offsets)?;
        let name = name_of(&folder);
        vectors.will_need();
        let (version, content) = (header.version(), header.content());
        let (on_disk, components, encoder, requests) = (false, None, None, None);
        let files = folder.clone();
        let store = Self {
            name,
            folder,
            files,
            on_disk,
            version,
            content,
            header,
            vectors,
            components,
            words,
            attributes,
            encoder,
            requests,
        };
        // Otherwise a damaged bias would put a row before all others, or panic. There is one for a
        // whole row.
        store.check_biases()?;
        Ok(store)
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

    /// How a vector and a row become a score.
    pub fn metric(&self) -> Metric {
        self.header.metric
    }

    /// The words of the rows.
    pub fn words(&self) -> &Words {
        &self.words
    }

    /// The attributes of the rows, if they have any.
    pub fn attributes(&self) -> Option<&Attributes> {
        self.attributes.as_ref()
    }

    /// The vectors of n-grams, if words that are no rows get theirs from these.
    pub fn ngrams(&self) -> Option<&Ngrams> {
        match &self.encoder {
            Some(Encoder::Ngrams(ngrams, _)) => Some(ngrams),
            _ => None,
        }
    }

    /// The weights of words in texts, if texts are sums of words and these have any.
    pub fn text_weights(&self) -> Option<&TextWeights> {
        self.encoder.as_ref()?.text_weights()
    }

    /// The encoder of texts, if it is of a kind that this crate does not read.
    pub fn encoder_files(&self) -> Option<&EncoderFiles> {
        match &self.encoder {
            Some(Encoder::Files(files)) => Some(files),
            _ => None,
        }
    }

    /// The numbers: components `[rows, dim]` and norms `[rows]`, with the metric and the biases
    /// `[rows]`.
    pub fn table(&self) -> Table<'_> {
        let layout = self.header.layout();
        // The casts are checked: the start is page-aligned, and the layout keeps the alignment.
        let table =
            Table::new(self.components(), cast_slice(self.data(layout.norms)), self.header.dim);
        match self.header.metric {
            Metric::Cosine => table,
            Metric::Dot => table.under_dot(self.biases()),
        }
    }

    fn components(&self) -> &[f32] {
        match &self.components {
            Some(shared) => shared.all(),
            None => cast_slice(self.data(self.header.layout().vectors)),
        }
    }

    fn biases(&self) -> Option<&[f32]> {
        let range = self.header.layout().biases;
        self.header.checksums.biases.is_some().then(|| cast_slice(self.data(range)))
    }

    fn data(&self, range: std::ops::Range<usize>) -> &[u8] {
        &self.vectors[DATA_START..][range]
    }
}

/// The attributes of a folder, if it has any, by its header.
fn open_attributes(
    folder: &Path,
    header: &Header,
    open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
) -> Result<Option<Attributes>, ModelError> {
    let folder = folder.join(ATTRIBUTES_FOLDER);
    match header.checksums.attributes {
        Some(checksum) => Attributes::open(&folder, checksum, header.rows, open).map(Some),
        // Somebody has put them there, and expects them to be used.
        None if folder.exists() => {
            let reason = "the model was prepared without attributes";
            Err(ModelError::damaged(&folder, reason))
        }
        None => Ok(None),
    }
}

/// The encoder of a model's folder, if it has one, by its header.
fn open_encoder(
    folder: &Path,
    header: &Header,
    open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
) -> Result<Option<Encoder>, ModelError> {
    let folder = folder.join(ENCODER_FOLDER);
    match header.checksums.encoder {
        Some(checksum) => {
            let encoder = Encoder::open(&folder, checksum, header.dim, open)?;
            let weights = encoder.text_weights().map(|weights| weights.all().len());
            // A fold leaves rows out, whose weights stay.
            match weights.filter(|found| header.folded.is_none() && *found != header.rows) {
                None => Ok(Some(encoder)),
                Some(found) => {
                    let reason = format!("it has weights of {found} rows, not of {}", header.rows);
                    Err(ModelError::damaged(&folder, reason))
                }
            }
        }
        // Somebody has put it there, and expects it to be used.
        None if folder.exists() => {
            let reason = "the model was prepared without an encoder";
            Err(ModelError::damaged(&folder, reason))
        }
        None => Ok(None),
    }
}

/// The idempotency keys that a fold has kept.
fn open_requests(
    folder: &Path,
    folded: &Folded,
    open: &dyn Fn(&Path) -> Result<Mapped, ModelError>,
) -> Result<Mapped, ModelError> {
    let path = folder.join(REQUESTS_FILE);
    let (file, (bytes, checksum)) = (open(&path)?, folded.requests);
    match file.len() as u64 == bytes && Checksum::of(&file) == checksum {
        true => Ok(file),
        false => Err(ModelError::damaged(&path, "its checksum is not that of the header")),
    }
}

/// The folder's real name, even if it is given as `.` or ends in `..`.
fn name_of(folder: &Path) -> String {
    let real = folder.canonicalize();
    let name = real.as_deref().unwrap_or(folder).file_name();
    name.map_or_else(|| "model".to_owned(), |name| name.to_string_lossy().into_owned())
}

impl HasTable for ModelStore {
    fn table(&self) -> Table<'_> {
        Self::table(self)
    }
}
