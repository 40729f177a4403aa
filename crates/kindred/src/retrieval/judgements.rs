//! Reads judgements of relevance (qrels): TREC's four columns, BEIR's three with a header, or JSON lines.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::texts::id_of;
use crate::evaluation::EvaluationError;
use crate::evaluation::source::Source;

/// How relevant a document is to a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judgement {
    /// The query's id.
    pub query: String,
    /// The document's id.
    pub document: String,
    /// Its relevance: above 0 it is relevant, and higher is more relevant.
    pub relevance: i64,
}

/// A line of JSON. Collections differ in the names.
#[derive(Deserialize)]
struct JsonLine {
    #[serde(rename = "query_id", alias = "query-id", alias = "qid", alias = "query")]
    query: Value,
    #[serde(
        rename = "doc_id",
        alias = "corpus-id",
        alias = "corpus_id",
        alias = "docid",
        alias = "docno",
        alias = "document"
    )]
    document: Value,
    #[serde(alias = "score", alias = "rel", alias = "label")]
    relevance: i64,
}

/// Reads all judgements, also those of documents that are not relevant.
///
/// # Errors
/// Names the line that can't be read, and the cure; a document that is judged twice for a query.
pub fn judgements(source: &Source) -> Result<Vec<Judgement>, EvaluationError> {
    let text = source.text.strip_prefix('\u{feff}').unwrap_or(&source.text);
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let (mut found, mut seen, mut columns) = (Vec::new(), HashMap::new(), None);
    for (line, content) in lines {
        let one = if content.trim_start().starts_with('{') {
            json(content)
        } else if columns.is_none() && is_header(content) {
            columns = Some(3);
            continue;
        } else {
            fields(content, *columns.get_or_insert(4))
        };
        let one = one.map_err(|what| source.error(line, what))?;
        if let Some(first) = seen.insert((one.query.clone(), one.document.clone()), line) {
            let what = format!(
                "the document `{}` is judged twice for the query `{}`, also in line {first}; remove one of the lines",
                one.document, one.query
            );
            return Err(source.error(line, what));
        }
        found.push(one);
    }
    if found.is_empty() {
        return Err(
            source.empty("there are no judgements; give lines `query 0 document relevance`")
        );
    }
    Ok(found)
}

/// BEIR's first line: `query-id`, `corpus-id`, `score`.
fn is_header(line: &str) -> bool {
    let mut fields = line.split_whitespace();
    let first = fields.next().is_some_and(|name| name.to_ascii_lowercase().starts_with("q"));
    first
        && line.split_whitespace().count() == 3
        && fields.last().is_some_and(|last| last.parse::<f64>().is_err())
}

fn fields(line: &str, columns: usize) -> Result<Judgement, String> {
    let fields: Vec<&str> = line.split_whitespace().collect();
    let (query, document, relevance) = match fields[..] {
        [query, _, document, relevance] if columns == 4 => (query, document, relevance),
        [query, document, relevance] if columns == 3 => (query, document, relevance),
        _ => {
            let wanted = match columns {
                3 => "`query document relevance`, as the header says",
                _ => {
                    "`query 0 document relevance`; with three columns, a header `query-id corpus-id score` must \
                      come first"
                }
            };
            return Err(format!("it has {} fields; a line is {wanted}", fields.len()));
        }
    };
    let relevance = relevance
        .parse()
        .map_err(|_| format!("the relevance `{relevance}` is not a whole number"))?;
    Ok(Judgement { query: query.to_owned(), document: document.to_owned(), relevance })
}

fn json(line: &str) -> Result<Judgement, String> {
    let form = "a line is {\"query_id\": \"…\", \"doc_id\": \"…\", \"relevance\": 1}";
    let JsonLine { query, document, relevance } =
        serde_json::from_str(line).map_err(|why| format!("{why}; {form}"))?;
    let id = |id: &Value| {
        id_of(id).ok_or_else(|| format!("an id is neither text nor a whole number; {form}"))
    };
    Ok(Judgement { query: id(&query)?, document: id(&document)?, relevance })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { file: "qrels".into(), name: "qrels".into(), text: text.into() }
    }

    #[test]
    fn all_forms_are_read() {
        let expected = [("1", "d3", 1), ("2", "d", 0), ("2", "5", -1)];
        for text in [
            "1 0 d3 1\n\n2 Q0 d 0\r\n2\t0\t5\t-1\n",
            "query-id\tcorpus-id\tscore\n1\td3\t1\n2\td\t0\n2\t5\t-1",
            "\u{feff}{\"query_id\": 1, \"doc_id\": \"d3\", \"relevance\": 1}\n\
             {\"query-id\": \"2\", \"corpus-id\": \"d\", \"score\": 0}\n{\"qid\": \"2\", \"docid\": 5, \"rel\": -1}",
        ] {
            let found = judgements(&source(text)).unwrap_or_else(|error| panic!("{text}: {error}"));
            let found: Vec<_> = found
                .iter()
                .map(|one| (&one.query[..], &one.document[..], one.relevance))
                .collect();
            assert_eq!(found, expected, "{text}");
        }
    }

    #[test]
    fn bad_lines_are_named_with_the_cure() {
        for (text, part) in [
            ("", "qrels: there are no judgements"),
            ("query-id corpus-id score\n", "qrels: there are no judgements"),
            ("1 0 d3 1\n1 0 d4", "line 2: it has 3 fields; a line is `query 0 document relevance`"),
            (
                "1 d3 1",
                "line 1: it has 3 fields; a line is `query 0 document relevance`; with three columns, a header",
            ),
            (
                "q d score\n1 0 d3 1",
                "line 2: it has 4 fields; a line is `query document relevance`",
            ),
            ("1 0 d3 yes", "line 1: the relevance `yes` is not a whole number"),
            ("1 0 d3 1.5", "line 1: the relevance `1.5`"),
            (
                "1 0 d3 1\n1 0 d3 0",
                "line 2: the document `d3` is judged twice for the query `1`, also in line 1",
            ),
            ("{\"query_id\": 1}", "line 1: missing field `doc_id`"),
            ("{\"query_id\": [], \"doc_id\": 1, \"relevance\": 1}", "line 1: an id is neither"),
        ] {
            let error = judgements(&source(text)).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
