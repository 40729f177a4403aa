//! Signatures of files of other kinds, and texts and numbers that look a little like them.

use super::*;

fn name(start: &[u8]) -> Option<String> {
    FileKind::of(start).map(|kind| kind.name)
}

#[test]
fn every_kind_is_named_by_its_first_bytes() {
    let matlab = [&format!("{:124}", "MATLAB 5.0 MAT-file").into_bytes()[..], b"\0\x01IM"].concat();
    for (start, expected) in [
        (&b"\xba\x16\x4f\x2f\x0c\0\0\0"[..], "a fastText model (.bin)"),
        (
            b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.",
            "a PyTorch file (torch.save)",
        ),
        (b"\x80\x02}q\0.", "a Python pickle"),
        (b"\x80\x05\x95\x10\0\0\0\0\0\0\0", "a Python pickle"),
        (b"(lp1\nVthe\np2\na.", "a Python pickle"),
        (b"(dp0\nVthe\np1\n(lp2\nF0.1\nas.", "a Python pickle"),
        (b"ccopy_reg\n_reconstructor\np1\n", "a Python pickle"),
        (b"cnumpy.core.multiarray\n_reconstruct\n", "a Python pickle"),
        (b"\x7fELF\x02\x01\x01\0", "a program"),
        (b"\xcf\xfa\xed\xfe\x07\0\0\x01", "a program"),
        (b"\x89HDF\r\n\x1a\n", "an HDF5 file"),
        (b"SQLite format 3\0\x10\0", "an SQLite database, such as a .magnitude file"),
        (&matlab, "a MATLAB file"),
        (b"PAR1\x15\x04\x15\0", "a Parquet file"),
        (b"PARE\x15\x04\x15\0", "a Parquet file"),
        (b"ARROW1\0\0\xff\xff\xff\xff", "an Arrow file (Feather)"),
        (b"\xff\xff\xff\xff\x78\x01\0\0\x10\0\0\0", "an Arrow file (Feather)"),
        (b"GGUF\x03\0\0\0\x10\0\0\0", "a GGUF model"),
        (b"IxFI\x2c\x01\0\0\x03\0\0\0", "a FAISS index"),
        (b"IxF2\x03\0\0\0\x03\0\0\0", "a FAISS index"),
        (b"IHNf\x80\0\0\0\x03\0\0\0", "a FAISS index"),
        (b"IwFl\0\x03\0\0\x03\0\0\0", "a FAISS index"),
        (b"7z\xbc\xaf\x27\x1c\0\x04", "a 7z archive"),
        (b"Rar!\x1a\x07\x01\0", "a RAR archive"),
        (b"\x04\x22\x4d\x18\x64\x40", "compressed with LZ4"),
        (b"\x1f\x9d\x90\x61", "compressed with compress (.Z)"),
        (b"LZIP\x01\x0c", "compressed with lzip"),
        (b"\x5d\0\0\x80\0\xff\xff\xff\xff\xff\xff\xff\xff\0", "compressed with LZMA"),
        (b"\x1f\x8b\x08\0\0\0\0\0\0\x03", "compressed with gzip"),
        (b"BZh91AY&SY\xa8\xd3", "compressed with bzip2"),
        (b"PK\x03\x04\x14\0\0\0", "compressed with zip"),
        (
            b"version https://git-lfs.github.com/spec/v1\noid",
            "a Git LFS pointer, not the file itself",
        ),
    ] {
        assert_eq!(name(start).as_deref(), Some(expected), "{start:?}");
        let reason = FileKind::of(start).unwrap().reason();
        assert!(reason.starts_with(&format!("it is {expected}; ")), "{reason}");
    }
}

#[test]
fn texts_and_formats_that_are_read_are_of_no_other_kind() {
    for start in [
        &b"PAR1 0.5 1\n"[..],
        b"GGUF 0.5 1\n",
        b"IxFI 0.5 1\n",
        b"ARROW1 0.5 1\n",
        b"SQLite 0.5 1\n",
        b"LZIP 0.5 1\n",
        b"BZh9 0.5 1\n",
        b"7z 0.5 1\n",
        b"PK 0.5 1\n",
        b"(lp1 0.5 1\n",
        b"ccopy_reg 0.5 1\n",
        b"(lp\n",
        b"MATLAB 0.5 1\n",
        b"MATLAB 5.0 MAT-file, as a text may begin that is no such file, however long it is, \
          because it has no version of the format behind its first 124 bytes\n",
        b"4 3\nthe \0\0\0\x3f",
        b"\x93NUMPY\x01\0",
        b"",
    ] {
        assert_eq!(name(start), None, "{start:?}");
    }
    // The length of a header, which may be any signature's beginning.
    for length in [640_u64, 896, 1152, 1408, 35_615, 40_223] {
        assert_eq!(name(&[&length.to_le_bytes()[..], b"{\"a\":"].concat()), None, "{length}");
    }
}

#[test]
fn pickles_say_how_gensim_reads_them() {
    let cure = |class: &str| {
        let pickle =
            [b"\x80\x04\x95\x10\0\0\0\0\0\0\0\x8c\x1e", class.as_bytes(), b"\x94"].concat();
        FileKind::of(&pickle).unwrap().cure
    };
    assert!(cure("gensim.models.keyedvectors").contains("KeyedVectors.load(path).save_word2vec"));
    assert!(cure("gensim.models.word2vec").contains("Word2Vec.load(path).wv.save_word2vec_format"));
    assert!(cure("gensim.models.fasttext").contains("FastText.load(path).wv.save_word2vec_format"));
    assert!(cure("numpy.core.multiarray").contains("numpy.save and its words as text"));
}

/// A block of tar: the head of an entry, with its checksum.
fn entry(name: &str, kind: u8, size: usize) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{size:011o}").as_bytes());
    block[156] = kind;
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[test]
fn a_tar_archive_is_known_by_its_checksum_and_its_first_file_is_named() {
    let file = [&entry("small.txt", b'0', 9)[..], b"a 1 0 0\n\n", &[0; 503]].concat();
    let folder = entry("vectors/", b'5', 0);
    let of_macos = [&entry("vectors/._a.txt", b'0', 600)[..], &[7; 1024]].concat();
    let old = entry("old.txt", 0, 9);
    for (archive, first) in [
        (file.clone(), "small.txt"),
        ([&folder[..], &of_macos, &file].concat(), "small.txt"),
        (old, "old.txt"),
        // The first file may be larger than the bytes that were read.
        (entry("vectors/._a.txt", b'0', 99_999), "vectors/._a.txt"),
    ] {
        let kind = FileKind::of(&archive).unwrap();
        assert!(kind.is_container() && kind.reason().ends_with("tar -xf FILE"));
        assert_eq!(kind.name, format!("a tar archive, whose first file is `{first}`"));
    }
    let mut other = file.clone();
    other[0] ^= 1;
    assert_eq!((name(&other), name(&file[..511]), name(&[0; 4096])), (None, None, None));
}

#[test]
fn archives_of_programs_are_told_by_the_names_in_them() {
    let of =
        |names: &[&'static str]| FileKind::of_archive(names.iter().copied()).map(|kind| kind.name);
    for names in [&["archive/data.pkl", "archive/data/0"][..], &["model/version", "model/data.pkl"]]
    {
        assert_eq!(of(names).unwrap(), "a PyTorch file (torch.save)");
    }
    assert!(of(&["[Content_Types].xml", "xl/workbook.xml"]).unwrap().contains("office"));
    assert_eq!(of(&["config.json", "model.weights.h5"]).unwrap(), "a Keras model");
    assert_eq!((of(&[]), of(&["a.npy", "b.npy"]), of(&["data.pkl.txt"])), (None, None, None));
}

#[test]
fn pages_are_told_with_their_titles() {
    let reason = |text: &str| FileKind::of_page(text.as_bytes()).map(|kind| kind.reason());
    for (text, expected) in [
        (
            "<!DOCTYPE html>\n<html><head><title> Quota exceeded\n</title></head>",
            "it is a web page (HTML), \"Quota exceeded\", in place of the file itself",
        ),
        ("\u{feff}\r\n <HTML lang=\"en\">", "it is a web page (HTML), in place of the file itself"),
        (
            "<?xml version=\"1.0\"?>\n<Error><Message>Access Denied</Message></Error>",
            "it is an XML document, \"Access Denied\", in place of",
        ),
        ("<Error><Code>NoSuchKey</Code></Error>", "it is an XML document, in place of"),
        ("{\"error\": \"not found\"}", "it is JSON; convert it"),
        ("[[0.5, 1.0],\n[2, 3]]", "it is JSON; convert it"),
    ] {
        let said = reason(text).unwrap();
        assert!(said.starts_with(expected), "{said}");
    }
    for text in ["", "<s> 0.5 1\n", "<unk>\n", "{ 0.5 1\n", "[ 0.5 1\n", "html 1\n", "<xml> 1 2\n"]
    {
        assert_eq!(reason(text), None, "{text:?}");
    }
}
