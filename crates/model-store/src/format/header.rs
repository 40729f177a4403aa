//! The header of `vectors.safetensors`: writes and checks it.

use std::collections::{BTreeMap, HashMap};
use std::ops::Range;
use std::path::Path;

use safetensors::tensor::{Metadata, SafeTensorError, SafeTensors, TensorInfo};
use serde::Serialize;

use super::folded::{FOLDED, Folded};
use super::raise::{CHANGES, lowered};
use super::{Checksum, DATA_START, Layout, Provenance, TableId, format_version};
use crate::ModelError;
use crate::error::because;
use contract::Metric;

/// The header of `vectors.safetensors`: shapes, checksums, provenance.
#[derive(Debug, Clone, PartialEq)]
pub struct Header {
    /// Number of rows. Only a table that began without any, or a base of a fold, may have none.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// How a vector and a row become a score.
    pub metric: Metric,
    /// Size of `words.txt` in bytes.
    pub words_bytes: u64,
    /// Size of `words.fst` in bytes.
    pub index_bytes: u64,
    /// The checksums of all parts.
    pub checksums: Checksums,
    /// The number of a table that began without rows.
    pub table_id: Option<TableId>,
    /// What it is of a table, if it is the base of a fold.
    pub folded: Option<Folded>,
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
    /// The tensor `biases`, if the model has it. Only models under [`Metric::Dot`] do.
    pub biases: Option<Checksum>,
    /// The file `attributes/attributes.json`, which has the checksums of the files beside it, if
    /// the model has attributes.
    pub attributes: Option<Checksum>,
    /// The file `encoder/encoder.json`, which has the checksums of the files beside it, if the model
    /// has an encoder, or weights of words in texts.
    pub encoder: Option<Checksum>,
}

const HEADER_CHECKSUM: &str = "checksum_header";
const ATTRIBUTES: &str = "checksum_attributes";
const ENCODER: &str = "checksum_encoder";
const TABLE_ID: &str = "table_id";

impl Header {
    /// The model's version: that of the content from which positions count. A fold keeps it; until
    /// then it is that of the [`content`](Self::content).
    pub fn version(&self) -> String {
        self.folded.as_ref().map_or_else(|| self.content(), |folded| folded.version.clone())
    }

    /// The version of the content of these files: the first 16 hexadecimal digits of a BLAKE3 hash of its shape and of
    /// the checksums of all its parts, under the dot product also of the metric. Models with the
    /// same words, numbers and attributes have the same version, no matter when and from which file
    /// they were prepared. Tables that began without rows have a version each.
    pub fn content(&self) -> String {
        let Checksums { vectors, norms, word_offsets, words, index, biases, attributes, encoder } =
            self.checksums;
        let parts = [vectors, norms, word_offsets, words, index].map(|part| part.to_string());
        let mut content = format!("{} {} {}", self.rows, self.dim, parts.join(" "));
        // Cosine models keep the versions that they had before there were metrics.
        if self.metric != Metric::Cosine {
            content += &format!(" {}", self.metric.name());
        }
        if let Some(biases) = biases {
            content += &format!(" {biases}");
        }
        // Models without attributes keep the versions that they had before there were any.
        if let Some(attributes) = attributes {
            content += &format!(" attributes {attributes}");
        }
        if let Some(encoder) = encoder {
            content += &format!(" encoder {encoder}");
        }
        if let Some(id) = self.table_id {
            content += &format!(" table {id}");
        }
        if let Some(folded) = &self.folded {
            content += &format!(" folded {} {}", folded.version, folded.rows);
        }
        blake3::hash(content.as_bytes()).to_hex()[..16].to_owned()
    }

    pub(crate) fn layout(&self) -> Layout {
        let (has_biases, has_numbers) = (self.checksums.biases.is_some(), self.folded.is_some());
        Layout::new(self.rows, self.dim, has_biases, has_numbers)
            .expect("a header's numbers are checked when it is made")
    }

    /// The first [`DATA_START`] bytes of the file: length, JSON, padding.
    ///
    /// `None` if it does not fit. A file name has at most 255 bytes on any system, and all other
    /// texts are short and our own, so this only happens for a manipulated header.
    pub fn to_bytes(&self) -> Option<Vec<u8>> {
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
        if self.checksums.biases.is_some() {
            header.insert("biases", TensorEntry::new("F32", vec![self.rows], &layout.biases));
        }
        if self.folded.is_some() {
            header.insert("rows", TensorEntry::new("U32", vec![self.rows], &layout.numbers));
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
        match Self::of_base(path, file)? {
            (header, false) => Ok(header),
            (_, true) => Err(ModelError::HasChanges { path: path.to_owned() }),
        }
    }

    /// The header of a model that may have changes beside it, and whether it has.
    ///
    /// # Errors
    /// If it is no header of a model, or says what can't be.
    pub fn of_base(path: &Path, file: &[u8]) -> Result<(Self, bool), ModelError> {
        let not_a_model =
            |reason: &str| ModelError::NotAModel { path: path.to_owned(), reason: reason.into() };
        let metadata = read_safetensors_header(path, file)?;
        let texts =
            metadata.metadata().as_ref().ok_or_else(|| not_a_model("it has no metadata"))?;
        let found = texts
            .get("kindred_format")
            .ok_or_else(|| not_a_model("it was not written by kindred"))?;
        let (head, has_changes) = lowered(&file[..file.len().min(DATA_START)]);
        let changes = if has_changes { u32::from(CHANGES) } else { 0 };
        let is_folded = texts.contains_key("generation");
        let raised = changes + if is_folded { FOLDED } else { 0 };
        let is_found = |metric: &Metric| *found == (format_version(*metric) + raised).to_string();
        let Some(metric) = Metric::ALL.into_iter().find(is_found) else {
            let (path, found) = (path.to_owned(), found.clone());
            let versions = Metric::ALL.map(|metric| format_version(metric).to_string());
            return Err(ModelError::Version { path, found, supported: versions.join(" and ") });
        };
        let header = Self::from_texts(texts, metric, metadata.info("vectors"))
            .map_err(|reason| ModelError::damaged(path, reason))?;
        let expected = (DATA_START + header.layout().end()) as u64;
        if file.len() as u64 != expected {
            let (path, found) = (path.to_owned(), file.len() as u64);
            return Err(ModelError::Size { path, found, expected });
        }
        // Writing the parsed header again, with its checksum, must give the same bytes.
        if header.to_bytes().as_deref() != Some(&*head) {
            return Err(ModelError::damaged(path, "its header was changed after it was written"));
        }
        Ok((header, has_changes))
    }

    fn from_texts(
        texts: &HashMap<String, String>,
        metric: Metric,
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
        // Only a format that has metrics says which.
        if metric != Metric::Cosine && text("metric")? != metric.name() {
            return Err(format!("its metric is not `{}`", metric.name()));
        }
        let has_biases = metric == Metric::Dot && texts.contains_key("checksum_biases");
        let has_attributes = texts.contains_key(ATTRIBUTES);
        let has_encoder = texts.contains_key(ENCODER);
        let table_id = texts.get(TABLE_ID).map(|id| id.parse()).transpose()?;
        let folded = texts.contains_key("generation").then(|| Folded::from_texts(texts));
        let folded = folded.transpose()?;
        let has_size = Layout::new(rows, dim, has_biases, folded.is_some()).is_some();
        let is_empty = rows == 0 && table_id.is_none() && folded.is_none();
        if is_empty || dim == 0 || u32::try_from(rows).is_err() || !has_size {
            return Err(format!("a table of {rows} × {dim} is impossible"));
        }
        Ok(Self {
            rows,
            dim,
            metric,
            words_bytes: number("words_txt_bytes")?,
            index_bytes: number("words_fst_bytes")?,
            checksums: Checksums {
                vectors: checksum("checksum_vectors")?,
                norms: checksum("checksum_norms")?,
                word_offsets: checksum("checksum_word_offsets")?,
                words: checksum("checksum_words_txt")?,
                index: checksum("checksum_words_fst")?,
                biases: has_biases.then(|| checksum("checksum_biases")).transpose()?,
                attributes: has_attributes.then(|| checksum(ATTRIBUTES)).transpose()?,
                encoder: has_encoder.then(|| checksum(ENCODER)).transpose()?,
            },
            table_id,
            folded,
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
        let raised = if self.folded.is_some() { FOLDED } else { 0 };
        let mut texts: BTreeMap<String, String> = [
            ("kindred_format", (format_version(self.metric) + raised).to_string()),
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
        .into();
        if self.metric != Metric::Cosine {
            texts.insert("metric".into(), self.metric.name().into());
        }
        if let Some(biases) = sums.biases {
            texts.insert("checksum_biases".into(), biases.to_string());
        }
        if let Some(attributes) = sums.attributes {
            texts.insert(ATTRIBUTES.into(), attributes.to_string());
        }
        if let Some(encoder) = sums.encoder {
            texts.insert(ENCODER.into(), encoder.to_string());
        }
        if let Some(id) = self.table_id {
            texts.insert(TABLE_ID.into(), id.to_string());
        }
        let of_fold = self.folded.iter().flat_map(Folded::texts);
        texts.extend(of_fold.map(|(key, text)| (key.to_owned(), text)));
        texts
    }

    /// The checksum of shape and metadata, stored in the metadata.
    fn own_checksum(&self, metadata: &BTreeMap<String, String>) -> String {
        let content = serde_json::to_string(&(self.rows, self.dim, metadata));
        Checksum::of(content.expect("texts and numbers become JSON").as_bytes()).to_string()
    }
}

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
            reason: because(format!("its safetensors header can't be read ({e})"), e),
        }),
    }
}
