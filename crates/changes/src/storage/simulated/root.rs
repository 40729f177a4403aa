//! The model folder of a simulated disk.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard};
use std::time::Duration;

use model_store::format::{Pointer, VECTORS_FILE, raised};
use model_store::{Mapped, ModelError, ModelStore};

use super::log::SimulatedLog;
use super::{Call, LogFile, State};
use crate::storage::Root;

/// The model folder of a disk. Its names begin with a slash in the state, those of the changes do
/// not.
#[derive(Clone)]
pub(super) struct SimulatedRoot(pub(super) Arc<Mutex<State>>);

/// A base, and whether there are changes beside it.
type Opened = (Arc<ModelStore>, bool);

impl SimulatedRoot {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The path of the model folder, for messages.
    const FOLDER: &str = "simulated-model";

    fn open_path(&self, path: &Path) -> Result<Mapped, ModelError> {
        let state = self.state();
        let name = path.strip_prefix(Self::FOLDER).unwrap().to_str().unwrap();
        let inode = state.inode(&format!("/{name}"));
        let inode = inode.map_err(ModelError::io("open", path))?;
        let mut content = state.inodes[inode].live.clone();
        if name == VECTORS_FILE
            && state.is_raised
            && let Some((at, digit)) = raised(&content)
        {
            content[at] = digit;
        }
        Mapped::copy_of(&content).map_err(ModelError::io("open", path))
    }
}

impl Root for SimulatedRoot {
    fn path(&self, name: &str) -> PathBuf {
        Path::new(Self::FOLDER).join(name)
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let state = self.state();
        let names = state.names.keys().filter_map(|name| name.strip_prefix('/'));
        Ok(names.filter(|name| !name.contains('/')).map(str::to_owned).collect())
    }

    fn open(&self, name: &str) -> Result<Mapped, ModelError> {
        self.open_path(&self.path(name))
    }

    fn open_base(&self) -> Result<Opened, ModelError> {
        // Many disks have the same files, and opening them takes a while.
        static KNOWN: LazyLock<Mutex<HashMap<blake3::Hash, Opened>>> =
            LazyLock::new(Mutex::default);
        let hash = self.state().hash_of_root();
        if let Some((model, has_changes)) = KNOWN.lock().unwrap().get(&hash) {
            return Ok((model.clone(), *has_changes));
        }
        let opened =
            ModelStore::open_base_by(Path::new(Self::FOLDER), &|path| self.open_path(path));
        let (model, has_changes) = opened?;
        let opened = (Arc::new(model), has_changes);
        let mut known = KNOWN.lock().unwrap();
        if known.len() > 100 {
            known.clear();
        }
        known.insert(hash, opened.clone());
        Ok(opened)
    }

    fn open_pointer(&self) -> Result<Option<Pointer>, ModelError> {
        Pointer::read(&self.path(VECTORS_FILE), &self.open(VECTORS_FILE)?)
    }

    fn make_folder(&self, name: &str) -> io::Result<()> {
        self.state().create(&format!("/{name}"), true).map(drop)
    }

    fn create(&self, name: &str) -> io::Result<Box<dyn LogFile>> {
        let inode = self.state().create(&format!("/{name}"), false)?;
        Ok(Box::new(SimulatedLog { state: self.0.clone(), inode }))
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        self.state().rename(&format!("/{from}"), &format!("/{to}"))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let name = format!("/{name}");
        let inside = format!("{name}/");
        // The system removes what is in a folder first.
        let names = self.state().names.clone();
        for inner in names.keys().rev().filter(|inner| inner.starts_with(&inside)) {
            self.state().remove(inner)?;
        }
        self.state().remove(&name)
    }

    fn sync_folder(&self, name: &str) -> io::Result<()> {
        self.state().call(Call::SyncNames, |state| {
            state.sync_names(&format!("/{name}"));
            Ok(())
        })
    }

    fn free_bytes(&self) -> io::Result<Option<u64>> {
        Ok(self.state().free)
    }

    fn age(&self, _name: &str) -> Option<Duration> {
        Some(self.state().age)
    }
}
