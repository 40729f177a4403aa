//! The loop of all long jobs: threads ask for pieces, and the thread that waits for them keeps the
//! answers, commits what is done and tells how far it is.

use std::collections::BTreeMap;
use std::mem;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::cancellation::{CancelOnDrop, Cancellation, Interrupted};
use crate::error::JobError;

/// What is done is committed this often. A kill loses no more, and the pieces in flight.
const COMMIT_EVERY: Duration = Duration::from_secs(1);

/// What becomes of answers, on the thread that waits for them.
pub(crate) trait Keep<A> {
    /// Whether answers are kept in the order of their pieces, or as they come.
    const IN_ORDER: bool;

    /// How often progress is told.
    const TELL_EVERY: Duration = Duration::from_millis(100);

    /// Keeps an answer. After an error it gets no more.
    fn keep(&mut self, answer: A) -> Result<(), JobError>;

    /// Enters what is kept into the journal, if there is one.
    fn commit(&mut self) -> Result<(), JobError> {
        Ok(())
    }

    /// Tells how far it is; a break cancels the job.
    fn tell(&mut self) -> ControlFlow<()>;
}

/// Asks for pieces on a thread for each of `workers`, and keeps their answers, until there are no
/// more pieces or the job is cancelled: then some are missing. What was kept since the last commit
/// is left to the caller.
///
/// # Errors
/// The first error of a piece, of keeping its answer or of a commit, which cancels the job. Answers
/// that come later are still kept if the error is no fault of keeping them.
pub(crate) fn run<P: Send, A: Send, K: Keep<A>>(
    name: &str,
    workers: Vec<impl FnMut(P) -> Result<A, Interrupted> + Send>,
    pieces: impl Iterator<Item = P> + Send,
    keep: &mut K,
    cancellation: &Cancellation,
) -> Result<(), JobError> {
    // Answers that wait for their turn take memory: of as many pieces again as are in flight.
    let (permit, permits) = channel();
    for _ in 0..2 * workers.len() {
        let _ = permit.send(());
    }
    let source = Mutex::new((pieces.enumerate(), K::IN_ORDER.then_some(permits)));
    let (tell, told) = channel();
    thread::scope(|scope| {
        // Also if this thread panics. Those that wait for a permit end when nobody gives them one.
        let _at_the_end = CancelOnDrop(cancellation);
        let mut permit = Some(permit);
        for (number, mut ask) in workers.into_iter().enumerate() {
            let (tell, source) = (tell.clone(), &source);
            let take = move || {
                let mut source = source.lock().unwrap_or_else(PoisonError::into_inner);
                let (pieces, permits) = &mut *source;
                if cancellation.is_cancelled() {
                    return None;
                }
                permits.as_ref().map_or(Ok(()), Receiver::recv).ok()?;
                pieces.next()
            };
            let work = move || {
                // At a panic: an answer that never comes would be waited for.
                let in_time = CancelOnDrop(cancellation);
                while let Some((number, piece)) = take() {
                    let answer = match ask(piece) {
                        Ok(answer) => Ok(answer),
                        Err(Interrupted::Failed(error)) => Err(error),
                        Err(Interrupted::Cancelled) => return,
                    };
                    let _ = tell.send((number, answer));
                }
                mem::forget(in_time);
            };
            let thread = thread::Builder::new().name(format!("{name}-{number}"));
            let started = thread.spawn_scoped(scope, work);
            started.map_err(JobError::io("start a thread for", Path::new(name)))?;
        }
        drop(tell);
        let (mut waiting, mut next) = (BTreeMap::new(), 0);
        let (mut committed, mut last_told) = (Instant::now(), None::<Instant>);
        let (mut result, mut keeps) = (Ok(()), true);
        loop {
            match told.recv_timeout(K::TELL_EVERY) {
                Ok((number, Ok(answer))) => drop(waiting.insert(number, answer)),
                // The first is the cause.
                Ok((_, Err(error))) => result = result.and(Err(error)),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            while keeps
                && let Some(first) = waiting.first_entry()
                && (*first.key() == next || !K::IN_ORDER)
            {
                next += 1;
                let kept = keep.keep(first.remove());
                keeps = kept.is_ok();
                result = result.and(kept);
                // Threads that have all pieces need no more.
                let _ = permit.as_ref().map(|permit| permit.send(()));
            }
            if result.is_ok() && committed.elapsed() >= COMMIT_EVERY {
                result = keep.commit();
                committed = Instant::now();
            }
            if last_told.is_none_or(|at| at.elapsed() >= K::TELL_EVERY) {
                last_told = Some(Instant::now());
                if keep.tell().is_break() {
                    cancellation.cancel();
                }
            }
            if result.is_err() || cancellation.is_cancelled() {
                cancellation.cancel();
                permit = None;
            }
        }
        result
    })
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::requests::Requests;
    use kindred::Error;
    use kindred::queue::SubmitError;

    const THREADS: usize = 3;
    /// The numbers that a piece has.
    const NUMBERS: u64 = 200;

    /// Doubles the numbers of a piece, a few at once, through a queue that may have no room.
    struct Queue {
        /// How many numbers it takes.
        room: u64,
        /// The piece that fails.
        fails: Option<u64>,
        refused: AtomicUsize,
    }

    impl Queue {
        fn new() -> Self {
            Self { room: NUMBERS, fails: None, refused: AtomicUsize::new(0) }
        }

        fn ask(&self, requests: &mut Requests<'_>, piece: u64) -> Result<Vec<u64>, Interrupted> {
            let mut doubled = Vec::new();
            // The later ones of some that are in flight together are done first.
            thread::sleep(Duration::from_micros(300 * (3 - piece % 3)));
            requests.all(piece * NUMBERS..(piece + 1) * NUMBERS, |some| {
                let asked = (some.end - some.start) as u32;
                if u64::from(asked) > self.room {
                    self.refused.fetch_add(1, Ordering::Relaxed);
                    let (held, free, capacity) = (0, self.room as u32, 2 * NUMBERS as u32);
                    let retry_after = Duration::ZERO;
                    let full = SubmitError::Full { asked, held, free, capacity, retry_after };
                    return Err(full.into());
                }
                doubled.extend(some.map(|number| 2 * number));
                Ok(())
            })?;
            match self.fails == Some(piece) {
                true => Err(Error::Internal.into()),
                false => Ok(doubled),
            }
        }
    }

    /// Keeps numbers. Cancels the job, or fails, when it has those of so many pieces.
    struct Kept<const IN_ORDER: bool> {
        numbers: Vec<u64>,
        cancels_at: usize,
        fails_at: usize,
    }

    impl<const IN_ORDER: bool> Kept<IN_ORDER> {
        fn new() -> Self {
            Self { numbers: Vec::new(), cancels_at: usize::MAX, fails_at: usize::MAX }
        }

        fn pieces(&self) -> usize {
            self.numbers.len() / NUMBERS as usize
        }
    }

    impl<const IN_ORDER: bool> Keep<Vec<u64>> for Kept<IN_ORDER> {
        const IN_ORDER: bool = IN_ORDER;
        const TELL_EVERY: Duration = Duration::from_millis(1);

        fn keep(&mut self, answer: Vec<u64>) -> Result<(), JobError> {
            if self.pieces() == self.fails_at {
                return Err(Error::Internal.into());
            }
            self.numbers.extend(answer);
            Ok(())
        }

        fn tell(&mut self) -> ControlFlow<()> {
            match self.pieces() >= self.cancels_at {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        }
    }

    fn ask_for<const IN_ORDER: bool>(
        queue: &Queue,
        kept: &mut Kept<IN_ORDER>,
        pieces: impl Iterator<Item = u64> + Send,
    ) -> Result<(), JobError> {
        let cancellation = Cancellation::new();
        let worker = |_| {
            let mut requests = Requests::new(&cancellation, NUMBERS as usize);
            move |piece| queue.ask(&mut requests, piece)
        };
        run("test", (0..THREADS).map(worker).collect(), pieces, kept, &cancellation)
    }

    fn fails(done: Result<(), JobError>) -> bool {
        matches!(done, Err(JobError::NotAnswered(Error::Internal)))
    }

    /// The numbers of the first pieces.
    fn first(pieces: usize) -> Vec<u64> {
        (0..pieces as u64 * NUMBERS).map(|number| 2 * number).collect()
    }

    #[test]
    fn all_pieces_are_kept_in_their_order_or_as_they_come() {
        let (mut in_order, mut as_they_come) = (Kept::<true>::new(), Kept::<false>::new());
        ask_for(&Queue::new(), &mut in_order, 0..40).unwrap();
        assert!(in_order.numbers == first(40));
        ask_for(&Queue::new(), &mut as_they_come, 0..40).unwrap();
        as_they_come.numbers.sort_unstable();
        assert!(as_they_come.numbers == first(40));
        ask_for(&Queue::new(), &mut in_order, 0..0).unwrap();
        assert!(in_order.numbers == first(40));
    }

    #[test]
    fn a_stop_in_the_middle_keeps_the_first_pieces() {
        let mut kept = Kept::<true> { cancels_at: 5, ..Kept::new() };
        // Without a stop it would never end.
        ask_for(&Queue::new(), &mut kept, 0..).unwrap();
        assert!(kept.pieces() >= 5 && kept.numbers == first(kept.pieces()));
    }

    #[test]
    fn a_full_queue_only_takes_longer() {
        let mut kept = Kept::<true>::new();
        let queue = Queue { room: 60, ..Queue::new() };
        ask_for(&queue, &mut kept, 0..20).unwrap();
        assert!(kept.numbers == first(20));
        // Each thread asks for 200 and 100 first.
        let refused = queue.refused.into_inner();
        assert!((2..=2 * THREADS).contains(&refused), "{refused}");
    }

    #[test]
    fn a_piece_that_fails_ends_the_job_with_its_error() {
        let queue = Queue { fails: Some(7), ..Queue::new() };
        let (mut in_order, mut as_they_come) = (Kept::<true>::new(), Kept::<false>::new());
        assert!(fails(ask_for(&queue, &mut in_order, 0..)));
        assert!(in_order.pieces() <= 7 && in_order.numbers == first(in_order.pieces()));
        assert!(fails(ask_for(&queue, &mut as_they_come, 0..)));
        assert!(!as_they_come.numbers.contains(&(2 * 7 * NUMBERS)));
    }

    #[test]
    fn after_an_answer_that_can_not_be_kept_none_is() {
        let mut kept = Kept::<true> { fails_at: 4, ..Kept::new() };
        assert!(fails(ask_for(&Queue::new(), &mut kept, 0..)));
        assert!(kept.numbers == first(4));
    }

    #[test]
    fn a_panic_of_a_thread_ends_the_job() {
        let cancellation = Cancellation::new();
        let worker = |_| {
            |piece: u64| -> Result<Vec<u64>, Interrupted> {
                assert!(piece != 7, "as ordered");
                Ok(vec![2 * piece; NUMBERS as usize])
            }
        };
        let workers = (0..THREADS).map(worker).collect();
        let run = || run("test", workers, 0.., &mut Kept::<true>::new(), &cancellation);
        assert!(std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).is_err());
    }
}
