//! Times durable changes beside plain appends to a file in the same folder, in turns: one row, rows
//! of 64 threads, and batches of 1,000.
//!
//!     cargo run --release -p changes --example durable_changes -- [FOLDER]

use std::error::Error;
use std::fs::{self, File};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use changes::{Batch, BatchBuilder, ChangeOptions, Changes, Durability, Upsert};
use model_store::prepare::{Input, PrepareOptions, prepare_folder};

const DIM: usize = 300;
/// Commits of one row, and plain appends of as many bytes.
const SINGLE: usize = 1_000;
/// Batches of many rows.
const BATCHES: usize = 40;
const ROWS: usize = 1_000;
const THREADS: usize = 64;

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args().nth(1).map_or_else(std::env::temp_dir, PathBuf::from);
    let scratch = tempfile::tempdir_in(folder)?;
    let model = scratch.path().join("model");
    let line = format!("first{}\n", " 1".repeat(DIM));
    let input = Input::Bytes { name: "first", bytes: line.as_bytes() };
    let go_on = &mut |_| ControlFlow::Continue(());
    prepare_folder(input, &model, &PrepareOptions::default(), go_on)?;
    let changes = Changes::open(&model, ChangeOptions::default())?;

    println!("one row of {DIM} components, in turns, medians and 99th percentiles:");
    let mut plain = Plain::new(&scratch.path().join("plain"))?;
    let bytes = vec![7; batch(&changes, 0, 1).1];
    let (mut of_plain, mut of_commit) = (Vec::new(), Vec::new());
    for number in 0..SINGLE {
        of_plain.push(timed(|| plain.append(&bytes)).0);
        let (time, committed) =
            timed(|| changes.commit(batch(&changes, number, 1).0, Durability::Synced, None));
        assert!(committed?.is_durable);
        of_commit.push(time);
    }
    let (plain_ms, commit_ms) = (said(of_plain), said(of_commit));
    println!("  append and fdatasync  {plain_ms}\n  commit                {commit_ms}");

    for threads in [1, THREADS] {
        let each = SINGLE / threads * 4;
        let (time, ()) = timed(|| {
            thread::scope(|scope| {
                for thread in 0..threads {
                    let changes = &changes;
                    scope.spawn(move || {
                        for number in 0..each {
                            let batch = batch(changes, thread * each + number, 1).0;
                            changes.commit(batch, Durability::Synced, None).expect("it commits");
                        }
                    });
                }
            });
        });
        let rate = (each * threads) as f64 / time.as_secs_f64();
        println!("  {threads} threads: {rate:.0} rows/s");
    }

    println!("batches of {ROWS} rows, in turns:");
    let bytes = vec![7; batch(&changes, 0, ROWS).1];
    let (mut of_plain, mut of_commit, mut of_whole) = (Vec::new(), Vec::new(), Vec::new());
    for number in 0..BATCHES {
        of_plain.push(timed(|| plain.append(&bytes)).0);
        let (whole, commit) = timed(|| {
            let batch = batch(&changes, number * ROWS, ROWS).0;
            timed(|| changes.commit(batch, Durability::Synced, None).expect("it commits")).0
        });
        of_whole.push(whole);
        of_commit.push(commit);
    }
    let rate = (BATCHES * ROWS) as f64 / of_whole.iter().sum::<Duration>().as_secs_f64();
    println!("  append and fdatasync  {}", said(of_plain));
    println!("  commit                {}", said(of_commit));
    println!("  checked and committed {}; {rate:.0} rows/s", said(of_whole));

    let rows = changes.snapshot().rows();
    drop(changes);
    let (time, changes) = timed(|| Changes::open(&model, ChangeOptions::default()));
    let snapshot = changes?.snapshot();
    assert_eq!(snapshot.rows(), rows);
    println!("opened again with {snapshot:?}: {:.0} ms", time.as_secs_f64() * 1e3);
    Ok(fs::remove_dir_all(scratch.path())?)
}

/// A file to which bytes are appended, each time synced.
struct Plain(File);

impl Plain {
    fn new(path: &Path) -> std::io::Result<Self> {
        Ok(Self(File::create(path)?))
    }

    fn append(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).and_then(|()| self.0.sync_data()).expect("it is written");
    }
}

/// A batch of rows, and its size in bytes.
fn batch(changes: &Changes, first: usize, rows: usize) -> (Batch, usize) {
    let mut batch = BatchBuilder::new(changes.schema());
    let vector = [first as f32 + 0.5; DIM];
    for number in first..first + rows {
        let key = format!("row {number}");
        batch.upsert(Upsert { key: &key, vector: &vector, bias: None, attributes: &[] });
    }
    let bytes = batch.bytes();
    (batch.finish().expect("good rows").expect("some rows"), bytes)
}

fn timed<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let start = Instant::now();
    let result = work();
    (start.elapsed(), result)
}

/// The median and the 99th percentile.
fn said(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |share: usize| times[times.len() * share / 100].as_secs_f64() * 1e3;
    format!("{:.3} ms, {:.3} ms", at(50), at(99))
}
