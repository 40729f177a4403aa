//! Expands a query by its neighbours in a model, under the metric cosine: those of each of its words, or those of their sum.
//! Words are looked up before they are stemmed; neighbours are stemmed afterwards.

use std::collections::{BTreeSet, HashMap};

use contract::analogy::{WeightedWord, analogy_vector};
use contract::{Filter, Hit, Query, QueryVector, Row};
use model_store::ModelStore;

use super::analyse::Word;
use super::expansion::{Asked, Expansion, Mixing, Setting};
use super::index::Weighted;
use crate::text::row;

/// How many neighbours are added, of each word or of the sum.
const COUNTS: [usize; 5] = [1, 2, 5, 10, 20];
const WEIGHTS: [f64; 5] = [0.02, 0.05, 0.1, 0.2, 0.4];
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
            let vector = QueryVector::Components(analogy_vector(&table, &words).ok()?);
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

/// The terms of the first few of these that the query does not have, weighted by their cosines.
fn add(found: &[Neighbour], setting: usize, asked: &Asked<'_>, terms: &mut Vec<Weighted>) {
    for (word, cosine) in found.iter().take(COUNTS[setting]) {
        let own = asked.terms_of(word).filter(|&term| !asked.has(term));
        terms.extend(own.map(|term| (term, *cosine)));
    }
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

    fn mixing(&self) -> Mixing {
        Mixing::Add
    }

    fn weights(&self) -> Vec<f64> {
        WEIGHTS.to_vec()
    }

    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted> {
        let mut terms = Vec::new();
        for word in asked.words {
            if let Some(found) = self.of_word.get(&word.written) {
                add(found, setting, asked, &mut terms);
            }
        }
        terms
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

    fn mixing(&self) -> Mixing {
        Mixing::Add
    }

    fn weights(&self) -> Vec<f64> {
        WEIGHTS.to_vec()
    }

    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted> {
        let mut terms = Vec::new();
        add(&self.of_query[asked.number], setting, asked, &mut terms);
        terms
    }
}
