//! Turns candidates into an answer: applies the contract's formula to every row that may still be in it.

use contract::{Hit, Query, Table, TopK, score};

use super::kernels::prefetch;
use super::pass::Candidate;
use crate::InstructionSet;
use crate::full_scan::dots::{Chunk, chunks_per_row, widen};

/// Rows that are scored together.
const ROWS: usize = 16;

/// An answer and its cost.
pub(crate) struct Rescored {
    pub(crate) hits: Vec<Hit>,
    pub(crate) candidates: usize,
    /// The number of candidates that were scored.
    pub(crate) scored: usize,
}

/// The best `k` of the candidates.
///
/// Candidates come in descending order of their upper bounds, so the loop ends at the first that can no longer be in
/// the answer.
pub(crate) fn rescore(
    query: &Query,
    mut candidates: Vec<Candidate>,
    table: &Table<'_>,
    instructions: InstructionSet,
) -> Rescored {
    candidates.sort_unstable_by(|a, b| b.upper.total_cmp(&a.upper).then(a.row.cmp(&b.row)));
    let chunks = chunks_per_row(table.dim());
    let mut asked = vec![Chunk::ZERO; chunks];
    widen(query.components(table), &mut asked);
    let mut rows = vec![Chunk::ZERO; ROWS * chunks];
    let mut dots = [0.0; ROWS];
    let mut best = TopK::new(query.k());
    let mut scored = 0;
    for some in candidates.chunks(ROWS) {
        let hopeless =
            |worst: Hit| some.first().is_some_and(|first| f64::from(first.upper) < worst.score);
        if best.worst_if_full().is_some_and(hopeless) {
            break;
        }
        for candidate in some {
            prefetch(table.row(candidate.row));
            prefetch(std::slice::from_ref(&table.norms()[candidate.row.index()]));
        }
        for (candidate, widened) in some.iter().zip(rows.chunks_exact_mut(chunks)) {
            widen(table.row(candidate.row), widened);
        }
        let (rows, dots) = (&rows[..some.len() * chunks], &mut dots[..some.len()]);
        instructions.dots(rows, &asked, chunks, dots);
        scored += some.len();
        for (candidate, &dot) in some.iter().zip(&*dots) {
            let score = score::cosine(dot, query.norm(), table.norm(candidate.row));
            let hit = Hit { row: candidate.row, score };
            if query.filter().admits(hit.row, hit.score) {
                best.push(hit);
            }
        }
    }
    Rescored { hits: best.into_sorted(), candidates: candidates.len(), scored }
}
