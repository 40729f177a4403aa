//! Why a model is not served.

use std::error::Error;
use std::io;
use std::path::PathBuf;

use kindred::ModelError;
use kindred::engines::EngineStartError;
use kindred::heads::HeadError;
use kindred::live::changes::ChangeError;

use super::readiness::NotReady;
use crate::config::ConfigError;

/// Why a model is not served.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The settings, of a command that asks one model. Boxed, because it is the largest.
    #[error(transparent)]
    Settings(Box<ConfigError>),
    /// The model folder.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// The changes of a model's rows.
    #[error(transparent)]
    Changes(#[from] ChangeError),
    /// A folder in the settings that does not exist, or is not a model's.
    #[error(transparent)]
    NoModel(ModelError),
    /// A head.
    #[error(transparent)]
    Head(#[from] HeadError),
    /// Several heads in the settings that could answer.
    #[error("the settings have several heads that could answer: {0}; choose one with --head DIR")]
    SeveralHeads(String),
    /// The engine.
    #[error(transparent)]
    Engine(#[from] EngineStartError),
    /// There is not enough memory for it beside the served models.
    #[error(
        "{source_name} needs {needed_mb} MB of memory; {available_mb} MB are available, but memory_reserve_mb \
         keeps {reserve_mb} MB free; free some memory, or restart the service with the new model"
    )]
    NoMemory {
        /// Its folder, or that it is the built-in model.
        source_name: String,
        /// In MB.
        needed_mb: u64,
        /// In MB.
        available_mb: u64,
        /// In MB.
        reserve_mb: u64,
    },
    /// Its engines do not fit in memory beside those of the served version, and taking the devices
    /// one after another did not work either.
    #[error(
        "replica {replica} of {of} of the new version is not served, so the old one still is: \
         {source}"
    )]
    Rolling {
        /// The replica, from 1.
        replica: usize,
        /// The number of replicas.
        of: usize,
        /// The cause.
        source: Box<dyn Error + Send + Sync>,
    },
    /// Its engine does not answer the trial query.
    #[error("the new engine failed its trial query: {0}")]
    Trial(#[from] NotReady),
    /// The folder of tables can't be listed.
    #[error("can't list the tables of models_dir {}: {source}", folder.display())]
    Tables {
        /// The folder.
        folder: PathBuf,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A table has the name of another model.
    #[error(
        "{} and a model of the settings would both have the name `{name}`; rename the folder, or \
         give the model another name: --model NAME=DIR", folder.display()
    )]
    NameTaken {
        /// The name.
        name: String,
        /// The table's folder.
        folder: PathBuf,
    },
    /// The thread that loads it did not start, or panicked.
    #[error("the model could not be loaded: {0}; see the log")]
    Broken(#[source] io::Error),
}

impl LoadError {
    /// Whether it is a mistake in the settings: they are invalid, or name a folder that does not
    /// exist or is not the right one. A damaged file is no such mistake.
    pub fn is_of_settings(&self) -> bool {
        use HeadError::{NotAHead, OtherModel};
        matches!(
            self,
            Self::Settings(_)
                | Self::NoModel(_)
                | Self::Tables { .. }
                | Self::NameTaken { .. }
                | Self::Head(NotAHead { .. } | OtherModel { .. })
        )
    }
}

impl From<ConfigError> for LoadError {
    fn from(error: ConfigError) -> Self {
        Self::Settings(Box::new(error))
    }
}
