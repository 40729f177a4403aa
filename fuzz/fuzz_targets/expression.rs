//! Expressions: refused with a column that is there, or terms that can be written and read again.
#![no_main]

use libfuzzer_sys::fuzz_target;
use kindred::expression::{MAX_TERMS, Term, parse};

fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(terms) => {
            assert!(terms.len() <= MAX_TERMS);
            assert!(terms.iter().all(|term| term.weight.is_finite()));
            let again = parse(&written(&terms)).expect("what was understood can be written");
            assert_eq!(again, terms);
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
            assert!(!error.to_string().is_empty());
        }
    }
});

/// The terms as an expression in which every word has quotes.
fn written(terms: &[Term]) -> String {
    let written = terms.iter().map(|Term { word, weight }| {
        let sign = if weight.is_sign_negative() { '-' } else { '+' };
        let word = word.replace('\\', "\\\\").replace('"', "\\\"");
        format!("{sign} {:?}*\"{word}\"", weight.abs())
    });
    written.collect::<Vec<_>>().join(" ")
}
