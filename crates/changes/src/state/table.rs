//! The numbers of a table at a position: those of the base, then those of the tail.

use std::ops::Range;

use contract::{HasTable, Metric, Row, Table, TableRows};

use super::{Snapshot, TailPart};

/// The rows of a base and, at a position, those behind it. Dead rows are there as well.
#[derive(Debug, Clone, Copy)]
pub struct TableAt<'a> {
    base: Table<'a>,
    snapshot: Option<&'a Snapshot>,
}

impl<'a> TableAt<'a> {
    /// The rows of a base alone, without a snapshot; else those that its snapshot has.
    ///
    /// # Panics
    /// If it is a snapshot of another base.
    pub fn new(base: Table<'a>, snapshot: Option<&'a Snapshot>) -> Self {
        let base_rows = snapshot.map_or(base.rows(), Snapshot::base_rows);
        assert_eq!(base_rows, base.rows(), "a snapshot of this base");
        Self { base, snapshot }
    }

    fn tail(&self) -> &'a Snapshot {
        self.snapshot.expect("a row of the table")
    }

    fn of<T>(
        &self,
        row: Row,
        base: impl FnOnce(&Table<'a>) -> T,
        tail: impl FnOnce(super::TailRow<'a>) -> T,
    ) -> T {
        match row.index() < self.base.rows() {
            true => base(&self.base),
            false => tail(self.tail().tail_row(row).expect("a row of the table")),
        }
    }
}

impl TableRows for TableAt<'_> {
    fn rows(&self) -> usize {
        self.snapshot.map_or(self.base.rows(), Snapshot::rows)
    }

    fn dim(&self) -> usize {
        self.base.dim()
    }

    fn metric(&self) -> Metric {
        self.base.metric()
    }

    fn row(&self, row: Row) -> &[f32] {
        self.of(row, |base| base.row(row), |tail| tail.vector)
    }

    fn norm(&self, row: Row) -> f64 {
        self.of(row, |base| base.norm(row), |tail| tail.norm)
    }

    fn bias(&self, row: Row) -> f32 {
        self.of(row, |base| base.bias(row), |tail| tail.bias.unwrap_or(0.0))
    }
}

/// Some rows of a part of the tail, as a table of their own.
#[derive(Debug, Clone)]
pub struct TailRows {
    part: TailPart,
    rows: Range<usize>,
    metric: Metric,
}

impl TailRows {
    /// These rows of a part, by their places in it.
    ///
    /// # Panics
    /// If it does not have them.
    pub fn new(part: &TailPart, rows: Range<usize>, metric: Metric) -> Self {
        assert!(rows.start <= rows.end && rows.end <= part.len(), "{rows:?} of {}", part.len());
        Self { part: part.clone(), rows, metric }
    }
}

impl HasTable for TailRows {
    fn table(&self) -> Table<'_> {
        let Self { part, rows, metric } = self;
        let all = Table::new(part.vectors(), part.norms(), part.dim());
        match metric {
            Metric::Cosine => all.part(rows.clone()),
            Metric::Dot => all.under_dot(Some(part.biases())).part(rows.clone()),
        }
    }
}
