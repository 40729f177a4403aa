//! `POST /score`: the number that a head gives to texts.

use std::sync::Arc;

use kindred::asking::Asking;
use kindred::contract::{Row, TextToScore};
use kindred::heads::{AnyHead, HeadKind, Scorer, Vocabulary};
use kindred::queue::{Answered, SubmitError};
use serde::Serialize;
use serde_json::value::RawValue;

use super::{Asked, KnownText, Read, look_up};
use crate::http::ApiError;
use crate::http::offload::Cost;
use crate::http::parse::body::Received;
use crate::http::parse::scores::ScoreBody;
use crate::http::parse::texts::read_text;
use crate::http::render::size::Size;
use crate::models::{Call, ServedModel};

/// Scores of texts.
pub(in crate::http::routes) struct Score {
    scorer: Arc<Scorer>,
}

impl Asked for Score {
    const KIND: HeadKind = HeadKind::Scorer;
    type Unread<'a> = &'a RawValue;
    type Options = ();
    type Request = TextToScore;
    type Found = f64;
    type Answer<'a> = ScoreAnswer<'a>;

    fn read<'a>(call: &Call, received: &'a Received) -> Read<&'a RawValue, ()> {
        let body = received.parse::<ScoreBody<'_>>()?;
        Ok((call.deadline(body.timeout_ms)?, body.check()?))
    }

    fn new(head: AnyHead, (): ()) -> Result<Self, ApiError> {
        let AnyHead::Scorer(scorer) = head else { unreachable!("it is a scorer") };
        Ok(Self { scorer })
    }

    fn know(
        &self,
        served: &ServedModel,
        index: Option<usize>,
        text: Self::Unread<'_>,
    ) -> Result<(KnownText, TextToScore), ApiError> {
        let vocabulary = Vocabulary::of_model(&served.model, &self.scorer.description().tokens);
        let text = look_up(&vocabulary, read_text(index, text)?, false)?;
        let rows = text.tokenised.tokens.iter().map(|token| Row(token.0)).collect();
        Ok((text, TextToScore::new(self.scorer.function().clone(), rows)))
    }

    fn ask(
        &self,
        asking: Asking<'_>,
        texts: Vec<TextToScore>,
    ) -> impl Future<Output = Result<Answered<f64>, SubmitError>> + Send {
        asking.score(texts)
    }

    fn size(&self, known: &KnownText, _: &f64) -> (Size, Cost) {
        let unknown = known.tokenised.unknown.iter().map(String::len).sum();
        (Size::of_rows(1) + Size::of_text(unknown), Cost(0))
    }

    fn answer<'a>(
        &'a self,
        _: &'a ServedModel,
        known: &'a KnownText,
        &score: &'a f64,
    ) -> Result<ScoreAnswer<'a>, ApiError> {
        let tokenised = &known.tokenised;
        Ok(ScoreAnswer { score, unknown: &tokenised.unknown, cut: tokenised.is_cut })
    }
}

/// The answer to one text.
#[derive(Serialize)]
pub(in crate::http::routes) struct ScoreAnswer<'a> {
    score: f64,
    /// Words that were left out.
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unknown: &'a [String],
    /// Whether the text was too long, so that only a part was read.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    cut: bool,
}
