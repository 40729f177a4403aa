//! Biases that do not belong to the vectors, or are none: refused, with the file, the line and the
//! cure.

use std::fs;

use contract::Metric;
use model_store::prepare::PrepareOptions;

use model_store::ModelStore;
use model_store::prepare::{Input, prepare_in_memory};
use proptest::prelude::*;

use super::support::{npy, with_biases};
use crate::formats::support::{Packing, Scratch, WORDS};

const TEXT: &str = "the 1 0\nking 3 4\nqueen 0 -1\n";

/// The error for these vectors and biases. The biases are in the file that may stay.
fn refused_with(vectors: &str, biases: &[u8], skip_bad_rows: bool) -> String {
    let scratch = Scratch::new();
    fs::write(scratch.path(WORDS), biases).unwrap();
    let options = PrepareOptions { skip_bad_rows, ..with_biases(scratch.path(WORDS)) };
    let said = scratch.refused(vectors, &options);
    assert!(said.contains(WORDS), "{said}");
    said
}

fn refused(biases: &[u8]) -> String {
    refused_with(TEXT, biases, false)
}

#[test]
fn wrong_counts_name_both_files_and_where_they_part() {
    for (biases, parts) in [
        (&b"1\n2\n"[..], ["it has 2 biases", "vectors.any goes on: line 3 has none"]),
        (b"", ["it has 0 biases", "line 1 has none"]),
        (b"1\n2\n3\n4\n5\n", ["it has 5 biases", "vectors.any has only 3 rows: line 4 belongs to"]),
        (&npy("<f4", "(2,)", &[0; 8]), ["it has 2 biases", "line 3 has none"]),
        (&npy("<f4", "(4,)", &[0; 16]), ["it has 4 biases", "only 3 rows: row 3 belongs to none"]),
    ] {
        let said = refused(biases);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
        assert!(said.contains("give one bias for each row of vectors.any"), "{said}");
    }
}

#[test]
fn rows_that_are_skipped_or_repeated_count() {
    let text = "the 1 0\nthe 3 4\nqueen 0 x\nof 0 1\n";
    for biases in ["1\n2\n", "1\n2\n3\n"] {
        let said = refused_with(text, biases.as_bytes(), true);
        assert!(said.contains("also for rows that are skipped or repeated"), "{said}");
    }
    let said = refused_with(text, b"1\n2\n3\n4\n5\n", true);
    assert!(said.contains("has only 4 rows: line 5 belongs to none"), "{said}");
    // Word2vec counts its lines with the header.
    let said = refused_with(&format!("4 2\n{text}"), b"1\n2\n3\n", true);
    assert!(said.contains("line 5 has none"), "{said}");
}

#[test]
fn numbers_that_are_none_name_their_line() {
    for (biases, parts) in [
        (&b"1\nfrog\n3\n"[..], ["line 2: the bias is not a number: `frog`", "one finite number"]),
        (b"1 2\n", ["line 1: the bias is not a number: `1 2`", ".npy"]),
        (b"1\n2\nnan\n", ["line 3: the bias is not finite: nan", "finite"]),
        (b"1\n-inf\n3\n", ["line 2: the bias is not finite: -inf", "finite"]),
        (b"1\n1e39\n3\n", ["line 2: the bias is outside the range of float32", "1e39"]),
        (b"1\n\n3\n", ["line 2: it is empty", "one finite number per line"]),
        (b"1\n  \n3\n", ["line 2: it is empty", "one finite number per line"]),
        (b"\xff1\n2\n3\n", ["line 1: the bias is not a number", "one finite number per line"]),
        (b"\xff\xfe1\0\n\x002\0\n\x003\0\n\0", ["it is UTF-16 text", "iconv -f UTF-16 "]),
        (b"1\0\n\x002\0\n\x003\0\n\0", ["it is UTF-16 text", "iconv -f UTF-16LE"]),
        (&[b'1'; 10_000], ["line 1: the line is longer than 4096 bytes", "one finite number"]),
    ] {
        let said = refused(biases);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn arrays_that_are_no_biases_are_refused() {
    let bytes = |numbers: [f32; 3]| numbers.map(f32::to_le_bytes).concat();
    let good = bytes([1.0, 2.0, 3.0]);
    for (biases, parts) in [
        (npy("<f4", "(3, 1)", &good), ["2 dimensions instead of 1", "array.ravel()"]),
        (npy("<f4", "()", &good[..4]), ["0 dimensions instead of 1", "one number for each row"]),
        (npy("<i4", "(3,)", &good), ["the type <i4", "array.astype('<f4')"]),
        (npy(">f4", "(3,)", &good), ["the type >f4", "little-endian"]),
        (npy("<f4", "(3,)", &good[..11]), ["announces 3 numbers of 4 bytes", "11 bytes follow"]),
        (npy("<f4", "(3,)", &[&good[..], &[1]].concat()), ["13 bytes follow", "cut off"]),
        (npy("<f8", "(9223372036854775808,)", &good), ["of 8 bytes", "12 bytes follow"]),
        (npy("<f4", "(3,)", &bytes([1.0, f32::NAN, 3.0])), ["row 1: the bias", "NaN"]),
        (npy("<f4", "(3,)", &bytes([1.0, 2.0, f32::INFINITY])), ["row 2: the bias", "inf"]),
        (npy("<f8", "(1,)", &1e300f64.to_le_bytes()), ["row 0: the bias", "finite float32"]),
        (b"\x93NUMPY\x01\x00\x05".to_vec(), ["npy header can't be read", "cut off"]),
    ] {
        let said = refused(&biases);
        assert!(parts.iter().all(|part| said.contains(part)), "{said}");
    }
}

#[test]
fn damaged_packings_name_the_biases() {
    for packing in [Packing::Gzip, Packing::Zstd, Packing::Xz] {
        let whole = packing.pack("0.123\n".repeat(1000).as_bytes());
        let said = refused(&whole[..whole.len() - 9]);
        assert!(said.contains("cut off or damaged"), "{packing:?}: {said}");
    }
}

#[test]
fn cosines_have_no_biases() {
    let scratch = Scratch::new();
    fs::write(scratch.path(WORDS), "1\n2\n3\n").unwrap();
    let options = PrepareOptions { metric: Metric::Cosine, ..with_biases(scratch.path(WORDS)) };
    let said = scratch.refused(TEXT, &options);
    assert!(said.contains(WORDS) && said.contains("add --metric dot, or omit --bias"), "{said}");
}

#[test]
fn a_file_that_is_missing_is_named() {
    let scratch = Scratch::new();
    let said = scratch.refused(TEXT, &with_biases(scratch.path("nowhere.npy")));
    assert!(said.contains("can't open") && said.contains("nowhere.npy"), "{said}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]
    /// Damage in a good file, or any bytes at all: refused, or three finite biases.
    #[test]
    fn any_bytes_are_refused_or_become_finite_biases(
        start in prop::sample::select(vec![
            b"1\n-2.5\n3e4\n".to_vec(),
            npy("<f4", "(3,)", &[0; 12]),
            npy("<f8", "(3,)", &[1; 24]),
            Packing::Gzip.pack(b"1\n2\n3\n"),
            Vec::new(),
        ]),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::weighted(0.2, any::<prop::sample::Index>()),
        appended in prop::collection::vec(any::<u8>(), 0..4),
    ) {
        let mut bytes = start;
        for (at, byte) in changes {
            if !bytes.is_empty() {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        bytes.extend(appended);
        let scratch = Scratch::new();
        fs::write(scratch.path(WORDS), &bytes).unwrap();
        let input = Input::Bytes { name: "three.txt", bytes: TEXT.as_bytes() };
        match prepare_in_memory(input, &with_biases(scratch.path(WORDS))) {
            Err(error) => prop_assert!(error.to_string().contains(WORDS), "{error}"),
            Ok(files) => {
                let model = ModelStore::from_memory("m", &files).unwrap();
                model.verify(|_| ()).unwrap();
                prop_assert_eq!(model.table().biases().unwrap().len(), 3);
            }
        }
    }
}
