//! How good a classifier is on texts whose labels are known.

use contract::classifier::calibration_error;
use model_store::head::Probabilities;
use serde::Serialize;

use super::best;
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
    /// The share of texts whose most probable label is right; with sigmoids, of those whose labels
    /// are all right.
    pub accuracy: f64,
    /// F1 over all texts and labels together.
    pub micro_f1: f64,
    /// The mean of the labels' F1.
    pub macro_f1: f64,
    /// By how much probabilities and shares of right answers differ, over ten groups of answers of
    /// similar probability. An answer is a text's most probable label; with sigmoids, each label of
    /// each text.
    pub calibration_error: f64,
    /// Each label by itself, in the head's order.
    pub labels: Vec<OfLabel>,
    /// The number of texts with each label (outer) that were given each label (inner); empty with
    /// sigmoids.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub confusion: Vec<Vec<usize>>,
}

/// A label by itself.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct OfLabel {
    /// The label.
    pub label: String,
    /// The number of texts that have it.
    pub texts: usize,
    /// The number of texts that were given it.
    pub given: usize,
    /// The share of right ones among the texts that were given it; 0 if there are none.
    pub precision: f64,
    /// The share of the texts that have it that were given it; 0 if there are none.
    pub recall: f64,
    /// The harmonic mean of precision and recall.
    pub f1: f64,
}

/// A text that was classified.
#[derive(Debug, Clone, PartialEq)]
pub struct Judged {
    /// The classes that are right, each once: one with softmax.
    pub right: Vec<usize>,
    /// The probability of each class; `None` for a text without a known word.
    pub probabilities: Option<Vec<f64>>,
}

/// A class is given to a text at this probability, if any number of classes can be right.
const GIVEN_FROM: f64 = 0.5;

fn share(part: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { part as f64 / of as f64 }
}

/// How often a class was right, and given.
#[derive(Clone, Copy, Default)]
struct Counts {
    texts: usize,
    given: usize,
    both: usize,
}

impl Counts {
    /// The harmonic mean of precision and recall; 0 if there are neither.
    fn f1(self) -> f64 {
        share(2 * self.both, self.texts + self.given)
    }
}

impl Classification {
    /// From what a head answered.
    ///
    /// # Panics
    /// If a class has no label, or with softmax a text has not one class that is right.
    pub fn new(
        set: &str,
        labels: &[String],
        probabilities: Probabilities,
        judged: &[Judged],
    ) -> Self {
        let mut counts = vec![Counts::default(); labels.len()];
        let mut confusion = Vec::new();
        if probabilities == Probabilities::Softmax {
            confusion = vec![vec![0; labels.len()]; labels.len()];
        }
        let (mut answers, mut all_right, mut unanswered) = (Vec::new(), 0, 0);
        for Judged { right, probabilities: own } in judged {
            right.iter().for_each(|&class| counts[class].texts += 1);
            let Some(own) = own else {
                unanswered += 1;
                continue;
            };
            let given: Vec<usize> = match probabilities {
                Probabilities::Softmax => {
                    let ([right], given) = (&right[..], best(own)) else {
                        panic!("one class is right");
                    };
                    confusion[*right][given] += 1;
                    answers.push((own[given], *right == given));
                    vec![given]
                }
                Probabilities::Sigmoid => {
                    answers.extend(
                        own.iter().enumerate().map(|(class, &p)| (p, right.contains(&class))),
                    );
                    (0..own.len()).filter(|&class| own[class] >= GIVEN_FROM).collect()
                }
            };
            let both = given.iter().filter(|class| right.contains(class));
            all_right +=
                usize::from(both.clone().count() == right.len() && given.len() == right.len());
            both.for_each(|&class| counts[class].both += 1);
            given.iter().for_each(|&class| counts[class].given += 1);
        }
        let total = |of: fn(&Counts) -> usize| counts.iter().map(of).sum::<usize>();
        let of_label = |(label, counts): (&String, &Counts)| OfLabel {
            label: label.clone(),
            texts: counts.texts,
            given: counts.given,
            precision: share(counts.both, counts.given),
            recall: share(counts.both, counts.texts),
            f1: counts.f1(),
        };
        Self {
            set: set.to_owned(),
            texts: judged.len(),
            unanswered,
            accuracy: share(all_right, judged.len()),
            micro_f1: share(2 * total(|one| one.both), total(|one| one.texts + one.given)),
            macro_f1: counts.iter().map(|one| one.f1()).sum::<f64>() / labels.len() as f64,
            calibration_error: calibration_error(&answers, CALIBRATION_BINS),
            labels: labels.iter().zip(&counts).map(of_label).collect(),
            confusion,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels() -> [String; 3] {
        ["a", "b", "c"].map(str::to_owned)
    }

    fn judged(right: &[usize], probabilities: Option<[f64; 3]>) -> Judged {
        Judged { right: right.to_vec(), probabilities: probabilities.map(Vec::from) }
    }

    fn of(found: &Classification, index: usize) -> (usize, usize, f64, f64, f64) {
        let OfLabel { texts, given, precision, recall, f1, .. } = found.labels[index];
        (texts, given, precision, recall, f1)
    }

    #[test]
    fn precision_recall_and_confusion() {
        let answers = [
            judged(&[0], Some([0.9, 0.1, 0.0])),
            judged(&[0], Some([0.4, 0.6, 0.0])),
            judged(&[1], Some([0.1, 0.8, 0.1])),
            judged(&[1], None),
            judged(&[0], Some([0.7, 0.3, 0.0])),
        ];
        let found = Classification::new("set", &labels(), Probabilities::Softmax, &answers);
        assert_eq!((found.texts, found.unanswered, found.accuracy), (5, 1, 0.6));
        assert_eq!(found.confusion, [[2, 1, 0], [0, 1, 0], [0, 0, 0]]);
        assert_eq!(of(&found, 0), (3, 2, 1.0, 2.0 / 3.0, 0.8));
        assert_eq!(of(&found, 1), (2, 2, 0.5, 0.5, 0.5));
        assert_eq!(of(&found, 2), (0, 0, 0.0, 0.0, 0.0));
        assert_eq!((found.micro_f1, found.macro_f1), (6.0 / 9.0, (0.8 + 0.5) / 3.0));
        let empty = Classification::new("empty", &labels(), Probabilities::Softmax, &[]);
        assert_eq!(empty.accuracy, 0.0);
    }

    #[test]
    fn any_number_of_labels() {
        let answers = [
            judged(&[0, 1], Some([0.9, 0.5, 0.1])),
            judged(&[], Some([0.1, 0.2, 0.3])),
            judged(&[2], Some([0.8, 0.2, 0.9])),
            judged(&[1], None),
        ];
        let found = Classification::new("set", &labels(), Probabilities::Sigmoid, &answers);
        assert_eq!((found.texts, found.unanswered, found.accuracy), (4, 1, 0.5));
        assert_eq!(of(&found, 0), (1, 2, 0.5, 1.0, 2.0 / 3.0));
        assert_eq!(of(&found, 1), (2, 1, 1.0, 0.5, 2.0 / 3.0));
        assert_eq!(of(&found, 2), (1, 1, 1.0, 1.0, 1.0));
        assert_eq!(found.micro_f1, 6.0 / 8.0);
        assert!(found.confusion.is_empty());
        // Nine answers: each label of each text that has one.
        assert!(found.calibration_error > 0.0);
    }
}
