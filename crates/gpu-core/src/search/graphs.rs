//! Recorded passes: which there are, and when they are recorded.

use super::plan::Class;
use super::workspace::EXCHANGES;
use super::{CudaEngine, Work};
use crate::GpuError;
use crate::driver::{Doing, Graph};

/// The most recorded passes. Requests choose which ones there are, and each takes memory. Beyond
/// this, those over a part of the table are dropped, and recorded again when they are needed.
const MAX_GRAPHS: usize = 256;

/// A certified pass over the first tiles of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct GraphKey {
    /// The index of its exchange.
    pub(super) exchange: usize,
    pub(super) tiles: usize,
    pub(super) path: Path,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Path {
    /// One query, with a set of rows or without.
    Int4 { sets: bool },
    Int8 {
        width: usize,
        class: Class,
        /// Whether there are formulas among the queries.
        formulas: bool,
        /// Whether some of the queries have sets of rows.
        sets: bool,
    },
}

impl GraphKey {
    pub(super) fn width_and_class(self) -> (usize, Class) {
        match self.path {
            Path::Int4 { .. } => (1, Class::Small),
            Path::Int8 { width, class, .. } => (width, class),
        }
    }
}

impl CudaEngine {
    /// Records the passes over the whole table that most callers need. Others are recorded when
    /// they are needed first, which takes some hundred microseconds.
    pub(super) fn record_graphs(&mut self) -> Result<(), GpuError> {
        let Some(quantised) = &self.resident.quantised else { return Ok(()) };
        let tiles = quantised.tiles();
        let has_int4 = quantised.int4.is_some();
        for exchange in 0..EXCHANGES {
            if has_int4 {
                self.prepare_graph(GraphKey { exchange, tiles, path: Path::Int4 { sets: false } })?;
            }
            for &width in self.kernels.int8.widths {
                for class in Class::ALL {
                    for formulas in [false, true] {
                        if width <= class.max_batch() && (!formulas || class == Class::Small) {
                            let path = Path::Int8 { width, class, formulas, sets: false };
                            self.prepare_graph(GraphKey { exchange, tiles, path })?;
                        }
                    }
                }
            }
        }
        self.stream.synchronize().doing("preparing the passes")
    }

    #[allow(unsafe_code)]
    pub(super) fn prepare_graph(&mut self, key: GraphKey) -> Result<(), GpuError> {
        if self.graphs.contains_key(&key) {
            return Ok(());
        }
        if self.graphs.len() >= MAX_GRAPHS {
            // Nor those that the device works on.
            let (all, started) = (self.tiles(), &self.started);
            let is_started = |key: &GraphKey| {
                started.iter().any(|one| matches!(one.work, Work::Search(own) if own == *key))
            };
            self.graphs.retain(|key, _| key.tiles == all || is_started(key));
        }
        let quantised = self.resident.quantised.as_ref().expect("passes need quantised tables");
        let GraphKey { exchange, tiles, path } = key;
        assert!(tiles <= quantised.tiles(), "{key:?}");
        let pass = self.pass(exchange);
        // SAFETY: recording runs nothing; `run`, which launches the graph, keeps the promise of a
        // pass.
        let graph = Graph::record(&self.stream, || unsafe {
            match (path, &quantised.int4) {
                (Path::Int4 { sets }, Some(int4)) => {
                    let kernels = &pass.kernels;
                    let own = if sets { &kernels.int4_set } else { &kernels.int4 };
                    pass.int4(quantised, int4, own, tiles)
                }
                (Path::Int4 { .. }, None) => unreachable!("there is no 4-bit table"),
                (Path::Int8 { width, class, formulas, sets }, _) => {
                    pass.int8(quantised, width, class, (formulas, sets), tiles)
                }
            }
        })?;
        self.graphs.insert(key, graph);
        Ok(())
    }
}
