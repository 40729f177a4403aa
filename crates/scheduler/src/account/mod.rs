//! The account: what each caller holds of what all callers share.
//!
//! A caller is a connection, or all connections that use one API key. What a request takes is
//! counted for its caller before it is allocated: slots in a queue, memory for the request and for
//! its answer. Two rules share it out.
//!
//! # Room: dynamic thresholds (Choudhury and Hahne 1998)
//!
//! A caller may hold as much as it leaves free for the others.
//!
//! ```text
//! take(asked):
//!     asked ← at most half of the capacity
//!     refuse unless asked ≤ free
//!     refuse unless held = 0 or held + asked ≤ free − asked
//!     held += asked; free −= asked
//! ```
//!
//! If `n` callers ask for all they can get, each stops where what it holds is what is free, so each
//! has `capacity / (n + 1)`: one caller alone half, two a third each. As much stays free for one
//! who arrives, and who holds the most is refused first. The first request of a caller only has to
//! fit, so one of any size is admitted once half is free. Of memory, an eighth is kept for small
//! requests (`memory.rs`).
//!
//! # Time: start-time fair queueing (Goyal, Vin and Cheng 1996)
//!
//! ```text
//! clock(caller) = max(its clock, now)                   a new caller's clock is now
//! next:           the caller with the lowest clock; now ← max(now, that clock)
//! charge(time):   its clock ← clock(caller) + time      time that was spent on it
//! ```
//!
//! Who is served is the one furthest behind. So where one is served at a time, neither of two
//! callers that always wait gets ahead by more than one service. Who asks for nothing falls behind
//! `now` and starts there: nobody saves up time. Clocks behind `now` are forgotten.
//!
//! All of this takes constant time for each request: a few atomic counters and a look-up by caller.
//! Each charge pays for at most two clocks to be forgotten.

mod memory;
mod turns;

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

pub use memory::{Full, Memory, Pool, Reservation};
pub use turns::{ByCaller, ById, Contention, Turns};

/// What one caller holds at the moment.
#[derive(Debug)]
pub struct Account {
    id: u64,
    slots: AtomicU32,
    /// Bytes, by [`Pool`].
    bytes: [AtomicU64; Pool::ALL.len()],
}

impl Account {
    /// The account of a new caller.
    pub fn new() -> Arc<Self> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let (id, slots) = (NEXT.fetch_add(1, Relaxed), AtomicU32::new(0));
        Arc::new(Self { id, slots, bytes: Default::default() })
    }

    /// Tells callers apart.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Slots that it holds, in the queues of all models.
    pub fn slots(&self) -> u32 {
        self.slots.load(Relaxed)
    }
}

/// Slots of a queue that a caller holds, until this is dropped.
#[derive(Debug)]
pub struct Slots {
    account: Arc<Account>,
    number: u32,
}

impl Slots {
    /// Counts them for this caller. The queue decides whether it may have them.
    pub fn take(account: Arc<Account>, number: u32) -> Self {
        account.slots.fetch_add(number, Relaxed);
        Self { account, number }
    }

    /// The number of slots.
    pub fn number(&self) -> u32 {
        self.number
    }

    /// The id of its caller.
    pub fn caller(&self) -> u64 {
        self.account.id
    }
}

impl Drop for Slots {
    fn drop(&mut self) {
        self.account.slots.fetch_sub(self.number, Relaxed);
    }
}

/// One request counts for at most half of what there is. So a request of any size can be admitted
/// when its caller holds nothing else, and it leaves room for others.
pub fn at_most_half(asked: u64, capacity: u64) -> u64 {
    asked.min(capacity.div_ceil(2))
}

/// Whether a caller that holds `held` may take `asked` more: it must fit, and what the caller then
/// holds must not be more than what it leaves free. Its first request only has to fit.
pub fn may_take(asked: u64, held: u64, free: u64) -> bool {
    asked <= free && (held == 0 || held + asked <= free - asked)
}

#[cfg(all(test, not(feature = "shuttle")))]
mod tests {
    use super::*;

    /// Each caller in turn takes one, until all are refused. Updates what each holds.
    fn all_take(capacity: u64, held: &mut [u64]) {
        loop {
            let mut is_over = true;
            for caller in 0..held.len() {
                let free = capacity - held.iter().sum::<u64>();
                if may_take(1, held[caller], free) {
                    held[caller] += 1;
                    is_over = false;
                }
            }
            if is_over {
                return;
            }
        }
    }

    #[test]
    fn callers_that_ask_for_everything_leave_as_much_free_as_each_of_them_holds() {
        for callers in 1..20 {
            let mut held = vec![0; callers];
            all_take(840, &mut held);
            let share = 840 / (callers as u64 + 1);
            assert!(held.iter().all(|held| held.abs_diff(share) <= 1), "{held:?}");
            assert!(may_take(share - 1, 0, 840 - held.iter().sum::<u64>()), "there is room");
        }
    }

    #[test]
    fn a_request_of_any_size_fits_when_nothing_else_is_held() {
        for capacity in [1, 2, 3, 100] {
            for asked in [1, 2, 50, 1000] {
                let counted = at_most_half(asked, capacity);
                assert!(may_take(counted, 0, capacity), "{asked} of {capacity}");
                assert!(capacity < 2 || !may_take(capacity, 1, capacity - 1));
            }
        }
    }

    #[test]
    fn slots_are_held_until_they_are_dropped() {
        let account = Account::new();
        let (one, two) = (Slots::take(account.clone(), 1), Slots::take(account.clone(), 2));
        assert_eq!((account.slots(), one.number(), two.caller()), (3, 1, account.id()));
        drop(one);
        assert_eq!(account.slots(), 2);
        drop(two);
        assert_eq!(account.slots(), 0);
        assert_ne!(Account::new().id(), account.id());
    }
}
