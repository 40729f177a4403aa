//! Messages about command lines that can't be read, in the words of all other messages: the
//! argument, its requirement, the cure. The fault itself is found by clap.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};

use crate::arguments::{Cli, MustBe};

/// The maximum number of examples after the message about a missing argument.
const EXAMPLES: usize = 4;

/// The message about these arguments, which can't be read: the program's name, the fault and the
/// cure. It has several lines, which repeat what was typed: nothing is escaped yet.
pub fn complaint(error: &Error, arguments: &[OsString]) -> String {
    let (name, command) = command_of(arguments);
    let reason = Fault { error, name: &name, command: &command }.reason();
    let lesson = match error.kind() {
        ErrorKind::MissingRequiredArgument | ErrorKind::MissingSubcommand => lesson(&command),
        _ => String::new(),
    };
    format!("kindred: {reason}\n{lesson}For help: {name} --help\n")
}

/// The command that these arguments name, and its name, such as `kindred bulk nearest`.
fn command_of(arguments: &[OsString]) -> (String, Command) {
    let (mut name, mut command) = ("kindred".to_owned(), Cli::command());
    for typed in arguments.iter().skip(1).map_while(|typed| typed.to_str()) {
        let Some(below) = command.find_subcommand(typed).cloned() else { break };
        name = format!("{name} {}", below.get_name());
        command = below;
    }
    (name, command)
}

/// The purpose of a command, and its first examples.
fn lesson(command: &Command) -> String {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = help.lines().skip_while(|line| !line.starts_with("Example"));
    let examples: Vec<&str> =
        examples.skip(1).take_while(|line| line.starts_with("  ")).take(EXAMPLES).collect();
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    match examples.is_empty() {
        true => String::new(),
        false => format!("\n{about}. Examples:\n{}\n\n", examples.join("\n")),
    }
}

/// The fault that clap found in a command line of this command.
struct Fault<'a> {
    error: &'a Error,
    name: &'a str,
    command: &'a Command,
}

impl Fault<'_> {
    fn reason(&self) -> String {
        let (error, name) = (self.error, self.name);
        let (argument, value) =
            (self.text(ContextKind::InvalidArg), self.text(ContextKind::InvalidValue));
        let flag = flag(&argument);
        match error.kind() {
            ErrorKind::ValueValidation => match error.source() {
                Some(source) => match must_be(source) {
                    Some(must_be) => format!("`{flag}` must be {must_be}, not `{value}`"),
                    None => format!("`{flag}`: {source}"),
                },
                None => format!("`{flag}` can't be `{value}`"),
            },
            ErrorKind::InvalidValue => {
                let valid = either(&self.texts(ContextKind::ValidValue));
                match (value.is_empty(), valid.is_empty()) {
                    (true, true) => {
                        format!("`{flag}` needs a value, as in `{}`", as_typed(&argument))
                    }
                    (true, false) => format!("`{flag}` needs a value: {valid}"),
                    (false, _) => format!(
                        "`{flag}` must be {valid}, not `{value}`{}",
                        self.meant(ContextKind::SuggestedValue)
                    ),
                }
            }
            ErrorKind::UnknownArgument => self.unknown(&argument),
            ErrorKind::InvalidSubcommand => {
                self.no_command(&self.text(ContextKind::InvalidSubcommand))
            }
            ErrorKind::ArgumentConflict => self.conflict(flag, &argument),
            ErrorKind::MissingRequiredArgument => {
                let missing = self.texts(ContextKind::InvalidArg);
                let missing: Vec<String> = missing.iter().map(|one| needed(one)).collect();
                format!("`{name}` needs {}", listed(&missing, "and"))
            }
            ErrorKind::MissingSubcommand => {
                let commands = self.texts(ContextKind::ValidSubcommand);
                format!("`{name}` needs a command: {}", either(&commands))
            }
            ErrorKind::TooManyValues => {
                format!("`{flag}` takes no value there; leave out `{value}`")
            }
            ErrorKind::WrongNumberOfValues => {
                let (wanted, given) = (
                    self.number(ContextKind::ExpectedNumValues),
                    self.number(ContextKind::ActualNumValues),
                );
                format!("`{name}` needs {wanted} values for `{flag}`, not {given}")
            }
            ErrorKind::InvalidUtf8 => {
                "an argument is not UTF-8; convert it, for example with iconv".to_owned()
            }
            // Nothing here leads to the others.
            _ => {
                let said = error.to_string();
                let first = said.lines().next().unwrap_or_default();
                first.trim_start_matches("error: ").to_owned()
            }
        }
    }

    fn unknown(&self, argument: &str) -> String {
        let (name, meant) = (self.name, self.meant(ContextKind::SuggestedArg));
        if argument.starts_with('-') {
            let advice = if meant.is_empty() { self.suggested() } else { meant };
            return format!("`{name}` has no option `{argument}`{advice}");
        }
        if self.command.has_subcommands() {
            return self.no_command(argument);
        }
        let cure = if self.command.get_positionals().next().is_some() {
            "; put what has spaces into quotes, as in 'new york'"
        } else {
            ", which takes only options"
        };
        format!("`{argument}` is an argument too many for `{name}`{cure}{}", self.suggested())
    }

    fn no_command(&self, typed: &str) -> String {
        let meant = self.meant(ContextKind::SuggestedSubcommand);
        format!("`{}` has no command `{typed}`{meant}", self.name)
    }

    fn conflict(&self, flag: &str, argument: &str) -> String {
        let others = self.texts(ContextKind::PriorArg);
        let command = self.text(ContextKind::InvalidSubcommand);
        let quoted: Vec<String> =
            others.iter().map(|other| format!("`{}`", self::flag(other))).collect();
        let quoted = listed(&quoted, "and");
        match &others[..] {
            _ if !command.is_empty() => format!(
                "options stand behind the name of their command: `{} {command} …`; {quoted} before \
                 it is for `kindred serve`",
                self.name
            ),
            [] => format!("`{flag}` can't be used with the other arguments"),
            [other] if other == argument => {
                format!("`{flag}` is there twice; give it once")
            }
            _ => format!("`{flag}` can't be used with {quoted}; leave one out"),
        }
    }

    /// A question at the end of a message: `; did you mean x?`, or nothing.
    fn meant(&self, kind: ContextKind) -> String {
        match either(&self.texts(kind)) {
            none if none.is_empty() => none,
            likest => format!("; did you mean {likest}?"),
        }
    }

    /// Other advice of clap's, at the end of a message.
    fn suggested(&self) -> String {
        match self.error.get(ContextKind::Suggested) {
            Some(ContextValue::StyledStrs(all)) => {
                all.iter().map(|one| format!("; {}", one.to_string().replace('\'', "`"))).collect()
            }
            _ => String::new(),
        }
    }

    fn text(&self, kind: ContextKind) -> String {
        match self.error.get(kind) {
            Some(ContextValue::String(text)) => text.clone(),
            _ => String::new(),
        }
    }

    fn number(&self, kind: ContextKind) -> isize {
        match self.error.get(kind) {
            Some(ContextValue::Number(number)) => *number,
            _ => 0,
        }
    }

    fn texts(&self, kind: ContextKind) -> Vec<String> {
        match self.error.get(kind) {
            Some(ContextValue::Strings(texts)) => texts.clone(),
            Some(ContextValue::String(text)) => vec![text.clone()],
            _ => Vec::new(),
        }
    }
}

/// The requirement on a value, if the error of its parser has it.
fn must_be(source: &(dyn std::error::Error + 'static)) -> Option<String> {
    if let Some(MustBe(words)) = source.downcast_ref::<MustBe>() {
        return Some(words.clone());
    }
    if let Some(error) = source.downcast_ref::<ParseIntError>() {
        let words = match error.kind() {
            IntErrorKind::PosOverflow => "a smaller whole number",
            _ => "a whole number",
        };
        return Some(words.to_owned());
    }
    if source.is::<ParseFloatError>() {
        return Some("a number".to_owned());
    }
    // clap's own words for what does not fit into a type.
    let said = source.to_string();
    let (from, to) = said.split_once(" is not in ")?.1.split_once("..=")?;
    Some(format!("a whole number from {from} to {to}"))
}

/// The name of an argument: `--data` of `--data <FILE>...`.
fn flag(shown: &str) -> &str {
    let name = shown.split(' ').next().unwrap_or_default();
    if name.starts_with('-') { name } else { bare(name) }
}

/// An argument as people type it: `--data FILE` of `--data <FILE>...`.
fn as_typed(shown: &str) -> String {
    match shown.split_once(' ') {
        Some((flag, value)) if flag.starts_with('-') => format!("{flag} {}", bare(value)),
        _ => bare(shown).to_owned(),
    }
}

/// The name of a value, without the brackets around it.
fn bare(value: &str) -> &str {
    let value = value.trim_end_matches("...");
    let inner = |open: char, close: char| value.strip_prefix(open)?.strip_suffix(close);
    inner('<', '>').or_else(|| inner('[', ']')).unwrap_or(value)
}

/// A missing argument, or each of a group of which one is missing: `<--a <X>|--b <Y>...>`.
fn needed(shown: &str) -> String {
    let group = shown.strip_prefix('<').and_then(|group| group.strip_suffix('>'));
    match group.filter(|group| group.contains('|')) {
        Some(group) => {
            let each: Vec<String> =
                group.split('|').map(|one| format!("`{}`", as_typed(one))).collect();
            listed(&each, "or")
        }
        None => format!("`{}`", as_typed(shown)),
    }
}

fn either(words: &[String]) -> String {
    listed(words, "or")
}

/// `a, b or c`.
fn listed(words: &[String], last: &str) -> String {
    match words {
        [] => String::new(),
        [only] => only.clone(),
        [first @ .., end] => format!("{} {last} {end}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    fn said(arguments: &[&str]) -> String {
        let arguments = [&["kindred"], arguments].concat();
        let error = Cli::try_parse_from(&arguments).expect_err("it can't be read");
        let arguments: Vec<OsString> = arguments.iter().map(OsString::from).collect();
        complaint(&error, &arguments)
    }

    #[test]
    fn each_kind_of_value_says_what_it_must_be() {
        for (arguments, expected) in [
            (
                &["nearest", "a", "-k", "0"][..],
                "`--k` must be a whole number from 1 to 1000, not `0`",
            ),
            (&["nearest", "a", "-k", "x"], "`--k` must be a whole number from 1 to 1000, not `x`"),
            (&["nearest", "a", "-k", "2.5"], "from 1 to 1000, not `2.5`"),
            (
                &["nearest", "a", "--vocab-limit", "0"],
                "`--vocab-limit` must be a whole number of at least 1 (the number of rows to search)",
            ),
            (&["nearest", "a", "--min-score", "x"], "`--min-score` must be a finite number"),
            (&["nearest", "a", "--min-score", "inf"], "not `inf`"),
            (
                &["nearest", "a", "--threads", "9999"],
                "`--threads` must be a whole number from 0 to 1024, not `9999`",
            ),
            (
                &["nearest", "a", "--keep-tables", "maybe"],
                "`--keep-tables` must be true or false, not `maybe`",
            ),
            (&["nearest", "a", "--device", "tpu"], "`--device`: unknown device `tpu`; use auto"),
            (
                &["analogy", "a", "--method", "best"],
                "`--method` must be 3cosadd, 3cosmul or pairdirection, not `best`",
            ),
            (&["analogy", "a", "--method", "3cosad"], "did you mean 3cosadd?"),
            (&["serve", "--model", ""], "`--model` needs a value, as in `--model [NAME=]DIR`"),
            (&["serve", "--model"], "`--model` needs a value, as in `--model [NAME=]DIR`"),
            (&["analogy", "a", "--method"], "needs a value: 3cosadd, 3cosmul or pairdirection"),
            (&["serve", "--http-threads", "x"], "`--http-threads` must be a whole number, not `x`"),
            (
                &["serve", "--memory-reserve-mb", "99999999999999999999"],
                "must be a smaller whole number",
            ),
            (
                &["serve", "--engine-max-restarts", "4294967296"],
                "must be a whole number from 0 to 4294967295, not `4294967296`",
            ),
            (&["serve", "--traces-sample-ratio", "x"], "must be a number, not `x`"),
            (&["serve", "--log-format", "xml"], "must be text or json, not `xml`"),
            (&["graph", "--out", "g.npz", "--min-score", "NaN"], "must be a finite number"),
            (&["graph", "--out", "g.npz", "--first-rows", "0"], "a whole number of at least 1"),
            (&["classify", "--threshold", "2"], "must be a number from 0 to 1, not `2`"),
            (&["classify", "--top", "0"], "must be a whole number of at least 1, not `0`"),
            (&["expand", "--format", "x"], "`--format`: unknown form `x`; forms: terms"),
            (&["similarity", "a", "b", "--unknown", "x"], "must be error or skip, not `x`"),
            (&["completions", "tcsh"], "must be bash, elvish, fish, powershell or zsh, not `tcsh`"),
            (&["health", "--timeout-ms", "0"], "must be a whole number of at least 1, not `0`"),
        ] {
            let said = said(arguments);
            assert!(said.starts_with("kindred: ") && said.contains(expected), "{said}");
            assert!(said.lines().count() == 2 && !said.contains("invalid"), "{said}");
        }
    }

    #[test]
    fn other_faults_name_the_argument_and_the_cure() {
        for (arguments, expected) in [
            (
                &["nearest", "a", "--jsn"][..],
                "`kindred nearest` has no option `--jsn`; did you mean --json?",
            ),
            (&["nearest", "new", "york"], "`york` is an argument too many for `kindred nearest`"),
            (
                &["health", "http://127.0.0.1:8080"],
                "is an argument too many for `kindred health`, which takes only options",
            ),
            (&["nearst", "a"], "`kindred` has no command `nearst`; did you mean nearest?"),
            (&["frog"], "`kindred` has no command `frog`"),
            (&["bulk", "count"], "`kindred bulk` has no command `count`"),
            (
                &["console", "--compat", "--compare"],
                "`--compat` can't be used with `--compare`; leave one out",
            ),
            (&["nearest", "a", "--device", "cpu", "--device", "cpu"], "`--device` is there twice"),
            (&["nearest", "a", "--json=yes"], "`--json` takes no value there; leave out `yes`"),
            (
                &["--listen", "127.0.0.1:0", "nearest", "a"],
                "`kindred nearest …`; `--listen` before it is for `kindred serve`",
            ),
            (&["verify", "--model", "a", "b"], "`--model` can't be used with `[NAME=]DIR`"),
            (&["eval", "--head", "h", "--similarities", "s"], "needs `--classification FILE`"),
            (&["similarity", "a"], "`kindred similarity` needs 2 values for `WORD`, not 1"),
            (&["similarity", "a", "b", "c"], "needs 2 values for `WORD`, not 3"),
            (&["similarity", "--left", "a"], "needs `--right WORD`"),
            (
                &["similarity", "a", "b", "--url", "u", "--model", "m"],
                "`--url` can't be used with `--model`; leave one out",
            ),
            (&["classify", "a", "--api-key", "k"], "needs `--url URL`"),
            (&["rank", "a", "--word", "b", "-k", "5"], "`kindred rank` has no option `-k`"),
        ] {
            let said = said(arguments);
            assert!(said.contains(expected), "{expected}: {said}");
        }
    }

    #[test]
    fn missing_arguments_are_taught_by_examples() {
        for (arguments, expected, example) in [
            (
                &["eval"][..],
                "`kindred eval` needs `--analogies FILE`, `--similarities FILE` or \
                 `--classification FILE`\n",
                "\n  kindred eval --model models/",
            ),
            (
                &["nearest"],
                "`kindred nearest` needs `WORD` or `--text TEXT`\n",
                "\n  kindred nearest frog\n",
            ),
            (
                &["similarity"],
                "`kindred similarity` needs `WORD` or `--left WORD`\n",
                "\n  kindred similarity frog toad\n",
            ),
            (&["odd-one-out"], "needs `WORD`\n", "\n  kindred odd-one-out breakfast"),
            (
                &["rank", "toad"],
                "needs `--word WORD`, `--text TEXT` or `--expression EXPRESSION`\n",
                "\n  kindred rank toad",
            ),
            (&["prepare", "in.txt"], "needs `--out DIR`\n", "\n  kindred prepare glove"),
            (
                &["synth", "--rows", "1", "--dim", "1"],
                "needs `--out DIR` or `--text FILE`\n",
                "\n  kindred synth --rows",
            ),
            (
                &["import-head", "--weights", "w", "--out", "h"],
                "needs `--labels NAME`, `--labels-file FILE` or `--expander`\n",
                "\n  kindred import-head --weights",
            ),
        ] {
            let said = said(arguments);
            assert!(said.contains(expected) && said.contains(example), "{said}");
            assert!(said.ends_with(" --help\n") && said.lines().count() <= 10, "{said}");
        }
    }
}
