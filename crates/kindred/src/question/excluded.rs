//! The words that queries exclude.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use contract::Row;

use crate::Error;
use crate::options::{MAX_EXCLUDED, must_be};
use crate::rows::Rows;

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
    pub(super) fn new(model: &dyn Rows, words: Vec<String>) -> Result<Arc<Self>, Error> {
        if words.len() > MAX_EXCLUDED {
            return Err(Error::invalid("exclude", must_be("exclude").unwrap_or_default()));
        }
        if let [word] = &words[..] {
            check_is_one(model, word)?;
        }
        let mut rows: Vec<Row> = words.iter().filter_map(|word| model.row_of(word)).collect();
        rows.sort_unstable();
        rows.dedup();
        Ok(Arc::new(Self { words, rows, folded: OnceLock::new() }))
    }

    /// The words in lower case, each once.
    pub(super) fn folded(&self) -> &HashSet<String> {
        self.folded.get_or_init(|| self.words.iter().map(|word| word.to_lowercase()).collect())
    }
}

/// Refuses a word that is a list with commas of words that the model has. As a single word, which
/// the model does not have, it would silently exclude nothing.
fn check_is_one(model: &dyn Rows, word: &str) -> Result<(), Error> {
    let is_known = |part: &str| part.contains(char::is_alphabetic) && model.row_of(part).is_some();
    if !word.contains(',') || model.row_of(word).is_some() {
        return Ok(());
    }
    let parts = || word.split(',').map(str::trim).filter(|part| !part.is_empty());
    match (parts().next(), parts().nth(1)) {
        (Some(a), Some(b)) if parts().all(is_known) => Err(Error::InvalidRequest {
            reason: format!(
                "`exclude` is one word with commas, which the model does not have; give each word \
                 on its own: exclude={a}&exclude={b} in a URL, [\"{a}\", \"{b}\"] in JSON, \
                 --exclude {a} --exclude {b} in a terminal"
            ),
        }),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use model_store::ModelStore;

    use super::*;

    #[test]
    fn a_list_in_one_word_is_refused_and_other_unknown_words_exclude_nothing() {
        let rows = ["a", "b", "1", "000", "a,a"].map(|word| (word, &[1.0f32][..]));
        let model = ModelStore::from_rows("m", 1, rows).unwrap();
        let of = |words: &[&str]| {
            let words = words.iter().map(|&word| word.to_owned()).collect();
            Excluded::new(&model, words).map(|excluded| excluded.rows.len())
        };
        for word in ["a,b", "a, b", " a ,b,", "a,b,a"] {
            let said = of(&[word]).unwrap_err().to_string();
            assert!(said.contains("exclude=a&exclude=") && said.contains("\"a\", \""), "{said}");
        }
        for (words, rows) in [
            (&["a", "b"][..], 2),
            (&["a,a"], 1),
            (&["1,000"], 0),
            (&["a,x"], 0),
            (&["a,"], 0),
            (&[","], 0),
            (&["a b"], 0),
            (&["a,b", "b"], 1),
        ] {
            assert_eq!(of(words), Ok(rows), "{words:?}");
        }
    }
}
