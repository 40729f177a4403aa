//! Formulas of several cosines as the device takes them.

use contract::scoring::stretch;
use contract::{QueryVector, Row, Scoring, ScoringVector};

use super::abi::{FORMULA_COLUMNS, FORMULA_WORDS, Formula};
use crate::formulas::Parameters;

/// The sample that gives a formula's first threshold has about one row in this many of the table.
const SAMPLED: usize = 32;
/// A guess of the k-th best score is this part of what the sample leads to expect. Fewer rows are
/// in doubt if it is too low than if it is too high by as much.
const CAUTION: f64 = 0.93;

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

/// The formula for the `k` best of `rows` rows. `first_column` is the index of its first column
/// among the pass's queries.
pub(super) fn formula(scoring: &Scoring, k: usize, rows: usize, first_column: usize) -> Formula {
    let curve = scoring.curve().expect("only certifiable formulas get here");
    assert!(
        curve.cuts.len() <= FORMULA_COLUMNS + 1,
        "a cover of {} half-spaces",
        curve.cuts.len() - 1
    );
    let count = scoring.vectors().len();
    let Parameters { kind, positive, at_c, length } = Parameters::of(scoring);
    let cut = |i: usize| curve.cuts.get(i).copied().unwrap_or_default();
    let [(cut_0, factor_0), (cut_1, factor_1), (cut_2, factor_2), (cut_3, factor_3)] =
        std::array::from_fn(cut);
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
        stretch: CAUTION * stretch([k, rows / SAMPLED], [k, rows]),
        count: count as u32,
        positive,
        kind,
        columns: (curve.cuts.len() - 1) as u32,
        first_column: first_column as u32,
        unused: 0,
    }
}
