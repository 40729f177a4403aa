//! `kindred console`, `nearest` and `analogy`: query a model.

use std::io::{self, IsTerminal};

use super::CommandError;
use crate::arguments::{
    AnalogyArguments, AnswerSource, ConsoleArguments, NearestArguments, OutputOptions,
    QuestionOptions,
};
use crate::console::{self, Form, Session};
use kindred::Target;
use kindred::method::Method;
use server::config::{Config, ConfigError};
use server::logging;

/// Answers line by line: on a terminal, with history and completion; otherwise, from standard input
/// until it ends.
pub(super) fn console(arguments: &ConsoleArguments) -> Result<(), CommandError> {
    let ConsoleArguments { source, head, options, method, output, compat } = arguments;
    let source = AnswerSource { head: head.clone(), ..source.clone() };
    start_log()?;
    let mut session = Session::new(&source, &options.0, *method, output.compare, true)?;
    let form = Form::new(output.json);
    if io::stdin().is_terminal() && io::stdout().is_terminal() {
        console::talk(&mut session, form, *compat)?;
    } else {
        console::answer_lines(&mut session, form, *compat)?;
    }
    Ok(())
}

/// Answers one word.
pub(super) fn nearest(arguments: &NearestArguments) -> Result<(), CommandError> {
    let NearestArguments { word, source, options, output } = arguments;
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
    let mut session = Session::new(source, &options.0, method, output.compare, output.compare)?;
    console::answer_one(&mut session, Form::new(output.json), question, asked)
}

/// Logs only warnings and errors, so that the answers stay readable.
fn start_log() -> Result<(), ConfigError> {
    logging::start(&Config { log_level: "warn".to_owned(), ..Config::defaults() })
}
