//! Answers to words, expressions and texts.

use super::{QUESTIONS, err, here, neighbors, objects, out, piped};
use crate::support::{Service, kindred, prepared};
use serde_json::json;

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
    let (text, said) = (out(&help), err(&help));
    assert!(said.contains(":compare") && said.contains(":method"), "{said}");
    assert!(text.contains("rows\t30,000\n") && text.contains("demo-100d.txt.gz"), "{text}");
    assert!(text.lines().all(|line| line.matches('\t').count() == 1), "columns alone: {text}");
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
    let output = piped(here(&["console"]), ":explain\n:classify not bad, xyzzyq");
    let text = out(&output);
    let rows: Vec<Vec<&str>> = text.lines().map(|line| line.split('\t').collect()).collect();
    assert!(rows.len() == 2 && rows[0][..2] == ["not bad, xyzzyq", "negative"], "{text}");
    assert!(rows[0][3].contains("bad") && rows[1][3].is_empty(), "what decided: {text}");
    assert!(err(&output).contains("line 2: unknown: xyzzyq\n"), "{}", err(&output));
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
    let output = piped(here(&["console"]), ":expand cheap flights xyzzyq");
    let (text, said) = (out(&output), err(&output));
    assert_eq!(text.lines().count(), 10, "k is 10: {text}");
    let first: Vec<&str> = text.lines().next().unwrap().split('\t').collect();
    assert_eq!([first[0], first[1], first[3]], ["cheap flights xyzzyq", "cheap", "cheap"]);
    let weight = objects(&local)[0]["terms"][0]["weight"].as_f64().unwrap();
    assert_eq!(first[2].parse::<f64>().unwrap(), weight, "it reads back as the same float64");
    assert!(said.contains("unknown: xyzzyq\n") && said.contains("engine"), "{said}");
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
fn the_lines_of_the_2020_report_are_answered() {
    let output = piped(here(&["console", "--compat"]), "bottle 0\r\nsnake 1\nking - queen ! 0\n");
    assert_eq!(output.status.code(), Some(0), "{}", err(&output));
    let (text, said) = (out(&output), err(&output));
    for (line, asked, compared) in
        [(1, "bottle 0", false), (2, "snake 1", true), (3, "king - queen ! 0", false)]
    {
        let rows = text.lines().filter(|row| row.starts_with(&format!("{asked}\t")));
        assert_eq!(rows.count(), 10, "ten words: {text}");
        let line = format!("line {line}: ");
        let notes: Vec<&str> = said.lines().filter(|note| note.starts_with(&line)).collect();
        assert_eq!(notes.len(), 1 + usize::from(compared), "{said}");
        let is_identical =
            notes.iter().any(|note| note.ends_with("identical: rows and score bits"));
        assert_eq!(is_identical, compared, "{said}");
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
    assert!(out(&wrong).starts_with("bottle 0\t"));
}

#[test]
fn one_question_on_the_command_line() {
    let nearest = here(&["nearest", "frog", "-k", "3"]).output().unwrap();
    assert_eq!(nearest.status.code(), Some(0), "{}", err(&nearest));
    let json = objects(&here(&["nearest", "frog", "-k", "3", "--json"]).output().unwrap());
    let row = |(word, row, bits): (String, u64, u64)| {
        format!("{word}\t{}\t{row}\n", f64::from_bits(bits))
    };
    let expected: String = neighbors(&json[0]).into_iter().map(row).collect();
    assert_eq!(out(&nearest), expected, "word, score and row, and nothing else");
    assert!(err(&nearest).contains("look-up ") && err(&nearest).contains("engine"));

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
