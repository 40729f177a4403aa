//! The folder beside an output while it is written: the rows so far, and the journal of what is
//! done.
//!
//! A state is in the journal only after its rows are on disk, and counts only if they still have
//! the checksum that the journal has. So whatever a kill, a power cut or a full disk leaves, work
//! goes on from the last state that is right.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use crc32fast::Hasher;
use model_store::sync_parent;

use super::journal::{self, Done, Identity};
use super::{BulkError, Shape};

/// The rows that are done.
const ROWS: &str = "rows";
/// The journal.
const JOURNAL: &str = "journal";
/// The rows as Parquet, while they are written.
#[cfg(feature = "parquet")]
const OTHER_FORM: &str = "rows.parquet";

/// What a file of Parquet has besides its rows.
pub(super) struct AsParquet {
    pub(super) shape: Shape,
    pub(super) has_ids: bool,
    /// Names and values of its metadata.
    pub(super) about: Vec<(&'static str, String)>,
}

/// The work for a file.
pub(super) struct Work {
    folder: PathBuf,
    rows: File,
    /// Locked while this process works here.
    journal: File,
    /// The last state that was entered.
    committed: Done,
    /// The length and the checksum of what is written.
    written: u64,
    hasher: Hasher,
    /// Whether another run could go on from here.
    is_resumable: bool,
    /// Enters a state beside other work.
    entering: Option<JoinHandle<io::Result<()>>>,
}

fn enter(rows: &File, mut journal: &File, done: &Done) -> io::Result<()> {
    rows.sync_data()?;
    journal.write_all(journal::state(done).as_bytes())?;
    journal.sync_data()
}

/// The folder of the work for a file.
fn folder_of(file: &Path) -> PathBuf {
    let mut name = file.as_os_str().to_owned();
    name.push(".partial");
    name.into()
}

impl Work {
    /// Begins, or goes on from what is there.
    pub(super) fn open(
        file: &Path,
        identity: &Identity,
        is_resumable: bool,
    ) -> Result<Self, BulkError> {
        let folder = folder_of(file);
        fs::create_dir_all(&folder).map_err(BulkError::io("create", &folder))?;
        let open = |name: &str| {
            let path = folder.join(name);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path).map_err(BulkError::io("open", &path))
        };
        let mut journal = open(JOURNAL)?;
        if let Err(fs::TryLockError::WouldBlock) = journal.try_lock() {
            return Err(BulkError::Busy(folder));
        }
        let mut bytes = Vec::new();
        let journal_path = folder.join(JOURNAL);
        journal.read_to_end(&mut bytes).map_err(BulkError::io("read", &journal_path))?;
        let read = journal::read(&bytes);
        if let Some(difference) =
            read.as_ref().and_then(|read| journal::difference(&read.identity, identity))
        {
            return Err(BulkError::OtherWork { folder, difference });
        }
        let rows = open(ROWS)?;
        let (committed, hasher) = (Done::default(), Hasher::new());
        let mut work = Self {
            folder,
            rows,
            journal,
            committed,
            written: 0,
            hasher,
            is_resumable,
            entering: None,
        };
        match read.filter(|_| is_resumable) {
            Some(read) => work.go_on_from(read),
            None => work.begin(identity),
        }
        .map_err(BulkError::io("prepare", &work.folder))?;
        Ok(work)
    }

    fn begin(&mut self, identity: &Identity) -> io::Result<()> {
        self.journal.set_len(0)?;
        self.journal.rewind()?;
        self.journal.write_all(journal::head(identity).as_bytes())?;
        self.journal.sync_all()?;
        self.rows.set_len(0)
    }

    /// Finds the last state whose rows are as they were written.
    fn go_on_from(&mut self, read: journal::Read) -> io::Result<()> {
        let (mut kept, mut end) = (Done::default(), read.head);
        let (mut hasher, mut buffer) = (Hasher::new(), vec![0; 1 << 20]);
        let mut length = 0;
        for (done, end_of_line) in read.done {
            while length < done.written {
                let some = (done.written - length).min(buffer.len() as u64) as usize;
                match self.rows.read(&mut buffer[..some])? {
                    0 => break,
                    some => {
                        hasher.update(&buffer[..some]);
                        length += some as u64;
                    }
                }
            }
            if length != done.written || hasher.clone().finalize() != done.checksum {
                break;
            }
            (kept, end) = (done, end_of_line);
        }
        self.journal.set_len(end as u64)?;
        self.journal.seek(SeekFrom::End(0))?;
        self.rows.set_len(kept.written)?;
        self.rows.seek(SeekFrom::End(0))?;
        self.hasher = Hasher::new_with_initial_len(kept.checksum, kept.written);
        self.written = kept.written;
        self.committed = kept;
        Ok(())
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The last state that was entered.
    pub(super) fn committed(&self) -> &Done {
        &self.committed
    }

    /// Whether nothing is written.
    pub(super) fn is_empty(&self) -> bool {
        self.written == 0
    }

    pub(super) fn write(&mut self, bytes: &[u8]) -> Result<(), BulkError> {
        self.rows.write_all(bytes).map_err(BulkError::io("write", &self.folder))?;
        self.hasher.update(bytes);
        self.written += bytes.len() as u64;
        Ok(())
    }

    /// Enters a state into the journal, after its rows are on disk.
    pub(super) fn commit(&mut self, mut done: Done) -> Result<(), BulkError> {
        (done.written, done.checksum) = (self.written, self.hasher.clone().finalize());
        if !self.is_resumable || done == self.committed {
            return Ok(());
        }
        let entered = self.entering(None).and_then(|()| enter(&self.rows, &self.journal, &done));
        entered.map_err(BulkError::io("write", &self.folder))?;
        self.committed = done;
        Ok(())
    }

    /// The same beside other work: waiting for a disk would keep the engine waiting. If the last
    /// state is still on its way, the next call enters a later one.
    pub(super) fn commit_beside(&mut self, mut done: Done) -> Result<(), BulkError> {
        (done.written, done.checksum) = (self.written, self.hasher.clone().finalize());
        let is_busy = self.entering.as_ref().is_some_and(|thread| !thread.is_finished());
        if !self.is_resumable || is_busy || done == self.committed {
            return Ok(());
        }
        let started = self.rows.try_clone().and_then(|rows| {
            let (journal, state) = (self.journal.try_clone()?, done.clone());
            let thread = thread::Builder::new().name("kindred-bulk-sync".to_owned());
            thread.spawn(move || enter(&rows, &journal, &state))
        });
        let started = started.and_then(|thread| self.entering(Some(thread)));
        started.map_err(BulkError::io("write", &self.folder))?;
        self.committed = done;
        Ok(())
    }

    /// Waits until the last state is entered, and says whether it was.
    fn entering(&mut self, next: Option<JoinHandle<io::Result<()>>>) -> io::Result<()> {
        let last = std::mem::replace(&mut self.entering, next);
        let panicked = |_| Err(io::Error::other("the thread that writes the journal panicked"));
        last.map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked))
    }

    /// Makes the file of the rows, and removes the folder.
    pub(super) fn finish(
        mut self,
        file: &Path,
        as_parquet: Option<&AsParquet>,
    ) -> Result<(), BulkError> {
        self.entering(None).map_err(BulkError::io("write", &self.folder))?;
        self.rows.sync_all().map_err(BulkError::io("write", &self.folder))?;
        let made = match as_parquet {
            None => self.folder.join(ROWS),
            Some(form) => self.as_parquet(form)?,
        };
        // A link stays, and what it leads to is replaced.
        let to = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        fs::rename(made, &to).map_err(BulkError::io("rename the new file to", &to))?;
        sync_parent(&to).map_err(BulkError::io("write", &to))?;
        self.remove();
        Ok(())
    }

    /// A kill meanwhile costs nothing but this: the rows stay until it is done.
    #[cfg(feature = "parquet")]
    fn as_parquet(&self, form: &AsParquet) -> Result<PathBuf, BulkError> {
        let path = self.folder.join(OTHER_FORM);
        let schema = form.shape.schema(form.has_ids);
        super::parquet::write(&path, &self.rows, &schema, &form.about)
            .map_err(BulkError::io("write", &path))?;
        Ok(path)
    }

    #[cfg(not(feature = "parquet"))]
    fn as_parquet(&self, form: &AsParquet) -> Result<PathBuf, BulkError> {
        let _ = (form.shape.schema(form.has_ids), &form.about);
        Err(BulkError::NoParquet(self.folder.display().to_string()))
    }

    /// Removes what is there. Other files in the folder belong to the user, and stay.
    pub(super) fn remove(mut self) {
        let _ = self.entering(None);
        for name in [ROWS, JOURNAL] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        #[cfg(feature = "parquet")]
        let _ = fs::remove_file(self.folder.join(OTHER_FORM));
        let _ = fs::remove_dir(&self.folder);
    }
}
