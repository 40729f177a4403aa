//! The best hits of a full pass: of all rows, or of each group of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::Groups;
use crate::Hit;

/// Room for hits beyond twice `k`.
const MORE_ROOM: usize = 16;

/// The best `k` hits, with room for as many more. It is pruned only when full, so the cost per hit
/// is the same for every `k`; a heap's cost grows with its size.
#[derive(Debug, Clone)]
pub(super) struct List {
    k: usize,
    hits: Vec<Hit>,
    /// At least `k` hits are at least this good, so worse ones are rejected. It only rises.
    pub(super) worst: Option<Hit>,
    of_each: Option<OfEach>,
}

/// The best hit of each group that the list has. A group may have many rows, so most of them are
/// rejected here and take no room.
#[derive(Debug, Clone)]
struct OfEach {
    groups: Arc<dyn Groups>,
    best: HashMap<u64, Hit>,
}

impl List {
    pub(super) fn new(k: usize, groups: Option<&Arc<dyn Groups>>) -> Self {
        let of_each =
            groups.map(|groups| OfEach { groups: groups.clone(), best: HashMap::default() });
        Self { k, hits: Vec::new(), worst: None, of_each }
    }

    /// An empty list that rejects what this one rejects by its worst hit.
    pub(super) fn emptied(&self) -> Self {
        let groups = self.of_each.as_ref().map(|of_each| &of_each.groups);
        Self { worst: self.worst, ..Self::new(self.k, groups) }
    }

    pub(super) fn push(&mut self, hit: Hit) {
        if self.k == 0 || self.worst.is_some_and(|worst| worst < hit) {
            return;
        }
        if self.of_each.as_mut().is_some_and(|of_each| !of_each.takes(hit)) {
            return;
        }
        self.hits.push(hit);
        if self.hits.len() >= self.k.saturating_mul(2).saturating_add(MORE_ROOM) {
            self.prune();
        }
    }

    /// The number of hits that take room.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.hits.len()
    }

    /// Adds the hits of another list.
    pub(super) fn append(&mut self, other: Self) {
        other.hits.into_iter().for_each(|hit| self.push(hit));
    }

    fn prune(&mut self) {
        self.leave_the_best_of_each();
        if self.hits.len() < self.k {
            return;
        }
        let (_, &mut worst, _) = self.hits.select_nth_unstable(self.k - 1);
        self.worst = Some(worst);
        self.hits.truncate(self.k);
        if let Some(of_each) = &mut self.of_each {
            of_each.best.retain(|_, best| *best <= worst);
        }
    }

    fn leave_the_best_of_each(&mut self) {
        if let Some(of_each) = &self.of_each {
            self.hits.retain(|&hit| of_each.has(hit));
        }
    }

    pub(super) fn into_sorted(mut self) -> Vec<Hit> {
        self.leave_the_best_of_each();
        self.hits.sort_unstable();
        self.hits.truncate(self.k);
        self.hits.shrink_to_fit();
        self.hits
    }
}

impl OfEach {
    /// Whether no better hit of the same group is known. This one is from now on.
    fn takes(&mut self, hit: Hit) -> bool {
        let Some(group) = self.groups.group(hit.row) else { return true };
        let best = self.best.entry(group).or_insert(hit);
        let takes = hit <= *best;
        if takes {
            *best = hit;
        }
        takes
    }

    /// Whether a hit is the best of its group, or in none.
    fn has(&self, hit: Hit) -> bool {
        self.groups.group(hit.row).is_none_or(|group| self.best.get(&group) == Some(&hit))
    }
}
