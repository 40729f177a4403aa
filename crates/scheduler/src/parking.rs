//! How workers without work sleep, and are woken.

use std::time::{Duration, Instant};

use crate::sync::{AtomicUsize, Condvar, Mutex, Ordering, lock, wait_at_most};

/// Waking a thread costs microseconds. So callers look at one number first, and only one caller
/// wakes a worker that sleeps.
pub(crate) struct Parking {
    /// Workers that sleep and have not been told to wake up. Written under the lock.
    asleep: AtomicUsize,
    state: Mutex<State>,
    changed: Condvar,
    /// For those that [`pause`](Self::pause).
    gone: Condvar,
}

#[derive(Default)]
struct State {
    /// Workers that were told to wake up and have not done so.
    called: usize,
    callers_gone: bool,
}

impl Parking {
    pub(crate) fn new() -> Self {
        let state = Mutex::new(State::default());
        Self { asleep: AtomicUsize::new(0), state, changed: Condvar::new(), gone: Condvar::new() }
    }

    /// There is work: wakes one worker, if one sleeps.
    pub(crate) fn wake_one(&self) {
        // Either this sees a worker that is about to sleep, or that one sees the work: both first
        // write and then read, in one order that all threads agree on.
        if self.asleep.load(Ordering::SeqCst) == 0 {
            return;
        }
        let mut state = lock(&self.state);
        let asleep = self.asleep.load(Ordering::SeqCst);
        if asleep > 0 {
            self.asleep.store(asleep - 1, Ordering::SeqCst);
            state.called += 1;
            drop(state);
            self.changed.notify_one();
        }
    }

    /// Sleeps until there is work. `false` when there never will be again.
    pub(crate) fn sleep(&self, has_work: impl Fn() -> bool) -> bool {
        let mut state = lock(&self.state);
        self.asleep.store(self.asleep.load(Ordering::SeqCst) + 1, Ordering::SeqCst);
        loop {
            if state.called > 0 {
                state.called -= 1;
                return true;
            }
            let works = has_work();
            if works || state.callers_gone {
                self.asleep.store(self.asleep.load(Ordering::SeqCst) - 1, Ordering::SeqCst);
                return works;
            }
            state = self.changed.wait(state).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    /// There will be no more callers.
    pub(crate) fn callers_are_gone(&self) {
        lock(&self.state).callers_gone = true;
        self.changed.notify_all();
        self.gone.notify_all();
    }

    /// Lets all workers look again whether there is something to do.
    pub(crate) fn wake_all(&self) {
        drop(lock(&self.state));
        self.changed.notify_all();
        self.gone.notify_all();
    }

    pub(crate) fn are_callers_gone(&self) -> bool {
        lock(&self.state).callers_gone
    }

    /// Waits for a while, until `is_told`, or until there are no callers any more.
    pub(crate) fn pause(&self, duration: Duration, is_told: impl Fn() -> bool) {
        let until = Instant::now() + duration;
        let (mut state, mut is_over) = (lock(&self.state), false);
        while !is_over && !state.callers_gone && !is_told() {
            let left = until.saturating_duration_since(Instant::now());
            (state, is_over) = wait_at_most(&self.gone, state, left);
        }
    }
}
