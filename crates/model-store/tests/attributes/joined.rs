//! Lines that are joined to rows by their words.

use std::num::NonZeroUsize;

use model_store::attributes::AttributeType::Integer;
use model_store::prepare::PrepareOptions;

use super::support::{joined, typed, values};
use crate::formats::support::Scratch;

const VECTORS: &str = "a 1 0\n7 0 1\nroute 66 1 1\n";

/// The options for words that end in numbers.
fn numeric(options: PrepareOptions) -> PrepareOptions {
    PrepareOptions { dim: NonZeroUsize::new(2), allow_numeric_words: true, ..options }
}

#[test]
fn rows_have_the_line_of_their_word_or_no_values() {
    for lines in [
        "n,key,t\n1,route 66,x\n2,a,y\n",
        "{\"key\": \"route 66\", \"n\": 1, \"t\": \"x\"}\n{\"t\": \"y\", \"n\": 2, \"key\": \"a\"}",
    ] {
        let scratch = Scratch::new();
        let summary = scratch.prepare(VECTORS, &numeric(joined(&scratch, "key", lines))).unwrap();
        let model = scratch.open();
        assert_eq!(values(&model, "n"), (Integer, ["2", "null", "1"].map(str::to_owned).into()));
        assert_eq!(values(&model, "t").1, [r#""y""#, "null", r#""x""#]);
        let names: Vec<_> = summary.attributes.iter().map(|one| &*one.name).collect();
        assert_eq!(names, ["n", "t"], "the key is no attribute");
        assert!(summary.warnings.is_empty(), "{:?}", summary.warnings);
    }
    // Numbers are words, too.
    let scratch = Scratch::new();
    let lines = "{\"id\": 7, \"n\": 1}\n{\"id\": \"a\", \"n\": 2}\n";
    scratch.prepare(VECTORS, &numeric(joined(&scratch, "id", lines))).unwrap();
    assert_eq!(values(&scratch.open(), "n").1, ["2", "1", "null"]);
}

#[test]
fn a_repeated_word_has_one_line_which_is_that_of_its_first_row() {
    let scratch = Scratch::new();
    let options = joined(&scratch, "w", "w,n\nb,1\na,2\n");
    scratch.prepare("a 1 0\na 2 0\nb 0 1\n", &options).unwrap();
    assert_eq!(values(&scratch.open(), "n").1, ["2", "1"]);
}

#[test]
fn unknown_and_repeated_words_are_named_with_their_line() {
    let scratch = Scratch::new();
    for (lines, part) in [
        ("w,n\na,1\nzebra,2\n", "line 3: no row of vectors.any has the word `zebra`"),
        ("w,n\na,1\nb,2\na,3\n", "line 4: `w` names \"a\", as line 2 does"),
        ("w,n\na,1\n,2\n", "line 3: `w` does not name a row"),
        ("{\"w\": \"a\"}\n{\"n\": 2}\n", "line 2: `w` does not name a row"),
        ("{\"w\": 1.5, \"n\": 2}\n", "line 1: `w` does not name a row"),
        ("v,n\na,1\n", "it has no `w`, which --key names; it has v, n"),
        ("w\na\nb\n", "0 attributes"),
    ] {
        let said = scratch.refused("a 1 0\nb 0 1\n", &joined(&scratch, "w", lines));
        assert!(said.contains("words.any: ") && said.contains(part), "{lines}: {said}");
    }
}

#[test]
fn the_key_has_no_type() {
    let scratch = Scratch::new();
    let options = joined(&scratch, "w", "w,n\na,1\nb,2\n");
    for (name, part) in [
        ("w", "`w` is the key, which has no type; omit its --type"),
        ("m", "it has no `m`, which --type names; it has n"),
    ] {
        let options = typed(options.clone(), name, Integer);
        let said = scratch.refused("a 1 0\nb 0 1\n", &options);
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn lines_of_rows_that_were_not_read_are_left_out_with_a_warning() {
    let lines = "w,n\nc,3\na,1\nb,2\n";
    let scratch = Scratch::new();
    let limit = NonZeroUsize::new(1);
    let options = PrepareOptions { limit, ..joined(&scratch, "w", lines) };
    let summary = scratch.prepare("a 1 0\nb 0 1\nc 1 1\n", &options).unwrap();
    assert_eq!(values(&scratch.open(), "n").1, ["1"]);
    assert_eq!(
        summary.warnings,
        ["words.any: 2 lines belong to no row that was read, and were left out"]
    );
    let scratch = Scratch::new();
    let options = PrepareOptions { skip_bad_rows: true, ..joined(&scratch, "w", lines) };
    let summary = scratch.prepare("a 1 0\nb 0 x\nc 1 1\n", &options).unwrap();
    assert_eq!(values(&scratch.open(), "n").1, ["1", "3"]);
    assert!(summary.warnings[0].contains("1 line belongs to no row"), "{:?}", summary.warnings);
}
