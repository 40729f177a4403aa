//! Neighbours of many vectors or rows at once, as arrays.

use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::time::Duration;

use contract::{Components, Hit, Query, Row, ScoringVector, Staging};
use cpu_core::copy_with_norms;
use kindred::asking::Asking;
use kindred::question::Checked;
use kindred::queue::SubmitError;
use kindred::rows::Rows;
use kindred::{Error, Kindred, Options};

use crate::cancellation::{Cancellation, Interrupted};
use crate::error::JobError;
use crate::requests::{Searches, has_neighbours};
use crate::run::{self, Keep};

/// Queries of a job: one pass of a GPU.
const TOGETHER: usize = kindred::STAGED_TOGETHER;

/// Jobs in flight, at most: two for each of several GPUs, and some that are being made.
const MOST_JOBS: usize = 16;

/// How often the caller is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);

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
    /// The numbers of their rows, `[n, k]`, best first. Where a query has fewer than k neighbours, −1.
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
    model: &'a dyn Rows,
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

impl<F: FnMut(usize) -> ControlFlow<()>> Keep<usize> for Progress<F> {
    const IN_ORDER: bool = false;
    const TELL_EVERY: Duration = ASK_EVERY;

    fn keep(&mut self, answered: usize) -> Result<(), JobError> {
        self.answered += answered;
        Ok(())
    }

    fn tell(&mut self) -> ControlFlow<()> {
        (self.on_progress)(self.answered)
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

/// The nearest neighbours of many vectors or rows, as arrays: the rows and score bits that
/// [`Kindred::nearest`] gives. Waits until all are there. `on_progress` is called about 20 times a
/// second with the number of queries that are answered; a break ends the work, and there is no
/// answer.
///
/// ```
/// use std::ops::ControlFlow;
///
/// use jobs::arrays::{self, ArrayQueries};
/// use kindred::{Kindred, Model, Options, Settings};
///
/// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
/// let rows = ["frog", "piano"].map(|word| kindred.model().row(word).unwrap());
/// let (queries, options) = (ArrayQueries::Rows(&rows), Options::new().k(3));
/// let found = arrays::nearest(&kindred, queries, options, |_| ControlFlow::Continue(()))?;
/// let found = found.expect("nothing ended the work");
/// assert_eq!((found.indices.len(), found.scores.len()), (6, 6));
/// assert_eq!(kindred.model().word(found.indices[0] as u32), Some("frogs"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// See [`Error`]. A vector that can't be asked for fails all, and the message says which it is,
/// from 0. [`Error::InvalidValue`] for options that change the form of an answer, such as
/// `explain`.
pub fn nearest(
    kindred: &Kindred,
    queries: ArrayQueries<'_>,
    options: Options,
    mut on_progress: impl FnMut(usize) -> ControlFlow<()>,
) -> Result<Option<Arrays>, Error> {
    let (kindred, timeout) = (kindred.for_long_work().pinned(), options.timeout_ms);
    let at = kindred.at();
    let model: &dyn Rows = match &at {
        Some(at) => &**at,
        None => kindred.model().store(),
    };
    let not_for_arrays = options.not_for_arrays();
    let options = Checked::new(model, kindred.sets(), options, None)?;
    if let Some(option) = not_for_arrays {
        let expected = "left out where the answer is arrays".into();
        return Err(Error::InvalidValue { field: option.into(), expected, found: None });
    }
    let request = ArrayRequest { model, staging: kindred.staging(), queries, options: &options };
    let (n, k) = (queries.len(model.dim())?, options.k);
    let mut arrays = Arrays { k, indices: vec![-1; n * k], scores: vec![f64::NAN; n * k] };
    let asking = kindred.asking(timeout);
    if n <= TOGETHER {
        let whole =
            Piece { queries: 0..n, indices: &mut arrays.indices, scores: &mut arrays.scores };
        // A thread of its own would cost more than it could win.
        match request.in_one_job(&kindred, asking, whole, &mut on_progress)? {
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
    let (asking, request) = (|| asking, &request);
    let worker = |number| {
        let mut searches = Searches::new(&asking, &cancellation, TOGETHER, (number, threads))?;
        Ok::<_, JobError>(move |piece| request.answer(&mut searches, piece))
    };
    let workers = (0..threads).map(worker).collect::<Result<Vec<_>, _>>();
    let ran = workers.and_then(|workers| {
        run::run("kindred-array", workers, pieces, &mut progress, &cancellation)
    });
    ran.map_err(|error| match error {
        JobError::NotAnswered(error) => error,
        // The system has no room for another thread.
        _ => Error::Internal,
    })?;
    Ok((progress.answered == n).then_some(arrays))
}

impl ArrayRequest<'_> {
    /// Asks for all queries in one job.
    fn in_one_job(
        &self,
        kindred: &Kindred,
        asking: Asking<'_>,
        mut whole: Piece<'_>,
        on_progress: &mut impl FnMut(usize) -> ControlFlow<()>,
    ) -> Result<Ended, Error> {
        let all = 0..whole.queries.end as u64;
        let queries = self.queries(all.clone())?;
        let answering = kindred.answering(asking.search(queries));
        match answering.wait_while(ASK_EVERY, || on_progress(0)) {
            None => Ok(Ended::Stopped),
            Some(Ok(answer)) => {
                self.put(all, &answer.responses, &mut whole);
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
                    queries.extend(self.options.query_of_row(self.model, row)?);
                }
            }
            ArrayQueries::Vectors(vectors) => {
                let (dim, first) = (self.model.dim(), some.start);
                // At once: an allocation for each would take longer than its query otherwise does,
                // and an engine copies them faster from one place.
                let vectors = &vectors[some.start * dim..some.end * dim];
                let (copied, from, norms) = self.copied(vectors);
                // Only its shape matters, which the base has as well.
                let table = self.model.base().table();
                for (index, norm) in norms.into_iter().enumerate() {
                    let from = from + index * dim;
                    let vector = Components::part(&copied, from..from + dim);
                    let vector = ScoringVector::with_norm(&table, vector, norm)
                        .map_err(|error| of_vector(first + index, error.into()))?;
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
            let place = (index as usize - piece.queries.start) * self.options.k;
            let to = piece.indices[place..].iter_mut().zip(&mut piece.scores[place..]);
            for (hit, (index, score)) in hits.iter().skip(self.options.offset).zip(to) {
                (*index, *score) = (i64::from(self.model.number(hit.row)), hit.score);
            }
        }
    }
}

/// An error of a vector, with its index.
fn of_vector(index: usize, error: Error) -> Error {
    let of = |reason: String| format!("vector {index}: {reason}");
    match error {
        Error::ZeroQuery { reason } => Error::ZeroQuery { reason: of(reason) },
        Error::NotFinite { reason } => Error::NotFinite { reason: of(reason) },
        other => other,
    }
}
