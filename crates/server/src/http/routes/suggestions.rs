//! Spelling suggestions for the words of a request.

use kindred::rows::Rows;
use kindred::{Error, MAX_SUGGESTED_WORDS, UnknownWord};

use crate::http::ApiError;
use crate::http::offload::{Cost, check_deadline, offloaded};
use crate::models::Call;
use crate::workers::Cancellation;
use scheduler::account::Pool;

/// Memory of the automaton that finds words similar to one word, while it works. It grows with the
/// word; this is for the longest word.
const BYTES_OF_AUTOMATON: u64 = 3 << 20;

/// The result of a stage. Adds suggestions for unknown words to its error.
pub(super) async fn with<T>(call: &Call, done: Result<T, ApiError>) -> Result<T, ApiError> {
    match done {
        Ok(done) => Ok(done),
        Err(mut error) => {
            fill_in(call, std::iter::once(&mut error)).await;
            Err(error)
        }
    }
}

/// Adds suggestions to the unknown words in these errors, up to the maximum per request.
pub(super) async fn fill_in<'a>(call: &Call, errors: impl Iterator<Item = &'a mut ApiError>) {
    let mut unknown: Vec<_> =
        errors.filter_map(unknown_words).flatten().take(MAX_SUGGESTED_WORDS).collect();
    if unknown.is_empty() {
        return;
    }
    let words: Vec<UnknownWord> = unknown.iter().map(|unknown| (*unknown).clone()).collect();
    if let Ok(found) = for_each(call, words, UnknownWord::suggested).await {
        for (unknown, found) in unknown.iter_mut().zip(found) {
            **unknown = found;
        }
    }
}

/// The unknown words that an error is about.
fn unknown_words(error: &mut ApiError) -> Option<&mut Vec<UnknownWord>> {
    match error {
        ApiError::Question(Error::UnknownWord { unknown }) => Some(unknown),
        ApiError::InItem { error, .. } | ApiError::InField { error, .. } => unknown_words(error),
        _ => None,
    }
}

/// For each of these words, similar words of the model.
pub(super) async fn of(call: &Call, words: Vec<String>) -> Result<Vec<Vec<String>>, ApiError> {
    let suggest = |word: String, rows: &dyn Rows| -> Vec<String> {
        rows.suggestions(&word).into_iter().map(str::to_owned).collect()
    };
    for_each(call, words, suggest).await
}

/// A suggestion for each of these words.
async fn for_each<W: Send + 'static, T: Send + 'static>(
    call: &Call,
    words: Vec<W>,
    suggest: fn(W, &dyn Rows) -> T,
) -> Result<Vec<T>, ApiError> {
    let (same, deadline) = (call.clone(), call.deadline(None)?);
    let cost = Cost::suggestions(words.len());
    let (memory, account) = (call.service().memory.clone(), call.account.clone());
    let search = move |cancellation: &Cancellation| {
        // Not refused, because there are only as many of these as there are worker threads.
        let _room = memory.charge(&account, Pool::Requests, BYTES_OF_AUTOMATON);
        let suggest = |word: W| {
            check_deadline(cancellation)?;
            Ok(suggest(word, same.rows()))
        };
        words.into_iter().map(suggest).collect()
    };
    offloaded(call, cost, deadline, search).await
}
