//! The rows behind a base, as pieces that are searched one after the other.
//!
//! Rows that are on the base's device are not among them. A piece has a derived table, as a base
//! has one; the rows behind the last piece are scored by the formula. Pieces are never changed:
//!
//! ```text
//! whenever rows have come, and no piece is being derived:
//!     if there are 512 rows or more behind the last piece:
//!         first ← the first of them
//!         while the piece before `first` has at most 8 times the rows from `first` on:
//!             first ← its first row
//!         derive a piece of all rows from `first` on, beside the searches
//! once that is ready, it takes the place of those that it has the rows of
//! ```
//!
//! So each piece has more than 8 times the rows of all behind it, and there are two or three: each
//! costs every query about as long as 2,000 rows. A row is derived some 8 times for each of them.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use changes::{Snapshot, TailPart, TailRows};
use contract::{EngineError, HasTable, Hit, Metric, Query, SearchEngine, Table};
use cpu_core::{CpuEngine, FullScanEngine, Options, StartError};

use super::{Segment, Whole, ask_those};
use crate::join::merge;
use crate::shard::Part;

/// Fewer rows are searched without a derived table.
const FEWEST_ROWS: usize = 512;
/// A piece is derived again, together with the rows behind it, if it has at most so many times their
/// number.
const LARGER: usize = 8;

/// A table without rows, of whose engine all pieces have the threads.
#[derive(Debug)]
struct NoRows {
    dim: usize,
    metric: Metric,
}

impl HasTable for NoRows {
    fn table(&self) -> Table<'_> {
        let none = Table::new(&[], &[], self.dim);
        match self.metric {
            Metric::Cosine => none,
            Metric::Dot => none.under_dot(None),
        }
    }
}

/// Rows of several parts of a tail, one behind another in memory.
#[derive(Debug)]
struct Copied {
    components: Vec<f32>,
    norms: Vec<f64>,
    biases: Vec<f32>,
    dim: usize,
    metric: Metric,
}

impl HasTable for Copied {
    fn table(&self) -> Table<'_> {
        let table = Table::new(&self.components, &self.norms, self.dim);
        match self.metric {
            Metric::Cosine => table,
            Metric::Dot => table.under_dot(Some(&self.biases)),
        }
    }
}

/// The parts of a tail that have these rows, and the places of theirs.
fn parts_of<'a>(
    snapshot: &'a Snapshot,
    rows: Range<usize>,
) -> impl Iterator<Item = (&'a TailPart, Range<usize>)> {
    let Range { start, end } = rows;
    let places = move |part: &'a TailPart| {
        let Range { start: first, end: part_end } = part.rows();
        (part, start.max(first) - first..end.min(part_end).saturating_sub(first))
    };
    snapshot.tail().map(places).filter(|(_, places)| !places.is_empty())
}

/// These rows of a tail as a table of their own; copied unless they are of one part.
fn rows_of(snapshot: &Snapshot, rows: &Range<usize>, metric: Metric) -> Arc<dyn HasTable> {
    let parts: Vec<(&TailPart, Range<usize>)> = parts_of(snapshot, rows.clone()).collect();
    if let [(part, places)] = &parts[..] {
        return Arc::new(TailRows::new(part, places.clone(), metric));
    }
    let dim = parts.first().map_or(0, |(part, _)| part.dim());
    let (components, norms, biases) = Default::default();
    let mut copied = Copied { components, norms, biases, dim, metric };
    for (part, places) in parts {
        copied.components.extend(&part.vectors()[places.start * dim..places.end * dim]);
        copied.norms.extend(&part.norms()[places.clone()]);
        if metric == Metric::Dot {
            copied.biases.extend(&part.biases()[places]);
        }
    }
    Arc::new(copied)
}

/// The pieces of a tail.
pub(super) struct Tail {
    threads: FullScanEngine,
    metric: Metric,
    /// In order, without gaps from the first row on.
    pieces: Vec<Piece<CpuEngine>>,
    /// A piece of rows at the end, whose table is being derived.
    next: Option<Piece<CpuEngine>>,
    /// The rows behind the pieces, by the parts that they are in.
    rest: Vec<Piece<FullScanEngine>>,
    /// The first row.
    begin: usize,
    /// The end of all of them.
    end: usize,
}

pub(super) struct Piece<E> {
    pub(super) rows: Range<usize>,
    pub(super) engine: E,
}

impl Tail {
    /// The tail of a base, without rows.
    ///
    /// # Errors
    /// If the threads can't be started.
    pub(super) fn new(of: &Arc<dyn HasTable>, threads: usize) -> Result<Self, StartError> {
        let table = of.table();
        let (dim, metric, rows) = (table.dim(), table.metric(), table.rows());
        let threads = FullScanEngine::new(Arc::new(NoRows { dim, metric }), threads)?;
        let (pieces, next, rest) = Default::default();
        Ok(Self { threads, metric, pieces, next, rest, begin: rows, end: rows })
    }

    /// Takes the rows that came since, without those before `begin`, which is what it was before
    /// unless there are no rows yet. A snapshot of fewer rows changes nothing.
    ///
    /// # Errors
    /// If the system refuses to start a thread that derives a table.
    pub(super) fn extend(&mut self, snapshot: &Snapshot, begin: usize) -> Result<(), StartError> {
        if self.end == self.begin {
            (self.begin, self.end) = (begin, begin);
        }
        assert_eq!(begin, self.begin, "the first row stays");
        let end = snapshot.rows();
        let is_ready = self.next.as_ref().is_some_and(|piece| !piece.engine.is_deriving());
        if end < self.end || (end == self.end && !is_ready) {
            return Ok(());
        }
        if is_ready && let Some(piece) = self.next.take() {
            let kept = self.pieces.partition_point(|one| one.rows.start < piece.rows.start);
            self.pieces.truncate(kept);
            self.pieces.push(piece);
        }
        self.end = end;
        let first = self.pieces.last().map_or(begin, |last| last.rows.end);
        self.rest = self.scans(snapshot, first..end).collect();
        if self.next.is_none() && first + FEWEST_ROWS <= end {
            let mut from = first;
            for piece in self.pieces.iter().rev() {
                if piece.rows.len() > LARGER * (end - from) {
                    break;
                }
                from = piece.rows.start;
            }
            let table = rows_of(snapshot, &(from..end), self.metric);
            let engine = CpuEngine::beside(&self.threads, table, Options::default())?;
            self.next = Some(Piece { rows: from..end, engine });
        }
        Ok(())
    }

    /// Joins what the tail has for these queries with what was found before it. A query without an
    /// answer stays without one.
    pub(super) fn search(
        &mut self,
        whole: &Whole,
        queries: &[&Query],
        found: &mut [Option<Vec<Hit>>],
    ) -> Result<(), EngineError> {
        for Piece { rows, engine } in &mut self.pieces {
            search_piece(engine, rows, whole, queries, found)?;
        }
        for Piece { rows, engine } in &mut self.rest {
            search_piece(engine, rows, whole, queries, found)?;
        }
        Ok(())
    }

    /// An engine for each part of these rows that scores all of them.
    pub(super) fn scans(
        &self,
        snapshot: &Snapshot,
        rows: Range<usize>,
    ) -> impl Iterator<Item = Piece<FullScanEngine>> {
        parts_of(snapshot, rows).map(|(part, places)| {
            let first = part.first().index();
            let rows = first + places.start..first + places.end;
            let table = TailRows::new(part, places, self.metric);
            Piece { rows, engine: self.threads.of(Arc::new(table)) }
        })
    }
}

fn search_piece(
    engine: &mut dyn SearchEngine,
    rows: &Range<usize>,
    whole: &Whole,
    queries: &[&Query],
    found: &mut [Option<Vec<Hit>>],
) -> Result<(), EngineError> {
    let segment = Segment { rows: rows.clone(), whole: whole.clone() };
    let each = queries.iter().zip(&*found);
    let own = each.map(|(query, found)| segment.query_above(query, found.as_deref()?));
    let own: Vec<Option<Query>> = own.collect();
    let here = ask_those(&own, |batch| Ok(engine.search(batch)?.into_iter().map(Some).collect()))?;
    let all = Segment { rows: 0..whole.snapshot.rows(), whole: whole.clone() };
    for ((found, here), query) in found.iter_mut().zip(here).zip(queries) {
        if let (Some(found), Some(mut here)) = (found, here)
            && !here.is_empty()
        {
            here.iter_mut().for_each(|hit| hit.row = segment.everywhere(hit.row));
            let before = std::mem::take(found);
            *found = merge([(&all, before), (&all, here)].into_iter(), query.k);
        }
    }
    Ok(())
}

impl Segment {
    /// The query for what may be among the best `k` with these hits, which come before this
    /// segment's rows. `None` if nothing may.
    fn query_above(&self, query: &Query, before: &[Hit]) -> Option<Query> {
        let mut own = self.query(query)?;
        if query.k == 0 {
            return None;
        }
        if let Some(worst) = before.get(query.k - 1) {
            // With an equal score, a row of this segment ranks after those before.
            let above = worst.score.next_up();
            let least = own.filter.min_score.map_or(above, |least| least.max(above));
            own.filter.min_score = Some(least);
            if own.filter.max_score.is_some_and(|most| most < least) {
                return None;
            }
        }
        Some(own)
    }
}

impl fmt::Debug for Tail {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let rest: usize = self.rest.iter().map(|piece| piece.rows.len()).sum();
        write!(f, "a tail of {} pieces, and {rest} rows", self.pieces.len())
    }
}
