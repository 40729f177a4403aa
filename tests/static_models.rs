//! Static models, prepared and served: texts have vectors by their tokens, and are found.

#[path = "../crates/encoders/tests/static_folder.rs"]
#[allow(dead_code)]
mod static_folder;

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use static_folder::{TOKENS, model2vec, static_embedding};
use tempfile::TempDir;

use crate::openapi::Contract;
use crate::support::{Reply, Service, errors, kindred, objects, piped};

/// Runs `kindred prepare` with these arguments and this output. Returns what it says on both.
fn prepare(out: &Path, arguments: &[&str]) -> Result<String, String> {
    let mut prepare = kindred(&["prepare"]);
    let output = prepare.args(arguments).arg("--out").arg(out).output().unwrap();
    let said = errors(&output) + &String::from_utf8_lossy(&output.stdout);
    if output.status.success() { Ok(said) } else { Err(said) }
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// A scratch folder with a prepared static model, whose vectors are the means of its tokens' rows:
/// that of token `i` is (i, 1).
fn prepared() -> (TempDir, PathBuf) {
    let (scratch, source) = (tempfile::tempdir().unwrap(), model2vec(json!({"max_length": 4})));
    let out = scratch.path().join("demo");
    let said = prepare(&out, &[text(source.path())]).unwrap();
    assert!(said.contains("7 rows × 2 dimensions") && said.contains("static model"), "{said}");
    (scratch, out)
}

fn serve(model: &Path) -> Service {
    Service::start(&["--model", text(model)])
}

fn posted(service: &Service, path: &str, body: &Value) -> Reply {
    let reply = service.post(path, body);
    Contract::read().check("POST", path, &reply);
    reply
}

fn words(answer: &Value) -> Vec<&str> {
    let neighbors = answer["neighbors"].as_array().unwrap().iter();
    neighbors.map(|neighbor| neighbor["word"].as_str().unwrap()).collect()
}

#[test]
fn rows_are_the_tokens_and_a_text_is_the_mean_of_its_own() {
    let (_scratch, model) = prepared();
    let service = serve(&model);
    let about = service.get("/model");
    Contract::read().check("GET", "/model", &about);
    let about = about.json();
    assert_eq!((&about["encoder"], &about["tokeniser"]), (&json!("static"), &json!("wordpiece")));
    assert_eq!(about.get("documents"), None, "its rows are tokens");
    for (row, token) in TOKENS.iter().enumerate() {
        let body = json!({"word": token, "k": 1, "include_query": true, "with_vectors": true});
        let found = posted(&service, "/nearest", &body).json();
        assert_eq!(found["neighbors"][0]["vector"], json!([row as f64, 1.0]), "{token}");
    }
    // Tokens 1, 2 and 3; "x" is unknown, and dropped.
    let embedded = posted(&service, "/embed", &json!({"texts": ["AB x to"]})).json();
    let result = &embedded["results"][0];
    assert_eq!(result["vector"], json!([2.0, 1.0]));
    assert_eq!(result["used"], json!(["a", "##b", "to"]));
    assert_eq!(result["tokens"], json!({"count": 3, "unknown": 1, "truncated": false}));

    let body = json!({"text": "AB x to", "k": 7});
    let found = posted(&service, "/nearest", &body).json();
    assert_eq!(found["tokens"], result["tokens"]);
    assert_eq!(words(&found), ["boundary", "\u{e9}", "!", "[UNK]"], "without its own tokens");
    let body = json!({"text": "AB x to", "k": 7, "include_query": true});
    let by_text = posted(&service, "/nearest", &body).json();
    let by_vector = posted(&service, "/nearest", &json!({"vector": [2.0, 1.0], "k": 7})).json();
    assert_eq!(by_text["neighbors"], by_vector["neighbors"]);
    let ranks = posted(&service, "/rank", &json!({"text": "AB x to", "words": ["to"]})).json();
    assert_eq!(ranks["tokens"]["count"], 3);
    let by_get = service.get("/nearest?text=AB+x+to&k=7").json();
    assert_eq!(by_get["neighbors"], found["neighbors"]);
}

#[test]
fn texts_that_are_cut_empty_or_unknown_are_told() {
    let (_scratch, model) = prepared();
    let service = serve(&model);
    let texts = json!(["to to to to !", "", "x", "\u{200b}", "to"]);
    let answer = posted(&service, "/embed", &json!({"texts": texts})).json();
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results[0]["tokens"], json!({"count": 3, "unknown": 0, "truncated": true}));
    for (index, said) in [(1, "it has none"), (2, "all 1 of it are unknown"), (3, "it has none")] {
        let error = &results[index]["error"];
        assert_eq!((&error["status"], &error["field"]), (&json!(422), &json!("text")), "{index}");
        assert!(error["detail"].as_str().unwrap().contains(said), "{error}");
    }
    let of = |body: Value| {
        let answer = posted(&service, "/embed", &body).json();
        answer["results"][0]["error"]["detail"].as_str().unwrap_or_default().to_owned()
    };
    let whole = of(json!({"texts": ["to to to to !"], "truncate": false}));
    assert!(whole.contains("only 3 tokens"), "{whole}");
    let strict = of(json!({"texts": ["to x"], "unknown": "error"}));
    assert!(strict.contains("1 of it are unknown"), "{strict}");
    let subwords = of(json!({"texts": ["to x"], "unknown": "subwords"}));
    assert!(subwords.contains("no vectors of subwords"), "{subwords}");
    assert_eq!(service.get("/nearest?text=x").status, 422);
}

#[test]
fn clients_of_openai_count_tokens_and_get_unit_vectors() {
    let (_scratch, model) = prepared();
    let service = serve(&model);
    let answer = posted(&service, "/v1/embeddings", &json!({"input": ["to x", "a"]})).json();
    assert_eq!(answer["usage"], json!({"prompt_tokens": 3, "total_tokens": 3}));
    let vector: Vec<f64> = serde_json::from_value(answer["data"][0]["embedding"].clone()).unwrap();
    let length = 10f64.sqrt();
    assert!((vector[0] - 3.0 / length).abs() < 1e-6 && (vector[1] - 1.0 / length).abs() < 1e-6);
    let info = service.get("/info");
    Contract::read().check("GET", "/info", &info);
    assert_eq!(info.json()["max_input_length"], 4);
}

#[test]
fn the_command_line_prints_vectors_and_writes_arrays() {
    let (scratch, model) = prepared();
    let embed = |arguments: &[&str]| {
        let mut embed = kindred(&["embed", "--model", text(&model)]);
        embed.args(arguments);
        embed
    };
    let output = embed(&["AB to", "x"]).output().unwrap();
    let lines = objects(&output);
    assert_eq!(lines[0]["vector"], json!([2.0, 1.0]));
    assert_eq!(lines[1]["error"]["code"], "invalid_value");
    assert_eq!(output.status.code(), Some(1));
    assert!(errors(&output).contains("1 of the texts has no vector"), "{}", errors(&output));

    let array = scratch.path().join("v.npy");
    let output = piped(embed(&["--out", text(&array)]), "AB to\nto\n");
    assert!(output.status.success(), "{}", errors(&output));
    let file = fs::read(&array).unwrap();
    let numbers: Vec<u8> = [2.0f32, 1.0, 3.0, 1.0].into_iter().flat_map(f32::to_le_bytes).collect();
    assert!(file.ends_with(&numbers) && String::from_utf8_lossy(&file).contains("(2, 2)"));
    let again = embed(&["--out", text(&array), "to"]).output().unwrap();
    assert!(errors(&again).contains("exists"), "{}", errors(&again));
    fs::remove_file(&array).unwrap();
    let fails = piped(embed(&["--out", text(&array)]), "AB to\nx\n");
    assert!(errors(&fails).contains("text 2: ") && !array.exists(), "{}", errors(&fails));
}

#[test]
fn a_changed_encoder_is_found_and_a_replaced_model_has_the_new_one() {
    let (_scratch, model) = prepared();
    for name in ["encoder.json", "tokenizer.json", "rows.safetensors"] {
        let path = model.join("encoder").join(name);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        let last = damaged.len() - 3;
        damaged[last] ^= 1;
        fs::write(&path, damaged).unwrap();
        let output = kindred(&["verify", text(&model)]).output().unwrap();
        assert!(!output.status.success(), "{name}");
        assert!(errors(&output).contains("encoder"), "{name}: {}", errors(&output));
        fs::write(&path, whole).unwrap();
    }
    assert!(kindred(&["verify", text(&model)]).output().unwrap().status.success());
    let other = static_embedding("", &["StaticEmbedding"]);
    prepare(&model, &[text(other.path()), "--replace"]).unwrap();
    let service = serve(&model);
    // Unknown tokens are kept there: token 0.
    let answer = posted(&service, "/embed", &json!({"texts": ["to x"]})).json();
    assert_eq!(answer["results"][0]["vector"], json!([1.5, 1.0]));
}

#[test]
fn folders_that_can_not_be_read_are_refused_by_name() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("out");
    let source = model2vec(json!({}));
    let of = |change: fn(&Path)| {
        let source = model2vec(json!({}));
        change(source.path());
        prepare(&out, &[text(source.path())]).unwrap_err()
    };
    for (change, said) in [
        (
            (|folder| fs::remove_file(folder.join("model.safetensors")).unwrap()) as fn(&Path),
            "model.safetensors",
        ),
        (|folder| fs::remove_file(folder.join("tokenizer.json")).unwrap(), "tokenizer.json"),
        (|folder| fs::write(folder.join("tokenizer.json"), "{}").unwrap(), "tokenizer.json"),
        (|folder| fs::write(folder.join("config.json"), "{").unwrap(), "config.json"),
    ] {
        let error = of(change);
        assert!(error.contains(said), "{said}: {error}");
    }
    let error = prepare(&out, &[text(source.path()), "--dim", "3"]).unwrap_err();
    assert!(error.contains("2 components"), "{error}");
    let error = prepare(&out, &[text(source.path()), "--text-weights", "sif"]).unwrap_err();
    assert!(
        error.contains("weights are of words") && error.contains("omit --text-weights"),
        "{error}"
    );
    assert!(!out.exists());
}

/// Three texts as JSON lines, of which one has a nested field.
const DOCS: &str = "{\"id\": \"one\", \"body\": \"a to\", \"year\": 2001, \"more\": 1}\n\
                    {\"id\": \"two\", \"body\": \"boundary\", \"year\": 2002, \"more\": 2}\n\
                    {\"id\": 3, \"body\": \"! x\", \"year\": 2003, \"more\": 3}\n";

#[test]
fn documents_are_found_by_their_texts_with_the_encoder_that_made_them() {
    let (scratch, model) = prepared();
    let docs = scratch.path().join("docs.jsonl");
    fs::write(&docs, DOCS).unwrap();
    let out = scratch.path().join("tables/docs");
    let given = [text(&docs), "--encoder", text(&model), "--text", "body", "--key", "id"];
    let with = ["--attributes", text(&docs), "--keep-text"];
    prepare(&out, &[&given[..], &with].concat()).unwrap();
    // The encoder is inside: the model is not needed any more.
    fs::remove_dir_all(&model).unwrap();
    let service = Service::start(&["--models-dir", text(&scratch.path().join("tables"))]);
    assert_eq!(service.get("/model").json()["documents"], json!(true));
    let body = json!({"text": "a to", "k": 3, "with_attributes": true});
    let found = posted(&service, "/nearest", &body).json();
    assert_eq!(words(&found), ["one", "two", "3"]);
    assert!(found["neighbors"][0]["score"].as_f64().unwrap() > 0.999_999);
    assert_eq!(found["neighbors"][0]["attributes"]["body"], "a to");
    assert!(found.get("used").is_none(), "its tokens are no rows: {found}");
    let body = json!({"text": "a to", "filter": "year > 2001"});
    assert_eq!(words(&posted(&service, "/nearest", &body).json()), ["two", "3"]);
    // A key that is a token of the text is no word of it.
    let put = json!({"rows": [
        {"key": "a", "text": "a to", "attributes": {"year": 2004}},
        {"key": "four", "vector": [9.0, 1.0]},
    ]});
    let changed = posted(&service, "/rows", &put);
    assert_eq!(changed.status, 200, "{}", changed.text());
    let body = json!({"text": "to a", "k": 2, "with_vectors": true});
    let found = posted(&service, "/nearest", &body).json();
    assert_eq!(words(&found), ["one", "a"]);
    assert_eq!(found["neighbors"][0]["vector"], found["neighbors"][1]["vector"]);
    for (row, said) in [
        (json!({"key": "k", "text": "x"}), "its `text`: `text` must be a text with a token"),
        (json!({"key": "k", "text": 7}), "its `text` is not a text"),
        (json!({"key": "k", "text": "to", "vector": [1, 2]}), "a `vector` and a `text`"),
    ] {
        let reply = posted(&service, "/rows", &json!({"rows": [row]}));
        assert_eq!(reply.status, 422);
        assert!(reply.text().contains(said), "{}", reply.text());
    }
    // A fold keeps the encoder.
    assert_eq!(service.post("/fold", &json!({})).status, 200);
    assert_eq!(words(&posted(&service, "/nearest", &body).json()), ["one", "a"]);
}

#[test]
fn kept_texts_come_with_answers_stay_with_changes_and_are_not_compared() {
    let (scratch, model) = prepared();
    let docs = scratch.path().join("docs.jsonl");
    let long = "a to \"\u{1f438}\" é\n".repeat(5000);
    let line =
        |id: &str, body: &str| format!("{}\n", json!({"id": id, "body": body, "year": 2000}));
    fs::write(&docs, [line("long", &long), line("b", "boundary"), line("e", "to")].concat())
        .unwrap();
    let tables = scratch.path().join("tables");
    let out = tables.join("docs");
    let given = [text(&docs), "--encoder", text(&model), "--text", "body", "--key", "id"];
    let with = ["--attributes", text(&docs), "--keep-text"];
    prepare(&out, &[&given[..], &with].concat()).unwrap();
    let packed = fs::metadata(out.join("attributes/0-body.stored.jsonl.gz")).unwrap().len();
    assert!(packed < long.len() as u64 / 20, "{packed} bytes");
    let verified = kindred(&["verify", text(&out)]).output().unwrap();
    assert!(verified.status.success(), "{}", errors(&verified));
    let service = Service::start(&["--models-dir", text(&tables)]);
    let texts = |about: &Value| -> Vec<(String, Value)> {
        let found = posted(&service, "/nearest", about).json();
        let neighbors = found["neighbors"].as_array().unwrap_or_else(|| panic!("{found}"));
        let each = neighbors.iter().map(|one| (one["word"].as_str().unwrap(), &one["text"]));
        let mut each: Vec<_> = each.map(|(word, text)| (word.to_owned(), text.clone())).collect();
        each.sort_by(|(a, _), (b, _)| a.cmp(b));
        each
    };
    let asked = json!({"text": "a to", "k": 9, "with_text": true});
    let expected = |all: &[(&str, Value)]| -> Vec<(String, Value)> {
        all.iter().map(|(word, text)| ((*word).to_owned(), text.clone())).collect()
    };
    assert_eq!(
        texts(&asked),
        expected(&[("b", json!("boundary")), ("e", json!("to")), ("long", json!(long))])
    );
    // In a batch, by GET, with a filter; and without the option there are none.
    let batch = json!({"queries": [{"text": "to"}, {"word": "b"}], "k": 3, "with_text": true});
    let batch = posted(&service, "/nearest", &batch).json();
    assert_eq!(batch["results"][1]["neighbors"].as_array().unwrap().len(), 2);
    let by_get = service.get("/nearest?text=boundary&k=1&with_text=true").json();
    assert_eq!(by_get["neighbors"][0]["text"], "boundary");
    assert!(service.get("/nearest?text=boundary&k=1").json()["neighbors"][0].get("text").is_none());
    // A row that is put keeps its text, or the one of its attributes, or has none.
    let put = json!({"rows": [
        {"key": "e", "text": "a to", "attributes": {"year": 2004}},
        {"key": "own", "text": "a to", "attributes": {"body": "another"}},
        {"key": "none", "vector": [9.0, 1.0]},
    ]});
    assert_eq!(posted(&service, "/rows", &put).status, 200);
    let after = expected(&[
        ("b", json!("boundary")),
        ("e", json!("a to")),
        ("long", json!(long)),
        ("none", Value::Null),
        ("own", json!("another")),
    ]);
    assert_eq!(texts(&asked), after);
    let exist = json!({"text": "a to", "k": 9, "filter": "body EXISTS AND NOT year = 2004"});
    assert_eq!(
        texts(&exist).iter().map(|(word, _)| &**word).collect::<Vec<_>>(),
        ["b", "long", "own"]
    );
    for filter in ["body = boundary", "body STARTS WITH b", "year = 2000 OR body IN [a]"] {
        let refused = posted(&service, "/nearest", &json!({"text": "to", "filter": filter}));
        assert_eq!(refused.status, 422);
        assert!(refused.text().contains("`EXISTS` alone"), "{}", refused.text());
    }
    let refused = posted(&service, "/nearest", &json!({"text": "to", "distinct": "body"}));
    assert!(refused.text().contains("stored for display"), "{}", refused.text());
    // Folded and opened again, they are the same.
    assert_eq!(service.post("/fold", &json!({})).status, 200);
    assert_eq!(texts(&asked), after);
    assert_eq!(texts(&exist).len(), 3);
    let listed = service.get("/rows?limit=9").json();
    assert_eq!(listed["rows"][0]["attributes"]["body"], json!(long), "{listed}");
    drop(service);
    let mut nearest = kindred(&["nearest", "--model", text(&out), "--text", "boundary", "-k", "2"]);
    let printed = nearest.arg("--with-text").output().unwrap();
    let printed = String::from_utf8(printed.stdout).unwrap();
    assert!(printed.starts_with("b\t1\t") && printed.contains("\tboundary\n"), "{printed}");
    // A model that keeps none says so.
    let plain = Service::with_default_model();
    let refused = plain.get("/nearest?word=frog&with_text=true");
    assert_eq!(refused.status, 422);
    assert!(refused.text().contains("--keep-text"), "{}", refused.text());
}

#[test]
fn documents_encoded_by_words_need_the_model_of_the_words() {
    let scratch = tempfile::tempdir().unwrap();
    let (input, model) = (scratch.path().join("w.txt"), scratch.path().join("words"));
    fs::write(&input, "frog 1 0\ntoad 1 1\npond 0 1\n").unwrap();
    prepare(&model, &[text(&input)]).unwrap();
    let docs = scratch.path().join("docs.csv");
    fs::write(&docs, "text,n\nfrog and toad,1\n\"pond, \nfrog\",2\nPond!,3\n").unwrap();
    let out = scratch.path().join("docs");
    prepare(&out, &[text(&docs), "--encoder", text(&model), "--attributes", text(&docs)]).unwrap();
    let service = serve(&out);
    let found = posted(&service, "/nearest", &json!({"text": "pond of fish", "k": 3})).json();
    assert_eq!(words(&found), ["3", "2", "1"]);
    assert_eq!(found["tokens"], json!({"count": 1, "unknown": 2, "truncated": false}));
    assert_eq!(found["skipped"], json!(["of", "fish"]));
    // Words of a text are those of the encoder, and keys are those of the documents.
    let unknown = posted(&service, "/nearest", &json!({"text": "tod"})).json();
    assert_eq!(unknown["unknown"][0]["suggestions"], json!(["toad"]), "{unknown}");
    let unknown = posted(&service, "/nearest", &json!({"word": "toad"})).json();
    assert_eq!(unknown["unknown"][0]["suggestions"], json!([]), "{unknown}");
    let about = service.get("/model").json();
    assert_eq!((&about["encoder"], &about["tokeniser"]), (&json!("words"), &json!("unicode")));
    assert_eq!(about["documents"], json!(true));
    drop(service);
    fs::write(&input, "frog 1 0\ntoad 1 1\npond 0 2\n").unwrap();
    prepare(&model, &[text(&input), "--replace"]).unwrap();
    let nearest = |_: ()| {
        let mut nearest = kindred(&["nearest", "--model", text(&out), "--text", "pond"]);
        errors(&nearest.output().unwrap())
    };
    assert!(nearest(()).contains("prepare the texts again"), "{}", nearest(()));
    fs::remove_dir_all(&model).unwrap();
    assert!(nearest(()).contains("can't be opened"), "{}", nearest(()));
}

#[test]
fn records_that_are_no_texts_are_named_and_may_be_left_out() {
    let (scratch, model) = prepared();
    let docs = scratch.path().join("docs.jsonl");
    let out = scratch.path().join("docs");
    let of = |content: &str, more: &[&str]| {
        fs::write(&docs, content).unwrap();
        let given = [text(&docs), "--encoder", text(&model), "--key", "id"];
        prepare(&out, &[&given[..], more].concat())
    };
    for (content, said) in [
        (
            "{\"id\": 1, \"text\": \"to\"}\n{\"id\": 2, \"text\": \"x\"}\n",
            "record 2: the text has no token",
        ),
        ("{\"id\": 1, \"text\": 7}\n", "record 1: `text` is no text"),
        ("{\"id\": [\"a\"], \"text\": \"to\"}\n", "record 1: `id` is no key"),
        ("{\"id\": \"\", \"text\": \"to\"}\n", "record 1: `id` is no key"),
        (
            "{\"id\": 1, \"body\": \"to\"}\n",
            "it has no `text`, which --text names; it has id, body",
        ),
        ("[{\"id\": 1}]", "JSON array"),
        ("{\"id\": 1\n", "line 1"),
    ] {
        let error = of(content, &[]).unwrap_err();
        assert!(error.contains(said), "{content}: {error}");
        assert!(!out.exists());
    }
    let many = "{\"id\": 1, \"body\": \"to\"}\n".repeat(9000);
    let error = of(&many, &[]).unwrap_err();
    assert!(error.contains("it has no `text`, which --text names; it has id, body"), "{error}");
    let error = of("{\"id\": 1, \"text\": \"to\"}\n", &["--words", "w.txt"]).unwrap_err();
    assert!(error.contains("--words"), "{error}");
    let mixed = "{\"id\": 1, \"text\": \"to\", \"b\": {}}\n{\"id\": 2, \"text\": \"\"}\n\
                 {\"id\": 1, \"text\": \"a\"}\n{\"id\": 4, \"text\": \"a\"}\n";
    let said = of(mixed, &["--skip-bad-rows"]).unwrap();
    assert!(said.contains("skipped 1 invalid row and 1 repeated word"), "{said}");
    let first = of(mixed, &["--limit", "1", "--replace"]).unwrap();
    assert!(first.contains("1 row × 2") || first.contains("1 rows × 2"), "{first}");
}
