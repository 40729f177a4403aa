//! The characters that stand for bytes in vocabularies of GPT-2 and those after it.

/// The character for a byte: itself where it can be seen, or else one from U+0100 on.
pub(super) fn byte_char(byte: u8) -> char {
    let at = u32::from(byte);
    // Those that can't be seen, in their order: 0 to 0x20, 0x7f to 0xa0, 0xad.
    let sign = match byte {
        0..=0x20 => 0x100 + at,
        0x7f..=0xa0 => 0x121 + at - 0x7f,
        0xad => 0x143,
        _ => at,
    };
    char::from_u32(sign).expect("below 0x144")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_can_be_seen_are_themselves_and_no_two_are_the_same() {
        assert_eq!("a \n\0\u{7f}".bytes().map(byte_char).collect::<String>(), "aĠĊĀġ");
        assert_eq!([0xa0, 0xa1, 0xad, 0xff].map(byte_char), ['ł', '¡', 'Ń', 'ÿ']);
        let mut all: Vec<char> = (0..=255).map(byte_char).collect();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), 256);
    }
}
