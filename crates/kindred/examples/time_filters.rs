//! The time that new filters take, from their text to the set of rows that meet them.
//!
//! ```text
//! cargo run --release -p kindred --example time_filters [ROWS]
//! ```
//!
//! Each filter is made with other values each time, so that no set is found. The columns' indexes
//! are made before, and timed. One thread makes a set; the last column has it relative to reading
//! a column of numbers once.

use std::hint::black_box;
use std::time::{Duration, Instant};

use contract::Row;
use kindred::ModelStore;
use kindred::attributes::{AttributeType, Attributes, ColumnBuilder, Value, Values};
use kindred::filters::FilterSets;

const ROWS: usize = 2_196_016;
const TIMES: u64 = 40;

/// A number that looks random, below another.
fn random(of: u64, below: u64) -> u64 {
    let mixed = (of + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((u128::from(mixed ^ (mixed >> 32)) * u128::from(below)) >> 64) as u64
}

/// The index of a text whose frequency is about proportional to 1 / index.
fn zipf(of: u64, texts: u64) -> u64 {
    let uniform = random(of, 1 << 40) as f64 / (1u64 << 40) as f64;
    ((texts as f64).powf(uniform) - 1.0) as u64
}

fn attributes(rows: u64) -> Attributes {
    let column = |name: &str, kind, value: &dyn Fn(u64) -> Option<Value<'static>>| {
        let mut column = ColumnBuilder::new(name, kind);
        (0..rows).for_each(|row| column.push(value(row)));
        column
    };
    let text = |text: String| Some(Value::Text(text.into()));
    let columns = vec![
        column("price", AttributeType::Number, &|row| {
            (row % 50 != 0).then(|| Value::Number(random(row, 10_000_000) as f64 / 1e4))
        }),
        column("year", AttributeType::Integer, &|row| {
            Some(Value::Integer(1950 + random(row ^ 7, 75) as i64))
        }),
        column("id", AttributeType::Integer, &|row| {
            Some(Value::Integer(random(row ^ 77, 100_000) as i64))
        }),
        column("category", AttributeType::Text, &|row| text(format!("c{}", zipf(row ^ 5, 60)))),
        column("brand", AttributeType::Text, &|row| text(format!("b{}", zipf(row ^ 55, 50_000)))),
        column("tags", AttributeType::List, &|row| {
            let tag = |n| format!("t{}", zipf(row ^ (n << 40), 3000)).into();
            Some(Value::List((0..random(row ^ 3, 4)).map(tag).collect()))
        }),
    ];
    Attributes::from_columns(columns).expect("columns of one length")
}

/// The name of each kind of filter, and the filter of a number.
type Kind = (&'static str, fn(u64) -> String);

fn list(count: u64, value: impl Fn(u64) -> String) -> String {
    (0..count).map(value).collect::<Vec<_>>().join(", ")
}

const KINDS: [Kind; 16] = [
    ("number <", |n| format!("price < {}.5", 10 + 20 * n)),
    ("number TO", |n| format!("price {n} TO {}", 500 + n)),
    ("integer =", |n| format!("id = {n}")),
    ("integer IN, 10", |n| format!("year IN [{}]", list(10, |i| (1950 + n + 3 * i).to_string()))),
    ("keyword = frequent", |n| format!("category = c{n}")),
    ("keyword = of many", |n| format!("brand = b{}", 10 * n + 100)),
    ("keyword !=", |n| format!("brand != b{n}")),
    ("keyword IN, 20", |n| format!("brand IN [{}]", list(20, |i| format!("b{}", n + 37 * i)))),
    ("keyword STARTS WITH", |n| format!("brand STARTS WITH b{}", n + 10)),
    ("list =", |n| format!("tags = t{n}")),
    ("list STARTS WITH", |n| format!("tags STARTS WITH t{}", n + 1)),
    ("AND of three", |n| format!("category = c{n} AND price < {} AND year >= {}", 9 * n + 9, 2000)),
    ("OR of three", |n| format!("brand = b{n} OR price > {} OR tags = t{}", 999 - n, n + 5)),
    ("256 tests", |n| {
        let tests = (0..256).map(|i| format!("price {} TO {}", n + 4 * i, n + 4 * i + 1));
        tests.collect::<Vec<_>>().join(" OR ")
    }),
    ("integer IN, 8,000", |n| {
        format!("id IN [{}]", list(8000, |i| random(i + n, 100_000).to_string()))
    }),
    ("keyword IN, 8,000", |n| {
        format!("brand IN [{}]", list(8000, |i| format!("b{}", random(i + n, 50_000))))
    }),
];

fn median(mut times: Vec<Duration>) -> f64 {
    times.sort_unstable();
    times[times.len() / 2].as_secs_f64() * 1e3
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let rows = std::env::args().nth(1).map_or(Ok(ROWS), |rows| rows.parse())?;
    let words: Vec<String> = (0..rows).map(|row| format!("w{row:07}")).collect();
    let vectors = words.iter().map(|word| (&word[..], &[1.0f32][..]));
    let model = ModelStore::from_rows("timed", 1, vectors)?;
    let model = std::sync::Arc::new(model.with_attributes(attributes(rows as u64))?);
    let attributes = model.attributes().expect("it has attributes");
    for column in attributes.columns() {
        let begun = Instant::now();
        column.indexed();
        let (took, bytes) = (begun.elapsed(), column.index_bytes() as f64 / rows as f64);
        let name = column.name();
        println!("index of {name}: {:.1} ms, {bytes:.2} bytes a row", took.as_secs_f64() * 1e3);
    }
    let price = attributes.column("price").expect("it was added");
    let Values::Numbers(prices) = price.values() else { unreachable!("prices are numbers") };
    let read = || {
        let begun = Instant::now();
        let lanes = prices.chunks_exact(8).fold([0.0; 8], |mut sum: [f64; 8], chunk| {
            sum.iter_mut().zip(chunk).for_each(|(sum, x)| *sum += x);
            sum
        });
        black_box(lanes);
        begun.elapsed()
    };
    let reading = median((0..TIMES).map(|_| read()).collect());
    println!("reading {rows} numbers: {reading:.2} ms\n");
    println!("{:<22} {:>8} {:>8} {:>9} {:>9}", "filter", "ms", "highest", "relative", "rows");
    for (name, filter) in KINDS {
        let sets = FilterSets::for_model(&model);
        let mut members = 0;
        let mut times = Vec::new();
        for n in 0..TIMES {
            let filter = filter(n);
            let begun = Instant::now();
            let set = sets.of(&filter)?;
            times.push(begun.elapsed());
            members += set.len();
            black_box(set.contains(Row(n as u32)));
        }
        let highest = times.iter().max().map_or(0.0, Duration::as_secs_f64) * 1e3;
        let (took, members) = (median(times), members / TIMES as usize);
        println!("{name:<22} {took:>8.3} {highest:>8.3} {:>9.2} {members:>9}", took / reading);
    }
    Ok(())
}
