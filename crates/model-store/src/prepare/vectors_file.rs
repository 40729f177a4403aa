//! Writes a large file, and waits for the disk meanwhile.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::path::Path;
use std::sync::mpsc::{SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// After this many bytes, write-back is started.
const BETWEEN_SYNCS: u64 = 128 << 20;

/// Writes a large file. While it is being written, a separate thread waits for the disk, so that
/// the end of a preparation does not have to wait for everything.
pub(crate) struct VectorsFile {
    file: File,
    unsynced: u64,
    syncing: Option<Syncing>,
}

struct Syncing {
    wake: SyncSender<()>,
    thread: JoinHandle<io::Result<()>>,
}

impl VectorsFile {
    pub(super) fn create(path: &Path) -> io::Result<Self> {
        Ok(Self { file: File::create_new(path)?, unsynced: 0, syncing: None })
    }

    fn start_syncing(&self) -> io::Result<Syncing> {
        let file = self.file.try_clone()?;
        let (wake, woken) = sync_channel(1);
        let thread = thread::Builder::new()
            .name("kindred-sync".into())
            .spawn(move || woken.iter().try_for_each(|()| file.sync_data()))?;
        Ok(Syncing { wake, thread })
    }

    /// Waits until everything is on disk.
    pub(super) fn finish(mut self) -> io::Result<()> {
        if let Some(Syncing { wake, thread }) = self.syncing.take() {
            drop(wake);
            thread.join().unwrap_or_else(|_| {
                Err(io::Error::other("the thread that syncs the file panicked"))
            })?;
        }
        self.file.sync_all()
    }
}

impl Write for VectorsFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.unsynced += written as u64;
        if self.unsynced >= BETWEEN_SYNCS {
            self.unsynced = 0;
            let syncing = match &self.syncing {
                Some(syncing) => syncing,
                None => self.syncing.insert(self.start_syncing()?),
            };
            // If it is still busy, it handles this with the next request.
            let _ = syncing.wake.try_send(());
        }
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Seek for VectorsFile {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        self.file.seek(to)
    }
}
