//! A graph while it is made, in the folder beside its file: the tables where they will lie, and
//! which ranges are written.
//!
//! A range counts only if its rows still have the checksums that the journal has.

use std::io;
use std::path::Path;
use std::sync::Arc;

use crc32fast::Hasher;
use model_store::ModelStore;
use rayon::prelude::*;

use super::journal::WrittenRange;
use super::npz::{Layout, Rows};
use super::tables::{Tables, read_at, write_at};
use super::{GraphError, GraphFormat, GraphProgress, Identity};
use crate::jobs::Journal;

/// A graph that is being made.
pub(super) struct PartialGraph {
    pub(super) journal: Journal,
    pub(super) tables: Arc<Tables>,
    /// The ranges; `None` for those that are not written.
    written: Vec<Option<WrittenRange>>,
    rows_done: u64,
    /// The first range that is not written.
    first_open: usize,
}

impl PartialGraph {
    /// Begins, or goes on from what is there.
    pub(super) fn open(file: &Path, identity: Identity) -> Result<Self, GraphError> {
        let (journal, said) = Journal::open::<_, WrittenRange>(file, "graph.npz", &identity, true)?;
        let (data, layout) = (journal.data(), Layout::new(&identity));
        let (folder, written) =
            (journal.folder().to_owned(), vec![None; identity.ranges() as usize]);
        // Where the tables were cut off, there are zeros then, whose checksums are wrong.
        let data = data.set_len(layout.size()).and_then(|()| data.try_clone());
        let file = data.map_err(GraphError::io("prepare", &folder))?;
        let tables = Arc::new(Tables { identity, file, layout, folder });
        let mut graph = Self { journal, tables, written, rows_done: 0, first_open: 0 };
        let mut said_of = graph.written.clone();
        for (range, _) in said {
            if let Some(place) = said_of.get_mut(range.number as usize) {
                *place = Some(range);
            }
        }
        let is_right = |bytes: &mut Vec<u8>, range: Option<WrittenRange>| {
            range.filter(|range| graph.is_right(range, bytes))
        };
        let right: Vec<_> = said_of.into_par_iter().map_init(Vec::new, is_right).collect();
        right.into_iter().flatten().for_each(|range| graph.set(range));
        Ok(graph)
    }

    /// Whether a range on disk has its checksums.
    fn is_right(&self, range: &WrittenRange, bytes: &mut Vec<u8>) -> bool {
        let Tables { identity, file, layout, .. } = &*self.tables;
        let first = identity.range(range.number).start;
        bytes.resize(self.bytes_of(range.number) as usize, 0);
        [Rows::Indices, Rows::Scores].into_iter().zip(range.checksums).all(|(table, checksum)| {
            let read = read_at(file, layout.at(table, first), bytes);
            read.is_ok() && crc32fast::hash(bytes) == checksum
        })
    }

    fn rows_of(&self, range: u64) -> u64 {
        let rows = self.identity().range(range);
        rows.end - rows.start
    }

    /// The length of a range in each table.
    fn bytes_of(&self, range: u64) -> u64 {
        self.rows_of(range) * self.identity().k * 8
    }

    fn set(&mut self, range: WrittenRange) {
        if self.written[range.number as usize].replace(range).is_none() {
            self.rows_done += self.rows_of(range.number);
        }
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.tables.identity
    }

    pub(super) fn rows_done(&self) -> u64 {
        self.rows_done
    }

    pub(super) fn is_complete(&self) -> bool {
        self.rows_done == self.identity().rows
    }

    pub(super) fn edges(&self) -> u64 {
        self.written.iter().flatten().map(|range| range.edges).sum()
    }

    /// The ranges that are not written.
    pub(super) fn open_ranges(&self) -> Vec<u64> {
        (0..self.identity().ranges())
            .filter(|&range| self.written[range as usize].is_none())
            .collect()
    }

    pub(super) fn progress(&mut self, resumed: u64) -> GraphProgress {
        while self.written.get(self.first_open).is_some_and(Option::is_some) {
            self.first_open += 1;
        }
        let Identity { rows, rows_per_range, .. } = *self.identity();
        let first_open = rows.min(self.first_open as u64 * rows_per_range);
        GraphProgress { done: self.rows_done, rows, resumed, first_open }
    }

    pub(super) fn stopped(&self) -> GraphError {
        let rows = self.identity().rows;
        GraphError::Stopped {
            percent: self.rows_done * 100 / rows,
            rows,
            folder: self.tables.folder.clone(),
        }
    }

    /// A range whose rows are written.
    pub(super) fn add(&mut self, range: WrittenRange) {
        self.set(range);
        self.journal.add(&range);
    }

    /// Makes the file of the tables, and removes the folder.
    pub(super) fn finish(
        self,
        file: &Path,
        format: GraphFormat,
        model: &Arc<ModelStore>,
    ) -> Result<(), GraphError> {
        self.complete_tables().map_err(GraphError::io("write", &self.tables.folder))?;
        if format == GraphFormat::Parquet {
            self.make_parquet(file, model)?;
        }
        Ok(self.journal.finish(file, format == GraphFormat::Parquet)?)
    }

    #[cfg(feature = "parquet")]
    fn make_parquet(&self, _: &Path, model: &Arc<ModelStore>) -> Result<(), GraphError> {
        let path = self.journal.parquet();
        super::parquet::write(&path, &self.tables, model).map_err(GraphError::io("write", &path))
    }

    #[cfg(not(feature = "parquet"))]
    fn make_parquet(&self, file: &Path, _: &Arc<ModelStore>) -> Result<(), GraphError> {
        Err(GraphError::NoParquet(file.to_owned()))
    }

    /// Writes everything around the tables.
    fn complete_tables(&self) -> io::Result<()> {
        let mut hashers = [Hasher::new(), Hasher::new()];
        for range in self.written.iter().flatten() {
            for (hasher, checksum) in hashers.iter_mut().zip(range.checksums) {
                let bytes = self.bytes_of(range.number);
                hasher.combine(&Hasher::new_with_initial_len(checksum, bytes));
            }
        }
        for (at, bytes) in self.tables.layout.around([&hashers[0], &hashers[1]]) {
            write_at(&self.tables.file, at, &bytes)?;
        }
        Ok(())
    }
}
