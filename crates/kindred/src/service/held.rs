//! The rows that one question is about, for as long as it is asked.

use std::sync::Arc;

use contract::RankedRow;
use model_store::ModelStore;

use crate::answer::{Answer, Ranks, used};
use crate::asking::Times;
use crate::question::{Notes, placed};
use crate::rows::{AtPosition, Rows};
use crate::search::SearchResult;

/// A model, whose words an answer borrows; or a position, which ends with the question.
pub(super) enum Held<'a> {
    Model(&'a ModelStore),
    At(Arc<AtPosition>),
}

impl<'a> Held<'a> {
    pub(super) fn rows(&self) -> &dyn Rows {
        match self {
            Self::Model(model) => *model,
            Self::At(position) => &**position,
        }
    }

    pub(super) fn answer(&self, found: SearchResult, times: Times) -> Answer<'a> {
        match self {
            Self::Model(model) => Answer::new(*model, found, times),
            Self::At(position) => Answer::new(&**position, found, times).into_owned(),
        }
    }

    pub(super) fn ranks(&self, ranks: &[RankedRow], notes: Notes, times: Times) -> Ranks<'a> {
        fn of<'r>(
            rows: &'r dyn Rows,
            ranks: &[RankedRow],
            notes: Notes,
            times: Times,
        ) -> Ranks<'r> {
            let position = rows.snapshot().map(changes::Snapshot::position);
            let (ranked, used) = (placed(rows, ranks), used(rows, &notes));
            let Notes { skipped, subwords, tokens, .. } = notes;
            let tokens = tokens.map(|tokens| *tokens);
            Ranks { ranked, used, skipped, subwords, tokens, times, position }
        }
        match self {
            Self::Model(model) => of(*model, ranks, notes, times),
            Self::At(position) => of(&**position, ranks, notes, times).into_owned(),
        }
    }
}
