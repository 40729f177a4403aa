//! Tables of docs/formats.md, for tests that compare them with files.

use std::fs;
use std::path::Path;

/// The cells of the tables below a line of the document, up to the next text that is neither a
/// table nor empty.
pub(crate) fn rows_below(line: &str) -> Vec<Vec<String>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/formats.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, below) = page.split_once(line).unwrap_or_else(|| panic!("no line {line:?}"));
    let cells =
        |row: &str| row.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect();
    let lines = below.lines().skip_while(|line| !line.starts_with('|'));
    lines.take_while(|line| line.starts_with('|')).skip(2).map(cells).collect()
}

/// The texts in backquotes.
pub(crate) fn names(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}
