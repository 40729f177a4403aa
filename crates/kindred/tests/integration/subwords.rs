//! Words that a fastText model has no rows for: each question about them has the answer that a model
//! gives in which they are rows.

use std::fs;
use std::ops::ControlFlow;

use contract::Row;
use cpu_core::ReferenceEngine;

use crate::fasttext::{File, words};
use kindred::prepare::{Input, PrepareOptions, prepare_folder};
use kindred::{
    Answer, Device, Error, Kindred, Method, Model, ModelStore, Options, Settings, Target, Unknown,
    vector_of_unknown,
};

const KNOWN: [&str; 6] = ["the", "frog", "toad", "pond", "water", "né"];
const UNKNOWN: [&str; 5] = ["frogs", "toads", "ponds", "waters", "frog pond"];

/// Components without a pattern, of both signs.
fn component(at: usize) -> f32 {
    let mixed = (at as u64).wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    mixed as f32 / (1 << 23) as f32 - 1.0
}

/// A model with n-grams, and one whose rows the unknown words are as well.
fn models() -> (ModelStore, ModelStore) {
    let entries = words(&KNOWN.map(str::as_bytes));
    let file = File { dim: 8, bucket: 80, minn: 2, maxn: 4, entries, component, ..File::default() };
    let folder = tempfile::tempdir().unwrap();
    let (input, out) = (folder.path().join("m.bin"), folder.path().join("m"));
    fs::write(&input, file.bytes()).unwrap();
    let go_on = &mut |_| ControlFlow::Continue(());
    prepare_folder(Input::File(&input), &out, &PrepareOptions::default(), go_on).unwrap();
    let model = ModelStore::open(&out).unwrap();
    let row = |row: u32| model.table().row(Row(row)).to_vec();
    let mut rows: Vec<(&str, Vec<f32>)> =
        KNOWN.into_iter().enumerate().map(|(at, word)| (word, row(at as u32))).collect();
    rows.extend(UNKNOWN.map(|word| (word, vector_of_unknown(&model, word).unwrap().0)));
    let rows = rows.iter().map(|(word, vector)| (*word, &vector[..]));
    let larger = ModelStore::from_rows("larger", 8, rows).unwrap();
    (model, larger)
}

fn engines(model: ModelStore) -> [Kindred; 2] {
    let model = Model::from(model);
    let reference = Kindred::with_engine(model.clone(), Settings::default(), |model| {
        Ok(Box::new(ReferenceEngine::new(model.clone())))
    });
    let cpu = Settings { device: Device::Cpu, ..Settings::default() };
    [reference.unwrap(), Kindred::start(model, cpu).unwrap()]
}

fn told(answer: &Answer<'_>) -> Vec<(String, u64)> {
    answer.neighbors.iter().map(|n| (n.word.to_string(), n.score.to_bits())).collect()
}

fn questions() -> Vec<(Target, Method, usize)> {
    let expression = |text: &str| Target::expression(text).unwrap();
    vec![
        (Target::word("frogs"), Method::ThreeCosAdd, 1),
        (Target::word("frog pond"), Method::ThreeCosAdd, 1),
        (Target::word("frog"), Method::ThreeCosAdd, 0),
        (Target::text("the frogs, waters frogs"), Method::ThreeCosAdd, 2),
        (expression("frogs - frog + toad"), Method::ThreeCosAdd, 1),
        (expression("frogs - frogs + toad"), Method::ThreeCosAdd, 1),
        (expression("2*ponds - waters + 0.5*water"), Method::ThreeCosAdd, 2),
        (expression("frogs - frog + toad"), Method::ThreeCosMul, 1),
        (expression("ponds - waters + toads"), Method::ThreeCosMul, 3),
        (expression("frogs - frog + toad"), Method::PairDirection, 1),
        (expression("toads - frogs + ponds"), Method::PairDirection, 3),
    ]
}

#[test]
fn questions_have_the_answers_of_a_model_in_which_the_words_are_rows() {
    let (model, larger) = models();
    let (with_ngrams, with_rows) = (engines(model), engines(larger));
    for (kindred, expected) in with_ngrams.iter().zip(&with_rows) {
        for (target, method, added) in questions() {
            let options = || Options::new().method(method).k(9).explain(true);
            let found = kindred.nearest(target.clone(), options()).wait().unwrap();
            let without = options().excluding(UNKNOWN);
            let wanted = expected.nearest(target.clone(), without).wait().unwrap();
            assert_eq!(told(&found), told(&wanted), "{target:?} {method:?}");
            let terms = |answer: &Answer<'_>| {
                answer.neighbors.iter().map(|n| format!("{:?}", n.terms)).collect::<Vec<_>>()
            };
            assert_eq!(terms(&found), terms(&wanted), "{target:?} {method:?}");
            let subwords = found.subwords.unwrap_or_default();
            assert_eq!(subwords.len(), added, "{target:?} {subwords:?}");
            for one in subwords {
                let ngrams = one.ngrams.expect("they are explained");
                assert!(ngrams.first().is_some_and(|first| first.starts_with('<')), "{ngrams:?}");
            }
        }
    }
}

#[test]
fn ranks_similarities_and_odd_ones_take_unknown_words() {
    let (model, larger) = models();
    let (with_ngrams, with_rows) = (engines(model), engines(larger));
    for (kindred, expected) in with_ngrams.iter().zip(&with_rows) {
        for (a, b) in [("frogs", "frog"), ("toads", "ponds"), ("frog", "toad")] {
            let found = kindred.similarity(a, b).unwrap();
            assert_eq!(found.to_bits(), expected.similarity(a, b).unwrap().to_bits(), "{a} {b}");
        }
        let sets = (["frogs", "toads"], ["ponds", "water"]);
        let found = kindred.similarity(sets.0, sets.1).unwrap();
        assert_eq!(found.to_bits(), expected.similarity(sets.0, sets.1).unwrap().to_bits());
        let compared = ["frogs", "toads", "frog", "waters", "frogs"];
        let odd = kindred.odd_one_out(compared).unwrap();
        assert_eq!(odd, expected.odd_one_out(compared).unwrap());
        let rank = |kindred: &Kindred, options: Options| {
            let words = ["frog", "né"].map(str::to_owned).to_vec();
            let ranks = kindred.rank(words, Target::word("frogs"), options).wait().unwrap();
            let told = ranks.ranked.iter().map(|one| (one.score.map(f64::to_bits), one.rank));
            (told.collect::<Vec<_>>(), ranks.subwords.map_or(0, |words| words.len()))
        };
        let (found, added) = rank(kindred, Options::new());
        let (wanted, _) = rank(expected, Options::new().excluding(UNKNOWN));
        assert_eq!((found, added), (wanted, 1));
        // Only rows have ranks.
        let ranked = vec!["frogs".to_owned()];
        let error = kindred.rank(ranked, Target::word("frog"), Options::new()).wait();
        assert!(matches!(error, Err(Error::UnknownWord { .. })));
    }
}

#[test]
fn unknown_words_are_errors_or_left_out_if_asked_for() {
    let [kindred, _] = engines(models().0);
    let ask =
        |target: Target, unknown| kindred.nearest(target, Options::new().unknown(unknown)).wait();
    let is_unknown = |answer: Result<Answer<'_>, Error>| match answer {
        Err(Error::UnknownWord { unknown }) => unknown.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(is_unknown(ask(Target::word("frogs"), Unknown::Error)), 1);
    assert_eq!(is_unknown(ask(Target::text("frogs and toads"), Unknown::Error)), 3);
    let skipped = ask(Target::text("frog and toads"), Unknown::Skip).unwrap();
    assert_eq!(skipped.skipped, Some(vec!["and".to_owned(), "toads".to_owned()]));
    assert_eq!(skipped.subwords, None);
    let all = ask(Target::text("frogs and toads"), Unknown::Subwords).unwrap();
    assert_eq!((all.used, all.subwords.map(|words| words.len())), (Some(vec![]), Some(3)));
    // Too long for any word.
    assert_eq!(is_unknown(ask(Target::word("x".repeat(65_537)), Unknown::Subwords)), 1);
    assert!(ask(Target::word("x".repeat(65_536)), Unknown::Subwords).is_ok());
    // Nothing of it is an n-gram.
    let error = ask(Target::word("</s>"), Unknown::Subwords).unwrap_err().to_string();
    assert!(error.contains("the vector of `</s>` is zero"), "{error}");

    let plain = ModelStore::from_rows("plain", 2, [("a", &[1.0, 0.5][..])]).unwrap();
    let [plain, _] = engines(plain);
    let refused = plain.nearest("b", Options::new().unknown(Unknown::Subwords)).wait();
    let error = refused.unwrap_err().to_string();
    assert!(error.contains("was not prepared from a fastText .bin file"), "{error}");
}
