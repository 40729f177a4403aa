//! `POST /evaluate`: the results of `kindred eval`, for the caller's own test sets. The code is the command's
//! ([`evaluation`](kindred::evaluation)), but here the queue answers the questions.

use std::time::Instant;

use kindred::Method;
use kindred::evaluation::results::{Case, Report, SimilarityResult};
use kindred::evaluation::run::Evaluation;
use kindred::evaluation::scheduled::QueueAnswers;
use kindred::evaluation::similarities::Pair;

use super::search::{Answered, answered, timing, with_timing};
use crate::http::ApiError;
use crate::http::offload::{Work, check_deadline, stage};
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
    let methods = methods.unwrap_or_else(|| Method::under(call.model.metric()).to_vec());
    let mut report = Report::new(&call.model, &call.engine, case);
    report.similarities = correlate(call, similarities, case, deadline).await?;
    let evaluation = Evaluation { model: &call.model, case, methods: &methods };
    if !analogies.is_empty() {
        evaluation.check()?;
    }
    // Few questions at a time are made into queries. That takes less time than the longest stage that may run here, so it
    // stays on this thread.
    let count = |queries| Work::queries(queries, call.model.dim()).count(call.service());
    let asking = call.asking(deadline);
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
    // As for the terms of an explanation, a component is far less work than writing a word or a number.
    let work = Work::of_writing(pairs * (40 + call.model.dim() / 32));
    let served = call.served().clone();
    let correlate = move |patience: &Patience| {
        let evaluation = Evaluation { model: &served.model, case, methods: &[] };
        let correlate = |(set, pairs): &(String, Vec<Pair>)| {
            check_deadline(patience)?;
            Ok(evaluation.similarities(set, pairs))
        };
        sets.iter().map(correlate).collect()
    };
    stage(call, work, deadline, correlate).await
}
