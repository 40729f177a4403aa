//! Formulas of several cosines, as kernels compute them.

pub(crate) mod abi;

use contract::Scoring;
use contract::scoring::Formula;

use abi::{FORMULA_COSINE, FORMULA_DIRECTION, FORMULA_MUL};

/// What decides a score besides cosines. Fields without a meaning for the kind are zero.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Parameters {
    /// `FORMULA_COSINE`, `FORMULA_MUL` or `FORMULA_DIRECTION`.
    pub(crate) kind: u32,
    /// 3CosMul: the words that are multiplied, which are the first.
    pub(crate) positive: u32,
    /// PairDirection: `cos(b, c) - cos(a, c)` and `sqrt(2 - 2 cos(a, b))`.
    pub(crate) at_c: f64,
    pub(crate) length: f64,
}

impl Parameters {
    pub(crate) fn of(scoring: &Scoring) -> Self {
        match scoring.formula() {
            Formula::Cosine => Self { kind: FORMULA_COSINE, ..Self::default() },
            Formula::ThreeCosMul { positive } => {
                Self { kind: FORMULA_MUL, positive: positive as u32, ..Self::default() }
            }
            Formula::PairDirection { at_c, length } => {
                Self { kind: FORMULA_DIRECTION, at_c, length, positive: 0 }
            }
        }
    }
}
