//! `kindred console`, and single questions: `nearest`, `analogy`, `similarity`, `odd-one-out` and
//! `rank`.

use std::io::{self, IsTerminal};

use super::CommandError;
use crate::arguments::{
    AnalogyArguments, AnswerSource, ConsoleArguments, NearestArguments, OddOneOutArguments,
    OutputOptions, QuestionOptions, RankArguments, SimilarityArguments,
};
use crate::console::{self, Form, Session};
use kindred::method::Method;
use kindred::question::MIN_COMPARED_WORDS;
use kindred::{Options, Side, Target};
use server::config::{Config, ConfigError};
use server::logging;

/// Answers line by line: on a terminal, with history and completion; otherwise, from standard input
/// until it ends.
pub(super) fn console(arguments: &ConsoleArguments) -> Result<(), CommandError> {
    let ConsoleArguments { source, head, options, method, output, compat } = arguments;
    let source = AnswerSource { head: head.clone(), ..source.clone() };
    start_log()?;
    let mut session = Session::new(&source, &options.0, *method, output.compare)?;
    let form = Form::new(output.json);
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        console::talk(&mut session, form, *compat)?;
    } else {
        console::answer_lines(&mut session, form, *compat)?;
    }
    Ok(())
}

/// Answers one word, or one text.
pub(super) fn nearest(arguments: &NearestArguments) -> Result<(), CommandError> {
    let NearestArguments { word, text, source, options, output } = arguments;
    if let Some(text) = text {
        return ask(source, options, None, *output, &Target::text(text), text);
    }
    let word = word.as_deref().unwrap_or_default();
    let answered = ask(source, options, None, *output, &Target::word(word), word);
    answered.map_err(|error| match error {
        CommandError::Refused(reason) if looks_like_an_expression(word) => {
            CommandError::Refused(format!(
                "{reason} (`kindred nearest` reads its argument as one word; for expressions use `kindred \
                 analogy`)"
            ))
        }
        error => error,
    })
}

/// Whether it contains an operator between spaces. Few words do.
fn looks_like_an_expression(word: &str) -> bool {
    word.split_whitespace().any(|piece| matches!(piece, "+" | "-"))
}

/// Answers one expression.
pub(super) fn analogy(arguments: &AnalogyArguments) -> Result<(), CommandError> {
    let AnalogyArguments { expression, source, options, method, output } = arguments;
    let target = Target::expression(expression)?;
    ask(source, options, *method, *output, &target, expression)
}

fn ask(
    source: &AnswerSource,
    options: &QuestionOptions,
    method: Option<Method>,
    output: OutputOptions,
    question: &Target,
    asked: &str,
) -> Result<(), CommandError> {
    start_log()?;
    let mut session = Session::single(source, &options.0, method, output.compare)?;
    console::answer_one(&mut session, output.json, question, asked)
}

/// Says how similar two words or sets of words are.
pub(super) fn similarity(arguments: &SimilarityArguments) -> Result<(), CommandError> {
    let SimilarityArguments { words, left, right, comparison } = arguments;
    let sides = match &words[..] {
        [a, b] => [a, b].map(|word| Side::Word(word.clone())),
        _ => [left, right].map(|words| Side::Set(words.clone())),
    };
    start_log()?;
    let session = Session::without_search(&comparison.source)?;
    let unknown = comparison.unknown;
    console::similarity(&session, comparison.json, sides, unknown)
}

/// Says which of some words is the odd one.
pub(super) fn odd_one_out(arguments: &OddOneOutArguments) -> Result<(), CommandError> {
    let OddOneOutArguments { words, comparison } = arguments;
    if words.len() < MIN_COMPARED_WORDS {
        let given = words.len();
        return Err(CommandError::Usage(format!(
            "`kindred odd-one-out` needs at least {MIN_COMPARED_WORDS} words with spaces between \
             them, not {given}"
        )));
    }
    start_log()?;
    let session = Session::without_search(&comparison.source)?;
    let unknown = comparison.unknown;
    console::odd_one_out(&session, comparison.json, words, unknown)
}

/// Says which ranks words have among the neighbours of a word, a text or an expression.
pub(super) fn rank(arguments: &RankArguments) -> Result<(), CommandError> {
    let RankArguments { words, word, text, expression, method, unknown, .. } = arguments;
    check_expression_is_whole(expression.as_deref(), words)?;
    let (target, asked) = match (word, text, expression) {
        (Some(word), ..) => (Target::word(word), word),
        (_, Some(text), _) => (Target::text(text), text),
        (.., Some(expression)) => (Target::expression(expression)?, expression),
        _ => return Err(CommandError::Usage("give --word, --text or --expression".to_owned())),
    };
    let RankArguments { options, json, source, .. } = arguments;
    let options = Options { method: *method, unknown: *unknown, ..options.0.clone() };
    start_log()?;
    let session = Session::single(source, &Options::default(), None, false)?;
    console::rank(&session, *json, words, (&target, asked), &options)
}

/// Refuses `--expression king - man + woman`: without quotes, all but its first word are words to
/// rank, and a model may have them all.
fn check_expression_is_whole(
    expression: Option<&str>,
    words: &[String],
) -> Result<(), CommandError> {
    let is_single = |text: &&str| text.split_whitespace().count() == 1;
    let sign = words.iter().find(|word| looks_like_an_expression(word));
    match expression.filter(is_single).zip(sign) {
        Some((expression, sign)) => Err(CommandError::Usage(format!(
            "the expression is `{expression}` alone, and `{sign}` a word to rank; put the whole \
             expression into quotes, as in 'king - man + woman'"
        ))),
        None => Ok(()),
    }
}

/// Logs only warnings and errors, so that the answers stay readable.
fn start_log() -> Result<(), ConfigError> {
    logging::start(&Config { log_level: "warn".to_owned(), ..Config::defaults() })
}
