//! Files of attributes that are refused, with the line, the field and the cure.

use model_store::attributes::AttributeType::{List, Number};

use super::support::{typed, with};
use crate::formats::support::Scratch;

const VECTORS: &str = "a 1 0\nb 0 1\n";

fn refused(content: impl AsRef<[u8]>) -> String {
    let scratch = Scratch::new();
    let said = scratch.refused(VECTORS, &with(&scratch, content));
    assert!(said.contains("words.any: "), "{said}");
    said
}

#[test]
fn faults_are_named_with_their_line() {
    for (content, part) in [
        ("a,b\n1,2\n3\n", "line 3: it has 1 column; the first line has 2"),
        ("a,b\n1,2\n\"3,4\n", "line 3: it has a quote that is opened and not closed"),
        ("a,a\n1,2\n3,4\n", "line 1: two columns have the name \"a\"; rename one"),
        ("a b,c\n1,2\n3,4\n", "\"a b\" can't be the name of an attribute"),
        ("key,c\n1,2\n3,4\n", "in filters, it is the word of a row; rename it"),
        ("c,not\n1,2\n3,4\n", "it is a keyword of filters; rename it"),
        ("", "it is empty"),
        (
            "{\"a\": 1}\n{\"a\": \"x\"}\n",
            "line 2: `a` is a text, but a whole number of 64 bits in line 1",
        ),
        ("{\"a\": [1]}\n{}\n", "line 1: `a` is an array with other elements than texts"),
        ("{\"a\": {}}\n{}\n", "line 1: `a` is an object"),
        ("{\"a\": 1}\n{\"a\": 1, \"a\": 2}\n", "line 2: it has the field `a` twice"),
        ("{\"a\": 1}\n{'a': 1}\n", "line 2: it is not a JSON object: "),
        ("{\"a\": 1}\n\n{\"a\": 1}\n", "line 2: it is empty"),
        (
            "{\"a\": 99999999999999999999}\n{}\n",
            "line 1: `a` is a whole number of more than 64 bits",
        ),
        ("{}\n{}\n", "0 attributes"),
        ("[{\"a\": 1},\n{\"a\": 2}]\n", "it is a JSON array"),
        ("PAR1\u{15}\u{4}", "Parquet"),
    ] {
        let said = refused(content);
        assert!(said.contains(part), "{content}: {said}");
    }
    assert!(refused(b"a\n\xff\n1\n").contains("line 2: `a` has bytes that are not of the file's"));
    assert!(refused(b"\xff\xfea\0\n\x001\0\n\0").contains("UTF-16"));
}

#[test]
fn both_numbers_are_named_if_they_differ() {
    for content in ["a\n1\n", "a\n1\n2\n3\n", "{\"a\": 1}\n"] {
        let said = refused(content);
        let lines = content.matches(['1', '2', '3']).count();
        let part = format!("it has {lines} lines of attributes, but vectors.any has 2 rows; ");
        assert!(said.contains(&part) && said.contains("--key"), "{said}");
    }
}

#[test]
fn a_type_that_is_given_is_kept_or_the_value_is_named() {
    let scratch = Scratch::new();
    for (name, kind, part) in [
        ("a", Number, "line 3: `a` is not a finite number: \"x\"; correct it, leave it out if"),
        ("a", List, "line 2: `a` is not a list of texts: \"1\""),
        ("b", Number, "it has no `b`, which --type names; it has a"),
    ] {
        let options = typed(with(&scratch, "a\n1\nx\n"), name, kind);
        let said = scratch.refused(VECTORS, &options);
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn a_file_that_is_not_there_is_named() {
    let scratch = Scratch::new();
    let mut options = with(&scratch, "a\n1\n2\n");
    let nowhere = scratch.path("nowhere.csv");
    options.attributes.as_mut().unwrap().path = nowhere;
    let said = scratch.refused(VECTORS, &options);
    assert!(said.contains("nowhere.csv"), "{said}");
}
