//! Formulas of several cosines as the device takes them.

use contract::scoring::stretch;
use contract::{QueryVector, Row, Scoring, ScoringVector};

use super::abi::{
    FORMULA_COLUMNS, FORMULA_DIRECTION, FORMULA_GUESS_RANK, FORMULA_GUESS_ROWS, FORMULA_MUL,
    Formula,
};

/// The best scores are about this much further from the center than those of normal deviates, on synthetic and on
/// English vectors.
const TAIL: f64 = 1.12;

/// The most words of a formula in a certified pass: scoring its candidates takes time for each word, and the other
/// queries of the pass wait.
const MAX_WORDS: usize = 16;

/// Whether a formula has a cover, few words, and all of its vectors are rows.
pub(super) fn is_certifiable(scoring: &Scoring) -> bool {
    let vectors = scoring.vectors();
    let suits = vectors.len() <= MAX_WORDS && vectors.iter().all(|vector| row(vector).is_some());
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

/// A formula's first thresholds are those of one in this many groups of the sample. The more, the fewer candidates the
/// first phase of a scan has; but a formula whose first threshold was too high has no certificate. So a phase of few
/// rows should find at least some dozens for each hit.
pub(super) fn groups_for_threshold(scoring: &Scoring, k: usize, rows: usize) -> u32 {
    let most = if scoring.direction().is_some() { 4 } else { 12 };
    (rows / (2000 * k.max(1))).clamp(1, most) as u32
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
