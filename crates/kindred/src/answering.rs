//! Pending answers, to be awaited on any executor, or waited for without one.

use std::fmt;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};

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
    pub fn wait(mut self) -> T {
        // Needed on a thread of another runtime, too: that runtime could not hand the answer out while this waits.
        let _within = self.timer.enter();
        block_on(self.future.as_mut())
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

/// Runs a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let (mut future, mut context) = (pin!(future), Context::from_waker(&waker));
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
