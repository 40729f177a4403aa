//! The rows behind a base, as pieces that are searched one after the other.
//!
//! Rows that are on the base's device are not among them. Rows come in parts of a fixed size, of which the last one grows. A part that is full is a piece
//! with a derived table, as a base has one. Until then its rows are in strips of 512 with a table
//! each, which is derived when the strip is full; the rows behind the last strip, fewer than 512,
//! are scored by the formula.

use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use contract::{EngineError, HasTable, Hit, Metric, Query, SearchEngine, Table};
use cpu_core::{CpuEngine, FullScanEngine, Options, StartError};
use model_store::changes::{Snapshot, TailPart, TailRows};

use super::{Segment, Whole, ask_those};
use crate::join::merge;
use crate::shard::Part;

/// Rows of a strip: fewer are searched without a derived table.
const STRIP_ROWS: usize = 512;

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

/// The pieces of a tail.
pub(super) struct Tail {
    threads: FullScanEngine,
    metric: Metric,
    /// Those with a derived table, in order, without gaps from the first row on.
    derived: Vec<Piece<CpuEngine>>,
    /// The rows behind them.
    rest: Option<Piece<FullScanEngine>>,
    /// The end of all of them.
    end: usize,
}

struct Piece<E> {
    rows: Range<usize>,
    engine: E,
}

impl Tail {
    /// The tail of a base, without rows.
    ///
    /// # Errors
    /// If the threads can't be started.
    pub(super) fn new(of: &Arc<dyn HasTable>, threads: usize) -> Result<Self, StartError> {
        let table = of.table();
        let (dim, metric) = (table.dim(), table.metric());
        let threads = FullScanEngine::new(Arc::new(NoRows { dim, metric }), threads)?;
        Ok(Self { threads, metric, derived: Vec::new(), rest: None, end: table.rows() })
    }

    /// Takes the rows that came since, without those before `begin`, which is never less than it
    /// was before. A snapshot of fewer rows changes nothing.
    ///
    /// # Errors
    /// If the system refuses to start a thread that derives a table.
    pub(super) fn extend(&mut self, snapshot: &Snapshot, begin: usize) -> Result<(), StartError> {
        if snapshot.rows() <= self.end {
            return Ok(());
        }
        self.end = self.end.max(begin);
        self.rest = None;
        for part in snapshot.tail() {
            let (origin, end) = (part.first().index(), part.first().index() + part.len());
            let first = origin.max(begin);
            if first >= end {
                continue;
            }
            // Of each part, the pieces follow each other.
            let before = self.derived.partition_point(|piece| piece.rows.start < first);
            if part.is_full() {
                let known = self.derived.get(before).map(|piece| piece.rows.end);
                if known != Some(end) {
                    let whole = self.piece(part, first - origin..part.len())?;
                    self.derived.truncate(before);
                    self.derived.push(whole);
                }
                continue;
            }
            let mut from = self.derived[before..].last().map_or(first, |last| last.rows.end);
            while from + STRIP_ROWS <= end {
                let strip = self.piece(part, from - origin..from - origin + STRIP_ROWS)?;
                self.derived.push(strip);
                from += STRIP_ROWS;
            }
            if from < end {
                let table = self.table(part, from - origin..end - origin);
                let engine = self.threads.of(table);
                self.rest = Some(Piece { rows: from..end, engine });
            }
        }
        self.end = snapshot.rows();
        Ok(())
    }

    fn table(&self, part: &TailPart, places: Range<usize>) -> Arc<dyn HasTable> {
        Arc::new(TailRows::new(part, places, self.metric))
    }

    fn piece(&self, part: &TailPart, places: Range<usize>) -> Result<Piece<CpuEngine>, StartError> {
        let first = part.first().index();
        let rows = first + places.start..first + places.end;
        let table = self.table(part, places);
        let engine = CpuEngine::beside(&self.threads, table, Options::default())?;
        Ok(Piece { rows, engine })
    }

    /// Joins what the tail has for these queries with what was found before it. A query without an
    /// answer stays without one.
    pub(super) fn search(
        &mut self,
        whole: &Whole,
        queries: &[&Query],
        found: &mut [Option<Vec<Hit>>],
    ) -> Result<(), EngineError> {
        for Piece { rows, engine, .. } in &mut self.derived {
            search_piece(engine, rows, whole, queries, found)?;
        }
        if let Some(Piece { rows, engine, .. }) = &mut self.rest {
            search_piece(engine, rows, whole, queries, found)?;
        }
        Ok(())
    }

    /// An engine for each part of the rows behind the base, those on its device with them, that
    /// scores all of its rows.
    pub(super) fn scans(&self, snapshot: &Snapshot) -> Vec<(Range<usize>, FullScanEngine)> {
        let scan = |part: &TailPart| {
            let rows = part.first().index()..part.first().index() + part.len();
            (rows, self.threads.of(self.table(part, 0..part.len())))
        };
        snapshot.tail().map(scan).collect()
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
        let rest = self.rest.as_ref().map_or(0, |piece| piece.rows.len());
        write!(f, "a tail of {} pieces, and {rest} rows", self.derived.len())
    }
}
