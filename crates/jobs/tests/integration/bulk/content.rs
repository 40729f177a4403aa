//! Answers, odd inputs, columns, compression.

use std::fs;
use std::io::{Read as _, Write as _};

use flate2::Compression;
use flate2::read::MultiGzDecoder;
use flate2::write::GzEncoder;
use jobs::bulk::{BulkOptions, BulkWork};
use kindred::heads::{Form, WantedTerms};
use kindred::{Method, Options};
use serde_json::{Value, json};

use crate::bulk::{Scratch, demo, labels, run, texts};

#[test]
fn answers_have_the_bits_of_single_ones() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let texts = texts(kindred.model(), 2500);
    let lines = texts.iter().map(|text| json!({"text": text}).to_string() + "\n");
    let input = scratch.file("in.jsonl", lines.collect::<String>());
    let default = BulkOptions::default();

    let (found, done) = scratch.answers(&kindred, &labels(&kindred), &input, &default);
    assert_eq!((found.len(), done.answered, done.failed), (2500, 2500, 0));
    let head = kindred.built_in_head().unwrap();
    for (index, text) in texts.iter().enumerate().step_by(97) {
        let single = kindred.classify(&head, [text]).wait().unwrap().pop().unwrap().unwrap();
        let single = single.labels.iter().map(|label| {
            json!({"label": label.name, "probability": label.probability, "score": label.score})
        });
        assert_eq!(found[index]["labels"], Value::from_iter(single), "{text}");
        assert_eq!(found[index]["id"], index as u64 + 1);
    }

    let expander = kindred.built_in_expander().unwrap();
    let wanted = WantedTerms { top: 20, ..WantedTerms::default() };
    let work = BulkWork::Expand(expander.clone(), wanted.clone(), Form::Terms);
    let some = scratch.file("some.txt", texts[..200].join("\n"));
    let (found, _) = scratch.answers(&kindred, &work, &some, &default);
    for (index, text) in texts[..200].iter().enumerate().step_by(13) {
        let single =
            kindred.expand(&expander, [text], wanted.clone()).wait().unwrap().pop().unwrap();
        let terms = single.unwrap().terms;
        let terms = terms.iter().map(|term| json!({"term": term.word, "weight": term.weight}));
        assert_eq!(found[index]["terms"], Value::from_iter(terms), "{text}");
    }

    let words: Vec<&str> = (0..300).map(|row| kindred.model().word(row * 91).unwrap()).collect();
    let options = Options::new().k(7).min_score(0.1);
    let input = scratch.file("words", words.join("\n"));
    let work = BulkWork::Nearest(options.clone());
    let (found, _) = scratch.answers(&kindred, &work, &input, &default);
    let near = |answer: &kindred::Answer<'_>| -> Value {
        let near = answer.neighbors.iter();
        near.map(|one| json!({"word": one.word, "score": one.score, "row": one.row})).collect()
    };
    for (index, word) in words.iter().enumerate().step_by(11) {
        let single = kindred.nearest(*word, options.clone()).wait().unwrap();
        assert_eq!(found[index]["neighbors"], near(&single), "{word}");
    }

    let asked = ["king - man + woman", "paris + (", "0.5*frog + toad"];
    let input = scratch.file("asked.txt", asked.join("\r\n"));
    let options = Options::new().k(3).method(Method::ThreeCosMul);
    let work = BulkWork::Analogy(options.clone());
    let (found, done) = scratch.answers(&kindred, &work, &input, &default);
    let single = kindred.analogy(asked[0], options).wait().unwrap();
    assert_eq!(found[0]["neighbors"], near(&single));
    assert_eq!(found[1]["error"]["code"], "bad_expression");
    assert_eq!(done.errors["bad_expression"], 1);
    let (found, _) = scratch.answers(
        &kindred,
        &BulkWork::NearestOfTexts(Options::new().k(2)),
        &scratch.file("t.txt", "The quick brown fox!"),
        &default,
    );
    assert!(found[0]["used"].as_array().unwrap().contains(&"quick".into()), "{}", found[0]);
}

#[test]
fn odd_inputs_lose_no_row() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let work = labels(&kindred);
    let large = "good film ".repeat(100_000);
    let too_large = "x".repeat(17 << 20);
    let bom = "\u{feff}";
    // Each row: its id, and `ok` or the code of its error.
    let cases: Vec<(&str, Vec<u8>, &str)> = vec![
        ("a.txt", b"".into(), ""),
        ("a.csv", b"".into(), ""),
        ("a.jsonl", b"".into(), ""),
        ("a.jsonl", b"\n \r\n\n".into(), ""),
        ("a.csv", b"text\n".into(), ""),
        ("a.txt", b"good\nbad".into(), "1 ok, 2 ok"),
        ("a.txt", format!("{bom}good\r\n\r\nbad\r\n").into(), "1 ok, 2 invalid_value, 3 ok"),
        ("a.txt", format!("good\n{bom}\n").into(), "1 ok, 2 unknown_word"),
        ("a.txt", format!("{large}\ngood\n").into(), "1 ok, 2 ok"),
        ("a.txt", format!("good\n{too_large}\nbad").into(), "1 ok, 2 row_too_large, 3 ok"),
        ("a.txt", format!("good\n{too_large}").into(), "1 ok, 2 row_too_large"),
        ("a.txt", b"good\n\xff\xfe\nbad\0bad".into(), "1 ok, 2 not_utf8, 3 ok"),
        (
            "a.jsonl",
            format!("{bom}{{\"text\":\"good\"}}\r\n\n{{\"text\":[]}}\n{{}}\n[]\n{{\"text\":\"\\ud83d\"}}\n{{\"text\":\"bad\"}}").into(),
            "1 ok, 3 invalid_value, 4 invalid_request, 5 not_json, 6 invalid_value, 7 ok",
        ),
        (
            "a.csv",
            format!("{bom}\"x\",\" text \"\r\n1,\"good, \"\"very\"\"\nfilm\"\r\n\r\n2,bad\n3\n,\"\"\n5,bad").into(),
            "2 ok, 5 ok, 6 invalid_request, 7 invalid_value, 8 ok",
        ),
        ("a.csv", format!("text,x\n\"{large}\",\n\"good\",\n{bom}bad,1").into(), "2 ok, 3 ok, 4 ok"),
        (
            "a.csv",
            b"x,text\n1,well, an awful, stupid story\n2,dull\n3\n4,\"well, dull\"".into(),
            "2 invalid_request, 3 ok, 4 invalid_request, 5 ok",
        ),
        (
            "a.tsv",
            format!("{bom}x\tText\r\n1\t\"good, bad\r\n\r\n\"2\"\tbad\"\n3\tbad\tx\n4\n\t\n5\tdull").into(),
            "2 ok, 4 ok, 5 invalid_request, 6 invalid_request, 7 invalid_value, 8 ok",
        ),
        ("a.tsv", b"text\n\"bad\nand, so, on\n".into(), "2 ok, 3 ok"),
        ("a.csv", b"text\rgood\r\rbad\r".into(), "2 ok, 4 ok"),
        ("a.csv", b"text\ngood\n\"bad\nand, so, on\n".into(), "2 ok, 3 not_csv"),
        ("a.csv", b"text\ngood\n\"b\xff\"\n\"\"\"bad\"\"\"".into(), "2 ok, 3 not_utf8, 4 ok"),
        ("a.csv", format!("text\n\"{too_large}\"\ngood").into(), "2 row_too_large, 3 ok"),
        ("a.csv", format!("text{}\ngood\n", ",x".repeat(70_000)).into(), "2 ok"),
    ];
    for (name, content, expected) in cases {
        let said =
            format!("{name}: {:?}", String::from_utf8_lossy(&content[..content.len().min(99)]));
        let input = scratch.file(name, content);
        let options = BulkOptions::default();
        if expected == "2 ok" {
            // More columns than a row may have: the file can't be read at all, and says so.
            assert!(run(&kindred, &work, (&input, &scratch.path("no.jsonl")), &options).is_err());
            continue;
        }
        let (found, done) = scratch.answers(&kindred, &work, &input, &options);
        let found: Vec<String> = found
            .iter()
            .map(|row| {
                let code = row["error"]["code"].as_str();
                assert!(code.is_some() != row["labels"].is_array(), "{row}");
                format!("{} {}", row["id"], code.unwrap_or("ok"))
            })
            .collect();
        assert_eq!(found.join(", "), expected, "{said}");
        assert_eq!(done.rows, found.len() as u64);
    }
}

#[test]
fn an_input_or_an_output_that_would_be_misread_is_refused() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let refused = |work: &BulkWork, name: &str, content: &str, out: &str| {
        let input = scratch.file(name, content);
        let out = scratch.path(out);
        run(&kindred, work, (&input, &out), &BulkOptions::default()).unwrap_err().to_string()
    };
    let labels = labels(&kindred);
    for content in ["good\rbad", "\rgood\rbad\r"] {
        let error = refused(&labels, "a.txt", content, "a.jsonl");
        assert!(error.contains("carriage returns between its lines"), "{error}");
    }
    let expander = kindred.built_in_expander().unwrap();
    let wanted = WantedTerms { top: 5, ..WantedTerms::default() };
    let terms = |form| BulkWork::Expand(expander.clone(), wanted.clone(), form);
    for form in Form::ALL.into_iter().filter(|form| *form != Form::Terms) {
        let error = refused(&terms(form), "a.txt", "good\n", "a.csv");
        assert!(error.contains(form.name()) && error.contains("CSV has no place"), "{error}");
    }
    let input = scratch.file("a.txt", "good\n");
    let files = (input.as_path(), scratch.path("a.csv"));
    run(&kindred, &terms(Form::Terms), (files.0, &files.1), &BulkOptions::default()).unwrap();
}

#[test]
fn files_of_other_kinds_are_named() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let work = labels(&kindred);
    let gzip = |content: &[u8]| {
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        gzip.write_all(content).unwrap();
        gzip.finish().unwrap()
    };
    for (name, content, part) in [
        ("a.txt", b"PAR1\x15\x04\x15\0".to_vec(), "it is a Parquet file, and text is needed"),
        ("a.csv", b"\x93NUMPY\x01\0".to_vec(), "it is a NumPy file (.npy), and text is needed"),
        ("a.tsv", b"SQLite format 3\0".to_vec(), "it is an SQLite database"),
        ("a.jsonl", gzip(b"{}"), "it is compressed with gzip; unpack it first: gunzip"),
    ] {
        let input = scratch.file(&format!("{name}.gz"), gzip(&content));
        let out = scratch.path("other.jsonl");
        let refused = run(&kindred, &work, (&input, &out), &BulkOptions::default());
        let error = refused.unwrap_err().to_string();
        assert!(error.contains(name) && error.contains(part), "{error}");
        assert!(!out.exists());
    }
    // Pages and JSON are texts like any other.
    let page = scratch.file("page.txt", "<!DOCTYPE html>\n{\"good\": 1}\n");
    let out = scratch.path("page.jsonl");
    run(&kindred, &work, (&page, &out), &BulkOptions::default()).unwrap();
}

#[test]
fn utf16_is_refused_whole() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let work = labels(&kindred);
    let little = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let big = |text: &str| text.encode_utf16().flat_map(u16::to_be_bytes).collect::<Vec<u8>>();
    let json = "{\"text\": \"good\"}\n{\"text\": \"bad\"}\n";
    for (name, text) in [
        ("a.txt", "a good film\r\nbad\r\n"),
        ("long.txt", &"“dull”, très dull\n".repeat(20_000)),
        ("other.txt", "хороший фильм\nплохой и очень скучный\n"),
        ("a.csv", "text,x\ngood,1\nbad,2\n"),
        ("a.tsv", "x\ttext\n1\tgood\n2\tbad\n"),
        ("a.jsonl", json),
    ] {
        let marked = format!("\u{feff}{text}");
        for (content, cure) in [
            (little(text), "iconv -f UTF-16LE"),
            (big(text), "iconv -f UTF-16BE"),
            (little(&marked), "iconv -f UTF-16 "),
            (big(&marked), "iconv -f UTF-16 "),
        ] {
            let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
            gzip.write_all(&content).unwrap();
            let packed = scratch.file(&format!("{name}.gz"), gzip.finish().unwrap());
            for input in [scratch.file(name, &content), packed] {
                let out = scratch.path("utf16.jsonl");
                let refused = run(&kindred, &work, (&input, &out), &BulkOptions::default());
                let error = refused.unwrap_err().to_string();
                assert!(error.contains(name) && error.contains("it is UTF-16 text"), "{error}");
                assert!(error.contains(cure), "{error}");
                assert!(!out.exists() && !scratch.path("utf16.jsonl.partial").exists());
            }
        }
    }
    // Characters that are NUL here and there are part of their texts.
    let some = "good\0\nbad\0bad\n\0\0dull film\0\n".repeat(100);
    let (found, done) =
        scratch.answers(&kindred, &work, &scratch.file("a.txt", some), &BulkOptions::default());
    assert_eq!((found.len(), done.rows), (300, 300));
}

#[test]
fn zero_bytes_at_the_end_are_no_row() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let work = labels(&kindred);
    let options = BulkOptions::default();
    for (name, rows) in [
        ("a.txt", "good\nbad\n"),
        ("a.jsonl", "{\"text\": \"good\"}\n\n{\"text\": \"bad\"}\n"),
        ("a.csv", "text,id\r\ngood,1\r\n\r\nbad,2\r\n\r\n"),
        ("b.csv", "text\ngood\n\"bad\"\n"),
        ("a.tsv", "id\ttext\n1\tgood\n2\tbad\n"),
    ] {
        for zeros in [0, 1, 9000] {
            let input = scratch.file(name, format!("{rows}{}", "\0".repeat(zeros)));
            let (found, done) = scratch.answers(&kindred, &work, &input, &options);
            assert_eq!((found.len(), done.rows), (2, 2), "{name}, {zeros}");
            assert!(found.iter().all(|row| row["error"].is_null()), "{found:?}");
            let warning = format!("the zero bytes at its end ({zeros}) were left out");
            assert_eq!(done.warnings, Vec::from_iter((zeros > 0).then_some(warning)), "{name}");
        }
    }
    // A line that may be cut off is one, and so are zero bytes before another row.
    for (name, content, rows) in [
        ("a.txt", "good\nbad\0\0", 2),
        ("a.csv", "text\ngood\nbad\0\0", 2),
        ("a.csv", "text\ngood\n\0\0\nbad\n", 3),
        ("a.csv", "text\ngood\n\0\0bad\n", 2),
    ] {
        let (_, done) = scratch.answers(&kindred, &work, &scratch.file(name, content), &options);
        assert_eq!((done.rows, done.warnings.len()), (rows, 0), "{content:?}");
    }
    // More than a row may have are no end.
    for (name, rows) in [("a.txt", "good\n"), ("a.csv", "text\ngood\n")] {
        let content = [rows.as_bytes(), &vec![0; (16 << 20) + 1]].concat();
        let input = scratch.file(name, content);
        let (found, done) = scratch.answers(&kindred, &work, &input, &options);
        assert_eq!((done.rows, done.warnings.len()), (2, 0), "{name}");
        assert_eq!(found[1]["error"]["code"], "row_too_large", "{name}");
    }
}

#[test]
fn columns_ids_and_compression() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let work = labels(&kindred);
    let rows = "key,text,body\na,x,good film\n\"b,1\",x,?!\nc,x,bad film\n";
    let options = BulkOptions {
        column: Some("body".into()),
        id: Some("key".into()),
        ..BulkOptions::default()
    };
    let (found, _) = scratch.answers(&kindred, &work, &scratch.file("in.csv", rows), &options);
    let ids: Vec<&str> = found.iter().map(|row| row["id"].as_str().unwrap()).collect();
    assert_eq!(ids, ["a", "b,1", "c"]);

    // The same rows with tabs and in lines of JSON, with names in any case. A row that is too long
    // has no id.
    let tabs = "KEY\ttext\tBody\na\tx\tgood film\nb,1\tx\t?!\nc\tx\tbad film\nd\tx\ty\tz\n";
    let (of_tabs, _) = scratch.answers(&kindred, &work, &scratch.file("in.tsv", tabs), &options);
    assert_eq!((&of_tabs[..3], &of_tabs[3]["id"]), (&found[..], &Value::Null));
    let json = "\n{\"Key\": \"a\", \"BODY\": \"good film\"}\n{\"key\": \"b,1\", \"Key\": 1, \"body\": \"?!\"}\n";
    let (of_json, _) = scratch.answers(&kindred, &work, &scratch.file("in.jsonl", json), &options);
    assert_eq!(of_json[..], found[..2]);

    let mut gzip = GzEncoder::new(Vec::new(), Compression::default());
    gzip.write_all(rows.as_bytes()).unwrap();
    let packed = scratch.file("in.csv.gz", gzip.finish().unwrap());
    let (plain_out, packed_out) = (scratch.path("o.csv"), scratch.path("o.csv.gz"));
    run(&kindred, &work, (&scratch.path("in.csv"), &plain_out), &options).unwrap();
    run(&kindred, &work, (&packed, &packed_out), &options).unwrap();
    let (mut text, plain) = (String::new(), fs::read_to_string(&plain_out).unwrap());
    MultiGzDecoder::new(fs::File::open(&packed_out).unwrap()).read_to_string(&mut text).unwrap();
    assert_eq!(text, plain);
    let lines: Vec<&str> = plain.lines().collect();
    assert_eq!(lines[0], "id,rank,label,probability,score,error,detail,asked");
    assert!(lines[1].starts_with("a,1,positive,0."), "{plain}");
    assert!(lines[3].starts_with("\"b,1\",,,,,unknown_word,line 3: the model does not"), "{plain}");
    // The same numbers as in JSON, bit by bit.
    let probability: f64 = lines[1].split(',').nth(3).unwrap().parse().unwrap();
    assert_eq!(found[0]["labels"][0]["probability"].as_f64(), Some(probability));

    let refused = |input: &str, options: &BulkOptions, part: &str| {
        let to = scratch.path("refused.jsonl");
        let error = run(&kindred, &work, (&scratch.path(input), &to), options).unwrap_err();
        assert!(error.to_string().contains(part), "{error}");
        assert!(!scratch.path("refused.jsonl.partial").exists() && !to.exists());
    };
    let none = BulkOptions { column: Some("none".into()), ..options.clone() };
    refused("in.csv", &none, "no column `none`; choose one of its columns: key, text, body");
    scratch.file("two.tsv", "Body\tBODY\tkey\ngood\tbad\t1\n");
    refused("two.tsv", &options, "may be its column `Body` or its column `BODY`");
    scratch.file("open.csv", "\"key,body\n1,good\n");
    refused("open.csv", &options, "its first row");
    scratch.file("wide.csv", "key,body\n1,good\n2,well, bad\n");
    let strict = BulkOptions { strict: true, ..options.clone() };
    refused("wide.csv", &strict, "line 3: invalid_request: it has 3 columns; the first line has 2");
    refused("missing.csv", &options, "missing.csv");
    scratch.file("a.txt", "good\n");
    refused("a.txt", &options, "leave out --column and --id");
    scratch.file("cut.csv.gz", &fs::read(&packed).unwrap()[..30]);
    refused("cut.csv.gz", &options, "cut off or damaged");
    refused("in.csv", &BulkOptions { strict: true, ..options.clone() }, "line 3: unknown_word");
    let same = run(&kindred, &work, (&plain_out, &plain_out), &options).unwrap_err();
    assert!(same.to_string().contains("is the input"), "{same}");
}
