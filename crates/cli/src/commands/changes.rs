//! `kindred changes`: the logs of a table whose rows change.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::Path;

use indicatif::{HumanBytes, HumanCount};
use kindred::ModelStore;
use kindred::live::changes::{Listing, LogSummary, LoggedBatch, list as list_logs};
use serde::Serialize;

use super::CommandError;
use super::progress::counted;
use crate::arguments::ChangesCommand;

/// Prints, checks or exports the logs of a model folder.
pub(super) fn changes(command: &ChangesCommand) -> Result<(), CommandError> {
    match command {
        ChangesCommand::List(folder) => list(&folder.folder),
        ChangesCommand::Verify(folder) => verify(&folder.folder),
        ChangesCommand::Export(folder) => export(&folder.folder),
    }
}

fn list(folder: &Path) -> Result<(), CommandError> {
    let listing = list_logs(folder, &mut |_| ())?;
    if listing.generation > 1 {
        let Listing { generation, base_position, .. } = listing;
        say!("base {generation}: the rows at position {base_position}")?;
    }
    for log in &listing.logs {
        let LogSummary { name, bytes, positions, batches, counts } = log;
        let of = match positions {
            Some((first, last)) if first == last => format!("position {first}"),
            Some((first, last)) => format!("positions {first} to {last}"),
            None => "empty".to_owned(),
        };
        say!(
            "{name}: {of}, {}, {} inserted, {} replaced, {} deleted, {}",
            batches_of(*batches),
            HumanCount(counts.inserted as u64),
            HumanCount(counts.replaced as u64),
            HumanCount(counts.deleted as u64),
            HumanBytes(*bytes as u64),
        )?;
    }
    say!("{}", summary(folder, &listing))
}

fn batches_of(count: usize) -> String {
    let name = if count == 1 { "batch" } else { "batches" };
    format!("{} {name}", HumanCount(count as u64))
}

fn summary(folder: &Path, listing: &Listing) -> String {
    let rows = counted(listing.live_rows as u64, "row");
    let dropped = match listing.dropped_bytes {
        0 => String::new(),
        bytes => format!(
            "; the last {} are a record that was not written whole, and do not count",
            HumanBytes(bytes as u64)
        ),
    };
    format!("{}: position {}, {rows}{dropped}", folder.display(), listing.position)
}

fn verify(folder: &Path) -> Result<(), CommandError> {
    let (base, _) = ModelStore::open_base(folder)?;
    base.verify(|step| drop(say!("checking {step}")))?;
    say!("checking changes")?;
    let listing = list_logs(folder, &mut |_| ())?;
    let version = base.version();
    say!("{}; base {version}; all checksums match", summary(folder, &listing))
}

/// A batch as a line of JSON.
#[derive(Serialize)]
struct BatchLine<'a> {
    position: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<&'a str>,
    /// Positions of systems that the table follows.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    sources: BTreeMap<String, String>,
    upserts: Vec<serde_json::Value>,
    deletes: Vec<&'a str>,
}

fn export(folder: &Path) -> Result<(), CommandError> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    let mut write = |batch: LoggedBatch<'_>| {
        if written.is_ok() {
            written = write_batch(&batch, &mut out);
        }
    };
    list_logs(folder, &mut write)?;
    match written.and_then(|()| out.flush()) {
        // As in `kindred changes export … | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}

fn write_batch(batch: &LoggedBatch<'_>, out: &mut impl io::Write) -> io::Result<()> {
    let mut upserts = Vec::new();
    batch.each_row(|row| {
        upserts.push(serde_json::to_value(row)?);
        Ok::<_, io::Error>(())
    })?;
    let sources = batch.sources();
    let forgotten = sources.forgotten().map(|name| (name.to_owned(), "-".to_owned()));
    let positions = sources.iter().map(|(name, at)| (name.to_owned(), at.to_string()));
    let line = BatchLine {
        position: batch.position,
        idempotency_key: batch.request_key(),
        sources: positions.chain(forgotten).collect(),
        upserts,
        deletes: batch.deleted().collect(),
    };
    serde_json::to_writer(&mut *out, &line)?;
    out.write_all(b"\n")
}
