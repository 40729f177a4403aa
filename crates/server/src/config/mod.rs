//! Settings. Flags override the `KINDRED_*` environment, which overrides the file, which overrides
//! the defaults. `settings` declares them all.

mod error;
mod format;
mod known;
mod layers;
mod levels;
mod settings;
mod source;
mod spelling;
#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::net::SocketAddr;

pub use error::ConfigError;
pub use format::log_format;
pub use known::{API_KEY_VARIABLE, URL_VARIABLE};
pub use layers::{check_variables, variable};
pub(crate) use levels::levels;
pub use settings::{Config, HeadPrecision, LogFormat, MAX_THREADS, ServeFlags};
pub use source::{ModelPlacement, ModelSource};
pub(crate) use spelling::likest;

use kindred::device::Placement;

impl Config {
    /// Loads the settings from these flags and this process's environment.
    ///
    /// # Errors
    /// If a setting is invalid. The error names its key and its source.
    pub fn load(flags: &ServeFlags) -> Result<Self, ConfigError> {
        Self::from_layers(flags, std::env::vars_os())
    }

    /// The default settings.
    pub fn defaults() -> Self {
        Self::from_layers(&ServeFlags::default(), std::iter::empty()).expect("pinned by a test")
    }

    /// The model sources, each with its name if one is set, the default model first. Empty only if
    /// there is a folder of tables.
    pub fn sources(&self) -> Vec<ModelSource> {
        let mut sources = self.model.clone();
        if sources.is_empty() && self.models_dir.as_os_str().is_empty() {
            sources.push(ModelSource::BUILT_IN);
        }
        if let Some(first) = sources.first_mut().filter(|_| !self.name.is_empty()) {
            first.name = Some(self.name.clone());
        }
        sources
    }

    /// The placement of the model of this name on several GPUs.
    pub fn placement_of(&self, name: &str) -> Placement {
        let find = |model: Option<&str>| {
            let found = self.placement.iter().find(|one| one.model.as_deref() == model);
            found.map(|one| one.placement)
        };
        find(Some(name)).or_else(|| find(None)).unwrap_or_default()
    }

    fn check_names(&self) -> Result<(), ConfigError> {
        let own_name = self.model.first().and_then(|first| first.name.as_ref());
        if !self.name.is_empty() && own_name.is_some_and(|own| *own != self.name) {
            let reason = "names the first model, which `model` gives another name; leave out one";
            return Err(invalid("name", reason));
        }
        let names: Vec<String> = self.sources().iter().map(ModelSource::expected_name).collect();
        // Tables are made later.
        let has_tables = !self.models_dir.as_os_str().is_empty();
        let is_served =
            |one: &ModelPlacement| has_tables || one.model.iter().all(|name| names.contains(name));
        if !self.placement.iter().all(is_served) {
            return Err(invalid("placement", "must name served models, as in glove=shard"));
        }
        check_different("model", &self.sources())?;
        if self.head.iter().any(|source| source.folder.is_none()) {
            return Err(invalid("head", "must be folders of heads, DIR or NAME=DIR"));
        }
        check_different("head", &self.head)
    }

    /// Checks that nobody changes rows whom nobody has let.
    fn check_writes(&self) -> Result<(), ConfigError> {
        let is_open = self.api_keys_file.as_os_str().is_empty() && !self.open_writes;
        let is_own = self.listen.parse().is_ok_and(|at: SocketAddr| at.ip().is_loopback())
            || self.listen.starts_with("localhost:");
        if self.models_dir.as_os_str().is_empty() || !is_open || is_own {
            return Ok(());
        }
        let reason = format!(
            "everybody who reaches {} could change rows and tables; set api_keys_file (`kindred \
             api-key NAME --write`), or open_writes if that is meant",
            self.listen
        );
        Err(invalid("models_dir", reason))
    }

    fn check(mut self) -> Result<Self, ConfigError> {
        self.check_names()?;
        self.check_writes()?;
        levels(&self.log_level).map_err(|reason| invalid("log_level", reason))?;
        for list in [&mut self.cors_origins, &mut self.public_routes] {
            // An empty variable or flag is an empty list, not a list of one empty value.
            *list = list
                .iter()
                .map(|value| value.trim().to_owned())
                .filter(|value| !value.is_empty())
                .collect();
        }
        self.check_ranges()?;
        if cfg!(not(feature = "traces")) && !self.traces_endpoint.is_empty() {
            let reason = "this program can't send traces; build one that can: \
                          cargo build --release --features traces";
            return Err(invalid("traces_endpoint", reason));
        }
        Ok(self)
    }
}

/// Checks that no two of these models or heads would have the same name.
fn check_different(key: &'static str, sources: &[ModelSource]) -> Result<(), ConfigError> {
    let mut named = HashMap::new();
    for source in sources {
        let name = source.expected_name();
        if let Some(first) = named.insert(name.clone(), source) {
            let reason = format!(
                "`{first}` and `{source}` would both have the name `{name}`; give one of them \
                 another name: NAME=DIR"
            );
            return Err(invalid(key, reason));
        }
    }
    Ok(())
}

pub(crate) fn invalid(key: &'static str, reason: impl Into<String>) -> ConfigError {
    ConfigError::Invalid { key, reason: reason.into() }
}
