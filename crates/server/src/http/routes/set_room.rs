//! Counts the memory of the sets of rows that the filters of one request have, and of what else its
//! queries keep.

use std::collections::HashSet;

use kindred::question::Checked;
use scheduler::account::{Pool, Reservation};

use crate::http::ApiError;
use crate::models::Call;

/// Up to this many bytes together are not counted: the model keeps the last sets anyway.
const UNCOUNTED: u64 = 512 << 10;

/// The memory of the sets of rows that the queries of a request have, each counted once. What is
/// kept for other requests is counted as well, because it may be dropped there before.
#[derive(Default)]
pub(super) struct SetRoom {
    counted: HashSet<u64>,
    bytes: u64,
    room: Option<Reservation>,
}

impl SetRoom {
    /// Counts the set of a query, if it has one.
    ///
    /// # Errors
    /// If the caller may not have so much memory now.
    pub(super) fn count(&mut self, call: &Call, options: &Checked) -> Result<(), ApiError> {
        let Some(rows) = options.rows().filter(|rows| self.counted.insert(rows.id())) else {
            return Ok(());
        };
        self.add(call, rows.bytes() as u64)
    }

    /// Counts bytes that a query keeps beside its set.
    ///
    /// # Errors
    /// If the caller may not have so much memory now.
    pub(super) fn add(&mut self, call: &Call, bytes: u64) -> Result<(), ApiError> {
        self.bytes += bytes;
        match &mut self.room {
            None if self.bytes <= UNCOUNTED => {}
            None => {
                let memory = &call.service().memory;
                self.room = Some(memory.take(&call.account, Pool::Requests, self.bytes)?);
            }
            Some(room) => room.grow(self.bytes)?,
        }
        Ok(())
    }

    /// The memory that was counted. Keep it as long as the queries.
    pub(super) fn into_room(self) -> Option<Reservation> {
        self.room
    }
}
