//! How much one request may ask for, over all its queries.

use kindred::contract::Ranking;
use kindred::question::{Checked, Prepared};

use crate::http::ApiError;

/// Maximum number of queries in one request.
pub const MAX_QUERIES: usize = 1024;
/// Maximum number of neighbours in one answer, with those before its `offset`: the sum of `k` and
/// `offset` over its queries.
pub const MAX_RESULTS: usize = 65_536;
/// Maximum number of vector components in one answer: the sum of `k` × dimension over its queries
/// with vectors.
pub const MAX_VECTOR_COMPONENTS: usize = 4_000_000;
/// Maximum number of words in all queries of one request with 3CosMul or PairDirection: a full pass
/// compares each row with each word.
pub const MAX_FULL_PASS_WORDS: usize = 4096;
/// Maximum number of explained terms in one answer: the sum of neighbours × words over its queries.
pub const MAX_EXPLAINED_TERMS: usize = 100_000;
/// Maximum number of pairs in one request.
pub const MAX_PAIRS: usize = 1024;

/// Maximum number of texts in one request.
pub(in crate::http) const MAX_TEXTS: usize = 1024;
/// Maximum number of texts in one request in the form of another service.
pub(in crate::http) const MAX_INPUTS: usize = 2048;
/// Maximum number of texts in one request with `explain`: each is computed again, by the formula.
pub(in crate::http) const MAX_EXPLAINED_TEXTS: usize = 16;
/// Maximum number of words of a text whose words are given one by one.
pub(in crate::http) const MAX_TOKENS: usize = 65_536;
/// Maximum number of tokens of a text whose vectors come with the request.
pub(in crate::http) const MAX_TOKEN_VECTORS: usize = 4096;

/// Checks that a request asks for at most `most`; `what` says what it asks for.
pub(in crate::http) fn at_most(
    found: usize,
    most: usize,
    what: impl FnOnce(usize) -> String,
) -> Result<(), ApiError> {
    if found <= most {
        return Ok(());
    }
    let reason = format!("{}; the maximum is {most}", what(found));
    Err(ApiError::TooManyResults { reason })
}

/// Checks the size of one answer, over all its queries.
pub(in crate::http) fn check_size<'a>(
    options: impl Iterator<Item = &'a Checked> + Clone,
    dim: usize,
) -> Result<(), ApiError> {
    let results = options.clone().map(Checked::depth).sum();
    at_most(results, MAX_RESULTS, |found| {
        let of = match options.clone().all(|options| options.offset == 0) {
            true => "`k`",
            false => "`k` + `offset`",
        };
        format!("the sum of {of} over all queries is {found}")
    })?;
    let with_vectors = options.filter(|options| options.included.vectors);
    let components = with_vectors.map(|options| options.k * dim).sum();
    at_most(components, MAX_VECTOR_COMPONENTS, |found| {
        format!("the sum of `k` × {dim} over all queries with vectors is {found}")
    })
}

/// Checks how much work the words of all queries add to one request.
pub(in crate::http) fn check_work<'a>(
    prepared: impl Iterator<Item = (&'a Prepared, &'a Checked)> + Clone,
) -> Result<(), ApiError> {
    let compared = prepared.clone().map(|(prepared, _)| match prepared.query.ranking() {
        Ranking::Vector(_) => 0,
        Ranking::Formula(scoring) => scoring.vectors().len(),
    });
    at_most(compared.sum(), MAX_FULL_PASS_WORDS, |found| {
        format!("the queries with `3cosmul` or `pairdirection` have {found} words together")
    })?;
    let terms = prepared.filter_map(|(prepared, options)| {
        Some(prepared.explanation.as_ref()?.formula.number_of_words() * options.k)
    });
    at_most(terms.sum(), MAX_EXPLAINED_TERMS, |found| {
        format!("the sum of `k` × words over all queries with `explain` is {found}")
    })
}
