//! Random histories of commits and openings, against the naive table at every position.

use super::naive::{Naive, NaiveBatch, open, read, usual_disk};
use crate::storage::simulated::Random;
use crate::{Counts, Durability, Snapshot};

#[test]
fn every_snapshot_is_the_naive_table_at_its_position_for_ever() {
    let histories = if cfg!(miri) { 3 } else { 2_000 };
    for seed in 0..histories {
        let mut random = Random(seed);
        let disk = usual_disk();
        let max_log_bytes = [200, 1000, 1 << 20][random.below(3)];
        let mut changes = open(&disk, max_log_bytes).unwrap();
        let mut naive = Naive::new();
        // Everybody who looked before still sees the same.
        let mut seen: Vec<(Snapshot, Naive)> = vec![(changes.snapshot(), naive.clone())];
        for position in 1..=random.below(30) as u64 {
            let batch = NaiveBatch::random(&mut random);
            let durability = [Durability::Synced, Durability::None][random.below(2)];
            let key = random.coin().then(|| format!("request {position}"));
            let built = || batch.built(changes.schema());
            let committed = changes.commit(built(), durability, key.as_deref()).unwrap();
            let counts = naive.apply(&batch);
            assert_eq!((committed.position, committed.counts), (position, counts), "{seed}");
            assert!(committed.is_durable || durability == Durability::None);
            if let Some(key) = key.as_deref() {
                let again = changes.commit(built(), durability, Some(key)).unwrap();
                assert!(again.is_repeated && !committed.is_repeated);
                assert_eq!((again.position, again.counts), (position, counts));
            }
            let snapshot = changes.snapshot();
            assert_eq!(snapshot.position(), position);
            seen.push((snapshot, naive.clone()));
            if random.below(6) == 0 {
                naive.check(&read(&disk).unwrap().snapshot()).unwrap();
                // Closed or dropped, it is the same.
                match random.coin() {
                    true => changes.close().unwrap(),
                    false => drop(changes),
                }
                changes = open(&disk, max_log_bytes).unwrap();
                assert_eq!(changes.snapshot().position(), position, "{seed}");
                if let Some(key) = key.as_deref() {
                    let built = batch.built(changes.schema());
                    let again = changes.commit(built, durability, Some(key)).unwrap();
                    assert!(again.is_repeated && again.position == position);
                    assert_eq!(again.counts, counts);
                }
            }
        }
        for (snapshot, naive) in &seen {
            naive.check(snapshot).unwrap_or_else(|fault| panic!("{seed}: {fault}"));
        }
    }
}

#[test]
fn a_table_that_fills_many_parts_keeps_all_rows_in_order() {
    // 1,000 components: a part has 1,048 rows.
    use contract::{Metric, Row};

    use crate::{BatchBuilder, ChangeOptions, Changes, Schema, Upsert, create};

    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path().join("m");
    create(&folder, &Schema { dim: 1000, metric: Metric::Cosine, columns: Vec::new() }).unwrap();
    let options = ChangeOptions { max_log_bytes: 1 << 20, ..ChangeOptions::default() };
    let open = || Changes::open(&folder, options).unwrap();
    let rows = if cfg!(miri) { 10 } else { 2_500 };
    let changes = open();
    for first in (0..rows).step_by(500) {
        let mut batch = BatchBuilder::new(changes.schema());
        for number in first..(first + 500).min(rows) {
            let vector = vec![number as f32; 1000];
            let key = format!("row {number}");
            batch.upsert(Upsert { key: &key, vector: &vector, bias: None, attributes: &[] });
        }
        let batch = batch.finish().unwrap().unwrap();
        let committed = changes.commit(batch, Durability::Synced, None).unwrap();
        let inserted = (rows - first).min(500);
        assert_eq!(committed.counts, Counts { inserted, ..Counts::default() });
    }
    let now = changes.snapshot();
    drop(changes);
    for snapshot in [now, open().snapshot()] {
        let mut next = 0;
        for part in snapshot.tail() {
            assert_eq!((part.first().0, part.biases()), (next, &[][..]));
            next += part.len() as u32;
        }
        assert_eq!(next as usize, rows);
        for number in 0..rows {
            let row = snapshot.row_of(&format!("row {number}")).unwrap();
            assert_eq!(row, Row(number as u32));
            let found = snapshot.tail_row(row).unwrap();
            assert_eq!((found.vector[0], found.vector[999]), (number as f32, number as f32));
        }
    }
}
