//! Tables are made and deleted while the service runs.

use std::io;
use std::sync::Arc;

use kindred::ModelError;
use kindred::live::changes::{Access, Schema, create};
use tokio::sync::oneshot;
use tracing::info;

use super::reload::Reloader;
use super::{LoadError, ModelSet, ServedModel, opened, tables};
use crate::config::ModelSource;

/// Maximum length of a table's name, in bytes.
const MAX_NAME_BYTES: usize = 64;

/// Why a table is not made or not deleted.
#[derive(Debug, thiserror::Error)]
pub enum TableError {
    /// There is no folder for tables.
    #[error(
        "tables can't be made here: the service was started without the setting models_dir \
         (kindred serve --models-dir DIR)"
    )]
    NoFolder,
    /// A name that no table may have.
    #[error(
        "`{0}` can't be the name of a table: it has 1 to {MAX_NAME_BYTES} letters, digits, dots, \
         hyphens or underscores, of ASCII, and begins with a letter or a digit"
    )]
    Name(String),
    /// There is a model with this name.
    #[error("there is a model `{0}`; choose another name, or delete it first")]
    Exists(String),
    /// There is no model with this name.
    #[error("there is no model `{name}`")]
    NotThere {
        /// The name.
        name: String,
        /// The names of those that are there.
        known: Vec<String>,
    },
    /// A model of the settings, which nobody deletes.
    #[error(
        "`{0}` is a model of the settings, and only tables can be deleted or folded: change the \
         settings and reload"
    )]
    OfSettings(String),
    /// No table has such a shape, or it can't be written.
    #[error(transparent)]
    Create(ModelError),
    /// It can't be opened or has no engine.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its folder can't be moved away.
    #[error("the folder of `{name}` can't be deleted: {source}")]
    Delete {
        /// The table.
        name: String,
        /// The system's error.
        #[source]
        source: io::Error,
    },
    /// A fold is running.
    #[error("the changes of this table are being folded; wait for its end")]
    Folding,
    /// There is too little room for a new base.
    #[error(
        "folding needs {needed} bytes of free space for the new base, and there are {free}; \
         nothing was changed; free some space and fold again"
    )]
    NoSpaceToFold {
        /// Bytes that the new base takes, at most.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// The thread that works panicked or did not start.
    #[error("the table could not be changed; see the log")]
    Broken,
}

/// Names become folders, so they have no separators and are the same on every file system.
fn check_name(name: &str) -> Result<(), TableError> {
    let is_good = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let begins = name.starts_with(|c: char| c.is_ascii_alphanumeric());
    match begins && name.len() <= MAX_NAME_BYTES && name.chars().all(is_good) {
        true => Ok(()),
        false => Err(TableError::Name(name.to_owned())),
    }
}

impl Reloader {
    /// Makes a table without rows, and serves it. Waits for a reload that is in progress.
    ///
    /// # Errors
    /// If there is a model of this name, the name or the shape is not possible, or the folder can't
    /// be written. Nothing is left of it then.
    pub async fn create_table(
        self: &Arc<Self>,
        name: String,
        schema: Schema,
    ) -> Result<Arc<ServedModel>, TableError> {
        self.in_turn(move |reloader| reloader.create_now(&name, &schema)).await
    }

    /// Deletes a table: it is not served any more, and its folder goes. Requests in progress are
    /// answered.
    ///
    /// # Errors
    /// If there is no table of this name, or its folder can't be moved away.
    pub async fn delete_table(self: &Arc<Self>, name: String) -> Result<(), TableError> {
        self.in_turn(move |reloader| reloader.delete_now(&name)).await
    }

    /// Does this on a thread where it delays nobody, when nothing else changes the models. It goes
    /// on if the caller hangs up.
    pub(super) async fn in_turn<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> Result<T, TableError> + Send + 'static,
    ) -> Result<T, TableError> {
        let turn = self.turn.clone().lock_owned().await;
        let (report, reported) = oneshot::channel();
        let reloader = self.clone();
        let thread = std::thread::Builder::new().name("kindred-tables".into());
        let started = thread.spawn(move || {
            let result = work(&reloader);
            // Whoever is told may begin the next one.
            drop((turn, reloader));
            let _ = report.send(result);
        });
        started.map_err(|_| TableError::Broken)?;
        reported.await.unwrap_or(Err(TableError::Broken))
    }

    fn create_now(&self, name: &str, schema: &Schema) -> Result<Arc<ServedModel>, TableError> {
        let config = &self.started;
        if config.models_dir.as_os_str().is_empty() {
            return Err(TableError::NoFolder);
        }
        check_name(name)?;
        let current = self.models.current();
        if current.named(name).is_some() {
            return Err(TableError::Exists(name.to_owned()));
        }
        let folder = config.models_dir.join(name);
        create(&folder, schema).map_err(|error| match folder.exists() {
            true => TableError::Exists(name.to_owned()),
            false => TableError::Create(error),
        })?;
        let source = ModelSource { name: Some(name.to_owned()), folder: Some(folder.clone()) };
        let started = opened::open_table(name, &folder, Access::Write)
            .and_then(|opened| self.loader.start_table(&source, opened, config));
        match started {
            Ok(started) => {
                let served = self.loader.watched(started);
                self.models.replace(current.with(served.clone()));
                info!(model = name, "made a table");
                Ok(served)
            }
            Err(why) => {
                tables::remove(folder);
                Err(why.into())
            }
        }
    }

    fn delete_now(&self, name: &str) -> Result<(), TableError> {
        let current = self.models.current();
        let Some(served) = current.named(name) else {
            let known = current.models().iter().map(|model| model.name().to_owned()).collect();
            return Err(TableError::NotThere { name: name.to_owned(), known });
        };
        if served.writer.is_none() {
            return Err(TableError::OfSettings(name.to_owned()));
        }
        let failed = |source| TableError::Delete { name: name.to_owned(), source };
        let away = tables::move_away(&self.started.models_dir, name).map_err(failed)?;
        let others = current.models().iter().filter(|other| other.name() != name);
        self.models.replace(ModelSet::new(others.cloned().collect()));
        info!(model = name, "deleted a table");
        tables::remove(away);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_folders_of_one_part_on_every_system() {
        for good in ["a", "products", "a.b-c_D9", &"x".repeat(MAX_NAME_BYTES)] {
            assert!(check_name(good).is_ok(), "{good}");
        }
        let long = "x".repeat(MAX_NAME_BYTES + 1);
        for bad in ["", ".", "..", ".a", "-a", "a/b", "a\\b", "a b", "é", "a\0", "a:b", &long] {
            assert!(check_name(bad).is_err(), "{bad:?}");
        }
    }
}
