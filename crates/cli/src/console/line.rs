//! Parses a line of the console.

use super::service::Service;
use crate::error::CommandError;
use kindred::expression;
use kindred::heads::HeadKind;
use kindred::method::Method;
use kindred::options::{MAX_K, MAX_OFFSET};
use kindred::{Error, Target};

/// A parsed line.
#[derive(Debug, PartialEq)]
pub(super) enum Line<'a> {
    Empty,
    /// A word or an expression.
    Question(&'a str),
    /// A text for a head of this kind.
    Text(HeadKind, &'a str),
    /// The name of the head to ask; empty for the only one of each kind.
    Head(&'a str),
    K(u64),
    /// On, off, or `None` to toggle.
    Compare(Option<bool>),
    Explain(Option<bool>),
    Method(Method),
    /// Which rows to search; empty for all.
    Filter(&'a str),
    /// The neighbours that are left out: those of earlier pages.
    Offset(u64),
    /// The attribute of whose values only the best row is returned; empty for all rows.
    Distinct(&'a str),
    Model,
    Help,
    Quit,
}

/// The names of the commands, their arguments, and what they do.
pub(super) const COMMANDS: [(&str, &str, &str); 13] = [
    (":classify", "TEXT", "show the labels that the model's head gives to a text"),
    (":expand", "TEXT", "show the terms that a text implies, with weights and tokens"),
    (":head", "NAME", "choose the classifier or the expander, if the model has several"),
    (":k", "N", "set the number of neighbours and of terms"),
    (
        ":compare",
        "[on|off]",
        "also run the plain reference; show both times and whether the answers are identical",
    ),
    (
        ":explain",
        "[on|off]",
        "show what each word contributes to each score, or which parts of a text decide",
    ),
    (":method", "NAME", "set the analogy method: 3cosadd, 3cosmul or pairdirection"),
    (":filter", "FILTER", "search only rows whose attributes meet this; alone: all rows"),
    (":offset", "N", "leave out the N best neighbours, to see the next ones; 0 for none"),
    (":distinct", "ATTRIBUTE", "show only the best row of each of its values; alone: all rows"),
    (":model", "", "show information about the model"),
    (":help", "", "say this"),
    (":quit", "", "quit, like Ctrl-D"),
];

/// Parses a line. If it begins with a colon and a letter, it is a command. A word that begins like
/// this must be in double quotes.
pub(super) fn read(line: &str) -> Result<Line<'_>, CommandError> {
    let line = line.trim();
    if line.is_empty() {
        return Ok(Line::Empty);
    }
    let is_command = line
        .strip_prefix(':')
        .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()));
    if !is_command {
        return Ok(Line::Question(line));
    }
    let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    match name {
        ":classify" => text(HeadKind::Classifier, line, rest, "a moving and funny film"),
        ":expand" => text(HeadKind::Expander, line, rest, "cheap flights to the coast"),
        ":head" => Ok(Line::Head(rest.trim_start())),
        ":filter" => filter(rest.trim_start()),
        _ => command(line),
    }
}

/// A command with a text, such as `example`.
fn text<'a>(
    kind: HeadKind,
    line: &'a str,
    text: &'a str,
    example: &str,
) -> Result<Line<'a>, CommandError> {
    match text.trim_start() {
        "" => Err(CommandError::BadLine(format!(
            "`{line}`: {line} takes a text, as in `{line} {example}`"
        ))),
        text => Ok(Line::Text(kind, text)),
    }
}

/// A filter, whose attributes are looked up with the next question.
fn filter(text: &str) -> Result<Line<'_>, CommandError> {
    match kindred::filters::parse(text) {
        Err(fault) if !text.is_empty() => {
            Err(CommandError::BadLine(format!("{fault}\n  {}", indented(&fault.caret(text)))))
        }
        _ => Ok(Line::Filter(text)),
    }
}

/// Both lines with the same space before them.
fn indented(lines: &str) -> String {
    lines.replace('\n', "\n  ")
}

fn command(line: &str) -> Result<Line<'_>, CommandError> {
    let mut words = line.split_whitespace();
    let name = words.next().unwrap_or_default();
    let (argument, more) = (words.next(), words.next());
    let bad = |wanted: &str| CommandError::BadLine(format!("`{line}`: {name} takes {wanted}"));
    let switch = || match argument {
        None => Ok(None),
        Some("on") => Ok(Some(true)),
        Some("off") => Ok(Some(false)),
        Some(_) => Err(bad("on, off, or nothing")),
    };
    let alone = |command| if argument.is_none() { Ok(command) } else { Err(bad("nothing")) };
    if more.is_some() && COMMANDS.iter().any(|(known, ..)| *known == name) {
        return Err(bad("no more than one word"));
    }
    let number = |from: u64, to: u64, example: &str| {
        let number = argument.and_then(|number| number.parse().ok());
        let number = number.filter(|number| (from..=to).contains(number));
        number.ok_or_else(|| bad(&format!("a number from {from} to {to}, as in `{example}`")))
    };
    match name {
        ":k" => number(1, MAX_K, ":k 20").map(Line::K),
        ":distinct" => Ok(Line::Distinct(argument.unwrap_or_default())),
        ":offset" => number(0, MAX_OFFSET, ":offset 10").map(Line::Offset),
        ":compare" => Ok(Line::Compare(switch()?)),
        ":explain" => Ok(Line::Explain(switch()?)),
        ":method" => {
            let method = argument.and_then(|name| name.to_lowercase().parse::<Method>().ok());
            method.map(Line::Method).ok_or_else(|| bad("3cosadd, 3cosmul or pairdirection"))
        }
        ":model" => alone(Line::Model),
        ":help" => alone(Line::Help),
        ":quit" => alone(Line::Quit),
        _ => {
            let known: Vec<_> = COMMANDS.iter().map(|(name, ..)| *name).collect();
            Err(CommandError::BadLine(format!(
                "unknown command `{name}`; commands: {} (to query the word, put it in double quotes: \
                 \"{name}\")",
                known.join(", ")
            )))
        }
    }
}

/// The question of a line. If the model has the whole line, spaces included, as a word, the
/// question is that word. Otherwise it is an expression, or, if the expression is a single word,
/// that word.
pub(super) fn question(line: &str, service: &dyn Service) -> Result<Target, CommandError> {
    let terms = expression::parse(line);
    let single = match terms.as_deref() {
        Ok([term]) if term.weight == 1.0 => Some(term.word.clone()),
        _ => None,
    };
    match single {
        Some(word) if word == line => Ok(Target::Word(word)),
        _ if service.has_word(line)? => Ok(Target::word(line)),
        Some(word) => Ok(Target::Word(word)),
        None => Ok(Target::Words(terms.map_err(Error::from)?)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_colon_and_a_letter_begin_a_command() {
        for (line, expected) in [
            ("", Line::Empty),
            (" \t", Line::Empty),
            (" frog ", Line::Question("frog")),
            (":", Line::Question(":")),
            (":)", Line::Question(":)")),
            (":k 20", Line::K(20)),
            (":compare", Line::Compare(None)),
            (":compare off", Line::Compare(Some(false))),
            (":explain on", Line::Explain(Some(true))),
            (":classify  not  bad ", Line::Text(HeadKind::Classifier, "not  bad")),
            (":expand  cheap  flights ", Line::Text(HeadKind::Expander, "cheap  flights")),
            (":head x", Line::Head("x")),
            (":method 3CosMul", Line::Method(Method::ThreeCosMul)),
            (":filter  price < 80 ", Line::Filter("price < 80")),
            (":filter", Line::Filter("")),
            (":offset 10", Line::Offset(10)),
            (":offset 0", Line::Offset(0)),
            (":distinct  kind ", Line::Distinct("kind")),
            (":distinct", Line::Distinct("")),
            (" :quit", Line::Quit),
        ] {
            assert_eq!(read(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn what_is_wrong_with_a_command_is_said_with_what_would_be_right() {
        for (line, part) in [
            (":k", "from 1 to 1000"),
            (":k 0", "from 1 to 1000"),
            (":k 1001", "from 1 to 1000"),
            (":k 5 6", "no more than one word"),
            (":distinct a b", "no more than one word"),
            (":offset", "from 0 to 999, as in `:offset 10`"),
            (":offset 1000", "from 0 to 999"),
            (":offset -1", "from 0 to 999"),
            (":compare maybe", "on, off"),
            (":method best", "pairdirection"),
            (":model x", "nothing"),
            (
                ":kk 5",
                ":classify, :expand, :head, :k, :compare, :explain, :method, :filter, :offset, \
                 :distinct, :model, :help, :quit",
            ),
            (":classify", ":classify takes a text"),
            (":filter price <", "column 8"),
            (":expand ", ":expand takes a text, as in `:expand cheap"),
        ] {
            let said = read(line).unwrap_err().to_string();
            assert!(said.contains(part), "{line}: {said}");
        }
    }
}
