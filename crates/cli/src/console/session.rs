//! A session with a model: what answers, and the options of all questions.

use std::collections::HashMap;
use std::rc::Rc;

use super::answer::{ModelAnswer, TextAnswer};
use super::compare::{Comparison, difference};
use super::local::Local;
use super::remote::Remote;
use super::service::{Reply, Service, Times};
use crate::arguments::AnswerSource;
use crate::error::CommandError;
use kindred::heads::HeadKind;
use kindred::method::Method;
use kindred::{Options, Target};
use server::config::URL_VARIABLE;

/// What answers, and the options of all questions.
pub(crate) struct Session {
    pub(super) service: Rc<dyn Service>,
    /// Whether there can be a reference. It is made when it is first needed.
    has_reference: bool,
    reference: Option<Local>,
    source: AnswerSource,
    pub(super) options: Options,
    /// Whether answers are compared with the reference's.
    pub(super) compare: bool,
    /// The head of each kind; none for the only one.
    heads: HashMap<HeadKind, String>,
    /// Who answered last, as it was printed.
    pub(super) named: Option<String>,
}

impl Session {
    /// A session with the service behind the URL, or with a model in this process and its heads.
    pub(crate) fn new(
        source: &AnswerSource,
        options: &Options,
        method: Option<Method>,
        compare: bool,
    ) -> Result<Self, CommandError> {
        Self::begin(source, options, method, compare, Local::with_engine)
    }

    /// A session for a single question, which asks no head: what is wrong with one does not matter.
    pub(crate) fn single(
        source: &AnswerSource,
        options: &Options,
        method: Option<Method>,
        compare: bool,
    ) -> Result<Self, CommandError> {
        // In a console, `:compare` may follow later.
        if source.url.is_some() && source.model.is_some() && !compare {
            return Err(CommandError::ModelElsewhere);
        }
        Self::begin(source, options, method, compare, Local::without_heads)
    }

    fn begin(
        source: &AnswerSource,
        options: &Options,
        method: Option<Method>,
        compare: bool,
        local: fn(&AnswerSource) -> Result<Local, CommandError>,
    ) -> Result<Self, CommandError> {
        let service: Rc<dyn Service> = match &source.url {
            Some(url) => Rc::new(Remote::new(url, source.api_key.as_deref())?),
            None => {
                if std::env::var_os(URL_VARIABLE).is_some() {
                    eprintln!(
                        "{URL_VARIABLE} is for `kindred health` alone; --url queries a service"
                    );
                }
                Rc::new(local(source)?)
            }
        };
        let mut session = Self::with(service, source, Options { method, ..options.clone() });
        session.set_compare(compare)?;
        Ok(session)
    }

    /// A session for questions that need no search: without a URL, no engine is made for it.
    pub(crate) fn without_search(source: &AnswerSource) -> Result<Self, CommandError> {
        if source.url.is_some() {
            return Self::single(source, &Options::default(), None, false);
        }
        let service = Rc::new(Local::without_search(source)?);
        Ok(Self::with(service, source, Options::default()))
    }

    fn with(service: Rc<dyn Service>, source: &AnswerSource, options: Options) -> Self {
        Self {
            service,
            has_reference: source.url.is_none() || source.model.is_some(),
            reference: None,
            source: source.clone(),
            options,
            compare: false,
            heads: HashMap::new(),
            named: None,
        }
    }

    /// Turns the comparison with the reference on or off.
    pub(super) fn set_compare(&mut self, compare: bool) -> Result<(), CommandError> {
        if compare && !self.has_reference {
            return Err(CommandError::NoReference);
        }
        self.compare = compare;
        Ok(())
    }

    /// The answer of the session's service, compared with the reference's if that is on. A
    /// difference is no error here, so that both can be shown.
    pub(super) fn ask<'s>(
        &mut self,
        service: &'s dyn Service,
        question: &Target,
    ) -> Result<(Reply<ModelAnswer<'s>>, Option<Comparison>), CommandError> {
        let reply = service.ask(question, &self.options)?;
        if !self.compare {
            return Ok((reply, None));
        }
        let reference = match &mut self.reference {
            Some(made) => made,
            later => later.insert(Local::with_reference(&self.source)?),
        };
        let expected = reference.ask(question, &self.options)?;
        if expected.answer.version != reply.answer.version {
            return Err(CommandError::OtherVersion {
                answers: service.name(),
                found: reply.answer.version.into_owned(),
                expected: expected.answer.version.into_owned(),
            });
        }
        let milliseconds = |times: Option<Times>| times.map_or(0.0, |times| times.engine);
        let comparison = Comparison {
            engine_ms: milliseconds(reply.times),
            reference_ms: milliseconds(expected.times),
            difference: difference(&reply.answer.found, &expected.answer.found),
        };
        Ok((reply, Some(comparison)))
    }

    /// The labels of a text, or its terms with their tokens, of the session's service.
    pub(super) fn ask_head<'s>(
        &self,
        service: &'s dyn Service,
        kind: HeadKind,
        text: &'s str,
    ) -> Result<Reply<TextAnswer<'s>>, CommandError> {
        let head = self.heads.get(&kind).map(String::as_str);
        service.ask_head(kind, head, text, &self.options)
    }

    /// Chooses the head of this name among those of its kind, or without a name the only one of
    /// each kind. Returns what was chosen, for people.
    pub(super) fn choose_head(&mut self, name: &str) -> Result<String, CommandError> {
        if name.is_empty() {
            self.heads.clear();
            return Ok("the heads are the only ones of their kinds".to_owned());
        }
        let heads = self.service.heads()?;
        let Some(head) = heads.iter().find(|head| head.name == name) else {
            let names: Vec<&str> = heads.iter().map(|head| head.name.as_str()).collect();
            let names = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(CommandError::Refused(format!(
                "there is no head `{name}`; heads: {names}"
            )));
        };
        self.heads.insert(head.kind, name.to_owned());
        Ok(format!("the {} is {name}", head.kind.name()))
    }
}
