//! Writes the answers of a piece: lines of JSON, or CSV with a line for each label, term or
//! neighbour.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::ops::Not;

use flate2::Compression;
use flate2::write::GzEncoder;
use kindred::heads::Formed;
use kindred::{Answer, NamedLabel};
use serde::Serialize;
use serde_json::{Value, json};

use super::answerer::RowAnswer;
use super::formats::BulkFormat;
use super::json_answer::{JsonAnswer, number};
use super::rows::{Id, Row};
use super::{Fault, Job};

impl Job<'_> {
    /// What comes before all rows.
    pub(super) fn head(&self) -> io::Result<Vec<u8>> {
        if self.to != BulkFormat::Csv {
            return Ok(Vec::new());
        }
        let mut names = vec!["id", "rank"];
        names.extend(self.question.columns());
        // The question is last, so that the other columns stay where they were before it was
        // written.
        names.extend(["error", "detail", "asked"]);
        let mut bytes = Vec::new();
        csv::Writer::from_writer(&mut bytes).write_record(names)?;
        self.pack(bytes)
    }

    /// The answers of a piece. A piece becomes a member of the gzip file, so that a file that was
    /// resumed has the same bytes.
    pub(super) fn render(
        &self,
        rows: &[Row<'_>],
        answers: &[Result<RowAnswer<'_>, Fault>],
    ) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(rows.len() * 128);
        if self.to == BulkFormat::Csv {
            let mut csv = csv::Writer::from_writer(&mut bytes);
            for (row, answer) in rows.iter().zip(answers) {
                self.table(&mut csv, row, answer)?;
            }
            csv.flush()?;
            drop(csv);
            return self.pack(bytes);
        }
        // A column of Parquet has one type.
        let is_typed = self.to == BulkFormat::Parquet;
        for (row, answer) in rows.iter().zip(answers) {
            serde_json::to_writer(&mut bytes, &Line::new(row, answer, is_typed))?;
            bytes.push(b'\n');
        }
        self.pack(bytes)
    }

    /// Compresses bytes if that is wanted.
    pub(super) fn pack(&self, bytes: Vec<u8>) -> io::Result<Vec<u8>> {
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
        csv: &mut csv::Writer<&mut Vec<u8>>,
        row: &Row<'_>,
        answer: &Result<RowAnswer<'_>, Fault>,
    ) -> io::Result<()> {
        let (id, columns) = (row.id.text(), self.question.columns());
        let asked = row.text.as_deref().unwrap_or_default();
        let mut rank = 0;
        let mut line = |values: [&str; 3]| {
            rank += 1;
            let asked = if rank == 1 || self.question.is_in_each_line() { asked } else { "" };
            let (rank, values) = (rank.to_string(), &values[..columns.len()]);
            let start = [&id, &rank[..]].into_iter().chain(values.iter().copied());
            csv.write_record(start.chain(["", "", asked]))
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
            Ok(RowAnswer::Json(found)) => {
                for [first, second, third] in &found.table(self.question)? {
                    line([first, second, third])?;
                }
            }
            Err(_) => {}
        }
        if rank > 0 {
            return Ok(());
        }
        let (code, detail) = match answer {
            Ok(_) => ("", String::new()),
            Err(fault) => (&*fault.code, format!("line {}: {}", row.line, fault.detail)),
        };
        let empty = columns.iter().map(|_| "");
        let line = [&id[..], ""].into_iter().chain(empty).chain([code, &detail, asked]);
        Ok(csv.write_record(line)?)
    }
}

/// A row's question with its answer or its error, as the line of a JSON object. Names and forms are
/// those of the HTTP API.
#[derive(Serialize)]
struct Line<'a> {
    id: Id<'a>,
    /// The question, if it could be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    asked: Option<&'a str>,
    #[serde(flatten)]
    fields: Fields<'a>,
}

#[derive(Serialize)]
#[serde(untagged)]
enum Fields<'a> {
    Labels {
        labels: &'a [NamedLabel],
        #[serde(flatten)]
        notes: Notes<'a>,
    },
    Terms {
        /// Under the name of their form.
        #[serde(flatten)]
        terms: BTreeMap<&'static str, Formed<'a>>,
        #[serde(flatten)]
        notes: Notes<'a>,
    },
    Neighbors(&'a Answer<'a>),
    Json(&'a JsonAnswer),
    Error {
        error: Value,
    },
}

#[derive(Serialize)]
struct Notes<'a> {
    #[serde(skip_serializing_if = "<[String]>::is_empty")]
    unknown: &'a [String],
    #[serde(rename = "cut", skip_serializing_if = "Not::not")]
    is_cut: bool,
}

impl<'a> Line<'a> {
    /// `is_typed`: an id that is no line is a string, as in CSV.
    fn new(row: &'a Row<'a>, answer: &'a Result<RowAnswer<'a>, Fault>, is_typed: bool) -> Self {
        let id = match &row.id {
            id @ Id::Json(_) if is_typed => Id::Text(id.text()),
            id => id.clone(),
        };
        let fields = match answer {
            Ok(RowAnswer::Labels(found, wanted)) => Fields::Labels {
                labels: wanted.of(found),
                notes: Notes { unknown: &found.unknown, is_cut: found.is_cut },
            },
            Ok(RowAnswer::Terms(found, form)) => {
                let terms = found.terms.iter();
                let terms = terms.map(|term| (term.row, term.word.as_str(), term.weight));
                let formed = Formed { form: *form, terms: terms.collect() };
                Fields::Terms {
                    terms: BTreeMap::from([(form.name(), formed)]),
                    notes: Notes { unknown: &found.unknown, is_cut: found.is_cut },
                }
            }
            Ok(RowAnswer::Neighbors(found)) => Fields::Neighbors(found),
            Ok(RowAnswer::Json(found)) => Fields::Json(found),
            Err(Fault { code, detail }) => {
                Fields::Error { error: json!({"code": code, "detail": detail, "line": row.line}) }
            }
        };
        Self { id, asked: row.text.as_deref().ok(), fields }
    }
}
