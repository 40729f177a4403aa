//! Swaps in a version whose engines do not fit in memory beside those of the served one: one device
//! after another.
//!
//! One old replica retires, a new one takes its device, and a part of the HTTP threads changes to
//! the new version. So one replica less than usual answers, and no request sees both versions. The
//! last old replica does not retire: once all threads have changed, it ends with the last request
//! that holds the old version.

use std::collections::HashMap;
use std::error::Error;
use std::sync::{Arc, Mutex, MutexGuard, mpsc};
use std::time::Duration;

use kindred::GpuError;
use kindred::engines::{EngineStartError, Maker, Makers};
use kindred::queue::{Replicas, Until};
use tracing::{info, warn};

use super::load::Started;
use super::opened::Opened;
use super::{LoadError, Loader, ModelSet, Models, ServedModel};
use crate::config::Config;

/// Whether the new version lacks only memory, and the served one has several replicas.
pub(super) fn is_worth_trying(why: &LoadError, before: Option<&ServedModel>) -> bool {
    let lacks_memory = matches!(
        why,
        LoadError::Engine(EngineStartError::Gpu { source: GpuError::DoesNotFit { .. }, .. })
    );
    lacks_memory && before.is_some_and(|before| before.replicas.number() >= 2)
}

/// The turns of the makers of all new replicas. Once they are given up, none of them makes an
/// engine.
#[derive(Clone, Default)]
struct Turns(Arc<Mutex<HashMap<usize, mpsc::Sender<()>>>>);

impl Turns {
    fn lock(&self) -> MutexGuard<'_, HashMap<usize, mpsc::Sender<()>>> {
        self.0.lock().expect("nothing panics while it holds this lock")
    }

    fn begin(&self, replica: usize) {
        if let Some(begin) = self.lock().get(&replica) {
            let _ = begin.send(());
        }
    }

    fn give_up(&self) {
        self.lock().clear();
    }
}

/// Why a replica is not served.
type Reason = Box<dyn Error + Send + Sync>;

/// Tells how the first attempt of one new replica ended.
type Ended = mpsc::Receiver<Result<(), String>>;

/// The same maker, but its first attempt waits for its turn. If the first replica of all fails, the
/// others are given up.
fn in_turn(turns: &Turns, replica: usize, mut make: Maker) -> (Maker, Ended) {
    let ((begin, begins), (end, ended)) = (mpsc::channel(), mpsc::channel());
    turns.lock().insert(replica, begin);
    let turns = turns.clone();
    let mut first = Some((begins, end));
    let mut is_given_up = false;
    let given_up = || Err(EngineStartError::Broken("the swap was given up".into()));
    let make: Maker = Box::new(move |warm| {
        if is_given_up {
            return given_up();
        }
        // If the attempt panics, `end` is dropped.
        let Some((begins, end)) = first.take() else { return make(warm) };
        if begins.recv().is_err() {
            is_given_up = true;
            return given_up();
        }
        let made = make(warm);
        if replica == 0 && made.is_err() {
            turns.give_up();
        }
        let _ = end.send(made.as_ref().map(drop).map_err(ToString::to_string));
        made
    });
    (make, ended)
}

/// Lets a replica begin, and waits until it works.
fn take_turn(
    turns: &Turns,
    replica: usize,
    ended: &Ended,
    replicas: &Replicas,
    within: Duration,
) -> Result<(), Reason> {
    let too_long = || format!("it was not ready within {} ms", within.as_millis());
    turns.begin(replica);
    ended.recv_timeout(within).map_err(|e| match e {
        mpsc::RecvTimeoutError::Timeout => too_long(),
        mpsc::RecvTimeoutError::Disconnected => "its engine broke while it was being made".into(),
    })??;
    if replicas.until_it_works(replica, within) { Ok(()) } else { Err(too_long().into()) }
}

/// Replaces the model of this name in `current`, which is served, device by device. If a new
/// replica does not start, the old ones start again.
///
/// # Errors
/// If the new version is not served: then the old one is, with all of its replicas.
pub(super) fn swap(
    loader: &Loader,
    models: &Models,
    current: Arc<ModelSet>,
    opened: Opened,
    config: &Config,
) -> Result<Arc<ServedModel>, LoadError> {
    let before = current.named(opened.model.name()).expect("is_worth_trying said so");
    let old = before.replicas.clone();
    let (number, name) = (old.number(), opened.model.name().to_owned());
    let within = Duration::from_millis(config.engine_hang_timeout_ms);
    let failed = |replica: usize, source: Reason| LoadError::Rolling {
        replica: replica + 1,
        of: number,
        source,
    };
    let Makers { each, placed } = loader.makers(&opened, config, Some(before))?;
    if each.len() != number {
        let reason = format!("the new version has {} replicas", each.len());
        return Err(failed(0, reason.into()));
    }
    let turns = Turns::default();
    let (each, ended): (Vec<Maker>, Vec<Ended>) =
        each.into_iter().enumerate().map(|(replica, make)| in_turn(&turns, replica, make)).unzip();
    let makers = Makers { each, placed };
    info!(
        model = name,
        "the new version does not fit beside the old one: taking one device after another"
    );

    let first = || -> Result<Started, Reason> {
        old.retire(0, within)?;
        turns.begin(0);
        Ok(loader.start_beside(opened, config, makers, Until::First)?)
    };
    let started = match first() {
        Ok(started) => started,
        Err(why) => {
            turns.give_up();
            start_again(&old, 1, within);
            return Err(failed(0, why));
        }
    };
    let new = started.served.replicas.clone();
    let set = Arc::new(current.with(started.served.clone()));
    for (replica, own) in ended.iter().enumerate().take(number - 1).skip(1) {
        // So each replica gets the same share: the new version has this many, and the old one the
        // rest of all but one.
        models.replace_for(&set, replica, number - 1);
        let taken = old.retire(replica, within).map_err(Reason::from);
        let taken = taken.and_then(|()| take_turn(&turns, replica, own, &new, within));
        if let Err(why) = taken {
            models.replace_for(&set, 0, number);
            turns.give_up();
            drop((started, set));
            new.until_ended(within);
            start_again(&old, replica + 1, within);
            return Err(failed(replica, why));
        }
        started.until_warm(replica);
        info!(model = name, replica, "the new version has taken a device");
    }
    let last = number - 1;
    let served = loader.watched(started);
    models.replace(current.with(served.clone()));
    drop((current, set));
    // Ends with the last request that holds the old version.
    let longest = Duration::from_millis(config.request_timeout_ms) + Duration::from_secs(1);
    if !old.until_ended(longest) {
        warn!(
            model = name,
            "the old version is still in use; the last device is taken once it is free"
        );
    }
    if let Err(why) = take_turn(&turns, last, &ended[last], &new, within) {
        warn!(
            model = name,
            replica = last,
            "the new version has not taken the last device yet: {why}"
        );
    }
    Ok(served)
}

/// Starts the first n old replicas again.
fn start_again(old: &Replicas, replicas: usize, within: Duration) {
    (0..replicas).for_each(|replica| old.start_again(replica));
    for replica in 0..replicas {
        if !old.until_it_works(replica, within) {
            warn!(replica, "an engine of the old version does not work again yet");
        }
    }
}
