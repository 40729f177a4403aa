//! Tests against a service of a few lines, which is busy, fails, or takes few questions.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::Mutex;
use std::thread;

use kindred::Options;

use super::*;

/// A service that answers `/model`, and of each request as many words as it takes.
fn service(takes: usize, busy: usize) -> (String, thread::JoinHandle<Vec<usize>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let serve = move || {
        let (mut sizes, mut busy) = (Vec::new(), busy);
        loop {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") {
                stream.read_exact(&mut byte).unwrap();
                head.push(byte[0]);
            }
            let head = String::from_utf8(head).unwrap().to_lowercase();
            let length = head
                .split("content-length: ")
                .nth(1)
                .and_then(|rest| rest.lines().next().unwrap().parse::<usize>().ok());
            let mut body = vec![0; length.unwrap_or(0)];
            stream.read_exact(&mut body).unwrap();
            let body: Value = serde_json::from_slice(&body).unwrap_or_default();
            let words = body["queries"].as_array().map_or(0, Vec::len);
            let problem = |code: &str| json!({"code": code, "detail": "no"}).to_string();
            let (status, more, answer) = if head.starts_with("get /model ") {
                let model = kindred::Model::from_rows("m", &[("a", [1.0, 0.0])]).unwrap();
                let engine = |model: &std::sync::Arc<kindred::ModelStore>| {
                    let engine = kindred::ReferenceEngine::new(model.clone());
                    Ok(Box::new(engine) as Box<dyn kindred::contract::Engine>)
                };
                let settings = kindred::Settings::default();
                let kindred = kindred::Kindred::with_engine(model, settings, engine).unwrap();
                let mut about = serde_json::to_value(kindred.description()).unwrap();
                about["version"] = json!("v");
                ("200 OK", "", about.to_string())
            } else if head.starts_with("get /end ") {
                return sizes;
            } else if body["queries"][0]["word"] == "fatal" {
                sizes.push(words);
                ("503 S", "Retry-After: 0\r\n", problem("engine_failed"))
            } else if body["queries"][0]["word"] == "late" && busy > 0 {
                busy -= 1;
                ("504 G", "Retry-After: 0\r\n", problem("deadline_passed"))
            } else if busy > 0 {
                busy -= 1;
                ("429 T", "Retry-After: 0\r\n", problem("queue_full"))
            } else if words > takes {
                ("422 U", "", problem("too_many_results"))
            } else {
                sizes.push(words);
                let one = |query: &Value| match query["word"].as_str().unwrap() {
                    "b" => json!({"error": {"code": "unknown_word", "detail": "no `b`"}}),
                    word => json!({"neighbors": [{"word": word}]}),
                };
                let results: Vec<Value> =
                    body["queries"].as_array().unwrap().iter().map(one).collect();
                let answer = json!({"model": "m", "version": "v", "results": results});
                ("200 OK", "", answer.to_string())
            };
            let length = answer.len();
            let head = format!(
                "HTTP/1.1 {status}\r\n{more}Connection: close\r\nContent-Length: {length}\r\n\r\n"
            );
            stream.write_all((head + &answer).as_bytes()).unwrap();
        }
    };
    (url, thread::spawn(serve))
}

fn by_url(url: &str) -> ByUrl {
    let service = ServiceArguments { url: Some(url.to_owned()), api_key: None };
    ByUrl::new(&service, None, |_| BulkQuestion::Nearest(Options::new())).unwrap()
}

fn end(url: &str) {
    let mut stream = std::net::TcpStream::connect(url.strip_prefix("http://").unwrap()).unwrap();
    stream.write_all(b"GET /end HTTP/1.1\r\n\r\n").unwrap();
}

#[test]
fn requests_are_cut_until_the_service_takes_them_and_keep_their_order() {
    let (url, served) = service(3, 2);
    let words: Vec<String> = (0..10).map(|n| format!("w{n}")).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).chain(["b"]).collect();
    let go_on = || ControlFlow::Continue(());
    let answers = by_url(&url).ask(&words, &go_on).unwrap().unwrap();
    let found = answers.iter().map(|answer| match answer {
        Ok(found) => found.field::<Value>("neighbors").unwrap()[0]["word"].to_string(),
        Err(Problem { fault: Fault { code, detail }, .. }) => format!("{code}: {detail}"),
    });
    let expected = words[..10].iter().map(|word| format!("\"{word}\""));
    let expected = expected.chain(["unknown_word: no `b`".to_owned()]);
    assert_eq!(found.collect::<Vec<_>>(), expected.collect::<Vec<_>>());
    end(&url);
    assert_eq!(served.join().unwrap(), [2, 3, 3, 3]);
}

#[test]
fn a_question_that_is_too_much_by_itself_is_its_error() {
    let (url, served) = service(0, 0);
    let go_on = || ControlFlow::Continue(());
    let answers = by_url(&url).ask(&["a", "c"], &go_on).unwrap().unwrap();
    let codes = answers.iter().map(|one| one.as_ref().err().map(|one| &*one.fault.code));
    assert_eq!(codes.collect::<Vec<_>>(), [Some("too_many_results"); 2]);
    end(&url);
    assert!(served.join().unwrap().is_empty());
}

#[test]
fn a_question_that_comes_too_late_is_asked_again() {
    let (url, served) = service(2, 3);
    let go_on = || ControlFlow::Continue(());
    // The first request is late as a whole, then twice its first question.
    let answers = by_url(&url).ask(&["late", "a"], &go_on).unwrap().unwrap();
    assert!(answers.len() == 2 && answers.iter().all(Result::is_ok));
    end(&url);
    assert_eq!(served.join().unwrap(), [1, 1]);
}

#[test]
fn a_question_that_makes_the_engine_fail_is_asked_only_some_times() {
    let (url, served) = service(1, 0);
    let go_on = || ControlFlow::Continue(());
    let error = by_url(&url).ask(&["fatal"], &go_on).err().unwrap();
    assert_eq!(error.to_string(), "no");
    end(&url);
    assert_eq!(served.join().unwrap(), [1; 1 + TRIES]);
}

#[test]
fn who_does_not_go_on_gets_nothing() {
    let (url, served) = service(1, usize::MAX);
    let calls = Mutex::new(0);
    let go_on = || {
        *calls.lock().unwrap() += 1;
        match *calls.lock().unwrap() > 3 {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }
    };
    assert!(by_url(&url).ask(&["a"], &go_on).unwrap().is_none());
    end(&url);
    served.join().unwrap();
}
