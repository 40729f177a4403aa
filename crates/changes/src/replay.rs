//! Reads all logs of a folder and applies their batches.
//!
//! Logs are numbered, and each names the one before and how much of it counts. A log that another
//! one follows was on disk before: whatever is wrong with it is damage. The last log may end in
//! records that were written and not yet on disk when the process or the machine stopped. They are
//! dropped, unless a later record proves that they were (see [`record`]).

use super::base::Base;
use super::batch::Payload;
use super::error::ChangeError;
use super::fields::{Aligned, Fields};
use super::log_header::{FORMAT, LOG_HEADER_BYTES, LogHeader, Previous};
use super::record::{self, Kind, Record};
use super::requests::{Answer, MAX_REQUEST_KEYS, Requests};
use super::state::{Counts, Prepared, State};
use super::storage::Storage;

const EXTENSION: &str = ".log";

/// The file of a log.
pub(crate) fn name_of(number: u64) -> String {
    format!("{number:08}{EXTENSION}")
}

/// The numbers of the logs among these files, ascending.
pub(crate) fn numbers_in(names: &[String]) -> Vec<u64> {
    let number = |name: &String| {
        let number = name.strip_suffix(EXTENSION)?.parse().ok()?;
        (name_of(number) == *name).then_some(number)
    };
    let mut numbers: Vec<u64> = names.iter().filter_map(number).collect();
    numbers.sort_unstable();
    numbers
}

/// The rows after all batches, and where the next one goes.
pub(crate) struct Replayed {
    pub(crate) state: State,
    pub(crate) requests: Requests,
    /// Positions up to this one may have been given to batches that are lost.
    pub(crate) reserved: u64,
    pub(crate) last: Option<LastLog>,
}

/// The log with the last batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LastLog {
    pub(crate) number: u64,
    pub(crate) id: u64,
    pub(crate) previous: Option<Previous>,
    /// The end of its last record.
    pub(crate) bytes: u64,
    /// Whether records may be appended: nothing follows that one, and the log has today's format.
    pub(crate) may_go_on: bool,
}

struct Log {
    header: LogHeader,
    content: Aligned,
}

/// Something of a folder, for those who watch while it is read.
pub(crate) enum Seen<'a> {
    /// A log begins: its number and its bytes.
    Log { number: u64, bytes: usize },
    /// A batch was applied.
    Batch { position: u64, payload: &'a Payload<'a>, counts: Counts },
    /// All of it is seen again from the beginning.
    Again,
    /// So many bytes at the end of the last log are no whole record.
    Dropped { bytes: usize },
}

/// Opens the base of a folder and applies all batches to its rows, before the eyes of another. It
/// begins again if a process folds them into another base meanwhile, as often as that may be.
pub(crate) fn open(
    storage: &dyn Storage,
    watch: &mut dyn FnMut(Seen<'_>),
) -> Result<(Base, Replayed), ChangeError> {
    const ATTEMPTS: usize = 5;
    let mut attempt = 1;
    loop {
        let before = storage.root().open_pointer();
        let opened = storage.root().open_base().map_err(ChangeError::from);
        let replayed = opened.and_then(|(model, has_changes)| {
            let base = Base::of(&model, has_changes);
            let replayed = replay(storage, &base, watch)?;
            Ok((base, replayed))
        });
        let is_another = || match (&before, storage.root().open_pointer()) {
            (Ok(before), Ok(after)) => *before != after,
            _ => false,
        };
        if replayed.is_ok() || attempt == ATTEMPTS || !is_another() {
            return replayed;
        }
        attempt += 1;
        watch(Seen::Again);
    }
}

/// Applies all batches of a folder to the rows of its base.
fn replay(
    storage: &dyn Storage,
    base: &Base,
    watch: &mut dyn FnMut(Seen<'_>),
) -> Result<Replayed, ChangeError> {
    let names = storage.list().map_err(ChangeError::io("list", &storage.path("")))?;
    let folded = base.model.header().folded.as_ref();
    let first_log = folded.map_or(1, |folded| folded.first_log);
    let mut numbers = numbers_in(&names.unwrap_or_default());
    // Those before were folded into the base, and are still there for a while.
    numbers.retain(|&number| number >= first_log);
    let mut replay = Replay {
        storage,
        base,
        state: State::new(&base.schema, base.model.clone()),
        requests: Requests::of_lines(MAX_REQUEST_KEYS, base.model.requests()),
        reserved: 0,
        watch,
    };
    let Some((&first, others)) = numbers.split_first() else {
        if base.has_changes {
            let reason = "the base says that rows were changed, but there is no log of changes; \
                          it may have been copied while it was folded";
            return Err(ChangeError::damaged(&storage.path(""), 0, reason));
        }
        return Ok(replay.finish(None));
    };
    let mut log = replay.load(first)?;
    let before = folded.and_then(|folded| folded.log_before);
    let before = before.map(|(id, bytes)| Previous { id, bytes });
    let begins = folded.map_or(0, |folded| folded.position);
    let is_first = folded.is_none() || first == first_log;
    if !is_first || log.header.previous != before || log.header.after != begins {
        return Err(replay.damaged(&log, 32, "the logs before it are missing"));
    }
    for &number in others {
        let next = replay.load(number)?;
        let previous = next.header.previous.filter(|previous| previous.id == log.header.id);
        let Some(previous) = previous.filter(|_| number == log.header.number + 1) else {
            return Err(replay.damaged(&next, 32, "the log before it is missing"));
        };
        replay.take_whole(&log, previous.bytes)?;
        if next.header.after != replay.state.position() {
            return Err(replay.damaged(&next, 48, "it begins at another position"));
        }
        log = next;
    }
    let last = replay.take_last(&log)?;
    Ok(replay.finish(Some(last)))
}

struct Replay<'a> {
    storage: &'a dyn Storage,
    base: &'a Base,
    state: State,
    requests: Requests,
    reserved: u64,
    watch: &'a mut dyn FnMut(Seen<'_>),
}

impl Replay<'_> {
    fn finish(self, last: Option<LastLog>) -> Replayed {
        let Self { state, requests, reserved, .. } = self;
        Replayed { state, requests, reserved, last }
    }

    fn damaged(&self, log: &Log, offset: usize, reason: impl Into<String>) -> ChangeError {
        let path = self.storage.path(&name_of(log.header.number));
        ChangeError::damaged(&path, offset, reason.into())
    }

    fn load(&self, number: u64) -> Result<Log, ChangeError> {
        let name = name_of(number);
        let path = self.storage.path(&name);
        let content = self.storage.read(&name).map_err(ChangeError::io("read", &path))?;
        let refused = |reason: String| ChangeError::damaged(&path, 0, reason);
        let header = LogHeader::read(content.bytes()).map_err(refused)?;
        let of = |version: &str| format!("it belongs to the base {version}");
        if header.version != self.base.version() {
            let reason = format!("{}, not to {}", of(&header.version), self.base.version());
            return Err(refused(reason));
        }
        if header.fingerprint != self.base.schema.fingerprint() {
            return Err(refused("it was written for rows of another shape".to_owned()));
        }
        if header.number != number {
            return Err(refused(format!("it is log {}", header.number)));
        }
        Ok(Log { header, content })
    }

    /// Applies the records of a log that another one follows: all of them up to `bytes`.
    fn take_whole(&mut self, log: &Log, bytes: u64) -> Result<(), ChangeError> {
        let content = usize::try_from(bytes).ok().and_then(|end| log.content.bytes().get(..end));
        let Some(content) = content else {
            let (found, reason) = (log.content.bytes().len(), "it was cut");
            let reason = format!("{reason}: {found} bytes are left of {bytes}");
            return Err(self.damaged(log, found, reason));
        };
        let end = self.take(log, content)?;
        if end < content.len() {
            return Err(self.damaged(log, end, "there is no whole record"));
        }
        Ok(())
    }

    /// Applies the records of the last log, and tells where they end.
    fn take_last(&mut self, log: &Log) -> Result<LastLog, ChangeError> {
        let content = log.content.bytes();
        let LogHeader { number, id, previous, .. } = log.header;
        let end = self.take(log, content)?;
        if let Some(proof) = record::proof_of_damage(content, end, id) {
            let reason = format!(
                "there is no whole record, but when that at byte {proof} was written, there was one"
            );
            return Err(self.damaged(log, end, reason));
        }
        let dropped = content.len() - end;
        if dropped > 0 {
            (self.watch)(Seen::Dropped { bytes: dropped });
            tracing::warn!(
                log = %self.storage.path(&name_of(number)).display(),
                offset = end,
                dropped,
                position = self.state.position(),
                "the log ends in a record that is incomplete or damaged: it is dropped, as one \
                 that was being written when the process or the machine stopped"
            );
        }
        let may_go_on = dropped == 0 && log.header.format == FORMAT;
        Ok(LastLog { number, id, previous, bytes: end as u64, may_go_on })
    }

    /// Applies records up to the first that is not whole, and tells where that is.
    fn take(&mut self, log: &Log, content: &[u8]) -> Result<usize, ChangeError> {
        self.reserved = log.header.reserved;
        (self.watch)(Seen::Log { number: log.header.number, bytes: content.len() });
        let mut offset = LOG_HEADER_BYTES;
        while let Some(record) = record::read(content, offset, log.header.id) {
            self.apply(&record).map_err(|reason| self.damaged(log, offset, reason))?;
            offset = record.end;
        }
        Ok(offset)
    }

    fn apply(&mut self, record: &Record<'_>) -> Result<(), &'static str> {
        let (last, position) = (self.state.position(), record.header.position);
        match record.header.kind {
            Kind::Reservation => {
                let through = Fields(record.payload).u64().filter(|&through| through >= last);
                self.reserved =
                    through.filter(|_| position == last).ok_or("it reserves nothing")?;
            }
            Kind::Batch => {
                let is_next = position == last + 1;
                if !is_next && (self.reserved <= last || position != self.reserved + 1) {
                    return Err("its position does not follow that of the batch before");
                }
                let payload = Payload::read(&self.base.schema, record.payload)?;
                if !self.state.has_numbers_for(payload.upserts()) {
                    return Err("there are no numbers left for its rows");
                }
                let prepared = Prepared::new(&self.base.schema, &payload)?;
                let counts = self.state.apply(&payload, prepared, position);
                (self.watch)(Seen::Batch { position, payload: &payload, counts });
                if let Some(request) = payload.request() {
                    let answer = Answer { content: payload.content(), position, counts };
                    self.requests.put(request.key, request.at, answer);
                }
            }
        }
        Ok(())
    }
}
