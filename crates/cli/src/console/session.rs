//! A session with a model: the service that answers, and the options of all questions.

use std::rc::Rc;

use serde::Deserialize;
use serde_json::json;

use super::ConsoleError;
use super::answer::{Answer, OfText};
use super::compare::{Comparison, difference};
use super::in_process::InProcess;
use super::question::Question;
use super::remote::Remote;
use super::service::{Service, Times, answered};
use crate::arguments::AnswerSource;
use kindred::Options;
use kindred::heads::HeadKind;
use kindred::method::Method;
use kindred::options::DEFAULT_K;
use server::config::URL_VARIABLE;

/// The service that answers, and the options of all questions.
pub struct Session {
    pub(super) service: Rc<dyn Service>,
    reference: Reference,
    source: AnswerSource,
    pub(super) options: Options,
    pub(super) method: Option<Method>,
    /// Whether answers are compared with the reference's.
    pub(super) compare: bool,
    /// The head of each kind; `None` for the only one.
    classifier: Option<String>,
    expander: Option<String>,
    /// Who answered last, as it was printed.
    pub(super) named: Option<String>,
}

/// The reference, which is made when it is first needed.
enum Reference {
    None,
    Later,
    Made(InProcess),
}

/// The result of a question.
pub(super) struct Answered {
    /// The answer's JSON, as received.
    pub(super) body: Vec<u8>,
    pub(super) answer: Answer,
    pub(super) times: Option<Times>,
    pub(super) comparison: Option<Comparison>,
}

/// A head's answer about a text.
pub(super) struct AnsweredText {
    /// The answer's JSON, as received.
    pub(super) body: Vec<u8>,
    pub(super) answer: OfText,
    pub(super) times: Option<Times>,
}

/// An answer to `/heads`: the fields that are used.
#[derive(Deserialize)]
struct Heads {
    heads: Vec<ListedHead>,
}

#[derive(Deserialize)]
struct ListedHead {
    name: String,
    kind: HeadKind,
}

impl Session {
    /// A session with the service behind the URL, or with a service in this process.
    ///
    /// # Errors
    /// If the URL is invalid, or the model or the engine can't be used here.
    pub fn new(
        source: &AnswerSource,
        options: &Options,
        method: Option<Method>,
        compare: bool,
        may_compare: bool,
    ) -> Result<Self, ConsoleError> {
        // In a console, `:compare` may follow later.
        if source.url.is_some() && source.model.is_some() && !may_compare {
            return Err(ConsoleError::ModelElsewhere);
        }
        let (service, reference): (Rc<dyn Service>, _) = match &source.url {
            Some(url) => {
                let reference =
                    if source.model.is_some() { Reference::Later } else { Reference::None };
                (Rc::new(Remote::new(url, source)?), reference)
            }
            None => {
                if std::env::var_os(URL_VARIABLE).is_some() {
                    eprintln!(
                        "{URL_VARIABLE} is for `kindred health` alone; --url queries a service"
                    );
                }
                (Rc::new(InProcess::with_engine(source)?), Reference::Later)
            }
        };
        let mut session = Self {
            service,
            reference,
            source: source.clone(),
            options: options.clone(),
            method,
            compare: false,
            classifier: None,
            expander: None,
            named: None,
        };
        session.set_compare(compare)?;
        Ok(session)
    }

    /// Turns the comparison with the reference on or off.
    pub(super) fn set_compare(&mut self, compare: bool) -> Result<(), ConsoleError> {
        if compare && matches!(self.reference, Reference::None) {
            return Err(ConsoleError::NoReference);
        }
        self.compare = compare;
        Ok(())
    }

    /// The answer, compared with the reference's if that is on. A difference is no error here, so
    /// that both can be shown.
    pub(super) fn ask(&mut self, question: &Question) -> Result<Answered, ConsoleError> {
        let body = question.body(&self.options, self.method);
        let reply = self.service.ask(question.path(), Some(&body), None)?;
        let answer: Answer = answered(&*self.service, &reply)?;
        let comparison = if self.compare {
            let reference = self.reference()?;
            let second = reference.ask(question.path(), Some(&body), None)?;
            let expected: Answer = answered(reference, &second)?;
            if expected.version != answer.version {
                return Err(ConsoleError::OtherVersion {
                    answers: self.service.name(),
                    found: answer.version,
                    expected: expected.version,
                });
            }
            let milliseconds = |times: Option<Times>| times.map_or(0.0, |times| times.engine);
            Some(Comparison {
                engine_ms: milliseconds(reply.times),
                reference_ms: milliseconds(second.times),
                difference: difference(&answer, &expected),
            })
        } else {
            None
        };
        Ok(Answered { body: reply.body, answer, times: reply.times, comparison })
    }

    /// The labels of a text, or its terms with their tokens.
    pub(super) fn ask_head(
        &self,
        kind: HeadKind,
        text: &str,
    ) -> Result<AnsweredText, ConsoleError> {
        let mut body = json!({"text": text});
        let (path, head) = match kind {
            HeadKind::Classifier => {
                if self.options.explain == Some(true) {
                    body["explain"] = json!(true);
                }
                ("/classify", &self.classifier)
            }
            HeadKind::Expander => {
                body["top"] = json!(self.options.k.unwrap_or(DEFAULT_K));
                body["explain"] = json!(true);
                ("/expand", &self.expander)
            }
        };
        if let Some(head) = head {
            body["head"] = json!(head);
        }
        let reply = self.service.ask(path, Some(&body), None)?;
        let answer = answered(&*self.service, &reply)?;
        Ok(AnsweredText { body: reply.body, answer, times: reply.times })
    }

    /// Chooses the head of this name among those of its kind, or without a name the only one of
    /// each kind. Returns what was chosen, for people.
    pub(super) fn choose_head(&mut self, name: &str) -> Result<String, ConsoleError> {
        if name.is_empty() {
            (self.classifier, self.expander) = (None, None);
            return Ok("the heads are the only ones of their kinds".to_owned());
        }
        let Heads { heads } = answered(&*self.service, &self.service.ask("/heads", None, None)?)?;
        let Some(head) = heads.iter().find(|head| head.name == name) else {
            let names: Vec<&str> = heads.iter().map(|head| head.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(ConsoleError::Refused(format!(
                "there is no head `{name}`; heads: {names}"
            )));
        };
        let (place, kind) = match head.kind {
            HeadKind::Classifier => (&mut self.classifier, "classifier"),
            HeadKind::Expander => (&mut self.expander, "expander"),
        };
        *place = Some(name.to_owned());
        Ok(format!("the {kind} is {name}"))
    }

    fn reference(&mut self) -> Result<&InProcess, ConsoleError> {
        if let Reference::Later = self.reference {
            self.reference = Reference::Made(InProcess::with_reference(&self.source)?);
        }
        match &self.reference {
            Reference::Made(reference) => Ok(reference),
            Reference::None | Reference::Later => Err(ConsoleError::NoReference),
        }
    }
}
