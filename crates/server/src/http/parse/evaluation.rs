//! The JSON body of `/evaluate`: the caller's own test sets, small enough to wait for.

use std::fmt;
use std::marker::PhantomData;

use kindred::Method;
use kindred::evaluation::analogies::Section;
use kindred::evaluation::results::Case;
use kindred::evaluation::similarities::Pair;
use kindred::text::cut;
use serde::Deserialize;
use serde::de::value::MapAccessDeserializer;
use serde::de::{Deserializer, MapAccess, Visitor};

use super::at_most::{AtMost, present};
use super::invalid;
use crate::http::ApiError;
use crate::http::parse::body::JsonBody;

/// Maximum number of sets in one request, of both kinds together.
pub const MAX_SETS: usize = 64;

/// Maximum number of questions in one request, over all analogy sets.
pub const MAX_QUESTIONS: usize = 1000;

/// Maximum number of pairs in one request, over all similarity sets.
pub const MAX_SCORED_PAIRS: usize = 10_000;

/// The body of `POST /evaluate`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::http) struct EvaluateBody {
    #[serde(default, deserialize_with = "present")]
    analogies: Option<AtMost<Object<AnalogySet>, MAX_SETS>>,
    #[serde(default, deserialize_with = "present")]
    similarities: Option<AtMost<Object<SimilaritySet>, MAX_SETS>>,
    #[serde(default, deserialize_with = "present")]
    methods: Option<AtMost<Method, { Method::ALL.len() }>>,
    #[serde(default, deserialize_with = "present")]
    case: Option<Case>,
    #[serde(default, deserialize_with = "present")]
    timeout_ms: Option<u64>,
}

impl<'a> JsonBody<'a> for EvaluateBody {}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct AnalogySet {
    name: String,
    /// Questions of four words each.
    questions: AtMost<AtMost<String, 4>, MAX_QUESTIONS>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SimilaritySet {
    name: String,
    /// Pairs of two words, each with a score.
    pairs: AtMost<AtMost<WordOrScore, 3>, MAX_SCORED_PAIRS>,
}

#[derive(Debug)]
enum WordOrScore {
    Word(String),
    Score(f64),
}

impl<'de> Deserialize<'de> for WordOrScore {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl Visitor<'_> for Either {
            type Value = WordOrScore;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a word or a number")
            }

            fn visit_str<E>(self, word: &str) -> Result<WordOrScore, E> {
                Ok(WordOrScore::Word(word.to_owned()))
            }

            fn visit_f64<E>(self, score: f64) -> Result<WordOrScore, E> {
                Ok(WordOrScore::Score(score))
            }

            fn visit_u64<E>(self, score: u64) -> Result<WordOrScore, E> {
                Ok(WordOrScore::Score(score as f64))
            }

            fn visit_i64<E>(self, score: i64) -> Result<WordOrScore, E> {
                Ok(WordOrScore::Score(score as f64))
            }
        }
        deserializer.deserialize_any(Either)
    }
}

/// A JSON object, and nothing else: serde would also accept a list, field by field.
#[derive(Debug)]
struct Object<T>(T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Only<T>(PhantomData<T>);
        impl<'de, T: Deserialize<'de>> Visitor<'de> for Only<T> {
            type Value = Object<T>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
                T::deserialize(MapAccessDeserializer::new(map)).map(Object)
            }
        }
        deserializer.deserialize_map(Only(PhantomData))
    }
}

/// A request whose form has been checked.
pub(in crate::http) struct Sets {
    pub(in crate::http) analogies: Vec<Section>,
    pub(in crate::http) similarities: Vec<(String, Vec<Pair>)>,
    /// `None`: all that the model's metric has.
    pub(in crate::http) methods: Option<Vec<Method>>,
    pub(in crate::http) case: Case,
}

impl EvaluateBody {
    /// The field `timeout_ms`, unchecked.
    pub(in crate::http) fn timeout_ms(&self) -> Option<u64> {
        self.timeout_ms
    }

    /// Checks the form of the body.
    pub(in crate::http) fn check(self) -> Result<Sets, ApiError> {
        let Self { analogies, similarities, methods, case, timeout_ms: _ } = self;
        let reason = |reason| Err(ApiError::InvalidRequest { reason });
        if analogies.is_none() && similarities.is_none() {
            return reason("give `analogies`, `similarities`, or both".to_owned());
        }
        let number_of_analogies = analogies.as_ref().map(|sets| sets.found);
        if number_of_analogies == Some(0) {
            return Err(invalid("analogies"));
        }
        let number_of_similarities = similarities.as_ref().map(|sets| sets.found);
        if number_of_similarities == Some(0) {
            return Err(invalid("similarities"));
        }
        let sets = number_of_analogies.unwrap_or(0) + number_of_similarities.unwrap_or(0);
        if sets > MAX_SETS {
            return reason(format!(
                "`analogies` and `similarities` have {sets} sets together, but the maximum is {MAX_SETS}; split \
                 them over several requests"
            ));
        }
        let analogies = analogies.and_then(AtMost::all).unwrap_or_default();
        let similarities = similarities.and_then(AtMost::all).unwrap_or_default();
        let questions = analogies.iter().map(|Object(set)| set.questions.found);
        check_number("analogies", "questions", questions.sum(), MAX_QUESTIONS)?;
        let pairs = similarities.iter().map(|Object(set)| set.pairs.found);
        check_number("similarities", "pairs", pairs.sum(), MAX_SCORED_PAIRS)?;
        let mut methods = match methods.map(AtMost::all) {
            None => None,
            Some(Some(methods)) if !methods.is_empty() => Some(methods),
            Some(_) => return Err(invalid("methods")),
        };
        if let Some(methods) = &mut methods {
            methods.sort();
            methods.dedup();
        }
        let analogies =
            analogies.into_iter().enumerate().map(|(set, object)| section(set, object.0));
        let similarities =
            similarities.into_iter().enumerate().map(|(set, object)| scored(set, object.0));
        Ok(Sets {
            analogies: analogies.collect::<Result<_, _>>()?,
            similarities: similarities.collect::<Result<_, _>>()?,
            methods,
            case: case.unwrap_or(Case::Lower),
        })
    }
}

/// Checks the total over all sets. Larger evaluations are for the command, or for several requests.
fn check_number(field: &str, what: &str, found: usize, most: usize) -> Result<(), ApiError> {
    if found <= most {
        return Ok(());
    }
    let expected = format!(
        "sets with at most {most} {what} in total, not {found}; split them over several requests"
    );
    Err(ApiError::InvalidValue { field: field.to_owned(), expected })
}

/// An analogy set has one section, like a file that contains only questions.
fn section(set: usize, AnalogySet { name, questions }: AnalogySet) -> Result<Section, ApiError> {
    let field = format!("analogies[{set}].questions");
    let questions = questions.all().filter(|questions| !questions.is_empty());
    let questions = questions.ok_or_else(|| invalid(&field))?;
    let four = |(index, words): (usize, AtMost<String, 4>)| {
        let words = words.all().and_then(|words| words.try_into().ok());
        words.ok_or_else(|| invalid(&format!("{field}[{index}]")))
    };
    let questions = questions.into_iter().enumerate().map(four).collect::<Result<_, _>>()?;
    Ok(Section::listed(cut(name), questions))
}

fn scored(
    set: usize,
    SimilaritySet { name, pairs }: SimilaritySet,
) -> Result<(String, Vec<Pair>), ApiError> {
    let field = format!("similarities[{set}].pairs");
    let pairs = pairs.all().filter(|pairs| !pairs.is_empty());
    let pairs = pairs.ok_or_else(|| invalid(&field))?;
    let pair = |(index, pair): (usize, AtMost<WordOrScore, 3>)| match pair
        .all()
        .and_then(|pair| <[WordOrScore; 3]>::try_from(pair).ok())
    {
        Some([WordOrScore::Word(one), WordOrScore::Word(other), WordOrScore::Score(score)]) => {
            Ok(Pair { words: [one, other], score })
        }
        _ => Err(invalid(&format!("{field}[{index}]"))),
    };
    let pairs = pairs.into_iter().enumerate().map(pair).collect::<Result<_, _>>()?;
    Ok((cut(name), pairs))
}
