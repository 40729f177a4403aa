//! The best terms of lists, joined a few lists at a time, so that their number takes no memory.
//!
//! Joining is a maximum: its order makes no difference, and a list that is added twice counts once.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::collections::binary_heap::{BinaryHeap, PeekMut};

use super::Term;
use crate::Hit;

/// Lists that are joined together: more would take memory, fewer would be joined more often than
/// needed.
const LISTS: usize = 16;

/// The `top` best terms of some lists, each best first.
///
/// The best terms of a text are among the best of its tokens: what ranks before a term in the list
/// of a token that gives it its value also ranks before it in the text.
#[derive(Debug, Clone)]
pub struct BestTerms {
    top: usize,
    /// The best of the lists that were joined.
    joined: Vec<Term>,
    /// The lists after them.
    lists: Vec<Vec<Term>>,
}

impl BestTerms {
    /// Of no list.
    pub fn new(top: usize) -> Self {
        Self { top, joined: Vec::new(), lists: Vec::new() }
    }

    /// Adds a list, best first.
    pub fn add(&mut self, list: Vec<Term>) {
        self.lists.push(list);
        if self.lists.len() == LISTS {
            self.join();
        }
    }

    /// The best terms, best first.
    pub fn finish(mut self) -> Vec<Term> {
        self.join();
        self.joined
    }

    fn join(&mut self) {
        if self.lists.is_empty() {
            return;
        }
        self.lists.push(std::mem::take(&mut self.joined));
        self.joined = join(&self.lists, self.top);
        self.lists = Vec::new();
    }
}

/// Sorts terms by value, highest first, then by row, and keeps the first `top`.
pub(super) fn rank(terms: &mut Vec<Term>, top: usize) {
    terms.sort_unstable_by(|a, b| b.value.total_cmp(&a.value).then(a.row.cmp(&b.row)));
    terms.truncate(top);
    terms.shrink_to_fit();
}

/// The first `top` terms of lists that are each best first. Of equal rows the best stays, and of
/// equal values the first position.
fn join(lists: &[Vec<Term>], top: usize) -> Vec<Term> {
    // The next term of each list. Better hits come first in the order of hits, so the best is the
    // greatest here.
    let next = |list: usize, at: usize| {
        let &Term { row, value: score, position } = lists[list].get(at)?;
        Some((Reverse((Hit { row, score }, position)), list, at))
    };
    let mut heads: BinaryHeap<_> = (0..lists.len()).filter_map(|list| next(list, 0)).collect();
    let (mut joined, mut known) = (Vec::new(), HashSet::new());
    while let Some(mut head) = heads.peek_mut() {
        if joined.len() == top {
            break;
        }
        let (_, list, at) = *head;
        let term = lists[list][at];
        if known.insert(term.row) {
            joined.push(term);
        }
        match next(list, at + 1) {
            Some(next) => *head = next,
            None => drop(PeekMut::pop(head)),
        }
    }
    joined
}
