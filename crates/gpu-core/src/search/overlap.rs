//! Searches that start before the last one is over, so that the device goes from one pass to the next without a pause.
//!
//! The stream runs passes one after the other, and they share the device's buffers. What the host writes and reads is in
//! two exchanges: while the device works with one, the host fills the other.

#![allow(unsafe_code)]

use std::time::Instant;

use contract::{Hit, Query};
use cust::event::{Event, EventFlags, EventStatus};

use super::answer::is_formula;
use super::plan::Class;
use super::workspace::EXCHANGES;
use super::{CudaEngine, Started};
use crate::GpuError;
use crate::driver::Doing;

impl CudaEngine {
    /// Whether searches can be started at all. Times are those of one pass after the other.
    pub(super) fn can_overlap(&self) -> bool {
        self.timing.is_none()
    }

    /// An exchange that no started pass uses.
    pub(super) fn free_exchange(&self) -> usize {
        let is_free = |&index: &usize| self.started.iter().all(|one| one.key.exchange != index);
        (0..EXCHANGES).find(is_free).expect("passes that are waited for follow a finished one")
    }

    /// Starts a batch, if one certified pass takes all of it, and at most one other is under way.
    pub(super) fn start(&mut self, batch: &[&Query]) -> Result<bool, GpuError> {
        if self.started.len() >= EXCHANGES || batch.is_empty() || !self.can_overlap() {
            return Ok(false);
        }
        let mut class = Class::Small;
        for query in batch {
            match self.certified_class(query) {
                _ if self.has_no_hits(query) => return Ok(false),
                None | Some(Class::Large) => return Ok(false),
                Some(Class::Medium) => class = Class::Medium,
                Some(Class::Small) => {}
            }
        }
        let indices: Vec<usize> = (0..batch.len()).collect();
        let [_] = &self.pieces(batch, &indices, class.max_batch())[..] else { return Ok(false) };
        let key = self.key(batch, &indices, class);
        self.prepare_graph(key)?;
        self.counters.passes += 1;
        let began = Instant::now();
        self.launch(batch, &indices, key)?;
        let done = Event::new(EventFlags::DISABLE_TIMING).doing("making an event")?;
        done.record(&self.stream).doing("recording an event")?;
        self.started.push_back(Started { key, began, done });
        Ok(true)
    }

    /// Waits until the last kernel of the search that was started first has started. The host has then just enough time to
    /// start the next pass.
    pub(super) fn wait_for_last_kernel(&mut self) -> Result<(), GpuError> {
        let Some(first) = self.started.front() else { return Ok(()) };
        let almost_over = &self.workspace.exchanges[first.key.exchange].almost_over;
        for turn in 1u32.. {
            if almost_over.watch() != 0 {
                break;
            }
            // After a failure no kernel tells.
            if turn % 1024 == 0 && first.done.query().doing("searching")? == EventStatus::Ready {
                break;
            }
            std::hint::spin_loop();
        }
        Ok(())
    }

    /// Finishes the search of this batch, which was started first.
    pub(super) fn finish(&mut self, batch: &[&Query]) -> Result<Vec<Option<Vec<Hit>>>, GpuError> {
        let first = self.started.pop_front().expect("a search that was started");
        first.done.synchronize().doing("searching")?;
        let now = Instant::now();
        self.note_time(first.key, now - first.began.max(self.finished));
        self.finished = now;
        let indices: Vec<usize> = (0..batch.len()).collect();
        let mut answers = vec![Vec::new(); batch.len()];
        let doubtful = self.collect_certified(batch, &indices, first.key, &mut answers);
        if doubtful.is_empty() {
            return Ok(answers.into_iter().map(Some).collect());
        }
        let doubtful = self.retry(batch, doubtful, first.key, &mut answers, &mut || ())?;
        self.counters.fallbacks += doubtful.len() as u64;
        let (formulas, exact) = doubtful.into_iter().partition(|&index| is_formula(batch[index]));
        self.without_certificates(batch, exact, formulas, answers, &mut || ())
    }
}
