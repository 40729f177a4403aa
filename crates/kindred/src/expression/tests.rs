//! The grammar by example.

use proptest::prelude::*;

use super::*;

fn terms(text: &str) -> Vec<(String, f64)> {
    parse(text)
        .unwrap_or_else(|e| panic!("{text}: {e}"))
        .into_iter()
        .map(|term| (term.word, term.weight))
        .collect()
}

fn check(text: &str, expected: &[(&str, f64)]) {
    let expected: Vec<_> =
        expected.iter().map(|&(word, weight)| (word.to_owned(), weight)).collect();
    assert_eq!(terms(text), expected, "{text}");
}

#[test]
fn signs_stand_alone_or_lead_a_piece() {
    let expected = [("king", 1.0), ("man", -1.0), ("woman", 1.0)];
    for text in
        ["king - man + woman", "king -man +woman", "+king -man + woman", " king\t-man\n+woman "]
    {
        check(text, &expected);
    }
    check("-man", &[("man", -1.0)]);
    check("king", &[("king", 1.0)]);
    // White space of more than one byte: next line, no-break space, ideographic space.
    check("king\u{85}-\u{a0}man\u{3000}+woman\u{2003}", &expected);
    assert_eq!(parse("\u{85}(((").unwrap_err().column, 5);
}

#[test]
fn signs_and_stars_inside_words_are_part_of_them() {
    for word in [
        "well-known",
        "covid-19",
        "c++",
        "a*b",
        "*",
        "1.2.3*x",
        "e5*x",
        "inf*x",
        "nan*x",
        "42",
        "1e5",
        "3.",
        "'",
    ] {
        check(word, &[(word, 1.0)]);
    }
    // Exactly `+` is an operator; of `++` one sign leads a piece and the other is its word.
    check("++", &[("+", 1.0)]);
    check("a --b", &[("a", 1.0), ("-b", -1.0)]);
}

#[test]
fn weights_stand_before_words_and_parentheses() {
    check("2*king", &[("king", 2.0)]);
    check(
        "-2*king + .5*a - 1e-3*b + 5.*c",
        &[("king", -2.0), ("a", 0.5), ("b", -1e-3), ("c", 5.0)],
    );
    check(
        "0.5*(a - 2*(b + c)) - (d - e)",
        &[("a", 0.5), ("b", -1.0), ("c", -1.0), ("d", -1.0), ("e", 1.0)],
    );
    check("2* (a)", &[("a", 2.0)]);
    check("0*a", &[("a", 0.0)]);
    check("2*3*x", &[("3*x", 2.0)]);
    // A sign leads a piece only at its very start.
    check("2*-x", &[("-x", 2.0)]);
    check("2 + 2", &[("2", 1.0), ("2", 1.0)]);
}

#[test]
fn quotes_hold_what_would_read_as_something_else() {
    check(r#""new york" - "+" + 2*"a (b)""#, &[("new york", 1.0), ("+", -1.0), ("a (b)", 2.0)]);
    check(r#""say \"hi\" \\""#, &[(r#"say "hi" \"#, 1.0)]);
    check(r#""2*x" -"-y""#, &[("2*x", 1.0), ("-y", -1.0)]);
    check(r#"("a")"#, &[("a", 1.0)]);
}

#[test]
fn parentheses_split_words() {
    check("(king)-(man)", &[("king", 1.0), ("man", -1.0)]);
    check("((((a))))", &[("a", 1.0)]);
    check("(-a + b)", &[("a", -1.0), ("b", 1.0)]);
}

#[test]
fn errors_name_the_column_and_what_was_expected() {
    for (text, column, expected) in [
        ("", 1, "a word"),
        ("   ", 4, "a word"),
        ("king -", 7, "a word"),
        ("king + + man", 8, "a word"),
        ("king - - man", 8, "a word"),
        ("+", 2, "a word"),
        ("king man", 6, "`+`, `-` or the end"),
        ("king (man)", 6, "`+`, `-` or the end"),
        ("king(man)", 5, "`+`, `-` or the end"),
        ("2 * king", 3, "`+`, `-` or the end"),
        ("king 2*man", 6, "`+`, `-` or the end"),
        (")", 1, "a word"),
        ("a )", 3, "`+`, `-` or the end"),
        ("(a", 3, "`+`, `-` or `)`"),
        ("(a b)", 4, "`+`, `-` or `)`"),
        ("()", 2, "a word"),
        ("2*", 3, "a word or `(`"),
        ("2* + a", 4, "a word or `(`"),
        ("a - 1e999*b", 5, "a finite number as the weight"),
        ("1e200*(1e200*x)", 8, "a finite number as the weight"),
        (r#""abc"#, 5, "a closing quote"),
        (r#""a\b""#, 4, "`\"` or `\\`"),
        (r#""""#, 1, "a word between the quotes"),
        (r#"a"b""#, 2, "no quote inside a word"),
        (r#""a"b"#, 4, "white space"),
        ("日本 語", 4, "`+`, `-` or the end"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.expected.starts_with(expected), "{text}: {error}");
    }
}

#[test]
fn two_adjacent_words_hint_at_the_plus_of_a_url() {
    assert!(parse("king woman").unwrap_err().to_string().contains("%2B"));
}

#[test]
fn other_dashes_spaced_weights_and_parentheses_in_words_have_hints() {
    for (text, column, hint) in [
        ("king \u{2212} man", 6, "write - or +"),
        ("king \u{2013}man + woman", 6, "write - or +"),
        ("king \u{2014} man", 6, "write - or +"),
        ("(king \u{ff0b} man)", 7, "write - or +"),
        ("2 * king", 3, "2*king"),
        ("2 \u{d7} king", 3, "2*king"),
        ("king / 2", 6, "0.5*king"),
        ("(king \u{f7}2)", 7, "0.5*king"),
        ("mercury_(planet) - sun", 9, "double quotes"),
        ("sun + mercury_(planet)", 15, "double quotes"),
        ("(sun + f(x))", 9, "double quotes"),
        ("smile :)", 7, "%2B"),
        (":) + smile", 2, "double quotes"),
    ] {
        let error = parse(text).expect_err(text);
        assert_eq!(error.column, column, "{text}: {error}");
        assert!(error.to_string().contains(hint), "{text}: {error}");
    }
    // At the start they are letters: the model may have such words.
    check("\u{2013} + a", &[("\u{2013}", 1.0), ("a", 1.0)]);
    check("\u{2212}man", &[("\u{2212}man", 1.0)]);
}

#[test]
fn nesting_and_terms_are_bounded() {
    let nested = |depth| "(".repeat(depth) + "a" + &")".repeat(depth);
    assert_eq!(parse(&nested(MAX_NESTING)).unwrap().len(), 1);
    assert_eq!(parse(&nested(MAX_NESTING + 1)).unwrap_err().column, MAX_NESTING + 1);
    assert!(parse(&nested(1_000_000)).is_err(), "and the stack holds");
    let sum = |terms: usize| vec!["a"; terms].join(" + ");
    assert_eq!(parse(&sum(MAX_TERMS)).unwrap().len(), MAX_TERMS);
    assert_eq!(parse(&sum(MAX_TERMS + 1)).unwrap_err().column, 4 * MAX_TERMS + 1);
}

proptest! {
    #[test]
    fn no_text_panics_and_every_error_is_within_the_text(text in r#"[ab+\-*()" \\.0-9e日]{0,40}"#) {
        match parse(&text) {
            Ok(terms) => prop_assert!(terms.iter().all(|t| t.weight.is_finite() && !t.word.is_empty())),
            Err(e) => prop_assert!((1..=text.chars().count() + 1).contains(&e.column)),
        }
    }

    #[test]
    fn whatever_is_quoted_comes_back(
        words in prop::collection::vec(("\\PC{1,10}", -9i32..10), 1..8),
    ) {
        let text = words.iter().fold(String::new(), |text, (word, weight)| {
            let escaped = word.replace('\\', "\\\\").replace('"', "\\\"");
            let sign = if *weight < 0 { '-' } else { '+' };
            format!("{text} {sign}{}*\"{escaped}\"", weight.abs())
        });
        let expected: Vec<_> = words.into_iter().map(|(w, weight)| (w, f64::from(weight))).collect();
        prop_assert_eq!(terms(&text), expected);
    }
}
