//! Shards on the device, and on several where there are: the answers of one engine, to the bit. On
//! one GPU, the shards share it.

use std::ops::Range;
use std::sync::Arc;

use contract::{
    Device, Expansion, Filter, FullPassEngine, FullPassQuery, HasTable, HeadEngine, Query,
    QueryVector, Row, Scoring, SearchEngine, TermExpander, Token, TokenText, TokenVectors,
};
use gpu_core::search::{CudaEngine, Paths};
use gpu_core::{GpuError, Options};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_in_memory};
use shards::{Shards, split_evenly};

use crate::expand::{bits_of, expander};
use crate::formulas::formulas;
use crate::heads::{random, texts};
use crate::support::{Numbers, bits, engine, model, model_under_dot, queries};

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("shards_find_what_one_engine_finds", find_what_one_engine_finds as fn()),
        ("shards_count_ranks_on_the_device", count_ranks_on_the_device),
        ("shards_expand_and_classify", expand_and_classify),
        ("shards_of_one_row_and_of_zero_rows", of_one_row_and_of_zero_rows),
    ]
}

/// An engine for each range, on the GPUs in turn.
pub(crate) fn shards(model: &Arc<ModelStore>, ranges: Vec<Range<usize>>) -> Shards {
    let gpus = gpu_core::count().unwrap();
    Shards::new(model.clone(), ranges, move |index, table| -> Result<_, GpuError> {
        let ordinal = Some(index as u32 % gpus);
        let paths = Paths { certified_from_rows: 0, ..Paths::default() };
        let options = Options { ordinal, ..Options::default() };
        Ok(Box::new(CudaEngine::new(table, options, paths)?))
    })
    .unwrap()
}

fn synthetic() -> Arc<ModelStore> {
    let files =
        synth_in_memory(SynthOptions { rows: 60_000, dim: 100, seed: 5, ..Default::default() })
            .unwrap();
    Arc::new(ModelStore::from_memory("synth", &files).unwrap())
}

fn under_dot(numbers: &mut Numbers) -> Arc<ModelStore> {
    let rows: Vec<Vec<f32>> = (0..30_000).map(|_| numbers.vector(60)).collect();
    let biases: Vec<f32> = (0..30_000).map(|_| numbers.real() - 1.0).collect();
    model_under_dot(60, &rows, Some(&biases))
}

/// Two, three and four shards, some of which are empty or much smaller.
fn all_ranges(rows: usize) -> Vec<Vec<Range<usize>>> {
    let uneven = vec![0..rows / 2 + 77, rows / 2 + 77..rows - 300, rows - 300..rows];
    vec![split_evenly(rows, 2), uneven, vec![0..0, 0..rows - 5, rows - 5..rows, rows..rows]]
}

fn find_what_one_engine_finds() {
    let mut numbers = Numbers::new(61);
    for model in [synthetic(), under_dot(&mut numbers)] {
        let mut asked = queries(&model, 600, &[1, 10, 10, 100, 1500], &mut numbers);
        if model.metric() == contract::Metric::Cosine {
            asked.extend(formulas(&model, 150, &mut numbers));
        }
        let batch: Vec<&Query> = asked.iter().collect();
        let mut whole = engine(&model, Paths::default());
        let expected = bits(&whole.search(&batch).unwrap());
        for ranges in all_ranges(model.rows()) {
            let mut shards = shards(&model, ranges.clone());
            assert_eq!(bits(&shards.search(&batch).unwrap()), expected, "{ranges:?}");
            let overlapped = shards.search_overlapped(&batch, &mut || ()).unwrap();
            let answered = overlapped.iter().flatten().count();
            assert!(2 * answered > asked.len(), "{answered} of {}", asked.len());
            for (found, expected) in overlapped.into_iter().zip(&expected) {
                if let Some(found) = found {
                    assert_eq!(bits(&[found])[0], *expected);
                }
            }
            for (query, expected) in asked.iter().zip(&expected).take(30) {
                let alone = shards.search(&[query]).unwrap();
                assert_eq!(bits(&alone)[0], *expected);
            }
        }
    }
}

fn count_ranks_on_the_device() {
    let mut numbers = Numbers::new(62);
    let model = synthetic();
    let mut row = || Row(numbers.below(model.rows()) as u32);
    let queries: Vec<FullPassQuery> = (0..150)
        .map(|query| {
            let scoring = Scoring::vector(&model.table(), QueryVector::Row(row())).unwrap();
            let mut filter = Filter::excluding(vec![row(), row()]);
            filter.rows = filter.rows.limited((query % 5 == 0).then_some(40_000));
            filter.min_score = (query % 7 == 0).then_some(-0.05);
            filter.max_score = (query % 6 == 0).then_some(0.2);
            FullPassQuery::new(scoring, 0, filter, (0..1 + query % 10).map(|_| row()).collect())
        })
        .collect();
    let queries: Vec<&FullPassQuery> = queries.iter().collect();
    let expected = engine(&model, Paths::default()).full_pass(&queries).unwrap();
    for ranges in all_ranges(model.rows()) {
        let mut shards = shards(&model, ranges.clone());
        assert_eq!(shards.full_pass(&queries).unwrap(), expected, "{ranges:?}");
        let counters = shards.counters();
        let ranked = counters.iter().find(|(name, _)| *name == "ranked").unwrap().1;
        assert!(ranked >= 150, "tensor cores have counted: {counters:?}");
    }
}

fn expand_and_classify() {
    let mut numbers = Numbers::new(63);
    let own = under_dot(&mut numbers);
    let rows: Vec<Vec<f32>> = (0..5000).map(|_| numbers.vector(60)).collect();
    let terms = model_under_dot(60, &rows, None);
    let expanders: [Arc<dyn TermExpander>; 2] = [expander(&own, None), expander(&terms, None)];
    let mut expansions = Vec::new();
    for text in 0..60 {
        let tokens = (0..1 + text % 9).map(|_| Row(numbers.below(own.rows()) as u32)).collect();
        let top = [5, 100, usize::MAX][text % 3];
        let least = if top == usize::MAX { 5.0 } else { 0.0 };
        let expander = expanders[text / 30].clone();
        let tokens = TokenVectors::Rows(tokens);
        expansions.push(Expansion::new(expander, &own.table(), tokens, top, least).unwrap());
    }
    let expansions: Vec<&Expansion> = expansions.iter().collect();
    let expected = bits_of(&engine(&own, Paths::default()).expand(&expansions).unwrap());

    let dim = 48;
    let rows: Vec<Vec<f32>> = (0..3000).map(|_| numbers.vector(dim)).collect();
    let words = model(dim, &rows);
    let head = random(dim, &[(3, 1, 40), (5, 2, 30)], &[20], 3, 1.0);
    let mut texts = texts(&head, 500, 9);
    texts.push(TokenText::new(head, vec![Token(2999); 3]));
    let texts: Vec<&TokenText> = texts.iter().collect();
    let scores = engine(&words, Paths::default()).classify(&texts).unwrap();
    for count in [2, 3] {
        let mut of_terms = shards(&own, split_evenly(own.rows(), count));
        assert_eq!(bits_of(&of_terms.expand(&expansions).unwrap()), expected, "{count}");
        let mut of_words = shards(&words, split_evenly(words.rows(), count));
        assert_eq!(of_words.classify(&texts).unwrap(), scores, "{count}");
    }
}

fn of_one_row_and_of_zero_rows() {
    let mut numbers = Numbers::new(64);
    let mut rows: Vec<Vec<f32>> = (0..700).map(|_| numbers.vector(20)).collect();
    rows[100..500].fill(vec![0.0; 20]);
    let model = model(20, &rows);
    let table: &dyn HasTable = &*model;
    let query = |row: u32| {
        Query::new(&table.table(), QueryVector::Row(Row(row)), 20, Filter::default()).unwrap()
    };
    let asked: Vec<Query> = [0, 99, 500, 699].map(query).to_vec();
    let batch: Vec<&Query> = asked.iter().collect();
    let expected = bits(&engine(&model, Paths::default()).search(&batch).unwrap());
    let mut shards = shards(&model, vec![0..1, 1..120, 120..400, 400..699, 699..700]);
    assert_eq!(bits(&shards.search(&batch).unwrap()), expected);
}
