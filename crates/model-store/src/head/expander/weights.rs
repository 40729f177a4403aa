//! `weights.safetensors` of an expander.

use bytemuck::{cast_slice, pod_collect_to_vec};
use contract::Row;
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::super::tensors::bytes;
use crate::error::Reason;

const ROWS: &str = "terms.rows";
const VECTORS: &str = "terms.vectors";
const BIASES: &str = "terms.bias";
const PROJECTION: &str = "projection";

/// An expander's weights. All of them are optional.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ExpanderWeights {
    /// The rows of the model that are terms, ascending; `None` if all are.
    pub rows: Option<Vec<Row>>,
    /// The vectors of the terms, `[terms, dim]`, where they are not the model's.
    pub vectors: Option<Vec<f32>>,
    /// The biases of the terms, `[terms]`.
    pub biases: Option<Vec<f32>>,
    /// The matrix that tokens' vectors are multiplied by, `[dim, token_dim]`.
    pub projection: Option<Vec<f32>>,
}

/// The shapes that weights must have.
#[derive(Debug, Clone, Copy)]
pub(super) struct WeightShape {
    /// The terms, if all rows are terms.
    pub(super) terms: usize,
    /// Components of a term's vector.
    pub(super) dim: usize,
    /// Components of a token's vector.
    pub(super) token_dim: usize,
}

impl ExpanderWeights {
    /// Reads a weights' file, wherever it is in memory.
    pub(super) fn read(file: &[u8], shape: WeightShape) -> Result<Self, Reason> {
        let tensors = SafeTensors::deserialize(file)?;
        let known = [ROWS, VECTORS, BIASES, PROJECTION];
        if let Some(name) = tensors.names().iter().find(|name| !known.contains(name)) {
            return Err(format!("it has a tensor `{name}`, which no expander has").into());
        }
        let rows = match tensors.tensor(ROWS) {
            Err(_) => None,
            Ok(tensor) => {
                let count = tensor.data().len() / size_of::<u32>();
                let rows = bytes(&tensor, ROWS, Dtype::U32, &[count])?;
                let rows: Vec<u32> = pod_collect_to_vec(rows);
                let ascending = rows.is_sorted_by(|a, b| a < b);
                if !ascending || rows.last().is_none_or(|&last| last as usize >= shape.terms) {
                    return Err(format!("`{ROWS}` are not ascending rows of the model").into());
                }
                Some(rows.into_iter().map(Row).collect::<Vec<_>>())
            }
        };
        let terms = rows.as_ref().map_or(shape.terms, Vec::len);
        let floats = |name: &str, shape: &[usize]| -> Result<Option<Vec<f32>>, String> {
            let Ok(tensor) = tensors.tensor(name) else { return Ok(None) };
            let floats: Vec<f32> = pod_collect_to_vec(bytes(&tensor, name, Dtype::F32, shape)?);
            match floats.iter().all(|number| number.is_finite()) {
                true => Ok(Some(floats)),
                false => Err(format!("`{name}` has a number that is not finite")),
            }
        };
        let (vectors, biases) = (floats(VECTORS, &[terms, shape.dim])?, floats(BIASES, &[terms])?);
        let projection = floats(PROJECTION, &[shape.dim, shape.token_dim])?;
        Ok(Self { rows, vectors, biases, projection })
    }

    pub(super) fn write(&self, shape: WeightShape) -> Result<Vec<u8>, Reason> {
        let Self { rows, vectors, biases, projection } = self;
        let WeightShape { terms, dim, token_dim } = shape;
        let terms = rows.as_ref().map_or(terms, Vec::len);
        let rows: Option<Vec<u32>> =
            rows.as_ref().map(|rows| rows.iter().map(|row| row.0).collect());
        let mut tensors = Vec::new();
        if let Some(rows) = &rows {
            tensors.push((ROWS, TensorView::new(Dtype::U32, vec![terms], cast_slice(rows))?));
        }
        for (name, shape, numbers) in [
            (VECTORS, vec![terms, dim], vectors),
            (BIASES, vec![terms], biases),
            (PROJECTION, vec![dim, token_dim], projection),
        ] {
            if let Some(numbers) = numbers {
                tensors.push((name, TensorView::new(Dtype::F32, shape, cast_slice(numbers))?));
            }
        }
        Ok(serialize(tensors, None)?)
    }
}
