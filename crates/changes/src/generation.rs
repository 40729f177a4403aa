//! A base with the rows behind it, as it is published for readers.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use model_store::ModelStore;

use super::state::Snapshot;

/// A base of a table, and the rows as they are now in its terms: those of the base first, then those
/// behind it. A fold makes the next one. Whoever holds an earlier one still sees every batch in it,
/// and the base stays in memory, until it is dropped.
pub struct Generation {
    base: Arc<ModelStore>,
    published: RwLock<Snapshot>,
}

impl Generation {
    pub(super) fn new(base: Arc<ModelStore>, snapshot: Snapshot) -> Arc<Self> {
        Arc::new(Self { base, published: RwLock::new(snapshot) })
    }

    /// The base.
    pub fn base(&self) -> &Arc<ModelStore> {
        &self.base
    }

    /// The number of the base: 1 before the first fold.
    pub fn number(&self) -> u64 {
        self.base.generation()
    }

    /// The rows after the last batch. Every batch that was acknowledged before the call is in it.
    pub fn snapshot(&self) -> Snapshot {
        self.published.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn publish(&self, snapshot: Snapshot) {
        *self.published.write().unwrap_or_else(PoisonError::into_inner) = snapshot;
    }
}

impl fmt::Debug for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "generation {} at {:?}", self.number(), self.snapshot())
    }
}
