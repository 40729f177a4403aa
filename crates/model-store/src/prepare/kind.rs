//! Files that are something else than they should be: what they are, and what to do with them.
//!
//! A file is told by a signature, as the program `file` does it. No signature here can be the
//! beginning of text, apart from those of pages, which a row of vectors is told from.

use memchr::memmem;

use super::input::Packing;
use super::signature::{BYTE_ORDER_MARK, is_safetensors};
use crate::{lfs, npy};

/// A kind of file that is not read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileKind {
    /// Goes on after "it is".
    name: String,
    /// The way to vectors.
    cure: String,
    /// Whether it stands for another file, or contains others.
    is_container: bool,
}

/// Signatures of files that contain others, with names and cures.
const CONTAINERS: [(&[u8], &str, &str); 6] = [
    (b"7z\xbc\xaf\x27\x1c", "a 7z archive", "unpack it first: 7z x FILE"),
    (b"Rar!\x1a\x07", "a RAR archive", "unpack it first: unrar x FILE"),
    (b"\x04\x22\x4d\x18", "compressed with LZ4", "unpack it first: unlz4 FILE"),
    // Compress as it writes by default: up to 16 bits.
    (b"\x1f\x9d\x90", "compressed with compress (.Z)", "unpack it first: gunzip < FILE"),
    (b"LZIP\x01", "compressed with lzip", "unpack it first: lzip -d FILE"),
    (
        b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff",
        "compressed with LZMA",
        "unpack it first: unlzma FILE",
    ),
];

/// Signatures of other files.
const OTHERS: [(&[u8], &str, &str); 9] = [
    (
        b"\xba\x16\x4f\x2f",
        "a fastText model (.bin)",
        "it is mapped, and so can't be read from standard input or an archive of several files: save \
         or unpack it, and give the file, which may be compressed with gzip",
    ),
    (b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19", TORCH, TORCH_CURE),
    (
        b"\x89HDF\r\n",
        "an HDF5 file",
        "save its array with numpy.save and its words as text, one per line",
    ),
    (
        b"SQLite format 3\0",
        "an SQLite database, such as a .magnitude file",
        "in Python, save its vectors with numpy.save and its keys as text, one per line",
    ),
    (b"ARROW1\0\0", ARROW, ARROW_CURE),
    (b"FEA1\0", ARROW, ARROW_CURE),
    (b"Obj\x01", "an Avro file", "convert it to text, with a word and its components in each line"),
    (b"\x7fELF", PROGRAM, PROGRAM_CURE),
    // Of macOS, with 64 bits.
    (b"\xcf\xfa\xed\xfe", PROGRAM, PROGRAM_CURE),
];

const PROGRAM: &str = "a program";
const PROGRAM_CURE: &str = "give the file of vectors that it writes, such as that of word2vec's \
                            -output";

const TORCH: &str = "a PyTorch file (torch.save)";
const TORCH_CURE: &str = "in Python, write its tensors with \
                          safetensors.torch.save_file(torch.load(path), 'state.safetensors'); \
                          --tensor names the one with the vectors, --words a file of its words";
const ARROW: &str = "an Arrow file (Feather)";
const ARROW_CURE: &str = "in Python, table = pandas.read_feather(path): save its vectors with \
                          numpy.save('vectors.npy', numpy.stack(table['vector'])) and its words \
                          as text, one per line";
const MATLAB_CURE: &str = "in Python, save its array with numpy.save('vectors.npy', \
                           scipy.io.loadmat(path)['NAME']) and its words as text, one per line";
const PARQUET_CURE: &str = "in Python, table = pandas.read_parquet(path): save its vectors with \
                            numpy.save('vectors.npy', numpy.stack(table['vector'])) and its words \
                            as text, one per line";
const GGUF_CURE: &str = "take the vectors from the safetensors that it was made of: --tensor \
                         names the tensor, --words a file of its tokens";
const FAISS_CURE: &str = "in Python, save its vectors with numpy.save('vectors.npy', \
                          index.reconstruct_n(0, index.ntotal)) and its words as text, one per \
                          line";
const PICKLE_CURE: &str = "load it in Python, and save its array with numpy.save and its words as \
                           text, one per line";

impl FileKind {
    /// The kind of a file that begins like this; `None` if it may be text, or is in a format of
    /// vectors.
    pub fn of(start: &[u8]) -> Option<Self> {
        if is_safetensors(start) || npy::Numbers::begins(start) {
            return None;
        }
        if lfs::is_pointer(start) {
            return Some(Self::container(lfs::NAME, lfs::CURE));
        }
        if start.starts_with(b"PK\x03\x04")
            && let Some(kind) = Self::of_archive(first_in_zip(start).into_iter())
        {
            return Some(kind);
        }
        if let Some(packing) = Packing::of(start) {
            let cure = format!("unpack it first: {}", packing.unpacker());
            return Some(Self::container(format!("compressed with {packing}"), cure));
        }
        if let Some(file) = first_in_tar(start) {
            let name = format!("a tar archive, whose first file is `{file}`");
            let cure = "unpack it, and give the file that is wanted: tar -xf FILE";
            return Some(Self::container(name, cure));
        }
        let is_it = |(signature, ..): &&(&[u8], &str, &str)| start.starts_with(signature);
        if let Some((_, name, cure)) = CONTAINERS.iter().find(is_it) {
            return Some(Self::container(*name, *cure));
        }
        let found = OTHERS.iter().find(is_it).map(|(_, name, cure)| (*name, *cure));
        let (name, cure) = found.or_else(|| by_numbers(start)).or_else(|| pickle(start))?;
        Some(Self::other(name, cure))
    }

    /// The kind of a zip archive with these files, if it is one of some program's own.
    pub(super) fn of_archive<'a>(mut files: impl Iterator<Item = &'a str>) -> Option<Self> {
        let (name, cure) = files.find_map(|file| match file.rsplit('/').next()? {
            "data.pkl" => Some((TORCH, TORCH_CURE)),
            "[Content_Types].xml" => Some((
                "a document of an office program",
                "save it as text, with a word and its components in each line",
            )),
            "model.weights.h5" => Some((
                "a Keras model",
                "in Python, save its embedding with numpy.save('vectors.npy', \
                 layer.get_weights()[0]) and its words as text, one per line",
            )),
            _ => None,
        })?;
        Some(Self::other(name, cure))
    }

    /// The kind of a text that is a page, of the web or of data, instead of rows. A row may begin
    /// like one: who calls this looks whether the first line is one.
    pub fn of_page(text: &[u8]) -> Option<Self> {
        /// Characters of a title that are shown.
        const MOST: usize = 80;
        let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text).trim_ascii_start();
        let begins = |with: &str| {
            let start = text.get(..with.len());
            start.is_some_and(|start| start.eq_ignore_ascii_case(with.as_bytes()))
        };
        let of_web = ["<!doctype html", "<html", "<head", "<body"];
        let (name, [open, close]) = if of_web.iter().any(|tag| begins(tag)) {
            ("a web page (HTML)", ["<title>", "</title>"])
        } else if ["<?xml", "<error>"].iter().any(|tag| begins(tag)) {
            ("an XML document", ["<Message>", "</Message>"])
        } else if ["{\"", "{\n", "{\r", "[[", "[{"].iter().any(|sign| begins(sign)) {
            let cure = "convert it to text, with a word and its components in each line, \
                        separated by single spaces";
            return Some(Self::other("JSON", cure));
        } else {
            return None;
        };
        let title = memmem::find(text, open.as_bytes()).and_then(|at| {
            let rest = &text[at + open.len()..];
            let title = &rest[..memmem::find(rest, close.as_bytes())?];
            Some(String::from_utf8_lossy(title.trim_ascii()).chars().take(MOST).collect::<String>())
        });
        let title = title.filter(|title| !title.is_empty());
        let title = title.map_or_else(String::new, |title| format!(", {title:?}"));
        let cure = "open the address in a browser to see why, and download the file again";
        Some(Self::container(format!("{name}{title}, in place of the file itself"), cure))
    }

    fn container(name: impl Into<String>, cure: impl Into<String>) -> Self {
        Self { name: name.into(), cure: cure.into(), is_container: true }
    }

    fn other(name: &str, cure: &str) -> Self {
        Self { name: name.to_owned(), cure: cure.to_owned(), is_container: false }
    }

    /// Its name, which goes on after "it is".
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether it stands for another file, or contains others, such as an archive.
    pub fn is_container(&self) -> bool {
        self.is_container
    }

    /// Its fault as a file of vectors, and the cure.
    pub fn reason(&self) -> String {
        format!("it is {}; {}", self.name, self.cure)
    }
}

/// Kinds whose signature is a word, and then numbers that no text has.
fn by_numbers(start: &[u8]) -> Option<(&'static str, &'static str)> {
    /// The version and the order of bytes after MATLAB's text.
    const MATLAB: [&[u8]; 2] = [b"\0\x01IM", b"\x01\0MI"];
    match start {
        [b'M', b'A', b'T', b'L', b'A', b'B', b' ', ..]
            if start.get(124..128).is_some_and(|end| MATLAB.contains(&end)) =>
        {
            Some(("a MATLAB file", MATLAB_CURE))
        }
        // The first field of a page or of the file's description.
        [b'P', b'A', b'R', b'1' | b'E', 0x15, ..] => Some(("a Parquet file", PARQUET_CURE)),
        // A version.
        [b'G', b'G', b'U', b'F', 0..=9, 0, 0, 0, ..] => Some(("a GGUF model", GGUF_CURE)),
        // The number of components.
        [b'I', b'B' | b'H' | b'N' | b'v' | b'w' | b'x', a, b, low, high, 0, 0, ..]
            if [a, b].iter().all(|byte| byte.is_ascii_alphanumeric())
                && (*low, *high) != (0, 0) =>
        {
            Some(("a FAISS index", FAISS_CURE))
        }
        // Of a stream: the length of its schema.
        [0xff, 0xff, 0xff, 0xff, low, _, _, 0, ..] if low % 8 == 0 => Some((ARROW, ARROW_CURE)),
        _ => None,
    }
}

fn pickle(start: &[u8]) -> Option<(&'static str, &'static str)> {
    /// Where pickles name the class of their object.
    const ENOUGH: usize = 4096;
    /// Beginnings of protocol 0, which is text: a list, a dictionary, an object, an array. No row
    /// begins like this, because it has its numbers in the same line.
    const OF_TEXT: [&[u8]; 8] = [
        b"(lp0\n",
        b"(lp1\n",
        b"(dp0\n",
        b"(dp1\n",
        b"ccopy_reg\n",
        b"cnumpy.core.multiarray\n",
        b"cnumpy._core.multiarray\n",
        b"cgensim.models.",
    ];
    let is_text = || OF_TEXT.iter().any(|with| start.starts_with(with));
    if !matches!(start, [0x80, 2..=5, ..]) && !is_text() {
        return None;
    }
    let start = &start[..start.len().min(ENOUGH)];
    let has = |module: &str| memmem::find(start, module.as_bytes()).is_some();
    let cure = if has("gensim.models.keyedvectors") {
        "convert it in Python: \
         KeyedVectors.load(path).save_word2vec_format('vectors.bin', binary=True)"
    } else if has("gensim.models.word2vec") {
        "convert it in Python: \
         Word2Vec.load(path).wv.save_word2vec_format('vectors.bin', binary=True)"
    } else if has("gensim.models.fasttext") {
        "convert it in Python: \
         FastText.load(path).wv.save_word2vec_format('vectors.bin', binary=True)"
    } else {
        return Some(("a Python pickle", PICKLE_CURE));
    };
    Some(("a Python pickle, as gensim's save writes it", cure))
}

/// The name of the first file of a zip archive.
fn first_in_zip(start: &[u8]) -> Option<&str> {
    let length = u16::from_le_bytes(*start.get(26..)?.first_chunk()?);
    std::str::from_utf8(start.get(30..30 + usize::from(length))?).ok()
}

/// The name of the first file of a tar archive, if it is one: its first block has its own checksum.
fn first_in_tar(start: &[u8]) -> Option<String> {
    const CHECKSUM: std::ops::Range<usize> = 148..156;
    let block: &[u8; 512] = start.first_chunk()?;
    let byte = |(at, &byte): (usize, &u8)| match CHECKSUM.contains(&at) {
        true => u64::from(b' '),
        false => u64::from(byte),
    };
    let sum: u64 = block.iter().enumerate().map(byte).sum();
    if octal(&block[CHECKSUM])? != sum {
        return None;
    }
    let first = name_in_tar(block);
    // Folders and attributes may come first, and copies of macOS's attributes.
    let mut rest = start;
    while let Some((block, after)) = rest.split_first_chunk::<512>() {
        let name = name_in_tar(block);
        let is_file = matches!(block[156], b'0' | 0) && !name.is_empty();
        if is_file && !name.rsplit('/').next().is_some_and(|name| name.starts_with("._")) {
            return Some(name);
        }
        let size = octal(&block[124..136]).and_then(|size| usize::try_from(size).ok());
        let blocks = size.and_then(|size| size.checked_next_multiple_of(512));
        let Some(next) = blocks.and_then(|size| after.get(size..)) else { break };
        rest = next;
    }
    Some(first)
}

fn name_in_tar(block: &[u8; 512]) -> String {
    let name = block[..100].split(|&byte| byte == 0).next().unwrap_or_default();
    String::from_utf8_lossy(name).into_owned()
}

/// A number in octal digits, with spaces and zero bytes around it.
fn octal(field: &[u8]) -> Option<u64> {
    let digits = std::str::from_utf8(field).ok()?.trim_matches([' ', '\0']);
    u64::from_str_radix(digits, 8).ok()
}

#[cfg(test)]
mod tests;
