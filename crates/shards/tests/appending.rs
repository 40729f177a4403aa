//! An engine that takes rows behind those of its table, as one on a device does, until its room is
//! full: searches see them, full passes do not.

use std::collections::VecDeque;
use std::sync::Arc;

use contract::{
    Device, EngineDescription, EngineError, FullPassEngine, FullPassPart, FullPassQuery, HasTable,
    HeadEngine, Hit, Metric, Query, Row, RowBitmap, RowSet, SearchEngine, Table,
};
use cpu_core::ReferenceEngine;

/// The plain reference, with room for rows.
pub(crate) struct Appending {
    reference: ReferenceEngine,
    base_rows: usize,
    rows: Rows,
    room: usize,
    /// Answers of searches that were started.
    started: VecDeque<Vec<Option<Vec<Hit>>>>,
}

#[derive(Debug, Clone)]
struct Rows {
    components: Vec<f32>,
    norms: Vec<f64>,
    dim: usize,
}

impl HasTable for Rows {
    fn table(&self) -> Table<'_> {
        Table::new(&self.components, &self.norms, self.dim)
    }
}

impl Appending {
    pub(crate) fn new(of: &Arc<dyn HasTable>, room: usize) -> Self {
        let table = of.table();
        let (components, norms) = (table.components().to_vec(), table.norms().to_vec());
        let rows = Rows { components, norms, dim: table.dim() };
        let room = if table.metric() == Metric::Cosine { room } else { 0 };
        let (base_rows, started) = (table.rows(), VecDeque::new());
        Self { reference: ReferenceEngine::new(of.clone()), base_rows, rows, room, started }
    }

    /// Queries of many hits are left open, as a device leaves those without a certificate.
    fn found(&mut self, batch: &[&Query]) -> Vec<Option<Vec<Hit>>> {
        let rows = self.rows.norms.len();
        if rows == self.base_rows {
            return self.reference.search(batch).unwrap().into_iter().map(Some).collect();
        }
        let mut reference = ReferenceEngine::new(Arc::new(self.rows.clone()));
        let mut answer = |query: &&Query| {
            let mut own = (*query).clone();
            let set = &query.filter.rows;
            if let Some(bitmap) = set.bitmap() {
                assert!((self.base_rows..=rows).contains(&bitmap.rows()), "a set of these rows");
                let members = (0..bitmap.rows() as u32).map(Row);
                let members = members.filter(|row| bitmap.contains(*row));
                let bitmap = Arc::new(RowBitmap::of_rows(members, rows, "v"));
                let excluded = set.excluded().to_vec();
                let all = RowSet::of(bitmap);
                own.filter.rows = all.limited(set.limit()).less(excluded);
            }
            let hits = reference.search(&[&own]).unwrap().remove(0);
            (query.k < 60).then_some(hits)
        };
        batch.iter().map(&mut answer).collect()
    }
}

impl Device for Appending {
    fn description(&self) -> EngineDescription {
        self.reference.description()
    }
}

impl SearchEngine for Appending {
    fn preferred_batch(&self, waiting: usize) -> usize {
        self.reference.preferred_batch(waiting)
    }

    fn search(&mut self, _: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        panic!("an engine that takes rows is not asked for whole answers")
    }

    fn search_overlapped(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        meanwhile();
        Ok(self.found(batch))
    }

    fn start_search(&mut self, batch: &[&Query]) -> Result<bool, EngineError> {
        let found = self.found(batch);
        self.started.push_back(found);
        Ok(true)
    }

    fn finish_search(&mut self, _: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        Ok(self.started.pop_front().expect("a search was started"))
    }

    fn append(&mut self, rows: &Table<'_>) -> Result<usize, EngineError> {
        let count = rows.rows().min(self.room);
        self.room -= count;
        let taken = rows.part(0..count);
        self.rows.components.extend_from_slice(taken.components());
        self.rows.norms.extend_from_slice(taken.norms());
        Ok(count)
    }
}

impl FullPassEngine for Appending {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.reference.full_pass_part(parts, from, go_on)
    }

    fn full_pass_vectors(&self) -> usize {
        self.reference.full_pass_vectors()
    }

    fn full_pass_cost(&self, query: &FullPassQuery) -> usize {
        self.reference.full_pass_cost(query)
    }
}

impl HeadEngine for Appending {}
