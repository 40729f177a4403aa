//! Random filters over random attributes, against a plain loop over the rows.

use proptest::prelude::*;

use super::naive::{items, sources};
use super::{found, model};
use crate::{check, parse};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn random_filters_find_what_a_plain_loop_finds(source in sources(), items in items(1..150)) {
        let filter = source.written();
        let model = model(&items);
        let expression = parse(&filter).unwrap();
        let again = parse(&expression.to_string()).unwrap();
        prop_assert_eq!(&again, &expression);
        prop_assert_eq!(again.to_string(), expression.to_string());
        let meets = |row: &usize| source.meets(&format!("w{row}"), &items[*row]);
        let expected: Vec<u32> =
            (0..items.len()).filter(meets).map(|row| row as u32).collect();
        prop_assert_eq!(found(&model, &filter).unwrap(), &expected[..], "{}", filter);
        // Word by word.
        let plan = check(&expression, &model).unwrap();
        prop_assert_eq!(plan.rows(), items.len());
        let mut words = vec![0; items.len().div_ceil(64)];
        for (index, word) in words.iter_mut().enumerate() {
            plan.fill(index, std::slice::from_mut(word));
        }
        let has = |row: &usize| words[row / 64] >> (row % 64) & 1 == 1;
        let by_words: Vec<u32> = (0..items.len()).filter(has).map(|row| row as u32).collect();
        prop_assert_eq!(by_words, expected);
    }

    #[test]
    fn no_text_panics_and_every_fault_is_within_the_text(
        text in r#"([a-c=<>!()\[\],"'\\ 0-9.\n]|AND|or|NOT| IN |TO|is|null|starts with|é){0,30}"#,
    ) {
        match parse(&text) {
            Ok(filter) => prop_assert_eq!(parse(&filter.to_string()), Ok(filter)),
            Err(error) => {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{}", error);
                prop_assert!(error.caret(&text).ends_with('^'));
            }
        }
    }
}
