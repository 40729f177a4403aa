//! Which terms texts touch, by the formula itself: plain loops that everything faster is tested
//! against.

use contract::{Row, Table, score};

use super::{TextVectors, Touched, check_table};

/// The terms that each text touches, ordered by text, and those of a text by term.
///
/// # Panics
/// If the table is not under [`Metric::Dot`](contract::Metric::Dot), or has other dimensions than
/// the texts.
pub fn touched(texts: TextVectors<'_>, table: &Table<'_>) -> Vec<Touched> {
    check_table(texts, table);
    let mut found = Vec::new();
    for text in 0..texts.texts() {
        for term in 0..table.rows() as u32 {
            let row = Row(term);
            let mut best: Option<(f64, u32)> = None;
            for (position, token) in (0..).zip(texts.range(text)) {
                if texts.left_out.is_some_and(|left_out| left_out[token]) {
                    continue;
                }
                let dot = score::dot(texts.row(token), table.row(row));
                let score = dot + f64::from(table.bias(row));
                // The first of equal scores stays.
                if best.is_none_or(|(best, _)| score > best) {
                    best = Some((score, position));
                }
            }
            if let Some((value, position)) = best.filter(|(value, _)| *value > 0.0) {
                found.push(Touched { text: text as u32, term, position, value });
            }
        }
    }
    found
}
