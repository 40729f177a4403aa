//! The products of tokens with all filters, computed when they are needed and kept.

use contract::{Precision, Table, Token, TokenClassifier};
use model_store::MappedMut;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::loops::{Features, TokenProducts, View, WindowSums};
use super::slots::{Assigned, Slots};
use super::{Shape, float16, padded};
use crate::InstructionSet;
use crate::heads::{FilterBlock, filter_columns};

/// The products of tokens, each in a slot: `[slots, columns]`.
#[derive(Debug)]
pub(super) struct Products {
    pub(super) shapes: Vec<Shape>,
    columns: usize,
    /// All filters, `[blocks, dim]`.
    filters: Vec<FilterBlock>,
    pub(super) instructions: InstructionSet,
    precision: Precision,
    /// In huge pages, because rows of random words are read.
    values: MappedMut,
    slots: Slots,
    /// Where the products of each slot are, `[slots]`, in the order in which slots were used first.
    /// The system clears a whole page when something is written to it first, which takes as long as
    /// hundreds of words; in this order, there is one such page for all of these words.
    places: Vec<u32>,
    /// Places that are used.
    used: u32,
}

/// The place of a slot that was not used yet.
const NOWHERE: u32 = u32::MAX;

impl Products {
    pub(super) fn new(
        head: &dyn TokenClassifier,
        memory: usize,
        precision: Precision,
        instructions: InstructionSet,
    ) -> Self {
        let classifier = head.classifier();
        let (shapes, columns) = Shape::all(classifier.convolutions());
        let filters = filter_columns(classifier.convolutions(), classifier.dim(), padded);
        let bytes = precision.bytes();
        let most = memory / (columns * bytes);
        let slots = Slots::new(head, most);
        // Memory that the system gives on first use.
        let values = MappedMut::zeroed((slots.count() * columns * bytes).max(1));
        let values = values.expect("address space").in_huge_pages();
        let (places, used) = (vec![NOWHERE; slots.count()], 0);
        Self { shapes, columns, filters, instructions, precision, values, slots, places, used }
    }

    /// The features of a text, as places of its tokens.
    pub(super) fn features(&self, text: &[u32], space: &mut WindowSums) {
        let Self { shapes, columns, values, instructions, .. } = self;
        let (columns, values) = (*columns, &values[..]);
        match self.precision {
            Precision::Float16 => {
                let values: &[u16] = bytemuck::cast_slice(values);
                let products = View { shapes, columns, values };
                instructions.run(Features { text, products, space });
            }
            Precision::Float32 => {
                let values: &[f32] = bytemuck::cast_slice(values);
                let products = View { shapes, columns, values };
                instructions.run(Features { text, products, space });
            }
        }
    }

    /// Computes what is missing for these texts, as many as there is room for, at least one. In the
    /// slots of the result are the places of the tokens' products. `None` if `go_on` said to stop
    /// before all of it was computed; some of it was.
    pub(super) fn load(
        &mut self,
        table: &Table<'_>,
        head: &dyn TokenClassifier,
        texts: &[&[Token]],
        pool: &ThreadPool,
        go_on: &dyn Fn() -> bool,
    ) -> Option<Assigned> {
        /// Tokens whose products are computed between two looks at the time: about half a
        /// millisecond's work.
        const TOGETHER: usize = 16;
        let mut assigned = self.slots.assign(texts);
        let mut done = 0;
        for some in assigned.missing.chunks(TOGETHER) {
            if done > 0 && !go_on() {
                self.slots.forget(&assigned.missing[done..]);
                return None;
            }
            self.compute(table, head, some, pool);
            done += some.len();
        }
        for slot in &mut assigned.slots {
            *slot = self.places[*slot as usize];
        }
        Some(assigned)
    }

    /// The number of tokens that are not loaded.
    pub(super) fn missing(&self, tokens: &[Token]) -> usize {
        tokens.iter().filter(|&&token| self.slots.loaded(token).is_none()).count()
    }

    fn compute(
        &mut self,
        table: &Table<'_>,
        head: &dyn TokenClassifier,
        some: &[(Token, u32)],
        pool: &ThreadPool,
    ) {
        let &mut Self { columns, instructions, precision, ref filters, .. } = self;
        let mut products = vec![0.0; some.len() * columns];
        pool.install(|| {
            products.par_chunks_mut(columns).zip(some).for_each(|(products, (token, _))| {
                let vector = &head.vector(table, *token);
                instructions.run(TokenProducts { vector, filters, products });
            });
        });
        for (&(_, slot), products) in some.iter().zip(products.chunks_exact(columns)) {
            let place = &mut self.places[slot as usize];
            if *place == NOWHERE {
                *place = self.used;
                self.used += 1;
            }
            let place = *place as usize;
            let own = place * columns..(place + 1) * columns;
            match precision {
                Precision::Float16 => {
                    let values = &mut bytemuck::cast_slice_mut(&mut self.values[..])[own];
                    let halves = products.iter().map(|&x| float16::from_float32(x));
                    values.iter_mut().zip(halves).for_each(|(value, half)| *value = half);
                }
                Precision::Float32 => {
                    let values: &mut [f32] = bytemuck::cast_slice_mut(&mut self.values[..]);
                    values[own].copy_from_slice(products);
                }
            }
        }
    }
}
