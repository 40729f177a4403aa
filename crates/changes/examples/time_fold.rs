//! Times a fold of a table of which 5 % were changed, alone and beside a thread that commits rows one
//! by one, and the memory that it takes.
//!
//!     cargo run --release -p changes --example time_fold -- [ROWS [FOLDER]]

use std::error::Error;
use std::fs;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use changes::{BatchBuilder, ChangeOptions, Changes, Durability, Upsert};
use model_store::ModelStore;
use model_store::synth::{SynthOptions, synth_folder};

const DIM: usize = 300;
const BATCH: usize = 1_000;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let rows: u32 = arguments.next().map_or(Ok(400_000), |rows| rows.parse())?;
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let scratch = tempfile::tempdir_in(folder)?;
    let model = scratch.path().join("model");
    let synth = SynthOptions { rows, dim: DIM, seed: 1, attributes: true, ..Default::default() };
    let started = Instant::now();
    synth_folder(synth, &model, false, &mut |_| ControlFlow::Continue(()))?;
    println!("{rows} × {DIM}: made in {:.1} s", started.elapsed().as_secs_f64());

    let options = ChangeOptions { keep_old: Duration::ZERO, ..ChangeOptions::default() };
    let changes = Changes::open(&model, options)?;
    for beside in [false, true, false, true] {
        change(&changes, rows as usize / 20);
        let (folded, commits) = match beside {
            false => (fold(&changes)?, Vec::new()),
            true => beside_commits(&changes)?,
        };
        let (seconds, anonymous) = folded;
        print!("fold {seconds:.2} s, {:.0} MB of memory of its own", anonymous / 1e6);
        match said(commits) {
            Some(said) => println!("; {said}"),
            None => println!(),
        }
    }
    drop(changes);
    let started = Instant::now();
    let opened = Changes::open(&model, options)?;
    let (opening, rows) = (started.elapsed().as_secs_f64(), opened.snapshot().live_rows());
    opened.base().verify(|_| ())?;
    println!("opened in {opening:.3} s, {rows} rows, every checksum right");
    Ok(())
}

/// Replaces some rows and inserts as many, in batches.
fn change(changes: &Changes, rows: usize) {
    let (base, first) = (changes.base(), changes.snapshot().position());
    let batches = rows / BATCH;
    for batch in 0..batches {
        // All of them are on disk when the last one is.
        let is_last = batch + 1 == batches;
        let durability = if is_last { Durability::Synced } else { Durability::None };
        let mut builder = BatchBuilder::new(changes.schema());
        for place in 0..BATCH {
            let number = batch * BATCH + place;
            let key = match place % 2 {
                0 => word(&base, number * 20),
                _ => format!("new {first} {number}"),
            };
            let vector: Vec<f32> = (0..DIM).map(|at| ((number + at) % 17) as f32 - 8.0).collect();
            builder.upsert(Upsert { key: &key, vector: &vector, bias: None, attributes: &[] });
        }
        let batch = builder.finish().expect("good rows").expect("some rows");
        changes.commit(batch, durability, None).expect("it commits");
    }
}

fn word(base: &ModelStore, row: usize) -> String {
    base.words().word(contract::Row((row % base.rows()) as u32)).to_owned()
}

/// Seconds, and bytes of anonymous memory at most above those before.
fn fold(changes: &Changes) -> Result<(f64, f64), Box<dyn Error>> {
    let (started, before) = (Instant::now(), anonymous());
    let mut most = before;
    changes.fold(&mut |_| {
        most = most.max(anonymous());
        ControlFlow::Continue(())
    })?;
    Ok((started.elapsed().as_secs_f64(), most - before))
}

type Beside = ((f64, f64), Vec<Duration>);

/// The same while another thread commits a row, and another.
fn beside_commits(changes: &Changes) -> Result<Beside, Box<dyn Error>> {
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let committing = scope.spawn(|| {
            let mut times = Vec::new();
            while !is_over.load(Ordering::Relaxed) {
                let mut batch = BatchBuilder::new(changes.schema());
                let key = format!("beside {}", times.len());
                let vector = [1.0; DIM];
                batch.upsert(Upsert { key: &key, vector: &vector, bias: None, attributes: &[] });
                let batch = batch.finish().expect("a good row").expect("a row");
                let started = Instant::now();
                changes.commit(batch, Durability::Synced, None).expect("it commits");
                times.push(started.elapsed());
            }
            times
        });
        let folded = fold(changes);
        is_over.store(true, Ordering::Relaxed);
        Ok((folded?, committing.join().expect("it commits")))
    })
}

fn said(mut times: Vec<Duration>) -> Option<String> {
    times.sort_unstable();
    let ms = |time: &Duration| time.as_secs_f64() * 1e3;
    let (count, last) = (times.len(), times.last()?);
    let (half, most) = (ms(&times[count / 2]), ms(&times[count * 99 / 100]));
    let last = ms(last);
    Some(format!("{count} commits beside it: p50 {half:.2}, p99 {most:.2}, max {last:.2} ms"))
}

/// Bytes of anonymous memory of this process, where the system tells.
fn anonymous() -> f64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("RssAnon:"));
    let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<f64>().ok());
    kilobytes.unwrap_or(0.0) * 1024.0
}
