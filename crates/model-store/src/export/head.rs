//! What is before the first row, and the file of biases.

use safetensors::Dtype;
use safetensors::tensor::{Metadata, TensorInfo};

use super::ExportFormat;
use crate::{ModelError, ModelStore};

/// The bytes before the first row.
pub(super) fn head(model: &ModelStore, format: ExportFormat) -> Vec<u8> {
    let (rows, dim) = (model.rows(), model.dim());
    match format {
        ExportFormat::Glove => Vec::new(),
        ExportFormat::Word2vec | ExportFormat::Word2vecBinary => format!("{rows} {dim}\n").into(),
        ExportFormat::Npy => npy_head(&format!("({rows}, {dim})")),
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
    let mut file = npy_head(&format!("({},)", biases.len()));
    file.extend_from_slice(bytemuck::cast_slice(biases));
    Ok(file)
}

/// The head of an array of float32. Format: NEP 1, "A Simple File Format for NumPy Arrays", version 1.0.
pub(super) fn npy_head(shape: &str) -> Vec<u8> {
    const BEFORE_TEXT: usize = 10;
    const ALIGNMENT: usize = 64;
    let mut text = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
    let bytes = (BEFORE_TEXT + text.len() + 1).next_multiple_of(ALIGNMENT) - BEFORE_TEXT;
    text += &" ".repeat(bytes - text.len() - 1);
    text.push('\n');
    let mut head = b"\x93NUMPY\x01\x00".to_vec();
    head.extend_from_slice(&(bytes as u16).to_le_bytes());
    head.extend_from_slice(text.as_bytes());
    head
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
