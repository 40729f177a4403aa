//! The members of a set that all queries share, looked at one by one in the table by rows.

use std::ops::Range;
use std::sync::atomic::Ordering;

use contract::Row;

use super::Worker;
use crate::certified::kernels::{BothPlanesOfRows, Gather};
use crate::certified::layout::STRIP_ROWS;
use crate::certified::pass::{Members, Pass};
use crate::certified::query::PreparedQueries;
use crate::certified::row_table::RowTable;

/// Members that are looked at one after the other are this many members apart. If half of the rows
/// are members, and come in order, hardware prefetches the others as well.
const APART: usize = 64;

/// Members that are compared again, and their sums with both planes of a query, `[members]`.
#[derive(Debug, Default)]
pub(super) struct Again {
    rows: Vec<Row>,
    sums: Vec<[i32; 2]>,
}

impl Worker<'_> {
    /// Looks at the members among these rows, wherever they are, for the first `active` queries.
    pub(super) fn gather(&mut self, members: Members<'_>, rows: Range<usize>, active: usize) {
        let Pass { instructions, prepared, .. } = self.pass;
        let columns = self.pass.first_columns[active];
        let mut of_task = std::mem::take(&mut self.members);
        of_task.clear();
        let in_order = &mut self.again.rows;
        in_order.clear();
        // An iterator of words and bits takes several times as long to extend a list.
        members.bitmap.members_in(rows).for_each(|row| in_order.push(row));
        for first in 0..APART.min(in_order.len()) {
            of_task.extend(in_order[first..].iter().step_by(APART));
        }
        let asked = prepared.planes(0, &self.thresholds[..columns]);
        let rows = members.table.lines();
        let (space, found) = (&mut self.space, &mut self.found);
        instructions.run(Gather { rows, members: &of_task, asked, space, found });
        let found = std::mem::take(&mut self.found);
        for looked_at in &found {
            let strip = &of_task[looked_at.strip as usize * STRIP_ROWS..];
            let rows = looked_at.rows & in_strip(strip);
            if self.pass.columns[looked_at.query as usize].is_query() {
                // They have just been read, so this costs far less than scoring those that it
                // rules out.
                let rows = positions(rows).map(|i| strip[i]);
                self.compare_rows(members.table, looked_at.query as usize, rows);
                continue;
            }
            let place = |i: usize| (strip[i], members.table.scale(strip[i]));
            self.take(looked_at.query as usize, rows, looked_at, place);
        }
        (self.found, self.members) = (found, of_task);
        self.end_task(active, true);
    }

    /// Compares rows that a first look has found again, with all bits and both planes of the query.
    /// Returns how many.
    pub(super) fn compare_rows(
        &mut self,
        table: &RowTable,
        column: usize,
        rows: impl Iterator<Item = Row>,
    ) -> usize {
        let pass = self.pass;
        let query = pass.columns[column].query;
        if pass.failed[query].load(Ordering::Relaxed) {
            return 0;
        }
        let (set, limit) = (&pass.queries[query].filter.rows, pass.row_limits[query]);
        let mut again = std::mem::take(&mut self.again);
        again.rows.clear();
        again.rows.extend(rows.filter(|&row| row.index() < limit && set.contains(row)));
        let of_rows = BothPlanesOfRows {
            rows: table.lines(),
            members: &again.rows,
            planes: pass.prepared.both(column),
            sums: &mut again.sums,
        };
        pass.instructions.run(of_rows);
        let bounds = &pass.prepared.bounds[column].both;
        for (&row, &sums) in again.rows.iter().zip(&again.sums) {
            let scale = table.scale(row);
            // A step of zero: a row of norm zero.
            if scale.step() != 0.0 {
                let sum = PreparedQueries::joined(sums) - bounds.bias;
                self.admit(query, row.index(), bounds.of_sum(sum, scale));
            }
        }
        let compared = again.rows.len();
        self.again = again;
        compared
    }
}

/// The positions of a strip's bits.
pub(super) fn positions(mut rows: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let position = rows.trailing_zeros() as usize;
        (rows != 0).then(|| {
            rows &= rows - 1;
            position
        })
    })
}

/// A bit for each of the first rows of a strip that there are.
fn in_strip(strip: &[Row]) -> u32 {
    u32::MAX >> STRIP_ROWS.saturating_sub(strip.len())
}
