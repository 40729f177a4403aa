//! Spelling suggestions for the words of a request.

use kindred::question::MAX_SUGGESTED_WORDS;

use crate::http::ApiError;
use crate::http::aside::{Work, elsewhere, goes_on};
use crate::models::Call;
use crate::workers::Patience;
use scheduler::account::Pool;

/// What finds the words that resemble one, as long as it does: it grows with the word, and this is for the longest.
const BYTES_OF_AUTOMATON: u64 = 3 << 20;

/// What a stage came to; its error with suggestions for unknown words.
pub(super) async fn with<T>(call: &Call, done: Result<T, ApiError>) -> Result<T, ApiError> {
    match done {
        Ok(done) => Ok(done),
        Err(mut error) => {
            fill_in(call, std::iter::once(&mut error)).await;
            Err(error)
        }
    }
}

/// Fills in the suggestions of all unknown words in these errors, as far as a request gets them.
pub(super) async fn fill_in<'a>(call: &Call, errors: impl Iterator<Item = &'a mut ApiError>) {
    let mut unknown: Vec<_> = errors
        .filter_map(|error| match error {
            ApiError::UnknownWord { unknown } => Some(unknown),
            _ => None,
        })
        .flatten()
        .take(MAX_SUGGESTED_WORDS)
        .collect();
    if unknown.is_empty() {
        return;
    }
    let words: Vec<String> = unknown.iter().map(|unknown| unknown.word.clone()).collect();
    if let Ok(found) = of(call, words).await {
        for (unknown, suggestions) in unknown.iter_mut().zip(found) {
            unknown.suggestions = suggestions;
        }
    }
}

/// For each of these words, words of the model that resemble it.
pub(super) async fn of(call: &Call, words: Vec<String>) -> Result<Vec<Vec<String>>, ApiError> {
    let to_owned = |found: Vec<&str>| found.into_iter().map(str::to_owned).collect();
    let (served, deadline) = (call.served().clone(), call.deadline(None)?);
    let work = Work::of_suggesting(words.len());
    let (memory, account) = (call.service().memory.clone(), call.account().clone());
    let search = move |patience: &Patience| {
        // As many threads as work may have one at a time, so it is not refused.
        let _room = memory.charge(&account, Pool::Requests, BYTES_OF_AUTOMATON);
        let suggest = |word: &String| {
            goes_on(patience)?;
            Ok(to_owned(served.model.words().suggestions(word)))
        };
        words.iter().map(suggest).collect()
    };
    elsewhere(call, work, deadline, search).await
}
