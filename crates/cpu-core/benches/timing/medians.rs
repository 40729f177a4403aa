//! Times benchmarks, prints their medians and quartiles, and keeps the medians for later runs. For
//! benches/search.rs.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Of each benchmark, before it is measured.
const WARM_UP: Duration = Duration::from_millis(500);

/// Samples of each benchmark. Each is the mean of as many runs as take [`SAMPLE`], at least one.
const SAMPLES: usize = 10;
const SAMPLE: Duration = Duration::from_millis(300);

/// Seconds of a run, by the names of benchmarks, of this run and of earlier ones.
pub(crate) struct Medians {
    /// Parts of the names of those that are measured; all of them are if there is none.
    selected: Vec<String>,
    file: PathBuf,
    seconds: BTreeMap<String, f64>,
}

impl Medians {
    /// With the selection of the command line, and what earlier runs left in the target folder.
    pub(crate) fn open() -> Self {
        // Flags are cargo's.
        let texts = std::env::args().skip(1).filter(|argument| !argument.starts_with('-'));
        let selected =
            texts.flat_map(|text| text.split('|').map(str::to_owned).collect::<Vec<_>>());
        let target = std::env::var_os("CARGO_TARGET_DIR")
            .map(PathBuf::from)
            .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../target"));
        let file = target.join("bench-search.json");
        let kept = std::fs::read(&file).ok().and_then(|kept| serde_json::from_slice(&kept).ok());
        Self { selected: selected.collect(), file, seconds: kept.unwrap_or_default() }
    }

    /// Whether a benchmark is selected.
    pub(crate) fn selects(&self, name: &str) -> bool {
        self.selected.is_empty() || self.selected.iter().any(|part| name.contains(part))
    }

    /// Measures a benchmark if it is selected.
    pub(crate) fn measure<T>(&mut self, name: &str, mut run: impl FnMut() -> T) {
        if !self.selects(name) {
            return;
        }
        let mut mean_of = |is_done: &dyn Fn(u32, Duration) -> bool| {
            let (mut runs, begun) = (0, Instant::now());
            loop {
                black_box(run());
                runs += 1;
                let elapsed = begun.elapsed();
                if is_done(runs, elapsed) {
                    return elapsed.as_secs_f64() / f64::from(runs);
                }
            }
        };
        let mean = mean_of(&|_, elapsed| elapsed >= WARM_UP);
        let runs_of_sample = (SAMPLE.as_secs_f64() / mean) as u32;
        let mut samples = [0.0; SAMPLES];
        samples.fill_with(|| mean_of(&|runs, _| runs >= runs_of_sample));
        samples.sort_by(f64::total_cmp);
        let [low, median, high] = [0.25, 0.5, 0.75].map(|part| quantile(&samples, part));
        let change = match self.seconds.insert(name.to_owned(), median) {
            Some(before) => {
                format!("; {:+.1} % since the last run", (median / before - 1.0) * 100.0)
            }
            None => String::new(),
        };
        let [low, ms, high] = [low, median, high].map(|seconds| seconds * 1e3);
        println!("{name:<36} {ms:>10.4} ms, quartiles {low:.4} and {high:.4}{change}");
        self.keep();
    }

    /// The median of a benchmark in seconds, of this run or the last one that measured it.
    pub(crate) fn seconds(&self, name: &str) -> Option<f64> {
        self.seconds.get(name).copied()
    }

    /// Writes down all medians, so that a run that is ended early has those that it measured.
    fn keep(&self) {
        let json = serde_json::to_vec_pretty(&self.seconds).expect("names and numbers are JSON");
        if let Err(error) = std::fs::write(&self.file, json) {
            eprintln!("later runs won't know this: {}: {error}", self.file.display());
        }
    }
}

/// Of sorted values, interpolated; 0.5 is the median.
fn quantile(sorted: &[f64], part: f64) -> f64 {
    let at = part * (sorted.len() - 1) as f64;
    let (below, above) = (sorted[at.floor() as usize], sorted[at.ceil() as usize]);
    below + (above - below) * at.fract()
}
