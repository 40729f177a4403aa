//! What requests have in common: ids, time, and entity tags.

use crate::support::{self, Service};
use serde_json::json;

#[test]
fn every_answer_has_an_id_and_problems_name_it() {
    let service = Service::with_default_model();
    for (method, path, body) in [
        ("GET", "/nearest?word=king", ""),
        ("HEAD", "/nearest?word=king", ""),
        ("GET", "/nearest?word=kinx", ""),
        ("GET", "/nowhere", ""),
        ("DELETE", "/nearest", ""),
        ("POST", "/analogy", "{"),
        ("GET", "/models/none/nearest", ""),
        ("GET", "/health/live", ""),
    ] {
        let own = [("X-Request-Id", "my-id/7")];
        let reply = service.send(method, path.as_bytes(), &own, body.as_bytes());
        assert_eq!(reply.header("x-request-id"), Some("my-id/7"), "{method} {path}");
        if reply.status >= 400 {
            assert_eq!(reply.json()["request_id"], "my-id/7", "{method} {path}");
        }
    }
    // One that could forge a line of the log is not taken over.
    for bad in ["a b", &"x".repeat(129)] {
        let reply = service.send("GET", b"/nowhere", &[("X-Request-Id", bad)], b"");
        let made = reply.header("x-request-id").unwrap();
        assert!(made.len() == 16 && made != bad);
        assert_eq!(reply.json()["request_id"], made);
    }
    let ids: std::collections::BTreeSet<String> = (0..50)
        .map(|_| service.get("/health/live").header("x-request-id").unwrap().to_owned())
        .collect();
    assert_eq!(ids.len(), 50);
}

#[test]
fn head_answers_as_get_does_without_a_body() {
    let service = Service::with_default_model();
    for path in ["/nearest?word=king", "/nearest?word=kinx", "/nowhere", "/model"] {
        let [get, head] = ["GET", "HEAD"]
            .map(|method| service.send(method, path.as_bytes(), &[("X-Request-Id", "same")], b""));
        assert_eq!(get.status, head.status, "{path}");
        assert_eq!(get.header("content-length"), head.header("content-length"), "{path}");
        assert!(head.body.is_empty() && !get.body.is_empty(), "{path}");
    }
}

#[test]
fn a_byte_order_mark_and_the_coding_identity_change_nothing() {
    let service = Service::with_default_model();
    for (path, body) in [
        ("/nearest", r#"{"word": "frog", "k": 2}"#),
        ("/analogy", r#"{"queries": [{"expression": "king - man"}], "k": 1}"#),
        ("/rank", r#"{"word": "frog", "words": ["toad"]}"#),
        ("/similarity", r#"{"pairs": [["king", "queen"]]}"#),
        ("/odd-one-out", r#"{"words": ["king", "queen", "frog"]}"#),
        ("/embed", r#"{"texts": ["a frog"]}"#),
        ("/embed", r#"{"inputs": ["a frog"]}"#),
        ("/v1/embeddings", r#"{"input": "a frog"}"#),
        ("/", r#"{"inputs": "a frog"}"#),
        ("/classify", r#"{"texts": ["a film", ["a", "film"]]}"#),
        ("/expand", r#"{"text": "cheap flights", "top": 2}"#),
    ] {
        let ask = |headers: &[(&str, &str)], body: &str| {
            let reply = service.send("POST", path.as_bytes(), headers, body.as_bytes());
            assert_eq!(reply.status, 200, "{path}: {}", reply.text());
            reply.text().to_owned()
        };
        let plain = ask(&[], body);
        assert_eq!(ask(&[], &format!("\u{feff}{body}")), plain, "{path}");
        assert_eq!(ask(&[("Content-Encoding", "identity")], body), plain, "{path}");
    }
    let coded = [("Content-Encoding", "gzip")];
    let refused = service.send("POST", b"/nearest", &coded, br#"{"word": "frog"}"#);
    assert_eq!((refused.status, refused.header("accept-encoding")), (415, Some("identity")));
    // A GET has no body that could be coded.
    assert_eq!(service.send("GET", b"/nearest?word=frog", &coded, b"").status, 200);
}

#[test]
fn a_request_can_have_less_time_but_not_more() {
    let service = Service::start(&["--request-timeout-ms", "20", "--threads", "1"]);
    // Slow enough for one millisecond and quick enough for none to be late that should not be.
    let many = json!({"queries": vec![json!({"word": "king", "k": 60}); 1024]});
    let mut in_a_millisecond = many.clone();
    in_a_millisecond["timeout_ms"] = json!(1);
    let reply = service.post("/nearest", &in_a_millisecond);
    assert_eq!((reply.status, &reply.json()["code"]), (504, &json!("deadline_passed")));
    let header = [("Request-Timeout-Ms", "1"), ("Content-Type", "application/json")];
    let body = many.to_string();
    assert_eq!(service.send("POST", b"/nearest", &header, body.as_bytes()).status, 504);

    // More than the service allows is what it allows.
    let generous = Service::start(&["--request-timeout-ms", "1", "--threads", "1"]);
    let mut patient = many;
    patient["timeout_ms"] = json!(100_000);
    assert_eq!(generous.post("/nearest", &patient).status, 504);
    let generous = Service::with_default_model();
    assert_eq!(generous.post("/nearest", &patient).status, 200);
    assert_eq!(generous.get("/nearest?word=king&timeout_ms=10000").status, 200);
    let ranked = json!({"words": ["king"], "word": "queen", "timeout_ms": 10_000});
    assert_eq!(generous.post("/rank", &ranked).status, 200);

    for (value, said) in
        [("0", "`0`"), ("-1", "`-1`"), ("1.5", "`1.5`"), ("soon", "`soon`"), ("", "empty")]
    {
        let reply =
            generous.send("GET", b"/nearest?word=king", &[("Request-Timeout-Ms", value)], b"");
        assert_eq!((reply.status, &reply.json()["field"]), (422, &json!("Request-Timeout-Ms")));
        let detail = &reply.json()["detail"];
        let found = format!(", not {said}");
        assert!(detail.as_str().is_some_and(|detail| detail.ends_with(&found)), "{detail}");
        let reply = generous.get(&format!("/nearest?word=king&timeout_ms={value}"));
        assert_eq!((reply.status, &reply.json()["field"]), (422, &json!("timeout_ms")));
    }
    let inside = json!({"queries": [{"word": "king", "timeout_ms": 5}]});
    let error = &generous.post("/nearest", &inside).json()["results"][0]["error"];
    assert_eq!(error["code"], "invalid_request");
}

#[test]
fn who_has_the_answer_of_this_version_is_told_so() {
    let service = Service::with_default_model();
    let get = |path: &str, tag: &str| {
        service.send("GET", path.as_bytes(), &[("If-None-Match", tag)], b"")
    };
    for path in [
        "/nearest?word=king",
        "/analogy?expression=king",
        "/words?prefix=k",
        "/words/king",
        "/model",
        "/models",
        "/models/demo",
    ] {
        let first = service.get(path);
        let tag = first.header("etag").expect("an entity tag").to_owned();
        assert_eq!(first.header("cache-control"), Some("no-cache"), "{path}");
        for tags in [tag.clone(), format!("\"x\", {tag}"), tag.replace("W/", "")] {
            let reply = get(path, &tags);
            assert_eq!((reply.status, reply.body.len()), (304, 0), "{path} {tags}");
            assert_eq!(reply.header("etag"), Some(&tag[..]));
        }
        for tags in ["\"0123456789abcdef\"", "*", "", "W/\"\""] {
            assert_eq!(get(path, tags).status, 200, "{path} {tags}");
        }
    }
    // What is wrong stays wrong.
    let tag = service.get("/nearest?word=king").header("etag").unwrap().to_owned();
    assert_eq!(get("/nearest?word=kinx", &tag).status, 404);
    assert_eq!(get("/nearest?word=king&k=0", &tag).status, 422);
}

#[test]
fn other_answers_have_other_tags() {
    let cache = support::cache();
    let cache = ["--cache-dir", cache.to_str().unwrap(), "--device", "cpu"];
    let serve = |arguments: &[&str]| Service::start(&[&cache[..], arguments].concat());
    let one = serve(&["--name", "a", "--threads", "1"]);
    let same = serve(&["--name", "a", "--threads", "1"]);
    let renamed = serve(&["--name", "b", "--threads", "1"]);
    let threads = serve(&["--name", "a", "--threads", "2"]);
    let tag = |service: &Service, path: &str| service.get(path).header("etag").unwrap().to_owned();
    for path in ["/model", "/models", "/nearest?word=king", "/words?prefix=k", "/words/king"] {
        for (other, is_same) in
            [(&same, true), (&renamed, false), (&threads, !path.contains("mod"))]
        {
            assert_eq!(one.get(path).body == other.get(path).body, is_same, "{path}");
            assert_eq!(tag(&one, path) == tag(other, path), is_same, "{path}");
        }
    }
    assert_eq!(tag(&one, "/model"), tag(&one, "/models/a"), "the same answer");
    assert_ne!(tag(&one, "/model"), tag(&one, "/models"));
}

/// What is said of an answer's form.
fn form(reply: &support::Reply) -> Vec<(String, String)> {
    let names = ["vary", "etag", "content-type", "content-encoding", "content-length"];
    let of_form =
        |name: &&str| reply.header(name).map(|value| ((*name).to_owned(), value.to_owned()));
    names.iter().filter_map(of_form).collect()
}

#[test]
fn head_and_304_say_of_the_form_what_get_says() {
    let service = Service::start(&["--compress-from-bytes", "1000"]);
    let paths = ["/openapi.yaml", "/words?prefix=k&limit=1000", "/explorer/main.js", "/model"];
    for accepted in [&[][..], &[("Accept-Encoding", "gzip")], &[("Accept-Encoding", "br, gzip")]] {
        for path in paths {
            let [get, head] =
                ["GET", "HEAD"].map(|method| service.send(method, path.as_bytes(), accepted, b""));
            assert_eq!(
                get.header("content-encoding").is_some(),
                !accepted.is_empty() && path != "/model"
            );
            // The length of what is compressed is known when it is (RFC 9110, section 9.3.2).
            let is_packed = get.header("content-encoding").is_some();
            let same = |(name, _): &(String, String)| name != "content-length" || !is_packed;
            let expected: Vec<_> = form(&get).into_iter().filter(same).collect();
            assert_eq!(form(&head), expected, "{path} {accepted:?}");
            assert!(head.body.is_empty(), "{path}");
            let Some(tag) = get.header("etag") else { continue };
            for method in ["GET", "HEAD"] {
                let known = [accepted, &[("If-None-Match", tag)]].concat();
                let reply = service.send(method, path.as_bytes(), &known, b"");
                assert_eq!(
                    (reply.status, reply.header("vary")),
                    (304, Some("accept-encoding")),
                    "{path}"
                );
                assert_eq!(reply.header("etag"), Some(tag), "{path}");
            }
        }
    }
    let never = Service::start(&["--compress-from-bytes", "0"]);
    let tag = never.get("/model").header("etag").unwrap().to_owned();
    let reply = never.send("GET", b"/model", &[("If-None-Match", &tag)], b"");
    assert_eq!((reply.status, reply.header("vary")), (304, None));
}

/// More of them than a thread of HTTP has threads for work aside.
const MANY: usize = 600;

#[test]
fn any_number_of_large_bodies_with_unknown_words_is_answered() {
    let service = Service::start(&["--http-threads", "1"]);
    // Over 32 KiB, read aside; its unknown word needs another thread aside.
    let large = format!("{}{}", " ".repeat(33 << 10), json!({"word": "kinx"}));
    let request = format!(
        "POST /nearest HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{large}",
        large.len()
    );
    let mut connections: Vec<_> = (0..MANY).map(|_| service.connect()).collect();
    for connection in &mut connections {
        std::io::Write::write_all(connection, request.as_bytes()).unwrap();
    }
    for connection in &mut connections {
        assert_eq!(support::read_reply(connection).status, 404);
    }
    assert_eq!(service.get("/words?prefix=k").status, 200);
}

#[test]
fn large_bodies_take_memory_as_they_arrive_and_are_refused_where_there_is_none() {
    let settings = ["--body-memory-mb", "1", "--body-read-timeout-ms", "2000"];
    let service = Service::start(&settings);
    let large = format!("{}{}", " ".repeat(900 << 10), json!({"word": "king"}));
    let ask = || service.send("POST", b"/nearest", &[], large.as_bytes());
    // Each counts as half of the memory there is: alone it is answered.
    (0..3).for_each(|_| assert_eq!(ask().status, 200));
    // Who announces one and does not send it keeps nobody from sending.
    let head = "POST /nearest HTTP/1.1\r\nHost: h\r\nContent-Length: 1000000\r\n\r\n";
    let mut announced: Vec<_> = (0..20).map(|_| service.connect()).collect();
    for connection in &mut announced {
        std::io::Write::write_all(connection, head.as_bytes()).unwrap();
    }
    assert_eq!(ask().status, 200);
    // Who sends nearly all of it does.
    let mut holds = vec![service.connect()];
    for connection in &mut holds {
        std::io::Write::write_all(connection, head.as_bytes()).unwrap();
        std::io::Write::write_all(connection, &vec![b' '; 990_000]).unwrap();
    }
    std::thread::sleep(std::time::Duration::from_millis(300));
    let refused = ask();
    assert_eq!((refused.status, refused.header("retry-after")), (429, Some("1")));
    let (code, detail) = (&refused.json()["code"], refused.json()["detail"].to_string());
    assert!(code == "over_limit" && detail.contains("1 MB (body_memory_mb)"), "{detail}");
    assert_eq!(
        service.post("/nearest", &json!({"word": "king"})).status,
        200,
        "small ones need none"
    );
    for mut connection in announced.into_iter().chain(holds) {
        assert_eq!(support::read_reply(&mut connection).status, 408);
    }
    assert_eq!(ask().status, 200, "all of it is free again");
}
