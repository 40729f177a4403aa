//! Words of texts with weights by SIF: the formula, computed anew; the same bits on every way; and
//! nothing else of a model's answers changes.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use changes::{ChangeOptions, Durability, Upsert};

use crate::fasttext::{self, File};
use kindred::live::Live;
use kindred::prepare::{
    DocumentEncoder, DocumentFields, DocumentVectors, Frequencies, Input, PrepareOptions, Summary,
    TextVectors as _, prepare_documents, prepare_folder,
};
use kindred::question::EncodeOptions;
use kindred::{Device, Kindred, Model, ModelError, Options, Settings, Target};

const WORDS: [&str; 6] = ["the", "of", "frog", "toad", "pond", "zyzzyva"];
const COUNTS: [u64; 6] = [1000, 500, 20, 20, 3, 0];
const DIM: usize = 5;
const TEXT: &str = "The frog of the pond, zyzzyva";
/// The rows of the text's words, each once, in their order, and how often each is there.
const OF_TEXT: [(usize, f64); 5] = [(0, 2.0), (2, 1.0), (1, 1.0), (4, 1.0), (5, 1.0)];

/// Components without a pattern, of both signs.
fn component(at: usize) -> f32 {
    let mixed = (at as u64).wrapping_add(7).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    mixed as f32 / (1 << 23) as f32 - 1.0
}

fn vector(row: usize) -> Vec<f32> {
    (0..DIM).map(|at| component(row * DIM + at)).collect()
}

struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    /// A model of the words with weights of this kind.
    fn prepare(&self, name: &str, options: PrepareOptions) -> Result<Summary, ModelError> {
        let lines = WORDS.iter().enumerate().map(|(row, word)| {
            let numbers: Vec<String> = vector(row).iter().map(f32::to_string).collect();
            format!("{word} {}\n", numbers.join(" "))
        });
        let input = self.write("words.any", &lines.collect::<String>());
        let go_on = &mut |_| ControlFlow::Continue(());
        prepare_folder(Input::File(&input), &self.path(name), &options, go_on)
    }

    fn model(&self, name: &str, text_weights: Option<Frequencies>) -> Model {
        self.prepare(name, PrepareOptions { text_weights, ..PrepareOptions::default() }).unwrap();
        Model::open(self.path(name)).unwrap()
    }

    fn counts(&self, times: u64) -> Frequencies {
        let lines = WORDS.iter().zip(COUNTS).map(|(word, n)| format!("{word} {}\n", n * times));
        Frequencies::Counts(self.write("counts.txt", &lines.collect::<String>()))
    }
}

fn bits(vector: &[f32]) -> Vec<u32> {
    vector.iter().map(|x| x.to_bits()).collect()
}

/// The vector of the text with these weights of rows: each word's, in the order of the text, as often
/// as it is there; then divided by the length.
fn expected(weights: &[f64]) -> Vec<f64> {
    let mut sum = [0.0; DIM];
    for (row, times) in OF_TEXT {
        let vector = vector(row);
        let norm = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        for (sum, x) in sum.iter_mut().zip(vector) {
            *sum += times * weights[row] * f64::from(x) / norm;
        }
    }
    let norm = sum.iter().map(|x| x * x).sum::<f64>().sqrt();
    sum.map(|x| x / norm).to_vec()
}

fn is_near(found: &[f32], wanted: &[f64]) -> bool {
    found.iter().zip(wanted).all(|(found, wanted)| (f64::from(*found) - wanted).abs() < 1e-7)
}

fn start(model: Model) -> Kindred {
    Kindred::start(model, Settings { device: Device::Cpu, ..Settings::default() }).unwrap()
}

/// The neighbours of a target, with the bits of their scores.
fn nearest(kindred: &Kindred, target: Target) -> Vec<(String, u64)> {
    let options = Options::new().k(6).include_query(true);
    let found = kindred.nearest(target, options).wait().unwrap().neighbors;
    found.into_iter().map(|one| (one.word.into_owned(), one.score.to_bits())).collect()
}

fn encoded(model: &Model, text: &str) -> Vec<f32> {
    model.encode(text, &EncodeOptions::default()).unwrap()
}

#[test]
fn a_text_has_the_vector_of_the_formula() {
    let scratch = Scratch::new();
    let harmonic = 1.0 + 1.0 / 2.0 + 1.0 / 3.0 + 1.0 / 4.0 + 1.0 / 5.0 + 1.0 / 6.0;
    let by_rank =
        [1.0, 2.0, 3.0, 4.0, 5.0, 6.0].map(|rank| 0.001 / (0.001 + 1.0 / rank / harmonic));
    let all: u64 = COUNTS.iter().sum();
    let by_counts = COUNTS.map(|count| 0.001 / (0.001 + count as f64 / all as f64));
    assert_eq!(by_counts[5], 1.0);
    for (name, frequencies, weights) in [
        ("plain", None, [1.0; 6]),
        ("rank", Some(Frequencies::ByRank), by_rank),
        ("counts", Some(scratch.counts(1)), by_counts),
    ] {
        let model = scratch.model(name, frequencies);
        let (found, wanted) = (encoded(&model, TEXT), expected(&weights));
        assert!(is_near(&found, &wanted), "{name}: {found:?} {wanted:?}");
        model.verify(|_| {}).unwrap();
        // The mean is that of the paper: the sum over the number of words.
        let mean = EncodeOptions { normalize: Some(false), ..EncodeOptions::default() };
        let mean = model.encode(TEXT, &mean).unwrap();
        let length = mean.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        let direction: Vec<f32> = mean.iter().map(|&x| (f64::from(x) / length) as f32).collect();
        assert!(is_near(&direction, &wanted) && length < 1.0, "{name}: {length}");
    }
}

#[test]
fn every_way_has_the_same_bits_and_words_alone_have_no_weights() {
    let scratch = Scratch::new();
    let (plain, weighted) =
        (scratch.model("plain", None), scratch.model("m", Some(scratch.counts(1))));
    assert_ne!(bits(&encoded(&plain, TEXT)), bits(&encoded(&weighted, TEXT)));
    let (with, without) = (start(weighted.clone()), start(plain));
    let vector = encoded(&weighted, TEXT);
    let components = || Target::Components(vector.clone());
    assert_eq!(nearest(&with, Target::text(TEXT)), nearest(&with, components()));
    assert_ne!(nearest(&with, Target::text(TEXT)), nearest(&without, Target::text(TEXT)));
    let rank = |target: Target| {
        let ranks = with.rank(
            WORDS.map(str::to_owned).to_vec(),
            target,
            Options::new().include_query(true),
        );
        let ranked = ranks.wait().unwrap().ranked.into_iter();
        ranked.map(|one| (one.score.map(f64::to_bits), one.rank)).collect::<Vec<_>>()
    };
    assert_eq!(rank(Target::text(TEXT)), rank(components()));
    for target in [
        Target::word("the"),
        Target::expression("frog - toad + the").unwrap(),
        Target::expression("2*the + of").unwrap(),
    ] {
        assert_eq!(nearest(&with, target.clone()), nearest(&without, target));
    }
    assert_eq!(
        with.similarity(["the", "frog"], "of").unwrap().to_bits(),
        without.similarity(["the", "frog"], "of").unwrap().to_bits()
    );
    // An explanation tells the weights: the parts of a score are its sum.
    let explained = with.nearest(Target::text(TEXT), Options::new().explain(true)).wait().unwrap();
    let neighbor = &explained.neighbors[0];
    let terms = format!("{:?}", neighbor.terms);
    assert!(terms.contains("zyzzyva") && terms.contains("weight: 1.0"), "{terms}");
    assert!(!terms.contains("weight: 2.0"), "`the` is there twice: {terms}");
}

#[test]
fn documents_are_encoded_with_the_weights_of_their_words() {
    let scratch = Scratch::new();
    let model = scratch.model("m", Some(Frequencies::ByRank));
    let encoder = DocumentEncoder::open(&scratch.path("m")).unwrap();
    let mut vector = [0.0; DIM];
    encoder.encode(TEXT, &mut vector).unwrap();
    assert_eq!(bits(&vector), bits(&encoded(&model, TEXT)));
    let docs = scratch.write("docs.csv", "text\nthe toad\n\"The frog of the pond, zyzzyva\"\n");
    let (out, fields) =
        (scratch.path("docs"), DocumentFields { text: "text".into(), ..Default::default() });
    let (options, go_on) = (PrepareOptions::default(), &mut |_| ControlFlow::Continue(()));
    prepare_documents(&docs, &fields, DocumentVectors::Encoded(&encoder), &out, &options, go_on)
        .unwrap();
    let documents = Model::open(&out).unwrap();
    assert_eq!(bits(documents.vector(1).unwrap()), bits(&vector));
    assert_eq!(nearest(&start(documents), Target::text(TEXT))[0].0, "2");
    // The encoder's folder has the weights; documents have none of their own.
    let text_weights = Some(Frequencies::ByRank);
    let options = PrepareOptions { text_weights, replace: true, ..PrepareOptions::default() };
    let error = prepare_documents(
        &docs,
        &fields,
        DocumentVectors::Encoded(&encoder),
        &out,
        &options,
        go_on,
    )
    .unwrap_err();
    assert!(error.to_string().contains("omit --text-weights"), "{error}");
}

#[test]
fn versions_are_those_of_the_weights() {
    let scratch = Scratch::new();
    let version = |name: &str, frequencies| scratch.model(name, frequencies).version().to_owned();
    let versions = [
        version("plain", None),
        version("rank", Some(Frequencies::ByRank)),
        version("counts", Some(scratch.counts(1))),
    ];
    assert!(versions[0] != versions[1] && versions[1] != versions[2] && versions[0] != versions[2]);
    // Probabilities count, not how much text was counted.
    assert_eq!(versions[2], version("twice", Some(scratch.counts(2))));
    let metric = kindred::contract::Metric::Dot;
    let text_weights = Some(Frequencies::ByRank);
    let options = PrepareOptions { text_weights, metric, ..PrepareOptions::default() };
    scratch.prepare("dot", options).unwrap();
    let found = encoded(&Model::open(scratch.path("dot")).unwrap(), "of of");
    let weight = 0.001 / (0.001 + 0.5 / 2.45);
    let wanted: Vec<f64> = vector(1).iter().map(|&x| 2.0 * weight * f64::from(x)).collect();
    assert!(is_near(&found, &wanted), "{found:?} {wanted:?}");
}

fn live(folder: &Path) -> Live {
    Live::open(folder, ChangeOptions::default()).unwrap()
}

#[test]
fn a_fold_keeps_the_weights_and_rows_that_are_put_have_the_weight_1() {
    let scratch = Scratch::new();
    let before = scratch.model("m", Some(Frequencies::ByRank));
    let weights = before.store().text_weights().unwrap().all().to_vec();
    let version = before.version().to_owned();
    drop(before);
    let folder = scratch.path("m");
    let table = std::sync::Arc::new(live(&folder));
    let kindred =
        Kindred::start_live(table.clone(), Settings { device: Device::Cpu, ..Settings::default() });
    let kindred = kindred.unwrap();
    let of_text = |kindred: &Kindred, text: &str| nearest(kindred, Target::text(text));
    let first = of_text(&kindred, "the pond");
    let mut batch = table.batch();
    // A row before others goes, one has another vector, and one is new.
    batch.delete("of");
    batch.upsert(Upsert { key: "frog", vector: &vector(2), bias: None, attributes: &[] });
    batch.upsert(Upsert { key: "newt", vector: &vector(9), bias: None, attributes: &[] });
    table.commit(batch.finish().unwrap().unwrap(), Durability::Synced, None).unwrap();
    let of_base = |found: Vec<(String, u64)>| -> Vec<(String, u64)> {
        let others = ["of", "frog", "newt"];
        found.into_iter().filter(|(word, _)| !others.contains(&&**word)).collect()
    };
    let encode = |weight_of_frog: f64| {
        let norm = |row| vector(row).iter().map(|&x| f64::from(x).powi(2)).sum::<f64>().sqrt();
        let (the, frog) = (norm(0), norm(2));
        let sum = vector(0)
            .into_iter()
            .zip(vector(2))
            .map(|(a, b)| weights[0] * f64::from(a) / the + weight_of_frog * f64::from(b) / frog);
        sum.map(|x| x as f32).collect::<Vec<f32>>()
    };
    let check = |kindred: &Kindred| {
        assert_eq!(of_base(of_text(kindred, "the pond")), of_base(first.clone()));
        let found = of_text(kindred, "the frog");
        let wanted = nearest(kindred, Target::Components(encode(1.0)));
        for ((word, found), (of, wanted)) in found.iter().zip(wanted) {
            let (found, wanted) = (f64::from_bits(*found), f64::from_bits(wanted));
            assert!(*word == of && (found - wanted).abs() < 1e-6, "{word} {found}, {of} {wanted}");
        }
        found
    };
    let unfolded = check(&kindred);
    let folded = table.fold(&mut |_| ControlFlow::Continue(())).unwrap().expect("rows changed");
    assert_eq!(check(&kindred), unfolded);
    drop((kindred, table));
    assert_eq!(folded.base().version(), version);
    drop(folded);
    let again = live(&folder);
    assert_eq!((again.generation(), again.base().rows()), (2, 6));
    again.base().verify(|_| {}).unwrap();
    let settings = Settings { device: Device::Cpu, ..Settings::default() };
    let kindred = Kindred::start_live(again.into(), settings).unwrap();
    assert_eq!(check(&kindred), unfolded);
}

#[test]
fn words_without_rows_have_the_weight_1_beside_those_of_rows() {
    let scratch = Scratch::new();
    let entries = fasttext::words(&WORDS.map(str::as_bytes));
    let file = File { dim: 4, bucket: 60, minn: 2, maxn: 4, entries, component, ..File::default() };
    let input = scratch.path("m.bin");
    fs::write(&input, file.bytes()).unwrap();
    let prepared = |name: &str, text_weights| {
        let go_on = &mut |_| ControlFlow::Continue(());
        let options = PrepareOptions { text_weights, ..PrepareOptions::default() };
        let summary = prepare_folder(Input::File(&input), &scratch.path(name), &options, go_on);
        assert_eq!(summary.unwrap().ngrams, Some(60));
        Model::open(scratch.path(name)).unwrap()
    };
    let (plain, model) = (prepared("plain", None), prepared("m", Some(Frequencies::ByRank)));
    model.verify(|_| {}).unwrap();
    assert_ne!(plain.version(), model.version());
    let frogs = model.subword_vector("frogs").unwrap();
    assert_eq!(bits(&frogs), bits(&plain.subword_vector("frogs").unwrap()));
    let weight = model.store().text_weights().unwrap().of(0);
    let unit = |vector: &[f32]| {
        let norm = vector.iter().map(|&x| f64::from(x) * f64::from(x)).sum::<f64>().sqrt();
        vector.iter().map(|&x| f64::from(x) / norm).collect::<Vec<_>>()
    };
    let sum: Vec<f32> = unit(model.vector(0).unwrap())
        .iter()
        .zip(unit(&frogs))
        .map(|(the, frogs)| (weight * the + frogs) as f32)
        .collect();
    let found = encoded(&model, "the frogs");
    assert!(is_near(&found, &unit(&sum)), "{found:?}");
    let description = start(model).description().text_weights.map(std::borrow::Cow::into_owned);
    assert_eq!(description.as_deref(), Some("sif"));
}
