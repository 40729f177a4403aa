//! Bulk work: its answers have the bits of single ones, odd inputs lose no row, and what stops and tears it changes no byte.

use std::fs;
use std::io::{Read as _, Write as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::{Engine, EngineDescription, EngineError, Hit, QueryBatch};
use cpu_core::ReferenceEngine;
use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use kindred::bulk::{
    BulkError, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkSummary, BulkWork,
    WantedLabels,
};
use kindred::heads::{Form, WantedTerms};
use kindred::queue::Limits;
use kindred::{Kindred, Method, Model, Options, Settings};
use serde_json::{Value, json};

fn on(_: BulkProgress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

fn run(
    kindred: &Kindred,
    work: &BulkWork,
    (input, output): (&Path, &Path),
    options: &BulkOptions,
) -> Result<BulkSummary, BulkError> {
    kindred.bulk(work, (BulkInput::File(input), BulkOutput::File(output)), options, on)
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

#[test]
fn answers_have_the_bits_of_single_ones() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let texts = texts(kindred.model(), 2500);
    let lines = texts.iter().map(|text| json!({"text": text}).to_string() + "\n");
    let input = scratch.file("in.jsonl", lines.collect::<String>());
    let default = BulkOptions::default();

    let (found, done) = scratch.answers(&kindred, &labels(&kindred), &input, &default);
    assert_eq!((found.len(), done.answered, done.failed), (2500, 2500, 0));
    let head = kindred.built_in_head().unwrap();
    for (index, text) in texts.iter().enumerate().step_by(97) {
        let single = kindred.classify(&head, [text]).wait().unwrap().pop().unwrap().unwrap();
        let single = single.labels.iter().map(|label| {
            json!({"label": label.name, "probability": label.probability, "score": label.score})
        });
        assert_eq!(found[index]["labels"], Value::from_iter(single), "{text}");
        assert_eq!(found[index]["id"], index as u64 + 1);
    }

    let expander = kindred.built_in_expander().unwrap();
    let wanted = WantedTerms { top: 20, ..WantedTerms::default() };
    let work = BulkWork::Expand(expander.clone(), wanted, Form::Terms);
    let some = scratch.file("some.txt", texts[..200].join("\n"));
    let (found, _) = scratch.answers(&kindred, &work, &some, &default);
    for (index, text) in texts[..200].iter().enumerate().step_by(13) {
        let single = kindred.expand(&expander, [text], wanted).wait().unwrap().pop().unwrap();
        let terms = single.unwrap().terms;
        let terms = terms.iter().map(|term| json!({"term": term.word, "weight": term.weight}));
        assert_eq!(found[index]["terms"], Value::from_iter(terms), "{text}");
    }

    let words: Vec<&str> = (0..300).map(|row| kindred.model().word(row * 91).unwrap()).collect();
    let options = Options::new().k(7).min_score(0.1);
    let input = scratch.file("words", words.join("\n"));
    let work = BulkWork::Nearest(options.clone());
    let (found, _) = scratch.answers(&kindred, &work, &input, &default);
    let near = |answer: &kindred::Answer<'_>| -> Value {
        let near = answer.neighbors.iter();
        near.map(|one| json!({"word": one.word, "score": one.score, "row": one.row})).collect()
    };
    for (index, word) in words.iter().enumerate().step_by(11) {
        let single = kindred.nearest(*word, options.clone()).wait().unwrap();
        assert_eq!(found[index]["neighbors"], near(&single), "{word}");
    }

    let asked = ["king - man + woman", "paris + (", "0.5*frog + toad"];
    let input = scratch.file("asked.txt", asked.join("\r\n"));
    let options = Options::new().k(3).method(Method::ThreeCosMul);
    let work = BulkWork::Analogy(options.clone());
    let (found, done) = scratch.answers(&kindred, &work, &input, &default);
    let single = kindred.analogy(asked[0], options).wait().unwrap();
    assert_eq!(found[0]["neighbors"], near(&single));
    assert_eq!(found[1]["error"]["code"], "bad_expression");
    assert_eq!(done.errors["bad_expression"], 1);
    let (found, _) = scratch.answers(
        &kindred,
        &BulkWork::NearestOfTexts(Options::new().k(2)),
        &scratch.file("t.txt", "The quick brown fox!"),
        &default,
    );
    assert!(found[0]["used"].as_array().unwrap().contains(&"quick".into()), "{}", found[0]);
}

#[test]
fn odd_inputs_lose_no_row() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let work = labels(&kindred);
    let large = "good film ".repeat(100_000);
    let too_large = "x".repeat(17 << 20);
    let bom = "\u{feff}";
    // Each row: its id, and `ok` or the code of its error.
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a.txt", b"".into(), ""),
        ("a.csv", b"".into(), ""),
        ("a.jsonl", b"".into(), ""),
        ("a.jsonl", b"\n \r\n\n".into(), ""),
        ("a.csv", b"text\n".into(), ""),
        ("a.txt", b"good\nbad".into(), "1 ok, 2 ok"),
        ("a.txt", format!("{bom}good\r\n\r\nbad\r\n").into(), "1 ok, 2 invalid_value, 3 ok"),
        ("a.txt", format!("good\n{bom}\n").into(), "1 ok, 2 unknown_word"),
        ("a.txt", format!("{large}\ngood\n").into(), "1 ok, 2 ok"),
        ("a.txt", format!("good\n{too_large}\nbad").into(), "1 ok, 2 row_too_large, 3 ok"),
        ("a.txt", format!("good\n{too_large}").into(), "1 ok, 2 row_too_large"),
        ("a.txt", b"good\n\xff\xfe\nbad\0bad".into(), "1 ok, 2 not_utf8, 3 ok"),
        (
            "a.jsonl",
            format!("{bom}{{\"text\":\"good\"}}\r\n\n{{\"text\":[]}}\n{{}}\n[]\n{{\"text\":\"\\ud83d\"}}\n{{\"text\":\"bad\"}}").into(),
            "1 ok, 3 invalid_value, 4 invalid_request, 5 not_json, 6 invalid_value, 7 ok",
        ),
        (
            "a.csv",
            format!("{bom}\"x\",\" text \"\r\n1,\"good, \"\"very\"\"\nfilm\"\r\n\r\n2,bad\n3\n,\"\"\n5,bad").into(),
            "2 ok, 5 ok, 6 invalid_request, 7 invalid_value, 8 ok",
        ),
        ("a.csv", format!("text,x\n\"{large}\",\n\"good\"\n{bom}bad,1").into(), "2 ok, 3 ok, 4 ok"),
        ("a.csv", b"text\rgood\r\rbad\r".into(), "2 ok, 4 ok"),
        ("a.csv", b"text\ngood\n\"bad\nand, so, on\n".into(), "2 ok, 3 not_csv"),
        ("a.csv", b"text\ngood\n\"b\xff\"\n\"\"\"bad\"\"\"".into(), "2 ok, 3 not_utf8, 4 ok"),
        ("a.csv", format!("text\n\"{too_large}\"\ngood").into(), "2 row_too_large, 3 ok"),
        ("a.csv", format!("text{}\ngood\n", ",x".repeat(70_000)).into(), "2 ok"),
    ];
    for (name, content, expected) in cases {
        let said =
            format!("{name}: {:?}", String::from_utf8_lossy(&content[..content.len().min(99)]));
        let input = scratch.file(name, content);
        let options = BulkOptions::default();
        if expected == "2 ok" {
            // More columns than a row may have: the file can't be read at all, and says so.
            assert!(run(&kindred, &work, (&input, &scratch.path("no.jsonl")), &options).is_err());
            continue;
        }
        let (found, done) = scratch.answers(&kindred, &work, &input, &options);
        let found: Vec<String> = found
            .iter()
            .map(|row| {
                let code = row["error"]["code"].as_str();
                assert!(code.is_some() != row["labels"].is_array(), "{row}");
                format!("{} {}", row["id"], code.unwrap_or("ok"))
            })
            .collect();
        assert_eq!(found.join(", "), expected, "{said}");
        assert_eq!(done.rows, found.len() as u64);
    }
}

#[test]
fn columns_ids_and_compression() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let work = labels(&kindred);
    let rows = "key,text,body\na,x,good film\n\"b,1\",x,?!\nc,x,bad film\n";
    let options = BulkOptions {
        column: Some("body".into()),
        id: Some("key".into()),
        ..BulkOptions::default()
    };
    let (found, _) = scratch.answers(&kindred, &work, &scratch.file("in.csv", rows), &options);
    let ids: Vec<&str> = found.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "b,1", "c"]);

    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(rows.as_bytes()).unwrap();
    let packed = scratch.file("in.csv.gz", gzip.finish().unwrap());
    let (plain_out, packed_out) = (scratch.path("o.csv"), scratch.path("o.csv.gz"));
    run(&kindred, &work, (&scratch.path("in.csv"), &plain_out), &options).unwrap();
    run(&kindred, &work, (&packed, &packed_out), &options).unwrap();
    let (mut text, plain) = (String::new(), fs::read_to_string(&plain_out).unwrap());
    MultiGzDecoder::new(fs::File::open(&packed_out).unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain);
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines[0], "id,rank,label,probability,score,error,detail");
    assert!(lines[1].starts_with("a,1,positive,0."), "{plain}");
    assert!(lines[3].starts_with("\"b,1\",,,,,unknown_word,line 3: the model does not"), "{plain}");
    // The same numbers as in JSON, bit by bit.
    let probability: f64 = lines[1].split(',').nth(3).unwrap().parse().unwrap();
    assert_eq!(found[0]["labels"][0]["probability"].as_f64(), Some(probability));

    let refused = |input: &str, options: &BulkOptions, part: &str| {
        let to = scratch.path("refused.jsonl");
        let error = run(&kindred, &work, (&scratch.path(input), &to), options).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(!scratch.path("refused.jsonl.partial").exists() && !to.exists());
    };
    let none = BulkOptions { column: Some("none".into()), ..options.clone() };
    refused("in.csv", &none, "no column `none`; choose one of its columns: key, text, body");
    refused("missing.csv", &options, "missing.csv");
    scratch.file("a.txt", "good\n");
    refused("a.txt", &options, "leave out --column and --id");
    scratch.file("cut.csv.gz", &fs::read(&packed).unwrap()[..30]);
    refused("cut.csv.gz", &options, "cut off or damaged");
    refused("in.csv", &BulkOptions { strict: true, ..options.clone() }, "line 3: unknown_word");
    let same = run(&kindred, &work, (&plain_out, &plain_out), &options).unwrap_err();
    assert!(same.to_string().contains("is the input"), "{same}");
}

/// The plain engine. It is lost after some queries, or every third of its passes fails.
struct Faulty {
    plain: ReferenceEngine,
    lost_after: usize,
    fails: bool,
    counted: Arc<AtomicUsize>,
}

impl Engine for Faulty {
    fn description(&self) -> EngineDescription {
        self.plain.description()
    }

    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &QueryBatch<'_>) -> Result<Vec<Vec<Hit>>, EngineError> {
        let step = if self.fails { 1 } else { batch.len() };
        let before = self.counted.fetch_add(step, Ordering::Relaxed);
        match before + step > self.lost_after || (self.fails && before % 3 == 2) {
            true => Err(EngineError::Device("as it was told".into())),
            false => self.plain.search(batch),
        }
    }
}

/// Rows of the model, and of the input; 65 make a part.
const ROWS: usize = 420;
const PART: usize = 65;

fn small(lost_after: usize, fails: bool, capacity_queries: u32) -> Kindred {
    let rows: Vec<(String, [f32; 3])> = (0..ROWS)
        .map(|n| {
            (format!("word{n}"), [(n % 7) as f32 - 3.0, (n % 11) as f32, (n % 13) as f32 + 1.0])
        })
        .collect();
    let rows: Vec<(&str, &[f32])> = rows.iter().map(|(word, row)| (&word[..], &row[..])).collect();
    let engine_max_restarts = if fails { 1000 } else { 0 };
    let limits = Limits { capacity_queries, engine_max_restarts, ..Settings::default().limits };
    let settings = Settings { limits, ..Settings::default() };
    let counted = Arc::new(AtomicUsize::new(0));
    Kindred::with_engine(Model::from_rows("small", &rows).unwrap(), settings, move |model| {
        let plain = ReferenceEngine::new(model.clone());
        Ok(Box::new(Faulty { plain, lost_after, fails, counted: counted.clone() }))
    })
    .unwrap()
}

fn whole() -> Kindred {
    small(usize::MAX, false, 8192)
}

fn nearest() -> BulkWork {
    BulkWork::Nearest(Options::new().k(1000))
}

/// Words, some of which are unknown.
fn words(name: &str) -> String {
    let word = |n: usize| if n % 10 == 3 { format!("{name}{n}") } else { format!("word{n}") };
    (0..ROWS).map(|n| word(n) + "\r\n").collect()
}

/// Runs until the engine is lost three times, which leaves three states in the journal.
fn stopped(input: &Path, out: &Path) {
    let options = BulkOptions { jobs: 1, ..BulkOptions::default() };
    for parts in [1, 1, 2] {
        // A tenth of the words is unknown, and asks for nothing.
        let kindred = small(parts * PART, false, 8192);
        let error = run(&kindred, &nearest(), (input, out), &options).unwrap_err();
        assert!(matches!(error, BulkError::NotAnswered(_)), "{error}");
        assert!(error.to_string().contains("the same command goes on from there"), "{error}");
        assert!(!out.exists());
    }
}

#[test]
fn work_that_is_torn_at_any_byte_costs_only_what_was_torn() {
    let scratch = Scratch::new();
    for out in ["o.jsonl", "o.csv.gz"] {
        let input = scratch.file("in.txt", words("no"));
        let (expected, out) = (scratch.path(&format!("expected.{out}")), scratch.path(out));
        let options = BulkOptions::default();
        run(&whole(), &nearest(), (&input, &expected), &options).unwrap();
        let expected = fs::read(expected).unwrap();
        stopped(&input, &out);
        let work = PathBuf::from(format!("{}.partial", out.display()));
        let kept = ["journal", "rows"].map(|name| (name, fs::read(work.join(name)).unwrap()));
        let [journal, rows] = [0, 1].map(|at| kept[at].1.len());
        let journal = (0..=journal).step_by(61).chain([journal]).map(|length| ("journal", length));
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
            assert_eq!((done.rows, done.errors["unknown_word"]), (ROWS as u64, 42));
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
    refused(&BulkWork::Nearest(limited), default.clone(), "no min_score instead of min_score 0.5");
    let texts = BulkWork::NearestOfTexts(Options::new().k(1000));
    refused(&texts, default.clone(), "no texts instead of texts true");
    let csv = BulkOptions { to: Some(kindred::bulk::BulkFormat::Csv), ..default.clone() };
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
    if let Err(error) = kindred.bulk(&nearest(), files, &options, |_| ControlFlow::Break(())) {
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
