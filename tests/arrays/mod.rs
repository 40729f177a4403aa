//! Arrays of vectors over HTTP, in NumPy's format (.npy): the same answers as in JSON, and every way
//! to send a wrong one.

mod answers;
mod limits;

use crate::support::{Reply, Service, prepared, random_vectors};
use serde_json::Value;

const NPY: (&str, &str) = ("Content-Type", "application/x-npy");
const WANTS_NPY: (&str, &str) = ("Accept", "application/x-npy");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A file of version 1.0, 2.0 or 3.0, as NEP 1 describes it.
fn file(version: u8, dictionary: &str, numbers: &[u8]) -> Vec<u8> {
    let mut file = [b"\x93NUMPY", &[version, 0][..]].concat();
    match version {
        1 => file.extend((dictionary.len() as u16).to_le_bytes()),
        _ => file.extend((dictionary.len() as u32).to_le_bytes()),
    }
    file.extend(dictionary.bytes());
    file.extend(numbers);
    file
}

fn array(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    file(1, &dictionary, numbers)
}

fn f4(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn f8(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A neighbour of an answer: row, the bits of its score, and its vector.
type Cell = (i64, u64, Vec<f32>);

/// An answer that is an array: its shape, and its elements.
fn cells(reply: &Reply) -> (Vec<usize>, Vec<Cell>) {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    assert_eq!(reply.header("content-type"), Some("application/x-npy"));
    let body = &reply.body;
    assert_eq!(body[..8], *b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([body[8], body[9]]));
    let (head, mut rest) = body[10..].split_at(length);
    assert_eq!((length + 10) % 64, 0);
    let head = std::str::from_utf8(head).unwrap();
    let (kind, after) = head.split_once("], 'fortran_order': False, 'shape': (").expect(head);
    let kind = kind.strip_prefix("{'descr': [('row', '<i8'), ('score', '<f8')").expect(head);
    let dim = match kind {
        "" => 0,
        vector => {
            let dim = vector.strip_prefix(", ('vector', '<f4', (").expect(head);
            dim.strip_suffix(",))").expect(head).parse().unwrap()
        }
    };
    let shape = after.split_once(')').expect(head).0.split(',').map(str::trim);
    let shape: Vec<usize> =
        shape.filter(|length| !length.is_empty()).map(|length| length.parse().unwrap()).collect();
    let mut found = Vec::new();
    while let Some((row, after)) = rest.split_first_chunk() {
        let (score, after) = after.split_first_chunk().unwrap();
        let (vector, after) = after.split_at(dim * 4);
        let vector = vector.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
        found.push((i64::from_le_bytes(*row), u64::from_le_bytes(*score), vector.collect()));
        rest = after;
    }
    assert_eq!(found.len(), shape.iter().product::<usize>());
    (shape, found)
}

/// What an array must have for an answer in JSON.
fn expected(results: &[Value], k: usize, dim: usize) -> Vec<Cell> {
    let nothing = || (-1, f64::NAN.to_bits(), vec![f32::NAN; dim]);
    let of_one = |result: &Value| {
        let neighbors = result["neighbors"].as_array().expect("neighbours").clone();
        let cells = neighbors.into_iter().map(move |neighbor| {
            let vector = neighbor["vector"].as_array().cloned().unwrap_or_default();
            let vector = vector.iter().map(|number| number.as_f64().unwrap() as f32).collect();
            let score = neighbor["score"].as_f64().unwrap();
            (neighbor["row"].as_i64().unwrap(), score.to_bits(), vector)
        });
        cells.chain(std::iter::repeat_with(nothing)).take(k).collect::<Vec<_>>()
    };
    results.iter().flat_map(of_one).collect()
}

/// As text: no NaN is equal to itself, and what differs is shown.
fn shown(cells: &[Cell]) -> Vec<String> {
    cells.iter().map(|cell| format!("{cell:?}")).collect()
}

fn ask(service: &Service, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    service.send("POST", target.as_bytes(), headers, body)
}

#[track_caller]
fn fails(reply: &Reply, status: u16, code: &str, says: &str) {
    let problem = reply.json();
    assert_eq!((reply.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(says), "{detail}");
}

/// 300 rows in three dimensions, some of them equal, and the service over them.
fn some_rows() -> (tempfile::TempDir, Service) {
    let (scratch, model) = prepared(&random_vectors((0..300).map(|row| format!("w{row}"))));
    (scratch, Service::start(&["--model", model.to_str().unwrap()]))
}

/// Vectors whose components no short decimal number is.
fn some_queries(count: usize) -> Vec<f32> {
    (0..count * 3).map(|at| ((at * 37 % 101) as f32 - 50.3) / 7.0).collect()
}

/// The value of a metric.
fn metric(service: &Service, name: &str) -> f64 {
    let reply = service.get("/metrics");
    let line = reply.text().lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name}: {}", reply.text()));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}
