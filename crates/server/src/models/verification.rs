//! Verifies what is served since the start: every checksum of the models, and of the folders that
//! their heads take terms from. Opening a model checks its header and sizes only, so that a start
//! is quick; a reload verifies a model before it is served.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use kindred::{ModelError, ModelStore};
use tracing::{error, info, warn};

use super::heads::ServedHead;
use super::{ModelSet, ServedModel, heads};
use kindred::background::start_in_background;

/// A model that is to be verified. It does not keep the engine: if the model is replaced meanwhile,
/// its memory is freed soon.
struct Pending {
    name: String,
    served: Weak<ServedModel>,
    model: Arc<ModelStore>,
    heads: Arc<Vec<ServedHead>>,
}

/// Verifies these models, one after another, at low priority, until `stopped` is set. A model that
/// is damaged is not ready from then on.
pub(super) fn verify_in_background(models: &ModelSet, stopped: Arc<AtomicBool>) {
    let pending: Vec<Pending> = models.models().iter().map(Pending::new).collect();
    let work = move || pending.into_iter().for_each(|one| one.verify(&stopped));
    if let Err(error) = start_in_background(work) {
        warn!("the served models are not verified, because there is no thread for it: {error}");
    }
}

impl Pending {
    fn new(served: &Arc<ServedModel>) -> Self {
        Self {
            name: served.name().to_owned(),
            served: Arc::downgrade(served),
            model: served.model.clone(),
            heads: served.heads.load_full(),
        }
    }

    fn verify(self, stopped: &AtomicBool) {
        let Self { name, served, model, heads } = self;
        let goes_on = || !stopped.load(Ordering::Relaxed) && served.strong_count() > 0;
        let of_model = model.verify_while(|_| (), goes_on);
        let is_current = |served: &ServedModel| Arc::ptr_eq(&served.heads.load(), &heads);
        let of_heads = heads::verify(&heads, goes_on);
        let mut is_whole = true;
        for (result, is_of_heads) in [(of_model, false), (of_heads, true)] {
            match result {
                Ok(()) => {}
                Err(ModelError::Cancelled) => return,
                // Other heads may be served by now.
                Err(error) => {
                    is_whole = false;
                    let served = served.upgrade().filter(|one| !is_of_heads || is_current(one));
                    if let Some(served) = served {
                        served.readiness.found_damage();
                        error!(
                            model = name,
                            "the service is not ready, because what it serves is damaged: {error}; \
                             then reload the models"
                        );
                    }
                }
            }
        }
        if is_whole {
            info!(model = name, "verified the model: every checksum matches");
        }
    }
}

#[cfg(test)]
mod tests {
    use kindred::prepare::{Input, PrepareOptions, prepare_in_memory};

    use super::*;

    /// A model of which one norm has a flipped bit.
    fn damaged() -> ModelStore {
        let input = Input::Bytes { name: "m", bytes: b"a 1 0\nb 0 1\n" };
        let mut files = prepare_in_memory(input, &PrepareOptions::default()).unwrap();
        // Before it are 3 offsets of words, and the other norm.
        let norm = files.vectors.len() - 3 * 8 - 8;
        files.vectors[norm] ^= 1;
        ModelStore::from_memory("m", &files).unwrap()
    }

    #[tokio::test]
    async fn damage_is_found_unless_the_service_ends_or_the_model_was_replaced() {
        let served = Arc::new(crate::models::for_tests(damaged()));
        let ready = || served.readiness.check(&served.queue, &[]);
        Pending::new(&served).verify(&AtomicBool::new(true));
        assert!(ready().await.is_ok() && served.readiness.damaged_files() == 0, "it ended before");
        Pending::new(&served).verify(&AtomicBool::new(false));
        assert!(matches!(ready().await, Err(crate::models::NotReady::Damaged)));
        assert_eq!(served.readiness.damaged_files(), 1);
        let (of_replaced, weak) = (Pending::new(&served), Arc::downgrade(&served));
        drop(served);
        assert!(weak.upgrade().is_none(), "what is pending does not keep the engine");
        of_replaced.verify(&AtomicBool::new(false));
    }

    #[tokio::test]
    async fn a_whole_model_stays_ready() {
        let model = ModelStore::from_rows("m", 2, [("a", &[1.0, 0.0][..])]).unwrap();
        let served = Arc::new(crate::models::for_tests(model));
        Pending::new(&served).verify(&AtomicBool::new(false));
        assert!(served.readiness.check(&served.queue, &[]).await.is_ok());
    }
}
