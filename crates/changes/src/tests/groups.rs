//! Callers on many threads share a sync.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use super::naive::{NaiveBatch, open, usual_disk};
use crate::storage::simulated::{Call, Random};
use crate::{Durability, Snapshot};

#[test]
fn callers_that_wait_for_a_sync_share_the_next_one() {
    let disk = usual_disk();
    let changes = open(&disk, 1 << 20).unwrap();
    let batch = |seed| NaiveBatch::random(&mut Random(seed)).built(changes.schema());
    changes.commit(batch(0), Durability::Synced, None).unwrap();
    let before = (disk.count(Call::Sync), disk.count(Call::Write));
    let (begun, has_begun) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    // The first sync waits until all others have come.
    let mut is_first = true;
    disk.set_fault(move |call, _| {
        if call == Call::Sync && std::mem::replace(&mut is_first, false) {
            begun.send(()).unwrap();
            may_go_on.recv().unwrap();
        }
        None
    });
    let entered = AtomicUsize::new(0);
    thread::scope(|scope| {
        let commit = |seed| changes.commit(batch(seed), Durability::Synced, None).unwrap();
        let first = scope.spawn(move || commit(1));
        has_begun.recv().unwrap();
        let others: Vec<_> = (2..34)
            .map(|seed| {
                let entered = &entered;
                scope.spawn(move || {
                    entered.fetch_add(1, Ordering::SeqCst);
                    commit(seed)
                })
            })
            .collect();
        while entered.load(Ordering::SeqCst) < 32 || changes.queue.len() < 32 {
            thread::yield_now();
        }
        assert_eq!(changes.snapshot().position(), 1, "nothing is shown before it is on disk");
        go_on.send(()).unwrap();
        assert_eq!(first.join().unwrap().position, 2);
        let positions = others.into_iter().map(|other| other.join().unwrap().position);
        assert_eq!(positions.collect::<BTreeSet<_>>(), (3..35).collect());
    });
    let after = (disk.count(Call::Sync), disk.count(Call::Write));
    assert_eq!((after.0 - before.0, after.1 - before.1), (2, 2), "two groups");
}

#[test]
fn without_durability_a_sync_is_for_thousands_of_batches() {
    let disk = usual_disk();
    let changes = open(&disk, 1 << 30).unwrap();
    let mut random = Random(5);
    let batch = NaiveBatch::random(&mut random);
    let commit = |durability| changes.commit(batch.built(changes.schema()), durability, None);
    let first = commit(Durability::None).unwrap();
    assert!(!first.is_durable);
    let before = disk.count(Call::Sync);
    for _ in 0..3_000 {
        assert!(!commit(Durability::None).unwrap().is_durable);
    }
    assert_eq!(disk.count(Call::Sync), before);
    assert!(commit(Durability::Synced).unwrap().is_durable);
    assert_eq!(disk.count(Call::Sync), before + 1);
    for _ in 0..2_000 {
        commit(Durability::None).unwrap();
    }
    assert_eq!(disk.count(Call::Sync), before + 2, "positions were reserved once more");
}

#[test]
fn what_is_acknowledged_is_seen_at_once_by_everybody_and_never_half() {
    let disk = usual_disk();
    let changes = Arc::new(open(&disk, 10_000).unwrap());
    let (writers, commits) = if cfg!(miri) { (2, 5) } else { (16, 200) };
    let is_done = AtomicUsize::new(0);
    let shown: Mutex<Vec<Snapshot>> = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for writer in 0..writers {
            let (changes, is_done, shown) = (&changes, &is_done, &shown);
            scope.spawn(move || {
                let mut random = Random(writer);
                for _ in 0..commits {
                    let batch = NaiveBatch::random(&mut random);
                    let built = batch.built(changes.schema());
                    let committed = changes.commit(built, Durability::Synced, None).unwrap();
                    let snapshot = changes.snapshot();
                    assert!(snapshot.position() >= committed.position);
                    if random.below(20) == 0 {
                        shown.lock().unwrap().push(snapshot);
                    }
                }
                is_done.fetch_add(1, Ordering::SeqCst);
            });
        }
        for _ in 0..2 {
            let (changes, is_done) = (&changes, &is_done);
            scope.spawn(move || {
                let mut last = 0;
                while is_done.load(Ordering::SeqCst) < writers as usize {
                    let snapshot = changes.snapshot();
                    assert!(snapshot.position() >= last);
                    last = snapshot.position();
                    // Each key has one row alive, and every other one is dead.
                    let live = (0..snapshot.rows() as u32).map(contract::Row);
                    let live = live.filter(|&row| snapshot.is_live(row)).count();
                    let keys = (0..12).filter(|key| snapshot.row_of(&format!("k{key}")).is_some());
                    assert_eq!((live, keys.count()), (snapshot.live_rows(), live));
                }
            });
        }
    });
    // The log has the same rows at the same positions.
    let last = changes.snapshot();
    drop(changes);
    let again = open(&disk, 10_000).unwrap().snapshot();
    assert_eq!(again.position(), writers * commits);
    for number in 5..last.rows() as u32 {
        let row = contract::Row(number);
        assert_eq!(again.tail_row(row), last.tail_row(row));
        assert_eq!(again.is_live(row), last.is_live(row));
        for snapshot in shown.lock().unwrap().iter() {
            assert!(snapshot.tail_row(row).is_none_or(|found| again.tail_row(row) == Some(found)));
        }
    }
    assert!(disk.count(Call::Rename) > 1 || cfg!(miri), "several logs");
}
