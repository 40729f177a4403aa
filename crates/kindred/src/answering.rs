//! Pending answers, to be awaited on any executor, or waited for without one.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A pending answer: await it on any executor, or [`wait`](Self::wait) for it. Dropping it abandons the question:
/// what has not been searched by then never will be.
#[must_use = "await it, or call `wait`"]
pub struct Answering<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    timer: Handle,
}

impl<'a, T> Answering<'a, T> {
    pub(crate) fn new(timer: &Timer, future: impl Future<Output = T> + Send + 'a) -> Self {
        Self { future: Box::pin(future), timer: timer.handle.clone() }
    }

    /// Waits for it; the thread sleeps meanwhile.
    pub fn wait(self) -> T {
        // This time never passes, so nothing is asked.
        let answer = self.wait_while(Duration::MAX, || ControlFlow::Continue(()));
        answer.expect("nothing ended the waiting")
    }

    /// As [`wait`](Self::wait), but wakes up each time `every` has passed and asks whether to go on. After a break the
    /// question is abandoned, and there is no answer.
    ///
    /// ```
    /// use std::ops::ControlFlow;
    /// use std::time::Duration;
    ///
    /// use kindred::{Kindred, Model, Options, Settings};
    ///
    /// let kindred = Kindred::start(Model::demo()?, Settings::default())?;
    /// let answering = kindred.nearest("frog", Options::new());
    /// let answer = answering.wait_while(Duration::from_millis(50), || ControlFlow::Continue(()));
    /// assert!(answer.is_some_and(|answer| answer.is_ok()));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn wait_while(
        mut self,
        every: Duration,
        go_on: impl FnMut() -> ControlFlow<()>,
    ) -> Option<T> {
        // A thread of another runtime could not hand the answer out while it waits. On a thread without one, the engine's thread
        // wakes this one directly, which is one step fewer.
        let _within = Handle::try_current().is_ok().then(|| self.timer.enter());
        block_on(self.future.as_mut(), every, go_on)
    }
}

impl<T> Future for Answering<'_, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<T> {
        let is_outside = Handle::try_current().is_err();
        let timer = is_outside.then(|| self.timer.clone());
        let _within = timer.as_ref().map(Handle::enter);
        self.future.as_mut().poll(context)
    }
}

impl<T> fmt::Debug for Answering<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an answer on its way")
    }
}

/// A thread that watches deadlines, and on which answers are handed out to callers without a runtime of tokio. It ends
/// when this is dropped.
pub(crate) struct Timer {
    handle: Handle,
    _until_dropped: oneshot::Sender<()>,
}

impl Timer {
    /// Starts it.
    ///
    /// # Errors
    /// If the system has no threads left.
    pub(crate) fn start() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_time().build()?;
        let (until_dropped, dropped) = oneshot::channel();
        let handle = runtime.handle().clone();
        thread::Builder::new().name("kindred-timer".into()).spawn(move || {
            // Waits until the sender is dropped.
            let _ = runtime.block_on(dropped);
        })?;
        Ok(Self { handle, _until_dropped: until_dropped })
    }

    pub(crate) fn handle(&self) -> &Handle {
        &self.handle
    }
}

/// Runs a future on this thread. Each time `every` has passed, it asks `go_on`; after a break it returns `None`.
fn block_on<F: Future>(
    future: F,
    every: Duration,
    mut go_on: impl FnMut() -> ControlFlow<()>,
) -> Option<F::Output> {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    let mut asked = Instant::now();
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut context) {
            return Some(output);
        }
        let left = every.saturating_sub(asked.elapsed());
        thread::park_timeout(left);
        if asked.elapsed() >= every {
            if go_on().is_break() {
                return None;
            }
            asked = Instant::now();
        }
    }
}
