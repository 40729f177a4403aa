//! Measures the CUDA engine on a model folder: device and host time by batch size. Answers are
//! compared with the device's own float64 pass, and that pass with the CPU.
//!
//! `search [MODEL_DIR | ROWS DIM] [--portable] [--float32] [--batches=1,32] [--with=3cosmul:10] [--queries=10000]`:
//! a folder, or a synthetic table in memory. `--portable`: only what every supported device runs;
//! `--float32`: without derived tables; `--batches`: words and vectors in these batches only;
//! `--with`: that percentage of them of another kind (`3cosmul`, `pairdirection`, `k100`, `limit`,
//! `excluded50`, `SETS/SHARE`), whose answers are not compared, but for sets: `64/0.01` are words
//! with one of 64 sets of 1 % of the rows; `--overlapped`: each batch starts before the last one is over,
//! and answers are not compared; `--ranks`: queries for the ranks of ten random rows, of which one
//! of each batch is compared; `--queries`: this number of random queries, in batches of 1024 and
//! one by one, compared and not timed. Without a device it says so and exits with 0, because
//! measurements can't fail.

mod read_table;

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{
    Device, Filter, FullPassEngine, FullPassQuery, Hit, Query, QueryVector, Row, RowBitmap, RowSet,
    Scoring, SearchEngine,
};
use cpu_core::FullScanEngine;
use gpu_core::driver::{Array, Gpu};
use gpu_core::search::{CudaEngine, Paths};
use gpu_core::{Options, abi};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};

use read_table::time_reading;

/// Passes timed for each line.
const TIMES: usize = 60;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let has = |flag: &str| arguments.iter().any(|a| a == flag);
    let value = |flag: &str| arguments.iter().find_map(|a| a.strip_prefix(flag)?.strip_prefix('='));
    let words: Vec<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    let gpu = match Gpu::open(None) {
        Ok(gpu) => gpu,
        Err(e) => {
            println!("search: skipped: {e}");
            return;
        }
    };
    let model = Arc::new(match words.as_slice() {
        [folder] => ModelStore::open(folder.as_ref()).expect("a model folder"),
        [rows, dim] => synthetic(rows.parse().expect("rows"), dim.parse().expect("components")),
        _ => synthetic(400_000, 300),
    });
    println!("{} rows x {} on {}", model.rows(), model.dim(), gpu.name);
    read_limits(&model, &gpu);
    let int8 = !has("--float32");
    let paths = Paths { portable: has("--portable"), int8, ..Paths::default() };
    let started = Instant::now();
    let before = gpu.free_memory().expect("the free memory");
    let mut engine = CudaEngine::new(model.clone(), Options::default(), paths).expect("an engine");
    let taken = before.saturating_sub(gpu.free_memory().expect("the free memory"));
    let table = (size_of::<f32>() * model.rows() * model.dim()) as f64;
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let first = queries(&model, 1, 10, &mut numbers, Kind::Word);
    let _ = engine.search(&first.iter().collect::<Vec<_>>()).expect("an answer");
    println!(
        "load: {:.2} s from page cache to first answer; {}; extra memory {:.3} of the table",
        started.elapsed().as_secs_f64(),
        engine.description().detail,
        taken as f64 / table - 1.0
    );
    let mut oracle = CudaEngine::new(
        model.clone(),
        Options::default(),
        Paths { int8: false, float32: false, ..paths },
    )
    .expect("an engine");
    compare_oracle_with_cpu(&model, &mut oracle, &mut numbers);

    if let Some(count) = value("--queries") {
        compare(&model, &mut engine, &mut oracle, count.parse().expect("a number"), &mut numbers);
        return;
    }
    println!(
        "{:>6} {:>5} {:>7} | device ms   host p50   host p99 | queries/s  | exact      | cand/query surv/query fallbacks",
        "batch", "k", "query"
    );
    let batches = value("--batches").unwrap_or("1,2,8,16,32,64,128,256,512,1024");
    let batches = batches.split(',').map(|batch| batch.parse().expect("a batch"));
    if has("--ranks") {
        for batch in batches {
            ranks_line(&model, &mut engine, batch, &mut numbers);
        }
        return;
    }
    if has("--overlapped") {
        for batch in batches {
            for kind in [Kind::Word, Kind::Vector] {
                overlapped_line(&model, &mut engine, batch, kind, &mut numbers);
            }
        }
        return;
    }
    engine.measure().expect("events");
    if let Some(kinds) = value("--with") {
        for batch in batches {
            for kind in kinds.split(',') {
                mixed_line(&model, &mut engine, &mut oracle, batch, kind, &mut numbers);
            }
        }
        return;
    }
    let is_chosen = value("--batches").is_some();
    for batch in batches {
        line(&model, &mut engine, &mut oracle, batch, 10, Kind::Word, &mut numbers);
        if is_chosen {
            line(&model, &mut engine, &mut oracle, batch, 10, Kind::Vector, &mut numbers);
        }
    }
    if is_chosen {
        return;
    }
    for batch in [1, 32, 128, 1024] {
        line(&model, &mut engine, &mut oracle, batch, 10, Kind::Vector, &mut numbers);
    }
    for k in [100, 1000] {
        for batch in [1, 64] {
            line(&model, &mut engine, &mut oracle, batch, k, Kind::Word, &mut numbers);
        }
    }
    latency(&model, &mut engine, &mut numbers);
}

/// Measures queries for the ranks of ten rows.
fn ranks_line(
    model: &Arc<ModelStore>,
    engine: &mut CudaEngine,
    batch: usize,
    numbers: &mut Numbers,
) {
    let mut row = || Row(numbers.below(model.rows()) as u32);
    let mut query = || {
        let scoring = Scoring::vector(&model.table(), QueryVector::Row(row()));
        let ranked = (0..10).map(|_| row()).collect();
        FullPassQuery::new(scoring.expect("a word"), 0, Filter::default(), ranked)
    };
    let mut times = Vec::new();
    let before = engine.counters().fallbacks;
    for time in 0..TIMES / 2 {
        let queries: Vec<FullPassQuery> = (0..batch).map(|_| query()).collect();
        let queries: Vec<&FullPassQuery> = queries.iter().collect();
        let began = Instant::now();
        // In one piece, as where nobody else waits.
        let mut parts = match engine.start_ranks(&queries).expect("ranks") {
            true => engine.finish_ranks(&queries).expect("ranks"),
            false => continue,
        };
        times.push(began.elapsed());
        if time == 0 && parts[0].is_answered() {
            let mut host = FullScanEngine::new(model.clone(), 0).expect("threads");
            let expected = host.full_pass(&queries[..1]).expect("ranks").remove(0);
            assert_eq!(parts.remove(0).into_answer(), expected);
        }
    }
    assert!(!times.is_empty(), "the device counts no ranks of {batch} queries at once");
    times.sort_unstable();
    let median = times[times.len() / 2].as_secs_f64();
    println!(
        "ranks of 10 rows, {batch:>4} queries: {:.4} ms, {:.0} queries/s, {} fallbacks",
        median * 1e3,
        batch as f64 / median,
        engine.counters().fallbacks - before
    );
}

#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Word,
    Vector,
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as usize % end
    }
}

fn synthetic(rows: u32, dim: usize) -> ModelStore {
    let files =
        synth_in_memory(SynthOptions { rows, dim, seed: 1, ..Default::default() }).expect("memory");
    ModelStore::from_memory("synth", &files).expect("a model")
}

fn read_limits(model: &ModelStore, gpu: &Gpu) {
    for (what, parts) in [("float32", 1), ("8-bit", 4), ("4-bit", 8)] {
        let array = Array::<u32>::zeroed(model.rows() * model.dim() / parts).expect("memory");
        let time = time_reading(&array, gpu, 30).expect("a reading");
        println!(
            "reading the table's {what} size once: {:.4} ms, {:.2} TB/s",
            time.as_secs_f64() * 1e3,
            array.bytes() as f64 / time.as_secs_f64() / 1e12
        );
    }
}

/// Word queries exclude their own word, as in the service; vector queries are sums of two rows.
fn queries(
    model: &ModelStore,
    count: usize,
    k: usize,
    numbers: &mut Numbers,
    kind: Kind,
) -> Vec<Query> {
    let table = model.table();
    let ask = |numbers: &mut Numbers| {
        let row = Row(numbers.below(model.rows()) as u32);
        let (vector, filter) = match kind {
            Kind::Word => (QueryVector::Row(row), Filter::excluding(vec![row])),
            Kind::Vector => {
                let other = Row(numbers.below(model.rows()) as u32);
                let sum = table.row(row).iter().zip(table.row(other)).map(|(a, b)| a + 0.7 * b);
                (QueryVector::from(sum.collect::<Vec<f32>>()), Filter::default())
            }
        };
        Query::new(&table, vector, k, filter).expect("a query")
    };
    (0..count).map(|_| ask(numbers)).collect()
}

fn bits(answers: &[Vec<Hit>]) -> Vec<Vec<(u32, u64)>> {
    answers.iter().map(|hits| hits.iter().map(|h| (h.row.0, h.score.to_bits())).collect()).collect()
}

/// Compares the device's float64 pass with the CPU.
fn compare_oracle_with_cpu(
    model: &Arc<ModelStore>,
    oracle: &mut CudaEngine,
    numbers: &mut Numbers,
) {
    let mut asked = queries(model, 150, 10, numbers, Kind::Word);
    asked.extend(queries(model, 50, 100, numbers, Kind::Vector));
    let found = bits(&oracle.search(&asked.iter().collect::<Vec<_>>()).expect("answers"));
    let mut cpu = FullScanEngine::new(model.clone(), 0).expect("threads");
    let expected = bits(&cpu.search(&asked.iter().collect::<Vec<_>>()).expect("answers"));
    let same = found.iter().zip(&expected).filter(|(a, b)| a == b).count();
    println!(
        "the device's float64 pass against the CPU: {same} of {} queries the same, rows and bits",
        asked.len()
    );
    oracle.measure().expect("events");
    let mut times: Vec<Duration> = asked[..20]
        .iter()
        .map(|query| {
            let _ = oracle.search(&[query]).expect("an answer");
            oracle.device_time()
        })
        .collect();
    println!("one query by it: {:.3} ms", median(&mut times).as_secs_f64() * 1e3);
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

/// Times batches of word queries in which some are of another kind, such as `3cosmul:10`.
fn mixed_line(
    model: &ModelStore,
    engine: &mut CudaEngine,
    oracle: &mut CudaEngine,
    batch: usize,
    kind: &str,
    numbers: &mut Numbers,
) {
    let (name, percentage) = kind.split_once(':').expect("KIND:PERCENTAGE");
    let others = batch * percentage.parse::<usize>().expect("a percentage") / 100;
    let of_kind = sets(model, name, numbers);
    let before = engine.counters();
    let (mut device, mut host) = (Vec::new(), Vec::new());
    let mut is_same = true;
    for time in 0..TIMES {
        let mut asked = queries(model, batch - others, 10, numbers, Kind::Word);
        asked.extend((0..others).map(|index| match of_kind.get(index % of_kind.len().max(1)) {
            Some(set) => {
                let row = Row(numbers.below(model.rows()) as u32);
                let rows = RowSet::of(set.clone()).less(vec![row]);
                let filter = Filter { rows, ..Filter::default() };
                Query::new(&model.table(), QueryVector::Row(row), 10, filter).expect("a query")
            }
            None => other(model, name, numbers),
        }));
        let asked: Vec<&Query> = asked.iter().collect();
        let started = Instant::now();
        let found = engine.search_overlapped(&asked, &mut || ()).expect("answers");
        // The first few warm up.
        if time >= 5 {
            host.push(started.elapsed());
            device.push(engine.device_time());
        }
        if time % 30 == 0 && !of_kind.is_empty() {
            let found: Vec<Vec<Hit>> = found.into_iter().map(Option::unwrap_or_default).collect();
            is_same &= bits(&found) == bits(&oracle.search(&asked).expect("answers"));
        }
    }
    if !is_same {
        println!("answers of {kind} differ from those of the float64 pass");
    }
    let after = engine.counters();
    println!(
        "{batch:>6} {kind:>18} | {:>9.4} {:>10.4} | {:>10.1} {:>10.1} {:>6}",
        median(&mut device).as_secs_f64() * 1e3,
        median(&mut host).as_secs_f64() * 1e3,
        (after.candidates - before.candidates) as f64 / (TIMES * batch) as f64,
        (after.survivors - before.survivors) as f64 / (TIMES * batch) as f64,
        after.fallbacks - before.fallbacks,
    );
}

/// Times passes of word queries of which each is started before the last one is over.
fn overlapped_line(
    model: &ModelStore,
    engine: &mut CudaEngine,
    batch: usize,
    kind: Kind,
    numbers: &mut Numbers,
) {
    let asked: Vec<Vec<Query>> =
        (0..20).map(|_| queries(model, batch, 10, numbers, kind)).collect();
    let mut times = Vec::new();
    let started = Instant::now();
    let mut before: Option<Vec<&Query>> = None;
    for asked in asked.iter().cycle().take(20 * TIMES) {
        let asked: Vec<&Query> = asked.iter().collect();
        engine.wait_until_almost_over().expect("a device that works");
        assert!(engine.start_search(&asked).expect("a started pass"), "it overlaps");
        if let Some(before) = before.replace(asked) {
            let _ = engine.finish_search(&before).expect("answers");
            times.push(started.elapsed());
        }
    }
    let _ = engine.finish_search(&before.expect("the last")).expect("answers");
    let mut between: Vec<Duration> = times.windows(2).map(|two| two[1] - two[0]).collect();
    let what = if kind == Kind::Word { "words" } else { "vectors" };
    let milliseconds = median(&mut between).as_secs_f64() * 1e3;
    println!("{batch:>6} {what:>7} overlapped | {milliseconds:>9.4} ms a pass");
}

/// A query of this kind, of random words.
fn other(model: &ModelStore, kind: &str, numbers: &mut Numbers) -> Query {
    let table = model.table();
    let [a, b, c] = std::array::from_fn(|_| Row(numbers.below(model.rows()) as u32));
    let word = |k, filter| Query::new(&table, QueryVector::Row(a), k, filter).expect("a query");
    let by = |scoring: Result<Scoring, _>| {
        Query::by(scoring.expect("a formula"), 10, Filter::excluding(vec![a, b, c]))
    };
    match kind {
        "3cosmul" => by(Scoring::three_cos_mul(&table, &[b, c], &[a])),
        "pairdirection" => by(Scoring::pair_direction(&table, a, b, c)),
        "k100" => word(100, Filter::excluding(vec![a])),
        "excluded50" => {
            let rows = (0..50).map(|_| Row(numbers.below(model.rows()) as u32)).collect();
            word(10, Filter::excluding(rows))
        }
        "limit" => {
            let mut filter = Filter::excluding(vec![a]);
            filter.rows = filter.rows.limited(Some(model.rows() as u32 / 11));
            word(10, filter)
        }
        _ => panic!("{kind}: 3cosmul, pairdirection, k100, limit, excluded50 or SETS/SHARE"),
    }
}

/// The sets of a kind `SETS/SHARE`; none for other kinds.
fn sets(model: &ModelStore, kind: &str, numbers: &mut Numbers) -> Vec<Arc<RowBitmap>> {
    let Some((count, share)) = kind.split_once('/') else { return Vec::new() };
    let (count, share): (usize, f64) =
        (count.parse().expect("a number of sets"), share.parse().expect("a share"));
    let below = (share * f64::from(1 << 20)) as usize;
    let set = |_| {
        let rows = (0..model.rows() as u32).map(Row);
        let members: Vec<Row> = rows.filter(|_| numbers.below(1 << 20) < below).collect();
        Arc::new(RowBitmap::of_rows(members, model.rows(), model.version()))
    };
    (0..count).map(set).collect()
}

fn line(
    model: &ModelStore,
    engine: &mut CudaEngine,
    oracle: &mut CudaEngine,
    batch: usize,
    k: usize,
    kind: Kind,
    numbers: &mut Numbers,
) {
    let before = engine.counters();
    let (mut device, mut host) = (Vec::new(), Vec::new());
    let (mut exact, mut compared) = (0, 0);
    for time in 0..TIMES {
        let asked = queries(model, batch, k, numbers, kind);
        let asked: Vec<&Query> = asked.iter().collect();
        let started = Instant::now();
        let found = engine.search(&asked).expect("answers");
        // The first few warm up.
        if time >= 5 {
            host.push(started.elapsed());
            device.push(engine.device_time());
        }
        // A float64 pass is slow, so only about 2,000 queries of a line are compared.
        if compared < 2048 {
            let expected = bits(&oracle.search(&asked).expect("answers"));
            compared += batch;
            exact += bits(&found).iter().zip(&expected).filter(|(a, b)| a == b).count();
        }
    }
    let after = engine.counters();
    let asked = (TIMES * batch) as f64;
    let device = median(&mut device);
    let host50 = median(&mut host);
    let host99 = host[host.len() * 99 / 100];
    println!(
        "{batch:>6} {k:>5} {:>7} | {:>9.4} {:>10.4} {:>10.4} | {:>10.0} | {exact:>5}/{compared:<5} | {:>10.1} {:>10.1} {:>6}",
        if kind == Kind::Word { "word" } else { "vector" },
        device.as_secs_f64() * 1e3,
        host50.as_secs_f64() * 1e3,
        host99.as_secs_f64() * 1e3,
        batch as f64 / device.as_secs_f64(),
        (after.candidates - before.candidates) as f64 / asked,
        (after.survivors - before.survivors) as f64 / asked,
        after.fallbacks - before.fallbacks,
    );
}

/// Compares random words and vectors with the float64 pass: the first tenth one by one, the rest in
/// batches.
fn compare(
    model: &ModelStore,
    engine: &mut CudaEngine,
    oracle: &mut CudaEngine,
    count: usize,
    numbers: &mut Numbers,
) {
    let mut asked = queries(model, count / 2, 10, numbers, Kind::Vector);
    asked.extend(queries(model, count - count / 2, 10, numbers, Kind::Word));
    let (alone, together) = asked.split_at(count / 10);
    let mut same = 0;
    for batch in alone.chunks(1).chain(together.chunks(1024)) {
        let batch: Vec<&Query> = batch.iter().collect();
        let found = bits(&engine.search(&batch).expect("answers"));
        let expected = bits(&oracle.search(&batch).expect("answers"));
        same += found.iter().zip(&expected).filter(|(a, b)| a == b).count();
    }
    println!("{same} of {count} random queries the same as the float64 pass, rows and bits");
    println!("{:?}", engine.counters());
}

fn latency(model: &ModelStore, engine: &mut CudaEngine, numbers: &mut Numbers) {
    let asked = queries(model, 2000, 10, numbers, Kind::Word);
    let mut host: Vec<Duration> = asked
        .iter()
        .map(|query| {
            let batch: Vec<&Query> = std::iter::once(query).collect();
            let started = Instant::now();
            let _ = engine.search(&batch).expect("an answer");
            started.elapsed()
        })
        .collect();
    host.sort_unstable();
    println!(
        "one query, host-visible, 2000 words: p50 {:.1} us, p99 {:.1} us, worst {:.1} us",
        host[1000].as_secs_f64() * 1e6,
        host[1980].as_secs_f64() * 1e6,
        host[1999].as_secs_f64() * 1e6
    );
}
