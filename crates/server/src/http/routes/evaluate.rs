//! `POST /evaluate`: what `kindred eval` finds, for sets of the caller's own. The code is the command's
//! ([`evaluation`](kindred::evaluation)); here the queue answers.

use std::time::Instant;

use kindred::asking::Asking;
use kindred::evaluation::results::{Case, Report, SimilarityResult};
use kindred::evaluation::run::Evaluation;
use kindred::evaluation::scheduled::QueueAnswers;
use kindred::evaluation::similarities::Pair;

use super::search::{Answered, answered, timing, with_timing};
use crate::http::ApiError;
use crate::http::aside::{Work, goes_on, stage};
use crate::http::parse::body::Received;
use crate::http::parse::evaluation::{EvaluateBody, Sets};
use crate::http::parse::negotiation;
use crate::http::render;
use crate::models::Call;
use crate::workers::Patience;

/// `POST /evaluate`
pub(in crate::http) async fn post_evaluate(call: Call, received: Received) -> Answered {
    let (work, latest, same) = (received.work(), received.latest(&call), call.clone());
    let plan = move |_: &Patience| {
        let received = received.whole()?;
        let body = received.parse::<EvaluateBody>()?;
        let deadline = same.deadline(body.timeout_ms())?;
        let sets = body.check()?;
        negotiation::check(&received.headers, &negotiation::JSON)?;
        Ok((sets, deadline, received.into_room()))
    };
    let (sets, deadline, _room) = stage(&call, work, latest, plan).await?;
    evaluate(&call, sets, deadline).await
}

async fn evaluate(call: &Call, sets: Sets, deadline: Instant) -> Answered {
    let Sets { analogies, similarities, methods, case } = sets;
    let mut report = Report::new(&call.model, &call.engine, case);
    report.similarities = correlate(call, similarities, case, deadline).await?;
    let evaluation = Evaluation { model: &call.model, case, methods: &methods };
    // So few questions together are made into queries here: it takes less than the longest stage that may.
    let count = |queries| Work::of_asking(queries, call.model.dim()).count(call.service());
    let asking = Asking::new(&call.queue, call.account(), deadline);
    let mut queue = QueueAnswers::new(asking, count);
    for section in analogies {
        let (set, section) = (section.name.clone(), std::slice::from_ref(&section));
        let result = evaluation.analogies(&mut queue, &set, section, |_| ()).await;
        report.analogies.push(answered(call, result)?);
    }
    Ok(with_timing((render::json(&report), timing(queue.times))))
}

/// Needs no engine: each pair is one dot product of two rows.
async fn correlate(
    call: &Call,
    sets: Vec<(String, Vec<Pair>)>,
    case: Case,
    deadline: Instant,
) -> Result<Vec<SimilarityResult>, ApiError> {
    let pairs: usize = sets.iter().map(|(_, pairs)| pairs.len()).sum();
    // As for the terms of an explanation: a component is far less work than a word or a number.
    let work = Work::of_writing(pairs * (40 + call.model.dim() / 32));
    let served = call.served().clone();
    let correlate = move |patience: &Patience| {
        let evaluation = Evaluation { model: &served.model, case, methods: &[] };
        let correlate = |(set, pairs): &(String, Vec<Pair>)| {
            goes_on(patience)?;
            Ok(evaluation.similarities(set, pairs))
        };
        sets.iter().map(correlate).collect()
    };
    stage(call, work, deadline, correlate).await
}
