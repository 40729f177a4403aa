//! Classes of characters as the regular expressions of `tokenizers` have them, of Unicode 16.
//!
//! White space is the standard library's, and punctuation is in [`super::bert`].

use unicode_general_category::{GeneralCategory, get_general_category};

/// `\p{L}`.
pub(super) fn is_letter(sign: char) -> bool {
    use GeneralCategory as C;
    if sign.is_ascii() {
        return sign.is_ascii_alphabetic();
    }
    matches!(
        get_general_category(sign),
        C::UppercaseLetter
            | C::LowercaseLetter
            | C::TitlecaseLetter
            | C::ModifierLetter
            | C::OtherLetter
    )
}

/// `\p{N}`.
pub(super) fn is_number(sign: char) -> bool {
    use GeneralCategory as C;
    if sign.is_ascii() {
        return sign.is_ascii_digit();
    }
    matches!(get_general_category(sign), C::DecimalNumber | C::LetterNumber | C::OtherNumber)
}

/// `\w`: what is alphabetic, marks, decimal digits, connectors, and the two joiners.
pub(super) fn is_word(sign: char) -> bool {
    use GeneralCategory as C;
    if sign.is_ascii() {
        return sign.is_ascii_alphanumeric() || sign == '_';
    }
    match get_general_category(sign) {
        // The standard library knows characters of a newer Unicode.
        C::Unassigned => false,
        C::NonspacingMark
        | C::SpacingMark
        | C::EnclosingMark
        | C::DecimalNumber
        | C::ConnectorPunctuation => true,
        _ => sign.is_alphabetic() || matches!(sign, '\u{200c}' | '\u{200d}'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_have_as_many_characters_as_in_tokenizers() {
        let count = |is: fn(char) -> bool| {
            (0..0x11_0000).filter_map(char::from_u32).filter(|c| is(*c)).count()
        };
        // Counted with tokenizers 0.23.3, a character at a time.
        assert_eq!(count(is_letter), 141_028);
        assert_eq!(count(is_number), 1_911);
        assert_eq!(count(is_word), 144_667);
        assert_eq!(count(char::is_whitespace), 25);
    }
}
