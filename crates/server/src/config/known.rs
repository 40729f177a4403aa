//! The keys of all settings, and the kinds of their values: those of the defaults. The crate
//! `config` would round fractions, and take numbers for switches and switches for numbers.

use toml::Value;

use super::ConfigError;
use super::settings::DEFAULTS;
use super::spelling::{did_you_mean, likest};

/// Begins the names of our variables.
pub(super) const PREFIX: &str = "KINDRED_";

const WHOLE: &str = "a whole number";
const NUMBER: &str = "a number";
const SWITCH: &str = "true or false";

/// The defaults.
pub(super) struct Known(toml::Table);

impl Known {
    pub(super) fn new() -> Self {
        Self(toml::from_str(DEFAULTS).expect("pinned by a test"))
    }

    fn keys(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Settings with several values, which are separated by commas in the environment.
    pub(super) fn lists(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, default)| default.is_array()).map(|(key, _)| key.as_str())
    }

    fn unknown(&self, origin: String, key: &str, hint: &str) -> ConfigError {
        let (key, known) = (format!("`{key}`{hint}"), self.keys().map(str::to_owned).collect());
        ConfigError::UnknownKey { origin, key, known }
    }

    /// Checks a key of a file, and the kind of its value. Texts and lists are checked later.
    pub(super) fn check(&self, origin: &str, key: &str, value: &Value) -> Result<(), ConfigError> {
        let Some(default) = self.0.get(key) else {
            let hint = did_you_mean(key, self.keys());
            return Err(self.unknown(origin.to_owned(), key, &hint));
        };
        let expected = match (default, value) {
            // A text is parsed like a variable's.
            (_, Value::String(text)) => return self.check_text(origin, key, text),
            (Value::Integer(_), value) if !value.is_integer() => WHOLE,
            (Value::Float(_), value) if !value.is_integer() && !value.is_float() => NUMBER,
            (Value::Boolean(_), value) if !value.is_bool() => SWITCH,
            _ => return Ok(()),
        };
        let found = match value {
            Value::Integer(number) => number.to_string(),
            Value::Float(number) => number.to_string(),
            Value::Boolean(switch) => switch.to_string(),
            other => other.type_str().to_owned(),
        };
        Err(other_kind(origin, key, found, expected))
    }

    /// Checks the name of a variable and returns the key of its setting; `others` are names of ours
    /// that are no settings.
    pub(super) fn key(&self, variable: &str, others: &[&str]) -> Result<String, ConfigError> {
        let key = variable[PREFIX.len()..].to_lowercase();
        if self.0.contains_key(&key) {
            return Ok(key);
        }
        let hint = did_you_mean(variable, self.variables(others).iter().map(String::as_str));
        Err(self.unknown(origin_of(variable), &key, &hint))
    }

    /// The variable that is most like this one, if one is.
    pub(super) fn likest(&self, variable: &str, others: &[&str]) -> Option<String> {
        likest(variable, self.variables(others).iter().map(String::as_str)).map(str::to_owned)
    }

    fn variables(&self, others: &[&str]) -> Vec<String> {
        let names = self.keys().map(|key| format!("{PREFIX}{}", key.to_uppercase()));
        names.chain(others.iter().map(|&name| name.to_owned())).collect()
    }

    /// Checks the kind of a variable's value.
    pub(super) fn check_variable(
        &self,
        variable: &str,
        key: &str,
        text: &str,
    ) -> Result<(), ConfigError> {
        self.check_text(&origin_of(variable), key, text)
    }

    fn check_text(&self, origin: &str, key: &str, text: &str) -> Result<(), ConfigError> {
        const SWITCHES: [&str; 8] = ["true", "false", "1", "0", "yes", "no", "on", "off"];
        let text_is = |switch: &str| text.eq_ignore_ascii_case(switch);
        let (is_right, expected) = match self.0.get(key) {
            Some(Value::Integer(_)) => (text.parse::<i64>().is_ok(), WHOLE),
            Some(Value::Float(_)) => (text.parse::<f64>().is_ok(), NUMBER),
            Some(Value::Boolean(_)) => (SWITCHES.into_iter().any(text_is), SWITCH),
            _ => return Ok(()),
        };
        match is_right {
            true => Ok(()),
            false => Err(other_kind(origin, key, format!("`{text}`"), expected)),
        }
    }
}

fn other_kind(origin: &str, key: &str, found: String, expected: &'static str) -> ConfigError {
    ConfigError::Kind { setting: format!("{origin}: the setting `{key}`"), found, expected }
}

fn origin_of(variable: &str) -> String {
    format!("environment variable {variable}")
}
