//! `kindred rows`: the rows of a table that changes, one by one.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Write as _};
use std::path::Path;

use indicatif::HumanCount;
use kindred::contract::{Row, RowSet};
use kindred::filters::{FilterError, FilterSets};
use kindred::live::Live;
use kindred::live::changes::{
    Access, BatchBuilder, ChangeOptions, Counts, Durability, MAX_BATCH_BYTES,
};
use kindred::rows::{AtPosition, Rows as _, write_row};

use super::progress::counted;
use super::{CommandError, unreadable};
use crate::arguments::{DeleteArguments, KeysArguments, ListArguments, PutArguments, RowsCommand};

/// Puts, prints, deletes or lists rows of a model folder.
pub(super) fn rows(command: &RowsCommand) -> Result<(), CommandError> {
    match command {
        RowsCommand::Put(arguments) => put(arguments),
        RowsCommand::Get(arguments) => get(arguments),
        RowsCommand::Delete(arguments) => delete(arguments),
        RowsCommand::List(arguments) => list(arguments),
    }
}

fn open(folder: &Path, access: Access) -> Result<Live, CommandError> {
    let options = ChangeOptions { access, ..ChangeOptions::default() };
    Ok(Live::open(folder, options)?)
}

fn put(arguments: &PutArguments) -> Result<(), CommandError> {
    let PutArguments { model, file, batch: most } = arguments;
    let live = open(&model.folder, Access::Write)?;
    let lines: Box<dyn BufRead> = match file.as_os_str() == "-" {
        true => Box::new(io::stdin().lock()),
        false => {
            let (path, wanted) = (file.clone(), "a file of JSON lines");
            let open = File::open(file);
            let open = open.map_err(|source| CommandError::Unreadable { path, source, wanted })?;
            Box::new(BufReader::new(open))
        }
    };
    let (mut batch, mut first, mut rows) = (live.batch(), 1, 0);
    let mut done = Done::default();
    for (number, line) in (1_u64..).zip(lines.lines()) {
        let line = line.map_err(|error| unreadable(number, error))?;
        if line.trim().is_empty() {
            continue;
        }
        if rows == 0 {
            first = number;
        }
        batch.upsert_json(&line);
        rows += 1;
        if rows == *most || batch.bytes() > MAX_BATCH_BYTES / 2 {
            commit(&live, std::mem::replace(&mut batch, live.batch()), first, &mut done)?;
            rows = 0;
        }
    }
    commit(&live, batch, first, &mut done)?;
    done.say(&model.folder)
}

/// What was committed so far.
#[derive(Default)]
struct Done {
    counts: Counts,
    position: Option<u64>,
}

impl Done {
    fn say(&self, folder: &Path) -> Result<(), CommandError> {
        let Counts { inserted, replaced, deleted, missing } = self.counts;
        let mut parts = Vec::new();
        for (count, name) in [(inserted, "inserted"), (replaced, "replaced"), (deleted, "deleted")]
        {
            if count > 0 {
                parts.push(format!("{} {name}", counted(count as u64, "row")));
            }
        }
        if missing > 0 {
            parts.push(format!("{} not there", counted(missing as u64, "key")));
        }
        match self.position {
            Some(position) => {
                say!("{}: {}; position {position}", folder.display(), parts.join(", "))
            }
            None => say!("{}: nothing to do", folder.display()),
        }
    }
}

fn commit(
    live: &Live,
    batch: BatchBuilder<'_>,
    first: u64,
    done: &mut Done,
) -> Result<(), CommandError> {
    let batch = match batch.finish() {
        Ok(Some(batch)) => batch,
        Ok(None) => return Ok(()),
        Err(bad) => {
            let kept = match done.position {
                None => "nothing was changed".to_owned(),
                Some(position) => format!(
                    "{} of the lines before were put, up to position {position}",
                    HumanCount((done.counts.inserted + done.counts.replaced) as u64)
                ),
            };
            return Err(CommandError::Refused(format!(
                "the batch that begins at line {first} is refused: {bad}; {kept}"
            )));
        }
    };
    let committed = live.commit(batch, Durability::Synced, None)?;
    done.counts += committed.counts;
    done.position = Some(committed.position);
    Ok(())
}

fn delete(arguments: &DeleteArguments) -> Result<(), CommandError> {
    let live = open(&arguments.model.folder, Access::Write)?;
    let mut batch = live.batch();
    match &arguments.filter {
        // Nobody else changes rows meanwhile.
        Some(filter) => {
            let now = live.now();
            let rows = meeting(&live, &now, filter)?;
            rows.members(now.count()).for_each(|row| batch.delete(now.word(row)));
        }
        None => {
            let mut keys = arguments.keys.clone();
            keys.sort_unstable();
            keys.dedup();
            keys.iter().for_each(|key| batch.delete(key));
        }
    }
    let mut done = Done::default();
    commit(&live, batch, 1, &mut done)?;
    done.say(&arguments.model.folder)
}

/// A row as a line of JSON.
fn write_line(out: &mut impl io::Write, now: &AtPosition, row: Row) -> io::Result<()> {
    write_row(out, now, row, true)?;
    out.write_all(b"\n")
}

fn get(arguments: &KeysArguments) -> Result<(), CommandError> {
    let live = open(&arguments.model.folder, Access::Read)?;
    let now = live.now();
    let mut out = io::stdout().lock();
    let mut missing = Vec::new();
    for key in &arguments.keys {
        match now.row_of(key) {
            Some(row) => write_line(&mut out, &now, row)?,
            None => missing.push(format!("`{key}`")),
        }
    }
    match missing.is_empty() {
        true => Ok(()),
        false => Err(CommandError::Refused(format!("the table has no row {}", missing.join(", ")))),
    }
}

/// The rows that meet a filter.
fn meeting(live: &Live, now: &AtPosition, filter: &str) -> Result<RowSet, FilterError> {
    let of_base = FilterSets::for_model(live.base()).of(filter)?;
    Ok(RowSet::of(now.meeting(filter, of_base)?))
}

fn list(arguments: &ListArguments) -> Result<(), CommandError> {
    let ListArguments { model, after, limit, filter } = arguments;
    let live = open(&model.folder, Access::Read)?;
    let now = live.now();
    let set = match filter {
        None => now.live(),
        Some(filter) => meeting(&live, &now, filter)?,
    };
    let from = now.row_from(after.map_or(0, |after| after.saturating_add(1)));
    let members = set.members_in(from.index()..now.count());
    let mut out = io::BufWriter::new(io::stdout().lock());
    let mut written = Ok(());
    for row in members.take(limit.unwrap_or(usize::MAX)) {
        written = write_line(&mut out, &now, row);
        if written.is_err() {
            break;
        }
    }
    match written.and_then(|()| out.flush()) {
        // As in `kindred rows list … | head`.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        written => Ok(written?),
    }
}
