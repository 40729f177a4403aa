//! Files that are something else or packed otherwise: read, or named for what they are, with what
//! to do.

use model_store::prepare::{PrepareOptions, VectorsFormat};
use zip::CompressionMethod;

use super::files::{glove, safetensors};
use super::support::{Packing, Scratch, components, words_text, zip, zip_with};

#[track_caller]
fn refused(content: impl AsRef<[u8]>, options: &PrepareOptions, parts: &[&str]) {
    let said = Scratch::new().refused(content, options);
    assert!(said.contains("vectors.any: "), "the file is named: {said}");
    for part in parts {
        assert!(said.contains(part), "{part:?} is missing: {said}");
    }
}

/// An archive of one file.
fn tar(name: &str, content: &[u8]) -> Vec<u8> {
    let mut block = vec![0; 512];
    block[..name.len()].copy_from_slice(name.as_bytes());
    block[124..135].copy_from_slice(format!("{:011o}", content.len()).as_bytes());
    block[156] = b'0';
    block[257..263].copy_from_slice(b"ustar\0");
    block[148..156].fill(b' ');
    let sum: u32 = block.iter().map(|&byte| u32::from(byte)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block.extend(content);
    block.resize(block.len().next_multiple_of(512) + 1024, 0);
    block
}

#[test]
fn safetensors_are_read_whatever_the_length_of_their_header() {
    let data = components();
    for length in [640, 648, 896, 1152, 1408, 35_615, 65_279, 70_000] {
        let file = safetensors("F32", &data);
        let header = 8 + u64::from_le_bytes(file[..8].try_into().unwrap()) as usize;
        let mut padded = file[8..header].to_vec();
        padded.resize(length, b' ');
        let file = [&(length as u64).to_le_bytes()[..], &padded, &file[header..]].concat();
        for packing in Packing::ALL {
            for format in [None, Some(VectorsFormat::Safetensors)] {
                let scratch = Scratch::new();
                let options = PrepareOptions { format, ..scratch.with_words(words_text()) };
                let summary = scratch.prepare(packing.pack(&file), &options);
                let summary = summary.unwrap_or_else(|error| panic!("{length}: {error}"));
                assert_eq!((summary.rows, summary.dim), (4, 3), "{length}, {packing:?}");
            }
        }
    }
}

#[test]
fn other_kinds_are_named_plain_or_compressed_whatever_format_is_given() {
    let pointer = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 9\n";
    let text = glove(" ", "\n");
    for (content, parts) in [
        (
            tar("small.txt", text.as_bytes()),
            ["it is a tar archive, whose first file is `small.txt`", "tar -xf FILE"],
        ),
        (b"SQLite format 3\0\x10\0\x01\x01".to_vec(), ["SQLite", "numpy.save"]),
        (b"PAR1\x15\x04\x15\0\0\0PAR1".to_vec(), ["Parquet", "pandas.read_parquet"]),
        (b"ARROW1\0\0\xff\xff\xff\xff".to_vec(), ["Arrow", "pandas.read_feather"]),
        (b"GGUF\x03\0\0\0\0\0\0\0".to_vec(), ["GGUF", "safetensors"]),
        (b"IxFI\x03\0\0\0\x03\0\0\0".to_vec(), ["FAISS", "reconstruct_n"]),
        (b"7z\xbc\xaf\x27\x1c\0\x04".to_vec(), ["7z archive", "7z x FILE"]),
        (
            b"\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.".to_vec(),
            ["PyTorch", "torch.load"],
        ),
        (b"\x80\x04\x95\0\0".to_vec(), ["Python pickle", "numpy.save"]),
        (b"\x89HDF\r\n\x1a\n\0".to_vec(), ["HDF5", "numpy.save"]),
        (pointer.to_vec(), ["Git LFS pointer", "git lfs pull"]),
        (
            b"<!DOCTYPE html>\n<html><head><title>Quota exceeded</title></head>\n".to_vec(),
            ["web page (HTML), \"Quota exceeded\"", "download the file again"],
        ),
        (
            b"<?xml version=\"1.0\"?>\n<Error><Message>Access Denied</Message></Error>".to_vec(),
            ["XML document, \"Access Denied\"", "download the file again"],
        ),
    ] {
        for packing in Packing::ALL {
            let content = packing.pack(&content);
            for format in [None, Some(VectorsFormat::Glove), Some(VectorsFormat::Word2vec)] {
                for skip_bad_rows in [false, true] {
                    let options = PrepareOptions { format, skip_bad_rows, ..Default::default() };
                    refused(&content, &options, &parts);
                }
            }
        }
    }
    // Neither in place of the words.
    let scratch = Scratch::new();
    let options = scratch.with_words(tar("words.txt", words_text().as_bytes()));
    let said = scratch.refused("0.5 1\n2 3\n", &options);
    assert!(said.contains("words.any: it is a tar archive"), "{said}");
    let options = scratch.with_words(safetensors("F32", &components()));
    let said = scratch.refused("0.5 1\n2 3\n", &options);
    assert!(said.contains("words.any: it is a safetensors file, and text is needed"), "{said}");
}

#[test]
fn words_that_begin_like_another_kind_are_words() {
    for word in ["PAR1", "GGUF", "IxFI", "BZh9", "BZh91A", "7z", "PK", "<html>", "{\"", "[["] {
        let scratch = Scratch::new();
        let text = format!("{word} 0.5 1\nthe 2 3\n");
        let summary = scratch.prepare(text, &PrepareOptions::default());
        summary.unwrap_or_else(|error| panic!("{word}: {error}"));
        assert_eq!(scratch.open().words().row(word), Some(contract::Row(0)));
    }
}

#[test]
fn archives_that_are_not_read_say_how_they_are_packed() {
    let text = glove(" ", "\n");
    let files = [("v.txt", text.as_bytes())];
    // Read, as `zip -Z bzip2` writes it.
    let scratch = Scratch::new();
    let archive = zip_with(CompressionMethod::Bzip2, &files);
    let summary = scratch.prepare(archive, &PrepareOptions::default()).unwrap();
    assert_eq!(summary.rows, 4);

    // The method is in the head of the file and in the directory at the end.
    let plain = zip_with(CompressionMethod::Stored, &files);
    let directory = plain.windows(4).position(|four| four == b"PK\x01\x02").unwrap();
    for (method, name) in [
        (14_u16, "compressed with LZMA"),
        (9, "compressed with Deflate64"),
        (93, "compressed with zstd"),
        (95, "compressed with xz"),
        (98, "compressed with PPMd"),
        (6, "compressed with another method"),
    ] {
        let mut archive = plain.clone();
        for at in [8, directory + 10] {
            archive[at..at + 2].copy_from_slice(&method.to_le_bytes());
        }
        let parts = ["the member `v.txt`", name, "which is not read", "7z x FILE"];
        refused(archive, &PrepareOptions::default(), &parts);
    }
    let mut encrypted = plain;
    for at in [6, directory + 8] {
        encrypted[at] |= 1;
    }
    let parts = ["the member `v.txt`", "is encrypted, which is not read", "7z x FILE"];
    refused(encrypted, &PrepareOptions::default(), &parts);

    let torch = zip(&[("archive/data.pkl", b"\x80\x02}q\0."), ("archive/data/0", &[0; 64])]);
    let parts = ["it is a PyTorch file (torch.save)", "safetensors.torch.save_file"];
    refused(&torch, &PrepareOptions::default(), &parts);
    let member = PrepareOptions { member: Some("archive/data.pkl".into()), ..Default::default() };
    refused(&torch, &member, &["it is a Python pickle"]);
}
