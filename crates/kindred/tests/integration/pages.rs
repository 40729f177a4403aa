//! Pages of a ranking, and the best row of each value: against the whole ranking, one row after the
//! other.

use std::collections::HashSet;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use contract::{Engine, Hit, SearchEngine};
use cpu_core::{CpuEngine, FullScanEngine, ReferenceEngine};

use crate::before::Before;
use crate::random::Random;
use kindred::attributes::{AttributeType, Attributes, ColumnBuilder, Value};
use kindred::filters::FilterSets;
use kindred::question::{Checked, prepare};
use kindred::queue::SubmitError;
use kindred::{Error, Kindred, Method, Model, ModelStore, Options, Settings, Target};

/// The values of the attributes of a row, as numbers; `None` where one is missing.
type OfRow = [Option<i64>; 5];

const NAMES: [&str; 5] = ["skewed", "number", "flag", "added", "text"];

/// Few distinct components, so that many rows have equal scores, and some have none.
fn vector(random: &mut Random, dim: usize) -> Vec<f32> {
    (0..dim).map(|_| random.below(5) as f32 - 2.0).collect()
}

fn values(random: &mut Random) -> OfRow {
    let skewed = match random.below(200) {
        0 => None,
        1 => Some(random.below(1000) as i64),
        _ => Some(-1),
    };
    let mut some = |of: u64| (!random.one_in(9)).then(|| random.below(of) as i64 - 2);
    let [number, flag, added, text] = [40, 2, 3000, 400].map(&mut some);
    [skewed, number, flag.map(|flag| i64::from(flag == 0)), added, text]
}

/// The column of these values, as this type.
fn column(name: &str, values: impl Iterator<Item = Option<i64>>) -> ColumnBuilder {
    let kind = match name {
        "number" => AttributeType::Number,
        "flag" => AttributeType::Boolean,
        "added" => AttributeType::DateTime,
        "text" => AttributeType::Text,
        _ => AttributeType::Integer,
    };
    let mut column = ColumnBuilder::new(name, kind);
    for value in values {
        column.push(value.map(|value| match name {
            // Both zeros are one value.
            "number" if value == 0 => Value::Number(-0.0),
            "number" if value == 1 => Value::Number(0.0),
            "number" => Value::Number(value as f64 / 3.0),
            "flag" => Value::Boolean(value == 1),
            "added" => Value::DateTime(value),
            "text" => Value::Text(format!("text {value}").into()),
            _ => Value::Integer(value),
        }));
    }
    column
}

fn model(rows: usize, under_dot: bool, random: &mut Random) -> (Arc<ModelStore>, Vec<OfRow>) {
    let dim = 2 + random.below(4) as usize;
    let words: Vec<String> = (0..rows).map(|row| format!("w{row}")).collect();
    let vectors: Vec<Vec<f32>> = (0..rows).map(|_| vector(random, dim)).collect();
    let all = words.iter().map(String::as_str).zip(vectors.iter().map(Vec::as_slice));
    let store = match under_dot {
        false => ModelStore::from_rows("random", dim, all),
        true => ModelStore::from_rows_under_dot("random", dim, all, None),
    };
    let mut values: Vec<OfRow> = (0..rows).map(|_| self::values(random)).collect();
    let columns = NAMES.iter().enumerate().map(|(at, name)| {
        let of_column = values.iter().map(move |row| row[at]);
        column(name, of_column)
    });
    let attributes = Attributes::from_columns(columns.collect()).unwrap();
    for row in &mut values {
        // As the column of numbers has them.
        row[1] = row[1].map(|value| if value == 1 { 0 } else { value });
    }
    (Arc::new(store.unwrap().with_attributes(attributes).unwrap()), values)
}

type Make = fn(&Arc<ModelStore>) -> Box<dyn Engine>;

fn engines() -> Vec<(&'static str, Make)> {
    vec![
        ("reference", |model| Box::new(ReferenceEngine::new(model.clone()))),
        ("full scan", |model| Box::new(FullScanEngine::new(model.clone(), 2).unwrap())),
        ("certified", |model| {
            let paths = cpu_core::Paths { always_certify: true, ..cpu_core::Paths::default() };
            let options = cpu_core::Options { threads: 1, paths, ..cpu_core::Options::default() };
            let mut engine = CpuEngine::new(model.clone(), options).unwrap();
            engine.wait_for_tables();
            Box::new(engine)
        }),
    ]
}

fn target(model: &ModelStore, under_dot: bool, random: &mut Random) -> (Target, Method) {
    let rows = model.rows() as u64;
    let mut word = || format!("w{}", random.below(rows));
    let words = [word(), word(), word()];
    let [a, b, c] = &words;
    match random.below(if under_dot { 3 } else { 5 }) {
        0 => (Target::Word(a.clone()), Method::ThreeCosAdd),
        1 => (Target::Components(vector(random, model.dim())), Method::ThreeCosAdd),
        2 => (Target::expression(&format!("{a} - {b} + {c}")).unwrap(), Method::ThreeCosAdd),
        3 => (Target::expression(&format!("{a} - {b} + {c}")).unwrap(), Method::ThreeCosMul),
        _ => (Target::expression(&format!("{a} - {b} + {c}")).unwrap(), Method::PairDirection),
    }
}

/// Which rows and scores may be neighbours.
fn filters(random: &mut Random) -> Options {
    let mut options = Options::new();
    if random.one_in(3) {
        let filters =
            ["flag = true", "skewed != -1", "number > 3 OR text IS NULL", "number > 1000"];
        options = options.filter(filters[random.below(3) as usize].to_owned());
    }
    if random.one_in(4) {
        options = options.min_score(random.below(100) as f64 / 100.0 - 0.3);
    }
    if random.one_in(6) {
        options = options.max_score(0.9);
    }
    if random.one_in(4) {
        options = options.vocab_limit(1 + random.below(2500));
    }
    if random.one_in(3) {
        options = options.excluding((0..20).map(|row| format!("w{row}")));
    }
    options.include_query(random.one_in(3))
}

#[test]
fn every_page_and_the_best_of_each_value_are_those_of_the_whole_ranking() {
    let mut random = Random(7);
    let mut full_passes = 0;
    for (number, rows) in [1, 40, 900, 2600, 3000, 3000].into_iter().enumerate() {
        let under_dot = number == 4;
        let (store, values) = model(rows, under_dot, &mut random);
        let sets = FilterSets::for_model(&store);
        let mut reference = ReferenceEngine::new(store.clone());
        let started: Vec<(&str, Kindred)> = engines()
            .into_iter()
            .map(|(name, make)| {
                let model = Model::from(store.clone());
                let kindred =
                    Kindred::with_engine(model, Settings::default(), move |model| Ok(make(model)));
                (name, kindred.unwrap())
            })
            .collect();
        for _ in 0..60 {
            let (target, method) = target(&store, under_dot, &mut random);
            let filters = filters(&mut random).method(method);
            let checked = Checked::new(&store, &sets, filters.clone(), None).unwrap();
            let Ok(prepared) = prepare(&store, target.clone(), &checked) else { continue };
            let mut all = prepared.query;
            all.k = usize::MAX;
            let ranking: Vec<Hit> = reference.search(&[&all]).unwrap().remove(0);

            let k = random.pick(&[1, 3, 10, 100, 1000]);
            let offset = random.pick(&[0, 1, 7, 500]).min(1000 - k);
            let by = random.pick(&[None, Some(0), Some(1), Some(2), Some(3), Some(4)]);
            let mut options = filters.k(k).offset(offset);
            let mut seen = HashSet::new();
            let stays = |hit: &&Hit| match by.and_then(|by| values[hit.row.index()][by]) {
                None => true,
                Some(value) => seen.insert(value),
            };
            let expected: Vec<(u32, u64)> = ranking
                .iter()
                .filter(stays)
                .skip(offset as usize)
                .take(k as usize)
                .map(|hit| (hit.row.0, hit.score.to_bits()))
                .collect();
            if let Some(by) = by {
                options = options.distinct(NAMES[by].to_owned());
            }
            for (name, kindred) in &started {
                let answer = kindred.ask_all([(target.clone(), options.clone())]).wait().unwrap();
                let answer = answer[0].as_ref().unwrap();
                let found = answer.neighbors.iter().map(|one| (one.row, one.score.to_bits()));
                let found: Vec<(u32, u64)> = found.collect();
                assert!(found == expected, "{name}: {target:?} {options:?} of {rows} rows");
            }
        }
        full_passes += started[0].1.statistics().full_passes.queries;
    }
    assert!(full_passes > 20, "{full_passes} questions needed a full pass");
}

#[test]
fn pages_are_the_prefix_of_one_longer_answer() {
    let mut random = Random(1);
    let (store, _) = model(700, false, &mut random);
    let kindred = Kindred::with_engine(Model::from(store), Settings::default(), |model| {
        Ok(Box::new(ReferenceEngine::new(model.clone())))
    })
    .unwrap();
    for distinct in [None, Some("number"), Some("added")] {
        let options = Options { distinct: distinct.map(str::to_owned), ..Options::new() };
        let ask = |k, offset| {
            let options = options.clone().k(k).offset(offset);
            kindred.nearest("w3", options).wait().unwrap().neighbors
        };
        let whole = ask(1000, 0);
        let pages: Vec<_> = (0..10).flat_map(|page| ask(100, 100 * page)).collect();
        assert_eq!(pages, whole, "{distinct:?}");
        assert!(ask(1, whole.len() as u64).is_empty(), "behind the last");
    }
}

#[test]
fn what_is_wrong_with_a_page_or_an_attribute_is_said_with_the_cure() {
    let mut colors = ColumnBuilder::new("colors", AttributeType::List);
    let mut brand = ColumnBuilder::new("brand", AttributeType::Text);
    colors.push(Some(Value::List(vec!["red".into()])));
    brand.push(None);
    let attributes = Attributes::from_columns(vec![colors, brand]).unwrap();
    let store = ModelStore::from_rows("tiny", 1, [("a", &[1.0f32][..])]).unwrap();
    let plain = Model::from_rows("plain", &[("a", [1.0])]).unwrap();
    let of = |model: Model| {
        Kindred::with_engine(model, Settings::default(), |model| {
            Ok(Box::new(ReferenceEngine::new(model.clone())))
        })
        .unwrap()
    };
    let kindred = of(Model::from(store.with_attributes(attributes).unwrap()));
    let said = |kindred: &Kindred, options: Options| {
        let error = kindred.nearest("a", options).wait().unwrap_err();
        (error.code(), error.to_string())
    };
    let distinct = |name: &str| Options::new().distinct(name.to_owned());
    let known = "`distinct` must be an attribute that is no list and not stored (`brand`)";
    for (options, code, expected) in [
        (
            Options::new().offset(991),
            "invalid_value",
            "`offset` must be a whole number from 0 to 990, because `k` is 10 and the sum is at most \
             1000, not 991"
                .to_owned(),
        ),
        (
            Options::new().k(1).offset(1000),
            "invalid_value",
            "`offset` must be a whole number from 0 to 999, not 1000".to_owned(),
        ),
        (
            distinct("colors"),
            "invalid_value",
            format!("{known}, not `colors`, whose values are lists of texts"),
        ),
        (
            distinct("brnad"),
            "invalid_value",
            format!("{known}, not `brnad`; did you mean `brand`?"),
        ),
        (distinct("zzz"), "invalid_value", format!("{known}, not `zzz`")),
        (
            distinct("brand").fold_case(true),
            "invalid_request",
            "`fold_case` and `distinct` each say which of several rows stays, so they can't be used \
             together; leave one out"
                .to_owned(),
        ),
    ] {
        assert_eq!(said(&kindred, options), (code, expected));
    }
    let none = "`distinct` must be an attribute that is no list and not stored (the model has none), not \
                `brand`";
    assert_eq!(said(&of(plain), distinct("brand")), ("invalid_value", none.to_owned()));
    let fine = kindred.nearest("a", Options::new().k(1).offset(999)).wait().unwrap();
    assert!(fine.neighbors.is_empty());
}

#[test]
fn a_deadline_holds_between_rounds_and_a_few_of_them_are_enough() {
    let mut random = Random(3);
    let (store, values) = model(2000, false, &mut random);
    let kindred = Kindred::with_engine(Model::from(store), Settings::default(), |model| {
        Ok(Before::boxed(model, None, |_| {
            thread::sleep(Duration::from_millis(150));
            Ok(())
        }))
    })
    .unwrap();
    let options = Options::new().k(8).distinct("skewed".to_owned());
    let ask = |options| kindred.nearest("w3", options).wait().map(|answer| answer.neighbors.len());
    assert!(values.iter().filter(|row| row[0] == Some(-1)).count() > 1900);
    assert_eq!(ask(options.clone()), Ok(8));
    let asked = kindred.statistics();
    assert_eq!((asked.searches.queries, asked.full_passes.queries), (2, 1));
    // The first round is answered in time, the second is not.
    let late = ask(options.timeout_ms(250));
    assert_eq!(late, Err(Error::NotAnswered(SubmitError::DeadlinePassed)));
    assert_eq!(kindred.statistics().full_passes.queries, 1);
}
