//! fastText's word models: each trap of the format, and each fault of a file.

use std::fs;

use encoders::{EncoderError, FastText};
use proptest::prelude::*;

use super::support::{File, component, model, words};

fn texts(model: &FastText, word: &[u8]) -> Vec<Vec<u8>> {
    model.subwords(word).into_iter().map(|part| part.text).collect()
}

fn fault(file: &File) -> String {
    file.model().expect_err("it is refused").to_string()
}

#[test]
fn a_known_word_has_its_own_row_first_and_an_unknown_one_only_ngrams() {
    let model = File::default().model().unwrap();
    assert_eq!((model.words(), model.dim(), model.word(1)), (3, 2, &b"the"[..]));
    assert_eq!((model.find(b"the"), model.find(b"The"), model.find(b"th")), (Some(1), None, None));
    assert_eq!([0, 1, 2].map(|row| model.count(row)), [100, 99, 98]);
    let parts = model.subwords(b"the");
    assert_eq!((parts[0].text.as_slice(), parts[0].row), (&b"the"[..], 1));
    let ngrams = ["<t", "<th", "th", "the", "he", "he>", "e>"];
    assert_eq!(texts(&model, b"the")[1..], ngrams.map(|text| text.as_bytes().to_vec()));
    assert_eq!(texts(&model, b"The")[0], b"<T");
    assert!(parts[1..].iter().all(|part| (3..8).contains(&part.row)));
}

#[test]
fn a_vector_is_summed_in_order_and_multiplied_by_the_rounded_share() {
    let model = File::default().model().unwrap();
    for word in [&b"the"[..], b"unknown", "naïve".as_bytes(), b"a b"] {
        let parts = model.subwords(word);
        let mut expected = [0f32; 2];
        for part in &parts {
            for (at, sum) in expected.iter_mut().enumerate() {
                *sum += component(part.row as usize * 2 + at);
            }
        }
        let share = (1.0 / parts.len() as f64) as f32;
        let mut vector = [f32::NAN; 2];
        assert_eq!(model.vector(word, &mut vector), parts.len());
        assert_eq!(vector.map(f32::to_bits), expected.map(|sum| (sum * share).to_bits()));
    }
}

#[test]
fn the_end_of_a_line_has_its_own_row_alone_or_none() {
    let model = File::default().model().unwrap();
    assert_eq!(texts(&model, b"</s>"), [b"</s>"]);
    let without = File { entries: words(&[b"the"]), ..File::default() }.model().unwrap();
    let mut vector = [1.0; 2];
    assert_eq!(without.vector(b"</s>", &mut vector), 0);
    assert_eq!(vector, [0.0; 2]);
}

#[test]
fn the_empty_word_has_one_ngram_if_two_characters_are_enough() {
    assert_eq!(texts(&File::default().model().unwrap(), b""), [b"<>"]);
    let longer = File { minn: 3, maxn: 6, ..File::default() }.model().unwrap();
    let mut vector = [1.0; 2];
    assert_eq!(longer.vector(b"", &mut vector), 0);
    assert_eq!(vector, [0.0; 2]);
}

#[test]
fn without_ngrams_or_buckets_unknown_words_are_zero() {
    for (bucket, minn, maxn) in [(0, 0, 0), (5, 0, 0), (0, 3, 6), (5, 4, 3)] {
        let model = File { bucket, minn, maxn, ..File::default() }.model().unwrap();
        assert!(!model.training().lengths().has_any());
        let mut vector = [1.0; 2];
        assert_eq!(model.vector(b"unknown", &mut vector), 0);
        assert_eq!(vector, [0.0; 2]);
        assert_eq!(model.vector(b"the", &mut vector), 1);
        assert_eq!(vector, [component(2), component(3)]);
    }
    assert!(File::default().model().unwrap().training().lengths().has_any());
}

#[test]
fn the_whole_word_in_brackets_is_an_ngram_beside_its_own_row() {
    let model = File { minn: 3, maxn: 5, ..File::default() }.model().unwrap();
    let found = texts(&model, b"the");
    assert!(found.contains(&b"the".to_vec()) && found.contains(&b"<the>".to_vec()));
    // `the` is there twice: as the word, and as an n-gram.
    assert_eq!(found.iter().filter(|text| *text == b"the").count(), 2);
}

#[test]
fn ngrams_that_occur_twice_count_twice() {
    let model = File { minn: 1, maxn: 1, ..File::default() }.model().unwrap();
    assert_eq!(texts(&model, b"xx"), [b"x", b"x"]);
}

#[test]
fn words_need_not_be_utf_8() {
    let odd: &[u8] = b"\xff\x80\xc3";
    let model = File { entries: words(&[b"the", odd]), ..File::default() }.model().unwrap();
    assert_eq!((model.word(1), model.find(odd)), (odd, Some(1)));
    let parts: [&[u8]; 6] =
        [odd, b"<\xff\x80", b"<\xff\x80\xc3", b"\xff\x80\xc3", b"\xff\x80\xc3>", b"\xc3>"];
    assert_eq!(texts(&model, odd), parts);
    // A continuation byte begins no n-gram.
    assert_eq!(texts(&model, b"\x80"), [&b"<\x80>"[..]]);
}

#[test]
fn of_equal_words_the_first_is_found_and_labels_are_no_words() {
    let mut entries = words(&[b"the", b"a", b"the"]);
    entries.push((b"__label__x".to_vec(), 1, 1));
    let model = File { entries, ..File::default() }.model().unwrap();
    assert_eq!((model.words(), model.find(b"the")), (3, Some(0)));
    assert_eq!(model.find(b"__label__x"), None);
    assert_eq!(model.subwords(b"__label__x")[0].text, b"<_");
}

#[test]
fn versions_11_and_12_are_read_and_others_named() {
    assert_eq!(File { version: 11, ..File::default() }.model().unwrap().training().version, 11);
    for version in [10, 13, -1] {
        let file = File { version, ..File::default() };
        assert!(fault(&file).contains(&format!("version {version} ")));
    }
}

#[test]
fn each_kind_that_is_not_read_is_named_with_its_cure() {
    let default = File::default;
    for (file, said) in [
        (File { magic: 1, ..default() }, "BA 16 4F 2F"),
        (File { model: 3, ..default() }, "classifier"),
        (File { is_quantised: 1, ..default() }, "quantised"),
    ] {
        let error = file.model().expect_err("it is refused");
        assert!(matches!(error, EncoderError::Unsupported { .. }), "{error}");
        assert!(error.to_string().starts_with("small.bin: "), "{error}");
        assert!(error.to_string().contains(said), "{error}");
    }
}

#[test]
fn each_contradiction_is_named_with_its_byte() {
    let default = File::default;
    let at = File::COUNTS_AT;
    let word_as_label = vec![(b"x".to_vec(), 1, 1), (b"the".to_vec(), 1, 0)];
    for (file, byte, said) in [
        (File { dim: 0, ..default() }, 8, "no components"),
        (File { dim: -2, ..default() }, 8, "components is -2"),
        (File { model: 4, ..default() }, 36, "kind of model is 4"),
        (File { bucket: -1, ..default() }, 40, "buckets is -1"),
        (File { counts: Some([3, 2, 2]), ..default() }, at, "3 entries are not 2 words and 2"),
        (File { counts: Some([-3, 2, 2]), ..default() }, at, "entries is -3"),
        // These would take 20 GB if the numbers were believed.
        (
            File { counts: Some([i32::MAX, i32::MAX, 0]), ..default() },
            at + 28,
            "2147483647 entries need at least 21474836470 bytes",
        ),
        (File { pruned: 0, ..default() }, at + 20, "pruned"),
        (File { pruned: 7, ..default() }, at + 20, "pruned"),
        (
            File { entries: word_as_label, counts: Some([2, 1, 1]), ..default() },
            at + 28 + 2 + 8,
            "entry 0 has the kind 1 instead of 0",
        ),
        (File { is_quantised: 2, ..default() }, 130, "2 instead of 0 or 1"),
        (File { rows: Some([7, 2]), ..default() }, 131, "7 × 2 numbers instead of 8 × 2"),
        (File { rows: Some([8, 3]), ..default() }, 131, "8 × 3 numbers instead of 8 × 2"),
        (File { rows: Some([-8, 2]), ..default() }, 131, "-8 × 2 numbers instead of 8 × 2"),
        (File { output: Some([2, 2]), ..default() }, 212, "2 × 2 numbers instead of 3 × 2"),
        (File { behind: vec![0; 9], ..default() }, 252, "9 bytes follow"),
    ] {
        let error = file.model().expect_err("it is refused");
        let EncoderError::Damaged { byte: found, .. } = &error else { panic!("{error}") };
        assert!(error.to_string().contains(said), "{error}");
        assert_eq!(*found, byte, "{error}");
    }
}

#[test]
fn rows_that_no_file_can_have_are_refused_before_anything_is_allocated() {
    let (dim, bucket) = (i32::MAX, i32::MAX);
    let rows = Some([i64::from(bucket) + 3, i64::from(dim)]);
    let said = fault(&File { dim, bucket, rows, ..File::default() });
    assert!(said.contains("rows"), "{said}");
}

#[test]
fn a_file_cut_anywhere_is_refused_at_a_byte_that_it_has() {
    let bytes = File::default().bytes();
    assert!(model(&bytes).is_ok());
    for length in 1..bytes.len() {
        let error = model(&bytes[..length]).expect_err("it is refused");
        let EncoderError::Damaged { byte, .. } = &error else { panic!("{length}: {error}") };
        assert!(*byte <= length as u64, "{length}: {error}");
    }
}

#[test]
fn a_file_is_mapped_and_a_missing_one_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("model.bin");
    let missing = FastText::open(&path).expect_err("it is missing").to_string();
    assert!(missing.contains("model.bin"), "{missing}");
    fs::write(&path, File::default().bytes()).unwrap();
    let model = FastText::open(&path).unwrap();
    assert_eq!((model.path(), model.words()), (&*path, 3));
}

proptest! {
    /// Any byte of a file changed: it is refused, or still encodes.
    #[test]
    fn a_changed_byte_never_panics(at: prop::sample::Index, to: u8, word: Vec<u8>) {
        let mut bytes = File::default().bytes();
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(model) = model(&bytes) {
            let mut vector = vec![0.0; model.dim()];
            prop_assert_eq!(model.vector(&word, &mut vector), model.subwords(&word).len());
        }
    }
}
