//! Work that was stopped or torn goes on from what is right, and ends with the same bytes.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use jobs::JobError;
use jobs::graph::{self, GraphOptions};
use kindred::{Kindred, Model};

use crate::graph::engines::limited;
use crate::graph::{few_values, make, model, plain};

/// Six ranges, of which the last is short.
const ROWS: usize = 350;
/// What one takes at k = 1000.
const RANGE: u64 = 65;
const OPTIONS: GraphOptions = GraphOptions {
    k: 1000,
    first_rows: None,
    min_score: None,
    filter: None,
    replace: false,
    jobs: 2,
};

fn rows() -> Model {
    model(&few_values(ROWS, 5, 5), None)
}

/// The bytes of the graph, made without disturbance.
fn undisturbed(folder: &Path) -> Vec<u8> {
    let file = folder.join("undisturbed.npz");
    make(&plain(rows()), &file, &OPTIONS).unwrap();
    fs::read(file).unwrap()
}

/// Work with four ranges of six, on a file in this folder. Returns the file, and the folder of the
/// work.
fn stopped(folder: &Path) -> (PathBuf, PathBuf) {
    let file = folder.join("g.npz");
    // One job at a time, so that exactly these ranges are done.
    let one = GraphOptions { jobs: 1, ..OPTIONS };
    let error = make(&limited(rows(), 4 * RANGE as usize), &file, &one).unwrap_err();
    assert!(matches!(error, JobError::NotAnswered(_)), "{error}");
    assert!(error.to_string().contains("the same command goes on from there"), "{error}");
    assert!(!file.exists());
    (file, folder.join("g.npz.partial"))
}

/// Goes on, and says how many rows were there.
fn go_on(file: &Path) -> u64 {
    make(&plain(rows()), file, &OPTIONS).unwrap().resumed_rows
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for name in ["journal", "graph"] {
        fs::copy(from.join(name), to.join(name)).unwrap();
    }
}

#[test]
fn what_failed_half_way_goes_on_where_it_was() {
    let folder = tempfile::tempdir().unwrap();
    let expected = undisturbed(folder.path());
    let (file, work) = stopped(folder.path());
    assert_eq!(go_on(&file), 4 * RANGE);
    assert!(fs::read(&file).unwrap() == expected);
    assert!(!work.exists());
}

#[test]
fn a_journal_or_table_that_is_torn_at_any_byte_costs_only_what_was_torn() {
    let folder = tempfile::tempdir().unwrap();
    let expected = undisturbed(folder.path());
    let (file, work) = stopped(folder.path());
    let kept = folder.path().join("kept");
    copy(&work, &kept);
    let size = |name: &str| fs::metadata(kept.join(name)).unwrap().len();
    let journal = (0..=size("journal")).step_by(11).map(|length| ("journal", length));
    let tables = (0..=size("graph")).step_by(180_001).map(|length| ("graph", length));
    let mut resumed = Vec::new();
    for (name, length) in journal.chain(tables) {
        copy(&kept, &work);
        fs::OpenOptions::new().write(true).open(work.join(name)).unwrap().set_len(length).unwrap();
        resumed.push(go_on(&file));
        assert!(fs::read(&file).unwrap() == expected, "{name} cut to {length} bytes");
        fs::remove_file(&file).unwrap();
    }
    resumed.sort_unstable();
    resumed.dedup();
    // Every number of ranges is what was left at some length, and nothing else.
    assert_eq!(resumed, [0, RANGE, 2 * RANGE, 3 * RANGE, 4 * RANGE]);
}

#[test]
fn rows_that_are_not_as_the_journal_says_are_asked_for_again() {
    let folder = tempfile::tempdir().unwrap();
    let expected = undisturbed(folder.path());
    let (file, work) = stopped(folder.path());
    let path = work.join("graph");
    let mut tables = fs::read(&path).unwrap();
    // A bit of the first range's indices, and one of the second's scores.
    let scores = tables.len() / 2;
    tables[1000] ^= 1;
    tables[scores + RANGE as usize * 8000 + 1000] ^= 1;
    fs::write(&path, tables).unwrap();
    assert_eq!(go_on(&file), 2 * RANGE);
    assert!(fs::read(&file).unwrap() == expected);
}

#[test]
fn a_caller_that_stops_keeps_what_is_done() {
    let folder = tempfile::tempdir().unwrap();
    let (expected, file) = (undisturbed(folder.path()), folder.path().join("g.npz"));
    let kindred = plain(rows());
    let stop = |_| ControlFlow::Break(());
    let error = graph::make(&kindred, &file, &OPTIONS, stop).unwrap_err();
    let JobError::Stopped { done, folder: work } = &error else { panic!("{error}") };
    assert!(done.ends_with(&format!(" % of {ROWS}")) && !done.starts_with("100 "), "{done}");
    assert!(work.is_dir() && !file.exists());
    make(&kindred, &file, &OPTIONS).unwrap();
    assert!(fs::read(&file).unwrap() == expected);
}

#[test]
fn the_work_on_another_graph_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let (file, work) = stopped(folder.path());
    let before = fs::read(work.join("journal")).unwrap();
    let refused = |kindred: &Kindred, options: GraphOptions, part: &str| {
        let error = make(kindred, &file, &options).unwrap_err();
        assert!(matches!(error, JobError::OtherWork { .. }), "{error}");
        let said = error.to_string();
        assert!(said.contains(part) && said.contains("remove that folder"), "{said}");
        assert_eq!(fs::read(work.join("journal")).unwrap(), before);
    };
    let same = plain(rows());
    refused(&same, GraphOptions { k: 999, ..OPTIONS }, "k 1000 instead of k 999");
    refused(&same, GraphOptions { first_rows: Some(9), ..OPTIONS }, "350 rows instead of 9 rows");
    let lowest = GraphOptions { min_score: Some(0.5), ..OPTIONS };
    refused(&same, lowest, "no minimum score instead of the minimum score 0.5");
    let other = plain(model(&few_values(ROWS, 5, 6), None));
    refused(&other, OPTIONS, other.model().version());
}

#[test]
fn the_work_of_another_version_is_refused_with_the_cure() {
    let folder = tempfile::tempdir().unwrap();
    let (file, work) = stopped(folder.path());
    let journal = fs::read_to_string(work.join("journal")).unwrap();
    let (head, entries) = journal.split_once('\n').unwrap();
    let older = head[9..].replace("\"format\":3", "\"format\":2");
    assert!(older != head[9..]);
    let older = format!("{:08x} {older}\n{entries}", crc32fast::hash(older.as_bytes()));
    fs::write(work.join("journal"), &older).unwrap();
    let error = make(&plain(rows()), &file, &OPTIONS).unwrap_err().to_string();
    let cure = "format 2 instead of format 3; finish it with the version of Kindred that it was \
                begun with, or remove that folder";
    assert!(error.ends_with(cure), "{error}");
    assert_eq!(fs::read_to_string(work.join("journal")).unwrap(), older);
}

#[test]
fn two_at_once_do_not_write_the_same_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.npz");
    let mut errors = Vec::new();
    let made = graph::make(&plain(rows()), &file, &OPTIONS, |_| {
        errors.extend(make(&plain(rows()), &file, &OPTIONS).err());
        ControlFlow::Continue(())
    });
    made.unwrap();
    assert!(!errors.is_empty());
    let is_busy = |error: &JobError| matches!(error, JobError::Busy(_));
    assert!(errors.iter().all(is_busy), "{errors:?}");
    assert!(errors[0].to_string().contains("choose another file"));
}
