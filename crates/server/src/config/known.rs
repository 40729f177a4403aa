//! The names of all settings and variables, and the kinds of the settings' values: those of the
//! defaults. The crate `config` would round fractions, and take numbers for switches and switches
//! for numbers.

use toml::Value;

use super::ConfigError;
use super::settings::DEFAULTS;
use super::spelling::{did_you_mean, likest};

/// Begins the names of our variables.
pub(super) const PREFIX: &str = "KINDRED_";

/// Names the settings file; not itself a setting.
pub(super) const CONFIG_VARIABLE: &str = "KINDRED_CONFIG";
/// API key with which commands query a service; not a setting of the service.
pub const API_KEY_VARIABLE: &str = "KINDRED_API_KEY";
/// Address of the service for `kindred health`; not a setting of the service.
pub const URL_VARIABLE: &str = "KINDRED_URL";
/// Variables that are not settings.
pub(super) const NON_SETTINGS: [&str; 3] = [CONFIG_VARIABLE, API_KEY_VARIABLE, URL_VARIABLE];

/// The defaults.
pub(super) struct Known(toml::Table);

impl Known {
    pub(super) fn new() -> Self {
        Self(toml::from_str(DEFAULTS).expect("pinned by a test"))
    }

    /// Settings with several values, which are separated by commas in the environment.
    pub(super) fn lists(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, default)| default.is_array()).map(|(key, _)| key.as_str())
    }

    /// Checks a key, and the kind of its value. Texts are checked later.
    pub(super) fn check(&self, origin: &str, key: &str, value: &Value) -> Result<(), ConfigError> {
        const SWITCHES: [&str; 8] = ["true", "false", "1", "0", "yes", "no", "on", "off"];
        let Some(default) = self.0.get(key) else {
            let hint = if value.is_table() {
                format!("; settings have no sections, so leave out `[{key}]`")
            } else {
                did_you_mean(key, self.0.keys().map(String::as_str))
            };
            return Err(self.unknown(origin.to_owned(), key, &hint));
        };
        let whole = |number: Option<i64>| match number {
            Some(number) if number < 0 => (false, "a whole number of at least 0"),
            number => (number.is_some(), "a whole number"),
        };
        let (is_right, expected) = match (default, value) {
            (Value::Integer(_), Value::String(text)) => whole(text.parse().ok()),
            (Value::Integer(_), value) => whole(value.as_integer()),
            (Value::Float(_), Value::String(text)) => (text.parse::<f64>().is_ok(), "a number"),
            (Value::Float(_), value) => (value.is_integer() || value.is_float(), "a number"),
            (Value::Boolean(_), Value::String(text)) => {
                let is_text = |switch: &str| text.eq_ignore_ascii_case(switch);
                (SWITCHES.into_iter().any(is_text), "true or false")
            }
            (Value::Boolean(_), value) => (value.is_bool(), "true or false"),
            (Value::Array(_), value) => {
                let is_texts = |list: &Vec<Value>| list.iter().all(Value::is_str);
                (value.as_array().is_some_and(is_texts), "a list of texts, as in [\"A\", \"B\"]")
            }
            _ => return Ok(()),
        };
        if is_right {
            return Ok(());
        }
        let found = match value {
            Value::String(text) => format!("`{text}`"),
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(switch) => switch.to_string(),
            other => other.type_str().to_owned(),
        };
        let setting = format!("{origin}: the setting `{key}`");
        Err(ConfigError::Kind { setting, found, expected })
    }

    /// Checks the name of a variable, and the kind of its value.
    pub(super) fn check_variable(&self, variable: &str, text: String) -> Result<(), ConfigError> {
        let key = key_of(variable);
        if !self.0.contains_key(&key) {
            return Err(self.unknown_variable(variable));
        }
        if self.lists().any(|list| list == key) {
            return Ok(());
        }
        self.check(&origin_of(variable), &key, &Value::String(text))
    }

    pub(super) fn unknown_variable(&self, variable: &str) -> ConfigError {
        let hint = did_you_mean(variable, self.variables().iter().map(String::as_str));
        self.unknown(origin_of(variable), &key_of(variable), &hint)
    }

    /// The variable that is most like this one, if one is.
    pub(super) fn likest(&self, variable: &str) -> Option<String> {
        likest(variable, self.variables().iter().map(String::as_str)).map(str::to_owned)
    }

    fn variables(&self) -> Vec<String> {
        let names = self.0.keys().map(|key| format!("{PREFIX}{}", key.to_uppercase()));
        names.chain(NON_SETTINGS.map(str::to_owned)).collect()
    }

    fn unknown(&self, origin: String, key: &str, hint: &str) -> ConfigError {
        let known = self.0.keys().cloned().collect();
        ConfigError::UnknownKey { origin, key: format!("`{key}`{hint}"), known }
    }
}

fn key_of(variable: &str) -> String {
    variable[PREFIX.len()..].to_lowercase()
}

fn origin_of(variable: &str) -> String {
    format!("environment variable {variable}")
}
