//! The format of the log, as far as it is known before the settings are read, and where they can't
//! be read.

use std::ffi::OsString;

use clap::ValueEnum;

use super::LogFormat;
use super::known::CONFIG_VARIABLE;

/// The format of the log by the arguments of a command line, or else by the environment, or else by
/// the settings file that one of them names. Text where none of them names a format.
pub fn log_format(
    arguments: &[OsString],
    variable: impl Fn(&str) -> Option<OsString>,
) -> LogFormat {
    let in_file = || -> Option<OsString> {
        let path = flag(arguments, "--config").or_else(|| variable(CONFIG_VARIABLE))?;
        let settings: toml::Table = toml::from_str(&std::fs::read_to_string(path).ok()?).ok()?;
        Some(settings.get("log_format")?.as_str()?.into())
    };
    let named = flag(arguments, "--log-format")
        .or_else(|| variable("KINDRED_LOG_FORMAT").filter(|format| !format.is_empty()))
        .or_else(in_file);
    let format = named.and_then(|named| LogFormat::from_str(named.to_str()?, true).ok());
    format.unwrap_or(LogFormat::Text)
}

/// The value of a flag: the next argument, or what follows its `=`.
fn flag(arguments: &[OsString], name: &str) -> Option<OsString> {
    let mut arguments = arguments.iter().take_while(|argument| argument.to_str() != Some("--"));
    while let Some(argument) = arguments.next() {
        if argument.to_str() == Some(name) {
            return arguments.next().cloned();
        }
        let joined = argument.to_str().and_then(|text| text.strip_prefix(name)?.strip_prefix('='));
        if let Some(value) = joined {
            return Some(value.into());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn format(arguments: &[&str], variables: &[(&str, &str)]) -> LogFormat {
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        log_format(&arguments, |name| {
            let found = variables.iter().find(|(variable, _)| *variable == name);
            found.map(|(_, value)| value.into())
        })
    }

    #[test]
    fn flags_come_before_the_environment_and_both_before_the_file() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().to_str().unwrap();
        let write = |text: &str| std::fs::write(file.path(), text).unwrap();
        let json = ("KINDRED_LOG_FORMAT", "json");
        write("log_format = 'json'");
        for (arguments, variables, expected) in [
            (&[][..], &[][..], LogFormat::Text),
            (&["--log-format", "json"], &[], LogFormat::Json),
            (&["serve", "--log-format=json", "--thraeds", "2"], &[], LogFormat::Json),
            (&["--log-format", "text"], &[json], LogFormat::Text),
            (&[], &[json], LogFormat::Json),
            (&["--config", path], &[], LogFormat::Json),
            (&[], &[("KINDRED_CONFIG", path)], LogFormat::Json),
            (&["--config", path], &[("KINDRED_LOG_FORMAT", "text")], LogFormat::Text),
            // Values that are wrong are an error, which is written as text.
            (&["--log-format", "jsn"], &[], LogFormat::Text),
            (&["--log-format"], &[], LogFormat::Text),
            (&["--", "--log-format", "json"], &[], LogFormat::Text),
            (&["--config", "/no/such/file"], &[], LogFormat::Text),
        ] {
            assert_eq!(format(arguments, variables), expected, "{arguments:?} {variables:?}");
        }
        write("log_format = 'json'\nlisten 5");
        assert_eq!(format(&["--config", path], &[]), LogFormat::Text, "it is not TOML");
    }
}
