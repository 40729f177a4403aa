//! Controls how long a slice runs, and distributes its tasks.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// Decides whether a slice continues, by calling the caller's function; `false` is final.
pub(super) struct Pace<'a> {
    ask: &'a (dyn Fn() -> bool + Sync),
    has_begun: AtomicBool,
    has_stopped: AtomicBool,
}

impl<'a> Pace<'a> {
    pub(super) fn new(ask: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Self { ask, has_begun: AtomicBool::new(false), has_stopped: AtomicBool::new(false) }
    }

    /// Called before each piece of work. The first piece of a slice always runs, so that every
    /// slice makes progress.
    pub(super) fn goes_on(&self) -> bool {
        // Neither publishes other memory.
        if !self.has_begun.swap(true, Ordering::Relaxed) {
            return true;
        }
        if self.has_stopped.load(Ordering::Relaxed) || !(self.ask)() {
            self.has_stopped.store(true, Ordering::Relaxed);
            return false;
        }
        true
    }
}

/// Tasks that threads take in order. A thread finishes every task that it takes, so finished tasks
/// have no gaps.
pub(super) struct Tasks<'a> {
    pace: &'a Pace<'a>,
    next: AtomicUsize,
    count: usize,
}

impl<'a> Tasks<'a> {
    /// n tasks.
    pub(super) fn new(pace: &'a Pace<'a>, count: usize) -> Self {
        Self { pace, next: AtomicUsize::new(0), count }
    }

    /// Takes the next task, if there is one and the slice continues.
    pub(super) fn take(&self) -> Option<usize> {
        if self.next.load(Ordering::Relaxed) >= self.count || !self.pace.goes_on() {
            return None;
        }
        let task = self.next.fetch_add(1, Ordering::Relaxed);
        (task < self.count).then_some(task)
    }

    /// The number of tasks taken.
    pub(super) fn taken(&self) -> usize {
        self.next.load(Ordering::Relaxed).min(self.count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_piece_is_done_whatever_is_said_and_no_is_final() {
        let asked = AtomicUsize::new(0);
        let odd = || asked.fetch_add(1, Ordering::Relaxed) % 2 == 1;
        let pace = Pace::new(&odd);
        let tasks = Tasks::new(&pace, 5);
        assert_eq!((tasks.take(), tasks.take(), tasks.take()), (Some(0), None, None));
        assert_eq!((tasks.taken(), asked.load(Ordering::Relaxed)), (1, 1));
    }

    #[test]
    fn tasks_end_without_another_question() {
        let asked = AtomicUsize::new(0);
        let yes = || asked.fetch_add(1, Ordering::Relaxed) < 9;
        let pace = Pace::new(&yes);
        let tasks = Tasks::new(&pace, 2);
        assert_eq!([(); 4].map(|()| tasks.take()), [Some(0), Some(1), None, None]);
        assert_eq!((tasks.taken(), asked.load(Ordering::Relaxed)), (2, 1));
    }
}
