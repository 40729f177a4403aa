//! The wire: requests into queries, answers into JSON, every fault into a problem document.
//!
//! The data's path: [`front`](service) → `routes` → `body` or `query_string` (bytes to fields) → `request`
//! (fields to checked queries) → the queue → `answer` (hits to JSON). `openapi.yaml` at the top of
//! the repository says what clients may rely on; tests hold the two against each other.

mod answer;
mod ask;
mod body;
pub mod connections;
mod error;
mod fields;
mod front;
mod health;
mod info;
pub mod listen;
mod negotiation;
mod query_string;
mod request;
mod routes;
mod server_timing;
mod state;
mod suggestions;
pub mod threads;

pub use error::{ApiError, UnknownWord};
pub use fields::{MAX_EXCLUDED, MAX_K, MAX_QUERIES, MAX_RESULTS, MAX_VECTOR_COMPONENTS};
pub use front::Front;
pub use state::AppState;
