//! A line for each row of the vectors file: CSV and JSON lines become columns of a model folder.

use std::fs;

use model_store::attributes::AttributeType::{Boolean, DateTime, Integer, List, Number, Text};
use model_store::prepare::{Input, PrepareOptions, prepare_in_memory};
use model_store::{ModelError, ModelStore};

use super::support::{typed, values, with};
use crate::formats::support::{Packing, Scratch};

const VECTORS: &str = "a 1 0\nb 0 1\nc 1 1\n";

const CSV: &str = "text,whole,number,truth,at,zip\n\
                   acme,1,1.5,true,2026-05-01T12:00:00Z,007\n\
                   \"big, \"\"foot\"\"\",-2,,FALSE,2026-05-01T12:00:00.5+02:00,1\n\
                   ,,3,,,\n";

#[test]
fn csv_becomes_columns_of_the_types_that_they_look_like() {
    let scratch = Scratch::new();
    let summary = scratch.prepare(VECTORS, &with(&scratch, CSV)).unwrap();
    let model = scratch.open();
    for (name, kind, expected) in [
        ("text", Text, [r#""acme""#, r#""big, \"foot\"""#, "null"]),
        ("whole", Integer, ["1", "-2", "null"]),
        ("number", Number, ["1.5", "null", "3.0"]),
        ("truth", Boolean, ["true", "false", "null"]),
        ("at", DateTime, [r#""2026-05-01T12:00:00Z""#, r#""2026-05-01T10:00:00.5Z""#, "null"]),
        ("zip", Text, [r#""007""#, r#""1""#, "null"]),
    ] {
        assert_eq!(values(&model, name), (kind, expected.map(str::to_owned).into()));
    }
    let found: Vec<_> = model.attributes().unwrap().descriptions().cloned().collect();
    assert_eq!(found, summary.attributes);
    let counts: Vec<_> = found.iter().map(|one| (one.distinct, one.missing)).collect();
    assert_eq!(counts, [(2, 1), (2, 1), (2, 1), (2, 1), (2, 1), (2, 1)]);
    let source = &model.header().provenance.source_format;
    assert!(source.ends_with(", attributes of words.any"), "{source}");
}

#[test]
fn json_lines_have_the_types_of_json() {
    let scratch = Scratch::new();
    let lines = r#"{"tags": ["x", "y"], "n": 1, "at": "2026-05-01T12:00:00Z", "t": "1"}
{"n": 2.5, "tags": [], "b": false, "t": ""}
{"at": null, "tags": null}
"#;
    scratch.prepare(VECTORS, &with(&scratch, lines)).unwrap();
    let model = scratch.open();
    for (name, kind, expected) in [
        ("tags", List, [r#"["x","y"]"#, "[]", "null"]),
        ("n", Number, ["1.0", "2.5", "null"]),
        ("at", DateTime, [r#""2026-05-01T12:00:00Z""#, "null", "null"]),
        ("t", Text, [r#""1""#, r#""""#, "null"]),
        ("b", Boolean, ["null", "false", "null"]),
    ] {
        assert_eq!(values(&model, name), (kind, expected.map(str::to_owned).into()));
    }
    let names: Vec<_> = model.attributes().unwrap().columns().iter().map(|c| c.name()).collect();
    assert_eq!(names, ["tags", "n", "at", "t", "b"], "in the order in which they came");
}

#[test]
fn a_type_can_be_given() {
    let scratch = Scratch::new();
    let csv = "n,l,zip\n1,\"[\"\"x\"\"]\",007\n2,,8\n,[],9\n";
    let options = typed(with(&scratch, csv), "n", Number);
    let options = typed(typed(options, "l", List), "zip", Integer);
    scratch.prepare(VECTORS, &options).unwrap();
    let model = scratch.open();
    let of = |texts: [&str; 3]| texts.map(str::to_owned).into();
    assert_eq!(values(&model, "n"), (Number, of(["1.0", "2.0", "null"])));
    assert_eq!(values(&model, "l"), (List, of([r#"["x"]"#, "null", "[]"])));
    assert_eq!(values(&model, "zip"), (Integer, of(["7", "8", "9"])));
    // Also where lines of JSON have several types.
    let lines = "{\"n\": 1}\n{\"n\": \"x\"}\n{\"n\": true}\n";
    let options = PrepareOptions { replace: true, ..with(&scratch, lines) };
    scratch.prepare(VECTORS, &typed(options, "n", Text)).unwrap();
    assert_eq!(values(&scratch.open(), "n"), (Text, of([r#""1""#, r#""x""#, r#""true""#])));
}

#[test]
fn lines_go_with_their_rows_also_with_those_that_are_dropped() {
    let scratch = Scratch::new();
    // Bad, good, repeated, bad, good, repeated.
    let vectors = "x 1\na 1 0\na 2 0\ny\nb 0 1\nb 0 2\nc 1 1\n";
    let csv: String = (0..7).map(|line| format!("{line},t{line}\n")).collect();
    let options = with(&scratch, format!("n,t\n{csv}"));
    let options =
        PrepareOptions { skip_bad_rows: true, dim: std::num::NonZeroUsize::new(2), ..options };
    let summary = scratch.prepare(vectors, &options).unwrap();
    let model = scratch.open();
    assert_eq!(values(&model, "n").1, ["1", "4", "6"]);
    assert_eq!(values(&model, "t").1, [r#""t1""#, r#""t4""#, r#""t6""#]);
    // What is dropped leaves nothing in a dictionary.
    assert_eq!((summary.rows, summary.attributes[1].distinct), (3, 3));
    // The first rows have the first lines, and the others are not looked at.
    let scratch = Scratch::new();
    let limit = std::num::NonZeroUsize::new(2);
    let options = PrepareOptions { limit, ..with(&scratch, "n\n5\n6\n7\n8\n") };
    scratch.prepare(VECTORS, &options).unwrap();
    assert_eq!(values(&scratch.open(), "n").1, ["5", "6"]);
}

#[test]
fn a_file_may_be_packed_encoded_or_separated_by_other_signs() {
    let expected = [r#""é""#, r#""1,5""#, "null"];
    let text = "a;n\né;1\n1,5;2\n;3\n";
    for packing in Packing::ALL {
        let scratch = Scratch::new();
        scratch.prepare(VECTORS, &with(&scratch, packing.pack(text.as_bytes()))).unwrap();
        assert_eq!(values(&scratch.open(), "a").1, expected, "{packing:?}");
    }
    let scratch = Scratch::new();
    let latin1 = "latin1".parse().ok();
    let bytes = b"a\tn\r\n\xe9\t1\r\n1,5\t2\r\n\t3\r\n";
    let options = PrepareOptions { encoding: latin1, ..with(&scratch, bytes) };
    scratch.prepare(VECTORS, &options).unwrap();
    assert_eq!(values(&scratch.open(), "a").1, expected);
    let scratch = Scratch::new();
    let marked = format!("\u{feff}{text}");
    scratch.prepare(VECTORS, &with(&scratch, marked)).unwrap();
    assert_eq!(values(&scratch.open(), "a").1, expected);
}

#[test]
fn attributes_are_part_of_the_version_and_nothing_else_changes() {
    let prepared = |csv: Option<&str>| {
        let scratch = Scratch::new();
        let options = csv.map_or_else(PrepareOptions::default, |csv| with(&scratch, csv));
        scratch.prepare(VECTORS, &options).unwrap();
        scratch.open()
    };
    let (without, with_them) = (prepared(None), prepared(Some("n\n1\n2\n3\n")));
    assert!(without.attributes().is_none());
    assert_ne!(without.version(), with_them.version());
    let mut checksums = with_them.header().checksums;
    checksums.attributes = None;
    assert_eq!(checksums, without.header().checksums);
    // The same attributes are the same version, whatever file they are from.
    let lines = "{\"n\":1}\n{\"n\":2}\n{\"n\":3}\n";
    assert_eq!(prepared(Some(lines)).version(), with_them.version());
    for other in ["n\n1\n2\n4\n", "m\n1\n2\n3\n", "n\n1\n2\n\"\"\n", "n\n1\n2\n3.5\n"] {
        assert_ne!(prepared(Some(other)).version(), with_them.version(), "{other}");
    }
}

#[test]
fn a_model_in_memory_is_that_of_the_folder() {
    let scratch = Scratch::new();
    let options = with(&scratch, CSV);
    scratch.prepare(VECTORS, &options).unwrap();
    let folder = scratch.open();
    let input = Input::Bytes { name: "v", bytes: VECTORS.as_bytes() };
    let files = prepare_in_memory(input, &options).unwrap();
    let memory = ModelStore::from_memory("m", &files).unwrap();
    memory.verify(|_| ()).unwrap();
    assert_eq!(memory.version(), folder.version());
    for column in folder.attributes().unwrap().columns() {
        assert_eq!(values(&memory, column.name()), values(&folder, column.name()));
    }
    assert!(folder.attributes().unwrap().bytes() > 0);
}

#[test]
fn a_model_with_attributes_is_replaced_and_what_is_not_its_own_stays() {
    let scratch = Scratch::new();
    scratch.prepare(VECTORS, &with(&scratch, CSV)).unwrap();
    let replace = PrepareOptions { replace: true, ..PrepareOptions::default() };
    let other = scratch.out().join("attributes").join("thesis.txt");
    fs::write(&other, "years of work").unwrap();
    let refused = scratch.prepare(VECTORS, &replace).unwrap_err();
    assert!(matches!(refused, ModelError::OutputInTheWay { .. }), "{refused}");
    fs::remove_file(&other).unwrap();
    scratch.prepare(VECTORS, &replace).unwrap();
    assert!(scratch.open().attributes().is_none() && !other.parent().unwrap().exists());
}
