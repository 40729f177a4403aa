//! The base of a table, as far as its changes know it.

use std::fmt;
use std::sync::Arc;

use super::schema::Schema;
use super::state::BaseKeys;
use crate::ModelStore;

/// A base: rows from which positions count.
#[derive(Clone)]
pub(crate) struct Base {
    /// Positions belong to it: a log of another version is refused.
    pub(crate) version: String,
    pub(crate) schema: Schema,
    pub(crate) rows: u32,
    pub(crate) keys: Arc<dyn BaseKeys>,
    /// Whether its format version says that there are changes.
    pub(crate) has_changes: bool,
}

impl Base {
    pub(crate) fn of(model: &Arc<ModelStore>, has_changes: bool) -> Self {
        Self {
            version: model.version().to_owned(),
            schema: Schema::of(model),
            rows: u32::try_from(model.rows()).expect("rows have numbers of 32 bits"),
            keys: Arc::clone(model) as Arc<dyn BaseKeys>,
            has_changes,
        }
    }
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "base {} of {} rows", self.version, self.rows)
    }
}
