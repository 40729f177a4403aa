//! The folder of a model while it is being written.

use std::io::{BufWriter, IntoInnerError};
use std::path::Path;

use super::vectors_file::VectorsFile;
use crate::ModelError;
use crate::format::{INDEX_FILE, VECTORS_FILE, WORDS_FILE};
use crate::whole::{Kind, NewFolder};

static MODEL: Kind = Kind {
    files: &[VECTORS_FILE, WORDS_FILE, INDEX_FILE],
    is_other: "exists, but is not a model or holds other files too; choose another --out",
    is_taken: "already holds a model; choose another --out, or add --replace",
};

/// A model's folder that appears complete or not at all.
pub(crate) struct ModelFolder(NewFolder);

impl ModelFolder {
    /// Checks that `out` may be written.
    pub(crate) fn check(out: &Path, replace: bool) -> Result<(), ModelError> {
        NewFolder::check(&MODEL, out, replace)
    }

    /// Creates a folder that will become `out`. First checks that `out` may be written.
    pub(crate) fn beside(out: &Path, replace: bool) -> Result<Self, ModelError> {
        NewFolder::beside(&MODEL, out, replace).map(Self)
    }

    /// The file for the rows.
    pub(crate) fn create_vectors(&self) -> Result<BufWriter<VectorsFile>, ModelError> {
        let path = self.0.path().join(VECTORS_FILE);
        let file = VectorsFile::create(&path).map_err(ModelError::io("create", &path))?;
        Ok(BufWriter::with_capacity(1 << 20, file))
    }

    /// Writes the other files, syncs everything to disk, and moves the folder into place.
    pub(crate) fn complete(
        self,
        vectors: BufWriter<VectorsFile>,
        words: &[u8],
        index: &[u8],
    ) -> Result<(), ModelError> {
        vectors
            .into_inner()
            .map_err(IntoInnerError::into_error)
            .and_then(VectorsFile::finish)
            .map_err(ModelError::io("write", &self.0.path().join(VECTORS_FILE)))?;
        self.0.complete(&[(WORDS_FILE, words), (INDEX_FILE, index)])
    }
}
