//! The vector of a text: the one that a search for the text has.

use contract::{Metric, Row, score};
use encoders::{RowsAre, StaticModel, TextEncoder, TextTokens, text_encoder};

use super::formula::Formula;
use super::look_up::{NO_SUBWORDS, rule};
use super::notes::{Notes, each_row_once};
use super::text::{Most, sum_of_text};
use super::with_added::{WithAdded, extended};
use crate::Error;
use crate::added::AddedWords;
use crate::options::Unknown;
use crate::rows::Rows;

/// Most words of a text that are read where texts are sums of words; 8192 tokens are the most that
/// others read of one.
pub const MAX_ENCODED_WORDS: usize = 8192;

/// What a text must be where nothing makes vectors of texts.
const NO_ENCODER: &str = "left out: the model has no encoder of texts, because its vectors were made \
                          elsewhere (`kindred prepare --vectors`); encode the text with the program that \
                          made them, and send its `vector`";

/// How texts become vectors.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct EncodeOptions {
    /// The treatment of unknown words. Without it, they are left out, or have the vectors of their
    /// subwords if the model has these; unknown tokens are treated as the model's own program does.
    pub unknown: Option<Unknown>,
    /// Whether the vector is divided by its length. Without it, it is the one that a search for the
    /// text has; `false` is the mean of the words' or tokens' vectors.
    pub normalize: Option<bool>,
    /// Whether a text that is too long is cut, which the answer says; otherwise it is an error.
    /// Without it, it is cut.
    pub truncate: Option<bool>,
}

/// A text as a vector.
#[derive(Debug)]
pub struct EncodedText {
    /// By the model's encoder, or the sum of the unit vectors of its words, with their weights if these
    /// have any, divided by its norm; under the metric `dot` the sum of their vectors. `[dim]`. The same
    /// bits in every batch and on every engine.
    pub vector: Vec<f32>,
    /// Which words were used, left out, or have the vectors of their subwords.
    pub notes: Notes,
    /// How many words or tokens it is made of.
    pub tokens: TextTokens,
}

/// The vector of a text.
///
/// # Errors
/// [`Error::InvalidValue`] if the text has no words or tokens, or is too long and must not be cut;
/// [`Error::UnknownWord`] if the model has none of its words; [`Error::ZeroQuery`] if a word or the
/// vector is zero; [`Error::NotFinite`] if its numbers are too large.
pub fn encode(model: &dyn Rows, text: &str, options: &EncodeOptions) -> Result<EncodedText, Error> {
    let mut encoded = match encoder(model)? {
        Some(TextEncoder::Static(encoder)) => of_tokens(encoder, model, text, options)?,
        Some(TextEncoder::Words(words)) => {
            let found = encode(&**words, text, options).map_err(Error::of_encoder)?;
            // Its rows are those of another model.
            EncodedText { notes: Notes { used: None, ..found.notes }, ..found }
        }
        Some(TextEncoder::Elsewhere) => return Err(Error::invalid("text", NO_ENCODER)),
        None => of_words(model, text, options)?,
    };
    let TextTokens { count, truncated, .. } = encoded.tokens;
    if truncated && options.truncate == Some(false) {
        let must_be = format!(
            "a text of which all is read, and only {count} tokens of it are; shorten it, or set \
             `truncate` to true"
        );
        return Err(Error::invalid("text", &must_be));
    }
    if options.normalize == Some(true) {
        normalize(&mut encoded.vector)?;
    }
    Ok(encoded)
}

/// The encoder of a model's texts; `None` if these are sums of words.
///
/// # Errors
/// [`Error::Internal`] if it is damaged: whoever opens the model has checked it.
pub(super) fn encoder(model: &dyn Rows) -> Result<Option<&TextEncoder>, Error> {
    text_encoder(model.base()).map_err(|_| Error::Internal)
}

/// The row of a token. Where all tokens became rows, its id is its row, and needs no look-up.
fn row_of_token(model: &dyn Rows, id: u32, token: &str) -> Option<Row> {
    let row = Row(id);
    let is_there = row.index() < model.count() && model.is_live(row) && model.word(row) == token;
    if is_there { Some(row) } else { model.row_of(token) }
}

/// The vector of a text by a static model.
fn of_tokens(
    encoder: &StaticModel,
    model: &dyn Rows,
    text: &str,
    options: &EncodeOptions,
) -> Result<EncodedText, Error> {
    if options.unknown == Some(Unknown::Subwords) {
        return Err(Error::invalid("unknown", NO_SUBWORDS));
    }
    let (ids, tokens) = encoder.tokens(text);
    let TextTokens { count, unknown, .. } = tokens;
    if count == 0 {
        let has = match unknown {
            0 => "it has none".to_owned(),
            unknown => format!("all {unknown} of it are unknown"),
        };
        let must_be = format!("a text with a token of the model, and {has}");
        return Err(Error::invalid("text", &must_be));
    }
    if options.unknown == Some(Unknown::Error) && unknown > 0 {
        let must_be = format!(
            "a text of tokens that the model has, and {unknown} of it are unknown; with `unknown` \
             left out, they are treated as the model's own program does"
        );
        return Err(Error::invalid("text", &must_be));
    }
    let mut vector = vec![0.0; encoder.dim()];
    encoder.mean(&ids, options.normalize.unwrap_or(encoder.normalizes()), &mut vector);
    if !vector.iter().all(|component| component.is_finite()) {
        let reason = "the vector of the text is not finite, because the model's rows have numbers \
                      beyond those of float32";
        return Err(Error::NotFinite { reason: reason.to_owned() });
    }
    if model.metric() == Metric::Cosine && vector.iter().all(|component| *component == 0.0) {
        let reason = "the vector of the text is zero, because the rows of its tokens cancel out";
        return Err(Error::ZeroQuery { reason: reason.to_owned() });
    }
    let used = (encoder.rows_are() == RowsAre::Tokens).then(|| {
        let tokens = encoder.tokeniser().tokens();
        let row = |id: &u32| row_of_token(model, *id, &tokens[*id as usize]);
        each_row_once(&ids.iter().filter_map(row).collect::<Vec<_>>())
    });
    Ok(EncodedText { vector, notes: Notes { used, ..Notes::default() }, tokens })
}

/// Divides by the length. What has it already, but for the last bits, stays as it is.
fn normalize(vector: &mut [f32]) -> Result<(), Error> {
    let length = score::norm(vector);
    if length == 0.0 {
        let reason = "the vector of the text is zero, so it has no direction";
        return Err(Error::ZeroQuery { reason: reason.to_owned() });
    }
    if (length - 1.0).abs() > f64::from(f32::EPSILON) {
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) / length) as f32);
    }
    Ok(())
}

/// The vector of a text that is a sum of words.
fn of_words(model: &dyn Rows, text: &str, options: &EncodeOptions) -> Result<EncodedText, Error> {
    let unknown = rule(model, options.unknown, Unknown::Skip)?;
    let mut added = AddedWords::default();
    let sum = sum_of_text(model, text, Most::OrCut(MAX_ENCODED_WORDS), unknown, &mut added)?;
    let Formula::Vector { vector, norm, .. } = &sum.formula else { return Err(Error::Internal) };
    let with = WithAdded { rows: model, added: &added };
    let mut vector = vector.components_in(&with.table()).to_vec();
    debug_assert_eq!(vector.len(), model.dim(), "components of a vector");
    let count = sum.rows.len();
    if options.normalize == Some(false) {
        let of_one = norm / count as f64;
        vector.iter_mut().for_each(|x| *x = (f64::from(*x) * of_one) as f32);
    }
    let tokens = TextTokens { count, unknown: sum.unknown_words, truncated: sum.is_cut };
    let notes = Notes {
        used: Some(sum.used),
        skipped: (unknown == Unknown::Skip).then_some(sum.skipped),
        subwords: added.told(extended(model), false),
        tokens: None,
    };
    Ok(EncodedText { vector, notes, tokens })
}
