//! The plan of a batch: which queries' rows are gathered, and which passes scan all rows.
//!
//! A scan reads the whole table once for all queries, whatever their sets. A gather reads only the
//! members of one set, each from elsewhere in memory, for the queries that share it. Costs are in
//! nanoseconds of a thread; docs/filters.md has measurements.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use contract::{Query, RowBitmap};

use super::cost::Costs;

/// The time to read a cache line of a member, which is elsewhere; and a component of the scan.
const FAR_LINE: f64 = 8.0;
const SCANNED_COMPONENT: f64 = 0.06;

/// The time of a member or a row of the scan for each query, besides the products.
const OF_ROW: f64 = 0.3;

/// The time of a member for each query, in those of a row of the scan: sums run across registers.
const OF_MEMBER: f64 = 2.5;

/// A batch in passes.
pub(super) struct Plan<'a> {
    /// The set that some queries share, and their indices.
    pub(super) gathered: Vec<(&'a RowBitmap, Vec<usize>)>,
    /// The indices of the others.
    pub(super) scanned: Vec<usize>,
}

impl<'a> Plan<'a> {
    /// Divides the queries at `indices`. All sets are gathered if they `always` are.
    pub(super) fn new(
        costs: &Costs,
        batch: &[&'a Query],
        indices: Vec<usize>,
        always: bool,
    ) -> Self {
        let mut gathered: Vec<(&RowBitmap, Vec<usize>)> = Vec::new();
        let mut scanned = Vec::new();
        let mut groups: HashMap<u64, usize> = HashMap::new();
        for index in indices {
            let Some(bitmap) = batch[index].filter.rows.bitmap() else {
                scanned.push(index);
                continue;
            };
            match groups.entry(bitmap.id()) {
                Entry::Occupied(group) => gathered[*group.get()].1.push(index),
                Entry::Vacant(new) => {
                    new.insert(gathered.len());
                    gathered.push((bitmap, vec![index]));
                }
            }
        }
        if always {
            return Self { gathered, scanned };
        }
        let row_lines = (costs.dim / 64 + 1) as f64;
        let of_query = OF_ROW + costs.dim as f64 / costs.instructions.products_per_nanosecond();
        // A formula is scanned for as several vectors.
        let columns = |group: &[usize]| -> f64 {
            group.iter().map(|&index| batch[index].columns().unwrap_or(1) as f64).sum()
        };
        let gather = |(bitmap, group): &(&RowBitmap, Vec<usize>)| {
            let each = FAR_LINE * row_lines + OF_MEMBER * of_query * columns(group);
            bitmap.len() as f64 * each
        };
        // In a scan that other queries need anyway.
        let beside =
            |(_, group): &(&RowBitmap, Vec<usize>)| costs.rows as f64 * of_query * columns(group);
        let (cheap, dear): (Vec<_>, Vec<_>) =
            gathered.into_iter().partition(|group| gather(group) <= beside(group));
        let scan = costs.rows as f64 * costs.dim as f64 * SCANNED_COMPONENT;
        let together = scan + dear.iter().map(beside).sum::<f64>();
        let mut gathered = cheap;
        if scanned.is_empty() && dear.iter().map(gather).sum::<f64>() <= together {
            gathered.extend(dear);
        } else {
            scanned.extend(dear.into_iter().flat_map(|(_, group)| group));
        }
        Self { gathered, scanned }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contract::{Filter, Row, RowSet, Table};

    use super::*;
    use crate::InstructionSet;

    #[test]
    fn small_sets_are_gathered_large_ones_scanned_and_shared_ones_together() {
        let (rows, dim) = (400_000, 300);
        let every = |step: usize| {
            let members = (0..rows as u32).step_by(step).map(Row);
            RowSet::of(Arc::new(RowBitmap::of_rows(members, rows, "v")))
        };
        let (row, norms) = (vec![1.0; dim], [17.32]);
        let table = Table::new(&row, &norms, dim);
        let query = |set: &RowSet| {
            Query::new(&table, row.clone().into(), 10, Filter::of(set.clone())).unwrap()
        };
        for instructions in InstructionSet::available() {
            let costs = Costs { rows, dim, instructions, always_certify: false, by_rows: true };
            let plan = |sets: &[&RowSet], always: bool| {
                let queries: Vec<Query> = sets.iter().map(|set| query(set)).collect();
                let batch: Vec<&Query> = queries.iter().collect();
                let plan = Plan::new(&costs, &batch, (0..batch.len()).collect(), always);
                let of = |(_, group): (&RowBitmap, Vec<usize>)| group;
                (plan.gathered.into_iter().map(of).collect::<Vec<_>>(), plan.scanned)
            };
            let (all, most, few) = (RowSet::all(), every(1), every(100));
            let gathered = |group: Vec<usize>| (vec![group], Vec::new());
            assert_eq!(plan(&[&few], false), gathered(vec![0]), "{instructions}");
            assert_eq!(plan(&[&most], false), (vec![], vec![0]), "{instructions}");
            assert_eq!(plan(&[&most], true), gathered(vec![0]));
            assert_eq!(plan(&[&few, &few, &few], false), gathered(vec![0, 1, 2]));
            let mixed = plan(&[&few, &all, &most, &few], false);
            assert_eq!(mixed, (vec![vec![0, 3]], vec![1, 2]), "{instructions}");
            assert_eq!(plan(&[], false), (vec![], vec![]));
        }
    }
}
