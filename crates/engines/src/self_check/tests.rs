//! The self-check against engines whose answers are changed.

use std::sync::Arc;

use contract::{Device, EngineDescription, FullPassAnswer, HeadEngine};
use cpu_core::{CpuEngine, FullScanEngine, Options, ReferenceEngine};

use super::*;

/// Rows that all differ, more than the sample, some of them zero and some alike.
fn model(rows: usize) -> Arc<ModelStore> {
    let component = |row: usize, i: usize| ((row * 7919 + i * 104_729) % 211) as f32 - 105.0;
    let vectors: Vec<Vec<f32>> = (0..rows)
        .map(|row| (0..8).map(|i| if row == 1 { 0.0 } else { component(row % 2500, i) }).collect())
        .collect();
    let words: Vec<String> = (0..rows).map(|row| format!("w{row}")).collect();
    let rows = words.iter().zip(&vectors).map(|(word, row)| (word.as_str(), &row[..]));
    Arc::new(ModelStore::from_rows("many", 8, rows).unwrap())
}

/// The reference, with changed answers.
struct Changed<F> {
    reference: ReferenceEngine,
    name: &'static str,
    change: F,
    passes: u64,
}

/// Changes the hits and ranks of the query at this index in this pass, both from 0.
type Change<'a> = &'a dyn Fn(u64, usize, &mut Vec<Hit>, &mut Vec<RankedRow>);

impl Device for Changed<Change<'_>> {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: self.name, detail: String::new() }
    }
}

impl SearchEngine for Changed<Change<'_>> {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.passes += 1;
        let mut found = self.reference.search(batch)?;
        for (index, hits) in found.iter_mut().enumerate() {
            (self.change)(self.passes - 1, index, hits, &mut Vec::new());
        }
        Ok(found)
    }
}

impl FullPassEngine for Changed<Change<'_>> {
    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        self.passes += 1;
        let mut found = self.reference.full_pass(queries)?;
        for (index, answer) in found.iter_mut().enumerate() {
            (self.change)(self.passes - 1, index, &mut answer.hits, &mut answer.ranks);
        }
        Ok(found)
    }
}

impl HeadEngine for Changed<Change<'_>> {}

fn check(model: &Arc<ModelStore>, change: Change<'_>) -> Result<(), WrongAnswer> {
    let reference = ReferenceEngine::new(model.clone());
    let mut engine = Changed { reference, name: "changed", change, passes: 0 };
    let checked = self_check(&mut engine, model);
    if checked.is_ok() {
        assert_eq!(engine.passes, SELF_CHECK_PASSES);
    }
    checked
}

#[test]
fn right_engines_pass_whatever_the_table() {
    for rows in [1, 2, 3, 7, 1999, 2000, 2001, 5000] {
        let model = model(rows);
        check(&model, &|_, _, _, _| ()).unwrap();
        self_check(&mut FullScanEngine::new(model.clone(), 1).unwrap(), &model).unwrap();
        let options = Options { threads: 1, ..Options::default() };
        self_check(&mut CpuEngine::new(model.clone(), options).unwrap(), &model).unwrap();
    }
    let zero = Arc::new(ModelStore::from_rows("zero", 1, [("a", &[0.0f32][..])]).unwrap());
    self_check(&mut ReferenceEngine::new(zero.clone()), &zero).unwrap();
}

#[test]
fn one_wrong_hit_is_found_in_any_pass_and_place() {
    let model = model(5000);
    let queries = [1, 11, 1];
    for (pass, queries) in queries.into_iter().enumerate() {
        for index in 0..queries {
            type Fault<'a> = (&'a str, &'a dyn Fn(&mut Vec<Hit>));
            let faults: [Fault<'_>; 5] = [
                ("last bit", &|hits| hits[2].score = hits[2].score.next_down()),
                ("missing", &|hits| hits.truncate(hits.len() - 1)),
                ("order", &|hits| hits.swap(0, 1)),
                ("twice", &|hits| hits[1] = hits[0]),
                ("no such row", &|hits| hits[0].row = Row(1_000_000)),
            ];
            for (what, fault) in faults {
                let said = check(&model, &|in_pass, in_query, hits, _| {
                    if (in_pass, in_query) == (pass as u64, index) {
                        fault(hits);
                    }
                });
                let said = said.expect_err(&format!("{what} in pass {pass}, query {index}"));
                assert!(said.to_string().contains("changed gave a wrong answer"), "{said}");
            }
        }
    }
}

#[test]
fn a_wrong_rank_is_found() {
    type Fault<'a> = (u64, &'a dyn Fn(&mut Vec<RankedRow>));
    let faults: [Fault<'_>; 4] = [
        (2, &|ranks| ranks[0].rank = ranks[0].rank.map(|rank| rank + 1)),
        (3, &|ranks| ranks[4].rank = ranks[4].rank.map(|rank| rank - 1)),
        (3, &|ranks| ranks[2].score = ranks[2].score.map(f64::next_up)),
        (3, &|ranks| ranks.truncate(4)),
    ];
    for (pass, fault) in faults {
        let said = check(&model(100), &|in_pass, _, _, ranks| {
            if in_pass == pass {
                fault(ranks);
            }
        });
        assert!(said.unwrap_err().to_string().contains("the rank of row"));
    }
}

#[test]
fn a_row_of_the_sample_that_all_rows_should_have_given_is_missed() {
    // Among all rows, the hits are right, in order and k of them; but the best is not there.
    let model = model(5000);
    let said = check(&model, &|pass, _, hits, _| {
        if pass == 0 {
            let filter = Filter::excluding(vec![Row(0), hits[0].row]);
            let query = Query::new(&model.table(), QueryVector::Row(Row(0)), K, filter).unwrap();
            let batch: Vec<&Query> = std::iter::once(&query).collect();
            *hits = ReferenceEngine::new(model.clone()).search(&batch).unwrap().remove(0);
        }
    });
    let said = said.unwrap_err().to_string();
    assert!(said.contains("but the formula gives row"), "{said}");
}

#[test]
fn an_engine_that_fails_or_says_nothing_is_not_used() {
    struct Fails;
    impl Device for Fails {
        fn description(&self) -> EngineDescription {
            EngineDescription { name: "fails", detail: String::new() }
        }
    }

    impl SearchEngine for Fails {
        fn preferred_batch(&self, waiting: usize) -> usize {
            waiting
        }

        fn search(&mut self, _: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
            Err(EngineError::Device("on fire".into()))
        }
    }

    impl FullPassEngine for Fails {}

    impl HeadEngine for Fails {}
    let model = model(10);
    let said = self_check(&mut Fails, &model).unwrap_err().to_string();
    assert!(said.contains("fails got no answer") && said.contains("on fire"), "{said}");
    assert!(check(&model, &|_, _, hits, _| hits.clear()).is_err());
}
