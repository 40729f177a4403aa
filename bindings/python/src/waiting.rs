//! Waiting without the interpreter's lock, until there is an answer or Ctrl-C.

use std::ops::ControlFlow;
use std::thread;
use std::time::{Duration, Instant};

use kindred::queue::SubmitError;
use kindred::{Answering, Error};
use pyo3::call::PyCallArgs;
use pyo3::exceptions::PyKeyboardInterrupt;
use pyo3::prelude::*;

use crate::errors;

/// How often Python's signals are looked at.
const EVERY: Duration = Duration::from_millis(50);

/// How long a question waits for room in the queue.
const LONGEST: Duration = Duration::from_secs(30);

/// A queue that says it has room at once is asked again after this.
const SHORTEST_PAUSE: Duration = Duration::from_millis(1);

/// Looks at Python's signals and keeps the exception that one raised, such as `KeyboardInterrupt`.
#[derive(Default)]
pub(crate) struct Signals(Option<PyErr>);

impl Signals {
    /// Whether to go on. `also` is called with the lock; its error ends the work, too.
    pub(crate) fn go_on(
        &mut self,
        also: impl FnOnce(Python<'_>) -> PyResult<()>,
    ) -> ControlFlow<()> {
        match Python::attach(|py| py.check_signals().and_then(|()| also(py))) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                self.0 = Some(error);
                ControlFlow::Break(())
            }
        }
    }

    /// The same, and calls `progress` with what is done.
    pub(crate) fn go_on_telling(
        &mut self,
        progress: Option<&Py<PyAny>>,
        done: impl for<'py> PyCallArgs<'py>,
    ) -> ControlFlow<()> {
        self.go_on(|py| progress.map_or(Ok(()), |tell| tell.call1(py, done).map(drop)))
    }

    /// The exception that ended the work.
    pub(crate) fn raised(self) -> PyErr {
        self.0.unwrap_or_else(|| PyKeyboardInterrupt::new_err(()))
    }
}

/// Asks, waits for the answer and makes its Python object. While other threads of this process fill
/// the queue, it asks again.
pub(crate) fn wait<'a, T: Send, R>(
    py: Python<'_>,
    ask: impl Fn() -> Answering<'a, Result<T, Error>> + Sync + Send,
    convert: impl FnOnce(T) -> PyResult<R>,
) -> PyResult<R> {
    let mut signals = Signals::default();
    let until = Instant::now() + LONGEST;
    let answer = py.detach(|| {
        loop {
            let answer = ask().wait_while(EVERY, || signals.go_on(|_| Ok(())));
            match answer {
                Some(Err(Error::NotAnswered(SubmitError::Full { retry_after, .. })))
                    if Instant::now() < until =>
                {
                    thread::sleep(retry_after.clamp(SHORTEST_PAUSE, EVERY));
                    if signals.go_on(|_| Ok(())).is_break() {
                        return None;
                    }
                }
                answer => return answer,
            }
        }
    });
    match answer {
        Some(Ok(answer)) => convert(answer),
        Some(Err(error)) => Err(errors::of_question(error)),
        None => Err(signals.raised()),
    }
}
