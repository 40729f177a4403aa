//! Folding: a new base of the rows that live at a position, in the same order, in the place of an
//! old base and its logs.
//!
//! ```text
//! 1. commits wait:  all batches are synced, and a log begins; the rows are those of now
//! 2. commits go on: a folder base-….new is written beside the old base        write.rs
//!                   everything in it is synced; it is renamed to base-…
//!                   the pointer, vectors.safetensors, is replaced: the switch  place.rs
//! 3. commits wait:  the rows that came meanwhile, as those behind the new base onto.rs
//! 4. later:         the old base and its logs are removed                      place.rs
//! ```
//!
//! The log that begins in step 1 continues the old base's logs, and is the first of the new base:
//! nothing is written twice, and what was committed is in both until the old files go. Before the
//! switch a folder opens with the old base, after it with the new one, at the same position.
//!
//! Version, position and the number of every row stay. Rows of the new base have places without
//! gaps, which is what engines count in; a tensor has their numbers, which is what answers tell.
//!
//! Memory: a few pieces of 4 MiB, a bit and a half for each row of the old base, the keys of the
//! tail, and one column of attributes at a time with its texts: about 50 bytes for each of its rows
//! beside them. The tail itself is in memory anyway, and is there twice while somebody still
//! searches the old base. Disk: the new base beside the old files, which is checked before.

mod file;
mod live;
mod onto;
mod place;
mod write;

use std::ops::ControlFlow;
use std::sync::Arc;

pub(crate) use onto::Onto;
pub(crate) use place::remove_old;

use super::error::ChangeError;
use super::requests::Requests;
use super::state::Snapshot;
use super::storage::Storage;
use super::writer::Sealed;
use crate::writer::random;
use live::LiveRows;
use model_store::ModelStore;
use model_store::format::{Folded, UNFINISHED, base_name};
use write::Source;

/// The progress of a fold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FoldProgress {
    /// The part of the base that is being written.
    pub step: &'static str,
    /// Its rows so far.
    pub done: usize,
    /// All of its rows.
    pub of: usize,
}

/// Called several times a second; a break stops the fold, of which nothing is left then.
pub type OnFold<'a> = &'a mut dyn FnMut(FoldProgress) -> ControlFlow<()>;

/// The rows to fold: those at a position whose batches are all on disk.
pub(crate) struct Folding {
    pub(crate) base: Arc<ModelStore>,
    pub(crate) snapshot: Snapshot,
    pub(crate) requests: Requests,
    pub(crate) sealed: Sealed,
}

impl Folding {
    /// Writes the new base and makes it the one that counts. If it fails, the old one is.
    pub(crate) fn run(
        self,
        storage: &dyn Storage,
        on_progress: OnFold<'_>,
    ) -> Result<(Arc<ModelStore>, Onto), ChangeError> {
        let Self { base, snapshot, requests, sealed } = self;
        let root = storage.root();
        let live = LiveRows::new(snapshot.dead(), snapshot.base_rows());
        let generation = base.generation() + 1;
        let name = base_name(generation, random());
        let unknown = base.header().checksums.words;
        let folded = Folded {
            version: base.version().to_owned(),
            generation,
            position: snapshot.position(),
            next_row: snapshot.next_number(),
            first_log: sealed.first_log,
            log_before: sealed.before.map(|log| (log.id, log.bytes)),
            rows: unknown,
            requests: (0, unknown),
        };
        let source =
            Source { base: &base, snapshot: &snapshot, live: &live, requests: &requests, folded };
        place::check_room(root, source.bytes())?;
        let unfinished = format!("{name}{UNFINISHED}");
        let path = root.path(&unfinished);
        let made = root.make_folder(&unfinished).map_err(ChangeError::io("make", &path));
        let done = made
            .and_then(|()| write::write(&source, root, &unfinished, on_progress))
            .and_then(|()| place::switch(root, &unfinished, &name));
        if let Err(error) = done {
            place::give_up(root, &unfinished, &name);
            return Err(error);
        }
        let (new, _) = root.open_base()?;
        let onto = Onto::new(&new, &snapshot, live);
        Ok((new, onto))
    }
}
