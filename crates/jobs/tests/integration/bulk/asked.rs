//! Each answer stands beside its question, and answers of a service are written as those of an
//! engine in this process are.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use jobs::JobError;
use jobs::bulk::{
    self, Answerer, BulkInput, BulkOptions, BulkOutput, BulkWork, Fault, JsonAnswer, RowAnswer,
};
use kindred::{Kindred, Options};
use serde_json::{Value, json};

use crate::bulk::{Scratch, demo, labels, on, run};

/// The fields of each line of CSV.
fn table(path: &Path) -> Vec<Vec<String>> {
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_path(path).unwrap();
    let lines = reader.records().map(|line| line.unwrap().iter().map(str::to_owned).collect());
    lines.collect()
}

#[test]
fn each_answer_has_its_question_and_the_other_columns_stay_where_they_were() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let (default, nearest) = (BulkOptions::default(), BulkWork::Nearest(Options::new().k(2)));
    let input = scratch.file("in.txt", "frog\nfrogg\n\nking\n");
    let (found, _) = scratch.answers(&kindred, &nearest, &input, &default);
    let asked: Vec<Option<&str>> = found.iter().map(|row| row["asked"].as_str()).collect();
    assert_eq!(asked[..2], [Some("frog"), Some("frogg")]);
    assert_eq!(asked[3], Some("king"));
    let line = fs::read_to_string(scratch.path("out.jsonl")).unwrap();
    assert!(line.starts_with(r#"{"id":1,"asked":"frog","neighbors":[{"word":"#), "{line}");

    // What can't be read is no question.
    let rows = "[]\n{\"text\": 1}\n{\"text\": \"good, \\\"bad\\\"\\nfilm\"}\n";
    let input_json = scratch.file("in.jsonl", rows);
    let (found, _) = scratch.answers(&kindred, &labels(&kindred), &input_json, &default);
    assert!(found[0].get("asked").is_none() && found[1].get("asked").is_none(), "{found:?}");
    assert_eq!(found[2]["asked"], "good, \"bad\"\nfilm");

    let out = scratch.path("out.csv");
    run(&kindred, &nearest, (&input, &out), &default).unwrap();
    let lines = table(&out);
    assert_eq!(lines[0], ["id", "rank", "word", "score", "row", "error", "detail", "asked"]);
    // A word stands in each of its lines, also in that of its error.
    let asked: Vec<&str> = lines[1..].iter().map(|line| line[7].as_str()).collect();
    assert_eq!(asked[..3], ["frog", "frog", "frogg"]);
    assert_eq!((&*lines[3][5], &*lines[3][1]), ("unknown_word", ""));

    // A text may be long, and stands once.
    let out = scratch.path("texts.csv");
    run(&kindred, &labels(&kindred), (&input_json, &out), &default).unwrap();
    let lines = table(&out);
    let asked: Vec<&str> = lines[1..].iter().map(|line| line[7].as_str()).collect();
    assert_eq!(asked, ["", "", "good, \"bad\"\nfilm", ""], "{lines:?}");
}

/// A service that answers with the JSON of this engine, and loses the engine after some texts.
struct Service {
    kindred: Kindred,
    options: Options,
    head: &'static str,
}

impl Answerer for Service {
    fn model(&self) -> (&str, &str) {
        (self.kindred.model().name(), self.kindred.model().version())
    }

    fn about(&self) -> Value {
        json!({"head": self.head})
    }

    fn answers(
        &self,
        texts: &[&str],
        go_on: &dyn Fn() -> ControlFlow<()>,
    ) -> Result<Option<Vec<Result<RowAnswer<'_>, Fault>>>, JobError> {
        if go_on().is_break() {
            return Ok(None);
        }
        let answer = |text: &&str| {
            if *text == "lost" {
                return Err(JobError::Refused("it is lost".to_owned()));
            }
            if *text == "gone" {
                return Err(JobError::Answerer("it is gone".to_owned()));
            }
            let found = self.kindred.nearest(*text, self.options.clone()).wait();
            Ok(found.map_err(Fault::from).map(|found| {
                let text = serde_json::to_string(&found).unwrap();
                RowAnswer::Json(serde_json::from_str::<JsonAnswer>(&text).unwrap())
            }))
        };
        texts.iter().map(answer).collect::<Result<Vec<_>, JobError>>().map(Some)
    }
}

#[test]
fn the_answers_of_a_service_have_the_bytes_of_those_of_an_engine() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let options = Options::new().k(3).explain(true);
    let (work, default) = (BulkWork::Nearest(options.clone()), BulkOptions::default());
    let service = Service { kindred: kindred.for_long_work(), options, head: "a" };
    let input = scratch.file("in.txt", "frog\nfrogg\nking\n");
    let parquet = cfg!(feature = "parquet").then_some("o.parquet");
    for name in ["o.jsonl", "o.csv", "o.csv.gz"].into_iter().chain(parquet) {
        let (expected, out) = (scratch.path(&format!("expected.{name}")), scratch.path(name));
        run(&kindred, &work, (&input, &expected), &default).unwrap();
        let files = (BulkInput::File(&input), BulkOutput::File(&out));
        let done = bulk::run_by(&service, &work.question(), files, &default, on).unwrap();
        assert_eq!((done.rows, done.answered, &*done.model), (3, 2, "demo"));
        assert!(fs::read(&out).unwrap() == fs::read(&expected).unwrap(), "{name}");
    }
}

#[test]
fn an_answerer_that_is_gone_promises_no_more_than_is_kept() {
    let scratch = Scratch::new();
    let service = Service { kindred: demo(), options: Options::new(), head: "a" };
    let question = BulkWork::Nearest(Options::new()).question();
    let options = BulkOptions { jobs: 1, ..BulkOptions::default() };
    // The first piece has 1024 rows.
    for (rows, part) in [(0, "it is gone; there is nothing to go on from"), (1024, "are kept")] {
        let input = scratch.file("in.txt", "frog\n".repeat(rows) + "gone\n");
        let out = scratch.path("o.jsonl");
        let files = (BulkInput::File(&input), BulkOutput::File(&out));
        let error = bulk::run_by(&service, &question, files, &options, on).unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert_eq!(scratch.path("o.jsonl.partial").exists(), rows > 0);
    }
}

#[test]
fn work_by_another_answerer_is_not_resumed() {
    let scratch = Scratch::new();
    let service = |head| Service { kindred: demo(), options: Options::new(), head };
    let question = BulkWork::Nearest(Options::new()).question();
    // The second piece is lost.
    let words = "frog\n".repeat(1024) + "lost\n";
    let (input, out) = (scratch.file("in.txt", words), scratch.path("o.jsonl"));
    let files = (BulkInput::File(&input), BulkOutput::File(&out));
    let options = BulkOptions { jobs: 1, ..BulkOptions::default() };
    for (head, part) in [("a", "it is lost"), ("b", "head a instead of head b"), ("a", "lost")] {
        let refused = bulk::run_by(&service(head), &question, files, &options, on);
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(scratch.path("o.jsonl.partial").exists() && !out.exists());
    }
}
