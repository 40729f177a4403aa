//! An expander's terms in PyTorch's memory, for `kindred.torch`, which checks tensors and gives
//! their addresses.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use kindred::borrowed_terms::{BorrowedTable, BorrowedTerms as Terms, GpuError, SumsOfRows};
use numpy::PyArray1;
use pyo3::exceptions::PyMemoryError;
use pyo3::prelude::*;

use crate::errors;
use crate::process::Process;

/// What the owner thread does.
type Work = Box<dyn FnOnce(&mut Terms) + Send>;

/// Terms on a GPU, with a thread that owns what is there. Methods may be called from any thread;
/// each waits for its work.
#[pyclass(frozen, module = "kindred._kindred")]
pub(crate) struct BorrowedTerms {
    // Dropped before the thread is waited for, which ends then.
    work: Option<Sender<Work>>,
    owner: Option<JoinHandle<()>>,
    process: Process,
}

/// Components, biases, rows, dim.
#[derive(FromPyObject)]
pub(crate) struct Table(u64, Option<u64>, usize, usize);

impl From<Table> for BorrowedTable {
    fn from(Table(components, biases, rows, dim): Table) -> Self {
        Self { components, biases, rows, dim }
    }
}

type Touched<'py> = (
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<i64>>,
    Bound<'py, PyArray1<f32>>,
    Vec<u32>,
);

// SAFETY of all below: `kindred.torch` promises what the functions of `Terms` ask for: the
// addresses are those of tensors with these shapes and types, which it keeps until the call
// returns, and the stream is PyTorch's current one on their device.
#[allow(unsafe_code)]
#[pymethods]
impl BorrowedTerms {
    /// Opens a GPU.
    #[new]
    fn open(py: Python<'_>, ordinal: u32) -> PyResult<Self> {
        let process = Process::that_starts_threads()?;
        let (work, todo) = channel::<Work>();
        let (tell, told) = channel();
        let run = move || {
            let mut terms = match Terms::new(ordinal) {
                Ok(terms) => terms,
                Err(error) => return drop(tell.send(Err(error))),
            };
            if tell.send(Ok(())).is_ok() {
                todo.into_iter().for_each(|work| work(&mut terms));
            }
        };
        let owner = std::thread::Builder::new().name("kindred-terms".to_owned()).spawn(run)?;
        let opened = Self { work: Some(work), owner: Some(owner), process };
        py.detach(move || answer(told))?;
        Ok(opened)
    }

    #[classattr]
    fn most_texts() -> usize {
        Terms::MAX_TEXTS
    }

    #[classattr]
    fn most_tokens() -> usize {
        Terms::MAX_TOKENS
    }

    fn round(
        &self,
        py: Python<'_>,
        table: Table,
        largest_bias: f64,
        token_norm: f64,
        stream: u64,
    ) -> PyResult<()> {
        let of = (largest_bias, token_norm);
        // SAFETY: see above.
        self.run(py, move |terms| unsafe { terms.round(table.into(), of, stream) })
    }

    fn round_again(&self, py: Python<'_>, table: Table, stream: u64) -> PyResult<bool> {
        // SAFETY: see above.
        self.run(py, move |terms| unsafe { terms.round_again(table.into(), stream) })
    }

    /// The text, the term, the token and the value of each touched term, and the texts that touch
    /// too many.
    fn touched<'py>(
        &self,
        py: Python<'py>,
        vectors: u64,
        ends: Vec<usize>,
        stream: u64,
    ) -> PyResult<Touched<'py>> {
        let (texts, ids, tokens, values, over) = self.run(py, move |terms| {
            // SAFETY: see above.
            let (touched, over) = unsafe { terms.touched(vectors, &ends, stream)? };
            let start = |text: u32| (text as usize).checked_sub(1).map_or(0, |before| ends[before]);
            let texts = touched.iter().map(|one| i64::from(one.text));
            let ids = touched.iter().map(|one| i64::from(one.term));
            let tokens = touched.iter().map(|one| start(one.text) as i64 + i64::from(one.position));
            let values = touched.iter().map(|one| one.value as f32);
            let (texts, ids): (Vec<_>, Vec<_>) = (texts.collect(), ids.collect());
            Ok((texts, ids, tokens.collect::<Vec<_>>(), values.collect::<Vec<_>>(), over))
        })?;
        let [texts, ids, tokens] = [texts, ids, tokens].map(|all| PyArray1::from_vec(py, all));
        Ok((texts, ids, tokens, PyArray1::from_vec(py, values), over))
    }

    /// Starts sums of rows: `entries` are indices, weights and begins, `to` are sums
    /// `[groups, dim]` and totals.
    fn sum(
        &self,
        py: Python<'_>,
        rows: u64,
        entries: (u64, u64, u64),
        to: (u64, u64),
        shape: (usize, usize),
        stream: u64,
    ) -> PyResult<()> {
        let ((indices, weights, begins), (sums, totals), (groups, dim)) = (entries, to, shape);
        let of = SumsOfRows { rows, indices, weights, begins, sums, totals, dim, groups };
        // SAFETY: see above.
        self.run(py, move |terms| unsafe { terms.sum(of, stream) })
    }
}

impl BorrowedTerms {
    /// Has the owner do something, without the interpreter's lock.
    fn run<T: Send + 'static>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut Terms) -> Result<T, GpuError> + Send + 'static,
    ) -> PyResult<T> {
        self.process.check()?;
        let (tell, told) = channel();
        let work: Work = Box::new(move |terms| drop(tell.send(work(terms))));
        py.detach(move || {
            // If the owner has ended, `told` says so.
            let _ = self.work.as_ref().map(|to| to.send(work));
            answer(told)
        })
    }
}

/// Waits for what the owner says.
fn answer<T>(told: Receiver<Result<T, GpuError>>) -> PyResult<T> {
    match told.recv() {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(error @ GpuError::DoesNotFit { .. })) => {
            Err(PyMemoryError::new_err(error.to_string()))
        }
        Ok(Err(GpuError::NotFinite)) => Err(errors::not_finite(&GpuError::NotFinite.to_string())),
        Ok(Err(error)) => Err(errors::engine(error)),
        Err(_) => Err(errors::engine("the thread that owns the GPU's terms has ended by a panic")),
    }
}

impl Drop for BorrowedTerms {
    fn drop(&mut self) {
        self.work = None;
        // After a fork there is no such thread.
        if self.process.check().is_ok()
            && let Some(owner) = self.owner.take()
        {
            let _ = owner.join();
        }
    }
}
