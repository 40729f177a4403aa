//! Escapes untrusted text for a terminal: the words of a model and the messages of a service may
//! contain anything.

/// Returns the text on one line. Escapes, as `\u{…}`, every character that would control the
/// terminal or change how the text around it reads.
pub fn escaped(text: &str) -> String {
    let one = |c: char| if is_harmless(c) { c.to_string() } else { c.escape_unicode().to_string() };
    text.chars().map(one).collect()
}

/// As [`escaped`], but keeps line breaks: errors may have several lines.
pub fn escaped_lines(text: &str) -> String {
    text.split('\n').map(escaped).collect::<Vec<_>>().join("\n")
}

/// Whether a character may be printed to a terminal unchanged. Direction marks, line ends and
/// invisible characters may not: they could make one text look like another.
pub fn is_harmless(c: char) -> bool {
    !c.is_control()
        && !matches!(c,
            '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_steers_or_hides_is_escaped_and_all_else_is_not() {
        for wrong in "\0\u{7}\u{1b}\u{7f}\u{9b}\n\u{200e}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2066}\u{2069}\u{feff}"
            .chars()
        {
            let expected = format!("a\\u{{{:x}}}b", u32::from(wrong));
            assert_eq!(escaped(&format!("a{wrong}b")), expected);
        }
        // Zero-width joiners are parts of words.
        let right = "frög 日本 new york می\u{200c}خواهم \u{1f469}\u{200d}\u{1f33e}";
        assert_eq!(escaped(right), right);
        assert_eq!(escaped_lines("a\n\u{1b}b\n"), "a\n\\u{1b}b\n");
    }
}
