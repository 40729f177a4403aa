//! Engines that make a graph difficult: that fail, that prove nothing, and queues without room.

use std::fs;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::{
    Device, EngineDescription, EngineError, FullPassEngine, FullPassPart, FullPassQuery,
    HeadEngine, Hit, Query, SearchEngine, UsualCosts,
};
use cpu_core::ReferenceEngine;
use jobs::graph::GraphOptions;
use kindred::queue::Limits;
use kindred::{Kindred, Model, Settings};

use crate::graph::{few_values, make, model, plain};

/// The plain engine with a fault.
struct Faulty {
    plain: ReferenceEngine,
    fault: Fault,
    searches: Arc<AtomicUsize>,
}

#[derive(Clone, Copy, PartialEq)]
enum Fault {
    /// Fails for good after this many queries.
    Ends(usize),
    /// Every third pass fails.
    Third,
    /// Searches find nothing; full passes do, and are dear.
    Unproven,
}

struct Dear;

impl UsualCosts for Dear {
    fn search(&self, _: &Query) -> usize {
        3
    }

    fn token(&self, _: &contract::Expansion) -> usize {
        1
    }

    fn full_pass(&self, _: &FullPassQuery) -> usize {
        1000
    }
}

impl Device for Faulty {
    fn description(&self) -> EngineDescription {
        self.plain.description()
    }
}

impl SearchEngine for Faulty {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let before = match self.fault {
            Fault::Ends(_) => self.searches.fetch_add(batch.len(), Ordering::Relaxed),
            _ => self.searches.fetch_add(1, Ordering::Relaxed),
        };
        match self.fault {
            Fault::Ends(after) if before + batch.len() > after => {
                Err(EngineError::Device("as it was told".into()))
            }
            Fault::Third if before % 3 == 2 => Err(EngineError::Device("as it was told".into())),
            _ => self.plain.search(batch),
        }
    }

    fn search_overlapped(
        &mut self,
        batch: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        meanwhile();
        if self.fault == Fault::Unproven {
            return Ok(vec![None; batch.len()]);
        }
        Ok(self.search(batch)?.into_iter().map(Some).collect())
    }

    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        Some(Arc::new(Dear))
    }
}

impl FullPassEngine for Faulty {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.plain.full_pass_part(parts, from, go_on)
    }
}

impl HeadEngine for Faulty {}

fn faulty(model: Model, fault: Fault, capacity_slots: u32, max_restarts: u32) -> Kindred {
    let limits = Limits { capacity_slots, max_restarts, ..Settings::default().limits };
    let searches = Arc::new(AtomicUsize::new(0));
    let settings = Settings { limits, ..Settings::default() };
    Kindred::with_engine(model, settings, move |model| {
        let plain = ReferenceEngine::new(model.clone());
        Ok(Box::new(Faulty { plain, fault, searches: searches.clone() }))
    })
    .unwrap()
}

/// A model whose engine is lost after this many queries.
pub(crate) fn limited(model: Model, queries: usize) -> Kindred {
    faulty(model, Fault::Ends(queries), 8192, 0)
}

/// Compares the graph that this engine makes with that of the plain one.
fn same_as_plain(fault: Fault, capacity: u32, restarts: u32) {
    let folder = tempfile::tempdir().unwrap();
    let rows = few_values(1_500, 5, 2);
    let options = GraphOptions { k: 200, ..GraphOptions::default() };
    let [with_fault, without] = ["with.npz", "without.npz"].map(|name| folder.path().join(name));
    let kindred = faulty(model(&rows, None), fault, capacity, restarts);
    make(&kindred, &with_fault, &options).unwrap();
    make(&plain(model(&rows, None)), &without, &options).unwrap();
    assert!(fs::read(with_fault).unwrap() == fs::read(without).unwrap());
}

#[test]
fn passes_that_fail_are_asked_again() {
    same_as_plain(Fault::Third, 8192, 1000);
}

#[test]
fn a_small_queue_and_searches_without_proof_only_take_longer() {
    same_as_plain(Fault::Unproven, 8192, 5);
    same_as_plain(Fault::Unproven, 100, 5);
}
