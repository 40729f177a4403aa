//! Bytes of logs that changed after they were on disk.

use std::path::Path;

use super::naive::{Naive, NaiveBatch, open, usual_disk};
use crate::log_header::LOG_HEADER_BYTES;
use crate::record;
use crate::storage::simulated::{Image, Random, Simulated};
use crate::{ChangeError, Durability};

/// A folder with several logs, the table after each batch, and where the last record begins.
fn folder() -> (Image, Vec<Naive>, String, usize) {
    let disk = usual_disk();
    let changes = open(&disk, 300).unwrap();
    let (mut naive, mut random) = (Naive::new(), Random(11));
    let mut all = vec![naive.clone()];
    while disk.live().files.len() < 4 || all.len() < 9 {
        let batch = NaiveBatch::random(&mut random);
        changes.commit(batch.built(changes.schema()), Durability::Synced, None).unwrap();
        naive.apply(&batch);
        all.push(naive.clone());
    }
    drop(changes);
    let image = disk.live();
    let (name, log) = image.files.last_key_value().unwrap();
    let id = u64::from_le_bytes(log[24..32].try_into().unwrap());
    let mut last = LOG_HEADER_BYTES;
    while let Some(next) = record::read(log, last, id).filter(|next| next.end < log.len()) {
        last = next.end;
    }
    (image.clone(), all, name.clone(), last)
}

#[test]
fn every_changed_bit_is_refused_or_in_the_last_record_which_is_dropped() {
    let (image, all, last_log, last_record) = folder();
    let before_last = &all[all.len() - 2];
    let step = if cfg!(miri) { 97 } else { 1 };
    for (name, log) in &image.files {
        for byte in (0..log.len()).step_by(step) {
            let mut damaged = image.clone();
            damaged.files.get_mut(name).unwrap()[byte] ^= 1 << (byte % 8);
            let is_last = *name == last_log && byte >= last_record;
            match open(&Simulated::of(damaged), 300) {
                Ok(changes) if is_last => before_last.check(&changes.snapshot()).unwrap(),
                Ok(changes) => panic!("{name}, byte {byte}: {:?}", changes.snapshot()),
                Err(ChangeError::Damaged { path, offset, .. }) if !is_last => {
                    assert_eq!(path, Path::new("simulated").join(name), "byte {byte}");
                    assert!(offset <= byte as u64);
                }
                Err(error) => panic!("{name}, byte {byte}: {error}"),
            }
        }
    }
}

#[test]
fn logs_that_were_cut_are_refused_unless_only_the_last_records_are_gone() {
    let (image, all, last_log, _) = folder();
    for (name, log) in &image.files {
        for length in 0..log.len() {
            let mut damaged = image.clone();
            damaged.files.get_mut(name).unwrap().truncate(length);
            match open(&Simulated::of(damaged), 300) {
                Ok(changes) if *name == last_log && length >= LOG_HEADER_BYTES => {
                    let snapshot = changes.snapshot();
                    all[snapshot.position() as usize].check(&snapshot).unwrap();
                }
                Ok(changes) => panic!("{name}, {length} bytes: {:?}", changes.snapshot()),
                Err(error) => {
                    assert!(*name != last_log || length < LOG_HEADER_BYTES, "{error}");
                    assert!(error.to_string().contains("put back this file"), "{error}");
                }
            }
        }
    }
}

#[test]
fn missing_renamed_and_foreign_logs_are_refused() {
    let (image, ..) = folder();
    let names: Vec<&String> = image.files.keys().collect();
    let refused = |image: &Image, part: &str| {
        let error = open(&Simulated::of(image.clone()), 300).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
    };
    for name in &names[..names.len() - 1] {
        let mut damaged = image.clone();
        damaged.files.remove(*name);
        refused(&damaged, "missing");
    }
    let mut damaged = image.clone();
    damaged.files.clear();
    refused(&damaged, "there is no log of changes");
    let mut damaged = image.clone();
    let log = damaged.files[names[0]].clone();
    damaged.files.insert(names[1].clone(), log);
    refused(&damaged, "it is log 1");
    // That of another table, whose records can't be told otherwise.
    let (other, ..) = folder();
    let mut damaged = image.clone();
    let log = other.files[names[1]].clone();
    damaged.files.insert(names[1].clone(), log);
    refused(&damaged, "missing");
    for (at, part) in [(64, "belongs to the base"), (80, "rows of another shape"), (8, "format")] {
        let mut damaged = image.clone();
        let log = damaged.files.get_mut(names[0]).unwrap();
        log[at] ^= 1;
        let crc = crc32fast::hash(&log[..LOG_HEADER_BYTES - 4]);
        log[LOG_HEADER_BYTES - 4..LOG_HEADER_BYTES].copy_from_slice(&crc.to_le_bytes());
        refused(&damaged, part);
    }
    // Files that are no logs mean nothing.
    let mut more = image.clone();
    for name in ["lock", "00000009.log.new", "1.log", "notes.txt"] {
        more.files.insert(name.to_owned(), b"?".to_vec());
    }
    assert!(open(&Simulated::of(more), 300).is_ok());
}
