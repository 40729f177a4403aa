//! The derived table: a saved one is reused, but never if it is wrong.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;
use std::time::Duration;

use crate::support::{self, ask, bits, expected, model};
use contract::{Query, SearchEngine};
use cpu_core::{CpuEngine, Options, Origin, Paths, TablesReport};
use model_store::ModelStore;
use model_store::prepare::MAX_DIM;
use model_store::synth::{SynthOptions, synth_folder};
use tempfile::TempDir;

fn table_of(scale: f32) -> Arc<ModelStore> {
    let rows: Vec<Vec<f32>> = (0..700)
        .map(|row| (0..30).map(|i| (row as f32 * scale + i as f32).sin()).collect())
        .collect();
    Arc::new(model(30, &rows))
}

/// Starts an engine, checks its answers, and returns what became of its table.
fn start(model: &Arc<ModelStore>, file: Option<&Path>) -> TablesReport {
    let told = Arc::new(Mutex::new(None));
    let teller = told.clone();
    let options = Options {
        threads: 2,
        keep_in: file.map(PathBuf::from),
        paths: Paths { always_certify: true, ..Paths::default() },
        report: Some(Box::new(move |report| *teller.lock().unwrap() = Some(report))),
        ..Options::default()
    };
    let mut engine = CpuEngine::new(model.clone(), options).unwrap();
    let queries: Vec<_> = (0..20).map(|i| ask(model, i * 31, 5)).collect();
    let batch: Vec<&Query> = queries.iter().collect();
    let expected = expected(model, &batch);
    // Before the table is ready, or just at that moment, and afterwards.
    assert_eq!(bits(&engine.search(&batch).unwrap()), expected);
    engine.wait_for_tables();
    assert_eq!(bits(&engine.search(&batch).unwrap()), expected);
    told.lock().unwrap().take().expect("a report comes before the wait is over")
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn files(folder: &TempDir) -> Vec<String> {
    let names = fs::read_dir(folder.path()).unwrap();
    names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
}

#[test]
fn many_queries_wait_for_the_table_and_few_do_not() {
    let rows: Vec<Vec<f32>> = (0..50_000)
        .map(|row| (0..30).map(|i| (row as f32 * 0.7 + i as f32).sin()).collect())
        .collect();
    let model = Arc::new(model(30, &rows));
    let start = || {
        let (release, released) = mpsc::channel::<()>();
        let before_deriving = Some(Box::new(move || released.recv().unwrap()) as Box<_>);
        let options = Options { threads: 2, before_deriving, ..Options::default() };
        (CpuEngine::new(model.clone(), options).unwrap(), release)
    };
    let search = |engine: &mut CpuEngine, count: usize| {
        let queries: Vec<_> = (0..count).map(|i| ask(&model, i, 1)).collect();
        engine.search_overlapped(&queries.iter().collect::<Vec<_>>(), &mut || ()).unwrap();
        let counted = engine.counted();
        (counted.certified, counted.full)
    };
    let (mut engine, release) = start();
    assert_eq!(search(&mut engine, 1), (0, 1), "a short scan does not wait");
    release.send(()).unwrap();

    // A full scan of these takes about 0.75 s.
    let (mut engine, release) = start();
    let later = thread::spawn(move || {
        thread::sleep(Duration::from_millis(20));
        release.send(()).unwrap();
    });
    assert_eq!(search(&mut engine, 2000), (2000, 0));
    later.join().unwrap();
}

#[test]
fn a_kept_table_is_used_again() {
    let (model, folder) = (table_of(0.7), folder());
    let file = folder.path().join("m.cpu-table");
    let first = start(&model, Some(&file));
    assert!(
        matches!(&first.origin, Origin::Built { kept_in, instead_of: None } if *kept_in == file)
    );
    assert_eq!(files(&folder), ["m.cpu-table"], "and nothing else is left there");
    let second = start(&model, Some(&file));
    assert!(matches!(&second.origin, Origin::Loaded(from) if *from == file), "{second}");
    assert_eq!(first.bytes, second.bytes);
    assert_eq!(fs::metadata(&file).unwrap().len() as usize, 4096 + first.bytes);
}

#[test]
fn of_engines_that_start_together_one_derives_the_table_and_all_use_its_file() {
    let folder = folder();
    let at = folder.path().join("m");
    let options = SynthOptions { rows: 20_000, dim: 30, seed: 1, ..SynthOptions::default() };
    synth_folder(options, &at, false, &mut |_| ControlFlow::Continue(())).unwrap();
    let model = || Arc::new(ModelStore::open(&at).unwrap());
    let file = folder.path().join("m.cpu-table");
    let reports: Vec<TablesReport> = thread::scope(|scope| {
        let starts = [(); 6].map(|()| scope.spawn(|| start(&model(), Some(&file))));
        starts.map(|one| one.join().unwrap()).into()
    });
    let built = reports.iter().filter(|report| matches!(report.origin, Origin::Built { .. }));
    assert_eq!(built.count(), 1, "{reports:?}");
    let loaded = reports.iter().filter(|report| matches!(report.origin, Origin::Loaded(_)));
    assert_eq!(loaded.count(), 5, "{reports:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn who_derived_a_table_uses_the_file_and_frees_its_own_copy() {
    let (model, folder) = (table_of(0.7), folder());
    let file = folder.path().join("m.cpu-table");
    let options = Options { keep_in: Some(file), ..Options::default() };
    let mut engine = CpuEngine::new(model, options).unwrap();
    engine.wait_for_tables();
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let address = engine.table().unwrap().as_ptr() as usize;
    let mapping = maps.lines().find(|line| {
        let (from, to) = line.split_once(' ').unwrap().0.split_once('-').unwrap();
        let [from, to] = [from, to].map(|end| usize::from_str_radix(end, 16).unwrap());
        (from..to).contains(&address)
    });
    assert!(mapping.unwrap().ends_with("m.cpu-table"), "{mapping:?}");
}

#[test]
fn whatever_happens_to_the_file_answers_stay_right() {
    let (model, folder) = (table_of(0.7), folder());
    let file = folder.path().join("m.cpu-table");
    start(&model, Some(&file));
    let good = fs::read(&file).unwrap();
    let changed = |at: usize| {
        let mut bytes = good.clone();
        bytes[at] ^= 1;
        bytes
    };
    let damaged = [
        Vec::new(),
        good[..100].to_vec(),
        good[..good.len() - 1].to_vec(),
        [&good[..], b"x"].concat(),
        changed(0),
        changed(30),
        changed(4096),
        changed(good.len() - 1),
        changed(good.len() / 2),
        b"something else".repeat(1000),
    ];
    for bytes in damaged {
        fs::write(&file, &bytes).unwrap();
        let report = start(&model, Some(&file));
        assert!(matches!(&report.origin, Origin::Built { instead_of: Some(_), .. }), "{report}");
        assert!(fs::read(&file).unwrap() == good, "the same table is made again");
    }
}

#[test]
fn a_table_of_other_vectors_versions_or_architectures_is_not_used() {
    let folder = folder();
    let file = folder.path().join("m.cpu-table");
    start(&table_of(0.7), Some(&file));
    let report = start(&table_of(0.3), Some(&file));
    assert!(report.to_string().contains("for other vectors"), "{report}");
    let text = fs::read(&file).unwrap();
    let header = String::from_utf8_lossy(&text[..4096]);
    let here = format!("\"architecture\":\"{}\"", std::env::consts::ARCH);
    assert!(header.contains(&here), "{header}");
    for (own, other) in [("\"version\":1", "\"version\":2"), (&here, "\"architecture\":\"z80\"")] {
        let mut changed = header.replace(own, other).trim_end().as_bytes().to_vec();
        changed.resize(4096, b' ');
        fs::write(&file, [&changed, &text[4096..]].concat()).unwrap();
        let report = start(&table_of(0.3), Some(&file));
        let why = "for other vectors, another architecture or another version";
        assert!(report.to_string().contains(why), "{report}");
        assert!(fs::read(&file).unwrap() == text, "it is replaced");
    }
}

#[test]
fn a_model_s_table_has_the_architecture_in_its_name() {
    let folder = folder();
    let own = folder.path().canonicalize().unwrap().join("m");
    fs::create_dir(&own).unwrap();
    let expected = own.with_file_name(format!("m.{}.cpu-table", std::env::consts::ARCH));
    for folder in [own.clone(), own.join("."), own.join("../m")] {
        assert_eq!(cpu_core::table_file(&folder).as_ref(), Some(&expected));
    }
    assert_eq!(cpu_core::table_file(&own.join("none")), None);
}

#[test]
fn where_nothing_can_be_written_the_table_stays_in_memory() {
    let (model, folder) = (table_of(0.7), folder());
    // A file where a folder should be: nobody may write below it, not even root.
    fs::write(folder.path().join("file"), "").unwrap();
    let report = start(&model, Some(&folder.path().join("file/m.cpu-table")));
    assert!(matches!(&report.origin, Origin::NotKept(Some(_))), "{report}");
    let report = start(&model, None);
    assert!(matches!(report.origin, Origin::NotKept(None)), "{report}");
}

#[test]
fn tables_of_the_same_vectors_are_the_same_whatever_makes_them() {
    let model = table_of(0.7);
    let tables: Vec<Vec<u8>> = cpu_core::InstructionSet::available()
        .into_iter()
        .map(|set| support::certified(&model, 3, set, Paths::default()).table().unwrap().to_vec())
        .collect();
    assert!(tables.iter().all(|table| *table == tables[0]));
}

#[test]
fn an_engine_that_stops_early_leaves_nothing_half_done() {
    let folder = folder();
    let file = folder.path().join("m.cpu-table");
    for _ in 0..20 {
        let options = Options { keep_in: Some(file.clone()), ..Options::default() };
        drop(CpuEngine::new(table_of(0.7), options).unwrap());
        assert!(files(&folder).iter().all(|name| name == "m.cpu-table"));
        let _ = fs::remove_file(&file);
    }
}

#[test]
fn vectors_too_long_for_the_proof_are_searched_without_a_table() {
    let rows: Vec<Vec<f32>> =
        (0..40).map(|row| (0..4097).map(|i| ((row * i) as f32).cos()).collect()).collect();
    let model = Arc::new(model(4097, &rows));
    assert!(model.dim() <= MAX_DIM);
    let mut engine = CpuEngine::new(model.clone(), Options::default()).unwrap();
    engine.wait_for_tables();
    assert!(engine.table().is_none());
    let query = ask(&model, 3, 5);
    let batch: Vec<&Query> = std::iter::once(&query).collect();
    assert_eq!(bits(&engine.search(&batch).unwrap()), expected(&model, &batch));
    assert_eq!(engine.counted().full, 1);
}
