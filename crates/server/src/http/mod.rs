//! HTTP: requests become questions, answers become JSON, and every error becomes a problem
//! document.
//!
//! The data's path: `transport` (connections) → `front` (what every request passes through, with
//! the `edge` around it) → `routes` → `parse` (bytes to fields) → the facade `kindred` (fields to
//! checked queries, through the scheduler) → `render` (hits to JSON). `openapi.yaml` at the top of
//! the repository says what clients may rely on; tests compare the two.

pub mod edge;
mod error;
mod front;
mod offload;
mod parse;
mod render;
mod routes;
pub mod transport;

use serde::Serialize;

use error::ApiError;

pub use front::Front;
pub use parse::limits::{
    MAX_EXPLAINED_TERMS, MAX_FULL_PASS_WORDS, MAX_PAIRS, MAX_QUERIES, MAX_RESULTS,
    MAX_VECTOR_COMPONENTS,
};
pub use routes::MAX_LISTED;
pub use routes::all as routes;
pub(crate) use routes::{LABELS as ROUTE_LABELS, check_public_routes};

/// A question's error as the problem document that stands in an answer to several questions.
pub fn problem(error: kindred::Error) -> impl Serialize {
    ApiError::from(error)
}
