//! Full disks, failed syncs, other processes.

use std::io;

use super::naive::{Naive, NaiveBatch, open, read, usual_disk};
use crate::storage::simulated::{Call, Random, Simulated};
use crate::{BatchBuilder, ChangeError, Durability, MAX_SOURCES};

fn full() -> io::Error {
    io::ErrorKind::StorageFull.into()
}

fn broken() -> io::Error {
    io::Error::other("the disk is broken")
}

#[test]
fn a_full_disk_refuses_a_batch_whole_and_takes_it_when_there_is_space() {
    for seed in 0..if cfg!(miri) { 1 } else { 300 } {
        let mut random = Random(seed);
        let disk = usual_disk();
        let max_log_bytes = [150, 1 << 20][random.below(2)];
        let changes = open(&disk, max_log_bytes).unwrap();
        let mut naive = Naive::new();
        let durability = [Durability::Synced, Durability::None][random.below(2)];
        for _ in 0..10 {
            let batch = NaiveBatch::random(&mut random);
            let commit = || changes.commit(batch.built(changes.schema()), durability, None);
            let (before, files) = (changes.snapshot().position(), disk.live().files.len());
            if random.coin() {
                let fails_at = [Call::Write, Call::Create][random.below(2)];
                disk.set_fault(move |call, _| (call == fails_at).then(full));
                for _ in 0..5 {
                    // Without need for a new log, none is made, and the batch is taken.
                    let Err(error) = commit() else {
                        naive.apply(&batch);
                        continue;
                    };
                    assert!(matches!(error, ChangeError::DiskFull { .. }), "{error}");
                    assert!(error.to_string().contains("send the batch again"));
                }
                naive.check(&changes.snapshot()).unwrap();
                naive.check(&read(&disk).unwrap().snapshot()).unwrap();
                let is_refused = changes.snapshot().position() == before;
                assert!(!is_refused || disk.live().files.len() <= files + 1, "no heap of files");
                disk.without_faults();
            }
            commit().unwrap();
            naive.apply(&batch);
            naive.check(&changes.snapshot()).unwrap();
        }
        drop(changes);
        naive.check(&open(&disk, max_log_bytes).unwrap().snapshot()).unwrap();
    }
}

#[test]
fn after_a_failed_sync_nothing_is_taken_until_the_folder_is_opened_again() {
    let mut seen = [0; 2];
    for seed in 0..if cfg!(miri) { 1 } else { 500 } {
        let mut random = Random(seed);
        let disk = usual_disk();
        let max_log_bytes = [150, 1 << 20][random.below(2)];
        let changes = open(&disk, max_log_bytes).unwrap();
        let mut naive = Naive::new();
        let (mut durable, mut acknowledged) = (0, Vec::new());
        let fails_at = random.below(40) as u64;
        disk.set_fault(move |call, index| {
            let is_sync = matches!(call, Call::Sync | Call::SyncNames);
            (is_sync && index >= fails_at && index < fails_at + 6).then(broken)
        });
        let (mut failed, mut with_failed) = (None, None);
        for _ in 0..12 {
            let batch = NaiveBatch::random(&mut random);
            let durability = [Durability::Synced, Durability::None][random.below(2)];
            match changes.commit(batch.built(changes.schema()), durability, None) {
                Ok(committed) => {
                    assert!(failed.is_none(), "{seed}: it goes on after {failed:?}");
                    naive.apply(&batch);
                    acknowledged.push((committed.position, naive.clone()));
                    if committed.is_durable {
                        durable = acknowledged.len();
                    }
                }
                Err(ChangeError::ReadOnly { reason, .. }) => {
                    assert!(failed.is_some() && reason.contains("the disk is broken"), "{reason}");
                }
                Err(error) => {
                    assert!(failed.is_none(), "{seed}: {error} after {failed:?}");
                    failed = Some(error.to_string());
                    let mut more = naive.clone();
                    more.apply(&batch);
                    with_failed = Some((0, more));
                }
            }
            // Readers go on.
            naive.check(&changes.snapshot()).unwrap();
        }
        seen[usize::from(failed.is_some())] += 1;
        drop(changes);
        disk.without_faults();
        // At once, or after the machine has stopped: what was durable is there, and no position is
        // given twice.
        let after = Simulated::of(disk.after_crash(&mut random));
        for disk in [disk, after] {
            let changes = open(&disk, max_log_bytes).unwrap_or_else(|e| panic!("{seed}: {e}"));
            let snapshot = changes.snapshot();
            let is_whole = |naive: &Naive| naive.check(&snapshot).is_ok();
            let nothing = (0, Naive::new());
            let known = [&nothing].into_iter().chain(&acknowledged).skip(durable);
            // The batch whose sync failed may be there.
            let mut known = known.chain(&with_failed);
            assert!(known.any(|(_, naive)| is_whole(naive)), "{seed}: {snapshot:?}");
            let batch = NaiveBatch::random(&mut random).built(changes.schema());
            let committed = changes.commit(batch, Durability::Synced, None).unwrap();
            assert!(acknowledged.iter().all(|(given, _)| *given < committed.position), "{seed}");
        }
    }
    assert!(cfg!(miri) || seen.iter().all(|&count| count > 50), "{seen:?}");
}

#[test]
fn one_process_writes_and_others_read_or_are_refused() {
    let disk = usual_disk();
    let mut random = Random(1);
    let first = open(&disk, 1 << 20).unwrap();
    let mut batch = || NaiveBatch::random(&mut random).built(first.schema());
    // Nothing is there yet: whoever changes it first has it.
    let second = open(&disk, 1 << 20).unwrap();
    assert_eq!(disk.live().files.len(), 0, "nothing is made before the first change");
    first.commit(batch(), Durability::Synced, None).unwrap();
    let refused = second.commit(batch(), Durability::Synced, None).unwrap_err();
    assert!(matches!(refused, ChangeError::Locked { .. }), "{refused}");
    let refused = open(&disk, 1 << 20).unwrap_err();
    assert!(matches!(refused, ChangeError::Locked { .. }), "{refused}");
    assert_eq!(second.snapshot().position(), 0);
    let reader = read(&disk).unwrap();
    assert_eq!(reader.snapshot().position(), 1);
    let refused = reader.commit(batch(), Durability::Synced, None).unwrap_err();
    assert!(matches!(refused, ChangeError::OpenedToRead { .. }), "{refused}");
    let more = batch();
    drop(first);
    // The lock is free, but the rows are not those that it knows.
    let refused = second.commit(more, Durability::Synced, None).unwrap_err();
    assert!(matches!(refused, ChangeError::ChangedMeanwhile { .. }), "{refused}");
    assert!(refused.to_string().contains("open the table again"));
    drop(second);
    assert_eq!(open(&disk, 1 << 20).unwrap().snapshot().position(), 1);
}

#[test]
fn a_batch_for_one_position_is_refused_at_every_other() {
    let disk = usual_disk();
    let changes = open(&disk, 1 << 20).unwrap();
    let batch = |key: &str| {
        let mut batch = BatchBuilder::new(changes.schema());
        batch.delete(key);
        batch.finish().unwrap().unwrap()
    };
    let commit = |batch| changes.commit(batch, Durability::Synced, None);
    let refused = |outcome| match outcome {
        Err(ChangeError::OtherPosition { wanted }) => wanted,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(commit(batch("a").only_at(1))), 1);
    assert_eq!(commit(batch("a").only_at(0)).unwrap().position, 1);
    assert_eq!(refused(commit(batch("a").only_at(0))), 0);
    // Of a group, the first alone may be for the position at which it begins.
    let group = [batch("b").only_at(1), batch("c").only_at(1), batch("d"), batch("e").only_at(3)];
    let ready = group.map(|batch| changes.ready(batch, Durability::Synced, None).unwrap());
    let outcomes = changes.commit_all(ready.into());
    let positions = outcomes.into_iter().map(|outcome| match outcome {
        Ok(committed) => Ok(committed.position),
        outcome => Err(refused(outcome)),
    });
    assert_eq!(positions.collect::<Vec<_>>(), [Ok(2), Err(1), Ok(3), Err(3)]);
    let position = changes.snapshot().position();
    assert_eq!((position, commit(batch("f").only_at(3)).unwrap().position), (3, 4));
}

#[test]
fn a_table_follows_a_bounded_number_of_sources() {
    let disk = usual_disk();
    let changes = open(&disk, 1 << 20).unwrap();
    let reach = |from: usize, count: usize| {
        let names: Vec<String> = (from..from + count).map(|n| format!("p{n}:{n}")).collect();
        let batch =
            BatchBuilder::new(changes.schema()).with_sources(names.join(",").parse().unwrap());
        changes.commit(batch.finish().unwrap().unwrap(), Durability::Synced, None)
    };
    reach(0, 600).unwrap();
    assert!(matches!(reach(400, 601), Err(ChangeError::TooManySources)));
    reach(400, 600).unwrap();
    assert_eq!(changes.snapshot().sources().len(), MAX_SOURCES);
    assert_eq!(changes.snapshot().position(), 2);
}

#[test]
fn idempotency_keys_are_those_of_their_batches_also_after_the_log_is_read_again() {
    let disk = usual_disk();
    let mut random = Random(3);
    let mut changes = open(&disk, 1 << 20).unwrap();
    let [first, other] = [(); 2].map(|()| NaiveBatch::random(&mut random));
    let at = |changes: &mut crate::Changes, now| changes.now = now;
    at(&mut changes, || 1_000);
    let commit = |changes: &crate::Changes, batch: &NaiveBatch, key| {
        changes.commit(batch.built(changes.schema()), Durability::Synced, key)
    };
    let told = commit(&changes, &first, Some("é")).unwrap();
    for _ in 0..2 {
        let again = commit(&changes, &first, Some("é")).unwrap();
        assert_eq!((again.position, again.counts), (1, told.counts));
        assert!(again.is_repeated && again.is_durable && !told.is_repeated);
        let error = commit(&changes, &other, Some("é")).unwrap_err();
        assert!(matches!(&error, ChangeError::RequestKeyReused { key } if key == "é"), "{error}");
        drop(changes);
        changes = open(&disk, 1 << 20).unwrap();
        at(&mut changes, || 24 * 60 * 60 * 1000 + 999);
    }
    assert_eq!(changes.snapshot().position(), 1);
    at(&mut changes, || 24 * 60 * 60 * 1000 + 1000);
    assert_eq!(commit(&changes, &other, Some("é")).unwrap().position, 2);
    let long = "x".repeat(256);
    for key in ["", &long] {
        let error = commit(&changes, &other, Some(key)).unwrap_err();
        assert!(matches!(error, ChangeError::BadRequestKey { bytes } if bytes == key.len()));
    }
    assert_eq!(commit(&changes, &other, Some(&long[1..])).unwrap().position, 3);
}
