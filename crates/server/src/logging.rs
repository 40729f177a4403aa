//! The log: to standard error, for people or for machines.

use std::backtrace::{Backtrace, BacktraceStatus};
use std::borrow::Cow;
use std::fmt::Write as _;
use std::io;

use serde_json::Value;
use tracing::{Subscriber, error, info, warn};
use tracing_subscriber::fmt::MakeWriter;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, ConfigError, LogFormat, invalid, levels};
use crate::escape::is_harmless;

/// Starts logging as the settings say. If they say JSON, panics are lines of JSON, too. May be
/// called once per process.
///
/// # Errors
/// If the setting `log_level` is invalid.
pub fn start(config: &Config) -> Result<(), ConfigError> {
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    subscriber(config, colours, std::io::stderr)?.init();
    if config.log_format == LogFormat::Json {
        panics_in_json();
    }
    Ok(())
}

/// Writes an error to standard error as a line of the log in JSON: whether logging was started or
/// not, and whatever its level is. `exit_code` is that of the program, if the error ends it.
pub fn error_in_json(message: &str, exit_code: Option<u8>) {
    write_error(message, exit_code, std::io::stderr);
}

fn write_error(
    message: &str,
    exit_code: Option<u8>,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) {
    let log_level = "error".to_owned();
    let config = Config { log_level, log_format: LogFormat::Json, ..Config::defaults() };
    if let Ok(log) = subscriber(&config, false, writer) {
        tracing::subscriber::with_default(log, || {
            error!(target: "kindred", exit_code, "{message}");
        });
    }
}

/// From now on, a panic is a line of the log in JSON instead of lines of text.
pub fn panics_in_json() {
    std::panic::set_hook(Box::new(|panic| {
        let thread = std::thread::current();
        let name = thread.name().unwrap_or("without a name");
        let mut message = format!("the thread {name} {panic}");
        let backtrace = Backtrace::capture();
        if backtrace.status() == BacktraceStatus::Captured {
            let _ = write!(message, "\n{backtrace}");
        }
        error_in_json(&message, None);
    }));
}

/// A subscriber whose lines include the fields of their spans, such as a request's id.
fn subscriber(
    config: &Config,
    colours: bool,
    writer: impl for<'a> MakeWriter<'a> + Send + Sync + 'static,
) -> Result<Box<dyn Subscriber + Send + Sync>, ConfigError> {
    let filter = levels(&config.log_level).map_err(|reason| invalid("log_level", reason))?;
    let writer = Escaping { writer, format: config.log_format, colours };
    let log = tracing_subscriber::fmt::layer().with_writer(writer);
    let filtered = tracing_subscriber::registry().with(filter);
    Ok(match config.log_format {
        LogFormat::Text => Box::new(filtered.with(log.with_ansi(colours).with_target(false))),
        LogFormat::Json => Box::new(filtered.with(log.json().flatten_event(true))),
    })
}

/// Escapes what would control a terminal in log lines, because much of what is logged comes from
/// clients. The formatters escape only some of it: the JSON formatter escapes only what JSON
/// requires.
struct Escaping<W> {
    writer: W,
    format: LogFormat,
    /// If true, escape characters are left as they are: they are the formatter's own, and it
    /// escapes those from clients.
    colours: bool,
}

impl<W> Escaping<W> {
    fn keeps(&self, c: char) -> bool {
        is_harmless(c) || c == '\n' || (self.colours && c == '\x1b')
    }

    fn escaped<'a>(&self, line: &'a [u8]) -> Cow<'a, str> {
        let line = String::from_utf8_lossy(line);
        if line.chars().all(|c| self.keeps(c)) {
            return line;
        }
        let mut escaped = String::with_capacity(line.len() + 16);
        for c in line.chars() {
            match self.format {
                _ if self.keeps(c) => escaped.push(c),
                LogFormat::Text => escaped.extend(c.escape_unicode()),
                // Escaped as in JSON, so that a JSON parser gets the character back.
                LogFormat::Json => {
                    for unit in c.encode_utf16(&mut [0; 2]) {
                        let _ = write!(escaped, "\\u{unit:04x}");
                    }
                }
            }
        }
        escaped.into()
    }
}

impl<'a, W: MakeWriter<'a>> MakeWriter<'a> for Escaping<W> {
    type Writer = Escaping<W::Writer>;

    fn make_writer(&'a self) -> Self::Writer {
        let Self { writer, format, colours } = self;
        Escaping { writer: writer.make_writer(), format: *format, colours: *colours }
    }
}

impl<W: io::Write> io::Write for Escaping<W> {
    /// Takes a whole line, because the formatters write whole lines.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let escaped = self.escaped(line);
        self.writer.write_all(escaped.as_bytes())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.writer.flush()
    }
}

/// The optional features that were compiled in.
pub fn features() -> &'static str {
    match (cfg!(feature = "cuda"), cfg!(feature = "traces")) {
        (true, true) => "cuda,traces",
        (true, false) => "cuda",
        (false, true) => "traces",
        (false, false) => "",
    }
}

/// Logs the program's version and features, and the settings that differ from the defaults.
pub fn log_settings(config: &Config) {
    info!(
        version = env!("CARGO_PKG_VERSION"),
        features = features(),
        settings = changed(config, &Config::defaults()).join(", "),
        "starting kindred"
    );
}

/// Logs a warning if settings changed since the start that a reload does not put in force.
pub(crate) fn warn_of_later_settings(started: &Config, now: &Config) {
    let later = later(started, now);
    if !later.is_empty() {
        warn!(settings = later.join(", "), "changed settings take effect with the next start");
    }
}

/// The settings that changed since the start, without those that a reload puts in force.
fn later(started: &Config, now: &Config) -> Vec<String> {
    let reloaded = Config {
        model: now.model.clone(),
        head: now.head.clone(),
        name: now.name.clone(),
        placement: now.placement.clone(),
        cache_dir: now.cache_dir.clone(),
        memory_reserve_mb: now.memory_reserve_mb,
        ..started.clone()
    };
    changed(now, &reloaded)
}

/// The settings that differ from those of `base`, as `key = value`. The values of secrets are
/// hidden.
fn changed(config: &Config, base: &Config) -> Vec<String> {
    let fields = |config: &Config| match serde_json::to_value(config) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    let base = fields(base);
    let differs = |(key, value): &(String, Value)| base.get(key) != Some(value);
    let shown = |(key, value): (String, Value)| {
        if is_secret(&key, &value) {
            format!("{key} = (hidden)")
        } else {
            format!("{key} = {value}")
        }
    };
    fields(config).into_iter().filter(differs).map(shown).collect()
}

/// Whether a setting is secret: by its name, or because its value is an address with a user and a
/// password.
fn is_secret(key: &str, value: &Value) -> bool {
    let named = |part: &str| ["key", "keys", "secret", "token", "password"].contains(&part);
    let with_user = |text: &str| text.contains("://") && text.contains('@');
    key.split('_').any(named) || value.as_str().is_some_and(with_user)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_the_fields_of_its_spans_in_both_forms() {
        for (format, shown) in
            [(LogFormat::Text, r#"request{id="a1b2"}"#), (LogFormat::Json, r#""id":"a1b2""#)]
        {
            let lines = Arc::new(Mutex::new(Vec::new()));
            let config = Config { log_format: format, ..Config::defaults() };
            let writer = lines.clone();
            let writer = move || Lines(writer.clone());
            tracing::subscriber::with_default(subscriber(&config, false, writer).unwrap(), || {
                tracing::info_span!("request", id = "a1b2").in_scope(|| info!("something"));
            });
            let lines = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
            assert!(lines.contains(shown) && lines.contains("something"), "{lines}");
        }
    }

    #[test]
    fn an_error_is_one_line_of_json_whatever_it_says() {
        for (message, exit_code) in
            [("two\nlines, a \"quote\" and \u{1b}[31m", Some(2)), ("", None)]
        {
            let lines = Arc::new(Mutex::new(Vec::new()));
            let writer = lines.clone();
            write_error(message, exit_code, move || Lines(writer.clone()));
            let written = String::from_utf8(lines.lock().unwrap().clone()).unwrap();
            assert_eq!(written.matches('\n').count(), 1, "{written:?}");
            let line: Value = serde_json::from_str(&written).unwrap();
            assert_eq!((&line["message"], &line["level"]), (&json!(message), &json!("ERROR")));
            assert_eq!(line.get("exit_code"), exit_code.map(Value::from).as_ref());
            assert!(!written.contains('\u{1b}'), "{written:?}");
        }
    }

    #[test]
    fn what_would_steer_a_terminal_is_escaped() {
        let escaped = |format, colours, line: &str| {
            Escaping { writer: (), format, colours }.escaped(line.as_bytes()).into_owned()
        };
        let line = "fr\u{f6}g \u{7f}\u{9b}\u{202e}\n";
        let text = "fr\u{f6}g \\u{7f}\\u{9b}\\u{202e}\n";
        assert_eq!(escaped(LogFormat::Text, false, line), text);
        assert_eq!(escaped(LogFormat::Text, true, "\x1b[2m\u{9b}"), "\x1b[2m\\u{9b}");
        let json = "fr\u{f6}g \\u007f\\u009b\\u202e\n";
        assert_eq!(escaped(LogFormat::Json, false, line), json);
    }

    struct Lines(Arc<Mutex<Vec<u8>>>);

    impl std::io::Write for Lines {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn what_differs_from_the_defaults_is_said_and_nothing_else() {
        let (defaults, mut config) = (Config::defaults(), Config::defaults());
        assert_eq!(changed(&config, &defaults), [""; 0]);
        config.listen = "0.0.0.0:80".into();
        config.max_batch_queries = 7;
        config.keep_tables = false;
        let mut said = changed(&config, &defaults);
        said.sort();
        assert_eq!(
            said,
            [r#"keep_tables = false"#, r#"listen = "0.0.0.0:80""#, "max_batch_queries = 7"]
        );
    }

    #[test]
    fn a_reload_says_which_changed_settings_it_does_not_put_in_force() {
        let started = Config { listen: "0.0.0.0:80".into(), ..Config::defaults() };
        assert_eq!(later(&started, &started), [""; 0]);
        let model = vec![crate::config::ModelSource::folder("/m")];
        let mut now = Config { model, memory_reserve_mb: 1, ..started.clone() };
        assert_eq!(later(&started, &now), [""; 0]);
        (now.listen, now.api_keys_file) = ("0.0.0.0:81".into(), "/keys".into());
        let mut said = later(&started, &now);
        said.sort();
        assert_eq!(said, ["api_keys_file = (hidden)", r#"listen = "0.0.0.0:81""#]);
    }

    #[test]
    fn secrets_are_not_said() {
        let text = |text: &str| Value::String(text.into());
        for key in ["api_keys", "admin_key", "api_key_hashes", "some_token"] {
            assert!(is_secret(key, &text("x")), "{key}");
        }
        assert!(is_secret("otlp_endpoint", &text("http://user:word@host")));
        assert!(!is_secret("otlp_endpoint", &text("http://host:4318")));
        assert!(!is_secret("keep_tables", &Value::Bool(true)));
    }
}
