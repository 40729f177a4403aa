//! What is served: the models, their heads, the contract, and where to begin.

use axum::http::{HeaderMap, Uri, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::json;

use super::search::Answered;
use crate::http::ApiError;
use crate::http::parse::negotiation::{self, Plain};
use crate::http::render::{self, caching};
use crate::models::{AnyHead, Call, ServedHead, ServedModel};
use kindred::evaluation::results::Engine;
use kindred::placement::Shard;

const OPENAPI: &str = include_str!("../../../../../openapi.yaml");

/// `GET /`: where to begin, as text.
pub(in crate::http) async fn start_page(
    headers: HeaderMap,
    uri: Uri,
) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::TEXT)?;
    Ok(([(header::CONTENT_TYPE, "text/plain; charset=utf-8")], super::start_text()).into_response())
}

/// `GET /openapi.yaml`: the contract for clients.
pub(in crate::http) async fn openapi(headers: HeaderMap, uri: Uri) -> Result<Response, ApiError> {
    negotiation::check_plain_get(&headers, &uri, &negotiation::YAML)?;
    Ok(([(header::CONTENT_TYPE, "application/yaml")], OPENAPI).into_response())
}

/// `GET /model`: name, version, shape, engine and provenance of the model.
pub(in crate::http) async fn model(call: Call, Plain(headers): Plain) -> Answered {
    caching::content(&headers, render::bytes(&Description::of(&call)))
}

/// `GET /models`: all models that are served.
pub(in crate::http) async fn models(call: Call, Plain(headers): Plain) -> Answered {
    let models = call.all_models();
    let answer = json!({
        "default": models[0].name(),
        "models": models.iter().map(|served| Description::of(served)).collect::<Vec<_>>(),
    });
    caching::content(&headers, render::bytes(&answer))
}

/// `GET /heads`: the heads of the model.
pub(in crate::http) async fn heads(call: Call, Plain(headers): Plain) -> Answered {
    let heads = call.heads.load();
    let described = heads.iter().map(|ServedHead { name, head }| match head {
        AnyHead::Classifier(classifier) => {
            let about = classifier.head.description();
            json!({
                "name": name,
                "kind": about.kind,
                "labels": about.labels,
                "probabilities": about.probabilities,
                "tokens": about.tokens,
                "training": about.training,
            })
        }
        AnyHead::Expander(expander) => {
            let about = expander.description();
            json!({
                "name": name,
                "kind": about.kind,
                "terms": expander.len(),
                "log1p": about.log1p,
                "tokens": about.tokens,
                "training": about.training,
            })
        }
    });
    let answer = json!({
        "model": call.name(),
        "version": call.model.version(),
        "heads": described.collect::<Vec<_>>(),
    });
    caching::content(&headers, render::bytes(&answer))
}

/// The description of a model and of the engine that answers for it.
#[derive(Serialize)]
struct Description<'a> {
    name: &'a str,
    version: &'a str,
    rows: usize,
    dim: usize,
    metric: &'static str,
    engine: Engine<'a>,
    /// The shards of each replica, on several GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    replicas: Option<Vec<Vec<ShardDescription<'a>>>>,
    provenance: ProvenanceDescription<'a>,
}

#[derive(Serialize)]
struct ShardDescription<'a> {
    gpu: u32,
    name: &'a str,
    first_row: usize,
    rows: usize,
    memory_bytes: u64,
    at_full_speed: bool,
}

impl<'a> ShardDescription<'a> {
    fn of(shard: &'a Shard) -> Self {
        let Shard { gpu, name, rows, bytes, at_full_speed } = shard;
        Self {
            gpu: *gpu,
            name,
            first_row: rows.start,
            rows: rows.len(),
            memory_bytes: *bytes,
            at_full_speed: *at_full_speed,
        }
    }
}

#[derive(Serialize)]
struct ProvenanceDescription<'a> {
    source: &'a str,
    source_format: &'a str,
    source_bytes: u64,
    source_checksum: String,
    prepared_by: &'a str,
    prepared_at: &'a str,
    bad_rows_skipped: u64,
    duplicate_words_dropped: u64,
}

impl<'a> Description<'a> {
    fn of(served: &'a ServedModel) -> Self {
        let from = &served.model.header().provenance;
        Self {
            name: served.name(),
            version: served.model.version(),
            rows: served.model.rows(),
            dim: served.model.dim(),
            metric: served.model.metric().name(),
            engine: Engine { name: served.engine.name, detail: &served.engine.detail },
            replicas: served.placed.as_ref().map(|placed| {
                let replica = |shards: &'a Vec<Shard>| shards.iter().map(ShardDescription::of);
                placed.replicas.iter().map(|shards| replica(shards).collect()).collect()
            }),
            provenance: ProvenanceDescription {
                source: &from.source,
                source_format: &from.source_format,
                source_bytes: from.source_bytes,
                source_checksum: from.source_checksum.to_string(),
                prepared_by: &from.prepared_by,
                prepared_at: &from.prepared_at,
                bad_rows_skipped: from.bad_rows_skipped,
                duplicate_words_dropped: from.duplicate_words_dropped,
            },
        }
    }
}
