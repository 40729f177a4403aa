//! Training on the command line, and what a trained head answers there.

use std::collections::BTreeSet;
use std::fs;
use std::io::Write as _;

use serde_json::{Value, json};

use super::{Scratch, data};
use crate::support::{errors, kindred, objects, piped};

#[test]
fn a_head_from_data_to_answers() {
    let scratch = Scratch::new();
    let dev = data();
    let output = scratch.train("head", &["--dev", dev.to_str().unwrap()]);
    assert!(output.status.success(), "{}", errors(&output));
    assert!(errors(&output).contains("billing: 20, delivery: 20, technical: 20"));
    assert!(String::from_utf8_lossy(&output.stdout).contains("accuracy 100.00 % of 60 texts"));
    let head = scratch.path("head");

    // The same weights with another number of threads, others with another seed.
    let weights = |name: &str, more: &[&str]| {
        let more = [&["--dev", dev.to_str().unwrap()], more].concat();
        fs::read(scratch.trained(name, &more).join("weights.safetensors")).unwrap()
    };
    let first = fs::read(head.join("weights.safetensors")).unwrap();
    assert!(weights("again", &["--threads", "3"]) == first);
    assert!(weights("other", &["--seed", "2"]) != first);
    let taken = errors(&scratch.train("head", &[]));
    assert!(taken.contains("exists") && taken.contains("--replace"), "{taken}");

    let mut verify = kindred(&["verify"]);
    let verified = verify.arg(&scratch.model).arg("--head").arg(&head).output().unwrap();
    let said = String::from_utf8_lossy(&verified.stdout).into_owned();
    assert!(said.contains("a classifier of billing, delivery, technical"), "{said}");

    let mut eval = kindred(&["eval"]);
    eval.arg(&scratch.model).arg("--head").arg(&head).arg("--classification").arg(data());
    let tables = String::from_utf8_lossy(&eval.output().unwrap().stdout).into_owned();
    assert!(tables.contains("60 texts, 0 without a known word; accuracy 100.00 %"), "{tables}");
    let report: Value =
        serde_json::from_slice(&eval.arg("--json").output().unwrap().stdout).unwrap();
    let found = &report["classification"][0];
    assert_eq!((&found["accuracy"], &found["confusion"][0]), (&json!(1.0), &json!([20, 0, 0])));

    // Words that only one label's texts have, and not the model.
    let file = scratch.path("new.tsv");
    let content = fs::read_to_string(data()).unwrap();
    fs::write(&file, content.replace("technical\t", "technical\tZzxqy ")).unwrap();
    let output = scratch.train_from(&file, "new", &["--add-words", "2"]);
    assert!(output.status.success(), "{}", errors(&output));
    let output = scratch.classify(&scratch.path("new")).arg("zzxqy").output().unwrap();
    assert_eq!(objects(&output)[0]["labels"][0]["label"], "technical");

    let text = "I can't log in to my zzxqy account.";
    let output = scratch.classify(&head).args(["--explain", text]).output().unwrap();
    let answer = &objects(&output)[0];
    assert_eq!(answer["labels"][0]["label"], "technical", "{answer}");
    assert_eq!(answer["unknown"], json!(["zzxqy"]));
    let why = &answer["explanation"];
    let shares = why["ngrams"].as_array().unwrap().iter().map(|one| one["share"].as_f64().unwrap());
    let sum = shares.sum::<f64>() + why["base"].as_f64().unwrap() + why["others"].as_f64().unwrap();
    assert!((sum - why["score"].as_f64().unwrap()).abs() < 1e-9, "{why}");

    // Lines from a pipe; one has no known word.
    let output = piped(scratch.classify(&head), "where is my package\nzzxqy\n");
    let answers = objects(&output);
    assert_eq!(
        (&answers[0]["labels"][0]["label"], output.status.code()),
        (&json!("delivery"), Some(1))
    );
    assert_eq!(answers[1]["error"]["code"], "unknown_word");
    assert_eq!(answers[1]["error"]["unknown"][0]["word"], "zzxqy");
    assert!(errors(&output).contains("1 of the texts has no label; it has its error"));

    // The lines before one that can't be read are answered.
    let output = piped(scratch.classify(&head), b"where is my package\n\xff\nzzxqy\n");
    assert_eq!((objects(&output).len(), output.status.code()), (1, Some(1)));
    assert!(errors(&output).contains("standard input, line 2: it is not UTF-8"));
}

#[test]
fn what_can_not_become_a_head_is_refused_before_the_training() {
    let scratch = Scratch::new();
    fs::create_dir(scratch.path("other")).unwrap();
    fs::write(scratch.path("other/thesis.txt"), "years of work").unwrap();
    for (out, expected) in [
        ("other", "is not a head or holds other files too"),
        ("other/thesis.txt/head", "can't create"),
    ] {
        let output = scratch.train(out, &["--replace"]);
        let said = errors(&output);
        assert!(!output.status.success() && said.contains(expected), "{said}");
        assert!(!said.contains("epoch"), "{said}");
    }
    assert_eq!(fs::read_dir(scratch.path("other")).unwrap().count(), 1);
}

#[test]
fn texts_with_several_labels_or_none() {
    let scratch = Scratch::new();
    // The requests, without the label `technical`, and with another where the text speaks of `my`
    // things.
    let content: String = fs::read_to_string(data())
        .unwrap()
        .lines()
        .map(|line| {
            let (label, text) = line.split_once('\t').unwrap();
            let mut labels: Vec<&str> =
                [label].into_iter().filter(|&one| one != "technical").collect();
            labels.extend(text.split(' ').any(|word| word == "my").then_some("mine"));
            json!({"text": text, "labels": labels}).to_string() + "\n"
        })
        .collect();
    let file = scratch.path("several.jsonl");
    fs::write(&file, content).unwrap();
    let dev = file.to_str().unwrap();
    let output = scratch.train_from(&file, "head", &["--dev", dev]);
    assert!(
        errors(&output).contains("some texts have several labels or none"),
        "{}",
        errors(&output)
    );
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("head: a head of tiny (") && said.contains("; F1 9"), "{said}");
    let head = scratch.path("head");

    let output =
        scratch.classify(&head).arg("Why is my invoice higher than last month").output().unwrap();
    let labels = &objects(&output)[0]["labels"];
    let (first, second) = (&labels[0], &labels[1]);
    let names =
        BTreeSet::from([&first["label"], &second["label"]].map(|name| name.as_str().unwrap()));
    assert_eq!(names, BTreeSet::from(["billing", "mine"]), "{labels}");
    assert!(second["probability"].as_f64().unwrap() > 0.5, "they add up to more than 1: {labels}");

    let mut eval = kindred(&["eval"]);
    eval.arg(&scratch.model).arg("--head").arg(&head).arg("--classification").arg(&file);
    let tables = String::from_utf8_lossy(&eval.output().unwrap().stdout).into_owned();
    assert!(tables.contains(", F1 0.9"), "{tables}");
    assert!(!tables.contains("given:"), "there is no table of one label against another: {tables}");

    let report: Value =
        serde_json::from_slice(&eval.arg("--json").output().unwrap().stdout).unwrap();
    let found = &report["classification"][0];
    let micro_f1 = found["micro_f1"].as_f64().unwrap();
    assert!(micro_f1 > 0.9 && said.contains(&format!("{:.2} %", 100.0 * micro_f1)), "{found}");
    assert!(found["labels"][0]["given"].as_u64().unwrap() > 0, "{found}");

    // A head that gives one label can't be held against these texts.
    let single = scratch.trained("single", &[]);
    let mut eval = kindred(&["eval"]);
    eval.arg(&scratch.model).arg("--head").arg(&single).arg("--classification").arg(&file);
    let said = errors(&eval.output().unwrap());
    assert!(said.contains("but the head gives one label to each text"), "{said}");
    // One label each, and a probability of its own all the same.
    let wanted = scratch.trained("wanted", &["--sigmoid"]);
    let text = fs::read_to_string(wanted.join("head.json")).unwrap();
    assert!(text.contains("\"probabilities\": \"sigmoid\""), "{text}");
}

#[test]
fn what_is_wrong_with_data_and_options_is_said() {
    let scratch = Scratch::new();
    let file = |name: &str, text: &str| {
        fs::write(scratch.path(name), text).unwrap();
        scratch.path(name).to_str().unwrap().to_owned()
    };
    let refused = |more: &[&str]| {
        let output = scratch.train("head", more);
        assert!(!output.status.success() && !scratch.path("head").exists(), "{more:?}");
        errors(&output)
    };
    let bad = file("bad.tsv", "a\tx\nno tab\n");
    let said = refused(&["--dev", &bad]);
    assert!(
        said.contains("bad.tsv, line 2: it has no tab") && said.contains("--skip-bad-rows"),
        "{said}"
    );
    let other = file("other.tsv", "sales\twhere is it\n");
    assert!(
        refused(&["--dev", &other])
            .contains("the label \"sales\" is only in the texts that decide")
    );
    assert!(refused(&["--static", "--add-words", "2"]).contains("can't be used with"));
    assert!(refused(&["--dropout", "1"]).contains("at least 0 and less than 1"));
    assert!(refused(&["--other-words", "2"]).contains("a number from 0 to 1"));
    fs::write(scratch.path("latin.tsv"), b"a\tx\nb\t\xff\n").unwrap();
    let said = refused(&["--dev", scratch.path("latin.tsv").to_str().unwrap()]);
    assert!(said.contains("line 2: it is not UTF-8"), "{said}");
    let content = "a\tx\nb\ty\n";
    let little = |text: &str| text.encode_utf16().flat_map(u16::to_le_bytes).collect::<Vec<u8>>();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(content.as_bytes()).unwrap();
    for (name, bytes, expected) in [
        (
            "marked.tsv",
            little(&format!("\u{feff}{content}")),
            "it is UTF-16 text; convert it first",
        ),
        ("bare.tsv", little(content), "iconv -f UTF-16LE"),
        (
            "texts.tsv.gz",
            gzip.finish().unwrap(),
            "it is compressed with gzip; unpack it first: gunzip",
        ),
    ] {
        fs::write(scratch.path(name), bytes).unwrap();
        let path = scratch.path(name);
        let said = refused(&["--dev", path.to_str().unwrap()]);
        assert!(said.contains(name) && said.contains(expected), "{said}");
        let mut eval = kindred(&["eval"]);
        eval.arg(&scratch.model).arg("--head").arg("none").arg("--classification").arg(&path);
        let said = errors(&eval.output().unwrap());
        assert!(said.contains(name) && said.contains(expected), "{said}");
    }
}

/// The small data of `data()` in other forms.
#[test]
fn data_as_people_have_them_give_the_same_head() {
    let scratch = Scratch::new();
    let content = fs::read_to_string(data()).unwrap();
    let rows: Vec<(&str, &str)> =
        content.lines().filter_map(|line| line.split_once('\t')).collect();
    let each = |row: &dyn Fn(&str, &str) -> String| -> String {
        rows.iter().map(|(label, text)| row(label, text) + "\n").collect()
    };
    let quoted = |text: &str| format!("\"{}\"", text.replace('"', "\"\""));
    let weights = |name: &str, content: String, more: &[&str]| {
        let file = scratch.path(name);
        fs::write(&file, content).unwrap();
        let output = scratch.train_from(&file, &format!("of-{name}"), more);
        let said = errors(&output);
        assert!(output.status.success(), "{name}: {said}");
        assert!(said.contains("billing: 20, delivery: 20, technical: 20"), "{name}: {said}");
        fs::read(scratch.path(&format!("of-{name}")).join("weights.safetensors")).unwrap()
    };
    let expected = weights("plain.tsv", content.clone(), &[]);
    let names = ["--text-column", "body", "--label-column", "Topic"];
    let numbers = ["--text-column", "2", "--label-column", "1"];
    for (name, content, more) in [
        ("glue.tsv", format!("sentence\tlabel\n{}", each(&|l, t| format!("{t}\t{l}"))), &[][..]),
        ("header.tsv", format!("Label\tText\n{content}"), &[]),
        ("named.tsv", format!("id\ttopic\tBody\n{}", each(&|l, t| format!("7\t{l}\t{t}"))), &names),
        ("numbered.tsv", content.clone(), &numbers),
        ("case.csv", format!("Text,Label\n{}", each(&|l, t| format!("{},{l}", quoted(t)))), &[]),
        ("end.txt", each(&|l, t| format!("{t} __label__{l}")), &[]),
        ("start.txt", each(&|l, t| format!(" __label__{l} {t}")), &[]),
        ("spaces.txt", each(&|l, t| format!("{l} {t}")), &["--format", "space"]),
        (
            "named.jsonl",
            each(&|l, t| json!({"BODY": t, "topic": l, "text": "no"}).to_string()),
            &names,
        ),
    ] {
        assert!(weights(name, content, more) == expected, "{name}");
    }

    let header = scratch.path("header.tsv");
    let accuracy = |more: &[&str]| {
        let mut eval = kindred(&["eval"]);
        eval.arg(&scratch.model).arg("--head").arg(scratch.path("of-plain.tsv"));
        let output = eval.arg("--classification").args(more).output().unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), errors(&output))
    };
    let (found, _) = accuracy(&[header.to_str().unwrap()]);
    assert!(found.contains("header: 60 texts, 0 without a known word"), "{found}");
    let named = scratch.path("named.tsv");
    let (found, _) = accuracy(&[&[named.to_str().unwrap()][..], &names].concat());
    assert!(found.contains("named: 60 texts, 0 without a known word"), "{found}");
    let (_, said) = accuracy(&[named.to_str().unwrap()]);
    assert!(said.contains("--text-column and --label-column: id, topic, Body"), "{said}");
}

#[test]
fn data_in_other_encodings_give_the_same_head() {
    let scratch = Scratch::new();
    // A word that the model does not have, so that it counts with `--add-words` only.
    let content = fs::read_to_string(data()).unwrap().replace("billing\t", "billing\tdéjà ");
    let latin: Vec<u8> = content.chars().map(|c| u8::try_from(c).unwrap()).collect();
    let marked = format!("\u{feff}{content}");
    let little: Vec<u8> = marked.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let train = |name: &str, content: &[u8], more: &[&str]| {
        let file = scratch.path(name);
        fs::write(&file, content).unwrap();
        let output = scratch.train_from(
            &file,
            &format!("of-{name}"),
            &[&["--add-words", "2"][..], more].concat(),
        );
        (output.status.success(), errors(&output))
    };
    let weights = |name: &str, content: &[u8], more: &[&str]| {
        let (is_good, said) = train(name, content, more);
        assert!(is_good, "{name}: {said}");
        fs::read(scratch.path(&format!("of-{name}")).join("weights.safetensors")).unwrap()
    };
    let expected = weights("utf8.tsv", content.as_bytes(), &[]);
    assert!(weights("latin.tsv", &latin, &["--encoding", "latin1"]) == expected);
    assert!(weights("little.tsv", &little, &["--encoding", "utf-16"]) == expected);
    for (name, content, more, cure) in [
        (
            "bare.tsv",
            &latin,
            &[][..],
            "it is not UTF-8; name its encoding, as in --encoding latin1",
        ),
        ("bare16.tsv", &little, &[], "add --encoding UTF-16"),
        ("wrong.tsv", &latin, &["--encoding", "shift_jis"], "not Shift_JIS; give another"),
        ("typo.tsv", &latin, &["--encoding", "latin-1"], "do you mean `latin1`?"),
    ] {
        let (is_good, said) = train(name, content, more);
        assert!(!is_good && said.contains(cure), "{name}: {said}");
    }

    let mut eval = kindred(&["eval"]);
    eval.arg(&scratch.model).arg("--head").arg(scratch.path("of-utf8.tsv"));
    eval.arg("--classification").arg(scratch.path("latin.tsv")).args(["--encoding", "latin1"]);
    let output = eval.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(said.contains("60 texts, 0 without a known word"), "{said}{}", errors(&output));
}

#[test]
fn data_that_would_teach_nonsense_are_refused() {
    let scratch = Scratch::new();
    let content = fs::read_to_string(data()).unwrap();
    let swapped: String = content
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(label, text)| format!("{text}\t{label}\n"))
        .collect();
    let refused = |name: &str, content: String| {
        let file = scratch.path(name);
        fs::write(&file, content).unwrap();
        let output = scratch.train_from(&file, "head", &[]);
        assert!(!output.status.success() && !scratch.path("head").exists(), "{name}");
        errors(&output)
    };
    let said = refused("swapped.tsv", swapped);
    assert!(said.contains("60 different labels") && said.contains("--text-column"), "{said}");
    assert!(said.len() < 2000, "not every label is listed: {said}");
    let said = refused("names.tsv", format!("Topic\tRequest\n{content}"));
    assert!(said.contains("--text-column Request --label-column Topic"), "{said}");
    let said = refused("commas.csv", "label,text\na,x, y\nb,z\n".to_owned());
    assert!(said.contains("commas.csv, line 2: it has 3 columns") && said.contains("quotes"));
    let said = refused("array.json", "[{\"text\": \"x\", \"label\": 1}]\n".to_owned());
    assert!(said.contains("jq"), "{said}");
}

#[test]
fn numbers_that_make_no_head_are_refused_before_they_cost_anything() {
    let scratch = Scratch::new();
    let large = "9223372036854775808";
    for (flag, values, expected) in [
        ("--channels", &["0", "1000000000", large][..], "from 1 to 10000, not"),
        ("--channels", &["-1", "NaN", "inf"], "a whole number from 1 to 10000"),
        ("--widths", &["0", "3,1000000000", large], "from 1 to 100, not"),
        ("--batch", &["0", "1000000000", large], "from 1 to 100000, not"),
        ("--epochs", &["0", large], "from 1 to 1000000, not"),
        ("--patience", &["0", large], "from 1 to 1000000, not"),
        ("--limit", &["0", large], "a whole number from 1 to"),
        ("--learning-rate", &["0", "-1", "NaN", "inf", "1e39"], "above 0"),
        ("--dropout", &["-0.1", "1", "NaN", "inf"], "less than 1"),
        ("--other-words", &["-1", "1.1", "NaN"], "from 0 to 1"),
        ("--learning-rate", &["1e30", "3e38"], "diverged in epoch 1"),
        ("--learning-rate", &["1e30"], "lower --learning-rate"),
        ("--widths", &["100,100,100,100,100,100,100,100,100"], "lower --channels or --widths"),
    ] {
        for value in values {
            let channels = match flag {
                "--channels" => None,
                "--widths" => Some("--channels=10000"),
                _ => Some("--channels=5"),
            };
            let flag = format!("{flag}={value}");
            let mut command = kindred(&["train", "classifier", &flag, "--model"]);
            command.arg(&scratch.model).arg("--data").arg(data()).args(channels);
            let output = command.arg("--out").arg(scratch.path("head")).output().unwrap();
            let said = errors(&output);
            assert!(matches!(output.status.code(), Some(1 | 2)), "{flag}: {said}");
            assert!(said.contains(expected) && !said.contains("panicked"), "{flag}: {said}");
            assert!(!scratch.path("head").exists(), "{flag}");
        }
    }
}
