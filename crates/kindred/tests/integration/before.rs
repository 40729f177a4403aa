//! The plain engine, with something to do before each search: to wait, to count, to fail.

use std::sync::Arc;

use contract::{
    Device, Engine, EngineDescription, EngineError, FullPassEngine, FullPassPart, HasTable,
    HeadEngine, Hit, Query, SearchEngine, UsualCosts,
};
use cpu_core::ReferenceEngine;

/// The plain engine, which calls `before` with each batch; an error of it is the search's.
pub(crate) struct Before<F> {
    plain: ReferenceEngine,
    before: F,
    costs: Option<Arc<dyn UsualCosts>>,
}

impl<F> Before<F>
where
    F: FnMut(&[&Query]) -> Result<(), EngineError> + 'static,
{
    /// Such an engine over a table, with these costs of usual queries.
    pub(crate) fn boxed(
        table: &Arc<impl HasTable + 'static>,
        costs: Option<Arc<dyn UsualCosts>>,
        before: F,
    ) -> Box<dyn Engine> {
        Box::new(Self { plain: ReferenceEngine::new(table.clone()), before, costs })
    }
}

impl<F> Device for Before<F> {
    fn description(&self) -> EngineDescription {
        self.plain.description()
    }
}

impl<F: FnMut(&[&Query]) -> Result<(), EngineError>> SearchEngine for Before<F> {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        (self.before)(batch)?;
        self.plain.search(batch)
    }

    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        self.costs.clone()
    }
}

impl<F> FullPassEngine for Before<F> {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.plain.full_pass_part(parts, from, go_on)
    }
}

impl<F> HeadEngine for Before<F> {}
