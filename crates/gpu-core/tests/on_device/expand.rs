//! Expansions on the device: the same rows, values, bits and positions as the formula, whichever
//! pass finds them.

use std::sync::Arc;

use contract::{
    Expansion, Filter, HasTable, HeadEngine, Query, QueryVector, Row, RowBitmap, RowSet,
    SearchEngine, Term, TermExpander, TokenVectors,
};
use cpu_core::{FullScanEngine, ReferenceEngine};
use gpu_core::search::Paths;
use model_store::ModelStore;

use crate::support::{Numbers, all_paths, bits, check, engine, model, model_under_dot};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("every_hit_from_a_minimum_score_on", every_hit_from_a_minimum_score_on as fn()),
        ("queries_with_too_many_hits_are_given_up", queries_with_too_many_hits_are_given_up),
        ("expansions_are_those_of_the_formula", expansions_are_those_of_the_formula),
        ("expanders_share_the_device", expanders_share_the_device),
    ]
}

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

pub(crate) fn expander(
    terms: &Arc<ModelStore>,
    projection: Option<Vec<f32>>,
) -> Arc<dyn TermExpander> {
    Arc::new(Expander { terms: terms.clone(), projection })
}

pub(crate) fn bits_of(answers: &[Vec<Term>]) -> Vec<Vec<(u32, u64, u32)>> {
    let term = |term: &Term| (term.row.0, term.value.to_bits(), term.position);
    answers.iter().map(|terms| terms.iter().map(term).collect()).collect()
}

fn every_hit_from_a_minimum_score_on() {
    let mut numbers = Numbers::new(51);
    let biases: Vec<f32> = (0..3000).map(|_| numbers.real() - 3.0).collect();
    let rows: Vec<Vec<f32>> = (0..3000).map(|_| numbers.vector(60)).collect();
    let models = [
        model(60, &rows),
        model_under_dot(60, &rows, None),
        model_under_dot(60, &rows, Some(&biases)),
    ];
    for (model, scale) in models.into_iter().zip([0.1, 2.0, 2.0]) {
        let table = model.table();
        let mut queries = Vec::new();
        for turn in 0..90u32 {
            let mut filter = Filter::excluding((0..turn % 4).map(|i| Row(turn + i)).collect());
            filter.min_score = Some(scale * f64::from(turn % 5));
            filter.max_score = (turn % 3 == 0).then_some(3.0 * scale);
            filter.rows = filter.rows.limited((turn % 7 == 0).then_some(1000 + turn));
            let vector = QueryVector::Row(Row(turn * 33));
            let k = [1025, 2000, usize::MAX, 10][turn as usize % 4];
            queries.push(Query::new(&table, vector, k, filter).unwrap());
        }
        check("every hit", &model, &queries);
    }
}

/// The first tiles show that most rows are hits.
fn queries_with_too_many_hits_are_given_up() {
    let mut numbers = Numbers::new(52);
    let rows: Vec<Vec<f32>> = (0..1_300_000).map(|_| numbers.vector(8)).collect();
    let model = model_under_dot(8, &rows, None);
    let table = model.table();
    let ask = |turn: u32| {
        // From all rows above zero to a few thousand, and hardly any.
        let min_score = Some([f64::from_bits(1), 2.5, 3.5, 4.5][turn as usize % 4]);
        let filter = Filter { min_score, ..Filter::default() };
        let k = [4000, usize::MAX][turn as usize % 2];
        Query::new(&table, QueryVector::Row(Row(turn * 10_007)), k, filter).unwrap()
    };
    let queries: Vec<Query> = (0..12).map(ask).collect();
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = FullScanEngine::new(model.clone(), 0).unwrap().search(&batch).unwrap();
    let mut engine = engine(&model, Paths::default());
    let found = engine.search(&batch).unwrap();
    assert!(bits(&found) == bits(&expected), "{:?}", engine.counters());
    let counted = engine.counters();
    assert!(counted.fallbacks > 0 && counted.certified > 0, "{counted:?}");
}

/// Texts of every kind: rows and vectors, long and empty, many terms and few.
fn texts(
    model: &ModelStore,
    expander: &Arc<dyn TermExpander>,
    numbers: &mut Numbers,
) -> Vec<Expansion> {
    let table = model.table();
    let text = |turn: usize| {
        let tokens = [0, 1, 8, 40][turn % 4];
        let vectors = if turn.is_multiple_of(3) {
            let dim = expander.token_dim();
            TokenVectors::Vectors((0..tokens).flat_map(|_| numbers.vector(dim)).collect())
        } else {
            // Few distinct rows, so that some are in several texts.
            let row = |_| Row(numbers.below(model.rows().min(50)) as u32);
            TokenVectors::Rows((0..tokens).map(row).collect())
        };
        let top = [1, 10, 100, 1000, 3000, usize::MAX][turn % 6];
        let least = [0.0, 0.5, 4.0][turn / 2 % 3];
        let text = Expansion::new(expander.clone(), &table, vectors, top, least).unwrap();
        if !turn.is_multiple_of(5) {
            return text;
        }
        let terms = expander.terms().table().rows();
        let members = (0..terms as u32).step_by(1 + turn).map(Row);
        text.within(RowSet::of(Arc::new(RowBitmap::of_rows(members, terms, "v"))))
    };
    (0..48).map(text).collect()
}

fn expansions_are_those_of_the_formula() {
    let mut numbers = Numbers::new(53);
    let (dim, rows) = (24, 2600);
    let own: Vec<Vec<f32>> = (0..rows).map(|_| numbers.vector(dim)).collect();
    let of_terms: Vec<Vec<f32>> = (0..rows).map(|_| numbers.vector(dim)).collect();
    let biases: Vec<f32> = (0..rows).map(|_| 2.0 * numbers.real() - 2.0).collect();
    let (own, terms) = (model(dim, &own), model_under_dot(dim, &of_terms, Some(&biases)));
    let square = numbers.vector(dim * dim);
    for projection in [None, Some(square)] {
        let expander = expander(&terms, projection);
        let texts = texts(&own, &expander, &mut numbers);
        let texts: Vec<&Expansion> = texts.iter().collect();
        let expected = bits_of(&ReferenceEngine::new(own.clone()).expand(&texts).unwrap());
        for (name, paths) in all_paths() {
            let mut engine = engine(&own, paths);
            assert!(bits_of(&engine.expand(&texts).unwrap()) == expected, "{name}");
            for (text, expected) in texts.iter().zip(&expected).take(12) {
                let alone = bits_of(&engine.expand(&[text]).unwrap());
                assert_eq!(&alone[0], expected, "{name}, alone");
            }
            // Each text but the empty ones; the first twelve twice.
            assert_eq!(engine.counters().expanded, 36 + 9, "{name}");
        }
    }
}

/// Terms that are the model's own rows, with biases and without, beside searches of the model
/// itself.
fn expanders_share_the_device() {
    let mut numbers = Numbers::new(54);
    let rows: Vec<Vec<f32>> = (0..20_000).map(|_| numbers.vector(32)).collect();
    let own = model_under_dot(32, &rows, None);
    let biased = Arc::new(Biased { model: own.clone(), biases: vec![-1.5; rows.len()] });
    let expanders: [Arc<dyn TermExpander>; 2] =
        [expander(&own, None), Arc::new(Expander { terms: biased, projection: None })];
    let mut engine = engine(&own, Paths::default());
    let texts: Vec<Expansion> =
        expanders.iter().flat_map(|expander| texts(&own, expander, &mut numbers)).collect();
    let texts: Vec<&Expansion> = texts.iter().collect();
    let expected = ReferenceEngine::new(own.clone()).expand(&texts).unwrap();
    assert!(bits_of(&engine.expand(&texts).unwrap()) == bits_of(&expected));
    let table = own.table();
    let query = Query::new(&table, QueryVector::Row(Row(5)), 10, Filter::default()).unwrap();
    let batch: Vec<&Query> = std::iter::once(&query).collect();
    let expected = FullScanEngine::new(own.clone(), 0).unwrap().search(&batch).unwrap();
    assert_eq!(bits(&SearchEngine::search(&mut engine, &batch).unwrap()), bits(&expected));
}

/// A model's rows with biases of their own.
#[derive(Debug)]
struct Biased {
    model: Arc<ModelStore>,
    biases: Vec<f32>,
}

impl HasTable for Biased {
    fn table(&self) -> contract::Table<'_> {
        self.model.table().under_dot(Some(&self.biases))
    }
}
