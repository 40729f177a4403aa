//! Formulas of several cosines, as kernels compute them.

pub(crate) mod abi;

use contract::Scoring;

use abi::{FORMULA_COSINE, FORMULA_DIRECTION, FORMULA_MUL};

/// What decides a score besides cosines. Fields without a meaning for the kind are zero.
#[derive(Debug, Clone, Copy)]
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
        let [at_c, length] = scoring.direction().unwrap_or_default();
        let kind = match scoring.direction() {
            Some(_) => FORMULA_DIRECTION,
            None if scoring.single_vector().is_some() => FORMULA_COSINE,
            None => FORMULA_MUL,
        };
        Self { kind, positive: scoring.factors().unwrap_or(0) as u32, at_c, length }
    }
}
