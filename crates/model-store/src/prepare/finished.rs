//! Ends a preparation: what belongs to rows that are all written, and their folder.

use std::io::{self, BufWriter, Seek, Write};

use super::attributes::ModelRows;
use super::beside::Beside;
use super::encoding::TextEncoding;
use super::folder::VectorsFile;
use super::formats::RecordUnit;
use super::rows::Rows;
use super::unpack::file_name;
use super::{ModelFolder, ModelWriter, Summary};
use crate::ModelError;
use crate::attributes::AttributeFiles;
use crate::encoder::NewEncoder;
use crate::format::Provenance;

/// A model whose rows are written, and what else belongs to it.
pub(super) struct Finished<W> {
    pub(super) writer: ModelWriter<W>,
    pub(super) summary: Summary,
    pub(super) attributes: Option<AttributeFiles>,
    /// The weights of the rows in texts.
    weights: Option<Vec<f64>>,
}

impl Finished<BufWriter<VectorsFile>> {
    /// Writes the other files, with this encoder, and moves the folder into place.
    pub(super) fn complete(
        self,
        folder: ModelFolder,
        encoder: Option<&NewEncoder<'_>>,
        can_not_write: impl Fn(io::Error) -> ModelError,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<Summary, ModelError> {
        let Self { mut writer, mut summary, attributes, weights } = self;
        if encoder.is_some() || weights.is_some() {
            let weights = weights.as_deref();
            let sum = folder.write_encoder(encoder, weights, writer.dim(), goes_on)?;
            writer = writer.with_encoder(sum);
        }
        if let Some(NewEncoder::Ngrams(ngrams)) = encoder {
            summary.ngrams = Some(ngrams.lengths.buckets);
        }
        let written = writer.finish(summary.provenance.clone());
        let (vectors, words, index) = written.map_err(can_not_write)?;
        folder.complete(vectors, &words, &index, attributes.as_ref())?;
        Ok(summary)
    }
}

impl<W: Write + Seek> Rows<'_, W> {
    /// Ends the rows, after so many records.
    pub(super) fn finish(mut self, records: u64) -> Result<Finished<W>, ModelError> {
        let (is_start, dropped) = (self.first_rows.is_some(), self.dropped.take());
        let (source, Beside { biases, attributes, weighting }) =
            (file_name(&self.so_far.path), std::mem::take(&mut self.beside));
        if let Some(biases) = biases.as_ref().filter(|_| !is_start) {
            biases.check_end(records, &self.so_far.path)?;
        }
        let beside_rows = biases.map(|biases| format!(" with biases in {}", biases.name()));
        let (mut writer, mut summary) = self.end_rows(beside_rows)?;
        let format = &mut summary.provenance.source_format;
        let (mut files, mut weights) = (None, None);
        if let Some(weighting) = weighting {
            *format += &format!(", weights of texts: {}", weighting.name());
            weights = Some(weighting.of(writer.words())?);
        }
        if let Some(attributes) = attributes {
            let rows = ModelRows {
                source,
                records,
                is_start,
                are_missing: is_start || summary.provenance.bad_rows_skipped > 0,
                dropped: dropped.unwrap_or_default(),
                rows: writer.rows(),
            };
            *format += &format!(", attributes of {}", attributes.name());
            let joined = attributes.of_rows(&rows, |word| writer.row(word))?;
            summary.attributes = joined.descriptions;
            summary.warnings.extend(joined.warning);
            writer = writer.with_attributes(joined.files.checksum());
            files = Some(joined.files);
        }
        Ok(Finished { writer, summary, attributes: files, weights })
    }

    /// Whether the rows are those of a model, and what they are; `beside_rows` names the files beside
    /// their own.
    fn end_rows(
        self,
        beside_rows: Option<String>,
    ) -> Result<(ModelWriter<W>, Summary), ModelError> {
        let about_line_1 = match (self.unit, &self.first_bad) {
            (RecordUnit::Line { .. }, Some((1, reason))) => self.about_line_1(reason),
            _ => "",
        };
        let Self { writer, options, so_far, column, mut warnings, .. } = self;
        let Self { first_rows, first_bad, bad, repeated, .. } = self;
        let unit = self.unit.name();
        if writer.rows() == 0 {
            return Err(so_far.bad(match first_bad {
                None => "it has no rows".into(),
                Some((number, reason)) => {
                    format!(
                        "every {unit} is invalid; the first, {unit} {number}: \
                         {reason}{about_line_1}"
                    )
                }
            }));
        }
        let kept = writer.rows() as u64 + repeated;
        if let Some((number, reason)) = first_bad.as_ref().filter(|_| bad > kept) {
            return Err(so_far.bad(format!(
                "{bad} of {} {unit}s are invalid, so it is hardly a file of word vectors; the first, \
                 {unit} {number}: {reason}; check what the file is, and if only line 1 differs from the \
                 others, give --dim",
                bad + kept
            )));
        }
        if let Some(reason) = column.and_then(|column| column.reason(repeated)) {
            return Err(so_far.bad(reason));
        }
        warnings.extend(self.signs.and_then(|signs| signs.warning()));
        let (source_bytes, source_checksum) = so_far.finish()?;
        let mut format = self.description;
        if let Some(words) = &options.words {
            format += &format!(" with words in {}", file_name(words));
        }
        format += beside_rows.as_deref().unwrap_or_default();
        if let Some(encoding) = options.encoding.and_then(TextEncoding::other_than_utf8) {
            format += &format!(", {encoding}");
        }
        if let Some(packing) = so_far.packing {
            format += &format!(", {packing}");
            let zeros = so_far.padding();
            if zeros > 0 {
                let after = format!("after its {packing} data ({zeros})");
                warnings.push(format!("the zero bytes {after} were left out"));
            }
        }
        if let Some(rows) = first_rows {
            format += &format!(", first {rows} rows");
        }
        let provenance = Provenance {
            source_format: format,
            source_bytes,
            source_checksum,
            bad_rows_skipped: bad,
            duplicate_words_dropped: repeated,
            ..Provenance::of_memory(&file_name(&so_far.path))
        };
        let first_bad_row = first_bad.map(|(number, reason)| format!("{unit} {number}: {reason}"));
        let (rows, dim) = (writer.rows(), writer.dim());
        let (attributes, ngrams, resumed) = (Vec::new(), None, 0);
        let summary =
            Summary { rows, dim, first_bad_row, attributes, ngrams, resumed, warnings, provenance };
        Ok((writer, summary))
    }
}
