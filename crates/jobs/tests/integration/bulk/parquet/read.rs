//! What is read gives the answers that the same table gives as CSV.

use std::fs;

use jobs::bulk::{BulkOptions, BulkWork};
use kindred::{Options, Unknown};
use parquet::basic::{Compression, GzipLevel, ZstdLevel};

use super::{Column, write};
use crate::bulk::resume::{ROWS, nearest, stopped, whole, words};
use crate::bulk::{Scratch, demo, labels, run, texts};

const SCHEMA: &str = "message table {
    REQUIRED DOUBLE x;
    OPTIONAL BYTE_ARRAY body (UTF8);
    REQUIRED INT64 key;
    REQUIRED INT32 small (UINT_32);
    REQUIRED BOOLEAN yes;
    REQUIRED group deep { REQUIRED BYTE_ARRAY body (UTF8); }
}";

#[test]
fn a_table_gives_the_answers_that_it_gives_as_csv() {
    let (kindred, scratch) = (demo(), Scratch::new());
    const COUNT: usize = 1300;
    let bodies: Vec<Option<String>> =
        texts(kindred.model(), COUNT as u32).into_iter().map(Some).collect();
    let xs: Vec<f64> = (0..COUNT).map(|n| n as f64 / 7.0).collect();
    let keys: Vec<i64> = (0..COUNT as i64).map(|n| n * 1_000_000_007 - 5).collect();
    let smalls: Vec<i32> = (0..COUNT as i32).map(|n| i32::MIN + n).collect();
    let switches: Vec<bool> = (0..COUNT).map(|n| n % 3 == 0).collect();
    let line = |n: usize| {
        let (x, key, small) = (xs[n], keys[n], smalls[n] as u32);
        format!("{x:?},{},{key},{small},{}\n", bodies[n].as_ref().unwrap(), switches[n])
    };
    let csv = "x,body,key,small,yes\n".to_owned() + &(0..COUNT).map(line).collect::<String>();
    let csv = scratch.file("in.csv", csv);
    let columns = [
        Column::Double(&xs),
        Column::Text(&bodies),
        Column::Long(&keys),
        Column::Int(&smalls),
        Column::Switch(&switches),
        Column::Text(&[]),
    ];
    let schema = SCHEMA.replace("REQUIRED group deep { REQUIRED BYTE_ARRAY body (UTF8); }", "");
    for (compression, id) in [
        (Compression::UNCOMPRESSED, "key"),
        (Compression::SNAPPY, "x"),
        (Compression::ZSTD(ZstdLevel::default()), "small"),
        (Compression::GZIP(GzipLevel::default()), "yes"),
        (Compression::LZ4_RAW, "body"),
    ] {
        let table = scratch.path("in.parquet");
        write(&table, &schema, &columns[..5], (COUNT, 500), compression);
        let (column, id) = (Some("body".to_owned()), Some(id.to_owned()));
        let options = BulkOptions { column, id, ..BulkOptions::default() };
        let (expected, _) = scratch.answers(&kindred, &labels(&kindred), &csv, &options);
        let (found, done) = scratch.answers(&kindred, &labels(&kindred), &table, &options);
        assert!(found == expected, "{compression}");
        assert_eq!(done.answered, COUNT as u64);
    }
}

#[test]
fn odd_rows_and_files_are_said_with_the_cure() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let some = |text: &str| Some(text.to_owned());
    let texts = [some("good"), None, some(""), some(&"x".repeat(17 << 20)), some("bad")];
    let table = scratch.path("a.parquet");
    let schema = "message t { OPTIONAL BYTE_ARRAY text (UTF8); }";
    write(&table, schema, &[Column::Text(&texts)], (5, 2), Compression::SNAPPY);
    let default = BulkOptions::default();
    let codes = |name: &str, options: &BulkOptions| {
        let input = scratch.path(name);
        let (found, _) = scratch.answers(&kindred, &labels(&kindred), &input, options);
        let code = |row: &serde_json::Value| {
            format!("{} {}", row["id"], row["error"]["code"].as_str().unwrap_or("ok"))
        };
        found.iter().map(code).collect::<Vec<_>>().join(", ")
    };
    assert_eq!(
        codes("a.parquet", &default),
        "1 ok, 2 invalid_value, 3 invalid_value, 4 row_too_large, 5 ok"
    );
    // A null id says nothing, and its row is answered.
    let ids = [None, some("a"), some("b"), None, some("c")];
    let schema = "message t { OPTIONAL BYTE_ARRAY text (UTF8); OPTIONAL BYTE_ARRAY id (UTF8); }";
    let columns = [Column::Text(&texts), Column::Text(&ids)];
    write(&scratch.path("b.parquet"), schema, &columns, (5, 5), Compression::SNAPPY);
    let by_id = BulkOptions { id: some("id"), ..default.clone() };
    assert_eq!(
        codes("b.parquet", &by_id),
        "null ok, \"a\" invalid_value, \"b\" invalid_value, null row_too_large, \"c\" ok"
    );
    let bytes = [b"good".to_vec(), b"\xff".to_vec()];
    let schema = "message t { REQUIRED BYTE_ARRAY text; }";
    // Also where the schema says that it is text.
    for schema in [schema, "message t { REQUIRED BYTE_ARRAY text (UTF8); }"] {
        let table = scratch.path("c.parquet");
        write(&table, schema, &[Column::Bytes(&bytes)], (2, 2), Compression::SNAPPY);
        assert_eq!(codes("c.parquet", &default), "1 ok, 2 not_utf8");
    }
    write(&scratch.path("d.parquet"), schema, &[Column::Bytes(&[])], (0, 1), Compression::SNAPPY);
    assert_eq!(codes("d.parquet", &default), "");

    let refused = |name: &str, options: &BulkOptions, part: &str| {
        let to = scratch.path("refused.jsonl");
        let error = run(&kindred, &labels(&kindred), (&scratch.path(name), &to), options);
        let error = error.unwrap_err().to_string();
        assert!(error.contains(part), "{error}");
        assert!(!to.exists() && !scratch.path("refused.jsonl.partial").exists());
    };
    let column = |name: &str| BulkOptions { column: some(name), ..default.clone() };
    refused("b.parquet", &column("body"), "no column `body`; choose one of its columns: text, id");
    let deep = [Column::Double(&[1.0]), Column::Text(&texts[..1]), Column::Long(&[1])];
    let deep = deep.into_iter().chain([
        Column::Int(&[1]),
        Column::Switch(&[true]),
        Column::Bytes(&bytes[..1]),
    ]);
    let deep: Vec<Column<'_>> = deep.collect();
    write(&scratch.path("e.parquet"), SCHEMA, &deep, (1, 1), Compression::SNAPPY);
    refused("e.parquet", &column("deep"), "the column `deep` has neither strings nor");
    assert_eq!(codes("e.parquet", &column("body")), "1 ok");
    for (schema, column_of) in [
        ("message t { REPEATED BYTE_ARRAY text (UTF8); }", None),
        ("message t { REQUIRED INT64 text (TIMESTAMP_MILLIS); }", Some(Column::Long(&[1]))),
        ("message t { REQUIRED INT32 text (DATE); }", Some(Column::Int(&[1]))),
    ] {
        let columns: Vec<Column<'_>> = column_of.into_iter().collect();
        let rows = columns.len();
        write(&scratch.path("f.parquet"), schema, &columns, (rows, 1), Compression::SNAPPY);
        refused("f.parquet", &default, "cast it to strings");
    }
    scratch.file("g.parquet", "text\ngood\n");
    refused("g.parquet", &default, "can't be read as Parquet");
    refused("none.parquet", &default, "none.parquet");
    let whole = fs::read(&table).unwrap();
    scratch.file("h.parquet", &whole[..whole.len() / 2]);
    refused("h.parquet", &default, "can't be read as Parquet");
}

#[test]
fn damage_is_an_error_and_ends_no_process() {
    let (kindred, scratch) = (demo(), Scratch::new());
    let texts: Vec<Option<String>> = texts(kindred.model(), 100).into_iter().map(Some).collect();
    let table = scratch.path("a.parquet");
    let schema = "message t { OPTIONAL BYTE_ARRAY text (UTF8); }";
    write(&table, schema, &[Column::Text(&texts)], (100, 70), Compression::SNAPPY);
    let whole = fs::read(&table).unwrap();
    let options = BulkOptions { replace: true, ..BulkOptions::default() };
    let mut refused = 0;
    for at in (4..whole.len()).step_by(whole.len() / 60) {
        for with in [0xff, 0x01] {
            let mut damaged = whole.clone();
            damaged[at] ^= with;
            let input = scratch.file("b.parquet", damaged);
            let out = scratch.path("b.jsonl");
            // What is not seen gives other texts.
            refused +=
                usize::from(run(&kindred, &labels(&kindred), (&input, &out), &options).is_err());
            let _ = fs::remove_dir_all(scratch.path("b.jsonl.partial"));
        }
    }
    assert!(refused > 10, "{refused}");
}

#[test]
fn stopped_work_goes_on_and_a_changed_table_is_refused() {
    let scratch = Scratch::new();
    let table = |name: &str, word: &str| {
        let words = words(word);
        let words: Vec<_> = words.lines().map(|word| Some(word.to_owned())).collect();
        let others: Vec<_> = (0..ROWS).map(|n| Some(format!("{name}{n}"))).collect();
        let schema = "message t { OPTIONAL BYTE_ARRAY x (UTF8); OPTIONAL BYTE_ARRAY word (UTF8); }";
        let columns = [Column::Text(&others), Column::Text(&words)];
        write(&scratch.path(name), schema, &columns, (ROWS, 100), Compression::UNCOMPRESSED);
        scratch.path(name)
    };
    let (input, options) = (table("a.parquet", "no"), BulkOptions::default());
    for out in ["o.jsonl", "o.parquet"] {
        let expected = scratch.path(&format!("expected.{out}"));
        run(&whole(), &nearest(), (&input, &expected), &options).unwrap();
        let out = scratch.path(out);
        stopped(&input, &out);
        table("a.parquet", "on");
        let error = run(&whole(), &nearest(), (&input, &out), &options).unwrap_err().to_string();
        assert!(error.contains("its first ") && error.contains(" rows are others"), "{error}");
        table("a.parquet", "no");
        let done = run(&whole(), &nearest(), (&input, &out), &options).unwrap();
        assert!(done.resumed_rows > 0 && done.rows == ROWS as u64);
        assert!(fs::read(&out).unwrap() == fs::read(&expected).unwrap());
    }
    let skip = BulkWork::Nearest(Options::new().k(1000).unknown(Unknown::Skip));
    let out = scratch.path("other.parquet");
    stopped(&input, &out);
    let error = run(&whole(), &skip, (&input, &out), &options).unwrap_err().to_string();
    assert!(error.contains("remove that folder"), "{error}");
}
