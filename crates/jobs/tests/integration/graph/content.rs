//! A graph has what `nearest` answers, for every row.

use jobs::JobError;
use jobs::graph::GraphOptions;
use kindred::{Device, Kindred, Options, Settings};
use proptest::prelude::*;

use crate::graph::npz::read;
use crate::graph::{few_values, make, model, plain};

/// Compares a graph of the CPU engine with the plain engine's answer to each row.
fn compare(
    rows: &[Vec<f32>],
    biases: Option<&[f32]>,
    options: &GraphOptions,
) -> Result<(), TestCaseError> {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.npz");
    let settings = Settings { device: Device::Cpu, threads: 2, ..Settings::default() };
    let cpu = Kindred::start(model(rows, biases), settings).unwrap();
    let plain = plain(model(rows, biases));
    let made = make(&cpu, &file, options).unwrap();
    let graph = read(&file);
    let wanted = options.first_rows.map_or(rows.len(), |first| first.min(rows.len()));
    prop_assert_eq!((graph.rows, graph.k), (wanted, options.k));
    prop_assert_eq!(&graph.texts[2][..], if biases.is_some() { "dot" } else { "cosine" });
    let mut edges = 0;
    for (row, components) in rows.iter().enumerate().take(wanted) {
        let mut ask = Options::new().k(options.k as u64).vocab_limit(wanted as u64);
        ask.min_score = options.min_score;
        ask.filter = options.filter.clone();
        let found = plain.nearest(&format!("word{row}")[..], ask).wait();
        let neighbors = found.as_ref().map_or(&[][..], |answer| &answer.neighbors);
        let is_zero = components.iter().all(|&component| component == 0.0);
        prop_assert_eq!(found.is_err(), is_zero && biases.is_none());
        edges += neighbors.len() as u64;
        let found = neighbors.iter().map(|n| (i64::from(n.row), n.score.to_bits()));
        let filled = found.chain(std::iter::repeat((-1, f64::NAN.to_bits())));
        let expected: Vec<_> = filled.take(options.k).collect();
        prop_assert_eq!(graph.row(row), expected, "row {}", row);
    }
    prop_assert_eq!((made.edges, made.rows, made.resumed_rows), (edges, wanted as u64, 0));
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_graph_is_what_nearest_answers_under_both_metrics(
        (rows, dim, seed) in (1usize..90, 1usize..6, any::<u64>()),
        k in prop_oneof![1usize..12, 80usize..110],
        first_rows in proptest::option::of(1usize..100),
        min_score in proptest::option::of(-0.5..0.9f64),
        chosen in proptest::option::of(proptest::collection::vec(0usize..90, 0..40)),
        is_dot in any::<bool>(),
    ) {
        let rows = few_values(rows, dim, seed);
        let biases: Vec<f32> = few_values(rows.len(), 1, seed ^ 7).concat();
        let words = |rows: Vec<usize>| rows.iter().map(|row| format!("word{row}")).collect::<Vec<_>>();
        let filter = chosen.map(|rows| format!("key IN [{}]", words(rows).join(", ")));
        let bounds = GraphOptions { first_rows, min_score, filter, ..GraphOptions::default() };
        let options = GraphOptions { k, jobs: 3, ..bounds };
        compare(&rows, is_dot.then_some(&biases[..]), &options)?;
    }
}

#[test]
fn graphs_of_several_ranges_are_the_same_however_many_jobs_make_them() {
    // 2,500 rows are three ranges at k = 10; at k = 1000 they are many.
    let rows = few_values(2_500, 6, 11);
    for k in [10, 700] {
        let folder = tempfile::tempdir().unwrap();
        let graphs = [1, 2, 16].map(|jobs| {
            let file = folder.path().join(format!("{jobs}.npz"));
            let settings = Settings { device: Device::Cpu, ..Settings::default() };
            let kindred = Kindred::start(model(&rows, None), settings).unwrap();
            make(&kindred, &file, &GraphOptions { k, jobs, ..GraphOptions::default() }).unwrap();
            std::fs::read(file).unwrap()
        });
        assert!(graphs[0] == graphs[1] && graphs[1] == graphs[2], "k = {k}");
    }
}

#[test]
fn what_can_not_be_is_refused_before_anything_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let kindred = plain(model(&few_values(5, 3, 1), None));
    let fault = |file: &str, options: GraphOptions| {
        make(&kindred, &folder.path().join(file), &options).unwrap_err().to_string()
    };
    let default = GraphOptions::default;
    for (k, file, part) in [
        (0, "g.npz", "`k` must be a whole number from 1 to 1000"),
        (1001, "g.npz", "`k` must be"),
        (10, "g.txt", "must end in .npz or .parquet"),
        (10, "g", "must end in .npz or .parquet"),
    ] {
        let said = fault(file, GraphOptions { k, ..default() });
        assert!(said.contains(part), "{said}");
    }
    let said = fault("g.npz", GraphOptions { first_rows: Some(0), ..default() });
    assert!(said.contains("`first_rows`"), "{said}");
    let said = fault("g.npz", GraphOptions { min_score: Some(f64::NAN), ..default() });
    assert!(said.contains("`min_score`"), "{said}");
    if cfg!(not(feature = "parquet")) {
        let said = fault("g.parquet", default());
        assert!(said.contains("--features parquet"), "{said}");
    }
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);

    let file = folder.path().join("g.npz");
    std::fs::write(&file, "mine").unwrap();
    let error = make(&kindred, &file, &default()).unwrap_err();
    assert!(matches!(error, JobError::InTheWay { .. }) && error.to_string().contains("--replace"));
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
    make(&kindred, &file, &GraphOptions { replace: true, ..default() }).unwrap();
    assert_eq!(read(&file).rows, 5);
    // There is no work yet that the same command could go on with.
    let error = make(&kindred, &file.join("g.npz"), &default()).unwrap_err();
    assert!(matches!(error, JobError::NotBegun { .. }), "{error}");
    let error = make(&kindred, folder.path(), &GraphOptions { replace: true, ..default() });
    assert!(error.unwrap_err().to_string().contains("must end in .npz or .parquet"));
}
