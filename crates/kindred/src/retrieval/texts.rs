//! Reads documents and queries: TREC's markup or JSON lines, which the first character tells apart.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::Value;

use super::trec::{self, Element};
use crate::evaluation::EvaluationError;
use crate::evaluation::source::Source;

/// A document or a query.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// What judgements name it by.
    pub id: String,
    /// Its words.
    pub text: String,
    /// The line that it begins in, from 1.
    pub line: u64,
}

/// What judgements name queries by.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QueryIds {
    /// The ids in the file of queries.
    File,
    /// Their positions in it, from 1.
    Position,
}

impl QueryIds {
    /// All.
    pub const ALL: [Self; 2] = [Self::File, Self::Position];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Position => "position",
        }
    }
}

/// The elements of a document that are read, if it has any of them; otherwise all of it is.
const TITLES: [&str; 3] = ["title", "headline", "head"];
const TEXTS: [&str; 2] = ["text", "contents"];

/// A line of JSON. Collections differ in the names.
#[derive(Deserialize)]
struct JsonLine {
    #[serde(alias = "_id", alias = "docno", alias = "doc_id", alias = "query_id", alias = "qid")]
    id: Value,
    title: Option<String>,
    #[serde(alias = "contents", alias = "query")]
    text: Option<String>,
}

/// The documents of a file: title and text of each. A title with which the text begins is not counted twice.
///
/// # Errors
/// Names the line that can't be read, and the cure; two documents with the same id.
pub fn documents(source: &Source) -> Result<Vec<Text>, EvaluationError> {
    let found = match Form::of(source, "documents")? {
        Form::JsonLines => json_lines(source)?,
        Form::Trec => {
            let elements = trec::elements(source, "doc")?;
            elements.iter().map(|element| document(source, element)).collect::<Result<_, _>>()?
        }
    };
    each_once(source, found, "document")
}

/// The queries of a file: of TREC's topics the titles.
///
/// # Errors
/// Names the line that can't be read, and the cure; two queries with the same id.
pub fn queries(source: &Source, ids: QueryIds) -> Result<Vec<Text>, EvaluationError> {
    let mut found = match Form::of(source, "queries")? {
        Form::JsonLines => json_lines(source)?,
        Form::Trec => {
            let elements = trec::elements(source, "top")?;
            elements.iter().map(|element| topic(source, element)).collect::<Result<_, _>>()?
        }
    };
    if ids == QueryIds::Position {
        (1..).zip(&mut found).for_each(|(position, text)| text.id = position.to_string());
    }
    each_once(source, found, "query")
}

enum Form {
    Trec,
    JsonLines,
}

impl Form {
    fn of(source: &Source, what: &str) -> Result<Self, EvaluationError> {
        let text = plain(&source.text);
        let line = 1 + text.lines().take_while(|line| line.trim().is_empty()).count() as u64;
        match text.trim_start().chars().next() {
            Some('<') => Ok(Self::Trec),
            Some('{') => Ok(Self::JsonLines),
            Some(_) => Err(source.error(
                line,
                format!(
                    "it begins neither TREC's markup (<doc>, <top>) nor JSON lines ({{\"id\": …, \"text\": …}}); \
                     convert the {what}"
                ),
            )),
            None => Err(source.empty(format!("there are no {what}; give a file with some"))),
        }
    }
}

/// Some programs put a byte order mark before UTF-8.
fn plain(text: &str) -> &str {
    text.strip_prefix('\u{feff}').unwrap_or(text)
}

fn json_lines(source: &Source) -> Result<Vec<Text>, EvaluationError> {
    let mut found = Vec::new();
    for (line, content) in (1..).zip(plain(&source.text).lines()) {
        if content.trim().is_empty() {
            continue;
        }
        let JsonLine { id, title, text } = serde_json::from_str(content).map_err(|why| {
            source.error(line, format!("{why}; a line is {{\"id\": \"…\", \"text\": \"…\"}}"))
        })?;
        let id = id_of(&id)
            .ok_or_else(|| source.error(line, "the id is neither text nor a whole number"))?;
        if title.is_none() && text.is_none() {
            return Err(source.error(line, "it has no `text`; add one, empty if there is none"));
        }
        let text =
            joined(title.as_deref().unwrap_or_default(), text.as_deref().unwrap_or_default());
        found.push(Text { id, text, line });
    }
    Ok(found)
}

/// An id as text; files write the same one with and without quotes.
pub(super) fn id_of(id: &Value) -> Option<String> {
    match id {
        Value::String(id) if !id.trim().is_empty() => Some(id.trim().to_owned()),
        Value::Number(number) if !number.is_f64() => Some(number.to_string()),
        _ => None,
    }
}

fn document(source: &Source, element: &Element<'_>) -> Result<Text, EvaluationError> {
    let id = ["docno", "docid"].iter().find_map(|name| element.inside(name).into_iter().next());
    let id = id.map(|id| id.trim().to_owned()).filter(|id| !id.is_empty()).ok_or_else(|| {
        source.error(element.line, "the document has no <docno>; give each document one")
    })?;
    let all = |names: &[&str]| -> Vec<String> {
        names.iter().flat_map(|name| element.inside(name)).collect()
    };
    let (titles, texts) = (all(&TITLES), all(&TEXTS));
    // A document whose title and text are empty is empty.
    let text = match titles.is_empty() && texts.is_empty() {
        true => element.besides(&["docno", "docid"]),
        false => joined(&titles.join("\n"), &texts.join("\n")),
    };
    Ok(Text { id, text, line: element.line })
}

fn topic(source: &Source, element: &Element<'_>) -> Result<Text, EvaluationError> {
    // Older topics close no elements, and begin them with a label: `<num> Number: 301`.
    let value = |name: &str, label: &str| {
        let found = element.value(name)?;
        let found = found.trim();
        Some(found.strip_prefix(label).unwrap_or(found).trim().to_owned())
    };
    let id = value("num", "Number:").filter(|id| !id.is_empty());
    let id =
        id.ok_or_else(|| source.error(element.line, "the topic has no <num>; give each one"))?;
    let text = value("title", "Topic:");
    let text =
        text.ok_or_else(|| source.error(element.line, "the topic has no <title>; give each one"))?;
    Ok(Text { id, text, line: element.line })
}

/// Title and text. Some collections, such as Cranfield, repeat the title at the beginning of the text.
fn joined(title: &str, text: &str) -> String {
    let mut words = text.split_whitespace();
    match title.split_whitespace().all(|word| words.next() == Some(word)) {
        true => text.to_owned(),
        false => format!("{title}\n{text}"),
    }
}

fn each_once(source: &Source, found: Vec<Text>, what: &str) -> Result<Vec<Text>, EvaluationError> {
    let mut lines = HashMap::with_capacity(found.len());
    for Text { id, line, .. } in &found {
        if let Some(first) = lines.insert(id, *line) {
            let what = format!("the {what} `{id}` is also in line {first}; give each its own id");
            return Err(source.error(*line, what));
        }
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { file: "set.txt".into(), name: "set".into(), text: text.into() }
    }

    fn pairs(texts: Vec<Text>) -> Vec<(String, String, u64)> {
        let text = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        texts.into_iter().map(|one| (one.id, text(&one.text), one.line)).collect()
    }

    fn read(text: &str) -> Vec<(String, String, u64)> {
        pairs(documents(&source(text)).unwrap_or_else(|error| panic!("{text}: {error}")))
    }

    fn expected(of: &[(&str, &str, u64)]) -> Vec<(String, String, u64)> {
        of.iter().map(|&(id, text, line)| (id.to_owned(), text.to_owned(), line)).collect()
    }

    #[test]
    fn both_forms_of_documents_are_read() {
        let trec = "<?xml version='1.0'?>\n<xml>\n<doc>\n<docno>1</docno>\n<title>a wing .</title>\n\
             <author>x</author><text>a\nwing .\n  lifts</text>\n</doc>\n<DOC>\n<DOCNO> B-2 </DOCNO><HEADLINE>Heat</HEADLINE>\n\
             <TEXT><P>flows &amp; ebbs</P> a &lt; b</TEXT><TEXT>twice</TEXT></DOC>\n<doc><docno>3</docno></doc></xml>";
        assert_eq!(
            read(trec),
            expected(&[
                ("1", "a wing . lifts", 3),
                ("B-2", "Heat flows & ebbs a < b twice", 10),
                ("3", "", 13)
            ])
        );
        let json = "\u{feff}{\"_id\": \"1\", \"title\": \"a wing\", \"text\": \"a wing lifts\", \"metadata\": {}}\n\n\
             {\"id\": 2, \"contents\": \"heat\", \"title\": null}\r\n{\"docno\": \"3\", \"text\": \"\"}\n";
        assert_eq!(
            read(json),
            expected(&[("1", "a wing lifts", 1), ("2", "heat", 3), ("3", "", 4)])
        );
        assert_eq!(
            read("<doc><docno>7</docno> only <b>this</b></doc>"),
            expected(&[("7", "only this", 1)])
        );
        assert_eq!(joined("heat", "heater"), "heat\nheater", "whole words only");
    }

    #[test]
    fn both_forms_of_queries_are_read_and_may_be_numbered_by_position() {
        let topics = "<top>\n<num> Number: 301\n<title> Topic: Organized Crime\n\n<desc> Description:\nidentify\n</top>\n\n\
             <top><num> 4</num><title>\nheat in slabs</title></top>";
        for (ids, [one, other]) in
            [(QueryIds::File, ["301", "4"]), (QueryIds::Position, ["1", "2"])]
        {
            assert_eq!(
                pairs(queries(&source(topics), ids).unwrap()),
                expected(&[(one, "Organized Crime", 1), (other, "heat in slabs", 9)])
            );
        }
        let json = "{\"_id\": \"q1\", \"text\": \"heat\"}\n{\"query_id\": 7, \"query\": \"lift\"}";
        assert_eq!(
            pairs(queries(&source(json), QueryIds::File).unwrap()),
            expected(&[("q1", "heat", 1), ("7", "lift", 2)])
        );
    }

    #[test]
    fn what_can_not_be_read_is_named_with_its_line_and_the_cure() {
        for (text, part) in [
            ("", "set.txt: there are no documents; give"),
            ("\n\nid\ttext", "line 3: it begins neither TREC's markup"),
            ("{\"id\": \"1\", \"text\": \"a\"}\n{\"id\": \"2\"", "line 2: EOF"),
            ("{\"id\": \"1\", \"text\": \"a\"}\noops", "line 2: expected"),
            ("{\"text\": \"a\"}", "line 1: missing field `id`"),
            ("{\"id\": 1.5, \"text\": \"a\"}", "line 1: the id is neither"),
            ("{\"id\": \" \", \"text\": \"a\"}", "line 1: the id is neither"),
            ("{\"id\": 1}", "line 1: it has no `text`"),
            (
                "{\"id\": 1, \"text\": \"\"}\n{\"id\": \"1\", \"text\": \"\"}",
                "line 2: the document `1` is also in line 1",
            ),
            ("<doc>\n<docno>1</docno>\n<text>a", "line 1: <doc> is not closed"),
            (
                "<doc>\n<docno>1</docno>\n<doc>\n</doc>",
                "line 1: <doc> is not closed before the one of line 3",
            ),
            ("\n<doc><text>a</text></doc>", "line 2: the document has no <docno>"),
            ("<doc><docno> </docno></doc>", "line 1: the document has no <docno>"),
            ("<top></top>", "set.txt: it has no <doc>"),
        ] {
            let error = documents(&source(text)).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
        for (text, part) in [
            ("<top><title>a</title></top>", "line 1: the topic has no <num>"),
            ("<top>\n<num>1\n</top>", "line 1: the topic has no <title>"),
        ] {
            let error = queries(&source(text), QueryIds::File).unwrap_err().to_string();
            assert!(error.contains(part), "{text:?}: {error}");
        }
    }
}
