//! Chunks of whole records: read by one thread, parsed on all cores, delivered in order.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

use super::formats::{BadBytes, MAX_RECORD_BYTES, Parsed, Plan, RecordUnit};
use super::input::ReadSoFar;
use super::unpack::Unpacked;
use crate::ModelError;

/// Bytes per chunk; small enough to pass between cores through their caches.
const CHUNK_BYTES: usize = 1 << 20;

/// Chunks in flight per core: enough to keep all cores busy, few enough to bound memory.
const CHUNKS_PER_CORE: usize = 4;

/// A chunk being parsed.
struct Chunk {
    /// Its offset in the decompressed bytes.
    start: u64,
    parsed: Receiver<Parsed>,
}

/// Why there are no more chunks.
enum Fault {
    Model(ModelError),
    Bytes { start: u64, bad: BadBytes },
}

/// The position of a chunk.
#[derive(Debug, Clone, Copy)]
pub(super) struct Position {
    /// Records before it.
    pub(super) records: u64,
    /// Decompressed bytes before it.
    pub(super) bytes: u64,
}

/// Reads `unpacked`, whose first bytes are already in `head`, according to `plan`, and passes the
/// content to `deliver`: at most `limit` records. Stops if `deliver` fails.
///
/// Returns the number of records, and what was unusual about the end of the file.
pub(super) fn run(
    unpacked: &mut Unpacked<'_>,
    head: Vec<u8>,
    plan: Plan,
    limit: Option<u64>,
    mut deliver: impl FnMut(Position, Parsed) -> Result<(), ModelError>,
) -> Result<(u64, Vec<String>), ModelError> {
    let in_flight = CHUNKS_PER_CORE * rayon::current_num_threads();
    let (chunks, arriving) = sync_channel(in_flight);
    let so_far = unpacked.progress().clone();
    let unit = plan.records;
    thread::scope(|scope| {
        let reading =
            thread::Builder::new().name("kindred-read".into()).spawn_scoped(scope, || {
                let warnings = read_chunks(unpacked, head, plan, limit, &chunks);
                let warnings = warnings.unwrap_or_else(|fault| {
                    // Nobody waits for it if `deliver` has failed.
                    let _ = chunks.send(Err(fault));
                    Vec::new()
                });
                drop(chunks);
                warnings
            });
        let reading = reading.map_err(ModelError::io("start a thread that reads", &so_far.path))?;
        // Moved in here, so that it is dropped when `deliver` fails, and the reader stops.
        let arriving: Receiver<Result<Chunk, Fault>> = arriving;
        let mut records = 0;
        for chunk in &arriving {
            let Chunk { start, parsed } =
                chunk.map_err(|fault| fault.said(unit, records, &so_far))?;
            let parsed = parsed.recv().expect("a chunk is taken apart, or the process ends");
            let position = Position { records, bytes: start };
            records += parsed.records;
            deliver(position, parsed)?;
        }
        let warnings = reading.join().expect("the thread that reads does not panic");
        Ok((records, warnings))
    })
}

/// Returns what was unusual about the end of the file.
fn read_chunks(
    unpacked: &mut Unpacked<'_>,
    head: Vec<u8>,
    mut plan: Plan,
    limit: Option<u64>,
    chunks: &SyncSender<Result<Chunk, Fault>>,
) -> Result<Vec<String>, Fault> {
    let mut at_end = head.len() < MAX_RECORD_BYTES;
    let mut buffer = head;
    // The buffer's offset in the decompressed bytes.
    let mut start = 0;
    // Records before it.
    let mut first = 0;
    while plan.skip - start > buffer.len() as u64 && !at_end {
        start += buffer.len() as u64;
        buffer.clear();
        at_end = !unpacked.fill(&mut buffer, CHUNK_BYTES).map_err(Fault::Model)?;
    }
    let skipped = (plan.skip - start).min(buffer.len() as u64);
    buffer.drain(..skipped as usize);
    start += skipped;
    loop {
        let wanted = limit.map(|limit| limit.saturating_sub(first));
        let end = wanted.and_then(|wanted| Some((plan.framing.end_of(&buffer, wanted)?, wanted)));
        let (whole, found) = match end {
            Some(end) => end,
            None => {
                let whole = plan.framing.whole(&buffer, at_end);
                whole.map_err(|bad| Fault::Bytes { start, bad })?
            }
        };
        // Nothing after the records that are wanted is looked at.
        at_end |= end.is_some();
        let rest = &buffer[whole..];
        // A record that does not fit in one chunk may fit in more.
        let room = if whole > 0 { CHUNK_BYTES } else { MAX_RECORD_BYTES };
        let mut next = Vec::new();
        if !at_end {
            next.reserve_exact(room.max(rest.len()));
            next.extend_from_slice(rest);
        }
        if whole > 0 {
            buffer.truncate(whole);
            let (parsed, waiting) = sync_channel(1);
            let parser = plan.parser.clone();
            rayon::spawn(move || {
                // Nobody waits for it if `deliver` has failed.
                let _ = parsed.send(parser.parse(&buffer, first));
            });
            if chunks.send(Ok(Chunk { start, parsed: waiting })).is_err() {
                return Ok(Vec::new());
            }
        }
        if at_end {
            // The end of the file was seen only if the framing looked for it.
            return Ok(if end.is_some() { Vec::new() } else { plan.framing.warnings() });
        }
        start += whole as u64;
        first += found;
        buffer = next;
        if plan.framing.is_done() {
            // The rest is not vectors; it is only read for the checksum.
            start += buffer.len() as u64;
            buffer.clear();
        }
        let missing = room.saturating_sub(buffer.len());
        at_end = !unpacked.fill(&mut buffer, missing).map_err(Fault::Model)?;
    }
}

impl Fault {
    fn said(self, unit: RecordUnit, records: u64, so_far: &ReadSoFar) -> ModelError {
        let (start, bad) = match self {
            Self::Model(error) => return error,
            Self::Bytes { start, bad } => (start, bad),
        };
        let byte = byte_name(start + bad.byte as u64, so_far);
        let location = match (unit, bad.record) {
            (RecordUnit::Line { first }, _) => format!("line {}", first + records),
            (RecordUnit::Row | RecordUnit::Record, Some(record)) => {
                format!("{} {record}, {byte}", unit.name())
            }
            (RecordUnit::Row | RecordUnit::Record, None) => byte,
        };
        so_far.bad(format!("{location}: {}", bad.reason))
    }
}

/// How messages name a byte, which may differ from its position on disk.
pub(super) fn byte_name(byte: u64, so_far: &ReadSoFar) -> String {
    match so_far.packing {
        None => format!("byte {byte}"),
        Some(_) => format!("byte {byte} of the decompressed data"),
    }
}
