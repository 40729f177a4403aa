//! From files to model folders: fastText's models here, all others by the crate `model-store`.

use std::fs::File;
use std::io::{Read, Write};
use std::ops::ControlFlow;
use std::path::Path;

use model_store::prepare::{
    Input, MadeRows, OnProgress, PrepareOptions, Progress, Summary, prepare_made, read_unpacked,
};
use model_store::{Mapped, ModelError, NewEncoder, NewNgrams, NgramVectors};

use crate::{FastText, Layout, RowsAre, StaticModel};

/// Bytes that are unpacked together.
const TOGETHER: usize = 1 << 20;

/// Reads vectors and writes a model folder: as [`model_store::prepare::prepare_folder`], and also of
/// fastText's models (`.bin`, plain or compressed), whose folder gets the vectors of their n-grams,
/// and of folders of static models, whose rows are the tokens, and whose folder gets the tokeniser
/// and the rows as they are stored. A compressed fastText model is first unpacked beside `out`,
/// because it is mapped.
///
/// # Errors
/// As there; and if the input is a model of a kind that is not read.
pub fn prepare_folder(
    input: Input<'_>,
    out: &Path,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
) -> Result<Summary, ModelError> {
    let Input::File(path) = input else {
        return model_store::prepare::prepare_folder(input, out, options, on_progress);
    };
    if path.is_dir() && StaticModel::is_one(path) {
        let tokens = Tokens::open(path)?;
        return prepare_made(tokens.model.path(), &tokens, out, options, on_progress);
    }
    match fasttext_of(path, out, on_progress)? {
        None => model_store::prepare::prepare_folder(input, out, options, on_progress),
        Some(file) => {
            let model = FastText::from_mapped(path, file)?;
            prepare_made(path, &model, out, options, on_progress)
        }
    }
}

/// The fastText model that a file is, in memory or mapped; `None` if it is something else.
fn fasttext_of(
    path: &Path,
    out: &Path,
    on_progress: OnProgress<'_>,
) -> Result<Option<Mapped>, ModelError> {
    // The crate model-store names files that are missing, and says how to unpack archives.
    const ZIP: &[u8] = b"PK";
    if !path.metadata().is_ok_and(|metadata| metadata.is_file()) {
        return Ok(None);
    }
    let mut file = File::open(path).map_err(ModelError::io("open", path))?;
    let length = file.metadata().map_err(ModelError::io("read", path))?.len();
    let mut start = Vec::new();
    let read = (&mut file).take(FastText::MAGIC.len() as u64).read_to_end(&mut start);
    read.map_err(ModelError::io("read", path))?;
    if start == FastText::MAGIC {
        return Mapped::open(path).map(Some);
    }
    if start.starts_with(ZIP) {
        return Ok(None);
    }
    let unpacked = read_unpacked(Input::File(path), |unpacked| {
        let mut piece = Vec::new();
        if unpacked.fill(&mut piece, FastText::MAGIC.len()).is_err() || piece != FastText::MAGIC {
            // If it can't be read, whoever reads it next says why.
            return Ok(None);
        }
        // Where the model will be there is room for it. Without a name it is gone with its process.
        let folder = out.ancestors().skip(1).find(|folder| folder.is_dir());
        let folder = folder.unwrap_or(Path::new("."));
        let failed = |error| ModelError::io("unpack the file into", folder)(error);
        let mut file = tempfile::tempfile_in(folder).map_err(failed)?;
        loop {
            let goes_on = unpacked.fill(&mut piece, TOGETHER)?;
            file.write_all(&piece).map_err(failed)?;
            piece.clear();
            let bytes_read = unpacked.bytes_read();
            let progress = Progress { bytes_read, bytes_total: Some(length), rows: 0 };
            if on_progress(progress) == ControlFlow::Break(()) {
                return Err(ModelError::Cancelled);
            }
            if !goes_on {
                return Mapped::of_unnamed(file, path).map(Some);
            }
        }
    });
    unpacked?
}

impl MadeRows for FastText {
    fn format(&self) -> String {
        "fastText model".to_owned()
    }

    fn rows(&self) -> u32 {
        self.words()
    }

    fn dim(&self) -> usize {
        Self::dim(self)
    }

    fn word(&self, row: u32) -> (&[u8], u64) {
        (Self::word(self, row), self.byte(row))
    }

    fn vector(&self, row: u32, vector: &mut [f32]) {
        // By its row: of two words that are equal, the second has its own, too.
        self.vector_of_row(row, vector);
    }

    fn encoder(&self) -> Option<NewEncoder<'_>> {
        let lengths = self.training().lengths();
        let vectors = NgramVectors::Stored(self.bucket_rows());
        lengths.has_any().then_some(NewEncoder::Ngrams(NewNgrams { lengths, vectors }))
    }
}

/// The tokens of a static model as rows.
struct Tokens {
    model: StaticModel,
    /// Whose folder it is, for the model's provenance.
    format: String,
}

impl Tokens {
    fn open(folder: &Path) -> Result<Self, ModelError> {
        let model = StaticModel::open(folder)?;
        let whose = match model.layout() {
            Layout::Model2Vec => "Model2Vec",
            Layout::StaticEmbedding => "sentence-transformers",
        };
        let real = folder.canonicalize();
        let name = real.as_deref().unwrap_or(folder).file_name().unwrap_or_default();
        let format = format!("static model of {whose} in {}", name.to_string_lossy());
        Ok(Self { model, format })
    }
}

impl MadeRows for Tokens {
    fn format(&self) -> String {
        self.format.clone()
    }

    fn rows(&self) -> u32 {
        self.model.tokeniser().tokens().len() as u32
    }

    fn dim(&self) -> usize {
        self.model.dim()
    }

    fn word(&self, row: u32) -> (&[u8], u64) {
        (self.model.tokeniser().tokens()[row as usize].as_bytes(), row.into())
    }

    fn vector(&self, row: u32, vector: &mut [f32]) {
        self.model.token(row, vector);
    }

    fn encoder(&self) -> Option<NewEncoder<'_>> {
        Some(NewEncoder::Files(self.model.kept(RowsAre::Tokens)))
    }
}
