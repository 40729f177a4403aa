//! Files of attributes as people have them: ends of lines, quotes, gaps, large numbers, dates.

use std::num::NonZeroUsize;

use model_store::attributes::AttributeType::{self, DateTime, Integer, List, Number, Text};
use model_store::prepare::PrepareOptions;

use super::support::{joined, typed, values, with};
use crate::formats::support::Scratch;

const VECTORS: &str = "a 1 0\nb 0 1\nc 1 1\n";

/// The values of one attribute, prepared from this content.
fn of(content: impl AsRef<[u8]>, name: &str) -> (AttributeType, Vec<String>) {
    let scratch = Scratch::new();
    scratch.prepare(VECTORS, &with(&scratch, content)).unwrap();
    values(&scratch.open(), name)
}

/// Why this content is refused.
fn refused(content: impl AsRef<[u8]>) -> String {
    let scratch = Scratch::new();
    scratch.refused(VECTORS, &with(&scratch, content))
}

fn texts<const N: usize>(texts: [&str; N]) -> Vec<String> {
    texts.map(str::to_owned).into()
}

#[test]
fn lines_may_end_in_any_way_and_a_mark_may_come_first() {
    let csv = "n,t\n1,x\n,\"y\ny\"\n3,\n";
    let json = "{\"n\": 1, \"t\": \"x\"}\n{\"t\": \"y\\ny\"}\n{\"n\": 3}\n";
    let marked = "\u{feff}".to_owned();
    for (content, break_within) in [
        (csv.to_owned(), "\\n"),
        (csv.replace('\n', "\r\n"), "\\r\\n"),
        (csv.replace('\n', "\r"), "\\r"),
        (marked.clone() + &csv.replace('\n', "\r\n"), "\\r\\n"),
        (csv.trim_end().to_owned(), "\\n"),
        (csv.replace('\n', "\r\n").trim_end().to_owned(), "\\r\\n"),
        (csv.to_owned() + "\n\r\n", "\\n"),
        (json.to_owned(), "\\n"),
        (json.replace('\n', "\r\n"), "\\n"),
        (marked + &json.replace('\n', "\r\n"), "\\n"),
        (json.trim_end().to_owned(), "\\n"),
        (json.to_owned() + "\n\r\n", "\\n"),
    ] {
        let second = format!("\"y{break_within}y\"");
        assert_eq!(of(&content, "n"), (Integer, texts(["1", "null", "3"])), "{content:?}");
        assert_eq!(of(&content, "t"), (Text, texts(["\"x\"", &second, "null"])), "{content:?}");
    }
}

#[test]
fn an_empty_line_before_others_is_no_row_that_is_left_out() {
    for end in ["\n", "\r\n", "\r"] {
        let of_lines = |lines: &[&str]| lines.join(end) + end;
        for (lines, line) in [
            (&["n", "1", "", "3"][..], 3),
            (&["n", "", "1", "2", "3"], 2),
            (&["", "n", "1", "2", "3"], 1),
            (&["n,t", "1,x", "2,y", "", "3,z"], 4),
            (&["n,t", "1,\"x\ny\"", "", "2,y", "3,z"], 4),
        ] {
            let said = refused(of_lines(lines));
            let part = format!("line {line}: it is empty; remove it, or write \"\"");
            assert!(said.contains(&part), "{lines:?}: {said}");
        }
        assert_eq!(of(of_lines(&["n", "1", "\"\"", "3"]), "n").1, ["1", "null", "3"]);
    }
    // Also if there are lines enough for the rows that are wanted.
    let scratch = Scratch::new();
    let limit = NonZeroUsize::new(2);
    let options = PrepareOptions { limit, ..with(&scratch, "n\n\n6\n7\n8\n") };
    let said = scratch.refused(VECTORS, &options);
    assert!(said.contains("line 2: it is empty"), "{said}");
}

#[test]
fn a_quote_that_swallows_lines_is_refused_in_any_order() {
    for (content, part) in [
        ("w,t\na,\"x\nb,y\nc,z\n", "line 2: it has a quote that is opened and not closed"),
        ("w,t\na,x\nb,y\nc,\"z", "line 4: it has a quote that is opened and not closed"),
        ("w,t\na,\"x\nb,y\nc,\"z\"\n", "line 2: a field goes on after the quote"),
        ("w;t\na;\"x\" y\nb;y\nc;z\n", "line 2: a field goes on after the quote"),
        ("w,t\na,x,y\nb,y\nc,z\n", "line 2: it has 3 columns; the first line has 2; put a text"),
        ("\"w,t\na,x\n", "line 1: it has a quote that is opened and not closed"),
    ] {
        let said = refused(content);
        assert!(said.contains(part), "{content}: {said}");
        let scratch = Scratch::new();
        let said = scratch.refused(VECTORS, &joined(&scratch, "w", content));
        assert!(said.contains(part), "{content}: {said}");
    }
    // Between tabs, a quote is a character as any other; in a field of CSV, too.
    assert_eq!(
        of("t\tn\n5\" disk\t1\n\"a\"\t2\n\"\t3\n", "t").1[..2],
        [r#""5\" disk""#, r#""\"a\"""#]
    );
    assert_eq!(of("t,n\n5\" disk,1\nb,2\nc,3\n", "t").1[0], r#""5\" disk""#);
}

#[test]
fn names_are_told_apart_and_none_is_empty() {
    for (content, part) in [
        ("a, a\n1,2\n3,4\n5,6\n", "line 1: two columns have the name \"a\"; rename one"),
        // As pandas writes an index.
        (",n\n0,1\n1,2\n2,3\n", "\"\" can't be the name of an attribute: it is empty; rename it"),
        ("n,\n1,\n2,\n3,\n", "\"\" can't be the name of an attribute: it is empty; rename it"),
        ("{\"\": 1}\n{}\n{}\n", "\"\" can't be the name of an attribute: it is empty; rename it"),
        ("key,n\na,1\nb,2\nc,3\n", "\"key\" can't be the name of an attribute"),
        ("{\"key\": \"a\"}\n{}\n{}\n", "\"key\" can't be the name of an attribute"),
    ] {
        let said = refused(content);
        assert!(said.contains(part), "{content}: {said}");
    }
    // Names differ by case; the key's may be any.
    assert_eq!(of("n,N\n1,4\n2,5\n3,6\n", "N").1, ["4", "5", "6"]);
    for (key, content) in [("", ",n\nc,3\na,1\nb,2\n"), ("the key", "n,the key\n3,c\n1,a\n2,b\n")] {
        let scratch = Scratch::new();
        scratch.prepare(VECTORS, &joined(&scratch, key, content)).unwrap();
        assert_eq!(values(&scratch.open(), "n").1, ["1", "2", "3"]);
    }
}

#[test]
fn no_digit_of_a_number_is_lost_without_being_asked_for() {
    let most = "9223372036854775807";
    let more = "9223372036854775808";
    let odd = "9007199254740993";
    let quoted = |text: &str| format!("{text:?}");
    assert_eq!(of(format!("n\n{most}\n1\n-2\n"), "n"), (Integer, texts([most, "1", "-2"])));
    for (large, other) in [(more, "1"), (odd, "1.5"), (most, "1e3")] {
        let found = of(format!("n\n{large}\n{other}\n{other}\n"), "n");
        assert_eq!((found.0, &found.1[0]), (Text, &quoted(large)));
    }
    for (content, part) in [
        (format!("{{\"n\": {more}}}\n{{}}\n{{}}\n"), "line 1: `n` is a whole number of more"),
        (
            format!("{{\"n\": {odd}}}\n{{}}\n{{\"n\": 1.5}}\n"),
            "line 3: `n` has numbers with fractions, and in line 1 a whole number",
        ),
        (
            format!("{{\"n\": 1.5}}\n{{}}\n{{\"n\": {odd}}}\n"),
            "line 3: `n` has numbers with fractions, and in line 3 a whole number",
        ),
    ] {
        let said = refused(&content);
        assert!(said.contains(part) && said.contains("text"), "{content}: {said}");
    }
    // Who gives the type has meant it.
    let scratch = Scratch::new();
    let options = typed(with(&scratch, format!("n\n{odd}\n1.5\n2\n")), "n", Number);
    scratch.prepare(VECTORS, &options).unwrap();
    assert_eq!(values(&scratch.open(), "n").1, ["9007199254740992.0", "1.5", "2.0"]);
    let scratch = Scratch::new();
    let options = typed(with(&scratch, format!("n\n1\n{more}\n2\n")), "n", Integer);
    let said = scratch.refused(VECTORS, &options);
    assert!(said.contains("line 3: `n` is not a whole number of 64 bits: \"9223"), "{said}");
}

#[test]
fn what_is_no_number_is_not_one() {
    for odd in ["nan", "NaN", "inf", "-Infinity", "1_000", "0x10", "1,5", "+1", "NA", "1.5 €"] {
        let field = format!("\"{odd}\"");
        let found = of(format!("n\n1.5\n{field}\n2\n"), "n");
        assert_eq!((found.0, &found.1[1]), (Text, &format!("{odd:?}")));
        if odd == "+1" {
            continue;
        }
        let scratch = Scratch::new();
        let options = typed(with(&scratch, format!("n\n1.5\n{field}\n2\n")), "n", Number);
        let said = scratch.refused(VECTORS, &options);
        assert!(said.contains("line 3: `n` is not a finite number: "), "{said}");
    }
    for odd in ["NaN", "Infinity", "-Infinity", "1e999"] {
        let said = refused(format!("{{\"n\": 1.5}}\n{{\"n\": {odd}}}\n{{}}\n"));
        assert!(said.contains("line 2: "), "{said}");
    }
    // Both zeros are one value.
    let scratch = Scratch::new();
    let summary = scratch.prepare(VECTORS, &with(&scratch, "n\n0.0\n-0.0\n0\n")).unwrap();
    assert_eq!(summary.attributes[0].distinct, 1);
    assert_eq!(values(&scratch.open(), "n"), (Number, texts(["0.0", "0.0", "0.0"])));
}

#[test]
fn a_date_without_a_zone_is_text_unless_it_must_be_one() {
    for odd in ["2026-05-01", "2026-05-01T12:00:00", "2026-05-01 12:00", "01.05.2026"] {
        let content = format!("at\n2026-05-01T12:00:00Z\n{odd}\n\"\"\n");
        let expected = texts(["\"2026-05-01T12:00:00Z\"", &format!("{odd:?}"), "null"]);
        assert_eq!(of(&content, "at"), (Text, expected));
        let scratch = Scratch::new();
        let said = scratch.refused(VECTORS, &typed(with(&scratch, content), "at", DateTime));
        assert!(said.contains("line 3: `at` is not a date-time as in RFC 3339, such as"), "{said}");
        let json = format!("{{\"at\": \"2026-05-01T12:00:00Z\"}}\n{{\"at\": {odd:?}}}\n{{}}\n");
        assert_eq!(of(json, "at").0, Text);
    }
    // Equal moments in different zones are one value.
    let scratch = Scratch::new();
    let csv = "at\n2026-05-01T12:00:00Z\n2026-05-01 14:00:00.000+02:00\n1969-12-31T23:59:59Z\n";
    let summary = scratch.prepare(VECTORS, &with(&scratch, csv)).unwrap();
    assert_eq!((summary.attributes[0].kind, summary.attributes[0].distinct), (DateTime, 2));
}

#[test]
fn columns_without_values_and_lists_of_all_kinds_are_kept() {
    assert_eq!(of("n,t\n1,\n2,\n3,\n", "t"), (Text, texts(["null", "null", "null"])));
    let lines = "{\"l\": []}\n{\"l\": [\"\", \"b\\n\", \"\", \"é\"]}\n{\"l\": null}\n";
    assert_eq!(of(lines, "l"), (List, texts(["[]", r#"["","b\n","","é"]"#, "null"])));
    let scratch = Scratch::new();
    let csv = "l\n[]\n\"[\"\"\"\", \"\"b,\"\"]\"\n\"\"\n";
    scratch.prepare(VECTORS, &typed(with(&scratch, csv), "l", List)).unwrap();
    assert_eq!(values(&scratch.open(), "l").1, ["[]", r#"["","b,"]"#, "null"]);
    for odd in ["[1]", "[\"a\", null]", "[\"a\"", "a", "\"\"\"a\"\"\""] {
        let scratch = Scratch::new();
        let csv = format!("l;n\n[];1\n{odd};2\n[];3\n");
        let said = scratch.refused(VECTORS, &typed(with(&scratch, csv), "l", List));
        assert!(said.contains("line 3: `l` is not a list of texts: "), "{odd}: {said}");
    }
}

#[test]
fn a_file_without_lines_has_too_few() {
    for (content, part) in [
        ("", "it is empty"),
        ("\n\r\n", "it is empty"),
        ("\u{feff}", "it is empty"),
        ("n,t\n", "it has 0 lines of attributes, but vectors.any has 3 rows"),
        ("n,t", "it has 0 lines of attributes, but vectors.any has 3 rows"),
    ] {
        let said = refused(content);
        assert!(said.contains(part), "{content:?}: {said}");
    }
}
