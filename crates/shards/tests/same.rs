//! Shards give the answers of one engine with the whole table, to the bit: whatever the ranges and
//! the engines.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::classifier::{Classifier, Convolution, Layer};
use contract::{
    Device, Engine, EngineError, Expansion, FullPassEngine, FullPassPart, FullPassQuery, HasTable,
    HeadEngine, Hit, PartOfExpansion, Query, QueryVector, Row, RowSet, Scoring, SearchEngine,
    TermExpander, Token, TokenClassifier, TokenText, TokenVectors, VectorSource,
};
use cpu_core::{CpuEngine, Options, Paths, ReferenceEngine};
use model_store::ModelStore;
use proptest::prelude::*;
use shards::{Shards, split_evenly};

use crate::support::{
    Seed, bitmap, bits, groups, model, model_under_dot, queries, repeating_model, seeds,
    tables_of_both_metrics,
};

/// Every third range is the plain reference, the others the certified engine.
fn engine(index: usize, table: Arc<dyn HasTable>) -> Result<Box<dyn Engine>, cpu_core::StartError> {
    if index.is_multiple_of(3) {
        return Ok(Box::new(ReferenceEngine::new(table)));
    }
    let paths = Paths { always_certify: true, ..Paths::default() };
    let mut engine = CpuEngine::over(table, Options { threads: 1, paths, ..Options::default() })?;
    engine.wait_for_tables();
    Ok(Box::new(engine))
}

fn certified(_: usize, table: Arc<dyn HasTable>) -> Result<Box<dyn Engine>, cpu_core::StartError> {
    engine(1, table)
}

fn shards(of: &Arc<ModelStore>, ranges: Vec<Range<usize>>) -> Shards {
    Shards::new(of.clone(), ranges, engine).unwrap()
}

/// Answers, but for queries of which a shard declines every third.
struct Declining(ReferenceEngine, usize);

impl Device for Declining {
    fn description(&self) -> contract::EngineDescription {
        self.0.description()
    }
}

impl SearchEngine for Declining {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.0.search(batch)
    }

    fn search_overlapped(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        meanwhile();
        let found = self.0.search(batch)?.into_iter().enumerate();
        Ok(found.map(|(index, hits)| (index % 3 != self.1 % 3).then_some(hits)).collect())
    }
}

impl FullPassEngine for Declining {}

impl HeadEngine for Declining {}

#[test]
fn a_query_that_any_shard_declines_is_declined_and_the_others_are_answered() {
    let own = Arc::new(repeating_model());
    let table = own.table();
    let query = |row: u32| {
        Query::new(&table, QueryVector::Row(Row(row * 31)), 4, contract::Filter::default()).unwrap()
    };
    let queries: Vec<Query> = (0..30).map(query).collect();
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = ReferenceEngine::new(own.clone()).search(&batch).unwrap();
    let make = |index, table| -> Result<Box<dyn Engine>, String> {
        Ok(Box::new(Declining(ReferenceEngine::new(table), index)))
    };
    for count in [1, 2, 3] {
        let mut shards = Shards::new(own.clone(), split_evenly(own.rows(), count), make).unwrap();
        let mut asked = 0;
        let found = shards.search_overlapped(&batch, &mut || asked += 1).unwrap();
        assert_eq!(asked, 1);
        for (index, (found, expected)) in found.into_iter().zip(&expected).enumerate() {
            let declined = (0..count).any(|shard| index % 3 == shard);
            assert_eq!(found, (!declined).then(|| expected.clone()), "{index} of {count} shards");
        }
    }
}

/// Ranges of any length, some of them empty.
fn ranges(rows: usize, cuts: &[u32]) -> Vec<Range<usize>> {
    let mut cuts: Vec<usize> = cuts.iter().map(|cut| *cut as usize % (rows + 1)).collect();
    cuts.extend([0, rows]);
    cuts.sort_unstable();
    cuts.windows(2).map(|two| two[0]..two[1]).collect()
}

/// A full pass in slices: each must end when it has asked this many times.
fn in_slices(
    engine: &mut dyn Engine,
    queries: &[FullPassQuery],
    asks: usize,
) -> Vec<contract::FullPassAnswer> {
    let mut parts: Vec<FullPassPart> = queries.iter().cloned().map(FullPassPart::new).collect();
    let mut next = Some(0);
    while let Some(from) = next {
        let asked = AtomicUsize::new(0);
        let go_on = || asked.fetch_add(1, Ordering::Relaxed) < asks;
        next = engine.full_pass_part(&mut parts, from, &go_on).unwrap();
    }
    parts.into_iter().map(FullPassPart::into_answer).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn searches_and_full_passes(
        model in tables_of_both_metrics(150),
        seeds in seeds(),
        cuts in prop::collection::vec(any::<u32>(), 0..5),
        ranked in prop::collection::vec(any::<u32>(), 0..9),
        asks in 0usize..5,
    ) {
        let seeds: Vec<Seed> = seeds;
        let queries: Vec<Query> = queries(&model, seeds);
        let batch: Vec<&Query> = queries.iter().collect();
        let mut reference = ReferenceEngine::new(model.clone());
        let expected = reference.search(&batch).unwrap();
        let ranges = ranges(model.rows(), &cuts);
        let mut shards = shards(&model, ranges.clone());
        prop_assert_eq!(bits(&shards.search(&batch).unwrap()), bits(&expected), "{:?}", ranges);

        // What is not declined is right.
        let overlapped = shards.search_overlapped(&batch, &mut || ()).unwrap();
        for (found, expected) in overlapped.into_iter().zip(&expected) {
            if let Some(found) = found {
                prop_assert_eq!(bits(&[found]), bits(std::slice::from_ref(expected)));
            }
        }

        let ranked: Vec<Row> =
            ranked.iter().map(|row| Row(row % model.rows() as u32)).collect();
        let full: Vec<FullPassQuery> = queries
            .iter()
            .enumerate()
            .map(|(index, query)| {
                let (scoring, filter) = (query.scoring(), query.filter.clone());
                let pass = FullPassQuery::new(scoring, query.k % 40, filter, ranked.clone());
                let is_grouped = index % 2 == 1;
                let groups = is_grouped.then(|| groups(model.rows(), 1 + query.k as u64));
                FullPassQuery { groups, ..pass }
            })
            .collect();
        let expected = reference.full_pass(&full.iter().collect::<Vec<_>>()).unwrap();
        prop_assert_eq!(in_slices(&mut shards, &full, asks), expected);
    }
}

#[test]
fn ties_on_both_sides_of_every_cut() {
    let model = Arc::new(repeating_model());
    let table = model.table();
    let query = |row: u32| {
        Query::new(&table, QueryVector::Row(Row(row)), 30, contract::Filter::default()).unwrap()
    };
    let queries: Vec<Query> = (0..40).map(|n| query(n * 123)).collect();
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = ReferenceEngine::new(model.clone()).search(&batch).unwrap();
    // The n-th equal row of each, whose rank counts equal rows before it and none after it.
    let ranked = |row: u32| (0..8).map(|n| Row(row % 617 + n * 617)).collect();
    let full = (0..6).map(|n| {
        let scoring = Scoring::vector(&table, QueryVector::Row(Row(n * 700))).unwrap();
        FullPassQuery::new(scoring, 5, contract::Filter::default(), ranked(n * 700))
    });
    let full: Vec<FullPassQuery> = full.collect();
    let ranks =
        ReferenceEngine::new(model.clone()).full_pass(&full.iter().collect::<Vec<_>>()).unwrap();
    for count in [1, 2, 3, 4, 7] {
        let mut shards =
            Shards::new(model.clone(), split_evenly(model.rows(), count), certified).unwrap();
        assert_eq!(bits(&shards.search(&batch).unwrap()), bits(&expected), "{count}");
        assert_eq!(in_slices(&mut shards, &full, 1), ranks, "{count}");
        let counted = shards.counters();
        let certified = counted.iter().find(|(name, _)| *name == "certified").unwrap().1;
        assert!(certified + 40 >= (count * 40) as u64, "every shard is asked: {counted:?}");
    }
}

/// Most sets leave some shards without a row, and their borders are not those of words of bits.
#[test]
fn sets_of_rows_in_one_batch() {
    let model = Arc::new(repeating_model());
    let table = model.table();
    let query = |n: u64| {
        let own = RowSet::of(bitmap(n, n * 7919, model.rows()));
        let limit = n.is_multiple_of(5).then_some(n as u32 * 7);
        let rows = own.limited(limit).less(vec![Row(n as u32 * 31 % 5000)]);
        let filter = contract::Filter {
            max_score: (n % 4 == 1).then_some(0.5),
            ..contract::Filter::of(rows)
        };
        let vector = QueryVector::Row(Row(n as u32 * 31 % 5000));
        Query::new(&table, vector, 1 + n as usize % 12, filter).unwrap()
    };
    let queries: Vec<Query> = (0..1200).map(query).collect();
    let batch: Vec<&Query> = queries.iter().collect();
    let mut reference = ReferenceEngine::new(model.clone());
    let expected = bits(&reference.search(&batch).unwrap());
    let ranked: Vec<Row> = [0, 617, 1234, 2467, 4999].map(Row).into();
    let full: Vec<FullPassQuery> = queries[..40]
        .iter()
        .map(|query| {
            FullPassQuery::new(query.scoring(), query.k, query.filter.clone(), ranked.clone())
        })
        .collect();
    let ranks = reference.full_pass(&full.iter().collect::<Vec<_>>()).unwrap();
    for count in [1, 3, 7] {
        let ranges = split_evenly(model.rows(), count);
        for make in [engine, certified] {
            let mut shards = Shards::new(model.clone(), ranges.clone(), make).unwrap();
            assert!(bits(&shards.search(&batch).unwrap()) == expected, "{count}");
            assert_eq!(in_slices(&mut shards, &full, 2), ranks, "{count}");
        }
    }
}

#[derive(Debug)]
struct Expander(Arc<dyn HasTable>);

impl TermExpander for Expander {
    fn terms(&self) -> &Arc<dyn HasTable> {
        &self.0
    }

    fn projection(&self) -> Option<&[f32]> {
        None
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn expansions(
        own in tables_of_both_metrics(80),
        texts in prop::collection::vec(
            (prop::collection::vec(any::<u32>(), 0..9), prop_oneof![Just(1usize), 2usize..60, Just(usize::MAX)]),
            1..6,
        ),
        (bias, terms) in (prop::option::of(-3.0f32..1.0), 1usize..80),
        (least, own_terms) in (prop_oneof![Just(0.0), 0.0f64..4.0], any::<bool>()),
        cuts in prop::collection::vec(any::<u32>(), 0..4),
        in_pieces in any::<bool>(),
        members in prop::collection::vec(prop::option::of((any::<u64>(), any::<u64>())), 6),
    ) {
        let dim = own.dim();
        let rows: Vec<Vec<f32>> = own.table().components().chunks(dim).map(<[f32]>::to_vec).collect();
        let biases = bias.map(|bias| vec![bias; rows.len()]);
        let own = if own_terms { Arc::new(model_under_dot(dim, &rows, biases.as_deref())) } else { own };
        let some = &rows[..terms.min(rows.len())];
        let biases = bias.map(|bias| vec![bias; some.len()]);
        let terms: Arc<dyn HasTable> = match own_terms {
            true => own.clone(),
            false => Arc::new(model_under_dot(dim, some, biases.as_deref())),
        };
        let expander: Arc<dyn TermExpander> = Arc::new(Expander(terms));
        let text = |(tokens, top): (Vec<u32>, usize)| {
            let tokens = tokens.into_iter().map(|row| Row(row % own.rows() as u32)).collect();
            let tokens = TokenVectors::Rows(tokens);
            Expansion::new(expander.clone(), &own.table(), tokens, top, least).unwrap()
        };
        let count = expander.terms().table().rows();
        let within = |(text, members): (Expansion, Option<(u64, u64)>)| match members {
            Some((kind, seed)) => text.within(RowSet::of(bitmap(kind, seed, count))),
            None => text,
        };
        let texts: Vec<Expansion> =
            texts.into_iter().map(text).zip(members).map(within).collect();
        let expected: Vec<_> = texts.iter().map(|text| text.terms(&own.table())).collect();
        let mut shards = shards(&own, ranges(own.rows(), &cuts));
        let mut parts: Vec<PartOfExpansion> = texts.into_iter().map(PartOfExpansion::new).collect();
        while !parts.iter().all(PartOfExpansion::is_complete) {
            shards.expand_part(&mut parts, &|| !in_pieces).unwrap();
        }
        let found: Vec<_> = parts.into_iter().map(PartOfExpansion::into_terms).collect();
        prop_assert_eq!(found, expected);
    }
}

/// A classifier over 300 rows, every seventh of which has a vector of its own, and ten more tokens.
#[derive(Debug)]
struct Small {
    classifier: Classifier,
    own: Vec<f32>,
}

impl TokenClassifier for Small {
    fn classifier(&self) -> &Classifier {
        &self.classifier
    }

    fn tokens(&self) -> usize {
        310
    }

    fn longest_text(&self) -> usize {
        30
    }

    fn source(&self, token: Token) -> VectorSource<'_> {
        match token.0 < 300 && !token.0.is_multiple_of(7) {
            true => VectorSource::Row { row: Row(token.0), scale: 0.3 },
            false => VectorSource::Own(&self.own),
        }
    }
}

fn small(random: &mut fastrand::Rng, dim: usize) -> Arc<dyn TokenClassifier> {
    let mut values =
        |count: usize| -> Vec<f32> { (0..count).map(|_| random.f32() - 0.5).collect() };
    let convolution =
        Convolution { width: 3, padding: 1, weights: values(4 * 3 * dim), bias: values(4) };
    let layer = Layer { weights: values(4 * 2), bias: values(2) };
    let classifier = Classifier::new(dim, vec![convolution], vec![layer]).unwrap();
    Arc::new(Small { classifier, own: values(dim) })
}

#[test]
fn class_scores() {
    let mut random = fastrand::Rng::with_seed(7);
    let rows: Vec<Vec<f32>> =
        (0..300).map(|_| (0..20).map(|_| random.f32() - 0.5).collect()).collect();
    let own = Arc::new(model(20, &rows));
    let heads = [small(&mut random, 20), small(&mut random, 20)];
    let texts: Vec<TokenText> = (0..200)
        .map(|text| {
            let tokens = (0..random.usize(0..30)).map(|_| Token(random.u32(0..310))).collect();
            TokenText::new(heads[text / 120].clone(), tokens)
        })
        .collect();
    let texts: Vec<&TokenText> = texts.iter().collect();
    let mut whole = CpuEngine::new(own.clone(), Options::default()).unwrap();
    let expected = whole.classify(&texts).unwrap();
    for count in [1, 2, 3] {
        let mut shards = Shards::new(own.clone(), split_evenly(300, count), certified).unwrap();
        assert_eq!(shards.classify(&texts).unwrap(), expected, "{count}");
        assert_eq!(shards.classify(&[]).unwrap(), Vec::<Vec<f64>>::new());
        let one = shards.classify(&texts[..1]).unwrap();
        assert_eq!(one, expected[..1], "{count}");
    }
}

#[test]
fn heads_that_nobody_has_are_dropped() {
    let rows: Vec<Vec<f32>> = (0..310).map(|row| vec![row as f32, 1.0]).collect();
    let own = Arc::new(model(2, &rows));
    let mut shards = Shards::new(own.clone(), split_evenly(310, 3), certified).unwrap();
    let mut random = fastrand::Rng::with_seed(1);
    let (first, second) = (small(&mut random, 2), small(&mut random, 2));
    let weak = Arc::downgrade(&first);
    shards.classify(&[&TokenText::new(first.clone(), vec![Token(1)])]).unwrap();
    drop(first);
    assert!(weak.upgrade().is_some());
    shards.classify(&[&TokenText::new(second.clone(), vec![Token(1)])]).unwrap();
    // Each shard's engine drops it when it is asked for another.
    let texts: Vec<TokenText> =
        (0..30).map(|_| TokenText::new(second.clone(), vec![Token(2)])).collect();
    shards.classify(&texts.iter().collect::<Vec<_>>()).unwrap();
    assert!(weak.upgrade().is_none());

    let terms: Arc<dyn HasTable> = Arc::new(model_under_dot(2, &rows, None));
    let expander =
        |terms: &Arc<dyn HasTable>| -> Arc<dyn TermExpander> { Arc::new(Expander(terms.clone())) };
    let (first, second) = (expander(&terms), expander(&terms));
    let text = |expander: &Arc<dyn TermExpander>| {
        let tokens = TokenVectors::Rows(vec![Row(3)]);
        Expansion::new(expander.clone(), &own.table(), tokens, 2, 0.0).unwrap()
    };
    let weak = Arc::downgrade(&first);
    shards.expand(&[&text(&first)]).unwrap();
    drop(first);
    assert!(weak.upgrade().is_some());
    shards.expand(&[&text(&second)]).unwrap();
    assert!(weak.upgrade().is_none());
}

#[test]
fn what_is_foreign_is_refused() {
    let large = Arc::new(model(2, &vec![vec![1.0, 2.0]; 50]));
    let own = Arc::new(model(2, &vec![vec![1.0, 2.0]; 20]));
    let mut shards = shards(&own, split_evenly(20, 2));
    let table = large.table();
    let query =
        Query::new(&table, QueryVector::Row(Row(30)), 3, contract::Filter::default()).unwrap();
    assert_eq!(shards.search(&[&query]), Err(EngineError::ForeignQuery));
    let full = FullPassQuery::of_search(&query);
    assert_eq!(shards.full_pass(&[&full]), Err(EngineError::ForeignQuery));
    for rows in [10, 19, 21] {
        let filter = contract::Filter::of(RowSet::of(bitmap(2, 0, rows)));
        let query = Query::new(&own.table(), QueryVector::Row(Row(3)), 3, filter).unwrap();
        assert_eq!(shards.search(&[&query]), Err(EngineError::ForeignQuery), "a set of {rows}");
        let full = FullPassQuery::of_search(&query);
        assert_eq!(shards.full_pass(&[&full]), Err(EngineError::ForeignQuery));
    }
}
