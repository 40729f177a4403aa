//! Single questions on the command line: prints the answer to one, and nothing else to standard
//! output.

use std::io::{self, Write};

use kindred::{Options, Side, Target, Unknown};
use serde::Serialize;

use super::pipe::unread;
use super::print::{Form, heading};
use super::service::Reply;
use super::session::Session;
use super::turn::Turn;
use crate::error::CommandError;

/// Answers a question for neighbours.
pub(crate) fn answer_one(
    session: &mut Session,
    is_json: bool,
    question: &Target,
    asked: &str,
) -> Result<(), CommandError> {
    let (form, out) = (Form::new(is_json), &mut io::stdout().lock());
    let mut turn = Turn { session, form, out, number: None };
    read(turn.question(question, asked))
}

/// Says how similar two words or sets of words are.
pub(crate) fn similarity(
    session: &Session,
    is_json: bool,
    sides: [Side; 2],
    unknown: Option<Unknown>,
) -> Result<(), CommandError> {
    let names = sides.clone().map(|side| match side {
        Side::Word(word) => word,
        Side::Set(words) => words.join(" + "),
    });
    let reply = session.service.similarity(sides, unknown)?;
    let (form, answer) = (Form::new(is_json), &reply.answer);
    let who = (&*answer.model, &*answer.version);
    print(form, &names.join(", "), who, &reply, |out| form.similarity(out, &names, answer))
}

/// Says which of some words is the odd one.
pub(crate) fn odd_one_out(
    session: &Session,
    is_json: bool,
    words: &[String],
    unknown: Option<Unknown>,
) -> Result<(), CommandError> {
    let reply = session.service.odd_one_out(words.to_vec(), unknown)?;
    let (form, answer) = (Form::new(is_json), &reply.answer);
    let who = (&*answer.model, &*answer.version);
    print(form, &words.join(", "), who, &reply, |out| form.odd_one_out(out, answer))
}

/// Says which ranks some words have among the neighbours of a target, which was written as `asked`.
pub(crate) fn rank(
    session: &Session,
    is_json: bool,
    words: &[String],
    (target, asked): (&Target, &str),
    options: &Options,
) -> Result<(), CommandError> {
    let reply = session.service.rank(words.to_vec(), target, options)?;
    let (form, answer) = (Form::new(is_json), &reply.answer);
    let who = (&*answer.model, &*answer.version);
    print(form, asked, who, &reply, |out| form.ranks(out, answer))
}

/// Prints an answer by `body`, or as JSON; standard error names the model.
fn print(
    form: Form,
    asked: &str,
    (model, version): (&str, &str),
    reply: &Reply<impl Serialize>,
    body: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> Result<(), CommandError> {
    if !form.json {
        eprintln!("{}", heading(None, model, version));
    }
    let out = &mut io::stdout().lock();
    read(form.answer(out, asked, None, reply, None, body).map_err(CommandError::from))
}

/// It is no error if nobody reads the answer.
fn read(answered: Result<(), CommandError>) -> Result<(), CommandError> {
    match answered {
        Err(CommandError::Output(error)) => unread(error),
        answered => answered,
    }
}
