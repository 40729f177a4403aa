//! The products of tokens with all filters, computed when they are needed and kept.

use contract::{Table, Token, TokenClassifier};
use model_store::MappedMut;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Shape;
use super::loops::Block;
use super::slots::{Assigned, Slots};
use crate::InstructionSet;
use crate::prefetch::prefetch;

/// The products of tokens, each in a slot: `[slots, columns]`.
#[derive(Debug)]
pub(super) struct Products {
    shapes: Vec<Shape>,
    columns: usize,
    /// All filters, `[blocks, dim]`.
    filters: Vec<Block>,
    instructions: InstructionSet,
    /// In huge pages, because rows of random words are read.
    values: MappedMut,
    slots: Slots,
}

/// The products, to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(super) shapes: &'a [Shape],
    columns: usize,
    values: &'a [f32],
}

impl<'a> View<'a> {
    /// Prefetches what a text needs, if the second-level cache has room for it beside another text.
    pub(super) fn prefetch(self, text: &[u32]) {
        const MOST_BYTES: usize = 256 << 10;
        if text.len() * self.columns * size_of::<f32>() <= MOST_BYTES {
            text.iter().for_each(|&slot| prefetch(self.row(slot)));
        }
    }

    #[inline(always)]
    pub(super) fn row(self, slot: u32) -> &'a [f32] {
        &self.values[slot as usize * self.columns..][..self.columns]
    }
}

impl Products {
    pub(super) fn new(
        head: &dyn TokenClassifier,
        memory: usize,
        instructions: InstructionSet,
    ) -> Self {
        let convolutions = head.classifier().convolutions();
        let (shapes, columns) = Shape::all(convolutions);
        let filters = blocks(head, &shapes, columns);
        let most = memory / (columns * size_of::<f32>());
        let slots = Slots::new(head, most);
        // Memory that the system gives on first use.
        let values = MappedMut::zeroed((slots.count() * columns * size_of::<f32>()).max(1));
        let values = values.expect("address space").in_huge_pages();
        Self { shapes, columns, filters, instructions, values, slots }
    }

    pub(super) fn view(&self) -> View<'_> {
        let values = bytemuck::cast_slice(&self.values[..]);
        View { shapes: &self.shapes, columns: self.columns, values }
    }

    /// Computes what is missing for these texts, as many as there is room for, at least one.
    pub(super) fn load(
        &mut self,
        table: &Table<'_>,
        head: &dyn TokenClassifier,
        texts: &[&[Token]],
        pool: &ThreadPool,
    ) -> Assigned {
        let assigned = self.slots.assign(texts);
        self.compute(table, head, &assigned.missing, pool);
        assigned
    }

    fn compute(
        &mut self,
        table: &Table<'_>,
        head: &dyn TokenClassifier,
        missing: &[(Token, u32)],
        pool: &ThreadPool,
    ) {
        /// Tokens whose products are computed before they are put into their slots.
        const TOGETHER: usize = 256;
        let &mut Self { columns, instructions, ref filters, .. } = self;
        let mut products = vec![0.0; missing.len().min(TOGETHER) * columns];
        for some in missing.chunks(TOGETHER) {
            let products = &mut products[..some.len() * columns];
            pool.install(|| {
                products.par_chunks_mut(columns).zip(some).for_each(|(products, (token, _))| {
                    instructions.products(&head.vector(table, *token), filters, products);
                });
            });
            for (&(_, slot), products) in some.iter().zip(products.chunks_exact(columns)) {
                let values: &mut [f32] = bytemuck::cast_slice_mut(&mut self.values[..]);
                values[slot as usize * columns..][..columns].copy_from_slice(products);
            }
        }
    }
}

/// All filters as columns in blocks, `[blocks, dim]`.
fn blocks(head: &dyn TokenClassifier, shapes: &[Shape], columns: usize) -> Vec<Block> {
    let dim = head.classifier().dim();
    let together = size_of::<Block>() / size_of::<f32>();
    let mut blocks = vec![Block::default(); columns.div_ceil(together) * dim];
    for (one, shape) in head.classifier().convolutions().iter().zip(shapes) {
        for tap in 0..one.width {
            for channel in 0..one.channels() {
                let column = shape.column + tap * shape.channels + channel;
                let weights = &one.weights[(channel * one.width + tap) * dim..][..dim];
                let block = &mut blocks[column / together * dim..][..dim];
                for (block, weight) in block.iter_mut().zip(weights) {
                    block[column % together] = *weight;
                }
            }
        }
    }
    blocks
}
