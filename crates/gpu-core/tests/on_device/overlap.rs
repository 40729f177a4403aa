//! Searches that start before the last one is over give the same answers as one after the other.

use contract::{Device, EngineError, Filter, Query, QueryVector, Row, Scoring, SearchEngine};
use gpu_core::search::Paths;

use crate::support::{Numbers, engine, queries, reference};
use crate::tables::synthetic;

pub(crate) fn tests() -> Vec<(&'static str, fn())> {
    vec![
        ("overlapped_searches_of_all_kinds", of_all_kinds as fn()),
        ("what_can_not_be_started_is_refused", refused),
    ]
}

/// Starts each batch before the one before it is finished, as the scheduler does.
fn of_all_kinds() {
    let mut numbers = Numbers::new(31);
    let model = synthetic(150_000, 100, 31);
    let table = model.table();
    let mut asked = queries(&model, 1500, &[1, 10, 16, 16, 90], &mut numbers);
    for i in 0..200u32 {
        let words = [7 * i + 1, 11 * i + 5, 13 * i + 9].map(Row);
        let scoring = match i % 2 {
            0 => Scoring::three_cos_mul(&table, &words[..2], &words[2..]),
            _ => Scoring::pair_direction(&table, words[0], words[1], words[2]),
        };
        let filter = Filter::excluding(words.to_vec());
        asked.insert(6 * i as usize, Query::by(scoring.unwrap(), 10, filter));
    }
    // Without a certificate: no row is that unlike the query.
    let vector = QueryVector::from(table.row(Row(5)).to_vec());
    let filter = Filter { max_score: Some(-0.9), ..Filter::default() };
    asked.insert(700, Query::new(&table, vector, 3, filter).unwrap());
    let expected = reference(&model, &asked);

    for portable in [false, true] {
        let paths = Paths { portable, certified_from_rows: 0, ..Paths::default() };
        let mut engine = engine(&model, paths);
        let (mut answers, mut begin, mut before) = (Vec::new(), 0, None::<Vec<&Query>>);
        let mut started = 0;
        while begin < asked.len() || before.is_some() {
            let size = [1, 3, 64, 65, 1, 130, 257][numbers.below(7)].min(asked.len() - begin);
            let batch: Vec<&Query> = asked[begin..begin + size].iter().collect();
            engine.wait_until_almost_over().unwrap();
            let starts = size > 0 && engine.start_search(&batch).unwrap();
            if let Some(before) = before.take() {
                answers.extend(engine.finish_search(&before).unwrap());
            }
            if starts {
                started += 1;
                before = Some(batch);
            } else if size > 0 {
                answers.extend(engine.search_overlapped(&batch, &mut || ()).unwrap());
            }
            begin += size;
        }
        assert!(started > 10, "{started} searches overlapped");
        assert_eq!(answers.len(), asked.len());
        let mut unproven = 0;
        for (index, (hits, expected)) in answers.iter().zip(&expected).enumerate() {
            let Some(hits) = hits else {
                unproven += 1;
                continue;
            };
            let bits: Vec<_> = hits.iter().map(|hit| (hit.row.0, hit.score.to_bits())).collect();
            assert_eq!(&bits, expected, "query {index}: {:?}", asked[index]);
        }
        assert!(unproven < 100, "{unproven} formulas without a certificate");
    }
}

fn refused() {
    let mut numbers = Numbers::new(32);
    let (model, other) = (synthetic(20_000, 64, 32), synthetic(100, 50, 32));
    let mut engine = engine(&model, Paths { certified_from_rows: 0, ..Paths::default() });
    assert_eq!(engine.start_search(&[]), Ok(false));
    for k in [0, 500, 2000] {
        let asked = queries(&model, 3, &[k], &mut numbers);
        assert_eq!(engine.start_search(&asked.iter().collect::<Vec<_>>()), Ok(false), "k = {k}");
    }
    let vector = QueryVector::from(numbers.vector(50));
    let foreign = Query::new(&other.table(), vector, 5, Filter::default()).unwrap();
    let foreign = engine.start_search(&[&foreign]);
    assert_eq!(foreign, Err(EngineError::ForeignQuery));
    let asked = queries(&model, 30, &[5], &mut numbers);
    let [first, second, third]: [Vec<&Query>; 3] =
        std::array::from_fn(|i| asked[10 * i..10 * (i + 1)].iter().collect());
    assert_eq!(engine.start_search(&first), Ok(true));
    assert_eq!(engine.start_search(&second), Ok(true));
    assert_eq!(engine.start_search(&third), Ok(false), "two are under way");
    let expected = reference(&model, &asked);
    for (batch, expected) in [first, second].iter().zip(expected.chunks(10)) {
        let found = engine.finish_search(batch).unwrap();
        for (hits, expected) in found.iter().zip(expected) {
            let hits = hits.as_ref().expect("an answer");
            let bits: Vec<_> = hits.iter().map(|hit| (hit.row.0, hit.score.to_bits())).collect();
            assert_eq!(&bits, expected);
        }
    }
    assert_eq!(engine.start_search(&third), Ok(true));
    // Dropping the engine waits for it.
}
