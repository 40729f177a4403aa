//! Texts with labels, from files of several formats.
//!
//! - `format`: which format a file has;
//! - `columns`: CSV and TSV, and which columns are the text and the label;
//! - `json`, `fast_text`, `spaced`: the others, line by line.

mod columns;
mod fast_text;
mod format;
mod json;
mod spaced;

use std::borrow::Cow;

pub use format::Format;
use model_store::delimited::{NotFound, find};
use model_store::prepare::utf16_reason;

/// A text and its labels: one, or any number where several can be right.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labelled {
    /// Its labels, each once.
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

/// How a file of texts with labels is read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TextsOptions {
    /// Its format; `None`: the first line decides.
    pub format: Option<Format>,
    /// The column or field with the text: its name in any case, or in CSV and TSV without names its
    /// number from 1.
    /// `None`: `text`, or `sentence`.
    pub text: Option<String>,
    /// The column or field with the label, or the list of labels. `None`: `label`, in JSON also
    /// `labels`.
    pub label: Option<String>,
    /// Whether bad lines are skipped and counted.
    pub skip_bad_rows: bool,
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

impl Texts {
    /// Reads the content of a file.
    ///
    /// # Errors
    /// If a line is bad and must not be skipped, no text is left, the columns of text and label
    /// can't be told, or it is UTF-16.
    pub fn parse(file: &str, content: &str, options: &TextsOptions) -> Result<Self, DataError> {
        let bad = |what: String| DataError::File { file: file.to_owned(), what };
        // UTF-16 of ASCII is also UTF-8: with a NUL character beside each letter.
        if let Some(what) = utf16_reason(content.as_bytes()) {
            return Err(bad(what));
        }
        let content = without_marks(content);
        let content = content.as_ref();
        let format = match options.format {
            Some(format) => format,
            None => Format::of(file, content, options)?,
        };
        let mut taking = Taking::new(file, options.skip_bad_rows);
        match format {
            Format::Tsv | Format::Csv => columns::read(format, content, options, &mut taking)?,
            Format::JsonLines => {
                if content.trim_start().starts_with('[') {
                    let what = "it is one array; write an object in each line: jq -c '.[]' FILE";
                    return Err(bad(what.to_owned()));
                }
                taking.lines(content, |line| json::read(line, options))?;
            }
            Format::FastText => taking.lines(content, fast_text::read)?,
            Format::Space => {
                let is_whole = options.format.is_none();
                taking.lines(content, |line| spaced::read(line, is_whole))?;
            }
        }
        let Taking { mut found, first_bad, .. } = taking;
        let missing = found.without_missing_labels();
        if missing > 0 && !options.skip_bad_rows {
            return Err(bad(format!(
                "the label of {missing} of its texts is `nan`, and all others are numbers, so it \
                 stands for a number that is missing; give these labels, or leave the texts out \
                 with --skip-bad-rows"
            )));
        }
        if let Some(why) = first_bad.filter(|_| found.skipped > found.texts.len() as u64) {
            let (skipped, all) = (found.skipped, found.skipped + found.texts.len() as u64);
            return Err(bad(format!(
                "{skipped} of its {all} lines are bad, so it is probably read in a wrong way; {why}"
            )));
        }
        if found.texts.is_empty() {
            return Err(bad("it has no texts".to_owned()));
        }
        Ok(found)
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

    /// Leaves out texts with the label `nan` if all other labels are numbers: so Python writes a
    /// number that is missing. Returns how many there were, and counts them as skipped.
    fn without_missing_labels(&mut self) -> u64 {
        let is_nan = |label: &str| label.eq_ignore_ascii_case("nan");
        let is_missing = |text: &Labelled| text.labels.iter().any(|label| is_nan(label));
        if !self.texts.iter().any(is_missing) {
            return 0;
        }
        let labels = self.labels();
        if labels.len() == 1 || labels.iter().any(|(label, _)| label.parse::<f64>().is_err()) {
            return 0;
        }
        let before = self.texts.len();
        self.texts.retain(|text| !is_missing(text));
        let missing = (before - self.texts.len()) as u64;
        self.skipped += missing;
        missing
    }

    /// Why nothing can be learnt from the labels, if there are about as many of them as texts, so
    /// that they are rather texts or ids. Few texts say nothing; and a text may have several
    /// labels, so that there are many of them.
    pub fn look_swapped(&self) -> Option<String> {
        const FEWEST: usize = 10;
        let labels = self.labels();
        let given: usize = labels.iter().map(|(_, count)| count).sum();
        let texts = self.texts.len();
        if texts < FEWEST || 2 * labels.len() <= texts.max(given) {
            return None;
        }
        let example: String = labels[0].0.chars().take(40).collect();
        // As `__label__pos,a good film` has.
        let has_comma = |(label, _): &&(&str, usize)| label.contains(',');
        let cure = match 2 * labels.iter().filter(has_comma).count() > labels.len() {
            true => "if a comma ends each label, write a space instead",
            false => {
                "if the columns are swapped, name the right ones with --text-column and \
                 --label-column"
            }
        };
        Some(format!(
            "{texts} texts have {} different labels, such as {example:?}, and most labels need \
             several texts to be learnt; {cure}",
            labels.len()
        ))
    }
}

/// The content without the byte order marks that some programs put before UTF-8: also at the start
/// of other lines, where files were joined. There they would become part of a label.
fn without_marks(content: &str) -> Cow<'_, str> {
    const MARK: char = '\u{feff}';
    let content = content.trim_start_matches(MARK);
    if !content.contains("\n\u{feff}") && !content.contains("\r\u{feff}") {
        return Cow::Borrowed(content);
    }
    let lines = content.split_inclusive(['\n', '\r']);
    Cow::Owned(lines.map(|line| line.trim_start_matches(MARK)).collect())
}

/// Takes what lines give.
struct Taking<'a> {
    file: &'a str,
    skips: bool,
    found: Texts,
    /// Whether the first line gave a text.
    first: Option<bool>,
    /// The first line that was skipped, and why.
    first_bad: Option<String>,
}

impl<'a> Taking<'a> {
    fn new(file: &'a str, skips: bool) -> Self {
        Self { file, skips, found: Texts::default(), first: None, first_bad: None }
    }

    fn lines(
        &mut self,
        content: &str,
        read: impl Fn(&str) -> Result<Labelled, String>,
    ) -> Result<(), DataError> {
        for (number, line) in (1..).zip(content.lines()) {
            if !line.trim().is_empty() {
                self.take(number, read(line))?;
            }
        }
        Ok(())
    }

    fn take(&mut self, line: u64, found: Result<Labelled, String>) -> Result<(), DataError> {
        let found = found.and_then(checked);
        self.first.get_or_insert(found.is_ok());
        match found {
            Ok(text) => self.found.texts.push(text),
            Err(what) if self.skips => {
                self.found.skipped += 1;
                self.first_bad.get_or_insert_with(|| format!("line {line}: {what}"));
            }
            Err(what) => return Err(DataError::Line { file: self.file.to_owned(), line, what }),
        }
        Ok(())
    }

    fn bad(&self, what: String) -> DataError {
        DataError::File { file: self.file.to_owned(), what }
    }
}

fn checked(found: Labelled) -> Result<Labelled, String> {
    let mut labels: Vec<String> = Vec::with_capacity(found.labels.len());
    for label in &found.labels {
        let label = label.trim();
        if label.is_empty() {
            return Err("a label is empty".to_owned());
        }
        if !labels.iter().any(|known| known == label) {
            labels.push(label.to_owned());
        }
    }
    match found.text.trim().is_empty() {
        true => Err("the text is empty".to_owned()),
        false => Ok(Labelled { labels, ..found }),
    }
}

/// A column or field that a text has two of, or none.
struct Wanted<'a> {
    /// `column` or `field`.
    kind: &'static str,
    /// The first of these names that there is counts.
    names: &'a [&'a str],
    /// The flag that names another.
    flag: &'static str,
}

impl<'a> Wanted<'a> {
    /// The place among these names; `None` if it is not there.
    fn place(&self, names: &[String]) -> Result<Option<usize>, String> {
        for wanted in self.names {
            match find(names, wanted) {
                Ok(place) => return Ok(Some(place)),
                Err(NotFound::Missing) => {}
                Err(NotFound::Several(two)) => {
                    let [first, second] = two.map(|place| &names[place]);
                    let Self { kind, flag, .. } = self;
                    return Err(format!(
                        "`{wanted}` may be the {kind} `{first}` or the {kind} `{second}`; rename \
                         one, or name another with {flag}"
                    ));
                }
            }
        }
        Ok(None)
    }

    fn missing(&self, names: &[String]) -> String {
        let Self { kind, flag, names: wanted } = self;
        let wanted: Vec<String> = wanted.iter().map(|name| format!("`{name}`")).collect();
        let wanted = wanted.join(" or ");
        let found = names.join(", ");
        format!("it has no {kind} {wanted}; name one of its {kind}s with {flag}: {found}")
    }
}

/// The names of the text and of the label: those that are given, or else the usual ones.
fn wanted<'a>(kind: &'static str, [text, label]: [&'a [&'a str]; 2]) -> [Wanted<'a>; 2] {
    [("--text-column", text), ("--label-column", label)].map(|(flag, names)| Wanted {
        kind,
        names,
        flag,
    })
}

/// Usual names of texts, the likelier first.
const TEXT: &[&str] = &["text", "sentence"];

#[cfg(test)]
mod tests;
