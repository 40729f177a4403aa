//! From bytes to questions: the fields that requests may have and what each must be.
//!
//! [`body`] receives requests with bodies. [`query_string`] reads GET requests, and the options of
//! arrays. [`bodies`], [`comparisons`] and [`embedding`] have the fields of JSON, which [`json`]
//! reads, and so do, for heads, [`classification`], [`expansion`] and [`texts`]. [`arrays`] reads
//! vectors in NumPy's format. All produce [`targets`]; [`limits`] bounds one request. Messages say what was [`found`],
//! and which known name an unknown one may stand for ([`other_names`]). The facade (`kindred`)
//! decides what a question means, and whether its words and options are valid.

pub(super) mod arrays;
pub(super) mod at_most;
pub(super) mod bodies;
pub(super) mod body;
pub(super) mod classification;
pub(super) mod comparisons;
pub(super) mod embedding;
pub(super) mod expansion;
pub(super) mod found;
pub(super) mod json;
pub(super) mod limits;
pub(super) mod multipart;
pub(super) mod negotiation;
pub(super) mod other_names;
pub(super) mod query_string;
pub(super) mod rows;
pub(super) mod sources;
pub(super) mod tables;
pub(super) mod targets;
pub(super) mod texts;

use kindred::options::must_be;
use kindred::question::TEXT_MUST_BE;

use self::at_most::AtMost;
use super::ApiError;

/// What each field must be, in words. The field is the last part of its path.
pub(super) fn expected(field: &str) -> &'static str {
    let name = field.rsplit('.').next().unwrap_or(field);
    let (name, is_element) = name.split_once('[').map_or((name, false), |(name, _)| (name, true));
    match (name, is_element) {
        ("exclude" | "words" | "with_attributes", true) | ("word" | "prefix", _) => "a string",
        ("vector", false) => "a list of numbers, one for each dimension of the model",
        ("vector", true) => "a finite number",
        ("pairs", false) => "a list of 1 to 1024 pairs, such as [\"king\", \"queen\"]",
        ("pairs", true) => {
            "a pair of words or of lists of 1 to 256 words, such as [\"king\", [\"red\", \"green\"]]"
        }
        ("words", false) => "a list of words (3 to 256 to compare, or 1 to 1000 to rank)",
        ("texts", false) => "a list of 1 to 1024 texts",
        ("texts", true) => "a string, or a list of at most 65536 words",
        ("threshold", _) => "a number from 0 to 1",
        ("vectors", false) => "a list of 1 to 4096 lists of numbers, one for each token",
        ("vectors", true) => "a list of numbers",
        ("min_weight", _) => "a number, at least 0",
        ("max_ratio", _) => "a number from 0 to 1",
        ("format", _) => {
            "`terms`, `impacts`, `rank_features`, `sparse_vector`, `qdrant` or `vespa`"
        }
        ("top", _) => "a whole number, at least 1",
        ("head", _) => "the name of a head: GET /heads lists them",
        ("explain_label", _) => "a label of the head: GET /heads lists them",
        ("scores", _) => "true or false",
        ("text", _) => TEXT_MUST_BE,
        ("expression", _) => "a string such as \"king - man + woman\"",
        ("positive" | "negative", false) => {
            "a list whose elements are words or objects {\"word\", \"weight\"}"
        }
        ("positive" | "negative", true) => "a word or an object {\"word\", \"weight\"}",
        ("weight", _) => "a finite number",
        ("limit", _) => option("k"),
        ("with_vector", _) => option("with_vectors"),
        ("Request-Timeout-Ms", _) => option("timeout_ms"),
        ("name", _) => "the name of the table",
        ("dim", _) => "the number of components of a vector, at least 1",
        ("metric", _) => "`cosine` or `dot`",
        ("attributes", _) => {
            "an object of names and types: text, list, integer, number, boolean or date-time, such as \
             {\"price\": \"number\"}"
        }
        ("rows", false) => "a list of 1 to 65536 rows, each an object {\"key\", \"vector\"}",
        ("rows", true) => "an object {\"key\", \"vector\", \"attributes\"}",
        ("keys", false) => "a list of 1 to 65536 keys",
        ("keys" | "delete", true) => "a string",
        ("on_error", _) => "`refuse` or `skip`",
        ("durability", _) => "`synced` or `none`",
        ("after", _) => "the `next` of the page before",
        ("Min-Position", _) => {
            "VERSION/POSITION, as the answer to a change has them, or SOURCE:POSITION of a system that \
             the table follows, such as postgres:0/16B3748"
        }
        ("If-Position", _) => "VERSION/POSITION, as the answer to a change has them",
        ("Source-Position", _) => {
            "SOURCE:POSITION, several parted by commas, such as postgres:0/16B3748 or \
             kafka/items/0:1042"
        }
        ("sources", false) => "a list of 1 to 1000 objects {\"name\", \"position\", \"behind\"}",
        ("sources", true) => "an object {\"name\", \"position\", \"behind\", \"behind_seconds\"}",
        ("position", _) => "a whole number, or an LSN such as \"0/16B3748\", as a string",
        ("behind_seconds", _) => "a number of seconds, at least 0",
        ("delete", false) => "a list of at most 65536 keys",
        ("queries", _) => "a list of 1 to 1024 queries",
        (name, _) => embedding::must_be(name).unwrap_or_else(|| option(name)),
    }
}

fn option(name: &str) -> &'static str {
    must_be(name).unwrap_or("a different value")
}

pub(super) fn invalid(field: &str) -> ApiError {
    ApiError::invalid_value(field, expected(field))
}

/// The words of the field `words`, at least `least`. `purpose` says what they are for.
pub(super) fn list_of_words<const MOST: usize>(
    given: Option<AtMost<String, MOST>>,
    least: usize,
    purpose: &str,
) -> Result<Vec<String>, ApiError> {
    let found = given.as_ref().map(|words| words.found);
    let words = given.and_then(AtMost::all).filter(|words| words.len() >= least);
    words.ok_or_else(|| {
        let must_be = format!("a list of {least} to {MOST} words to {purpose}");
        ApiError::invalid_value("words", must_be).with_found(found.map(|n| n.to_string()))
    })
}

/// The error if not exactly one of these was given.
pub(super) fn not_exactly_one(alternatives: &str) -> ApiError {
    ApiError::invalid_request(format!("give exactly one of {alternatives}"))
}
