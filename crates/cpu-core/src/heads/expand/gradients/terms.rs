//! Gradients of the terms' vectors and biases, in three ways that give the same bits.

use std::ops::Range;

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

/// How the sums of [`term_gradients`] are shared between threads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// Each thread owns terms. The entries are grouped by term first.
    ByTerm,
    /// Each thread owns a range of components of all terms, and goes through all entries in their
    /// order.
    ByComponent,
}

/// Terms that are a task of a thread in [`Way::ByTerm`].
const TERMS: usize = 32;

/// Entries of a term from which [`Way::ByComponent`] is faster, and the components that a thread
/// must have for that.
const DENSE_ENTRIES: usize = 32;
const DENSE_COLUMNS: usize = 64;

impl Way {
    /// Both ways.
    pub const ALL: [Self; 2] = [Self::ByTerm, Self::ByComponent];

    /// The faster way for this number of entries and of touched terms.
    ///
    /// Going through the entries in order reads a text's tokens while they are in a cache, and
    /// groups nothing. That pays only if each term has many entries, as where nearly every `f` is
    /// above zero; otherwise the sums of all terms leave the cache between two entries. Two threads
    /// with AVX2, milliseconds for texts × tokens × components × terms (touched by a text):
    ///
    /// | shape | entries a term | by term | by component |
    /// | --- | --- | --- | --- |
    /// | 64 × 16 × 50 × 20,000 (100) | 1 | 0.44 | 0.49 |
    /// | 64 × 64 × 50 × 20,000 (1,000) | 3 | 1.85 | 3.18 |
    /// | 32 × 64 × 768 × 30,522 (319) | 1 | 6.5 | 16.0 |
    /// | 64 × 16 × 300 × 400,000 (102) | 1 | 1.8 | 3.8 |
    /// | 1,024 × 16 × 300 × 400,000 (104) | 1 | 87 | 866 |
    /// | 256 × 64 × 300 × 5,000 (1,000) | 51 | 33.8 | 29.0 |
    /// | 64 × 640 × 640 × 640 (64) | 6 | 2.0 | 2.3 |
    /// | 64 × 640 × 640 × 640 (320) | 32 | 8.4 | 8.3 |
    /// | 64 × 640 × 640 × 640 (640) | 64 | 15.1 | 11.6 |
    ///
    /// Tiles of 1,024 terms × 64 components took 29.6 ms at the last shape.
    fn faster(entries: usize, touched: usize, dim: usize, threads: usize) -> Self {
        match entries >= DENSE_ENTRIES * touched && dim >= DENSE_COLUMNS * threads {
            true => Self::ByComponent,
            false => Self::ByTerm,
        }
    }
}

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
    term_gradients_by(None, texts, terms, entries, rows, pool)
}

/// [`term_gradients`] in one way, for measurements and tests; `None`: the faster one.
///
/// # Panics
/// As [`term_gradients`].
pub fn term_gradients_by(
    way: Option<Way>,
    texts: TextVectors<'_>,
    terms: usize,
    entries: &[Entry],
    rows: Rows,
    pool: &ThreadPool,
) -> TermGradients {
    check_entries(texts, terms, entries);
    let dim = texts.dim;
    let touched = touched_terms(terms, entries);
    let threads = pool.current_num_threads();
    let way = way.unwrap_or_else(|| Way::faster(entries.len(), touched.len(), dim, threads));
    let items = items(texts, terms, &touched, entries);
    let mut vectors = vec![0.0; touched.len() * dim];
    let from = Columns { rows: texts.vectors, dim, first: 0 };
    pool.install(|| match way {
        Way::ByTerm => by_term(&Grouped::new(&items, touched.len()), from, &mut vectors),
        Way::ByComponent => by_component(&items, from, &mut vectors),
    });
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

/// The gradients of the biases alone, `[terms]`.
///
/// # Panics
/// If an entry names a term that does not exist, or the entries are not in order.
pub fn bias_gradients(terms: usize, entries: &[Entry]) -> Vec<f32> {
    assert!(entries.is_sorted_by_key(|entry| entry.text), "entries are ordered by text");
    let mut sums = vec![0.0; terms];
    for entry in entries {
        sums[entry.term as usize] += f64::from(entry.gradient);
    }
    sums.into_iter().map(|sum| sum as f32).collect()
}

/// The terms of some entries, ascending.
fn touched_terms(terms: usize, entries: &[Entry]) -> Vec<u32> {
    // Going through all terms is faster than sorting unless they are many more than the entries.
    if terms / 16 <= entries.len() {
        let mut is_touched = vec![false; terms];
        entries.iter().for_each(|entry| is_touched[entry.term as usize] = true);
        return (0..terms as u32).filter(|&term| is_touched[term as usize]).collect();
    }
    let mut touched: Vec<u32> = entries.iter().map(|entry| entry.term).collect();
    touched.sort_unstable();
    touched.dedup();
    touched
}

/// What the entries add to which row of the touched terms, in their order.
fn items(texts: TextVectors<'_>, terms: usize, touched: &[u32], entries: &[Entry]) -> Vec<Item> {
    let mut rows = vec![0; terms];
    touched.iter().zip(0..).for_each(|(&term, row)| rows[term as usize] = row);
    let item = |entry: &Entry| Item {
        to: rows[entry.term as usize],
        from: texts.range(entry.text as usize).start as u32 + entry.position,
        factor: entry.gradient,
    };
    entries.iter().map(item).collect()
}

/// Items by term. Those of a term keep their order.
struct Grouped {
    items: Vec<Item>,
    /// Where each term's items end.
    ends: Vec<usize>,
}

impl Grouped {
    fn new(items: &[Item], terms: usize) -> Self {
        let mut ends = vec![0; terms];
        items.iter().for_each(|item| ends[item.to as usize] += 1);
        let mut start = 0;
        for end in &mut ends {
            start += std::mem::replace(end, start);
        }
        let mut sorted = vec![Item::default(); items.len()];
        for &item in items {
            let next = &mut ends[item.to as usize];
            sorted[*next] = item;
            *next += 1;
        }
        Self { items: sorted, ends }
    }

    /// The items of these terms.
    fn of(&self, terms: Range<usize>) -> &[Item] {
        let start = terms.start.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.items[start..self.ends[terms.end - 1]]
    }
}

fn by_term(grouped: &Grouped, from: Columns<'_>, vectors: &mut [f32]) {
    let (width, instructions) = (from.dim, InstructionSet::best());
    vectors.par_chunks_mut(TERMS * width).enumerate().for_each_init(
        Vec::new,
        |sums: &mut Vec<f64>, (task, vectors)| {
            sums.clear();
            sums.resize(vectors.len(), 0.0);
            let first = task * TERMS;
            let items = grouped.of(first..first + vectors.len() / width);
            instructions.add_rows(Sums { sums, width, first: first as u32 }, from, items);
            vectors.iter_mut().zip(sums).for_each(|(to, sum)| *to = *sum as f32);
        },
    );
}

fn by_component(items: &[Item], from: Columns<'_>, vectors: &mut [f32]) {
    let (dim, instructions) = (from.dim, InstructionSet::best());
    let columns = dim.div_ceil(rayon::current_num_threads()).next_multiple_of(8);
    let sums = |first: usize| {
        let width = columns.min(dim - first);
        let mut sums = vec![0.0; vectors.len() / dim * width];
        let to = Sums { sums: &mut sums, width, first: 0 };
        instructions.add_rows(to, Columns { first, ..from }, items);
        sums
    };
    let starts: Vec<usize> = (0..dim).step_by(columns).collect();
    let found: Vec<Vec<f64>> = starts.into_par_iter().map(sums).collect();
    // A row lies across the sums of all threads, so it is put together afterwards.
    vectors.par_chunks_mut(dim).enumerate().with_min_len(64).for_each(|(row, vector)| {
        for (to, sums) in vector.chunks_mut(columns).zip(&found) {
            let sums = &sums[row * to.len()..][..to.len()];
            to.iter_mut().zip(sums).for_each(|(to, sum)| *to = *sum as f32);
        }
    });
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
