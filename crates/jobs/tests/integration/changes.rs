//! Long work over a table whose rows change is about the rows of one position.

use std::fs;
use std::io::Read;
use std::ops::ControlFlow;
use std::path::Path;

use changes::{ChangeOptions, Durability, Upsert};
use jobs::arrays::{self, ArrayQueries, Arrays};
use jobs::bulk::{self, BulkInput, BulkOptions, BulkOutput, BulkProgress, BulkWork};
use jobs::graph::{self, GraphOptions};
use kindred::live::Live;
use kindred::prepare::{Input, PrepareOptions, prepare_folder};
use kindred::rows::Rows;
use kindred::{Device, Error, Kindred, Model, Options, Settings};

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

/// An array of a graph's file, behind its head.
fn array(file: &Path, name: &str) -> Vec<u8> {
    let mut zip = zip::ZipArchive::new(fs::File::open(file).unwrap()).unwrap();
    let mut bytes = Vec::new();
    zip.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
    let head = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    bytes.split_off(head)
}

fn integers(file: &Path, name: &str) -> Vec<i64> {
    array(file, name).as_chunks().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

/// A vector with few values, so that many scores are equal; now and then zero.
fn vector(seed: u64) -> [f32; 4] {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    [(); 4].map(|()| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        ((state >> 40) % 3) as f32 - 1.0
    })
}

#[test]
fn a_graph_is_that_of_a_model_of_the_rows_that_live() {
    let scratch = tempfile::tempdir().unwrap();
    let prepared = |name: &str, rows: &[(String, [f32; 4])]| {
        let line = |(key, [a, b, c, d]): &(String, [f32; 4])| format!("{key} {a} {b} {c} {d}\n");
        let (text, folder) = (rows.iter().map(line).collect::<String>(), scratch.path().join(name));
        let input = Input::Bytes { name, bytes: text.as_bytes() };
        let go_on = &mut |_| ControlFlow::Continue(());
        prepare_folder(input, &folder, &PrepareOptions::default(), go_on).unwrap();
        folder
    };
    let settings = || Settings { device: Device::Cpu, threads: 1, ..Settings::default() };
    let mut rows: Vec<(u32, (String, [f32; 4]))> =
        (0..1500).map(|row| (row, (format!("w{row}"), vector(row.into())))).collect();
    let every: Vec<_> = rows.iter().map(|(_, row)| row.clone()).collect();
    let live = Live::open(&prepared("m", &every), ChangeOptions::default()).unwrap();
    let kindred = Kindred::start_live(live.into(), settings()).unwrap();
    for n in (0..1500_u32).step_by(7) {
        let key = format!("w{n}");
        rows.retain(|(_, (own, _))| *own != key);
        if n % 3 == 0 {
            delete(&kindred, &key);
            continue;
        }
        // Replaced, it comes behind all others.
        let (new, next) = (vector(u64::from(n) + 9999), kindred.at().unwrap().count() as u32);
        put(&kindred, &key, &new);
        rows.push((next, (key, new)));
    }
    let of_rows: Vec<_> = rows.iter().map(|(_, row)| row.clone()).collect();
    let twin =
        Kindred::start(Model::open(prepared("twin", &of_rows)).unwrap(), settings()).unwrap();
    let filter = Some("NOT key IN [w1, w2, w700]".to_owned());
    for (name, options) in [
        ("all", GraphOptions { k: 5, ..GraphOptions::default() }),
        ("first", GraphOptions { k: 9, first_rows: Some(1300), ..GraphOptions::default() }),
        ("some", GraphOptions { k: 3, filter, min_score: Some(0.1), ..GraphOptions::default() }),
    ] {
        let [changed, same] = ["a", "b"].map(|end| scratch.path().join(format!("{name}{end}.npz")));
        let made =
            graph::make(&kindred, &changed, &options, |_| ControlFlow::Continue(())).unwrap();
        let other = graph::make(&twin, &same, &options, |_| ControlFlow::Continue(())).unwrap();
        assert_eq!((made.rows, made.edges), (other.rows, other.edges));
        let position = kindred.at().unwrap().position();
        assert_eq!((made.position, other.position), (Some(position), None));
        assert_eq!(integers(&changed, "position.npy"), [position as i64]);
        for array_name in ["indices.npy", "scores.npy"] {
            assert_eq!(
                array(&changed, array_name),
                array(&same, array_name),
                "{name} {array_name}"
            );
        }
        let numbers: Vec<i64> =
            rows.iter().take(made.rows as usize).map(|(number, _)| i64::from(*number)).collect();
        assert_eq!(integers(&changed, "numbers.npy"), numbers);
    }
    // Rows that came after the work began are in no answer; and a stopped graph does not go on at
    // another position.
    let file = scratch.path().join("half.npz");
    let options = GraphOptions { k: 2, ..GraphOptions::default() };
    let stopped = graph::make(&kindred, &file, &options, |_| ControlFlow::Break(()));
    assert!(stopped.is_err() && !file.exists());
    put(&kindred, "later", &[1.0, 1.0, 1.0, 1.0]);
    let other = graph::make(&kindred, &file, &options, |_| ControlFlow::Continue(()));
    assert!(other.unwrap_err().to_string().contains("position"));
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
