//! Reads an .npz by the crate `zip`, which checks every checksum, and by the form of .npy.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use jobs::graph::GraphOptions;
use zip::ZipArchive;

use crate::graph::{few_values, make, model, plain};

/// What a graph's file has.
#[derive(Debug, PartialEq)]
pub(crate) struct Graph {
    pub(crate) rows: usize,
    pub(crate) k: usize,
    pub(crate) indices: Vec<i64>,
    /// As bits, because NaN is not equal to itself.
    pub(crate) scores: Vec<u64>,
    pub(crate) texts: [String; 3],
}

impl Graph {
    pub(crate) fn row(&self, row: usize) -> Vec<(i64, u64)> {
        let of_row = row * self.k..(row + 1) * self.k;
        self.indices[of_row.clone()]
            .iter()
            .copied()
            .zip(self.scores[of_row].iter().copied())
            .collect()
    }
}

/// The kind, the shape and the bytes of an array.
fn array(archive: &mut ZipArchive<File>, name: &str) -> (String, String, Vec<u8>) {
    let mut bytes = Vec::new();
    archive.by_name(name).unwrap().read_to_end(&mut bytes).unwrap();
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(end % 64, 0);
    let head = std::str::from_utf8(&bytes[10..end]).unwrap().trim_end();
    let head = head.strip_prefix("{'descr': '").unwrap().strip_suffix(", }").unwrap();
    let (kind, shape) = head.split_once("', 'fortran_order': False, 'shape': ").unwrap();
    (kind.to_owned(), shape.to_owned(), bytes.split_off(end))
}

fn numbers(bytes: &[u8]) -> Vec<u64> {
    bytes.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes)).collect()
}

pub(crate) fn read(file: &Path) -> Graph {
    let mut archive = ZipArchive::new(File::open(file).unwrap()).unwrap();
    let names = ["indices.npy", "scores.npy", "k.npy", "model.npy", "version.npy", "metric.npy"];
    let found: Vec<_> = (0..archive.len())
        .map(|i| archive.name_for_index(i).unwrap().unwrap().into_owned())
        .collect();
    assert_eq!(found, names);
    let mut array = |name: &str| array(&mut archive, name);
    let (kind, shape, k) = array("k.npy");
    assert_eq!((&kind[..], &shape[..]), ("<i8", "()"));
    let k = numbers(&k)[0] as usize;
    let (kind, table, indices) = array("indices.npy");
    assert_eq!(kind, "<i8");
    let indices: Vec<i64> = numbers(&indices).into_iter().map(|number| number as i64).collect();
    let (kind, same, scores) = array("scores.npy");
    assert_eq!((&kind[..], &same), ("<f8", &table));
    let rows = indices.len() / k;
    assert_eq!(table, format!("({rows}, {k})"));
    let texts = ["model.npy", "version.npy", "metric.npy"].map(|name| {
        let (kind, shape, text) = array(name);
        let text: Vec<u32> =
            text.as_chunks::<4>().0.iter().map(|c| u32::from_le_bytes(*c)).collect();
        assert_eq!((kind, &shape[..]), (format!("<U{}", text.len()), "()"));
        text.into_iter().map(|c| char::from_u32(c).unwrap()).collect()
    });
    Graph { rows, k, indices, scores: numbers(&scores), texts }
}

#[test]
fn the_arrays_are_where_the_entries_say_and_name_the_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("g.npz");
    let kindred = plain(model(&few_values(9, 4, 3), None));
    make(&kindred, &file, &GraphOptions { k: 3, ..GraphOptions::default() }).unwrap();
    let graph = read(&file);
    assert_eq!((graph.rows, graph.k), (9, 3));
    assert_eq!(graph.texts, ["tiny", kindred.model().version(), "cosine"]);
    let mut archive = ZipArchive::new(File::open(&file).unwrap()).unwrap();
    for index in 0..archive.len() {
        let entry = archive.by_index(index).unwrap();
        // What is stored, not compressed, and aligned can be mapped.
        assert_eq!(entry.compressed_size(), entry.size());
        assert_eq!(entry.data_start().unwrap() % 64, 0, "{:?}", entry.name());
    }
    let names: Vec<_> = std::fs::read_dir(folder.path()).unwrap().collect();
    assert_eq!(names.len(), 1, "nothing is left beside the file: {names:?}");
}
