//! Expressions that somebody is typing: the word at their end, and words as they must be written.

use super::parse;
use super::pieces::weight_length;

/// The unfinished word at the end of the text: where it begins, after its sign and weight, and its
/// text so far, without quotes.
pub fn open_piece(text: &str) -> (usize, String) {
    let (mut start, mut is_quoted, mut is_escaped) = (0, false, false);
    for (at, c) in text.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' if is_quoted => is_escaped = true,
            '"' => is_quoted = !is_quoted,
            _ if is_quoted => {}
            _ if c.is_whitespace() || c == '(' || c == ')' => start = at + c.len_utf8(),
            _ => {}
        }
    }
    if text[start..].starts_with(['+', '-']) {
        start += 1;
    }
    if let Some(length) = weight_length(&text[start..]) {
        start += length + 1;
    }
    let word = &text[start..];
    let word = match word.strip_prefix('"') {
        Some(word) => word.replace("\\\"", "\"").replace("\\\\", "\\"),
        None => word.to_owned(),
    };
    (start, word)
}

/// A word as it stands in an expression: in quotes if it must, or if that is wanted.
pub fn as_term(word: &str, quoted: bool) -> String {
    let is_plain =
        matches!(parse(word).as_deref(), Ok([term]) if term.word == word && term.weight == 1.0);
    if is_plain && !quoted {
        return word.to_owned();
    }
    format!("\"{}\"", word.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_open_piece_is_what_would_be_typed_on() {
        for (text, start, word) in [
            ("", 0, ""),
            ("fro", 0, "fro"),
            ("king - ma", 7, "ma"),
            ("king -ma", 6, "ma"),
            ("-2*ma", 3, "ma"),
            ("(king + 0.5*(ma", 13, "ma"),
            ("well-kno", 0, "well-kno"),
            ("日本 + 語", 9, "語"),
            ("a + \"new y", 4, "new y"),
            ("\"say \\\"h", 0, "say \"h"),
            ("a ", 2, ""),
        ] {
            assert_eq!(open_piece(text), (start, word.to_owned()), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_written_word_reads_as_itself(word in "\\PC{1,12}", quoted: bool) {
            let terms = parse(&as_term(&word, quoted)).unwrap();
            prop_assert_eq!(terms.len(), 1);
            prop_assert_eq!((terms[0].word.as_str(), terms[0].weight), (word.as_str(), 1.0));
        }

        #[test]
        fn no_text_panics(text in r#"[ab+\-*()" \\.0-9e日]{0,40}"#) {
            let (start, _) = open_piece(&text);
            prop_assert!(text.is_char_boundary(start));
        }
    }
}
