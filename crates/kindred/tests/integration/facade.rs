//! Kindred as a library: many callers, blocking and async, without a network and without a runtime.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use contract::{FullPassQuery, Query, Row, RowBitmap, SearchEngine, UsualCosts};
use cpu_core::ReferenceEngine;

use crate::before::Before;
use kindred::attributes::{AttributeType, Attributes, ColumnBuilder, Value};
use kindred::filters::FilterSets;
use kindred::heads::WantedTerms;
use kindred::question::{Checked, prepare};
use kindred::queue::{Limits, SubmitError};
use kindred::{
    Error, Kindred, Method, Model, ModelStore, Options, Settings, Target, Unknown, WithAttributes,
};

const ROWS: [(&str, [f32; 2]); 6] = [
    ("frog", [1.0, 0.0]),
    ("Frog", [1.0, 0.01]),
    ("toad", [1.0, 0.1]),
    ("TOAD", [1.0, 0.11]),
    ("newt", [1.0, 0.5]),
    ("car", [-0.1, 1.0]),
];

fn kindred() -> Kindred {
    let model = Model::from_rows("tiny", &ROWS).unwrap();
    Kindred::with_engine(model, Settings::default(), |model| {
        Ok(Box::new(ReferenceEngine::new(model.clone())))
    })
    .unwrap()
}

fn words(answer: &kindred::Answer<'_>) -> Vec<String> {
    answer.words().map(str::to_owned).collect()
}

#[test]
fn options_do_here_what_they_do_in_requests() {
    let kindred = kindred();
    let nearest = |options| words(&kindred.nearest("frog", options).wait().unwrap());
    assert_eq!(nearest(Options::new()), ["Frog", "toad", "TOAD", "newt", "car"]);
    assert_eq!(nearest(Options::new().k(2).excluding(["Frog"])), ["toad", "TOAD"]);
    assert_eq!(nearest(Options::new().fold_case(true)), ["toad", "newt", "car"]);
    assert_eq!(nearest(Options::new().include_query(true).k(1)), ["frog"]);
    assert_eq!(nearest(Options::new().vocab_limit(3)), ["Frog", "toad"]);
    assert_eq!(nearest(Options::new().min_score(0.99).k(9)), ["Frog", "toad", "TOAD"]);
    let with_all = Options::new().with_vectors(true).explain(true).k(1);
    let answer = kindred.nearest("frog", with_all).wait().unwrap();
    assert_eq!(answer.neighbors[0].vector.as_deref(), Some(&[1.0, 0.01][..]));
    assert_eq!(answer.neighbors[0].terms.as_ref().unwrap()[0].word, "frog");
    assert_eq!(answer.inputs.unwrap()[0].rank, Some(1));
}

#[test]
fn questions_for_the_rows_of_a_set_have_one_of_their_model_and_version() {
    let rows = ROWS.iter().map(|(word, row)| (*word, &row[..]));
    let model = Arc::new(ModelStore::from_rows("tiny", 2, rows).unwrap());
    let sets = FilterSets::for_model(&model);
    let checked = |rows: usize, version: &str| {
        let set = RowBitmap::of_rows([Row(0), Row(2), Row(5)], rows, version);
        let options = Options::new().excluding(["car"]).vocab_limit(6);
        Checked::new(&model, &sets, options, None).unwrap().within(&model, Arc::new(set))
    };
    let checked_here = checked(6, model.version()).unwrap();
    let prepared = prepare(&model, Target::Word("frog".to_owned()), &checked_here).unwrap();
    let found = ReferenceEngine::new(model.clone()).search(&[&prepared.query]).unwrap();
    assert_eq!(found[0].iter().map(|hit| hit.row).collect::<Vec<_>>(), [Row(2)]);
    assert!(matches!(checked(6, "another"), Err(Error::Internal)));
    assert!(matches!(checked(7, model.version()), Err(Error::Internal)));
}

#[test]
fn rows_are_chosen_by_their_attributes() {
    let rows = ROWS.iter().map(|(word, row)| (*word, &row[..]));
    let model = ModelStore::from_rows("tiny", 2, rows).unwrap();
    let mut legs = ColumnBuilder::new("legs", AttributeType::Integer);
    for count in [Some(4), Some(4), Some(4), None, Some(4), Some(0)] {
        legs.push(count.map(Value::Integer));
    }
    let mut kinds = ColumnBuilder::new("kind", AttributeType::Text);
    for kind in ["frog", "frog", "toad", "toad", "newt", "car"] {
        kinds.push(Some(Value::Text(kind.into())));
    }
    let attributes = Attributes::from_columns(vec![legs, kinds]).unwrap();
    let model = Model::from(model.with_attributes(attributes).unwrap());
    let kindred = Kindred::with_engine(model, Settings::default(), |model| {
        Ok(Box::new(ReferenceEngine::new(model.clone())))
    })
    .unwrap();
    let nearest = |filter: &str| {
        let options =
            Options::new().filter(filter.to_owned()).with_attributes(WithAttributes::All(true));
        kindred.nearest("frog", options).wait()
    };
    let found = nearest("legs = 4 AND kind != frog").unwrap();
    assert_eq!(words(&found), ["toad", "newt"]);
    let attributes = found.neighbors[0].attributes.clone().unwrap();
    assert_eq!(serde_json::Value::from(attributes), serde_json::json!({"legs": 4, "kind": "toad"}));
    assert_eq!(words(&nearest("legs IS NULL OR kind STARTS WITH c").unwrap()), ["TOAD", "car"]);
    assert!(nearest("legs > 4").unwrap().neighbors.is_empty());
    let error = nearest("legs > 4 AND kin = toad").unwrap_err();
    assert_eq!(error.code(), "invalid_filter");
    assert_eq!(
        error.to_string(),
        "the filter has a fault at column 14: the model has no attribute `kin`; did you mean \
         `kind`? It has `kind`, `legs`"
    );
    assert_eq!((kindred.count("legs = 4"), kindred.count("NOT legs = 4")), (Ok(4), Ok(2)));
    // Faults keep nothing; the others are kept.
    assert_eq!(kindred.sets().counts().sets, 5);
    let ranks = kindred
        .rank(["toad", "TOAD", "newt"], "frog", Options::new().filter("legs = 4".to_owned()))
        .wait()
        .unwrap();
    let ranks: Vec<Option<u32>> = ranks.ranked.iter().map(|one| one.rank).collect();
    assert_eq!(ranks, [Some(2), None, Some(3)]);
}

#[test]
fn what_is_wrong_is_said_with_the_cure() {
    let kindred = kindred();
    let said = |target: &str, options| {
        kindred.nearest(Target::text(target), options).wait().unwrap_err().to_string()
    };
    let bounds = "`k` must be a whole number from 1 to 1000, not 0";
    assert_eq!(said("frog", Options::new().k(0)), bounds);
    let scores = "`min_score` (0.5) is above `max_score` (-0.25), so no score passes; exchange \
                  them, or leave one out";
    assert_eq!(said("frog", Options::new().min_score(0.5).max_score(-0.25)), scores);
    let one_score = Options::new().min_score(0.5).max_score(0.5);
    assert!(kindred.nearest("frog", one_score).wait().is_ok());
    let strict = Options::new().unknown(Unknown::Error);
    assert_eq!(said("frog frug", strict), "the model does not have `frug`; did you mean frog?");
    let error = kindred.analogy("frog toad", Options::new()).wait().unwrap_err();
    assert!(matches!(error, Error::BadExpression(_)), "{error}");
    let error = kindred.analogy("frog+toad", Options::new()).wait().unwrap_err().to_string();
    assert!(error.ends_with("did you mean the expression frog + toad?"), "{error}");
    let method = Options::new().method(Method::PairDirection);
    let error = kindred.analogy("frog - toad", method).wait().unwrap_err();
    assert!(matches!(error, Error::MethodMismatch { .. }), "{error}");
    let error = kindred.nearest(vec![0.0, 0.0], Options::new()).wait().unwrap_err();
    assert!(matches!(error, Error::ZeroQuery { .. }), "{error}");
    let error = kindred.nearest(vec![1.0], Options::new()).wait().unwrap_err();
    assert_eq!(error, Error::DimensionMismatch { found: 1, expected: 2 });
    let nothing: [&str; 0] = [];
    let error = kindred.rank(nothing, "frog", Options::new()).wait().unwrap_err();
    assert_eq!(error.to_string(), "`words` must be a list of 1 to 1000 words");
}

#[test]
fn many_threads_and_tasks_ask_one_engine() {
    fn is_shared<T: Send + Sync + Clone>(value: T) -> T {
        value
    }
    let kindred = is_shared(kindred());
    thread::scope(|scope| {
        for _ in 0..4 {
            let mine = kindred.another_caller();
            scope.spawn(move || {
                for _ in 0..50 {
                    let answer = mine.analogy("toad - frog + newt", Options::new().k(1)).wait();
                    assert_eq!(words(&answer.unwrap()), ["TOAD"]);
                }
            });
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async {
        let (one, other) = tokio::join!(
            kindred.nearest("frog", Options::new().k(1)),
            kindred.rank(["toad"], "frog", Options::new())
        );
        assert_eq!(words(&one.unwrap()), ["Frog"]);
        assert_eq!(other.unwrap().ranked[0].rank, Some(2));
        // Waiting on a thread of a runtime is bad practice, but must not deadlock.
        assert!(kindred.nearest("newt", Options::new()).wait().is_ok());
    });
}

#[test]
fn questions_together_have_an_answer_or_an_error_each() {
    let kindred = kindred();
    let asked = [
        (Target::word("frog"), Options::new().k(1)),
        (Target::word("frug"), Options::new()),
        (Target::expression("frog + newt").unwrap(), Options::new().k(1).fold_case(true)),
    ];
    let answers = kindred.ask_all(asked).wait().unwrap();
    assert_eq!(words(answers[0].as_ref().unwrap()), ["Frog"]);
    assert!(matches!(answers[1], Err(Error::UnknownWord { .. })));
    assert_eq!(words(answers[2].as_ref().unwrap()), ["TOAD"]);
}

/// The rows served by an engine whose searches wait while a test holds the lock, and for which a
/// full pass usually costs as much as 30 plain queries; the lock, and how many searches it has
/// begun.
fn held(settings: Settings) -> (Kindred, Arc<Mutex<()>>, Arc<AtomicUsize>) {
    let (lock, begun) = (Arc::new(Mutex::new(())), Arc::new(AtomicUsize::new(0)));
    let (held, counted) = (lock.clone(), begun.clone());
    let model = Model::from_rows("tiny", &ROWS).unwrap();
    let kindred = Kindred::with_engine(model, settings, move |model| {
        let (held, counted) = (held.clone(), counted.clone());
        Ok(Before::boxed(model, Some(Arc::new(Costs)), move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            drop(held.lock());
            Ok(())
        }))
    });
    (kindred.unwrap(), lock, begun)
}

fn wait_until(is_so: impl Fn() -> bool, what: &str) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "it never came to be that {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

struct Costs;

impl UsualCosts for Costs {
    fn search(&self, _: &Query) -> usize {
        1
    }

    fn token(&self, _: &contract::Expansion) -> usize {
        1
    }

    fn full_pass(&self, _: &FullPassQuery) -> usize {
        30
    }
}

#[test]
fn a_dear_question_takes_the_room_of_many_plain_ones() {
    let limits = Limits { capacity_slots: 500, ..Settings::default().limits };
    let (kindred, lock, begun) = held(Settings { limits, ..Settings::default() });
    thread::scope(|scope| {
        // The engine is busy until this is dropped, so that what follows waits.
        let held = lock.lock().unwrap();
        let first = kindred.another_caller();
        let busy = scope.spawn(move || first.nearest("frog", Options::new()).wait().map(|_| ()));
        // Otherwise the engine might begin with the ranks.
        wait_until(|| begun.load(Ordering::Relaxed) == 1, "a search is held");
        let rank = || {
            let caller = kindred.another_caller();
            scope.spawn(move || caller.rank(["newt"], "frog", Options::new()).wait().map(|_| ()))
        };
        let ranks: Vec<_> = (0..16).map(|_| rank()).collect();
        let taken = || kindred.statistics().full_passes.slots_taken;
        wait_until(|| taken() == 16 * 30, "sixteen ranks wait");
        let Err(Error::NotAnswered(SubmitError::Full { asked, free, .. })) = rank().join().unwrap()
        else {
            panic!("there is no room for a seventeenth")
        };
        assert_eq!((asked, free), (30, 500 - 16 * 30 - 1));
        let second = kindred.another_caller();
        let plain = scope.spawn(move || second.nearest("newt", Options::new()).wait().map(|_| ()));
        wait_until(|| kindred.statistics().searches.slots_taken == 2, "a plain one fits");
        drop(held);
        assert!(busy.join().unwrap().is_ok() && plain.join().unwrap().is_ok());
        assert!(ranks.into_iter().all(|rank| rank.join().unwrap().is_ok()));
        assert_eq!(kindred.statistics().full_passes.slots_taken, 0);
    });
}

#[test]
fn an_answer_that_is_late_is_an_error() {
    let (kindred, lock, _) = held(Settings::default());
    let _held = lock.lock().unwrap();
    let error = kindred.nearest("frog", Options::new().timeout_ms(20)).wait().unwrap_err();
    assert!(error.to_string().contains("`timeout_ms`"), "{error}");
}

#[test]
fn the_time_in_which_texts_come_and_become_tokens_counts() {
    let settings = Settings { timeout: Duration::from_millis(200), ..Settings::default() };
    let kindred = Kindred::start(Model::demo().unwrap(), settings).unwrap();
    let (head, expander) = (kindred.built_in_head().unwrap(), kindred.built_in_expander().unwrap());
    let slow = || {
        std::iter::once_with(|| {
            thread::sleep(Duration::from_millis(210));
            "cheap flights"
        })
    };
    let late = |error| matches!(error, Error::NotAnswered(SubmitError::DeadlinePassed));
    assert!(late(kindred.classify(&head, slow()).wait().unwrap_err()));
    let expanded = kindred.expand(&expander, slow(), WantedTerms::default()).wait();
    assert!(late(expanded.unwrap_err()));
}
