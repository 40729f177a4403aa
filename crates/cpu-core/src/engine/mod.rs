//! The engine for machines without a GPU: searches, full passes, classifiers and expanders, on the
//! same threads.

mod expanders;

use std::ops::Deref;
use std::sync::Arc;

use contract::{
    Device, EngineDescription, EngineError, Expansion, FullPassEngine, FullPassPart, HasTable,
    HeadEngine, Hit, PartOfExpansion, Query, SearchEngine, TokenText, UsualCosts, complete,
};
use model_store::ModelStore;

use crate::InstructionSet;
use crate::certified::{CertifiedSearch, Counters, KeepIn, Options, TableBytes};
use crate::full_scan::{FullScanEngine, StartError};
use crate::heads::classify::Classifiers;
use expanders::Expanders;

/// The engine for machines without a GPU.
///
/// It can answer immediately: by the full scan, until the derived table is loaded or derived.
#[derive(Debug)]
pub struct CpuEngine {
    model: Arc<dyn HasTable>,
    search: CertifiedSearch,
    classifiers: Classifiers,
    expanders: Expanders,
}

impl CpuEngine {
    /// An engine for this model. Its derived table takes one byte per component and 8 bytes per
    /// row.
    ///
    /// # Errors
    /// If the system refuses to start the threads.
    pub fn new(model: Arc<ModelStore>, mut options: Options) -> Result<Self, StartError> {
        let keep_in = options.keep_in.take().map(|path| KeepIn::new(path, &model));
        Self::keeping_in(model, keep_in, options)
    }

    /// An engine for any table, whose derived table is not kept in a file.
    ///
    /// # Errors
    /// As [`CpuEngine::new`].
    pub fn over(table: Arc<dyn HasTable>, options: Options) -> Result<Self, StartError> {
        Self::keeping_in(table, None, options)
    }

    /// The same with the threads and instructions of another engine, whatever the options say of
    /// them.
    ///
    /// # Errors
    /// As [`CpuEngine::new`].
    pub fn beside(
        other: &FullScanEngine,
        table: Arc<dyn HasTable>,
        options: Options,
    ) -> Result<Self, StartError> {
        Self::of_full(other.of(table), None, options)
    }

    fn keeping_in(
        model: Arc<dyn HasTable>,
        keep_in: Option<KeepIn>,
        options: Options,
    ) -> Result<Self, StartError> {
        let instructions = options.instructions.unwrap_or_else(InstructionSet::best);
        let full = FullScanEngine::with_instructions(model, options.threads, instructions)?;
        Self::of_full(full, keep_in, options)
    }

    fn of_full(
        full: FullScanEngine,
        keep_in: Option<KeepIn>,
        options: Options,
    ) -> Result<Self, StartError> {
        let model = full.model.clone();
        let classifiers = Classifiers::new(options.products, options.precision);
        let expanders = Expanders { all: Vec::new(), paths: options.paths };
        let search = CertifiedSearch::new(full, keep_in, None, options)?;
        Ok(Self { model, search, classifiers, expanders })
    }

    /// Waits until the derived tables are ready, or can't be; for tests and benchmarks.
    pub fn wait_for_tables(&mut self) {
        self.search.wait_for_tables();
    }

    /// Whether the derived table is not ready yet, so that searches take longer.
    pub fn is_deriving(&self) -> bool {
        self.search.deriving.is_under_way()
    }

    /// The counters so far.
    pub fn counted(&self) -> Counters {
        self.search.counters
    }

    /// The derived table as bytes, once it is ready, for benchmarks of reading it: the scan of a
    /// large batch reads them once.
    pub fn table(&self) -> Option<impl Deref<Target = [u8]>> {
        self.search.deriving.ready().map(TableBytes)
    }
}

impl Device for CpuEngine {
    fn description(&self) -> EngineDescription {
        let FullScanEngine { instructions, pool, .. } = &self.search.full;
        let threads = pool.current_num_threads();
        let detail = format!("certified 8-bit scan, {instructions}, {threads} threads");
        EngineDescription { name: "cpu", detail }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.search.counters.named()
    }
}

impl SearchEngine for CpuEngine {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting.min(self.search.full.instructions.preferred_batch())
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let found = self.search.search_overlapped(batch, &mut || ())?;
        // Those without a certificate.
        complete(batch, found, |rest| self.search.full.search(rest))
    }

    fn search_overlapped(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        self.search.search_overlapped(batch, meanwhile)
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.search.costs.search(query)
    }

    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        Some(Arc::new(self.search.costs))
    }
}

impl FullPassEngine for CpuEngine {
    /// The full scan does this, because the bounds here do not hold for formulas of several
    /// cosines.
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        let next = self.search.full.full_pass_part(parts, from, go_on)?;
        if next.is_none() {
            self.search.counters.full_pass_queries += parts.len() as u64;
        }
        Ok(next)
    }
}

impl HeadEngine for CpuEngine {
    fn classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        self.classify_part(texts, &|| true)
    }

    fn classify_part(
        &mut self,
        texts: &[&TokenText],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<f64>>, EngineError> {
        let (table, pool) = (self.model.table(), &self.search.full.pool);
        let scores = self.classifiers.scores(&table, texts, pool, go_on);
        self.search.counters.classified += scores.len() as u64;
        Ok(scores)
    }

    fn classification_cost(&self, text: &TokenText) -> usize {
        self.classifiers.cost(text)
    }

    fn expand_part(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        self.expanders.expand(&self.model, &mut self.search, parts, go_on)
    }

    fn expansion_cost(&self, text: &Expansion) -> usize {
        self.search.costs.token(text).saturating_mul(text.tokens())
    }
}
