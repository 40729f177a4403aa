//! Decides how to read a particular file.

use std::sync::Arc;

use super::column::first_column;
use super::detect::{detect, first_line, page, without_mark};
use super::fixed::{FixedFraming, FixedRows};
use super::header::{NumbersHeader, Word2vecHeader};
use super::matrix::{is_numbers, matrix, no_words};
use super::text::{LineFraming, Lines, spaces};
use super::word2vec::{BinaryRows, RowFraming};
use super::{Expected, HEADER_TOLERANCE, Plan, RecordUnit, VectorsFormat, Watch};
use crate::lfs;
use crate::number::Number;
use crate::prepare::blank_end::BlankEnd;
use crate::prepare::kind::FileKind;
use crate::prepare::words_file::WordList;
use crate::prepare::{MAX_DIM, PrepareOptions};

/// How to read a file. `head` are its first bytes; `bytes_total` is its size, if known.
pub(in crate::prepare) fn plan(
    head: &[u8],
    bytes_total: Option<u64>,
    options: &PrepareOptions,
    words: Option<WordList>,
) -> Result<Plan, String> {
    // Files that are not compressed were checked before; these may have been.
    if let Some(pointer) = lfs::reason(head) {
        return Err(pointer);
    }
    let format = match options.format {
        Some(_) if head.is_empty() => return Err("the file is empty".into()),
        Some(format) => {
            // Bytes that are only numbers may be any.
            let is_bare = format == VectorsFormat::GloveNorm && words.is_some();
            if let Some(kind) = FileKind::of(head).filter(|_| !is_bare) {
                return Err(kind.reason());
            }
            format
        }
        None => detect(head, words.is_some())?,
    };
    let is_text = match format {
        VectorsFormat::Glove | VectorsFormat::Word2vec => true,
        VectorsFormat::GloveNorm => words.is_none(),
        _ => false,
    };
    if let Some(reason) = page(head).filter(|_| is_text) {
        return Err(reason);
    }
    if options.tensor.is_some() && format != VectorsFormat::Safetensors {
        return Err(format!("--tensor is for safetensors files; this is {format}"));
    }
    let plan = match (format, words) {
        (VectorsFormat::Npy, words) => table(NumbersHeader::npy(head)?, "npy", words)?,
        (VectorsFormat::Safetensors, words) => {
            let header = NumbersHeader::safetensors(head, options.tensor.as_deref())?;
            table(header, "safetensors", words)?
        }
        (VectorsFormat::GloveNorm, Some(words)) => {
            norms_and_components(bytes_total, options, words)?
        }
        (
            VectorsFormat::Glove | VectorsFormat::Word2vec | VectorsFormat::Word2vecBinary,
            Some(words),
        ) => matrix(head, format, words, options)?,
        (VectorsFormat::Glove, None) => glove(head, false, options)?,
        (VectorsFormat::GloveNorm, None) => glove(head, true, options)?,
        (VectorsFormat::Word2vec, None) => word2vec_text(head, options)?,
        (VectorsFormat::Word2vecBinary, None) => word2vec_binary(head)?,
    };
    if plan.dim == 0 {
        return Err("its rows have no components".into());
    }
    if plan.dim > MAX_DIM {
        let dim = plan.dim;
        return Err(format!("{dim} components per row are too many; the maximum is {MAX_DIM}"));
    }
    if let Some(dim) = options.dim
        && dim.get() != plan.dim
    {
        return Err(format!("its rows have {} components, but --dim says {dim}", plan.dim));
    }
    Ok(plan)
}

fn glove(head: &[u8], with_norm: bool, options: &PrepareOptions) -> Result<Plan, String> {
    let (text, skip) = without_mark(head);
    let mut hint = "";
    let dim = match options.dim {
        Some(dim) => dim.get(),
        None => {
            let line = first_line(text).trim_ascii_end();
            if line.is_empty() {
                return Err("line 1 is empty; it should have a word and its components".into());
            }
            let fields = spaces(line) + 1;
            let has_no_spaces = fields == 1 || line.contains(&b',') || line.contains(&b'\t');
            if has_no_spaces && is_numbers(line) {
                return Err(no_words());
            }
            let others = if with_norm { 2 } else { 1 };
            if fields <= others {
                return Err(
                    "line 1 has no space; it should have a word and its components, separated by single spaces"
                        .into(),
                );
            }
            if Word2vecHeader::read(text).is_some() {
                hint = "; line 1 looks like the header of --format word2vec";
            }
            fields - others
        }
    };
    let lines = Lines { dim: dim.min(MAX_DIM), with_norm, hint };
    Ok(Plan {
        first_column: first_column(&lines, text, false, options)?.map(Watch::Words),
        description: if with_norm { "glove text with norms" } else { "glove text" }.into(),
        dim,
        skip: skip as u64,
        records: RecordUnit::Line { first: 1 },
        framing: Box::new(LineFraming::default()),
        parser: Arc::new(lines),
        expected: None,
    })
}

fn word2vec_header(head: &[u8]) -> Result<(Word2vecHeader, u64), String> {
    let (text, skip) = without_mark(head);
    let header = Word2vecHeader::read(text).ok_or(
        "line 1 is not a word2vec header; it should have two whole numbers, rows and components",
    )?;
    let skip = skip + header.bytes;
    if head.len() == skip {
        return Err(format!(
            "it has only a header, which announces {} rows of {} components",
            header.rows, header.dim
        ));
    }
    Ok((header, skip as u64))
}

fn word2vec_text(head: &[u8], options: &PrepareOptions) -> Result<Plan, String> {
    let (Word2vecHeader { rows, dim, .. }, skip) = word2vec_header(head)?;
    let hint = " (according to the header in line 1; if line 1 is a word and its number, use --format glove)";
    let lines = Lines { dim: dim.clamp(1, MAX_DIM), with_norm: false, hint };
    // A table of two columns may begin like a header.
    let first_column = first_column(&lines, &head[skip as usize..], dim > 1, options)?;
    Ok(Plan {
        first_column: first_column.map(Watch::Words),
        description: "word2vec text".into(),
        dim,
        skip,
        records: RecordUnit::Line { first: 2 },
        framing: Box::new(LineFraming::default()),
        parser: Arc::new(lines),
        expected: Some(Expected {
            rows,
            tolerance: HEADER_TOLERANCE,
            said: format!("its header announces {rows} rows"),
            cure: format!(
                "the file is cut off, or its header is wrong: download it again, or leave out the \
                 header: tail -n +2 FILE | kindred prepare - --format glove --dim {dim} --out DIR"
            ),
        }),
    })
}

fn word2vec_binary(head: &[u8]) -> Result<Plan, String> {
    let (Word2vecHeader { rows, dim, .. }, skip) = word2vec_header(head)?;
    let dim_or_less = dim.min(MAX_DIM);
    let framing = RowFraming::new(dim_or_less, rows);
    let parser = BinaryRows::new(dim_or_less, &head[skip as usize..]);
    Ok(Plan::of_rows("word2vec binary".into(), dim, skip, framing, parser))
}

/// Rows of one size, whose words are in another file.
fn fixed_rows(
    description: String,
    header: NumbersHeader,
    with_norm: bool,
    words: WordList,
) -> Plan {
    let NumbersHeader { rows, dim, number, start, may_go_on } = header;
    let words = Arc::new(words);
    let parser = FixedRows { dim: dim.clamp(1, MAX_DIM), number, with_norm, words };
    let (row_bytes, end) = (parser.row_bytes(), BlankEnd::default());
    let framing = FixedFraming { row_bytes, rows, found: 0, may_go_on, end };
    Plan::of_rows(description, dim, start, framing, parser)
}

fn table(
    header: NumbersHeader,
    description: &str,
    words: Option<WordList>,
) -> Result<Plan, String> {
    let words = words.ok_or_else(|| {
        format!(
            "{description} holds no words; give them with --words FILE, one per line, in row order"
        )
    })?;
    let rows = header.rows;
    let count = words.len() as u64;
    if count != rows {
        let heading = match count.checked_sub(1) == Some(rows) {
            true => "; if its first line is a heading, leave it out: tail -n +2 FILE",
            false => "",
        };
        return Err(format!(
            "it has {rows} rows, but {} has {count} words; give one word for each row, in row \
             order{heading}",
            words.name()
        ));
    }
    let description = format!("{description} {}", header.number.name());
    Ok(fixed_rows(description, header, false, words))
}

/// The 2020 report's binary format: a float32 norm and float32 components per word, without a
/// header.
fn norms_and_components(
    bytes_total: Option<u64>,
    options: &PrepareOptions,
    words: WordList,
) -> Result<Plan, String> {
    let rows = words.len() as u64;
    let dim = match (options.dim, bytes_total) {
        (Some(dim), _) => dim.get(),
        (None, None) => {
            return Err(
                "the dimension of a compressed file or a pipe can't be derived from its size; give --dim"
                    .into(),
            );
        }
        (None, Some(bytes)) => {
            let row_bytes = bytes / rows.max(1);
            if rows == 0
                || row_bytes * rows != bytes
                || !row_bytes.is_multiple_of(4)
                || row_bytes < 8
            {
                return Err(format!(
                    "its {bytes} bytes do not divide into rows of float32 (a norm and components) for the \
                     {rows} words in {}; one of the files may be cut off, or this is another format (--format)",
                    words.name()
                ));
            }
            usize::try_from(row_bytes / 4 - 1).unwrap_or(usize::MAX)
        }
    };
    let header = NumbersHeader { rows, dim, number: Number::F32, start: 0, may_go_on: false };
    Ok(fixed_rows("norms and components, float32".into(), header, true, words))
}
