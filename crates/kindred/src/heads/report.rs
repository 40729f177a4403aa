//! How good a classifier is on texts whose labels are known.

use contract::classifier::calibration_error;
use serde::Serialize;

use super::training::CALIBRATION_BINS;

/// The answers of a classifier, against the labels that are right.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Classification {
    /// The name of the texts.
    pub set: String,
    /// The number of texts.
    pub texts: usize,
    /// Texts without a word that the model has. They have no answer, and count as wrong.
    pub unanswered: usize,
    /// The share of texts whose most probable label is right.
    pub accuracy: f64,
    /// By how much probabilities and shares of right answers differ, over ten groups of texts of similar probability.
    pub calibration_error: f64,
    /// Each label by itself, in the head's order.
    pub labels: Vec<OfLabel>,
    /// The number of texts with each label (outer) that were given each label (inner).
    pub confusion: Vec<Vec<usize>>,
}

/// A label by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfLabel {
    /// The label.
    pub label: String,
    /// The number of texts that have it.
    pub texts: usize,
    /// The share of right ones among the texts that were given it; 0 if there are none.
    pub precision: f64,
    /// The share of the texts that have it that were given it; 0 if there are none.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
}

impl Classification {
    /// From the class that is right for each text, and the answer: a class with its probability, or none.
    ///
    /// # Panics
    /// If a class has no label.
    pub fn new(set: &str, labels: &[String], answers: &[(usize, Option<(usize, f64)>)]) -> Self {
        let mut confusion = vec![vec![0; labels.len()]; labels.len()];
        let mut supports = vec![0usize; labels.len()];
        let mut judged = Vec::new();
        for &(right, answer) in answers {
            supports[right] += 1;
            if let Some((given, probability)) = answer {
                confusion[right][given] += 1;
                judged.push((probability, right == given));
            }
        }
        let share = |part: usize, of: usize| if of == 0 { 0.0 } else { part as f64 / of as f64 };
        let of_label = |(class, label): (usize, &String)| {
            let right = confusion[class][class];
            let given = confusion.iter().map(|row| row[class]).sum();
            let (precision, recall) = (share(right, given), share(right, supports[class]));
            let sum = precision + recall;
            let f1 = if sum > 0.0 { 2.0 * precision * recall / sum } else { 0.0 };
            OfLabel { label: label.clone(), texts: supports[class], precision, recall, f1 }
        };
        Self {
            set: set.to_owned(),
            texts: answers.len(),
            unanswered: answers.len() - judged.len(),
            accuracy: share(judged.iter().filter(|(_, right)| *right).count(), answers.len()),
            calibration_error: calibration_error(&judged, CALIBRATION_BINS),
            labels: labels.iter().enumerate().map(of_label).collect(),
            confusion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn precision_recall_and_confusion() {
        let labels = ["a", "b", "c"].map(str::to_owned);
        let answers = [
            (0, Some((0, 0.9))),
            (0, Some((1, 0.6))),
            (1, Some((1, 0.8))),
            (1, None),
            (0, Some((0, 0.7))),
        ];
        let found = Classification::new("set", &labels, &answers);
        assert_eq!((found.texts, found.unanswered, found.accuracy), (5, 1, 0.6));
        assert_eq!(found.confusion, [[2, 1, 0], [0, 1, 0], [0, 0, 0]]);
        let of = |index: usize| {
            let OfLabel { texts, precision, recall, f1, .. } = found.labels[index];
            (texts, precision, recall, f1)
        };
        assert_eq!(of(0), (3, 1.0, 2.0 / 3.0, 0.8));
        assert_eq!(of(1), (2, 0.5, 0.5, 0.5));
        assert_eq!(of(2), (0, 0.0, 0.0, 0.0));
        assert_eq!(Classification::new("empty", &labels, &[]).accuracy, 0.0);
    }
}
