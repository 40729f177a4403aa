//! Copies that were made while the folder was changed, file by file and part by part.

use std::collections::BTreeMap;
use std::time::Duration;

use model_store::format::VECTORS_FILE;

use super::histories;
use super::naive::{Naive, NaiveBatch, base_files, fold, open_keeping, read, usual_disk};
use crate::storage::simulated::{Call, Image, Random, Simulated};
use crate::{ChangeError, Durability};

type Files = BTreeMap<String, Vec<u8>>;

/// What a tool copies of one folder that lists it after some call, and reads each file in two parts,
/// each of them some time later.
fn copy_folder<'a>(
    history: &'a [Image],
    listed: usize,
    random: &mut Random,
    folder: impl Fn(&'a Image) -> &'a Files,
) -> Files {
    let later = |from: usize, random: &mut Random| from + random.below(history.len() - from);
    let mut copied = Files::new();
    for name in folder(&history[listed]).keys() {
        let first = later(listed, random);
        let second = later(first, random);
        // A name that has gone is left out.
        let Some(begin) = folder(&history[first]).get(name) else { continue };
        // The tool has opened the file; another may have its name by now. Logs have a number, and
        // a file of a base is never written to once it has its name.
        let id = |file: &[u8]| match name.ends_with(".log") {
            true => file.get(24..32).map(<[u8]>::to_vec),
            false => Some(file.to_vec()),
        };
        let end = folder(&history[second]).get(name).filter(|end| id(end) == id(begin));
        let end = end.unwrap_or(begin);
        let middle = random.below(begin.len() + 1);
        let rest = if end.len() >= middle { &end[middle..] } else { &[] };
        copied.insert(name.clone(), [&begin[..middle], rest].concat());
    }
    copied
}

/// What a tool copies that lists the model folder, and later the folder of changes.
fn copy(history: &[Image], listed: usize, random: &mut Random) -> Image {
    let later = |from: usize, random: &mut Random| from + random.below(history.len() - from);
    let (first, second) = (listed, later(listed, random));
    let (of_root, of_changes) = if random.coin() { (first, second) } else { (second, first) };
    Image {
        is_there: history[of_changes].is_there,
        root: copy_folder(history, of_root, random, |image| &image.root),
        files: copy_folder(history, of_changes, random, |image| &image.files),
        is_raised: history[later(second, random)].is_raised,
    }
}

#[test]
fn a_copy_made_at_any_moment_opens_at_a_committed_position() {
    let (mut copies, mut positions, mut refused, mut kept) = (0, 0, 0, 0);
    let histories = histories(100);
    for seed in 0..histories {
        let mut random = Random(seed);
        let disk = usual_disk();
        disk.keep_history();
        let mut naive = Naive::new();
        let mut all = vec![naive.clone()];
        // The number of calls after which each position was shown.
        let mut shown = vec![0];
        let max_log_bytes = [200, 600, 1 << 20][random.below(3)];
        // A third of them are never folded; old files stay, or go at once.
        let has_folds = seed % 3 > 0;
        let keep_old = [Duration::MAX, Duration::ZERO][random.below(2)];
        let open = || open_keeping(&disk, max_log_bytes, keep_old).unwrap();
        let mut changes = open();
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
                changes = open();
            }
            if has_folds && random.below(4) == 0 {
                fold(&changes).unwrap();
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
            let is_folded =
                history[listed..].iter().any(|image| image.root.len() > base_files().len());
            let opened = match read(&Simulated::of(copy)) {
                Ok(opened) => opened,
                Err(error) if is_folded => {
                    let said = error.to_string();
                    let has_cure = said.contains("copy") || said.contains("put back");
                    assert!(has_cure || matches!(error, ChangeError::Model(_)), "{said}");
                    refused += 1;
                    continue;
                }
                Err(error) => panic!("seed {seed}, after call {listed}: {error}"),
            };
            opened.base().verify(|_| ()).unwrap();
            let snapshot = opened.snapshot();
            let position = snapshot.position() as usize;
            all[position].check(&snapshot).unwrap();
            let before = shown.iter().rposition(|&calls| calls <= listed + 1).unwrap_or(0);
            // Old files may be missing that go at once, or with the second fold since, and with them
            // later positions.
            let pointers = history[listed..].windows(2);
            let pointers = pointers.map(|two| [0, 1].map(|at| two[at].root.get(VECTORS_FILE)));
            let switches = pointers.filter(|[before, after]| before != after).count();
            let is_whole = !is_folded || (keep_old == Duration::MAX && switches <= 1);
            kept += u64::from(is_folded && is_whole);
            assert!(!is_whole || position >= before, "seed {seed}: {position}, not {before}");
            copies += 1;
            positions += u64::from(position > before);
        }
    }
    assert!(cfg!(miri) || copies > 20 * histories, "{copies}");
    let least = 5 * histories / 3;
    let are_enough = positions > least && refused > least && kept > least;
    assert!(cfg!(miri) || are_enough, "{positions}, {refused}, {kept}");
}
