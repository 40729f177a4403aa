//! That parameters are chosen by other queries than those that they answer, and chosen well.

use super::super::collection::Counts;
use super::super::expansion::Mixing;
use super::super::results::{RunResult, Verdict};
use super::super::texts::Text;
use super::*;

const QUERIES: usize = 20;

/// Every document answers one query. All of them have the word of all queries, so that they tie, and a word of their own.
fn experiment(tuning: Tuning) -> Result<(Experiment, Collection), EvaluationError> {
    let text = |number: usize| Text {
        id: number.to_string(),
        text: format!("query own{number}"),
        line: 1,
    };
    let queries = (0..QUERIES).map(|number| JudgedQuery {
        id: number.to_string(),
        text: "a query unknown".into(),
        relevant: vec![super::super::collection::Relevant {
            document: Some(number as u32),
            grade: 1,
        }],
    });
    let empty = Text { id: "empty".into(), text: "...".into(), line: 1 };
    let mut collection = Collection {
        documents: (0..QUERIES).map(text).chain([empty]).collect(),
        queries: queries.collect(),
        counts: Counts {
            documents: QUERIES + 1,
            empty_documents: 0,
            queries: QUERIES,
            judged_queries: QUERIES,
            without_relevant: 0,
            unknown_queries: 0,
            relevant: QUERIES,
            unknown_documents: 0,
        },
    };
    let experiment = Experiment::new(&mut collection, Analyser::new("a", false), tuning)?;
    Ok((experiment, collection))
}

const TUNING: Tuning = Tuning { folds: 5, repetitions: 3, seed: 1, k1: None, b: None };

/// Adds the word of the document that is relevant, to the queries that a setting knows.
struct Oracle {
    settings: usize,
    knows: fn(setting: usize, query: usize) -> bool,
    weights: Vec<f64>,
}

impl Expansion for Oracle {
    fn name(&self) -> &str {
        "oracle"
    }

    fn description(&self) -> String {
        "what is right".into()
    }

    fn settings(&self) -> Vec<Setting> {
        (0..self.settings).map(|setting| vec![("knows", setting as f64)]).collect()
    }

    fn mixing(&self) -> Mixing {
        Mixing::Add
    }

    fn weights(&self) -> Vec<f64> {
        self.weights.clone()
    }

    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted> {
        let word = format!("own{}", asked.number);
        let knows = (self.knows)(setting, asked.number);
        asked.terms_of(&word).filter(|_| knows).map(|term| (term, 1.0)).collect()
    }
}

#[test]
fn ties_rank_by_document_and_all_settings_tie() {
    let (experiment, collection) = experiment(TUNING).unwrap();
    assert_eq!(collection.counts.empty_documents, 1);
    let run = experiment.bm25(|| ());
    let expected = (0..QUERIES).map(|number| 1.0 / (number as f64 + 1.0));
    for (found, expected) in run.measures.iter().zip(expected) {
        assert!((found.map - expected).abs() < 1e-12, "{found:?} {expected}");
    }
    assert_eq!(run.chosen, [Bm25 { k1: K1[0], b: B[0] }; 15], "the first of equals");
    let fixed = Tuning { k1: Some(9.0), b: Some(0.5), ..TUNING };
    let run = super::tests::experiment(fixed).unwrap().0.bm25(|| ());
    assert_eq!(run.chosen, [Bm25 { k1: 9.0, b: 0.5 }; 15]);
}

#[test]
fn parameters_are_not_chosen_by_the_queries_that_they_answer() {
    let (experiment, _) = experiment(TUNING).unwrap();
    let bm25 = experiment.bm25(|| ());
    // Each setting knows the answer of one query. So the setting that a fold chooses knows none of its own.
    let oracle =
        Oracle { settings: QUERIES, knows: |setting, query| setting == query, weights: vec![1.0] };
    let run = experiment.expanded(&bm25, &oracle, || ());
    assert!(run.chosen.iter().all(|chosen| chosen.setting[0].1 > 0.0), "{:?}", run.chosen);
    for (run, bm25) in run.measures.iter().zip(&bm25.measures) {
        assert!((run.map - bm25.map).abs() < 1e-12, "{run:?} {bm25:?}");
    }
}

#[test]
fn the_best_setting_and_weight_are_chosen() {
    let (experiment, _) = experiment(TUNING).unwrap();
    let bm25 = experiment.bm25(|| ());
    let oracle =
        Oracle { settings: 3, knows: |setting, _| setting == 2, weights: vec![-1.0, 0.5, 0.0] };
    let calls = std::sync::atomic::AtomicUsize::new(0);
    let count = || {
        calls.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    };
    let run = experiment.expanded(&bm25, &oracle, count);
    assert_eq!(calls.into_inner(), QUERIES * Experiment::rounds(&bm25));
    assert_eq!(run.chosen, vec![Expanded { setting: vec![("knows", 2.0)], weight: 0.5 }; 15]);
    assert!(run.measures.iter().all(|one| one.map == 1.0));
    let result = RunResult::expanded(&experiment, &oracle, &run, &bm25, 10_000);
    let against = result.against_bm25.unwrap();
    assert_eq!(against.verdict(), Verdict::Helps);
    assert!(against.map.p < 0.001 && against.recall_at_100.p == 1.0, "{against:?}");
    assert_eq!((result.chosen.len(), result.chosen[0].times), (1, 15));
    // The same with a weight that hurts.
    let oracle = Oracle { weights: vec![-1.0], knows: |_, _| true, ..oracle };
    let run = experiment.expanded(&bm25, &oracle, || ());
    let result = RunResult::expanded(&experiment, &oracle, &run, &bm25, 10_000);
    assert_eq!(result.against_bm25.unwrap().verdict(), Verdict::Hurts);
}

#[test]
fn a_query_without_known_terms_finds_nothing_and_is_no_fault() {
    let tuning = Tuning { folds: 2, ..TUNING };
    let (_, mut collection) = experiment(tuning).unwrap();
    collection.queries[0].text = "nothing of this".into();
    collection.queries[1].text = String::new();
    let experiment = Experiment::new(&mut collection, Analyser::english(), tuning).unwrap();
    let bm25 = experiment.bm25(|| ());
    let run = experiment.expanded(&bm25, &super::super::feedback::Rm3, || ());
    for number in 0..2 {
        assert_eq!(bm25.measures[number], Measures::default());
        assert_eq!(run.measures[number], Measures::default());
    }
    assert_eq!(experiment.ids().nth(1), Some("1"));
}

#[test]
fn more_folds_than_queries_are_refused() {
    let error = experiment(Tuning { folds: 21, ..TUNING }).unwrap_err().to_string();
    assert!(error.contains("(20) than folds (21)") && error.contains("--folds"), "{error}");
    assert!(experiment(Tuning { folds: 20, ..TUNING }).is_ok());
}
