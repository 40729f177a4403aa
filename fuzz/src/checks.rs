//! What must hold of any bytes that heads are made of, and of any filter. The tests of the crate
//! `kindred` run the seeds through the same checks, so nothing here needs a fuzzer. Each says
//! whether the bytes were accepted.

use std::sync::{Arc, LazyLock};

use contract::{
    Expansion, Metric, Row, TermExpander, Token, TokenClassifier, TokenText, TokenVectors,
};
use kindred::filters::{MAX_TESTS, parse};
use kindred::heads::{
    Cut, Expander, Format, Head, ImportOptions, MAX_UNKNOWN_WORDS, Padding, Probabilities, Texts,
    TextsOptions, Tokeniser, Tokens, Vocabulary, import_head,
};
use model_store::ModelStore;
use model_store::format::Checksum;
use model_store::prepare::{AttributesFile, Input, PrepareOptions, prepare_in_memory};

/// A model that a head may say it was made for: its version is put into every description.
static MODEL: LazyLock<Arc<ModelStore>> = LazyLock::new(|| {
    let rows = [("the", [1.0f32, -0.5]), ("of", [0.25, 2.0]), ("naïve", [0.0, 0.0])];
    let rows = rows.iter().map(|(word, row)| (*word, &row[..]));
    Arc::new(ModelStore::from_rows("fuzzed", 2, rows).expect("a model"))
});

/// Two bytes say how long the first part is; the second has the rest.
fn two_parts(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let [low, high, rest @ ..] = bytes else { return None };
    let length = usize::from(u16::from_le_bytes([*low, *high]));
    Some(rest.split_at(length.min(rest.len())))
}

/// A head's folder of either kind: `head.json` and the weights. It is read as it is, and with the model and the checksum that it should
/// have. If it is not refused, it answers.
pub fn refused_or_a_head(bytes: &[u8]) -> bool {
    let Some((description, weights)) = two_parts(bytes) else { return false };
    let mut accepted = false;
    for description in [description.to_vec(), described(description, weights)] {
        let classifier = Head::from_bytes("fuzzed", &description, weights, &MODEL);
        let expander = Expander::from_bytes("fuzzed", &description, weights, &MODEL);
        assert!(classifier.is_err() || expander.is_err(), "a head is of one kind");
        accepted |= classifier.is_ok() || expander.is_ok();
        if let Ok(head) = classifier {
            classifies(head);
        }
        if let Ok(expander) = expander {
            expands(&Arc::new(expander));
        }
    }
    accepted
}

/// The description with this model, and with the weights' checksum.
fn described(description: &[u8], weights: &[u8]) -> Vec<u8> {
    let Ok(mut json) = serde_json::from_slice::<serde_json::Value>(description) else {
        return description.to_vec();
    };
    if json["model"].is_object() {
        json["model"]["version"] = MODEL.version().into();
        json["model"]["rows"] = MODEL.rows().into();
        json["model"]["dim"] = MODEL.dim().into();
    }
    if json["weights"].is_string() {
        json["weights"] = Checksum::of(weights).to_string().into();
    }
    json.to_string().into_bytes()
}

fn classifies(head: Head) {
    let labels = head.description().labels.len();
    let count = head.tokens().min(head.longest_text()).min(4) as u32;
    let text = TokenText::new(Arc::new(head), (0..count).map(Token).collect());
    assert_eq!(text.scores(&MODEL.table()).len(), labels);
}

fn expands(expander: &Arc<Expander>) {
    const TOP: usize = 2;
    let vectors = match &expander.description().tokens {
        Some(_) => TokenVectors::Rows((0..MODEL.rows() as u32).map(Row).collect()),
        None => TokenVectors::Vectors(vec![1.0; expander.token_dim()]),
    };
    let text = Expansion::new(expander.clone(), &MODEL.table(), vectors, TOP, 0.0);
    let text = text.expect("vectors of the right length");
    let terms = text.terms(&MODEL.table());
    assert!(terms.len() <= TOP && terms.is_sorted_by(|a, b| a.value >= b.value));
    for term in terms {
        assert!(term.value > 0.0 && term.value.is_finite() && expander.weight(term.value) > 0.0);
        assert!((term.position as usize) < text.tokens() && !expander.term(term.row).is_empty());
    }
}

/// A file of biases, for four rows of which one is bad and one a repetition. If it is not refused, the others have theirs.
pub fn refused_or_biases(bytes: &[u8]) -> bool {
    let file = tempfile::NamedTempFile::new().expect("a file for the biases");
    std::fs::write(file.path(), bytes).expect("the biases are written");
    let biases = Some(file.path().to_owned());
    let options =
        PrepareOptions { metric: Metric::Dot, biases, skip_bad_rows: true, ..Default::default() };
    let rows = Input::Bytes { name: "fuzzed", bytes: b"the 1 2\nof 1 x\nand 3 4\nthe 5 6\n" };
    let Ok(files) = prepare_in_memory(rows, &options) else { return false };
    let model = ModelStore::from_memory("fuzzed", &files).expect("what was prepared opens");
    model.verify(|_| ()).expect("what was prepared is whole");
    let table = model.table();
    assert_eq!((table.metric(), model.rows()), (Metric::Dot, 2));
    assert!(table.biases().expect("biases").iter().all(|bias| bias.is_finite()));
    true
}

/// A file of attributes, for four rows of which one is bad and one a repetition, by their order and
/// joined by a field. If it is not refused, the others have theirs.
pub fn refused_or_attributes(bytes: &[u8]) -> bool {
    let file = tempfile::NamedTempFile::new().expect("a file for the attributes");
    std::fs::write(file.path(), bytes).expect("the attributes are written");
    let prepared = |key: Option<&str>| {
        let (path, key) = (file.path().to_owned(), key.map(str::to_owned));
        let attributes = Some(AttributesFile { path, key, ..Default::default() });
        let options = PrepareOptions { attributes, skip_bad_rows: true, ..Default::default() };
        let rows = Input::Bytes { name: "fuzzed", bytes: b"the 1 2\nof 1 x\nand 3 4\nthe 5 6\n" };
        let Ok(files) = prepare_in_memory(rows, &options) else { return false };
        let model = ModelStore::from_memory("fuzzed", &files).expect("what was prepared opens");
        model.verify(|_| ()).expect("what was prepared is whole");
        let attributes = model.attributes().expect("attributes");
        assert_eq!((attributes.rows(), model.rows()), (2, 2));
        for column in attributes.columns() {
            let found = [0, 1].map(|row| column.get(Row(row)));
            let missing = found.iter().filter(|value| value.is_none()).count();
            assert_eq!(missing, column.missing());
            assert!(found.iter().flatten().all(|value| value.kind() == column.kind()));
        }
        true
    };
    let in_order = prepared(None);
    prepared(Some("k")) || in_order
}

/// A file of texts with labels, in any format. If it is not refused, no text is empty, and skipping bad lines changes nothing.
pub fn refused_or_labelled_texts(bytes: &[u8]) -> bool {
    let Ok(content) = std::str::from_utf8(bytes) else { return false };
    let mut accepted = false;
    for format in Format::ALL.into_iter().map(Some).chain([None]) {
        let parse = |skip_bad_rows| {
            let options = TextsOptions { format, skip_bad_rows, ..TextsOptions::default() };
            Texts::parse("fuzzed", content, &options)
        };
        if let Ok(texts) = parse(false) {
            assert!(
                texts.texts.iter().all(|one| !one.text.trim().is_empty()) && texts.skipped == 0
            );
            assert!(texts.any_number() || !texts.labels().is_empty());
            assert_eq!(parse(true), Ok(texts), "what is read strictly is read leniently");
            accepted = true;
        }
    }
    accepted
}

/// A vocabulary, which may be empty, and a state dict. If they are not refused, they are a head that answers.
pub fn refused_or_imported(bytes: &[u8]) -> bool {
    let Some((vocabulary, state)) = two_parts(bytes) else { return false };
    let Ok(vocabulary) = std::str::from_utf8(vocabulary) else { return false };
    let options = ImportOptions {
        file: "fuzzed".to_owned(),
        labels: ["a", "b"].map(str::to_owned).into(),
        tokens: Tokens { tokeniser: Tokeniser::Words, lower_case: true, limit: 8, cut: Cut::End },
        probabilities: Probabilities::Softmax,
        padding: Padding::Full,
        map: Vec::new(),
        ignore: Vec::new(),
    };
    let vocabulary = Some(vocabulary).filter(|vocabulary| !vocabulary.is_empty());
    let Ok(imported) = import_head(&MODEL, state, vocabulary, &options) else { return false };
    classifies(Head::from_memory(&imported.parts, &MODEL).expect("what was imported opens"));
    true
}

/// A text, split by each tokeniser. The places of its words are in order, and with Unicode's rules
/// every letter and digit is in a word that is found or listed as unknown. Accepted if a word of
/// the vocabulary is in it.
pub fn words_are_in_order_and_complete(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    let mut accepted = false;
    for tokeniser in [Tokeniser::Unicode, Tokeniser::Words, Tokeniser::Ptb] {
        let limit = text.len() + 1;
        let tokens = Tokens { tokeniser, lower_case: true, limit, cut: Cut::End };
        let found = Vocabulary::of_model(&MODEL, &tokens).tokenise(text);
        assert_eq!(found.tokens.len(), found.bytes.len());
        assert!(!found.is_cut && found.unknown.len() <= MAX_UNKNOWN_WORDS);
        let mut end = 0;
        for bytes in found.bytes.iter().cloned().chain(Some(text.len()..text.len())) {
            assert!(bytes.start >= end, "places are in order");
            let between = text.get(end..bytes.start).expect("places are those of characters");
            end = bytes.end;
            if tokeniser != Tokeniser::Unicode || found.unknown.len() == MAX_UNKNOWN_WORDS {
                continue;
            }
            let is_listed =
                |one: char| found.unknown.iter().any(|word| word.to_lowercase().contains(one));
            // Nobody misses an unknown `'s`.
            let between = between.to_lowercase().replace(['’', '\'', '‘'], "'").replace("'s", "");
            let mut letters = between.chars().filter(|one| one.is_alphanumeric());
            assert!(letters.all(is_listed), "{between:?} is lost");
        }
        accepted |= !found.tokens.is_empty();
    }
    accepted
}

/// A filter. It is refused with a column that is there, or has one form that reads as itself.
pub fn refused_or_a_filter(bytes: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(bytes) else { return false };
    match parse(text) {
        Ok(filter) => {
            assert!((1..=MAX_TESTS).contains(&filter.tests()));
            let again = parse(&filter.to_string()).expect("what was understood can be written");
            assert_eq!(again, filter);
            assert_eq!(again.to_string(), filter.to_string());
            true
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
            assert!(error.caret(text).ends_with('^'));
            false
        }
    }
}
