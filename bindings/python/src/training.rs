//! For training expanders: the rows of texts' tokens, and the folder of a trained head.

use std::path::PathBuf;

use kindred::heads::{
    Cut, ExpanderDescription, ExpanderWeights, Tokeniser, Tokens, Vocabulary, expander_weights,
    has_no_capitals,
};
use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArray2, PyUntypedArrayMethods};
use pyo3::prelude::*;

use crate::errors;
use crate::model::Model;

/// The most tokens of a text, and the end at which longer ones are cut.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
pub(crate) struct TokensOf {
    limit: usize,
    cut: String,
}

impl TokensOf {
    fn of(self, model: &kindred::Model) -> PyResult<Tokens> {
        let Self { limit, cut } = self;
        if !(1..=Tokens::MOST).contains(&limit) {
            let expected = format!("a whole number from 1 to {}", Tokens::MOST);
            return Err(errors::invalid("limit", &expected));
        }
        let cut = match &cut[..] {
            "start" => Cut::Start,
            "end" => Cut::End,
            _ => return Err(errors::invalid("cut", "`start` or `end`")),
        };
        let lower_case = has_no_capitals(model.store());
        Ok(Tokens { tokeniser: Tokeniser::Unicode, lower_case, limit, cut })
    }
}

/// The rows of each text's tokens, as a head splits texts.
#[pyfunction]
pub(crate) fn token_rows<'py>(
    py: Python<'py>,
    model: &Model,
    texts: Vec<String>,
    tokens: TokensOf,
) -> PyResult<Vec<Bound<'py, PyArray1<i64>>>> {
    let model = model.kindred()?.model();
    let tokens = tokens.of(model)?;
    let rows: Vec<Vec<i64>> = py.detach(|| {
        let vocabulary = Vocabulary::of_model(model.store(), &tokens);
        let rows = |text: &String| vocabulary.tokenise(text).tokens.into_iter();
        texts.iter().map(|text| rows(text).map(|token| i64::from(token.0)).collect()).collect()
    });
    Ok(rows.into_iter().map(|rows| PyArray1::from_vec(py, rows)).collect())
}

/// Writes the folder of an expander: vectors `[terms, dim]`, biases `[terms]` and a projection
/// `[dim, dim]`, of which the last two may be missing. `description` is JSON for people.
#[pyfunction]
#[pyo3(signature = (model, out, weights, words, log1p, tokens, description, replace))]
#[expect(clippy::too_many_arguments, reason = "Python gives them by name")]
pub(crate) fn write_expander(
    py: Python<'_>,
    model: &Model,
    out: PathBuf,
    weights: (
        PyReadonlyArray2<'_, f32>,
        Option<PyReadonlyArray1<'_, f32>>,
        Option<PyReadonlyArray2<'_, f32>>,
    ),
    words: Option<Vec<String>>,
    log1p: bool,
    tokens: TokensOf,
    description: &str,
    replace: bool,
) -> PyResult<()> {
    let model = model.kindred()?.model();
    let tokens = tokens.of(model)?;
    let (vectors, biases, projection) = &weights;
    let [terms, dim] = [vectors.shape()[0], vectors.shape()[1]];
    if dim != model.dim() || terms == 0 {
        let expected = format!("[terms, {}], of the model's components", model.dim());
        return Err(errors::invalid("weight", &expected));
    }
    if projection.as_ref().is_some_and(|projection| projection.shape() != [dim, dim]) {
        return Err(errors::invalid("projection", &format!("a matrix [{dim}, {dim}]")));
    }
    let weights = ExpanderWeights {
        rows: None,
        vectors: Some(vectors.as_slice()?.to_vec()),
        biases: biases.as_ref().map(|all| all.as_slice().map(<[f32]>::to_vec)).transpose()?,
        projection: projection
            .as_ref()
            .map(|all| all.as_slice().map(<[f32]>::to_vec))
            .transpose()?,
    };
    let training = serde_json::from_str(description).map_err(errors::model)?;
    py.detach(|| {
        let words: Option<Vec<&str>> =
            words.as_ref().map(|words| words.iter().map(String::as_str).collect());
        let weights = expander_weights(model.store(), words.as_deref(), terms, weights)
            .map_err(errors::model)?;
        let description = ExpanderDescription {
            log1p,
            training,
            ..ExpanderDescription::of_model(model.store(), tokens)
        };
        let written =
            kindred::heads::write_expander(&out, replace, &description, &weights, model.store());
        written.map_err(errors::model)
    })
}
