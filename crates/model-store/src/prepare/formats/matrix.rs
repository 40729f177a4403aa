//! Text of numbers only, as NumPy's `savetxt` writes it: the words are in a separate file.

use std::sync::Arc;

use memchr::memchr;

use super::detect::{first_line, without_mark};
use super::header::Word2vecHeader;
use super::index::IndexColumn;
use super::text::{LineFraming, parse_component};
use super::{
    Expected, Parsed, Parser, Plan, RecordUnit, VectorsFormat, Watch, counted, is_padding,
};
use crate::prepare::words_file::WordList;
use crate::prepare::{MAX_DIM, PrepareOptions};

/// The numbers of a line, separated by commas, semicolons or white space.
fn fields(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    let separator = [b',', b';'].into_iter().find(|&separator| memchr(separator, line).is_some());
    let is_separator = move |byte: &u8| match separator {
        Some(separator) => *byte == separator,
        None => byte.is_ascii_whitespace(),
    };
    let fields = line.trim_ascii().split(is_separator).map(<[u8]>::trim_ascii);
    fields.filter(move |field| separator.is_some() || !field.is_empty())
}

/// Whether a line has numbers and nothing else.
pub(super) fn is_numbers(line: &[u8]) -> bool {
    /// The longest float64 has about this number of digits when it is written without an exponent.
    const LONGEST: usize = 400;
    let is_number = |field: &[u8]| {
        let text = std::str::from_utf8(&field[..field.len().min(LONGEST + 1)]);
        text.is_ok_and(|text| text.len() <= LONGEST && text.parse::<f64>().is_ok())
    };
    let mut numbers = fields(line).peekable();
    numbers.peek().is_some() && numbers.all(is_number)
}

/// What is wrong with lines of numbers that have no separator of words.
pub(super) fn no_words() -> String {
    "its lines have numbers and no words; give the words with --words FILE, one per line, in row \
     order"
        .to_owned()
}

/// How to read a file of numbers with these words.
///
/// # Errors
/// If it has words of its own.
pub(super) fn matrix(
    head: &[u8],
    format: VectorsFormat,
    words: WordList,
    options: &PrepareOptions,
) -> Result<Plan, String> {
    let (text, mut skip) = without_mark(head);
    let dim_of = |text| fields(first_line(text)).count();
    let header = Word2vecHeader::read(text).filter(|header| {
        let is_table = dim_of(&text[header.bytes..]) == header.dim;
        is_table && (header.dim != 2 || header.rows == words.len() as u64)
    });
    let before = header.map_or(0, |header| header.bytes);
    skip += before;
    let line = first_line(&text[before..]);
    // The first line may be a header.
    let second = text.split(|&byte| byte == b'\n').nth(1);
    let second = second.filter(|line| !line.trim_ascii().is_empty() && !is_padding(line));
    let is_matrix = is_numbers(line) && second.is_none_or(is_numbers);
    if format == VectorsFormat::Word2vecBinary || !is_matrix {
        return Err(format!(
            "the file itself contains the words ({format}); --words is for numbers only: npy, \
             safetensors, glove-norm, or text without words"
        ));
    }
    let dim = dim_of(line);
    let rows = words.len() as u64;
    let said = format!("{} has {rows} words, one for each row", words.name());
    // Who says how many components there are has counted the columns.
    let index = match options.dim {
        Some(_) => None,
        None => IndexColumn::new(line, dim, header.is_some()),
    };
    Ok(Plan {
        description: "text of numbers".into(),
        dim,
        skip: skip as u64,
        records: RecordUnit::Line { first: 1 + u64::from(header.is_some()) },
        framing: Box::new(LineFraming::default()),
        parser: Arc::new(NumberLines { dim: dim.min(MAX_DIM), words: Arc::new(words) }),
        expected: Some(Expected {
            rows,
            tolerance: 0,
            said,
            cure: "give one word for each row".to_owned(),
        }),
        first_column: index.map(Watch::Index),
    })
}

struct NumberLines {
    dim: usize,
    words: Arc<WordList>,
}

impl NumberLines {
    /// Appends the numbers of a line. A bad line may leave some appended.
    fn parse_line(&self, line: &[u8], components: &mut Vec<f32>) -> Result<(), String> {
        let before = components.len();
        for (index, field) in fields(line).enumerate() {
            let component = match field {
                [] => Err("is empty".to_owned()),
                field => parse_component(field),
            };
            components
                .push(component.map_err(|reason| format!("component {} {reason}", index + 1))?);
        }
        match components.len() - before {
            0 => Err("the line is empty".to_owned()),
            found if found != self.dim => {
                Err(format!("{} instead of {}", counted(found as u64, "component"), self.dim))
            }
            _ => Ok(()),
        }
    }
}

impl Parser for NumberLines {
    fn parse(&self, bytes: &[u8], first: u64) -> Parsed {
        let mut parsed = Parsed::default();
        let mut start = 0;
        for line in bytes.split_inclusive(|&byte| byte == b'\n') {
            let row = first + parsed.records;
            if row >= self.words.len() as u64 {
                let (name, words) = (self.words.name(), self.words.len());
                let reason = format!("{name} has only {words} words; give one word for each row");
                parsed.end_broken_record(reason, self.dim, start);
                break;
            }
            let numbers = self.parse_line(line, &mut parsed.components);
            let word = numbers.map(|()| self.words.get(row as usize));
            parsed.end_record(word, self.dim, start);
            start += line.len();
        }
        parsed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_separated_by_commas_semicolons_or_white_space() {
        for line in [
            "0.5 -1e3 2",
            "0.5\t-1e3\t2\r",
            "  0.5   -1e3 2 ",
            "0.5,-1e3,2",
            "0.5, -1e3, 2",
            "0.5;-1e3; 2",
        ] {
            assert!(is_numbers(line.as_bytes()), "{line}");
            assert_eq!(fields(line.as_bytes()).count(), 3, "{line}");
        }
        for line in ["", " ", "a 1 2", "1,,2", "1,2,", "a,1", "0x1 2", "# 1 2", "1 2 b"] {
            assert!(!is_numbers(line.as_bytes()), "{line}");
        }
        assert!(is_numbers(b"0.5") && is_numbers(b"nan inf 1"));
    }
}
