//! What a caller sees of the service, through the real program on a real port.

use std::io::{Read, Write};
use std::process::Command;
use std::time::Duration;

use crate::support::{Reply, Service, TINY, cache, kindred, prepared, read_reply, words};
use serde_json::{Value, json};

/// The size of a pipe's buffer on Linux.
const PIPE_BYTES: usize = 65_536;

struct Tiny {
    service: Service,
    _folder: tempfile::TempDir,
}

fn tiny() -> Tiny {
    let (folder, model) = prepared(TINY);
    let service = Service::start(&["--model", model.to_str().unwrap(), "--device", "cpu"]);
    Tiny { service, _folder: folder }
}

fn ok(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    let timing = reply.header("server-timing").expect("every answer carries Server-Timing");
    for part in ["queue;dur=", "engine;desc=\"cpu\";dur=", "total;dur="] {
        assert!(timing.contains(part), "{timing}");
    }
    reply.json()
}

fn score(answer: &Value, index: usize) -> f64 {
    answer["neighbors"][index]["score"].as_f64().unwrap()
}

#[test]
fn the_default_model_answers() {
    let service = Service::with_default_model();
    let answer = ok(&service.get("/nearest?word=frog&k=5"));
    assert_eq!(answer["model"], "demo");
    assert_eq!(words(&answer)[..2], ["frogs", "toad"]);
    let queen = ok(&service.get("/analogy?expression=king+-+man+%2B+woman&k=1"));
    assert_eq!(words(&queen), ["queen"]);
    let same = ok(&service
        .post("/analogy", &json!({"positive": ["king", "woman"], "negative": ["man"], "k": 1})));
    assert_eq!(words(&same), ["queen"]);
    assert_eq!(ok(&service.get("/nearest?word=king"))["neighbors"].as_array().unwrap().len(), 10);
    assert!(service.welcome.contains("30000 rows × 100 dimensions"), "{}", service.welcome);
}

#[test]
fn neighbours_are_ranked_with_ties_to_the_lower_row_and_zero_rows_left_out() {
    let Tiny { service, .. } = &tiny();
    let answer = ok(&service.post("/nearest", &json!({"vector": [3, 0]})));
    assert_eq!(words(&answer), ["east", "East", "northeast", "north", "west"]);
    let rows: Vec<_> = answer["neighbors"]
        .as_array()
        .unwrap()
        .iter()
        .map(|n| n["row"].as_u64().unwrap())
        .collect();
    assert_eq!(rows, [0, 5, 2, 1, 3]);
    assert_eq!((score(&answer, 0), score(&answer, 3), score(&answer, 4)), (1.0, 0.0, -1.0));
    assert_eq!(score(&answer, 2), 1.0 / 2f64.sqrt());
}

#[test]
fn the_query_word_is_left_out_unless_asked_for_and_exclude_wins() {
    let Tiny { service, .. } = &tiny();
    let ask = |body: Value| words(&ok(&service.post("/nearest", &body)));
    assert_eq!(ask(json!({"word": "east", "k": 1})), ["East"]);
    assert_eq!(ask(json!({"word": "east", "k": 1, "include_query": true})), ["east"]);
    let body =
        json!({"word": "east", "k": 2, "include_query": true, "exclude": ["east", "no such word"]});
    assert_eq!(ask(body), ["East", "northeast"]);
}

#[test]
fn filters_apply_before_k() {
    let Tiny { service, .. } = &tiny();
    let ask = |body: Value| words(&ok(&service.post("/nearest", &body)));
    assert_eq!(ask(json!({"vector": [1, 0], "vocab_limit": 2})), ["east", "north"]);
    assert_eq!(ask(json!({"vector": [1, 0], "vocab_limit": 99})).len(), 5);
    assert_eq!(
        ask(json!({"vector": [1, 0], "min_score": 0.0})),
        ["east", "East", "northeast", "north"]
    );
    assert_eq!(ask(json!({"vector": [1, 0], "min_score": 1.5})), [""; 0]);
    assert_eq!(ask(json!({"vector": [1, 0], "k": 1, "exclude": ["east"]})), ["East"]);
}

#[test]
fn vectors_come_back_as_they_were_stored() {
    let Tiny { service, .. } = &tiny();
    let answer = ok(&service.get("/nearest?word=north&k=2&with_vectors=true"));
    assert_eq!(answer["neighbors"][0]["vector"], json!([1.0, 1.0]));
    assert!(ok(&service.get("/nearest?word=north"))["neighbors"][0].get("vector").is_none());
}

#[test]
fn a_batch_mixes_everything_and_answers_in_order_with_faults_in_their_places() {
    let Tiny { service, .. } = &tiny();
    let answer = ok(&service.post(
        "/nearest",
        &json!({
            "k": 2,
            "exclude": ["East"],
            "queries": [
                {"word": "east"},
                {"word": "nowhere"},
                {"vector": [0, 1], "k": 1},
                {"word": "east", "exclude": [], "include_query": true},
                {"vector": [0, 0]},
                {"vector": [1]},
                {"word": "east", "k": 0},
                {"word": "east", "surprise": 1},
                "east",
                {"queries": []},
                {},
                {"word": "west", "with_vectors": true, "k": 1},
            ]
        }),
    ));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(words(&results[0]), ["northeast", "north"]);
    assert_eq!(words(&results[2]), ["north"]);
    assert_eq!(words(&results[3]), ["east", "East"]);
    assert_eq!(results[11]["neighbors"][0]["vector"], json!([0.0, 1.0]));
    for (item, status, code) in [
        (1, 404, "unknown_word"),
        (4, 422, "zero_query"),
        (5, 422, "dimension_mismatch"),
        (6, 422, "invalid_value"),
        (7, 422, "unknown_field"),
        (8, 422, "invalid_request"),
        (9, 422, "invalid_request"),
        (10, 422, "invalid_request"),
    ] {
        let error = &results[item]["error"];
        assert_eq!(
            (&error["status"], &error["code"]),
            (&json!(status), &json!(code)),
            "{item}: {error}"
        );
    }
    assert_eq!(results.len(), 12);
}

#[test]
fn a_batch_gives_what_single_requests_give_to_the_bit() {
    let service = Service::with_default_model();
    let ask = ["king", "queen", "frog", "physics", "the"];
    let queries: Vec<_> =
        ask.iter().enumerate().map(|(i, word)| json!({"word": word, "k": 3 + 40 * i})).collect();
    let batch = ok(&service.post("/nearest", &json!({"queries": queries})));
    for (i, word) in ask.iter().enumerate() {
        let single = service.get(&format!("/nearest?word={word}&k={}", 3 + 40 * i));
        assert_eq!(single.json()["neighbors"], batch["results"][i]["neighbors"]);
        let more = service.get(&format!("/nearest?word={word}&k=1000")).json();
        let first = &more["neighbors"].as_array().unwrap()[..3 + 40 * i];
        assert_eq!(
            &json!(first),
            &batch["results"][i]["neighbors"],
            "top k is a prefix of top 1000"
        );
    }
}

#[test]
fn a_score_sent_back_as_the_minimum_keeps_its_own_row() {
    let service = Service::with_default_model();
    for word in ["king", "frog", "physics"] {
        let all = service.get(&format!("/nearest?word={word}&k=400")).json();
        let neighbors = all["neighbors"].as_array().unwrap();
        let queries: Vec<_> = neighbors
            .iter()
            .map(|n| json!({"word": word, "k": 1000, "min_score": n["score"]}))
            .collect();
        // As text: what was written is what must be read.
        let body = json!({"queries": &queries[..60]}).to_string();
        let header = [("Content-Type", "application/json")];
        let answer = ok(&service.send("POST", b"/nearest", &header, body.as_bytes()));
        for (index, result) in answer["results"].as_array().unwrap().iter().enumerate() {
            assert_eq!(result["neighbors"].as_array().unwrap().len(), index + 1, "{word}");
        }
    }
}

#[test]
fn analogies_in_all_their_forms_are_the_same() {
    let Tiny { service, .. } = &tiny();
    let forms = [
        service.get("/analogy?expression=northeast+-+0.5*north&k=9"),
        service.get("/analogy?expression=northeast%20-0.5*north&k=9"),
        service.post("/analogy", &json!({"expression": "northeast - 0.5*north", "k": 9})),
        service.post("/analogy", &json!({"positive": ["northeast"], "negative": [{"word": "north", "weight": 0.5}], "k": 9})),
        service.post("/analogy", &json!({"positive": ["northeast", {"word": "north", "weight": -0.5}], "k": 9})),
    ];
    let expected = ok(&forms[0]);
    assert_eq!(words(&expected), ["east", "East", "west"]);
    for form in &forms {
        assert_eq!(ok(form), expected);
    }
    let repeated = service.get("/analogy?positive=northeast&positive=east&negative=north");
    assert_eq!(words(&ok(&repeated)), ["East", "west"]);
}

#[test]
fn every_written_word_is_left_out_of_an_analogy_even_a_cancelled_one() {
    let Tiny { service, .. } = &tiny();
    let ask = |body: Value| words(&ok(&service.post("/analogy", &body)));
    assert_eq!(ask(json!({"expression": "east + north - north", "k": 1})), ["East"]);
    assert_eq!(ask(json!({"expression": "east + north - north"})), ["East", "northeast", "west"]);
    let all = ask(json!({"expression": "east + north - north", "include_query": true}));
    assert_eq!(all, ["east", "East", "northeast", "north", "west"]);
}

#[test]
fn unknown_words_are_all_listed_with_suggestions() {
    let Tiny { service, .. } = &tiny();
    let reply = service.post("/analogy", &json!({"expression": "est + NORTH - est + east + xyz"}));
    assert_eq!((reply.status, reply.json()["code"].as_str()), (404, Some("unknown_word")));
    let unknown = reply.json()["unknown"].clone();
    let expected = json!([
        {"word": "est", "suggestions": ["east", "west"]},
        {"word": "NORTH", "suggestions": ["north"]},
        {"word": "xyz", "suggestions": []},
    ]);
    assert_eq!(unknown, expected);
    assert!(reply.header("server-timing").is_some(), "errors carry it too");
}

#[test]
fn at_most_sixteen_unknown_words_of_a_request_get_suggestions() {
    let Tiny { service, .. } = &tiny();
    let queries: Vec<_> = (0..20).map(|i| json!({"word": format!("eas{i}")})).collect();
    let answer = ok(&service.post("/nearest", &json!({"queries": queries})));
    let helped =
        |item: &Value| !item["error"]["unknown"][0]["suggestions"].as_array().unwrap().is_empty();
    // `eas0` to `eas9` are one edit from `east`; `eas10` and the rest two, and long enough for it.
    assert_eq!(
        answer["results"].as_array().unwrap().iter().filter(|item| helped(item)).count(),
        16
    );
}

#[test]
fn words_are_looked_up_by_their_exact_bytes_in_either_encoding_of_a_url() {
    let (_folder, model) = prepared("naïve 1 2\nc++ 2 1\nnew york 3 1\n");
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    for query in ["na%C3%AFve", "c%2B%2B", "new+york", "new%20york"] {
        ok(&service.get(&format!("/nearest?word={query}")));
    }
    // As curl sends it: the bytes themselves.
    let reply = service.send("GET", "/nearest?word=naïve".as_bytes(), &[], b"");
    assert_eq!(words(&ok(&reply)).len(), 2);
    let changed = service.get("/nearest?word=c++");
    let detail = changed.json()["detail"].as_str().unwrap().to_owned();
    let cure = "did you mean c++ (in a URL a plus is written %2B, because + is a space there)?";
    assert!(detail.ends_with(cure), "{detail}");
    assert_eq!(changed.status, 404);
    ok(&service.get("/analogy?expression=c%2B%2B+-+%22new+york%22"));
}

#[test]
fn the_model_says_what_it_is() {
    let Tiny { service, .. } = &tiny();
    let model = service.get("/model").json();
    assert_eq!(
        (&model["name"], &model["rows"], &model["dim"]),
        (&json!("tiny"), &json!(6), &json!(2))
    );
    assert_eq!(model["engine"]["name"], "cpu");
    assert_eq!(model["provenance"]["source"], "vectors.txt");
    let (_folder, folder) = prepared(TINY);
    let named = Service::start(&["--model", folder.to_str().unwrap(), "--name", "compass"]);
    assert_eq!(named.get("/model").json()["name"], "compass");
    assert_eq!(ok(&named.get("/nearest?word=east"))["model"], "compass");
}

#[test]
fn health_is_truthful_while_the_service_lives() {
    let Tiny { service, .. } = &tiny();
    assert_eq!(service.get("/health/live").json(), json!({"status": "live"}));
    for _ in 0..3 {
        let models = json!([{"model": "tiny", "replicas": 1, "replicas_working": 1}]);
        let ready = json!({"status": "ready", "models": models});
        assert_eq!(service.get("/health/ready").json(), ready);
    }
}

#[test]
fn a_model_of_zero_rows_alone_is_served_and_ready() {
    let (_folder, model) = prepared("a 0 0\nb 0 0\n");
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    assert_eq!(service.get("/health/ready").status, 200);
    assert_eq!(service.get("/nearest?word=a").json()["code"], "zero_query");
    assert_eq!(words(&ok(&service.post("/nearest", &json!({"vector": [1, 1]})))), [""; 0]);
}

#[test]
fn a_full_queue_answers_429_with_retry_after_and_a_late_answer_is_504() {
    let service = Service::start(&[
        "--queue-capacity-queries",
        "64",
        "--request-timeout-ms",
        "1500",
        "--threads",
        "1",
    ]);
    // Batches that take the single thread some time, several at once: only one fits.
    let queries: Vec<_> = (0..64).map(|_| json!({"word": "king", "k": 1000})).collect();
    let body = json!({"queries": queries}).to_string();
    let header = [("Content-Type", "application/json")];
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let send = || service.send("POST", b"/nearest", &header, body.as_bytes());
        let senders: Vec<_> = (0..12).map(|_| scope.spawn(send)).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    let count = |status| replies.iter().filter(|reply| reply.status == status).count();
    assert!(
        count(200) >= 1 && count(429) >= 1,
        "{:?}",
        replies.iter().map(|r| r.status).collect::<Vec<_>>()
    );
    assert_eq!(count(200) + count(429), 12);
    let refused = replies.iter().find(|reply| reply.status == 429).unwrap();
    let seconds: u64 = refused.header("retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert_eq!(refused.json()["code"], "queue_full");

    let hasty = Service::start(&["--request-timeout-ms", "1", "--threads", "1"]);
    let queries: Vec<_> = (0..1024).map(|_| json!({"word": "king", "k": 10})).collect();
    let late = hasty.post("/nearest", &json!({"queries": queries}));
    assert_eq!((late.status, late.json()["code"].as_str()), (504, Some("deadline_passed")));
}

#[test]
fn told_to_stop_it_answers_what_is_in_flight_and_ends_with_zero() {
    for signal in ["INT", "TERM"] {
        let mut service = Service::with_default_model();
        let body = json!({"queries": vec![json!({"word": "king", "k": 60}); 1024]}).to_string();
        let request = format!(
            "POST /nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let idle = service.connect();
        let mut busy = service.connect();
        busy.write_all(request.as_bytes()).unwrap();
        std::thread::sleep(Duration::from_millis(50));
        service.signal(signal);
        let reply = read_reply(&mut busy);
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json()["results"].as_array().unwrap().len(), 1024);
        assert_eq!(service.exit_code(), Some(0), "after SIG{signal}");
        assert!(std::net::TcpStream::connect(&service.address).is_err());
        drop(idle);
    }
}

#[test]
fn a_signal_during_the_welcome_ends_with_zero() {
    for signal in ["INT", "TERM"] {
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap().to_string();
        drop(free);
        // The pipe is full, so the service waits while it prints its welcome.
        let (mut output, mut input) = std::io::pipe().unwrap();
        input.write_all(&vec![b'.'; PIPE_BYTES]).unwrap();
        let mut command = kindred(&["serve", "--listen", &address, "--log-level", "error"]);
        command.arg("--cache-dir").arg(cache()).stdout(input);
        let mut child = command.spawn().unwrap();
        drop(command);
        while std::net::TcpStream::connect(&address).is_err() {
            assert!(child.try_wait().unwrap().is_none(), "the service ended before it listened");
            std::thread::sleep(Duration::from_millis(10));
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        let mut printed = Vec::new();
        output.read_to_end(&mut printed).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(0), "after SIG{signal}");
    }
}
