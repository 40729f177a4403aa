//! Splits lines into fields.

use super::EvaluationError;
use super::source::Source;

/// What separates the fields of a line. A separator other than white space may also occur in a
/// field, if the field is in double quotes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Separator {
    Tab,
    Semicolon,
    Comma,
    /// Spaces and tabs, any number of them.
    WhiteSpace,
}

impl Separator {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Tab => "tabs",
            Self::Semicolon => "semicolons",
            Self::Comma => "commas",
            Self::WhiteSpace => "white space",
        }
    }
}

/// A line that is not blank.
#[derive(Debug, PartialEq)]
pub(super) struct Line {
    /// Its number, from 1.
    pub(super) number: u64,
    /// Its fields, without white space around them.
    pub(super) fields: Vec<String>,
}

/// The lines of a text that are neither blank nor comments: `#` or `//`, and a space. A byte order
/// mark at its beginning is no part of it.
pub(super) fn lines(text: &str) -> impl Iterator<Item = (u64, &str)> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let is_comment = |line: &str| line.starts_with("# ") || line.starts_with("// ");
    let says_something = move |line: &str| !line.trim().is_empty() && !is_comment(line);
    (1..).zip(text.lines()).filter(move |(_, line)| says_something(line))
}

/// All lines of a text, taken apart.
pub(super) fn split(text: &str, separator: Separator) -> Vec<Line> {
    lines(text).map(|(number, line)| Line { number, fields: fields(line, separator) }).collect()
}

fn fields(line: &str, separator: Separator) -> Vec<String> {
    let by = |by: u8| match line.contains('"') {
        true => quoted(line, by),
        false => line.split(char::from(by)).map(|field| field.trim().to_owned()).collect(),
    };
    match separator {
        Separator::Tab => by(b'\t'),
        Separator::Semicolon => by(b';'),
        Separator::Comma => by(b','),
        Separator::WhiteSpace => line.split_whitespace().map(str::to_owned).collect(),
    }
}

fn quoted(line: &str, separator: u8) -> Vec<String> {
    let mut reader = csv::ReaderBuilder::new();
    reader.delimiter(separator);
    let mut reader = reader.has_headers(false).trim(csv::Trim::All).from_reader(line.as_bytes());
    let first = reader.records().next();
    let first = first.and_then(Result::ok).unwrap_or_default();
    first.iter().map(str::to_owned).collect()
}

/// The lines by each separator that gives all of them the same number of fields, if that is a form
/// of the set; by at least one. `empty` is the error of a text without lines, and `unknown` that of
/// the first line if no separator gives it such a number.
pub(super) fn separated(
    source: &Source,
    separators: &[Separator],
    is_form: fn(usize) -> bool,
    [empty, unknown]: [&str; 2],
) -> Result<Vec<(Separator, Vec<Line>)>, EvaluationError> {
    let (first, _) = lines(&source.text).next().ok_or_else(|| source.empty(empty))?;
    let (mut even, mut uneven) = (Vec::new(), None);
    for &separator in separators {
        let lines = split(&source.text, separator);
        let Some(expected) = lines.first().map(|line| line.fields.len()) else { continue };
        match lines.iter().find(|line| line.fields.len() != expected) {
            _ if !is_form(expected) => {}
            None => even.push((separator, lines)),
            Some(odd) => {
                let what = format!(
                    "the line has {} fields, but the first line has {expected}, separated by {}; \
                     all lines must have the same number",
                    odd.fields.len(),
                    separator.name()
                );
                uneven.get_or_insert(source.error(odd.number, what));
            }
        }
    }
    match even.is_empty() {
        true => Err(uneven.unwrap_or_else(|| source.error(first, unknown))),
        false => Ok(even),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split_one(line: &str, separator: Separator) -> Vec<String> {
        split(line, separator).remove(0).fields
    }

    #[test]
    fn fields_are_what_stands_between_separators() {
        assert_eq!(split_one("new york\tcity \r\n", Separator::Tab), ["new york", "city"]);
        assert_eq!(split_one("a;b; 3.5", Separator::Semicolon), ["a", "b", "3.5"]);
        assert_eq!(split_one("a, b,3.5", Separator::Comma), ["a", "b", "3.5"]);
        assert_eq!(
            split_one(r#""a, b","say ""c""", 1"#, Separator::Comma),
            ["a, b", "say \"c\"", "1"]
        );
        assert_eq!(split_one("\"a b\"\t\"c\"\t1", Separator::Tab), ["a b", "c", "1"]);
        assert_eq!(split_one("\"a\";b;1", Separator::Semicolon), ["a", "b", "1"]);
        assert_eq!(split_one(" a \t b  c", Separator::WhiteSpace), ["a", "b", "c"]);
    }

    #[test]
    fn blank_lines_comments_and_a_byte_order_mark_are_no_lines_but_count() {
        let lines = split("\u{feff}a b\r\n# note\r\n  \n// note\nc d\n", Separator::WhiteSpace);
        let numbers: Vec<u64> = lines.iter().map(|line| line.number).collect();
        assert_eq!(numbers, [1, 5]);
        assert_eq!(lines[0].fields, ["a", "b"]);
    }
}
