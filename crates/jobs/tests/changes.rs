//! Long work over a table whose rows change is about the rows of one position, or is refused.

use std::fs;
use std::ops::ControlFlow;
use std::path::Path;

use jobs::arrays::{self, ArrayQueries, Arrays};
use jobs::bulk::{self, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkWork};
use jobs::graph::{self, GraphOptions};
use kindred::live::Live;
use kindred::prepare::{Input, PrepareOptions, prepare_folder};
use kindred::{Device, Error, Kindred, Options, Settings};
use model_store::changes::{ChangeOptions, Durability, Upsert};

/// A table of three rows, of which `b` is deleted, and then `d` inserted.
fn changed(folder: &Path) -> Kindred {
    let input = Input::Bytes { name: "m", bytes: b"a 1 0\nb 1 0.1\nc 0 1\n" };
    let go_on = &mut |_| ControlFlow::Continue(());
    prepare_folder(input, &folder.join("m"), &PrepareOptions::default(), go_on).unwrap();
    let live = Live::open(&folder.join("m"), ChangeOptions::default()).unwrap();
    let settings = Settings { device: Device::Cpu, ..Settings::default() };
    let kindred = Kindred::start_live(live.into(), settings).unwrap();
    delete(&kindred, "b");
    put(&kindred, "d", &[1.0, 0.2]);
    kindred
}

fn put(kindred: &Kindred, key: &str, vector: &[f32]) {
    let live = kindred.live().unwrap();
    let mut batch = live.batch();
    batch.upsert(Upsert { key, vector, bias: None, attributes: &[] });
    live.commit(batch.finish().unwrap().unwrap(), Durability::None, None).unwrap();
}

fn delete(kindred: &Kindred, key: &str) {
    let live = kindred.live().unwrap();
    let mut batch = live.batch();
    batch.delete(key);
    live.commit(batch.finish().unwrap().unwrap(), Durability::None, None).unwrap();
}

fn nearest(
    kindred: &Kindred,
    queries: ArrayQueries<'_>,
    options: Options,
) -> Result<Option<Arrays>, Error> {
    arrays::nearest(kindred, queries, options, |_| ControlFlow::Continue(()))
}

#[test]
fn arrays_have_the_rows_as_they_are() {
    let scratch = tempfile::tempdir().unwrap();
    let kindred = changed(scratch.path());
    let found =
        nearest(&kindred, ArrayQueries::Rows(&[0, 3]), Options::new().k(3)).unwrap().unwrap();
    assert_eq!(found.indices, [3, 2, -1, 0, 2, -1]);
    let single = kindred.nearest("d", Options::new().k(2)).wait().unwrap();
    let scores: Vec<f64> = single.neighbors.iter().map(|found| found.score).collect();
    assert_eq!(found.scores[3..5], scores);
    let vectors = [0.9, 0.1].repeat(2000);
    let found =
        nearest(&kindred, ArrayQueries::Vectors(&vectors), Options::new().k(2)).unwrap().unwrap();
    assert!(found.indices.chunks(2).all(|rows| rows == [3, 0]));
    // A row that is deleted, and one that there never was.
    for row in [1, 4] {
        let error = nearest(&kindred, ArrayQueries::Rows(&[row]), Options::new()).unwrap_err();
        assert!(error.to_string().contains("row"), "{error}");
    }
}

#[test]
fn a_graph_is_refused() {
    let scratch = tempfile::tempdir().unwrap();
    let (kindred, out) = (changed(scratch.path()), scratch.path().join("graph.npz"));
    let made = graph::make(&kindred, &out, &GraphOptions::default(), |_| ControlFlow::Continue(()));
    let error = made.unwrap_err().to_string();
    assert!(error.contains("without changes") && !out.exists(), "{error}");
    // The engine was not asked, and still answers.
    assert_eq!(kindred.nearest("a", Options::new().k(1)).wait().unwrap().neighbors[0].word, "d");
}

#[test]
fn bulk_work_is_about_one_position_and_is_not_resumed_at_another() {
    let scratch = tempfile::tempdir().unwrap();
    let kindred = changed(scratch.path());
    let (input, out) = (scratch.path().join("in.txt"), scratch.path().join("out.jsonl"));
    let words = |count| "a\n".repeat(count);
    let run = |on_progress: &mut dyn FnMut(BulkProgress) -> ControlFlow<()>| {
        let files = (BulkInput::File(&input), BulkOutput::File(&out));
        let work = BulkWork::Nearest(Options::new().k(1));
        let options = BulkOptions { strict: true, ..BulkOptions::default() };
        bulk::run(&kindred, &work, files, &options, on_progress)
    };
    // It stops at the row that is deleted, and keeps the pieces before.
    fs::write(&input, words(20_000) + "b\n").unwrap();
    for _ in 0..2 {
        let stopped = run(&mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
        assert!(stopped.contains("line 20001: unknown_word"), "{stopped}");
    }
    put(&kindred, "e", &[1.0, 0.01]);
    let error = run(&mut |_| ControlFlow::Continue(())).unwrap_err().to_string();
    assert!(error.contains("position") && error.contains("remove that folder"), "{error}");
    fs::remove_dir_all(scratch.path().join("out.jsonl.partial")).unwrap();
    // Rows that come while it works are not in its answers.
    fs::write(&input, words(100_000)).unwrap();
    let mut is_put = false;
    let mut put_nearer = |_: BulkProgress| {
        if !std::mem::replace(&mut is_put, true) {
            put(&kindred, "f", &[1.0, 0.001]);
        }
        ControlFlow::Continue(())
    };
    let done = run(&mut put_nearer).unwrap();
    assert_eq!((done.rows, done.answered, is_put), (100_000, 100_000, true));
    let text = fs::read_to_string(&out).unwrap();
    assert!(text.lines().all(|line| line.contains("\"e\"")));
    assert_eq!(kindred.nearest("a", Options::new().k(1)).wait().unwrap().neighbors[0].word, "f");
}
