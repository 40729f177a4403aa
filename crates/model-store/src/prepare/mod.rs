//! From a vectors file to a model, complete or not at all.
//!
//! `source` opens the file and hashes it on the way, `lines` cuts it into chunks of whole lines,
//! `glove` takes those apart on all cores, `writer` puts rows into the model's files, `folder` moves
//! the finished folder into place.

mod folder;
mod glove;
mod lines;
mod source;
mod writer;

use std::io::{self, Cursor, Seek, Write};
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;

pub(crate) use folder::NewFolder;
use glove::Shape;
use lines::Lines;
use source::Source;
pub use writer::ModelWriter;

use crate::ModelError;

/// The most components that a row may have.
pub const MAX_DIM: usize = 65_536;

/// How to read a vectors file.
#[derive(Debug, Clone, Default)]
pub struct PrepareOptions {
    /// Components in a row; without it, the number of fields of the first line less one.
    pub dim: Option<NonZeroUsize>,
    /// Leave out and count lines that can't be read, instead of stopping at the first.
    pub skip_bad_rows: bool,
    /// Replace an older model in the output folder.
    pub replace: bool,
}

/// How far a preparation has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// Bytes of the vectors file read so far, as it lies on the disk.
    pub bytes_read: u64,
    /// Its whole size.
    pub bytes_total: u64,
    /// Rows written so far.
    pub rows: usize,
}

/// What became of a vectors file.
#[derive(Debug, Clone, PartialEq)]
pub struct Summary {
    /// Rows written.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// Bytes of the vectors file, as it lies on the disk.
    pub source_bytes: u64,
    /// Lines left out because they could not be read.
    pub bad_rows_skipped: u64,
    /// The first of them: its number, from 1, and what was wrong.
    pub first_bad_row: Option<(u64, String)>,
    /// Lines left out because their word had been seen before.
    pub duplicate_words_dropped: u64,
}

/// The three files of a model, in memory.
#[derive(Debug)]
pub struct ModelFiles {
    /// `vectors.safetensors`
    pub vectors: Vec<u8>,
    /// `words.txt`
    pub words: Vec<u8>,
    /// `words.fst`
    pub index: Vec<u8>,
}

/// Where the vectors are.
#[derive(Debug, Clone, Copy)]
pub enum Input<'a> {
    /// In a file, plain or gzip.
    File(&'a Path),
    /// In memory, plain or gzip; the name stands for the file's in messages and provenance.
    Bytes {
        /// As a file would be called.
        name: &'a str,
        /// What the file would hold.
        bytes: &'static [u8],
    },
}

/// What [`prepare_folder`] calls a few times a second; a break stops the work.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Reads vectors and writes a model folder. Whatever happens before the end leaves nothing behind
/// and `out` as it was.
///
/// # Errors
/// If the input can't be read, a line is bad and may not be skipped, or the output can't be written.
pub fn prepare_folder(
    input: Input<'_>,
    out: &Path,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
) -> Result<Summary, ModelError> {
    let folder = NewFolder::beside(out, options.replace)?;
    let mut source = Source::open(input)?;
    let can_not_write = |e| ModelError::io("write the model for", out)(e);
    let vectors = folder.create_vectors()?;
    let (writer, summary) = read_rows(&mut source, vectors, options, on_progress, can_not_write)?;
    let (vectors, words, index) =
        writer.finish(source.provenance(&summary)).map_err(can_not_write)?;
    folder.complete(vectors, &words, &index)?;
    Ok(summary)
}

/// Reads vectors and makes a model in memory, by the same code as for folders.
///
/// # Errors
/// As [`prepare_folder`].
pub fn prepare_in_memory(
    input: Input<'_>,
    options: &PrepareOptions,
) -> Result<ModelFiles, ModelError> {
    let mut source = Source::open(input)?;
    let name = source.path().to_owned();
    let no_memory = |e| ModelError::io("keep in memory", &name)(e);
    let nowhere = Cursor::new(Vec::new());
    let on_progress = &mut |_| ControlFlow::Continue(());
    let (writer, summary) = read_rows(&mut source, nowhere, options, on_progress, no_memory)?;
    let (vectors, words, index) = writer.finish(source.provenance(&summary)).map_err(no_memory)?;
    Ok(ModelFiles { vectors: vectors.into_inner(), words, index })
}

/// The heart of it: lines in, rows out.
fn read_rows<W: Write + Seek>(
    source: &mut Source,
    out: W,
    options: &PrepareOptions,
    on_progress: OnProgress<'_>,
    can_not_write: impl Fn(io::Error) -> ModelError + Copy,
) -> Result<(ModelWriter<W>, Summary), ModelError> {
    let path = source.path().to_owned();
    let bad_input = |reason: String| ModelError::BadInput { path: path.clone(), reason };

    let mut lines = Lines::new(&path);
    let mut writer: Option<ModelWriter<W>> = None;
    let mut out = Some(out);
    let mut shape = options.dim.map(Shape::given);
    let (mut bad_rows, mut first_bad_row, mut duplicates) = (0, None, 0);
    while let Some(first_line) = lines.read_more(source)? {
        let shape = match &shape {
            Some(shape) => shape,
            None => shape.insert(Shape::of_first_line(lines.first()).map_err(bad_input)?),
        };
        if shape.dim > MAX_DIM {
            return Err(bad_input(format!(
                "{} components in a row are too many; {MAX_DIM} is the most",
                shape.dim
            )));
        }
        let writer = match &mut writer {
            Some(writer) => writer,
            None => {
                let out = out.take().expect("taken once, when the writer is made");
                writer.insert(ModelWriter::new(out, shape.dim).map_err(can_not_write)?)
            }
        };
        for parsed in glove::parse(&lines, shape) {
            let mut components = parsed.components.chunks_exact(shape.dim);
            for (line, word) in parsed.words {
                match word {
                    Ok(word) => {
                        let components = components.next().expect("a row for each good line");
                        if !writer.add(word, components).map_err(can_not_write)? {
                            duplicates += 1;
                        }
                    }
                    Err(mut reason) => {
                        let (line, path) = (first_line + line as u64, path.clone());
                        if line == 1 && options.dim.is_none() && reason.contains("not a number") {
                            reason += "; if the first word has spaces in it, give --dim";
                        }
                        if !options.skip_bad_rows {
                            return Err(ModelError::BadLine { path, line, reason });
                        }
                        bad_rows += 1;
                        first_bad_row.get_or_insert((line, reason));
                    }
                }
            }
        }
        let (bytes_read, bytes_total) = (source.bytes_read(), source.bytes_total());
        let now = Progress { bytes_read, bytes_total, rows: writer.rows() };
        if on_progress(now).is_break() {
            return Err(ModelError::Cancelled);
        }
    }
    let Some(writer) = writer.filter(|writer| writer.rows() > 0) else {
        return Err(bad_input(match first_bad_row {
            None => "the file is empty".into(),
            Some((line, reason)) => {
                format!("not one line could be read; the first, line {line}: {reason}")
            }
        }));
    };
    let summary = Summary {
        rows: writer.rows(),
        dim: writer.dim(),
        source_bytes: source.bytes_read(),
        bad_rows_skipped: bad_rows,
        first_bad_row,
        duplicate_words_dropped: duplicates,
    };
    Ok((writer, summary))
}
