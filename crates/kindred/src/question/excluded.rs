//! The words that queries exclude.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use contract::Row;
use model_store::ModelStore;

use crate::Error;
use crate::options::{MAX_EXCLUDED, must_be};

/// The words that queries exclude, looked up once for all queries that share them.
#[derive(Debug, Default)]
pub(super) struct Excluded {
    /// Without folding, these may be dropped.
    pub(super) words: Vec<String>,
    /// The rows that the model has for them, ascending.
    pub(super) rows: Vec<Row>,
    /// The words in lower case, made when a query needs them.
    folded: OnceLock<HashSet<String>>,
}

impl Excluded {
    /// Looks the words up. Those that the model does not have can't be found anyway.
    pub(super) fn new(model: &ModelStore, words: Vec<String>) -> Result<Arc<Self>, Error> {
        if words.len() > MAX_EXCLUDED {
            return Err(Error::invalid("exclude", must_be("exclude").unwrap_or_default()));
        }
        let mut rows: Vec<Row> = words.iter().filter_map(|word| model.words().row(word)).collect();
        rows.sort_unstable();
        rows.dedup();
        Ok(Arc::new(Self { words, rows, folded: OnceLock::new() }))
    }

    /// The words in lower case, each once.
    pub(super) fn folded(&self) -> &HashSet<String> {
        self.folded.get_or_init(|| self.words.iter().map(|word| word.to_lowercase()).collect())
    }
}
