//! Rows that change, by the commands: `kindred rows` and `kindred changes`.

use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::kindred;
use crate::support::long_work::said;

fn run(folder: &Path, arguments: &[&str], input: &str) -> (bool, String, String) {
    let mut command = kindred(arguments);
    let command = command.current_dir(folder).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let _ = child.stdin.take().unwrap().write_all(input.as_bytes());
    let output = child.wait_with_output().unwrap();
    let out = String::from_utf8(output.stdout.clone()).unwrap();
    (output.status.success(), out, said(&output))
}

/// A succeeding command's standard output.
fn done(folder: &Path, arguments: &[&str]) -> String {
    let (succeeded, out, said) = run(folder, arguments, "");
    assert!(succeeded, "{said}");
    out
}

/// All output of a failing command.
fn refused(folder: &Path, arguments: &[&str], input: &str) -> String {
    let (succeeded, _, said) = run(folder, arguments, input);
    assert!(!succeeded, "{said}");
    said
}

/// A folder with the model `m`: three products.
fn products() -> tempfile::TempDir {
    let scratch = tempfile::tempdir().unwrap();
    let write = |name: &str, content: &str| fs::write(scratch.path().join(name), content).unwrap();
    write("in.txt", "a 1 0\nb 0 1\nc 1 1\n");
    write("in.csv", "price,brand\n9.5,acme\n120,\"big, foot\"\n,acme\n");
    done(scratch.path(), &["prepare", "in.txt", "--out", "m", "--attributes", "in.csv"]);
    scratch
}

fn lines(out: &str) -> Vec<Value> {
    out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn keys(out: &str) -> Vec<(u64, String)> {
    let key = |row: &Value| (row["row"].as_u64().unwrap(), row["key"].as_str().unwrap().to_owned());
    lines(out).iter().map(key).collect()
}

#[test]
fn rows_are_put_printed_listed_and_deleted() {
    let scratch = products();
    let folder = scratch.path();
    let new = "\
        {\"key\": \"b\", \"vector\": [0.1, 1], \"attributes\": {\"price\": 3, \"brand\": \"new\"}}\n\n\
        {\"key\": \"x/y z\", \"vector\": [2, 2]}\n";
    fs::write(folder.join("new.jsonl"), new).unwrap();
    let said = done(folder, &["rows", "put", "m", "new.jsonl"]);
    assert_eq!(said, "m: 1 row inserted, 1 row replaced; position 1\n");
    let out = done(folder, &["rows", "get", "m", "b", "a"]);
    let expected = json!({
        "row": 3, "key": "b", "vector": [0.1, 1.0], "attributes": {"brand": "new", "price": 3.0},
    });
    assert_eq!(lines(&out)[0], expected);
    assert_eq!(lines(&out)[1]["attributes"], json!({"brand": "acme", "price": 9.5}));
    let all = done(folder, &["rows", "list", "m"]);
    let of = |row: u64, key: &str| (row, key.to_owned());
    assert_eq!(keys(&all), [of(0, "a"), of(2, "c"), of(3, "b"), of(4, "x/y z")]);
    let some = |flags: &[&str]| keys(&done(folder, &[&["rows", "list", "m"], flags].concat()));
    assert_eq!(some(&["--after", "0", "--limit", "2"]), [of(2, "c"), of(3, "b")]);
    assert_eq!(some(&["--filter", "price < 10"]), [of(0, "a"), of(3, "b")]);
    assert_eq!(some(&["--filter", "NOT price EXISTS"]), [of(2, "c"), of(4, "x/y z")]);
    let said = refused(folder, &["rows", "list", "m", "--filter", "prize < 1"], "");
    assert!(said.contains("no attribute `prize`"), "{said}");

    let said = done(folder, &["rows", "delete", "m", "a", "nowhere", "a"]);
    assert_eq!(said, "m: 1 row deleted, 1 key not there; position 2\n");
    let said = refused(folder, &["rows", "get", "m", "a", "c"], "");
    assert!(said.contains("the table has no row `a`") && said.contains("\"key\":\"c\""), "{said}");

    let list = done(folder, &["changes", "list", "m"]);
    let first = "00000001.log: positions 1 to 2, 2 batches, 1 inserted, 1 replaced, 1 deleted, ";
    assert!(list.starts_with(first) && list.ends_with("m: position 2, 3 rows\n"), "{list}");
    let verified = done(folder, &["changes", "verify", "m"]);
    assert!(verified.contains("checking changes\nm: position 2, 3 rows; base "), "{verified}");
    let exported = lines(&done(folder, &["changes", "export", "m"]));
    assert_eq!(exported[0]["upserts"][1], json!({"key": "x/y z", "vector": [2.0, 2.0]}));
    assert_eq!(exported[1], json!({"position": 2, "upserts": [], "deletes": ["a", "nowhere"]}));

    let nearest = done(folder, &["nearest", "b", "--model", "m", "--device", "cpu", "--json"]);
    let found: Value = serde_json::from_str(nearest.lines().next().unwrap()).unwrap();
    let words: Vec<&Value> =
        found["neighbors"].as_array().unwrap().iter().map(|one| &one["word"]).collect();
    assert_eq!(words, ["c", "x/y z"]);
    let similar = done(folder, &["similarity", "c", "x/y z", "--model", "m"]);
    assert_eq!(similar, "c\tx/y z\t0.9999999999999998\n");
    let said = refused(folder, &["nearest", "a", "--model", "m", "--device", "cpu"], "");
    assert!(said.contains("`a`"), "{said}");
    // Others would answer from the base alone, so they refuse.
    let said = refused(folder, &["export", "m", "--format", "glove", "--out", "out.txt"], "");
    assert!(said.contains("changes"), "{said}");
}

#[test]
fn what_is_listed_can_be_put_elsewhere() {
    let scratch = products();
    let folder = scratch.path();
    done(folder, &["prepare", "in.txt", "--out", "copy", "--attributes", "in.csv"]);
    done(folder, &["rows", "delete", "copy", "a", "b", "c"]);
    let numbers = ["0.1", "1e-45", "3.4028235e38", "-7.006492e-45", "16777217", "0.30000001"];
    let rows: Vec<String> = numbers
        .iter()
        .map(|number| format!("{{\"key\": \"k{number}\", \"vector\": [{number}, 1]}}\n"))
        .collect();
    let put = ["rows", "put", "m", "-", "--batch", "2"];
    let (succeeded, said, _) = run(folder, &put, &rows.concat());
    assert!(succeeded && said.ends_with("position 3\n"), "{said}");
    let all = done(folder, &["rows", "list", "m"]);
    let (succeeded, _, said) = run(folder, &["rows", "put", "copy", "-"], &all);
    assert!(succeeded, "{said}");
    let without_numbers = |out: &str| {
        let mut rows = lines(out);
        rows.iter_mut().for_each(|row| drop(row.as_object_mut().unwrap().remove("row")));
        rows
    };
    assert_eq!(without_numbers(&done(folder, &["rows", "list", "copy"])), without_numbers(&all));
}

#[test]
fn rows_that_meet_a_filter_are_deleted_in_one_batch() {
    let scratch = products();
    let folder = scratch.path();
    let new = "\
        {\"key\": \"b\", \"vector\": [0.1, 1], \"attributes\": {\"price\": 3}}\n\
        {\"key\": \"d\", \"vector\": [2, 2], \"attributes\": {\"price\": 200}}\n";
    let (succeeded, _, said) = run(folder, &["rows", "put", "m", "-"], new);
    assert!(succeeded, "{said}");
    let delete = |filter: &str| done(folder, &["rows", "delete", "m", "--filter", filter]);
    // The row of the base with a price of 120 was replaced.
    assert_eq!(delete("price > 100"), "m: 1 row deleted; position 2\n");
    assert_eq!(delete("price > 100"), "m: nothing to do\n");
    assert_eq!(delete("price < 10"), "m: 2 rows deleted; position 3\n");
    assert_eq!(keys(&done(folder, &["rows", "list", "m"])), [(2, "c".to_owned())]);
    for (flags, fault) in [
        (&["--filter", "prize < 1"][..], "no attribute `prize`"),
        (&["--filter", "price <"], "column"),
        (&["c", "--filter", "price < 1"], "can't be used with"),
        (&[], "needs `KEY`"),
    ] {
        let said = refused(folder, &[&["rows", "delete", "m"], flags].concat(), "");
        assert!(said.contains(fault), "{flags:?}: {said}");
    }
    assert_eq!(keys(&done(folder, &["rows", "list", "m"])).len(), 1);
}

#[test]
fn bad_rows_are_named_and_nothing_of_their_batch_is_kept() {
    let scratch = products();
    let folder = scratch.path();
    let good = "{\"key\": \"x\", \"vector\": [1, 2]}\n";
    let bad = "{\"key\": \"y\", \"vector\": [1]}\n{\"vector\": [1, 2]}\n";
    let said = refused(folder, &["rows", "put", "m", "-"], &format!("{good}{bad}"));
    for part in [
        "the batch that begins at line 1 is refused: 2 of the batch's rows can't be taken",
        "row 1 (\"y\"): its vector has 1 component instead of 2",
        "row 2 (\"\"): it has no `key`",
        "nothing was changed",
    ] {
        assert!(said.contains(part), "{said}");
    }
    assert!(!folder.join("m/changes").exists());
    done(folder, &["nearest", "a", "--model", "m"]);
    let put = ["rows", "put", "m", "-", "--batch", "1"];
    let said = refused(folder, &put, &format!("{good}{bad}"));
    assert!(said.contains("begins at line 2"), "{said}");
    assert!(said.contains("1 of the lines before were put, up to position 1"), "{said}");
    assert_eq!(keys(&done(folder, &["rows", "list", "m"])).len(), 4);
}

#[test]
fn a_model_whose_rows_were_changed_is_replaced_only_if_that_is_said() {
    let scratch = products();
    let folder = scratch.path();
    done(folder, &["rows", "delete", "m", "a"]);
    let prepare = ["prepare", "in.txt", "--out", "m", "--replace"];
    let said = refused(folder, &prepare, "");
    assert!(said.contains("whose rows were changed") && said.contains("--discard-changes"));
    let said = refused(folder, &["prepare", "in.txt", "--out", "m", "--discard-changes"], "");
    assert!(said.contains("--replace"), "{said}");
    done(folder, &[&prepare[..], &["--discard-changes"]].concat());
    assert_eq!(keys(&done(folder, &["rows", "list", "m"])).len(), 3);
    done(folder, &["nearest", "a", "--model", "m"]);
}

#[test]
fn a_table_is_made_filled_and_searched_in_a_few_commands() {
    let scratch = tempfile::tempdir().unwrap();
    let folder = scratch.path();
    let create = ["create", "m", "--dim", "2", "--attribute", "price=number", "--attribute"];
    let said = done(folder, &[&create[..], &["tags=list"]].concat());
    assert_eq!(said, "m: 0 rows × 2 dimensions\nattributes: price (number), tags (list)\n");
    let nearest = ["nearest", "a", "--model", "m", "--device", "cpu"];
    let said = refused(folder, &nearest, "");
    assert!(said.contains("`a`"), "{said}");
    assert_eq!(done(folder, &["rows", "list", "m"]), "");
    let verified = done(folder, &["verify", "m"]);
    assert!(verified.contains("0 rows"), "{verified}");

    let rows = "\
        {\"key\": \"a\", \"vector\": [1, 0], \"attributes\": {\"price\": 9.5, \"tags\": [\"x\"]}}\n\
        {\"key\": \"b\", \"vector\": [1, 1], \"attributes\": {\"price\": 3}}\n\
        {\"key\": \"c\", \"vector\": [0, 1]}\n";
    let (succeeded, said, _) = run(folder, &["rows", "put", "m", "-"], rows);
    assert!(succeeded);
    assert_eq!(said, "m: 3 rows inserted; position 1\n");
    let found = done(folder, &[&nearest[..], &["--filter", "price < 5", "--json"]].concat());
    let found: Value = serde_json::from_str(found.lines().next().unwrap()).unwrap();
    assert_eq!(found["neighbors"][0]["word"], "b");
    assert_eq!(keys(&done(folder, &["rows", "list", "m"])).len(), 3);

    // The shape is refused, or what is there.
    let said = refused(folder, &["create", "m", "--dim", "2"], "");
    assert!(said.contains("already holds a model") || said.contains("exists"), "{said}");
    for (flags, part) in [
        (&["--dim", "0"][..], "a whole number from 1 to 65536"),
        (&["--dim", "2", "--attribute", "price"], "NAME=TYPE"),
        (&["--dim", "2", "--attribute", "key=text"], "the word of a row"),
        (&["--dim", "2", "--metric", "l2"], "cosine or dot"),
    ] {
        let said = refused(folder, &[&["create", "new"], flags].concat(), "");
        assert!(said.contains(part) && !folder.join("new").exists(), "{said}");
    }
}

#[test]
fn a_fold_changes_no_answer_and_no_number() {
    let scratch = products();
    let folder = scratch.path();
    let said = done(folder, &["fold", "m"]);
    assert_eq!(said, "m: nothing to fold\n");
    let rows = "\
        {\"key\": \"b\", \"vector\": [0.1, 1], \"attributes\": {\"price\": 3, \"brand\": \"new\"}}\n\
        {\"key\": \"d\", \"vector\": [2, 2]}\n";
    let (succeeded, ..) = run(folder, &["rows", "put", "m", "-"], rows);
    assert!(succeeded);
    done(folder, &["rows", "delete", "m", "a"]);
    let asked: [&[&str]; 6] = [
        &["rows", "list", "m"],
        &["rows", "list", "m", "--after", "2", "--limit", "1"],
        &["rows", "list", "m", "--filter", "price < 10 OR brand = acme"],
        &["nearest", "c", "--model", "m", "--device", "cpu", "--json", "--filter", "price < 10"],
        &["nearest", "c", "--model", "m", "--device", "cpu", "--vocab-limit", "4"],
        &["odd-one-out", "b", "c", "d", "--model", "m", "--device", "cpu", "--json"],
    ];
    let answers = || -> Vec<Vec<String>> {
        let without_times = |line: &str| {
            let mut answer: Value = serde_json::from_str(line).unwrap_or(Value::Null);
            let is_timed = answer.as_object_mut().and_then(|own| own.remove("times_ms"));
            if is_timed.is_some() { answer.to_string() } else { line.to_owned() }
        };
        let lines = |out: String| out.lines().map(without_times).collect();
        asked.iter().map(|asked| lines(done(folder, asked))).collect()
    };
    let before = answers();
    let said = done(folder, &["fold", "m"]);
    let first = "m: base 2, 3 rows at position 2, in ";
    assert!(
        said.starts_with(first) && said.contains("the old files stay for 60 minutes"),
        "{said}"
    );
    assert_eq!(answers(), before);
    assert_eq!(
        keys(&before[0].join("\n")).iter().map(|(row, _)| *row).collect::<Vec<_>>(),
        [2, 3, 4]
    );
    assert!(folder.join("m/words.txt").exists());
    let list = done(folder, &["changes", "list", "m"]);
    assert!(list.starts_with("base 2: the rows at position 2\n00000002.log: empty"), "{list}");
    assert!(done(folder, &["changes", "verify", "m"]).contains("all checksums match"));
    assert_eq!(done(folder, &["changes", "export", "m"]), "");

    let (succeeded, said, _) = run(folder, &["rows", "put", "m", "-"], rows);
    assert!(succeeded);
    assert_eq!(said, "m: 2 rows replaced; position 3\n");
    assert_eq!(keys(&done(folder, &["rows", "list", "m"]))[1], (5, "b".to_owned()));
    assert_eq!(lines(&done(folder, &["changes", "export", "m"]))[0]["position"], 3);
    let said = done(folder, &["fold", "m", "--remove-old"]);
    assert!(
        said.starts_with("m: base 3, 3 rows at position 3") && !said.contains("stay"),
        "{said}"
    );
    let is_base = |name: &str| name.starts_with("base-00000003-");
    let names: Vec<String> = fs::read_dir(folder.join("m"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() == 3 && names.iter().any(|name| is_base(name)), "{names:?}");
    // What knows no folds refuses the folder, with the cure.
    let said = refused(folder, &["verify", "m"], "");
    assert!(said.contains("kindred changes verify"), "{said}");
}
