//! Heads that need no folder: the classifier of the built-in model, and the terms of a model under
//! the metric `dot`.

use std::sync::Arc;

use super::{STOP_WORDS, plain_expander};
use contract::Metric;
use model_store::ModelStore;
use model_store::head::{About, Cut, Expander, Head, HeadError, Tokeniser, Tokens};

/// `models/demo/HEAD_CARD.md` says how it was made.
const DESCRIPTION: &[u8] = include_bytes!("../../../models/demo/sentiment/head.json");
const WEIGHTS: &[u8] = include_bytes!("../../../models/demo/sentiment/weights.safetensors");

/// Its name.
pub const BUILT_IN: &str = "sentiment";

/// The built-in head if this is the built-in model; `None` for other models.
pub fn built_in(model: &ModelStore) -> Option<Arc<Head>> {
    match Head::from_bytes(BUILT_IN, DESCRIPTION, WEIGHTS, model) {
        Ok(head) => Some(Arc::new(head)),
        Err(HeadError::OtherModel { .. }) => None,
        Err(error) => {
            tracing::warn!("there is no built-in head: {error}");
            None
        }
    }
}

/// The reach of the built-in model's expander: half of the frequent words have 20 terms or more.
pub const BUILT_IN_REACH: f64 = -0.015;

/// The expander that a model has without a folder, and its name: of a model under the metric `dot`
/// its own words as terms, with its vectors and biases; of the built-in model a plain one without
/// stop words; `None` for other models.
pub fn own_expander(model: &Arc<ModelStore>) -> Option<(&'static str, Arc<Expander>)> {
    let (name, expander) = match model.metric() {
        Metric::Dot => ("terms", Expander::of_model(model, usual_tokens(model))),
        Metric::Cosine => {
            let made_for: About = serde_json::from_slice(DESCRIPTION).ok()?;
            if !made_for.fits(model) {
                return None;
            }
            let tokens = usual_tokens(model);
            let (description, weights) = plain_expander(model, tokens, BUILT_IN_REACH, &STOP_WORDS);
            ("nearby", Expander::from_memory(description, weights, model))
        }
    };
    match expander {
        Ok(expander) => Some((name, Arc::new(expander))),
        Err(error) => {
            tracing::warn!("there is no expander of the model's own words: {error}");
            None
        }
    }
}

/// How texts become tokens, unless others are asked for.
fn usual_tokens(model: &ModelStore) -> Tokens {
    let (tokeniser, cut) = (Tokeniser::Unicode, Cut::End);
    Tokens { tokeniser, lower_case: has_no_capitals(model), limit: 512, cut }
}

/// Whether no word of a model has a capital, so that texts for it are taken in lower case.
pub fn has_no_capitals(model: &ModelStore) -> bool {
    !model.words().any_byte(|byte| byte.is_ascii_uppercase())
}
