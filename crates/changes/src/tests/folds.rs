//! Changes that are folded into a new base: nothing else is to be seen of it.

use std::io;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use model_store::format::VECTORS_FILE;

use super::naive::{Naive, NaiveBatch, empty_disk, fold, open, open_keeping, read, usual_disk};
use crate::storage::simulated::{Call, Image, Random, Simulated};
use crate::{ChangeError, Changes, Durability, Generation, Snapshot};

fn commit(changes: &Changes, batch: &NaiveBatch) -> u64 {
    let built = batch.built(changes.schema());
    changes.commit(built, Durability::Synced, None).unwrap().position
}

#[test]
fn folds_change_no_version_position_or_number_whatever_comes_before_and_after() {
    let (mut folds, mut empty) = (0, 0);
    for seed in 0..if cfg!(miri) { 2 } else { 500 } {
        let mut random = Random(seed);
        let is_empty = random.below(3) == 0;
        let disk = if is_empty { empty_disk() } else { usual_disk() };
        let mut naive = if is_empty { Naive::empty() } else { Naive::new() };
        let max_log_bytes = [200, 1000, 1 << 20][random.below(3)];
        let keep_old = [Duration::ZERO, Duration::MAX][random.below(2)];
        let open = || open_keeping(&disk, max_log_bytes, keep_old).unwrap();
        let mut changes = open();
        let version = changes.base().version().to_owned();
        let mut seen: Vec<(Snapshot, Naive)> = vec![(changes.snapshot(), naive.clone())];
        // Those who still search earlier bases.
        let mut held: Vec<Arc<Generation>> = Vec::new();
        let mut last_folded = 0;
        for position in 1..=random.below(30) as u64 {
            let batch = NaiveBatch::random(&mut random);
            let key = random.coin().then(|| format!("request {position}"));
            let built = || batch.built(changes.schema());
            let committed = changes.commit(built(), Durability::None, key.as_deref()).unwrap();
            let counts = naive.apply(&batch);
            assert_eq!((committed.position, committed.counts), (position, counts), "{seed}");
            for generation in &held {
                naive.check(&generation.snapshot()).unwrap();
            }
            if random.below(4) == 0 {
                let before = changes.current();
                let new = fold(&changes).unwrap().unwrap();
                assert_eq!(new.number(), before.number() + 1);
                assert_eq!(new.base().version(), version);
                naive.check(&new.snapshot()).unwrap();
                assert_eq!(new.base().rows(), new.snapshot().live_rows());
                new.base().verify(|_| ()).unwrap();
                assert!(fold(&changes).unwrap().is_none(), "there is nothing more to fold");
                held.push(before);
                (folds, last_folded) = (folds + 1, position);
                empty += usize::from(new.base().rows() == 0);
            }
            let snapshot = changes.snapshot();
            assert_eq!(snapshot.position(), position);
            seen.push((snapshot, naive.clone()));
            if random.below(6) == 0 {
                naive.check(&read(&disk).unwrap().snapshot()).unwrap();
                held.clear();
                drop(changes);
                changes = open();
                assert_eq!(changes.snapshot().position(), position, "{seed}");
                naive.check(&changes.snapshot()).unwrap();
            }
            if let Some(key) = key.as_deref() {
                let again =
                    changes.commit(batch.built(changes.schema()), Durability::None, Some(key));
                let again = again.unwrap();
                assert!(again.is_repeated, "{seed}: the key is kept");
                assert_eq!((again.position, again.counts), (position, counts));
            }
        }
        for (snapshot, naive) in &seen {
            naive.check(snapshot).unwrap_or_else(|fault| panic!("{seed}: {fault}"));
        }
        // Only the files of the last base are left, unless they are kept.
        if last_folded > 0 && keep_old == Duration::ZERO {
            changes.remove_old(keep_old).unwrap();
            let Image { root, files, .. } = disk.live();
            let folder = |name: &String| name.split('/').next().unwrap().to_owned();
            let folders: std::collections::BTreeSet<String> = root.keys().map(folder).collect();
            assert_eq!(folders.len(), 2, "{folders:?}");
            let first = changes.base().header().folded.as_ref().unwrap().first_log;
            let oldest = files.keys().find(|name| name.ends_with(".log")).unwrap();
            assert_eq!(*oldest, format!("{first:08}.log"));
        }
    }
    assert!(cfg!(miri) || (folds > 1_000 && empty > 5), "{folds} folds, {empty} of no rows");
}

/// A disk with changes, and what the table is.
fn changed(seed: u64, batches: usize) -> (Simulated, Changes, Naive) {
    let (mut random, mut naive) = (Random(seed), Naive::new());
    let disk = usual_disk();
    let changes = open_keeping(&disk, 300, Duration::MAX).unwrap();
    for _ in 0..batches {
        let batch = NaiveBatch::random(&mut random);
        commit(&changes, &batch);
        naive.apply(&batch);
    }
    (disk, changes, naive)
}

#[test]
fn a_fold_that_is_stopped_or_has_no_room_leaves_nothing() {
    let (disk, changes, naive) = changed(1, 9);
    let before = disk.live();
    let same = |what: &str| {
        assert_eq!(disk.live().root, before.root, "{what}");
        assert_eq!(changes.current().number(), 1);
        naive.check(&changes.snapshot()).unwrap();
    };
    let mut steps = 0;
    for stop in 0.. {
        let mut step = 0;
        let done = changes.fold(&mut |_| {
            step += 1;
            if step > stop { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        });
        match done {
            Err(ChangeError::FoldStopped) => same("stopped"),
            Err(error) => panic!("{error}"),
            Ok(_) => break,
        }
        steps = stop;
        if steps > 4 {
            break;
        }
    }
    assert!(steps > 4, "it asks often");
    disk.set_free(1000);
    let error = fold(&changes).unwrap_err();
    assert!(matches!(error, ChangeError::NoSpaceToFold { free: 1000, .. }), "{error}");
    assert!(error.to_string().contains("simulated-model"), "{error}");
    same("no room");
    disk.set_free(u64::MAX);
    // The disk is full after all, at every call.
    let calls = {
        let (disk, changes, _) = changed(1, 9);
        let before = disk.calls().len();
        fold(&changes).unwrap();
        disk.calls().len() - before
    };
    for failing in 0..calls {
        let (disk, changes, naive) = changed(1, 9);
        let before = disk.live();
        let first = disk.calls().len() + failing;
        disk.set_fault(move |call, index| {
            let is_it = index as usize == first && call != Call::Remove;
            is_it.then(|| io::Error::from(io::ErrorKind::StorageFull))
        });
        let folded = fold(&changes);
        disk.without_faults();
        if folded.is_err() {
            assert_eq!(changes.current().number(), 1);
        }
        naive.check(&changes.snapshot()).unwrap();
        let pointer = |image: &Image| image.root[VECTORS_FILE].clone();
        let is_switched = pointer(&disk.live()) != pointer(&before);
        assert!(folded.is_err() || is_switched);
        if !is_switched {
            assert_eq!(disk.live().root, before.root, "call {failing}");
        }
        drop(changes);
        let changes = open(&disk, 300).unwrap();
        naive.check(&changes.snapshot()).unwrap();
        fold(&changes).unwrap();
        naive.check(&changes.snapshot()).unwrap();
    }
}

#[test]
fn damage_of_the_old_base_is_not_made_good_by_a_fold() {
    let (disk, changes, _) = changed(2, 6);
    drop(changes);
    let image = disk.live();
    let (mut refused, mut passed) = (0, 0);
    for (name, content) in &image.root {
        for byte in (0..content.len()).step_by(if cfg!(miri) { 997 } else { 11 }) {
            let mut damaged = image.clone();
            damaged.root.get_mut(name).unwrap()[byte] ^= 1 << (byte % 8);
            let disk = Simulated::of(damaged);
            // Some is found when it is opened; the rest when it is folded.
            let Ok(changes) = open_keeping(&disk, 300, Duration::MAX) else {
                refused += 1;
                continue;
            };
            match fold(&changes) {
                Err(ChangeError::Model(_)) => refused += 1,
                Err(error) => panic!("{name}, byte {byte}: {error}"),
                Ok(_) => panic!("{name}, byte {byte}: it was folded"),
            }
            assert_eq!(disk.live().root.len(), image.root.len(), "nothing is left of it");
            passed += 1;
        }
    }
    assert!(cfg!(miri) || (refused > 1_000 && passed > 10), "{refused}, {passed}");
}

#[test]
fn damage_of_the_new_base_is_found_when_it_is_opened_or_verified() {
    let (disk, changes, naive) = changed(3, 8);
    fold(&changes).unwrap();
    let batch = NaiveBatch::random(&mut Random(5));
    commit(&changes, &batch);
    let mut naive = naive;
    naive.apply(&batch);
    drop(changes);
    drop(open(&disk, 300).unwrap());
    let image = disk.live();
    naive.check(&read(&Simulated::of(image.clone())).unwrap().snapshot()).unwrap();
    for (name, content) in &image.root {
        for byte in (0..content.len()).step_by(if cfg!(miri) { 997 } else { 11 }) {
            let mut damaged = image.clone();
            damaged.root.get_mut(name).unwrap()[byte] ^= 1 << (byte % 8);
            let opened = read(&Simulated::of(damaged));
            let is_found = opened.is_err_and(|error| matches!(error, ChangeError::Model(_)))
                || read(&Simulated::of({
                    let mut damaged = image.clone();
                    damaged.root.get_mut(name).unwrap()[byte] ^= 1 << (byte % 8);
                    damaged
                }))
                .is_ok_and(|changes| changes.base().verify(|_| ()).is_err());
            assert!(is_found, "{name}, byte {byte}");
        }
        let mut damaged = image.clone();
        damaged.root.remove(name);
        assert!(read(&Simulated::of(damaged)).is_err(), "{name}");
    }
    // The log behind it.
    let mut damaged = image;
    damaged.files.retain(|name, _| !name.ends_with(".log"));
    let error = read(&Simulated::of(damaged)).unwrap_err().to_string();
    assert!(error.contains("no log of changes") && error.contains("copied while"), "{error}");
}

#[test]
fn others_commit_and_read_while_it_folds() {
    let disk = usual_disk();
    let changes = open(&disk, 2_000).unwrap();
    let (writers, folds) = if cfg!(miri) { (2, 1) } else { (4, 6) };
    let is_over = AtomicBool::new(false);
    let committed = AtomicU64::new(0);
    thread::scope(|scope| {
        for writer in 0..writers {
            let (changes, is_over, committed) = (&changes, &is_over, &committed);
            scope.spawn(move || {
                let mut random = Random(writer);
                while !is_over.load(Ordering::Relaxed) {
                    let position = commit(changes, &NaiveBatch::random(&mut random));
                    committed.fetch_add(1, Ordering::Relaxed);
                    let now = changes.snapshot();
                    assert!(now.position() >= position, "acknowledged, it is visible");
                    let live =
                        (0..now.rows() as u32).filter(|&row| now.is_live(contract::Row(row)));
                    let keys = (0..12).filter(|key| now.row_of(&format!("k{key}")).is_some());
                    assert_eq!((live.count(), keys.count()), (now.live_rows(), now.live_rows()));
                }
            });
        }
        let mut done = 0;
        while done < folds {
            let before = changes.current();
            if let Some(new) = fold(&changes).unwrap() {
                // Both have every batch.
                let (old, new) = (before.snapshot(), new.snapshot());
                assert!(old.next_number() <= new.next_number());
                done += 1;
            }
        }
        is_over.store(true, Ordering::Relaxed);
    });
    let last = changes.snapshot();
    assert_eq!(last.position(), committed.into_inner());
    drop(changes);
    let again = open(&disk, 2_000).unwrap().snapshot();
    let numbers = |of: &Snapshot| -> Vec<u32> {
        let live = (0..of.rows() as u32).map(contract::Row).filter(|row| of.is_live(*row));
        live.map(|row| of.number(row)).collect()
    };
    assert_eq!(numbers(&again), numbers(&last));
}

#[test]
fn old_files_go_when_they_were_kept_for_long_enough() {
    let hour = Duration::from_secs(3600);
    let (disk, changes, mut naive) = changed(4, 9);
    drop(changes);
    let open = || open_keeping(&disk, 300, hour).unwrap();
    let count = || (disk.live().root.len(), disk.live().files.len());
    let changes = open();
    let (root, logs) = count();
    fold(&changes).unwrap();
    let both = count();
    assert!(both.0 > root + 3 && both.1 > logs);
    let batch = NaiveBatch::random(&mut Random(6));
    commit(&changes, &batch);
    naive.apply(&batch);
    assert!(changes.remove_old(hour).unwrap(), "some are left");
    disk.set_age(hour - Duration::from_secs(1));
    drop(changes);
    drop(open());
    assert_eq!(count(), both);
    disk.set_age(hour);
    let refused = read(&disk).unwrap().remove_old(Duration::ZERO).unwrap_err();
    assert!(matches!(refused, ChangeError::OpenedToRead { .. }));
    assert_eq!(count(), both);
    let changes = open();
    assert!(count().0 < both.0 && count().1 < both.1);
    assert!(!changes.remove_old(Duration::ZERO).unwrap(), "none is left");
    naive.check(&changes.snapshot()).unwrap();
    drop(changes);
    naive.check(&open().snapshot()).unwrap();
    assert!(count().0 < both.0);
}

#[test]
fn of_many_folds_in_a_short_time_only_the_last_base_before_is_kept() {
    let (disk, changes, mut naive) = changed(7, 4);
    let mut random = Random(8);
    let mut most = 0;
    for _ in 0..6 {
        for _ in 0..4 {
            let batch = NaiveBatch::random(&mut random);
            commit(&changes, &batch);
            naive.apply(&batch);
        }
        let before = changes.current();
        fold(&changes).unwrap();
        assert!(changes.remove_old(Duration::MAX).unwrap(), "the one before is there");
        let Image { root, files, .. } = disk.live();
        let folder = |name: &String| name.split('/').next().unwrap().to_owned();
        let mut bases: Vec<String> =
            root.keys().map(folder).filter(|name| name.starts_with("base-")).collect();
        bases.dedup();
        assert_eq!(bases.len(), if before.number() == 1 { 1 } else { 2 }, "{bases:?}");
        assert_eq!(root.contains_key("words.txt"), before.number() == 1);
        // All logs behind it are there, and no others.
        let folded = before.base().header().folded.as_ref();
        let first = folded.map_or(1, |folded| folded.first_log);
        let oldest = files.keys().find(|name| name.ends_with(".log")).unwrap();
        assert_eq!(*oldest, format!("{first:08}.log"));
        most = most.max(root.len());
    }
    assert_eq!(disk.live().root.len(), most, "it does not grow");
    drop(changes);
    naive.check(&open_keeping(&disk, 300, Duration::MAX).unwrap().snapshot()).unwrap();
}
