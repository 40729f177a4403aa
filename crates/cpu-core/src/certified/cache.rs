//! Saves the derived table in a file and loads it at the next start.
//!
//! The file has 4096 bytes of JSON, padded with spaces, then both planes as they are in memory
//! (layout.rs). The header has the version, the processor's architecture, the table's shape, the
//! checksum of the vectors that it was derived from, and the checksum of the planes, which is
//! verified before use. The file is written under a temporary name, renamed into place, and never
//! changed. It can be deleted at any time.
//!
//! A table is for one architecture, which its file's name and its header both say. Only answers
//! are promised to be the same on all: rows may be rounded otherwise there, and machines that share
//! a folder must not replace each other's file at every start.

use std::fmt::Display;
#[cfg(unix)]
use std::fs::Permissions;
use std::fs::{File, TryLockError};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use contract::certificate::Lift;
use contract::{Metric, Table};
use model_store::format::Checksum;
use model_store::{Mapped, ModelStore};
use serde::{Deserialize, Serialize};

use super::layout::Layout;
use super::tables::Tables;

/// The architecture that tables are derived for and by, such as `x86_64`.
const ARCHITECTURE: &str = std::env::consts::ARCH;

/// The format version. It changes when older files would be misread: with the layout, rotation or
/// rounding.
const VERSION: u32 = 1;

const FORMAT: &str = "kindred-cpu-table";

/// The offset of the planes.
const DATA_START: usize = 4096;

/// Bytes written between checks for cancellation.
const PIECE: usize = 16 << 20;

#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    format: String,
    version: u32,
    architecture: String,
    rows: usize,
    dim: usize,
    vectors: String,
    planes: String,
}

impl Header {
    fn new(table: &Table<'_>, vectors: &str, planes: &str) -> Self {
        Self {
            format: FORMAT.into(),
            version: VERSION,
            architecture: ARCHITECTURE.into(),
            rows: table.rows(),
            dim: table.dim(),
            vectors: vectors.into(),
            planes: planes.into(),
        }
    }
}

/// The usual file for the derived table of the model in this folder: beside it, named after it and
/// this machine's architecture, `NAME.x86_64.cpu-table`. `None` if there is no such folder, or it
/// has no name.
pub fn table_file(folder: &Path) -> Option<PathBuf> {
    // Also for a folder that is given as `.` or ends in `..`.
    let folder = folder.canonicalize().ok()?;
    let mut name = folder.file_name()?.to_owned();
    name.push(format!(".{ARCHITECTURE}.cpu-table"));
    Some(folder.with_file_name(name))
}

/// A file for a table, and what tells the vectors that it is derived from.
#[derive(Debug, Clone)]
pub(crate) struct KeepIn {
    pub(crate) path: PathBuf,
    pub(crate) vectors: String,
    /// The folder of the model, which is locked while one process derives its table.
    model: Option<PathBuf>,
}

impl KeepIn {
    pub(crate) fn new(path: PathBuf, model: &ModelStore) -> Self {
        let vectors = match model.metric() {
            Metric::Cosine => model.header().checksums.vectors.to_string(),
            // Biases are in the table, too.
            Metric::Dot => format!("dot {}", model.content()),
        };
        Self { path, vectors, model: model.folder().map(Path::to_owned) }
    }

    /// Waits while another process derives this model's table. The lock is advisory and ends with
    /// the process that holds it; `None` where the system has no such locks, or if the engine is
    /// stopping.
    pub(crate) fn lock(&self, cancelled: &AtomicBool) -> Option<File> {
        const EVERY: Duration = Duration::from_millis(20);
        let folder = File::open(self.model.as_ref()?).ok()?;
        while !cancelled.load(Ordering::Relaxed) {
            match folder.try_lock() {
                Ok(()) => return Some(folder),
                Err(TryLockError::WouldBlock) => thread::sleep(EVERY),
                Err(TryLockError::Error(_)) => return None,
            }
        }
        None
    }
}

/// The reason why a file can't be used.
fn unusable(path: &Path, error: impl Display) -> String {
    format!("{}: {error}", path.display())
}

fn damaged(what: &str) -> String {
    format!("the old file is damaged: {what}")
}

/// Loads the derived table of `table`; `None` if there is no such file. The error says why the file
/// is not used.
pub(crate) fn load(
    KeepIn { path, vectors, .. }: &KeepIn,
    table: &Table<'_>,
    lift: Lift,
) -> Result<Option<Tables>, String> {
    if !path.exists() {
        return Ok(None);
    }
    let bytes = Mapped::open(path).map_err(|error| unusable(path, error))?;
    if bytes.len() < DATA_START {
        return Err(damaged("too short"));
    }
    let header: Header = serde_json::from_slice(bytes[..DATA_START].trim_ascii_end())
        .map_err(|_| damaged("no header"))?;
    if header != Header::new(table, vectors, &header.planes) {
        let other = "other vectors, another architecture or another version of kindred";
        return Err(format!("the old file is for {other}"));
    }
    let layout = Layout { rows: table.rows(), dim: lift.dim(table.dim()) };
    if bytes.len() != DATA_START + layout.bytes() {
        return Err(damaged("wrong size"));
    }
    bytes.will_need();
    if Checksum::of(&bytes[DATA_START..]).to_string() != header.planes {
        return Err(damaged("wrong checksum"));
    }
    Ok(Some(Tables::of_bytes(lift, layout, bytes, DATA_START)))
}

/// Saves the derived table of `table`, complete or not at all. The error says why it is not saved.
pub(crate) fn keep(
    KeepIn { path, vectors, .. }: &KeepIn,
    table: &Table<'_>,
    tables: &Tables,
    cancelled: &AtomicBool,
) -> Result<(), String> {
    let checksum = Checksum::of(tables.bytes()).to_string();
    let header = Header::new(table, vectors, &checksum);
    let mut text = serde_json::to_vec(&header).unwrap_or_default();
    text.resize(DATA_START, b' ');
    let io = |error: io::Error| unusable(path, error);
    let mut builder = tempfile::Builder::new();
    builder.prefix(".kindred-table-");
    #[cfg(unix)]
    {
        // The usual permissions of a new file: the umask decides who may read it.
        use std::os::unix::fs::PermissionsExt;
        builder.permissions(Permissions::from_mode(0o666));
    }
    let mut file = builder.tempfile_in(path.parent().unwrap_or(path)).map_err(io)?;
    file.write_all(&text).map_err(io)?;
    for piece in tables.bytes().chunks(PIECE) {
        if cancelled.load(Ordering::Relaxed) {
            return Err("the engine is stopping".to_owned());
        }
        file.write_all(piece).map_err(io)?;
    }
    file.as_file().sync_all().map_err(io)?;
    file.persist(path).map_err(|e| io(e.error))?;
    Ok(())
}
