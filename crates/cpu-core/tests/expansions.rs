//! Expansions on the certified engine: the same rows, values, bits and positions as the formula, in
//! every batch and piece.

use std::sync::Arc;

use crate::support::{bitmap, certified, model, model_under_dot, tables_of_both_metrics};
use contract::workload::{Costs, Expand, Slice};
use contract::{
    Engine, EngineError, Expansion, HasTable, HeadEngine, Row, RowSet, SearchEngine, Term,
    TermExpander, TokenVectors, Workload,
};
use cpu_core::{InstructionSet, Options, Paths, ReferenceEngine};
use model_store::ModelStore;
use proptest::prelude::*;

#[derive(Debug)]
struct Expander {
    terms: Arc<dyn HasTable>,
    projection: Option<Vec<f32>>,
}

impl TermExpander for Expander {
    fn terms(&self) -> &Arc<dyn HasTable> {
        &self.terms
    }

    fn projection(&self) -> Option<&[f32]> {
        self.projection.as_deref()
    }
}

fn expander(terms: &Arc<ModelStore>, projection: Option<Vec<f32>>) -> Arc<dyn TermExpander> {
    Arc::new(Expander { terms: terms.clone(), projection })
}

/// Rows, bits of values, and positions.
fn bits(answers: &[Vec<Term>]) -> Vec<Vec<(u32, u64, u32)>> {
    let term = |term: &Term| (term.row.0, term.value.to_bits(), term.position);
    answers.iter().map(|terms| terms.iter().map(term).collect()).collect()
}

/// A number in [-1, 1) that looks random.
fn number(index: u64) -> f32 {
    let mixed = (index + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15) ^ 0x5DEE_CE66;
    ((mixed.wrapping_mul(0xD6E8_FEB8_6659_FD93) >> 40) as f32) / (1u64 << 23) as f32 - 1.0
}

fn random_rows(rows: usize, dim: usize) -> Vec<Vec<f32>> {
    let row = |row: usize| (0..dim).map(|i| number((row * dim + i) as u64)).collect();
    (0..rows).map(row).collect()
}

/// Checks all texts on every instruction set, together and one by one.
fn holds(own: &Arc<ModelStore>, texts: &[Expansion]) {
    let texts: Vec<&Expansion> = texts.iter().collect();
    let expected = bits(&ReferenceEngine::new(own.clone()).expand(&texts).unwrap());
    for instructions in InstructionSet::available() {
        for always_certify in [true, false] {
            let paths = Paths { always_certify, ..Paths::default() };
            let mut engine = certified(own, 2, instructions, paths);
            assert_eq!(bits(&engine.expand(&texts).unwrap()), expected, "{instructions}");
            let single = texts.iter().map(|text| engine.expand(&[text]).unwrap().remove(0));
            assert_eq!(bits(&single.collect::<Vec<_>>()), expected, "{instructions}");
            let with_tokens = texts.iter().filter(|text| text.tokens() > 0).count();
            assert_eq!(engine.counted().expanded, 2 * with_tokens as u64);
        }
    }
}

#[test]
fn terms_with_biases_of_their_own_and_a_projection() {
    let own = Arc::new(model(24, &random_rows(3000, 24)));
    let biases: Vec<f32> = (0..5000).map(|row| number(row + 7) * 2.0 - 3.0).collect();
    let terms = Arc::new(model_under_dot(24, &random_rows(5000, 24), Some(&biases)));
    let same = Arc::new(model_under_dot(24, &random_rows(3000, 24), None));
    let projection: Vec<f32> = (0..24 * 24).map(|i| number(i + 99)).collect();
    let table = own.table();
    for expander in
        [expander(&terms, None), expander(&terms, Some(projection)), expander(&same, None)]
    {
        let text = |(text, top): (usize, usize)| {
            let rows = (0..text % 9).map(|at| Row(((text * 31 + at * at * 7) % 3000) as u32));
            let rows = TokenVectors::Rows(rows.collect());
            let least = if text.is_multiple_of(3) { 1.5 } else { 0.0 };
            Expansion::new(expander.clone(), &table, rows, top, least).unwrap()
        };
        let tops = [1, 10, 100, 0, usize::MAX];
        let texts: Vec<Expansion> =
            (0..40).map(|index| (index, tops[index % 5])).map(text).collect();
        holds(&own, &texts);
    }
}

#[test]
fn a_model_s_own_rows_need_no_second_table() {
    let rows = random_rows(9000, 20);
    let biases: Vec<f32> = (0..9000).map(|row| number(row) - 4.5).collect();
    let own = Arc::new(model_under_dot(20, &rows, Some(&biases)));
    let expander = expander(&own, None);
    let vectors = TokenVectors::Vectors(rows[40..48].concat());
    let text = Expansion::new(expander, &own.table(), vectors, usize::MAX, 0.0).unwrap();
    holds(&own, std::slice::from_ref(&text));
    let mut engine = certified(&own, 1, InstructionSet::best(), Paths::default());
    let terms = engine.expand(&[&text]).unwrap().remove(0);
    assert!((1..2000).contains(&terms.len()), "{}", terms.len());
    let counted = engine.counted();
    assert_eq!((counted.certified, counted.full), (8, 0), "{counted:?}");
}

#[test]
fn texts_of_one_batch_have_the_terms_of_their_own_sets() {
    let own = Arc::new(model(20, &random_rows(200, 20)));
    let terms = Arc::new(model_under_dot(20, &random_rows(20_005, 20), None));
    let expander = expander(&terms, None);
    let text = |n: u64| {
        // Two tokens that other texts have as well.
        let tokens = TokenVectors::Rows(vec![Row(n as u32 % 3), Row(5)]);
        let text = Expansion::new(expander.clone(), &own.table(), tokens, 10, 0.0).unwrap();
        let rows = RowSet::of(bitmap(n, n / 7, terms.rows())).less(vec![Row(n as u32)]);
        text.within(if n.is_multiple_of(9) { RowSet::all() } else { rows })
    };
    let texts: Vec<Expansion> = (0..60).map(text).collect();
    let texts: Vec<&Expansion> = texts.iter().collect();
    let expected = ReferenceEngine::new(own.clone()).expand(&texts).unwrap();
    for always_certify in [true, false] {
        let paths = Paths { always_certify, ..Paths::default() };
        let mut engine = certified(&own, 2, InstructionSet::best(), paths);
        assert_eq!(bits(&engine.expand(&texts).unwrap()), bits(&expected));
    }
    let foreign = text(1).within(RowSet::of(bitmap(0, 0, own.rows())));
    let mut engine = certified(&own, 1, InstructionSet::best(), Paths::default());
    assert_eq!(engine.expand(&[&foreign]), Err(EngineError::ForeignQuery));
}

#[test]
fn extremes() {
    let rows: Vec<Vec<f32>> = (0..900)
        .map(|row| {
            let scale = 10f32.powi(row % 25 - 12);
            (0..18).map(|i| scale * number((row * 18 + i) as u64)).collect()
        })
        .collect();
    let zeros = vec![vec![0.0; 18]; 900];
    let huge: Vec<f32> = (0..900).map(|row| if row % 7 == 0 { 3e38 } else { -1e30 }).collect();
    let equal = vec![-2.0; 900];
    let own = Arc::new(model(18, &rows));
    for (rows, biases) in [
        (&rows, None),
        (&rows, Some(&huge)),
        (&rows, Some(&equal)),
        (&zeros, None),
        (&zeros, Some(&equal)),
        (&zeros, Some(&huge)),
    ] {
        let terms = Arc::new(model_under_dot(18, rows, biases.map(Vec::as_slice)));
        let expander = expander(&terms, None);
        let tokens = [0u32, 24, 7, 7, 500].map(Row).to_vec();
        let zero = [vec![0.0; 18], vec![f32::from_bits(1); 18], vec![3e38; 18]].concat();
        let new = |vectors, top| {
            Expansion::new(expander.clone(), &own.table(), vectors, top, 0.0).unwrap()
        };
        holds(
            &own,
            &[
                new(TokenVectors::Rows(tokens), 20),
                new(TokenVectors::Vectors(zero), 50),
                new(TokenVectors::Rows(Vec::new()), 3),
            ],
        );
    }
}

#[test]
fn a_pass_may_be_cut_anywhere() {
    let own = Arc::new(model_under_dot(16, &random_rows(1500, 16), None));
    let expander = expander(&own, None);
    let text = |text: u32| {
        let rows = (0..text * 40).map(|at| Row((text * 7 + at * 3) % 1500)).collect();
        Expansion::new(expander.clone(), &own.table(), TokenVectors::Rows(rows), 5, 0.0).unwrap()
    };
    let texts: Vec<Expansion> = (0..8).map(text).collect();
    let texts: Vec<&Expansion> = texts.iter().collect();
    let expected = ReferenceEngine::new(own.clone()).expand(&texts).unwrap();
    for always_certify in [true, false] {
        let paths = Paths { always_certify, ..Paths::default() };
        let mut engine = certified(&own, 1, InstructionSet::best(), paths);
        let mut parts: Vec<_> =
            texts.iter().map(|&text| contract::PartOfExpansion::new(text.clone())).collect();
        let mut slices = 0;
        while !parts.iter().all(contract::PartOfExpansion::is_complete) {
            let before: usize = parts.iter().map(contract::PartOfExpansion::searched).sum();
            engine.expand_part(&mut parts, &|| false).unwrap();
            let after: usize = parts.iter().map(contract::PartOfExpansion::searched).sum();
            assert!(after > before, "each slice goes on");
            slices += 1;
        }
        assert!(slices > 3, "{slices}");
        let terms: Vec<Vec<Term>> =
            parts.into_iter().map(contract::PartOfExpansion::into_terms).collect();
        assert_eq!(bits(&terms), bits(&expected));
    }
}

#[test]
fn tokens_without_a_certificate_take_a_full_pass_that_may_be_cut() {
    let own = Arc::new(model_under_dot(16, &random_rows(20_000, 16), None));
    let terms = Arc::new(model_under_dot(16, &random_rows(20_000, 16), None));
    for expander in [expander(&own, None), expander(&terms, None)] {
        let text = |rows: Vec<u32>| {
            let rows = TokenVectors::Rows(rows.into_iter().map(Row).collect());
            Expansion::new(expander.clone(), &own.table(), rows, 15_000, 0.0).unwrap()
        };
        let texts = [text(vec![3; 11]), text((0..9).collect()), text(vec![])];
        let texts: Vec<&Expansion> = texts.iter().collect();
        let expected = ReferenceEngine::new(own.clone()).expand(&texts).unwrap();
        let mut engine = certified(&own, 1, InstructionSet::best(), Paths::default());
        let mut parts: Vec<_> =
            texts.iter().map(|&text| contract::PartOfExpansion::new(text.clone())).collect();
        let mut slices = 0;
        while !parts.iter().all(contract::PartOfExpansion::is_complete) {
            engine.expand_part(&mut parts, &|| false).unwrap();
            slices += 1;
            assert!(slices < 100_000, "it goes on");
        }
        assert!(slices > 20, "{slices} slices of 20 tokens");
        let terms: Vec<Vec<Term>> =
            parts.into_iter().map(contract::PartOfExpansion::into_terms).collect();
        assert_eq!(bits(&terms), bits(&expected));
    }
}

/// As requests, a text is parts that cost little, whatever it costs itself; they may be answered in
/// any order, and twice.
#[test]
fn the_parts_of_a_text_are_cheap_requests_with_its_terms() {
    let own = Arc::new(model_under_dot(16, &random_rows(3000, 16), None));
    let expander = expander(&own, None);
    let mut engine = certified(&own, 1, InstructionSet::best(), Paths::default());
    let costs = Costs::new(1 << 14);
    costs.set(engine.usual_costs());
    let workload = Expand { max_batch: 64, costs };
    let long = TokenVectors::Rows((0..3000).map(Row).collect());
    let long = Expansion::new(expander.clone(), &own.table(), long, 10, 0.0).unwrap();
    let (parts, _) = workload.parts(vec![long; 100]);
    let slots: usize = parts.iter().map(|part| workload.slots(part)).sum();
    assert_eq!(slots, 2 * (1 << 14) / 16, "a job leaves most of the queue to others");
    for (tokens, top) in [(0u32, 10), (1, 10), (300, 10), (300, 150), (40, 3000)] {
        let rows = (0..tokens).map(|at| Row(at * 7 % 3000)).collect();
        let text =
            Expansion::new(expander.clone(), &own.table(), TokenVectors::Rows(rows), top, 0.0);
        let text = text.unwrap();
        let expected = text.terms(&own.table());
        let (parts, mut terms) = workload.parts([text]);
        assert!(parts.len() >= tokens as usize / 8, "{} parts", parts.len());
        let device: &mut dyn Engine = &mut engine;
        let single = parts.len() == tokens.max(1) as usize;
        assert!(parts.iter().all(|part| workload.cost(device, part) <= 8 || single));
        for batch in parts.rchunks(3).chain(parts.chunks(1).take(1)) {
            let (mut pass, batch) = (Default::default(), batch.iter().collect::<Vec<_>>());
            let mut slices = 0;
            loop {
                let slice = Slice { go_on: &|| false, meanwhile: &mut || () };
                if workload.run(device, &batch, &mut pass, slice).unwrap().is_some() {
                    break;
                }
                slices += 1;
                assert!(slices < 10_000, "it goes on");
            }
        }
        assert_eq!(
            bits(&[terms.remove(0).take()]),
            bits(&[expected]),
            "{tokens} tokens, {top} terms"
        );
    }
}

/// A text, whatever its vectors are, leaves nothing behind that makes another one dearer.
#[test]
fn the_first_text_of_an_expander_decides_nothing_for_later_ones() {
    let own = Arc::new(model(32, &random_rows(3000, 32)));
    let biases: Vec<f32> = (0..3000).map(|row| (row % 7) as f32 - 3.0).collect();
    let terms = Arc::new(model_under_dot(32, &random_rows(3000, 32), Some(&biases)));
    let expander = expander(&terms, None);
    let usual = TokenVectors::Rows((0..16).map(Row).collect());
    let usual = Expansion::new(expander.clone(), &own.table(), usual, 20, 0.0).unwrap();
    let vector = |component: f32| {
        let vector = TokenVectors::Vectors((0..32).map(|_| component).collect());
        Expansion::new(expander.clone(), &own.table(), vector, 20, 0.0).unwrap()
    };
    let work = |first: Option<f32>| {
        let mut engine = certified(&own, 1, InstructionSet::best(), Paths::default());
        let first = first.map_or_else(|| usual.clone(), vector);
        engine.expand(&[&first]).unwrap();
        // The table is derived beside the first answers.
        let mut last = engine.counted();
        for _ in 0..200 {
            engine.expand(&[&usual]).unwrap();
            let now = engine.counted();
            if now.certified - last.certified == 16 && now.fallbacks == last.fallbacks {
                return (now.candidates - last.candidates, now.second_looks - last.second_looks);
            }
            last = now;
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        panic!("no certificate");
    };
    let expected = work(None);
    for first in [0.0, 1e-30, 1e-3, 1.0, 1e6, 1e30] {
        assert_eq!(work(Some(first)), expected, "after {first}");
    }
}

#[test]
fn expanders_that_nobody_has_are_dropped_and_foreign_texts_refused() {
    let own = Arc::new(model(8, &random_rows(200, 8)));
    let terms = Arc::new(model_under_dot(8, &random_rows(300, 8), None));
    let mut engine = certified(&own, 1, InstructionSet::best(), Paths::default());
    let weak = Arc::downgrade(&terms);
    let first = expander(&terms, None);
    let new = |expander: &Arc<dyn TermExpander>, row| {
        let rows = TokenVectors::Rows(vec![Row(row)]);
        Expansion::new(expander.clone(), &own.table(), rows, 3, 0.0).unwrap()
    };
    engine.expand(&[&new(&first, 0)]).unwrap();
    drop((terms, first));
    assert!(weak.upgrade().is_some());
    let second = expander(&Arc::new(model_under_dot(8, &random_rows(300, 8), None)), None);
    engine.expand(&[&new(&second, 1)]).unwrap();
    assert!(weak.upgrade().is_none());

    let small = Arc::new(model(8, &random_rows(100, 8)));
    let foreign = new(&second, 150);
    let mut engine = certified(&small, 1, InstructionSet::best(), Paths::default());
    assert_eq!(engine.expand(&[&foreign]), Err(EngineError::ForeignQuery));
    let mut reference = ReferenceEngine::new(small);
    assert_eq!(reference.expand(&[&foreign]), Err(EngineError::ForeignQuery));
}

#[test]
fn until_there_is_a_table_the_full_scan_answers() {
    let own = Arc::new(model(8, &random_rows(50, 8)));
    let terms = Arc::new(model_under_dot(8, &random_rows(9000, 8), None));
    let mut engine = cpu_core::CpuEngine::new(own.clone(), Options::default()).unwrap();
    let rows = TokenVectors::Rows((0..50).map(Row).collect());
    let text = Expansion::new(expander(&terms, None), &own.table(), rows, 10, 0.0).unwrap();
    let mut parts = [contract::PartOfExpansion::new(text.clone())];
    engine.expand_part(&mut parts, &|| true).unwrap();
    let [part] = parts;
    assert_eq!(part.into_terms(), text.terms(&own.table()));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    #[test]
    fn random_expansions_equal_the_formula(
        own in tables_of_both_metrics(60),
        texts in prop::collection::vec(
            (prop::collection::vec(any::<u32>(), 0..12), prop_oneof![Just(1usize), 2usize..80, Just(usize::MAX)]),
            1..8,
        ),
        bias in prop::option::of(-3.0f32..1.0),
        turned: bool,
        least in prop_oneof![Just(0.0), 0.0f64..4.0],
        members in prop::collection::vec(prop::option::of((any::<u64>(), any::<u64>())), 8),
    ) {
        let rows: Vec<Vec<f32>> = own.table().components().chunks(own.dim()).map(<[f32]>::to_vec).collect();
        let biases = bias.map(|bias| vec![bias; rows.len()]);
        let terms = Arc::new(model_under_dot(own.dim(), &rows, biases.as_deref()));
        let dim = own.dim();
        // Components in reverse.
        let projection = turned.then(|| {
            (0..dim * dim).map(|i| if i % dim == dim - 1 - i / dim { 0.5 } else { 0.0 }).collect()
        });
        let expander = expander(&terms, projection);
        let text = |(rows, top): (Vec<u32>, usize)| {
            let rows = rows.into_iter().map(|row| Row(row % own.rows() as u32)).collect();
            Expansion::new(expander.clone(), &own.table(), TokenVectors::Rows(rows), top, least).unwrap()
        };
        // Texts share tokens, and have sets of their own.
        let within = |(text, members): (Expansion, Option<(u64, u64)>)| match members {
            Some((kind, seed)) => text.within(RowSet::of(bitmap(kind, seed, rows.len()))),
            None => text,
        };
        let texts: Vec<Expansion> =
            texts.into_iter().map(text).zip(members).map(within).collect();
        holds(&own, &texts);
    }
}
