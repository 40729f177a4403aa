//! Expanders: written, opened, and damaged.

use std::fs;
use std::ops::ControlFlow;

use super::*;
use crate::head::tests::without_checksum;
use crate::head::{Cut, HEAD_VERSION, Head, HeadKind, MadeFor, Tokeniser, about};
use crate::prepare::{Input, PrepareOptions, prepare_folder};

fn model() -> Arc<ModelStore> {
    let rows: [(&str, &[f32]); 3] = [("a", &[1.0, 0.0]), ("b", &[0.0, 2.0]), ("c", &[3.0, 4.0])];
    Arc::new(ModelStore::from_rows("m", 2, rows).unwrap())
}

fn under_dot(biases: Option<&[f32]>) -> Arc<ModelStore> {
    let rows: [(&str, &[f32]); 2] = [("x", &[1.0, 0.0, 1.0]), ("y", &[0.0, 2.0, 0.0])];
    Arc::new(ModelStore::from_rows_under_dot("t", 3, rows, biases).unwrap())
}

fn tokens() -> Tokens {
    Tokens { tokeniser: Tokeniser::Ptb, lower_case: true, limit: 512, cut: Cut::End }
}

fn description(model: &ModelStore) -> ExpanderDescription {
    ExpanderDescription::of_model(model, tokens())
}

#[test]
fn an_expander_comes_back_as_it_was_written() {
    let model = model();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("head");
    let write = |weights: &ExpanderWeights| {
        write_expander(&out, true, &description(&model), weights, &model).unwrap();
        Expander::open(&out, &model).unwrap()
    };
    // The model's rows with its own biases.
    let weights = ExpanderWeights { biases: Some(vec![0.5, -1.0, 0.0]), ..Default::default() };
    let tied = write(&weights);
    let table = tied.terms().table();
    assert_eq!((tied.len(), table.metric(), tied.token_dim()), (3, Metric::Dot, 2));
    assert_eq!(table.components(), model.table().components());
    assert_eq!([0, 1, 2].map(|row| table.bias(Row(row))), [0.5, -1.0, 0.0]);
    assert_eq!(tied.term(Row(2)), "c");
    assert_eq!(about(&out).unwrap().kind(), HeadKind::Expander);

    // Some rows, and a projection.
    let weights = ExpanderWeights {
        rows: Some(vec![Row(0), Row(2)]),
        projection: Some(vec![0.0, 1.0, 1.0, 0.0]),
        ..Default::default()
    };
    let some = write(&weights);
    assert_eq!(some.terms().table().components(), [1.0, 0.0, 3.0, 4.0]);
    assert_eq!(some.terms().table().norms(), [1.0, 5.0]);
    assert_eq!((some.term(Row(1)), some.projection().unwrap().len()), ("c", 4));

    // Vectors of its own.
    let vectors = vec![9.0, 8.0, 7.0, 6.0, 5.0, 4.0];
    let own = write(&ExpanderWeights { vectors: Some(vectors.clone()), ..Default::default() });
    assert_eq!(own.terms().table().components(), vectors);
    assert_eq!(own.terms().table().biases(), None);

    let taken = write_expander(&out, false, &description(&model), &weights, &model).unwrap_err();
    assert!(taken.to_string().contains("already holds a head"), "{taken}");
    let error = Head::open(&out, &model).unwrap_err().to_string();
    assert!(error.contains("head is an expander; choose a classifier, or make one"), "{error}");
}

#[test]
fn weights_are_read_wherever_they_are_in_memory() {
    let model = model();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("head");
    let rows = Some(vec![Row(0), Row(2)]);
    let weights = ExpanderWeights { rows, biases: Some(vec![0.5, -1.0]), ..Default::default() };
    write_expander(&out, false, &description(&model), &weights, &model).unwrap();
    let [json, file] = [HEAD_FILE, WEIGHTS_FILE].map(|name| fs::read(out.join(name)).unwrap());
    for before in 0..8 {
        let moved = [&vec![0; before][..], &file].concat();
        let read = Expander::from_bytes("moved", &json, &moved[before..], &model).unwrap();
        assert_eq!(read.terms().table().biases(), Some(&[0.5, -1.0][..]), "{before}");
    }
}

#[test]
fn a_model_under_dot_has_its_terms_already() {
    let model = under_dot(Some(&[0.25, -8.0]));
    let expander = Expander::of_model(&model, tokens()).unwrap();
    assert!(std::ptr::addr_eq(Arc::as_ptr(expander.terms()), Arc::as_ptr(&model)));
    let some = ExpanderWeights { rows: Some(vec![Row(1)]), ..Default::default() };
    let some = Expander::from_memory(description(&model), some, &model).unwrap();
    assert_eq!(some.terms().table().biases(), Some(&[-8.0][..]), "biases go with their rows");
    let other = ExpanderWeights { biases: Some(vec![1.0, 2.0]), ..Default::default() };
    let other = Expander::from_memory(description(&model), other, &model).unwrap();
    assert_eq!(other.terms().table().biases(), Some(&[1.0, 2.0][..]), "its own go first");
}

#[test]
fn terms_of_another_folder() {
    let model = model();
    let folder = tempfile::tempdir().unwrap();
    let (out, terms) = (folder.path().join("head"), folder.path().join("terms"));
    let write = |metric| {
        let file = folder.path().join("terms.txt");
        fs::write(&file, "x 1 0 1\ny 0 2 0\n").unwrap();
        let options = PrepareOptions { metric, replace: true, ..PrepareOptions::default() };
        prepare_folder(Input::File(&file), &terms, &options, &mut |_| ControlFlow::Continue(()))
            .unwrap();
        ModelStore::open(&terms).unwrap()
    };
    let made_for = MadeFor::of(&write(Metric::Dot));
    let from = TermsFrom::Folder { path: "../terms".into(), model: made_for };
    let description = ExpanderDescription { terms: from, ..description(&model) };
    let none = ExpanderWeights::default();
    let error = write_expander(&out, false, &description, &none, &model).unwrap_err().to_string();
    assert!(error.contains("tokens have 2 components and terms 3, but there is no `projection`"));
    let projection = Some(vec![1.0, 0.0, 0.0, 1.0, 1.0, 1.0]);
    let weights = ExpanderWeights { projection, ..Default::default() };
    write_expander(&out, false, &description, &weights, &model).unwrap();
    let open = Expander::open(&out, &model).unwrap();
    assert_eq!(open.terms_folder().unwrap().rows(), 2);
    assert_eq!((open.len(), open.term(Row(1)), open.token_dim()), (2, "y", 2));

    // Vectors from the request are compared with the terms as they are.
    let request = ExpanderDescription { tokens: None, ..description };
    let request = Expander::from_memory(request, none, &model);
    assert!(request.is_err(), "its folder is not beside one in memory");
    write(Metric::Cosine);
    let error = Expander::open(&out, &model).unwrap_err().to_string();
    assert!(error.contains("made for the model terms"), "{error}");
}

#[test]
fn what_does_not_fit_is_refused_with_the_cure() {
    let model = model();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("head");
    let biases = Some(vec![0.0; 3]);
    let weights = ExpanderWeights { biases, rows: None, ..Default::default() };
    let refused = |weights: ExpanderWeights, expected: &str| {
        let error = write_expander(&out, false, &description(&model), &weights, &model);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(!out.exists());
    };
    let short = ExpanderWeights { biases: Some(vec![0.0; 2]), ..Default::default() };
    refused(short, "");
    let infinite = ExpanderWeights { biases: Some(vec![f32::NAN; 3]), ..Default::default() };
    refused(infinite, "`terms.bias` has a number that is not finite");
    for rows in [vec![], vec![Row(1), Row(1)], vec![Row(2), Row(3)], vec![Row(1), Row(0)]] {
        let rows = ExpanderWeights { rows: Some(rows), ..Default::default() };
        refused(rows, "`terms.rows` are not ascending rows of the model");
    }
    write_expander(&out, false, &description(&model), &weights, &model).unwrap();
    let sealed = fs::read_to_string(out.join(HEAD_FILE)).unwrap();
    let changed = sealed.replace("\"log1p\": true", "\"log1p\": false");
    assert!(changed != sealed, "{sealed}");
    fs::write(out.join(HEAD_FILE), changed).unwrap();
    let error = Expander::open(&out, &model).unwrap_err().to_string();
    assert!(error.contains("head.json is damaged: its checksum is"), "{error}");
    let json = without_checksum(&sealed);
    for (from, to, expected) in [
        ("\"expander\"", "\"classifier\"", "head is a classifier; choose an expander"),
        ("\"expander\"", "\"ranker\"", "unknown variant `ranker`"),
        ("\"version\": 1", "\"version\": 9", "head format 9, but this kindred reads format 1"),
        ("\"limit\": 512", "\"limit\": 0", "its limit is 0 tokens; it must be from 1 to 65536"),
        ("\"limit\": 512", "\"limit\": 65537", "its limit is 65537 tokens"),
        ("\"from\": \"model\"", "\"from\": \"net\"", "unknown variant `net`"),
        ("\"log1p\"", "\"log\"", "unknown field `log`"),
        ("blake3:", "blake3:0", "its checksum is"),
    ] {
        assert!(json.contains(from), "{from}: {json}");
        fs::write(out.join(HEAD_FILE), json.replacen(from, to, 1)).unwrap();
        let error = Expander::open(&out, &model).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("train"), "{error}");
    }
    fs::write(out.join(HEAD_FILE), &json).unwrap();
    let checksum = Expander::open(&out, &model).unwrap().missing_checksum().expect("it has none");
    assert!(sealed.contains(&checksum), "{sealed}");
    let rows: [(&str, &[f32]); 1] = [("a", &[1.0, 0.0])];
    let other = Arc::new(ModelStore::from_rows("other", 2, rows).unwrap());
    let error = Expander::open(&out, &other).unwrap_err().to_string();
    assert!(error.contains("was made for the model m") && error.contains("train"), "{error}");
    let mut damaged = fs::read(out.join(WEIGHTS_FILE)).unwrap();
    *damaged.last_mut().unwrap() ^= 1;
    fs::remove_file(out.join(WEIGHTS_FILE)).unwrap();
    fs::write(out.join(WEIGHTS_FILE), damaged).unwrap();
    assert!(Expander::open(&out, &model).unwrap_err().to_string().contains("its checksum is"));
}

#[test]
fn weights_are_logarithms_of_values() {
    let model = under_dot(None);
    let expander = Expander::of_model(&model, tokens()).unwrap();
    assert_eq!(expander.weight(1.0), 2f64.ln());
    for weight in [1e-9, 0.1, 1.0, 5.0, 300.0] {
        let least = expander.least_value(weight);
        assert!(expander.weight(least) <= weight && expander.weight(least * 1.000_001) >= weight);
    }
    let plain = ExpanderDescription { log1p: false, ..description(&model) };
    let plain = Expander::from_memory(plain, ExpanderWeights::default(), &model).unwrap();
    assert_eq!((plain.weight(2.5), plain.least_value(2.5)), (2.5, 2.5));
    assert_eq!(HEAD_VERSION, 1);
}
