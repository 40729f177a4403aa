//! Group commit: while one caller writes and syncs, others queue; the first of them then does it
//! for all of these.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

/// Maximum number of jobs of a group.
const MAX_JOBS: usize = 1024;

/// Jobs that wait, and whether somebody works.
pub(crate) struct Queue<J, R> {
    state: Mutex<Waiting<J, R>>,
    /// How much jobs of a group may weigh together, unless there is only one.
    max_weight: usize,
}

struct Waiting<J, R> {
    jobs: VecDeque<(J, usize, Arc<Caller<R>>)>,
    is_led: bool,
}

struct Caller<R> {
    turn: Mutex<Turn<R>>,
    changed: Condvar,
}

enum Turn<R> {
    Waits,
    /// The caller does the work of the next group, which begins with its own job.
    Leads,
    Told(R),
    Gone,
}

impl<R> Caller<R> {
    fn tell(&self, turn: Turn<R>) {
        *locked(&self.turn) = turn;
        self.changed.notify_one();
    }

    fn wait(&self) -> Turn<R> {
        let waits = |turn: &mut Turn<R>| matches!(turn, Turn::Waits);
        let turn = self.changed.wait_while(locked(&self.turn), waits);
        let mut turn = turn.unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *turn, Turn::Gone)
    }
}

/// Whoever panicked with a lock has left complete values.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<J, R> Queue<J, R> {
    pub(crate) fn new(max_weight: usize) -> Self {
        let state = Waiting { jobs: VecDeque::new(), is_led: false };
        Self { state: Mutex::new(state), max_weight }
    }

    /// Has a job done, by this thread or another, and waits for what came of it. `work` does the
    /// jobs of a group, by one thread at a time, and says what came of each. `None` if it panicked
    /// on another thread.
    pub(crate) fn submit(
        &self,
        job: J,
        weight: usize,
        work: impl FnOnce(&mut [J]) -> Vec<R>,
    ) -> Option<R> {
        let caller = Arc::new(Caller { turn: Mutex::new(Turn::Waits), changed: Condvar::new() });
        let leads = {
            let mut state = locked(&self.state);
            state.jobs.push_back((job, weight, Arc::clone(&caller)));
            !std::mem::replace(&mut state.is_led, true)
        };
        if !leads {
            match caller.wait() {
                Turn::Told(result) => return Some(result),
                Turn::Leads => (),
                Turn::Waits | Turn::Gone => return None,
            }
        }
        self.lead(work)
    }

    /// Number of jobs that wait.
    #[cfg(test)]
    pub(crate) fn len(&self) -> usize {
        locked(&self.state).jobs.len()
    }

    /// Does the work of the jobs that wait. The first is the caller's own.
    fn lead(&self, work: impl FnOnce(&mut [J]) -> Vec<R>) -> Option<R> {
        let (mut jobs, callers) = self.next_group();
        let group = Group { queue: self, callers };
        let mut results = work(&mut jobs).into_iter();
        let own = results.next();
        let callers = group.hand_over();
        for (caller, result) in callers.iter().skip(1).zip(results) {
            caller.tell(Turn::Told(result));
        }
        own
    }

    fn next_group(&self) -> (Vec<J>, Vec<Arc<Caller<R>>>) {
        let mut state = locked(&self.state);
        let (mut jobs, mut callers, mut total) = (Vec::new(), Vec::new(), 0);
        while let Some((_, weight, _)) = state.jobs.front()
            && (jobs.is_empty() || (jobs.len() < MAX_JOBS && total + weight <= self.max_weight))
            && let Some((job, weight, caller)) = state.jobs.pop_front()
        {
            total += weight;
            jobs.push(job);
            callers.push(caller);
        }
        (jobs, callers)
    }

    /// The first that waits leads now; nobody does if nobody waits.
    fn promote(&self) {
        let mut state = locked(&self.state);
        match state.jobs.front() {
            Some((.., next)) => next.tell(Turn::Leads),
            None => state.is_led = false,
        }
    }
}

/// A group in work. If the work panics, its callers are told, and others go on.
struct Group<'q, J, R> {
    queue: &'q Queue<J, R>,
    callers: Vec<Arc<Caller<R>>>,
}

impl<J, R> Group<'_, J, R> {
    /// Ends the work: the next group begins while this one's callers are told.
    fn hand_over(mut self) -> Vec<Arc<Caller<R>>> {
        // Dropped without callers, it only hands over.
        std::mem::take(&mut self.callers)
    }
}

impl<J, R> Drop for Group<'_, J, R> {
    fn drop(&mut self) {
        self.queue.promote();
        for caller in &self.callers {
            caller.tell(Turn::Gone);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};
    use std::sync::Barrier;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::thread;

    use super::*;

    #[test]
    fn callers_that_come_while_one_works_are_one_group() {
        let queue: Queue<usize, usize> = Queue::new(usize::MAX);
        let (begun, go_on) = (Barrier::new(2), Barrier::new(2));
        let groups = Mutex::new(Vec::new());
        let work = |jobs: &mut [usize]| {
            let is_first = {
                let mut groups = locked(&groups);
                groups.push(jobs.len());
                groups.len() == 1
            };
            if is_first {
                begun.wait();
                go_on.wait();
            }
            jobs.iter().map(|job| job * 2).collect()
        };
        thread::scope(|scope| {
            scope.spawn(|| assert_eq!(queue.submit(0, 1, work), Some(0)));
            begun.wait();
            for job in 1..=20 {
                let (queue, work) = (&queue, &work);
                scope.spawn(move || assert_eq!(queue.submit(job, 1, work), Some(job * 2)));
            }
            while queue.len() < 20 {
                thread::yield_now();
            }
            go_on.wait();
        });
        assert_eq!(*locked(&groups), [1, 20]);
        assert!(!locked(&queue.state).is_led);
    }

    #[test]
    fn a_group_is_bounded_and_a_heavy_job_is_alone() {
        let queue: Queue<u8, u8> = Queue::new(10);
        let caller = || Arc::new(Caller { turn: Mutex::new(Turn::Waits), changed: Condvar::new() });
        for (job, weight) in [(1, 6), (2, 4), (3, 1), (4, 50), (5, 1)] {
            locked(&queue.state).jobs.push_back((job, weight, caller()));
        }
        let groups: Vec<Vec<u8>> = (0..4).map(|_| queue.next_group().0).collect();
        assert_eq!(groups, [vec![1, 2], vec![3], vec![4], vec![5]]);
    }

    #[test]
    fn every_job_is_done_once_by_many_threads() {
        let queue: Queue<usize, usize> = Queue::new(64);
        let (busy, done) = (AtomicUsize::new(0), AtomicUsize::new(0));
        thread::scope(|scope| {
            for thread in 0..16 {
                let (queue, busy, done) = (&queue, &busy, &done);
                scope.spawn(move || {
                    for index in 0..500 {
                        let job = thread * 1000 + index;
                        let work = |jobs: &mut [usize]| {
                            assert_eq!(busy.fetch_add(1, Ordering::SeqCst), 0, "one at a time");
                            done.fetch_add(jobs.len(), Ordering::SeqCst);
                            busy.fetch_sub(1, Ordering::SeqCst);
                            jobs.to_vec()
                        };
                        assert_eq!(queue.submit(job, 1, work), Some(job));
                    }
                });
            }
        });
        assert_eq!(done.into_inner(), 16 * 500);
    }

    #[test]
    fn a_panic_reaches_its_group_and_ends_there() {
        let queue: Queue<u8, u8> = Queue::new(usize::MAX);
        let (begun, go_on) = (Barrier::new(2), Barrier::new(2));
        thread::scope(|scope| {
            let first = scope.spawn(|| {
                queue.submit(0, 1, |jobs| {
                    begun.wait();
                    go_on.wait();
                    jobs.to_vec()
                })
            });
            begun.wait();
            let fail = |_: &mut [u8]| -> Vec<u8> { panic!("on purpose") };
            let others: Vec<_> = (1..4)
                .map(|job| {
                    let queue = &queue;
                    scope.spawn(move || {
                        catch_unwind(AssertUnwindSafe(|| queue.submit(job, 1, fail)))
                    })
                })
                .collect();
            while queue.len() < 3 {
                thread::yield_now();
            }
            go_on.wait();
            assert_eq!(first.join().unwrap(), Some(0));
            let others = others.into_iter().map(|other| other.join().unwrap());
            let (panicked, told): (Vec<_>, Vec<_>) = others.partition(Result::is_err);
            assert_eq!(panicked.len(), 1);
            assert!(told.into_iter().all(|told| told.unwrap().is_none()));
        });
        assert_eq!(queue.submit(9, 1, |jobs| jobs.to_vec()), Some(9));
    }
}
