//! The folder of a model while it is being written.

use std::fs::File;
use std::io::{self, BufWriter, IntoInnerError, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use crate::ModelError;
use crate::attributes::{AttributeFiles, is_own_file};
use crate::encoder::{self, ENCODER_FOLDER, NewEncoder};
use crate::format::{
    ATTRIBUTES_FOLDER, CHANGES_FOLDER, Checksum, INDEX_FILE, NEW_POINTER_FILE, REQUESTS_FILE,
    VECTORS_FILE, WORDS_FILE, is_base_or_unfinished,
};
use crate::whole::{FolderKind, InnerFolder, NewFolder, Replace};

static MODEL: FolderKind = FolderKind {
    files: &[VECTORS_FILE, WORDS_FILE, INDEX_FILE, NEW_POINTER_FILE],
    inner: &[
        InnerFolder { name: ATTRIBUTES_FOLDER, is_own: is_own_file, changes: None },
        InnerFolder { name: ENCODER_FOLDER, is_own: encoder::is_own_file, changes: None },
        InnerFolder {
            name: CHANGES_FOLDER,
            is_own: |name| name == "lock" || name.ends_with(".log") || name.ends_with(".log.new"),
            changes: Some((|name| name.ends_with(".log"), IS_CHANGED)),
        },
    ],
    nested: Some((is_base_or_unfinished, &BASE)),
    is_other: MODEL_IS_OTHER,
    is_taken: MODEL_IS_TAKEN,
};

/// A base that a fold has made, in the folder of a model.
static BASE: FolderKind = FolderKind {
    files: &[VECTORS_FILE, WORDS_FILE, INDEX_FILE, REQUESTS_FILE],
    inner: &[InnerFolder { name: ATTRIBUTES_FOLDER, is_own: is_own_file, changes: None }],
    nested: None,
    is_other: MODEL_IS_OTHER,
    is_taken: MODEL_IS_TAKEN,
};

const MODEL_IS_OTHER: &str =
    "exists, but is not a model or holds other files too; choose another --out";
const MODEL_IS_TAKEN: &str = "already holds a model; choose another --out, or add --replace";
const IS_CHANGED: &str = "holds a model whose rows were changed, and the changes would be lost with \
                          it; choose another --out, or add --discard-changes";

/// A model's folder that appears complete or not at all.
pub(crate) struct ModelFolder(NewFolder);

impl ModelFolder {
    /// Checks that `out` may be written.
    pub(crate) fn check(out: &Path, replace: Replace) -> Result<(), ModelError> {
        NewFolder::check(&MODEL, out, replace)
    }

    /// Creates a folder that will become `out`. First checks that `out` may be written.
    pub(crate) fn beside(out: &Path, replace: Replace) -> Result<Self, ModelError> {
        NewFolder::beside(&MODEL, out, replace).map(Self)
    }

    /// The file for the rows.
    pub(crate) fn create_vectors(&self) -> Result<BufWriter<VectorsFile>, ModelError> {
        let path = self.0.path().join(VECTORS_FILE);
        let file = VectorsFile::create(&path).map_err(ModelError::io("create", &path))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    }

    /// Writes the encoder of a model with vectors of `dim` components, and the weights of its rows in
    /// texts: one of them or both. Returns the checksum of the description.
    pub(crate) fn write_encoder(
        &self,
        new: Option<&NewEncoder<'_>>,
        weights: Option<&[f64]>,
        dim: usize,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Checksum, ModelError> {
        encoder::write(new, weights, &self.0.path().join(ENCODER_FOLDER), dim, goes_on)
    }

    /// Writes the other files, syncs everything to disk, and moves the folder into place.
    pub(crate) fn complete(
        self,
        vectors: BufWriter<VectorsFile>,
        words: &[u8],
        index: &[u8],
        attributes: Option<&AttributeFiles>,
    ) -> Result<(), ModelError> {
        if let Some(attributes) = attributes {
            self.0.write_folder(ATTRIBUTES_FOLDER, attributes.files())?;
        }
        vectors
            .into_inner()
            .map_err(IntoInnerError::into_error)
            .and_then(VectorsFile::finish)
            .map_err(ModelError::io("write", &self.0.path().join(VECTORS_FILE)))?;
        self.0.complete(&[(WORDS_FILE, words), (INDEX_FILE, index)])
    }
}

/// After this many bytes, write-back is started.
const BETWEEN_SYNCS: u64 = 128 << 20;

/// Writes a large file. While it is being written, a separate thread waits for the disk, so that
/// the end of a preparation does not have to wait for everything.
pub(crate) struct VectorsFile {
    file: File,
    unsynced: u64,
    syncing: Option<Syncing>,
}

struct Syncing {
    wake: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl VectorsFile {
    fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create_new(path)?, unsynced: 0, syncing: None })
    }

    fn start_syncing(&self) -> io::Result<Syncing> {
        let file = self.file.try_clone()?;
        let (wake, woken) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("kindred-sync".into())
            .spawn(move || woken.iter().try_for_each(|()| file.sync_data()))?;
        Ok(Syncing { wake, thread })
    }

    /// Waits until everything is on disk.
    fn finish(mut self) -> io::Result<()> {
        if let Some(Syncing { wake, thread }) = self.syncing.take() {
            drop(wake);
            thread.join().unwrap_or_else(|_| {
                Err(io::Error::other("the thread that syncs the file panicked"))
            })?;
        }
        self.file.sync_all()
    }
}

impl Write for VectorsFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written as u64;
        if self.unsynced >= BETWEEN_SYNCS {
            self.unsynced = 0;
            let syncing = match &self.syncing {
                Some(syncing) => syncing,
                None => self.syncing.insert(self.start_syncing()?),
            };
            // If it is still busy, it handles this with the next request.
            let _ = syncing.wake.try_send(());
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for VectorsFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
