//! Keys of rows, which are the words of rows in a model folder.

/// Maximum length of a key, in bytes.
pub const MAX_KEY_BYTES: usize = 4096;

/// What is wrong with a key, with the cure.
pub(crate) fn fault(key: &str) -> Option<&'static str> {
    match key {
        "" => Some("its key is empty; give each row a key of its own"),
        key if key.len() > MAX_KEY_BYTES => Some("its key is longer than 4096 bytes; shorten it"),
        key if key.contains('\n') => {
            Some("its key has a line feed; replace it, for example by a space")
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_lines_of_bounded_length() {
        let long = "é".repeat(MAX_KEY_BYTES / 2);
        for key in ["a", " ", "a/b", "x\r", &long] {
            assert_eq!(fault(key), None, "{key:?}");
        }
        for key in ["", "\n", "a\nb", &(long + "a")] {
            assert!(fault(key).is_some_and(|fault| fault.contains(';')), "{key:?}");
        }
    }
}
