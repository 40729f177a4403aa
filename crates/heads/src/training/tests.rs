//! Heads from small made-up texts: labels, words and splits.

use contract::TokenClassifier;
use model_store::head::{Cut, Head, Tokeniser};

use super::*;

fn model() -> Arc<ModelStore> {
    let words = ["good", "bad", "not", "film", "the", "fine", "poor"];
    let rows: Vec<(&str, [f32; 4])> = words
        .iter()
        .enumerate()
        .map(|(n, word)| (*word, std::array::from_fn(|i| ((n * 7 + i * 3) as f32).sin())))
        .collect();
    let rows = rows.iter().map(|(word, row)| (*word, &row[..]));
    Arc::new(ModelStore::from_rows("m", 4, rows).unwrap())
}

fn options() -> TrainingOptions {
    let settings = Settings { channels: 8, epochs: 30, patience: 30, ..Settings::default() };
    let tokens = Tokens { tokeniser: Tokeniser::Ptb, lower_case: true, limit: 512, cut: Cut::End };
    TrainingOptions { settings, tokens, balance: false, other_words: 0.25, add_words: None }
}

fn texts(content: &str) -> Texts {
    Texts::parse("data", content, &crate::TextsOptions::default()).unwrap()
}

fn many() -> Texts {
    let lines = ["1\tthe good film", "0\tthe bad film", "0\tnot good", "1\tnot bad", "1\tunseen"];
    texts(&lines.repeat(40).join("\n"))
}

fn pool() -> ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap()
}

#[test]
fn a_head_is_made_and_answers() {
    let (model, mut go_on) = (model(), |_| ControlFlow::Continue(()));
    let made = train_classifier(&model, &many(), None, &options(), &pool(), &mut go_on);
    let made = made.unwrap().unwrap();
    assert_eq!((made.train, made.dev, made.empty), (144, 16, 40));
    assert_eq!(made.quality, 1.0);
    assert!(made.calibration[1] <= made.calibration[0] + 1e-9);
    let Parts { description, tuned, .. } = &made.parts;
    assert_eq!(description.labels, ["0", "1"]);
    assert_eq!(tuned.0, [0, 1, 2, 3, 4].map(Row), "the words of the texts");
    let head = Head::from_memory(&made.parts, &model).unwrap();
    let own = head.vector(&model.table(), head.of_row(Row(5)))[0];
    assert_eq!(own, 0.25 * model.table().row(Row(5))[0], "a word that training did not meet");

    let settings = Settings { fine_tune: false, ..options().settings };
    let frozen = TrainingOptions { settings, balance: true, ..options() };
    let made = train_classifier(&model, &many(), Some(&many()), &frozen, &pool(), &mut go_on);
    let made = made.unwrap().unwrap();
    assert!(made.parts.tuned.0.is_empty() && made.parts.description.other_words == 1.0);
    let stopped = |_| ControlFlow::Break(());
    let none = train_classifier(&model, &many(), None, &options(), &pool(), &mut { stopped });
    assert!(none.unwrap().is_none());
}

#[test]
fn texts_with_several_labels_or_none_get_a_sigmoid_for_each() {
    let lines = [
        r#"{"text": "the good film", "labels": ["praise", "film", "film"]}"#,
        r#"{"text": "the bad film", "labels": ["film"]}"#,
        r#"{"text": "fine", "labels": ["praise"]}"#,
        r#"{"text": "not poor", "labels": []}"#,
    ];
    let (model, texts) = (model(), texts(&lines.repeat(40).join("\n")));
    for balance in [false, true] {
        let options = TrainingOptions { balance, ..options() };
        let mut go_on = |_| ControlFlow::Continue(());
        let made = train_classifier(&model, &texts, None, &options, &pool(), &mut go_on);
        let made = made.unwrap().unwrap();
        assert_eq!((made.train, made.dev), (144, 16));
        assert!(made.quality > 0.9, "{}", made.quality);
        let Description { probabilities, labels, training, .. } = &made.parts.description;
        assert_eq!(*probabilities, Probabilities::Sigmoid);
        assert_eq!(
            (&labels[..], &training["dev_f1"]),
            (&["film".to_owned(), "praise".to_owned()][..], &json!(made.quality))
        );
        assert!(made.calibration[1] <= made.calibration[0] + 1e-9);
    }
}

#[test]
fn words_that_the_model_does_not_have_get_vectors_if_that_is_wanted() {
    let model = model();
    // Only a word that the model does not have tells; another one is too rare.
    let lines = ["1\tthe Zorp film", "0\tthe film", "1\tzorp", "0\tthe fine film"];
    let data = format!("{}\n1\tthe quux film", lines.repeat(40).join("\n"));
    let made = |add_words: Option<usize>, dev: Option<&Texts>| {
        let add_words = add_words.and_then(NonZeroUsize::new);
        let options = TrainingOptions { add_words, ..options() };
        let texts = texts(&data);
        let mut go_on = |_| ControlFlow::Continue(());
        let made = train_classifier(&model, &texts, dev, &options, &pool(), &mut go_on);
        made.unwrap().unwrap()
    };
    let without = made(None, None);
    assert!(without.parts.description.words.is_empty() && without.quality < 0.9);
    let with = made(Some(2), None);
    assert_eq!((with.quality, &with.parts.description.words[..]), (1.0, &["zorp".to_owned()][..]));
    assert_eq!((with.parts.added.len(), with.empty), (4, 0));
    let head = Head::from_memory(&with.parts, &model).unwrap();
    let found = Vocabulary::of_head(&head, &model).tokenise("ZORP quux");
    assert_eq!((found.tokens, &found.unknown[..]), (vec![Token(7)], &["quux".to_owned()][..]));
    assert_eq!(made(Some(2), None).parts.added, with.parts.added, "the same each time");
    // What only decides teaches nothing.
    let dev = texts("1\tquux\n0\tfilm");
    let rare = made(Some(1), Some(&dev));
    assert_eq!(rare.parts.description.words.len(), 2);
    let dev = texts("1\tvlim\n0\tfilm");
    assert_eq!((made(Some(1), Some(&dev)).dev, rare.dev), (1, 2));
}

#[test]
fn rare_labels_count_for_more_if_that_is_wanted() {
    let classes = [vec![0], vec![0], vec![0], vec![1]];
    let texts = classes.map(|classes| Encoded { tokens: Vec::new(), classes });
    assert_eq!(balanced(&texts, 2, Probabilities::Softmax), [2.0 / 3.0, 2.0]);
    assert_eq!(balanced(&texts, 2, Probabilities::Sigmoid), [1.0 / 3.0, 3.0]);
}

#[test]
fn data_that_do_not_suffice_are_refused() {
    let model = model();
    let refused = |train: &str, dev: Option<&str>| {
        let dev = dev.map(texts);
        let made =
            train_classifier(&model, &texts(train), dev.as_ref(), &options(), &pool(), &mut |_| {
                ControlFlow::Continue(())
            });
        made.unwrap_err().to_string()
    };
    assert!(refused("1\tgood\n1\tbad", None).contains("two labels or more; all have \"1\""));
    assert!(refused("1\tx\n0\ty", Some("0\tgood")).contains("too few texts have a word"));
    assert!(refused("1\tgood\n0\tbad", Some("2\tgood")).contains("\"2\" is only in the texts"));
    assert!(refused("{\"text\": \"good\", \"labels\": []}", None).contains("no text has a label"));
}
