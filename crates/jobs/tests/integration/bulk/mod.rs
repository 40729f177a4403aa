//! Bulk work: its answers have the bits of single ones, odd inputs lose no row, and what stops and
//! tears it changes no byte.

mod asked;
#[path = "../../../../kindred/tests/integration/before.rs"]
mod before;
mod content;
#[cfg(feature = "parquet")]
#[path = "../../../../encoders/tests/support.rs"]
#[allow(dead_code)]
mod fasttext;
#[cfg(feature = "parquet")]
mod parquet;
mod resume;

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jobs::JobError;
use jobs::bulk::{
    self, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkSummary, BulkWork, WantedLabels,
};
use kindred::{Kindred, Model, Settings};
use serde_json::Value;

fn on(_: BulkProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run(
    kindred: &Kindred,
    work: &BulkWork,
    (input, output): (&Path, &Path),
    options: &BulkOptions,
) -> Result<BulkSummary, JobError> {
    bulk::run(kindred, work, (BulkInput::File(input), BulkOutput::File(output)), options, on)
}

/// A folder with an input.
struct Scratch(tempfile::TempDir);

impl Scratch {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        fs::write(self.path(name), content).unwrap();
        self.path(name)
    }

    /// The answers as JSON, and the summary.
    fn answers(
        &self,
        kindred: &Kindred,
        work: &BulkWork,
        input: &Path,
        options: &BulkOptions,
    ) -> (Vec<Value>, BulkSummary) {
        let out = self.path("out.jsonl");
        let options = BulkOptions { replace: true, ..options.clone() };
        let done = run(kindred, work, (input, &out), &options).unwrap();
        let text = fs::read_to_string(&out).unwrap();
        (text.lines().map(|line| serde_json::from_str(line).unwrap()).collect(), done)
    }
}

fn demo() -> Kindred {
    Kindred::start(Model::demo().unwrap(), Settings::default()).unwrap()
}

fn labels(kindred: &Kindred) -> BulkWork {
    BulkWork::Classify(kindred.built_in_head().unwrap(), WantedLabels::default())
}

/// Texts of the demo model's own words, of different lengths.
fn texts(model: &Model, count: u32) -> Vec<String> {
    let word = |row: u32| model.word(row % 30_000).unwrap();
    (0..count)
        .map(|n| (0..1 + n % 9).map(|i| word(n * 7919 + i * 104_729)).collect::<Vec<_>>().join(" "))
        .collect()
}
