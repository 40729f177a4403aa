//! Formulas of several cosines as the device takes them.

use contract::scoring::stretch;
use contract::{QueryVector, Row, Scoring, ScoringVector};

use super::abi::{
    FORMULA_COLUMNS, FORMULA_DIRECTION, FORMULA_GUESS_RANK, FORMULA_GUESS_ROWS, FORMULA_MUL,
    FORMULA_WORDS, Formula,
};

/// The best scores are about this much further from the center than those of normal deviates, on synthetic and on
/// English vectors.
const TAIL: f64 = 1.12;

/// Whether a formula has a cover, few words, and all of its vectors are rows.
pub(super) fn is_certifiable(scoring: &Scoring) -> bool {
    let vectors = scoring.vectors();
    let suits =
        vectors.len() <= FORMULA_WORDS && vectors.iter().all(|vector| row(vector).is_some());
    suits && scoring.cover_len().is_some()
}

/// The words of a certifiable formula.
pub(super) fn words(scoring: &Scoring) -> impl ExactSizeIterator<Item = Row> {
    scoring.vectors().iter().map(|vector| row(vector).expect("only certifiable formulas get here"))
}

fn row(vector: &ScoringVector) -> Option<Row> {
    match vector.vector {
        QueryVector::Row(row) => Some(row),
        QueryVector::Components(_) => None,
    }
}

/// The formula for the `k` best of `rows` rows. `words` is the index of its first word in the uploaded list.
pub(super) fn formula(scoring: &Scoring, k: usize, rows: usize, words: usize) -> Formula {
    let curve = scoring.curve().expect("only certifiable formulas get here");
    assert!(
        curve.cuts.len() <= FORMULA_COLUMNS + 1,
        "a cover of {} half-spaces",
        curve.cuts.len() - 1
    );
    let count = scoring.vectors().len();
    let [at_c, length] = scoring.direction().unwrap_or_default();
    let cut = |i: usize| curve.cuts.get(i).copied().unwrap_or_default();
    let [(cut_0, factor_0), (cut_1, factor_1), (cut_2, factor_2), (cut_3, factor_3)] =
        std::array::from_fn(cut);
    let sampled = [FORMULA_GUESS_RANK, FORMULA_GUESS_ROWS];
    Formula {
        offset: curve.offset,
        power: curve.power,
        cut_0,
        cut_1,
        cut_2,
        cut_3,
        factor_0,
        factor_1,
        factor_2,
        factor_3,
        weight: curve.x[0],
        at_c,
        length,
        likely: curve.likely,
        center: scoring.center(),
        stretch: TAIL * stretch(sampled, [k, rows]),
        words: words as u32,
        count: count as u32,
        positive: scoring.factors().unwrap_or(0) as u32,
        kind: if scoring.direction().is_some() { FORMULA_DIRECTION } else { FORMULA_MUL },
        columns: (curve.cuts.len() - 1) as u32,
        unused: 0,
    }
}
