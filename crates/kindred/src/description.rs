//! The description of a model and of the engine that answers for it.

use std::borrow::Cow;

use contract::EngineDescription;
use model_store::ModelStore;
use model_store::attributes::{AttributeSummary, Attributes};
use model_store::format::Provenance;
use serde::{Deserialize, Serialize};

use crate::evaluation::results::Engine;
use crate::placement::{Placed, Shard};
use crate::rows::AtPosition;

/// A model and the engine that answers for it. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ModelDescription<'a> {
    /// Its name.
    pub name: Cow<'a, str>,
    /// The version of its content.
    pub version: Cow<'a, str>,
    /// The position of its rows, if they change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub position: Option<u64>,
    /// Whether its rows may be changed here.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub writable: bool,
    /// Number of rows.
    pub rows: usize,
    /// Components in a row.
    pub dim: usize,
    /// How a vector and a row become a score.
    pub metric: Cow<'a, str>,
    /// The attributes of its rows, if they have any.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub attributes: Cow<'a, [AttributeSummary]>,
    /// What answers.
    pub engine: Engine<'a>,
    /// The shards of each replica, on several GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replicas: Option<Vec<Vec<ShardDescription<'a>>>>,
    /// Where it came from.
    pub provenance: Cow<'a, Provenance>,
}

/// Some rows on one GPU. JSON has these names, in this order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ShardDescription<'a> {
    /// The GPU's index in the driver's order, from 0.
    pub gpu: u32,
    /// Its name.
    pub name: Cow<'a, str>,
    /// The first of its rows.
    pub first_row: usize,
    /// How many rows it has.
    pub rows: usize,
    /// The memory that they take there, in bytes.
    pub memory_bytes: u64,
    /// Whether that is enough for full speed.
    pub at_full_speed: bool,
}

impl<'a> ModelDescription<'a> {
    /// That of a model and its engine, after its attributes were read once; `placed` says which GPUs
    /// it is on, if there are several.
    pub fn new(
        model: &'a ModelStore,
        engine: &'a EngineDescription,
        placed: Option<&'a Placed>,
    ) -> Self {
        let replica = |shards: &'a Vec<Shard>| shards.iter().map(ShardDescription::of).collect();
        Self {
            name: model.name().into(),
            version: model.version().into(),
            position: None,
            writable: false,
            rows: model.rows(),
            dim: model.dim(),
            metric: model.metric().name().into(),
            attributes: model.attributes().map(Attributes::summaries).unwrap_or_default().into(),
            engine: Engine::of(engine),
            replicas: placed.map(|placed| placed.replicas.iter().map(replica).collect()),
            provenance: Cow::Borrowed(&model.header().provenance),
        }
    }
}

impl ModelDescription<'_> {
    /// The same of its rows at a position, if they change.
    #[must_use]
    pub fn at(self, at: Option<&AtPosition>) -> Self {
        let Some(at) = at else { return self };
        Self { position: Some(at.position()), rows: at.live_rows(), ..self }
    }
}

impl<'a> ShardDescription<'a> {
    fn of(shard: &'a Shard) -> Self {
        let Shard { gpu, name, rows, bytes, at_full_speed } = shard;
        Self {
            gpu: *gpu,
            name: name.into(),
            first_row: rows.start,
            rows: rows.len(),
            memory_bytes: *bytes,
            at_full_speed: *at_full_speed,
        }
    }
}
