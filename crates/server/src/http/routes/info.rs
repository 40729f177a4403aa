//! The service about itself: models, heads, contract, build, and where to begin.

use axum::http::{HeaderMap, Uri, header};
use axum::response::IntoResponse;
use serde_json::json;

use super::search::Answered;
use crate::http::parse::limits::MAX_INPUTS;
use crate::http::parse::negotiation::{JSON, TEXT, YAML, check_plain_get};
use crate::http::render::{self, caching};
use crate::models::{BuildInfo, Call, ServedModel};
use kindred::question::MAX_ENCODED_WORDS;
use kindred::{MAX_TEXT_BYTES, ModelDescription, ModelStore, TextEncoder, text_encoder};

const OPENAPI: &str = include_str!("../../../../../openapi.yaml");

/// Where to begin, for people with curl.
pub(super) const START: &str = "\
Kindred finds the exact nearest neighbours of words in a table of word vectors.

  GET  /nearest?word=frog&k=5
  GET  /analogy?expression=king+-+man+%2B+woman
  POST /nearest, /analogy   the same as JSON, one query or a batch
  POST /rank, /similarity, /odd-one-out
  POST /embed               vectors of texts; also in the form of text-embeddings-inference
  POST /v1/embeddings       the same in OpenAI's form
  GET  /count?filter=price+<+80         how many rows meet a filter; also POST
  GET  /classify?text=a+funny+film      labels of a text, by a trained head
  GET  /expand?text=cheap+flights       terms that a text implies, with weights
  POST /classify, /expand   the same as JSON, one text or a batch
  GET  /words?prefix=fro    words of the model
  GET  /rows, /rows/frog    rows as they were put, page by page; DELETE deletes one
  POST /rows, /rows/delete  rows are put or deleted, if the table may be changed
  GET  /sources             the systems that the table follows, and how far
  GET  /models, /model      models served; each has its own routes, such as /models/NAME/nearest
  POST /models, /fold       makes a table, folds the changes of one; DELETE /models/NAME deletes it
  GET  /info                the model, as text-embeddings-inference describes one
  GET  /heads               heads of the model, which classify and expand texts
  GET  /health/live, /health/ready
  GET  /metrics             metrics for Prometheus
  GET  /version             version, commit and features of the program
  GET  /docs, /openapi.yaml the whole API, as interactive documentation and as an OpenAPI file
";

/// `GET /`: where to begin, as text.
pub(super) fn start_page(headers: &HeaderMap, uri: &Uri) -> Answered {
    check_plain_get(headers, uri, &TEXT)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], START).into_response())
}

/// `GET /openapi.yaml`: the contract for clients.
pub(super) async fn openapi(_: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &YAML)?;
    Ok(([(header::CONTENT_TYPE, "application/yaml")], OPENAPI).into_response())
}

/// `GET /model`: name, version, shape, engine and provenance of the model.
pub(super) async fn model(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &JSON)?;
    caching::content(&call, &headers, render::bytes(&description(&call)))
}

/// `GET /models`: all models that are served.
pub(super) async fn models(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &JSON)?;
    let models = call.all_models();
    let answer = json!({
        "default": models.first().map(|first| first.name()),
        "models": models.iter().map(|served| description(served)).collect::<Vec<_>>(),
    });
    caching::content(&call, &headers, render::bytes(&answer))
}

/// `GET /heads`: the heads of the model.
pub(super) async fn heads(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &JSON)?;
    let heads = call.heads.load();
    let described = heads.iter().map(|one| {
        let mut facts = one.head.facts();
        facts["name"] = json!(one.name);
        facts
    });
    let answer = json!({
        "model": call.name(),
        "version": call.model.version(),
        "heads": described.collect::<Vec<_>>(),
    });
    caching::content(&call, &headers, render::bytes(&answer))
}

/// `GET /version`: which build of the program answers.
pub(super) async fn version(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &JSON)?;
    let BuildInfo { commit, features } = call.service().build;
    let version = env!("CARGO_PKG_VERSION");
    let answer = json!({"version": version, "commit": commit, "features": features});
    caching::content(&call, &headers, render::bytes(&answer))
}

/// `GET /info`: the model as text-embeddings-inference describes one.
pub(super) async fn info(call: Call, headers: HeaderMap, uri: Uri) -> Answered {
    check_plain_get(&headers, &uri, &JSON)?;
    let longest = longest_text(&call.model);
    let answer = json!({
        "model_id": call.name(),
        "model_sha": call.model.version(),
        "model_dtype": "float32",
        "model_type": {"embedding": {"pooling": "mean"}},
        "max_input_length": longest,
        "max_batch_tokens": longest.saturating_mul(MAX_INPUTS),
        "max_client_batch_size": MAX_INPUTS,
        "auto_truncate": true,
        "version": env!("CARGO_PKG_VERSION"),
        "sha": call.service().build.commit,
    });
    caching::content(&call, &headers, render::bytes(&answer))
}

/// Most words or tokens of a text that its vector is made of; each has a byte at least.
fn longest_text(model: &ModelStore) -> usize {
    match text_encoder(model) {
        Ok(Some(TextEncoder::Static(encoder))) => encoder.max_tokens().unwrap_or(MAX_TEXT_BYTES),
        _ => MAX_ENCODED_WORDS,
    }
}

/// A model as it is now.
pub(super) fn description(served: &ServedModel) -> ModelDescription<'_> {
    let about = ModelDescription::new(&served.model, &served.engine, served.placed.as_ref());
    let about = about.at(served.live.as_ref().map(|live| live.now()).as_deref());
    ModelDescription { writable: served.writer.is_some(), ..about }
}
