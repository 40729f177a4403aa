//! Measures several GPUs: replicas for throughput, shards for latency and size. Answers of shards
//! are compared with those of one GPU.
//!
//! `several [MODEL_DIR | ROWS DIM] [--gpus=0,1,2,3] [--shards=1,2,4] [--shards-only] [--check=10000]`:
//! a folder, or a synthetic table in memory. `--gpus`: all that there are, if it is not said; a GPU
//! may be repeated. `--shards`: the numbers of shards, on the first GPUs of the list; 1 is one GPU.
//! `--check`: this number of random queries of all kinds is compared, of each GPU and of the shards
//! with the first GPU, and nothing is timed. Without a device it says so and exits with 0.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{
    Components, Engine, Filter, FullPassQuery, Hit, Query, QueryVector, RankedRow, Row, Scoring,
    SearchEngine,
};
use cpu_core::FullScanEngine;
use gpu_core::search::{CudaEngine, Paths};
use gpu_core::{GpuError, Options};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};
use shards::{Shards, split_evenly};

mod together;

/// Queries of a batch.
const BATCH: usize = 1024;
/// How long replicas are timed.
const TIMED: Duration = Duration::from_secs(3);
/// Queries whose latency is measured.
const SINGLE: usize = 2000;

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let value = |flag: &str| arguments.iter().find_map(|a| a.strip_prefix(flag)?.strip_prefix('='));
    let list = |text: &str| -> Vec<usize> {
        text.split(',').map(|one| one.parse().expect("a number")).collect()
    };
    let found = match gpu_core::count() {
        Ok(found) => found,
        Err(e) => {
            println!("several: skipped: {e}");
            return;
        }
    };
    let gpus = value("--gpus").map_or_else(|| (0..found as usize).collect(), list);
    let gpus: Vec<u32> = gpus.into_iter().map(|gpu| gpu as u32).collect();
    let words: Vec<&String> = arguments.iter().filter(|a| !a.starts_with("--")).collect();
    let model = Arc::new(match words.as_slice() {
        [folder] => ModelStore::open(folder.as_ref()).expect("a model folder"),
        [rows, dim] => synthetic(rows.parse().expect("rows"), dim.parse().expect("components")),
        _ => synthetic(400_000, 300),
    });
    println!("{} rows x {} on GPUs {gpus:?} of {found}", model.rows(), model.dim());
    let counts = value("--shards").map_or_else(|| (1..=gpus.len()).collect(), list);
    if let Some(count) = value("--check") {
        let count = count.parse().expect("a number");
        let first = &gpus[..1];
        gpus[1..].iter().for_each(|&other| check(&model, first, &[other], count));
        let in_shards = counts.iter().filter(|&&shards| shards > 1);
        in_shards.for_each(|&shards| check(&model, first, &gpus[..shards], count));
        return;
    }
    if !arguments.iter().any(|argument| argument == "--shards-only") {
        replicas(&model, &gpus);
    }
    for shards in counts {
        in_shards(&model, &gpus[..shards]);
    }
}

fn synthetic(rows: u32, dim: usize) -> ModelStore {
    let files =
        synth_in_memory(SynthOptions { rows, dim, seed: 1, ..Default::default() }).expect("memory");
    ModelStore::from_memory("synth", &files).expect("a model")
}

struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) as usize % end
    }

    fn row(&mut self, model: &ModelStore) -> Row {
        Row(self.below(model.rows()) as u32)
    }
}

/// Neighbours of random words, each without itself.
fn word_queries(model: &ModelStore, count: usize, numbers: &mut Numbers) -> Vec<Query> {
    let table = model.table();
    let query = |row: Row| {
        Query::new(&table, QueryVector::Row(row), 10, Filter::excluding(vec![row])).expect("a word")
    };
    (0..count).map(|_| query(numbers.row(model))).collect()
}

/// Queries for vectors near words.
fn vector_queries(model: &ModelStore, count: usize, numbers: &mut Numbers) -> Vec<Query> {
    let (table, dim) = (model.table(), model.dim());
    let mut all = Vec::with_capacity(count * dim);
    for _ in 0..count {
        let near = table.row(numbers.row(model));
        all.extend(near.iter().map(|x| x * (0.7 + 0.6 * numbers.below(1000) as f32 / 1000.0)));
    }
    let all = Arc::new(all);
    let query = |at: usize| {
        let vector = Components::part(&all, at * dim..(at + 1) * dim);
        let vector = QueryVector::Components(vector);
        Query::new(&table, vector, 10, Filter::default()).expect("a vector with a direction")
    };
    (0..count).map(query).collect()
}

/// The median time of a batch, one after the other.
fn one_batch(engine: &mut dyn SearchEngine, mut asked: impl FnMut() -> Vec<Query>) -> Duration {
    let mut times = Vec::new();
    for _ in 0..30 {
        let asked = asked();
        let asked: Vec<&Query> = asked.iter().collect();
        let started = Instant::now();
        engine.search_overlapped(&asked, &mut || ()).expect("answers");
        times.push(started.elapsed());
    }
    times.sort_unstable();
    times[times.len() / 2]
}

/// Runs batches, each started before the last one is over, until `until`; returns the number of
/// queries answered.
fn run(engine: &mut dyn SearchEngine, asked: &[Vec<Query>], until: Instant) -> usize {
    let mut before: Option<Vec<&Query>> = None;
    let mut answered = 0;
    for asked in asked.iter().cycle() {
        if Instant::now() >= until {
            break;
        }
        let asked: Vec<&Query> = asked.iter().collect();
        engine.wait_until_almost_over().expect("a device that works");
        assert!(engine.start_search(&asked).expect("a started pass"), "it overlaps");
        if let Some(before) = before.replace(asked) {
            answered += engine.finish_search(&before).expect("answers").len();
        }
    }
    if let Some(before) = before {
        answered += engine.finish_search(&before).expect("answers").len();
    }
    answered
}

/// An engine on each GPU: first each alone, then all together.
fn replicas(model: &Arc<ModelStore>, gpus: &[u32]) {
    let began = Instant::now();
    let make = |index: usize, gpu: u32| {
        let options = Options { ordinal: Some(gpu), ..Options::default() };
        let mut engine =
            CudaEngine::new(model.clone(), options, Paths::default()).expect("an engine");
        println!("cuda:{gpu} has its copy after {:.2} s", began.elapsed().as_secs_f64());
        let mut numbers = Numbers(0x1234_5678_9abc_def1 + index as u64);
        let asked: Vec<Vec<Query>> =
            (0..20).map(|_| word_queries(model, BATCH, &mut numbers)).collect();
        run(&mut engine, &asked, Instant::now() + TIMED / 10);
        (engine, asked)
    };
    let rate = |(engine, asked): &mut (CudaEngine, Vec<Vec<Query>>)| {
        let started = Instant::now();
        run(engine, asked, started + TIMED) as f64 / started.elapsed().as_secs_f64()
    };
    together::report(&together::rates(gpus, make, rate), "queries");
}

fn engine(model: &Arc<ModelStore>, gpus: &[u32]) -> Box<dyn Engine> {
    if let [gpu] = gpus {
        let options = Options { ordinal: Some(*gpu), ..Options::default() };
        return Box::new(
            CudaEngine::new(model.clone(), options, Paths::default()).expect("an engine"),
        );
    }
    let (own, ranges) = (gpus.to_vec(), split_evenly(model.rows(), gpus.len()));
    let shards = Shards::new(model.clone(), ranges, move |index, table| -> Result<_, GpuError> {
        let options = Options { ordinal: Some(own[index]), ..Options::default() };
        Ok(Box::new(CudaEngine::new(table, options, Paths::default())?) as Box<dyn Engine>)
    });
    Box::new(shards.expect("engines"))
}

fn in_shards(model: &Arc<ModelStore>, gpus: &[u32]) {
    let began = Instant::now();
    let mut engine = engine(model, gpus);
    let loaded = began.elapsed().as_secs_f64();
    let mut numbers = Numbers(0x1234_5678_9abc_def1);
    let mut times = Vec::new();
    for query in word_queries(model, SINGLE, &mut numbers) {
        let started = Instant::now();
        let found = engine.search_overlapped(&[&query], &mut || ());
        times.push(started.elapsed());
        assert!(found.expect("an answer")[0].is_some(), "it is certified");
    }
    times.sort_unstable();
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    let asked: Vec<Vec<Query>> =
        (0..20).map(|_| word_queries(model, BATCH, &mut numbers)).collect();
    let started = Instant::now();
    let overlapped =
        run(&mut *engine, &asked, started + TIMED / 3) as f64 / started.elapsed().as_secs_f64();
    let batch = one_batch(&mut *engine, || word_queries(model, BATCH, &mut numbers));
    let of_vectors = one_batch(&mut *engine, || vector_queries(model, BATCH, &mut numbers));
    println!(
        "{} shards on {gpus:?}: loaded in {loaded:.2} s; one query p50 {:.4} ms, p99 {:.4} ms on the host; batch of {BATCH}: {:.3} ms, \
         {:.0} queries/s, overlapped {overlapped:.0}; of vectors {:.3} ms",
        gpus.len(),
        milliseconds(times[SINGLE / 2]),
        milliseconds(times[SINGLE * 99 / 100]),
        milliseconds(batch),
        BATCH as f64 / batch.as_secs_f64(),
        milliseconds(of_vectors),
    );
}

/// A query of any kind: words, vectors, formulas, filters.
fn any_query(model: &ModelStore, numbers: &mut Numbers) -> Query {
    let table = model.table();
    let [a, b, c] = std::array::from_fn(|_| numbers.row(model));
    let scoring = match numbers.below(8) {
        0 => Scoring::three_cos_mul(&table, &[a, b], &[c]).ok(),
        1 => Scoring::pair_direction(&table, a, b, c).ok(),
        2 => {
            let sum = table
                .row(a)
                .iter()
                .zip(table.row(b))
                .map(|(a, b)| a + 0.7 * b)
                .collect::<Vec<f32>>();
            Scoring::vector(&table, sum.into()).ok()
        }
        _ => None,
    };
    let word = || Scoring::vector(&table, QueryVector::Row(a)).expect("a word");
    let mut filter = Filter::excluding([a, b, c][..numbers.below(4)].to_vec());
    let mut now_and_then = || numbers.below(6) == 0;
    let (limited, at_least, at_most) = (now_and_then(), now_and_then(), now_and_then());
    filter.rows = filter.rows.limited(limited.then(|| 1 + numbers.row(model).0));
    filter.min_score = at_least.then_some(0.1);
    filter.max_score = at_most.then_some(0.2);
    let k = [1, 10, 10, 100, 1000][numbers.below(5)];
    Query::by(scoring.unwrap_or_else(word), k, filter)
}

/// Compares random queries of all kinds, and ranks, with the answers of `first`, and those of some
/// with the CPU's.
fn check(model: &Arc<ModelStore>, first: &[u32], gpus: &[u32], count: usize) {
    let bits = |hits: &[Hit]| -> Vec<(u32, u64)> {
        hits.iter().map(|hit| (hit.row.0, hit.score.to_bits())).collect()
    };
    let rank = |one: &RankedRow| (one.row, one.score.map(f64::to_bits), one.rank);
    let mut one = engine(model, first);
    let mut all = engine(model, gpus);
    let mut cpu = FullScanEngine::new(model.clone(), 0).expect("threads");
    let mut numbers = Numbers(0x9e37_79b9_7f4a_7c15 + gpus.len() as u64);
    let (mut different, mut asked_cpu) = (0, 0);
    for start in (0..count).step_by(250) {
        let asked: Vec<Query> =
            (start..count.min(start + 250)).map(|_| any_query(model, &mut numbers)).collect();
        let batch: Vec<&Query> = asked.iter().collect();
        let expected = one.search(&batch).expect("answers");
        let found = all.search(&batch).expect("answers");
        different += found.iter().zip(&expected).filter(|(a, b)| bits(a) != bits(b)).count();
        let some = &asked[..4.min(asked.len())];
        let by_cpu = cpu.search(&some.iter().collect::<Vec<_>>()).expect("answers");
        different += found.iter().zip(&by_cpu).filter(|(a, b)| bits(a) != bits(b)).count();
        asked_cpu += by_cpu.len();
        let ranked: Vec<FullPassQuery> = (0..25)
            .map(|_| {
                let scoring = Scoring::vector(&model.table(), QueryVector::Row(numbers.row(model)));
                let ranked = (0..5).map(|_| numbers.row(model)).collect();
                FullPassQuery::new(scoring.expect("a word"), 0, Filter::default(), ranked)
            })
            .collect();
        let ranked: Vec<&FullPassQuery> = ranked.iter().collect();
        let expected = one.full_pass(&ranked).expect("ranks");
        for (found, expected) in all.full_pass(&ranked).expect("ranks").iter().zip(&expected) {
            let same = found.ranks.iter().map(rank).eq(expected.ranks.iter().map(rank));
            different += usize::from(!same);
        }
    }
    println!(
        "GPUs {gpus:?}: {count} queries and {} for ranks compared with GPU {first:?}, {asked_cpu} with the CPU: {different} differ",
        count.div_ceil(250) * 25
    );
    assert_eq!(different, 0);
}
