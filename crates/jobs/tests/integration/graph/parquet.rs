//! A graph as Parquet has the same edges as the .npz, with their words.

use std::fs::File;

use jobs::graph::GraphOptions;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::RowAccessor;

use crate::graph::npz::read;
use crate::graph::{few_values, make, model, plain};

#[test]
fn a_line_for_each_edge_in_bounded_row_groups() {
    let folder = tempfile::tempdir().unwrap();
    let kindred = plain(model(&few_values(1_300, 5, 21), None));
    let options = GraphOptions { k: 200, ..GraphOptions::default() };
    let [npz, parquet] = ["g.npz", "g.parquet"].map(|name| folder.path().join(name));
    let made = make(&kindred, &npz, &options).unwrap();
    make(&kindred, &parquet, &options).unwrap();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2, "no work is left");

    let graph = read(&npz);
    let rows = (0..graph.rows).flat_map(|row| {
        graph.row(row).into_iter().enumerate().map(move |(rank, edge)| (row, rank, edge))
    });
    let mut expected = rows.filter(|&(.., (neighbor, _))| neighbor >= 0);
    let reader = SerializedFileReader::new(File::open(parquet).unwrap()).unwrap();
    let metadata = reader.metadata();
    let groups = metadata.row_groups();
    assert!(groups.len() > 2 && groups.iter().all(|group| group.num_rows() <= 122_880));
    let about = metadata.file_metadata().key_value_metadata().unwrap();
    let version = about.iter().find(|pair| pair.key == "kindred.version").unwrap();
    assert_eq!(version.value.as_deref(), Some(kindred.model().version()));
    let mut edges = 0;
    for line in reader.get_row_iter(None).unwrap() {
        let (line, (row, rank, (neighbor, score))) = (line.unwrap(), expected.next().unwrap());
        assert_eq!(line.get_long(0).unwrap(), row as i64);
        assert_eq!(*line.get_string(1).unwrap(), format!("word{row}"));
        assert_eq!(line.get_int(2).unwrap(), rank as i32 + 1);
        assert_eq!(line.get_long(3).unwrap(), neighbor);
        assert_eq!(*line.get_string(4).unwrap(), format!("word{neighbor}"));
        assert_eq!(line.get_double(5).unwrap().to_bits(), score);
        edges += 1;
    }
    assert!(expected.next().is_none());
    assert!(edges == made.edges && edges < 1_300 * 200, "some rows are zero: {edges}");
}
