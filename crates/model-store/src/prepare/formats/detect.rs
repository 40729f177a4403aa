//! Detects the format of a file by its first bytes.

use super::header::Word2vecHeader;
use super::text::Lines;
use super::{Parser, VectorsFormat};
use crate::prepare::MAX_DIM;
use crate::prepare::input::Packing;
use crate::prepare::plain_text::utf16_cure;
use crate::prepare::separator::Separator;

/// The byte order mark that some Windows programs write at the start of text.
pub(in crate::prepare) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

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
    if let Some(foreign) = foreign(head) {
        return Err(foreign);
    }
    if head.starts_with(b"\x93NUMPY") {
        return Ok(VectorsFormat::Npy);
    }
    if head.len() > 9 && head[3..8] == [0; 5] && head[8] == b'{' {
        return Ok(VectorsFormat::Safetensors);
    }
    let (text, _) = without_mark(head);
    if let Some(header) = Word2vecHeader::read(text) {
        let rest = &text[header.bytes..];
        let is_text = is_text(rest) || begins_with_a_line(rest, header.dim);
        return Ok(if is_text { VectorsFormat::Word2vec } else { VectorsFormat::Word2vecBinary });
    }
    let is_text =
        is_text(head) || begins_with_a_line(text, Separator::Space.numbers(first_line(text)));
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
fn begins_with_a_line(text: &[u8], dim: usize) -> bool {
    let lines = Lines { dim: dim.clamp(1, MAX_DIM), ..Lines::default() };
    lines.parse(first_line(text), 0).first_bad.is_none()
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

/// Common formats that this program does not read, and how to convert them.
fn foreign(head: &[u8]) -> Option<String> {
    if let Some(packing) = Packing::of(head) {
        return Some(format!(
            "it is compressed twice, inside as {packing}; decompress it once first"
        ));
    }
    let said = if head.starts_with(&793_712_314_u32.to_le_bytes()) {
        "it is a fastText model (.bin); use the .vec file that fastText writes beside it, or convert it with \
         fastText's python/doc/examples/bin_to_vec.py: bin_to_vec.py MODEL.bin > MODEL.vec"
    } else if head.starts_with(b"\x80") && matches!(head.get(1), Some(2..=5)) {
        "it is a Python pickle, as written by gensim's save; convert it in Python: \
         KeyedVectors.load(path).save_word2vec_format('vectors.bin', binary=True)"
    } else if head.starts_with(b"\x89HDF\r\n") {
        "it is an HDF5 file; save its array with numpy.save and its words as text, one per line"
    } else if head.starts_with(b"BZh") && head[3..].get(1..7) == Some(b"1AY&SY") {
        "it is compressed with bzip2; decompress it first: bunzip2"
    } else {
        return None;
    };
    Some(said.into())
}
