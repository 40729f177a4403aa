//! Many rows, in several pieces of which some are bad and some repeated: each keeps its own line.

use std::collections::HashSet;
use std::num::NonZeroUsize;

use contract::Row;
use model_store::ModelStore;
use model_store::attributes::Value;
use model_store::prepare::PrepareOptions;

use super::support::{joined, with};
use crate::formats::support::Scratch;

const LINES: usize = 250_000;

/// The word of a line, and whether the line is bad.
fn line(n: usize) -> (usize, bool) {
    let mixed = n.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32;
    match mixed % 16 {
        // Of the first, the format is told.
        _ if n == 0 => (n, false),
        0..3 => (n, true),
        // A word of a line before it.
        3..6 => (mixed / 16 % (n + 1), false),
        _ => (n, false),
    }
}

/// Vectors of which no piece has the same rows bad or repeated as another.
fn vectors() -> String {
    let text = |n: usize| match line(n) {
        (word, true) if word % 2 == 0 => format!("w{word} 1 0.5 7\n"),
        (word, true) => format!("w{word} 1 x\n"),
        (word, false) => format!("w{word} {}.25 -0.5\n", n % 1000),
    };
    (0..LINES).map(text).collect()
}

/// The lines that become rows, with their words.
fn rows(lines: usize) -> Vec<(usize, usize)> {
    let mut seen = HashSet::new();
    let good = (0..lines).map(|n| (n, line(n))).filter(|(_, (_, is_bad))| !is_bad);
    good.map(|(n, (word, _))| (n, word)).filter(|(_, word)| seen.insert(*word)).collect()
}

fn checked(model: &ModelStore, rows: &[(usize, usize)], of_row: impl Fn(&(usize, usize)) -> usize) {
    assert_eq!(model.rows(), rows.len());
    let attributes = model.attributes().unwrap();
    for (at, row) in (0..).zip(rows) {
        assert_eq!(model.words().word(Row(at)), format!("w{}", row.1));
        let n = of_row(row);
        let [(_, number), (_, text)] =
            <[_; 2]>::try_from(attributes.get(Row(at)).collect::<Vec<_>>())
                .unwrap_or_else(|all| panic!("{all:?}"));
        assert_eq!(number, (!n.is_multiple_of(5)).then_some(Value::Integer(n as i64)), "row {at}");
        assert_eq!(text, Some(Value::Text(format!("t{}\"", n % 1000).into())), "row {at}");
    }
}

/// The attributes of a line: a number that may be missing, and a text of two lines.
fn attributes(n: usize) -> String {
    let number = if !n.is_multiple_of(5) { n.to_string() } else { String::new() };
    format!("{number},\"t{}\"\"\"", n % 1000)
}

#[test]
fn each_row_keeps_its_own_line() {
    let scratch = Scratch::new();
    let csv: String = (0..LINES).map(|n| attributes(n) + "\r\n").collect();
    let vectors = vectors();
    assert!(vectors.len() > 3 << 20 && csv.len() > 3 << 20, "several pieces of each");
    let options = with(&scratch, format!("n,t\r\n{csv}"));
    let options =
        PrepareOptions { skip_bad_rows: true, dim: NonZeroUsize::new(2), replace: true, ..options };
    scratch.prepare(&vectors, &options).unwrap();
    checked(&scratch.open(), &rows(LINES), |row| row.0);

    let limit = 199_999;
    let first = PrepareOptions { limit: NonZeroUsize::new(limit), ..options.clone() };
    scratch.prepare(&vectors, &first).unwrap();
    checked(&scratch.open(), &rows(limit), |row| row.0);

    // Joined by their words, in another order.
    let key = |n: usize| format!("{},w{n}\n", attributes(n));
    let csv: String = (0..LINES).map(|n| key((n + 1) * 7 % LINES)).collect();
    let PrepareOptions { attributes, .. } = joined(&scratch, "w", format!("n,t,w\n{csv}"));
    scratch.prepare(&vectors, &PrepareOptions { attributes, ..options }).unwrap();
    checked(&scratch.open(), &rows(LINES), |row| row.1);
}
