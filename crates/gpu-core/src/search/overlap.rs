//! Passes that start before the last one is over, so that the device goes from one to the next
//! without a pause.
//!
//! The stream runs passes one after the other, and they share the device's buffers. What the host
//! writes and reads is in two exchanges, and for ranks in two sets of buffers: while the device
//! works with one, the host fills the other.

#![allow(unsafe_code)]

use std::sync::Arc;
use std::time::Instant;

use contract::{Device, FullPassPart, Hit, Query, TokenClassifier, TokenText};
use cust::event::{Event, EventFlags, EventStatus};

use super::demand::is_formula;
use super::plan::Class;
use super::workspace::EXCHANGES;
use super::{CudaEngine, Started, Work};
use crate::GpuError;
use crate::driver::Doing;
use crate::heads::{self, Flat};
use crate::ranks::{self, Ranks};

impl CudaEngine {
    /// An exchange that no started pass uses.
    pub(super) fn free_exchange(&self) -> usize {
        let free = self.free(EXCHANGES, |work| match work {
            Work::Search(key) => Some(key.exchange),
            _ => None,
        });
        free.expect("passes that are waited for follow a finished one")
    }

    /// A set of the ranks' buffers that no started pass uses.
    pub(super) fn free_set(&self) -> Option<usize> {
        self.free(ranks::SETS, |work| match work {
            Work::Ranks { set, .. } => Some(*set),
            _ => None,
        })
    }

    /// A set of the classifiers' buffers that no started pass uses.
    fn free_texts(&self) -> Option<usize> {
        self.free(heads::SETS, |work| match work {
            Work::Texts { set, .. } => Some(*set),
            _ => None,
        })
    }

    /// The first of `count` that no started pass uses.
    fn free(&self, count: usize, used_by: impl Fn(&Work) -> Option<usize>) -> Option<usize> {
        let is_used = |index| self.started.iter().any(|one| used_by(&one.work) == Some(index));
        (0..count).find(|&index| !is_used(index))
    }

    fn can_start(&self) -> bool {
        self.started.len() < EXCHANGES && self.overlaps()
    }

    /// Notes a pass that was launched just now.
    fn push_started(&mut self, work: Work, began: Instant) -> Result<(), GpuError> {
        self.counters.passes += 1;
        let done = Event::new(EventFlags::DISABLE_TIMING).doing("making an event")?;
        match work {
            Work::Texts { set, index } => self.classifiers.record(set, index, &done)?,
            _ => done.record(&self.stream).doing("recording an event")?,
        }
        self.started.push_back(Started { work, began, done });
        Ok(())
    }

    /// Waits for the pass that was started first.
    fn pop_started(&mut self) -> Result<(Work, Instant), GpuError> {
        let Started { work, began, done } = self.started.pop_front().expect("a pass was started");
        done.synchronize().doing("searching")?;
        Ok((work, began))
    }

    /// Starts counting ranks, if one pass takes all of these queries, and at most one other is
    /// under way.
    pub(super) fn start_counting(&mut self, parts: Vec<FullPassPart>) -> Result<bool, GpuError> {
        let can_start = self.can_start() && !parts.is_empty();
        let (true, Some(set), Some(ranks)) = (can_start, self.free_set(), &mut self.ranks) else {
            return Ok(false);
        };
        let takes = |part: &FullPassPart| Ranks::takes(part.query(), part.distinct_ranked().len());
        if parts.len() > ranks.widest() || !parts.iter().all(takes) {
            return Ok(false);
        }
        let began = Instant::now();
        let queries: Vec<&FullPassPart> = parts.iter().collect();
        // SAFETY: `set` is used by no other pass that is under way; this engine owns the resident
        // tables and the stream, and waits for the pass before it uses the set again, or drops it.
        unsafe {
            let rows = 0..self.resident.rows;
            ranks.start(set, &self.resident, &mut self.sets, &self.stream, &queries, rows)?;
        }
        self.push_started(Work::Ranks { set, parts }, began)?;
        Ok(true)
    }

    /// Finishes the counting of ranks that was started first.
    pub(super) fn finish_counting(&mut self) -> Result<Vec<FullPassPart>, GpuError> {
        let (Work::Ranks { set, mut parts }, _) = self.pop_started()? else {
            unreachable!("passes are finished in the order of their starts")
        };
        self.finished = Instant::now();
        let ranks = self.ranks.as_ref().expect("it has started the pass");
        let without = ranks.collect(set, &self.resident, &mut parts);
        self.counters.ranked += (parts.len() - without) as u64;
        self.counters.fallbacks += without as u64;
        Ok(parts)
    }

    /// Starts a pass of texts, if they are all of one classifier, whose products of their tokens
    /// are on the device.
    pub(super) fn start_texts(&mut self, texts: &[&TokenText]) -> Result<bool, GpuError> {
        let (true, Some(set)) = (self.can_start(), self.free_texts()) else { return Ok(false) };
        let began = Instant::now();
        let Some(index) = self.classifiers.start(set, texts)? else { return Ok(false) };
        self.push_started(Work::Texts { set, index }, began)?;
        Ok(true)
    }

    /// Finishes the pass of these texts, which was started first.
    pub(super) fn finish_texts(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, GpuError> {
        let (set, index) = self.pop_texts()?;
        self.counters.classified += texts.len() as u64;
        self.classifiers.finish(set, index, texts)
    }

    /// As [`HeadEngine::start_classify`](contract::HeadEngine::start_classify), for texts as one
    /// list of tokens, and where each of them ends in it. Only if the products of all of the
    /// classifier's tokens are on the device.
    ///
    /// # Errors
    /// If the device fails.
    pub fn start_tokens(
        &mut self,
        head: &Arc<dyn TokenClassifier>,
        tokens: &[u32],
        ends: &[u32],
    ) -> Result<bool, GpuError> {
        let (true, Some(set)) = (self.can_start(), self.free_texts()) else { return Ok(false) };
        let began = Instant::now();
        let texts = Flat { tokens, ends };
        let Some(index) = self.classifiers.start_flat(set, head, texts)? else { return Ok(false) };
        self.push_started(Work::Texts { set, index }, began)?;
        Ok(true)
    }

    /// The class scores of the texts that were started first, `[texts, classes]`. They are NaN
    /// where float16 overflowed.
    ///
    /// # Errors
    /// If the device fails.
    pub fn finish_tokens(&mut self) -> Result<&[f32], GpuError> {
        let (set, index) = self.pop_texts()?;
        self.classifiers.finish_flat(set, index)
    }

    fn pop_texts(&mut self) -> Result<(usize, usize), GpuError> {
        let (Work::Texts { set, index }, _) = self.pop_started()? else {
            unreachable!("passes are finished in the order of their starts")
        };
        self.finished = Instant::now();
        Ok((set, index))
    }

    /// Starts a batch, if one certified pass takes all of it, and at most one other is under way.
    pub(super) fn start(&mut self, batch: &[&Query]) -> Result<bool, GpuError> {
        if !self.can_start() || batch.is_empty() || self.gathered(batch).is_some() {
            return Ok(false);
        }
        let mut class = Class::Small;
        for query in batch {
            match self.costs.certified_class(query) {
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
        let began = Instant::now();
        self.launch(batch, &indices, key)?;
        self.push_started(Work::Search(key), began)?;
        Ok(true)
    }

    /// Waits until the last kernel of the pass that was started first has started. The host has
    /// then just enough time to start the next pass.
    pub(super) fn wait_for_last_kernel(&mut self) -> Result<(), GpuError> {
        let Some(first) = self.started.front() else { return Ok(()) };
        let almost_over = match &first.work {
            Work::Search(key) => &self.exchanges[key.exchange].almost_over,
            Work::Texts { .. } => return first.done.synchronize().doing("classifying"),
            Work::Ranks { set, .. } => {
                self.ranks.as_ref().expect("it has started the pass").almost_over(*set)
            }
        };
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
        let (Work::Search(key), began) = self.pop_started()? else {
            unreachable!("passes are finished in the order of their starts")
        };
        let now = Instant::now();
        self.note_time(key, now - began.max(self.finished));
        self.finished = now;
        let indices: Vec<usize> = (0..batch.len()).collect();
        let mut answers = vec![Vec::new(); batch.len()];
        let doubtful = self.collect_certified(batch, &indices, key, &mut answers);
        if doubtful.is_empty() {
            return Ok(answers.into_iter().map(Some).collect());
        }
        let doubtful = self.retry(batch, doubtful, key, &mut answers, &mut || ())?;
        self.counters.fallbacks += doubtful.len() as u64;
        let (formulas, exact) = doubtful.into_iter().partition(|&index| is_formula(batch[index]));
        self.without_certificates(batch, exact, formulas, answers, &mut || ())
    }
}
