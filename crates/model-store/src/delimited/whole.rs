//! Rows of bytes that are all in memory.

use std::convert::Infallible;

use super::{Bytes, count_lines};

/// Bytes that are all in memory.
pub struct Whole<'a> {
    rest: &'a [u8],
    lines: u64,
    after_return: bool,
}

impl<'a> Whole<'a> {
    /// The rows of a file.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes, lines: 0, after_return: false }
    }
}

impl Bytes for Whole<'_> {
    type Error = Infallible;

    fn rest(&self) -> &[u8] {
        self.rest
    }

    fn more(&mut self) -> Result<bool, Infallible> {
        Ok(false)
    }

    fn use_up_lines(&mut self, bytes: usize) {
        let (used, rest) = self.rest.split_at(bytes);
        self.lines += count_lines(used, &mut self.after_return);
        self.rest = rest;
    }

    fn lines(&self) -> u64 {
        self.lines
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Dialect, Problem, Reader};
    use super::*;
    use proptest::prelude::*;

    type Found = (u64, Vec<String>, Option<Problem>);

    fn rows(dialect: Dialect, content: &str) -> Vec<Found> {
        let (mut reader, mut bytes) = (Reader::new(dialect), Whole::new(content.as_bytes()));
        let mut rows = Vec::new();
        while let Ok(Some(row)) = reader.next(&mut bytes) {
            let field = |column| String::from_utf8(reader.field(column).to_vec()).unwrap();
            rows.push((row.line, (0..row.columns).map(field).collect(), row.problem));
        }
        rows
    }

    fn row(line: u64, fields: &[&str], problem: Option<Problem>) -> Found {
        (line, fields.iter().map(|field| (*field).to_owned()).collect(), problem)
    }

    #[test]
    fn csv_has_quotes_and_tsv_has_none() {
        let csv = "a,b\r\n\r\n\"x, \"\"y\"\"\nz\",1\r\n2,3,4\n5\n6,\"open\n7,8";
        assert_eq!(
            rows(Dialect::Csv, csv),
            [
                row(1, &["a", "b"], None),
                row(3, &["x, \"y\"\nz", "1"], None),
                row(5, &["2", "3", "4"], Some(Problem::Columns { found: 3, expected: 2 })),
                row(6, &["5"], Some(Problem::Columns { found: 1, expected: 2 })),
                row(7, &["6", "open\n7,8\n"], Some(Problem::OpenQuote)),
            ]
        );
        // Three rows between two quotes that were not meant to be one field.
        let swallowed = "a,b\n1,\"x\n2,y\n3,\"z\"\n4,\"v\" \n5,\"w\"\"\"\n6,5\" disk\n";
        let problems: Vec<_> = rows(Dialect::Csv, swallowed).into_iter().map(|row| row.2).collect();
        let broken = Some(Problem::TextAfterQuote);
        assert_eq!(problems, [None, broken, broken, None, None]);
        let semicolons = "a;b\n1,5;\"x;\"\"y\"\n\"1\"2;3\n";
        assert_eq!(
            rows(Dialect::Semicolons, semicolons)[1..],
            [row(2, &["1,5", "x;\"y"], None), row(3, &["12", "3"], broken)]
        );
        let tsv = "a\tb\n\"x, y\t\"1\"\r\"open\t\"\"\n\t";
        assert_eq!(
            rows(Dialect::Tsv, tsv),
            [
                row(1, &["a", "b"], None),
                row(2, &["\"x, y", "\"1\""], None),
                row(3, &["\"open", "\"\""], None),
                row(4, &["", ""], None),
            ]
        );
    }

    proptest! {
        #[test]
        fn tsv_is_what_lines_and_tabs_say(content in "[a\"\t,\n ]{0,40}") {
            let expected: Vec<Vec<&str>> = content
                .lines()
                .filter(|line| !line.is_empty())
                .map(|line| line.split('\t').collect())
                .collect();
            let found = rows(Dialect::Tsv, &content);
            prop_assert_eq!(found.len(), expected.len());
            for ((_, fields, _), expected) in found.iter().zip(&expected) {
                prop_assert_eq!(fields, expected);
            }
            for (_, fields, problem) in &found {
                prop_assert_eq!(problem.is_none(), fields.len() == found[0].1.len());
            }
        }

        #[test]
        fn ends_of_lines_are_counted_alike_in_any_pieces(
            content in "[a\n\r]{0,30}",
            cuts in prop::collection::vec(1usize..5, 0..30),
        ) {
            let expected = content.replace("\r\n", "\n").matches(['\n', '\r']).count() as u64;
            let (mut rest, mut after_return, mut found) = (content.as_bytes(), false, 0);
            for cut in cuts.into_iter().chain([usize::MAX]) {
                let (used, later) = rest.split_at(cut.min(rest.len()));
                found += count_lines(used, &mut after_return);
                rest = later;
            }
            prop_assert_eq!(found, expected);
        }
    }
}
