//! Compares two answers to one question: do they have the same rows and score bits, and if not,
//! where do they differ?

use kindred::{Answer, Neighbor};

/// The result of a comparison.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Comparison {
    /// The engine's time, in milliseconds.
    pub(super) engine_ms: f64,
    /// The reference's time, in milliseconds.
    pub(super) reference_ms: f64,
    /// The first difference, in full; `None` if there is none.
    pub(super) difference: Option<String>,
}

/// Describes the first difference between the answers.
pub(super) fn difference(answer: &Answer<'_>, reference: &Answer<'_>) -> Option<String> {
    let index = (0..answer.neighbors.len().max(reference.neighbors.len()))
        .find(|&index| !are_same(answer.neighbors.get(index), reference.neighbors.get(index)))?;
    Some(format!(
        "at rank {} it has {}, but the reference has {}",
        index + 1,
        in_full(answer.neighbors.get(index)),
        in_full(reference.neighbors.get(index))
    ))
}

fn are_same(a: Option<&Neighbor<'_>>, b: Option<&Neighbor<'_>>) -> bool {
    let key = |n: &Neighbor<'_>| (n.word.to_string(), n.row, n.score.to_bits());
    a.map(key) == b.map(key)
}

fn in_full(neighbor: Option<&Neighbor<'_>>) -> String {
    neighbor.map_or_else(
        || "nothing".to_owned(),
        |Neighbor { word, score, row, .. }| {
            format!("`{word}` (row {row}, score {score}, bits {:#018x})", score.to_bits())
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(neighbors: &[(&'static str, f64, u32)]) -> Answer<'static> {
        let neighbors = neighbors.iter().map(|&(word, score, row)| Neighbor {
            word: word.into(),
            score,
            row,
            vector: None,
            text: None,
            attributes: None,
            terms: None,
        });
        Answer {
            neighbors: neighbors.collect(),
            used: None,
            skipped: None,
            subwords: None,
            tokens: None,
            inputs: None,
            times: kindred::Times::default(),
            position: None,
        }
    }

    #[test]
    fn one_bit_one_row_and_one_neighbour_more_are_differences() {
        let ours = [("a", 0.3, 1), ("b", 0.1, 2)];
        let next = f64::from_bits(0.1f64.to_bits() + 1);
        assert_eq!(difference(&answer(&ours), &answer(&ours)), None);
        let said = difference(&answer(&ours), &answer(&[("a", 0.3, 1), ("b", next, 2)])).unwrap();
        for part in ["rank 2", "0x3fb999999999999a", "0x3fb999999999999b", "row 2"] {
            assert!(said.contains(part), "{said}");
        }
        let said = difference(&answer(&ours), &answer(&[("a", 0.3, 3)])).unwrap();
        assert!(said.starts_with("at rank 1") && said.contains("row 3"), "{said}");
        let said = difference(&answer(&ours[..1]), &answer(&ours)).unwrap();
        assert!(said.starts_with("at rank 2 it has nothing"), "{said}");
        let zeros = (answer(&[("a", 0.0, 1)]), answer(&[("a", -0.0, 1)]));
        assert!(difference(&zeros.0, &zeros.1).is_some(), "the sign of zero is a bit, too");
    }
}
