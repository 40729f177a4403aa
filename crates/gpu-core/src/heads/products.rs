//! The products of tokens with all filters, computed on the device when they are needed, and kept
//! there.

#![allow(unsafe_code)]

use contract::{Token, TokenClassifier, VectorSource};
use cpu_core::heads::classify::{Assigned, Slots};
use cust::stream::Stream;

use super::abi::{NewToken, PRODUCT_TILE, ProductsParams};
use super::kernels::Kernels;
use super::weights::Weights;
use crate::driver::{Array, Doing, Gpu, Pinned, Shape, new_stream, start_upload};
use crate::resident::{NOT_A_ROW, Resident};
use crate::{GpuError, Precision};

/// Bytes left free on the device beside products, for a model that replaces this one's tables among
/// others.
const RESERVE: u64 = 1 << 30;

/// Tokens whose products are computed together.
const TOGETHER: usize = 4096;

/// Bytes of vectors that are uploaded together.
const UPLOAD_BYTES: usize = 32 << 20;

/// The products of tokens, each in a slot: `[slots, columns]`.
#[derive(Debug)]
pub(super) struct Products {
    pub(super) slots: Slots,
    pub(super) values: Array<u8>,
    pub(super) precision: Precision,
    stream: Stream,
    tokens: (Pinned<NewToken>, Array<NewToken>),
    vectors: (Pinned<f32>, Array<f32>),
}

impl Products {
    /// Room for the products of all tokens; if `most` bytes, or half of the device's free memory,
    /// are less, for as many as these hold. `None` if there is no memory for those of a text.
    pub(super) fn new(
        head: &dyn TokenClassifier,
        gpu: &Gpu,
        weights: &Weights,
        precision: Precision,
        most: Option<u64>,
    ) -> Result<Option<Self>, GpuError> {
        let free = gpu.free_memory()?.saturating_sub(RESERVE) / 2;
        let slot_bytes = weights.columns * precision.bytes();
        let slots = Slots::new(head, most.unwrap_or(free).min(free) as usize / slot_bytes);
        let bytes = slots.count() * slot_bytes;
        if bytes as u64 > free {
            return Ok(None);
        }
        let vectors = (UPLOAD_BYTES / size_of::<f32>()).max(head.classifier().dim());
        Ok(Some(Self {
            slots,
            values: Array::uninitialised(bytes)?,
            precision,
            stream: new_stream()?,
            tokens: (Pinned::zeroed(TOGETHER)?, Array::zeroed(TOGETHER)?),
            vectors: (Pinned::zeroed(vectors)?, Array::zeroed(vectors)?),
        }))
    }

    /// Computes what is missing for these texts, as many as there is room for, at least one. No
    /// pass is under way.
    pub(super) fn load(
        &mut self,
        resident: &Resident,
        kernels: &Kernels,
        weights: &Weights,
        head: &dyn TokenClassifier,
        texts: &[&[Token]],
    ) -> Result<Assigned, GpuError> {
        let assigned = self.slots.assign(texts);
        let mut rest = &assigned.missing[..];
        while !rest.is_empty() {
            let taken = self.compute(resident, kernels, weights, head, rest)?;
            rest = &rest[taken..];
        }
        Ok(assigned)
    }

    /// Computes the products of the first of these tokens. Returns their number.
    fn compute(
        &mut self,
        resident: &Resident,
        kernels: &Kernels,
        weights: &Weights,
        head: &dyn TokenClassifier,
        missing: &[(Token, u32)],
    ) -> Result<usize, GpuError> {
        let (dim, room) = (resident.dim, self.vectors.0.len() / resident.dim);
        let (mut count, mut uploaded) = (0, 0);
        for &(token, slot) in missing.iter().take(TOGETHER) {
            assert!((slot as usize) < self.slots.count(), "a slot that there is");
            let mut new = NewToken { row: NOT_A_ROW, scale: 1.0, uploaded: 0, slot };
            let source = head.source(token);
            match source {
                VectorSource::Row { row, scale } => {
                    assert!((row.0 as usize) < resident.rows, "a row of the table");
                    (new.row, new.scale) = (row.0, scale);
                }
                VectorSource::Own(_) | VectorSource::Elsewhere { .. } if uploaded == room => break,
                VectorSource::Own(vector) | VectorSource::Elsewhere { row: vector, .. } => {
                    if let VectorSource::Elsewhere { scale, .. } = source {
                        new.scale = scale;
                    }
                    self.vectors.0[uploaded * dim..][..dim].copy_from_slice(vector);
                    new.uploaded = uploaded as u32;
                    uploaded += 1;
                }
            }
            self.tokens.0[count] = new;
            count += 1;
        }
        let params = ProductsParams {
            table: resident.view(),
            tokens: self.tokens.1.pointer(),
            vectors: self.vectors.1.pointer(),
            filters: weights.filters.pointer(),
            products: self.values.pointer_mut(),
            count: count as u32,
            columns: weights.columns as u32,
            is_half: u32::from(self.precision == Precision::Float16),
        };
        let tiles = |n: usize| n.div_ceil(PRODUCT_TILE);
        // SAFETY: rows, uploaded vectors and slots are within their arrays, as checked above; the
        // arrays are of the lengths that the parameters' comments state. No pass is under way, and
        // the stream is synchronised before anything changes.
        let launched = unsafe {
            start_upload(&self.tokens.0[..count], &self.tokens.1, &self.stream)
                .and_then(|()| {
                    let vectors = &self.vectors.0[..uploaded * dim];
                    start_upload(vectors, &self.vectors.1, &self.stream)
                })
                .and_then(|()| {
                    let shape = Shape::grid(tiles(weights.columns), tiles(count));
                    kernels.multiply_tokens.launch(&self.stream, shape, &params)
                })
        };
        let waited = self.stream.synchronize().doing("multiplying tokens with filters");
        launched.and(waited)?;
        Ok(count)
    }
}

impl Drop for Products {
    fn drop(&mut self) {
        let _ = self.stream.synchronize();
    }
}
