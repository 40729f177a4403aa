//! The rows of a graph by their places: those of a model, or those that live in a table at one
//! position, in their order.

use contract::{Row, RowSet};
use kindred::Kindred;
use kindred::question::meeting;
use kindred::rows::Rows;

use crate::error::JobError;

/// The rows of a graph. Each of them is a query, and may be a neighbour.
pub(super) struct LiveRows<'a> {
    rows: &'a dyn Rows,
    /// Of a table that changes: the rows that live, and the place of each row, dead ones included.
    /// In a model, every row is its own place.
    live: Option<(Vec<u32>, Vec<u32>)>,
}

impl<'a> LiveRows<'a> {
    /// All rows of a model, or those that live in a table.
    pub(super) fn new(rows: &'a dyn Rows) -> Self {
        let live = rows.snapshot().map(|snapshot| {
            let all = 0..snapshot.rows() as u32;
            let live: Vec<u32> = all.filter(|&row| snapshot.is_live(Row(row))).collect();
            let mut places = vec![0; snapshot.rows()];
            (0..).zip(&live).for_each(|(place, &row)| places[row as usize] = place);
            (live, places)
        });
        Self { rows, live }
    }

    pub(super) fn rows(&self) -> &'a dyn Rows {
        self.rows
    }

    /// Number of rows.
    pub(super) fn count(&self) -> usize {
        self.live.as_ref().map_or_else(|| self.rows.count(), |(live, _)| live.len())
    }

    /// The row at a place below the count.
    pub(super) fn row(&self, place: u64) -> Row {
        Row(self.live.as_ref().map_or(place as u32, |(live, _)| live[place as usize]))
    }

    /// The place of a row that lives.
    pub(super) fn place(&self, row: Row) -> u32 {
        self.live.as_ref().map_or(row.0, |(_, places)| places[row.index()])
    }

    /// The number that answers have for the row at a place.
    pub(super) fn number(&self, place: u64) -> u32 {
        self.rows.number(self.row(place))
    }

    /// The word of the row at a place.
    #[cfg(feature = "parquet")]
    pub(super) fn word(&self, place: u64) -> &'a str {
        self.rows.word(self.row(place))
    }

    /// The rows that may be neighbours, of the first `count` places.
    pub(super) fn within(
        &self,
        kindred: &Kindred,
        filter: Option<&str>,
        count: u64,
    ) -> Result<RowSet, JobError> {
        let all = match filter {
            Some(filter) => {
                let set = meeting(self.rows, kindred.sets(), filter);
                RowSet::of(set.map_err(|error| JobError::Refused(error.to_string()))?)
            }
            None => self.rows.live(),
        };
        let is_part = (count as usize) < self.count();
        let limit = is_part.then(|| self.row(count).0);
        Ok(all.limited(limit))
    }
}
