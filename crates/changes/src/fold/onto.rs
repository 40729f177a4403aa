//! The rows of a table in the terms of another base of it, to which changes were folded.

use std::sync::Arc;

use contract::Row;
use model_store::ModelStore;

use super::live::LiveRows;
use crate::schema::Schema;
use crate::state::{NewRow, RowText, Snapshot, State};

/// The rows behind a new base, made from those behind the old one.
pub(crate) struct Onto {
    pub(crate) state: State,
    /// Those of the old base that are in the new one.
    live: LiveRows,
    /// The rows of the old base and behind it at the position of the new one, and of them again
    /// those behind the old base that are in the new one.
    behind: LiveTail,
    /// The rows up to here.
    at: Snapshot,
}

/// The rows behind an old base at the position of the new one.
struct LiveTail {
    /// Places in the new base, from the first row behind the old one on.
    places: Vec<Option<Row>>,
}

impl Onto {
    /// No rows behind the new base, which was made of this snapshot.
    pub(super) fn new(new: &Arc<ModelStore>, at: &Snapshot, live: LiveRows) -> Self {
        let mut next = live.count();
        let rows = (at.base_rows()..at.rows()).map(|row| {
            let place = at.is_live(Row(row as u32)).then_some(Row(next));
            next += u32::from(place.is_some());
            place
        });
        let behind = LiveTail { places: rows.collect() };
        let state = State::new(&Schema::of(new), new.clone());
        Self { state, live, behind, at: at.clone() }
    }

    /// Takes what came up to this snapshot of the old base.
    pub(crate) fn advance(&mut self, to: &Snapshot) {
        let from = std::mem::replace(&mut self.at, to.clone());
        for row in from.rows()..to.rows() {
            let row = to.tail_row(Row(row as u32)).expect("a row behind the base");
            let text = RowText { key: row.key.into(), values: row.attributes.into() };
            let (vector, norm, bias) = (row.vector, row.norm, row.bias);
            self.state.push(NewRow { text, vector, norm, bias });
        }
        // Rows die once, so those that died since are in one set and not in the other.
        for row in to.dead().but_not(from.dead()) {
            self.state.bury(self.place(row).expect("a row that lived is in the new base"));
        }
        self.state.set_position(to.position(), to.sources());
    }

    fn place(&self, old: Row) -> Option<Row> {
        let base_rows = self.at.base_rows();
        let Some(behind) = old.index().checked_sub(base_rows) else { return self.live.place(old) };
        match self.behind.places.get(behind) {
            Some(place) => *place,
            None => {
                let since = behind - self.behind.places.len();
                Some(Row(self.state.base_rows() + since as u32))
            }
        }
    }
}
