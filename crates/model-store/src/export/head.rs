//! What is before the first row, and the file of biases.

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::ExportFormat;
use crate::{ModelError, ModelStore, npy};

/// The bytes before the first row.
pub(super) fn head(model: &ModelStore, format: ExportFormat) -> Vec<u8> {
    let (rows, dim) = (model.rows(), model.dim());
    match format {
        ExportFormat::Glove => Vec::new(),
        ExportFormat::Word2vec | ExportFormat::Word2vecBinary => format!("{rows} {dim}\n").into(),
        ExportFormat::Npy => npy::head("'<f4'", &[rows as u64, dim as u64]),
        ExportFormat::Safetensors => safetensors_head(rows, dim),
    }
}

/// The biases as a NumPy file.
///
/// # Errors
/// If the model has none.
pub(super) fn biases(model: &ModelStore) -> Result<Vec<u8>, ModelError> {
    let Some(biases) = model.table().biases() else {
        let model = model.name().to_owned();
        return Err(ModelError::Unwritable {
            model,
            reason: "it has no biases; omit --bias".into(),
        });
    };
    let mut file = npy::head("'<f4'", &[biases.len() as u64]);
    file.extend_from_slice(bytemuck::cast_slice(biases));
    Ok(file)
}

fn safetensors_head(rows: usize, dim: usize) -> Vec<u8> {
    let vectors = TensorInfo {
        dtype: Dtype::F32,
        shape: vec![rows, dim],
        data_offsets: (0, rows * dim * size_of::<f32>()),
    };
    let metadata =
        Metadata::new(None, vec![("vectors".into(), vectors)]).expect("one tensor, whole");
    let mut json = serde_json::to_vec(&metadata).expect("texts and numbers become JSON");
    json.resize(json.len().next_multiple_of(8), b' ');
    [&(json.len() as u64).to_le_bytes()[..], &json].concat()
}
