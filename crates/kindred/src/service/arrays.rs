//! Neighbours of many vectors or rows at once, as arrays.

use std::io;
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::{Components, Hit, Query, Row, ScoringVector, Staging};
use cpu_core::copy_with_norms;
use model_store::ModelStore;

use super::{Kindred, LONGEST};
use crate::answering::Answering;
use crate::asking::Asking;
use crate::error::Error;
use crate::jobs::{self, Cancellation, Interrupted, Keep, Searches};
use crate::options::Options;
use crate::question::{Checked, has_neighbours, of_row};
use crate::queue::SubmitError;

/// Queries of a job: one pass of a GPU.
const TOGETHER: usize = 1024;

/// Jobs in flight, at most: two for each of several GPUs, and some that are being made.
const MOST_JOBS: usize = 16;

/// How often the caller is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// Memory for the vectors of a few passes, `[dim]` each; none if they would take very much. Until
/// it is used, it takes none.
pub(super) fn staging(dim: usize) -> Option<Arc<Staging>> {
    const BLOCKS: usize = 4;
    const MOST_COMPONENTS: usize = 1 << 21;
    let components = TOGETHER * dim;
    (components <= MOST_COMPONENTS).then(|| Arc::new(Staging::new(BLOCKS, components)))
}

/// What neighbours are wanted of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrayQueries<'a> {
    /// Vectors `[n, dim]`, one after another. No row is excluded by itself.
    Vectors(&'a [f32]),
    /// Rows of the model `[n]`. Each is excluded from its own neighbours, unless `include_query` is
    /// set. A row without a direction has no neighbours.
    Rows(&'a [u32]),
}

/// Neighbours as arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct Arrays {
    /// Neighbours of each query.
    pub k: usize,
    /// Their rows, `[n, k]`, best first. Where a query has fewer than k neighbours, −1.
    pub indices: Vec<i64>,
    /// Their scores, `[n, k]`. Where a query has fewer than k neighbours, NaN.
    pub scores: Vec<f64>,
}

/// The part of the arrays that is filled together.
struct Piece<'a> {
    queries: Range<usize>,
    indices: &'a mut [i64],
    scores: &'a mut [f64],
}

/// The queries, and what they are asked of.
struct ArrayRequest<'a> {
    model: &'a ModelStore,
    staging: Option<&'a Staging>,
    queries: ArrayQueries<'a>,
    options: &'a Checked,
}

/// How a single job ended.
enum Ended {
    Answered,
    Stopped,
    /// It can be asked again.
    AskAgain,
}

/// Counts the queries that are answered, on the thread that waits for them.
struct Progress<F> {
    answered: usize,
    on_progress: F,
}

impl<F: FnMut(usize) -> ControlFlow<()>> Keep<usize, Error> for Progress<F> {
    const IN_ORDER: bool = false;
    const TELL_EVERY: Duration = ASK_EVERY;

    fn keep(&mut self, answered: usize) -> Result<(), Error> {
        self.answered += answered;
        Ok(())
    }

    fn tell(&mut self) -> ControlFlow<()> {
        (self.on_progress)(self.answered)
    }

    fn no_thread(&self, _: io::Error) -> Error {
        Error::Internal
    }
}

impl ArrayQueries<'_> {
    /// Number of queries.
    fn len(&self, dim: usize) -> Result<usize, Error> {
        match self {
            Self::Rows(rows) => Ok(rows.len()),
            Self::Vectors(vectors) if vectors.len().is_multiple_of(dim) => Ok(vectors.len() / dim),
            Self::Vectors(vectors) => {
                let found = vectors.len() % dim;
                Err(Error::DimensionMismatch { found, expected: dim })
            }
        }
    }
}

impl Kindred {
    /// The nearest neighbours of many vectors or rows, as arrays: the rows and score bits that
    /// [`nearest`](Self::nearest) gives. Waits until all are there. `on_progress` is called about
    /// 20 times a second with the number of queries that are answered; a break ends the work, and
    /// there is no answer.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    ///
    /// use kindred::{ArrayQueries, Kindred, Model, Options, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let rows = ["frog", "piano"].map(|word| kindred.model().row(word).unwrap());
    /// let options = Options::new().k(3);
    /// let found = kindred.nearest_arrays(ArrayQueries::Rows(&rows), options, |_| ControlFlow::Continue(()))?;
    /// let found = found.expect("nothing ended the work");
    /// assert_eq!((found.indices.len(), found.scores.len()), (6, 6));
    /// assert_eq!(kindred.model().word(found.indices[0] as u32), Some("frogs"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// See [`Error`]. A vector that can't be asked for fails all, and the message says which it is,
    /// from 0. [`Error::InvalidValue`] for options that change the form of an answer, such
    /// as `explain`.
    pub fn nearest_arrays(
        &self,
        queries: ArrayQueries<'_>,
        options: Options,
        mut on_progress: impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Option<Arrays>, Error> {
        let timeout = options.timeout_ms;
        let options = Checked::new(self.store(), options, None)?;
        if let Some(option) = options.not_for_arrays() {
            return Err(Error::invalid(option, "left out where the answer is arrays"));
        }
        let staging = self.shared.staging.as_deref();
        let request = ArrayRequest { model: self.store(), staging, queries, options: &options };
        let (n, k) = (queries.len(self.store().dim())?, options.k());
        let mut arrays = Arrays { k, indices: vec![-1; n * k], scores: vec![f64::NAN; n * k] };
        let deadline = match timeout {
            Some(timeout) => self.deadline(Some(timeout)),
            None => Instant::now() + LONGEST,
        };
        let asking = || self.shared.queue.asking(&self.account, deadline);
        if n <= TOGETHER {
            let whole =
                Piece { queries: 0..n, indices: &mut arrays.indices, scores: &mut arrays.scores };
            // A thread of its own would cost more than it could win.
            match self.one_job(&request, asking(), whole, &mut on_progress)? {
                Ended::Answered => return Ok(Some(arrays)),
                Ended::Stopped => return Ok(None),
                Ended::AskAgain => {}
            }
        }
        let indices = arrays.indices.chunks_mut(TOGETHER * k);
        let scores = arrays.scores.chunks_mut(TOGETHER * k);
        let pieces = indices.zip(scores).enumerate().map(|(number, (indices, scores))| {
            let first = number * TOGETHER;
            Piece { queries: first..n.min(first + TOGETHER), indices, scores }
        });
        let (threads, cancellation) = (n.div_ceil(TOGETHER).min(MOST_JOBS), Cancellation::new());
        let mut progress = Progress { answered: 0, on_progress };
        let worker = |number| {
            let threads = (number, threads);
            let mut searches = Searches::new(&asking, &cancellation, TOGETHER, threads)?;
            let request = &request;
            Ok::<_, io::Error>(move |piece| request.answer(&mut searches, piece))
        };
        let workers: io::Result<Vec<_>> = (0..threads).map(worker).collect();
        let workers = workers.map_err(|source| progress.no_thread(source))?;
        jobs::run("kindred-array", workers, pieces, &mut progress, &cancellation)?;
        let is_complete = progress.answered == n;
        Ok(is_complete.then_some(arrays))
    }

    /// Asks for all queries in one job.
    fn one_job(
        &self,
        request: &ArrayRequest<'_>,
        asking: Asking<'_>,
        mut whole: Piece<'_>,
        on_progress: &mut impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Ended, Error> {
        let all = 0..whole.queries.end as u64;
        let queries = request.queries(all.clone())?;
        let answering = Answering::new(&self.shared.timer, asking.search(queries));
        match answering.wait_while(ASK_EVERY, || on_progress(0)) {
            None => Ok(Ended::Stopped),
            Some(Ok(answer)) => {
                request.put(all, &answer.responses, &mut whole);
                Ok(Ended::Answered)
            }
            Some(Err(
                SubmitError::Full { .. }
                | SubmitError::EngineFailed
                | SubmitError::EngineRestarting { .. },
            )) => Ok(Ended::AskAgain),
            Some(Err(error)) => Err(error.into()),
        }
    }
}

impl ArrayRequest<'_> {
    /// Fills a piece, and returns the number of its queries.
    fn answer(
        &self,
        searches: &mut Searches<'_, '_>,
        mut piece: Piece<'_>,
    ) -> Result<usize, Interrupted> {
        let all = piece.queries.start as u64..piece.queries.end as u64;
        let queries = |some| self.queries(some);
        searches.all(all, queries, |some, hits| self.put(some, hits, &mut piece))?;
        Ok(piece.queries.len())
    }

    /// Some of the queries; a row without a direction has none.
    fn queries(&self, some: Range<u64>) -> Result<Vec<Query>, Error> {
        let some = some.start as usize..some.end as usize;
        let mut queries = Vec::with_capacity(some.len());
        match self.queries {
            ArrayQueries::Rows(rows) => {
                for &row in &rows[some] {
                    queries.extend(of_row(self.model, row, self.options)?);
                }
            }
            ArrayQueries::Vectors(vectors) => {
                let (dim, first) = (self.model.dim(), some.start);
                // At once: an allocation for each would take longer than its query otherwise does,
                // and an engine copies them faster from one place.
                let vectors = &vectors[some.start * dim..some.end * dim];
                let (copied, from, norms) = self.copied(vectors);
                let table = self.model.table();
                for (index, norm) in norms.into_iter().enumerate() {
                    let from = from + index * dim;
                    let vector = Components::part(&copied, from..from + dim);
                    let vector = ScoringVector::with_norm(&table, vector, norm)
                        .map_err(|error| Error::from(error).of_vector(first + index))?;
                    queries.push(self.options.query_of(vector));
                }
            }
        }
        Ok(queries)
    }

    /// A copy of vectors `[n, dim]`, the index of its first component, and the norms `[n]`. The
    /// copy is where a GPU fetches it from by itself, if that has room.
    fn copied(&self, vectors: &[f32]) -> (Arc<Vec<f32>>, usize, Vec<f64>) {
        let copy = |to: &mut [f32]| copy_with_norms(vectors, self.model.dim(), to);
        let staged = self.staging.and_then(|staging| staging.fill(vectors.len(), copy));
        staged.unwrap_or_else(|| {
            let mut copied = vec![0.0; vectors.len()];
            let norms = copy(&mut copied);
            (Arc::new(copied), 0, norms)
        })
    }

    fn has_query(&self, index: u64) -> bool {
        match self.queries {
            ArrayQueries::Vectors(_) => true,
            ArrayQueries::Rows(rows) => has_neighbours(self.model, Row(rows[index as usize])),
        }
    }

    /// Writes the answers to some queries where they belong.
    fn put(&self, some: Range<u64>, answers: &[Vec<Hit>], piece: &mut Piece<'_>) {
        for (index, hits) in some.filter(|&index| self.has_query(index)).zip(answers) {
            let place = (index as usize - piece.queries.start) * self.options.k();
            let to = piece.indices[place..].iter_mut().zip(&mut piece.scores[place..]);
            for (hit, (index, score)) in hits.iter().zip(to) {
                (*index, *score) = (i64::from(hit.row.0), hit.score);
            }
        }
    }
}
