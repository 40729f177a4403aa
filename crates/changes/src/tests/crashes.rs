//! The machine stops at every call that changes something, and forgets what was not synced.

use std::time::Duration;

use super::histories;
use super::naive::{Naive, NaiveBatch, fold, open_keeping, usual_disk};
use crate::storage::simulated::{Random, Simulated};
use crate::{ChangeError, Changes, Durability, Snapshot};

/// One history: batches, with the durability that each has, and when the folder is opened anew and
/// its changes are folded.
struct Script {
    batches: Vec<(NaiveBatch, Durability)>,
    reopen_before: Option<usize>,
    folds_before: Vec<usize>,
    keep_old: Duration,
    max_log_bytes: u64,
}

impl Script {
    fn random(random: &mut Random) -> Self {
        let none = random.below(3);
        let batches = (0..3 + random.below(8)).map(|_| {
            let durability = match none == 0 || (none == 1 && random.coin()) {
                true => Durability::Synced,
                false => Durability::None,
            };
            (NaiveBatch::random(random), durability)
        });
        let batches: Vec<_> = batches.collect();
        let reopen_before = random.coin().then(|| random.below(batches.len()));
        let max_log_bytes = [130, 500, 1 << 20][random.below(3)];
        let folds = random.below(3);
        let folds_before = (0..folds).map(|_| random.below(batches.len() + 1)).collect();
        let keep_old = [Duration::ZERO, Duration::MAX][random.below(2)];
        Self { batches, reopen_before, folds_before, keep_old, max_log_bytes }
    }

    fn open(&self, disk: &Simulated) -> Result<Changes, ChangeError> {
        open_keeping(disk, self.max_log_bytes, self.keep_old)
    }

    /// Folds if it is time to: everything is durable then.
    fn fold(&self, index: usize, changes: &Changes, told: &mut Told) -> Result<(), ChangeError> {
        if self.folds_before.contains(&index) {
            let before = changes.snapshot().position();
            fold(changes)?;
            assert_eq!(changes.snapshot().position(), before);
            told.durable = told.positions.len();
            told.synced = told.durable;
        }
        Ok(())
    }

    /// Commits all batches until the process is killed. For each that was acknowledged, the
    /// position; and how many of them are durable.
    fn run(&self, disk: &Simulated) -> Told {
        let mut told = Told::default();
        let mut changes = self.open(disk).unwrap();
        for (index, (batch, durability)) in self.batches.iter().enumerate() {
            if self.reopen_before == Some(index) {
                told.durable = told.positions.len();
                match changes.close().and_then(|()| self.open(disk)) {
                    Ok(opened) => changes = opened,
                    Err(_) => {
                        // Killed while it closed or opened.
                        told.durable = told.synced;
                        return told;
                    }
                }
            }
            if self.fold(index, &changes, &mut told).is_err() {
                return told;
            }
            let before = changes.snapshot().position();
            told.tried += 1;
            match changes.commit(batch.built(changes.schema()), *durability, None) {
                Ok(committed) => {
                    told.positions.push(committed.position);
                    if committed.is_durable {
                        told.durable = told.positions.len();
                        told.synced = told.durable;
                    }
                }
                Err(_) => {
                    assert_eq!(changes.snapshot().position(), before, "nobody sees a lost batch");
                    return told;
                }
            }
        }
        let _ = self.fold(self.batches.len(), &changes, &mut told);
        told
    }
}

#[derive(Default)]
struct Told {
    tried: usize,
    positions: Vec<u64>,
    durable: usize,
    /// As `durable`, of which batches said so themselves.
    synced: usize,
}

/// Checks a folder as the crash left it: it has the first batches, all that are durable among them.
fn check(script: &Script, told: &Told, disk: &Simulated, context: &str) -> Changes {
    let changes =
        script.open(disk).unwrap_or_else(|error| panic!("{context}: it does not open: {error}"));
    let snapshot = changes.snapshot();
    let mut naive = Naive::new();
    let mut kept = 0;
    while naive.check(&snapshot).is_err() || kept < told.durable {
        assert!(kept < told.tried, "{context}: no first batches have these rows: {snapshot:?}");
        naive.apply(&script.batches[kept].0);
        kept += 1;
    }
    let last = told.positions.iter().take(kept).max().copied().unwrap_or(0);
    assert!(snapshot.position() >= last, "{context}");
    changes
}

#[test]
fn whatever_the_disk_forgets_every_acknowledged_batch_is_there_and_no_half() {
    let images = if cfg!(miri) { 1 } else { 3 };
    let (mut points, mut dropped, mut folded) = (0, 0, 0);
    let histories = histories(20);
    for seed in 0..histories {
        let mut random = Random(seed);
        let script = Script::random(&mut random);
        let whole = usual_disk();
        script.run(&whole);
        for stop in 0..whole.calls().len() {
            let disk = usual_disk().stop_after(stop);
            let told = script.run(&disk);
            for image in 0..images {
                let context = format!("seed {seed}, call {stop}, image {image}");
                // A process that is killed leaves what the system has in memory.
                let left = if image == 0 { disk.live() } else { disk.after_crash(&mut random) };
                let after = Simulated::of(left);
                let changes = check(&script, &told, &after, &context);
                // It goes on, and no position is given twice.
                let mut seen = told.positions.clone();
                seen.push(changes.snapshot().position());
                let batch = NaiveBatch::random(&mut random);
                let built = batch.built(changes.schema());
                let committed = changes.commit(built, Durability::Synced, None).unwrap();
                assert!(seen.iter().all(|&given| given < committed.position), "{context}");
                let now = changes.snapshot();
                let generation = changes.current().number();
                folded += u64::from(generation > 1);
                if random.below(4) == 0 {
                    assert!(fold(&changes).unwrap().is_some_and(|new| new.number() > generation));
                }
                drop(changes);
                let again = script.open(&after);
                let again = again.unwrap_or_else(|error| panic!("{context}: {error}")).snapshot();
                let seen = |of: &Snapshot| (of.position(), of.next_number(), of.live_rows());
                assert_eq!((again.position(), seen(&again)), (committed.position, seen(&now)));
                points += 1;
                dropped += u64::from(after.live().files.len() > 1);
            }
        }
    }
    let least = |of_60: u64| of_60 * histories / 60;
    let are_enough = points >= least(10_000) && dropped > least(1_000) && folded > least(2_000);
    assert!(cfg!(miri) || are_enough, "{points} points, {dropped}, {folded} after a fold");
}

#[test]
fn a_machine_that_stops_again_and_again_while_it_opens_loses_nothing() {
    for seed in 0..if cfg!(miri) { 1 } else { 200 } {
        let mut random = Random(seed);
        let script = Script::random(&mut random);
        let calls = {
            let whole = usual_disk();
            script.run(&whole);
            whole.calls().len()
        };
        let disk = usual_disk().stop_after(random.below(calls));
        let told = script.run(&disk);
        let mut image = disk.after_crash(&mut random);
        for round in 0..5 {
            let next = Simulated::of(image.clone()).stop_after(random.below(40));
            if let Ok(changes) = script.open(&next) {
                let _ = fold(&changes);
            }
            image = next.after_crash(&mut random);
            let after = Simulated::of(image.clone());
            check(&script, &told, &after, &format!("seed {seed}, round {round}"));
        }
    }
}

#[test]
fn a_process_that_follows_a_killed_one_counts_on_nothing_that_is_not_on_disk() {
    for seed in 0..histories(20) {
        let mut random = Random(seed);
        let script = Script { keep_old: Duration::ZERO, ..Script::random(&mut random) };
        let whole = usual_disk();
        script.run(&whole);
        for stop in 0..whole.calls().len() {
            let disk = usual_disk().stop_after(stop);
            let mut told = script.run(&disk);
            disk.revive();
            let context = format!("seed {seed}, call {stop}");
            // It shows what it has read, so that must be on disk; and it removes what is old.
            let changes = check(&script, &told, &disk, &context);
            let folded = random.coin() && fold(&changes).unwrap().is_some();
            let shown = changes.snapshot();
            drop(changes);
            told.durable = told.durable.max(if folded { told.positions.len() } else { 0 });
            for image in 0..2 {
                let after = Simulated::of(disk.after_crash(&mut random));
                let context = format!("{context}, image {image}");
                let now = check(&script, &told, &after, &context).snapshot();
                let seen = |of: &Snapshot| (of.position(), of.next_number(), of.live_rows());
                assert_eq!(seen(&now), seen(&shown), "{context}: what was shown is there");
            }
        }
    }
}
