//! Scores a block of rows against vectors.

use std::ops::Range;

use contract::{Metric, Row, Scoring, Table, score};

use super::super::ROWS_PER_BLOCK;
use super::super::dots::{Chunk, Dots, chunks_per_row, widen};
use super::vectors::Vectors;
use crate::InstructionSet;

/// One number for each row of a block.
pub(super) type PerRow = [f64; ROWS_PER_BLOCK];

/// One thread's buffers for a block.
pub(super) struct RowBlock<'a> {
    table: Table<'a>,
    vectors: &'a Vectors,
    instructions: InstructionSet,
    /// The rows in float64, `[ROWS_PER_BLOCK, chunks_per_row]`.
    rows: Vec<Chunk>,
    /// Their norms, or biases under the metric `dot`. NaN for rows without a score: zero rows under
    /// `cosine`, and the missing rows of a short block.
    norms: PerRow,
    /// The dot products, `[vectors, ROWS_PER_BLOCK]`.
    dots: Vec<f64>,
    /// The cosines, `[vectors]`.
    cosines: Vec<PerRow>,
    /// The scores for one query, and scratch memory.
    scores: Box<[PerRow; 2]>,
}

impl<'a> RowBlock<'a> {
    pub(super) fn new(
        table: Table<'a>,
        vectors: &'a Vectors,
        instructions: InstructionSet,
    ) -> Self {
        let number = vectors.norms.len();
        Self {
            table,
            vectors,
            instructions,
            rows: vec![Chunk::ZERO; ROWS_PER_BLOCK * chunks_per_row(table.dim())],
            norms: [f64::NAN; ROWS_PER_BLOCK],
            dots: vec![0.0; number * ROWS_PER_BLOCK],
            cosines: vec![[f64::NAN; ROWS_PER_BLOCK]; number],
            scores: Box::new([[f64::NAN; ROWS_PER_BLOCK]; 2]),
        }
    }

    /// Loads these rows, at most as many as fit.
    pub(super) fn take(&mut self, rows: impl Iterator<Item = Row>) {
        self.norms = [f64::NAN; ROWS_PER_BLOCK];
        let widened_rows = self.rows.chunks_exact_mut(chunks_per_row(self.table.dim()));
        for ((row, widened), norm) in rows.zip(widened_rows).zip(&mut self.norms) {
            widen(self.table.row(row), widened);
            *norm = match self.table.metric() {
                Metric::Cosine => {
                    Some(self.table.norm(row)).filter(|&norm| norm > 0.0).unwrap_or(f64::NAN)
                }
                Metric::Dot => f64::from(self.table.bias(row)),
            };
        }
    }

    /// Computes the cosines of the rows with these vectors.
    pub(super) fn multiply(&mut self, vectors: Range<usize>) {
        let chunks = chunks_per_row(self.table.dim());
        // Here the vectors are the rows of the product and the block's rows its queries, so that
        // the result has the layout that the formulas read. Products commute, and the order of
        // summation is the same.
        let asked = &self.vectors.widened[vectors.start * chunks..vectors.end * chunks];
        let dots = &mut self.dots[..vectors.len() * ROWS_PER_BLOCK];
        self.instructions.run(Dots { rows: asked, queries: &self.rows, chunks, dots: &mut *dots });
        let (dots, _) = dots.as_chunks::<ROWS_PER_BLOCK>();
        let cosines = self.cosines[vectors.clone()].iter_mut().zip(dots);
        for ((cosines, dots), norm) in cosines.zip(&self.vectors.norms[vectors]) {
            let rows = cosines.iter_mut().zip(dots).zip(self.norms);
            match self.table.metric() {
                Metric::Cosine => rows.for_each(|((cosine, &dot), row_norm)| {
                    *cosine = score::cosine(dot, *norm, row_norm);
                }),
                Metric::Dot => rows.for_each(|((score, &dot), bias)| *score = dot + bias),
            }
        }
    }

    /// The scores of the rows by this formula over these vectors, after
    /// [`multiply`](Self::multiply).
    pub(super) fn scores(&mut self, scoring: &Scoring, vectors: &[usize]) -> &PerRow {
        let [scores, space] = &mut *self.scores;
        let cosines = &self.cosines;
        scoring.scores(|vector| &cosines[vectors[vector]], scores, space);
        scores
    }
}
