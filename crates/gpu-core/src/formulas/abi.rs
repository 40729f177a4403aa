//! Shared by all kernels that compute formulas of several cosines.

abi! {
    name: "formulas";
    uses: [];
    constants {
        /// The kinds of formula: 3CosMul; PairDirection, of three words; the cosine itself.
        FORMULA_MUL: u32 = 0;
        FORMULA_DIRECTION: u32 = 1;
        FORMULA_COSINE: u32 = 2;
        /// 3CosMul's epsilon.
        FORMULA_EPSILON: f64 = contract::scoring::EPSILON;
        /// The smallest squared distance of a row from PairDirection's `c` at which the row has a
        /// score.
        FORMULA_LEAST_SQUARE: f64 = contract::scoring::LEAST_SQUARE;
    }
    files {}
}
