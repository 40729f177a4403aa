//! Arguments of `kindred.Model`'s methods, as Python gives them.

use kindred::heads::WantedTerms;
use kindred::question::{Side, WordWithWeight};
use kindred::{Error, Settings, Target};
use numpy::PyReadonlyArray1;
use pyo3::prelude::*;

use crate::errors;

/// How a model's engine is made.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct How {
    device: String,
    placement: String,
    threads: usize,
    keep_tables: bool,
}

impl How {
    pub(crate) fn settings(self) -> PyResult<Settings> {
        Ok(Settings {
            device: self.device.parse().map_err(|why: String| errors::model(why))?,
            placement: self.placement.parse().map_err(|why: String| errors::model(why))?,
            threads: self.threads,
            keep_tables: self.keep_tables,
            ..Settings::default()
        })
    }
}

/// A word, or an expression made of words with weights.
#[derive(FromPyObject)]
pub(crate) enum Expression {
    Text(String),
    Terms(Vec<(String, f64)>),
}

impl Expression {
    pub(crate) fn target(self) -> Result<Target, Error> {
        match self {
            Self::Text(text) => Target::expression(&text),
            Self::Terms(terms) => {
                Target::check_terms(terms.len())?;
                let term = |(word, weight)| WordWithWeight { word, weight };
                Ok(Target::Words(terms.into_iter().map(term).collect()))
            }
        }
    }
}

/// What ranks are asked among the neighbours of.
#[derive(FromPyObject)]
pub(crate) enum Query<'py> {
    Word(String),
    Vector(PyReadonlyArray1<'py, f32>),
    Terms(Vec<(String, f64)>),
}

impl Query<'_> {
    pub(crate) fn target(self) -> PyResult<Target> {
        match self {
            Self::Word(word) => Ok(Target::Word(word)),
            Self::Vector(vector) => Ok(vector.as_slice()?.into()),
            Self::Terms(terms) => Expression::Terms(terms).target().map_err(errors::of_question),
        }
    }
}

/// One word, or several.
#[derive(FromPyObject)]
pub(crate) enum Words {
    One(String),
    Several(Vec<String>),
}

impl From<Words> for Side {
    fn from(words: Words) -> Self {
        match words {
            Words::One(word) => Self::Word(word),
            Words::Several(words) => Self::Set(words),
        }
    }
}

/// Which terms are wanted: at most this number, of at least this weight, of at least this part of
/// the largest weight, that meet this filter.
#[derive(FromPyObject)]
pub(crate) struct Wanted(usize, f64, f64, Option<String>);

impl From<Wanted> for WantedTerms {
    fn from(Wanted(top, min_weight, max_ratio, filter): Wanted) -> Self {
        Self { top, min_weight, max_ratio, filter }
    }
}
