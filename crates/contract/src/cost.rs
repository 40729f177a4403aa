//! What requests cost an engine, in units that do not depend on it.

use crate::{Expansion, FullPassQuery, Query};

/// The cost of a vector in a full pass, in components that each row is multiplied with.
pub const COMPONENTS_OF_A_VECTOR: usize = 128;

/// What requests usually cost an engine, in plain queries (k = 10, all rows) of a full batch. It
/// depends on the request's form alone, so it is known before the request waits.
pub trait UsualCosts: Send + Sync {
    /// The cost of a search.
    fn search(&self, query: &Query) -> usize;

    /// The cost of a full pass, or of counting ranks.
    fn full_pass(&self, query: &FullPassQuery) -> usize;

    /// The cost of each token of a text to expand: of a search of the expander's terms, of which
    /// there may be more than rows of the engine's own table.
    fn token(&self, text: &Expansion) -> usize;
}
