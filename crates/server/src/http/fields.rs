//! The fields that requests may have, what each must be, and the bounds of one request.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use serde::de::{self, MapAccess, SeqAccess, Visitor, value::MapAccessDeserializer};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use super::ApiError;
use super::body::JsonBody;
use kindred::expression::MAX_TERMS;
use kindred::method::Method;

/// Most neighbours that one query may ask for.
pub const MAX_K: u64 = 1000;
/// Neighbours of a query that does not say how many.
pub(super) const DEFAULT_K: u64 = 10;
/// Most words that one query may leave out.
pub const MAX_EXCLUDED: usize = 1000;
/// Most queries in one request.
pub const MAX_QUERIES: usize = 1024;
/// Most neighbours in one answer: the sum of `k` over its queries.
pub const MAX_RESULTS: usize = 65_536;
/// Most vector components in one answer: the sum of `k` × dimension over its queries with vectors.
pub const MAX_VECTOR_COMPONENTS: usize = 4_000_000;

/// What becomes of words that the model does not have, where several are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(try_from = "String")]
pub(super) enum Unknown {
    /// They fail the query.
    Error,
    /// They are left out, and the answer says which.
    Skip,
}

impl FromStr for Unknown {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "error" => Ok(Self::Error),
            "skip" => Ok(Self::Skip),
            _ => Err(expected("unknown")),
        }
    }
}

impl TryFrom<String> for Unknown {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

/// A list of which no more than the first n elements are kept, however long it is: a request with more is
/// refused, and takes no memory for them.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct AtMost<T, const MOST: usize> {
    kept: Vec<T>,
    /// How many elements it has.
    pub(super) found: usize,
}

impl<T, const MOST: usize> AtMost<T, MOST> {
    /// All of its elements, if they are no more than there may be.
    pub(super) fn all(self) -> Option<Vec<T>> {
        (self.found <= MOST).then_some(self.kept)
    }

    /// Its first elements.
    pub(super) fn first(&self) -> &[T] {
        &self.kept
    }
}

impl<T, const MOST: usize> From<Vec<T>> for AtMost<T, MOST> {
    fn from(mut kept: Vec<T>) -> Self {
        let found = kept.len();
        kept.truncate(MOST);
        Self { kept, found }
    }
}

impl<'de, T: Deserialize<'de>, const MOST: usize> Deserialize<'de> for AtMost<T, MOST> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Elements<T, const MOST: usize>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>, const MOST: usize> Visitor<'de> for Elements<T, MOST> {
            type Value = AtMost<T, MOST>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a list")
            }

            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<Self::Value, A::Error> {
                let mut kept = Vec::new();
                while kept.len() < MOST {
                    match list.next_element()? {
                        Some(element) => kept.push(element),
                        None => break,
                    }
                }
                let mut found = kept.len();
                // Still elements of the right kind, so that the same fault is found as in a short list.
                while found >= MOST && list.next_element::<T>()?.is_some() {
                    found += 1;
                }
                Ok(AtMost { kept, found })
            }
        }
        deserializer.deserialize_seq(Elements(PhantomData))
    }
}

/// Words that one query leaves out.
pub(super) type ExcludedWords = AtMost<String, MAX_EXCLUDED>;

/// Words with weights of one side of an analogy.
pub(super) type WeightedWords = AtMost<WordWithWeight, MAX_TERMS>;

/// Hands the options that all searches share to another macro, behind what that one gets besides.
macro_rules! with_options {
    ($then:ident! { $($rest:tt)* }) => {
        $then! {
            $($rest)*
            options {
                k: u64,
                exclude: ExcludedWords,
                include_query: bool,
                vocab_limit: u64,
                min_score: f64,
                with_vectors: bool,
                unknown: Unknown,
                fold_case: bool,
                explain: bool,
                timeout_ms: u64
            }
        }
    };
}

macro_rules! raw_options {
    (options { $($option:ident: $type:ty),+ }) => {
        /// The options, as far as a request gives them.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub(super) struct RawOptions {
            $(pub(super) $option: Option<$type>,)+
            /// Of analogies alone.
            pub(super) method: Option<Method>,
        }

        /// The names of those that all searches have.
        pub(super) const OPTIONS: &[&str] = &[$(stringify!($option)),+];
    };
}

with_options! { raw_options! {} }

/// What each field must be, in words. The last part of a path is its field.
pub(super) fn expected(field: &str) -> &'static str {
    let name = field.rsplit('.').next().unwrap_or(field);
    let (name, is_element) = name.split_once('[').map_or((name, false), |(name, _)| (name, true));
    match (name, is_element) {
        ("pairs", false) if is_scored(field) => {
            "a list of pairs with their scores, such as [[\"king\", \"queen\", 8.5]]"
        }
        ("pairs", true) if is_scored(field) => {
            "two words and their score, such as [\"king\", \"queen\", 8.5]"
        }
        ("vocab_limit", _) => "a whole number of at least 1 (the number of rows to search)",
        ("min_score", _) => "a finite number (cosines are from -1 to 1)",
        ("k" | "limit", _) => "a whole number from 1 to 1000",
        ("include_query" | "with_vectors" | "with_vector" | "fold_case" | "explain", _) => {
            "true or false"
        }
        ("exclude", false) => "a list of at most 1000 words",
        ("exclude" | "words", true) | ("word" | "prefix", _) => "a string",
        ("vector", false) => "a list of numbers, one for each dimension of the model",
        ("vector", true) => "a finite number",
        ("pairs", false) => "a list of 1 to 1024 pairs, such as [\"king\", \"queen\"]",
        ("pairs", true) => {
            "a pair of words or of lists of 1 to 256 words, such as [\"king\", [\"red\", \"green\"]]"
        }
        ("words", false) => "a list of words (3 to 256 to compare, or 1 to 1000 to rank)",
        ("text", _) => "a string of 1 to 256 words, such as \"a quick brown fox\"",
        ("expression", _) => "a string such as \"king - man + woman\"",
        ("positive" | "negative", false) => {
            "a list whose elements are words or objects {\"word\", \"weight\"}"
        }
        ("positive" | "negative", true) => "a word or an object {\"word\", \"weight\"}",
        ("weight", _) => "a finite number",
        ("method", _) | ("methods", true) => "`3cosadd`, `3cosmul` or `pairdirection`",
        ("methods", false) => "a list of 1 to 3 of `3cosadd`, `3cosmul` and `pairdirection`",
        ("case", _) => "`lower` or `exact`",
        ("name", _) => "a string",
        ("analogies" | "similarities", false) => "a list of 1 to 64 sets",
        ("analogies", true) => "an object with `name` and `questions`",
        ("similarities", true) => "an object with `name` and `pairs`",
        ("questions", false) => {
            "a list of questions, such as [[\"man\", \"king\", \"woman\", \"queen\"]]"
        }
        ("questions", true) => {
            "four words, the answer last, such as [\"man\", \"king\", \"woman\", \"queen\"]"
        }
        ("unknown", _) => "`error` or `skip`",
        ("timeout_ms" | "Request-Timeout-Ms", _) => "a whole number of milliseconds, at least 1",
        ("queries", _) => "a list of 1 to 1024 queries",
        _ => "a different value",
    }
}

/// Whether a field belongs to a set of similarities, whose pairs have scores.
fn is_scored(field: &str) -> bool {
    field.starts_with("similarities[")
}

pub(super) fn invalid(field: &str) -> ApiError {
    ApiError::InvalidValue { field: field.to_owned(), expected: expected(field).to_owned() }
}

/// What a request's fields say that a query is for.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum RawTarget {
    Nearest {
        word: Option<String>,
        vector: Option<Vec<f64>>,
        text: Option<String>,
    },
    Analogy {
        expression: Option<String>,
        positive: Option<WeightedWords>,
        negative: Option<WeightedWords>,
    },
}

/// A request's body, or one item of its `queries`, taken apart.
#[derive(Debug, Clone)]
pub(super) struct Parts<'a> {
    pub(super) target: RawTarget,
    pub(super) queries: Option<AtMost<&'a RawValue, MAX_QUERIES>>,
    pub(super) options: RawOptions,
}

/// A field that may be absent but, if it is there, is not null.
pub(super) fn present<'de, D: Deserializer<'de>, T: Deserialize<'de>>(
    d: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(d).map(Some)
}

/// Defines the JSON body of a search: its own fields, `queries`, and the options.
macro_rules! body {
    (
        $(#[$meta:meta])* $name:ident { $($field:ident: $type:ty),+ } => $target:ident
        $(of_its_own { $own:ident: $own_type:ty })?
        options { $($option:ident: $option_type:ty),+ }
    ) => {
        $(#[$meta])*
        #[derive(Debug, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub(super) struct $name<'a> {
            $(#[serde(default, deserialize_with = "present")] $field: Option<$type>,)+
            #[serde(default, deserialize_with = "present", borrow)]
            queries: Option<AtMost<&'a RawValue, MAX_QUERIES>>,
            $(#[serde(default, deserialize_with = "present")] $own: Option<$own_type>,)?
            $(#[serde(default, deserialize_with = "present")] $option: Option<$option_type>,)+
        }

        impl<'a> From<$name<'a>> for Parts<'a> {
            fn from(body: $name<'a>) -> Self {
                let $name { $($field,)+ queries, $($own,)? $($option,)+ } = body;
                Self {
                    target: RawTarget::$target { $($field),+ },
                    queries,
                    options: RawOptions { $($option,)+ method: None$(.or($own))? },
                }
            }
        }
    };
}

with_options! { body! {
    /// What `POST /nearest` takes.
    NearestBody { word: String, vector: Vec<f64>, text: String } => Nearest
} }

with_options! { body! {
    /// What `POST /analogy` takes.
    AnalogyBody {
        expression: String, positive: WeightedWords, negative: WeightedWords
    } => Analogy
    of_its_own { method: Method }
} }

impl<'a> JsonBody<'a> for NearestBody<'a> {}

impl<'a> JsonBody<'a> for AnalogyBody<'a> {
    fn expression(&self) -> Option<&str> {
        self.expression.as_deref()
    }
}

/// An element of `positive` or `negative`: a word, or a word and its weight.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WordWithWeight {
    pub(super) word: String,
    pub(super) weight: f64,
}

impl<'de> Deserialize<'de> for WordWithWeight {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Both {
            word: String,
            #[serde(default = "one")]
            weight: f64,
        }
        fn one() -> f64 {
            1.0
        }

        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = WordWithWeight;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or an object {\"word\", \"weight\"}")
            }

            fn visit_str<E: de::Error>(self, word: &str) -> Result<WordWithWeight, E> {
                Ok(WordWithWeight { word: word.to_owned(), weight: 1.0 })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<WordWithWeight, A::Error> {
                let Both { word, weight } = Both::deserialize(MapAccessDeserializer::new(map))?;
                Ok(WordWithWeight { word, weight })
            }
        }
        deserializer.deserialize_any(Either)
    }
}
