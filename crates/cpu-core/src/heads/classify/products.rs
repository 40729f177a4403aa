//! The products of tokens with all filters, computed when they are needed and kept.

use std::collections::HashMap;

use contract::{Table, Token, TokenClassifier};
use rayon::ThreadPool;
use rayon::prelude::*;

use super::Shape;
use super::loops::Block;
use crate::InstructionSet;

/// The part of the memory that is for rare words, in turns.
const RARE_PART: usize = 8;

/// The products of tokens, each in a slot: `[slots, columns]`.
#[derive(Debug)]
pub(super) struct Products {
    shapes: Vec<Shape>,
    columns: usize,
    /// All filters, `[blocks, dim]`.
    filters: Vec<Block>,
    instructions: InstructionSet,
    values: Vec<f32>,
    /// Tokens below this have the slot of their own number, once `is_loaded`.
    frequent: usize,
    is_loaded: Vec<bool>,
    /// The slots of others.
    rare: HashMap<u32, u32>,
    /// How many of these there may be at a time.
    most_rare: usize,
}

/// The products, to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View<'a> {
    pub(super) shapes: &'a [Shape],
    columns: usize,
    values: &'a [f32],
}

impl<'a> View<'a> {
    #[inline(always)]
    pub(super) fn row(self, slot: u32) -> &'a [f32] {
        &self.values[slot as usize * self.columns..][..self.columns]
    }
}

/// The slots of some texts.
pub(super) struct Slots {
    /// The number of texts.
    pub(super) texts: usize,
    /// The slots of all their tokens, text by text.
    pub(super) slots: Vec<u32>,
    /// Where each text ends.
    pub(super) ends: Vec<usize>,
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
        let limit = head.longest_text();
        let (frequent, most_rare) = match most >= head.tokens() {
            true => (head.tokens(), 0),
            // A text must fit.
            false => (most - most / RARE_PART, (most / RARE_PART).max(limit)),
        };
        // Memory that the system gives on first use.
        let values = vec![0.0; (frequent + most_rare) * columns];
        let (is_loaded, rare) = (vec![false; frequent], HashMap::new());
        Self {
            shapes,
            columns,
            filters,
            instructions,
            values,
            frequent,
            is_loaded,
            rare,
            most_rare,
        }
    }

    pub(super) fn view(&self) -> View<'_> {
        View { shapes: &self.shapes, columns: self.columns, values: &self.values }
    }

    /// Computes what is missing for these texts, as many as there is room for, at least one.
    pub(super) fn load(
        &mut self,
        table: &Table<'_>,
        head: &dyn TokenClassifier,
        texts: &[&[Token]],
        pool: &ThreadPool,
    ) -> Slots {
        let mut slots = Slots { texts: 0, slots: Vec::new(), ends: Vec::new() };
        let mut missing: Vec<(Token, u32)> = Vec::new();
        for text in texts {
            let before = (slots.slots.len(), missing.len());
            for &token in *text {
                match self.slot(token, &mut missing) {
                    Some(slot) => slots.slots.push(slot),
                    None if slots.texts > 0 => {
                        // No room: the texts so far first. What was begun for this one is loaded with them.
                        slots.slots.truncate(before.0);
                        break;
                    }
                    None => {
                        // Nothing else needs the rare words that are there.
                        self.rare.clear();
                        missing.retain(|(token, _)| (token.0 as usize) < self.frequent);
                        return self.load_again(table, head, text, missing, pool);
                    }
                }
            }
            if slots.slots.len() - before.0 < text.len() {
                break;
            }
            slots.ends.push(slots.slots.len());
            slots.texts += 1;
        }
        self.compute(table, head, &missing, pool);
        slots
    }

    /// Loads one text, for whose rare words there is room now.
    fn load_again(
        &mut self,
        table: &Table<'_>,
        head: &dyn TokenClassifier,
        text: &[Token],
        mut missing: Vec<(Token, u32)>,
        pool: &ThreadPool,
    ) -> Slots {
        let slot = |&token: &Token| self.slot(token, &mut missing).expect("room for one text");
        let slots: Vec<u32> = text.iter().map(slot).collect();
        self.compute(table, head, &missing, pool);
        Slots { texts: 1, ends: vec![slots.len()], slots }
    }

    /// The slot of a token. If it is new, it is `missing`; `None` if there is no room.
    fn slot(&mut self, token: Token, missing: &mut Vec<(Token, u32)>) -> Option<u32> {
        if let Some(is_loaded) = self.is_loaded.get_mut(token.0 as usize) {
            if !std::mem::replace(is_loaded, true) {
                missing.push((token, token.0));
            }
            return Some(token.0);
        }
        if let Some(&slot) = self.rare.get(&token.0) {
            return Some(slot);
        }
        if self.rare.len() == self.most_rare {
            return None;
        }
        let slot = (self.frequent + self.rare.len()) as u32;
        self.rare.insert(token.0, slot);
        missing.push((token, slot));
        Some(slot)
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
                self.values[slot as usize * columns..][..columns].copy_from_slice(products);
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
