//! Expands a query by the terms that an expander gives it.

use std::sync::Arc;

use contract::{Engine, EngineError, Expansion as Text};
use model_store::ModelStore;
use model_store::head::Expander;

use super::analyse::Word;
use super::expansion::{Asked, Expansion, Setting};
use super::index::Weighted;
use crate::heads::{Vocabulary, WantedTerms, token_rows};

/// How many terms are added.
const COUNTS: [usize; 5] = [5, 10, 20, 50, 100];
const MOST: usize = COUNTS[COUNTS.len() - 1];

/// Queries that are expanded together.
const TOGETHER: usize = 64;

/// Adds an expander's terms that the query does not have itself. Their weights are divided by the largest of the query, because
/// expanders differ in scale.
#[derive(Debug)]
pub struct OfExpander {
    name: String,
    model: String,
    of_query: Vec<Vec<(String, f64)>>,
}

impl OfExpander {
    /// The terms of these queries, without their stop words, by the engine of the model. `name` is the run's.
    ///
    /// # Errors
    /// If the engine fails, or expands no texts.
    pub fn new(
        name: String,
        model: &ModelStore,
        expander: &Arc<Expander>,
        queries: &[Vec<Word>],
        engine: &mut dyn Engine,
    ) -> Result<Self, EngineError> {
        let mut of_query = vec![Vec::new(); queries.len()];
        if let Some(tokens) = &expander.description().tokens {
            let vocabulary = Vocabulary::of_model(model, tokens);
            let wanted = WantedTerms { top: MOST, ..WantedTerms::default() };
            let text = |(number, words): (usize, &Vec<Word>)| {
                let tokens = vocabulary.take(words.iter().map(|word| word.written.as_str()));
                let text = wanted.of(expander, &model.table(), token_rows(&tokens)).ok()?;
                Some((number, text))
            };
            let texts: Vec<(usize, Text)> = queries.iter().enumerate().filter_map(text).collect();
            for some in texts.chunks(TOGETHER) {
                let asked: Vec<&Text> = some.iter().map(|(_, text)| text).collect();
                for ((number, _), terms) in some.iter().zip(engine.expand(&asked)?) {
                    let weights = wanted.weights(expander, &terms);
                    let largest = weights.first().copied().unwrap_or(1.0);
                    let weighted = terms.iter().zip(weights);
                    let named = weighted.map(|(term, weight)| {
                        (expander.term(term.row).to_owned(), weight / largest)
                    });
                    of_query[*number] = named.collect();
                }
            }
        }
        Ok(Self { name, model: model.name().to_owned(), of_query })
    }
}

impl Expansion for OfExpander {
    fn name(&self) -> &str {
        &self.name
    }

    fn description(&self) -> String {
        format!("terms of the expander {} over {}", self.name, self.model)
    }

    fn settings(&self) -> Vec<Setting> {
        COUNTS.iter().map(|&count| vec![("terms", count as f64)]).collect()
    }

    fn terms(&self, setting: usize, asked: &Asked<'_>) -> Vec<Weighted> {
        asked.others(&self.of_query[asked.number], COUNTS[setting])
    }
}
