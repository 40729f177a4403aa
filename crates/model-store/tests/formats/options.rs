//! The options of a file that name its first rows, its encoding and its words.

use std::fs;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;

use contract::{Metric, Row};
use encoding_rs::Encoding;
use model_store::ModelError;
use model_store::prepare::{
    Input, PrepareOptions, Progress, Separator, TextEncoding, VectorsFormat, prepare_folder,
};

use super::files::{examples, glove, npy, word2vec_binary};
use super::support::{
    INPUT, Packing, ROWS, Scratch, components, refused, separated, version, words_text,
};

fn first(limit: usize) -> PrepareOptions {
    PrepareOptions { limit: NonZeroUsize::new(limit), ..Default::default() }
}

fn encoded(name: &str) -> PrepareOptions {
    let encoding: TextEncoding = name.parse().unwrap_or_else(|error| panic!("{name}: {error}"));
    PrepareOptions { encoding: Some(encoding), ..Default::default() }
}

#[test]
fn the_first_rows_of_every_format_are_read_and_the_whole_file_is_named() {
    for example in examples() {
        for packing in Packing::ALL {
            let packed = packing.pack(&example.content);
            let whole = format!("blake3:{}", blake3::hash(&packed).to_hex());
            for limit in 1..=6 {
                let what = format!("{}, {packing:?}, {limit} rows", example.name);
                let scratch = Scratch::new();
                let mut options = first(limit);
                if example.has_words {
                    let with_words = scratch.with_words(words_text());
                    options = PrepareOptions { limit: options.limit, ..with_words };
                }
                options.format = example.format;
                options.dim = NonZeroUsize::new(3);
                let summary = scratch.prepare(&packed, &options);
                let summary = summary.unwrap_or_else(|e| panic!("{what}: {e}"));
                let model = scratch.open();
                assert_eq!((summary.rows, model.rows()), (limit.min(4), limit.min(4)), "{what}");
                for (row, (word, _)) in ROWS.iter().take(limit).enumerate() {
                    assert_eq!(model.words().word(Row(row as u32)), *word, "{what}");
                }
                let from = summary.provenance;
                let suffix = format!(", first {limit} rows");
                assert_eq!(from.source_format.ends_with(&suffix), limit <= 4, "{what}");
                assert_eq!(from.source_bytes, packed.len() as u64, "{what}");
                assert_eq!(from.source_checksum.to_string(), whole, "{what}");
            }
        }
    }
}

#[test]
fn the_first_rows_are_those_of_the_file_cut_there() {
    let line = |row: usize| format!("word{row} 0.125 -{row} 1234.5\n");
    let rows: Vec<String> = (0..100_000).map(line).collect();
    let text = rows.concat();
    let packed = Packing::Gzip.pack(text.as_bytes());
    // In the first chunk, and in others.
    for limit in [1, 20_000, 65_535, 99_999, 100_000, 100_001] {
        let head = rows[..limit.min(rows.len())].concat();
        let (expected, _) = version(&head, &PrepareOptions::default());
        for content in [text.as_bytes(), &packed] {
            let (found, _) = version(content, &first(limit));
            assert_eq!(found, expected, "{limit} rows of {} bytes", content.len());
        }
        // Its header is that of the whole file.
        let (found, _) = version(format!("{} 3\n{text}", rows.len()), &first(limit));
        assert_eq!(found, expected, "{limit} rows after a header");
    }
    let mut binary = format!("{} 3\n", rows.len()).into_bytes();
    for row in 0..rows.len() {
        binary.extend(format!("word{row} ").as_bytes());
        [0.125, -(row as f32), 1234.5].iter().for_each(|x| binary.extend(x.to_le_bytes()));
    }
    let (expected, _) = version(rows[..75_000].concat(), &PrepareOptions::default());
    assert_eq!(version(&binary, &first(75_000)).0, expected);
}

#[test]
fn rows_that_are_left_out_count_and_those_after_the_last_do_not_matter() {
    let scratch = Scratch::new();
    let skipping = PrepareOptions { skip_bad_rows: true, ..first(4) };
    let summary = scratch.prepare("a 1\nb x\na 2\nc 3\nd 4\n", &skipping).unwrap();
    let from = &summary.provenance;
    assert_eq!((summary.rows, from.bad_rows_skipped, from.duplicate_words_dropped), (2, 1, 1));
    assert_eq!(scratch.open().words().row("d"), None);
    refused("a 1\nb x\nc 2\n", &first(2), &["line 2"]);
    assert_eq!(version("a 1\nb 2\nc x\n", &first(2)).0, version("a 1\nb 2\n", &first(9)).0);
    // Files that are cut off, or whose header is wrong.
    for (content, good) in
        [(b"9 2\na 1 2\nb 3 4\nc 5 6\n".to_vec(), 3), (word2vec_binary(b"\n")[..60].to_vec(), 3)]
    {
        Scratch::new().prepare(&content, &first(good)).unwrap();
        refused(&content, &first(good + 1), &["header"]);
    }
}

#[test]
fn the_end_of_a_file_is_unusual_only_if_it_is_read() {
    let lines = |header: &str, end: &str| format!("{header}a 1 2\nb 3 4\n{end}").into_bytes();
    let binary = [b"5 3\n", &word2vec_binary(b"\n")[4..], &[0; 9]].concat();
    let blank = "the empty lines at its end (3) were left out";
    for (content, limit, rows, warnings) in [
        (lines("", "\n \n\n"), 1, 1, ""),
        (lines("", "\n \n\n"), 2, 2, ""),
        (lines("", "\n \n\n"), 3, 2, blank),
        (lines("", "\n \n\n"), 9, 2, blank),
        (lines("3 2\n", ""), 2, 2, ""),
        (lines("3 2\n", ""), 3, 2, "its header announces 3 rows, but it has 2"),
        (lines("1 2\n", ""), 1, 1, ""),
        (lines("1 2\n", ""), 2, 2, "its header announces 1 row, but it has 2"),
        (binary.clone(), 3, 3, ""),
        (
            binary,
            5,
            4,
            "its header announces 5 rows, but it has 4; \
             the zero bytes at its end (9) were left out",
        ),
    ] {
        let summary = Scratch::new().prepare(&content, &first(limit)).unwrap();
        let said = summary.warnings.join("; ");
        assert_eq!((summary.rows, &said[..]), (rows, warnings), "{limit} rows");
    }
    refused("a 1 2\n\nb 3 4\n", &first(2), &["line 2: the line is empty"]);
}

#[test]
fn words_and_biases_belong_to_the_same_rows() {
    let scratch = Scratch::new();
    let options = PrepareOptions { limit: NonZeroUsize::new(2), ..scratch.with_words("a\nb\nc\n") };
    scratch.prepare("0.5 1\n0.25 2\n7 3\n", &options).unwrap();
    assert_eq!(scratch.open().table().components(), [0.5, 1.0, 0.25, 2.0]);
    for (biases, is_good) in [("1\n2\n3\n", true), ("1\n2\n", true), ("1\n", false)] {
        let scratch = Scratch::new();
        fs::write(scratch.path("biases"), biases).unwrap();
        let biases = Some(scratch.path("biases"));
        let options = PrepareOptions { metric: Metric::Dot, biases, ..first(2) };
        let done = scratch.prepare("a 1\nb 2\nc 3\n", &options);
        assert_eq!(done.is_ok(), is_good, "{done:?}");
        if is_good {
            assert_eq!(scratch.open().table().biases(), Some(&[1.0, 2.0][..]));
        }
    }
}

#[test]
fn what_is_only_read_for_the_checksum_can_be_cancelled() {
    let scratch = Scratch::new();
    fs::write(scratch.path(INPUT), "a 0.5\n".repeat(2_000_000)).unwrap();
    let mut calls = 0;
    let done = prepare_folder(
        Input::File(&scratch.path(INPUT)),
        &scratch.out(),
        &first(1),
        &mut |progress: Progress| {
            calls += 1;
            match progress.bytes_read > 8_000_000 {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        },
    );
    assert!(matches!(done, Err(ModelError::Cancelled)) && calls > 1, "{calls}");
    assert!(!scratch.out().exists());
}

/// The text's bytes in an encoding.
fn bytes_in(name: &str, text: &str) -> Vec<u8> {
    match name {
        "utf-16le" => text.encode_utf16().flat_map(u16::to_le_bytes).collect(),
        "utf-16be" => text.encode_utf16().flat_map(u16::to_be_bytes).collect(),
        name => {
            let (bytes, _, has_lost) = Encoding::for_label(name.as_bytes()).unwrap().encode(text);
            assert!(!has_lost, "{name}");
            bytes.into_owned()
        }
    }
}

#[test]
fn text_in_any_encoding_is_the_same_model() {
    let western = "naïve 0.5 1\nZürich -1 2\nthe 3 4\n";
    let japanese = "日本 0.5 1\nカエル -1 2\nthe 3 4\n";
    for (rows, names) in [
        (western, &["latin1", "windows-1252", "gb18030", "utf-16le", "utf-16be", "macintosh"][..]),
        (japanese, &["shift_jis", "euc-jp", "iso-2022-jp", "gb18030", "utf-16le", "utf-16be"]),
        ("фильм 0.5 1\nкіт -1 2\n", &["windows-1251", "koi8-u", "iso-8859-5", "utf-16be"]),
    ] {
        for text in [rows.to_owned(), format!("{} 2\n{rows}", rows.lines().count())] {
            let (expected, described) = version(&text, &PrepareOptions::default());
            let same = version(&text, &encoded("utf-8"));
            assert_eq!(same, (expected.clone(), described.clone()), "UTF-8 is no other encoding");
            for name in names {
                let options = encoded(name);
                let mut forms = vec![text.clone(), text.replace('\n', "\r\n")];
                if name.starts_with("utf-16") {
                    forms.push(format!("\u{feff}{text}"));
                }
                for form in forms {
                    for packing in [Packing::Plain, Packing::Gzip, Packing::Zip] {
                        let content = packing.pack(&bytes_in(name, &form));
                        let (found, from) = version(content, &options);
                        assert_eq!(found, expected, "{name}");
                        let encoding = format!("{described}, {}", options.encoding.unwrap());
                        assert!(from.starts_with(&encoding), "{from}");
                    }
                }
            }
        }
    }
    // A byte order mark says more than the name.
    let marked = format!("\u{feff}{western}");
    assert_eq!(version(&marked, &encoded("shift_jis")).0, version(western, &encoded("utf-8")).0);
}

#[test]
fn words_beside_numbers_are_decoded_and_numbers_are_not() {
    let expected = version(glove(" ", "\n"), &PrepareOptions::default()).0;
    // The words of `ROWS` in a binary file.
    let mut binary = b"4 3\n".to_vec();
    for (word, row) in ROWS {
        binary.extend(bytes_in("latin1", &format!("{word} ")));
        row.iter().for_each(|x| binary.extend(x.to_le_bytes()));
    }
    assert_eq!(version(&binary, &encoded("latin1")).0, expected);
    refused(&binary, &PrepareOptions::default(), &["not valid UTF-8"]);
    let array = npy("<f4", "False", "(4, 3)", &components());
    let matrix = "0.5 -1.25 3\n-0 1e-3 -7.5\n0 0 0\n100 0.25 -0.125\n";
    for name in ["latin1", "utf-16be"] {
        let scratch = Scratch::new();
        let with_words = scratch.with_words(bytes_in(name, &words_text()));
        let options = PrepareOptions { encoding: encoded(name).encoding, ..with_words };
        scratch.prepare(&array, &options).unwrap();
        assert_eq!(scratch.open().version(), expected, "{name}");
        let replace = PrepareOptions { replace: true, ..options };
        scratch.prepare(bytes_in(name, matrix), &replace).unwrap();
        assert_eq!(scratch.open().version(), expected, "{name}");
    }
    let scratch = Scratch::new();
    fs::write(scratch.path("biases"), bytes_in("utf-16le", "1\r\n-2\r\n")).unwrap();
    let biases = Some(scratch.path("biases"));
    let options = PrepareOptions { metric: Metric::Dot, biases, ..encoded("utf-16le") };
    scratch.prepare(bytes_in("utf-16le", "a 1\nb 2\n"), &options).unwrap();
    assert_eq!(scratch.open().table().biases(), Some(&[1.0, -2.0][..]));
}

#[test]
fn bytes_that_the_encoding_does_not_have_are_bad_rows() {
    let content = [b"a 1\n", &b"\x93\xfa 2\n"[..], b"b\xff 3\n", b"c 4\n"].concat();
    refused(&content, &encoded("shift_jis"), &["line 3", "not Shift_JIS", "another --encoding"]);
    let scratch = Scratch::new();
    let skipping = PrepareOptions { skip_bad_rows: true, ..encoded("shift_jis") };
    let summary = scratch.prepare(&content, &skipping).unwrap();
    assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (3, 1));
    assert_eq!(scratch.open().words().row("日"), Some(Row(1)));
    // The cure is named where it is missing.
    refused(&content, &PrepareOptions::default(), &["line 2", "UTF-8", "--encoding"]);
    let little = bytes_in("utf-16le", "a 1\nb 2\nc 3\n");
    refused(little, &PrepareOptions::default(), &["UTF-16 text", "--encoding UTF-16LE"]);
    // Other files are named for what they are.
    refused(b"\x80\x04\x95abcdefgh", &encoded("latin1"), &["pickle"]);
    refused(b"", &encoded("latin1"), &["the file is empty"]);
    let glove = PrepareOptions { format: Some(VectorsFormat::Glove), ..encoded("latin1") };
    refused(b"\x80\x04\x95abcdefgh", &glove, &["pickle"]);
    let page = bytes_in("utf-16le", "<!DOCTYPE html>\n<title>Sign in</title>\n");
    refused(page, &encoded("utf-16le"), &["web page", "Sign in"]);
    let scratch = Scratch::new();
    let with_words = scratch.with_words(b"\x80\x04\x95abcdefgh");
    let options = PrepareOptions { encoding: encoded("latin1").encoding, ..with_words };
    let error = scratch.refused("0.5 1\n2 3\n", &options);
    assert!(error.contains("words.any: it is a Python pickle"), "{error}");
}

#[test]
fn a_first_line_of_names_or_of_the_whole_file_is_named() {
    let spaces = PrepareOptions::default();
    let (tabs, commas) = (separated(Separator::Tab), separated(Separator::Comma));
    let dim = PrepareOptions { dim: NonZeroUsize::new(2), ..spaces.clone() };
    let names = "if line 1 names the columns, remove it: tail -n +2 FILE";
    for (content, options) in [
        ("word d1 d2\nking 0.5 1\n", &spaces),
        ("word d1 d2\nking 0.5 1\n", &dim),
        ("word\td1\td2\nking\t0.5\t1\n", &tabs),
        // As pandas writes an index and numbers of columns.
        (",0,1\nking,0.5,1\n", &commas),
        (",word,d1\n0,king,0.5\n", &commas),
    ] {
        refused(content, options, &["line 1: ", names]);
    }
    let header: Vec<String> = (0..8).map(|column| column.to_string()).collect();
    let row = ["0.5"; 8].join(",");
    for (first, warnings) in [
        (format!("word,{}", header.join(",")), 1),
        ("word,1,2,3,4,5,6,7,8".to_owned(), 1),
        ("word,0,1,2,3,4,5,6,8".to_owned(), 0),
        (format!("of,{row}"), 0),
    ] {
        let content = format!("{first}\nking,{row}\n");
        let summary = Scratch::new().prepare(&content, &commas).unwrap();
        assert_eq!(summary.warnings.len(), warnings, "{first}: {:?}", summary.warnings);
        assert!(summary.warnings.iter().all(|said| said.starts_with("line 1 ")));
    }
    let cure = "convert them: tr '\\r' '\\n' < FILE";
    refused("king 0.5 1\rof 0.25 1\r", &spaces, &["line 1: ", cure]);
    for content in ["king 0.5 1\nword d1 d2\n", "king 0.5 x\n"] {
        let error = Scratch::new().refused(content, &dim);
        assert!(!error.contains("carriage"), "{content}: {error}");
    }
}

#[test]
fn words_may_end_in_numbers_where_the_dimension_is_known() {
    let allowed = PrepareOptions { allow_numeric_words: true, ..Default::default() };
    let known = PrepareOptions { dim: NonZeroUsize::new(3), ..allowed.clone() };
    let rows = "route 66 1 0 0\ncat 0 1 0\nwindows 95 0 0 1\npi 3.14 0 0 1\n7 11 1 2 3\n";
    for (content, options) in [(format!("5 3\n{rows}"), &allowed), (rows.to_owned(), &known)] {
        let scratch = Scratch::new();
        scratch.prepare(&content, options).unwrap();
        let model = scratch.open();
        assert_eq!((model.rows(), model.dim()), (5, 3));
        for (row, word) in ["route 66", "cat", "windows 95", "pi 3.14", "7 11"].iter().enumerate() {
            assert_eq!(model.words().word(Row(row as u32)), *word);
        }
        // Whoever does not ask for it gets the cure.
        let asked = PrepareOptions { allow_numeric_words: false, ..options.clone() };
        refused(&content, &asked, &["4 components instead of 3", "--allow-numeric-words"]);
    }
    // From the first line, the dimension is only guessed.
    let cure = "if the word is `route 66`, add --dim 3 --allow-numeric-words";
    refused("cat 0 1 0\nroute 66 1 0 0\n", &allowed, &["line 2", cure]);
    // Components that are too many are no ends of words.
    for (content, options) in [
        ("3 2\ncat 0.5 1 2\ndog -1 1 2\nsun 1e3 3 4\n", &allowed),
        ("a 0.5 1 2 3\nb 1.5 1 2 3\n", &known),
    ] {
        refused(content, options, &["every word would end in a number"]);
    }
    refused("2 2\ncat 0.5 1\ndog 0.25 x 1\n", &allowed, &["line 3: component 1"]);
}
