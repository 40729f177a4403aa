//! `weights.safetensors` of a head.

use std::ops::Range;

use bytemuck::{cast_slice, pod_collect_to_vec};
use contract::classifier::{Classifier, Convolution, Layer};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView, serialize};

use super::{Description, Parts};
use crate::error::Reason;
use crate::mapped::Mapped;

/// The most tensors: some for each convolution and layer.
const MAX_TENSORS: usize = 4096;

/// The tensors that stay where they are.
#[derive(Debug)]
pub(super) struct Tensors {
    file: Mapped,
    dim: usize,
    /// In bytes of the file.
    tuned_rows: Range<usize>,
    tuned: Range<usize>,
    added: Range<usize>,
    unknown: Option<Range<usize>>,
}

fn convolution(index: usize, what: &str) -> String {
    format!("convolutions.{index}.{what}")
}

fn layer(index: usize, what: &str) -> String {
    format!("layers.{index}.{what}")
}

impl Tensors {
    /// Finds the tensors of a head with this description.
    pub(super) fn new(file: Mapped, description: &Description, dim: usize) -> Result<Self, Reason> {
        let tensors = SafeTensors::deserialize(&file)?;
        let expected = 2 * (description.convolutions.len() + description.layers.len());
        let others = ["tuned.rows", "tuned.vectors", "words.vectors", "unknown.vector"];
        let found = others.iter().filter(|name| tensors.tensor(name).is_ok()).count();
        if tensors.len() > MAX_TENSORS || tensors.len() != expected + found {
            let (has, known) = (tensors.len(), expected + found);
            let reason = format!("it has {has} tensors; {known} are known by the description");
            return Err(reason.into());
        }
        let start = file.as_ptr() as usize;
        let place = |data: &[u8]| {
            let from = data.as_ptr() as usize - start;
            from..from + data.len()
        };
        let optional = |name: &str, dtype, shape: &[usize]| -> Result<Range<usize>, String> {
            match tensors.tensor(name) {
                Err(_) => Ok(0..0),
                Ok(tensor) => aligned_bytes(&tensor, name, dtype, shape).map(place),
            }
        };
        let rows = tensors.tensor("tuned.rows").map_or(0, |rows| rows.data().len() / 4);
        let unknown = tensors.tensor("unknown.vector").is_ok();
        let (tuned_rows, tuned, added, unknown) = (
            optional("tuned.rows", Dtype::U32, &[rows])?,
            optional("tuned.vectors", Dtype::F32, &[rows, dim])?,
            optional("words.vectors", Dtype::F32, &[description.words.len(), dim])?,
            unknown.then(|| optional("unknown.vector", Dtype::F32, &[dim])).transpose()?,
        );
        if tuned.len() != rows * dim * 4 || added.len() != description.words.len() * dim * 4 {
            return Err("vectors of words are missing".into());
        }
        let own = Self { dim, tuned_rows, tuned, added, unknown, file: file.clone() };
        let all = [own.floats(&own.tuned), own.floats(&own.added), own.unknown().unwrap_or(&[])];
        if all.iter().any(|vectors| vectors.iter().any(|component| !component.is_finite())) {
            return Err("a vector has a component that is not finite".into());
        }
        Ok(own)
    }

    /// The classifier's weights, copied.
    pub(super) fn classifier(
        &self,
        description: &Description,
        dim: usize,
    ) -> Result<Classifier, Reason> {
        let tensors = SafeTensors::deserialize(&self.file)?;
        let floats = |name: String, shape: &[usize]| -> Result<Vec<f32>, Reason> {
            let tensor = tensors.tensor(&name)?;
            Ok(pod_collect_to_vec(bytes(&tensor, &name, Dtype::F32, shape)?))
        };
        let mut convolutions = Vec::new();
        for (index, shape) in description.convolutions.iter().enumerate() {
            let (width, padding) = (shape.width, shape.padding);
            let weights = floats(convolution(index, "weight"), &[shape.channels, width, dim])?;
            let bias = floats(convolution(index, "bias"), &[shape.channels])?;
            convolutions.push(Convolution { width, padding, weights, bias });
        }
        let mut inputs = convolutions.iter().map(Convolution::channels).sum();
        let mut layers = Vec::new();
        for (index, &outputs) in description.layers.iter().enumerate() {
            let weights = floats(layer(index, "weight"), &[outputs, inputs])?;
            let bias = floats(layer(index, "bias"), &[outputs])?;
            layers.push(Layer { weights, bias });
            inputs = outputs;
        }
        Ok(Classifier::new(dim, convolutions, layers)?)
    }

    /// Checks that the tuned rows are ascending rows of the model.
    pub(super) fn check_rows(&self, rows: usize) -> Result<(), Reason> {
        let tuned = self.tuned_rows();
        let ascending = tuned.is_sorted_by(|a, b| a < b);
        match ascending && tuned.last().is_none_or(|&last| (last as usize) < rows) {
            true => Ok(()),
            false => Err("`tuned.rows` are not ascending rows of the model".into()),
        }
    }

    fn floats(&self, range: &Range<usize>) -> &[f32] {
        cast_slice(&self.file[range.clone()])
    }

    fn tuned_rows(&self) -> &[u32] {
        cast_slice(&self.file[self.tuned_rows.clone()])
    }

    /// The vector that replaces that of a row of the model, if there is one.
    pub(super) fn tuned(&self, row: u32) -> Option<&[f32]> {
        let index = self.tuned_rows().binary_search(&row).ok()?;
        Some(&self.floats(&self.tuned)[index * self.dim..][..self.dim])
    }

    /// The vector of the head's own n-th word.
    pub(super) fn added(&self, index: usize) -> &[f32] {
        &self.floats(&self.added)[index * self.dim..][..self.dim]
    }

    pub(super) fn unknown(&self) -> Option<&[f32]> {
        self.unknown.as_ref().map(|range| self.floats(range))
    }
}

/// The bytes of a tensor that must have this type and shape.
pub(super) fn bytes<'a>(
    tensor: &TensorView<'a>,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<&'a [u8], String> {
    if tensor.dtype() != dtype || tensor.shape() != shape {
        let (found, of) = (tensor.dtype(), tensor.shape());
        return Err(format!("`{name}` is {found:?} {of:?}; {dtype:?} {shape:?} is needed"));
    }
    Ok(tensor.data())
}

/// The same, of a tensor that stays where it is: its numbers are aligned.
fn aligned_bytes<'a>(
    tensor: &TensorView<'a>,
    name: &str,
    dtype: Dtype,
    shape: &[usize],
) -> Result<&'a [u8], String> {
    let data = bytes(tensor, name, dtype, shape)?;
    match bytemuck::try_cast_slice::<u8, u32>(data) {
        Ok(_) => Ok(data),
        Err(_) => Err(format!("`{name}` does not begin at a multiple of 4 bytes")),
    }
}

/// The file of a head's weights.
pub(super) fn write(parts: &Parts) -> Result<Vec<u8>, Reason> {
    let Parts { classifier, tuned: (rows, tuned), added, unknown, .. } = parts;
    let dim = classifier.dim();
    let f32s = |shape: Vec<usize>, values| {
        TensorView::new(Dtype::F32, shape, cast_slice::<f32, u8>(values))
    };
    let mut tensors = Vec::new();
    for (index, one) in classifier.convolutions().iter().enumerate() {
        let shape = vec![one.channels(), one.width, dim];
        tensors.push((convolution(index, "weight"), f32s(shape, &one.weights)?));
        tensors.push((convolution(index, "bias"), f32s(vec![one.channels()], &one.bias)?));
    }
    for (index, one) in classifier.layers().iter().enumerate() {
        let outputs = one.bias.len();
        let shape = vec![outputs, one.weights.len() / outputs];
        tensors.push((layer(index, "weight"), f32s(shape, &one.weights)?));
        tensors.push((layer(index, "bias"), f32s(vec![outputs], &one.bias)?));
    }
    let rows: Vec<u32> = rows.iter().map(|row| row.0).collect();
    if !rows.is_empty() {
        let own = TensorView::new(Dtype::U32, vec![rows.len()], cast_slice(&rows))?;
        tensors.push(("tuned.rows".to_owned(), own));
        tensors.push(("tuned.vectors".to_owned(), f32s(vec![rows.len(), dim], tuned)?));
    }
    if !added.is_empty() {
        let shape = vec![added.len() / dim, dim];
        tensors.push(("words.vectors".to_owned(), f32s(shape, added)?));
    }
    if let Some(unknown) = unknown {
        tensors.push(("unknown.vector".to_owned(), f32s(vec![dim], unknown)?));
    }
    Ok(serialize(tensors, None)?)
}
