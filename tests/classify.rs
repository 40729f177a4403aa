//! Heads from data to answers: `kindred train`, `import-head`, `classify`, `eval` and `verify`, and `/classify`.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::{Value, json};

use crate::support::{Service, kindred, prepared, program, top};

/// A model of the words of `examples/requests.tsv`, and heads for it.
struct Scratch {
    folder: tempfile::TempDir,
    _prepared: tempfile::TempDir,
    model: PathBuf,
}

impl Scratch {
    fn new() -> Self {
        let data = fs::read_to_string(data()).unwrap().to_lowercase();
        let words: BTreeSet<String> = data
            .split(|c: char| !c.is_alphanumeric())
            .filter(|word| word.chars().all(|c| c.is_ascii_alphabetic()) && !word.is_empty())
            .map(str::to_owned)
            .collect();
        let words = words.into_iter().chain(["ca", "n't", ".", ","].map(str::to_owned));
        let (prepared, model) = prepared(&vectors(words));
        Self { folder: tempfile::tempdir().unwrap(), _prepared: prepared, model }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn train(&self, name: &str, more: &[&str]) -> Output {
        self.train_from(&data(), name, more)
    }

    fn train_from(&self, data: &Path, name: &str, more: &[&str]) -> Output {
        let mut command = kindred(&["train", "classifier", "--model"]);
        command.arg(&self.model).arg("--data").arg(data).arg("--out").arg(self.path(name));
        command
            .args([
                "--epochs",
                "20",
                "--patience",
                "20",
                "--channels",
                "20",
                "--learning-rate",
                "0.01",
            ])
            .args(more);
        command.output().unwrap()
    }

    fn trained(&self, name: &str, more: &[&str]) -> PathBuf {
        let output = self.train(name, more);
        assert!(output.status.success(), "{}", errors(&output));
        self.path(name)
    }

    fn classify(&self, head: &Path) -> Command {
        let mut command = kindred(&["classify", "--json", "--model"]);
        command.arg(&self.model).arg("--head").arg(head);
        command
    }
}

/// Words with vectors that look random, `[words, 16]`, as a vectors file.
fn vectors(words: impl Iterator<Item = String>) -> String {
    let line = |(row, word): (usize, String)| {
        let component = |i: usize| ((row * 16 + i) as f64 * 12.9898).sin() * 43758.5453;
        let numbers = (0..16).map(|i| format!("{:.3}", component(i).fract()));
        format!("{word} {}\n", numbers.collect::<Vec<_>>().join(" "))
    };
    words.enumerate().map(line).collect()
}

fn data() -> PathBuf {
    top().join("examples/requests.tsv")
}

fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn lines(output: &Output) -> Vec<Value> {
    let text = String::from_utf8_lossy(&output.stdout);
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

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
    assert_eq!(lines(&output)[0]["labels"][0]["label"], "technical");

    let text = "I can't log in to my zzxqy account.";
    let output = scratch.classify(&head).args(["--explain", text]).output().unwrap();
    let answer = &lines(&output)[0];
    assert_eq!(answer["labels"][0]["label"], "technical", "{answer}");
    assert_eq!(answer["unknown"], json!(["zzxqy"]));
    let why = &answer["explanation"];
    let shares = why["ngrams"].as_array().unwrap().iter().map(|one| one["share"].as_f64().unwrap());
    let sum = shares.sum::<f64>() + why["base"].as_f64().unwrap() + why["others"].as_f64().unwrap();
    assert!((sum - why["score"].as_f64().unwrap()).abs() < 1e-9, "{why}");

    // Lines from a pipe; one has no known word.
    let mut child = scratch.classify(&head);
    let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().unwrap();
    std::io::Write::write_all(&mut child.stdin.take().unwrap(), b"where is my package\nzzxqy\n")
        .unwrap();
    let output = child.wait_with_output().unwrap();
    let answers = lines(&output);
    assert_eq!(
        (&answers[0]["labels"][0]["label"], output.status.code()),
        (&json!("delivery"), Some(1))
    );
    assert_eq!(answers[1]["error"], "the model has none of its words");
    assert!(errors(&output).contains("1 of the texts have no label"));
}

#[test]
fn texts_with_several_labels_or_none() {
    let scratch = Scratch::new();
    // The requests, without the label `technical`, and with another where the text speaks of `my` things.
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
    assert!(said.contains("head: F1 9"), "{said}");
    let head = scratch.path("head");

    let output =
        scratch.classify(&head).arg("Why is my invoice higher than last month").output().unwrap();
    let labels = &lines(&output)[0]["labels"];
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
    assert!(refused(&["--static", "--add-words", "2"]).contains("cannot be used with"));
    assert!(refused(&["--dropout", "1"]).contains("--dropout must be less than 1"));
    assert!(refused(&["--other-words", "2"]).contains("a number from 0 to 1"));
    fs::write(scratch.path("latin.tsv"), b"a\tx\nb\t\xff\n").unwrap();
    let said = refused(&["--dev", scratch.path("latin.tsv").to_str().unwrap()]);
    assert!(said.contains("line 2: it is not UTF-8"), "{said}");
}

#[test]
fn a_service_classifies() {
    let scratch = Scratch::new();
    let dev = data();
    let head = scratch.trained("requests", &["--dev", dev.to_str().unwrap(), "--static"]);
    let short = scratch.trained("short", &["--dev", dev.to_str().unwrap(), "--limit", "2"]);
    let (model, head) = (scratch.model.to_str().unwrap(), head.to_str().unwrap());
    let named = format!("other={}", short.display());
    let service = Service::start(&["--model", model, "--head", head, "--head", &named]);
    let heads = service.get("/heads").json();
    let names = heads["heads"].as_array().unwrap().iter().map(|head| head["name"].clone());
    assert_eq!(names.collect::<Vec<_>>(), ["requests", "other"]);
    assert_eq!(heads["heads"][0]["labels"], json!(["billing", "delivery", "technical"]));

    let ask = |body: Value| service.post("/classify", &body);
    let text = "I can't log in to my zzxqy account.";
    let answer =
        ask(json!({"text": text, "head": "requests", "explain": true, "scores": true})).json();
    assert_eq!(answer["labels"][0]["label"], "technical", "{answer}");
    let probabilities = answer["labels"].as_array().unwrap().iter();
    let sum: f64 = probabilities.map(|label| label["probability"].as_f64().unwrap()).sum();
    assert!((sum - 1.0).abs() < 1e-12 && answer["unknown"] == json!(["zzxqy"]), "{answer}");
    let why = &answer["explanation"];
    let score = answer["labels"][0]["score"].as_f64().unwrap();
    assert!((score - why["score"].as_f64().unwrap()).abs() < 1e-5, "{answer}");
    for one in why["ngrams"].as_array().unwrap() {
        let [start, end] = ["start", "end"].map(|field| one[field].as_u64().unwrap() as usize);
        assert_eq!(one["text"], text[start..end]);
    }

    // Any label can be explained, shown or not.
    let other = ask(json!({"text": text, "head": "requests", "explain_label": "billing", "top": 1,
        "scores": true}));
    let why = &other.json()["explanation"];
    let billing = answer["labels"].as_array().unwrap().iter().find(|one| one["label"] == "billing");
    let score = billing.unwrap()["score"].as_f64().unwrap();
    assert_eq!(
        (&why["label"], &other.json()["labels"][0]["label"]),
        (&json!("billing"), &json!("technical"))
    );
    assert!((score - why["score"].as_f64().unwrap()).abs() < 1e-5, "{why}");
    let parts = why["ngrams"].as_array().unwrap().iter().map(|one| one["share"].as_f64().unwrap());
    let sum = parts.sum::<f64>() + why["base"].as_f64().unwrap() + why["others"].as_f64().unwrap();
    assert!((sum - why["score"].as_f64().unwrap()).abs() < 1e-9, "{why}");
    let off =
        json!({"text": text, "head": "requests", "explain": false, "explain_label": "billing"});
    assert!(ask(off).json().get("explanation").is_none());

    // The same bits for a text in every batch, whole or as words.
    let words = json!(["where", "is", "my", "package"]);
    let all = json!({"texts": ["where is my package", words, "", "zzxqy", "refund my money"],
        "head": "requests", "scores": true});
    let results = ask(all).json()["results"].clone();
    let alone =
        ask(json!({"text": "where is my package", "head": "requests", "scores": true})).json();
    assert_eq!(results[0]["labels"], alone["labels"]);
    assert_eq!(results[1]["labels"], alone["labels"]);
    assert_eq!(results[2]["error"]["code"], "invalid_value");
    assert_eq!(results[3]["error"]["code"], "unknown_word");
    assert_eq!(results[4]["labels"][0]["label"], "billing");
    let top = ask(json!({"text": "where is my package", "head": "requests", "top": 1})).json();
    assert_eq!(top["labels"].as_array().unwrap().len(), 1);
    let sure =
        ask(json!({"text": "where is my package", "head": "requests", "threshold": 1.0})).json();
    assert_eq!(sure["labels"], json!([]));
    let cut = ask(json!({"text": "where is my package", "head": "other"})).json();
    assert_eq!(cut["cut"], true);

    // A text as large as a body may be.
    let large = "package ".repeat(500_000);
    assert_eq!(ask(json!({"text": large, "head": "other"})).json()["cut"], true);
    let foreign = ask(json!({"text": "我的包裹在哪里", "head": "requests"}));
    assert_eq!((foreign.status, &foreign.json()["code"]), (404, &json!("unknown_word")));

    for (body, status, code) in [
        (json!({"text": "where"}), 404, "no_such_head"),
        (json!({"text": "where", "head": "x"}), 404, "no_such_head"),
        (json!({"text": "", "head": "requests"}), 422, "invalid_value"),
        (json!({"text": 5, "head": "requests"}), 422, "invalid_value"),
        (json!({"texts": [], "head": "requests"}), 422, "invalid_value"),
        (json!({"text": "a", "texts": ["a"], "head": "requests"}), 422, "invalid_request"),
        (json!({"text": "a", "head": "requests", "threshold": 2}), 422, "invalid_value"),
        (json!({"text": "a", "head": "requests", "top": 0}), 422, "invalid_value"),
        (json!({"text": "a", "head": "requests", "explain_label": "x"}), 422, "invalid_value"),
        (
            json!({"texts": vec!["a"; 17], "head": "requests", "explain": true}),
            422,
            "too_many_results",
        ),
        (json!({"text": "a", "head": "requests", "k": 3}), 422, "unknown_field"),
    ] {
        let reply = ask(body.clone());
        assert_eq!((reply.status, &reply.json()["code"]), (status, &json!(code)), "{body}");
    }
    let metrics = service.get("/metrics").text().to_owned();
    for name in ["classified_texts", "cut_texts", "texts_with_unknown_words"] {
        assert!(metrics.contains(&format!("kindred_{name}_total")), "{name}: {metrics}");
    }
}

#[test]
fn a_head_of_another_model_is_refused_and_one_that_was_trained_again_is_reloaded() {
    let scratch = Scratch::new();
    let head = scratch.trained("requests", &[]);
    let (other, folder) = prepared("a 1 0\nb 0 1\n");
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--model"]);
    let refused = command.arg(&folder).arg("--head").arg(&head).output().unwrap();
    let said = errors(&refused);
    assert!(
        said.contains("was made for the model") && said.contains("serve it with that model"),
        "{said}"
    );
    drop(other);

    let arguments = ["--model", scratch.model.to_str().unwrap(), "--head", head.to_str().unwrap()];
    let service = Service::start_with_keys(&arguments);
    let seed = || service.get("/heads").json()["heads"][0]["training"]["seed"].clone();
    assert_eq!(seed(), 1);
    scratch.trained("requests", &["--seed", "7", "--replace"]);
    let reloaded = service.send("POST", b"/admin/reload", &[], b"");
    assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    assert_eq!(seed(), 7);
}

#[test]
fn the_built_in_model_has_a_head_and_others_say_how_to_make_one() {
    let service = Service::with_default_model();
    assert_eq!(service.get("/heads").json()["heads"][0]["name"], "sentiment");
    for (text, label) in
        [("a moving and funny film", "positive"), ("what a waste of time", "negative")]
    {
        let answer = service.post("/classify", &json!({"text": text})).json();
        assert_eq!(answer["labels"][0]["label"], label, "{answer}");
    }

    let scratch = Scratch::new();
    let service = Service::start(&["--model", scratch.model.to_str().unwrap()]);
    assert_eq!(service.get("/heads").json()["heads"], json!([]));
    let reply = service.post("/classify", &json!({"text": "hello"}));
    let detail = reply.json()["detail"].as_str().unwrap().to_owned();
    assert!(
        reply.status == 404
            && detail.contains("kindred train classifier")
            && detail.contains("--head"),
        "{detail}"
    );
}

/// The commands of docs/classify.md, from data to answers, as a reader would type them one after the other.
#[test]
fn the_commands_of_the_page_run() {
    let page = fs::read_to_string(top().join("docs/classify.md")).unwrap();
    let part = page.split("## From data to answers").nth(1).unwrap().split("\n## ").next().unwrap();
    let commands: Vec<&str> = part.lines().filter_map(|line| line.strip_prefix("    ")).collect();
    assert!((8..=20).contains(&commands.len()), "{commands:?}");
    let folder = tempfile::tempdir().unwrap();
    fs::create_dir(folder.path().join("examples")).unwrap();
    fs::copy(top().join("examples/requests.tsv"), folder.path().join("examples/requests.tsv"))
        .unwrap();
    let mut service = None;
    for line in commands {
        if let Some(head) = line.strip_prefix("kindred serve --head ") {
            let head = folder.path().join(head);
            service = Some(Service::start(&["--head", head.to_str().unwrap()]));
        } else if let Some(json) = line.strip_prefix("curl --json '") {
            let (json, address) = json.split_once("' ").unwrap();
            let path = address.strip_prefix("127.0.0.1:8080").unwrap();
            let body = serde_json::from_str(json).unwrap();
            let reply = service.as_ref().expect("it is served before").post(path, &body);
            assert_eq!(
                (reply.status, &reply.json()["labels"][0]["label"]),
                (200, &json!("delivery"))
            );
        } else {
            let mut shell = Command::new("sh");
            let function = "kindred() { \"$KINDRED\" \"$@\"; }\n";
            shell.args(["-ec", &format!("{function}{line}")]).current_dir(folder.path());
            shell.env("KINDRED", fs::canonicalize(program()).unwrap());
            shell.env("XDG_CACHE_HOME", folder.path());
            let output = shell.output().unwrap();
            assert!(output.status.success(), "{line}: {}", errors(&output));
        }
    }
    assert!(service.is_some(), "the page serves the head");
}

/// A state dict for the built-in model's 100 components: one filter for each of two words.
fn state_dict(dim: usize) -> Vec<u8> {
    let floats = |count: usize, one: f32| vec![one; count];
    let tensors = [
        ("convs.0.weight", json!([2, dim, 1]), [floats(dim, 0.5), floats(dim, -0.5)].concat()),
        ("convs.0.bias", json!([2]), floats(2, 10.0)),
        ("fc.weight", json!([2, 2]), vec![1.0, -1.0, -1.0, 1.0]),
    ];
    let (mut header, mut data) = (json!({}), Vec::new());
    for (name, shape, values) in tensors {
        let start = data.len();
        data.extend(values.iter().flat_map(|value: &f32| value.to_le_bytes()));
        header[name] = json!({"dtype": "F32", "shape": shape, "data_offsets": [start, data.len()]});
    }
    let header = header.to_string();
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &data].concat()
}

#[test]
fn a_state_dict_becomes_a_head_of_the_built_in_model() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &[u8]| {
        fs::write(folder.path().join(name), content).unwrap();
    };
    file("state.safetensors", &state_dict(100));
    file("other.safetensors", &state_dict(50));
    file("labels.txt", b"up\ndown\n");
    let import = |arguments: &[&str]| {
        let mut command = kindred(&["import-head"]);
        command.args(arguments).current_dir(folder.path()).output().unwrap()
    };
    let state = ["--weights", "state.safetensors", "--out", "head", "--labels-file", "labels.txt"];
    let made = import(&state);
    assert!(made.status.success(), "{}", errors(&made));
    let said = String::from_utf8_lossy(&made.stdout).into_owned();
    assert!(
        said.contains("head: convs.0 (width 1, 2 channels, padding 0), fc (2 outputs)"),
        "{said}"
    );
    let mut classify = kindred(&["classify", "--json", "--head", "head", "a moving film"]);
    let answer = &lines(&classify.current_dir(folder.path()).output().unwrap())[0];
    let labels = answer["labels"].as_array().unwrap();
    let of = |label: &str| {
        let found = labels.iter().find(|found| found["label"] == label).unwrap();
        found["score"].as_f64().unwrap()
    };
    assert!((of("up") + of("down")).abs() < 1e-9 && of("up") != 0.0, "{answer}");

    let description = fs::read_to_string(folder.path().join("head/head.json")).unwrap();
    assert!(description.contains("\"imported_from\": \"state.safetensors\""), "{description}");
    let taken = errors(&import(&state));
    assert!(taken.contains("exists") && taken.contains("--replace"), "{taken}");
    let again = import(&[&state[..], &["--replace", "--sigmoid"]].concat());
    assert!(again.status.success(), "{}", errors(&again));

    for (arguments, expected) in [
        (&["--weights", "other.safetensors", "--labels", "a,b"][..], "50 components"),
        (&["--weights", "none.safetensors", "--labels", "a,b"], "can't read none.safetensors"),
        (
            &["--weights", "labels.txt", "--labels", "a,b"],
            "labels.txt: it is not a safetensors file",
        ),
        (&["--weights", "state.safetensors", "--labels", "a,b,c"], "3 labels"),
        (&["--weights", "state.safetensors"], "--labels <NAME>"),
        (
            &["--weights", "state.safetensors", "--labels", "a,b", "--map", "convs"],
            "two names, such as",
        ),
        (
            &["--weights", "state.safetensors", "--labels", "a,b", "--padding", "x"],
            "must be none, same",
        ),
    ] {
        let refused = import(&[arguments, &["--out", "new"]].concat());
        let said = errors(&refused);
        assert!(!refused.status.success() && said.contains(expected), "{said}");
        assert!(!folder.path().join("new").exists());
    }
}
