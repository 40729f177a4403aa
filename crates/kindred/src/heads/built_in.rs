//! The head of the built-in model, so that texts can be classified at once.

use std::sync::Arc;

use model_store::ModelStore;
use model_store::head::{Head, HeadError};

/// `models/demo/HEAD_CARD.md` says how it was made.
const DESCRIPTION: &[u8] = include_bytes!("../../../../models/demo/sentiment/head.json");
const WEIGHTS: &[u8] = include_bytes!("../../../../models/demo/sentiment/weights.safetensors");

/// Its name.
pub const BUILT_IN: &str = "sentiment";

/// The built-in head if this is the built-in model; `None` for other models.
pub fn built_in(model: &ModelStore) -> Option<Arc<Head>> {
    match Head::from_bytes(BUILT_IN, DESCRIPTION, WEIGHTS, model) {
        Ok(head) => Some(Arc::new(head)),
        Err(HeadError::OtherModel { .. }) => None,
        Err(error) => {
            tracing::warn!("there is no built-in head: {error}");
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn it_fits_the_built_in_model_and_no_other() {
        let head = built_in(&crate::demo::open(Path::new("")).unwrap()).expect("a head");
        assert_eq!(head.description().labels, ["negative", "positive"]);
        let other = ModelStore::from_rows("other", 2, [("a", &[1.0, 0.0][..])]).unwrap();
        assert!(built_in(&other).is_none());
    }
}
