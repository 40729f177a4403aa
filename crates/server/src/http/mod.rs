//! The wire: requests into questions, answers into JSON, every fault into a problem document.
//!
//! The data's path: `front` → `routes` → `body` and `parse` (bytes to fields) → the facade `kindred` (fields to checked
//! queries, through the queue) → `render` (hits to JSON). `openapi.yaml` at the top of
//! the repository says what clients may rely on; tests hold the two against each other.

mod admin;
mod aside;
mod body;
mod caching;
pub mod connections;
mod docs;
pub mod edge;
mod error;
mod explorer;
mod front;
mod health;
mod info;
pub mod listen;
mod metrics;
mod negotiation;
mod parse;
mod problem;
mod render;
mod request_id;
mod routes;
mod server_timing;
pub mod threads;

pub use error::{ApiError, UnknownWord};
pub use front::Front;
pub use parse::evaluation::{MAX_QUESTIONS, MAX_SCORED_PAIRS, MAX_SETS};
pub use parse::limits::{
    MAX_EXPLAINED_TERMS, MAX_FULL_PASS_WORDS, MAX_PAIRS, MAX_QUERIES, MAX_RESULTS,
    MAX_VECTOR_COMPONENTS,
};
pub use render::words::WordsAsJson;
pub use routes::MAX_LISTED;
