//! Threads that ask for ranges of rows and write the answers where they belong.
//!
//! Each has one job in flight, a runtime on which its answers are handed out, and buffers that it uses again.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use contract::{Filter, Hit, Query, QueryError, QueryVector, Row};
use model_store::ModelStore;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;

use super::journal::Done;
use super::npz::Rows;
use super::work::Tables;
use super::{GraphError, Identity, Told};
use crate::asking::Asking;
use crate::queue::SubmitError;

/// How often a job is asked again after its pass failed.
const TRIES: usize = 5;

/// Whether to stop.
pub(super) struct Stop(watch::Sender<bool>);

impl Stop {
    pub(super) fn new() -> Self {
        Self(watch::Sender::new(false))
    }

    pub(super) fn stop(&self) {
        self.0.send_replace(true);
    }

    fn is_stopped(&self) -> bool {
        *self.0.borrow()
    }

    async fn stopped(&self) {
        // The sender lives as long as this.
        let _ = self.0.subscribe().wait_for(|stopped| *stopped).await;
    }
}

/// What all threads ask by.
pub(super) struct Asker<'s, 'a> {
    pub(super) model: &'s Arc<ModelStore>,
    /// Gives what each job is asked through.
    pub(super) asking: &'s (dyn Fn() -> Asking<'a> + Sync),
    pub(super) identity: &'s Identity,
    pub(super) tables: &'s Tables,
    /// The ranges that are not done.
    pub(super) open: &'s Open,
    pub(super) stop: &'s Stop,
}

/// Ranges that threads take in turn.
pub(super) struct Open {
    ranges: Vec<u64>,
    next: AtomicUsize,
}

impl Open {
    pub(super) fn new(ranges: Vec<u64>) -> Self {
        Self { ranges, next: AtomicUsize::new(0) }
    }

    pub(super) fn len(&self) -> usize {
        self.ranges.len()
    }

    fn take(&self) -> Option<u64> {
        self.ranges.get(self.next.fetch_add(1, Ordering::Relaxed)).copied()
    }
}

/// Ends the work of a thread early.
enum Early {
    Stopped,
    Failed(GraphError),
}

impl<E: Into<GraphError>> From<E> for Early {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// The answers of a range, as they are written.
struct Buffers {
    indices: Vec<u8>,
    scores: Vec<u8>,
    edges: u64,
}

impl Buffers {
    /// As if no row had a neighbour: index −1, score NaN.
    fn clear(&mut self, rows: usize, k: usize) {
        self.indices.clear();
        self.indices.resize(rows * k * 8, 0xff);
        self.scores.clear();
        self.scores.reserve(rows * k * 8);
        let nan = f64::NAN.to_le_bytes();
        (0..rows * k).for_each(|_| self.scores.extend_from_slice(&nan));
        self.edges = 0;
    }

    /// The neighbours of a row, which has this place in its range.
    fn put(&mut self, place: usize, k: usize, hits: &[Hit]) {
        let of_row = place * k * 8..(place + 1) * k * 8;
        let indices = self.indices[of_row.clone()].as_chunks_mut::<8>().0;
        let scores = self.scores[of_row].as_chunks_mut::<8>().0;
        for ((hit, index), score) in hits.iter().zip(indices).zip(scores) {
            *index = i64::from(hit.row.0).to_le_bytes();
            *score = hit.score.to_le_bytes();
        }
        self.edges += hits.len().min(k) as u64;
    }
}

impl Asker<'_, '_> {
    /// Asks for ranges until all are taken, one fails, or the work is stopped. This is one of `threads` threads.
    ///
    /// Jobs that wait together share each pass. If all began together they would also end together, and the engine would wait
    /// until they are written. So the first range of a thread is cut, each at another place.
    pub(super) fn run(&self, number: usize, threads: usize, tell: &Sender<Told>) {
        let runtime = match Builder::new_current_thread().build() {
            Ok(runtime) => runtime,
            Err(source) => {
                let error = GraphError::io("start a thread for", self.tables.folder())(source);
                let _ = tell.send(Err(error));
                return;
            }
        };
        let mut buffers = Buffers { indices: Vec::new(), scores: Vec::new(), edges: 0 };
        // Halved where the queue has no room for a job of a whole range.
        let mut together = self.identity.rows_per_range as usize;
        let mut cut = Some((together * (number + 1)).div_ceil(threads));
        while !self.stop.is_stopped()
            && let Some(range) = self.open.take()
        {
            let told = self
                .range(&runtime, range, &mut together, cut.take(), &mut buffers)
                .and_then(|()| Ok(self.write(range, &buffers)?));
            let told = match told {
                Ok(done) => Ok((range, done)),
                Err(Early::Failed(error)) => Err(error),
                Err(Early::Stopped) => return,
            };
            // Nobody listens any more if the work has failed.
            if tell.send(told).is_err() {
                return;
            }
        }
    }

    /// Asks for a range: `together` rows at a time, or at first `cut`.
    fn range(
        &self,
        runtime: &Runtime,
        range: u64,
        together: &mut usize,
        mut cut: Option<usize>,
        buffers: &mut Buffers,
    ) -> Result<(), Early> {
        let (rows, k) = (self.identity.range(range), self.identity.k as usize);
        buffers.clear((rows.end - rows.start) as usize, k);
        let mut next = rows.start;
        let mut failed = 0;
        while next < rows.end {
            let count = (*together).min(cut.unwrap_or(usize::MAX));
            let some = next..rows.end.min(next + count as u64);
            let queries = self.queries(some.clone());
            if queries.is_empty() {
                next = some.end;
                continue;
            }
            let answer = runtime.block_on(async {
                tokio::select! {
                    biased;
                    () = self.stop.stopped() => None,
                    answer = (self.asking)().search(queries) => Some(answer),
                }
            });
            match answer.ok_or(Early::Stopped)? {
                Ok(answer) => {
                    let with_answers = some.clone().filter(|&row| self.has_neighbours(row));
                    for (row, hits) in with_answers.zip(&answer.hits) {
                        buffers.put((row - rows.start) as usize, k, hits);
                    }
                    (next, failed, cut) = (some.end, 0, None);
                }
                Err(SubmitError::Full { .. }) if *together > 64 => *together /= 2,
                Err(SubmitError::Full { .. }) => self.pause(Duration::from_millis(5))?,
                Err(SubmitError::EngineRestarting { retry_after }) => {
                    self.pause(retry_after.min(Duration::from_millis(200)))?;
                }
                Err(SubmitError::EngineFailed) if failed < TRIES => failed += 1,
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Writes the answers of a range where they belong.
    fn write(&self, range: u64, buffers: &Buffers) -> Result<Done, GraphError> {
        let row = self.identity.range(range).start;
        let indices = self.tables.write(Rows::Indices, row, &buffers.indices)?;
        let scores = self.tables.write(Rows::Scores, row, &buffers.scores)?;
        Ok(Done { edges: buffers.edges, checksums: [indices, scores] })
    }

    /// Whether a row can be asked for: one without a direction has no neighbours.
    fn has_neighbours(&self, row: u64) -> bool {
        QueryVector::Row(Row(row as u32)).norm(&self.model.table()) != Err(QueryError::Zero)
    }

    /// The queries of the rows that can be asked for.
    fn queries(&self, rows: Range<u64>) -> Vec<Query> {
        let table = self.model.table();
        let Identity { k, min_score, rows: first_rows, .. } = *self.identity;
        let is_part = first_rows < table.rows() as u64;
        let mut queries = Vec::with_capacity((rows.end - rows.start) as usize);
        queries.extend(rows.map(|row| Row(row as u32)).filter_map(|row| {
            let mut filter = Filter::excluding(vec![row]);
            filter.first_rows = is_part.then_some(first_rows as u32);
            filter.min_score = min_score;
            // The only fault that a row of the table can have is that it is zero.
            Query::new(&table, QueryVector::Row(row), k as usize, filter).ok()
        }));
        queries
    }

    /// This thread has nothing else to do.
    fn pause(&self, time: Duration) -> Result<(), Early> {
        std::thread::sleep(time);
        if self.stop.is_stopped() { Err(Early::Stopped) } else { Ok(()) }
    }
}
