//! Queries with relevant texts, from files.

use serde::Deserialize;

use crate::heads::DataError;

/// A query, a text that is relevant for it, and perhaps one that is not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// The query.
    pub query: String,
    /// The relevant text.
    pub relevant: String,
    /// The irrelevant text.
    pub irrelevant: Option<String>,
}

/// The pairs of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pairs {
    /// In the order of the file.
    pub pairs: Vec<Pair>,
    /// Bad lines that were skipped.
    pub skipped: u64,
}

/// A line of JSON. The names are also those of other tools.
#[derive(Deserialize)]
struct JsonLine {
    #[serde(alias = "anchor")]
    query: String,
    #[serde(alias = "positive")]
    relevant: String,
    #[serde(alias = "negative")]
    irrelevant: Option<String>,
}

impl Pairs {
    /// Reads the content of a file: JSON lines if it begins with a brace, otherwise lines of `query`, a tab, the relevant text, and
    /// perhaps a tab and an irrelevant text. Empty lines do not count.
    ///
    /// # Errors
    /// The first bad line, unless bad lines are skipped; a file without pairs.
    pub fn parse(file: &str, content: &str, skip_bad_rows: bool) -> Result<Self, DataError> {
        // Some programs put a byte order mark before UTF-8.
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let is_json = content.trim_start().starts_with('{');
        let mut read = Self::default();
        for (line, text) in (1u64..).zip(content.lines()) {
            if text.trim().is_empty() {
                continue;
            }
            match if is_json { of_json(text) } else { of_columns(text) } {
                Ok(pair) => read.pairs.push(pair),
                Err(_) if skip_bad_rows => read.skipped += 1,
                Err(what) => return Err(DataError::Line { file: file.to_owned(), line, what }),
            }
        }
        if read.pairs.is_empty() {
            let what =
                "it has no pairs; give a file with a query, a tab and a relevant text in each line";
            return Err(DataError::File { file: file.to_owned(), what: what.to_owned() });
        }
        Ok(read)
    }
}

fn of_json(line: &str) -> Result<Pair, String> {
    let JsonLine { query, relevant, irrelevant } = serde_json::from_str(line).map_err(|error| {
        format!("{error}; lines are JSON objects with `query`, `relevant` and perhaps `irrelevant`")
    })?;
    of_parts(&query, &relevant, irrelevant.as_deref())
}

fn of_columns(line: &str) -> Result<Pair, String> {
    let columns: Vec<&str> = line.split('\t').collect();
    match columns[..] {
        [query, relevant] => of_parts(query, relevant, None),
        [query, relevant, irrelevant] => of_parts(query, relevant, Some(irrelevant)),
        _ => Err(format!(
            "it has {} columns; lines are a query, a tab, the relevant text, and perhaps a tab and an irrelevant text",
            columns.len()
        )),
    }
}

fn of_parts(query: &str, relevant: &str, irrelevant: Option<&str>) -> Result<Pair, String> {
    let part = |name: &str, text: &str| match text.trim() {
        "" => Err(format!("its {name} is empty")),
        text => Ok(text.to_owned()),
    };
    Ok(Pair {
        query: part("query", query)?,
        relevant: part("relevant text", relevant)?,
        irrelevant: irrelevant.map(|text| part("irrelevant text", text)).transpose()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_formats_give_the_same_pairs() {
        let pair = |query: &str, relevant: &str, irrelevant: Option<&str>| Pair {
            query: query.to_owned(),
            relevant: relevant.to_owned(),
            irrelevant: irrelevant.map(str::to_owned),
        };
        let expected = [pair("a b", "c \"d\"", None), pair("e", "f", Some("g"))];
        for content in [
            "a b\tc \"d\"\n\ne\tf\tg\r\n",
            "{\"query\": \"a b\", \"relevant\": \"c \\\"d\\\"\"}\n\
             {\"anchor\": \"e\", \"positive\": \"f\", \"negative\": \"g\", \"score\": 1}\n",
        ] {
            for content in [content.to_owned(), format!("\u{feff}{content}")] {
                assert_eq!(Pairs::parse("f", &content, false).unwrap().pairs, expected);
            }
        }
    }

    #[test]
    fn a_bad_line_is_named_or_skipped() {
        for (content, expected) in [
            ("a\tb\nc\n", "f, line 2: it has 1 columns"),
            ("a\tb\tc\td\n", "f, line 1: it has 4 columns"),
            ("a\t \n", "f, line 1: its relevant text is empty"),
            ("{\"query\": \"a\"}\n", "f, line 1: missing field `relevant`"),
            ("\n \n", "f: it has no pairs"),
        ] {
            let error = Pairs::parse("f", content, false).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
        let read = Pairs::parse("f", "a\nb\tc\n\td\n", true).unwrap();
        assert_eq!((read.pairs.len(), read.skipped), (1, 2));
    }
}
