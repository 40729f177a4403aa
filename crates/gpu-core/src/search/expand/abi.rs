//! Shared by expansions of texts and their kernels.

use crate::abi::{DevicePointer, DevicePointerMut};
use crate::resident::{LiftView, TableView};
use crate::search::{PassView, QueryHeader, ScoredRow};

abi! {
    name: "search/expand";
    uses: ["resident", "formulas", "search"];
    constants {
        /// The most hits of a text's tokens that a block merges.
        MERGED_HITS: usize = 2048;
        /// The count of a text that had more, or whose terms did not fit the list.
        NOT_MERGED: u32 = u32::MAX;
    }
    data {
        /// Where a text's terms are in the list of all.
        struct TextTerms {
            first: u32,
            /// Or `NOT_MERGED`.
            count: u32,
        }
    }
    params {
        struct TokenQueriesParams {
            table: TableView,
            lift: LiftView,
            /// `[tokens, dim]`.
            vectors: DevicePointer<f32>,
            /// `[tokens]`: the text of each.
            texts: DevicePointer<u32>,
            /// `[texts]`: the least value of a term, above zero.
            leasts: DevicePointer<f64>,
            /// `[tokens with padding]`.
            headers: DevicePointerMut<QueryHeader>,
            tokens: i32,
            /// Of the table.
            tiles: u32,
        }
        struct ListTermsParams {
            pass: PassView,
            /// `[texts, capacity]`: the hits of each text, with their tokens.
            found: DevicePointerMut<ScoredRow>,
            /// `[texts]`: their numbers, which may be higher; zero at first.
            counts: DevicePointerMut<u32>,
            capacity: u32,
            unused: u32,
        }
        struct MergeTermsParams {
            /// `[texts, capacity]`, as the following: see `ListTermsParams`.
            found: DevicePointer<ScoredRow>,
            counts: DevicePointer<u32>,
            /// `[list_capacity]`, in the host's memory: the terms of all texts, those of a text in
            /// the order of rows.
            terms: DevicePointerMut<ScoredRow>,
            /// `[texts]`, in the host's memory.
            ranges: DevicePointerMut<TextTerms>,
            /// `[1]`: the number of terms; zero at first.
            total: DevicePointerMut<u32>,
            capacity: u32,
            list_capacity: u32,
        }
    }
    files {
        "" / expand for Every {
            (128) token_queries: TokenQueriesParams;
            (128) list_terms: ListTermsParams;
            (512) merge_terms: MergeTermsParams;
        }
    }
}
