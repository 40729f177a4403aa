//! Gradients of the terms' vectors and biases.

use rayon::ThreadPool;
use rayon::prelude::*;

use super::kernel::{Columns, Item, Sums};
use super::{Entry, TextVectors, check_entries};
use crate::InstructionSet;

/// Which terms get a row in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rows {
    /// All of the table; those that no text touches are zero.
    All,
    /// Those that a text touches.
    Touched,
}

/// Gradients of terms.
#[derive(Debug, Clone, PartialEq)]
pub struct TermGradients {
    /// The terms that have a row, ascending; `None` if all of the table have one.
    pub terms: Option<Vec<u32>>,
    /// Of their vectors, `[rows, dim]`.
    pub vectors: Vec<f32>,
    /// Of their biases, `[rows]`.
    pub biases: Vec<f32>,
}

/// Terms that are a task of a thread.
const TERMS: usize = 32;

/// The gradients of the terms' vectors and biases; there are `terms` of them. `entries` are ordered
/// by text, and those of a text by term.
///
/// # Panics
/// If the entries are not in order, or name a text, a term or a position that does not exist.
pub fn term_gradients(
    texts: TextVectors<'_>,
    terms: usize,
    entries: &[Entry],
    rows: Rows,
    pool: &ThreadPool,
) -> TermGradients {
    check_entries(texts, terms, entries);
    let dim = texts.dim;
    let touched = touched_terms(entries);
    let items = items(texts, terms, &touched, entries);
    let mut vectors = vec![0.0; touched.len() * dim];
    let from = Columns { rows: texts.vectors, dim, first: 0 };
    pool.install(|| sum_by_term(&items, from, &mut vectors));
    let mut sums = vec![0.0; touched.len()];
    items.iter().for_each(|item| sums[item.to as usize] += f64::from(item.factor));
    let biases = sums.into_iter().map(|sum| sum as f32).collect();
    match rows {
        Rows::Touched => TermGradients { terms: Some(touched), vectors, biases },
        Rows::All => TermGradients {
            terms: None,
            vectors: spread(terms, &touched, dim, vectors),
            biases: spread(terms, &touched, 1, biases),
        },
    }
}

/// The terms of some entries, ascending.
fn touched_terms(entries: &[Entry]) -> Vec<u32> {
    let mut touched: Vec<u32> = entries.iter().map(|entry| entry.term).collect();
    touched.sort_unstable();
    touched.dedup();
    touched
}

/// What the entries add to which row of the touched terms, by row; those of a row in their order.
fn items(texts: TextVectors<'_>, terms: usize, touched: &[u32], entries: &[Entry]) -> Vec<Item> {
    let mut rows = vec![0; terms];
    touched.iter().zip(0..).for_each(|(&term, row)| rows[term as usize] = row);
    let item = |entry: &Entry| Item {
        to: rows[entry.term as usize],
        from: texts.range(entry.text as usize).start as u32 + entry.position,
        factor: entry.gradient,
    };
    let mut items: Vec<Item> = entries.iter().map(item).collect();
    items.sort_by_key(|item| item.to);
    items
}

/// Adds up the items of each term, `[terms, dim]`. Each thread owns terms.
fn sum_by_term(items: &[Item], from: Columns<'_>, vectors: &mut [f32]) {
    let (width, instructions) = (from.dim, InstructionSet::best());
    vectors.par_chunks_mut(TERMS * width).enumerate().for_each_init(
        Vec::new,
        |sums: &mut Vec<f64>, (task, vectors)| {
            sums.clear();
            sums.resize(vectors.len(), 0.0);
            let first = (task * TERMS) as u32;
            let end = first + (vectors.len() / width) as u32;
            let start_of = |row: u32| items.partition_point(|item| item.to < row);
            let items = &items[start_of(first)..start_of(end)];
            instructions.add_rows(Sums { sums, width, first }, from, items);
            vectors.iter_mut().zip(sums).for_each(|(to, sum)| *to = *sum as f32);
        },
    );
}

/// Rows of touched terms as rows of all terms.
fn spread(terms: usize, touched: &[u32], width: usize, rows: Vec<f32>) -> Vec<f32> {
    if touched.len() == terms {
        return rows;
    }
    let mut all = vec![0.0; terms * width];
    for (row, &term) in rows.chunks_exact(width).zip(touched) {
        all[term as usize * width..][..width].copy_from_slice(row);
    }
    all
}
