//! The folder beside a graph's file while it is made: the tables where they will lie, and the
//! journal of what is done.
//!
//! A range is in the journal only after its rows are on disk, and counts only if they still have
//! the checksums that the journal has. So whatever a kill, a power cut or a full disk leaves, work
//! goes on from the ranges that are right.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crc32fast::Hasher;
use model_store::{ModelStore, sync_parent};
use rayon::prelude::*;

use super::ask::Open;
use super::journal::{self, Done};
use super::npz::{Layout, Rows};
use super::tables::{Tables, read_at, write_at};
use super::{GraphError, GraphFormat, GraphProgress, Identity};

/// The file of both tables, in the folder.
const TABLES: &str = "graph.npz";
/// The journal.
const JOURNAL: &str = "journal";
/// What is written from the tables in another form.
#[cfg(feature = "parquet")]
const OTHER_FORM: &str = "graph.parquet";

/// The work on a graph.
pub(super) struct Work {
    folder: PathBuf,
    identity: Identity,
    layout: Layout,
    tables: File,
    /// Locked while this process works here.
    journal: File,
    /// For each range, what it has if it is done.
    done: Vec<Option<Done>>,
    rows_done: u64,
    /// The first range that is not done.
    first_open: usize,
    /// Done, but not in the journal yet.
    uncommitted: String,
}

/// The folder of the work on a file.
fn folder_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

impl Work {
    /// Begins, or goes on from what is there.
    pub(super) fn open(file: &Path, identity: Identity) -> Result<Self, GraphError> {
        let folder = folder_of(file);
        fs::create_dir_all(&folder).map_err(GraphError::io("create", &folder))?;
        let open = |name: &str| {
            let path = folder.join(name);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path).map_err(GraphError::io("open", &path))
        };
        let mut journal = open(JOURNAL)?;
        if let Err(fs::TryLockError::WouldBlock) = journal.try_lock() {
            return Err(GraphError::Busy(folder));
        }
        let mut bytes = Vec::new();
        let journal_path = folder.join(JOURNAL);
        journal.read_to_end(&mut bytes).map_err(GraphError::io("read", &journal_path))?;
        let read = journal::read(&bytes);
        if let Some(difference) =
            read.as_ref().and_then(|read| difference(&read.identity, &identity))
        {
            return Err(GraphError::OtherWork { folder, difference });
        }
        let tables = open(TABLES)?;
        let layout = Layout::new(&identity);
        let done = vec![None; identity.ranges() as usize];
        let mut work = Self {
            folder,
            identity,
            layout,
            tables,
            journal,
            done,
            rows_done: 0,
            first_open: 0,
            uncommitted: String::new(),
        };
        match read {
            Some(read) => work.go_on_from(&read),
            None => work.begin(),
        }
        .map_err(GraphError::io("prepare", &work.folder))?;
        Ok(work)
    }

    fn begin(&mut self) -> io::Result<()> {
        self.journal.set_len(0)?;
        self.journal.rewind()?;
        self.journal.write_all(journal::head(&self.identity).as_bytes())?;
        self.journal.sync_all()?;
        self.tables.set_len(self.layout.size())
    }

    fn go_on_from(&mut self, read: &journal::Read) -> io::Result<()> {
        self.journal.set_len(read.length as u64)?;
        self.journal.seek(SeekFrom::End(0))?;
        // Where they were cut off, there are zeros then, whose checksums are wrong.
        self.tables.set_len(self.layout.size())?;
        let mut said: Vec<Option<Done>> = vec![None; self.done.len()];
        for &(range, done) in &read.done {
            if let Some(place) = said.get_mut(range as usize) {
                *place = Some(done);
            }
        }
        let (tables, layout, identity) = (&self.tables, &self.layout, &self.identity);
        let right = said.into_par_iter().enumerate().map_init(Vec::new, |bytes, (range, done)| {
            let done = done?;
            let found = checksums(tables, layout, identity, range as u64, bytes).ok()?;
            (found == done.checksums).then_some(done)
        });
        self.done = right.collect();
        let rows = |(range, done): (usize, &Option<Done>)| done.map(|_| self.rows_of(range));
        self.rows_done = self.done.iter().enumerate().filter_map(rows).sum();
        Ok(())
    }

    fn rows_of(&self, range: usize) -> u64 {
        let rows = self.identity.range(range as u64);
        rows.end - rows.start
    }

    pub(super) fn identity(&self) -> &Identity {
        &self.identity
    }

    pub(super) fn rows_done(&self) -> u64 {
        self.rows_done
    }

    pub(super) fn is_complete(&self) -> bool {
        self.rows_done == self.identity.rows
    }

    pub(super) fn edges(&self) -> u64 {
        self.done.iter().flatten().map(|done| done.edges).sum()
    }

    pub(super) fn open_ranges(&self) -> Open {
        let open = self.done.iter().enumerate().filter(|(_, done)| done.is_none());
        Open::new(open.map(|(range, _)| range as u64).collect())
    }

    /// What threads need to write rows.
    pub(super) fn tables(&self) -> Result<Tables, GraphError> {
        let file = self.tables.try_clone().map_err(GraphError::io("open", &self.folder))?;
        Ok(Tables { file, layout: Layout::new(&self.identity), folder: self.folder.clone() })
    }

    pub(super) fn progress(&mut self, resumed: u64) -> GraphProgress {
        while self.done.get(self.first_open).is_some_and(Option::is_some) {
            self.first_open += 1;
        }
        let first_open =
            self.identity.rows.min(self.first_open as u64 * self.identity.rows_per_range);
        GraphProgress { done: self.rows_done, rows: self.identity.rows, resumed, first_open }
    }

    pub(super) fn stopped(&self) -> GraphError {
        let rows = self.identity.rows;
        GraphError::Stopped {
            percent: self.rows_done * 100 / rows,
            rows,
            folder: self.folder.clone(),
        }
    }

    /// A range whose rows are written.
    pub(super) fn add(&mut self, range: u64, done: Done) {
        if self.done[range as usize].replace(done).is_none() {
            self.rows_done += self.rows_of(range as usize);
        }
        self.uncommitted += &journal::range(range, done);
    }

    /// Writes to disk what is done: rows first, then the journal.
    pub(super) fn commit(&mut self) -> Result<(), GraphError> {
        if self.uncommitted.is_empty() {
            return Ok(());
        }
        let text = std::mem::take(&mut self.uncommitted);
        let mut commit = || {
            self.tables.sync_data()?;
            self.journal.write_all(text.as_bytes())?;
            self.journal.sync_data()
        };
        commit().map_err(GraphError::io("write", &self.folder))
    }

    /// Makes the file of the tables, and removes the folder.
    pub(super) fn finish(
        self,
        file: &Path,
        format: GraphFormat,
        model: &Arc<ModelStore>,
    ) -> Result<(), GraphError> {
        self.complete_tables().map_err(GraphError::io("write", &self.folder))?;
        let made = match format {
            GraphFormat::Npz => self.folder.join(TABLES),
            #[cfg(feature = "parquet")]
            GraphFormat::Parquet => {
                let path = self.folder.join(OTHER_FORM);
                super::parquet::write(&path, &self.tables, &self.layout, &self.identity, model)
                    .map_err(GraphError::io("write", &path))?;
                path
            }
            #[cfg(not(feature = "parquet"))]
            GraphFormat::Parquet => {
                let _ = model;
                return Err(GraphError::NoParquet(file.to_owned()));
            }
        };
        // A link stays, and what it leads to is replaced.
        let to = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        fs::rename(&made, &to).map_err(GraphError::io("rename the new file to", &to))?;
        sync_parent(&to).map_err(GraphError::io("write", &to))?;
        // Other files in it belong to the user, and stay.
        for name in [TABLES, JOURNAL] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        let _ = fs::remove_dir(&self.folder);
        Ok(())
    }

    /// Writes everything around the tables.
    fn complete_tables(&self) -> io::Result<()> {
        let mut tables = [Hasher::new(), Hasher::new()];
        for (range, done) in self.done.iter().enumerate() {
            let bytes = self.rows_of(range) * self.identity.k * 8;
            let checksums = done.map_or([0; 2], |done| done.checksums);
            for (table, checksum) in tables.iter_mut().zip(checksums) {
                table.combine(&Hasher::new_with_initial_len(checksum, bytes));
            }
        }
        for (at, bytes) in self.layout.around([&tables[0], &tables[1]]) {
            write_at(&self.tables, at, &bytes)?;
        }
        self.tables.sync_all()
    }
}

/// In what two graphs differ: there, and here.
fn difference(there: &Identity, here: &Identity) -> Option<String> {
    let limit = |score: Option<f64>| {
        score.map_or("no minimum score".to_owned(), |s| format!("the minimum score {s}"))
    };
    let mut differences = Vec::new();
    let mut compare = |there: String, here: String| {
        if there != here {
            differences.push(format!("{there} instead of {here}"));
        }
    };
    compare(format!("k {}", there.k), format!("k {}", here.k));
    compare(format!("{} rows", there.rows), format!("{} rows", here.rows));
    compare(limit(there.min_score), limit(here.min_score));
    let model =
        |identity: &Identity| format!("model {} version {}", identity.model, identity.version);
    compare(model(there), model(here));
    if differences.is_empty() && there != here {
        differences.push(format!("format {} instead of {}", there.format, here.format));
    }
    (!differences.is_empty()).then(|| differences.join(", "))
}

/// The checksums of a range, as it is on disk.
fn checksums(
    tables: &File,
    layout: &Layout,
    identity: &Identity,
    range: u64,
    bytes: &mut Vec<u8>,
) -> io::Result<[u32; 2]> {
    let rows = identity.range(range);
    bytes.resize(((rows.end - rows.start) * identity.k * 8) as usize, 0);
    let mut checksums = [0; 2];
    for (table, checksum) in [Rows::Indices, Rows::Scores].into_iter().zip(&mut checksums) {
        read_at(tables, layout.at(table, rows.start), bytes)?;
        *checksum = crc32fast::hash(bytes);
    }
    Ok(checksums)
}
