//! A disk for tests: it fails or stops at any call, and forgets what was not synced.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};

use super::{Lock, LogFile, Storage};
use crate::changes::fields::Aligned;

/// Numbers that look random, from a seed.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: usize) -> usize {
        // SplitMix64.
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    pub(crate) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// A call that changes something, by its kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Call {
    Make,
    Create,
    Write,
    Sync,
    Cut,
    Rename,
    Remove,
    SyncNames,
    RaiseFormat,
}

/// What a call does instead of its work.
pub(crate) type Fault = Box<dyn FnMut(Call, u64) -> Option<io::Error> + Send>;

/// Names and contents, as a process sees them.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Image {
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    pub(crate) is_there: bool,
    pub(crate) is_raised: bool,
}

/// A disk with a folder of changes.
#[derive(Clone)]
pub(crate) struct Simulated(Arc<Mutex<State>>);

struct State {
    inodes: Vec<Inode>,
    names: Names,
    is_there: bool,
    is_raised: bool,
    durable: Durable,
    /// Names that were given or taken, and not synced.
    renames: Vec<(String, Option<usize>)>,
    calls: Vec<Call>,
    /// The process was killed at the call after so many.
    stop_after: Option<usize>,
    fault: Option<Fault>,
    is_locked: bool,
    /// What there was after each call, if that is kept.
    history: Option<Vec<Image>>,
}

type Names = BTreeMap<String, usize>;

#[derive(Default)]
struct Durable {
    names: Names,
    is_there: bool,
    is_raised: bool,
}

#[derive(Default)]
struct Inode {
    live: Vec<u8>,
    durable: Vec<u8>,
    pending: Vec<Pending>,
    /// Changes of which a sync has failed: they may be on disk or not, and later syncs do not know.
    lost: Vec<Pending>,
}

#[derive(Clone)]
enum Pending {
    Write(usize, Vec<u8>),
    Cut(usize),
}

impl Pending {
    fn apply(&self, content: &mut Vec<u8>) {
        match self {
            Self::Write(at, bytes) => {
                content.resize(content.len().max(at + bytes.len()), 0);
                content[*at..at + bytes.len()].copy_from_slice(bytes);
            }
            Self::Cut(length) => content.truncate(*length),
        }
    }
}

impl Simulated {
    pub(crate) fn new() -> Self {
        Self::of(Image::default())
    }

    /// A disk on which there is this, synced.
    pub(crate) fn of(image: Image) -> Self {
        let Image { files, is_there, is_raised } = image;
        let mut state = State {
            inodes: Vec::new(),
            names: Names::new(),
            is_there,
            is_raised,
            durable: Durable { is_there, is_raised, ..Durable::default() },
            renames: Vec::new(),
            calls: Vec::new(),
            stop_after: None,
            fault: None,
            is_locked: false,
            history: None,
        };
        for (name, content) in files {
            let inode = Inode { live: content.clone(), durable: content, ..Inode::default() };
            state.names.insert(name, state.inodes.len());
            state.inodes.push(inode);
        }
        state.durable.names = state.names.clone();
        Self(Arc::new(Mutex::new(state)))
    }

    pub(crate) fn stop_after(self, calls: usize) -> Self {
        self.state().stop_after = Some(calls);
        self
    }

    pub(crate) fn set_fault(
        &self,
        fault: impl FnMut(Call, u64) -> Option<io::Error> + Send + 'static,
    ) {
        self.state().fault = Some(Box::new(fault));
    }

    pub(crate) fn without_faults(&self) {
        self.state().fault = None;
    }

    pub(crate) fn keep_history(&self) {
        self.state().history = Some(Vec::new());
    }

    pub(crate) fn history(&self) -> Vec<Image> {
        self.state().history.clone().unwrap_or_default()
    }

    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state().calls.clone()
    }

    pub(crate) fn count(&self, call: Call) -> usize {
        self.state().calls.iter().filter(|&&known| known == call).count()
    }

    /// What a process sees.
    pub(crate) fn live(&self) -> Image {
        self.state().live()
    }

    /// What may be on disk after the machine has stopped.
    pub(crate) fn after_crash(&self, random: &mut Random) -> Image {
        let state = self.state();
        let mut names = state.durable.names.clone();
        for (name, inode) in &state.renames {
            match (random.coin(), inode) {
                (false, _) => (),
                (true, Some(inode)) => drop(names.insert(name.clone(), *inode)),
                (true, None) => drop(names.remove(name)),
            }
        }
        let mut files = BTreeMap::new();
        for (name, inode) in names {
            files.insert(name, state.inodes[inode].after_crash(random));
        }
        let may = |random: &mut Random, durable, live| if random.coin() { durable } else { live };
        Image {
            is_there: !files.is_empty() || may(random, state.durable.is_there, state.is_there),
            files,
            is_raised: may(random, state.durable.is_raised, state.is_raised),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }
}

impl Inode {
    fn change(&mut self, change: Pending) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        for change in self.pending.drain(..) {
            change.apply(&mut self.durable);
        }
    }

    /// Pages of what was not synced are on disk or not, in any order, and cut anywhere.
    fn after_crash(&self, random: &mut Random) -> Vec<u8> {
        const PAGE: usize = 64;
        let mut content = self.durable.clone();
        let none = random.below(4) == 0;
        for change in self.lost.iter().chain(&self.pending) {
            if none || random.below(4) == 0 {
                continue;
            }
            match change {
                Pending::Write(at, bytes) if random.coin() => {
                    let end =
                        if random.coin() { bytes.len() } else { random.below(bytes.len() + 1) };
                    for (index, page) in bytes[..end].chunks(PAGE).enumerate() {
                        if random.below(8) > 0 {
                            Pending::Write(at + index * PAGE, page.to_vec()).apply(&mut content);
                        }
                    }
                }
                change => change.apply(&mut content),
            }
        }
        content
    }
}

impl State {
    fn live(&self) -> Image {
        let content =
            |(name, &inode): (&String, &usize)| (name.clone(), self.inodes[inode].live.clone());
        let files = self.names.iter().map(content).collect();
        Image { files, is_there: self.is_there, is_raised: self.is_raised }
    }

    /// Does a call unless it is to fail, and notes it. A process that was killed does nothing more;
    /// the call at which it was killed may have had its effect, but is not synced.
    fn call<T>(
        &mut self,
        call: Call,
        work: impl FnOnce(&mut Self) -> io::Result<T>,
    ) -> io::Result<T> {
        let killed = || io::Error::other("the process was killed");
        let done = self.calls.len();
        if self.stop_after.is_some_and(|stop| done > stop) {
            return Err(killed());
        }
        self.calls.push(call);
        let is_sync = matches!(call, Call::Sync | Call::SyncNames | Call::Make | Call::RaiseFormat);
        if self.stop_after == Some(done) {
            if !is_sync {
                let _ = work(self);
            }
            return Err(killed());
        }
        if let Some(error) = self.fault.as_mut().and_then(|fault| fault(call, done as u64)) {
            return Err(error);
        }
        let result = work(self);
        let live = self.history.is_some().then(|| self.live());
        if let (Some(history), Some(live)) = (&mut self.history, live) {
            history.push(live);
        }
        result
    }

    fn inode(&self, name: &str) -> io::Result<usize> {
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }
}

impl Storage for Simulated {
    fn path(&self, name: &str) -> PathBuf {
        Path::new("simulated").join(name)
    }

    fn list(&self) -> io::Result<Option<Vec<String>>> {
        let state = self.state();
        Ok(state.is_there.then(|| state.names.keys().cloned().collect()))
    }

    fn read(&self, name: &str) -> io::Result<Aligned> {
        let state = self.state();
        Ok(Aligned::of_parts(&[&state.inodes[state.inode(name)?].live]))
    }

    fn make(&self) -> io::Result<()> {
        self.state().call(Call::Make, |state| {
            (state.is_there, state.durable.is_there) = (true, true);
            Ok(())
        })
    }

    fn lock(&self) -> io::Result<Option<Lock>> {
        struct Held(Simulated);
        impl Drop for Held {
            fn drop(&mut self) {
                self.0.state().is_locked = false;
            }
        }
        let is_free = !std::mem::replace(&mut self.state().is_locked, true);
        Ok(is_free.then(|| Box::new(Held(self.clone())) as Lock))
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let inode = self.state().call(Call::Create, |state| {
            let inode = state.inodes.len();
            state.inodes.push(Inode::default());
            state.names.insert(name.to_owned(), inode);
            state.renames.push((name.to_owned(), Some(inode)));
            Ok(inode)
        })?;
        Ok(Box::new(SimulatedLog { disk: self.clone(), inode }))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let inode = self.state().inode(name)?;
        Ok(Box::new(SimulatedLog { disk: self.clone(), inode }))
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.append(name)?.sync()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().call(Call::Rename, |state| {
            let inode = state.inode(from)?;
            state.names.remove(from);
            state.names.insert(to.to_owned(), inode);
            state.renames.push((to.to_owned(), Some(inode)));
            state.renames.push((from.to_owned(), None));
            Ok(())
        })
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state().call(Call::Remove, |state| {
            state.inode(name)?;
            state.names.remove(name);
            state.renames.push((name.to_owned(), None));
            Ok(())
        })
    }

    fn sync_names(&self) -> io::Result<()> {
        self.state().call(Call::SyncNames, |state| {
            state.durable.names = state.names.clone();
            state.renames.clear();
            Ok(())
        })
    }

    fn raise_format(&self) -> io::Result<()> {
        self.state().call(Call::RaiseFormat, |state| {
            (state.is_raised, state.durable.is_raised) = (true, true);
            Ok(())
        })
    }
}

struct SimulatedLog {
    disk: Simulated,
    inode: usize,
}

impl LogFile for SimulatedLog {
    fn write(&mut self, parts: &[&[u8]]) -> io::Result<()> {
        let bytes = parts.concat();
        let mut state = self.disk.state();
        let at = state.inodes[self.inode].live.len();
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

    fn sync(&mut self) -> io::Result<()> {
        let mut state = self.disk.state();
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
        self.disk.state().call(Call::Cut, |state| {
            state.inodes[self.inode].change(Pending::Cut(bytes as usize));
            Ok(())
        })
    }
}
