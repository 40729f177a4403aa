//! Writes the answers of a piece: lines of JSON, or CSV with a line for each label, term or
//! neighbour.

use std::io::{self, Write as _};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};
use serde_json::json;

use super::rows::{Id, Row};
use super::{BulkFormat, Fault, RowAnswer};
use crate::ImpliedTerm;
use crate::heads::{Form, Formed};

/// How answers are written.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rendering {
    /// JSON lines, from which Parquet is made at the end, or CSV.
    pub(super) format: BulkFormat,
    pub(super) is_packed: bool,
    /// Between the id with the rank, and the error.
    pub(super) columns: &'static [&'static str],
}

impl Rendering {
    /// What comes before all rows.
    pub(super) fn head(&self) -> io::Result<Vec<u8>> {
        if self.format != BulkFormat::Csv {
            return Ok(Vec::new());
        }
        let mut names = vec!["id", "rank"];
        names.extend(self.columns);
        names.extend(["error", "detail"]);
        let mut csv = csv_writer();
        csv.write_record(names)?;
        self.pack(finish(csv)?)
    }

    /// The answers of a piece. A piece becomes a member of the gzip file, so that a file that was
    /// resumed has the same bytes.
    pub(super) fn rows(
        &self,
        rows: &[Row<'_>],
        answers: &[Result<RowAnswer<'_>, Fault>],
    ) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(rows.len() * 128);
        if self.format != BulkFormat::Csv {
            // A column of Parquet has one type.
            let is_typed = self.format == BulkFormat::Parquet;
            for (row, answer) in rows.iter().zip(answers) {
                serde_json::to_writer(&mut bytes, &Line { row, answer, is_typed })?;
                bytes.push(b'\n');
            }
            return self.pack(bytes);
        }
        let mut csv = csv_writer();
        for (row, answer) in rows.iter().zip(answers) {
            self.table(&mut csv, row, answer)?;
        }
        self.pack(finish(csv)?)
    }

    /// An empty file of this kind.
    pub(super) fn nothing(&self) -> io::Result<Vec<u8>> {
        self.pack(Vec::new())
    }

    fn pack(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
        if !self.is_packed {
            return Ok(bytes);
        }
        let mut gzip = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::default());
        gzip.write_all(&bytes)?;
        gzip.finish()
    }

    /// The lines of a row. A row without labels, terms or neighbours has one as well.
    fn table(
        &self,
        csv: &mut csv::Writer<Vec<u8>>,
        row: &Row<'_>,
        answer: &Result<RowAnswer<'_>, Fault>,
    ) -> io::Result<()> {
        let id = row.id.text();
        let mut rank = 0;
        let mut line = |values: [&str; 3]| {
            rank += 1;
            let (rank, values) = (rank.to_string(), &values[..self.columns.len()]);
            let line = [&id, &rank[..]].into_iter().chain(values.iter().copied()).chain(["", ""]);
            csv.write_record(line)
        };
        match answer {
            Ok(RowAnswer::Labels(found, wanted)) => {
                for label in wanted.of(found) {
                    line([&label.name, &number(label.probability), &number(label.score)])?;
                }
            }
            Ok(RowAnswer::Terms(found, _)) => {
                for term in &found.terms {
                    line([&term.word, &number(term.weight), ""])?;
                }
            }
            Ok(RowAnswer::Neighbors(found)) => {
                for near in &found.neighbors {
                    line([&near.word, &number(near.score), &near.row.to_string()])?;
                }
            }
            Err(_) => {}
        }
        if rank > 0 {
            return Ok(());
        }
        let (code, detail) = match answer {
            Ok(_) => ("", String::new()),
            Err(fault) => (fault.code, format!("line {}: {}", row.line, fault.detail)),
        };
        let empty = self.columns.iter().map(|_| "");
        Ok(csv.write_record([&id[..], ""].into_iter().chain(empty).chain([code, &detail]))?)
    }
}

fn csv_writer() -> csv::Writer<Vec<u8>> {
    csv::Writer::from_writer(Vec::new())
}

fn finish(csv: csv::Writer<Vec<u8>>) -> io::Result<Vec<u8>> {
    csv.into_inner().map_err(|error| io::Error::other(error.to_string()))
}

/// In the shortest form that reads back as the same float64.
fn number(number: f64) -> String {
    format!("{number:?}")
}

/// A row's answer, or its error, as the line of a JSON object. Names and forms are those of the
/// HTTP API.
struct Line<'a> {
    row: &'a Row<'a>,
    answer: &'a Result<RowAnswer<'a>, Fault>,
    /// Whether an id that is no line is a string, as in CSV.
    is_typed: bool,
}

impl Serialize for Line<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match &self.row.id {
            id @ Id::Json(_) if self.is_typed => map.serialize_entry("id", &id.text())?,
            id => map.serialize_entry::<_, Id<'_>>("id", id)?,
        }
        match self.answer {
            Ok(RowAnswer::Labels(found, wanted)) => {
                map.serialize_entry("labels", wanted.of(found))?;
                notes(&mut map, &found.unknown, found.is_cut)?;
            }
            Ok(RowAnswer::Terms(found, Form::Terms)) => {
                map.serialize_entry(Form::Terms.name(), &Terms(&found.terms))?;
                notes(&mut map, &found.unknown, found.is_cut)?;
            }
            Ok(RowAnswer::Terms(found, form)) => {
                let terms = found.terms.iter();
                let terms = terms.map(|term| (term.row, term.word.as_str(), term.weight));
                let formed = Formed { form: *form, terms: terms.collect() };
                map.serialize_entry(form.name(), &formed)?;
                notes(&mut map, &found.unknown, found.is_cut)?;
            }
            Ok(RowAnswer::Neighbors(found)) => {
                map.serialize_entry("neighbors", &found.neighbors)?;
                if let Some(used) = &found.used {
                    map.serialize_entry("used", used)?;
                }
                if let Some(skipped) = &found.skipped {
                    map.serialize_entry("skipped", skipped)?;
                }
                if let Some(inputs) = &found.inputs {
                    map.serialize_entry("inputs", inputs)?;
                }
            }
            Err(Fault { code, detail }) => {
                let error = json!({"code": code, "detail": detail, "line": self.row.line});
                map.serialize_entry("error", &error)?;
            }
        }
        map.end()
    }
}

fn notes<M: SerializeMap>(map: &mut M, unknown: &[String], is_cut: bool) -> Result<(), M::Error> {
    if !unknown.is_empty() {
        map.serialize_entry("unknown", unknown)?;
    }
    if is_cut {
        map.serialize_entry("cut", &true)?;
    }
    Ok(())
}

struct Terms<'a>(&'a [ImpliedTerm]);

impl Serialize for Terms<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Weighted<'a> {
            term: &'a str,
            weight: f64,
        }
        serializer
            .collect_seq(self.0.iter().map(|one| Weighted { term: &one.word, weight: one.weight }))
    }
}
