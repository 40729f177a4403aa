//! fastText's classifiers: which rows a text has, and each fault of a file.

use encoders::{EncoderError, FastTextClassifier, LossKind, MAX_WORDS};
use proptest::prelude::*;

use super::support::{File, classifier, classifier_of, mixed, words};

fn model(file: &File) -> FastTextClassifier {
    classifier_of(&file.bytes()).unwrap()
}

fn fault(file: &File) -> EncoderError {
    classifier_of(&file.bytes()).expect_err("it is refused")
}

/// The vector of a text, and the number of its rows.
fn read(model: &FastTextClassifier, text: &str) -> (Vec<f32>, usize) {
    let (ranges, _) = FastTextClassifier::words_of(text);
    let words: Vec<&[u8]> = ranges.into_iter().map(|at| &text.as_bytes()[at]).collect();
    let read = model.read(&words, 0, || true);
    (read.vector, read.rows)
}

/// The mean of rows, as fastText has it.
fn mean(rows: &[usize]) -> Vec<f32> {
    let mut sum = [0f32; 2];
    for row in rows {
        sum[0] += mixed(row * 2);
        sum[1] += mixed(row * 2 + 1);
    }
    let share = (1.0 / rows.len() as f64) as f32;
    sum.iter().map(|component| component * share).collect()
}

/// The hash of a word, by the rule in the format's description.
fn hash(word: &str) -> u64 {
    let step = |hash: u32, byte: &u8| {
        (hash ^ i32::from(byte.cast_signed()).cast_unsigned()).wrapping_mul(16_777_619)
    };
    let hash = word.as_bytes().iter().fold(2_166_136_261, step);
    i64::from(hash.cast_signed()).cast_unsigned()
}

/// The row of a pair of words.
fn pair(first: &str, second: &str) -> usize {
    let hash = hash(first).wrapping_mul(116_049_371).wrapping_add(hash(second));
    3 + (hash % 5) as usize
}

#[test]
fn a_text_has_the_rows_of_its_words_of_its_end_and_of_its_pairs() {
    let model = model(&File { maxn: 0, ..classifier() });
    assert_eq!(model.labels(), ["up", "down"]);
    let pairs = [pair("good", "bad"), pair("bad", "</s>")];
    assert_eq!(read(&model, "good  bad"), (mean(&[1, 2, 0, pairs[0], pairs[1]]), 5));
    // Without words, the end is left.
    assert_eq!(read(&model, " \t\n"), (mean(&[0]), 1));
    // An unknown word has no row of its own, but its pairs have.
    let pairs = [pair("good", "über"), pair("über", "</s>")];
    assert_eq!(read(&model, "good über"), (mean(&[1, 0, pairs[0], pairs[1]]), 4));
}

#[test]
fn labels_have_no_part_in_a_text_and_its_end_may_stand_in_it() {
    let model = model(&File { maxn: 0, ..classifier() });
    let plain = read(&model, "good bad");
    assert_eq!(read(&model, "good __label__up __label__other bad"), plain);
    assert_eq!(read(&model, "good bad </s> good good"), plain);
    // Line breaks are white space, and no-break spaces are not.
    assert_eq!(read(&model, "good\r\nbad\u{b}"), plain);
    assert_ne!(read(&model, "good\u{a0}bad"), plain);
}

#[test]
fn a_label_without_the_usual_beginning_has_no_part_either() {
    let mut file = File { maxn: 0, ..classifier() };
    file.entries[4].0 = b"#down".to_vec();
    let model = model(&file);
    assert_eq!(model.labels(), ["up", "#down"]);
    assert_eq!(read(&model, "good #down bad"), read(&model, "good bad"));
}

#[test]
fn words_have_their_ngrams_unless_the_version_is_11() {
    let of = |version| model(&File { version, ..classifier() });
    let (_, with) = read(&of(12), "good");
    let (_, without) = read(&of(11), "good");
    // Its own row, the end's, the pair; and nine n-grams of two or three characters.
    assert_eq!((with, without), (12, 3));
}

#[test]
fn pruned_ngrams_have_no_row_and_the_others_have_new_ones() {
    let quantised = classifier_of(&quantised(&[[pair("good", "bad") as i32 - 3, 0]])).unwrap();
    let (_, rows) = read(&quantised, "good bad");
    // Both words, the end, and the pair that is left.
    let also = usize::from(pair("bad", "</s>") == pair("good", "bad"));
    assert_eq!(rows, 4 + also);
    let none = classifier_of(&quantised_with(0, &[])).unwrap();
    assert_eq!(read(&none, "good bad").1, 3);
}

/// A quantised model with these n-grams left: each row is the centroid that has its number.
fn quantised(pairs: &[[i32; 2]]) -> Vec<u8> {
    quantised_with(pairs.len() as i64, pairs)
}

fn quantised_with(pruned: i64, pairs: &[[i32; 2]]) -> Vec<u8> {
    let file = File { maxn: 0, pruned, pairs: pairs.to_vec(), is_quantised: 1, ..classifier() };
    let rows = 3 + pairs.len();
    let dense = file.bytes();
    // Up to the rows' matrix, whose place its dense form tells: two sizes, numbers, a byte, and the
    // output.
    let matrix = (16 + 8 * 4 * 2) + 1 + (16 + 2 * 2 * 4);
    let mut bytes = dense[..dense.len() - matrix].to_vec();
    bytes.push(0);
    for number in [rows as i64, 2] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend((rows as i32).to_le_bytes());
    bytes.extend((0..rows).map(|row| row as u8));
    for number in [2i32, 1, 2, 2] {
        bytes.extend(number.to_le_bytes());
    }
    for at in 0..2 * 256 {
        bytes.extend(mixed(at).to_le_bytes());
    }
    bytes.extend(&dense[dense.len() - (1 + 16 + 2 * 2 * 4)..]);
    bytes
}

#[test]
fn quantised_rows_are_their_centroids() {
    let model = classifier_of(&quantised(&[])).unwrap();
    assert_eq!(read(&model, "good bad"), (mean(&[1, 2, 0]), 3));
}

#[test]
fn each_loss_is_read_and_others_named() {
    for (loss, kind) in [
        (1, LossKind::HierarchicalSoftmax),
        (2, LossKind::NegativeSampling),
        (3, LossKind::Softmax),
        (4, LossKind::OneVsAll),
    ] {
        let model = model(&File { loss, ..classifier() });
        assert_eq!(model.training().1.loss, kind);
        let scored = model.scored(&model.products(&read(&model, "good").0));
        let sum: f64 = scored.iter().map(|one| one.probability).sum();
        assert!(!kind.is_one_label() || (sum - 1.0).abs() < 1e-4, "{kind:?}: {sum}");
    }
    assert!(fault(&File { loss: 5, ..classifier() }).to_string().contains("the loss is 5"));
}

#[test]
fn shares_add_up_to_the_score_that_the_label_has() {
    for loss in [2, 3, 4] {
        let model = model(&File { loss, ..classifier() });
        let words: [&[u8]; 3] = [b"good", "über".as_bytes(), b"bad"];
        let read = model.read(&words, 0, || true);
        for (label, score) in model.products(&read.vector).into_iter().enumerate() {
            let shares = model.shares(&words, label, || true);
            let sum = shares.base + shares.spans.iter().map(|span| span.2).sum::<f64>();
            assert!(shares.is_exact && (sum - shares.score).abs() < 1e-12);
            assert!((shares.score - f64::from(score)).abs() < 1e-5, "{} {score}", shares.score);
            assert!(shares.spans.iter().all(|&(first, last, _)| first <= last && last < 3));
            assert!(shares.spans.is_sorted_by(|a, b| a.2 >= b.2));
        }
    }
    let tree = model(&File { loss: 1, ..classifier() });
    let shares = tree.shares(&[b"good"], 0, || true);
    assert!(!shares.is_exact && shares.score < 0.0, "a logarithm");
}

#[test]
fn unknown_words_are_those_without_any_row() {
    let model = model(&File { maxn: 0, ..classifier() });
    let words: [&[u8]; 5] = [b"x", b"good", b"__label__up", b"y", b"bad"];
    assert_eq!(model.read(&words, 9, || true).unknown, [0, 2, 3]);
    assert_eq!(model.read(&words, 2, || true).unknown, [0, 2]);
    // Whoever does not wait any more gets nothing.
    assert_eq!(model.read(&words, 9, || false).rows, 0);
}

#[test]
fn texts_are_cut_at_the_most_words() {
    let text = "a ".repeat(MAX_WORDS + 1);
    let (words, is_cut) = FastTextClassifier::words_of(&text);
    assert_eq!((words.len(), is_cut), (MAX_WORDS, true));
    let (words, is_cut) = FastTextClassifier::words_of(&text[2..]);
    assert_eq!((words.len(), is_cut), (MAX_WORDS, false));
}

#[test]
fn each_kind_and_contradiction_is_named() {
    let pruned = File { pruned: 0, ..classifier() };
    let twice = [[1, 0], [1, 1]];
    for (bytes, said) in [
        (File::default().bytes(), "word model"),
        (File { entries: words(&[b"a"]), ..classifier() }.bytes(), "without labels"),
        (File { output: Some([3, 2]), ..classifier() }.bytes(), "3 × 2 numbers instead of 2 × 2"),
        (File { behind: vec![0], ..classifier() }.bytes(), "1 bytes follow"),
        (pruned.bytes(), "pruned, which is done to quantised models alone"),
        (File { pruned: i64::MAX, ..classifier() }.bytes(), "do not fit"),
        (quantised(&[[0, 1]]), "an n-gram has row 1 of 1"),
        (quantised(&twice), "the n-gram 1 is there twice"),
    ] {
        let error = classifier_of(&bytes).expect_err("it is refused").to_string();
        assert!(error.contains(said), "{error}");
    }
    for (label, said) in
        [(&b"__label__"[..], "\"\""), (b"__label__up", "\"up\""), (b"\xff", "UTF-8")]
    {
        let mut file = classifier();
        file.entries[4].0 = label.to_vec();
        assert!(fault(&file).to_string().contains(said), "{}", fault(&file));
    }
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    for bytes in [classifier().bytes(), quantised(&[[1, 0]])] {
        assert!(classifier_of(&bytes).is_ok());
        for length in 1..bytes.len() {
            assert!(classifier_of(&bytes[..length]).is_err(), "{length} of {}", bytes.len());
        }
    }
}

proptest! {
    /// Any byte of a file changed: it is refused, or still reads texts.
    #[test]
    fn a_changed_byte_never_panics(
        at: prop::sample::Index, to: u8, text: String, is_quantised: bool, loss in 1..5i32
    ) {
        let plain = File { loss, ..classifier() }.bytes();
        let mut bytes = if is_quantised { quantised(&[[1, 0], [3, 1]]) } else { plain };
        let at = at.index(bytes.len());
        bytes[at] = to;
        if let Ok(model) = classifier_of(&bytes) {
            let (vector, _) = read(&model, &text);
            let scored = model.scored(&model.products(&vector));
            prop_assert_eq!(scored.len(), model.labels().len());
            let (ranges, _) = FastTextClassifier::words_of(&text);
            let words: Vec<&[u8]> = ranges.into_iter().map(|at| &text.as_bytes()[at]).collect();
            model.shares(&words, 0, || true);
        }
    }
}
