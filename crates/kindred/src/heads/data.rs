//! Texts with labels, from files of several formats.

use serde::Deserialize;

/// A text and its labels: one, or any number where several can be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// Its labels.
    pub labels: Vec<String>,
    /// The text.
    pub text: String,
}

/// The texts of a file.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Texts {
    /// In the order of the file.
    pub texts: Vec<Labelled>,
    /// Bad lines that were skipped.
    pub skipped: u64,
}

/// How a file has texts and labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// A line for each text: the label, a tab, the text. Quotes are plain characters.
    Tsv,
    /// Columns with the names `label` and `text` in the first line; quotes as in RFC 4180.
    Csv,
    /// A JSON object in each line: `{"text": "…", "label": "…"}`, or with `labels`.
    JsonLines,
    /// A line for each text: labels such as `__label__x`, then the text.
    FastText,
}

/// Why a file gives no texts.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DataError {
    /// A line is bad.
    #[error(
        "{file}, line {line}: {what} (correct the line, or skip such lines with --skip-bad-rows)"
    )]
    Line {
        /// The file.
        file: String,
        /// The line, from 1.
        line: u64,
        /// What is wrong, and what would be right.
        what: String,
    },
    /// The file as a whole is.
    #[error("{file}: {what}")]
    File {
        /// The file.
        file: String,
        /// What is wrong, and what would be right.
        what: String,
    },
}

/// What begins a label in fastText's format.
const PREFIX: &str = "__label__";

impl Format {
    /// All formats.
    pub const ALL: [Self; 4] = [Self::Tsv, Self::Csv, Self::JsonLines, Self::FastText];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsv => "tsv",
            Self::Csv => "csv",
            Self::JsonLines => "jsonl",
            Self::FastText => "fasttext",
        }
    }

    /// The format of this content, by its first line.
    ///
    /// # Errors
    /// If that is none of them; says what the line should be.
    pub fn of(file: &str, content: &str) -> Result<Self, DataError> {
        let (line, first) = content
            .lines()
            .enumerate()
            .find(|(_, line)| !line.trim().is_empty())
            .ok_or_else(|| DataError::File {
            file: file.to_owned(),
            what: "it has no texts; give a file with a label, a tab and a text in each line"
                .to_owned(),
        })?;
        let columns = || first.split(',').map(|name| name.trim().trim_matches('"'));
        match first {
            _ if first.starts_with('{') => Ok(Self::JsonLines),
            _ if first.starts_with(PREFIX) => Ok(Self::FastText),
            _ if first.contains('\t') => Ok(Self::Tsv),
            _ if columns().any(|name| name == "text") => Ok(Self::Csv),
            _ => Err(DataError::Line {
                file: file.to_owned(),
                line: line as u64 + 1,
                what: format!(
                    "it has no tab after a label; lines are `label`, a tab and the text, or JSON objects with \
                     `label` and `text`, or `{PREFIX}x text`, or CSV whose first line names the columns `label` \
                     and `text`"
                ),
            }),
        }
    }
}

/// A line of JSON.
#[derive(Deserialize)]
struct JsonLine {
    text: String,
    label: Option<Label>,
    labels: Option<Vec<Label>>,
}

/// A label as people write it: a string, a number, or a truth value.
#[derive(Deserialize)]
#[serde(untagged)]
enum Label {
    Text(String),
    Whole(i64),
    Truth(bool),
}

impl Label {
    fn into_text(self) -> String {
        match self {
            Self::Text(text) => text,
            Self::Whole(number) => number.to_string(),
            Self::Truth(value) => value.to_string(),
        }
    }
}

impl Texts {
    /// Reads the content of a file. Without a format, its first line decides.
    ///
    /// # Errors
    /// If a line is bad and must not be skipped, or no text is left.
    pub fn parse(
        file: &str,
        content: &str,
        format: Option<Format>,
        skip_bad_rows: bool,
    ) -> Result<Self, DataError> {
        // Some programs put a byte order mark before UTF-8.
        let content = content.strip_prefix('\u{feff}').unwrap_or(content);
        let format = format.map_or_else(|| Format::of(file, content), Ok)?;
        let mut all = Self::default();
        let mut take = |line: u64, found: Result<Labelled, String>| match found.and_then(check) {
            Ok(text) => {
                all.texts.push(text);
                Ok(())
            }
            Err(_) if skip_bad_rows => {
                all.skipped += 1;
                Ok(())
            }
            Err(what) => Err(DataError::Line { file: file.to_owned(), line, what }),
        };
        if format == Format::Csv {
            csv(file, content, &mut take)?;
        } else {
            for (line, text) in content.lines().enumerate() {
                if text.trim().is_empty() {
                    continue;
                }
                let found = match format {
                    Format::Tsv => tsv(text),
                    Format::JsonLines => json(text),
                    Format::FastText | Format::Csv => fast_text(text),
                };
                take(line as u64 + 1, found)?;
            }
        }
        if all.texts.is_empty() {
            let what = format!("it has no texts ({} bad lines were skipped)", all.skipped);
            return Err(DataError::File { file: file.to_owned(), what });
        }
        Ok(all)
    }

    /// Whether a text has several labels, or none.
    pub fn any_number(&self) -> bool {
        self.texts.iter().any(|one| one.labels.len() != 1)
    }

    /// The labels, sorted, and how many texts have each.
    pub fn labels(&self) -> Vec<(&str, usize)> {
        let mut counts = std::collections::BTreeMap::new();
        for label in self.texts.iter().flat_map(|text| &text.labels) {
            *counts.entry(label.as_str()).or_default() += 1;
        }
        counts.into_iter().collect()
    }
}

fn check(found: Labelled) -> Result<Labelled, String> {
    match () {
        () if found.text.trim().is_empty() => Err("the text is empty".to_owned()),
        () if found.labels.iter().any(|label| label.trim().is_empty()) => {
            Err("a label is empty".to_owned())
        }
        () => Ok(found),
    }
}

fn tsv(line: &str) -> Result<Labelled, String> {
    let (label, text) =
        line.split_once('\t').ok_or("it has no tab; a line is a label, a tab and the text")?;
    Ok(Labelled { labels: vec![label.trim().to_owned()], text: text.trim().to_owned() })
}

fn json(line: &str) -> Result<Labelled, String> {
    let JsonLine { text, label, labels } = serde_json::from_str(line)
        .map_err(|why| format!("{why}; a line is {{\"text\": \"…\", \"label\": \"…\"}}"))?;
    let labels = match (label, labels) {
        (Some(label), None) => vec![label],
        (None, Some(labels)) => labels,
        _ => return Err("it needs either `label` or `labels`".to_owned()),
    };
    Ok(Labelled { labels: labels.into_iter().map(Label::into_text).collect(), text })
}

fn fast_text(line: &str) -> Result<Labelled, String> {
    let mut rest = line.trim();
    let mut labels = Vec::new();
    while let Some(after) = rest.strip_prefix(PREFIX) {
        let (label, text) = after.split_once(char::is_whitespace).unwrap_or((after, ""));
        labels.push(label.to_owned());
        rest = text.trim_start();
    }
    match labels.is_empty() {
        true => Err(format!("it has no label; a line begins with labels such as `{PREFIX}x`")),
        false => Ok(Labelled { labels, text: rest.to_owned() }),
    }
}

fn csv(
    file: &str,
    content: &str,
    take: &mut dyn FnMut(u64, Result<Labelled, String>) -> Result<(), DataError>,
) -> Result<(), DataError> {
    let bad = |what: String| DataError::File { file: file.to_owned(), what };
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(content.as_bytes());
    let header = reader.headers().map_err(|why| bad(why.to_string()))?.clone();
    let column = |name: &str| {
        header.iter().position(|own| own.trim().eq_ignore_ascii_case(name)).ok_or_else(|| {
            let found: Vec<&str> = header.iter().collect();
            let found = found.join(", ");
            bad(format!("it has no column `{name}`; rename one of its columns: {found}"))
        })
    };
    let (label, text) = (column("label")?, column("text")?);
    for record in reader.records() {
        let record = record.map_err(|why| bad(why.to_string()))?;
        let line = record.position().map_or(0, csv::Position::line);
        let found = match (record.get(label), record.get(text)) {
            (Some(label), Some(text)) => {
                Ok(Labelled { labels: vec![label.trim().to_owned()], text: text.trim().to_owned() })
            }
            _ => {
                Err(format!("it has {} columns; the first line has {}", record.len(), header.len()))
            }
        };
        take(line, found)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parse(content: &str) -> Result<Texts, DataError> {
        Texts::parse("data", content, None, false)
    }

    fn pairs(content: &str) -> Vec<(String, String)> {
        let texts = parse(content).unwrap().texts;
        texts.into_iter().map(|one| (one.labels.join("+"), one.text)).collect()
    }

    #[test]
    fn every_format_is_known_by_its_first_line() {
        let expected = [("good", "a \"fine\" film, it 's"), ("bad", "dull")];
        let expected = expected.map(|(label, text)| (label.to_owned(), text.to_owned()));
        for content in [
            "good\ta \"fine\" film, it 's\nbad\tdull\n",
            "\u{feff}good\ta \"fine\" film, it 's\r\n\r\n bad \t dull \r\n",
            "id,text,label\n1,\"a \"\"fine\"\" film, it 's\",good\n2,dull,bad\n",
            "{\"text\": \"a \\\"fine\\\" film, it 's\", \"label\": \"good\"}\n{\"label\": \"bad\", \"text\": \"dull\"}",
            "__label__good a \"fine\" film, it 's\n__label__bad dull",
        ] {
            assert_eq!(pairs(content), expected, "{content}");
        }
        let several =
            "{\"text\": \"x\", \"labels\": [\"a\", 2, true]}\n{\"text\": \"y\", \"labels\": []}";
        assert_eq!(pairs(several)[0].0, "a+2+true");
        assert_eq!(pairs("__label__a __label__b x y")[0], ("a+b".to_owned(), "x y".to_owned()));
        let texts = parse("b\tx\na\ty\nb\tz").unwrap();
        assert_eq!(texts.labels(), [("a", 1), ("b", 2)]);
    }

    #[test]
    fn a_bad_line_is_named_with_its_cure_or_skipped() {
        for (content, line, expected) in [
            ("1 no tab here\n", 1, "it has no tab after a label"),
            ("a\tx\n\nb no tab\n", 3, "it has no tab"),
            ("a\tx\nb\t \n", 2, "the text is empty"),
            ("a\tx\n\ty\n", 2, "a label is empty"),
            ("label,text\na,x\nb\n", 3, "it has 1 columns; the first line has 2"),
            ("{\"text\": \"x\", \"label\": \"a\"}\n{\"text\": \"x\"", 2, "EOF"),
            ("{\"text\": \"x\"}\n", 1, "either `label` or `labels`"),
            ("__label__a x\ny\n", 2, "it has no label"),
        ] {
            let error = parse(content).unwrap_err();
            let DataError::Line { line: found, what, .. } = &error else { panic!("{error}") };
            assert!(*found == line && what.contains(expected), "{content:?}: {error}");
            assert!(error.to_string().contains("--skip-bad-rows"));
            if line > 1 {
                let texts = Texts::parse("data", content, None, true).unwrap();
                assert_eq!((texts.texts.len(), texts.skipped), (1, 1), "{content:?}");
            }
        }
        for (content, expected) in [
            ("", "it has no texts"),
            (" \n\n", "it has no texts"),
            ("name,text\na,x\n", "it has no column `label`; rename one of its columns: name, text"),
        ] {
            let error = parse(content).unwrap_err();
            assert!(matches!(error, DataError::File { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
        let none = Texts::parse("data", "a\t\nb\t", None, true).unwrap_err().to_string();
        assert!(none.contains("2 bad lines were skipped"), "{none}");
    }

    proptest! {
        #[test]
        fn any_content_is_refused_or_becomes_texts(content in "[a-c{}\":,\t\n\r_ label]{0,60}", skips: bool) {
            for format in [None, Some(Format::Tsv), Some(Format::Csv), Some(Format::JsonLines), Some(Format::FastText)] {
                if let Ok(found) = Texts::parse("data", &content, format, skips) {
                    prop_assert!(!found.texts.is_empty() && (skips || found.skipped == 0));
                    let is_whole = |one: &Labelled| !one.text.trim().is_empty()
                        && one.labels.iter().all(|label| !label.trim().is_empty());
                    prop_assert!(found.texts.iter().all(is_whole));
                }
            }
        }
    }
}
