//! The wire: requests into queries, answers into JSON, every fault into a problem document.
//!
//! The data's path: `transport` (connections) → `front` (what every request meets, with the `edge` around it) →
//! `routes` → `parse` (bytes to fields) → `request` (fields to checked queries) → the queue → `answer` (hits to JSON) and
//! `render` (what all answers have in common). `openapi.yaml` at the top of the repository says what clients may rely
//! on; tests hold the two against each other.

mod answer;
mod aside;
mod ask;
pub mod edge;
mod error;
mod evaluate;
mod explain;
mod fields;
mod fold_case;
mod formula;
mod front;
mod look_up;
mod odd_one_out;
mod parse;
mod query_string;
mod rank;
mod render;
mod request;
mod routes;
mod search;
mod similarity;
mod size;
mod suggestions;
mod text;
pub mod transport;
mod words;

use parse::{body, negotiation};
use render::{caching, server_timing};

pub use error::{ApiError, UnknownWord};
pub use evaluate::{MAX_QUESTIONS, MAX_SCORED_PAIRS, MAX_SETS};
pub use explain::MAX_EXPLAINED_TERMS;
pub use fields::{MAX_EXCLUDED, MAX_K, MAX_QUERIES, MAX_RESULTS, MAX_VECTOR_COMPONENTS};
pub use formula::{MAX_FACTORS, MAX_FULL_PASS_WORDS};
pub use front::Front;
pub use odd_one_out::MAX_COMPARED_WORDS;
pub use rank::MAX_RANKED;
pub(crate) use routes::LABELS as ROUTE_LABELS;
pub use routes::all as routes;
pub use similarity::{MAX_PAIRS, MAX_SET_WORDS};
pub use text::MAX_TEXT_WORDS;
pub use words::MAX_LISTED;
