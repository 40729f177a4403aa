//! Which model a command asks: that of its flag, or else of the environment, of the settings file,
//! or the built-in one; and that every answer names it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::{self, errors, kindred};
use serde_json::Value;

/// Folders of models under the metric dot, which expand to their own words, and classifiers of
/// them.
struct Models(tempfile::TempDir);

/// What each model has that no other has.
const OWN: [(&str, &str); 3] = [("first", "apple"), ("second", "banana"), ("third", "cherry")];

impl Models {
    fn new() -> Self {
        let models = Self(tempfile::tempdir().unwrap());
        for (name, word) in OWN {
            let text = format!("{word} 1 0\nnorth 0 1\nsouth 0 -1\ngood 2 1\nbad -2 1\n");
            std::fs::write(models.path("vectors.txt"), text).unwrap();
            models.done(kindred(&["prepare", "--metric", "dot", "vectors.txt", "--out", name]));
            let texts = "p\tgood\nn\tbad\n".repeat(20);
            std::fs::write(models.path("texts.tsv"), texts).unwrap();
            let mut train =
                kindred(&["train", "classifier", "--data", "texts.tsv", "--epochs", "1"]);
            train.args(["--model", name, "--channels", "2", "--out", &format!("head-of-{name}")]);
            models.done(train);
        }
        std::fs::write(models.path("words.txt"), "north\n").unwrap();
        std::fs::write(models.path("pairs.csv"), "north,south,1\ngood,bad,2\nnorth,good,3\n")
            .unwrap();
        models
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    fn run(&self, mut command: Command) -> Output {
        command.current_dir(self.0.path()).env("XDG_CACHE_HOME", support::cache());
        command.output().unwrap()
    }

    #[track_caller]
    fn done(&self, command: Command) -> (String, String) {
        let shown = format!("{command:?}");
        let output = self.run(command);
        assert!(output.status.success(), "{shown}: {}", errors(&output));
        (String::from_utf8(output.stdout.clone()).unwrap(), errors(&output))
    }

    fn settings(&self, text: &str) -> String {
        std::fs::write(self.path("kindred.toml"), text).unwrap();
        self.text("kindred.toml")
    }
}

/// A command that asks a model, how its flag names the model, and whether a head answers.
struct Asks {
    arguments: &'static [&'static str],
    flag: &'static [&'static str],
    has_head: bool,
}

const ASK: [Asks; 12] = [
    Asks { arguments: &["nearest", "north"], flag: &["--model"], has_head: false },
    Asks { arguments: &["analogy", "north - south"], flag: &["--model"], has_head: false },
    Asks { arguments: &["expand", "north"], flag: &["--model"], has_head: true },
    Asks { arguments: &["classify", "good"], flag: &["--model"], has_head: true },
    Asks {
        arguments: &["eval", "--similarities", "pairs.csv", "--case", "lower"],
        flag: &["--model"],
        has_head: false,
    },
    Asks {
        arguments: &["graph", "--out", "g.npz", "--replace"],
        flag: &["--model"],
        has_head: false,
    },
    Asks {
        arguments: &["bulk", "nearest", "--in", "words.txt", "--out", "o.jsonl", "--replace"],
        flag: &["--model"],
        has_head: false,
    },
    Asks {
        arguments: &["bulk", "analogy", "--in", "words.txt", "--out", "o.jsonl", "--replace"],
        flag: &["--model"],
        has_head: false,
    },
    Asks {
        arguments: &["bulk", "expand", "--in", "words.txt", "--out", "o.jsonl", "--replace"],
        flag: &["--model"],
        has_head: true,
    },
    Asks {
        arguments: &["bulk", "classify", "--in", "words.txt", "--out", "o.jsonl", "--replace"],
        flag: &["--model"],
        has_head: true,
    },
    Asks { arguments: &["similarity", "north", "south"], flag: &["--model"], has_head: false },
    Asks { arguments: &["rank", "south", "--word", "north"], flag: &["--model"], has_head: false },
];

impl Asks {
    fn command(&self, model: Option<&str>) -> Command {
        let mut command = kindred(self.arguments);
        if let Some(model) = model {
            command.args(self.flag).arg(model);
        }
        command
    }

    fn is_classifier(&self) -> bool {
        self.arguments.contains(&"classify")
    }
}

/// The name and version that JSON gives, wherever it has them.
fn named(json: &str) -> (String, String) {
    let first = json.lines().next().unwrap();
    let value: Value = serde_json::from_str(json).or_else(|_| serde_json::from_str(first)).unwrap();
    let (model, version) = match &value["model"] {
        Value::Object(model) => (model["name"].clone(), model["version"].clone()),
        model => (model.clone(), value["version"].clone()),
    };
    let text = |value: Value| value.as_str().unwrap_or_else(|| panic!("{json}")).to_owned();
    (text(model), text(version))
}

fn version(folder: &Path) -> String {
    model_store::ModelStore::open(folder).unwrap().version().to_owned()
}

#[test]
fn every_command_asks_the_model_of_flag_environment_file_or_the_built_in_one() {
    let models = Models::new();
    let settings = models.settings(&format!(
        "model = {:?}\nhead = {:?}",
        models.text("first"),
        models.text("head-of-first")
    ));
    for asks in &ASK {
        let json = |command: &mut Command| {
            command.arg("--json");
        };
        let of = |model: &str, variables: &[(&str, &str)], flag: Option<&str>| {
            let mut command = asks.command(flag);
            json(&mut command);
            command.envs(variables.iter().copied());
            let shown = format!("{command:?}");
            let (answer, _) = models.done(command);
            let expected = (model.to_owned(), version(&models.path(model)));
            assert_eq!(named(&answer), expected, "{shown}: {answer}");
        };
        let head = |model: &str| models.text(&format!("head-of-{model}"));
        of("first", &[("KINDRED_CONFIG", &settings)], None);
        let second = [
            ("KINDRED_CONFIG", &settings[..]),
            ("KINDRED_MODEL", &models.text("second")),
            ("KINDRED_HEAD", &head("second")),
        ];
        of("second", &second, None);
        if asks.is_classifier() {
            // The settings' heads are of another model, and this one has none of its own.
            let mut command = asks.command(Some(&models.text("third")));
            command.envs(second);
            assert!(
                errors(&models.run(command)).contains("the model third has no head of its own")
            );
            continue;
        }
        of("third", &second, Some(&models.text("third")));
        // Without any: the built-in model, which knows the word as well.
        let (answer, _) = {
            let mut command = asks.command(None);
            json(&mut command);
            models.done(command)
        };
        assert_eq!(named(&answer).0, "demo", "{answer}");
    }
}

#[test]
fn heads_are_made_for_the_model_of_the_settings() {
    let models = Models::new();
    let model = models.text("second");
    let with = |mut command: Command| {
        command.env("KINDRED_MODEL", &model);
        models.done(command).0
    };
    with(kindred(&["train", "expander", "--out", "nearby"]));
    let train = ["train", "classifier", "--data", "texts.tsv", "--epochs", "1", "--out", "sides"];
    with(kindred(&train));
    for head in ["nearby", "sides"] {
        let about = ::kindred::heads::about(&models.path(head)).unwrap();
        assert_eq!(about.model.unwrap().version, version(&models.path("second")), "{head}");
    }
}

#[test]
fn of_several_models_the_first_is_asked_with_its_own_heads() {
    let models = Models::new();
    let of = |first: &str, second: &str| {
        models.settings(&format!(
            "model = ['one={}', {:?}]\nhead = [{:?}, 'mine={}']\nplacement = ['one=replicate', 'auto']",
            models.text(first),
            models.text(second),
            models.text(&format!("head-of-{second}")),
            models.text(&format!("head-of-{first}")),
        ))
    };
    for (first, second) in [("first", "second"), ("second", "third")] {
        let settings = of(first, second);
        for asks in &ASK {
            let mut command = asks.command(None);
            command.arg("--json").env("KINDRED_CONFIG", &settings);
            let (answer, _) = models.done(command);
            let expected = ("one".to_owned(), version(&models.path(first)));
            assert_eq!(named(&answer), expected, "{:?}: {answer}", asks.arguments);
            if asks.is_classifier() {
                assert!(answer.contains("\"mine\""), "{answer}");
            }
            // Settings about other models do not stand in the way of a flag.
            if !asks.is_classifier() {
                let mut command = asks.command(Some(&format!("x={}", models.text("first"))));
                command.arg("--json").env("KINDRED_CONFIG", &settings);
                assert_eq!(named(&models.done(command).0).0, "x");
            }
        }
    }
}

#[test]
fn settings_that_do_not_name_one_answer_are_refused() {
    let models = Models::new();
    let run = |asks: &Asks, settings: &str| {
        let mut command = asks.command(None);
        command.env("KINDRED_CONFIG", models.settings(settings));
        errors(&models.run(command))
    };
    let classify = &ASK[3];
    let (model, head, other) =
        (models.text("first"), models.text("head-of-first"), models.text("head-of-second"));
    let two = format!("model = {model:?}\nhead = ['a={head}', 'b={head}']");
    let said = run(classify, &two);
    assert!(
        said.contains("several heads that could answer: a, b; choose one with --head"),
        "{said}"
    );
    let said = run(classify, &format!("model = {model:?}\nhead = {other:?}"));
    assert!(said.contains("was made for the model second"), "{said}");
    for asks in &ASK {
        let said = run(asks, "modle = 'x'");
        assert!(said.contains("did you mean model?"), "{:?}: {said}", asks.arguments);
        let said = run(asks, "model = '/no/such/folder'");
        assert!(said.contains("/no/such/folder is not a Kindred model"), "{said}");
    }
}

#[test]
fn a_question_that_asks_no_head_is_answered_beside_the_head_of_another_model() {
    let models = Models::new();
    for arguments in [
        &["nearest", "frog"][..],
        &["analogy", "frog + toad"],
        &["similarity", "frog", "toad"],
        &["rank", "toad", "--word", "frog"],
    ] {
        let mut command = kindred(arguments);
        command.env("KINDRED_HEAD", models.path("head-of-first"));
        models.done(command);
    }
}

#[test]
fn every_answer_names_who_gives_it() {
    let models = Models::new();
    let (model, head) = (models.text("first"), models.text("head-of-first"));
    let version = version(&models.path("first"));
    for asks in &ASK {
        let mut command = asks.command(Some(&model));
        let name = match (asks.is_classifier(), asks.has_head) {
            (true, _) => "head-of-first over ",
            (false, true) => "terms over ",
            _ => "",
        };
        if asks.is_classifier() {
            command.args(["--head", &head]);
        }
        let shown = format!("{command:?}");
        let (stdout, stderr) = models.done(command);
        let expected = format!("{name}first ({version})");
        let reports = ["bulk", "graph", "eval"].contains(&asks.arguments[0]);
        let said = if reports { &stdout } else { &stderr };
        assert!(said.contains(&expected), "{shown}: {stdout}{stderr}");
        // What is read by other programs has answers only.
        assert_eq!(stdout.contains(&version), reports, "{shown}: {stdout}");
        if asks.has_head {
            let mut command = asks.command(Some(&model));
            if asks.is_classifier() {
                command.args(["--head", &head]);
            }
            command.arg("--json");
            let answer: Value = serde_json::from_str(&models.done(command).0).unwrap();
            assert_eq!(answer["head"], name.split(' ').next().unwrap(), "{answer}");
        }
    }
    // Texts without an answer, too.
    for command in ["expand", "classify"] {
        let mut command = kindred(&[command, "?!", "--model", &model, "--json"]);
        if command.get_args().any(|argument| argument == "classify") {
            command.args(["--head", &head]);
        }
        let output = models.run(command);
        let answer: Value = serde_json::from_slice(&output.stdout).unwrap();
        let error = &answer["error"];
        assert!(error["code"].is_string() && error["detail"].is_string(), "{answer}");
        assert_eq!(answer["version"], version.as_str(), "{answer}");
        assert!(answer["model"] == "first" && answer["head"].is_string(), "{answer}");
    }
    let texts = ["eval", "--model", &model, "--head", &head, "--classification", "texts.tsv"];
    let (table, _) = models.done(kindred(&texts));
    assert!(table.starts_with(&format!("head-of-first over first ({version})\n")), "{table}");
    let (json, _) = models.done(kindred(&[&texts[..], &["--json"]].concat()));
    assert_eq!(named(&json), ("first".to_owned(), version));
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["head"], "head-of-first");
}

#[test]
fn the_console_says_who_answers_whenever_that_changes() {
    let models = Models::new();
    let model = models.text("first");
    let version = version(&models.path("first"));
    let lines = models.path("lines.txt");
    std::fs::write(&lines, "north\nsouth\n:expand north\n:expand south\nnorth\n").unwrap();
    let mut command = kindred(&["console", "--model", &model]);
    command.stdin(std::fs::File::open(&lines).unwrap());
    let (_, said) = models.done(command);
    let named = |head: &str| format!("{head}first ({version})");
    let expected = [named(""), named("terms over "), named("")];
    let is_name = |line: &&str| !line.starts_with("line ");
    assert_eq!(said.lines().filter(is_name).collect::<Vec<_>>(), expected, "{said}");
}

#[test]
fn a_model_without_a_name_is_refused() {
    let models = Models::new();
    for command in [
        &["nearest", "frog", "--model", ""][..],
        &["classify", "good", "--model="],
        &["serve", "--model", ""],
        &["eval", "", "--similarities", "x"],
    ] {
        let mut command = kindred(command);
        command.env("KINDRED_MODEL", models.text("first"));
        let refused = command.output().unwrap();
        let said = String::from_utf8_lossy(&refused.stderr).into_owned();
        let is_said = said.contains("needs a value") || said.contains("can't be empty");
        assert!(!refused.status.success() && is_said, "{said}");
    }
}

/// These have no answers in JSON; and they took the model without its flag, as `eval` did.
#[test]
fn verify_and_export_take_the_model_that_others_take() {
    let models = Models::new();
    let pairs = ["eval", "--json", "--similarities", "pairs.csv"];
    for command in [&["verify"][..], &["export", "--format", "glove", "--out", "-"], &pairs] {
        let of = |model: &str, arguments: &[&str]| {
            let mut asked = kindred(&[command, arguments].concat());
            asked.env("KINDRED_MODEL", models.text("second"));
            let (said, _) = models.done(asked);
            let own = OWN.iter().find(|(name, _)| *name == model).unwrap().1;
            let expected = match command[0] {
                "export" => own.to_owned(),
                _ => version(&models.path(model)),
            };
            assert!(said.contains(&expected), "{command:?} {arguments:?}: {said}");
        };
        let (first, third) = (models.text("first"), models.text("third"));
        of("second", &[]);
        of("first", &["--model", &first]);
        of("third", &[&format!("--model=x={third}")[..]]);
        // After a list of files, a model without its flag stands behind `--`.
        of("first", &["--", &first]);
        let twice = kindred(&[command, &["--model", &first, "--", &third]].concat());
        let refused = models.run(twice);
        assert_eq!(refused.status.code(), Some(2));
        assert!(errors(&refused).contains("`--model` can't be used with"), "{}", errors(&refused));
    }
    let (said, _) = models.done(kindred(&["verify", &models.text("first")]));
    assert!(said.contains(&version(&models.path("first"))), "{said}");
    let (said, _) = models.done(kindred(&["verify"]));
    assert!(said.contains("the built-in model: version 7fbc8351f31644a7"), "{said}");
}

/// A model, a classifier and an expander: each command asks the head of its kind.
#[test]
fn a_head_of_another_kind_is_named_with_its_kind() {
    let models = Models::new();
    let (model, classifier) = (models.text("first"), models.text("head-of-first"));
    models.done(kindred(&["train", "expander", "--model", &model, "--out", "near"]));
    let texts = ["--classification", "texts.tsv"];
    let bulk = ["--in", "words.txt", "--out", "never.jsonl"];
    for (command, more, head, kinds) in [
        (&["classify", "good"][..], &[][..], "near", ["an expander", "a classifier"]),
        (&["bulk", "classify"], &bulk, "near", ["an expander", "a classifier"]),
        (&["eval"], &texts, "near", ["an expander", "a classifier"]),
        (&["expand", "good"], &[], &classifier[..], ["a classifier", "an expander"]),
        (&["bulk", "expand"], &bulk, &classifier[..], ["a classifier", "an expander"]),
    ] {
        let command = [command, &["--model", &model, "--head", head], more].concat();
        let refused = models.run(kindred(&command));
        let said = errors(&refused);
        let [found, wanted] = kinds;
        let expected = format!("{head} is {found}; choose {wanted}, or make one with `kindred");
        assert!(!refused.status.success() && said.contains(&expected), "{command:?}: {said}");
    }
}
