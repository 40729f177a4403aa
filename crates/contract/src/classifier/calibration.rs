//! How far probabilities can be trusted, and the temperature that makes them more so.
//!
//! Source: Guo et al. 2017, "On Calibration of Modern Neural Networks".

use super::{sigmoid, softmax};

/// Temperatures between which the best is sought, and how near it is found.
const TEMPERATURES: [f64; 2] = [0.05, 20.0];
const NEAR: f64 = 1e-6;

/// The temperature at which these class scores make the classes that are right most likely, if each
/// text has one. 1 if there are no texts.
///
/// # Panics
/// If there are not as many texts as classes, or a class has no score.
pub fn fit_temperature(scores: &[Vec<f64>], classes: &[usize]) -> f64 {
    assert_eq!(scores.len(), classes.len(), "a class for each text");
    if scores.is_empty() {
        return 1.0;
    }
    best_temperature(|temperature| {
        let of = |(scores, &class): (&Vec<f64>, &usize)| {
            -softmax(scores, temperature)[class].max(f64::MIN_POSITIVE).ln()
        };
        scores.iter().zip(classes).map(of).sum()
    })
}

/// The temperature at which these class scores make it most likely which texts have which class, if
/// each class has a sigmoid. Each pair is a class's score, and whether the text has the class. 1 if
/// there are none.
pub fn fit_sigmoid_temperature(pairs: &[(f64, bool)]) -> f64 {
    if pairs.is_empty() {
        return 1.0;
    }
    best_temperature(|temperature| {
        let of = |&(score, has): &(f64, bool)| {
            let towards = if has { score } else { -score };
            -sigmoid(towards, temperature).max(f64::MIN_POSITIVE).ln()
        };
        pairs.iter().map(of).sum()
    })
}

/// The temperature with the least loss. Both losses are convex in the inverse of the temperature,
/// so there is one minimum: golden sections find it.
fn best_temperature(loss: impl Fn(f64) -> f64) -> f64 {
    let loss = |logarithm: f64| loss(logarithm.exp());
    let golden = (5f64.sqrt() - 1.0) / 2.0;
    let [mut low, mut high] = TEMPERATURES.map(f64::ln);
    let mut inner = [high - golden * (high - low), low + golden * (high - low)];
    let mut losses = inner.map(loss);
    while high - low > NEAR {
        if losses[0] <= losses[1] {
            high = inner[1];
            inner = [high - golden * (high - low), inner[0]];
            losses = [loss(inner[0]), losses[0]];
        } else {
            low = inner[0];
            inner = [inner[1], low + golden * (high - low)];
            losses = [losses[1], loss(inner[1])];
        }
    }
    f64::midpoint(low, high).exp()
}

/// The expected calibration error: by how much, on average, the share of right answers differs from
/// the probability that was given, over `bins` groups of answers of similar probability, all of the
/// same size. `answers` are probabilities that were given, and whether what they were given to was
/// right: each text's most probable class, or with sigmoids each class of each text. 0 if there are
/// none.
///
/// # Panics
/// If there are no bins.
pub fn calibration_error(answers: &[(f64, bool)], bins: usize) -> f64 {
    assert!(bins > 0, "at least one bin");
    let mut answers = answers.to_vec();
    answers.sort_by(|a, b| a.0.total_cmp(&b.0));
    let all = answers.len();
    let of_bin = |bin: usize| {
        let own = &answers[bin * all / bins..(bin + 1) * all / bins];
        let given: f64 = own.iter().map(|answer| answer.0).sum();
        let right = own.iter().filter(|answer| answer.1).count();
        (given - right as f64).abs()
    };
    (0..bins).map(of_bin).sum::<f64>() / all.max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_error_is_the_mean_distance_from_the_share_of_right_answers() {
        // Half of those given 0.9 are right, and all of those given 0.6.
        let answers = [(0.9, true), (0.6, true), (0.9, false), (0.6, true)];
        assert!((calibration_error(&answers, 2) - 0.4).abs() < 1e-12);
        // In one bin, what is too low makes up for what is too high.
        assert!(calibration_error(&answers, 1).abs() < 1e-12);
        assert_eq!((calibration_error(&[], 10), calibration_error(&[(1.0, true)], 10)), (0.0, 0.0));
    }

    #[test]
    fn scores_that_are_too_sure_are_made_less_so() {
        // The same scores every time, and right three times of four: the probability should be 3/4.
        let scores = vec![vec![6.0, 0.0]; 4];
        let temperature = fit_temperature(&scores, &[0, 0, 0, 1]);
        assert!((softmax(&scores[0], temperature)[0] - 0.75).abs() < 1e-4, "{temperature}");
        assert_eq!(fit_temperature(&[], &[]), 1.0);
        let pairs = [(6.0, true), (6.0, true), (-6.0, true), (6.0, true)];
        let temperature = fit_sigmoid_temperature(&pairs);
        assert!((sigmoid(6.0, temperature) - 0.75).abs() < 1e-4, "{temperature}");
        assert_eq!(fit_sigmoid_temperature(&[]), 1.0);
    }

    proptest! {
        #[test]
        fn no_other_temperature_is_much_better(
            texts in prop::collection::vec((prop::collection::vec(-4.0f64..4.0, 3), 0usize..3), 1..20),
            other in 0.06f64..19.0,
        ) {
            let (scores, classes): (Vec<Vec<f64>>, Vec<usize>) = texts.into_iter().unzip();
            let loss = |temperature: f64| -> f64 {
                let all = scores.iter().zip(&classes);
                all.map(|(scores, &class)| -softmax(scores, temperature)[class].ln()).sum()
            };
            let found = fit_temperature(&scores, &classes);
            prop_assert!(loss(found) <= loss(other) + 1e-6, "{found} {other}");
        }
    }
}
