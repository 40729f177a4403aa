//! What stops work and tears it.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::EngineError;
use jobs::JobError;
use jobs::bulk::{self, BulkFormat, BulkInput, BulkOptions, BulkOutput, BulkWork};
use kindred::queue::Limits;
use kindred::{Kindred, Model, Options, Settings};

use crate::bulk::before::Before;
use crate::bulk::{Scratch, run};

/// Rows of the model, and of the input; 65 make a part.
pub(crate) const ROWS: usize = 420;
pub(crate) const PART: usize = 65;

/// The plain engine. It is lost after some queries, or every third of its passes fails.
fn small(lost_after: usize, fails: bool, capacity_slots: u32) -> Kindred {
    let rows: Vec<(String, [f32; 3])> = (0..ROWS)
        .map(|n| {
            (format!("word{n}"), [(n % 7) as f32 - 3.0, (n % 11) as f32, (n % 13) as f32 + 1.0])
        })
        .collect();
    let rows: Vec<(&str, &[f32])> = rows.iter().map(|(word, row)| (&word[..], &row[..])).collect();
    let max_restarts = if fails { 1000 } else { 0 };
    let limits = Limits { capacity_slots, max_restarts, ..Settings::default().limits };
    let settings = Settings { limits, ..Settings::default() };
    let counted = Arc::new(AtomicUsize::new(0));
    Kindred::with_engine(Model::from_rows("small", &rows).unwrap(), settings, move |model| {
        let counted = counted.clone();
        Ok(Before::boxed(model, None, move |batch| {
            let step = if fails { 1 } else { batch.len() };
            let before = counted.fetch_add(step, Ordering::Relaxed);
            match before + step > lost_after || (fails && before % 3 == 2) {
                true => Err(EngineError::Device("as it was told".into())),
                false => Ok(()),
            }
        }))
    })
    .unwrap()
}

pub(crate) fn whole() -> Kindred {
    small(usize::MAX, false, 8192)
}

pub(crate) fn nearest() -> BulkWork {
    BulkWork::Nearest(Options::new().k(1000))
}

/// Words of the input that the model does not have. They are most, since a thousand neighbours of
/// each word would be most of the time that these tests take.
const UNKNOWN: u64 = 336;

/// Words, of which every fifth is known.
pub(crate) fn words(name: &str) -> String {
    let word = |n: usize| if n % 5 == 3 { format!("word{n}") } else { format!("{name}{n}") };
    (0..ROWS).map(|n| word(n) + "\r\n").collect()
}

/// Runs until the engine is lost three times, which leaves three states in the journal.
pub(crate) fn stopped(input: &Path, out: &Path) {
    let options = BulkOptions { jobs: 1, ..BulkOptions::default() };
    for parts in [1, 1, 2] {
        // A word that is unknown asks for nothing.
        let kindred = small(parts * PART / 5, false, 8192);
        let error = run(&kindred, &nearest(), (input, out), &options).unwrap_err();
        assert!(matches!(error, JobError::NotAnswered(_)), "{error}");
        assert!(error.to_string().contains("the same command goes on from there"), "{error}");
        assert!(!out.exists());
    }
}

#[test]
fn work_that_is_torn_at_any_byte_costs_only_what_was_torn() {
    let scratch = Scratch::new();
    // The journal does not depend on the form, so it is torn at most places for one of them.
    let parquet = cfg!(feature = "parquet").then_some(("o.parquet", 157));
    for (out, step) in [("o.jsonl", 61), ("o.csv.gz", 157)].into_iter().chain(parquet) {
        let input = scratch.file("in.txt", words("no"));
        let (expected, out) = (scratch.path(&format!("expected.{out}")), scratch.path(out));
        let options = BulkOptions::default();
        run(&whole(), &nearest(), (&input, &expected), &options).unwrap();
        let expected = fs::read(expected).unwrap();
        stopped(&input, &out);
        let work = PathBuf::from(format!("{}.partial", out.display()));
        let kept = ["journal", "rows"].map(|name| (name, fs::read(work.join(name)).unwrap()));
        let [journal, rows] = [0, 1].map(|at| kept[at].1.len());
        let journal =
            (0..=journal).step_by(step).chain([journal]).map(|length| ("journal", length));
        let rows = (0..=rows).step_by(rows / 9).chain([rows]).map(|length| ("rows", length));
        let (mut resumed, kindred) = (Vec::new(), whole());
        for (torn, length) in journal.chain(rows) {
            fs::create_dir_all(&work).unwrap();
            for (name, bytes) in &kept {
                let length = if *name == torn { length } else { bytes.len() };
                fs::write(work.join(name), &bytes[..length]).unwrap();
            }
            let done = run(&kindred, &nearest(), (&input, &out), &options).unwrap();
            assert!(fs::read(&out).unwrap() == expected, "{torn} cut to {length} bytes");
            assert_eq!((done.rows, done.errors["unknown_word"]), (ROWS as u64, UNKNOWN));
            assert!(!work.exists());
            resumed.push(done.resumed_rows);
            fs::remove_file(&out).unwrap();
        }
        resumed.sort_unstable();
        resumed.dedup();
        let states = [0, 1, 2, 4].map(|parts| parts * PART as u64);
        assert_eq!(
            resumed, states,
            "every state is what was left at some length, and nothing else"
        );
    }
}

#[test]
fn other_work_and_a_changed_input_are_refused_and_stay() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.file("in.txt", words("no")), scratch.path("o.jsonl"));
    stopped(&input, &out);
    let journal = scratch.path("o.jsonl.partial/journal");
    let before = fs::read(&journal).unwrap();
    let kindred = whole();
    let refused = |work: &BulkWork, options: BulkOptions, part: &str| {
        let error = run(&kindred, work, (&input, &out), &options).unwrap_err().to_string();
        assert!(error.contains(part) && error.contains("remove that folder"), "{error}");
        assert!(fs::read(&journal).unwrap() == before);
    };
    let default = BulkOptions::default();
    refused(&BulkWork::Nearest(Options::new().k(999)), default.clone(), "k 1000 instead of k 999");
    let limited = Options::new().k(1000).min_score(0.5);
    let other = "no minimum score instead of the minimum score 0.5";
    refused(&BulkWork::Nearest(limited), default.clone(), other);
    let texts = BulkWork::NearestOfTexts(Options::new().k(1000));
    refused(&texts, default.clone(), "no texts instead of texts true");
    let csv = BulkOptions { to: Some(BulkFormat::Csv), ..default.clone() };
    refused(&nearest(), csv, "to jsonl instead of to csv");
    scratch.file("in.txt", words("on"));
    refused(&nearest(), default.clone(), "its first");
    scratch.file("in.txt", words("no") + "more\r\n");
    refused(&nearest(), default.clone(), "an input of");
    // What it was again.
    scratch.file("in.txt", words("no"));
    run(&kindred, &nearest(), (&input, &out), &default).unwrap();
}

#[test]
fn a_caller_that_stops_keeps_what_is_done() {
    let scratch = Scratch::new();
    let (input, out) = (scratch.file("in.txt", words("no")), scratch.path("o.jsonl"));
    let files = (BulkInput::File(&input), BulkOutput::File(&out));
    let (kindred, options) = (whole(), BulkOptions::default());
    // It is asked ten times a second, and may be done before.
    let stop = |_| ControlFlow::Break(());
    if let Err(error) = bulk::run(&kindred, &nearest(), files, &options, stop) {
        assert!(error.to_string().contains("stopped with "), "{error}");
        assert!(!out.exists());
        run(&kindred, &nearest(), (&input, &out), &options).unwrap();
    }
    let expected = scratch.path("expected.jsonl");
    run(&kindred, &nearest(), (&input, &expected), &options).unwrap();
    assert!(fs::read(&out).unwrap() == fs::read(&expected).unwrap());
}

#[test]
fn passes_that_fail_and_a_small_queue_only_take_longer() {
    let scratch = Scratch::new();
    let (input, options) = (scratch.file("in.txt", words("no")), BulkOptions::default());
    let [expected, out] = ["expected.jsonl", "o.jsonl"].map(|name| scratch.path(name));
    run(&whole(), &nearest(), (&input, &expected), &options).unwrap();
    for kindred in [small(usize::MAX, true, 8192), small(usize::MAX, false, 40)] {
        let options = BulkOptions { replace: true, ..options.clone() };
        run(&kindred, &nearest(), (&input, &out), &options).unwrap();
        assert!(fs::read(&out).unwrap() == fs::read(&expected).unwrap());
    }
}
