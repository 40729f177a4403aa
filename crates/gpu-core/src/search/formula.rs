//! Formulas of several cosines as the device takes them.

use contract::scoring::stretch;
use contract::{QueryVector, Row, Scoring};

use super::abi::{
    FORMULA_COLUMNS, FORMULA_DIRECTION, FORMULA_GUESS_RANK, FORMULA_GUESS_ROWS, FORMULA_MUL,
    Formula,
};

/// The best scores are about this much further from the center than those of normal deviates, on synthetic and on
/// English vectors.
const TAIL: f64 = 1.12;

/// The words of a formula, if all of its vectors are rows and it has a cover.
pub(super) fn words(scoring: &Scoring) -> Option<Vec<Row>> {
    let columns = scoring.cover_len()?;
    assert!(columns <= FORMULA_COLUMNS, "a cover of {columns} half-spaces");
    let row = |vector: &QueryVector| match vector {
        QueryVector::Row(row) => Some(*row),
        QueryVector::Components(_) => None,
    };
    scoring.vectors().iter().map(|vector| row(&vector.vector)).collect()
}

/// The formula for the `k` best of `rows` rows. `words` is the index of its first word in the uploaded list.
pub(super) fn formula(scoring: &Scoring, k: usize, rows: usize, words: usize) -> Formula {
    let curve = scoring.curve().expect("only formulas with a cover get here");
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
        slot: 0,
        vector: 0,
        unused: 0,
    }
}
