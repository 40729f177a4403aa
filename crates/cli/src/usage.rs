//! Messages about command lines that can't be read, in the words of all other messages: the
//! argument, its requirement, the cure. The fault itself is found by clap.

use std::error::Error as _;
use std::ffi::OsString;
use std::num::{IntErrorKind, ParseFloatError, ParseIntError};

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Command, CommandFactory, Error, Parser as _};

use crate::arguments::{Cli, MustBe};

/// The maximum number of examples after the message about a missing argument.
const EXAMPLES: usize = 4;

/// The message about these arguments, which can't be read: the program's name, the fault and the
/// cure. It has several lines, which repeat what was typed: nothing is escaped yet.
pub fn complaint(error: &Error, arguments: &[OsString]) -> String {
    let (name, command) = command_of(arguments);
    let fault = Fault { error, name: &name, command: &command, arguments };
    let reason = fault.of_value().unwrap_or_else(|| fault.reason());
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
    /// All that was typed, from the program's name on.
    arguments: &'a [OsString],
}

impl Fault<'_> {
    /// The fault of a value that was taken for an option, because it begins with `-`: `--k -1`.
    fn of_value(&self) -> Option<String> {
        if self.error.kind() != ErrorKind::UnknownArgument {
            return None;
        }
        let at = self.place_of(&self.text(ContextKind::InvalidArg))?;
        let before = at.checked_sub(1)?;
        let (option, value) = (self.arguments[before].to_str()?, self.arguments[at].to_str()?);
        if value.starts_with("--") || !self.takes_value(option) {
            return None;
        }
        let mut joined = self.arguments.to_vec();
        joined.splice(before..=at, [OsString::from(format!("{option}={value}"))]);
        match Cli::try_parse_from(&joined) {
            Err(error)
                if matches!(error.kind(), ErrorKind::ValueValidation | ErrorKind::InvalidValue) =>
            {
                let (name, command) = (self.name, self.command);
                Some(Fault { error: &error, name, command, arguments: &joined }.reason())
            }
            _ => Some(format!(
                "`{option}` needs a value; if that is `{value}`, write `{option}={value}`"
            )),
        }
    }

    /// The place of an argument that was typed. clap takes `-12` for several options, and names
    /// `-1`.
    fn place_of(&self, argument: &str) -> Option<usize> {
        let place = |is: &dyn Fn(&str) -> bool| {
            self.arguments.iter().position(|typed| typed.to_str().is_some_and(is))
        };
        let is_short = argument.chars().count() == 2 && argument != "--";
        place(&|typed| typed == argument)
            .or_else(|| place(&|typed| is_short && typed.starts_with(argument)))
    }

    /// Whether this is an option that takes a value.
    fn takes_value(&self, typed: &str) -> bool {
        self.command.get_arguments().any(|one| {
            let is_long = typed.strip_prefix("--").is_some_and(|name| one.get_long() == Some(name));
            let short = typed.strip_prefix('-').zip(one.get_short());
            let is_short = short.is_some_and(|(typed, short)| typed.chars().eq([short]));
            one.get_action().takes_values() && (is_long || is_short)
        })
    }

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
                    (true, true) if !flag.starts_with('-') => format!("`{flag}` can't be empty"),
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
        let takes = |id: &str| self.command.get_positionals().any(|one| one.get_id() == id);
        if takes("expression") && (argument == "-" || !argument.starts_with('-')) {
            return format!(
                "`{argument}` is an argument too many for `{name}`; put the whole expression into \
                 quotes, as in 'king - man + woman'"
            );
        }
        if argument.starts_with('-') {
            let end = self.arguments.iter().position(|typed| typed == "--");
            if end.is_some_and(|end| self.place_of(argument) > Some(end)) {
                return format!(
                    "`{argument}` stands behind `--`, where nothing is an option; put options \
                     before it"
                );
            }
            let mut positionals = self.command.get_positionals();
            let takes_more = positionals.any(|one| matches!(one.get_action(), ArgAction::Append));
            let advice = match meant.is_empty() && takes_more {
                true => self.suggested(),
                false => meant,
            };
            return format!("`{name}` has no option `{argument}`{advice}");
        }
        if self.command.has_subcommands() {
            return self.no_command(argument);
        }
        if let Some(option) = self.option_as_word(argument) {
            return format!("`{name}` has no option `{option}`");
        }
        if self.command.get_positionals().next().is_none() {
            return format!(
                "`{argument}` is an argument too many for `{name}`, which takes options only; put \
                 the name of its option before it"
            );
        }
        if self.lacks_output() {
            return format!(
                "`{argument}` is an argument too many for `{name}`; if it is the output, write \
                 `--out {argument}`"
            );
        }
        format!(
            "`{argument}` is an argument too many for `{name}`; put what has spaces into quotes, \
             as in 'new york'{}",
            self.suggested()
        )
    }

    /// Whether the command writes to `--out`, and that was not typed.
    fn lacks_output(&self) -> bool {
        let is_out = |typed: &str| typed == "--out" || typed.starts_with("--out=");
        self.command.get_arguments().any(|one| one.get_long() == Some("out"))
            && !self.arguments.iter().filter_map(|typed| typed.to_str()).any(is_out)
    }

    /// An option before this argument that the command does not have, and that was taken for a
    /// word: words may begin with `-`.
    fn option_as_word(&self, argument: &str) -> Option<&str> {
        let before = &self.arguments[..self.place_of(argument)?];
        let words: Vec<&str> = before.iter().map_while(|typed| typed.to_str()).collect();
        let end = words.iter().position(|word| *word == "--").unwrap_or(words.len());
        let is_unknown = |at: &usize| {
            let Some(rest) = words[*at].strip_prefix("--") else { return false };
            let name = rest.split('=').next();
            let is_known = self.command.get_arguments().any(|one| one.get_long() == name);
            !is_known && !self.takes_value(words[*at - 1])
        };
        (1..end).find(is_unknown).map(|at| words[at])
    }

    fn no_command(&self, typed: &str) -> String {
        let meant = self.meant(ContextKind::SuggestedSubcommand);
        if typed == "follow" && self.name == "kindred" {
            return "`kindred follow`, which keeps a table equal to one of PostgreSQL, a topic of \
                    Kafka or files, is part of the Python package: pip install \
                    'kindred-vectors[postgres]' or [kafka] or [client], then run the `kindred` \
                    that it installs, or python3 -m kindred.follow"
                .to_owned();
        }
        // `kindred frog`, but not `kindred help frog`.
        let is_first = self.arguments.get(1).is_some_and(|first| first == typed);
        let advice = match meant.is_empty() && is_first && self.name == "kindred" {
            true => "; to look up a word: kindred nearest WORD".to_owned(),
            false => meant,
        };
        format!("`{}` has no command `{typed}`{advice}", self.name)
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
        // clap puts the likest last.
        let likest: Vec<String> = self.texts(kind).into_iter().rev().collect();
        match either(&likest) {
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
mod tests;
