//! A table that changes: rows are put, deleted and read, at random.

use std::ops::Range;
use std::path::Path;

use serde_json::{Value, json};

use super::asked::{Asked, Random};
use super::filters::encoded;
use super::measure::Measured;
use super::{Found, Units};
use crate::support::{Service, kindred};

/// Random requests.
const REQUESTS: usize = 60;
/// Components of a row.
const DIM: usize = 64;
/// Rows before any request is measured, in batches of this many.
const ROWS: [usize; 2] = [20_000, 2000];

/// Sources of the table.
const SOURCES: usize = 1000;

/// The name of a source.
fn name(source: usize) -> String {
    format!("kafka/items/{source}")
}

/// Rows and requests at random.
struct Maker {
    random: Random,
    made: usize,
}

impl Maker {
    fn row(&mut self) -> Value {
        self.made += 1;
        // One in three replaces a row.
        let key = if self.random.one_in(3) { self.random.below(self.made) } else { self.made };
        let vector: Vec<f64> = (0..DIM).map(|_| self.random.number()).collect();
        json!({"key": format!("k{key}"), "vector": vector, "attributes": {"n": key % 1000}})
    }

    fn put(&mut self, rows: usize) -> Asked {
        let rows: Vec<Value> = (0..rows).map(|_| self.row()).collect();
        // Two rows may have the same key.
        Asked::post("/rows", &json!({"rows": rows, "on_error": "skip"}))
    }

    fn delete(&mut self) -> Asked {
        let body = if self.random.one_in(2) {
            let keys = self.random.size(5000);
            let keys: Vec<String> =
                (0..keys).map(|_| format!("k{}", self.random.below(self.made))).collect();
            json!({"keys": keys})
        } else {
            let from = self.random.below(1000);
            json!({"filter": format!("n >= {from} AND n < {}", from + self.random.size(300))})
        };
        Asked::post("/rows/delete", &body)
    }

    fn read(&mut self) -> Asked {
        let from = self.random.below(1000);
        let limit = self.random.size(1000);
        let vectors = self.random.one_in(2);
        match self.random.below(3) {
            0 => Asked::get("/rows/{key}", format!("/rows/k{}", self.random.below(self.made))),
            1 => Asked::get("/rows", format!("/rows?limit={limit}&with_vectors={vectors}")),
            _ => {
                let filter = encoded(&format!("n > {from}"));
                Asked::get("/rows", format!("/rows?limit={limit}&filter={filter}"))
            }
        }
    }

    /// Stores positions of some sources, with a row.
    fn follow(&mut self, sources: Range<usize>) -> Asked {
        let positions: Vec<String> = sources
            .map(|source| format!("{}:{}", name(source), self.random.below(1 << 30)))
            .collect();
        Asked { positions: positions.join(","), ..self.put(1) }
    }

    /// Asks for the sources, or reports on some.
    fn sources(&mut self) -> Asked {
        if self.random.one_in(2) {
            return Asked::get("/sources", "/sources");
        }
        let reports: Vec<Value> = (0..self.random.size(SOURCES))
            .map(|source| json!({"name": name(source), "position": "5", "behind": 3}))
            .collect();
        Asked::post("/sources", &json!({"sources": reports}))
    }

    fn make(&mut self) -> Asked {
        match self.random.below(6) {
            4 => self.sources(),
            5 => {
                let first = self.random.below(SOURCES - 200);
                let sources = self.random.size(200);
                self.follow(first..first + sources)
            }
            0 => self.delete(),
            1 => self.read(),
            _ => {
                let rows = self.random.size(3000);
                self.put(rows)
            }
        }
    }
}

/// Asks a service with one table of its own, and another like it.
pub(super) fn ask_table(found: &mut Found, scratch: &Path, units: &Units, seed: u64) {
    let serve = |name: &str, purge_delay: Option<&str>| {
        let folder = scratch.join(name);
        std::fs::create_dir(&folder).expect("a folder");
        let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"]);
        command.args(["--device", "cpu", "--models-dir"]).arg(folder);
        command.envs(purge_delay.map(|delay| ("MIMALLOC_PURGE_DELAY", delay)));
        Measured::new(Service::spawn(command))
    };
    let mut services = [serve("timed", None), serve("lean", Some("0"))];
    let mut maker = Maker { random: Random(seed), made: 0 };
    let table = json!({"name": "t", "dim": DIM, "attributes": {"n": "integer"}});
    let mut first = vec![Asked::post("/models", &table)];
    let [rows, together] = ROWS;
    first.extend((0..rows / together).map(|_| maker.put(together)));
    first.extend((0..SOURCES / 200).map(|part| maker.follow(200 * part..200 * (part + 1))));
    first.extend((0..20).map(|_| maker.make()));
    for service in &services {
        for asked in &first {
            let reply = service.ask(asked);
            assert!(reply.status < 300 || reply.status == 404, "{}", asked.shown());
        }
    }
    // Nothing is searched.
    let units =
        Units { search: 0.0, full_pass: 0.0, token: 0.0, expanded: 0.0, stage: units.stage };
    for _ in 0..REQUESTS {
        found.check(&mut services, &units, &maker.make());
    }
}
