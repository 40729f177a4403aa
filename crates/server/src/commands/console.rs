use std::io::{self, IsTerminal};

use super::CommandError;
use crate::cli::{
    AnalogyArguments, ConsoleArguments, Giving, NearestArguments, Place, QuestionOptions,
};
use crate::config::{Config, ConfigError};
use crate::console::{self, ConsoleError, Form, Question, Session};
use crate::logging;
use kindred::method::Method;

/// Answers line by line: on a terminal with history and completion, else standard input to its end.
///
/// # Errors
/// If nothing can answer; at the end of a pipe, if some of its lines could not be answered.
pub fn console(arguments: &ConsoleArguments) -> Result<(), CommandError> {
    let ConsoleArguments { place, options, method, giving, compat } = arguments;
    start_log()?;
    let mut session = Session::new(place, &options.0, *method, giving.compare, true)?;
    let form = Form::new(giving.json);
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        console::talk(&mut session, form, *compat)?;
    } else {
        console::answer_lines(&mut session, form, *compat)?;
    }
    Ok(())
}

/// Answers one word.
///
/// # Errors
/// If it has no answer, as when the model does not have the word.
pub fn nearest(arguments: &NearestArguments) -> Result<(), CommandError> {
    let NearestArguments { word, place, options, giving } = arguments;
    let answered = ask(place, options, None, *giving, &Question::Nearest(word.clone()), word);
    answered.map_err(|error| match error {
        CommandError::Console(refused) if looks_like_an_expression(word) => match *refused {
            ConsoleError::Refused(reason) => ConsoleError::Refused(format!(
                "{reason} (`kindred nearest` reads its argument as one word; for expressions use `kindred \
                 analogy`)"
            ))
            .into(),
            other => other.into(),
        },
        error => error,
    })
}

/// Whether operators stand in it between spaces, as in few words.
fn looks_like_an_expression(word: &str) -> bool {
    word.split_whitespace().any(|piece| matches!(piece, "+" | "-"))
}

/// Answers one expression.
///
/// # Errors
/// As [`nearest`], and if it can't be read.
pub fn analogy(arguments: &AnalogyArguments) -> Result<(), CommandError> {
    let AnalogyArguments { expression, place, options, method, giving } = arguments;
    ask(place, options, *method, *giving, &Question::Analogy(expression.clone()), expression)
}

fn ask(
    place: &Place,
    options: &QuestionOptions,
    method: Option<Method>,
    giving: Giving,
    question: &Question,
    asked: &str,
) -> Result<(), CommandError> {
    start_log()?;
    let mut session = Session::new(place, &options.0, method, giving.compare, giving.compare)?;
    Ok(console::answer_one(&mut session, Form::new(giving.json), question, asked)?)
}

/// The answers are what is to be read: of the log, only what is wrong.
fn start_log() -> Result<(), ConfigError> {
    logging::start(&Config { log_level: "warn".to_owned(), ..Config::defaults() })
}
