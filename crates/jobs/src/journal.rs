//! The folder beside a file while a job makes it, `FILE.partial`: the data that is done, and the
//! journal that says which.
//!
//! An entry is in the journal only after its data is on disk. Each line follows the CRC-32 of its
//! rest: a line that was torn, and what follows it, does not count. So whatever a kill, a power cut
//! or a full disk leaves, the job goes on from what is right.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::mem;
use std::path::{Path, PathBuf};
use std::thread::{self, JoinHandle};

use model_store::{replace_file, sync_parent};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::error::JobError;

const JOURNAL: &str = "journal";
/// Extensions of files that are made of the data at the end.
const MADE: [&str; 2] = ["npz", "parquet"];
/// The part of a [`Description`] that says how the folder is written.
const FORMAT: &str = "format";
/// Parts of a [`Description`] that nobody sets: they follow from others.
const DERIVED: [&str; 2] = ["metric", "rows_per_range"];

/// What decides every byte of a file, by name. A job goes on only with an equal one. Devices are no
/// part of it, where the contract says so.
pub(crate) type Description = Map<String, Value>;

/// The folder of a job.
pub(crate) struct Journal {
    pub(crate) folder: PathBuf,
    /// Locked while this process works here.
    file: File,
    /// The length of the description's line.
    head: usize,
    /// The data that is done.
    pub(crate) data: File,
    /// The name of the data in the folder.
    name: &'static str,
    /// Lines of entries that are not written.
    pending: String,
    /// Writes entries beside other work.
    writing: Option<JoinHandle<io::Result<()>>>,
}

/// What a journal says.
#[derive(Debug, PartialEq)]
pub(crate) struct Recorded<T> {
    pub(crate) description: Description,
    /// Where the line with it ends.
    pub(crate) head: usize,
    /// Each entry, in order, and where its line ends.
    pub(crate) entries: Vec<(T, usize)>,
}

/// The line with a description, which begins a journal, or with an entry.
pub(crate) fn line(content: &impl Serialize) -> String {
    let text = serde_json::to_string(content).expect("numbers and texts are JSON");
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// Reads a journal up to the first line that is not whole. `None` if the head is not whole: nothing
/// counts then.
pub(crate) fn read<T: DeserializeOwned>(bytes: &[u8]) -> Option<Recorded<T>> {
    let mut end = 0;
    let mut lines = bytes.split_inclusive(|&byte| byte == b'\n').map_while(|line| {
        end += line.len();
        Some((whole(line)?, end))
    });
    let (description, head) = lines.next()?;
    let description = serde_json::from_str(description).ok()?;
    let entries =
        lines.map_while(|(text, end)| Some((serde_json::from_str(text).ok()?, end))).collect();
    Some(Recorded { description, head, entries })
}

/// The text of a line, if the line is as it was written.
fn whole(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (checksum, text) = line.split_at_checked(8)?;
    let text = text.strip_prefix(' ')?;
    (checksum == format!("{:08x}", crc32fast::hash(text.as_bytes()))).then_some(text)
}

/// In what two jobs differ: there, and here. In another format, nothing else matters.
fn difference(there: &Description, here: &Description) -> Option<String> {
    let all = |description: &Description| {
        let mut all = BTreeMap::new();
        for (name, value) in description {
            match value {
                Value::Object(fields) => all.extend(fields.clone()),
                value => drop(all.insert(name.clone(), value.clone())),
            }
        }
        all.retain(|_, value| !value.is_null());
        all
    };
    let (there, here) = (all(there), all(here));
    let said = |name: &str, value: Option<&Value>| match (name, value) {
        ("min_score", None) => "no minimum score".to_owned(),
        ("min_score", Some(value)) => format!("the minimum score {value}"),
        ("rows", Some(value)) => format!("{value} rows"),
        ("input_bytes", Some(value)) => format!("an input of {value} bytes"),
        (_, None) => format!("no {name}"),
        (_, Some(Value::String(text))) => format!("{name} {text}"),
        (_, Some(value)) => format!("{name} {value}"),
    };
    let names: BTreeSet<&str> = there.keys().chain(here.keys()).map(String::as_str).collect();
    let differs = |name: &&str| there.get(*name) != here.get(*name);
    let mut differ: Vec<&str> = names.into_iter().filter(differs).collect();
    if differ.contains(&FORMAT) {
        differ = vec![FORMAT];
    } else if !differ.iter().all(|name| DERIVED.contains(name)) {
        differ.retain(|name| !DERIVED.contains(name));
    }
    let differences: Vec<String> = differ
        .into_iter()
        .map(|name| {
            let [there, here] = [&there, &here].map(|all| said(name, all.get(name)));
            format!("{there} instead of {here}")
        })
        .collect();
    (!differences.is_empty()).then(|| differences.join(", "))
}

/// Checks that a file can be made here.
pub(crate) fn check_free(file: &Path, replace: bool) -> Result<(), JobError> {
    let reason = match file.is_dir() {
        true => "is a folder; choose another --out",
        false if file.exists() && !replace => "exists; choose another --out, or add --replace",
        false => return Ok(()),
    };
    Err(JobError::InTheWay { path: file.to_owned(), reason })
}

impl Journal {
    /// Opens the folder of the job for a file, or begins one. Returns the entries that are there,
    /// each with where its line ends; none if nothing can be gone on with, and then there is no
    /// data either. `name` is that of the data in the folder; `same` says what must be the same as
    /// when the job was begun.
    pub(crate) fn open<T: DeserializeOwned>(
        file: &Path,
        name: &'static str,
        description: &Description,
        same: &'static str,
        is_resumable: bool,
    ) -> Result<(Self, Vec<(T, usize)>), JobError> {
        let mut folder = file.as_os_str().to_owned();
        folder.push(".partial");
        let folder = PathBuf::from(folder);
        if let Err(source) = fs::create_dir_all(&folder) {
            return Err(JobError::NotBegun { folder, source });
        }
        let open = |name: &str| {
            let path = folder.join(name);
            let mut options = OpenOptions::new();
            options.read(true).write(true).create(true).truncate(false);
            options.open(&path).map_err(JobError::io("open", &path))
        };
        let mut file = open(JOURNAL)?;
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(JobError::Busy(folder));
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(JobError::io("read", &folder.join(JOURNAL)))?;
        let recorded = read::<T>(&bytes);
        if let Some(Recorded { description: there, .. }) = &recorded
            && let Some(difference) = difference(there, description)
        {
            let is_same_format = there.get(FORMAT) == description.get(FORMAT);
            let same = if is_same_format { same } else { "the version of Kindred" };
            return Err(JobError::OtherWork { folder, difference, same });
        }
        let data = open(name)?;
        let recorded = recorded.filter(|_| is_resumable);
        let head = recorded.as_ref().map_or(0, |recorded| recorded.head);
        let (pending, writing) = (String::new(), None);
        let mut journal = Self { folder, file, head, data, name, pending, writing };
        let entries = match recorded {
            Some(Recorded { entries, .. }) => {
                journal.keep(entries.last().map(|(_, end)| *end)).map(|()| entries)
            }
            None => journal.begin(description).map(|()| Vec::new()),
        };
        let entries = entries.map_err(JobError::io("prepare", &journal.folder))?;
        Ok((journal, entries))
    }

    fn begin(&mut self, description: &impl Serialize) -> io::Result<()> {
        let text = line(description);
        self.file.set_len(0)?;
        self.file.rewind()?;
        self.file.write_all(text.as_bytes())?;
        self.file.sync_all()?;
        self.head = text.len();
        self.data.set_len(0)
    }

    /// Keeps the lines up to the one that ends there; `None`: no entry.
    pub(crate) fn keep(&mut self, end: Option<usize>) -> io::Result<()> {
        self.file.set_len(end.unwrap_or(self.head) as u64)?;
        self.file.seek(SeekFrom::End(0))?;
        Ok(())
    }

    /// The path of a file that is made of the data: one of [`MADE`], by its extension.
    pub(crate) fn made(&self, extension: &str) -> PathBuf {
        self.folder.join(self.name).with_extension(extension)
    }

    /// Takes an entry, whose data is written. The next commit writes it.
    pub(crate) fn add(&mut self, entry: &impl Serialize) {
        self.pending += &line(entry);
    }

    /// Writes the entries, after their data is on disk.
    pub(crate) fn commit(&mut self) -> Result<(), JobError> {
        self.wait()?;
        self.commit_beside()?;
        self.wait()
    }

    /// The same beside other work: waiting for a disk would keep the engine waiting. If the last
    /// entries are still on their way, a later call writes these.
    pub(crate) fn commit_beside(&mut self) -> Result<(), JobError> {
        let is_busy = self.writing.as_ref().is_some_and(|thread| !thread.is_finished());
        if is_busy || self.pending.is_empty() {
            return Ok(());
        }
        self.wait()?;
        let files = self.data.try_clone().and_then(|data| Ok((data, self.file.try_clone()?)));
        let (data, mut journal) = files.map_err(JobError::io("write", &self.folder))?;
        let entries = mem::take(&mut self.pending);
        let thread = thread::Builder::new().name("kindred-journal".to_owned());
        let writing = thread.spawn(move || {
            data.sync_data()?;
            journal.write_all(entries.as_bytes())?;
            journal.sync_data()
        });
        self.writing = Some(writing.map_err(JobError::io("write", &self.folder))?);
        Ok(())
    }

    /// Waits until the last entries are written, and says whether they were.
    fn wait(&mut self) -> Result<(), JobError> {
        let Some(thread) = self.writing.take() else { return Ok(()) };
        let panicked = |_| Err(io::Error::other("the thread that writes the journal panicked"));
        let written = thread.join().unwrap_or_else(panicked);
        written.map_err(JobError::io("write", &self.folder))
    }

    /// Moves what was made of the data, and synced, to the file, and removes the folder; `None`:
    /// the data itself.
    pub(crate) fn finish(mut self, file: &Path, made: Option<&Path>) -> Result<(), JobError> {
        self.wait()?;
        let made = match made {
            Some(made) => made.to_owned(),
            None => {
                self.data.sync_all().map_err(JobError::io("write", &self.folder))?;
                self.folder.join(self.name)
            }
        };
        // A link stays, and what it leads to is replaced.
        let to = file.canonicalize().unwrap_or_else(|_| file.to_owned());
        replace_file(&made, &to).map_err(JobError::io("rename the new file to", &to))?;
        sync_parent(&to).map_err(JobError::io("write", &to))?;
        self.remove();
        Ok(())
    }

    /// Removes what is there. Other files in the folder belong to the user, and stay.
    pub(crate) fn remove(mut self) {
        let _ = self.wait();
        for made in MADE.map(|extension| self.made(extension)) {
            let _ = fs::remove_file(made);
        }
        for name in [self.name, JOURNAL] {
            let _ = fs::remove_file(self.folder.join(name));
        }
        let _ = fs::remove_dir(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn description(value: Value) -> Description {
        let Value::Object(description) = value else { panic!("{value}") };
        description
    }

    #[test]
    fn differences_are_said_by_name() {
        let one = description(
            json!({"work": "classify", "options": {"top": 3, "threshold": null}, "input_bytes": 7}),
        );
        let other = description(
            json!({"work": "classify", "options": {"threshold": 0.5}, "input_bytes": 8}),
        );
        assert_eq!(difference(&one, &one), None);
        assert_eq!(
            difference(&one, &other).unwrap(),
            "an input of 7 bytes instead of an input of 8 bytes, no threshold instead of threshold 0.5, top 3 instead of no top"
        );
    }

    #[test]
    fn only_what_can_be_set_is_said_unless_nothing_else_differs() {
        let graph = |format: u32, k: u64, rows_per_range: u64, min_score: Option<f64>| {
            description(json!({
                "format": format, "rows": 10 * k, "k": k, "min_score": min_score,
                "rows_per_range": rows_per_range,
            }))
        };
        let there = graph(3, 10, 1024, None);
        let said = |here: Description| difference(&there, &here).unwrap();
        assert_eq!(
            said(graph(3, 999, 65, None)),
            "k 10 instead of k 999, 100 rows instead of 9990 rows"
        );
        assert_eq!(
            said(graph(3, 10, 1024, Some(0.5))),
            "no minimum score instead of the minimum score 0.5"
        );
        assert_eq!(
            said(graph(3, 10, 512, None)),
            "rows_per_range 1024 instead of rows_per_range 512"
        );
        assert_eq!(said(graph(2, 999, 65, None)), "format 3 instead of format 2");
    }
}
