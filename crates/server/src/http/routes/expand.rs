//! `POST /expand`: the terms that texts imply, by a head.

use std::sync::Arc;

use contract::{Expansion, QueryError, Term, TokenVectors};
use kindred::asking::Asking;
use kindred::heads::{
    Cause, Expander, Form, Formed, HeadKind, Tokenised, Vocabulary, WantedTerms, cause, token_rows,
};
use kindred::queue::Expanded;
use serde::{Serialize, Serializer};

use super::heads::find;
use super::search::{Answered, answered_in_time, with_timing};
use super::suggestions;
use crate::http::ApiError;
use crate::http::offload::{check_deadline, stage};
use crate::http::parse::body::Received;
use crate::http::parse::classification::Text;
use crate::http::parse::expansion::{ExpandBody, ExpandRequest, Source};
use crate::http::parse::negotiation;
use crate::http::render;
use crate::http::render::server_timing::Timing;
use crate::http::render::size::Size;
use crate::models::{AnyHead, Call};
use crate::workers::Patience;

/// A text that is ready to be expanded.
struct Known {
    /// `None` if its vectors came with the request.
    tokenised: Option<Tokenised>,
    /// The text, if it is needed to name tokens; otherwise empty.
    text: String,
    expansion: Option<Expansion>,
}

/// `POST /expand`
pub(in crate::http) async fn post_expand(call: Call, received: Received) -> Answered {
    let (work, latest, same) = (received.work(), received.latest(&call), call.clone());
    let plan = move |patience: &Patience| {
        let received = received.whole()?;
        let body = received.parse::<ExpandBody<'_>>()?;
        let deadline = same.deadline(body.timeout_ms())?;
        let ExpandRequest { texts, is_single, head, wanted, form, explain } = body.check()?;
        let head = find(&same, head.as_deref(), HeadKind::Expander)?;
        if same.engine.name == "cuda" {
            let reason = "the engine `cuda` expands no texts; serve the model with `--device cpu`";
            return Err(ApiError::NoSuchHead { reason: reason.to_owned() });
        }
        let AnyHead::Expander(expander) = head.head else { unreachable!("it is an expander") };
        let patience = patience.at_most(deadline);
        let mut known = Vec::with_capacity(texts.len());
        for (index, text) in texts.into_iter().enumerate() {
            check_deadline(&patience)?;
            let index = (!is_single).then_some(index);
            let source = text.read(index);
            known
                .push(source.and_then(|source| prepare(&same, &expander, source, wanted, explain)));
        }
        negotiation::check(&received.headers, &negotiation::JSON)?;
        if is_single {
            known = vec![Ok(known.pop().expect("one text")?)];
        }
        let asked = (head.name, expander, wanted, form, explain);
        Ok((known, is_single, asked, deadline, received.into_room()))
    };
    let planned = stage(&call, work, latest, plan).await;
    let (mut known, is_single, asked, deadline, _room) = suggestions::with(&call, planned).await?;
    let faults = known.iter_mut().filter_map(|one| one.as_mut().err());
    suggestions::fill_in(&call, faults).await;
    call.text_counts.add(known.iter().flatten().filter_map(|one| one.tokenised.as_ref()));
    let texts = known.iter_mut().flatten().filter_map(|one| one.expansion.take());
    let texts: Vec<Expansion> = texts.collect();
    let timed = if texts.is_empty() {
        Expanded::default()
    } else {
        let asking = Asking::new(&call.queue, call.account(), deadline);
        answered_in_time(&call, asking.expand(texts).await, deadline).await?
    };
    let timing = Timing { queue: timed.queued, engine: timed.engine, ..Timing::default() };
    let size: Size =
        known.iter().map(|one| one.as_ref().map_or_else(Size::of_error, text_size)).sum();
    let size = size + timed.terms.iter().map(|terms| Size::of_rows(terms.len())).sum();
    let (room, served) = (size.room(&call)?, call.served().clone());
    let write = move |patience: &Patience| {
        let (name, expander, wanted, form, explain) = asked;
        let shown = Shown { expander: &expander, wanted, form, explain };
        let mut terms = timed.terms.iter();
        let mut results = Vec::with_capacity(known.len());
        for one in &known {
            check_deadline(patience)?;
            results.push(match one {
                Ok(one) => {
                    let terms = terms.next().expect("terms of each text");
                    TextAnswer::Terms(TermsAnswer::new(&shown, one, terms))
                }
                Err(error) => TextAnswer::Failed { error },
            });
        }
        let whole = ExpandAnswer {
            model: served.model.name(),
            version: served.model.version(),
            head: &name,
            one: if is_single { results.pop() } else { None },
            results: (!is_single).then_some(results),
        };
        Ok(render::json_in(&whole, room))
    };
    let response = stage(&call, size.work(), deadline, write).await?;
    Ok(with_timing((response, timing)))
}

fn prepare(
    call: &Call,
    expander: &Arc<Expander>,
    source: Source,
    wanted: WantedTerms,
    explain: bool,
) -> Result<Known, ApiError> {
    let (vectors, tokenised, text) = match source {
        Source::Vectors(components, tokens) => {
            let dim = contract::TermExpander::token_dim(&**expander);
            let found = components.len() / tokens;
            if found != dim {
                return Err(
                    kindred::Error::from(QueryError::Dimension { found, expected: dim }).into()
                );
            }
            (TokenVectors::Vectors(components), None, String::new())
        }
        Source::Text(text) => {
            let Some(tokens) = &expander.description().tokens else {
                let expected = "a list of vectors: this head takes no texts".to_owned();
                return Err(ApiError::InvalidValue { field: "vectors".to_owned(), expected });
            };
            let vocabulary = Vocabulary::of_model(&call.model, tokens);
            let tokenised = match &text {
                Text::Whole(text) => vocabulary.tokenise(text),
                Text::Tokens(words) => vocabulary.take(words.iter().map(String::as_str)),
            };
            if tokenised.tokens.is_empty() {
                return Err(super::heads::no_known_word(tokenised.unknown));
            }
            let text = match text {
                _ if !explain => String::new(),
                Text::Whole(text) => text,
                Text::Tokens(words) => words.join(" "),
            };
            (token_rows(&tokenised), Some(tokenised), text)
        }
    };
    let expansion =
        wanted.of(expander, &call.model.table(), vectors).map_err(kindred::Error::from)?;
    Ok(Known { tokenised, text, expansion: Some(expansion) })
}

/// About how large an answer is, without its terms.
fn text_size(known: &Known) -> Size {
    let unknown = known.tokenised.iter().flat_map(|text| &text.unknown).map(String::len).sum();
    Size::of_text(unknown)
}

#[derive(Serialize)]
struct ExpandAnswer<'a> {
    model: &'a str,
    version: &'a str,
    head: &'a str,
    #[serde(flatten)]
    one: Option<TextAnswer<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    results: Option<Vec<TextAnswer<'a>>>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum TextAnswer<'a> {
    Terms(TermsAnswer<'a>),
    Failed { error: &'a ApiError },
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
        let weights = wanted.weights(expander, terms);
        let tokenised = known.tokenised.as_ref();
        let weighted = terms.iter().zip(weights);
        let terms = match form {
            Form::Terms => {
                let text = tokenised.map(|tokenised| (known.text.as_str(), tokenised));
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
            unknown: tokenised.map_or(&[], |text| &text.unknown),
            cut: tokenised.is_some_and(|text| text.is_cut),
        }
    }
}
