//! The timeouts of a connection, with one timer for all of them.
//!
//! hyper's own timeout, for a request's head in HTTP/1, is not used. It is also the time that a
//! connection may be idle. It does not run while hyper detects the version of HTTP, in HTTP/2, or
//! while a client does not read. And it sets and drops a timer for each request. Here the timer is
//! moved only if it would fire too late; if it fires too early, it is set again.

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::{Instant, Sleep, sleep};

use super::activity::{Activity, Waiting};

/// How long a connection may wait, by what it waits for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Timeouts {
    /// From the first byte of a request's head to its last. For the first request, from the start
    /// of the connection to the end of the head, including the handshake.
    pub(super) header_read: Duration,
    /// For the next request.
    pub(super) idle: Duration,
    /// For the client to read anything at all of what was sent.
    pub(super) write: Duration,
}

/// Watches one connection.
pub(super) struct Watch {
    activity: Arc<Activity>,
    timeouts: Timeouts,
    waiting: Waiting,
    mark: (u32, u64),
    since: Instant,
    sleep: Pin<Box<Sleep>>,
}

impl Watch {
    /// Starts to watch a connection.
    pub(super) fn new(activity: Arc<Activity>, timeouts: Timeouts) -> Self {
        let (waiting, mark) = activity.look();
        let sleep = Box::pin(sleep(timeouts.header_read));
        Self { activity, timeouts, waiting, mark, since: Instant::now(), sleep }
    }

    /// Ready once the connection has waited too long, with what it waited for. Must be called each
    /// time after the connection has been polled.
    pub(super) fn poll_expired(&mut self, context: &mut Context<'_>) -> Poll<Waiting> {
        loop {
            let (waiting, deadline) = self.deadline();
            if deadline < self.sleep.deadline() {
                self.sleep.as_mut().reset(deadline);
            }
            ready!(self.sleep.as_mut().poll(context));
            if deadline > Instant::now() {
                self.sleep.as_mut().reset(deadline);
            } else if waiting != Waiting::Handler {
                return Poll::Ready(waiting);
            } else {
                self.sleep.as_mut().reset(Instant::now() + self.timeouts.idle);
            }
        }
    }

    /// What would be the next to take too long, and when.
    fn deadline(&mut self) -> (Waiting, Instant) {
        let (waiting, mark) = self.activity.look();
        if (waiting, mark) != (self.waiting, self.mark) {
            (self.waiting, self.mark, self.since) = (waiting, mark, Instant::now());
        }
        let deadline = match waiting {
            Waiting::Head => self.since + self.timeouts.header_read,
            Waiting::Reader => self.since + self.timeouts.write,
            Waiting::Request => self.since + self.timeouts.idle,
            // In HTTP/2 the end of a handler may go unnoticed, so the timer checks again now and
            // then.
            Waiting::Handler => self.sleep.deadline(),
        };
        // Whatever else a connection does, each answer must be read in time.
        match self.activity.unsent_since().map(|since| since + self.timeouts.write) {
            Some(unread) if unread < deadline => (Waiting::Reader, unread),
            _ => (waiting, deadline),
        }
    }

    /// Gives the connection the same time once more.
    pub(super) fn restart(&mut self) {
        self.since = Instant::now();
    }

    /// Runs a step of the connection. Returns its outcome, or what the connection waited for too
    /// long.
    pub(super) async fn until<F: Future>(&mut self, step: F) -> Result<F::Output, Waiting> {
        let mut step = std::pin::pin!(step);
        poll_fn(|context| match step.as_mut().poll(context) {
            Poll::Ready(outcome) => Poll::Ready(Ok(outcome)),
            Poll::Pending => self.poll_expired(context).map(Err),
        })
        .await
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Version;
    use tokio::io::{AsyncReadExt, AsyncWriteExt, duplex};

    use super::super::activity::RecordingIo;
    use super::*;

    const MS: Duration = Duration::from_millis(1);
    const TIMEOUTS: Timeouts = Timeouts {
        header_read: Duration::from_millis(100),
        idle: Duration::from_millis(1000),
        write: Duration::from_millis(300),
    };

    fn watched() -> (Arc<Activity>, Watch) {
        let activity = Activity::new();
        (activity.clone(), Watch::new(activity, TIMEOUTS))
    }

    /// What the watch expires for, and after how many milliseconds.
    async fn expired(watch: &mut Watch) -> (Waiting, u128) {
        let begun = Instant::now();
        let waiting = watch.until(std::future::pending::<()>()).await.unwrap_err();
        (waiting, begun.elapsed().as_millis())
    }

    #[tokio::test(start_paused = true)]
    async fn each_wait_has_its_own_time() {
        let (activity, mut watch) = watched();
        assert_eq!(expired(&mut watch).await, (Waiting::Head, 100));
        // The next deadline is later than the timer's.
        drop(activity.begin(Version::HTTP_11));
        assert_eq!(expired(&mut watch).await, (Waiting::Request, 1000));
        watch.restart();
        assert_eq!(expired(&mut watch).await, (Waiting::Request, 1000));
        // The next deadline is earlier than the timer's.
        let (mut near, far) = duplex(64);
        let mut noted = RecordingIo::new(far, activity.clone());
        drop(activity.begin(Version::HTTP_11));
        assert!(watch.until(tokio::time::sleep(500 * MS)).await.is_ok());
        near.write_all(b"G").await.unwrap();
        noted.read_u8().await.unwrap();
        assert_eq!(expired(&mut watch).await, (Waiting::Head, 100));
    }

    #[tokio::test(start_paused = true)]
    async fn bytes_of_a_head_do_not_prolong_its_time() {
        let (activity, mut watch) = watched();
        let (mut near, far) = duplex(64);
        let mut noted = RecordingIo::new(far, activity);
        let trickle = async {
            loop {
                near.write_all(b"G").await.unwrap();
                noted.read_u8().await.unwrap();
                tokio::time::sleep(MS).await;
            }
        };
        let begun = Instant::now();
        let waiting = watch
            .until(async {
                let () = trickle.await;
            })
            .await;
        assert_eq!((waiting, begun.elapsed().as_millis()), (Err(Waiting::Head), 100));
    }

    #[tokio::test(start_paused = true)]
    async fn a_handler_takes_its_time_and_its_end_is_seen_even_if_nobody_says_so() {
        let (activity, mut watch) = watched();
        let in_work = activity.begin(Version::HTTP_2);
        let elsewhere = tokio::spawn(async move {
            tokio::time::sleep(5500 * MS).await;
            drop(in_work);
        });
        let (waiting, after) = expired(&mut watch).await;
        assert_eq!(waiting, Waiting::Request);
        assert!((6500..=7600).contains(&after), "{after}");
        elsewhere.await.unwrap();
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_does_not_read_one_answer_is_given_up_whatever_else_it_does() {
        let (activity, mut watch) = watched();
        let others = activity.clone();
        let busy = tokio::spawn(async move {
            loop {
                drop(others.begin(Version::HTTP_2));
                others.unsent().progress();
                tokio::time::sleep(10 * MS).await;
            }
        });
        tokio::time::sleep(50 * MS).await;
        let unsent = activity.unsent();
        tokio::time::sleep(200 * MS).await;
        unsent.progress();
        assert_eq!(expired(&mut watch).await, (Waiting::Reader, 300));
        drop(unsent);
        busy.abort();
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_reads_nothing_is_given_up() {
        let (activity, mut watch) = watched();
        let (_near, far) = duplex(64);
        let mut noted = RecordingIo::new(far, activity.clone());
        let in_work = activity.begin(Version::HTTP_11);
        let begun = Instant::now();
        let waiting = watch.until(noted.write_all(&[0; 65])).await.map(|_| ());
        assert_eq!((waiting, begun.elapsed().as_millis()), (Err(Waiting::Reader), 300));
        drop(in_work);
    }
}
