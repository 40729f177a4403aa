//! The members of a set that all queries share, looked at one by one in the table by rows.

use std::ops::Range;
use std::sync::atomic::Ordering;

use contract::Row;

use super::Worker;
use crate::certified::kernels::{BothPlanesOfRows, Flagged, Gather};
use crate::certified::layout::STRIP_ROWS;
use crate::certified::pass::{Members, Pass};
use crate::certified::query::PreparedQueries;

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
        of_task.extend(members.bitmap.members_in(rows));
        let asked = prepared.planes(0, &self.thresholds[..columns]);
        let rows = members.table.lines();
        let (space, found) = (&mut self.space, &mut self.found);
        instructions.run(Gather { rows, members: &of_task, asked, space, found });
        let found = std::mem::take(&mut self.found);
        for looked_at in &found {
            let strip = &of_task[looked_at.strip as usize * STRIP_ROWS..];
            if self.pass.columns[looked_at.query as usize].is_query() {
                self.compare_members(members, strip, looked_at);
                continue;
            }
            let rows = looked_at.rows & in_strip(strip);
            let place = |i: usize| (strip[i], members.table.scale(strip[i]));
            self.take(looked_at.query as usize, rows, looked_at, place);
        }
        (self.found, self.members) = (found, of_task);
        self.end_task(active, true);
    }

    /// Compares the members that were found in a strip again, with both planes of the query. They
    /// have just been read, so that costs far less than scoring those that it rules out.
    fn compare_members(&mut self, members: Members<'_>, strip: &[Row], found: &Flagged) {
        let (pass, column) = (self.pass, found.query as usize);
        let query = pass.columns[column].query;
        if pass.failed[query].load(Ordering::Relaxed) {
            return;
        }
        let (set, limit) = (&pass.queries[query].filter.rows, pass.row_limits[query]);
        let mut again = std::mem::take(&mut self.again);
        again.rows.clear();
        let mut rows = found.rows & in_strip(strip);
        while rows != 0 {
            let row = strip[rows.trailing_zeros() as usize];
            rows &= rows - 1;
            if row.index() < limit && set.contains(row) {
                again.rows.push(row);
            }
        }
        let planes = pass.prepared.both(column);
        let of_rows = BothPlanesOfRows {
            rows: members.table.lines(),
            members: &again.rows,
            planes,
            sums: &mut again.sums,
        };
        pass.instructions.run(of_rows);
        let bounds = &pass.prepared.bounds[column].both;
        for (&row, &sums) in again.rows.iter().zip(&again.sums) {
            let scale = members.table.scale(row);
            // A step of zero: a row of norm zero.
            if scale.step() != 0.0 {
                let sum = PreparedQueries::joined(sums) - bounds.bias;
                self.admit(query, row.index(), bounds.of_sum(sum, scale));
            }
        }
        self.again = again;
    }
}

/// A bit for each of the first rows of a strip that there are.
fn in_strip(strip: &[Row]) -> u32 {
    u32::MAX >> STRIP_ROWS.saturating_sub(strip.len())
}
