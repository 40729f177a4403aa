//! Tokenisers of every kind: damaged files and any text are errors or ids, and never a panic.

use std::path::Path;

use encoders::{EncoderError, Tokeniser};
use proptest::prelude::*;
use serde_json::{Value, json};

/// Small files of every kind, with every part that is read between them.
fn files() -> Vec<Value> {
    let added = json!([
        {"id": 0, "content": "<unk>"}, {"id": 9, "content": "<mask>", "lstrip": true},
        {"id": 10, "content": "Ab", "normalized": true, "rstrip": true, "single_word": true},
    ]);
    let vocab = json!({"<unk>": 0, "a": 1, "b": 2, "ab": 3, "##b": 4, "\u{120}a": 5, "\u{c3}": 6});
    let pieces = json!([["<unk>", 0], ["a", -1.5], ["\u{2581}a", -2e0], ["<0x41>", -9.25]]);
    let replaced = json!({"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "});
    let normalizers = ["NFKC", "Nmt", "Lowercase", "StripAccents", "NFC", "NFD", "NFKD"]
        .map(|kind| json!({ "type": kind }));
    let strip = json!({"type": "Strip", "strip_left": true, "strip_right": false});
    let steps: Vec<Value> = [strip, replaced].into_iter().chain(normalizers).collect();
    let meta = json!({"type": "Metaspace", "replacement": "\u{2581}", "prepend_scheme": "first"});
    let digits = json!({"type": "Digits", "individual_digits": false});
    let cuts = [json!({"type": "Whitespace"}), json!({"type": "Punctuation"}), digits, meta];
    let bytes = json!({"type": "ByteLevel", "add_prefix_space": true});
    vec![
        json!({"added_tokens": added, "normalizer": {"type": "Sequence", "normalizers": steps},
            "pre_tokenizer": {"type": "Sequence", "pretokenizers": cuts},
            "model": {"type": "Unigram", "unk_id": 0, "byte_fallback": true, "vocab": pieces}}),
        json!({"added_tokens": added, "pre_tokenizer": bytes,
            "model": {"type": "BPE", "vocab": vocab, "merges": ["a b"], "unk_token": "<unk>"}}),
        json!({"normalizer": {"type": "Prepend", "prepend": "a"},
            "pre_tokenizer": {"type": "WhitespaceSplit"},
            "model": {"type": "WordPiece", "vocab": vocab, "unk_token": "<unk>",
                "continuing_subword_prefix": "##", "max_input_chars_per_word": 9}}),
    ]
}

fn read(bytes: &[u8]) -> Result<Tokeniser, EncoderError> {
    Tokeniser::from_bytes(Path::new("tokenizer.json"), bytes)
}

fn ids(tokeniser: &Tokeniser, text: &str) -> Vec<u32> {
    let mut ids = Vec::new();
    tokeniser.encode(text, &mut ids);
    ids
}

#[test]
fn each_kind_says_its_name_and_ids_of_added_tokens_are_behind_the_vocabulary() {
    let found: Vec<Tokeniser> =
        files().iter().map(|file| read(file.to_string().as_bytes()).unwrap()).collect();
    let kinds: Vec<_> = found.iter().map(|one| (one.kind(), one.unknown())).collect();
    assert_eq!(kinds, [("unigram", Some(0)), ("bpe", Some(0)), ("wordpiece", Some(0))]);
    assert_eq!(found[0].tokens()[4..], ["<mask>", "Ab"]);
    assert_eq!(ids(&found[0], "a <mask> A"), [2, 4, 1]);
    assert_eq!(ids(&found[1], "a Ab  \u{e9}"), [0, 1, 0, 8, 0, 6, 0]);
    assert_eq!(ids(&found[2], "b x"), [3, 0]);
}

proptest! {
    #[test]
    fn any_text_has_ids_of_tokens(text in any::<String>(), more in "[ab <>mask\u{2581}'\u{300}\r\n]*") {
        for file in files() {
            let tokeniser = read(file.to_string().as_bytes()).unwrap();
            for text in [&text, &more, &format!("{text}{more}{text}")] {
                let count = tokeniser.tokens().len() as u32;
                prop_assert!(ids(&tokeniser, text).iter().all(|id| *id < count));
            }
        }
    }

    #[test]
    fn a_file_with_a_changed_byte_is_refused_or_read(
        at in any::<prop::sample::Index>(), byte in any::<u8>(), text in "[ab <>mask\u{e9}]*",
    ) {
        for file in files() {
            let mut bytes = file.to_string().into_bytes();
            let at = at.index(bytes.len());
            bytes[at] = byte;
            if let Ok(tokeniser) = read(&bytes) {
                ids(&tokeniser, &text);
            }
        }
    }
}
