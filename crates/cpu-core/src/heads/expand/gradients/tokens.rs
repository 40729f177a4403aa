//! Gradients of the tokens' vectors.

use contract::Table;
use rayon::ThreadPool;
use rayon::prelude::*;

use super::kernel::{Columns, Item, Sums};
use super::{Entry, TextVectors, check_entries, check_table};
use crate::InstructionSet;

/// Sums that a thread keeps while it goes through a text: they stay in a second-level cache.
const SUMS: usize = 1 << 16;
/// The fewest components that are added together, or additions of a row cost less than reaching it.
const LEAST_COLUMNS: usize = 64;

/// The gradients of the tokens' vectors, `[tokens, dim]`. `entries` are ordered by text, and those
/// of a text by term. Each thread owns texts.
///
/// # Panics
/// As [`gradients`](super::gradients).
pub fn token_gradients(
    texts: TextVectors<'_>,
    table: &Table<'_>,
    entries: &[Entry],
    pool: &ThreadPool,
) -> Vec<f32> {
    check_table(texts, table);
    check_entries(texts, table.rows(), entries);
    let (dim, instructions) = (texts.dim, InstructionSet::best());
    let mut gradients = vec![0.0; texts.vectors.len()];
    let (mut rest, mut left) = (&mut gradients[..], entries);
    // Of each text that has any: its tokens' gradients, and its entries.
    let mut tasks = Vec::with_capacity(texts.texts());
    for text in 0..texts.texts() {
        let (own, after) = rest.split_at_mut(texts.range(text).len() * dim);
        let count = left.partition_point(|entry| entry.text as usize <= text);
        let (entries, later) = left.split_at(count);
        (rest, left) = (after, later);
        if !entries.is_empty() {
            tasks.push((own, entries));
        }
    }
    pool.install(|| {
        tasks.into_par_iter().for_each_init(Vec::new, |sums: &mut Vec<f64>, (own, entries)| {
            let item = |entry: &Entry| Item {
                to: entry.position,
                from: entry.term,
                factor: entry.gradient,
            };
            let items: Vec<Item> = entries.iter().map(item).collect();
            let tokens = own.len() / dim;
            let columns = (SUMS / tokens).clamp(LEAST_COLUMNS, dim.max(LEAST_COLUMNS));
            for first in (0..dim).step_by(columns) {
                let width = columns.min(dim - first);
                sums.clear();
                sums.resize(tokens * width, 0.0);
                let to = Sums { sums, width, first: 0 };
                instructions.add_rows(to, Columns { rows: table.components(), dim, first }, &items);
                for (own, sums) in own.chunks_exact_mut(dim).zip(sums.chunks_exact(width)) {
                    for (to, sum) in own[first..].iter_mut().zip(sums) {
                        *to = *sum as f32;
                    }
                }
            }
        });
    });
    gradients
}
