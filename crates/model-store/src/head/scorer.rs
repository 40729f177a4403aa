//! Scorers: one number for a text, a linear function of the mean of its word vectors.

use std::path::Path;
use std::sync::Arc;

use bytemuck::{cast_slice, pod_collect_to_vec};
use contract::TextScorer;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};
use serde::{Deserialize, Serialize};

use super::description::{self, HeadKind, MadeFor, Tokens};
use super::tensors::bytes;
use super::{HEAD_FILE, HeadError, WEIGHTS_FILE, check_folder, seal};
use crate::ModelStore;
use crate::error::Reason;
use crate::format::Checksum;
use crate::mapped::Mapped;

const WEIGHT: &str = "weight";
const BIAS: &str = "bias";

/// The description of a scorer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScorerDescription {
    /// [`HeadKind::Scorer`].
    pub kind: HeadKind,
    /// [`HEAD_VERSION`](super::HEAD_VERSION).
    pub version: u32,
    /// The model that it was made for: its words are the tokens.
    pub model: MadeFor,
    /// How texts become tokens.
    pub tokens: Tokens,
    /// The checksum of the weights' file.
    pub weights: String,
    /// How it was made, for people: the data, settings and results.
    #[serde(default, skip_serializing_if = "serde_json::Map::is_empty")]
    pub training: serde_json::Map<String, serde_json::Value>,
    /// The checksum of all this.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

/// A scorer that fits its model.
#[derive(Debug)]
pub struct Scorer {
    description: ScorerDescription,
    function: Arc<TextScorer>,
}

impl Scorer {
    /// Opens a scorer's folder. Checks the description and its checksum, that it was made for this
    /// model, all shapes, the checksum of the weights, and that they are finite.
    ///
    /// # Errors
    /// If there is no scorer, if it is damaged, or if it was made for another model.
    pub fn open(folder: &Path, model: &Arc<ModelStore>) -> Result<Self, HeadError> {
        check_folder(folder)?;
        let path = folder.join(HEAD_FILE);
        let description: ScorerDescription = description::parse(&path, &Mapped::open(&path)?)?;
        let wrong = |reason: Reason| HeadError::Description { path: path.clone(), reason };
        if description.kind != HeadKind::Scorer {
            return Err(wrong("it is not a scorer".into()));
        }
        description.tokens.check().map_err(|reason| wrong(reason.into()))?;
        description.model.check(folder, model)?;
        let path = folder.join(WEIGHTS_FILE);
        let weights = Mapped::open(&path)?;
        seal::check_weights(folder, &weights, &description.weights)?;
        let (weight, bias) =
            read(&weights, model.dim()).map_err(|reason| HeadError::Damaged { path, reason })?;
        let function = Arc::new(TextScorer::new(model.clone(), weight, bias));
        Ok(Self { description, function })
    }

    /// What the scorer is.
    pub fn description(&self) -> &ScorerDescription {
        &self.description
    }

    /// The checksum that belongs into its description, if that has none.
    pub fn missing_checksum(&self) -> Option<String> {
        self.description.checksum.is_none().then(|| seal::checksum_of(&self.description))
    }

    /// What engines are asked for.
    pub fn function(&self) -> &Arc<TextScorer> {
        &self.function
    }
}

/// The weights, `[dim]`, and the bias of a weights' file.
fn read(file: &[u8], dim: usize) -> Result<(Vec<f32>, f32), Reason> {
    let tensors = SafeTensors::deserialize(file)?;
    if let Some(name) = tensors.names().iter().find(|name| ![WEIGHT, BIAS].contains(name)) {
        return Err(format!("it has a tensor `{name}`, which no scorer has").into());
    }
    let floats = |name: &str, size: usize| -> Result<Vec<f32>, Reason> {
        let tensor = tensors.tensor(name)?;
        let floats: Vec<f32> = pod_collect_to_vec(bytes(&tensor, name, Dtype::F32, &[size])?);
        match floats.iter().all(|number| number.is_finite()) {
            true => Ok(floats),
            false => Err(format!("`{name}` has a number that is not finite").into()),
        }
    };
    Ok((floats(WEIGHT, dim)?, floats(BIAS, 1)?[0]))
}

/// Writes a scorer's folder, complete or not at all. The checksums are computed. `weight` is
/// `[dim]`.
///
/// # Errors
/// If `out` exists (unless it is a head and `replace` is set), or can't be written; if the weights
/// do not fit the description's model, or are not finite.
pub fn write_scorer(
    out: &Path,
    replace: bool,
    description: &ScorerDescription,
    weight: &[f32],
    bias: f32,
) -> Result<(), HeadError> {
    let damaged = |reason: Reason| HeadError::Damaged { path: WEIGHTS_FILE.into(), reason };
    let bias = [bias];
    let file = || -> Result<Vec<u8>, Reason> {
        let mut tensors = Vec::new();
        for (name, numbers) in [(WEIGHT, weight), (BIAS, &bias[..])] {
            let shape = vec![numbers.len()];
            tensors.push((name, TensorView::new(Dtype::F32, shape, cast_slice(numbers))?));
        }
        let file = serialize(tensors, None)?;
        read(&file, description.model.dim)?;
        Ok(file)
    };
    let file = file().map_err(damaged)?;
    let weights = Checksum::of(&file).to_string();
    let description = ScorerDescription { weights, ..description.clone() };
    let checksum = Some(seal::checksum_of(&description));
    seal::write(out, replace, &ScorerDescription { checksum, ..description }, &file)
}
