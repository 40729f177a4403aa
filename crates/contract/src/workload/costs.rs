//! What requests usually cost, as admission counts it.

use std::fmt;
use std::sync::{Arc, OnceLock};

use crate::{Expansion, FullPassQuery, Query, UsualCosts};

/// The costs of the engine behind a queue, once there is one. Clones share it. Until then, and for
/// an engine that does not know its costs, a request costs one for each vector.
#[derive(Clone, Default)]
pub struct Costs {
    of_engine: Arc<OnceLock<Arc<dyn UsualCosts>>>,
    /// One query counts for no more, unless it has more vectors.
    most: usize,
}

impl Costs {
    /// For a queue with n slots. A query counts for at most a sixteenth of them: otherwise a few
    /// callers with one dear query each would fill it.
    pub fn new(capacity: u32) -> Self {
        Self { of_engine: Arc::default(), most: capacity as usize / 16 }
    }

    /// Sets the costs of the engine, if it knows them. Those of the engines that replace it are the
    /// same.
    pub fn set(&self, costs: Option<Arc<dyn UsualCosts>>) {
        if let Some(costs) = costs {
            let _ = self.of_engine.set(costs);
        }
    }

    pub(super) fn search(&self, query: &Query) -> usize {
        let costs = self.of_engine.get();
        self.slots(query.columns().unwrap_or(1), costs.map(|costs| costs.search(query)))
    }

    pub(super) fn full_pass(&self, query: &FullPassQuery) -> usize {
        let costs = self.of_engine.get();
        self.slots(query.scoring.vectors().len(), costs.map(|costs| costs.full_pass(query)))
    }

    /// Slots that the texts of one job take together at most: as many as a large batch of plain
    /// queries. So a few callers with long texts leave room for others. Admission counts a slot for
    /// each request at least, and a long text is thousands of requests.
    pub(super) fn most_of_texts(&self) -> usize {
        (2 * self.most).max(1)
    }

    /// At least 1.
    pub(super) fn token(&self, text: &Expansion) -> usize {
        let costs = self.of_engine.get();
        self.slots(1, costs.map(|costs| costs.token(text)))
    }

    fn slots(&self, vectors: usize, cost: Option<usize>) -> usize {
        cost.map_or(vectors, |cost| cost.min(self.most).max(vectors))
    }
}

impl fmt::Debug for Costs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Costs").field("most", &self.most).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Filter, QueryVector, Row, Scoring, Table};

    struct Known;

    impl UsualCosts for Known {
        fn search(&self, query: &Query) -> usize {
            query.k
        }

        fn full_pass(&self, _: &FullPassQuery) -> usize {
            1_000_000
        }

        fn token(&self, text: &Expansion) -> usize {
            text.top()
        }
    }

    #[test]
    fn a_query_counts_for_what_it_costs_but_never_for_much_of_the_queue() {
        let norms = [1.0, 1.0, 2f64.sqrt()];
        let table = Table::new(&[1.0, 0.0, 0.0, 1.0, 1.0, 1.0], &norms, 2);
        let search =
            |k| Query::new(&table, QueryVector::Row(Row(0)), k, Filter::default()).unwrap();
        let formula = Scoring::three_cos_mul(&table, &[Row(0), Row(1)], &[Row(2)]).unwrap();
        let full_pass = FullPassQuery::new(formula, 1, Filter::default(), Vec::new());
        let of = |costs: &Costs| {
            (costs.search(&search(1)), costs.search(&search(500)), costs.full_pass(&full_pass))
        };

        let costs = Costs::new(800);
        assert_eq!(of(&costs), (1, 1, 3), "before there is an engine: one for each vector");
        costs.set(None);
        assert_eq!(of(&costs), (1, 1, 3));
        let clone = costs.clone();
        clone.set(Some(Arc::new(Known)));
        assert_eq!(of(&costs), (1, 50, 50), "at most a sixteenth of the queue");
        let small = Costs::new(8);
        small.set(Some(Arc::new(Known)));
        assert_eq!(of(&small), (1, 1, 3), "but no less than one for each vector");
    }
}
