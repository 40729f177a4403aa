//! Where rows of word2vec's binary format end, and which bad words leave them where they are.

use super::*;

const DIM: usize = 4;

fn components(row: usize) -> [f32; DIM] {
    std::array::from_fn(|i| ((row * 7 + i * 3 + 1) as f32).sin())
}

/// A row of a file: its word, its components, and what ends it.
fn row(word: &[u8], number: usize, end: &[u8]) -> Vec<u8> {
    let numbers = components(number).map(f32::to_le_bytes).concat();
    [word, b" ", &numbers[..], end].concat()
}

fn rows(words: &[&[u8]], end: &[u8]) -> Vec<u8> {
    (0..).zip(words).flat_map(|(number, word)| row(word, number, end)).collect()
}

const WORDS: [&[u8]; 8] = [b"the", b"of", b"and", b"to", b"a", b"in", b"that", b"is"];

/// The number of rows that is found in a file that arrives in two pieces, and what is unusual.
fn framed(announced: u64, bytes: &[u8], cut: usize) -> Result<(u64, Vec<String>), BadBytes> {
    let mut framing = RowFraming::new(DIM, announced);
    let (used, first) = framing.whole(&bytes[..cut], false)?;
    let (_, second) = framing.whole(&bytes[used..], true)?;
    Ok((first + second, framing.warnings()))
}

#[test]
fn a_header_may_be_off_by_one_and_zero_bytes_may_follow() {
    for end in [&b"\n"[..], b""] {
        let plain = rows(&WORDS, end);
        let padded = [&plain[..], &[0; 600]].concat();
        for cut in 0..=plain.len() {
            assert_eq!(framed(8, &plain, cut).unwrap(), (8, vec![]), "{cut}");
            for announced in [7, 9] {
                let said = format!("its header announces {announced} rows, but it has 8");
                assert_eq!(framed(announced, &plain, cut).unwrap(), (8, vec![said]), "{cut}");
            }
        }
        for cut in (0..=padded.len()).step_by(3) {
            let said = "the zero bytes at its end (600) were left out".to_owned();
            assert_eq!(framed(8, &padded, cut).unwrap(), (8, vec![said]), "{cut}");
            for announced in [7, 9] {
                assert_eq!(framed(announced, &padded, cut).unwrap().1.len(), 2, "{cut}");
            }
            for announced in [1, 6, 10, 1000] {
                assert!(framed(announced, &padded, cut).is_err(), "{announced} rows");
                assert!(framed(announced, &plain, cut.min(plain.len())).is_err());
            }
        }
        let cut_off = &plain[..plain.len() - end.len() - 1];
        for announced in [8, 9] {
            let said = framed(announced, cut_off, 40).unwrap_err();
            assert_eq!((said.record, said.reason.contains("inside this row")), (Some(7), true));
        }
    }
}

#[test]
fn a_bad_word_alone_does_not_misplace_its_row() {
    let cut_word = [&"слово".repeat(9).into_bytes()[..], b"\xd0"].concat();
    let bad: [&[u8]; 5] = [b"", b"x\ty", b"caf\xe9", &cut_word, b"\xff\xfe"];
    for end in [&b"\n"[..], b""] {
        for at in 0..WORDS.len() {
            for word in bad {
                let mut words = WORDS;
                words[at] = word;
                let bytes = rows(&words, end);
                // A later chunk begins with the line feed of the row before.
                let later = [end, &bytes[..bytes.len() - end.len()]].concat();
                for (bytes, first) in [(bytes, 0), (later, 1000)] {
                    let parsed =
                        BinaryRows::new(DIM, &rows(&WORDS, end), None).parse(&bytes, first);
                    let what = format!("{word:?} in row {at}, {end:?}");
                    assert_eq!((parsed.records, &parsed.bad[..]), (8, &[at as u32][..]), "{what}");
                    assert!(parsed.first_bad.as_ref().unwrap().may_be_skipped, "{what}");
                    let good = (0..8).filter(|&row| row != at).flat_map(components);
                    assert_eq!(parsed.components, good.collect::<Vec<f32>>(), "{what}");
                }
            }
        }
        // All long words of a text without spaces are cut.
        let mut words = WORDS;
        words[2..6].fill(&cut_word);
        let parsed = BinaryRows::new(DIM, &rows(&words, end), None).parse(&rows(&words, end), 0);
        assert_eq!(parsed.bad, [2, 3, 4, 5]);
        assert!(parsed.first_bad.unwrap().may_be_skipped);
    }
}

#[test]
fn a_word_with_a_space_misplaces_the_rows_after_it() {
    let long: [&[u8]; 3] = [b"new york", b"at name@domain.com", b"new york city"];
    let short: [&[u8]; 2] = [b"a b", b"x 1"];
    // Without line feeds, two bytes of a number may look like letters.
    for (end, all) in [(&b"\n"[..], [&long[..], &short].concat()), (b"", long.to_vec())] {
        for spaced in all {
            for at in 0..WORDS.len() - 1 {
                let mut words = WORDS;
                words[at] = spaced;
                let bytes = rows(&words, end);
                let parsed = BinaryRows::new(DIM, &bytes, None).parse(&bytes, 0);
                let bad = parsed.first_bad.expect("a row after it begins with numbers");
                assert!(!bad.may_be_skipped, "{spaced:?} in row {at}: {}", bad.reason);
                assert!(bad.reason.contains("an earlier word contains a space"), "{}", bad.reason);
            }
        }
    }
}

#[test]
fn a_word_cut_inside_a_character_is_told_from_others() {
    assert_eq!(check_word("naïve".as_bytes(), None), Ok("naïve"));
    let reason = |word: &[u8]| check_word(word, None).unwrap_err();
    let cure = "name its encoding with --encoding";
    assert_eq!(
        reason(b"na\xc3"),
        format!("the word is not valid UTF-8 (byte 3), as if cut inside a character; {cure}")
    );
    assert_eq!(reason(b"na\xefve"), format!("the word is not valid UTF-8 (byte 3); {cure}"));
    assert_eq!(reason(b""), "the word is empty");
    assert_eq!(reason(b"a\tb"), "the word contains control characters");
}

#[test]
fn words_in_another_encoding_are_decoded_wherever_they_are_looked_at() {
    let encoding = Some("shift_jis".parse::<TextEncoding>().unwrap());
    let good: &[u8] = b"\x93\xfa\x96{";
    let cut_word = [&b"\x93\xfa".repeat(20)[..], b"\x93"].concat();
    for end in [&b"\n"[..], b""] {
        for at in 0..WORDS.len() {
            let mut words: [&[u8]; 8] = [good; 8];
            words[at] = &cut_word;
            let bytes = rows(&words, end);
            let parsed = BinaryRows::new(DIM, &bytes, encoding).parse(&bytes, 0);
            assert_eq!((parsed.records, &parsed.bad[..]), (8, &[at as u32][..]), "{end:?}");
            let bad = parsed.first_bad.unwrap();
            assert!(bad.may_be_skipped && bad.reason.contains("not Shift_JIS"), "{}", bad.reason);
            assert_eq!(parsed.words, "日本".repeat(7));
        }
        let mut words: [&[u8]; 8] = [good; 8];
        words[2..6].fill(&cut_word);
        let bytes = rows(&words, end);
        let parsed = BinaryRows::new(DIM, &bytes, encoding).parse(&bytes, 0);
        assert!(parsed.first_bad.unwrap().may_be_skipped, "all long words may be cut: {end:?}");
    }
}

#[test]
fn the_first_rows_end_where_they_do() {
    for end in [&b"\n"[..], b""] {
        let bytes = rows(&WORDS, end);
        let mut framing = RowFraming::new(DIM, 8);
        for count in 0..=8 {
            let found = framing.end_of(&bytes, count as u64).unwrap();
            let whole = rows(&WORDS[..count], end);
            assert!(whole[..found] == bytes[..found] && whole.len() - found <= end.len());
        }
        assert_eq!(framing.end_of(&bytes[..40], 8), None, "not all are there");
        assert_eq!(framing.end_of(&bytes, 9), None, "more than the header announces");
        // One row more than that.
        framing.rows = 7;
        assert_eq!(framing.whole(&bytes, true).unwrap().1, 8);
        assert_eq!((framing.end_of(b"", 1), framing.end_of(b"", 0)), (None, Some(0)));
    }
}
