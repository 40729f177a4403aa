//! Writes a synthetic model folder on all cores.

use std::io::{self, Cursor, Seek, Write};
use std::ops::ControlFlow;
use std::path::Path;

use super::{Synth, ngrams, word};
use crate::ModelError;
use crate::attributes::AttributeFiles;
use crate::encoder::{NewEncoder, NewNgrams, NgramVectors};
use crate::format::Provenance;
use crate::prepare::{ModelFiles, ModelFolder, ModelWriter};
use contract::Metric;

/// Rows computed together, on all cores, before they are written.
const ROWS_PER_CHUNK: usize = 16_384;

/// Maximum number of components computed together: 128 MiB.
const COMPONENTS_PER_CHUNK: usize = 32 << 20;

/// The number of rows of a table computed together.
pub(super) fn rows_per_chunk(dim: usize) -> usize {
    ROWS_PER_CHUNK.min(COMPONENTS_PER_CHUNK / dim).max(1)
}

/// The parameters of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct SynthOptions {
    /// Number of rows, above zero.
    pub rows: u32,
    /// Components in a row, 1 to [`MAX_DIM`](crate::prepare::MAX_DIM).
    pub dim: usize,
    /// The seed.
    pub seed: u64,
    /// Under [`Metric::Dot`] there are biases.
    pub metric: Metric,
    /// Whether the rows have attributes: an integer and a keyword.
    pub attributes: bool,
    /// How many vectors n-grams share; with 0, words that are no rows have no vectors. Only for
    /// folders.
    pub buckets: u32,
}

/// Writes a synthetic model folder, complete or not at all. Calls `on_progress` with the number of
/// rows written from time to time; a break cancels the work.
///
/// # Errors
/// If `out` exists (unless it is a model and `replace` is set), or can't be written.
///
/// # Panics
/// If there are no rows or no components.
pub fn synth_folder(
    options: SynthOptions,
    out: &Path,
    replace: bool,
    on_progress: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> Result<(), ModelError> {
    let folder = ModelFolder::beside(out, replace.into())?;
    let can_not_write = |e| ModelError::io("write the model to", out)(e);
    let vectors = folder.create_vectors()?;
    let written = write(options, vectors, on_progress).map_err(can_not_write)?;
    let Some((mut writer, attributes)) = written else { return Err(ModelError::Cancelled) };
    if options.buckets > 0 {
        let synth = options.synth();
        let make = |first: u32, vectors: &mut [f32]| synth.fill_ngrams(first, vectors);
        let (lengths, vectors) = (ngrams::lengths(options.buckets), NgramVectors::Made(&make));
        let encoder = NewEncoder::Ngrams(NewNgrams { lengths, vectors });
        let mut goes_on = || on_progress(options.rows).is_continue();
        let sum = folder.write_encoder(Some(&encoder), None, options.dim, &mut goes_on)?;
        writer = writer.with_encoder(sum);
    }
    let (vectors, words, index) = writer.finish(provenance(options)).map_err(can_not_write)?;
    folder.complete(vectors, &words, &index, attributes.as_ref())?;
    Ok(())
}

/// The same in memory.
///
/// # Errors
/// If there is no memory left.
///
/// # Panics
/// As [`synth_folder`]; and if n-grams are to have vectors, which only folders have.
pub fn synth_in_memory(options: SynthOptions) -> io::Result<ModelFiles> {
    assert_eq!(options.buckets, 0, "a model in memory has no vectors of n-grams");
    let on_progress = &mut |_| ControlFlow::Continue(());
    let written = write(options, Cursor::new(Vec::new()), on_progress)?;
    let (writer, attributes) = written.expect("nothing broke the work off");
    let (vectors, words, index) = writer.finish(provenance(options))?;
    Ok(ModelFiles { vectors: vectors.into_inner(), words, index, attributes })
}

fn provenance(options: SynthOptions) -> Provenance {
    let SynthOptions { rows, dim, seed, metric, attributes, buckets } = options;
    let metric = match metric {
        Metric::Cosine => String::new(),
        Metric::Dot => format!(" --metric {}", metric.name()),
    };
    let attributes = if attributes { " --attributes" } else { "" };
    let buckets = match buckets {
        0 => String::new(),
        buckets => format!(" --buckets {buckets}"),
    };
    Provenance {
        source_format: "synthetic".to_owned(),
        ..Provenance::of_memory(&format!(
            "synth --rows {rows} --dim {dim} --seed {seed}{metric}{attributes}{buckets}"
        ))
    }
}

impl SynthOptions {
    fn synth(&self) -> Synth {
        Synth::new(self.rows, self.dim, self.seed).under(self.metric)
    }
}

fn write<W: Write + Seek>(
    options: SynthOptions,
    out: W,
    on_progress: &mut dyn FnMut(u32) -> ControlFlow<()>,
) -> io::Result<Option<(ModelWriter<W>, Option<AttributeFiles>)>> {
    let SynthOptions { rows, dim, metric, attributes, .. } = options;
    let synth = options.synth();
    let mut writer = ModelWriter::new(out, dim, metric)?;
    let rows_per_chunk = rows_per_chunk(dim);
    let mut chunk = vec![0.0; rows_per_chunk.min(rows as usize) * dim];
    for first in (0..rows).step_by(rows_per_chunk) {
        let count = rows_per_chunk.min((rows - first) as usize);
        let chunk = &mut chunk[..count * dim];
        synth.fill(first, chunk);
        for (row, components) in (first..).zip(chunk.chunks_exact(dim)) {
            let bias = (metric == Metric::Dot).then(|| synth.bias(row));
            writer.add(&word(row), components, bias)?;
        }
        if on_progress(first + count as u32).is_break() {
            return Ok(None);
        }
    }
    let attributes = attributes.then(|| synth.attributes());
    if let Some(attributes) = &attributes {
        writer = writer.with_attributes(attributes.checksum());
    }
    Ok(Some((writer, attributes)))
}
