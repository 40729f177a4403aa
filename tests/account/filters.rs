//! Filters at random, and a model whose rows have attributes.

use std::fs;
use std::path::Path;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::json;

use super::asked::Asked;
use super::searches::Maker;
use crate::support::kindred;

/// Rows of the model.
const ROWS: usize = 100_000;

/// Writes a random model whose rows have attributes of each kind, of which some are missing.
pub(crate) fn write_model(folder: &Path) {
    let [plain, vectors] = ["plain", "vectors.bin"].map(|name| folder.join(name));
    let lines = (0..ROWS).map(|row| {
        let tags: Vec<String> = (0..row % 4).map(|n| format!("t{}", row * (n + 7) % 300)).collect();
        let kind = format!("k{}", row.trailing_zeros());
        let mut line = json!({"price": row * 7919 % 1000, "weight": (row % 977) as f64 / 977.0,
            "kind": kind, "tags": tags, "fresh": row % 3 == 0,
            "note": format!("the text of row {row}, ").repeat(1 + row % 12)});
        if row % 5 == 0 {
            line.as_object_mut().expect("an object").remove(["price", "kind", "tags"][row % 3]);
        }
        format!("{line}\n")
    });
    let attributes = folder.join("attributes.jsonl");
    fs::write(&attributes, lines.collect::<String>()).expect("a file");
    let rows = ROWS.to_string();
    let run = |arguments: &[&str], paths: &[(&str, &Path)]| {
        let mut command = kindred(arguments);
        for (flag, path) in paths {
            command.arg(flag).arg(path);
        }
        let output = command.output().expect("it runs");
        assert!(output.status.success(), "{arguments:?}: {output:?}");
    };
    run(&["synth", "--rows", &rows, "--dim", "64"], &[("--out", &plain)]);
    let format = ["export", "--format", "word2vec-bin"];
    run(&format, &[("--model", &plain), ("--out", &vectors)]);
    let out = folder.join("synthetic");
    let vectors = vectors.to_str().expect("a UTF-8 path");
    let prepare = ["prepare", vectors, "--type", "note=stored"];
    run(&prepare, &[("--attributes", &attributes), ("--out", &out)]);
}

impl Maker {
    /// A filter of at most this many tests, for one of five queries.
    pub(crate) fn some_filter(&mut self, tests: usize) -> Option<String> {
        self.filters.one_in(5).then(|| self.filter(tests))
    }

    /// A filter of at most this many tests.
    pub(crate) fn filter(&mut self, tests: usize) -> String {
        let mut filter = self.test();
        for _ in 1..self.filters.size(tests.max(1)) {
            filter += self.filters.of(&[" AND ", " OR ", " AND NOT "]);
            filter += &self.test();
        }
        filter
    }

    fn test(&mut self) -> String {
        let (n, m) = (self.filters.below(1000), self.filters.below(1000));
        let kinds = if self.has_attributes { 10 } else { 1 };
        match self.filters.below(kinds) {
            0 => {
                let words = (0..self.filters.size(30)).map(|at| &self.words[(n + 31 * at) % 1000]);
                format!(
                    "key IN [{}]",
                    words.map(|word| format!("'{word}'")).collect::<Vec<_>>().join(",")
                )
            }
            1 => format!("price < {n}"),
            2 => format!("price {} TO {}", n.min(m), n.max(m)),
            3 => format!("weight >= 0.{n}"),
            4 => format!("kind = k{}", n % 12),
            5 => "kind != k0".to_owned(),
            6 => format!("tags = t{}", n % 300),
            7 => {
                let tags = (0..self.filters.size(100)).map(|at| format!("t{}", (n + at) % 300));
                format!("tags IN [{}]", tags.collect::<Vec<_>>().join(","))
            }
            8 => format!("tags STARTS WITH t{}", n % 30),
            _ => "fresh = true".to_owned(),
        }
    }

    /// How many rows meet a filter.
    pub(crate) fn count(&mut self) -> Asked {
        let filter = self.filter(256);
        if self.filters.one_in(2) {
            return Asked::get("/count", format!("/count?filter={}", encoded(&filter)));
        }
        Asked::post("/count", &json!({"filter": filter}))
    }
}

/// A filter in a query string.
pub(crate) fn encoded(filter: &str) -> String {
    utf8_percent_encode(filter, NON_ALPHANUMERIC).to_string()
}
