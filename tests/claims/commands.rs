//! Command lines of documents: what they name exists.

use std::collections::BTreeSet;
use std::path::Path;

use clap::CommandFactory;
use clap::error::ErrorKind;
use cli::Cli;

use super::none;
use super::text::{Document, documents, read, words_with};
use crate::structure::files;

/// Whether clap's complaint is about what a document leaves open: other arguments, or a value such
/// as N, DIR or ….
fn is_left_open(error: &clap::Error, words: &[String]) -> bool {
    use ErrorKind::{DisplayHelp, DisplayVersion, InvalidValue, ValueValidation};
    use ErrorKind::{MissingRequiredArgument, MissingSubcommand};
    let is_open = |word: &String| word.contains('…') || !word.chars().any(char::is_lowercase);
    match error.kind() {
        DisplayHelp | DisplayVersion | MissingRequiredArgument | MissingSubcommand => true,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => true,
        InvalidValue | ValueValidation => words[1..].iter().any(is_open),
        _ => false,
    }
}

#[test]
fn command_lines_are_those_of_the_program() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for Document { path, commands, .. } in documents() {
        for words in commands.iter().filter(|words| words[0] == "kindred") {
            // It is of the Python package, whose tests read its command lines.
            if words.get(1).is_some_and(|command| command == "follow") {
                continue;
            }
            checked += 1;
            if let Err(error) = Cli::command().try_get_matches_from(words)
                && !is_left_open(&error, words)
            {
                let reason = error.to_string();
                let reason = reason.lines().next().unwrap_or_default();
                faults.push(format!("{path}: {}: {reason}", words.join(" ")));
            }
        }
    }
    none(&faults);
    assert!(checked >= 100, "{checked}");
}

#[test]
fn cargo_has_what_its_command_lines_name() {
    let (mut faults, mut checked) = (Vec::new(), 0);
    for Document { path, commands, .. } in documents() {
        for words in commands.iter().filter(|words| words[0] == "cargo") {
            let after = |flag: &str| {
                let at = words.iter().position(|word| word == flag)?;
                words.get(at + 1).map(String::as_str)
            };
            let line = words.join(" ");
            let mut fault = |what: &str| faults.push(format!("{path}: {line}: there is no {what}"));
            let package = after("-p").unwrap_or("cli");
            let folder = match package {
                "scheduler-schedules" => "crates/scheduler/schedules".to_owned(),
                name => format!("crates/{name}"),
            };
            if !files::top().join(&folder).is_dir() {
                fault(package);
                continue;
            }
            let manifest: toml::Table = read(&format!("{folder}/Cargo.toml")).parse().unwrap();
            for (flag, kind) in
                [("--test", "tests"), ("--bench", "benches"), ("--example", "examples")]
            {
                let Some(name) = after(flag) else { continue };
                checked += 1;
                let declared =
                    manifest.get(flag.trim_start_matches('-')).and_then(|all| all.as_array());
                let mut declared = declared.into_iter().flatten().map(|one| &one["name"]);
                let at = |file: &str| files::top().join(format!("{folder}/{kind}/{file}")).exists();
                if !declared.any(|declared| declared.as_str() == Some(name))
                    && !at(&format!("{name}.rs"))
                    && !at(&format!("{name}/main.rs"))
                {
                    fault(&format!("{flag} {name}"));
                }
            }
            for feature in after("--features").into_iter().flat_map(|all| all.split(',')) {
                checked += 1;
                if manifest.get("features").and_then(|all| all.get(feature)).is_none() {
                    fault(&format!("feature {feature} of {package}"));
                }
            }
            // A file of tests, as in `http::`.
            for module in words.iter().filter_map(|word| word.strip_suffix("::")) {
                let at = |file: String| files::top().join("tests").join(file).exists();
                if !at(format!("{module}.rs")) && !at(module.to_owned()) && module != "NAME" {
                    fault(&format!("file of tests {module}"));
                }
            }
        }
    }
    none(&faults);
    assert!(checked >= 30, "{checked}");
}

#[test]
fn cargo_features_that_documents_name_exist() {
    let features: BTreeSet<String> = ["crates/cli", "crates/server", "crates/scheduler"]
        .map(|folder| read(&format!("{folder}/Cargo.toml")).parse::<toml::Table>().unwrap())
        .iter()
        .flat_map(|manifest| manifest["features"].as_table().unwrap().keys().cloned())
        .collect();
    let (mut faults, mut found) = (Vec::new(), BTreeSet::new());
    for Document { path, prose, commands, .. } in documents() {
        let words = commands.iter().flat_map(|words| words.windows(2));
        found.extend(words.filter(|pair| pair[0] == "--features").map(|pair| pair[1].clone()));
        for after in
            ["feature `", "the features `"].into_iter().flat_map(|by| prose.split(by).skip(1))
        {
            let name = after.split('`').next().unwrap_or_default().to_owned();
            if !features.contains(&name) {
                faults.push(format!("{path}: there is no feature `{name}`"));
            }
            found.insert(name);
        }
    }
    none(&faults);
    let missing: Vec<_> = features.difference(&found).collect();
    assert!(missing.is_empty(), "no document names {missing:?}");
}

/// The long flags of a command and of those below it.
fn flags_of(command: &clap::Command, flags: &mut BTreeSet<String>) {
    let longs =
        command.get_arguments().filter_map(|argument| argument.get_long_and_visible_aliases());
    flags.extend(longs.flatten().map(|flag| format!("--{flag}")));
    command.get_subcommands().for_each(|below| flags_of(below, flags));
}

/// In backticks, as in `--device cuda`: of the program, or of a script, a benchmark or cargo, as
/// scripts call it.
#[test]
fn flags_that_documents_name_exist() {
    // Of curl, of docker.
    const OTHERS: [&str; 3] = ["--data-urlencode", "--build-arg", "--read-only"];
    let is_part = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    let mut flags: BTreeSet<String> = OTHERS.map(str::to_owned).into();
    flags_of(&Cli::command(), &mut flags);
    let is_code = |name: &str| ![".md", ".gz"].iter().any(|end| name.ends_with(end));
    for file in files::below(&files::top(), Path::new(""), is_code) {
        if !file.iter().any(|part| part == "src") {
            words_with(&files::read(&files::top(), &file), "--", is_part, |word| {
                if word.starts_with("--") && !flags.contains(word) {
                    flags.insert(word.to_owned());
                }
            });
        }
    }
    let (mut faults, mut checked) = (Vec::new(), 0);
    for Document { path, quoted, .. } in documents() {
        for code in quoted.iter().filter(|code| code.starts_with("--") && code.len() > 2) {
            let flag = &code[..code.find(|c| !is_part(c)).unwrap_or(code.len())];
            checked += 1;
            if !flags.contains(flag) {
                faults.push(format!("{path}: there is no {flag}"));
            }
        }
    }
    none(&faults);
    assert!(checked >= 100, "{checked}");
}

/// The help of a flag without its default, by commands that make an engine: this one and those
/// below it.
fn helps(command: &clap::Command, id: &str, found: &mut BTreeSet<String>) {
    let is_keeping = command.get_arguments().any(|flag| flag.get_id() == "keep_tables");
    for flag in command.get_arguments().filter(|flag| is_keeping && flag.get_id() == id) {
        let help = flag.get_help().map(ToString::to_string).unwrap_or_default();
        found.insert(help.split(" [default: ").next().unwrap_or_default().to_owned());
    }
    command.get_subcommands().for_each(|below| helps(below, id, found));
}

/// Commands that open a model take some of the settings of `serve`.
#[test]
fn settings_have_the_same_help_in_all_commands() {
    for id in ["threads", "keep_tables", "cache_dir"] {
        let mut found = BTreeSet::new();
        helps(&Cli::command(), id, &mut found);
        assert_eq!(found.len(), 1, "{id}: {found:#?}");
    }
}

/// Variables of the environment that documents and containers name are those of settings, or of
/// these.
#[test]
fn variables_of_the_environment_exist() {
    // KINDRED_PORT is a service link of Kubernetes and Docker, which is no setting; EXECUTABLE is
    // of the Python package's build.
    const OTHERS: [&str; 5] = ["API_KEY", "CONFIG", "URL", "PORT", "EXECUTABLE"];
    let settings: toml::Table = read("config/kindred.toml").parse().unwrap();
    let containers = ["docker/compose.yaml", "docker/Dockerfile"].map(|path| (path, read(path)));
    let documents = documents().into_iter().map(|Document { path, .. }| {
        let text = read(&path);
        (path, text)
    });
    let containers = containers.into_iter().map(|(path, text)| (path.to_owned(), text));
    let (mut faults, mut checked) = (Vec::new(), 0);
    for (path, text) in documents.chain(containers) {
        for after in text.split("KINDRED_").skip(1) {
            let end = after.find(|c: char| c != '_' && !c.is_ascii_uppercase());
            let name = &after[..end.unwrap_or(after.len())];
            let is_known = OTHERS.contains(&name) || settings.contains_key(&name.to_lowercase());
            // As in `KINDRED_*` and KINDRED_SERVICE_….
            if !is_known && !name.is_empty() && !name.ends_with('_') {
                faults.push(format!("{path}: there is no variable KINDRED_{name}"));
            }
            checked += 1;
        }
    }
    none(&faults);
    assert!(checked >= 10, "{checked}");
}

/// Options that curl got after 7.74, the version of Debian 11.
const NEWER_OPTIONS_OF_CURL: [&str; 6] =
    ["--json", "%header{", "%{header_json}", "--fail-with-body", "--url-query", "--variable"];

/// The options in a line's calls of curl, up to a pipe, that 7.74 does not have.
fn newer_options(line: &str) -> Vec<&'static str> {
    let calls = line.split("curl").skip(1).map(|call| call.split('|').next().unwrap_or_default());
    let calls: Vec<&str> = calls.collect();
    let is_used = |option: &&str| calls.iter().any(|call| call.contains(*option));
    NEWER_OPTIONS_OF_CURL.into_iter().filter(is_used).collect()
}

/// In documents, help texts, messages and the explorer alike.
#[test]
fn calls_of_curl_need_no_newer_one() {
    assert_eq!(newer_options("run curl -s --json '{}' x | kindred nearest --json"), ["--json"]);
    assert_eq!(newer_options("curl -s x | kindred expand --json; none"), [""; 0]);
    let ends = [".md", ".rs", ".js", ".ts", ".py", ".sh", ".yaml", ".toml", ".tpl", ".txt"];
    let is_text = |name: &str| ends.iter().any(|end| name.ends_with(end));
    let (mut faults, mut checked) = (Vec::new(), 0);
    for file in files::below(&files::top(), Path::new(""), is_text) {
        let is_history =
            ["CHANGELOG.md", "docs/tried.md"].iter().any(|name| file == Path::new(name));
        if is_history || file.starts_with("tests") {
            continue;
        }
        let text = files::read(&files::top(), &file);
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| line.contains("curl")) {
            checked += 1;
            for option in newer_options(line) {
                faults.push(format!("{}:{number}: curl 7.74 has no {option}", file.display()));
            }
        }
    }
    none(&faults);
    assert!(checked >= 60, "{checked}");
}
