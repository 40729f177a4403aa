//! Filters: refused with a column that is there, or one form that reads as itself.
#![no_main]

use kindred::filter::{MAX_TESTS, parse};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    match parse(text) {
        Ok(filter) => {
            assert!((1..=MAX_TESTS).contains(&filter.tests()));
            let again = parse(&filter.to_string()).expect("what was understood can be written");
            assert_eq!(again, filter);
            assert_eq!(again.to_string(), filter.to_string());
        }
        Err(error) => {
            assert!((1..=text.chars().count() + 1).contains(&error.column), "{error}");
            assert!(error.caret(text).ends_with('^'));
        }
    }
});
