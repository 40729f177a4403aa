//! The served models, each with its engine, and how they are replaced while requests arrive.
//!
//! A request takes references to all models when it arrives and keeps them to its end (`Call`). So
//! no answer mixes two versions, and a replaced model is freed when the last request that holds it
//! has ended.

mod call;
mod heads;
mod load;
mod one;
mod readiness;
mod reload;
mod rolling;
mod served;
mod service;
mod set;
mod verification;
mod warm;

pub use heads::{ServedHead, find_head, without_checksum};
pub use load::{LoadError, Loader, MakeEngines, check, one_engine};
pub use one::OneModel;
pub use readiness::NotReady;
pub use reload::{
    Outcome, ReadSettings, ReloadError, ReloadFiles, Reloaded, ReloadedModel, Reloader,
};
pub use served::ServedModel;
pub(crate) use served::weak_tag;
pub use service::{BuildInfo, Service, Timeouts};
pub use set::{ModelSet, Models};

pub(crate) use call::{Call, NotMilliseconds};
pub(crate) use set::View;

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
    ServedModel::new(model, Vec::new(), queue, &workers, None, readiness_timeout)
}
