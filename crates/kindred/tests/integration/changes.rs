//! Questions about a table whose rows change have the answers that a model of the same rows gives:
//! the same words in the same order, with the same bits, attributes and explanations.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, RwLock};
use std::thread;

use changes::{BatchBuilder, ChangeOptions, Durability, Schema, Upsert, create};
use contract::Metric;
use cpu_core::ReferenceEngine;

use crate::naive::{Item, Source, attributes, items, sources};
use crate::random::Random;
use kindred::attributes::{AttributeType, Value};
use kindred::live::Live;
use kindred::prepare::{AttributesFile, Input, PrepareOptions, prepare_folder};
use kindred::rows::Rows as _;
use kindred::{
    Answer, Device, Error, Kindred, Method, Model, ModelStore, Options, Settings, Target,
    WithAttributes,
};
use proptest::prelude::*;

const DIM: usize = 5;
const TYPES: [(&str, AttributeType); 7] = [
    ("year", AttributeType::Integer),
    ("price", AttributeType::Number),
    ("sold", AttributeType::Boolean),
    ("made", AttributeType::DateTime),
    ("brand", AttributeType::Text),
    ("tags", AttributeType::List),
    ("serial", AttributeType::Integer),
];

/// A row, as a person would keep it.
#[derive(Debug, Clone)]
struct NaiveRow {
    number: u32,
    vector: Vec<f32>,
    item: Item,
}

type Naive = BTreeMap<String, NaiveRow>;

fn values(item: &Item) -> Vec<(&'static str, Value<'_>)> {
    let text = |text: &String| Value::Text(text.clone().into());
    let list =
        |texts: &Vec<String>| Value::List(texts.iter().map(|text| text.clone().into()).collect());
    let all = [
        item.year.map(Value::Integer),
        item.price.map(Value::Number),
        item.sold.map(Value::Boolean),
        item.made.map(Value::DateTime),
        item.brand.as_ref().map(text),
        item.tags.as_ref().map(list),
        item.serial.map(Value::Integer),
    ];
    TYPES.iter().zip(all).filter_map(|((name, _), value)| Some((*name, value?))).collect()
}

fn vector(random: &mut Random) -> Vec<f32> {
    (0..DIM).map(|_| random.below(5) as f32 - 2.0).collect()
}

/// A folder with these rows.
fn prepared(folder: &Path, rows: &Naive) {
    let mut by_number: Vec<(&String, &NaiveRow)> = rows.iter().collect();
    by_number.sort_by_key(|(_, row)| row.number);
    let (mut vectors, mut lines) = (String::new(), String::new());
    for (key, NaiveRow { vector, item, .. }) in by_number {
        let numbers: Vec<String> = vector.iter().map(f32::to_string).collect();
        vectors += &format!("{key} {}\n", numbers.join(" "));
        // A line names all attributes: there may be one that no row has.
        let missing = TYPES.iter().map(|(name, _)| (name.to_string(), serde_json::Value::Null));
        let known = values(item).into_iter();
        let known = known.map(|(name, value)| (name.to_owned(), serde_json::json!(value)));
        let object: serde_json::Map<_, _> = missing.chain(known).collect();
        lines += &format!("{}\n", serde_json::Value::Object(object));
    }
    let file = folder.with_extension("jsonl");
    fs::write(&file, lines).unwrap();
    let types = TYPES.map(|(name, kind)| (name.to_owned(), kind)).into_iter().collect();
    let attributes = Some(AttributesFile { path: file, types, ..AttributesFile::default() });
    let options = PrepareOptions { attributes, ..PrepareOptions::default() };
    let input = Input::Bytes { name: "m", bytes: vectors.as_bytes() };
    prepare_folder(input, folder, &options, &mut |_| ControlFlow::Continue(())).unwrap();
}

/// `TEST_DEVICE`, as for tests of the program, names a GPU; without it the CPU searches.
fn settings() -> Settings {
    let device = std::env::var("TEST_DEVICE").ok().map(|device| device.parse().unwrap());
    let device = device.unwrap_or(Device::Cpu);
    Settings { device, threads: 1, keep_tables: false, ..Settings::default() }
}

/// The model of these rows alone, with the plain reference.
fn twin(rows: &Naive) -> (Kindred, Vec<u32>) {
    let mut by_number: Vec<(&String, &NaiveRow)> = rows.iter().collect();
    by_number.sort_by_key(|(_, row)| row.number);
    let all = by_number.iter().map(|(key, row)| (key.as_str(), &row.vector[..]));
    let items: Vec<Item> = by_number.iter().map(|(_, row)| row.item.clone()).collect();
    let store = ModelStore::from_rows("m", DIM, all).unwrap();
    let store = store.with_attributes(attributes(&items)).unwrap();
    let kindred = Kindred::with_engine(Model::from(store), settings(), |model| {
        Ok(Box::new(ReferenceEngine::new(model.clone())))
    });
    (kindred.unwrap(), by_number.iter().map(|(_, row)| row.number).collect())
}

/// An answer without the numbers of its rows, which only the table knows.
fn told(answer: Result<Answer<'_>, Error>, rows: Option<&[u32]>) -> Result<String, String> {
    let number = |row: u32| rows.map_or(row, |rows| rows[row as usize]);
    match answer {
        Ok(mut answer) => {
            answer.neighbors.iter_mut().for_each(|one| one.row = number(one.row));
            answer.inputs.iter_mut().flatten().for_each(|one| one.row = number(one.row));
            Ok(serde_json::to_string(&answer).unwrap())
        }
        Err(Error::UnknownWord { unknown }) => {
            Err(unknown.into_iter().map(|unknown| unknown.word).collect::<Vec<_>>().join(", "))
        }
        Err(error) => Err(error.to_string()),
    }
}

fn word(random: &mut Random) -> String {
    format!("w{}", random.below(40))
}

/// A question, and its options for the table and for its twin, whose rows have these numbers.
fn question(random: &mut Random, filter: &str, rows: &[u32]) -> (Target, [Options; 2]) {
    let mut options = Options::new().k([1, 3, 10, 1000][random.below(4) as usize]);
    let target = match random.below(5) {
        0 | 1 => Target::word(word(random)),
        2 => Target::Components(vector(random)),
        3 => Target::text([word(random), word(random), word(random)].join(" ")),
        _ => {
            let method = [Method::ThreeCosAdd, Method::ThreeCosMul, Method::PairDirection];
            options = options.method(random.pick(&method));
            let [a, b, c] = [(); 3].map(|()| word(random));
            Target::expression(&format!("{b} - {a} + {c}")).unwrap()
        }
    };
    if !random.one_in(3) {
        options = options.filter(filter.to_owned());
    }
    match random.below(4) {
        0 => {
            let attribute = random.pick(&["brand", "serial", "year", "price"]);
            options = options.distinct(attribute.to_owned());
        }
        1 => options = options.fold_case(true),
        2 => options = options.offset(random.below(5)).include_query(true),
        _ => (),
    }
    if random.one_in(2) {
        options = options.with_attributes(WithAttributes::All(true)).with_vectors(true);
    }
    if random.one_in(3) {
        options = options.excluding([word(random), word(random)]);
    }
    if random.one_in(3) {
        options = options.explain(true);
    }
    if random.one_in(4) {
        options = options.min_score(random.below(3) as f64 / 4.0);
    }
    if random.one_in(5) {
        let limit = random.below(60) as u32;
        let of_twin = rows.partition_point(|row| *row < limit) as u64;
        if of_twin > 0 {
            let own = options.clone().vocab_limit(limit.into());
            return (target, [own, options.vocab_limit(of_twin)]);
        }
    }
    (target, [options.clone(), options])
}

/// Asks a few questions of both.
fn check(table: &Kindred, naive: &Naive, random: &mut Random, filters: &[Source]) {
    let (twin, rows) = twin(naive);
    for source in filters {
        let filter = source.written();
        let counted = table.count(&filter).map_err(|error| error.to_string());
        let meets = |(key, row): (&String, &NaiveRow)| source.meets(key, &row.item);
        assert_eq!(counted, Ok(naive.iter().filter(|one| meets(*one)).count()), "{filter}");
        let (target, [own, of_twin]) = question(random, &filter, &rows);
        let asked = format!("{target:?} {}", own.to_json());
        let expected =
            told(twin.ask_all([(target.clone(), of_twin)]).wait().unwrap().remove(0), Some(&rows));
        let found = table.ask_all([(target.clone(), own.clone())]).wait().unwrap().remove(0);
        assert_eq!(told(found, None), expected, "{asked}");
        let words = [word(random), word(random)];
        let ranks = |kindred: &Kindred, rows: Option<&[u32]>| {
            let ranks = kindred.rank(words.clone(), target.clone(), Options::new()).wait();
            ranks.map(|ranks| {
                let number = |row: u32| rows.map_or(row, |rows| rows[row as usize]);
                let ranked = ranks.ranked.into_iter();
                let ranked =
                    ranked.map(|one| (one.word.into_owned(), number(one.row), one.score, one.rank));
                ranked.collect::<Vec<_>>()
            })
        };
        let (found, expected) = (ranks(table, None), ranks(&twin, Some(&rows)));
        assert_eq!(found.is_ok(), expected.is_ok(), "{asked}");
        if let (Ok(found), Ok(expected)) = (found, expected) {
            assert_eq!(found, expected, "{asked}");
        }
    }
}

fn upsert(batch: &mut BatchBuilder<'_>, key: &str, row: &NaiveRow) {
    let attributes = values(&row.item);
    batch.upsert(Upsert { key, vector: &row.vector, bias: None, attributes: &attributes });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn a_table_that_changes_answers_as_a_model_of_its_rows(
        seed in any::<u64>(),
        items in items(40..80),
        filters in prop::collection::vec(sources(), 3..8),
    ) {
        let mut random = Random(seed >> 8);
        let scratch = tempfile::tempdir().unwrap();
        let folder = scratch.path().join("m");
        let mut item = { let mut next = 0; move || { next += 1; items[next % items.len()].clone() } };
        let mut naive = Naive::new();
        let is_empty = random.one_in(3);
        let rows = if is_empty { 0 } else { 5 + random.below(20) as u32 };
        for number in 0..rows {
            let row = NaiveRow { number, vector: vector(&mut random), item: item() };
            naive.insert(format!("w{number}"), row);
        }
        match is_empty {
            true => empty(&folder),
            false => prepared(&folder, &naive),
        }
        let mut next = naive.len() as u32;
        let open = || {
            let live = Arc::new(Live::open(&folder, ChangeOptions::default()).unwrap());
            Kindred::start_live(live, settings()).unwrap()
        };
        let mut table = open();
        let mut before = (table.pinned(), naive.clone());
        for position in 1..=6 {
            // There is no twin without rows.
            if !naive.is_empty() {
                check(&table, &naive, &mut random, &filters);
            }
            if !before.1.is_empty() {
                check(&before.0, &before.1, &mut random, &filters);
            }
            if random.one_in(3) {
                before = (table.pinned(), naive.clone());
            }
            let live = table.live().unwrap();
            let mut batch = live.batch();
            let mut taken: Vec<String> = Vec::new();
            for _ in 0..1 + random.below(9) {
                let key = word(&mut random);
                // One row stays.
                if taken.contains(&key) || key == "w0" {
                    continue;
                }
                taken.push(key.clone());
                if random.one_in(4) {
                    batch.delete(&key);
                    naive.remove(&key);
                    continue;
                }
                let row = NaiveRow { number: next, vector: vector(&mut random), item: item() };
                next += 1;
                upsert(&mut batch, &key, &row);
                naive.insert(key, row);
            }
            let first = naive.get("w0").map(|row| (row.vector.clone(), row.item.clone()));
            let (vector, item) = first.unwrap_or_else(|| (vector(&mut random), item()));
            let row = NaiveRow { number: next, vector, item };
            upsert(&mut batch, "w0", &row);
            naive.insert("w0".to_owned(), row);
            next += 1;
            let batch = batch.finish().unwrap().unwrap();
            let committed = live.commit(batch, Durability::None, None).unwrap();
            prop_assert_eq!(committed.position, position);
            match random.below(6) {
                0 => {
                    drop((table, before));
                    table = open();
                    before = (table.pinned(), naive.clone());
                }
                // Those who ask about the old base go on.
                1 | 2 => {
                    let go_on = &mut |_| ControlFlow::Continue(());
                    let folded = table.live().unwrap().fold(go_on).unwrap();
                    if let Some(folded) = folded {
                        check(&table, &naive, &mut random, &filters);
                        table = Kindred::start_live(Arc::new(folded), settings()).unwrap();
                    }
                }
                _ => (),
            }
        }
        check(&table, &naive, &mut random, &filters);
    }
}

#[test]
fn each_answer_is_of_one_position_while_rows_are_written() {
    // The row `a` always has the direction of its position, and so has `b`.
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    let input = Input::Bytes { name: "m", bytes: b"a 1 0\nb 1 0\nc 0 1\n" };
    let options = PrepareOptions::default();
    prepare_folder(input, &folder, &options, &mut |_| ControlFlow::Continue(())).unwrap();
    let live = Arc::new(Live::open(&folder, ChangeOptions::default()).unwrap());
    let table = Kindred::start_live(live.clone(), settings()).unwrap();
    let steps = 300_u32;
    thread::scope(|scope| {
        for _ in 0..3 {
            let table = table.another_caller();
            scope.spawn(move || {
                let mut last = 0;
                while last < u64::from(steps) {
                    let options = Options::new().k(1).with_vectors(true);
                    let answer = table.nearest("a", options).wait().unwrap();
                    let position = answer.position.unwrap();
                    assert!(position >= last, "later questions are about later rows");
                    last = position;
                    let best = &answer.neighbors[0];
                    assert!(best.word == "b" && best.score > 1.0 - 1e-12, "{best:?}");
                    let expected = [1.0, position as f32];
                    assert_eq!(best.vector.as_deref(), Some(&expected[..]));
                }
            });
        }
        for step in 1..=steps {
            let mut batch = live.batch();
            let vector = [1.0, step as f32];
            for key in ["a", "b"] {
                batch.upsert(Upsert { key, vector: &vector, bias: None, attributes: &[] });
            }
            let batch = batch.finish().unwrap().unwrap();
            let committed = live.commit(batch, Durability::None, None).unwrap();
            // Acknowledged, it is visible.
            let own = table.nearest("a", Options::new().k(1)).wait().unwrap();
            assert!(own.position.unwrap() >= committed.position);
        }
    });
}

/// A table without rows, with the attributes of the tests.
fn empty(folder: &Path) {
    let columns = TYPES.map(|(name, kind)| (name.to_owned(), kind)).to_vec();
    create(folder, &Schema { dim: DIM, metric: Metric::Cosine, columns }).unwrap();
}

#[test]
fn a_table_without_rows_answers_and_then_as_one_that_was_prepared() {
    let scratch = tempfile::tempdir().unwrap();
    let [folder, other] = ["m", "other"].map(|name| scratch.path().join(name));
    empty(&folder);
    empty(&other);
    let alone = Kindred::start(Model::open(&folder).unwrap(), settings()).unwrap();
    let live = |folder: &Path| Arc::new(Live::open(folder, ChangeOptions::default()).unwrap());
    let table = Kindred::start_live(live(&folder), settings()).unwrap();
    let second = live(&other);
    assert_ne!(second.base().version(), table.model().version(), "each is a table of its own");

    for kindred in [&alone, &table] {
        assert_eq!(kindred.description().rows, 0);
        let found = kindred.nearest(vec![1.0; DIM], Options::new()).wait().unwrap();
        assert!(found.neighbors.is_empty());
        let error = kindred.nearest("frog", Options::new()).wait().unwrap_err();
        assert!(error.to_string().contains("frog"), "{error}");
        let error = kindred.analogy("a - b + c", Options::new()).wait().unwrap_err();
        assert!(error.to_string().contains('b'), "{error}");
        let text = Target::text("the quick brown fox");
        assert!(kindred.nearest(text, Options::new()).wait().is_err());
        for filter in ["price < 3", "NOT brand = x", "key = a", "tags IN [x, y]", "made EXISTS"] {
            assert_eq!(kindred.count(filter).unwrap(), 0, "{filter}");
            let options = Options::new().filter(filter.to_owned()).distinct("brand".to_owned());
            let found = kindred.nearest(vec![1.0; DIM], options).wait().unwrap();
            assert!(found.neighbors.is_empty(), "{filter}");
        }
        assert!(kindred.rank(["a"], vec![1.0; DIM], Options::new()).wait().is_err());
        let unknown = kindred.count("colour = red").unwrap_err().to_string();
        assert!(unknown.contains("price"), "it names the attributes: {unknown}");
    }

    // Rows come, and all of them go.
    let live = table.live().unwrap();
    let put = |vector: &[f32]| {
        let mut batch = live.batch();
        for (key, price) in [("frog", 1.0), ("toad", 2.0)] {
            let attributes = [("price", Value::Number(price))];
            batch.upsert(Upsert { key, vector, bias: None, attributes: &attributes });
        }
        live.commit(batch.finish().unwrap().unwrap(), Durability::Synced, None).unwrap()
    };
    put(&[1.0, 2.0, 0.0, 0.0, 0.0]);
    let options = Options::new().filter("price > 1".to_owned());
    let found = table.nearest("frog", options.clone()).wait().unwrap();
    assert_eq!((found.words().collect::<Vec<_>>(), found.position), (vec!["toad"], Some(1)));
    assert_eq!(table.count("price > 0").unwrap(), 2);
    let ranks = table.rank(["toad"], "frog", Options::new()).wait().unwrap();
    assert_eq!(ranks.ranked[0].rank, Some(1));
    let mut batch = live.batch();
    ["frog", "toad"].iter().for_each(|key| batch.delete(key));
    live.commit(batch.finish().unwrap().unwrap(), Durability::Synced, None).unwrap();
    assert_eq!((table.description().rows, table.count("price > 0").unwrap()), (0, 0));
    assert!(table.nearest(vec![1.0; DIM], options).wait().unwrap().neighbors.is_empty());
    assert!(table.nearest("frog", Options::new()).wait().is_err());
    assert_eq!(put(&[1.0; DIM]).position, 3);
    assert_eq!(live.now().row_of("toad").unwrap().0, 3, "numbers are not given again");
}

#[test]
fn while_a_table_is_folded_and_swapped_answers_go_on_and_positions_ascend() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    empty(&folder);
    let live = Arc::new(Live::open(&folder, ChangeOptions::default()).unwrap());
    let serve = |live: Live| Kindred::start_live(Arc::new(live), settings()).unwrap();
    let put = |live: &Live, step: u32| {
        let mut batch = live.batch();
        let vector = [1.0, step as f32, 0.0, 0.0, 0.0];
        for key in ["a", "b"] {
            batch.upsert(Upsert { key, vector: &vector, bias: None, attributes: &[] });
        }
        let batch = batch.finish().unwrap().unwrap();
        live.commit(batch, Durability::None, None).unwrap().position
    };
    put(&live, 1);
    let served = RwLock::new(Kindred::start_live(live, settings()).unwrap());
    let steps = 200;
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let mut last = 0;
                while last < u64::from(steps) {
                    let table = served.read().unwrap().another_caller();
                    let options = Options::new().k(1).with_vectors(true);
                    let answer = table.nearest("a", options).wait().unwrap();
                    let position = answer.position.unwrap();
                    assert!(position >= last, "also of a table that was swapped meanwhile");
                    last = position;
                    let best = &answer.neighbors[0];
                    let expected = [1.0, position as f32, 0.0, 0.0, 0.0];
                    assert_eq!(best.vector.as_deref(), Some(&expected[..]));
                    // Each batch has two rows, and `b` is the second.
                    assert_eq!((&*best.word, u64::from(best.row)), ("b", 2 * position - 1));
                }
            });
        }
        for step in 2..=steps {
            let table = served.read().unwrap().clone();
            put(table.live().unwrap(), step);
            if step % 20 == 0 {
                let go_on = &mut |_| ControlFlow::Continue(());
                let folded = table.live().unwrap().fold(go_on).unwrap().unwrap();
                assert_eq!(folded.base().rows(), 2);
                let latest = table.live().unwrap().latest().unwrap();
                assert!(Arc::ptr_eq(latest.base(), folded.base()) && folded.latest().is_none());
                *served.write().unwrap() = serve(folded);
            }
        }
    });
    let table = served.into_inner().unwrap();
    assert_eq!(table.live().unwrap().generation(), 11);
}
