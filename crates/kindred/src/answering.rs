//! Pending answers, to be awaited on any executor, or waited for without one.

use std::fmt;
use std::io;
use std::ops::ControlFlow;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::{Duration, Instant};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;

/// A pending answer: await it on any executor, or [`wait`](Self::wait) for it. Dropping it abandons
/// the question: what has not been searched by then never will be.
#[must_use = "await it, or call `wait`"]
pub struct Answering<'a, T> {
    future: Pin<Box<dyn Future<Output = T> + Send + 'a>>,
    timer: Handle,
    watch: Option<Arc<Watch>>,
}

impl<'a, T> Answering<'a, T> {
    pub(crate) fn new(timer: &Timer, future: impl Future<Output = T> + Send + 'a) -> Self {
        Self { future: Box::pin(future), timer: timer.handle.clone(), watch: timer.watch.clone() }
    }

    /// Waits for it; the thread sleeps meanwhile.
    pub fn wait(self) -> T {
        // This time never passes, so nothing is asked.
        let answer = self.wait_while(Duration::MAX, || ControlFlow::Continue(()));
        answer.expect("nothing ended the waiting")
    }

    /// As [`wait`](Self::wait), but wakes up each time `every` has passed and asks whether to go
    /// on. After a break the question is abandoned, and there is no answer.
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
        // A thread of another runtime could not hand the answer out while it waits. On a thread
        // without one, the engine's thread wakes this one directly, which is one step fewer.
        let _within = Handle::try_current().is_ok().then(|| self.timer.enter());
        block_on(self.future.as_mut(), self.watch.as_deref(), every, go_on)
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

/// A thread that watches deadlines, and on which answers are handed out to callers without a
/// runtime of tokio. It ends when this is dropped.
pub(crate) struct Timer {
    pub(crate) handle: Handle,
    watch: Option<Arc<Watch>>,
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
        Ok(Self { handle, watch: None, _until_dropped: until_dropped })
    }

    /// From now on, a caller that waits alone watches for its answer for a while, which takes a
    /// core.
    pub(crate) fn let_one_watch(&mut self) {
        self.watch = Some(Arc::default());
    }
}

/// How long a caller watches for its answer before it sleeps: longer than a GPU takes for 1,024
/// queries.
const WATCHING: Duration = Duration::from_millis(2);

/// Whether a caller watches for its answer. To wake one that sleeps takes tens of microseconds.
/// Only one watches, so that many callers do not take all cores.
#[derive(Default)]
struct Watch(AtomicBool);

impl Watch {
    /// Polls the future for a while, if nobody else watches.
    fn poll<F: Future>(
        &self,
        future: &mut Pin<&mut F>,
        context: &mut Context<'_>,
    ) -> Poll<F::Output> {
        struct Done<'a>(&'a AtomicBool);
        impl Drop for Done<'_> {
            fn drop(&mut self) {
                self.0.store(false, Ordering::Relaxed);
            }
        }
        if self.0.swap(true, Ordering::Relaxed) {
            return Poll::Pending;
        }
        let _done = Done(&self.0);
        let until = Instant::now() + WATCHING;
        while Instant::now() < until {
            if let Poll::Ready(output) = future.as_mut().poll(context) {
                return Poll::Ready(output);
            }
            thread::yield_now();
        }
        Poll::Pending
    }
}

/// Waits for an answer on this thread, outside of any runtime: so it comes from the engine's
/// thread, whether a runtime runs or not. `None` if it takes longer.
pub fn wait_at_most<F: Future>(longest: Duration, answer: F) -> Option<F::Output> {
    block_on(answer, None, longest, || ControlFlow::Break(()))
}

/// Runs a future on this thread. Each time `every` has passed, it asks `go_on`; after a break it
/// returns `None`.
fn block_on<F: Future>(
    future: F,
    watch: Option<&Watch>,
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
    if let Some(Poll::Ready(output)) = watch.map(|watch| watch.poll(&mut future, &mut context)) {
        return Some(output);
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    /// An answer that another thread gives after some time.
    fn after(time: Duration) -> impl Future<Output = u32> {
        let (tell, told) = oneshot::channel();
        thread::spawn(move || {
            thread::sleep(time);
            let _ = tell.send(7);
        });
        async move { told.await.unwrap() }
    }

    #[test]
    fn who_watches_gets_early_and_late_answers() {
        let (watch, forever) = (Watch::default(), Duration::from_secs(60));
        for time in [0, 20, 200, 2100, 9000].map(Duration::from_micros) {
            let go_on = || ControlFlow::Continue(());
            assert_eq!(block_on(after(time), Some(&watch), forever, go_on), Some(7));
            assert!(!watch.0.load(Ordering::Relaxed));
        }
    }

    #[test]
    fn who_watches_asks_whether_to_go_on() {
        let watch = Watch::default();
        let never = std::future::pending::<()>();
        let mut asked = 0;
        let go_on = || {
            asked += 1;
            if asked == 3 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        };
        assert_eq!(block_on(never, Some(&watch), Duration::from_millis(1), go_on), None);
        assert_eq!(asked, 3);
    }

    #[test]
    fn one_watches_and_the_others_sleep() {
        let watch = Watch::default();
        watch.0.store(true, Ordering::Relaxed);
        let mut polls = 0;
        let counting = std::future::poll_fn(|_| {
            polls += 1;
            if polls == 3 { Poll::Ready(()) } else { Poll::Pending }
        });
        let go_on = || ControlFlow::Continue(());
        assert_eq!(block_on(counting, Some(&watch), Duration::from_millis(20), go_on), Some(()));
        assert!(watch.0.load(Ordering::Relaxed), "the one that watches still does");
    }
}
