//! The layers of settings: flags override the environment, which overrides the file, which
//! overrides the defaults. Also reads the `KINDRED_*` variables that are not settings.

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use config::{Environment, File, FileFormat};

use super::known::{API_KEY_VARIABLE, CONFIG_VARIABLE, Known, NON_SETTINGS, PREFIX, URL_VARIABLE};
use super::settings::DEFAULTS;
use super::{Config, ConfigError, ServeFlags};

impl Config {
    pub(super) fn from_layers(
        flags: &ServeFlags,
        environment: impl Iterator<Item = (OsString, OsString)>,
    ) -> Result<Self, ConfigError> {
        let known = Known::new();
        let mut ours = ours(environment)?;
        let file = flags.config.clone().or_else(|| ours.get(CONFIG_VARIABLE).map(PathBuf::from));
        ours.retain(|name, _| !NON_SETTINGS.contains(&name.as_str()));
        for (variable, value) in &ours {
            known.check_variable(variable, value.clone())?;
        }

        let mut layers =
            config::Config::builder().add_source(File::from_str(DEFAULTS, FileFormat::Toml));
        if let Some(path) = file {
            layers =
                layers.add_source(File::from_str(&read_file(&path, &known)?, FileFormat::Toml));
        }
        let mut environment =
            Environment::with_prefix("KINDRED").try_parsing(true).list_separator(",");
        for key in known.lists() {
            environment = environment.with_list_parse_key(key);
        }
        let config: Self = layers
            .add_source(environment.source(Some(ours)))
            .add_source(config::Config::try_from(flags)?)
            .build()?
            .try_deserialize()?;
        config.check()
    }
}

/// The variables with the prefix `KINDRED_`, except service links.
fn ours(
    environment: impl Iterator<Item = (OsString, OsString)>,
) -> Result<HashMap<String, String>, ConfigError> {
    let mut ours = HashMap::new();
    for (name, value) in environment {
        let shown = name.to_string_lossy().into_owned();
        if !shown.starts_with(PREFIX) || is_service_link(&shown) {
            continue;
        }
        let not_utf8 = |part| ConfigError::NotUtf8 { variable: shown.clone(), part };
        let name = name.into_string().map_err(|_| not_utf8("name"))?;
        ours.insert(name, value.into_string().map_err(|_| not_utf8("value"))?);
    }
    Ok(ours)
}

/// Refuses a misspelt [`API_KEY_VARIABLE`] or [`URL_VARIABLE`], for commands that query a service.
/// The names of settings, which are of no use to them, are not checked.
pub fn check_variables() -> Result<(), ConfigError> {
    let known = Known::new();
    let ours = ours(std::env::vars_os())?;
    let is_meant = |meant: String| [API_KEY_VARIABLE, URL_VARIABLE].contains(&meant.as_str());
    let mut names = ours.keys().filter(|name| !NON_SETTINGS.contains(&name.as_str()));
    let misspelt = names.find(|name| known.likest(name).is_some_and(is_meant));
    misspelt.map_or(Ok(()), |name| Err(known.unknown_variable(name)))
}

/// The value of a `KINDRED_*` variable that is not a setting; `None` if it is not set or empty.
pub fn variable(name: &str) -> Result<Option<String>, ConfigError> {
    match std::env::var_os(name).map(OsString::into_string) {
        None => Ok(None),
        Some(Ok(value)) => Ok(Some(value).filter(|value| !value.is_empty())),
        Some(Err(_)) => Err(ConfigError::NotUtf8 { variable: name.to_owned(), part: "value" }),
    }
}

/// Kubernetes and Docker links describe a service called `kindred` in variables of this form.
fn is_service_link(variable: &str) -> bool {
    variable.starts_with("KINDRED_PORT") || variable.starts_with("KINDRED_SERVICE_")
}

fn read_file(path: &Path, known: &Known) -> Result<String, ConfigError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ConfigError::Unreadable { path: path.to_owned(), source })?;
    let table: toml::Table = toml::from_str(&text)
        .map_err(|source| ConfigError::NotToml { path: path.to_owned(), source })?;
    let origin = path.display().to_string();
    table.iter().try_for_each(|(key, value)| known.check(&origin, key, value))?;
    Ok(text)
}
