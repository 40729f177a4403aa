//! Whether expanding queries helps a search engine: retrieval with and without it on a collection whose relevant documents are
//! known.
//!
//! The path of the data: [`texts`] and [`judgements`] read files, of which a [`collection`] is made; [`analyse`] makes terms,
//! [`index`] has them and scores by BM25; [`expansion`] is the interface of whatever adds terms to a query: [`feedback`],
//! [`neighbours`] and [`expander`] do; [`run`] tunes each run by cross-validation, by [`measures`]; [`compare`] tests whether a difference may
//! be chance; [`results`] has the numbers.

pub mod analyse;
pub mod collection;
pub mod compare;
pub mod expander;
pub mod expansion;
pub mod feedback;
pub mod index;
pub mod judgements;
pub mod measures;
pub mod neighbours;
pub mod porter;
pub mod results;
pub mod run;
pub mod texts;
mod trec;
