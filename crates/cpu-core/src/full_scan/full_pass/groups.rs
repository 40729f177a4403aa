//! The queries of a slice that look at the same rows.

use std::collections::HashMap;
use std::ops::Range;

use contract::{FullPassPart, RowBitmap};

use super::vectors::Vectors;

/// Members of a bitmap are gathered if they are at most this part of the rows: a row that is far
/// from the one before costs more, and is converted for these queries alone.
const LARGEST_PART: usize = 8;

/// A task covers at most this many times as many rows as if all of them were scored.
const SPARSEST: usize = 64;

/// Queries that look at the same rows.
pub(super) struct Group<'a> {
    /// The rows, if they are gathered; all rows otherwise.
    pub(super) members: Option<&'a RowBitmap>,
    /// Positions in the slice's order, ascending.
    pub(super) parts: Vec<usize>,
    /// Their distinct vectors, in runs.
    pub(super) vectors: Vec<Range<usize>>,
    /// Whether it has all queries.
    pub(super) is_all: bool,
    /// How many rows it looks at.
    rows: usize,
}

/// Whether the members of a bitmap are scored alone, and not with the rows beside them.
pub(crate) fn is_gathered(bitmap: &RowBitmap) -> bool {
    bitmap.len() <= bitmap.rows() / LARGEST_PART
}

/// Groups of these queries, of which the rows `left` are left.
pub(super) fn groups<'a>(
    in_order: &[&'a FullPassPart],
    vectors: &Vectors,
    left: Range<usize>,
) -> Vec<Group<'a>> {
    let mut groups: Vec<Group<'a>> = Vec::new();
    let mut indices: HashMap<Option<u64>, usize> = HashMap::new();
    for (position, part) in in_order.iter().enumerate() {
        let bitmap = part.query().filter.rows.bitmap().map(|bitmap| &**bitmap);
        let members = bitmap.filter(|bitmap| is_gathered(bitmap));
        let next = groups.len();
        let index = *indices.entry(members.map(RowBitmap::id)).or_insert(next);
        if index == next {
            let rows = members.map_or(left.len(), |members| members.count_in(left.clone()));
            let (parts, vectors) = (Vec::new(), Vec::new());
            groups.push(Group { members, parts, vectors, is_all: false, rows });
        }
        groups[index].parts.push(position);
    }
    for group in &mut groups {
        group.is_all = group.parts.len() == in_order.len();
        let mut named: Vec<usize> =
            group.parts.iter().flat_map(|&part| vectors.of(part)).copied().collect();
        named.sort_unstable();
        named.dedup();
        for vector in named {
            match group.vectors.last_mut() {
                Some(run) if run.end == vector => run.end += 1,
                _ => group.vectors.push(vector..vector + 1),
            }
        }
    }
    groups
}

/// How many times fewer rows are scored than there are left: at least 1.
pub(super) fn sparseness(groups: &[Group<'_>], left: usize) -> usize {
    let scored = groups.iter().map(|group| group.rows).fold(0, usize::saturating_add);
    (left / scored.max(1)).clamp(1, SPARSEST)
}
