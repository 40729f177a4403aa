//! Detects the format of a file by its first bytes.

use super::header::Word2vecHeader;
use super::text::Lines;
use super::{Parser, VectorsFormat, is_padding};
use crate::npy::Numbers;
use crate::prepare::MAX_DIM;
use crate::prepare::input::Packing;
use crate::prepare::kind::FileKind;
use crate::prepare::plain_text::utf16_cure;
use crate::prepare::separator::Separator;
use crate::prepare::signature::{BYTE_ORDER_MARK, is_safetensors};

/// The text without its byte order mark, and the mark's length.
pub(super) fn without_mark(head: &[u8]) -> (&[u8], usize) {
    let text = head.strip_prefix(BYTE_ORDER_MARK).unwrap_or(head);
    (text, head.len() - text.len())
}

/// The number of bytes used to tell text from numbers.
const ENOUGH: usize = 4096;

/// The format of a file that starts with `head`, with or without its words in another file.
///
/// # Errors
/// If it has no known format; says what it is and how to convert it.
pub(super) fn detect(head: &[u8], has_words: bool) -> Result<VectorsFormat, String> {
    if head.is_empty() {
        return Err("the file is empty".into());
    }
    // The signatures of formats that are read come first: a safetensors file may begin like others.
    if is_safetensors(head) {
        return Ok(VectorsFormat::Safetensors);
    }
    if Numbers::begins(head) {
        return Ok(VectorsFormat::Npy);
    }
    if let Some(foreign) = foreign(head, has_words) {
        return Err(foreign);
    }
    let (text, _) = without_mark(head);
    if let Some(header) = Word2vecHeader::read(text) {
        let rest = &text[header.bytes..];
        let is_text = is_text(rest) || begins_with_a_line(rest, header.dim, Separator::Space);
        return Ok(if is_text { VectorsFormat::Word2vec } else { VectorsFormat::Word2vecBinary });
    }
    let is_text = is_text(head) || begins_with_a_row(text, Separator::Space);
    if !is_text && let Some(reason) = utf16_cure(head) {
        return Err(reason);
    }
    if has_words && !is_text {
        return Ok(VectorsFormat::GloveNorm);
    }
    if !is_text {
        let names: Vec<&str> = VectorsFormat::ALL.iter().map(|format| format.name()).collect();
        return Err(format!(
            "its format can't be detected; name it with --format ({}), and give --words if the words are in \
             another file",
            names.join(", ")
        ));
    }
    Ok(VectorsFormat::Glove)
}

/// Whether the first line has a word and this many numbers: then it is text, whatever its words
/// contain.
fn begins_with_a_line(text: &[u8], dim: usize, separator: Separator) -> bool {
    let lines = Lines { dim: dim.clamp(1, MAX_DIM), separator, ..Lines::default() };
    lines.parse(first_line(text), 0).first_bad.is_none()
}

/// Whether the first line has a word and then only numbers.
fn begins_with_a_row(text: &[u8], separator: Separator) -> bool {
    begins_with_a_line(text, separator.numbers(first_line(text)), separator)
}

/// Without its line feed.
pub(super) fn first_line(text: &[u8]) -> &[u8] {
    text.split(|&b| b == b'\n').next().unwrap_or_default()
}

fn is_text(bytes: &[u8]) -> bool {
    let start = &bytes[..bytes.len().min(ENOUGH)];
    // A word that is not UTF-8 gets an error with its line; binary numbers have control characters.
    !start.iter().any(|&b| b < b' ' && !matches!(b, b'\n' | b'\r' | b'\t'))
}

/// Why a file is no file of vectors, if it is known to be something else.
fn foreign(head: &[u8], has_words: bool) -> Option<String> {
    if let Some(kind) = FileKind::of(head) {
        return Some(match Packing::of(head).filter(|_| kind.is_container()) {
            Some(packing) => {
                format!("it is compressed twice, inside as {packing}; decompress it once first")
            }
            None => kind.reason(),
        });
    }
    // With words they may be rows of zeros.
    (!has_words && is_padding(head)).then(|| {
        "it begins with nothing but zero bytes, as a download that was not finished; download the \
         file again"
            .to_owned()
    })
}

/// The fault of a file that is a page: its first line is no row.
pub(super) fn page(head: &[u8], separator: Separator) -> Option<String> {
    let (text, _) = without_mark(head);
    let is_row = || begins_with_a_row(text, separator);
    FileKind::of_page(text).filter(|_| !is_row()).map(|kind| kind.reason())
}
