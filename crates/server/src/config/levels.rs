//! Log levels: one for all modules, or one per module, as in `info,scheduler=debug`.

use tracing_subscriber::filter::Targets;

use super::spelling::did_you_mean;

/// The names of levels.
const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];

/// The targets of log lines: the access log, and crates, or modules of these.
const LOGGERS: [&str; 9] =
    ["access", "server", "kindred", "scheduler", "h2", "rustls", "rustyline", "ureq", "ureq_proto"];

/// Parses log levels. Modules that are not named log errors. If a module has several levels, the
/// last one counts.
///
/// # Errors
/// Names what is no level or no module: otherwise a misspelt level would turn the log off.
pub(crate) fn levels(text: &str) -> Result<Targets, String> {
    // h2 warns about each client that it disconnects for flooding. These warnings appear only on
    // request ("info,h2=warn").
    let mut parsed = vec!["error".to_owned(), "h2=error".to_owned()];
    for one in text.split(',').map(str::trim) {
        match one.split_once('=') {
            None => parsed.push(level(one)?.to_owned()),
            Some((target, of_target)) => {
                let (target, level) = (target.trim(), level(of_target.trim())?);
                check_target(target)?;
                parsed.push(format!("{target}={level}"));
            }
        }
    }
    let parsed = parsed.join(",");
    parsed.parse().map_err(|error| format!("`{text}` can't be read: {error}"))
}

fn level(text: &str) -> Result<&'static str, String> {
    let found = LEVELS.into_iter().find(|level| level.eq_ignore_ascii_case(text));
    found.ok_or_else(|| {
        let known = LEVELS.join(", ");
        let cure = match LOGGERS.contains(&text.split("::").next().unwrap_or_default()) {
            true => format!("; for the level of a module, write {text}=debug"),
            false => did_you_mean(text, LEVELS),
        };
        format!("`{text}` is not a level; levels: {known}{cure}")
    })
}

fn check_target(target: &str) -> Result<(), String> {
    let mut segments = target.split("::");
    let logger = segments.next().unwrap_or_default();
    let is_name = |name: &str| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    };
    if LOGGERS.contains(&logger) && segments.all(is_name) {
        return Ok(());
    }
    let (known, cure) = (LOGGERS.join(", "), did_you_mean(logger, LOGGERS));
    Err(format!("nothing logs as `{target}`; modules are {known}, or inside these{cure}"))
}

#[cfg(test)]
mod tests {
    use tracing::Level;

    use super::*;

    #[test]
    fn levels_are_for_all_and_by_module() {
        let said = levels("info, server::queue=debug,h2=WARN,ureq=off, scheduler = TRACE").unwrap();
        for (target, level, is_logged) in [
            ("server", Level::INFO, true),
            ("server", Level::DEBUG, false),
            ("server::queue::lanes", Level::DEBUG, true),
            ("h2::server", Level::WARN, true),
            ("h2::server", Level::INFO, false),
            ("ureq", Level::ERROR, false),
            ("scheduler::worker", Level::TRACE, true),
        ] {
            assert_eq!(said.would_enable(target, &level), is_logged, "{target} {level}");
        }
        let only = levels("scheduler=debug").unwrap();
        assert!(only.would_enable("server", &Level::ERROR), "errors are not lost");
        assert!(!only.would_enable("server", &Level::WARN));
        assert!(!levels("info").unwrap().would_enable("h2", &Level::WARN));
        let off = levels("off").unwrap();
        assert!(!off.would_enable("server", &Level::ERROR), "as it was written");
        assert!(levels("off,access=info").unwrap().would_enable("access", &Level::INFO));
        let last = levels("debug,info").unwrap();
        assert!(!last.would_enable("server", &Level::DEBUG), "the last one counts");
    }

    #[test]
    fn what_is_misspelt_is_refused_with_what_was_meant() {
        for (wrong, expected) in [
            (
                "inf",
                "`inf` is not a level; levels: error, warn, info, debug, trace, off; did you mean info?",
            ),
            ("warning", "did you mean warn?"),
            ("ERR", "did you mean error?"),
            ("verbose", "`verbose` is not a level"),
            ("", "`` is not a level"),
            ("info,", "`` is not a level"),
            ("2", "`2` is not a level"),
            ("info,access=inf", "did you mean info?"),
            ("info,acces=debug", "nothing logs as `acces`"),
            ("info,acces=debug", "did you mean access?"),
            ("info,Scheduler=debug", "did you mean scheduler?"),
            ("info,scheduller::worker=debug", "did you mean scheduler?"),
            ("info,cpu-core=debug", "nothing logs as `cpu-core`"),
            ("info,server::=debug", "nothing logs as `server::`"),
            ("info,=debug", "nothing logs as ``"),
            ("server", "write server=debug"),
            ("scheduler::worker", "write scheduler::worker=debug"),
            ("server=", "`` is not a level"),
            ("=loud=", "is not a level"),
            ("server=info=debug", "is not a level"),
            ("info,[span]=debug", "nothing logs as `[span]`"),
            ("server[{id}]=debug", "nothing logs as `server[{id}]`"),
            ("info;debug", "`info;debug` is not a level"),
        ] {
            let error = levels(wrong).expect_err(wrong);
            assert!(error.contains(expected), "{wrong}: {error}");
        }
    }

    #[test]
    fn what_logs_uses_a_library_that_logs() {
        let lock = include_str!("../../../../Cargo.lock");
        for logger in LOGGERS.into_iter().filter(|logger| *logger != "access") {
            let name = format!("\nname = \"{}\"\n", logger.replace('_', "-"));
            let package = lock.split("[[package]]").find(|package| package.contains(&name));
            let package = package.unwrap_or_else(|| panic!("there is no {logger}"));
            assert!(package.contains("\"tracing\"") || package.contains("\"log\""), "{logger}");
        }
    }
}
