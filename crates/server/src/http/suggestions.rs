//! Spelling suggestions for the unknown words of a request.

use std::sync::Arc;

use super::ApiError;
use super::state::AppState;

/// Unknown words of one request that get suggestions.
const MAX_WORDS: usize = 16;

/// Fills in the suggestions of all unknown words in these errors, as far as a request gets them. The
/// search runs off the async threads, a bounded number at a time.
pub(super) async fn fill_in<'a>(
    state: &Arc<AppState>,
    errors: impl Iterator<Item = &'a mut ApiError>,
) {
    let mut unknown: Vec<_> = errors
        .filter_map(|error| match error {
            ApiError::UnknownWord { unknown } => Some(unknown),
            _ => None,
        })
        .flatten()
        .take(MAX_WORDS)
        .collect();
    if unknown.is_empty() {
        return;
    }
    let words: Vec<String> = unknown.iter().map(|unknown| unknown.word.clone()).collect();
    // Closed never; so this waits for its turn.
    let Ok(turn) = state.suggestion_searches.clone().acquire_owned().await else { return };
    let searched = state.clone();
    let found = tokio::task::spawn_blocking(move || {
        let _turn = turn;
        let model_words = searched.model.words();
        let to_owned = |found: Vec<&str>| found.into_iter().map(str::to_owned).collect();
        words.iter().map(|word| to_owned(model_words.suggestions(word))).collect::<Vec<Vec<_>>>()
    });
    if let Ok(found) = found.await {
        for (unknown, suggestions) in unknown.iter_mut().zip(found) {
            unknown.suggestions = suggestions;
        }
    }
}
