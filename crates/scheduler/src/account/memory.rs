//! Memory that requests and answers may take, counted before it is allocated.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::{Account, at_most_half, may_take};

/// Requests for this many bytes or fewer may use the eighth of a pool that is kept for them.
const SMALL: u64 = 256 << 10;

/// What memory is for. Requests and answers have a pool each, so that neither waits for the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pool {
    /// Bodies, what they are parsed into, and the queries made of them.
    Requests,
    /// Answers, from before they are written until they are sent.
    Answers,
}

// In the order of their indices, with their names in metrics.
contract::names! { Pool { Requests: "requests", Answers: "answers" } }

/// The memory that all callers share.
#[derive(Debug)]
pub struct Memory {
    /// Bytes, by [`Pool`].
    capacity: [u64; Pool::ALL.len()],
    taken: [AtomicU64; Pool::ALL.len()],
    /// The sum of all that was ever taken.
    counted: [AtomicU64; Pool::ALL.len()],
}

/// A caller may not take that much memory now.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full {
    pool: Pool,
    asked: u64,
    held: u64,
    free: u64,
    capacity: u64,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mb = |bytes: u64| bytes as f64 / 1e6;
        let (what, setting) = match self.pool {
            Pool::Requests => ("this request", "body_memory_mb"),
            Pool::Answers => ("the answer", "answer_memory_mb"),
        };
        write!(
            f,
            "{what} needs {:.1} MB of memory; {:.1} MB of {:.0} MB ({setting}) are free, and this caller \
             holds {:.1} MB",
            mb(self.asked),
            mb(self.free),
            mb(self.capacity),
            mb(self.held),
        )
    }
}

impl Memory {
    /// n megabytes for requests and for answers.
    pub fn new(requests_mb: u32, answers_mb: u32) -> Arc<Self> {
        let capacity = [requests_mb, answers_mb].map(|mb| u64::from(mb) * 1_000_000);
        Arc::new(Self { capacity, taken: Default::default(), counted: Default::default() })
    }

    /// Takes memory for a caller, until the returned reservation is dropped. More than half of the
    /// pool counts as half.
    ///
    /// # Errors
    /// If it is not free, or the caller holds too much already.
    pub fn take(
        self: &Arc<Self>,
        account: &Arc<Account>,
        pool: Pool,
        bytes: u64,
    ) -> Result<Reservation, Full> {
        let mut held =
            Reservation { memory: self.clone(), account: account.clone(), pool, bytes: 0 };
        held.grow(bytes)?;
        Ok(held)
    }

    /// As [`take`](Self::take), for memory that is in use already: it is charged and never refused.
    pub fn charge(self: &Arc<Self>, account: &Arc<Account>, pool: Pool, bytes: u64) -> Reservation {
        let mut held =
            Reservation { memory: self.clone(), account: account.clone(), pool, bytes: 0 };
        held.set(bytes);
        held
    }

    /// Bytes that are taken of a pool.
    pub fn taken(&self, pool: Pool) -> u64 {
        self.taken[pool as usize].load(Relaxed)
    }

    /// Bytes of a pool.
    pub fn capacity(&self, pool: Pool) -> u64 {
        self.capacity[pool as usize]
    }

    /// The sum of all bytes that were ever taken of a pool.
    pub fn counted(&self, pool: Pool) -> u64 {
        self.counted[pool as usize].load(Relaxed)
    }
}

/// Memory that a caller holds.
#[derive(Debug)]
pub struct Reservation {
    memory: Arc<Memory>,
    account: Arc<Account>,
    pool: Pool,
    bytes: u64,
}

impl Reservation {
    /// Takes more, so that the reservation holds `to` bytes in all. It never shrinks.
    ///
    /// # Errors
    /// If that is not free, or the caller holds too much already. The reservation is then
    /// unchanged.
    pub fn grow(&mut self, to: u64) -> Result<(), Full> {
        let capacity = self.memory.capacity[self.pool as usize];
        let Some(more) = at_most_half(to, capacity).checked_sub(self.bytes) else { return Ok(()) };
        let (taken, own) = self.counters();
        // Counted first, so that two requests of one caller can't both be its first. What this
        // request holds itself counts as free for it.
        let held = own.fetch_add(more, Relaxed).saturating_sub(self.bytes);
        let may = |taken: u64| {
            let free = (capacity + self.bytes).saturating_sub(taken);
            // However many callers take large pieces, some is left for small ones.
            let asked = more + self.bytes;
            let kept = if asked <= SMALL { 0 } else { capacity / 8 };
            let may = may_take(asked, held, free) && asked <= free.saturating_sub(kept);
            may.then_some(taken + more)
        };
        match taken.fetch_update(Relaxed, Relaxed, may) {
            Ok(_) => {
                self.memory.counted[self.pool as usize].fetch_add(more, Relaxed);
                self.bytes += more;
                Ok(())
            }
            Err(taken) => {
                own.fetch_sub(more, Relaxed);
                let free = capacity.saturating_sub(taken);
                Err(Full { pool: self.pool, asked: to, held: held + self.bytes, free, capacity })
            }
        }
    }

    /// Sets the size of what was estimated and is now made. It is never refused if it is no larger
    /// than the estimate. If it is, it must leave what is kept for small pieces, or else what was
    /// made is to be dropped.
    ///
    /// # Errors
    /// If that is not free. The reservation is then unchanged.
    pub fn settle(&mut self, bytes: u64) -> Result<(), Full> {
        if bytes > self.bytes {
            let capacity = self.memory.capacity[self.pool as usize];
            let kept = if bytes <= SMALL { 0 } else { capacity / 8 };
            let (taken, own) = self.counters();
            let (more, most) = (bytes - self.bytes, capacity - kept);
            let may = |taken: u64| (taken + more <= most).then_some(taken + more);
            if let Err(taken) = taken.fetch_update(Relaxed, Relaxed, may) {
                let (held, free) = (own.load(Relaxed), capacity.saturating_sub(taken));
                return Err(Full { pool: self.pool, asked: bytes, held, free, capacity });
            }
            own.fetch_add(more, Relaxed);
            self.memory.counted[self.pool as usize].fetch_add(more, Relaxed);
            self.bytes = bytes;
        }
        self.set(bytes);
        Ok(())
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Sets the true size, more or less than was counted. The memory is in use by now, so it is
    /// charged and never refused.
    pub fn set(&mut self, bytes: u64) {
        let more = bytes.saturating_sub(self.bytes);
        if more > 0 {
            self.memory.counted[self.pool as usize].fetch_add(more, Relaxed);
        }
        let (taken, own) = self.counters();
        for counter in [taken, own] {
            if bytes > self.bytes {
                counter.fetch_add(bytes - self.bytes, Relaxed);
            } else {
                counter.fetch_sub(self.bytes - bytes, Relaxed);
            }
        }
        self.bytes = bytes;
    }

    fn counters(&self) -> (&AtomicU64, &AtomicU64) {
        let index = self.pool as usize;
        (&self.memory.taken[index], &self.account.bytes[index])
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.set(0);
    }
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    const MB: u64 = 1_000_000;

    #[test]
    fn one_caller_gets_half_and_another_what_it_needs() {
        let (memory, hog, other) = (Memory::new(100, 10), Account::new(), Account::new());
        let take = |account, mb| memory.take(account, Pool::Requests, mb * MB);
        let first = take(&hog, 1000).unwrap();
        assert_eq!(memory.taken(Pool::Requests), 50 * MB, "half, however large it is");
        let full = take(&hog, 1).unwrap_err();
        assert_eq!(
            full.to_string(),
            "this request needs 1.0 MB of memory; 50.0 MB of 100 MB (body_memory_mb) are free, and this caller \
             holds 50.0 MB"
        );
        let others = (take(&other, 20).unwrap(), take(&other, 5).unwrap());
        assert!(take(&other, 1).is_err(), "25 held and 25 free");
        let third = Account::new();
        assert!(take(&third, 13).is_err(), "an eighth is for small requests");
        assert!(memory.take(&third, Pool::Requests, SMALL).is_ok());
        assert!(memory.take(&hog, Pool::Answers, MB).is_ok(), "the other pool is apart");
        drop((first, others));
        assert_eq!(memory.taken(Pool::Requests), 0);
        assert!(take(&hog, 50).is_ok());
    }

    #[test]
    fn what_was_estimated_too_low_does_not_take_what_is_kept_for_others() {
        let (memory, account) = (Memory::new(100, 100), Account::new());
        let mut answers: Vec<Reservation> =
            (0..3).map(|_| memory.take(&account, Pool::Answers, SMALL / 3).unwrap()).collect();
        assert!(answers[0].settle(42 * MB).is_ok() && answers[1].settle(42 * MB).is_ok());
        let full = answers[2].settle(42 * MB).unwrap_err();
        assert!(full.to_string().starts_with("the answer needs 42.0 MB"), "{full}");
        assert_eq!(answers[2].bytes(), SMALL / 3, "unchanged");
        drop(answers.pop());
        let other = Account::new();
        let small: Vec<_> =
            (0..40).map_while(|_| memory.take(&other, Pool::Answers, SMALL).ok()).collect();
        assert!(small.len() > 20, "an eighth is for small ones, which are {}", small.len());
        drop((answers, small));
        let mut alone = memory.take(&account, Pool::Answers, 99 * MB).unwrap();
        assert_eq!(alone.bytes(), 50 * MB);
        assert!(alone.settle(88 * MB).is_err() && alone.settle(87 * MB).is_ok());
        assert!(alone.settle(MB).is_ok());
        assert_eq!(memory.taken(Pool::Answers), MB, "less is always right");
    }

    #[test]
    fn what_is_held_grows_and_is_charged_afterwards() {
        let (memory, account) = (Memory::new(100, 100), Account::new());
        let mut held = memory.take(&account, Pool::Requests, 10 * MB).unwrap();
        held.grow(5 * MB).unwrap();
        assert_eq!(memory.taken(Pool::Requests), 10 * MB, "it does not shrink");
        held.grow(40 * MB).unwrap();
        let other = memory.take(&Account::new(), Pool::Requests, 35 * MB).unwrap();
        assert!(held.grow(50 * MB).is_ok(), "its own memory does not stand in its way");
        assert!(memory.take(&account, Pool::Requests, 6 * MB).is_err());
        held.set(150 * MB);
        assert_eq!(memory.taken(Pool::Requests), 185 * MB, "it is there, so it is charged");
        assert!(memory.take(&Account::new(), Pool::Requests, 1).is_err());
        held.set(0);
        drop(other);
        assert_eq!(memory.taken(Pool::Requests), 0);
        assert_eq!(memory.counted(Pool::Requests), (150 + 35) * MB, "growth is counted once");
        drop(held);
        assert_eq!(account.bytes[0].load(Relaxed), 0);
    }
}
