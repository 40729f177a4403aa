//! `kindred console`, `nearest` and `analogy`: through pipes, here and against a running service.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use crate::support::{Service, TINY, cache, kindred, prepared};
use crate::tls::pair;
use serde_json::{Value, json};

/// A command over the built-in model, in the cache that the tests share.
fn here(arguments: &[&str]) -> Command {
    let mut command = kindred(arguments);
    command.args(["--device", "cpu", "--cache-dir"]).arg(cache());
    command
}

fn piped(mut command: Command, input: &str) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    // Who ends before the input does has not read all of it.
    let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

fn out(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn err(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The objects of `--json`, one a line.
fn objects(output: &Output) -> Vec<Value> {
    out(output).lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// Words, rows and score bits.
fn neighbors(answer: &Value) -> Vec<(String, u64, u64)> {
    let neighbors = answer["neighbors"].as_array().unwrap_or_else(|| panic!("{answer}"));
    let one = |n: &Value| {
        let word = n["word"].as_str().unwrap().to_owned();
        (word, n["row"].as_u64().unwrap(), n["score"].as_f64().unwrap().to_bits())
    };
    neighbors.iter().map(one).collect()
}

const QUESTIONS: [&str; 5] =
    ["frog", "king - man + woman", "0.5*(paris + \"rome\") - france", "\"frog\"", "-bad + good"];

#[test]
fn a_pipe_gets_what_http_answers_to_the_bit_here_and_by_url() {
    let service = Service::with_default_model();
    let input = QUESTIONS.join("\n");
    let local = piped(here(&["console", "--json", "--k", "20"]), &input);
    assert_eq!(local.status.code(), Some(0), "{}", err(&local));
    let remote =
        piped(kindred(&["console", "--json", "--k", "20", "--url", &service.url("/")]), &input);
    assert_eq!(remote.status.code(), Some(0), "{}", err(&remote));
    let (local, remote) = (objects(&local), objects(&remote));
    assert_eq!((local.len(), remote.len()), (QUESTIONS.len(), QUESTIONS.len()));
    for (index, asked) in QUESTIONS.into_iter().enumerate() {
        let word = asked.trim_matches('"');
        let over_http = if word == "frog" {
            service.post("/nearest", &json!({"word": word, "k": 20}))
        } else {
            service.post("/analogy", &json!({"expression": asked, "k": 20}))
        };
        let over_http = over_http.json();
        for answer in [&local[index], &remote[index]] {
            assert_eq!(neighbors(answer).len(), 20);
            assert_eq!(neighbors(answer), neighbors(&over_http), "{asked}");
            assert_eq!(answer["version"], over_http["version"]);
            assert_eq!((&answer["asked"], &answer["line"]), (&json!(asked), &json!(index + 1)));
            for stage in ["look_up", "queue", "engine", "total"] {
                assert!(answer["times_ms"][stage].as_f64().unwrap() >= 0.0, "{answer}");
            }
        }
        assert!(remote[index]["times_ms"]["round_trip"].as_f64().unwrap() > 0.0);
        assert!(local[index]["times_ms"]["round_trip"].is_null());
    }
}

#[test]
fn a_service_of_several_models_is_asked_for_one_and_with_its_key() {
    let (_place, model) = prepared(TINY);
    let second = format!("other={}", model.to_str().unwrap());
    let service =
        Service::start_with_keys(&["--model", model.to_str().unwrap(), "--model", &second]);
    let url = service.url("/models/other");
    let refused = kindred(&["nearest", "east", "--url", &url]).output().unwrap();
    assert_eq!(refused.status.code(), Some(1));
    let said = err(&refused);
    assert!(said.contains("API key"), "{said}");
    assert!(said.contains("set KINDRED_API_KEY or give --api-key"), "{said}");
    let key = service.key.clone().unwrap();
    let mut by_environment = kindred(&["nearest", "east", "--json", "--url", &url]);
    let answers = [
        by_environment.env("KINDRED_API_KEY", &key).output().unwrap(),
        kindred(&["nearest", "east", "--json", "--url", &url, "--api-key", &key]).output().unwrap(),
    ];
    for answer in answers {
        assert_eq!(objects(&answer)[0]["model"], json!("other"), "{}", err(&answer));
    }
    // The variable is none of the service's settings, and does not keep it from starting.
    let mut starts = kindred(&["serve", "--listen", "nowhere", "--model"]);
    let said = err(&starts.arg(&model).env("KINDRED_API_KEY", &key).output().unwrap());
    assert!(said.contains("can't listen on nowhere"), "{said}");
}

#[test]
fn words_with_spaces_win_over_what_they_would_read_as() {
    let text = "new 1 0\nyork 0 1\nnewyork 1 1\na 1 0.5\nb 0.1 1\n";
    let (scratch, _) = prepared(text);
    let input = scratch.path().join("spaces.txt");
    std::fs::write(
        &input,
        "new york 1 1\nnew 1 0\nyork 0 1\na - b 1 0.5\na 1 0.2\nb 0.1 1\n:k 2 2\n",
    )
    .unwrap();
    let model = scratch.path().join("spaces");
    let mut prepare = kindred(&["prepare", "--dim", "2"]);
    let prepare = prepare.arg(&input).arg("--out").arg(&model).output().unwrap();
    assert!(prepare.status.success(), "{}", err(&prepare));
    let model = model.to_str().unwrap();
    let said = piped(
        kindred(&["console", "--json", "--k", "1", "--device", "cpu", "--model", model]),
        "new york\na - b\nnew + york\n\":k\"\n:k\n",
    );
    let answers = objects(&said);
    let words: Vec<_> =
        answers.iter().map(|a| a["neighbors"][0]["word"].as_str().unwrap()).collect();
    assert_eq!(words[0], ":k", "as `new york` points as `:k` does: {answers:?}");
    assert_eq!(words.len(), 4, "{}", err(&said));
    // Of an expression its words would be left out; of the word `a - b` that word alone is.
    let exact = piped(
        kindred(&["console", "--json", "--k", "9", "--device", "cpu", "--model", model]),
        "a - b\n",
    );
    let all: Vec<_> = neighbors(&objects(&exact)[0]).into_iter().map(|(word, ..)| word).collect();
    assert!(all.contains(&"a".to_owned()) && !all.contains(&"a - b".to_owned()), "{all:?}");
    assert!(err(&said).contains("line 5") && err(&said).contains("`:k 20`"), "{}", err(&said));
    assert_eq!(said.status.code(), Some(1));
}

#[test]
fn bad_lines_are_said_with_their_numbers_and_the_others_answered() {
    let input = "frog\n\nkin gg\nfrogz\n:nonsense\nking - \nfroggz - kingz\n\u{1b}[2Jx\ntoad\n";
    let output = piped(here(&["console", "-k", "2"]), input);
    assert_eq!(output.status.code(), Some(1));
    let said = err(&output);
    for part in [
        "line 3: ",
        "two words need an operator between them; a word with a space in it needs double quotes",
        "line 4: the model does not have `frogz`; did you mean frog",
        "line 5: unknown command `:nonsense`; commands: :classify, :expand, :head, :k, :compare",
        "line 6: the expression can't be read at column",
        "line 7: the model does not have `froggz`, `kingz`",
        "instead of `kingz`, did you mean king",
        "line 8: ",
        "6 of 8 lines could not be answered",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    assert!(!said.contains('\u{1b}'), "nothing steers the terminal: {said}");
    let text = out(&output);
    assert!(text.starts_with("frog\n   1  ") && text.contains("\n\ntoad\n"), "{text}");
    assert_eq!(text.matches("engine").count(), 2, "times after each answer: {text}");
}

#[test]
fn commands_hold_for_the_lines_behind_them() {
    let input = ":k 3\nfrog\n:compare on\nfrog\n:compare\n:method 3cosmul\nking - man + woman\n\
        :explain\nking - man + woman\n:model\n:quit\nfrog\n";
    let output = piped(here(&["console", "--json"]), input);
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let answers = objects(&output);
    assert_eq!(answers.len(), 5, "nothing behind :quit");
    assert_eq!(neighbors(&answers[0]).len(), 3);
    assert!(answers[0].get("compare").is_none());
    let comparison = &answers[1]["compare"];
    assert_eq!(comparison["identical"], json!(true));
    assert!(comparison["reference_ms"].as_f64().unwrap() > 0.0);
    assert_eq!(neighbors(&answers[0]), neighbors(&answers[1]));
    // 3CosMul's scores are products: that of the best is far from any cosine of these words.
    assert!(
        answers[2].get("compare").is_none() && answers[2]["neighbors"][0].get("terms").is_none()
    );
    assert!(answers[3]["neighbors"][0]["terms"][0]["factor"].is_number(), "{}", answers[3]);
    assert_eq!(neighbors(&answers[2]), neighbors(&answers[3]));
    assert_eq!((&answers[4]["name"], &answers[4]["rows"]), (&json!("demo"), &json!(30_000)));
    assert_eq!((&answers[4]["asked"], &answers[4]["line"]), (&json!(":model"), &json!(10)));
    let help = piped(here(&["console"]), ":help\n:model\n");
    for part in [":compare", ":method", "30,000", "demo-100d.txt.gz"] {
        assert!(out(&help).contains(part), "{part}: {}", out(&help));
    }
}

#[test]
fn texts_are_classified_here_and_by_url() {
    let service = Service::with_default_model();
    let input = ":classify a moving and funny film\n:explain on\n:classify not bad, xyzzyq\n:classify xyzzyq\n\
        :head nope";
    let local = piped(here(&["console", "--json"]), input);
    let url = format!("http://{}", service.address);
    let remote = piped(kindred(&["console", "--json", "--url", &url]), input);
    for output in [&local, &remote] {
        assert_eq!(output.status.code(), Some(1));
        let [first, second] = &objects(output)[..] else { panic!("{}", out(output)) };
        assert_eq!(
            (&first["asked"], &first["head"]),
            (&json!("a moving and funny film"), &json!("sentiment"))
        );
        assert_eq!(first["labels"][0]["label"], "positive");
        assert!(second["explanation"]["ngrams"][0]["share"].is_number(), "{second}");
        let said = err(output);
        assert!(said.contains("line 4: ") && said.contains("xyzzyq"), "{said}");
        assert!(said.contains("there is no head `nope`; heads: sentiment"), "{said}");
    }
    let answers = [&local, &remote].map(|output| objects(output)[1]["labels"].clone());
    assert_eq!(answers[0], answers[1], "to the bit");
    let text = out(&piped(here(&["console"]), ":explain\n:classify not bad, xyzzyq"));
    assert!(text.contains("negative because of") && text.contains("unknown: xyzzyq"), "{text}");
}

#[test]
fn texts_are_expanded_here_and_by_url() {
    let service = Service::with_default_model();
    // A head holds for its own kind.
    let input = ":head sentiment\n:k 3\n:expand cheap flights xyzzyq\n:head nearby\n:expand frog\n:classify good\n:expand xyzzyq";
    let url = format!("http://{}", service.address);
    let local = piped(here(&["console", "--json"]), input);
    let remote = piped(kindred(&["console", "--json", "--url", &url]), input);
    let served = service
        .post("/expand", &json!({"text": "cheap flights xyzzyq", "top": 3, "explain": true}));
    for output in [&local, &remote] {
        assert_eq!(output.status.code(), Some(1));
        let [first, second, third] = &objects(output)[..] else { panic!("{}", out(output)) };
        assert_eq!((&first["asked"], &first["line"]), (&json!("cheap flights xyzzyq"), &json!(3)));
        assert_eq!(first["terms"], served.json()["terms"], "to the bit");
        assert_eq!((&first["unknown"], &first["head"]), (&json!(["xyzzyq"]), &json!("nearby")));
        assert_eq!(second["terms"].as_array().unwrap().len(), 3);
        assert_eq!(third["head"], "sentiment");
        let said = err(output);
        assert!(said.contains("line 7: ") && said.contains("xyzzyq"), "{said}");
    }
    let text = out(&piped(here(&["console"]), ":expand cheap flights xyzzyq"));
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines.iter().filter(|line| line.contains("  from ")).count(), 10, "k is 10: {text}");
    assert!(lines[1].starts_with("   1  cheap ") && lines[1].ends_with("  from cheap"), "{text}");
    assert!(text.contains("   unknown: xyzzyq\n") && text.contains("engine"), "{text}");
}

#[test]
fn comparing_finds_every_method_and_filter_identical() {
    let input = "frog\nking - man + woman\n:method 3cosmul\nking - man + woman\n\
        :method pairdirection\nking - man + woman\n:explain on\nking - man + woman\n";
    for options in [&[][..], &["--vocab-limit", "500"], &["--fold-case", "--min-score", "0.1"]] {
        let output = piped(here(&[&["console", "--compare", "--json"], options].concat()), input);
        assert_eq!(output.status.code(), Some(0), "{options:?}: {}", err(&output));
        let answers = objects(&output);
        assert_eq!(answers.len(), 5);
        assert!(answers.iter().all(|a| a["compare"]["identical"] == json!(true)), "{options:?}");
    }
}

#[test]
fn a_service_is_compared_with_the_reference_of_its_own_model_only() {
    let (_place, model) = prepared(TINY);
    let model = model.to_str().unwrap();
    let service = Service::start(&["--model", model]);
    let url = service.url("");
    let ask = |arguments: &[&str]| {
        let asked = [&["nearest", "east", "--compare", "--url", &url], arguments].concat();
        kindred(&asked).output().unwrap()
    };
    let without = ask(&[]);
    assert_eq!(without.status.code(), Some(1));
    // A model that nothing is held against would be passed over without a word.
    let unused = kindred(&["nearest", "east", "--url", &url, "--model", model]).output().unwrap();
    assert_eq!(unused.status.code(), Some(1));
    assert!(err(&unused).contains("--compare"), "{}", err(&unused));
    assert!(err(&without).contains("--model DIR"), "{}", err(&without));
    let with = ask(&["--model", model]);
    assert_eq!(with.status.code(), Some(0), "{}", err(&with));
    assert!(out(&with).contains("identical: rows and score bits"), "{}", out(&with));
    let (_other, other) = prepared(&TINY.replace("north 0 1", "north 0 2"));
    let other = ask(&["--model", other.to_str().unwrap()]);
    assert_eq!(other.status.code(), Some(1));
    assert!(err(&other).contains("can't be compared"), "{}", err(&other));
    // A line of a console without a reference is wrong; the console goes on.
    let console = piped(kindred(&["console", "--url", &url]), ":compare\neast\n");
    assert!(err(&console).contains("line 1: --compare runs the reference"), "{}", err(&console));
    assert!(out(&console).starts_with("east\n"));
}

#[test]
fn the_lines_of_the_2020_report_are_answered() {
    let output = piped(here(&["console", "--compat"]), "bottle 0\r\nsnake 1\nking - queen ! 0\n");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let text = out(&output);
    let blocks: Vec<&str> = text.split("\n\n").collect();
    for (block, asked, compared) in [
        (blocks[0], "bottle 0\n", false),
        (blocks[1], "snake 1\n", true),
        (blocks[2], "king - queen ! 0\n", false),
    ] {
        assert!(block.starts_with(asked), "{block}");
        assert!(block.contains("\n  10  ") && !block.contains("\n  11  "), "ten words: {block}");
        assert_eq!(block.contains("reference"), compared, "{block}");
        assert_eq!(block.contains("identical: rows and score bits"), compared, "{block}");
    }
    // The same as the expression, to the bit.
    let ours =
        piped(here(&["console", "--compat", "--json"]), "king - queen ! 0\nking + queen ! 1\n");
    let usual = piped(here(&["console", "--json"]), "king - queen\nking + queen\n");
    let (ours, usual) = (objects(&ours), objects(&usual));
    assert_eq!(neighbors(&ours[0]), neighbors(&usual[0]));
    assert_eq!(neighbors(&ours[1]), neighbors(&usual[1]));

    let wrong = piped(here(&["console", "--compat"]), "bottle\nking - queen 0\n:help\nbottle 0\n");
    assert_eq!(wrong.status.code(), Some(1));
    for part in ["line 1: `bottle`: ", "`king - queen ! 0`", "line 2: ", "line 3: ", "3 of 4"] {
        assert!(err(&wrong).contains(part), "{part}: {}", err(&wrong));
    }
    assert!(out(&wrong).starts_with("bottle 0\n"));
}

#[test]
fn one_question_on_the_command_line() {
    let nearest = here(&["nearest", "frog", "-k", "3"]).output().unwrap();
    assert_eq!(nearest.status.code(), Some(0), "{}", err(&nearest));
    let lines: Vec<String> = out(&nearest).lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), 4, "{lines:?}");
    assert!(lines[0].starts_with("   1  ") && lines[3].contains("engine"), "{lines:?}");

    let unknown = here(&["nearest", "frogz"]).output().unwrap();
    assert_eq!((unknown.status.code(), out(&unknown)), (Some(1), String::new()));
    assert!(
        err(&unknown).starts_with("kindred: the model does not have `frogz`; did you mean frog")
    );

    let all =
        ["analogy", "king - man + woman", "--json", "-k", "5", "--method", "3cosmul", "--compare"];
    let limits = ["--exclude", "queen", "--vocab-limit", "20000", "--min-score", "-0.5"];
    let analogy = here(&[&all[..], &limits].concat()).output().unwrap();
    assert_eq!(analogy.status.code(), Some(0), "{}", err(&analogy));
    let answer = &objects(&analogy)[0];
    let found = neighbors(answer);
    assert_eq!(found.len(), 5);
    assert!(found.iter().all(|(word, row, _)| word != "queen" && *row < 20_000), "{found:?}");
    assert_eq!(answer["compare"]["identical"], json!(true));

    let expression = here(&["nearest", "king - man + woman"]).output().unwrap();
    assert!(err(&expression).contains("kindred analogy"), "{}", err(&expression));
    assert!(!err(&unknown).contains("kindred analogy"));

    let bad = here(&["analogy", "king +"]).output().unwrap();
    assert!(bad.status.code() == Some(1) && err(&bad).contains("column 7"), "{}", err(&bad));
    let minus = here(&["analogy", "-bad", "--json"]).output().unwrap();
    assert_eq!(minus.status.code(), Some(0), "{}", err(&minus));
}

#[test]
fn model_and_engine_come_from_the_settings_of_serve_and_the_network_from_none() {
    let (scratch, model) = prepared(TINY);
    let settings = scratch.path().join("kindred.toml");
    let text = "api_keys_file = '/no/such/file'\ntls_certificate = '/no/such/file'\nthreads = 1\n";
    std::fs::write(&settings, text).unwrap();
    let mut command = kindred(&["nearest", "east", "--json"]);
    command.env("KINDRED_CONFIG", &settings).env("KINDRED_MODEL", &model);
    let answer = command.env("KINDRED_DEVICE", "cpu").output().unwrap();
    assert_eq!(answer.status.code(), Some(0), "{}", err(&answer));
    assert_eq!(objects(&answer)[0]["model"], json!("tiny"));
    let wrong = kindred(&["nearest", "east"]).env("KINDRED_DEVIC", "cpu").output().unwrap();
    assert!(err(&wrong).contains("KINDRED_DEVIC"), "{}", err(&wrong));
    // Where another service answers, settings of one here do not matter.
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    let mut asked = kindred(&["nearest", "east", "--url", &service.url("")]);
    assert!(asked.env("KINDRED_DEVIC", "cpu").output().unwrap().status.success());
    // The variables of those who ask do.
    let asked = asked.env("KINDRED_APIKEY", "x").output().unwrap();
    assert!(err(&asked).contains("did you mean KINDRED_API_KEY?"), "{}", err(&asked));
}

#[test]
fn a_line_of_any_length_is_answered_or_said_to_be_wrong() {
    let long = format!("frog + {}", "x".repeat(100_000));
    let sum = vec!["frog"; 256].join(" + ");
    let output = piped(here(&["console", "-k", "1", "--json"]), &format!("{long}\n{sum}\n"));
    assert_eq!(objects(&output).len(), 1, "{}", err(&output));
    let said = err(&output);
    assert!(said.contains("line 1: the model does not have `xxx") && said.len() < 1000, "{said}");
    let longer = format!("\u{feff}frog\n{}\nfrog\n", "x".repeat(3 << 20));
    let output = piped(here(&["console", "-k", "1", "--json"]), &longer);
    let answers = objects(&output);
    assert_eq!((&answers[0]["asked"], &answers[1]["line"]), (&json!("frog"), &json!(3)));
    assert_eq!(err(&output).lines().count(), 2, "{}", err(&output));
    assert!(err(&output).contains("line 2: the line is longer than 1048576 bytes"));
}

#[test]
fn a_command_line_that_can_not_be_read_is_exit_code_2() {
    for arguments in [
        &["nearest", "frog", "-k", "0"][..],
        &["nearest", "frog", "-k", "1001"],
        &["nearest"],
        &["analogy", "a", "--method", "best"],
        &["console", "--url", "http://127.0.0.1:1", "--device", "cpu"],
        &["console", "--compat", "--compare"],
        &["console", "--api-key", "x"],
        &["completions", "tcsh"],
    ] {
        let output = kindred(arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", err(&output));
    }
}

#[test]
fn what_can_not_be_asked_is_said_with_the_cure() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let nobody = format!("http://{}", free.local_addr().unwrap());
    drop(free);
    let other = Service::with_default_model();
    for (url, part) in [
        (nobody.as_str(), "is the service running there"),
        ("127.0.0.1:8080", "http://HOST:PORT"),
        ("ftp://127.0.0.1", "http://HOST:PORT"),
        ("http://127.0.0.1:8080/?k=5", "no query"),
        ("http://127.0.0.1:8080/#x", "no fragment"),
        ("http://me:topsecret@127.0.0.1:8080", "no user and password"),
        (&other.url("").replace("http:", "https:"), "try --url http://127.0.0.1:"),
        (&other.url("/models/none"), "there is no model `none`; models: demo"),
        (&other.url("/nowhere"), "no route /nowhere/nearest"),
    ] {
        let output = kindred(&["nearest", "frog", "--url", url]).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{url}");
        assert!(err(&output).contains(part), "{url}: {}", err(&output));
        assert!(!err(&output).contains("topsecret"), "{}", err(&output));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut no_model = kindred(&["console", "--model"]);
    let output = no_model.arg(folder.path()).stdin(Stdio::null()).output().unwrap();
    assert!(err(&output).contains("kindred prepare INPUT --out DIR"), "{}", err(&output));
}

#[test]
fn that_nobody_reads_the_answers_is_no_fault() {
    let input = "frog\n".repeat(500);
    for arguments in [&["console"][..], &["console", "--json"], &["nearest", "frog"]] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let mut command = here(arguments);
        let mut child =
            command.stdin(Stdio::piped()).stdout(writer).stderr(Stdio::piped()).spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let _ = stdin.write_all(input.as_bytes());
        drop(stdin);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(0), "{arguments:?}");
        let said = err(&output);
        assert!(said.is_empty() || said == "demo (7fbc8351f31644a7)\n", "{arguments:?}: {said}");
    }
}

#[test]
fn a_line_that_is_not_utf8_is_wrong_and_the_next_one_is_answered() {
    let mut command = here(&["console", "-k", "1"]);
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(b"fr\xffog\nfrog").unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(err(&output).contains("line 1: the line is not UTF-8"), "{}", err(&output));
    assert!(out(&output).starts_with("frog\n   1  "), "{}", out(&output));
}

#[test]
fn services_behind_https_are_asked_if_their_certificate_is_trusted() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = pair("first");
    let path = |name: &str| folder.path().join(name);
    std::fs::write(path("cert.pem"), certificate).unwrap();
    std::fs::write(path("key.pem"), key).unwrap();
    let mut serve =
        kindred(&["serve", "--listen", "127.0.0.1:0", "--log-level", "warn", "--cache-dir"]);
    serve.arg(cache()).arg("--tls-certificate").arg(path("cert.pem"));
    serve.arg("--tls-private-key").arg(path("key.pem")).stdout(Stdio::piped());
    let mut service = serve.spawn().unwrap();
    let url = {
        use std::io::{BufRead, BufReader};
        let mut lines = BufReader::new(service.stdout.take().unwrap()).lines();
        let line = lines.find_map(|line| line.ok().filter(|line| line.starts_with("Listening")));
        let line = line.expect("it says where it listens");
        let port = line.rsplit(':').next().unwrap().to_owned();
        format!("https://localhost:{port}")
    };
    let ask = |trusted: &Path| {
        let mut command = kindred(&["nearest", "frog", "--json", "--url", &url]);
        command.env("SSL_CERT_FILE", trusted).env_remove("SSL_CERT_DIR").output().unwrap()
    };
    let (stranger, _) = pair("second");
    std::fs::write(path("other.pem"), stranger).unwrap();
    let (trusted, untrusted) = (ask(&path("cert.pem")), ask(&path("other.pem")));
    let missing = ask(&path("missing.pem"));
    let plain = kindred(&["nearest", "frog", "--url", &url.replace("https:", "http:")]).output();
    service.kill().unwrap();
    service.wait().unwrap();
    assert!(err(&missing).contains("missing.pem, which SSL_CERT_FILE"), "{}", err(&missing));
    let plain = err(&plain.unwrap());
    assert!(plain.contains("try --url https://localhost:"), "{plain}");
    assert!(err(&untrusted).contains("SSL_CERT_FILE"), "{}", err(&untrusted));
    assert_eq!(trusted.status.code(), Some(0), "{}", err(&trusted));
    assert_eq!(neighbors(&objects(&trusted)[0]).len(), 10);
    assert_eq!(untrusted.status.code(), Some(1));
    assert!(err(&untrusted).contains("certificate"), "{}", err(&untrusted));
}

#[test]
fn errors_do_not_steer_the_terminal() {
    let output = here(&["nearest", "\u{1b}[31mEVIL\u{7}"]).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(!err(&output).contains(['\u{1b}', '\u{7}']), "{:?}", err(&output));
    assert!(err(&output).contains(r"\u{1b}[31mEVIL\u{7}"), "{}", err(&output));
}

#[test]
fn this_machine_is_asked_without_a_proxy_and_errors_name_the_proxy() {
    let service = Service::with_default_model();
    // Nothing listens there, nor has any name server such a host.
    let proxied = |url: &str| {
        let mut command = kindred(&["nearest", "frog", "--url", url]);
        for name in ["HTTP_PROXY", "ALL_PROXY", "http_proxy"] {
            command.env(name, "http://me:secret@127.0.0.1:9");
        }
        command.env_remove("NO_PROXY").env_remove("no_proxy").output().unwrap()
    };
    let near = proxied(&service.url(""));
    assert_eq!(near.status.code(), Some(0), "{}", err(&near));
    let far = err(&proxied("http://kindred.invalid:8080"));
    assert!(far.contains("the proxy http://127.0.0.1:9") && far.contains("NO_PROXY"), "{far}");
    assert!(!far.contains("secret"), "{far}");
}
