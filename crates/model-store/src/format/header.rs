use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;
use std::time::SystemTime;

use safetensors::tensor::{Metadata, SafeTensorError, SafeTensors, TensorInfo};
use serde::Serialize;

use super::{Checksum, DATA_START, FORMAT_VERSION};
use crate::ModelError;

/// The header of `vectors.safetensors`: shapes, checksums, provenance.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Number of rows.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// Size of `words.txt` in bytes.
    pub words_bytes: u64,
    /// Size of `words.fst` in bytes.
    pub index_bytes: u64,
    /// The checksums of all parts.
    pub checksums: Checksums,
    /// Where the model came from.
    pub provenance: Provenance,
}

/// Checksums of the parts of a model. The header contains its own checksum.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Checksums {
    /// The tensor `vectors`.
    pub vectors: Checksum,
    /// The tensor `norms`.
    pub norms: Checksum,
    /// The tensor `word_offsets`.
    pub word_offsets: Checksum,
    /// The file `words.txt`.
    pub words: Checksum,
    /// The file `words.fst`.
    pub index: Checksum,
}

/// The provenance of a model, and what was skipped.
#[derive(Debug, Clone, PartialEq)]
pub struct Provenance {
    /// Name of the vectors file, without its folder.
    pub source: String,
    /// Its format, such as `glove text` or `glove text, gzip`.
    pub source_format: String,
    /// Its size on disk, in bytes.
    pub source_bytes: u64,
    /// Its checksum on disk.
    pub source_checksum: Checksum,
    /// Program and version that wrote the model.
    pub prepared_by: String,
    /// When, in RFC 3339, UTC.
    pub prepared_at: String,
    /// Number of lines skipped because they were invalid (`--skip-bad-rows`).
    pub bad_rows_skipped: u64,
    /// Number of lines skipped because their word was a repetition.
    pub duplicate_words_dropped: u64,
}

impl Provenance {
    /// The provenance of rows that were never in a file.
    pub fn of_memory(source: &str) -> Self {
        Self {
            source: source.to_owned(),
            source_format: "memory".to_owned(),
            source_bytes: 0,
            source_checksum: Checksum::of(&[]),
            prepared_by: Self::this_program(),
            prepared_at: Self::now(),
            bad_rows_skipped: 0,
            duplicate_words_dropped: 0,
        }
    }

    /// The value of `prepared_by`.
    pub(crate) fn this_program() -> String {
        concat!("kindred ", env!("CARGO_PKG_VERSION")).to_owned()
    }

    /// The value of `prepared_at`.
    pub(crate) fn now() -> String {
        humantime::format_rfc3339_seconds(SystemTime::now()).to_string()
    }
}

/// The position of a tensor's bytes, relative to [`DATA_START`], as in safetensors.
pub(crate) struct Layout {
    pub(crate) vectors: Range<usize>,
    pub(crate) alignment: Range<usize>,
    pub(crate) norms: Range<usize>,
    pub(crate) word_offsets: Range<usize>,
}

impl Layout {
    /// `None` if the sizes overflow.
    pub(crate) fn new(rows: usize, dim: usize) -> Option<Self> {
        let vectors = rows.checked_mul(dim)?.checked_mul(size_of::<f32>())?;
        // `norms` is aligned to 8 bytes. After an odd number of float32, 4 bytes fill the
        // gap, in a separate tensor, because safetensors allows no holes.
        let norms = vectors.checked_next_multiple_of(align_of::<f64>())?;
        let word_offsets = norms.checked_add(rows.checked_mul(size_of::<f64>())?)?;
        let end = word_offsets.checked_add((rows + 1).checked_mul(size_of::<u64>())?)?;
        end.checked_add(DATA_START)?;
        Some(Self {
            vectors: 0..vectors,
            alignment: vectors..norms,
            norms: norms..word_offsets,
            word_offsets: word_offsets..end,
        })
    }

    fn end(&self) -> usize {
        self.word_offsets.end
    }
}

const HEADER_CHECKSUM: &str = "checksum_header";

impl Header {
    /// The model's version: the first 16 hexadecimal digits of a BLAKE3 hash of its shape and of the
    /// checksums of all its parts. Models with the same words and numbers have the same version, no matter when
    /// and from which file they were prepared.
    pub fn version(&self) -> String {
        let Checksums { vectors, norms, word_offsets, words, index } = self.checksums;
        let parts = [vectors, norms, word_offsets, words, index].map(|part| part.to_string());
        let content = format!("{} {} {}", self.rows, self.dim, parts.join(" "));
        blake3::hash(content.as_bytes()).to_hex()[..16].to_owned()
    }

    pub(crate) fn layout(&self) -> Layout {
        Layout::new(self.rows, self.dim).expect("a header's numbers are checked when it is made")
    }

    /// The first [`DATA_START`] bytes of the file: length, JSON, padding.
    ///
    /// `None` if it does not fit. A file name has at most 255 bytes on any system, and all other texts are short and
    /// our own, so this only happens for a manipulated header.
    pub(crate) fn to_bytes(&self) -> Option<Vec<u8>> {
        let mut metadata = self.metadata();
        metadata.insert(HEADER_CHECKSUM.into(), self.own_checksum(&metadata));
        let layout = self.layout();
        // Both have a fixed order, so the same header always gives the same bytes.
        let mut header = BTreeMap::from([
            ("vectors", TensorEntry::new("F32", vec![self.rows, self.dim], &layout.vectors)),
            ("norms", TensorEntry::new("F64", vec![self.rows], &layout.norms)),
            ("word_offsets", TensorEntry::new("U64", vec![self.rows + 1], &layout.word_offsets)),
        ]);
        if !layout.alignment.is_empty() {
            let bytes = layout.alignment.len();
            header.insert("alignment", TensorEntry::new("U8", vec![bytes], &layout.alignment));
        }
        let header = WholeHeader { metadata: &metadata, tensors: header };
        let json = serde_json::to_string(&header).expect("texts and numbers become JSON");
        let room = DATA_START - size_of::<u64>();
        if json.len() > room {
            return None;
        }
        let mut bytes = (room as u64).to_le_bytes().to_vec();
        bytes.extend_from_slice(json.as_bytes());
        bytes.resize(DATA_START, b' ');
        Some(bytes)
    }

    /// Reads and checks the header of a file. Cheap: reads nothing after the header.
    pub(crate) fn from_file(path: &Path, file: &[u8]) -> Result<Self, ModelError> {
        let not_a_model = |reason: String| ModelError::NotAModel { path: path.to_owned(), reason };
        let metadata = read_safetensors_header(path, file)?;
        let texts =
            metadata.metadata().as_ref().ok_or_else(|| not_a_model("it has no metadata".into()))?;
        let found = texts
            .get("kindred_format")
            .ok_or_else(|| not_a_model("it was not written by kindred".into()))?;
        if *found != FORMAT_VERSION.to_string() {
            let (path, found) = (path.to_owned(), found.clone());
            return Err(ModelError::Version { path, found, supported: FORMAT_VERSION });
        }

        let header = Self::from_texts(texts, metadata.info("vectors"))
            .map_err(|reason| ModelError::damaged(path, reason))?;
        let expected = (DATA_START + header.layout().end()) as u64;
        if file.len() as u64 != expected {
            let (path, found) = (path.to_owned(), file.len() as u64);
            return Err(ModelError::Size { path, found, expected });
        }
        // Writing the parsed header again, with its checksum, must give the same bytes.
        if header.to_bytes().as_deref() != Some(&file[..DATA_START]) {
            return Err(ModelError::damaged(path, "its header was changed after it was written"));
        }
        Ok(header)
    }

    fn from_texts(
        texts: &HashMap<String, String>,
        vectors: Option<&TensorInfo>,
    ) -> Result<Self, String> {
        let text = |key: &str| -> Result<String, String> {
            texts.get(key).cloned().ok_or_else(|| format!("its metadata has no `{key}`"))
        };
        let number = |key: &str| -> Result<u64, String> {
            text(key)?.parse().map_err(|_| format!("`{key}` in its metadata is not a number"))
        };
        let checksum = |key: &str| text(key)?.parse::<Checksum>();
        let &[rows, dim] = vectors.map_or(&[][..], |info| &info.shape[..]) else {
            return Err("it has no two-dimensional tensor `vectors`".into());
        };
        if rows == 0 || dim == 0 || u32::try_from(rows).is_err() || Layout::new(rows, dim).is_none()
        {
            return Err(format!("a table of {rows} × {dim} is impossible"));
        }
        Ok(Self {
            rows,
            dim,
            words_bytes: number("words_txt_bytes")?,
            index_bytes: number("words_fst_bytes")?,
            checksums: Checksums {
                vectors: checksum("checksum_vectors")?,
                norms: checksum("checksum_norms")?,
                word_offsets: checksum("checksum_word_offsets")?,
                words: checksum("checksum_words_txt")?,
                index: checksum("checksum_words_fst")?,
            },
            provenance: Provenance {
                source: text("source")?,
                source_format: text("source_format")?,
                source_bytes: number("source_bytes")?,
                source_checksum: checksum("source_checksum")?,
                prepared_by: text("prepared_by")?,
                prepared_at: text("prepared_at")?,
                bad_rows_skipped: number("bad_rows_skipped")?,
                duplicate_words_dropped: number("duplicate_words_dropped")?,
            },
        })
    }

    fn metadata(&self) -> BTreeMap<String, String> {
        let (sums, from) = (&self.checksums, &self.provenance);
        [
            ("kindred_format", FORMAT_VERSION.to_string()),
            ("words_txt_bytes", self.words_bytes.to_string()),
            ("words_fst_bytes", self.index_bytes.to_string()),
            ("checksum_vectors", sums.vectors.to_string()),
            ("checksum_norms", sums.norms.to_string()),
            ("checksum_word_offsets", sums.word_offsets.to_string()),
            ("checksum_words_txt", sums.words.to_string()),
            ("checksum_words_fst", sums.index.to_string()),
            ("source", from.source.clone()),
            ("source_format", from.source_format.clone()),
            ("source_bytes", from.source_bytes.to_string()),
            ("source_checksum", from.source_checksum.to_string()),
            ("prepared_by", from.prepared_by.clone()),
            ("prepared_at", from.prepared_at.clone()),
            ("bad_rows_skipped", from.bad_rows_skipped.to_string()),
            ("duplicate_words_dropped", from.duplicate_words_dropped.to_string()),
        ]
        .map(|(key, value)| (key.to_owned(), value))
        .into()
    }

    /// The checksum of shape and metadata, stored in the metadata.
    fn own_checksum(&self, metadata: &BTreeMap<String, String>) -> String {
        let content = serde_json::to_string(&(self.rows, self.dim, metadata));
        Checksum::of(content.expect("texts and numbers become JSON").as_bytes()).to_string()
    }
}

/// The header as JSON.
#[derive(Serialize)]
struct WholeHeader<'a> {
    #[serde(rename = "__metadata__")]
    metadata: &'a BTreeMap<String, String>,
    #[serde(flatten)]
    tensors: BTreeMap<&'static str, TensorEntry>,
}

#[derive(Serialize)]
struct TensorEntry {
    dtype: &'static str,
    shape: Vec<usize>,
    data_offsets: [usize; 2],
}

impl TensorEntry {
    fn new(dtype: &'static str, shape: Vec<usize>, range: &Range<usize>) -> Self {
        Self { dtype, shape, data_offsets: [range.start, range.end] }
    }
}

fn read_safetensors_header(path: &Path, file: &[u8]) -> Result<Metadata, ModelError> {
    match SafeTensors::read_metadata(file) {
        Ok((_, metadata)) => Ok(metadata),
        // The header is complete, but the data is shorter than it says.
        Err(SafeTensorError::MetadataIncompleteBuffer) => Err(ModelError::damaged(
            path,
            format!("its size of {} bytes contradicts its header", file.len()),
        )),
        Err(SafeTensorError::HeaderTooSmall | SafeTensorError::InvalidHeaderLength) => {
            Err(ModelError::damaged(
                path,
                format!("it ends inside its header, after {} bytes", file.len()),
            ))
        }
        Err(e) => Err(ModelError::NotAModel {
            path: path.to_owned(),
            reason: format!("its safetensors header can't be read ({e})"),
        }),
    }
}
