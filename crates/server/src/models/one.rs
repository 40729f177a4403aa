//! The model of a command that asks one, and its heads: those of the flags, or else of the
//! environment, of the settings file, or else the built-in ones. All commands ask here, so that
//! they agree.

use std::path::Path;
use std::sync::Arc;

use kindred::live::Live;
use kindred::live::changes::{Access, ChangeOptions};
use kindred::{ModelError, ModelStore};

use super::{LoadError, ServedHead, heads, opened};
use crate::config::{Config, ModelSource, ServeFlags};
use kindred::device::Placement;
use kindred::heads::{HeadKind, about};

/// The model that a command asks, and its settings.
pub struct OneModel {
    /// The settings. Their only model is this one, and their heads may be asked.
    pub config: Config,
    /// The model.
    pub model: Arc<ModelStore>,
}

impl OneModel {
    /// Reads the settings, and opens the model.
    ///
    /// # Errors
    /// If the settings, the model's folder or a head's description can't be used.
    pub fn open(flags: &ServeFlags) -> Result<Self, LoadError> {
        let open = |source: &ModelSource, config: &Config| Ok(opened::open(source, config)?.into());
        Self::open_by(flags, open)
    }

    /// The same of a model whose rows may have been changed: to read them as they are now.
    ///
    /// # Errors
    /// As [`open`](Self::open), and if its changes are damaged.
    pub fn open_with_changes(flags: &ServeFlags) -> Result<(Self, Option<Live>), LoadError> {
        let mut live = None;
        let one = Self::open_by(flags, |source, config| {
            match (opened::open(source, config), &source.folder) {
                (Err(ModelError::HasChanges { .. }), Some(folder)) => {
                    let options =
                        ChangeOptions { access: Access::Read, ..ChangeOptions::default() };
                    let opened = live.insert(Live::open(folder, options)?);
                    Ok(opened.base().clone())
                }
                (opened, _) => Ok(opened?.into()),
            }
        });
        Ok((one?, live))
    }

    fn open_by(
        flags: &ServeFlags,
        open: impl FnOnce(&ModelSource, &Config) -> Result<Arc<ModelStore>, LoadError>,
    ) -> Result<Self, LoadError> {
        let is_of_flag = !flags.model.is_empty();
        let mut flags = flags.clone();
        if is_of_flag {
            // The settings' may name models of theirs.
            flags.placement = vec![Placement::Auto.to_string()];
        }
        let mut config = Config::load(&flags)?;
        let heads_of_others = flags.head.is_empty() && (is_of_flag || config.model.len() > 1);
        if is_of_flag {
            // A name in the settings is for the model in the settings.
            config.name = String::new();
        }
        config.model.truncate(1);
        let model = open(&config.sources()[0], &config)?;
        if heads_of_others {
            for source in std::mem::take(&mut config.head) {
                if about(heads::folder(&source))?.fits(&model) {
                    config.head.push(source);
                }
            }
        }
        Ok(Self { config, model })
    }

    /// The heads that a service would serve with this model: those of the settings, and the model's
    /// own for the kinds of which there is none.
    ///
    /// # Errors
    /// If a head can't be read, or was made for another model.
    pub fn heads(&self) -> Result<Vec<ServedHead>, LoadError> {
        heads::check_models(&self.config, std::iter::once(&*self.model))?;
        Ok(heads::open(&self.model, &self.config)?)
    }

    /// The head of this kind in this folder, or without one the only one in the settings: its name
    /// and its folder. `None` if there is none: then the model's own may answer.
    ///
    /// # Errors
    /// If the settings have several, or the description of one can't be read.
    pub fn head(
        &self,
        folder: Option<&Path>,
        kind: HeadKind,
    ) -> Result<Option<ModelSource>, LoadError> {
        if let Some(folder) = folder {
            return Ok(Some(ModelSource::folder(folder)));
        }
        let mut found = Vec::new();
        for source in &self.config.head {
            if about(heads::folder(source))?.kind() == kind {
                found.push(source.clone());
            }
        }
        if found.len() > 1 {
            let names = found.iter().map(ModelSource::expected_name).collect::<Vec<_>>().join(", ");
            return Err(LoadError::SeveralHeads(names));
        }
        Ok(found.pop())
    }
}
