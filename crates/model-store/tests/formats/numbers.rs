//! Numbers without words, files that are something else, and files of which most rows are bad.

use std::num::NonZeroUsize;

use model_store::ModelStore;
use model_store::prepare::{Input, PrepareOptions, VectorsFormat, prepare_in_memory};

use super::support::{Packing, Scratch, refused};

/// A matrix as NumPy's `savetxt` writes it by default.
const SAVED: &str = "-1.738266000000000000e+00 1.000000000000000000e+00 3.000000000000000000e+00
0.000000000000000000e+00 -5.000000000000000000e-01 2.000000000000000000e+00
";

fn plain() -> PrepareOptions {
    PrepareOptions::default()
}

fn skipping() -> PrepareOptions {
    PrepareOptions { skip_bad_rows: true, ..plain() }
}

#[test]
fn a_matrix_without_words_is_refused_with_the_cure() {
    let matrices = [
        SAVED.to_owned(),
        "-1.7 -1.3 -1.3\n-0.1 -0.9 0.8\n0.7 -0.05 0.8\n".to_owned(),
        "0.5 nan\n0.25 1\n".to_owned(),
        "nan 0.5\n0.25 1\n".to_owned(),
        "0 1 0\n1 0 0\n".to_owned(),
        "0 1.5\n0 2.5\n1 0.5\n".to_owned(),
        "1 2 0\n-3 4 1\n".to_owned(),
        "1e5 0.5\n2 0.5\n".to_owned(),
        // With a header of its size, as one adds it by hand.
        "2 2\n0.5 1 2\n0.25 1 2\n".to_owned(),
        "1 1\n0 5\n".to_owned(),
        // Longer than what is looked at before everything is read.
        (0..3000)
            .map(|n| format!("{} 0.5 0.25\n", if n < 2999 { n.to_string() } else { "0.1".into() }))
            .collect(),
    ];
    for matrix in &matrices {
        let all = ["--words FILE", "--allow-numeric-words", "the words are numbers, from `"];
        refused(matrix, &plain(), &all);
        refused(Packing::Gzip.pack(matrix.as_bytes()), &skipping(), &all);
    }
    for matrix in
        ["0.5\t1\n1\t2\n", "0.5,1\n1,2\n", "0.5, 1\n1, 2\n", "0.5\n1\n", "3\n4\n", "nan\n1\n"]
    {
        refused(matrix, &plain(), &["its lines have numbers and no words", "--words FILE"]);
    }
    for header in ["2", "2,2", "2, 2", "2.0 2.0", "-1 2", "2 2 9 9 9"] {
        let content = format!("{header}\nthe 0.5 1\nof 1 2\n");
        refused(content, &plain(), &["line 1 has numbers only", "tail -n +2 FILE"]);
    }
}

#[test]
fn words_that_are_numbers_are_words_of_a_vocabulary() {
    let rows = |content: &str, options: &PrepareOptions| {
        let scratch = Scratch::new();
        let summary = scratch.prepare(content, options).unwrap_or_else(|error| panic!("{error}"));
        (summary.rows, summary.dim, scratch.open().words().word(contract::Row(0)).to_owned())
    };
    // More numbers than are looked at first, and then a word.
    let late: String = (0..200).map(|n| format!("{n} 0.5 1\n")).collect::<String>() + "the 1 2\n";
    assert_eq!(rows(&late, &plain()), (201, 2, "0".into()));
    assert_eq!(rows("1.5 1 2\nthe 1 2\n", &plain()), (2, 2, "1.5".into()));
    // The nodes of a graph, as node2vec writes them.
    assert_eq!(rows("3 2\n17 1 0\n4 0 1\n0 1 1\n", &plain()), (3, 2, "17".into()));
    assert_eq!(rows("17 0.5 0\n4 0 1\n", &plain()), (2, 2, "17".into()));
    let allowed = PrepareOptions { allow_numeric_words: true, ..plain() };
    assert_eq!(rows(SAVED, &allowed), (2, 2, "-1.738266000000000000e+00".into()));
    assert_eq!(rows("0 1 0\n1 0 0\n", &allowed), (2, 2, "0".into()));
}

#[test]
fn a_matrix_is_read_with_its_words() {
    let scratch = Scratch::new();
    let options = scratch.with_words("the\nof\n");
    let expected = [[0.5, -1000.0, 3.0], [0.0, -0.5, 2.0]].concat();
    for (content, format) in [
        ("0.5 -1e3 3\n0 -0.5 2\n", None),
        ("0.5 -1e3 3\n0 -0.5 2", Some(VectorsFormat::Glove)),
        ("\u{feff}0.5\t-1e3\t3\r\n0\t-0.5\t2\r\n", None),
        ("  0.5   -1000   3 \n  0.0  -0.5   2\n", None),
        ("0.5,-1e3,3\n0, -0.5, 2\n", None),
        ("5e-01;-1e3;3\n0;-.5;2\n", None),
        ("2 3\n0.5 -1e3 3\n0 -0.5 2\n", None),
        ("2 3\n0.5 -1e3 3\n0 -0.5 2\n", Some(VectorsFormat::Word2vec)),
    ] {
        for packing in [Packing::Plain, Packing::Gzip] {
            let options = PrepareOptions { format, replace: true, ..options.clone() };
            let summary = scratch.prepare(packing.pack(content.as_bytes()), &options).unwrap();
            assert_eq!((summary.rows, summary.dim), (2, 3), "{content:?}");
            let model = scratch.open();
            assert_eq!(model.table().components(), expected, "{content:?}");
            assert_eq!(model.words().row("of"), Some(contract::Row(1)));
            assert!(
                summary.provenance.source_format.contains("with words in words.any"),
                "{}",
                summary.provenance.source_format
            );
        }
    }
    // Two columns of whole numbers look like a header.
    let options = PrepareOptions { replace: true, ..options };
    scratch.prepare("4 5\n1 2\n", &options).unwrap();
    assert_eq!(scratch.open().table().components(), [4.0, 5.0, 1.0, 2.0]);
    scratch.prepare("0.5\n2\n", &options).unwrap();
    assert_eq!(scratch.open().dim(), 1);
}

#[test]
fn a_large_matrix_keeps_its_words_in_order() {
    let rows = 150_000;
    let scratch = Scratch::new();
    let words: String = (0..rows).map(|row| format!("w{row}\n")).collect();
    let mut options = scratch.with_words(words);
    let line = |row: usize| match row {
        70_000 => "0.5 x 1\n".to_owned(),
        row => format!("{row}.25 0.123456789 -{row}.5\n"),
    };
    options.skip_bad_rows = true;
    let matrix: String = (0..rows).map(line).collect();
    let summary = scratch.prepare(&matrix, &options).unwrap();
    assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (rows - 1, 1));
    let said = summary.first_bad_row.unwrap();
    assert_eq!(said, "line 70001: component 2 is not a number: `x`");
    let model = scratch.open();
    for row in [0, 1, 69_999, 70_001, 100_000, rows - 1] {
        let found = model.words().row(&format!("w{row}")).unwrap();
        assert_eq!(model.table().row(found)[0], row as f32 + 0.25);
    }
    assert_eq!(model.words().row("w70000"), None);
}

#[test]
fn an_index_of_the_rows_is_no_component() {
    let scratch = Scratch::new();
    let options = scratch.with_words("the\nof\nand\nto\n");
    for (content, cure) in [
        ("0 0.5 2\n1 0.25 1\n2 -1 3\n3 0 1\n", "from 0 on.*drop it: cut -d' ' -f2- FILE;"),
        ("1 0.5\n2 0.25\n3 -1\n4 0\n", "from 1 on.*drop it: cut -d' ' -f2- FILE;"),
        ("0,0.5,2\n1,0.25,1\n2,-1,3\n3,0,1", "from 0 on.*drop it: cut -d, -f2- FILE;"),
        ("0\t5\t2\r\n1\t2\t1\r\n2\t1\t3\r\n3\t0\t1\r\n", "from 0 on.*cut -f2- FILE;"),
        ("0; 5; 2\n1; 2; 1\n2; 1; 3\n3; 0; 1\n", "from 0 on.*cut -d';' -f2- FILE;"),
        ("  0  0.5\n  1 -1.0\n  2  1.5\n  3  0.0\n", "from 0 on.*awk '{ $1 = \"\"; print }' FILE;"),
        ("0.0e+00 0.5\n1.0e+00 1\n2.0e+00 3\n3.0e+00 3\n", "from 0 on.*cut -d' '"),
        ("4 3\n1 0.5 2\n2 0.25 1\n3 -1 3\n4 0 1\n", "from 1 on.*tail -n +2 FILE | cut -d' ' -f2-;"),
    ] {
        for packing in [Packing::Plain, Packing::Gzip] {
            let error = scratch.refused(packing.pack(content.as_bytes()), &options);
            for part in cure.split(".*").chain(["vectors.any: its first column", "add --dim"]) {
                assert!(error.contains(part), "{content:?}: {part:?} is missing: {error}");
            }
        }
    }
    // A bad row has a number, too.
    let bad = "0 0.5 2\n1 1e99 1\n2 -1 3\n3 0 1\n";
    let error = scratch.refused(bad, &PrepareOptions { skip_bad_rows: true, ..options.clone() });
    assert!(error.contains("its first column counts the rows"), "{error}");

    // Who says how many components there are means it.
    let dim = |dim| PrepareOptions { dim: std::num::NonZeroUsize::new(dim), ..options.clone() };
    let whole = "0 0.5 2\n1 0.25 1\n2 -1 3\n3 0 1\n";
    assert_eq!(scratch.prepare(whole, &dim(3)).unwrap().dim, 3);
    let replacing = PrepareOptions { replace: true, ..options };
    for content in [
        "0 0.5\n1 0.25\n2 -1\n4 0\n",
        "1 0.5\n1 0.25\n2 -1\n3 0\n",
        "2 0.5\n3 0.25\n4 -1\n5 0\n",
        "0 0.5\n1 0.25\n2.5 -1\n3 0\n",
        // One column is all that there is.
        "0\n1\n2\n3\n",
    ] {
        assert_eq!(scratch.prepare(content, &replacing).unwrap().rows, 4, "{content:?}");
    }
    let two = Scratch::new();
    assert_eq!(two.prepare("0 0.5\n1 2\n", &two.with_words("the\nof\n")).unwrap().dim, 2);
}

#[test]
fn an_index_of_many_rows_is_found_at_their_end() {
    let rows = 200_000;
    let scratch = Scratch::new();
    let words: String = (0..rows).map(|row| format!("w{row}\n")).collect();
    let options = scratch.with_words(words);
    // `last` is the number of the last row, which is in another chunk than the first ones.
    let matrix = |first: usize, last: usize| -> String {
        let number = |row: usize| if row + 1 == rows { last } else { first + row };
        (0..rows).map(|row| format!("{} 0.123456789 -{row}.5\n", number(row))).collect()
    };
    let error = scratch.refused(matrix(1, rows), &options);
    assert!(error.contains("its first column counts the rows from 1 on"), "{error}");
    assert_eq!(scratch.prepare(matrix(0, 7), &options).unwrap().rows, rows);
}

#[test]
fn words_with_their_counts_are_no_words() {
    let matrix = "0.5 1\n0.25 2\n-1 3\n";
    for (words, cut) in [
        ("the 1061396\nof 593677\nand 416629\n", "cut -d' ' -f1 FILE"),
        ("the\t1061396\nof\t593677\nand\t416629", "cut -f1 FILE"),
        ("\u{feff}the   12 \r\nof 7\r\n1990 7\r\n", "cut -d' ' -f1 FILE"),
        ("new york\t12\n. . .\t7\nthe\t0\n", "cut -f1 FILE"),
    ] {
        for packing in [Packing::Plain, Packing::Zstd] {
            let scratch = Scratch::new();
            let options = scratch.with_words(packing.pack(words.as_bytes()));
            let error = scratch.refused(matrix, &options);
            for part in ["words.any: each line is a word and a whole number", cut, "add --allow"] {
                assert!(error.contains(part), "{words:?}: {part:?} is missing: {error}");
            }
            let allowed = PrepareOptions { allow_numeric_words: true, ..options };
            assert_eq!(scratch.prepare(matrix, &allowed).unwrap().rows, 3);
        }
    }
    // As SentencePiece writes them: an error names scores.
    let scores = "<unk>\t0\n\u{2581}the\t-3.2\n\u{2581}of\t-3.5e0\n";
    let scratch = Scratch::new();
    let error = scratch.refused(matrix, &scratch.with_words(scores));
    for part in ["each line is a word and a number, such as its score", "cut -f1 FILE"] {
        assert!(error.contains(part), "{part:?} is missing: {error}");
    }
    for words in [
        "the 1061396\nof 593677\nand\n",
        "the\t0.5\nof\t-1\nand\tx\n",
        "the\tnan\nof\tnan\nand\tinf\n",
        "the\nof 593677\nand 416629\n",
        "the 5\nof 3.5\nand 1\n",
        "the 5\nof -3\nand 1\n",
        "1061396\n593677\n416629\n",
        "item 1\nitem 2\nitem 3\n",
        "route 66\nthe matrix 1999\napollo 11\n",
        "5 the\n3 of\n1 and\n",
    ] {
        let scratch = Scratch::new();
        scratch.prepare(matrix, &scratch.with_words(words)).unwrap();
        let last = words.lines().last().unwrap();
        assert_eq!(scratch.open().words().row(last), Some(contract::Row(2)), "{words:?}");
    }
    let two = Scratch::new();
    two.prepare("0.5 1\n1 2\n", &two.with_words("the 5\nof 3\n")).unwrap();
}

#[test]
fn rows_that_may_be_words_with_their_counts_are_read_with_a_warning() {
    for (content, dim, expected) in [
        ("the 61\nof 40\nto 38\n", None, 1),
        ("the 61\nof 40\nto 38\n", NonZeroUsize::new(1), 0),
        ("the 61\nof 40\nto 38.5\n", None, 0),
        ("the 61\nof -40\nto 38\n", None, 0),
        ("the 61\nof 40\n", None, 0),
        ("the 61 1\nof 40 1\nto 38 1\n", None, 0),
    ] {
        let summary = Scratch::new().prepare(content, &PrepareOptions { dim, ..plain() }).unwrap();
        let said = summary.warnings.join("; ");
        assert_eq!(summary.warnings.len(), expected, "{content:?}: {said}");
        assert!(expected == 0 || said.contains("GloVe's vocab.txt"), "{said}");
    }
}

#[test]
fn words_and_rows_that_do_not_agree_are_refused() {
    let scratch = Scratch::new();
    let options = scratch.with_words("the\nof\n");
    for (content, expected) in [
        ("1 2\n3 4\n5 6\n", "line 3: words.any has only 2 words; give one word for each row"),
        ("0.5 2\n", "words.any has 2 words, one for each row, but it has 1"),
        ("2 3\n1 2 3\n", "words.any has 2 words, one for each row, but it has 1"),
        ("0.5 2\n0.5\n", "line 2: 1 component instead of 2"),
        ("0.5 2\n0.5 1 2\n", "line 2: 3 components instead of 2"),
        ("0.5,2\n0.5,\n", "the file itself contains the words"),
        ("the 0.5 2\nof 1 2\n", "the file itself contains the words"),
        ("2 2\nthe 0.5 2\nof 1 2\n", "the file itself contains the words"),
    ] {
        let skipping = PrepareOptions { skip_bad_rows: true, ..options.clone() };
        let error = scratch.refused(content, &options);
        assert!(error.contains(expected), "{content:?}: {error}");
        if !expected.contains("component") {
            let error = scratch.refused(content, &skipping);
            assert!(error.contains(expected), "{content:?}, skipping: {error}");
        }
    }
    let dim = PrepareOptions { dim: std::num::NonZeroUsize::new(3), ..options };
    assert!(scratch.refused("0.5 2\n1 2\n", &dim).contains("--dim says 3"));
}

const POINTER: &str = "version https://git-lfs.github.com/spec/v1
oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393
size 990000000
";

#[test]
fn a_git_lfs_pointer_is_refused_whatever_is_asked() {
    let expected = ["it is a Git LFS pointer", "git lfs pull"];
    for format in VectorsFormat::ALL.map(Some).into_iter().chain([None]) {
        refused(POINTER, &PrepareOptions { format, ..skipping() }, &expected);
        let packed = Packing::Zip.pack(POINTER.as_bytes());
        refused(packed, &PrepareOptions { format, ..skipping() }, &expected);
    }
    let allowed = PrepareOptions { allow_numeric_words: true, ..skipping() };
    refused(POINTER, &allowed, &expected);
    // In place of the words; in place of a model's files.
    let scratch = Scratch::new();
    let error = scratch.refused("0.5 1\n1 2\n2 3\n", &scratch.with_words(POINTER));
    assert!(error.contains("words.any: it is a Git LFS pointer"), "{error}");
    let scratch = Scratch::new();
    scratch.prepare("a 1 2\n", &plain()).unwrap();
    for name in ["vectors.safetensors", "words.txt", "words.fst"] {
        let path = scratch.out().join(name);
        let whole = std::fs::read(&path).unwrap();
        std::fs::write(&path, POINTER).unwrap();
        let error = ModelStore::open(&scratch.out()).unwrap_err().to_string();
        assert!(error.contains(name) && error.contains("git lfs pull"), "{error}");
        std::fs::write(&path, whole).unwrap();
    }
    // A word that begins like one.
    let input = Input::Bytes { name: "v", bytes: b"version 1 2\nversions 2 3\n" };
    prepare_in_memory(input, &plain()).unwrap();
}

#[test]
fn a_file_of_which_most_rows_are_bad_does_not_become_a_model() {
    // All others have another dimension than a first line of names, which is told as without
    // `skip_bad_rows`.
    let names = "word count vector\nthe 61 1 2 3\nof 40 1 2 3\n";
    refused(names, &skipping(), &["every line is invalid", "if line 1 names the columns"]);
    for (content, expected) in [
        ("# Vectors\nThere are 3 of them.\nhits 3\n", "2 of 3 lines are invalid"),
        ("request not found\n(denied)\n<a> 1 2\n", "2 of 3 lines are invalid"),
        ("the 1 2\nof 1\nto 2\nin 3\nis 1 2\n", "the first, line 2: 1 component instead of 2"),
    ] {
        refused(
            content,
            &skipping(),
            &[expected, "hardly a file of word vectors", "the first, line"],
        );
    }
    let half = "the 1 2\nof 1\nto 2\nin 1 2\n";
    let summary = Scratch::new().prepare(half, &skipping()).unwrap();
    assert_eq!((summary.rows, summary.provenance.bad_rows_skipped), (2, 2), "as many as were kept");
    let repeated = "the 1 2\nthe 1 2\nthe 1 2\nof 1\nto 2\n";
    let summary = Scratch::new().prepare(repeated, &skipping()).unwrap();
    assert_eq!(
        (summary.rows, summary.provenance.bad_rows_skipped),
        (1, 2),
        "repeated rows are not bad"
    );
}
