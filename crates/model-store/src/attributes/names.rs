//! Names that attributes may have.

/// Maximum length of a name, in bytes.
pub const MAX_NAME_BYTES: usize = 64;

/// The name by which filters choose rows by their words.
pub const KEY: &str = "key";

/// Keywords of filters, in any case. No attribute has such a name.
pub const KEYWORDS: [&str; 10] =
    ["AND", "OR", "NOT", "IN", "TO", "EXISTS", "IS", "NULL", "STARTS", "WITH"];

/// Values of booleans, which are no names either.
const TRUTHS: [&str; 2] = ["TRUE", "FALSE"];

/// Checks the name of an attribute: letters, digits, `_`, `-` and `.`, beginning with a letter or
/// `_`, at most [`MAX_NAME_BYTES`], and neither `key` nor a keyword of filters.
///
/// # Errors
/// Says what is wrong with the name, with the cure.
pub fn check_name(name: &str) -> Result<(), String> {
    let fault = if name.is_empty() {
        "it is empty"
    } else if name.len() > MAX_NAME_BYTES {
        "it is longer than 64 bytes"
    } else if !name.starts_with(|c: char| c.is_alphabetic() || c == '_') {
        "it does not begin with a letter or `_`"
    } else if name.contains(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '-' | '.'))) {
        "it has other characters than letters, digits, `_`, `-` and `.`"
    } else if name == KEY {
        "in filters, it is the word of a row"
    } else if KEYWORDS.iter().chain(&TRUTHS).any(|word| word.eq_ignore_ascii_case(name)) {
        "it is a keyword of filters"
    } else {
        return Ok(());
    };
    Err(format!("{name:?} can't be the name of an attribute: {fault}; rename it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_words_of_one_piece() {
        let long = "a".repeat(MAX_NAME_BYTES);
        for name in ["price", "_id", "a.b-c_1", "Größe", "Key", "value", "not_in", "in2", &long] {
            assert_eq!(check_name(name), Ok(()), "{name}");
        }
        for (name, part) in [
            ("", "is empty"),
            ("1st", "does not begin with a letter"),
            (".a", "does not begin with a letter"),
            ("-a", "does not begin with a letter"),
            ("unit price", "other characters"),
            ("a/b", "other characters"),
            ("a\n", "other characters"),
            (&(long + "a"), "longer than 64 bytes"),
            ("key", "the word of a row"),
            ("Null", "a keyword"),
            ("with", "a keyword"),
        ] {
            let error = check_name(name).unwrap_err();
            assert!(error.contains(part) && error.ends_with("rename it"), "{error}");
        }
    }
}
