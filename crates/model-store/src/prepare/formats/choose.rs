//! Decides how to read a particular file.

use std::sync::Arc;

use super::column::first_column;
use super::detect::{detect, first_line, page, without_mark};
use super::fixed::{FixedFraming, FixedRows};
use super::header::{NumbersHeader, Word2vecHeader};
use super::matrix::{is_numbers, matrix, no_words};
use super::notation::SEMICOLONS;
use super::text::{LineFraming, Lines};
use super::word2vec::{BinaryRows, RowFraming};
use super::{Expected, HEADER_TOLERANCE, Parser, Plan, RecordUnit, VectorsFormat, Watch, counted};
use crate::lfs;
use crate::number::Number;
use crate::prepare::blank_end::BlankEnd;
use crate::prepare::encoding::TextEncoding;
use crate::prepare::kind::FileKind;
use crate::prepare::separator::Separator;
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
            // The bytes of bare numbers may look like any kind.
            let is_bare = format == VectorsFormat::GloveNorm && words.is_some();
            if let Some(kind) = FileKind::of(head).filter(|_| !is_bare) {
                return Err(kind.reason());
            }
            format
        }
        None => match detect(head, words.is_some())? {
            VectorsFormat::Glove if words.is_none() && header_of(head, options).is_some() => {
                VectorsFormat::Word2vec
            }
            format => format,
        },
    };
    let is_text = is_text(format, words.is_some());
    if let Some(reason) = page(head, options.separator).filter(|_| is_text) {
        return Err(reason);
    }
    if options.separator != Separator::Space && !is_text {
        return Err(format!("--separator is for text; this is {format}"));
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
        (VectorsFormat::Word2vecBinary, None) => word2vec_binary(head, options)?,
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

/// Whether a format is text, with or without its words in another file.
fn is_text(format: VectorsFormat, has_words: bool) -> bool {
    match format {
        VectorsFormat::Glove | VectorsFormat::Word2vec => true,
        VectorsFormat::GloveNorm => !has_words,
        VectorsFormat::Word2vecBinary | VectorsFormat::Npy | VectorsFormat::Safetensors => false,
    }
}

/// The encoding of a file that starts with `head`, if it is text that is not UTF-8.
pub(in crate::prepare) fn encoding_of_text(
    head: &[u8],
    options: &PrepareOptions,
    has_words: bool,
) -> Option<TextEncoding> {
    /// Bytes that tell the format.
    const ENOUGH: usize = 64 << 10;
    let encoding = other_encoding(options)?;
    // Decoded, such a file would not be known.
    if FileKind::of(head).is_some() {
        return None;
    }
    let is_decoded = || {
        let start = encoding.to_utf8(&head[..head.len().min(ENOUGH)]);
        detect(&start, has_words).is_ok_and(|format| is_text(format, has_words))
    };
    let is_text = match (options.format, detect(head, has_words)) {
        (Some(format), _) => is_text(format, has_words),
        (None, Ok(format)) if is_text(format, has_words) => true,
        // In some encodings, text does not look like it.
        (None, Ok(VectorsFormat::GloveNorm) | Err(_)) => is_decoded(),
        (None, Ok(_)) => false,
    };
    is_text.then_some(encoding)
}

fn other_encoding(options: &PrepareOptions) -> Option<TextEncoding> {
    options.encoding.and_then(TextEncoding::other_than_utf8)
}

/// The header of text that starts with `head`.
fn header_of(head: &[u8], options: &PrepareOptions) -> Option<Word2vecHeader> {
    Word2vecHeader::separated(without_mark(head).0, options.separator)
}

/// The separator other than a space with which this is a row, of `dim` components if they are
/// known. `None` if it is a row with spaces.
fn other_separator(row: &[u8], with_norm: bool, dim: Option<usize>) -> Option<Separator> {
    let others = if with_norm { 2 } else { 1 };
    let is_row = |separator: Separator| {
        let row = separator.trim_end(row.trim_ascii_end());
        let dim = dim.or((separator.numbers(row) + 1).checked_sub(others)).unwrap_or(0);
        let lines = Lines { dim, with_norm, separator, ..Lines::default() };
        (1..=MAX_DIM).contains(&dim) && lines.parse(row, 0).first_bad.is_none()
    };
    let found = Separator::ALL.into_iter().find(|&separator| is_row(separator));
    found.filter(|&separator| separator != Separator::Space)
}

/// Checks that spaces separate the fields of the first row, if they should.
fn check_separator(row: &[u8], lines: &Lines, options: &PrepareOptions) -> Result<(), String> {
    let is_checked = lines.separator == Separator::Space && !options.skip_bad_rows;
    let known = Some(lines.dim).filter(|_| lines.has_known_dim);
    let other = is_checked.then(|| other_separator(row, lines.with_norm, known)).flatten();
    other.map_or(Ok(()), |other| {
        Err(format!(
            "its fields are separated by {other}s instead of single spaces; add --separator {other}"
        ))
    })
}

fn glove(head: &[u8], with_norm: bool, options: &PrepareOptions) -> Result<Plan, String> {
    let (text, skip) = without_mark(head);
    let separator = options.separator;
    let mut hint = "";
    let dim = match options.dim {
        Some(dim) => dim.get(),
        None => {
            let line = separator.trim_end(first_line(text).trim_ascii_end());
            if line.is_empty() {
                return Err("line 1 is empty; it should have a word and its components".into());
            }
            let other = match separator {
                Separator::Space => other_separator(line, with_norm, None),
                Separator::Tab | Separator::Comma => None,
            };
            let fields = separator.numbers(line) + 1;
            let lacks_spaces = separator == Separator::Space
                && (fields == 1 || line.contains(&b',') || line.contains(&b'\t'));
            if lacks_spaces && is_a_wrong_header(line, text) {
                return Err(WRONG_HEADER.to_owned());
            }
            if lacks_spaces && is_numbers(line) {
                return Err(match other {
                    None => no_words(),
                    Some(other) => format!(
                        "{}; if the first column is the words, add --separator {other}",
                        no_words()
                    ),
                });
            }
            let others = if with_norm { 2 } else { 1 };
            if fields <= others {
                let other = other.or_else(|| other_sign(line, separator));
                let cure = match other {
                    Some(other) => format!("; if by {other}s, add --separator {other}"),
                    None if line.contains(&b';') => format!("; {SEMICOLONS}"),
                    None => String::new(),
                };
                return Err(format!(
                    "line 1 has no {separator}; it should have a word and its components, separated \
                     by single {separator}s{cure}"
                ));
            }
            if header_of(head, options).is_some() {
                hint = "; line 1 looks like the header of --format word2vec";
            } else if separator == Separator::Space
                && !options.skip_bad_rows
                && is_another_header(line, text, with_norm)
            {
                return Err(WRONG_HEADER.to_owned());
            }
            fields - others
        }
    };
    let lines = Lines {
        dim: dim.min(MAX_DIM),
        with_norm,
        hint,
        separator,
        encoding: other_encoding(options),
        has_known_dim: options.dim.is_some(),
        numeric_ends: options.allow_numeric_words,
    };
    check_separator(first_line(text), &lines, options)?;
    let norms = if with_norm { " with norms" } else { "" };
    Ok(Plan {
        first_column: first_column(&lines, text, false, options)?.map(Watch::Words),
        description: format!("glove text{norms}{}", separator.described()),
        dim,
        skip: skip as u64,
        records: RecordUnit::Line { first: 1 },
        framing: Box::new(LineFraming::default()),
        parser: Arc::new(lines),
        expected: None,
    })
}

const WRONG_HEADER: &str = "line 1 has numbers only, and line 2 has fields separated by spaces; a \
                            header is two whole numbers with a space between them, rows and \
                            components: correct it, or leave it out: tail -n +2 FILE";

/// The sign other than a space that a line has and that may separate its fields, although it is no
/// row, such as the names of columns.
fn other_sign(line: &[u8], separator: Separator) -> Option<Separator> {
    let is_spaced = separator == Separator::Space;
    let has = |other: &Separator| line.contains(&other.byte());
    [Separator::Tab, Separator::Comma].into_iter().filter(|_| is_spaced).find(has)
}

/// Whether the first line of a text has numbers only, and the second is a row, but not one of as
/// many components: `4 300 5` or `4.0 300.0`.
fn is_another_header(line: &[u8], text: &[u8], with_norm: bool) -> bool {
    let second = text.split(|&byte| byte == b'\n').nth(1).unwrap_or_default().trim_ascii_end();
    let is_row_like = |other: &[u8]| {
        let numbers = Separator::Space.numbers(other);
        let dim = numbers.saturating_sub(usize::from(with_norm)).clamp(1, MAX_DIM);
        let lines = Lines { dim, with_norm, ..Lines::default() };
        lines.parse(second, 0).first_bad.is_none()
    };
    is_numbers(line) && !is_numbers(second) && is_row_like(second) && !is_row_like(line)
}

/// Whether the first line of a text is one whole number, or two with a comma or a tab between them,
/// and the second is a row with spaces.
fn is_a_wrong_header(line: &[u8], text: &[u8]) -> bool {
    let second = text.split(|&byte| byte == b'\n').nth(1).unwrap_or_default().trim_ascii();
    line.iter().all(|byte| byte.is_ascii_digit() || b", \t".contains(byte))
        && line.iter().filter(|byte| b",\t".contains(byte)).count() <= 1
        && !is_numbers(second)
        && second.contains(&b' ')
}

fn word2vec_header(head: &[u8], options: &PrepareOptions) -> Result<(Word2vecHeader, u64), String> {
    let (_, skip) = without_mark(head);
    let header = header_of(head, options).ok_or(
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
    let (Word2vecHeader { rows, dim, .. }, skip) = word2vec_header(head, options)?;
    let hint = " (according to the header in line 1; if line 1 is a word and its number, use --format glove)";
    let separator = options.separator;
    let lines = Lines {
        dim: dim.clamp(1, MAX_DIM),
        with_norm: false,
        hint,
        separator,
        encoding: other_encoding(options),
        has_known_dim: true,
        numeric_ends: options.allow_numeric_words,
    };
    let rows_text = &head[skip as usize..];
    check_separator(first_line(rows_text), &lines, options)?;
    // A table of two columns may begin like a header.
    let first_column = first_column(&lines, rows_text, dim > 1, options)?;
    Ok(Plan {
        first_column: first_column.map(Watch::Words),
        description: format!("word2vec text{}", separator.described()),
        dim,
        skip,
        records: RecordUnit::Line { first: 2 },
        framing: Box::new(LineFraming::default()),
        parser: Arc::new(lines),
        expected: Some(Expected {
            rows,
            tolerance: HEADER_TOLERANCE,
            said: format!("its header announces {}", counted(rows, "row")),
            cure: format!(
                "the file is cut off, or its header is wrong: download it again, or leave out the \
                 header: tail -n +2 FILE | kindred prepare - --format glove --dim {dim} --out DIR"
            ),
        }),
    })
}

fn word2vec_binary(head: &[u8], options: &PrepareOptions) -> Result<Plan, String> {
    let (Word2vecHeader { rows, dim, .. }, skip) = word2vec_header(head, options)?;
    let dim_or_less = dim.min(MAX_DIM);
    let framing = RowFraming::new(dim_or_less, rows);
    let parser = BinaryRows::new(dim_or_less, &head[skip as usize..], other_encoding(options));
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
