//! A disk for tests: it fails or stops at any call, and forgets what was not synced.

mod log;
mod names;
mod root;

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use super::{Lock, LogFile, Root, Storage};
use crate::fields::Aligned;
use log::SimulatedLog;
use names::{Names, Renaming, parent};
use root::SimulatedRoot;

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
    MakeFolder,
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
    /// Those in the folder of changes.
    pub(crate) files: BTreeMap<String, Vec<u8>>,
    /// Those in the model folder, and in folders in it.
    pub(crate) root: BTreeMap<String, Vec<u8>>,
    pub(crate) is_there: bool,
    pub(crate) is_raised: bool,
}

/// A disk with a model folder, and a folder of changes in it.
#[derive(Clone)]
pub(crate) struct Simulated {
    state: Arc<Mutex<State>>,
    root: SimulatedRoot,
}

struct State {
    inodes: Vec<Inode>,
    names: Names,
    is_there: bool,
    is_raised: bool,
    durable: Durable,
    /// Names that were given or taken, and not synced.
    renames: Vec<Renaming>,
    /// Bytes that are free.
    free: Option<u64>,
    /// The time since any file was written.
    age: Duration,
    calls: Vec<Call>,
    /// The process was killed at the call after so many.
    stop_after: Option<usize>,
    fault: Option<Fault>,
    is_locked: bool,
    /// What there was after each call, if that is kept.
    history: Option<Vec<Image>>,
}

#[derive(Default)]
struct Durable {
    names: Names,
    is_there: bool,
    is_raised: bool,
}

#[derive(Default)]
struct Inode {
    is_folder: bool,
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
    /// A disk on which there is this, synced.
    pub(crate) fn of(image: Image) -> Self {
        let Image { files, root, is_there, is_raised } = image;
        let mut state = State {
            inodes: Vec::new(),
            names: Names::new(),
            is_there,
            is_raised,
            durable: Durable { is_there, is_raised, ..Durable::default() },
            renames: Vec::new(),
            free: None,
            age: Duration::ZERO,
            calls: Vec::new(),
            stop_after: None,
            fault: None,
            is_locked: false,
            history: None,
        };
        let root = root.into_iter().map(|(name, content)| (format!("/{name}"), content));
        for (name, content) in files.into_iter().chain(root) {
            let folder = parent(&name);
            if !matches!(folder, "" | "/") && !state.names.contains_key(folder) {
                let inode = Inode { is_folder: true, ..Inode::default() };
                state.names.insert(folder.to_owned(), state.inodes.len());
                state.inodes.push(inode);
            }
            let inode = Inode { live: content.clone(), durable: content, ..Inode::default() };
            state.names.insert(name, state.inodes.len());
            state.inodes.push(inode);
        }
        state.durable.names = state.names.clone();
        let state = Arc::new(Mutex::new(state));
        Self { root: SimulatedRoot(state.clone()), state }
    }

    pub(crate) fn stop_after(self, calls: usize) -> Self {
        self.state().stop_after = Some(calls);
        self
    }

    /// The process that was killed is followed by another, on the same machine.
    pub(crate) fn revive(&self) {
        let mut state = self.state();
        (state.stop_after, state.is_locked) = (None, false);
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
        for renaming in &state.renames {
            if random.coin() {
                renaming.apply(&mut names);
            }
        }
        // What is in a folder that is not there is not there either.
        let all = names.clone();
        names.retain(|name, _| {
            let folder = parent(name);
            matches!(folder, "" | "/") || all.contains_key(folder)
        });
        let Image { files, root, .. } = state.image(&names, |inode| inode.after_crash(random));
        let may = |random: &mut Random, durable, live| if random.coin() { durable } else { live };
        Image {
            is_there: !files.is_empty() || may(random, state.durable.is_there, state.is_there),
            files,
            root,
            is_raised: may(random, state.durable.is_raised, state.is_raised),
        }
    }

    pub(crate) fn set_free(&self, bytes: u64) {
        self.state().free = Some(bytes);
    }

    pub(crate) fn set_age(&self, age: Duration) {
        self.state().age = age;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
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
        self.image(&self.names, |inode| inode.live.clone())
    }

    fn image(&self, names: &Names, mut content: impl FnMut(&Inode) -> Vec<u8>) -> Image {
        let (is_there, is_raised) = (self.is_there, self.is_raised);
        let mut image = Image { is_there, is_raised, ..Image::default() };
        for (name, &inode) in names {
            let inode = &self.inodes[inode];
            match name.strip_prefix('/') {
                _ if inode.is_folder => (),
                Some(name) => drop(image.root.insert(name.to_owned(), content(inode))),
                None => drop(image.files.insert(name.clone(), content(inode))),
            }
        }
        image
    }

    /// What a base that is opened depends on.
    fn hash_of_root(&self) -> blake3::Hash {
        let mut hasher = blake3::Hasher::new();
        for (name, &inode) in self.names.range("/".to_owned().."0".to_owned()) {
            let content = &self.inodes[inode].live;
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
            hasher.update(&(content.len() as u64).to_le_bytes()).update(content);
        }
        hasher.update(&[u8::from(self.is_raised)]).finalize()
    }

    /// The names in a folder are on disk.
    fn sync_names(&mut self, folder: &str) {
        let (synced, left) =
            self.renames.drain(..).partition(|renaming: &Renaming| renaming.folder() == folder);
        self.renames = left;
        let synced: Vec<Renaming> = synced;
        synced.iter().for_each(|renaming| renaming.apply(&mut self.durable.names));
    }

    fn create(&mut self, name: &str, is_folder: bool) -> io::Result<usize> {
        self.call(if is_folder { Call::MakeFolder } else { Call::Create }, |state| {
            let inode = state.inodes.len();
            state.inodes.push(Inode { is_folder, ..Inode::default() });
            state.names.insert(name.to_owned(), inode);
            state.renames.push(Renaming::Give(name.to_owned(), inode));
            Ok(inode)
        })
    }

    fn rename(&mut self, from: &str, to: &str) -> io::Result<()> {
        self.call(Call::Rename, |state| {
            let inode = state.inode(from)?;
            let renamings = match state.inodes[inode].is_folder {
                true => vec![Renaming::Move(from.to_owned(), to.to_owned())],
                false => {
                    vec![Renaming::Give(to.to_owned(), inode), Renaming::Take(from.to_owned())]
                }
            };
            renamings.iter().for_each(|renaming| renaming.apply(&mut state.names));
            state.renames.extend(renamings);
            Ok(())
        })
    }

    fn remove(&mut self, name: &str) -> io::Result<()> {
        self.call(Call::Remove, |state| {
            state.inode(name)?;
            let renaming = Renaming::Take(name.to_owned());
            renaming.apply(&mut state.names);
            state.renames.push(renaming);
            Ok(())
        })
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
        let own = state.names.keys().filter(|name| !name.starts_with('/'));
        Ok(state.is_there.then(|| own.cloned().collect()))
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
        let inode = self.state().create(name, false)?;
        Ok(Box::new(SimulatedLog { state: self.state.clone(), inode }))
    }

    fn append(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let inode = self.state().inode(name)?;
        Ok(Box::new(SimulatedLog { state: self.state.clone(), inode }))
    }

    fn sync(&self, name: &str) -> io::Result<()> {
        self.append(name)?.sync()
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().rename(from, to)
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        self.state().remove(name)
    }

    fn sync_names(&self) -> io::Result<()> {
        self.state().call(Call::SyncNames, |state| {
            state.sync_names("");
            Ok(())
        })
    }

    fn root(&self) -> &dyn Root {
        &self.root
    }

    fn raise_format(&self) -> io::Result<()> {
        self.state().call(Call::RaiseFormat, |state| {
            (state.is_raised, state.durable.is_raised) = (true, true);
            Ok(())
        })
    }
}
