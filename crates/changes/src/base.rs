//! The base of a table, as far as its changes know it.

use std::sync::Arc;

use model_store::ModelStore;

use super::schema::Schema;

/// A base: rows behind which changes are.
#[derive(Debug, Clone)]
pub(crate) struct Base {
    pub(crate) model: Arc<ModelStore>,
    pub(crate) schema: Schema,
    /// Whether its format version says that there are changes.
    pub(crate) has_changes: bool,
}

impl Base {
    pub(crate) fn of(model: &Arc<ModelStore>, has_changes: bool) -> Self {
        Self { model: Arc::clone(model), schema: Schema::of(model), has_changes }
    }

    /// The version of the content from which positions count: a log of another is refused.
    pub(crate) fn version(&self) -> &str {
        self.model.version()
    }
}
