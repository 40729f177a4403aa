//! Appends records to the logs of a folder: one process at a time.
//!
//! - The first record of a folder is written when the folder, its lock, a first log and the raised
//!   format version of the base are on disk.
//! - A log gets its name when its header is on disk, and its first record when its name is.
//! - A full log is synced before its successor is made, and never changes afterwards.
//! - A record that could not be written whole is cut off, and a new log begun: no byte of a log is
//!   ever written twice, so that a copy that was made meanwhile has no mixture.
//! - After a failed sync nobody knows which pages are on disk, and a second sync may succeed and
//!   mean nothing: what was not on disk for certain is cut off, and nothing more is written.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;

use super::base::Base;
use super::error::ChangeError;
use super::fields::Aligned;
use super::log_header::{FORMAT, LOG_HEADER_BYTES, LogHeader, Previous};
use super::record::{self, Kind, RecordHeader};
use super::replay::{LastLog, name_of, numbers_in};
use super::storage::{Lock, LogFile, Storage};

/// Positions that are reserved together for batches that are not synced.
const RESERVED_TOGETHER: u64 = 4096;

/// The one that writes to a folder.
pub(crate) struct Writer {
    storage: Arc<dyn Storage>,
    version: String,
    fingerprint: u64,
    max_log_bytes: u64,
    lock: Option<Lock>,
    /// Whether the folder may have records: it is made, locked, and the base marked.
    is_ready: bool,
    log: Option<Log>,
    /// The position of the last batch.
    last: u64,
    /// The position of the next batch.
    next: u64,
    reserved: u64,
    failed: Option<Arc<str>>,
}

struct Log {
    number: u64,
    id: u64,
    previous: Option<Previous>,
    /// The end of its last record.
    bytes: u64,
    /// How much is on disk for certain.
    synced: u64,
    /// `None` if nothing more may be appended.
    file: Option<Box<dyn LogFile>>,
}

/// Where logs were parted: all batches before are on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sealed {
    /// The first log behind.
    pub(crate) first_log: u64,
    /// The last log before.
    pub(crate) before: Option<Previous>,
}

/// A padded record, and the checksum of its payload.
pub(crate) type Padded<'a> = (&'a mut Aligned, u32);

impl Writer {
    /// The writer of a folder whose logs were replayed, with its lock if the folder is there.
    pub(crate) fn new(
        storage: Arc<dyn Storage>,
        base: &Base,
        max_log_bytes: u64,
        lock: Option<Lock>,
    ) -> Self {
        Self {
            storage,
            version: base.version().to_owned(),
            fingerprint: base.schema.fingerprint(),
            max_log_bytes,
            lock,
            is_ready: false,
            log: None,
            last: 0,
            next: 1,
            reserved: 0,
            failed: None,
        }
    }

    /// Goes on after the last record, which is on disk.
    pub(crate) fn go_on(
        &mut self,
        position: u64,
        reserved: u64,
        log: Option<LastLog>,
    ) -> Result<(), ChangeError> {
        (self.last, self.next, self.reserved) = (position, position.max(reserved) + 1, reserved);
        let Some(LastLog { number, id, previous, bytes, may_go_on }) = log else { return Ok(()) };
        let name = name_of(number);
        let file = may_go_on.then(|| self.storage.append(&name)).transpose();
        let file = file.map_err(ChangeError::io("write", &self.storage.path(&name)))?;
        self.log = Some(Log { number, id, previous, bytes, synced: bytes, file });
        Ok(())
    }

    /// Appends batches at the next positions, and waits until they are on disk if they are to be
    /// durable. Returns the first position. If it fails, none of them was written.
    pub(crate) fn write(
        &mut self,
        batches: &mut [Padded<'_>],
        is_durable: bool,
    ) -> Result<u64, ChangeError> {
        self.check()?;
        self.make_ready()?;
        let is_full = |log: &Log| log.file.is_none() || log.bytes >= self.max_log_bytes;
        if self.log.as_ref().is_none_or(is_full) {
            self.begin()?;
        }
        let (first, end) = (self.next, self.next + batches.len() as u64 - 1);
        if !is_durable && end > self.reserved {
            self.reserve(end + RESERVED_TOGETHER)?;
        }
        let (log, synced) = self.log.as_ref().map_or((0, 0), |log| (log.id, log.synced));
        for ((batch, payload_crc), position) in batches.iter_mut().zip(first..) {
            let header = RecordHeader { kind: Kind::Batch, log, position, synced };
            record::seal(batch, header, *payload_crc);
        }
        let parts: Vec<&[u8]> = batches.iter().map(|(batch, _)| batch.bytes()).collect();
        self.append(&parts)?;
        if is_durable {
            self.sync()?;
        }
        (self.last, self.next) = (end, end + 1);
        Ok(first)
    }

    /// Syncs all batches, and begins a log for the next ones unless the last has none yet.
    pub(crate) fn seal(&mut self) -> Result<Sealed, ChangeError> {
        self.check()?;
        self.make_ready()?;
        self.sync()?;
        let has_records = |log: &Log| log.file.is_none() || log.bytes > LOG_HEADER_BYTES as u64;
        if self.log.as_ref().is_none_or(has_records) {
            self.begin()?;
        }
        let log = self.log.as_ref().expect("it was begun");
        Ok(Sealed { first_log: log.number, before: log.previous })
    }

    /// Waits until all batches are on disk.
    pub(crate) fn sync(&mut self) -> Result<(), ChangeError> {
        self.check()?;
        let Some(log) = &mut self.log else { return Ok(()) };
        let Some(file) = log.file.as_mut().filter(|_| log.synced < log.bytes) else {
            return Ok(());
        };
        let Err(error) = file.sync() else {
            log.synced = log.bytes;
            return Ok(());
        };
        let _ = file.cut(log.synced);
        log.file = None;
        let name = name_of(log.number);
        Err(self.fail("sync", &name, error))
    }

    /// The position of the last batch.
    pub(crate) fn position(&self) -> u64 {
        self.last
    }

    /// Whether a batch may be lost if the machine stops.
    pub(crate) fn has_unsynced(&self) -> bool {
        self.log.as_ref().is_some_and(|log| log.synced < log.bytes)
    }

    /// Syncs all batches, and gives back positions that were reserved and not used.
    pub(crate) fn close(&mut self) -> Result<(), ChangeError> {
        self.check()?;
        let through = self.next - 1;
        if through < self.reserved && self.log.as_ref().is_some_and(|log| log.file.is_some()) {
            return self.reserve(through);
        }
        self.sync()
    }

    fn check(&self) -> Result<(), ChangeError> {
        match &self.failed {
            Some(reason) => {
                let (path, reason) = (self.storage.path(""), Arc::clone(reason));
                Err(ChangeError::ReadOnly { path, reason })
            }
            None => Ok(()),
        }
    }

    /// Nothing more is written from now on.
    fn fail(&mut self, action: &'static str, name: &str, error: std::io::Error) -> ChangeError {
        let path = self.storage.path(name);
        self.failed = Some(format!("can't {action} {}: {error}", path.display()).into());
        ChangeError::io(action, &path)(error)
    }

    fn make_ready(&mut self) -> Result<(), ChangeError> {
        if self.is_ready {
            return Ok(());
        }
        let folder = self.storage.path("");
        if self.lock.is_none() {
            self.storage.make().map_err(ChangeError::io("make", &folder))?;
            self.lock = Some(take_lock(&*self.storage)?);
            let names = self.storage.list().map_err(ChangeError::io("list", &folder))?;
            if !numbers_in(&names.unwrap_or_default()).is_empty() {
                return Err(ChangeError::ChangedMeanwhile { path: folder });
            }
        }
        if self.log.is_none() {
            self.begin()?;
        }
        let mark = "note in the base that there are changes in";
        self.storage.raise_format().map_err(ChangeError::io(mark, &folder))?;
        self.is_ready = true;
        Ok(())
    }

    /// Begins a new log. All before are on disk then.
    fn begin(&mut self) -> Result<(), ChangeError> {
        self.sync()?;
        let bytes = LOG_HEADER_BYTES as u64;
        let (number, previous) = match &self.log {
            None => (1, None),
            // A log without records is replaced: many attempts on a full disk leave one.
            Some(log) if log.bytes == bytes => (log.number, log.previous),
            Some(log) => (log.number + 1, Some(Previous { id: log.id, bytes: log.bytes })),
        };
        let header = LogHeader {
            format: FORMAT,
            number,
            id: random(),
            previous,
            after: self.last,
            reserved: self.reserved,
            version: self.version.clone(),
            fingerprint: self.fingerprint,
        };
        let name = name_of(number);
        let new = format!("{name}.new");
        let written = self.storage.create(&new).and_then(|mut file| {
            file.write(&[&header.to_bytes()])?;
            Ok(file)
        });
        let mut file = written.map_err(|error| {
            let _ = self.storage.remove(&new);
            ChangeError::io("write", &self.storage.path(&new))(error)
        })?;
        file.sync().map_err(|error| self.fail("sync", &new, error))?;
        let path = self.storage.path(&name);
        self.storage.rename(&new, &name).map_err(ChangeError::io("make", &path))?;
        self.storage.sync_names().map_err(|error| self.fail("sync", "", error))?;
        let (id, file) = (header.id, Some(file));
        self.log = Some(Log { number, id, previous, bytes, synced: bytes, file });
        Ok(())
    }

    /// Notes on disk that positions up to this one may be given, to batches that are lost.
    fn reserve(&mut self, through: u64) -> Result<(), ChangeError> {
        let Some(log) = &self.log else { return Ok(()) };
        let (log, position, synced) = (log.id, self.last, log.synced);
        let header = RecordHeader { kind: Kind::Reservation, log, position, synced };
        let record = record::reservation(through, header);
        self.append(&[record.bytes()])?;
        self.sync()?;
        self.reserved = through;
        Ok(())
    }

    fn append(&mut self, parts: &[&[u8]]) -> Result<(), ChangeError> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let Some(file) = &mut log.file else { return Ok(()) };
        let Err(error) = file.write(parts) else {
            log.bytes += parts.iter().map(|part| part.len() as u64).sum::<u64>();
            return Ok(());
        };
        // Whole records may be among what was written, and must not come back.
        let is_gone = file.cut(log.bytes).and_then(|()| file.sync());
        log.file = None;
        let name = name_of(log.number);
        match is_gone {
            Ok(()) => {
                log.synced = log.bytes;
                Err(ChangeError::io("write", &self.storage.path(&name))(error))
            }
            Err(_) => Err(self.fail("write", &name, error)),
        }
    }
}

/// Takes the lock of those who write.
pub(crate) fn take_lock(storage: &dyn Storage) -> Result<Lock, ChangeError> {
    let path = storage.path("lock");
    let lock = storage.lock().map_err(ChangeError::io("lock", &path))?;
    lock.ok_or(ChangeError::Locked { path })
}

/// A number that no caller can guess: it keeps what callers wrote from looking like records.
pub(crate) fn random() -> u64 {
    // The standard library takes its keys from the system.
    RandomState::new().hash_one(0).max(1)
}
