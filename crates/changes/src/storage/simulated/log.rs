//! A file of a simulated disk that is written.

use std::io;
use std::sync::{Arc, Mutex};

use super::{Call, LogFile, Pending, State};

/// A file that is appended to.
pub(super) struct SimulatedLog {
    pub(super) state: Arc<Mutex<State>>,
    pub(super) inode: usize,
}

impl LogFile for SimulatedLog {
    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let at = self.state.lock().unwrap().inodes[self.inode].live.len();
        self.write_from(at, parts.concat())
    }

    fn write_at(&mut self, at: u64, bytes: &[u8]) -> io::Result<()> {
        self.write_from(at as usize, bytes.to_vec())
    }

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let synced = state.call(Call::Sync, |state| {
            state.inodes[self.inode].sync();
            Ok(())
        });
        if synced.is_err() && state.stop_after.is_none() {
            // The system takes the pages for clean now.
            let inode = &mut state.inodes[self.inode];
            inode.lost.append(&mut inode.pending);
        }
        synced
    }

    fn cut(&mut self, bytes: u64) -> io::Result<()> {
        self.state.lock().unwrap().call(Call::Cut, |state| {
            state.inodes[self.inode].change(Pending::Cut(bytes as usize));
            Ok(())
        })
    }
}

impl SimulatedLog {
    fn write_from(&mut self, at: usize, bytes: Vec<u8>) -> io::Result<()> {
        let mut state = self.state.lock().unwrap();
        let written = state.call(Call::Write, |state| {
            state.inodes[self.inode].change(Pending::Write(at, bytes.clone()));
            Ok(())
        });
        if let Err(error) = &written
            && error.kind() == io::ErrorKind::StorageFull
        {
            // As much as there was room for, which may be whole records.
            let some = bytes.len() * 3 / 4;
            state.inodes[self.inode].change(Pending::Write(at, bytes[..some].to_vec()));
        }
        written
    }
}
