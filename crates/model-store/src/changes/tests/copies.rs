//! Copies that were made while the folder was changed, file by file and part by part.

use super::naive::{Naive, NaiveBatch, open, read};
use crate::changes::storage::simulated::{Call, Image, Random, Simulated};
use crate::changes::{ChangeError, Durability};

/// What a tool copies that lists the folder after some call, and reads each file in two parts, each
/// of them some time later.
fn copy(history: &[Image], listed: usize, random: &mut Random) -> Image {
    let later = |from: usize, random: &mut Random| from + random.below(history.len() - from);
    let mut copy = Image { is_there: history[listed].is_there, ..Image::default() };
    for name in history[listed].files.keys() {
        let first = later(listed, random);
        let second = later(first, random);
        // A name that has gone is left out.
        let Some(begin) = history[first].files.get(name) else { continue };
        // The tool has opened the file; another log may have its name by now.
        let id = |log: &[u8]| log.get(24..32).map(<[u8]>::to_vec);
        let end = history[second].files.get(name).filter(|end| id(end) == id(begin));
        let end = end.unwrap_or(begin);
        let middle = random.below(begin.len() + 1);
        let rest = if end.len() >= middle { &end[middle..] } else { &[] };
        copy.files.insert(name.clone(), [&begin[..middle], rest].concat());
    }
    copy.is_raised = history[later(listed, random)].is_raised;
    copy
}

#[test]
fn a_copy_made_at_any_moment_opens_at_a_committed_position() {
    let (mut copies, mut positions) = (0, 0);
    for seed in 0..if cfg!(miri) { 1 } else { 200 } {
        let mut random = Random(seed);
        let disk = Simulated::new();
        disk.keep_history();
        let mut naive = Naive::new();
        let mut all = vec![naive.clone()];
        // The number of calls after which each position was shown.
        let mut shown = vec![0];
        let max_log_bytes = [200, 600, 1 << 20][random.below(3)];
        let mut changes = open(&disk, max_log_bytes).unwrap();
        for _ in 0..12 {
            let batch = NaiveBatch::random(&mut random);
            if random.below(4) == 0 {
                // What could not be written is cut off, and never written over.
                let full = || std::io::Error::from(std::io::ErrorKind::StorageFull);
                disk.set_fault(move |call, _| (call == Call::Write).then(full));
                let built = batch.built(changes.schema());
                let error = changes.commit(built, Durability::Synced, None).unwrap_err();
                assert!(matches!(error, ChangeError::DiskFull { .. }));
                disk.without_faults();
            }
            changes.commit(batch.built(changes.schema()), Durability::Synced, None).unwrap();
            naive.apply(&batch);
            all.push(naive.clone());
            shown.push(disk.history().len());
            if random.below(5) == 0 {
                drop(changes);
                changes = open(&disk, max_log_bytes).unwrap();
            }
        }
        let history = disk.history();
        for _ in 0..40 {
            let listed = random.below(history.len());
            let copy = copy(&history, listed, &mut random);
            if copy.is_raised && !copy.files.keys().any(|name| name.ends_with(".log")) {
                // Listed before the first change ever, and read after it: refused, not misread.
                assert!(read(&Simulated::of(copy)).is_err());
                continue;
            }
            let opened = read(&Simulated::of(copy))
                .unwrap_or_else(|error| panic!("seed {seed}, after call {listed}: {error}"));
            let snapshot = opened.snapshot();
            let position = snapshot.position() as usize;
            all[position].check(&snapshot).unwrap();
            let before = shown.iter().rposition(|&calls| calls <= listed + 1).unwrap_or(0);
            assert!(position >= before, "seed {seed}: {position} of at least {before}");
            copies += 1;
            positions += usize::from(position > before);
        }
    }
    assert!(cfg!(miri) || (copies > 5_000 && positions > 500), "{copies}, {positions}");
}
