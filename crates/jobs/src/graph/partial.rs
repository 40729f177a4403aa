//! A graph while it is made, in the folder beside its file: the tables, where each row has its
//! place, and which ranges are written.
//!
//! A range counts only if its rows still have the checksums that the journal has.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::journal::WrittenRange;
use super::live_rows::LiveRows;
use super::tables::Tables;
use super::{GraphFormat, GraphProgress, Identity, npz};
use crate::error::JobError;
use crate::journal::Journal;
use crate::run::Keep;

/// A graph that is being made, on the thread that waits for its ranges.
pub(super) struct PartialGraph<'a> {
    pub(super) journal: Journal,
    pub(super) tables: Arc<Tables>,
    /// The ranges; `None` for those that are not written.
    written: Vec<Option<WrittenRange>>,
    pub(super) rows_done: u64,
    /// Rows that earlier runs did.
    pub(super) resumed: u64,
    /// The first range that is not written.
    first_open: usize,
    on_progress: &'a mut dyn FnMut(GraphProgress) -> ControlFlow<()>,
}

impl<'a> PartialGraph<'a> {
    /// Begins, or goes on from what is there.
    pub(super) fn open(
        file: &Path,
        identity: Identity,
        on_progress: &'a mut dyn FnMut(GraphProgress) -> ControlFlow<()>,
    ) -> Result<Self, JobError> {
        let same = "the options and the model";
        let (journal, said): (_, Vec<(WrittenRange, usize)>) =
            Journal::open(file, "graph", &identity.description(), same, true)?;
        let (data, folder) = (&journal.data, journal.folder.clone());
        let written = vec![None; identity.ranges() as usize];
        // Where the tables were cut off, there are zeros then, whose checksums are wrong.
        let data = data.set_len(Tables::length(&identity)).and_then(|()| data.try_clone());
        let file = data.map_err(JobError::io("prepare", &folder))?;
        let tables = Arc::new(Tables { identity, file, folder });
        let mut said_of = written.clone();
        for (range, _) in said {
            if let Some(place) = said_of.get_mut(range.number as usize) {
                *place = Some(range);
            }
        }
        let is_right = |bytes: &mut Vec<u8>, range: Option<WrittenRange>| {
            range.filter(|range| tables.has(range.number, range.checksums, bytes))
        };
        let right: Vec<_> = said_of.into_par_iter().map_init(Vec::new, is_right).collect();
        let (rows_done, resumed, first_open) = (0, 0, 0);
        let mut graph =
            Self { journal, tables, written, rows_done, resumed, first_open, on_progress };
        right.into_iter().flatten().for_each(|range| graph.set(range));
        graph.resumed = graph.rows_done;
        Ok(graph)
    }

    fn set(&mut self, range: WrittenRange) {
        if self.written[range.number as usize].replace(range).is_none() {
            let rows = self.tables.identity.range(range.number);
            self.rows_done += rows.end - rows.start;
        }
    }

    pub(super) fn edges(&self) -> u64 {
        self.written.iter().flatten().map(|range| range.edges).sum()
    }

    /// The ranges that are not written.
    pub(super) fn open_ranges(&self) -> Vec<u64> {
        let all = 0..self.tables.identity.ranges();
        all.filter(|&range| self.written[range as usize].is_none()).collect()
    }

    /// Makes the file of the tables, and removes the folder.
    pub(super) fn finish(
        self,
        file: &Path,
        format: GraphFormat,
        rows: &LiveRows<'_>,
    ) -> Result<(), JobError> {
        let made = self.journal.made(match format {
            GraphFormat::Npz => "npz",
            GraphFormat::Parquet => "parquet",
        });
        let written = match format {
            GraphFormat::Npz => npz::write(&made, &self.tables, rows),
            #[cfg(feature = "parquet")]
            GraphFormat::Parquet => super::parquet::write(&made, &self.tables, rows),
            #[cfg(not(feature = "parquet"))]
            GraphFormat::Parquet => {
                unreachable!("{} is refused at first", file.display())
            }
        };
        written.map_err(JobError::io("write", &made))?;
        self.journal.finish(file, Some(&made))
    }
}

impl Keep<WrittenRange> for PartialGraph<'_> {
    const IN_ORDER: bool = false;

    fn keep(&mut self, range: WrittenRange) -> Result<(), JobError> {
        self.set(range);
        self.journal.add(&range);
        Ok(())
    }

    fn commit(&mut self) -> Result<(), JobError> {
        self.journal.commit_beside()
    }

    fn tell(&mut self) -> ControlFlow<()> {
        while self.written.get(self.first_open).is_some_and(Option::is_some) {
            self.first_open += 1;
        }
        let Identity { rows, rows_per_range, .. } = self.tables.identity;
        let first_open = rows.min(self.first_open as u64 * rows_per_range);
        let (done, resumed) = (self.rows_done, self.resumed);
        (self.on_progress)(GraphProgress { done, rows, resumed, first_open })
    }
}
