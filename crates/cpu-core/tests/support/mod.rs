//! Tables and queries for tests of engines, and the checks that engines agree.

use std::sync::Arc;

use contract::full_pass::Groups;
use contract::{
    Filter, Hit, Metric, Query, QueryVector, Row, RowBitmap, RowSet, Scoring, SearchEngine,
};
use cpu_core::{CpuEngine, InstructionSet, Options, Paths, ReferenceEngine};
use model_store::ModelStore;
use model_store::synth::split_mix;
use proptest::prelude::*;

/// A model of these rows.
pub(crate) fn model(dim: usize, rows: &[Vec<f32>]) -> ModelStore {
    let words: Vec<String> = (0..rows.len()).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(rows.iter().map(Vec::as_slice));
    ModelStore::from_rows("random", dim, rows).unwrap()
}

/// Components and biases are made of integers, which shrink towards 0: to choose each of them among
/// strategies took most of the time of these tests.
fn small_integer(seed: u32) -> f32 {
    [0.0, 1.0, -1.0, 2.0, -2.0][(seed >> 8) as usize % 5]
}

/// From −1 to 1.
fn fraction(seed: u32) -> f32 {
    (seed >> 8) as f32 / (1u32 << 23) as f32 - 1.0
}

fn component(seed: u32) -> f32 {
    match seed % 20 {
        0..12 => small_integer(seed),
        12..18 => fraction(seed),
        18 => f32::from_bits(1),
        _ => 3.0e38,
    }
}

fn bias(seed: u32) -> f32 {
    match seed % 11 {
        0..6 => small_integer(seed),
        6..9 => 1000.0 * fraction(seed),
        9 => -3.0e38,
        _ => f32::from_bits(1),
    }
}

/// This many numbers, each made by a function.
fn numbers(count: usize, of: fn(u32) -> f32) -> impl Strategy<Value = Vec<f32>> {
    let all = prop::collection::vec(any::<u32>(), count);
    all.prop_map(move |seeds| seeds.into_iter().map(of).collect())
}

/// The components of a query, from −3 to 3: as many as a table has, or more.
pub(crate) fn own_vectors() -> impl Strategy<Value = Vec<f32>> {
    numbers(70, |seed| 3.0 * fraction(seed))
}

/// A table from few distinct components, so that ties, equal rows and zero rows are common, with a
/// few components at the ends of float32's range.
pub(crate) fn tables(most_rows: usize) -> impl Strategy<Value = Arc<ModelStore>> {
    (1usize..70, 1..most_rows).prop_flat_map(|(dim, rows)| {
        // Every ninth row is zero.
        let are_zero = prop::collection::vec(0u8..9, rows);
        (numbers(dim * rows, component), are_zero).prop_map(move |(components, are_zero)| {
            let row = |(row, is_zero): (&[f32], u8)| match is_zero {
                8 => vec![0.0; dim],
                _ => row.to_vec(),
            };
            let rows = components.chunks(dim).zip(are_zero).map(row);
            Arc::new(model(dim, &rows.collect::<Vec<_>>()))
        })
    })
}

/// Tables under both metrics. Under dot there are biases like components, or none.
pub(crate) fn tables_of_both_metrics(most_rows: usize) -> impl Strategy<Value = Arc<ModelStore>> {
    let biases = prop::option::of(numbers(most_rows, bias));
    (tables(most_rows), prop::option::weighted(0.6, biases)).prop_map(|(model, under_dot)| {
        match under_dot {
            None => model,
            Some(biases) => {
                let biases = biases.as_ref().map(|biases| &biases[..model.rows()]);
                Arc::new(of_table_under_dot(&model, biases))
            }
        }
    })
}

/// The same rows under dot.
fn of_table_under_dot(model: &ModelStore, biases: Option<&[f32]>) -> ModelStore {
    let rows: Vec<Vec<f32>> =
        model.table().components().chunks(model.dim()).map(<[f32]>::to_vec).collect();
    model_under_dot(model.dim(), &rows, biases)
}

/// A model of these rows under dot.
pub(crate) fn model_under_dot(dim: usize, rows: &[Vec<f32>], biases: Option<&[f32]>) -> ModelStore {
    let words: Vec<String> = (0..rows.len()).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(String::as_str).zip(rows.iter().map(Vec::as_slice));
    ModelStore::from_rows_under_dot("random", dim, rows, biases).unwrap()
}

/// Groups of rows: the first has more than all others together, and some rows are in none.
pub(crate) fn groups(rows: usize, count: u64) -> Arc<dyn Groups> {
    let group = |row: u64| match split_mix(row) % 10 {
        0 => None,
        1..7 => Some(0),
        _ => Some(split_mix(row + 1) % count),
    };
    Arc::new((0..rows as u64).map(group).collect::<Vec<_>>())
}

/// Seeds of a query: (ranking, k, filter).
pub(crate) type Seed = (RankingSeed, usize, FilterSeed);

/// What a query ranks by, for any table.
#[derive(Debug, Clone)]
pub(crate) enum RankingSeed {
    Row(u32),
    /// As many components as a table has, or more.
    Vector(Vec<f32>),
    /// Positive and negative words.
    Product(Vec<u32>, Vec<u32>),
    Direction([u32; 3]),
}

pub(crate) fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    let words = |count| prop::collection::vec(any::<u32>(), count);
    let ranking = prop_oneof![
        4 => any::<u32>().prop_map(RankingSeed::Row),
        4 => own_vectors().prop_map(RankingSeed::Vector),
        1 => (words(1..4), words(0..3)).prop_map(|(p, n)| RankingSeed::Product(p, n)),
        1 => any::<[u32; 3]>().prop_map(RankingSeed::Direction),
    ];
    let seed = (ranking, prop_oneof![Just(1usize), 1usize..120], filters());
    prop::collection::vec(seed, 1..20)
}

pub(crate) fn queries(model: &ModelStore, seeds: Vec<Seed>) -> Vec<Query> {
    let table = model.table();
    let row = |row: &u32| Row(row % model.rows() as u32);
    let rows = |words: Vec<u32>| words.iter().map(row).collect::<Vec<_>>();
    let make = |(ranking, k, filter): Seed| {
        let scoring = match ranking {
            RankingSeed::Row(own) => Scoring::vector(&table, QueryVector::Row(row(&own))).ok(),
            RankingSeed::Vector(components) => {
                let components = components[..model.dim()].to_vec();
                Scoring::vector(&table, components.into()).ok()
            }
            RankingSeed::Product(positive, negative) => {
                Scoring::three_cos_mul(&table, &rows(positive), &rows(negative)).ok()
            }
            RankingSeed::Direction(words) => {
                let [b, c, a] = words.map(|word| row(&word));
                Scoring::pair_direction(&table, b, c, a).ok()
            }
        };
        let query = Query::by(scoring?, k, filter.of(model.rows()));
        if table.metric() == Metric::Cosine {
            return Some(query);
        }
        // Limits near a score, and at one.
        let Filter { rows, min_score, max_score } = query.filter.clone();
        let near = |limit: f64| {
            let row = Row((limit.to_bits() % model.rows() as u64) as u32);
            let score = query.score(&table, row).expect("every row has a score");
            if limit.to_bits().is_multiple_of(3) { score } else { score * (1.0 + limit) }
        };
        let (min_score, max_score) = (min_score.map(near), max_score.map(near));
        let filter = Filter { rows, min_score, max_score };
        Some(Query::by(query.scoring(), k, filter))
    };
    seeds.into_iter().filter_map(make).collect()
}

/// A filter for any table: a bitmap is made for the table's rows.
#[derive(Debug, Clone)]
pub(crate) struct FilterSeed {
    filter: Filter,
    /// The kind of the bitmap's set and its seed.
    members: Option<(u64, u64)>,
}

impl FilterSeed {
    /// The filter for a table of this many rows.
    pub(crate) fn of(self, rows: usize) -> Filter {
        let Self { mut filter, members } = self;
        if let Some((kind, seed)) = members {
            filter.rows = filter.rows.within(bitmap(kind, seed, rows));
        }
        filter
    }
}

/// A set of a table's rows: half of them, a few, alternate ones, alternate strips, one, all but
/// one, or none.
pub(crate) fn bitmap(kind: u64, seed: u64, rows: usize) -> Arc<RowBitmap> {
    let chosen = (seed % rows as u64) as usize;
    let is_member = |row: usize| match kind % 7 {
        0 => split_mix(seed ^ row as u64).is_multiple_of(2),
        1 => split_mix(seed ^ row as u64).is_multiple_of(20),
        2 => row.is_multiple_of(2),
        3 => (row / 32).is_multiple_of(2),
        4 => row == chosen,
        5 => row != chosen,
        _ => false,
    };
    let members = (0..rows).filter(|&row| is_member(row)).map(|row| Row(row as u32));
    Arc::new(RowBitmap::of_rows(members, rows, "v"))
}

/// Filters with every field: a new one does not compile here until it is generated.
pub(crate) fn filters() -> impl Strategy<Value = FilterSeed> {
    let score = || {
        // Scores of equal and of opposite rows, too.
        prop::option::of(prop_oneof![4 => -1.0f64..1.0, 1 => Just(1.0), 1 => Just(0.0)])
    };
    let excluded = prop::collection::vec((0u32..100).prop_map(Row), 0..8);
    let members = prop::option::of((any::<u64>(), any::<u64>()));
    (excluded, prop::option::of(0u32..100), members, score(), score()).prop_map(
        |(excluded, limit, members, min_score, max_score)| {
            let rows = RowSet::all().limited(limit).less(excluded);
            FilterSeed { filter: Filter { rows, min_score, max_score }, members }
        },
    )
}

/// A word query for the `k` best other rows.
pub(crate) fn ask(model: &ModelStore, row: usize, k: usize) -> Query {
    let row = Row(row as u32);
    Query::new(&model.table(), QueryVector::Row(row), k, Filter::excluding(vec![row])).unwrap()
}

/// Rows and the bits of their scores.
pub(crate) fn bits(answers: &[Vec<Hit>]) -> Vec<Vec<(u32, u64)>> {
    answers.iter().map(|hits| hits.iter().map(|h| (h.row.0, h.score.to_bits())).collect()).collect()
}

/// What the plain reference answers.
pub(crate) fn expected(model: &Arc<ModelStore>, batch: &[&Query]) -> Vec<Vec<(u32, u64)>> {
    bits(&ReferenceEngine::new(model.clone()).search(batch).unwrap())
}

/// The certified engine with its tables, forced on these paths.
pub(crate) fn certified(
    model: &Arc<ModelStore>,
    threads: usize,
    instructions: InstructionSet,
    paths: Paths,
) -> CpuEngine {
    let instructions = Some(instructions);
    let by_rows = paths.gather != Some(false);
    let options = Options { threads, instructions, paths, by_rows, ..Options::default() };
    let mut engine = CpuEngine::new(model.clone(), options).unwrap();
    engine.wait_for_tables();
    assert!(engine.table().is_some());
    engine
}

/// 5,000 × 33: several tasks of a scan, the last of which ends within a block. Rows repeat every
/// 617, so each score is a tie.
pub(crate) fn repeating_model() -> ModelStore {
    let row = |row: usize| {
        (0..33).map(|i| ((row % 617 + 1) * (i + 3) * 7919 % 1009) as f32 - 504.0).collect()
    };
    model(33, &(0..5000).map(row).collect::<Vec<Vec<f32>>>())
}
