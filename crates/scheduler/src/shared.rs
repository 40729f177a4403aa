//! What callers and workers share: the slots that are taken, the state of the devices, the workers
//! that sleep.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tokio::sync::watch;

use crate::account::{Account, Slots, at_most_half, may_take};
use crate::error::SubmitError;
use crate::parking::Parking;
use crate::state::{DeviceState, EngineLost};
use crate::states::States;
use crate::statistics::{Counted, DeviceCounters, LaneCounters, LaneStatistics, Statistics};
use crate::sync::{AtomicU32, AtomicU64, Ordering};

/// Bounds of a scheduler and of its devices.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Slots that the jobs of all lanes share, while they wait or are in work: plain queries.
    /// Others take as many as they usually cost.
    pub capacity_slots: u32,
    /// How often a device that fails is made again within a minute; failed attempts count.
    pub max_restarts: u32,
    /// How long a slice, or making a device again, may take before the device is given up.
    pub hang_timeout: Duration,
    /// How long a slice may take while another device works: the jobs are then asked again of it.
    /// At most `hang_timeout`.
    pub hang_timeout_beside_others: Duration,
    /// How long a worker without work looks for some before it sleeps; a core has nothing else to
    /// do meanwhile. To wake a worker that sleeps takes its caller tens of microseconds: good for
    /// callers that ask one question after the other.
    pub linger: Duration,
}

pub(crate) struct Shared {
    pub(crate) limits: Limits,
    taken: Taken,
    /// In the order of the lanes; set when the workers start.
    lanes: OnceLock<Vec<Arc<LaneShared>>>,
    pub(crate) parking: Parking,
    /// The state of each worker's device.
    pub(crate) states: States,
    /// What the devices of each worker counted.
    pub(crate) devices: OnceLock<Vec<DeviceCounters>>,
    /// Why a device was lost, for the thread that then ends the process.
    lost: watch::Sender<Option<EngineLost>>,
    pub(crate) statistics: Arc<Statistics>,
}

/// On a cache line of its own: every request writes it.
#[repr(align(128))]
struct Taken(AtomicU32);

/// A bit for each shard of a lane's inbox that may have jobs, and one for the probe. Outside the
/// locks of the shards, because workers read it often; on a cache line of its own. Callers write it
/// only when they fill an empty shard.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct Filled(pub(crate) AtomicU64);

/// One lane, as callers and workers see it.
#[derive(Default)]
#[repr(align(128))]
pub(crate) struct LaneShared {
    pub(crate) filled: Filled,
    /// Slots of its jobs that wait or run.
    taken: AtomicU32,
    /// Device time for one slot in recent passes, on average, in nanoseconds.
    nanoseconds_per_slot: AtomicU64,
    pub(crate) counters: LaneCounters,
}

impl LaneShared {
    /// Whether jobs may wait in its inbox.
    pub(crate) fn is_filled(&self) -> bool {
        self.filled.0.load(Ordering::SeqCst) != 0
    }

    /// Adds a pass over n slots to the moving average.
    pub(crate) fn note_pass(&self, slots: usize, took: Duration) {
        let now = (took.as_nanos() / slots.max(1) as u128).min(u128::from(u64::MAX)) as u64;
        let before = self.nanoseconds_per_slot.load(Ordering::Relaxed);
        let average = if before == 0 { now } else { before - before / 8 + now / 8 };
        // If two workers write at the same time, one value is lost; an average allows that.
        self.nanoseconds_per_slot.store(average, Ordering::Relaxed);
    }

    pub(crate) fn statistics(&self) -> LaneStatistics {
        self.counters.snapshot(self.taken.load(Ordering::Relaxed))
    }
}

impl Shared {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            limits,
            taken: Taken(AtomicU32::new(0)),
            lanes: OnceLock::new(),
            parking: Parking::new(),
            states: States::new(),
            devices: OnceLock::new(),
            lost: watch::Sender::new(None),
            statistics: Arc::default(),
        }
    }

    /// Begins with these lanes and n workers.
    pub(crate) fn start(&self, lanes: Vec<Arc<LaneShared>>, workers: usize) {
        let _ = self.lanes.set(lanes);
        let _ = self.devices.set((0..workers).map(|_| DeviceCounters::default()).collect());
    }

    /// Takes slots for a job of n requests, whose costs are `usual` slots together, if they are
    /// free and the caller does not hold too much already. What dear requests cost beyond one slot
    /// each counts up to an eighth of the queue: otherwise two callers with a dear job each would
    /// fill it. A job that needs more than half of the queue counts as half.
    pub(crate) fn admit(
        &self,
        lane: &LaneShared,
        account: &Arc<Account>,
        requests: usize,
        usual: usize,
    ) -> Result<Slots, SubmitError> {
        let capacity = self.limits.capacity_slots;
        let slots = usual.min(requests.max(capacity as usize / 8));
        // No more than the capacity, which is a u32.
        let asked = at_most_half(slots as u64, capacity.into()) as u32;
        // Counted first, so that two requests of one caller can't both be its first.
        let slots = Slots::take(account.clone(), asked);
        let held = account.slots().saturating_sub(asked);
        let may = |taken: u32| {
            let free = capacity - taken;
            may_take(asked.into(), held.into(), free.into()).then_some(taken + asked)
        };
        match self.taken.0.fetch_update(Ordering::AcqRel, Ordering::Relaxed, may) {
            Ok(_) => {
                lane.taken.fetch_add(asked, Ordering::Relaxed);
                Ok(slots)
            }
            Err(taken) => {
                self.statistics.refused_full.fetch_add(1, Ordering::Relaxed);
                let (free, retry_after) = (capacity - taken, self.drains_in());
                Err(SubmitError::Full { asked, held, free, capacity, retry_after })
            }
        }
    }

    /// How long the devices will need for what is in the queue.
    fn drains_in(&self) -> Duration {
        let nanoseconds = |lane: &Arc<LaneShared>| {
            let per_slot = lane.nanoseconds_per_slot.load(Ordering::Relaxed);
            u64::from(lane.taken.load(Ordering::Relaxed)).saturating_mul(per_slot)
        };
        let all = self.lanes.get().into_iter().flatten().map(nanoseconds);
        let working = u64::from(self.states.working().max(1));
        Duration::from_nanos(all.fold(0, u64::saturating_add) / working)
    }

    /// Frees slots of a lane. Must be called before any of their callers gets its result.
    pub(crate) fn free(&self, lane: &LaneShared, slots: u32) {
        if slots > 0 {
            lane.taken.fetch_sub(slots, Ordering::Relaxed);
            self.taken.0.fetch_sub(slots, Ordering::AcqRel);
        }
    }

    /// Refuses a caller if no device works.
    pub(crate) fn check_devices(&self) -> Result<(), SubmitError> {
        if self.states.working() > 0 {
            return Ok(());
        }
        let refusal = match self.state() {
            DeviceState::Working => return Ok(()),
            DeviceState::Restarting { retry_after } => {
                SubmitError::EngineRestarting { retry_after }
            }
            DeviceState::Lost => SubmitError::EngineGone,
        };
        self.statistics.refused_without_device.fetch_add(1, Ordering::Relaxed);
        Err(refusal)
    }

    pub(crate) fn state(&self) -> DeviceState {
        self.states.together()
    }

    /// Notes why a device was lost, unless all callers are gone.
    pub(crate) fn note_lost(&self, reason: EngineLost) {
        if !self.parking.are_callers_gone() {
            self.lost.send_if_modified(|lost| lost.is_none() && lost.replace(reason).is_none());
        }
    }

    pub(crate) fn lost(&self) -> watch::Receiver<Option<EngineLost>> {
        self.lost.subscribe()
    }

    pub(crate) fn hang_up(&self) {
        self.statistics.hung_up.fetch_add(1, std::sync::atomic::Ordering::Release);
    }

    /// How many callers have hung up so far.
    pub(crate) fn hung_up(&self) -> u64 {
        self.statistics.hung_up.load(std::sync::atomic::Ordering::Acquire)
    }

    pub(crate) fn counted(&self) -> Counted {
        let relaxed = std::sync::atomic::Ordering::Relaxed;
        let statistics = &self.statistics;
        let mut device_counters = Vec::new();
        for devices in self.devices.get().into_iter().flatten() {
            devices.add_to(&mut device_counters);
        }
        Counted {
            capacity_slots: self.limits.capacity_slots,
            refused_full: statistics.refused_full.load(relaxed),
            refused_without_device: statistics.refused_without_device.load(relaxed),
            deadline_passed: statistics.deadline_passed.load(relaxed),
            hung_up: self.hung_up(),
            failed: statistics.failed.load(relaxed),
            asked_again: statistics.asked_again.load(relaxed),
            restarts: statistics.restarts.load(relaxed),
            state: self.state(),
            replicas: self.states.all(),
            device_counters,
        }
    }
}
