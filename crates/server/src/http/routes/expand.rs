//! `POST /expand`: the terms that texts imply, by a head.

use std::sync::Arc;

use contract::{Expansion, QueryError, Term, TokenVectors};
use kindred::heads::{
    Cause, Expander, Form, Formed, HeadKind, Vocabulary, WantedTerms, cause, token_rows,
};
use kindred::queue::Expanded;
use serde::{Serialize, Serializer};

use super::heads::{HeadAnswer, KnownText, find, look_up};
use super::search::{Answered, answered_in_time, encoding, with_timing};
use super::suggestions;
use crate::http::ApiError;
use crate::http::offload::{check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::expansion::{ExpandBody, ExpandRequest, Source};
use crate::http::parse::negotiation;
use crate::http::render;
use crate::http::render::size::Size;
use crate::models::{AnyHead, Call};
use crate::workers::Cancellation;

/// A text that is ready to be expanded.
struct Known {
    /// `None` if its vectors came with the request.
    text: Option<KnownText>,
    expansion: Option<Expansion>,
}

/// `POST /expand`
pub(in crate::http) async fn post_expand(call: Call, received: Received) -> Answered {
    let (cost, latest, same) = (received.cost(), received.latest(&call), call.clone());
    let plan = move |cancellation: &Cancellation| {
        let mut received = received.whole()?;
        if received.is_array() {
            let components = received.array()?.numbers();
            received.count(&same, (components * size_of::<f32>()) as u64)?;
        }
        let body = match received.is_array() {
            true => ExpandBody::of_array(&received.array()?, received.query())?,
            false => received.parse::<ExpandBody<'_>>()?,
        };
        let deadline = same.deadline(body.timeout_ms())?;
        let ExpandRequest { texts, is_single, head, wanted, form, explain } = body.check()?;
        let head = find(&same, head.as_deref(), HeadKind::Expander)?;
        let AnyHead::Expander(expander) = head.head else { unreachable!("it is an expander") };
        let cancellation = cancellation.at_most(deadline);
        let ready = |source| prepare(&same, &expander, source, wanted, explain);
        let mut known = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            check_deadline(&cancellation)?;
            let index = (!is_single).then_some(index);
            known.push(text.read(index).and_then(ready));
        }
        negotiation::check(&received.headers, &negotiation::JSON)?;
        if is_single {
            known = vec![Ok(known.pop().expect("one text")?)];
        }
        let asked = (head.name, expander, wanted, form, explain);
        Ok((known, is_single, asked, deadline, received.into_room()))
    };
    let planned = stage(&call, cost, latest, plan).await;
    let (mut known, is_single, asked, deadline, _room) = suggestions::with(&call, planned).await?;
    let faults = known.iter_mut().filter_map(|one| one.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    let tokenised = known.iter().flatten().filter_map(|one| one.text.as_ref());
    call.text_counts.add(tokenised.map(|text| &text.tokenised));
    let texts = known.iter_mut().flatten().filter_map(|one| one.expansion.take());
    let texts: Vec<Expansion> = texts.collect();
    let timed = if texts.is_empty() {
        Expanded::default()
    } else {
        let asking = call.asking(deadline);
        let number = texts.len();
        let answered = answered_in_time(&call, asking.expand(texts).await, deadline).await?;
        call.text_counts.add_expanded(number);
        answered
    };
    let timing = encoding(timed.queued, timed.engine);
    let size: Size =
        known.iter().map(|one| one.as_ref().map_or_else(Size::of_error, text_size)).sum();
    // With its cause, a term is twice as long.
    let (name, expander, wanted, form, explain) = asked;
    let rows_per_term = if explain { 2 } else { 1 };
    let of_terms = |terms: &Vec<Term>| Size::of_rows(rows_per_term * terms.len());
    let size = size + timed.terms.iter().map(of_terms).sum();
    let (room, served) = (size.room(&call)?, call.served().clone());
    let write = move |cancellation: &Cancellation| {
        let shown = Shown { expander: &expander, wanted, form, explain };
        let mut terms = timed.terms.iter();
        let terms = |text| {
            let terms = terms.next().expect("terms of each text");
            Ok(TermsAnswer::new(&shown, text, terms))
        };
        let whole = HeadAnswer::new((&served, &name), &known, is_single, cancellation, terms)?;
        Ok(render::json_in(&whole, room))
    };
    let response = stage(&call, size.cost(), deadline, write).await?;
    Ok(with_timing((response, timing)))
}

fn prepare(
    call: &Call,
    expander: &Arc<Expander>,
    source: Source,
    wanted: WantedTerms,
    explain: bool,
) -> Result<Known, ApiError> {
    let (vectors, text) = match source {
        Source::Vectors(components, tokens) => {
            let dim = contract::TermExpander::token_dim(&**expander);
            let found = components.len() / tokens;
            if found != dim {
                return Err(
                    kindred::Error::from(QueryError::Dimension { found, expected: dim }).into()
                );
            }
            (TokenVectors::Vectors(components), None)
        }
        Source::Text(text) => {
            let Some(tokens) = &expander.description().tokens else {
                let expected = "a list of vectors: this head takes no texts".to_owned();
                return Err(ApiError::InvalidValue { field: "vectors".to_owned(), expected });
            };
            let vocabulary = Vocabulary::of_model(&call.model, tokens);
            let text = look_up(&vocabulary, text, explain)?;
            (token_rows(&text.tokenised), Some(text))
        }
    };
    let expansion =
        wanted.of(expander, &call.model.table(), vectors).map_err(kindred::Error::from)?;
    Ok(Known { text, expansion: Some(expansion) })
}

/// About how large an answer is, without its terms.
fn text_size(known: &Known) -> Size {
    let unknown = known.text.iter().flat_map(|text| &text.tokenised.unknown);
    let unknown = unknown.map(String::len).sum();
    Size::of_text(unknown)
}

/// What answers show.
struct Shown<'a> {
    expander: &'a Expander,
    wanted: WantedTerms,
    form: Form,
    explain: bool,
}

/// The answer to one text. Its terms have the name of their form.
#[derive(Serialize)]
struct TermsAnswer<'a> {
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

impl<'a> TermsAnswer<'a> {
    fn new(shown: &Shown<'a>, known: &'a Known, terms: &[Term]) -> Self {
        let Shown { expander, wanted, form, explain } = *shown;
        let (text, weights) = (known.text.as_ref(), wanted.weights(expander, terms));
        let weighted = terms.iter().zip(weights);
        let terms = match form {
            Form::Terms => {
                let text = text.map(|text| (text.text.as_str(), &text.tokenised));
                let term = |(term, weight): (&Term, f64)| TermAnswer {
                    term: expander.term(term.row),
                    weight,
                    token: explain.then(|| cause(term, text)),
                };
                Named::Terms(weighted.map(term).collect())
            }
            form => {
                let term =
                    |(term, weight): (&Term, f64)| (term.row.0, expander.term(term.row), weight);
                Named::Formed(Formed { form, terms: weighted.map(term).collect() })
            }
        };
        Self {
            terms,
            unknown: text.map_or(&[], |text| &text.tokenised.unknown),
            cut: text.is_some_and(|text| text.tokenised.is_cut),
        }
    }
}
