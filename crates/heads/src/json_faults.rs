//! The usual mistakes in text that should be JSON: other languages' ways of writing it, and the
//! damage that shells and cuts do.

use memchr::memchr;
use serde_json::Error;

const HALF: &str = "an escape such as \\ud83d is half of a character: the text was cut inside it";
const LINE_BREAK: &str = "in a string, write a line break as \\n and a tab as \\t";
const BACKSLASH: &str = "in a string, write a backslash as \\\\";
const COMMA: &str = "remove the comma behind the object";
const NOT_FINITE: &str = "JSON has no NaN and no infinities";
const PYTHON: &str = "JSON has null, true and false; in Python, json.dumps writes them";
const SINGLE_QUOTES: &str =
    "JSON has double quotes, not single ones; in Python, json.dumps writes them";
const SHELL_QUOTES: &str = "the single quotes around it were not removed: in Windows' cmd, write \
                            double ones around it, and \\\" inside";
const BARE_NAME: &str = "names of fields are between double quotes; in PowerShell and in Windows' \
                         cmd, write \\\" inside an argument";

/// The fault in a text of one line. It names no line: its caller names that of the file.
pub fn of_line(fault: &Error) -> String {
    fault.to_string().replace(" at line 1 column ", " at column ")
}

/// The cure if the fault that was found in this text is a usual mistake. It goes on after the
/// fault.
pub fn cure(text: &str, fault: &Error) -> Option<&'static str> {
    if !fault.is_syntax() {
        return None;
    }
    let line = text.split('\n').nth(fault.line().checked_sub(1)?)?;
    // Reading stopped at this character, or behind the first one of a name.
    let [at, before] = [1, 2].map(|back| {
        let start = fault.column().saturating_sub(back);
        line.get(start..).unwrap_or_default()
    });
    let said = fault.to_string();
    let is = |start: &str| said.starts_with(start);
    let has = |names: &[&str]| names.contains(&name(at)) || names.contains(&name(before));
    match () {
        () if is("unexpected end of hex escape") || is("lone leading surrogate") => Some(HALF),
        () if is("control character") => Some(LINE_BREAK),
        () if is("invalid escape") => Some(BACKSLASH),
        () if is("trailing characters") => at.starts_with(',').then_some(COMMA),
        () if text.trim_start().starts_with('\'') => Some(SHELL_QUOTES),
        () if at.starts_with('\'') => Some(SINGLE_QUOTES),
        () if is("key must be a string") => Some(BARE_NAME),
        () if has(&["NaN", "nan", "Infinity", "inf"]) => Some(NOT_FINITE),
        () if has(&["None", "True", "False"]) => Some(PYTHON),
        () => None,
    }
}

/// The name with which a text begins, perhaps after a sign; empty if it begins with none.
fn name(text: &str) -> &str {
    let text = text.strip_prefix('-').unwrap_or(text);
    text.split(|c: char| !c.is_ascii_alphanumeric()).next().unwrap_or_default()
}

/// The first escape of JSON that is half of a character, such as `\ud83d`. Whether it is refused
/// depends on who reads it, because the grammar of JSON allows it.
pub fn half_character(json: &str) -> Option<&str> {
    /// Bytes of an escape.
    const LENGTH: usize = 6;
    let bytes = json.as_bytes();
    let unit = |at: usize| {
        let digits = bytes.get(at..at + LENGTH)?.strip_prefix(b"\\u")?;
        u32::from_str_radix(str::from_utf8(digits).ok()?, 16).ok()
    };
    let mut at = 0;
    while let Some(next) = bytes.get(at..).and_then(|rest| memchr(b'\\', rest)) {
        at += next;
        at += match unit(at) {
            Some(0xd800..0xdc00) if matches!(unit(at + LENGTH), Some(0xdc00..0xe000)) => 2 * LENGTH,
            Some(0xd800..0xe000) => return json.get(at..at + LENGTH),
            Some(_) => LENGTH,
            // Of another character.
            None => 2,
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::Value;

    use super::*;

    fn cure_of(text: &str) -> Option<&'static str> {
        cure(text, &serde_json::from_str::<Value>(text).unwrap_err())
    }

    #[test]
    fn usual_mistakes_have_a_cure() {
        for (text, expected) in [
            ("{'word': 'frog'}", SINGLE_QUOTES),
            ("{\"word\": 'frog'}", SINGLE_QUOTES),
            ("{\"k\": 1,\n 'word': \"frog\"}", SINGLE_QUOTES),
            ("'{word:frog}'", SHELL_QUOTES),
            ("{word: \"frog\"}", BARE_NAME),
            ("{word:frog,k:5}", BARE_NAME),
            ("{\"vector\": [NaN, 1]}", NOT_FINITE),
            ("{\"vector\": [1, nan]}", NOT_FINITE),
            ("[Infinity]", NOT_FINITE),
            ("[-Infinity]", NOT_FINITE),
            ("[\n-inf]", NOT_FINITE),
            ("{\"label\": None}", PYTHON),
            ("[True]", PYTHON),
            ("{\"text\": \"a\nb\"}", LINE_BREAK),
            ("{\"text\": \"a\tb\"}", LINE_BREAK),
            ("{\"path\": \"C:\\Temp\"}", BACKSLASH),
            ("{\"text\": \"a\"},", COMMA),
            ("{\"text\": \"\\ud83d\"}", HALF),
            ("{\"text\": \"\\ude00\"}", HALF),
            ("{\"text\": \"\\ud83d\\u0041\"}", HALF),
            ("{\"text\": \"\\ud83d\\n\"}", HALF),
        ] {
            assert_eq!(cure_of(text), Some(expected), "{text}");
        }
        for text in [
            "",
            "frog",
            "{",
            "{\"k\": }",
            "{\"k\": 1} x",
            "{} {}",
            "info=1",
            "[1e]",
            "[tru]",
            "[ä]",
        ] {
            assert_eq!(cure_of(text), None, "{text}");
        }
    }

    #[test]
    fn halves_of_characters_are_found() {
        for (json, expected) in [
            ("\"\\ud83d\"", Some("\\ud83d")),
            ("\"a\\uD83D b\"", Some("\\uD83D")),
            ("\"\\ude00\"", Some("\\ude00")),
            ("\"\\ud83d\\ud83d\\ude00\"", Some("\\ud83d")),
            ("[\"\\n\", \"\\ud83d\\ude00\\ude00\"]", Some("\\ude00")),
            ("\"\\ud83d\\ude00\"", None),
            ("\"\\\\ud83d\"", None),
            ("\"\\u0041\\\"\"", None),
            ("\"😀\"", None),
            ("\\", None),
        ] {
            assert_eq!(half_character(json), expected, "{json}");
        }
    }

    proptest! {
        #[test]
        fn no_text_panics(
            text in "([{}\\[\\]\",:'\\\\ NanTrue1\n-]|\\\\u[d-e][8-9c][0-9]{2}|😀){0,20}",
        ) {
            if let Err(fault) = serde_json::from_str::<Value>(&text) {
                let _ = cure(&text, &fault);
            } else {
                // Text that is read as characters has no half of one.
                prop_assert_eq!(half_character(&text), None);
            }
        }
    }
}
