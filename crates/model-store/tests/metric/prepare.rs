//! Preparing vectors with biases: each row keeps its own, whatever is skipped before it.

use std::fs;

use contract::Metric;
use model_store::ModelStore;
use model_store::prepare::{Input, PrepareOptions, prepare_in_memory};
use proptest::prelude::*;

use super::support::{npy, with_biases};
use crate::formats::support::{Packing, Scratch};

const TEXT: &str = "the 1 0\nking 3 4\nqueen 0 -1\n";

fn prepared(vectors: &[u8], biases: &[u8]) -> ModelStore {
    let scratch = Scratch::new();
    fs::write(scratch.path("biases"), biases).unwrap();
    scratch.prepare(vectors, &with_biases(scratch.path("biases"))).unwrap();
    scratch.open()
}

#[test]
fn the_dot_product_needs_no_biases() {
    let scratch = Scratch::new();
    let options = PrepareOptions { metric: Metric::Dot, ..Default::default() };
    scratch.prepare(TEXT, &options).unwrap();
    let model = scratch.open();
    assert_eq!((model.metric(), model.table().biases()), (Metric::Dot, None));
}

#[test]
fn every_form_of_biases_is_read() {
    let expected = [0.5, -2.0, 1024.0];
    let f4: Vec<u8> = expected.iter().flat_map(|x: &f32| x.to_le_bytes()).collect();
    let f8: Vec<u8> = expected.iter().flat_map(|&x| f64::from(x).to_le_bytes()).collect();
    let f2: Vec<u8> =
        [0x3800u16, 0xc000, 0x6400].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let forms: [(&str, Vec<u8>); 7] = [
        ("float32", npy("<f4", "(3,)", &f4)),
        ("float64", npy("<f8", "(3,)", &f8)),
        ("float16", npy("<f2", "(3,)", &f2)),
        ("text", b"0.5\n-2\n1024\n".to_vec()),
        ("no last line feed", b"0.5\n-2\n1.024e3".to_vec()),
        ("numpy.savetxt", b"5.000000000000000000e-01\n-2.0e+00\n1.024e+03\n".to_vec()),
        ("a mark, carriage returns, spaces", b"\xef\xbb\xbf0.5\r\n -2 \r\n1024\r\n".to_vec()),
    ];
    for (form, content) in forms {
        for packing in Packing::ALL {
            let model = prepared(TEXT.as_bytes(), &packing.pack(&content));
            assert_eq!(model.table().biases(), Some(&expected[..]), "{form}, {packing:?}");
        }
    }
}

#[test]
fn the_provenance_names_the_biases() {
    let model = prepared(TEXT.as_bytes(), b"1\n2\n3\n");
    assert_eq!(model.header().provenance.source_format, "glove text with biases in biases");
}

#[test]
fn rows_of_every_kind_of_file_have_their_biases() {
    // A repeated word, and a row that is not finite, before the last.
    let rows = [("a", 1.0f32), ("b", 2.0), ("a", 3.0), ("c", f32::NAN), ("d", 5.0)];
    let words: String = rows.iter().map(|(word, _)| format!("{word}\n")).collect();
    let numbers: Vec<u8> = rows.iter().flat_map(|(_, x)| x.to_le_bytes()).collect();
    let text: String = rows.iter().map(|(word, x)| format!("{word} {x}\n")).collect();
    let mut binary = b"5 1\n".to_vec();
    for (word, x) in rows {
        binary.extend_from_slice(format!("{word} ").as_bytes());
        binary.extend_from_slice(&x.to_le_bytes());
    }
    let word2vec = format!("5 1\n{text}");
    let array = npy("<f4", "(5, 1)", &numbers);
    for (content, has_words) in [
        (text.as_bytes(), false),
        (word2vec.as_bytes(), false),
        (&binary[..], false),
        (&array[..], true),
    ] {
        let scratch = Scratch::new();
        fs::write(scratch.path("biases"), "10\n20\n30\n40\n50\n").unwrap();
        fs::write(scratch.path("words.any"), &words).unwrap();
        let options = PrepareOptions {
            skip_bad_rows: true,
            words: has_words.then(|| scratch.path("words.any")),
            ..with_biases(scratch.path("biases"))
        };
        let summary = scratch.prepare(content, &options).unwrap();
        assert_eq!(
            (summary.provenance.bad_rows_skipped, summary.provenance.duplicate_words_dropped),
            (1, 1)
        );
        let model = scratch.open();
        assert_eq!(
            model.table().components(),
            [1.0, 2.0, 5.0],
            "{}",
            summary.provenance.source_format
        );
        assert_eq!(
            model.table().biases(),
            Some(&[10.0, 20.0, 50.0][..]),
            "{}",
            summary.provenance.source_format
        );
    }
}

#[test]
fn biases_stay_with_their_rows_over_many_chunks() {
    // About 5 MiB, so that several chunks are parsed, with rows skipped in all of them.
    let rows = 200_000;
    let line = |row: usize| match row % 7 {
        3 => format!("w{row} 1 x\n"),
        5 => format!("w{} 1 2\n", row - 5),
        _ => format!("w{row} {row} 0.123456789012345\n"),
    };
    let text: String = (0..rows).map(line).collect();
    let biases: String = (0..rows).map(|row| format!("{row}.5\n")).collect();
    let scratch = Scratch::new();
    fs::write(scratch.path("biases"), biases).unwrap();
    let options = PrepareOptions { skip_bad_rows: true, ..with_biases(scratch.path("biases")) };
    scratch.prepare(text, &options).unwrap();
    let model = scratch.open();
    let (table, biases) = (model.table(), model.table().biases().unwrap());
    assert_eq!(model.rows(), (0..rows).filter(|row| !matches!(row % 7, 3 | 5)).count());
    let first = table.components().chunks(2).map(|row| row[0]);
    assert!(first.zip(biases).all(|(row, &bias)| bias == row + 0.5));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// Rows of few words, some of them bad, with any biases: what is kept is what a simple loop
    /// keeps.
    #[test]
    fn what_is_dropped_drops_its_bias(
        rows in prop::collection::vec((0u8..6, prop::bool::weighted(0.3), any::<f32>()), 1..40),
        as_npy: bool,
    ) {
        let text: String = rows
            .iter()
            .enumerate()
            .map(|(i, (word, bad, _))| format!("w{word} {i} {}\n", if *bad { "?" } else { "1" }))
            .collect();
        let bias = |bias: f32| if bias.is_finite() { bias } else { -0.0 };
        let numbers: Vec<u8> = rows.iter().flat_map(|row| bias(row.2).to_le_bytes()).collect();
        let biases = match as_npy {
            true => npy("<f4", &format!("({},)", rows.len()), &numbers),
            false => rows.iter().map(|row| format!("{}\n", bias(row.2))).collect::<String>().into(),
        };
        let mut seen = Vec::new();
        let mut kept = Vec::new();
        for (word, bad, x) in &rows {
            if !bad && !seen.contains(word) {
                seen.push(*word);
                kept.push(bias(*x).to_bits());
            }
        }
        let scratch = Scratch::new();
        fs::write(scratch.path("biases"), biases).unwrap();
        let options = PrepareOptions {
            skip_bad_rows: true,
            dim: std::num::NonZeroUsize::new(2),
            ..with_biases(scratch.path("biases"))
        };
        let input = Input::Bytes { name: "rows", bytes: text.as_bytes() };
        match prepare_in_memory(input, &options) {
            Err(error) => {
                let bad = rows.iter().filter(|(_, bad, _)| *bad).count();
                prop_assert!(kept.is_empty() || bad > rows.len() - bad, "{error}");
            }
            Ok(files) => {
                let model = ModelStore::from_memory("m", &files).unwrap();
                model.verify(|_| ()).unwrap();
                let found: Vec<u32> =
                    model.table().biases().unwrap().iter().map(|x| x.to_bits()).collect();
                prop_assert_eq!(found, kept);
            }
        }
    }
}
