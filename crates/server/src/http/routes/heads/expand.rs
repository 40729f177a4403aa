//! `/expand`, by GET and POST: the terms that texts imply, by a head.

use std::sync::Arc;
use std::time::Instant;

use kindred::check_terms;
use kindred::contract::{Expansion, QueryError, RowSet, Term, TermExpander, TokenVectors};
use kindred::filters::terms_of;
use kindred::heads::{
    AnyHead, Cause, Expander, Form, Formed, HeadKind, Vocabulary, cause, token_rows,
};
use kindred::queue::Answered;
use serde::{Serialize, Serializer};

use super::{Asked, KnownText, Read, answered_in_time, look_up};
use crate::http::ApiError;
use crate::http::offload::Cost;
use crate::http::parse::body::Received;
use crate::http::parse::expansion::{Besides, ExpandBody, Source, TermOptions, Unread};
use crate::http::parse::texts::of_query;
use crate::http::render::size::Size;
use crate::models::{Call, ServedModel};
use crate::workers::Cancellation;

/// Terms of texts.
pub(in crate::http::routes) struct Expand {
    expander: Arc<Expander>,
    options: TermOptions,
    /// The terms that meet the filter.
    filtered: RowSet,
}

impl Asked for Expand {
    const KIND: HeadKind = HeadKind::Expander;
    type Unread<'a> = Unread<'a>;
    type Options = TermOptions;
    type Request = Expansion;
    type Found = Vec<Term>;
    type Answer<'a> = TermsAnswer<'a>;

    fn count_memory(call: &Call, received: &mut Received) -> Result<(), ApiError> {
        if received.is_array {
            let components = received.array()?.numbers();
            received.count(call, (components * size_of::<f32>()) as u64)?;
        }
        Ok(())
    }

    fn read<'a>(call: &Call, received: &'a Received) -> Read<Unread<'a>, TermOptions> {
        let (body, besides) = if received.is_get {
            let (text, options) = of_query::<ExpandBody<'_>>(received.query())?;
            (options, Besides::Text(text))
        } else if received.is_array {
            let array = received.array()?;
            (ExpandBody::of_query(received.query())?, Besides::Array(array.tokens()?))
        } else {
            (received.parse::<ExpandBody<'_>>()?, Besides::Nothing)
        };
        Ok((call.deadline(body.timeout_ms)?, body.check(besides)?))
    }

    fn new(
        call: &Call,
        head: AnyHead,
        options: TermOptions,
        cancellation: &Cancellation,
    ) -> Result<Self, ApiError> {
        let AnyHead::Expander(expander) = head else { unreachable!("it is an expander") };
        check_terms(call.rows(), &expander)?;
        let is_wanted = || !cancellation.is_cancelled();
        let sets = call.sets.wanted_while(&is_wanted);
        let filtered = terms_of(sets, &expander, options.wanted.filter.as_deref());
        Ok(Self { filtered: filtered.map_err(kindred::Error::from)?, expander, options })
    }

    fn know(
        &self,
        served: &ServedModel,
        index: Option<usize>,
        text: Self::Unread<'_>,
    ) -> Result<(KnownText, Expansion), ApiError> {
        let Self { expander, options, filtered } = self;
        let (vectors, text) = match text.read(index)? {
            Source::Vectors(components, tokens) => {
                let (found, expected) = (components.len() / tokens, expander.token_dim());
                if found != expected {
                    let wrong = QueryError::Dimension { found, expected };
                    return Err(kindred::Error::from(wrong).into());
                }
                (TokenVectors::Vectors(components), KnownText::default())
            }
            Source::Text(text) => {
                let Some(vocabulary) = Vocabulary::of_expander(expander, &served.model) else {
                    let must_be = "a list of vectors: this head takes no texts";
                    return Err(ApiError::invalid_value("vectors", must_be));
                };
                let text = look_up(&vocabulary, text, options.explain)?;
                (token_rows(&text.tokenised), text)
            }
        };
        let expansion =
            options.wanted.of(expander, &served.model.table(), vectors, filtered.clone());
        Ok((text, expansion.map_err(kindred::Error::from)?))
    }

    async fn ask(
        &self,
        call: &Call,
        texts: Vec<Expansion>,
        deadline: Instant,
    ) -> Result<Answered<Vec<Term>>, ApiError> {
        answered_in_time(call, call.asking(deadline).expand(texts).await, deadline).await
    }

    fn count(call: &Call, texts: usize) {
        call.text_counts.add_expanded(texts);
    }

    fn size(&self, known: &KnownText, terms: &Vec<Term>) -> (Size, Cost) {
        let unknown = known.tokenised.unknown.iter().map(String::len).sum();
        // With its cause, a term is twice as long.
        let rows_per_term = if self.options.explain { 2 } else { 1 };
        let size = Size::of_text(unknown) + Size::of_rows(rows_per_term * terms.len());
        // A term is looked up in the head before it is written, and its cause is copied out of the
        // text.
        let numbers_per_term = if self.options.explain { 12 } else { 4 };
        (size, Cost::of_writing(numbers_per_term * terms.len()))
    }

    fn answer<'a>(
        &'a self,
        _: &'a ServedModel,
        known: &'a KnownText,
        terms: &'a Vec<Term>,
    ) -> Result<TermsAnswer<'a>, ApiError> {
        let Self { expander, options: TermOptions { wanted, form, explain }, .. } = self;
        let KnownText { text, tokenised } = known;
        let weighted = terms.iter().zip(wanted.weights(expander, terms));
        let terms = match *form {
            Form::Terms => {
                let term = |(term, weight): (&Term, f64)| TermAnswer {
                    term: expander.term(term.row),
                    weight,
                    token: explain.then(|| cause(term, Some((&text[..], tokenised)))),
                };
                Named::Terms(weighted.map(term).collect())
            }
            form => {
                let term =
                    |(term, weight): (&Term, f64)| (term.row.0, expander.term(term.row), weight);
                Named::Formed(Formed { form, terms: weighted.map(term).collect() })
            }
        };
        Ok(TermsAnswer { terms, unknown: &tokenised.unknown, cut: tokenised.is_cut })
    }
}

/// The answer to one text. Its terms have the name of their form.
#[derive(Serialize)]
pub(in crate::http::routes) struct TermsAnswer<'a> {
    #[serde(flatten)]
    terms: Named<'a>,
    /// Words that were left out.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unknown: &'a [String],
    /// Whether the text was too long, so that only a part was read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}

/// Terms under the name of their form.
enum Named<'a> {
    Terms(Vec<TermAnswer<'a>>),
    Formed(Formed<'a>),
}

impl Serialize for Named<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Terms(terms) => serializer.collect_map([(Form::Terms.name(), terms)]),
            Self::Formed(formed) => serializer.collect_map([(formed.form.name(), formed)]),
        }
    }
}

#[derive(Serialize)]
struct TermAnswer<'a> {
    term: &'a str,
    weight: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    token: Option<Cause>,
}
