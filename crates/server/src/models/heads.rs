//! The heads of a served model.

use std::path::Path;
use std::sync::Arc;

use kindred::heads::{BUILT_IN, Head, HeadError, built_in};
use model_store::ModelStore;

use crate::config::{Config, ModelSource};

/// A head and the name that it is served under.
#[derive(Debug, Clone)]
pub struct ServedHead {
    /// Its name: from the settings, or that of its folder.
    pub name: String,
    /// The head.
    pub head: Arc<Head>,
}

/// Opens the heads of the settings that were made for this model. If there are none, the built-in model has its own.
///
/// # Errors
/// If the folder of any head can't be read, or one of these heads is damaged.
pub(super) fn open(model: &ModelStore, config: &Config) -> Result<Vec<ServedHead>, HeadError> {
    let mut heads = Vec::new();
    for source in &config.head {
        let folder = folder(source);
        if Head::describe(folder)?.model.version == model.version() {
            let head = Arc::new(Head::open(folder, model)?);
            heads.push(ServedHead { name: source.expected_name(), head });
        }
    }
    if heads.is_empty()
        && let Some(head) = built_in(model)
    {
        heads.push(ServedHead { name: BUILT_IN.to_owned(), head });
    }
    Ok(heads)
}

/// Checks that each head of the settings was made for one of these models.
///
/// # Errors
/// For the first that was not.
pub(super) fn check_models<'a>(
    config: &Config,
    models: impl Iterator<Item = &'a ModelStore> + Clone,
) -> Result<(), HeadError> {
    for source in &config.head {
        let folder = folder(source);
        let made_for = Head::describe(folder)?.model;
        if !models.clone().any(|model| model.version() == made_for.version) {
            let names: Vec<&str> = models.map(ModelStore::name).collect();
            return Err(HeadError::OtherModel {
                path: folder.to_owned(),
                made_for: made_for.to_string(),
                model: names.join(" or "),
            });
        }
    }
    Ok(())
}

fn folder(source: &ModelSource) -> &Path {
    source.folder.as_deref().expect("the settings were checked")
}
