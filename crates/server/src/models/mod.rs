//! The served models, each with its engine, and how they are replaced while requests arrive.
//!
//! A request takes references to all models when it arrives and keeps them to its end (`Call`). So
//! no answer mixes two versions, and a replaced model is freed when the last request that holds it
//! has ended.

mod call;
mod create;
mod error;
mod folding;
mod heads;
mod load;
mod one;
mod opened;
mod pinned;
mod pins;
mod readiness;
mod reload;
mod rolling;
mod served;
mod service;
mod set;
mod sources;
mod tables;
mod verification;
mod warm;
mod writer;

pub use create::TableError;
pub use error::LoadError;
pub use heads::{ServedHead, find_head, without_checksum};
pub use load::{Loader, MakeEngines, one_engine};
pub use one::OneModel;
pub use opened::check;
pub use readiness::NotReady;
pub use reload::{
    Outcome, ReadSettings, ReloadError, ReloadFiles, Reloaded, ReloadedModel, Reloader,
};
pub use served::ServedModel;
pub(crate) use served::weak_tag;
pub use service::{BuildInfo, Service, Timeouts};
pub use set::{ModelSet, Models};

pub(crate) use call::{Call, NotMilliseconds};
pub(crate) use pinned::{Pinned, tag_with};
pub(crate) use set::View;
pub(crate) use sources::Report;
pub(crate) use writer::{Write, WriteError, Writer};

/// A model with the reference engine.
#[cfg(test)]
pub(crate) fn for_tests(model: kindred::ModelStore) -> ServedModel {
    let model = std::sync::Arc::new(model);
    let kindred::Settings { limits, max_batch_queries, .. } = kindred::Settings::default();
    let (engine_model, timer) = (model.clone(), tokio::runtime::Handle::current());
    let make = move || -> Result<Box<dyn kindred::contract::Engine>, std::convert::Infallible> {
        Ok(Box::new(kindred::ReferenceEngine::new(engine_model.clone())))
    };
    let (until, makers) = (kindred::queue::Until::All, vec![make]);
    let started = kindred::queue::start(limits, max_batch_queries, &timer, until, None, makers);
    let (queue, workers) = started.unwrap();
    let readiness_timeout = std::time::Duration::from_secs(5);
    ServedModel::new(model.into(), Vec::new(), queue, &workers, None, readiness_timeout)
}
