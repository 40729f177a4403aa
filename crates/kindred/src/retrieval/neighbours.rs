//! Expands a query by its neighbours in a model, under the metric cosine: those of each of its words, or those of their sum.
//! Words are looked up before they are stemmed; neighbours are stemmed afterwards.

use std::collections::{BTreeSet, HashMap};

use contract::analogy::{WeightedWord, analogy_vector};
use contract::{Filter, Hit, Query, QueryVector, Row};
use model_store::ModelStore;

use super::analyse::Word;
use super::expansion::{Asked, Expansion, Setting};
use super::index::Weighted;
use crate::text::row;

/// How many neighbours are added, of each word or of the sum.
const COUNTS: [usize; 5] = [1, 2, 5, 10, 20];
const MOST: usize = COUNTS[COUNTS.len() - 1];

/// A neighbour and its cosine.
type Neighbour = (String, f64);

/// Adds the neighbours of each word of a query, weighted by their cosines. Those whose term the query has itself add nothing.
#[derive(Debug)]
pub struct OfWords {
    model: String,
    of_word: HashMap<String, Vec<Neighbour>>,
}

/// Adds the neighbours of the sum of a query's unit vectors.
#[derive(Debug)]
pub struct OfCentroid {
    model: String,
    of_query: Vec<Vec<Neighbour>>,
}

/// Looks a word up as it is written, then in lower case.
fn look_up(model: &ModelStore, word: &Word) -> Option<Row> {
    row(&word.written, |form| model.words().row(form))
}

fn named(model: &ModelStore, hits: Vec<Hit>) -> Vec<Neighbour> {
    let neighbour = |hit: Hit| (model.words().word(hit.row).to_owned(), hit.score);
    hits.into_iter().filter(|hit| hit.score > 0.0).map(neighbour).collect()
}

impl OfWords {
    /// The neighbours of all words of these queries, in the order of the queries. `search` answers queries to the model.
    ///
    /// # Errors
    /// As `search` says.
    pub fn new<E>(
        model: &ModelStore,
        queries: &[Vec<Word>],
        search: impl FnOnce(Vec<Query>) -> Result<Vec<Vec<Hit>>, E>,
    ) -> Result<Self, E> {
        let mut rows = HashMap::new();
        for word in queries.iter().flatten() {
            if let Some(row) = look_up(model, word) {
                rows.insert(&word.written, row);
            }
        }
        let distinct: BTreeSet<Row> = rows.values().copied().collect();
        // A row of zeros has no neighbours.
        let query = |&row: &Row| {
            let vector = QueryVector::Row(row);
            let query = Query::new(&model.table(), vector, MOST, Filter::excluding(vec![row]));
            Some((row, query.ok()?))
        };
        let (asked, searches): (Vec<Row>, Vec<Query>) = distinct.iter().filter_map(query).unzip();
        let found = search(searches)?;
        let found: HashMap<Row, Vec<Neighbour>> =
            asked.into_iter().zip(found).map(|(row, hits)| (row, named(model, hits))).collect();
        let with_neighbours = rows
            .into_iter()
            .filter_map(|(word, row)| Some((word.clone(), found.get(&row)?.clone())));
        Ok(Self { model: model.name().to_owned(), of_word: with_neighbours.collect() })
    }
}

impl OfCentroid {
    /// The neighbours of the sums of these queries. `search` answers queries to the model.
    ///
    /// # Errors
    /// As `search` says.
    pub fn new<E>(
        model: &ModelStore,
        queries: &[Vec<Word>],
        search: impl FnOnce(Vec<Query>) -> Result<Vec<Vec<Hit>>, E>,
    ) -> Result<Self, E> {
        let table = model.table();
        let has_direction = |row: &Row| table.norms()[row.index()] > 0.0;
        // A query without known words has no sum, and no neighbours.
        let query = |words: &Vec<Word>| {
            let rows = words.iter().filter_map(|word| look_up(model, word)).filter(has_direction);
            let rows: Vec<Row> = rows.collect();
            let words: Vec<WeightedWord> =
                rows.iter().map(|&row| WeightedWord { row, weight: 1.0 }).collect();
            let vector = QueryVector::from(analogy_vector(&table, &words).ok()?);
            Query::new(&table, vector, MOST, Filter::excluding(rows)).ok()
        };
        let searches: Vec<Option<Query>> = queries.iter().map(query).collect();
        let has_search: Vec<bool> = searches.iter().map(Option::is_some).collect();
        let mut found = search(searches.into_iter().flatten().collect())?.into_iter();
        let hits = |has: bool| if has { found.next().unwrap_or_default() } else { Vec::new() };
        let of_query = has_search.into_iter().map(hits).map(|hits| named(model, hits)).collect();
        Ok(Self { model: model.name().to_owned(), of_query })
    }
}

fn settings() -> Vec<Setting> {
    COUNTS.iter().map(|&count| vec![("neighbours", count as f64)]).collect()
}

impl Expansion for OfWords {
    fn name(&self) -> &str {
        "neighbours"
    }

    fn description(&self) -> String {
        format!("neighbours of each word in {}", self.model)
    }

    fn settings(&self) -> Vec<Setting> {
        settings()
    }

    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted> {
        let found = asked.words.iter().filter_map(|word| self.of_word.get(&word.written));
        found.flat_map(|found| asked.others(found, COUNTS[setting])).collect()
    }
}

impl Expansion for OfCentroid {
    fn name(&self) -> &str {
        "centroid"
    }

    fn description(&self) -> String {
        format!("neighbours of the words' sum in {}", self.model)
    }

    fn settings(&self) -> Vec<Setting> {
        settings()
    }

    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted> {
        asked.others(&self.of_query[asked.number], COUNTS[setting])
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contract::{Engine, EngineError};
    use cpu_core::ReferenceEngine;

    use super::super::analyse::Analyser;
    use super::super::index::{Bm25, Index};
    use super::super::texts::Text;
    use super::*;

    fn model() -> Arc<ModelStore> {
        let rows: [(&str, &[f32]); 6] = [
            ("wing", &[1.0, 0.0]),
            ("wings", &[1.0, 0.1]),
            ("lift", &[1.0, 0.5]),
            ("heat", &[0.0, 1.0]),
            ("cold", &[0.0, -1.0]),
            ("nothing", &[0.0, 0.0]),
        ];
        Arc::new(ModelStore::from_rows("tiny", 2, rows).unwrap())
    }

    fn search(model: &Arc<ModelStore>, asked: &[Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        ReferenceEngine::new(model.clone()).search(&asked.iter().collect())
    }

    /// The terms that an expansion adds to each of these queries, by word.
    fn added(
        queries: &[&str],
        setting: usize,
        make: impl Fn(&Arc<ModelStore>, &[Vec<Word>]) -> Box<dyn Expansion>,
    ) -> Vec<Vec<(String, f64)>> {
        let analyser = Analyser::english();
        let text = "wings lift heat cold nothing".to_owned();
        let index = Index::new(&[Text { id: "1".into(), text, line: 1 }], &analyser);
        let words: Vec<Vec<Word>> =
            queries.iter().map(|query| analyser.words(query).collect()).collect();
        let expansion = make(&model(), &words);
        assert!(expansion.description().contains("tiny"));
        let each = words.iter().enumerate().map(|(number, words)| {
            let terms: Vec<Weighted> =
                words.iter().filter_map(|word| Some((index.term(&word.term)?, 1.0))).collect();
            let bm25 = Bm25 { k1: 1.2, b: 0.75 };
            let asked = Asked {
                number,
                words,
                terms: &terms,
                index: &index,
                analyser: &analyser,
                bm25,
                best: &[],
            };
            let name = |term| {
                let all = ["wing", "lift", "heat", "cold", "noth"];
                all.into_iter().find(|name| index.term(name) == Some(term)).unwrap().to_owned()
            };
            let terms = expansion.terms(setting, &asked).into_iter();
            terms.map(|(term, weight)| (name(term), (weight * 1000.0).round() / 1000.0)).collect()
        });
        each.collect()
    }

    fn of_words(queries: &[&str], setting: usize) -> Vec<Vec<(String, f64)>> {
        added(queries, setting, |model, words| {
            Box::new(OfWords::new(model, words, |asked| search(model, &asked)).unwrap())
        })
    }

    fn of_centroid(queries: &[&str], setting: usize) -> Vec<Vec<(String, f64)>> {
        added(queries, setting, |model, words| {
            Box::new(OfCentroid::new(model, words, |asked| search(model, &asked)).unwrap())
        })
    }

    #[test]
    fn each_words_neighbours_are_added_by_cosine_but_not_what_the_query_has() {
        let wing = [[("lift".to_owned(), 0.894)]];
        // `wings` is the nearest to `Wing`, and has its term; `heat` and `cold` are not nearer than at a right angle.
        assert_eq!(of_words(&["the Wing"], 0), [[]]);
        assert_eq!(of_words(&["the Wing"], 1), wing);
        assert_eq!(of_words(&["Wing"], 4), wing, "opposites are no neighbours");
        // Each word of a query adds its own, and a word that is there twice adds twice.
        let both = of_words(&["wing heat", "heat wing wing"], 1);
        assert_eq!(both[0], [("lift".to_owned(), 0.894), ("lift".to_owned(), 0.447)]);
        assert_eq!(both[1].len(), 3);
        assert_eq!(of_words(&["nothing unknown", ""], 4), [[], []] as [[(String, f64); 0]; 2]);
    }

    #[test]
    fn the_sums_neighbours_are_added_to_the_query_that_they_belong_to() {
        let found = of_centroid(&["unknown", "wing wings", "nothing", "lift cold", "heat cold"], 4);
        let [unknown, wing, nothing, lift, cancelled] = &found[..] else { panic!("five") };
        assert!(unknown.is_empty() && nothing.is_empty());
        assert_eq!(wing[0].0, "lift");
        assert_eq!(wing[1].0, "heat");
        assert!(lift.iter().any(|(word, _)| word == "wing"), "{lift:?}");
        assert!(cancelled.is_empty(), "the vectors cancel out: {cancelled:?}");
    }
}
