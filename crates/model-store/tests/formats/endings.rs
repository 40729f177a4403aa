//! Files that are whole, but for their ends: empty lines, zero bytes, a header that counts one row
//! more or less.

use std::fs;

use contract::Metric;
use model_store::prepare::{PrepareOptions, Summary, VectorsFormat};

use super::files::{glove, npy, word2vec_binary};
use super::support::{Packing, ROWS, Scratch, WORDS, components, words_text};

/// Prepares a file of the example rows, and checks that all are there.
#[track_caller]
fn whole(content: impl AsRef<[u8]>, scratch: &Scratch, options: &PrepareOptions) -> Summary {
    let summary = scratch.prepare(content, options).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (4, 0));
    let model = scratch.open();
    let expected: Vec<f32> = ROWS.iter().flat_map(|(_, row)| *row).collect();
    assert_eq!(model.table().components(), expected);
    assert_eq!(model.words().row(ROWS[3].0), Some(contract::Row(3)));
    summary
}

#[track_caller]
fn warnings(content: impl AsRef<[u8]>) -> Vec<String> {
    whole(content, &Scratch::new(), &PrepareOptions::default()).warnings
}

#[test]
fn whole_files_have_no_warnings() {
    assert_eq!(warnings(glove(" ", "\n")), [""; 0]);
    assert_eq!(warnings(glove(" ", "\n").trim_end()), [""; 0], "no line feed at the end");
    assert_eq!(warnings(format!("4 3\n{}", glove(" ", " \r\n"))), [""; 0]);
    assert_eq!(warnings(glove(" ", "\r\r\n")), [""; 0]);
    assert_eq!(warnings(format!("4 3\r\r\n{}", glove(" ", "\r\r\n"))), [""; 0]);
    let scratch = Scratch::new();
    let options = scratch.with_words(words_text().replace('\n', "\r\r\n"));
    let array = npy("<f4", "False", "(4, 3)", &components());
    assert_eq!(whole(array, &scratch, &options).warnings, [""; 0]);
    for end in [&b"\n"[..], b""] {
        assert_eq!(warnings(word2vec_binary(end)), [""; 0]);
    }
}

#[test]
fn empty_lines_and_zero_bytes_at_the_end_of_text_are_left_out() {
    for (end, expected) in [
        ("\n", "the empty lines at its end (1) were left out"),
        ("\n\n", "the empty lines at its end (2) were left out"),
        (" \r\n\t", "the empty lines at its end (2) were left out"),
        ("\0\0\0\0\0", "the zero bytes at its end (5) were left out"),
        ("\n\0\0\0", "the zero bytes at its end (3) were left out"),
    ] {
        for header in ["", "4 3\n", "\u{feff}"] {
            let content = format!("{header}{}{end}", glove(" ", "\n"));
            for packing in [Packing::Plain, Packing::Gzip, Packing::Zip] {
                assert_eq!(warnings(packing.pack(content.as_bytes())), [expected], "{content:?}");
            }
        }
    }
    // Between rows they are bad rows, as ever; and what may have been cut off is one.
    let scratch = Scratch::new();
    for (content, expected) in [
        ("a 1 2\n\nb 1 2\n", "line 2: the line is empty"),
        ("a 1 2\nb 1 2\0\0", "line 2: component 2 is not a number"),
        ("a 1 2\n\n\nb 1\n\n", "line 2: the line is empty"),
    ] {
        let said = scratch.refused(content, &PrepareOptions::default());
        assert!(said.contains(expected), "{said}");
    }
}

#[test]
fn blank_lines_across_chunks_are_counted_and_rows_keep_their_numbers() {
    // The end of the rows, and where empty lines begin, is at the end of a chunk or beside it.
    let row = format!("{} 1 2\n", "w".repeat(57));
    for more in 0..3 {
        let rows: String = (0..((4 << 20) / 64 + more)).map(|n| format!("{n}{row}")).collect();
        let count = rows.lines().count();
        let content = rows.clone() + &"\n".repeat(2 << 20);
        let summary = Scratch::new().prepare(&content, &PrepareOptions::default()).unwrap();
        assert_eq!(summary.rows, count);
        assert_eq!(summary.warnings, ["the empty lines at its end (2097152) were left out"]);
        let said = Scratch::new().refused(content + "last 1\n", &PrepareOptions::default());
        assert!(said.contains(&format!("line {}: the line is empty", count + 1)), "{said}");
    }
}

#[test]
fn a_header_that_is_off_by_one_is_read_with_a_warning() {
    for announced in [3, 5] {
        let expected = format!("its header announces {announced} rows, but it has 4");
        let text = format!("{announced} 3\n{}", glove(" ", "\n"));
        let binary =
            |end| [format!("{announced} 3\n").as_bytes(), &word2vec_binary(end)[4..]].concat();
        for content in [text.clone().into_bytes(), binary(b"\n"), binary(b"")] {
            for packing in Packing::ALL {
                assert_eq!(warnings(packing.pack(&content)), [&expected[..]], "{packing:?}");
            }
        }
        // Both, and with bad rows.
        let two = warnings(format!("{text}\n\n"));
        assert_eq!(two, ["the empty lines at its end (2) were left out", &expected[..]]);
        let skipping = PrepareOptions { skip_bad_rows: true, ..Default::default() };
        let content = text.replace("zero 0 0 0", "zero 0 x 0");
        let summary = Scratch::new().prepare(content, &skipping).unwrap();
        assert_eq!((summary.rows, &summary.warnings[..]), (3, &[expected][..]));
    }
}

#[test]
fn zero_bytes_after_compressed_data_and_after_the_last_row_are_left_out() {
    let text = glove(" ", "\n");
    for (packing, name) in
        [(Packing::Gzip, "gzip"), (Packing::Bzip2, "bzip2"), (Packing::Zstd, "zstd")]
    {
        let packed = packing.pack(text.as_bytes());
        let padded = [&packed[..], &[0; 512]].concat();
        let expected = format!("the zero bytes after its {name} data (512) were left out");
        assert_eq!(warnings(padded), [expected]);
        let said = Scratch::new()
            .refused([&packed[..], &[0; 512], b"x"].concat(), &PrepareOptions::default());
        assert!(said.contains("cut off or damaged"), "{said}");
        // Two files, one after the other.
        let (one, other) = text.split_at(text.find("zero").unwrap());
        let two = [packing.pack(one.as_bytes()), packing.pack(other.as_bytes())].concat();
        assert_eq!(warnings(two), [""; 0]);
    }
    let expected = "the zero bytes at its end (99) were left out";
    let padded = |bytes: Vec<u8>| [&bytes[..], &[0; 99]].concat();
    for end in [&b"\n"[..], b""] {
        assert_eq!(warnings(padded(word2vec_binary(end))), [expected]);
    }
    let array = npy("<f4", "False", "(4, 3)", &components());
    let scratch = Scratch::new();
    let options = scratch.with_words(words_text());
    assert_eq!(whole(padded(array.clone()), &scratch, &options).warnings, [expected]);
    let other = Scratch::new();
    let options = other.with_words(words_text());
    let said = other.refused([&array[..], &[0, 0, 1]].concat(), &options);
    assert!(said.contains("more data after its 4 rows"), "{said}");
}

#[test]
fn a_words_file_may_end_in_empty_lines() {
    let array = npy("<f4", "False", "(4, 3)", &components());
    for (end, expected) in [
        ("\n", "words.any: the empty lines at its end (1) were left out"),
        ("\r\n\r\n", "words.any: the empty lines at its end (2) were left out"),
        ("\0\0", "words.any: the zero bytes at its end (2) were left out"),
    ] {
        for packing in [Packing::Plain, Packing::Xz] {
            let scratch = Scratch::new();
            let words = words_text() + end;
            let options = scratch.with_words(packing.pack(words.as_bytes()));
            assert_eq!(whole(&array, &scratch, &options).warnings, [expected]);
        }
    }
    let scratch = Scratch::new();
    for words in ["the\n\nzero\nZ\n", "\nthe\nzero\nZ\n", "the\n\n\nzero\n\n"] {
        let said = scratch.refused(&array, &scratch.with_words(words));
        assert!(said.contains(": it is empty; a words file has one word per line"), "{said}");
    }
    // Empty lines of words and rows, of a matrix.
    let options = scratch.with_words("the\nof\n\n");
    let summary = scratch.prepare("0.5 1\n2 3\n\n", &options).unwrap();
    let of_words = "words.any: the empty lines at its end (1) were left out";
    assert_eq!(summary.warnings, [of_words, "the empty lines at its end (1) were left out"]);
}

#[test]
fn biases_may_be_followed_by_zero_bytes() {
    let biases = [0.5f32, -1.0, 0.0, 2.0].map(f32::to_le_bytes).concat();
    let array = npy("<f4", "False", "(4,)", &biases);
    for (content, expected) in [
        (array.clone(), None),
        (
            [&array[..], &[0; 9]].concat(),
            Some("words.any: the zero bytes at its end (9) were left out"),
        ),
        (
            b"0.5\n-1\n0\n2\n\0".to_vec(),
            Some("words.any: the zero bytes at its end (1) were left out"),
        ),
    ] {
        for packing in [Packing::Plain, Packing::Zstd] {
            let scratch = Scratch::new();
            fs::write(scratch.path(WORDS), packing.pack(&content)).unwrap();
            let biases = Some(scratch.path(WORDS));
            let options = PrepareOptions { metric: Metric::Dot, biases, ..Default::default() };
            let summary = whole(glove(" ", "\n"), &scratch, &options);
            assert_eq!(summary.warnings, Vec::from_iter(expected));
            assert_eq!(scratch.open().table().biases(), Some(&[0.5, -1.0, 0.0, 2.0][..]));
        }
    }
    // Other bytes may be numbers, and zero bytes do not stand for a number that is missing.
    for content in [[&array[..], b"\0x"].concat(), array[..array.len() - 1].to_vec()] {
        let scratch = Scratch::new();
        fs::write(scratch.path(WORDS), content).unwrap();
        let biases = Some(scratch.path(WORDS));
        let options = PrepareOptions { metric: Metric::Dot, biases, ..Default::default() };
        let said = scratch.refused(glove(" ", "\n"), &options);
        assert!(said.contains("bytes follow"), "{said}");
    }
}

#[test]
fn a_file_of_zero_bytes_is_a_download_that_was_not_finished() {
    for bytes in [1, 4096, 9 << 20] {
        let said = Scratch::new().refused(vec![0; bytes], &PrepareOptions::default());
        assert!(said.contains("nothing but zero bytes") && said.contains("download"), "{said}");
    }
    let format = Some(VectorsFormat::Glove);
    let options = PrepareOptions { format, ..Default::default() };
    let rest = [b"a 1 2\nb 1 2\n", &vec![0; 9 << 20][..]].concat();
    let said = Scratch::new().refused(rest, &options);
    assert!(said.contains("line 3") && said.contains("MiB of zero bytes"), "{said}");
}
