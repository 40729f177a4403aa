//! Fits probabilities to texts that training did not learn from.

use std::sync::Arc;

use contract::Precision;
use contract::classifier::{
    calibration_error, fit_sigmoid_temperature, fit_temperature, sigmoid, softmax,
};
use cpu_core::InstructionSet;
use cpu_core::heads::Diverged;
use cpu_core::heads::classify::{Classifying, PRODUCTS_MEMORY};
use model_store::ModelStore;
use model_store::head::{Head, Parts, Probabilities, Token};
use rayon::ThreadPool;

use super::TrainError;
use super::texts::Encoded;
use crate::best;

/// The groups of texts of which calibration errors are means.
pub const CALIBRATION_BINS: usize = 10;

/// A temperature that is fitted to fewer texts says little of others.
const LEAST_TO_FIT: usize = 50;

/// Fits the temperature on the deciding texts. Returns the calibration error before and after.
pub(super) fn calibrate(
    model: &Arc<ModelStore>,
    parts: &mut Parts,
    texts: &[Encoded],
    epoch: usize,
    pool: &ThreadPool,
) -> Result<[f64; 2], TrainError> {
    let head = Arc::new(Head::from_memory(parts, model)?);
    let (precision, instructions) = (Precision::Float32, InstructionSet::best());
    let mut engine = Classifying::new(head, PRODUCTS_MEMORY, precision, instructions);
    let tokens: Vec<&[Token]> = texts.iter().map(|one| &one.tokens[..]).collect();
    let scores = engine.scores(&model.table(), &tokens, pool);
    if !scores.iter().all(|score| score.is_finite()) {
        return Err(Diverged { epoch }.into());
    }
    let scores: Vec<Vec<f64>> =
        scores.chunks_exact(parts.description.labels.len()).map(<[f64]>::to_vec).collect();
    let few = scores.len() < LEAST_TO_FIT;
    let (fitted, errors) = match parts.description.probabilities {
        Probabilities::Softmax => {
            let classes: Vec<usize> = texts.iter().map(|one| one.classes[0] as usize).collect();
            let fitted = if few { 1.0 } else { fit_temperature(&scores, &classes) };
            let error = |temperature| {
                let answer = |(scores, &class): (&Vec<f64>, &usize)| {
                    let probabilities = softmax(scores, temperature);
                    let best = best(&probabilities);
                    (probabilities[best], best == class)
                };
                let answers: Vec<_> = scores.iter().zip(&classes).map(answer).collect();
                calibration_error(&answers, CALIBRATION_BINS)
            };
            (fitted, [error(1.0), error(fitted)])
        }
        Probabilities::Sigmoid => {
            let of_text = |(scores, one): (&Vec<f64>, &Encoded)| -> Vec<(f64, bool)> {
                let pair = |(class, &score): (u32, &f64)| (score, one.classes.contains(&class));
                (0..).zip(scores).map(pair).collect()
            };
            let pairs: Vec<(f64, bool)> = scores.iter().zip(texts).flat_map(of_text).collect();
            let fitted = if few { 1.0 } else { fit_sigmoid_temperature(&pairs) };
            let error = |temperature| {
                let answer = |&(score, has): &(f64, bool)| (sigmoid(score, temperature), has);
                let answers: Vec<_> = pairs.iter().map(answer).collect();
                calibration_error(&answers, CALIBRATION_BINS)
            };
            (fitted, [error(1.0), error(fitted)])
        }
    };
    parts.description.temperature = fitted;
    Ok(errors)
}
