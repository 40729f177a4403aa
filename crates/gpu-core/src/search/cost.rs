//! What requests cost on a device: which pass takes them, and how long it takes.

use contract::certificate::MAX_DIM;
use contract::{
    COMPONENTS_OF_A_VECTOR, Expansion, Filter, FullPassQuery, Query, Ranking, RowSetParts,
    UsualCosts,
};

use super::abi::MAX_K;
use super::demand::{fits_device_lists, fits_list, is_formula, slots};
use super::formula;
use super::plan::Class;
use crate::ranks::Ranks;

/// The cost of a query that reads every float32 row, in plain queries of a full batch, if certified
/// passes answer those. A rough estimate.
const EXACT_COST: usize = 48;

/// The cost of a query for ranks that the device counts: 2.0 ms for 128, where 1,024 plain queries
/// take 1.25.
const RANK_COST: usize = 13;

/// The cost of a vector in a full pass, and of the pass: 0.23 ms each, as long as 190 plain queries
/// of a full batch.
const VECTOR_COST: usize = 190;

/// What of an engine decides the cost of a request.
#[derive(Debug, Clone, Copy)]
pub(super) struct DeviceCosts {
    /// Whether there are certified passes at all.
    pub(super) certifies: bool,
    /// Whether the device counts ranks.
    pub(super) counts_ranks: bool,
    /// Components of the table.
    pub(super) components: usize,
}

impl DeviceCosts {
    /// The class of the certified pass that can answer this query, if there is one.
    pub(super) fn certified_class(&self, query: &Query) -> Option<Class> {
        // Without `..`, so that a new field does not compile until it is decided whether certified
        // passes support it.
        let Filter { rows: ref set, min_score: _, max_score: _ } = query.filter;
        // Excluded rows must fit the list; all else is in the header.
        let RowSetParts { limit: _, bitmap: _, excluded: _ } = set.parts();
        let class = Class::of(query.k).filter(|_| self.certifies && fits_list(query));
        match query.ranking() {
            // A zero query has no certificate: under the metric `dot` all rows may have the same
            // score.
            Ranking::Vector(vector) => class.filter(|_| vector.norm > 0.0),
            Ranking::Formula(scoring) => {
                class.filter(|&class| class != Class::Large && formula::is_certifiable(scoring))
            }
        }
    }

    /// Whether a certified pass lists the hits of this query: all that reach its minimum score, as
    /// they may be more than a device ranks.
    pub(super) fn lists_hits(&self, query: &Query) -> bool {
        let is_for_all = query.k > MAX_K && query.filter.min_score.is_some();
        let has_norm = matches!(query.ranking(), Ranking::Vector(vector) if vector.norm > 0.0);
        self.certifies && is_for_all && has_norm && fits_list(query)
    }

    fn counts(&self, query: &FullPassQuery) -> bool {
        // Too many ranked rows take a full pass.
        self.counts_ranks && Ranks::takes(query, query.ranked.len())
    }

    /// The cost of a query in a full pass, in components; see `FullPassEngine::full_pass_cost`.
    pub(super) fn full_pass_components(&self, query: &FullPassQuery) -> usize {
        let vectors = query.scoring.vectors().len() * COMPONENTS_OF_A_VECTOR;
        vectors + if self.counts(query) { vectors } else { query.row_work() }
    }
}

impl UsualCosts for DeviceCosts {
    fn search(&self, query: &Query) -> usize {
        // If the query does not fit the lists, the pass only finds out that the host must rank it.
        if query.k == 0 || !fits_device_lists(query) {
            return 1;
        }
        match self.certified_class(query) {
            Some(class) => slots(query) * class.cost(),
            // Nor does the device score formulas without a certificate.
            None if is_formula(query) || !self.certifies => 1,
            None => EXACT_COST,
        }
    }

    fn token(&self, text: &Expansion) -> usize {
        let terms = text.expander().terms().table();
        let searched = match Class::of(text.top()) {
            _ if terms.dim() >= MAX_DIM => EXACT_COST,
            class => class.map_or(1, Class::cost),
        };
        let components = terms.rows().saturating_mul(terms.dim());
        let of_searches = searched.saturating_mul(components);
        of_searches.div_ceil(self.components.max(1)).max(1)
    }

    fn full_pass(&self, query: &FullPassQuery) -> usize {
        if self.counts(query) {
            RANK_COST
        } else {
            (1 + query.scoring.vectors().len()) * VECTOR_COST
        }
    }
}
