//! Heads: written, opened, and damaged in every way that comes to mind.

use std::fs;

use super::*;
use proptest::prelude::*;

fn model(words: &[&str]) -> ModelStore {
    let rows: Vec<(&str, [f32; 2])> =
        words.iter().zip(1u8..).map(|(word, n)| (*word, [f32::from(n), 1.0])).collect();
    ModelStore::from_rows("m", 2, rows.iter().map(|(word, row)| (*word, &row[..]))).unwrap()
}

/// With tuned rows, words of its own and a vector for unknown ones.
fn parts(model: &ModelStore) -> Parts {
    let convolution = |width, padding, channels: usize| {
        let weights = (0..channels * width * 2).map(|n| n as f32 / 8.0).collect();
        Convolution { width, padding, weights, bias: vec![0.5; channels] }
    };
    let layer = |inputs: usize, outputs: usize| Layer {
        weights: (0..inputs * outputs).map(|n| n as f32 - 3.0).collect(),
        bias: vec![-0.25; outputs],
    };
    let convolutions = vec![convolution(3, 2, 2), convolution(1, 0, 1)];
    let description = Description {
        kind: HeadKind::Classifier,
        version: HEAD_VERSION,
        model: MadeFor::of(model),
        tokens: Tokens { tokeniser: Tokeniser::Ptb, lower_case: true, limit: 512, cut: Cut::End },
        labels: vec!["negative".to_owned(), "positive".to_owned()],
        probabilities: Probabilities::Softmax,
        temperature: 1.5,
        convolutions: Vec::new(),
        layers: Vec::new(),
        words: vec!["foo".to_owned(), "bar".to_owned()],
        other_words: 0.25,
        weights: String::new(),
        training: serde_json::Map::new(),
        checksum: None,
    };
    let classifier = Classifier::new(2, convolutions, vec![layer(3, 4), layer(4, 2)]).unwrap();
    let tuned = (vec![Row(0), Row(2)], vec![9.0, 8.0, 7.0, 6.0]);
    let (added, unknown) = (vec![1.0, 2.0, 3.0, 4.0], Some(vec![5.0, 6.0]));
    Parts { description, classifier, tuned, added, unknown }
}

#[test]
fn a_head_comes_back_as_it_was_written() {
    let model = model(&["a", "b", "c"]);
    let parts = parts(&model);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("head");
    parts.write(&out, false).unwrap();
    let head = Head::open(&out, &model).unwrap();
    assert_eq!(*head.classifier(), parts.classifier);
    let mut description = head.description().clone();
    assert_eq!((description.layers.as_slice(), description.convolutions.len()), (&[4, 2][..], 2));
    (description.layers, description.convolutions) = (Vec::new(), Vec::new());
    description.weights.clear();
    assert!(description.checksum.take().is_some() && head.missing_checksum().is_none());
    assert_eq!(description, parts.description);

    let table = model.table();
    let vector = |token| head.vector(&table, token).to_vec();
    let rows = [0, 1, 2].map(|row| vector(head.of_row(Row(row))));
    assert_eq!(rows, [[9.0, 8.0], [0.5, 0.25], [7.0, 6.0]], "two are tuned");
    assert_eq!(
        ["foo", "bar"].map(|word| vector(head.of_own_word(word).unwrap())),
        [[1.0, 2.0], [3.0, 4.0]]
    );
    assert_eq!((vector(head.unknown().unwrap()), head.tokens()), (vec![5.0, 6.0], 6));

    let taken = parts.write(&out, false).unwrap_err().to_string();
    assert!(taken.contains("already holds a head") && taken.contains("--replace"), "{taken}");
    let plain = Parts { tuned: Default::default(), unknown: None, ..parts };
    plain.write(&out, true).unwrap();
    let head = Head::open(&out, &model).unwrap();
    assert_eq!((head.unknown(), head.tokens()), (None, 5));
    assert_eq!(*head.vector(&table, head.of_row(Row(0))), [0.25, 0.25]);
    let in_memory = Head::from_memory(&plain, &model).unwrap();
    assert_eq!(in_memory.description(), head.description());

    // A folder with anything else is the user's.
    fs::write(out.join("notes.txt"), "mine").unwrap();
    let other = plain.write(&out, true).unwrap_err().to_string();
    assert!(other.contains("holds other files too"), "{other}");
}

#[test]
fn a_head_that_does_not_fit_is_refused_with_the_cure() {
    let (own, other) = (model(&["a", "b", "c"]), model(&["a", "b", "d"]));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("head");
    let refused = |expected: &str| {
        let error = Head::open(&out, &own).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("train"), "{error}");
    };
    refused("there is no such folder");
    fs::create_dir(&out).unwrap();
    refused("it has no file head.json");
    parts(&own).write(&out, false).unwrap();
    let error = Head::open(&out, &other).unwrap_err();
    assert!(matches!(error, HeadError::OtherModel { .. }), "{error}");
    assert!(error.to_string().contains("serve it with that model"), "{error}");

    let json = without_checksum(&fs::read_to_string(out.join(HEAD_FILE)).unwrap());
    let changed = |from: &str, to: &str| {
        assert!(json.contains(from), "{from}");
        fs::write(out.join(HEAD_FILE), json.replacen(from, to, 1)).unwrap();
    };
    changed("\"version\": 1", "\"version\": 2");
    refused("head format 2, but this kindred reads format 1");
    for (from, to, expected) in [
        ("\"ptb\"", "\"bpe\"", "unknown variant `bpe`"),
        ("\"other_words\": 0.25", "\"other_words\": -0.5", "its `other_words` is -0.5"),
        ("\"limit\": 512", "\"limit\": 0", "its limit is 0 tokens; it must be from 1 to 65536"),
        ("\"limit\": 512", "\"limit\": 65537", "its limit is 65537 tokens"),
        ("\"temperature\": 1.5", "\"temperature\": 0.0", "its temperature is 0"),
        ("\"negative\"", "\"positive\"", "the label \"positive\" is there twice"),
        ("\"foo\"", "\"bar\"", "the word \"bar\" is there twice"),
        ("\"negative\",", "", "it has 1 labels, but its last layer has 2 outputs"),
        ("\"channels\": 2", "\"channels\": 3", "`convolutions.0.weight` is F32 [2, 3, 2]"),
        ("\"lower_case\"", "\"lowercase\"", "unknown field `lowercase`"),
        ("blake3:", "blake3:0", "its checksum is"),
    ] {
        changed(from, to);
        refused(expected);
    }
    fs::write(out.join(HEAD_FILE), json).unwrap();
    Head::open(&out, &own).unwrap();
}

/// As earlier versions wrote it.
pub(super) fn without_checksum(json: &str) -> String {
    let mut json: serde_json::Value = serde_json::from_str(json).unwrap();
    json.as_object_mut().unwrap().remove("checksum").expect("it has one");
    seal::to_json(&json)
}

#[test]
fn a_description_that_was_changed_is_refused_and_an_old_one_is_not() {
    let model = model(&["a", "b", "c"]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("head");
    let mut parts = parts(&model);
    // Numbers whose text is not that of the same float64, and texts that need escapes.
    parts.description.other_words = 0.1;
    parts.description.temperature = 1.0 / 3.0;
    parts.description.labels = vec!["größer\n\"".to_owned(), "b".to_owned()];
    let training =
        serde_json::json!({"rate": 0.1f32, "tiny": 5e-324, "z": {"b": [1, {}], "a": null}});
    parts.description.training = training.as_object().unwrap().clone();
    parts.write(&out, false).unwrap();
    let json = fs::read_to_string(out.join(HEAD_FILE)).unwrap();
    let read = |json: &str| {
        fs::write(out.join(HEAD_FILE), json).unwrap();
        Head::open(&out, &model)
    };
    let checksum = read(&json).unwrap().description().checksum.clone().expect("a checksum");
    let spread: serde_json::Value = serde_json::from_str(&json).unwrap();
    read(&spread.to_string()).expect("the same in another form");
    for (from, to) in [
        ("\"b\"", "\"c\""),
        ("\"temperature\": 0.", "\"temperature\": 1."),
        ("\"lower_case\": true", "\"lower_case\": false"),
        ("\"limit\": 512", "\"limit\": 51"),
        ("\"foo\"", "\"fool\""),
        ("\"tiny\": 5e-324", "\"tiny\": 0.0"),
        ("\"model\": {\n    \"name\": \"m\"", "\"model\": {\n    \"name\": \"n\""),
    ] {
        assert!(json.contains(from), "{from}: {json}");
        let error = read(&json.replacen(from, to, 1)).unwrap_err().to_string();
        assert!(error.contains("head.json is damaged: its checksum is"), "{error}");
        assert!(error.contains("copy the head's folder again, or train it again"), "{error}");
        let error = about(&out).unwrap_err().to_string();
        assert!(error.contains("head.json is damaged"), "{error}");
    }
    let old = read(&without_checksum(&json)).unwrap();
    assert_eq!(old.missing_checksum(), Some(checksum));
}

#[test]
fn every_bit_of_a_description_counts() {
    let model = model(&["a", "b", "c"]);
    let (description, _) = parts(&model).files().unwrap();
    let json = seal::to_json(&description).into_bytes();
    let path = Path::new(HEAD_FILE);
    assert_eq!(Description::parse(path, &json).unwrap(), description);
    for bit in 0..json.len() * 8 {
        let mut changed = json.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let read = Description::parse(path, &changed);
        assert!(read.is_err(), "bit {bit}: {}", String::from_utf8_lossy(&changed));
    }
}

#[test]
fn rows_that_the_model_does_not_have_are_refused() {
    let model = model(&["a", "b", "c"]);
    for rows in [[Row(1), Row(3)], [Row(1), Row(1)], [Row(2), Row(0)]] {
        let mut parts = parts(&model);
        parts.tuned.0 = rows.to_vec();
        let error = Head::from_memory(&parts, &model).unwrap_err().to_string();
        assert!(error.contains("`tuned.rows` are not ascending rows"), "{error}");
    }
    let mut endless = parts(&model);
    endless.added[1] = f32::NAN;
    let error = Head::from_memory(&endless, &model).unwrap_err().to_string();
    assert!(error.contains("not finite"), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn a_changed_file_is_refused(at in any::<prop::sample::Index>(), to in any::<u8>(), is_json: bool) {
        let model = model(&["a", "b", "c"]);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().join("head");
        parts(&model).write(&out, false).unwrap();
        let file = out.join(if is_json { HEAD_FILE } else { WEIGHTS_FILE });
        let before = Head::open(&out, &model).unwrap();
        let mut bytes = fs::read(&file).unwrap();
        let at = at.index(bytes.len());
        let was = std::mem::replace(&mut bytes[at], to);
        // Other bytes, as another file: the old one is mapped.
        fs::remove_file(&file).unwrap();
        fs::write(&file, bytes).unwrap();
        match Head::open(&out, &model) {
            // Another kind of white space, or of the same number, says the same.
            Ok(head) if is_json => prop_assert_eq!(head.description(), before.description()),
            Ok(_) => prop_assert!(was == to),
            Err(error) => prop_assert!(was != to, "{error}"),
        }
        drop(before);
    }
}
