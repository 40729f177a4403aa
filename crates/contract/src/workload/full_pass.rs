//! Full passes as a workload: cut into slices, for one can take as long as thousands of searches.

use std::collections::HashSet;

use super::{Costs, PassError, Slice, Workload, retain};
use crate::{
    COMPONENTS_OF_A_VECTOR, Engine, FullPassAnswer, FullPassPart, FullPassQuery, QueryVector, Row,
};

/// The part of a pass that one caller gets while other callers wait.
const PART_BESIDE_OTHERS: usize = 4;

/// Full passes. Costs are counted in components that each row is multiplied with.
#[derive(Debug, Clone, Default)]
pub struct FullPass {
    /// What a full pass costs at admission.
    pub costs: Costs,
}

/// A full pass between two slices.
#[derive(Default)]
pub struct UnderWay {
    parts: Vec<FullPassPart>,
    /// The row where the next slice begins.
    from: usize,
}

impl Workload for FullPass {
    type Device = dyn Engine;
    type Request = FullPassQuery;
    type Response = FullPassAnswer;
    /// The rows that are vectors of the queries gathered so far. Each is multiplied once, however
    /// many queries use it.
    type Gathered = HashSet<Row>;
    type Pass = UnderWay;

    fn name(&self) -> &'static str {
        "a full pass"
    }

    fn slots(&self, query: &FullPassQuery) -> usize {
        self.costs.full_pass(query)
    }

    fn cost(&self, engine: &Self::Device, query: &FullPassQuery) -> usize {
        engine.full_pass_cost(query)
    }

    /// A query with more vectors gets a pass of its own.
    fn room(&self, engine: &Self::Device, _: usize) -> usize {
        engine.full_pass_vectors() * COMPONENTS_OF_A_VECTOR
    }

    fn max_room_per_caller(&self, largest: usize) -> usize {
        largest / PART_BESIDE_OTHERS
    }

    fn gather(
        &self,
        gathered: &mut HashSet<Row>,
        query: &FullPassQuery,
        cost: usize,
        left: usize,
    ) -> Option<usize> {
        let vectors = query.scoring.vectors().iter().map(|asked| &asked.vector);
        let new: Vec<Option<Row>> = vectors
            .filter_map(|vector| match vector {
                QueryVector::Row(row) if gathered.contains(row) => None,
                QueryVector::Row(row) => Some(Some(*row)),
                QueryVector::Components(_) => Some(None),
            })
            .collect();
        let shared = query.scoring.vectors().len() - new.len();
        let adds = cost.saturating_sub(shared * COMPONENTS_OF_A_VECTOR);
        if adds > left {
            return None;
        }
        gathered.extend(new.into_iter().flatten());
        Some(adds)
    }

    fn run(
        &self,
        engine: &mut Self::Device,
        queries: &[&FullPassQuery],
        pass: &mut UnderWay,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<FullPassAnswer>>, PassError> {
        if pass.parts.is_empty() {
            pass.parts = queries.iter().map(|&query| FullPassPart::new(query.clone())).collect();
        }
        (slice.meanwhile)();
        match engine.full_pass_part(&mut pass.parts, pass.from, slice.go_on)? {
            Some(next) => {
                pass.from = next;
                Ok(None)
            }
            None => {
                let parts = std::mem::take(&mut pass.parts);
                Ok(Some(parts.into_iter().map(FullPassPart::into_answer).collect()))
            }
        }
    }

    /// Counting ranks takes longer than a search. Beside others it runs in slices.
    fn start(
        &self,
        engine: &mut Self::Device,
        queries: &[&FullPassQuery],
        beside_others: bool,
    ) -> Result<bool, PassError> {
        Ok(!beside_others && engine.start_ranks(queries)?)
    }

    fn finish(
        &self,
        engine: &mut Self::Device,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, PassError> {
        let parts = engine.finish_ranks(queries)?;
        if parts.iter().all(FullPassPart::is_answered) {
            return Ok(parts.into_iter().map(FullPassPart::into_answer).collect());
        }
        // In one slice, because a pass that was started has no more; it is rare.
        Ok(engine.full_pass_of(parts)?)
    }

    fn retain(&self, pass: &mut UnderWay, stays: &mut dyn FnMut(usize) -> bool) {
        retain(&mut pass.parts, stays);
    }
}
