//! The columns of answers in Parquet.

use kindred::heads::Form;
use kindred::{Options, Unknown};

use super::work::BulkQuestion;

impl BulkQuestion {
    /// The schema of Parquet: the names of JSON lines, each with one type. What a line of JSON may
    /// leave out is optional.
    pub(super) fn schema(&self, has_ids: bool) -> String {
        let mut columns = match has_ids {
            true => string("OPTIONAL", "id"),
            false => "REQUIRED INT64 id;".to_owned(),
        };
        columns += &string("OPTIONAL", "asked");
        match self {
            Self::Classify(..) => {
                let label = string("REQUIRED", "label");
                let label = label + "REQUIRED DOUBLE probability; REQUIRED DOUBLE score;";
                columns += &list("labels", &group("REQUIRED", "element", &label));
                columns += &notes();
            }
            Self::Expand(_, form) => columns += &(terms(*form) + &notes()),
            Self::Nearest(options) | Self::Analogy(options) => {
                columns += &neighbors(options, false);
            }
            Self::NearestOfTexts(options) => columns += &neighbors(options, true),
        }
        let error = string("REQUIRED", "code") + &string("REQUIRED", "detail");
        columns += &group("OPTIONAL", "error", &(error + "REQUIRED INT64 line;"));
        format!("message answers {{ {columns} }}")
    }
}

fn notes() -> String {
    list("unknown", &string("REQUIRED", "element")) + "OPTIONAL BOOLEAN cut;"
}

fn neighbors(options: &Options, of_texts: bool) -> String {
    let explain = options.explain == Some(true);
    let mut near = string("REQUIRED", "word");
    near += "REQUIRED DOUBLE score; REQUIRED INT64 row;";
    if options.with_vectors == Some(true) {
        near += &list("vector", "REQUIRED FLOAT element;");
    }
    if explain {
        let mut term = string("REQUIRED", "word") + "REQUIRED DOUBLE weight;";
        for number in ["cosine", "dot", "contribution", "factor"] {
            term += &format!("OPTIONAL DOUBLE {number};");
        }
        near += &list("terms", &group("REQUIRED", "element", &term));
    }
    let mut columns = list("neighbors", &group("REQUIRED", "element", &near));
    let words = |name| list(name, &string("REQUIRED", "element"));
    if of_texts {
        columns += &words("used");
        let tokens = "REQUIRED INT64 count; REQUIRED INT64 unknown; REQUIRED BOOLEAN truncated;";
        columns += &group("OPTIONAL", "tokens", tokens);
    }
    if options.unknown.map_or(of_texts, |unknown| unknown == Unknown::Skip) {
        columns += &words("skipped");
    }
    // Only the model knows whether words that are no rows have vectors.
    if options.unknown.is_none_or(|unknown| unknown == Unknown::Subwords) {
        let mut word = string("REQUIRED", "word");
        if explain {
            word += &words("ngrams");
        }
        columns += &list("subwords", &group("REQUIRED", "element", &word));
    }
    if explain {
        let input = string("REQUIRED", "word")
            + "REQUIRED INT64 row; OPTIONAL DOUBLE score; OPTIONAL INT64 rank;";
        columns += &list("inputs", &group("REQUIRED", "element", &input));
    }
    columns
}

fn terms(form: Form) -> String {
    let name = form.name();
    match form {
        Form::Terms => {
            let term = string("REQUIRED", "term") + "REQUIRED DOUBLE weight;";
            list(name, &group("REQUIRED", "element", &term))
        }
        Form::Impacts => map("OPTIONAL", name, "INT64"),
        Form::RankFeatures | Form::SparseVector => map("OPTIONAL", name, "FLOAT"),
        Form::Qdrant => {
            let vector = list("indices", "REQUIRED INT64 element;");
            group("OPTIONAL", name, &(vector + &list("values", "REQUIRED FLOAT element;")))
        }
        Form::Vespa => group("OPTIONAL", name, &map("REQUIRED", "cells", "FLOAT")),
    }
}

fn string(repetition: &str, name: &str) -> String {
    format!("{repetition} BYTE_ARRAY {name} (UTF8);")
}

fn group(repetition: &str, name: &str, columns: &str) -> String {
    format!("{repetition} group {name} {{ {columns} }}")
}

/// A list as the format's documentation has it.
fn list(name: &str, element: &str) -> String {
    format!("OPTIONAL group {name} (LIST) {{ REPEATED group list {{ {element} }} }}")
}

/// From strings to numbers of this type.
fn map(repetition: &str, name: &str, value: &str) -> String {
    let key = string("REQUIRED", "key");
    format!(
        "{repetition} group {name} (MAP) {{ REPEATED group key_value {{ {key} REQUIRED {value} value; }} }}"
    )
}
