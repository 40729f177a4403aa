//! Neighbours of many vectors or rows at once, as arrays.

use std::ops::{ControlFlow, Range};
use std::sync::Mutex;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::{Duration, Instant};

use contract::{Hit, Query, Row};

use super::{Kindred, LONGEST};
use crate::bulk::{Early, Jobs, Stop, StopAtEnd};
use crate::error::Error;
use crate::options::Options;
use crate::question::{Checked, has_neighbours, of_row, of_vector};

/// Queries of a job: one pass of a GPU.
const TOGETHER: usize = 1024;

/// Jobs in flight, at most: two for each of several GPUs, and some that are being made.
const MOST_JOBS: usize = 16;

/// How often the caller is asked whether to go on.
const ASK_EVERY: Duration = Duration::from_millis(50);

/// What neighbours are wanted of.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ArrayQueries<'a> {
    /// Vectors `[n, dim]`, one after another. No row is excluded by itself.
    Vectors(&'a [f32]),
    /// Rows of the model `[n]`. Each is excluded from its own neighbours, unless `include_query` is set. A row without a
    /// direction has no neighbours.
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

/// The part of the arrays that a thread fills.
struct Part<'a> {
    queries: Range<usize>,
    indices: &'a mut [i64],
    scores: &'a mut [f64],
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
    /// The nearest neighbours of many vectors or rows, as arrays: the rows and score bits that [`nearest`](Self::nearest) gives.
    /// Waits until all are there. `on_progress` is called about 20 times a second with the number of queries that are answered; a
    /// break ends the work, and there is no answer.
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
    /// See [`Error`]. A vector that can't be asked for fails all, and the message says which it is, from 0.
    /// [`Error::InvalidValue`] for options that change the form of an answer: `with_vectors`, `fold_case`, `explain`.
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
        let (n, k) = (queries.len(self.store().dim())?, options.k());
        let mut arrays = Arrays { k, indices: vec![-1; n * k], scores: vec![f64::NAN; n * k] };
        let indices = arrays.indices.chunks_mut(TOGETHER * k);
        let scores = arrays.scores.chunks_mut(TOGETHER * k);
        let parts = indices.zip(scores).enumerate().map(|(number, (indices, scores))| {
            let first = number * TOGETHER;
            Part { queries: first..n.min(first + TOGETHER), indices, scores }
        });
        let (parts, threads) = (Mutex::new(parts), n.div_ceil(TOGETHER).min(MOST_JOBS));
        let deadline = match timeout {
            Some(timeout) => self.deadline(Some(timeout)),
            None => Instant::now() + LONGEST,
        };
        let asking = || self.shared.queue.asking(&self.account, deadline);
        let stop = Stop::new();
        let (tell, told) = channel::<Result<usize, Error>>();
        // The threads of one caller begin with different parts of a job, so that their passes do not end together.
        let work = |number: usize| -> Result<(), Early> {
            let mut jobs = Jobs::new(&asking, &stop, TOGETHER, (number, threads))
                .map_err(|_| Early::Failed(Error::Internal))?;
            loop {
                let part = parts.lock().ok().and_then(|mut parts| parts.next());
                let Some(part) = part else { return Ok(()) };
                let answered = part.queries.len();
                self.fill(&mut jobs, &queries, &options, part)?;
                let _ = tell.send(Ok(answered));
            }
        };
        let result = thread::scope(|scope| {
            let _at_the_end = StopAtEnd(&stop);
            for number in 0..threads {
                let (tell, work) = (tell.clone(), &work);
                let run = move || match work(number) {
                    Ok(()) | Err(Early::Stopped) => {}
                    Err(Early::Failed(error)) => drop(tell.send(Err(error))),
                };
                let thread = thread::Builder::new().name(format!("kindred-array-{number}"));
                thread.spawn_scoped(scope, run).map_err(|_| Error::Internal)?;
            }
            let mut answered = 0;
            while answered < n {
                match told.recv_timeout(ASK_EVERY) {
                    Ok(Ok(more)) => answered += more,
                    Ok(Err(error)) => return Err(error),
                    Err(RecvTimeoutError::Disconnected) => return Err(Error::Internal),
                    Err(RecvTimeoutError::Timeout) => {
                        if on_progress(answered).is_break() {
                            return Ok(false);
                        }
                    }
                }
            }
            Ok(true)
        });
        Ok(result?.then_some(arrays))
    }

    /// Asks for the queries of a part of the arrays.
    fn fill(
        &self,
        jobs: &mut Jobs<'_, '_>,
        queries: &ArrayQueries<'_>,
        options: &Checked,
        part: Part<'_>,
    ) -> Result<(), Early> {
        let Part { queries: range, indices, scores } = part;
        let first = range.start;
        let query = |index: usize| self.array_query(queries, options, index);
        // A row without a direction is not asked for.
        let make = |some: Range<u64>| -> Result<Vec<Query>, Error> {
            some.filter_map(|index| query(index as usize).transpose()).collect()
        };
        let has_query = |index: u64| match queries {
            ArrayQueries::Vectors(_) => true,
            ArrayQueries::Rows(rows) => has_neighbours(self.store(), Row(rows[index as usize])),
        };
        let put = |some: Range<u64>, answers: &[Vec<Hit>]| {
            for (index, hits) in some.filter(|&index| has_query(index)).zip(answers) {
                let place = (index as usize - first) * options.k();
                let to = indices[place..].iter_mut().zip(&mut scores[place..]);
                for (hit, (index, score)) in hits.iter().zip(to) {
                    (*index, *score) = (i64::from(hit.row.0), hit.score);
                }
            }
        };
        jobs.ask(range.start as u64..range.end as u64, make, put)
    }

    /// One query of an array; `None` for a row without a direction.
    fn array_query(
        &self,
        queries: &ArrayQueries<'_>,
        options: &Checked,
        index: usize,
    ) -> Result<Option<Query>, Error> {
        let model = self.store();
        match queries {
            ArrayQueries::Rows(rows) => of_row(model, rows[index], options),
            ArrayQueries::Vectors(vectors) => {
                let vector = &vectors[index * model.dim()..][..model.dim()];
                of_vector(model, vector, options).map(Some).map_err(|error| error.of_vector(index))
            }
        }
    }
}
