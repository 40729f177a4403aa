//! Static models: folders made in the test, by both layouts' rules, and each fault of a folder.

use std::fs;

use encoders::{EncoderError, Layout, StaticModel};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::static_folder::{
    TOKENS, f32s, model2vec, modules, rows, safetensors, static_embedding, tokenizer, write,
};

fn open(folder: &TempDir) -> StaticModel {
    StaticModel::open(folder.path()).unwrap()
}

/// A text's vector, how many tokens it is the mean of, how many are unknown, whether it was cut.
fn encode(model: &StaticModel, text: &str) -> ([f32; 2], usize, usize, bool) {
    let mut vector = [f32::NAN; 2];
    let encoded = model.encode(text, &mut vector);
    (vector, encoded.count, encoded.unknown, encoded.truncated)
}

#[test]
fn a_text_is_the_mean_of_its_tokens_rows_and_unknown_ones_are_dropped() {
    let model = open(&model2vec(json!({})));
    assert_eq!((model.layout(), model.dim(), model.normalizes()), (Layout::Model2Vec, 2, false));
    assert_eq!(encode(&model, "AB to"), ([2.0, 1.0], 3, 0, false));
    assert_eq!(encode(&model, "a x !"), ([3.5, 1.0], 2, 1, false));
    // What stands for the unknown token is one, wherever it stands.
    assert_eq!(encode(&model, "a[UNK]a"), ([1.0, 1.0], 2, 1, false));
}

#[test]
fn a_text_without_tokens_is_zero_and_says_so() {
    for normalize in [false, true] {
        let model = open(&model2vec(json!({ "normalize": normalize })));
        for text in ["", "  \n", "\u{200b}"] {
            assert_eq!(encode(&model, text), ([0.0; 2], 0, 0, false), "{text:?}");
        }
        assert_eq!(encode(&model, "x"), ([0.0; 2], 0, 1, false));
    }
}

#[test]
fn vectors_have_unit_length_only_if_the_folder_says_so() {
    let expected = [0.6f32, 0.8].map(|component| component * 5.0);
    let folder = model2vec(json!({"normalize": true}));
    let components: Vec<f32> = TOKENS.iter().flat_map(|_| expected).collect();
    let rows = safetensors(&[("embeddings", "F32", &[TOKENS.len(), 2], f32s(&components))]);
    write(folder.path(), "model.safetensors", rows);
    assert_eq!(encode(&open(&folder), "a a").0, [0.6, 0.8]);
    assert_eq!(encode(&open(&model2vec(json!({"normalize": null}))), "to").0, [3.0, 1.0]);
}

#[test]
fn a_text_is_cut_by_characters_then_by_tokens_before_unknown_ones_are_dropped() {
    // Four tokens of a median of two characters: eight characters.
    let model = open(&model2vec(json!({})));
    assert_eq!(encode(&model, "a to a a"), ([1.5, 1.0], 4, 0, false));
    assert_eq!(encode(&model, "boundary to"), ([4.0, 1.0], 1, 0, true));
    assert_eq!(encode(&model, "boundaryx").0, [4.0, 1.0], "the ninth character is cut off");
    assert_eq!(encode(&model, "\u{e9}\u{e9} aa a !"), ([1.0, 1.0], 1, 2, true));
    assert_eq!(encode(&model, "xx a !!a"), ([13.0 / 3.0, 1.0], 3, 1, true));
    let uncut = open(&model2vec(json!({ "max_length": null })));
    assert_eq!(encode(&uncut, "to a a a a a"), ([8.0 / 6.0, 1.0], 6, 0, false));
}

#[test]
fn without_a_length_512_tokens_are_kept() {
    let folder = model2vec(json!({}));
    write(folder.path(), "config.json", r#"{"model_type": "model2vec"}"#);
    let model = open(&folder);
    assert_eq!(encode(&model, &"a".repeat(600)).1, 0, "a word of 600 characters is unknown");
    assert_eq!(encode(&model, &"!".repeat(512)), ([6.0, 1.0], 512, 0, false));
    assert_eq!(encode(&model, &"!".repeat(513)), ([6.0, 1.0], 512, 0, true));
}

#[test]
fn sentence_transformers_cuts_to_the_tokens_of_its_tokenizer() {
    let folder = static_embedding("", &["StaticEmbedding"]);
    let mut tokenizer = tokenizer();
    tokenizer["truncation"]["max_length"] = json!(3);
    write(folder.path(), "tokenizer.json", tokenizer.to_string());
    let model = open(&folder);
    assert_eq!(encode(&model, "a boundary boundary"), ([3.0, 1.0], 3, 0, false));
    assert_eq!(encode(&model, "a boundary boundary !"), ([3.0, 1.0], 3, 0, true));
    // It is the unknown ones that count, too.
    assert_eq!(encode(&model, "x x x !"), ([0.0, 1.0], 3, 3, true));
}

#[test]
fn sentence_transformers_sums_in_float32_and_model2vec_in_float64() {
    let rows: Vec<f32> =
        TOKENS.iter().zip(0..).map(|(_, row)| if row == 1 { 3e7 } else { 1.0 }).collect();
    let file = safetensors(&[("0", "F32", &[TOKENS.len(), 1], f32s(&rows))]);
    // The ones are lost behind a large number in float32, which has 24 bits.
    let of = |folder: TempDir| {
        write(folder.path(), "model.safetensors", &file);
        let mut vector = [0.0];
        open(&folder).encode("a to to to", &mut vector);
        vector
    };
    assert_eq!(of(static_embedding("", &["StaticEmbedding"])), [3e7 / 4.0]);
    assert_eq!(of(model2vec(json!({ "max_length": null }))), [7_500_000.75f64 as f32]);
    assert_ne!(7_500_000.75f64 as f32, 3e7f32 / 4.0);
}

#[test]
fn sentence_transformers_keeps_unknown_tokens_and_without_a_length_cuts_nothing() {
    for path in ["", "0_StaticEmbedding"] {
        let model = open(&static_embedding(path, &["StaticEmbedding"]));
        assert_eq!((model.layout(), model.normalizes()), (Layout::StaticEmbedding, false));
        assert_eq!(encode(&model, "to x"), ([1.5, 1.0], 2, 1, false));
        assert_eq!(encode(&model, "x"), ([0.0, 1.0], 1, 1, false));
        assert_eq!(encode(&model, &"!".repeat(5_000)), ([6.0, 1.0], 5_000, 0, false));
        assert_eq!(encode(&model, ""), ([0.0; 2], 0, 0, false));
    }
    assert!(open(&static_embedding("", &["StaticEmbedding", "Normalize"])).normalizes());
}

#[test]
fn rows_are_found_by_the_mapping_and_weighted() {
    let folder = model2vec(json!({}));
    let half = |number: u16| number.to_le_bytes();
    // 1, 2, -2 and 0.5 in float16.
    let rows: Vec<u8> = [0x3c00, 0x4000, 0xc000, 0x3800].into_iter().flat_map(half).collect();
    let weights = f32s(&[1.0, 1.0, 1.0, 0.5, 1.0, 1.0, 3.0]);
    let as_i32: Vec<u8> =
        [0i32, 1, 0, 1, 0, 1, 0].iter().flat_map(|row| row.to_le_bytes()).collect();
    let as_i64: Vec<u8> =
        [0i64, 1, 0, 1, 0, 1, 0].iter().flat_map(|row| row.to_le_bytes()).collect();
    for (kind, mapping) in [("I32", as_i32), ("I64", as_i64)] {
        let file = safetensors(&[
            ("0", "F16", &[2, 2], rows.clone()),
            ("mapping", kind, &[7], mapping),
            ("weights", "F32", &[7], weights.clone()),
        ]);
        write(folder.path(), "model.safetensors", file);
        let model = open(&folder);
        assert_eq!(
            encode(&model, "to ! !").0,
            [(-1.0 + 3.0 + 3.0) / 3.0, (0.25 + 6.0 + 6.0) / 3.0]
        );
        let mut vector = [0.0; 2];
        model.token(3, &mut vector);
        assert_eq!(vector, [-1.0, 0.25]);
    }
}

#[test]
fn int8_rows_are_plain_integers() {
    let folder = model2vec(json!({}));
    let rows: Vec<u8> = (0..7i8).flat_map(|row| [row - 4, -128]).map(i8::cast_unsigned).collect();
    let file = safetensors(&[("embeddings", "I8", &[7, 2], rows)]);
    write(folder.path(), "model.safetensors", file);
    assert_eq!(encode(&open(&folder), "a to").0, [-2.0, -128.0]);
}

#[test]
fn the_same_text_has_the_same_bits_whatever_was_encoded_before() {
    let model = open(&model2vec(json!({"normalize": true})));
    let first = encode(&model, "a to !").0.map(f32::to_bits);
    encode(&model, "boundary");
    assert_eq!(encode(&model, "a to !").0.map(f32::to_bits), first);
}

fn fault(folder: &TempDir) -> (bool, String) {
    let error = StaticModel::open(folder.path()).expect_err("it is refused");
    (matches!(error, EncoderError::Unsupported { .. }), error.to_string())
}

#[test]
fn each_folder_that_is_not_read_is_named_with_the_reason() {
    let edited = |edit: &dyn Fn(&mut Value)| {
        let (folder, mut tokenizer) = (model2vec(json!({})), tokenizer());
        edit(&mut tokenizer);
        write(folder.path(), "tokenizer.json", tokenizer.to_string());
        folder
    };
    let with_rows = |file: Vec<u8>| {
        let folder = model2vec(json!({}));
        write(folder.path(), "model.safetensors", file);
        folder
    };
    let outside = static_embedding("", &["StaticEmbedding"]);
    write(outside.path(), "modules.json", modules("x/../..", &["StaticEmbedding"]));
    let unsupported = [
        (tempfile::tempdir().unwrap(), "no folder of a static model"),
        (static_embedding("", &["Transformer", "Pooling"]), "Transformer, Pooling"),
        (edited(&|file| file["model"]["type"] = json!("WordLevel")), "model is WordLevel"),
        (edited(&|file| file["normalizer"] = json!({})), "normalizer is without a type"),
        (edited(&|file| file["pre_tokenizer"]["type"] = json!("Mine")), "Mine"),
        (edited(&|file| file["truncation"]["direction"] = json!("Left")), "\"Left\""),
        (with_rows(safetensors(&[("0", "F64", &[1, 1], vec![0; 8])])), "F64"),
    ];
    let faulty = [
        (edited(&|file| file["model"]["unk_token"] = json!("?")), "unknown token \"?\""),
        (edited(&|file| file["model"]["vocab"]["to"] = json!(7)), "has the id 7"),
        (edited(&|file| file["model"]["vocab"]["to"] = json!(1)), "have the id 1"),
        (edited(&|file| file["added_tokens"][0]["content"] = json!("[X]")), "7 rows for 8 tokens"),
        (edited(&|file| file["model"] = json!({"type": "WordPiece"})), "unk_token"),
        (edited(&|file| *file = json!([])), "no tokenizer.json"),
        (with_rows(vec![1, 2, 3]), "model.safetensors"),
        (with_rows(safetensors(&[("x", "F32", &[1, 1], vec![0; 4])])), "no tensor named"),
        (with_rows(safetensors(&[("0", "F32", &[7], vec![0; 28])])), "shape [7]"),
        (with_rows(safetensors(&[("0", "F32", &[7, 0], vec![])])), "shape [7, 0]"),
        (with_rows(safetensors(&[("0", "F32", &[6, 1], vec![0; 24])])), "6 rows for 7 tokens"),
        (mapped("I32", [0i32, 1, 2, 3, 4, 5, 7].map(i32::to_le_bytes).concat()), "row 7 of 7"),
        (mapped("I32", [0i32, 1, 2, 3, 4, 5, -1].map(i32::to_le_bytes).concat()), "a row is -1"),
        (mapped("F32", vec![0; 28]), "F32 instead of I32 or I64"),
        (outside, "leads out of the folder"),
    ];
    for (folder, said) in unsupported {
        let (is_unsupported, message) = fault(&folder);
        assert!(is_unsupported && message.contains(said), "{said}: {message}");
    }
    for (folder, said) in faulty {
        let (is_unsupported, message) = fault(&folder);
        assert!(!is_unsupported && message.contains(said), "{said}: {message}");
    }
}

/// A folder whose seven rows are found by this mapping.
fn mapped(kind: &str, mapping: Vec<u8>) -> TempDir {
    let folder = model2vec(json!({}));
    let rows = ("0", "F32", &[7usize, 1][..], vec![0; 28]);
    write(
        folder.path(),
        "model.safetensors",
        safetensors(&[rows, ("mapping", kind, &[7], mapping)]),
    );
    folder
}

#[test]
fn a_missing_file_is_named() {
    for name in ["tokenizer.json", "model.safetensors"] {
        let folder = model2vec(json!({}));
        fs::remove_file(folder.path().join(name)).unwrap();
        let (_, message) = fault(&folder);
        assert!(message.contains(name), "{message}");
    }
}

#[test]
fn a_tokenizer_cut_anywhere_is_refused() {
    let (folder, whole) = (model2vec(json!({})), tokenizer().to_string());
    for length in (0..whole.len()).step_by(7) {
        write(folder.path(), "tokenizer.json", &whole[..length]);
        fault(&folder);
    }
    let (folder, whole) = (model2vec(json!({})), rows());
    for length in 1..whole.len() {
        write(folder.path(), "model.safetensors", &whole[..length]);
        fault(&folder);
    }
}
