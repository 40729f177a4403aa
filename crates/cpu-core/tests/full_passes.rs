//! Full passes: tests the plain reference against numbers computed by hand, and the engines with
//! every instruction set against the reference, to the bit.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{self, FilterSeed, filters, model, repeating_model, tables};
use contract::full_pass::first_of_each;
use contract::{
    Filter, FullPassAnswer, FullPassEngine, FullPassPart, FullPassQuery, Hit, Query, QueryVector,
    RankedRow, Row, Scoring, SearchEngine,
};
use cpu_core::{CpuEngine, FullScanEngine, InstructionSet, Options, Paths, ReferenceEngine};
use model_store::ModelStore;
use model_store::synth::split_mix;
use proptest::prelude::*;

/// Seeds of a query: (scoring, k, filter, ranked rows, number of groups).
type Seed = (ScoringSeed, usize, FilterSeed, Vec<u32>, Option<u64>);

#[derive(Debug, Clone)]
enum ScoringSeed {
    Cosine(Result<u32, Vec<f32>>),
    ThreeCosMul(Vec<u32>, Vec<u32>),
    PairDirection([u32; 3]),
}

fn seeds() -> impl Strategy<Value = Vec<Seed>> {
    // Few rows, so that the queries of a batch share some.
    let words = |most| prop::collection::vec(0u32..12, 0..most);
    let scoring = prop_oneof![
        any::<u32>().prop_map(|row| ScoringSeed::Cosine(Ok(row))),
        support::own_vectors().prop_map(|own| ScoringSeed::Cosine(Err(own))),
        (words(4), words(4)).prop_map(|(plus, minus)| ScoringSeed::ThreeCosMul(plus, minus)),
        prop::array::uniform3(0u32..12).prop_map(ScoringSeed::PairDirection),
    ];
    let seed = (
        scoring,
        prop_oneof![Just(0usize), Just(1), 1usize..120],
        filters(),
        prop::collection::vec(0u32..100, 0..6),
        prop::option::of(prop_oneof![1u64..5, 1u64..200]),
    );
    prop::collection::vec(seed, 0..20)
}

fn queries(model: &ModelStore, seeds: Vec<Seed>) -> Vec<FullPassQuery> {
    let table = model.table();
    let row = |seed: u32| Row(seed % model.rows() as u32);
    let rows = |seeds: Vec<u32>| seeds.into_iter().map(row).collect::<Vec<Row>>();
    let make = |(scoring, k, filter, ranked, groups): Seed| {
        let scoring = match scoring {
            ScoringSeed::Cosine(Ok(seed)) => {
                Scoring::vector(&table, QueryVector::Row(row(seed))).ok()
            }
            ScoringSeed::Cosine(Err(own)) => {
                Scoring::vector(&table, own[..model.dim()].to_vec().into()).ok()
            }
            ScoringSeed::ThreeCosMul(positive, negative) => {
                Scoring::three_cos_mul(&table, &rows(positive), &rows(negative)).ok()
            }
            ScoringSeed::PairDirection([b, c, a]) => {
                Scoring::pair_direction(&table, row(b), row(c), row(a)).ok()
            }
        };
        let query = FullPassQuery::new(scoring?, k, filter.of(model.rows()), rows(ranked));
        let groups = groups.map(|count| support::groups(model.rows(), count));
        Some(FullPassQuery { groups, ..query })
    };
    seeds.into_iter().filter_map(make).collect()
}

/// Rows, the bits of scores, and ranks.
type Bits = (Vec<(u32, u64)>, Vec<(u32, Option<u64>, Option<u32>)>);

fn bits(answers: &[FullPassAnswer]) -> Vec<Bits> {
    let ranked = |ranked: &RankedRow| (ranked.row.0, ranked.score.map(f64::to_bits), ranked.rank);
    let hit = |hit: &Hit| (hit.row.0, hit.score.to_bits());
    let answer = |answer: &FullPassAnswer| {
        (answer.hits.iter().map(hit).collect(), answer.ranks.iter().map(ranked).collect())
    };
    answers.iter().map(answer).collect()
}

/// The answers of a pass in slices, and the number of slices. Each slice must end when it has
/// called `go_on` this many times; the last number holds for all following slices.
fn in_slices(
    engine: &mut dyn FullPassEngine,
    queries: &[FullPassQuery],
    asks: &[usize],
) -> (Vec<FullPassAnswer>, usize) {
    let mut parts: Vec<FullPassPart> = queries.iter().cloned().map(FullPassPart::new).collect();
    let (mut next, mut slices) = (Some(0), 0);
    while let Some(from) = next {
        let most = asks.get(slices).or(asks.last()).copied().unwrap_or(0);
        let asked = AtomicUsize::new(0);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < most;
        next = engine.full_pass_part(&mut parts, from, &go_on).unwrap();
        assert!(next.is_none_or(|next| next >= from), "it goes back");
        slices += 1;
        // Each slice advances by a row or a ranked row, or makes one part ready.
        let ranked = |query: &FullPassQuery| query.ranked.len() + 1;
        assert!(slices <= 6000 + queries.iter().map(ranked).sum::<usize>(), "it gets nowhere");
    }
    (parts.into_iter().map(FullPassPart::into_answer).collect(), slices)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn slices_change_nothing(
        model in tables(200), seeds in seeds(), threads in 1usize..4,
        asks in prop::collection::vec(0usize..4, 0..6),
    ) {
        let queries = queries(&model, seeds);
        let batch: Vec<&FullPassQuery> = queries.iter().collect();
        let mut reference = ReferenceEngine::new(model.clone());
        let expected = bits(&reference.full_pass(&batch).unwrap());
        prop_assert_eq!(&bits(&in_slices(&mut reference, &queries, &asks).0), &expected);
        for instructions in InstructionSet::available() {
            let mut engine =
                FullScanEngine::with_instructions(model.clone(), threads, instructions).unwrap();
            let found = bits(&in_slices(&mut engine, &queries, &asks).0);
            prop_assert_eq!(&found, &expected, "full scan with {}", instructions);
        }
        let mut engine = CpuEngine::new(model, Options { threads, ..Options::default() }).unwrap();
        prop_assert_eq!(bits(&in_slices(&mut engine, &queries, &asks).0), expected);
        prop_assert_eq!(engine.counted().full_pass_queries, batch.len() as u64);
    }

    #[test]
    fn what_a_search_leaves_a_full_pass_answers(
        model in tables(120), seeds in support::seeds(), with_table in any::<bool>(), no_room in any::<bool>(),
    ) {
        let searches = support::queries(&model, seeds);
        let batch: Vec<&Query> = searches.iter().collect();
        let expected = support::expected(&model, &batch);
        let paths = Paths { room: no_room.then_some(0), always_certify: no_room, ..Paths::default() };
        let options = Options { threads: 2, paths, ..Options::default() };
        let mut engine = CpuEngine::new(model, options).unwrap();
        if with_table {
            engine.wait_for_tables();
        }
        prop_assert_eq!(support::bits(&engine.search(&batch).unwrap()), &expected[..]);
        let found = engine.search_overlapped(&batch, &mut || ()).unwrap();
        prop_assert_eq!(found.len(), searches.len());
        let mut answers = Vec::new();
        for (search, hits) in searches.iter().zip(found) {
            prop_assert!(engine.search_cost(search) >= 1);
            let query = FullPassQuery::of_search(search);
            answers.push(match hits {
                Some(hits) => hits,
                None => in_slices(&mut engine, &[query], &[1]).0.remove(0).hits,
            });
        }
        prop_assert_eq!(support::bits(&answers), expected);
    }

    #[test]
    fn every_instruction_set_gives_the_references_bits(
        model in tables(90), seeds in seeds(), threads in 1usize..4,
    ) {
        let queries = queries(&model, seeds);
        let batch: Vec<&FullPassQuery> = queries.iter().collect();
        let expected = bits(&ReferenceEngine::new(model.clone()).full_pass(&batch).unwrap());
        for instructions in InstructionSet::available() {
            let mut engine =
                FullScanEngine::with_instructions(model.clone(), threads, instructions).unwrap();
            let found = bits(&engine.full_pass(&batch).unwrap());
            prop_assert_eq!(&found, &expected, "full scan with {}", instructions);
        }
        let options = Options { threads, ..Options::default() };
        let mut engine = CpuEngine::new(model, options).unwrap();
        prop_assert_eq!(bits(&engine.full_pass(&batch).unwrap()), expected);
        prop_assert_eq!(engine.counted().full_pass_queries, batch.len() as u64);
    }

    #[test]
    fn ranks_are_places_in_the_whole_ranking_and_no_answer_depends_on_its_batch(
        model in tables(90), seeds in seeds(),
    ) {
        let queries = queries(&model, seeds);
        let batch: Vec<&FullPassQuery> = queries.iter().collect();
        let mut engine = FullScanEngine::new(model.clone(), 2).unwrap();
        let together = engine.full_pass(&batch).unwrap();
        for (query, answer) in queries.iter().zip(together) {
            let all = FullPassQuery::new(
                query.scoring.clone(), model.rows(), query.filter.clone(), Vec::new(),
            );
            let all = engine.full_pass(&[&all]).unwrap().remove(0).hits;
            prop_assert!(all.is_sorted());
            let mut best = all.clone();
            if let Some(groups) = &query.groups {
                first_of_each(&**groups, &mut best);
            }
            best.truncate(query.k);
            prop_assert_eq!(answer.hits, best);
            for (&row, ranked) in query.ranked.iter().zip(answer.ranks) {
                let index = all.iter().position(|hit| hit.row == row);
                let rank = index.map(|index| index as u32 + 1);
                let score = query.score(&model.table(), row);
                prop_assert_eq!(ranked, RankedRow { row, score, rank });
            }
        }
    }

    #[test]
    fn a_full_pass_without_ranks_is_a_search(model in tables(90), seeds in support::seeds()) {
        let searches = support::queries(&model, seeds);
        let batch: Vec<&Query> = searches.iter().collect();
        let expected = support::expected(&model, &batch);
        let queries: Vec<FullPassQuery> = searches
            .iter()
            .map(|search| {
                let scoring = search.scoring();
                FullPassQuery::new(scoring, search.k, search.filter.clone(), Vec::new())
            })
            .collect();
        let mut engine = FullScanEngine::new(model, 2).unwrap();
        let answers = engine.full_pass(&queries.iter().collect::<Vec<_>>()).unwrap();
        let hits: Vec<Vec<Hit>> = answers.into_iter().map(|answer| answer.hits).collect();
        prop_assert_eq!(support::bits(&hits), expected);
    }
}

#[test]
fn the_reference_gives_what_the_formulas_give_by_hand() {
    // a = (1, 0), b = (0, 1), c = (−1, 0), d = b again, a zero row, and e = (3, 4).
    let rows = [[1.0f32, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, 2.0], [0.0, 0.0], [3.0, 4.0]];
    let model = Arc::new(model(2, &rows.map(Vec::from)));
    let (a, b, c, d, zero, e) = (Row(0), Row(1), Row(2), Row(3), Row(4), Row(5));
    let ask = |scoring, k, filter, ranked: &[Row]| {
        let query = FullPassQuery::new(scoring, k, filter, ranked.to_vec());
        ReferenceEngine::new(model.clone()).full_pass(&[&query]).unwrap().remove(0)
    };
    let table = model.table();
    let mul = || Scoring::three_cos_mul(&table, &[b], &[a]).unwrap();
    let answer = ask(mul(), 9, Filter::default(), &[d, zero, a]);
    let scores =
        [(c, 0.5 / 0.001), (b, 1.0 / 0.501), (d, 1.0 / 0.501), (e, 0.9 / 0.801), (a, 0.5 / 1.001)];
    assert_eq!(answer.hits, scores.map(|(row, score)| Hit { row, score }));
    let rank = |row, score, rank| RankedRow { row, score, rank };
    let ranks = [
        rank(d, Some(1.0 / 0.501), Some(3)),
        rank(zero, None, None),
        rank(a, Some(0.5 / 1.001), Some(5)),
    ];
    assert_eq!(answer.ranks, ranks);

    let mut filter = Filter::excluding(vec![c, a]);
    filter.min_score = Some(1.5);
    let answer = ask(mul(), 0, filter, &[d, a, e]);
    assert_eq!(answer.hits, []);
    let ranks = [
        rank(d, Some(1.0 / 0.501), Some(2)),
        rank(a, Some(0.5 / 1.001), None),
        rank(e, Some(0.9 / 0.801), None),
    ];
    assert_eq!(answer.ranks, ranks);

    // Both ends are inclusive; rows above the maximum are no hits, have no rank, and do not count
    // for other ranks.
    let mut filter = Filter::default();
    (filter.min_score, filter.max_score) = (Some(0.9 / 0.801), Some(1.0 / 0.501));
    let answer = ask(mul(), 9, filter, &[c, d, e]);
    let scores = [(b, 1.0 / 0.501), (d, 1.0 / 0.501), (e, 0.9 / 0.801)];
    assert_eq!(answer.hits, scores.map(|(row, score)| Hit { row, score }));
    let ranks = [
        rank(c, Some(0.5 / 0.001), None),
        rank(d, Some(1.0 / 0.501), Some(2)),
        rank(e, Some(0.9 / 0.801), Some(3)),
    ];
    assert_eq!(answer.ranks, ranks);

    // The step from a to b, taken from c, leads to no row; c itself is in no direction from c.
    let direction = Scoring::pair_direction(&table, b, c, a).unwrap();
    let answer = ask(direction, 9, Filter::default(), &[c]);
    let found: Vec<Row> = answer.hits.iter().map(|hit| hit.row).collect();
    assert_eq!(found, [b, d, e, a]);
    // (1 − 0) − (0 − −1) = 0 for b: the step from c to b is at right angles to the step from a to
    // b.
    assert_eq!(answer.hits[0].score.to_bits(), 0.0f64.to_bits());
    assert_eq!(answer.ranks, [rank(c, None, None)]);
}

#[test]
fn tables_larger_than_one_task_are_ranked_to_the_last_row() {
    let model = Arc::new(repeating_model());
    let table = model.table();
    let ranked: Vec<Row> = [0, 616, 617, 4999, 2500, 31].map(Row).into();
    let mut queries: Vec<FullPassQuery> = Vec::new();
    for k in [0, 1, 10, 6000] {
        for (first_rows, row) in [(None, 3), (Some(2501), 3), (Some(40), 9), (Some(0), 9)] {
            let mut filter = Filter::excluding(vec![Row(row), Row(616), Row(4998)]);
            filter.rows = filter.rows.limited(first_rows);
            let scorings = [
                Scoring::three_cos_mul(&table, &[Row(row), Row(17)], &[Row(90)]).unwrap(),
                Scoring::pair_direction(&table, Row(row), Row(17), Row(90)).unwrap(),
                Scoring::vector(&table, QueryVector::Row(Row(row))).unwrap(),
            ];
            queries
                .extend(scorings.map(|s| FullPassQuery::new(s, k, filter.clone(), ranked.clone())));
        }
    }
    let batch: Vec<&FullPassQuery> = queries.iter().collect();
    let expected = bits(&ReferenceEngine::new(model.clone()).full_pass(&batch).unwrap());
    for instructions in InstructionSet::available() {
        let mut engine = FullScanEngine::with_instructions(model.clone(), 3, instructions).unwrap();
        assert_eq!(bits(&engine.full_pass(&batch).unwrap()), expected, "{instructions}");
    }
}

#[test]
fn a_slice_ends_soon_after_it_is_told_to() {
    let model = Arc::new(repeating_model());
    let table = model.table();
    let ranked: Vec<Row> = (0..1000).map(|i| Row(i * 5)).collect();
    // 48 vectors that no queries share: a task is one block or a few.
    let queries: Vec<FullPassQuery> = (0..16)
        .map(|i| {
            let rows = [3 * i, 3 * i + 1, 3 * i + 2].map(Row);
            let scoring = Scoring::three_cos_mul(&table, &rows[..2], &rows[2..]).unwrap();
            FullPassQuery::new(scoring, 10, Filter::default(), ranked.clone())
        })
        .collect();
    let expected =
        ReferenceEngine::new(model.clone()).full_pass(&queries.iter().collect::<Vec<_>>()).unwrap();
    for threads in [1, 3] {
        let mut engine = FullScanEngine::new(model.clone(), threads).unwrap();
        let (whole, slices) = in_slices(&mut engine, &queries, &[usize::MAX]);
        assert_eq!((bits(&whole), slices), (bits(&expected), 1));
        let (cut, slices) = in_slices(&mut engine, &queries, &[0]);
        assert_eq!(bits(&cut), bits(&expected));
        assert!(slices > 20, "{slices} slices");
    }
}

/// 75 queries for the ranks of 1,000 words over one vector: a pass of a single vector, and yet one
/// of 1.5 billion comparisons, if each row is compared with each ranked one.
#[test]
fn a_thousand_ranks_cost_little_more_than_ten() {
    let component = |i: u64| (split_mix(i) >> 40) as f32 / (1 << 23) as f32 - 1.0;
    let row = |row: u64| (0..8).map(|i| component(8 * row + i)).collect();
    let model = Arc::new(model(8, &(0..20_000).map(row).collect::<Vec<Vec<f32>>>()));
    let ask = |ranks: u32| -> Vec<FullPassQuery> {
        let scoring = Scoring::vector(&model.table(), QueryVector::Row(Row(3))).unwrap();
        let ranked = (0..ranks).map(|i| Row(i * 20 + 1)).collect();
        vec![FullPassQuery::new(scoring, 0, Filter::default(), ranked); 75]
    };
    let mut engine = FullScanEngine::new(model.clone(), 1).unwrap();
    let mut time = |queries: &[FullPassQuery]| {
        let batch: Vec<&FullPassQuery> = queries.iter().collect();
        let once = |_| {
            let started = Instant::now();
            engine.full_pass(&batch).unwrap();
            started.elapsed()
        };
        (0..5).map(once).min().unwrap_or(Duration::ZERO)
    };
    let (few, many) = (ask(10), ask(1000));
    let (quick, slow) = (time(&few), time(&many));
    assert!(slow < 15 * quick, "{quick:?} for ten, {slow:?} for a thousand");
    let (little, much) = (few[0].row_work(), many[0].row_work());
    assert!(little < much && much < 4 * little, "{little}, {much}");
}

#[test]
fn full_passes_for_another_table_are_refused() {
    let small = Arc::new(model(2, &[vec![1.0, 0.0]]));
    let large = model(3, &[vec![1.0; 3], vec![1.0; 3]]);
    let cosine = |vector| Scoring::vector(&large.table(), vector).unwrap();
    let own = Scoring::vector(&small.table(), QueryVector::Row(Row(0))).unwrap();
    let queries = [
        (cosine(QueryVector::Row(Row(1))), vec![]),
        (cosine(vec![1.0; 3].into()), vec![]),
        (own, vec![Row(1)]),
    ];
    for (scoring, ranked) in queries {
        let query = FullPassQuery::new(scoring, 1, Filter::default(), ranked);
        assert!(FullScanEngine::new(small.clone(), 1).unwrap().full_pass(&[&query]).is_err());
        let mut engine = CpuEngine::new(small.clone(), Options::default()).unwrap();
        assert!(engine.full_pass(&[&query]).is_err());
        assert!(ReferenceEngine::new(small.clone()).full_pass(&[&query]).is_err());
    }
}

#[test]
fn an_empty_batch_has_an_empty_answer() {
    let model = Arc::new(model(1, &[vec![1.0]]));
    assert!(FullScanEngine::new(model.clone(), 1).unwrap().full_pass(&[]).unwrap().is_empty());
    assert!(ReferenceEngine::new(model).full_pass(&[]).unwrap().is_empty());
}
