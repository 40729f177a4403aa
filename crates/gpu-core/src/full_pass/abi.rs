//! Shared by full passes and their kernels.

use crate::abi::{DevicePointer, DevicePointerMut};
use crate::resident::TableView;

abi! {
    name: "full_pass";
    uses: ["resident", "formulas"];
    constants {
        /// The rows and the vectors whose cosines a warp computes together; for few vectors, twice
        /// and half as many.
        TOGETHER_ROWS: usize = 4;
        TOGETHER_VECTORS: usize = 8;
    }
    data {
        /// A vector that queries compare rows with.
        struct PassVector {
            /// Its norm, above zero.
            norm: f64,
            /// The table's row that it is, or `NOT_A_ROW`.
            row: u32,
            /// If it is no row: its index among the uploaded ones.
            uploaded: u32,
        }
        /// A query of a full pass, for some rows.
        struct PassQuery {
            /// PairDirection: `cos(b, c) - cos(a, c)` and `sqrt(2 - 2 cos(a, b))`.
            at_c: f64,
            length: f64,
            /// Rows with lower scores are no hits; infinity if there are none.
            least_kept: f64,
            /// Rows with lower scores rank before none of the ranked rows; infinity if there are
            /// none.
            least_ranked: f64,
            /// The maximum score; infinity if there is none.
            max_score: f64,
            /// The address of the set of rows that count, by rows; 0 for all rows.
            set: u64,
            /// `FORMULA_COSINE`, `FORMULA_MUL` or `FORMULA_DIRECTION`.
            kind: u32,
            /// 3CosMul: the words that are multiplied, which are the first.
            positive: u32,
            /// The index of the first of its words in the list of words, and their number.
            words: u32,
            count: u32,
            /// Only the first n rows count.
            first_rows: u32,
            /// The index of its best ranked row, and their number.
            ranked: u32,
            ranked_count: u32,
            /// The index of the first row among those scanned that is excluded, and their number.
            excluded: u32,
            excluded_count: u32,
            unused: u32,
        }
        /// A row that is a hit, as far as is known.
        struct FoundRow {
            score: f64,
            row: u32,
            /// The index of the query.
            query: u32,
        }
    }
    params {
        struct RowCosinesParams {
            table: TableView,
            /// `[vectors]`.
            vectors: DevicePointer<PassVector>,
            /// `[uploaded, dim]`.
            uploaded: DevicePointer<f32>,
            /// `[vectors, dim]`.
            widened: DevicePointerMut<f64>,
            /// `[vectors, rows]`: NaN for rows of norm zero.
            cosines: DevicePointerMut<f64>,
            /// The first row, and how many there are.
            first: u32,
            rows: u32,
            vector_count: u32,
            unused: u32,
        }
        struct TakeRowsParams {
            /// `[queries]`.
            queries: DevicePointer<PassQuery>,
            /// The queries' words: indices of vectors.
            words: DevicePointer<u32>,
            /// `[vectors, rows]`.
            cosines: DevicePointer<f64>,
            /// The queries' ranked rows, best first: scores and rows.
            ranked_scores: DevicePointer<f64>,
            ranked_rows: DevicePointer<u32>,
            /// The queries' excluded rows, ascending.
            excluded: DevicePointer<u32>,
            /// For each ranked row, the number of rows that rank before it but not before the one
            /// above it is added.
            counts: DevicePointerMut<u32>,
            /// `[capacity]`: in any order.
            found: DevicePointerMut<FoundRow>,
            /// `[1]`: how many there are, even if not all of them fit.
            found_count: DevicePointerMut<u32>,
            first: u32,
            rows: u32,
            capacity: u32,
            unused: u32,
        }
    }
    files {
        "" / full_pass for Every {
            (128) widen_vectors: RowCosinesParams;
            // As many blocks as have room for their registers.
            (128, 4) row_cosines, few_row_cosines: RowCosinesParams;
            (256) take_rows: TakeRowsParams;
        }
    }
}
