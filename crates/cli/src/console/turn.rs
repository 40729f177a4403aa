//! One line of a session: parses it, answers it and prints the answer.

use std::io::{self, Write};
use std::ops::ControlFlow;

use super::answer::{ModelAnswer, TextAnswer};
use super::compare::Comparison;
use super::line::{self, Line};
use super::print::{Form, heading, help};
use super::{Session, compat};
use crate::error::CommandError;
use kindred::Target;

/// The source of a line, and the destination of its answer.
pub(super) struct Turn<'a> {
    pub(super) session: &'a mut Session,
    pub(super) form: Form,
    pub(super) out: &'a mut dyn Write,
    /// The number of the line, if lines come from a pipe; `None` on a terminal.
    pub(super) number: Option<u64>,
}

impl Turn<'_> {
    /// Answers a line of the console. Breaks if it is the last.
    pub(super) fn line(mut self, line: &str) -> Result<ControlFlow<()>, CommandError> {
        match line::read(line)? {
            Line::Empty => {}
            Line::Question(text) => {
                let question = line::question(text, &*self.session.service)?;
                self.question(&question, text)?;
            }
            Line::Text(kind, text) => {
                let service = self.session.service.clone();
                let answered = self.session.ask_head(&*service, kind, text)?;
                let TextAnswer { model, version, head, .. } = &answered.answer;
                self.name(Some(head), model, version);
                self.form.of_text(self.out, text, self.number, &answered)?;
            }
            Line::Head(name) => {
                let chosen = self.session.choose_head(name)?;
                self.say(&chosen)?;
            }
            Line::K(k) => {
                self.session.options.k = Some(k);
                self.say(&format!("k is {k}"))?;
            }
            Line::Compare(wanted) => {
                let on = wanted.unwrap_or(!self.session.compare);
                self.session.set_compare(on)?;
                self.say(if on {
                    "compare is on: each answer is compared with the plain reference's"
                } else {
                    "compare is off"
                })?;
            }
            Line::Explain(wanted) => {
                let is_on = self.session.options.explain == Some(true);
                let on = wanted.unwrap_or(!is_on);
                self.session.options.explain = on.then_some(true);
                self.say(if on { "explain is on" } else { "explain is off" })?;
            }
            Line::Method(method) => {
                self.session.options.method = Some(method);
                self.say(&format!("the method is {}", method.name()))?;
            }
            Line::Filter(filter) => {
                self.session.options.filter = (!filter.is_empty()).then(|| filter.to_owned());
                self.say(if filter.is_empty() { "all rows" } else { filter })?;
            }
            Line::Offset(offset) => {
                self.session.options.offset = (offset > 0).then_some(offset);
                self.say(&format!("offset is {offset}"))?;
            }
            Line::Distinct(attribute) => {
                let is_off = attribute.is_empty();
                self.session.options.distinct = (!is_off).then(|| attribute.to_owned());
                self.say(&match is_off {
                    true => "all rows".to_owned(),
                    false => format!("the best row of each `{attribute}`"),
                })?;
            }
            Line::Model => {
                let facts = self.session.service.facts()?;
                self.form.facts(self.out, self.number, &facts)?;
            }
            // To standard error, because a script reads the answers on standard output.
            Line::Help if self.form.json || !self.form.terminal => help(&mut io::stderr())?,
            Line::Help => help(self.out)?,
            Line::Quit => return Ok(ControlFlow::Break(())),
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Answers a line of the 2020 report.
    pub(super) fn line_of_report(mut self, line: &str) -> Result<ControlFlow<()>, CommandError> {
        if line.trim().is_empty() {
            return Ok(ControlFlow::Continue(()));
        }
        let (question, compared) = compat::read(line)?;
        self.session.set_compare(compared)?;
        self.question(&question, line.trim())?;
        Ok(ControlFlow::Continue(()))
    }

    /// Answers a question.
    pub(super) fn question(&mut self, question: &Target, asked: &str) -> Result<(), CommandError> {
        let service = self.session.service.clone();
        let (reply, comparison) = self.session.ask(&*service, question)?;
        let ModelAnswer { model, version, .. } = &reply.answer;
        self.name(None, model, version);
        let form = self.form.after(self.session.options.offset.unwrap_or(0));
        form.of_question(self.out, asked, self.number, &reply, comparison.as_ref())?;
        match comparison {
            Some(Comparison { difference: Some(difference), .. }) => {
                Err(CommandError::Different(difference))
            }
            _ => Ok(()),
        }
    }

    /// Says on standard error who answers, if it is not who answered last. JSON says it itself.
    fn name(&mut self, head: Option<&str>, model: &str, version: &str) {
        let named = heading(head, model, version);
        if !self.form.json && self.session.named.as_ref() != Some(&named) {
            // Nothing depends on it.
            let _ = writeln!(io::stderr(), "{named}");
            self.session.named = Some(named);
        }
    }

    /// Prints a message on a terminal, and nothing for a pipe.
    fn say(&mut self, what: &str) -> io::Result<()> {
        if self.number.is_none() { writeln!(self.out, "{what}") } else { Ok(()) }
    }
}
