//! word2vec binaries with words that are no words: skipped and counted, or refused if the rows
//! after them are not where they should be.

use contract::Row;
use model_store::prepare::PrepareOptions;

use super::support::Scratch;

fn skipping() -> PrepareOptions {
    PrepareOptions { skip_bad_rows: true, ..Default::default() }
}

fn numbers(row: usize) -> [f32; 8] {
    std::array::from_fn(|i| ((row * 11 + i * 3 + 1) as f32).sin())
}

/// A file of these words.
fn binary(words: &[&[u8]], end: &[u8]) -> Vec<u8> {
    let mut bytes = format!("{} 8\n", words.len()).into_bytes();
    for (row, word) in words.iter().enumerate() {
        let numbers = numbers(row).map(f32::to_le_bytes).concat();
        bytes.extend([*word, b" ", &numbers, end].concat());
    }
    bytes
}

#[test]
fn a_row_with_a_bad_word_is_skipped_and_the_others_are_whole() {
    // word2vec.c keeps 99 bytes of a token: here 49 letters and half of another.
    let long = "а".repeat(50).into_bytes();
    let cut = &long[..99];
    for (bad, reason) in [
        (
            cut,
            "the word is not valid UTF-8 (byte 99), as if cut inside a character; \
             name its encoding with --encoding",
        ),
        (b"caf\xe9s", "the word is not valid UTF-8 (byte 4); name its encoding with --encoding"),
        (b"x\ty", "the word contains control characters"),
        (b"", "the word is empty"),
    ] {
        for end in [&b"\n"[..], b""] {
            for at in 0..5 {
                let mut words: [&[u8]; 5] = [b"</s>", "год".as_bytes(), b"a", b"the", b"of"];
                words[at] = bad;
                let scratch = Scratch::new();
                let bytes = binary(&words, end);
                let said = scratch.refused(&bytes, &PrepareOptions::default());
                let row = format!("vectors.any, row {at}, byte ");
                for part in [&row[..], reason, "(skip such rows with --skip-bad-rows)"] {
                    assert!(said.contains(part), "{part:?} is missing: {said}");
                }
                assert!(!said.contains("earlier word"), "{said}");

                let summary = scratch.prepare(&bytes, &skipping()).unwrap();
                assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (4, 1));
                let first = summary.first_bad_row.unwrap();
                assert_eq!(first, format!("row {at}: {reason}"));
                let model = scratch.open();
                for (row, kept) in (0..5).filter(|&row| row != at).zip(0..) {
                    assert_eq!(model.words().word(Row(kept)).as_bytes(), words[row]);
                    assert_eq!(model.table().row(Row(kept)), numbers(row));
                }
            }
        }
    }
}

#[test]
fn bad_words_far_into_a_large_file_are_counted() {
    // Several chunks; a bad word also where one begins or ends.
    const ROWS: usize = 90_000;
    let names: Vec<Vec<u8>> = (0..ROWS)
        .map(|row| match row % 10 {
            7 => b"\xd0\xb0\xd0".to_vec(),
            _ => format!("w{row}").into_bytes(),
        })
        .collect();
    let words: Vec<&[u8]> = names.iter().map(Vec::as_slice).collect();
    for end in [&b"\n"[..], b""] {
        let scratch = Scratch::new();
        let summary = scratch.prepare(binary(&words, end), &skipping()).unwrap();
        let skipped = summary.provenance.bad_rows_skipped;
        assert_eq!((summary.rows, skipped), (ROWS / 10 * 9, ROWS as u64 / 10));
        let model = scratch.open();
        for row in [0, 6, 8, 45_000, ROWS - 1] {
            let found = model.words().row(&format!("w{row}")).unwrap();
            assert_eq!(model.table().row(found), numbers(row));
        }
    }
}

#[test]
fn rows_that_are_misplaced_are_refused_even_if_bad_rows_may_be_skipped() {
    let words: [&[u8]; 5] = [b"the", b"new york", b"of", b"and", b"to"];
    for end in [&b"\n"[..], b""] {
        let said = Scratch::new().refused(binary(&words, end), &skipping());
        for part in ["row 2, byte ", "the header may be wrong", "an earlier word contains a space"]
        {
            assert!(said.contains(part), "{part:?} is missing: {said}");
        }
        assert!(!said.contains("--skip-bad-rows"), "{said}");
    }
}
