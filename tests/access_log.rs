//! The log of requests: which of them, and what is said.

use std::io::{BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{
    Reply, TINY, api_key, cache, json_lines, kindred, prepared, read_reply, until_listening,
};
use serde_json::{Value, json};

/// Asks a service of its own, one request after the other on one connection, and returns what it
/// logged.
fn logged(model: &Path, arguments: &[&str], requests: &[&str]) -> (Vec<Reply>, String) {
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--device", "cpu"]);
    command.args(["--http-threads", "1", "--model"]).arg(model).args(arguments);
    logged_by(command, "", requests)
}

/// As [`logged`], with any service. `head` is sent with each request: lines that end in `\r\n`.
fn logged_by(mut command: Command, head: &str, requests: &[&str]) -> (Vec<Reply>, String) {
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let mut errors = BufReader::new(child.stderr.take().unwrap());
    let (mut log, address) = until_listening(&mut errors);
    let log = std::thread::spawn(move || errors.read_to_string(&mut log).map(|_| log).unwrap());
    let mut connection = TcpStream::connect(address).unwrap();
    connection.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
    let replies = requests.iter().map(|request| {
        let (line, body) = request.split_once('\n').unwrap_or((request, ""));
        let kind = format!(
            "{head}Host: x\r\nUser-Agent: te\"st\u{9b}\u{202e}\r\nContent-Type: application/json"
        );
        let length = if body.is_empty() {
            String::new()
        } else {
            format!("\r\nContent-Length: {}", body.len())
        };
        let whole = format!("{line} HTTP/1.1\r\n{kind}{length}\r\n\r\n{body}");
        connection.write_all(whole.as_bytes()).unwrap();
        read_reply(&mut connection)
    });
    let replies = replies.collect();
    drop(connection);
    let told = std::process::Command::new("kill").arg(child.id().to_string()).status();
    assert!(told.unwrap().success());
    assert!(child.wait().unwrap().success());
    (replies, log.join().unwrap())
}

fn lines_of_requests(log: &str) -> Vec<Value> {
    json_lines(log).into_iter().filter(|line| line["target"] == "access").collect()
}

#[test]
fn a_line_names_key_model_head_and_the_number_of_queries() {
    let (_place, model) = prepared(TINY);
    let (key, line) = api_key(&["search-frontend"]);
    let keys = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(keys.path(), line).unwrap();
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--device", "cpu"]);
    command.args(["--access-log-one-in", "1", "--log-format", "json", "--cache-dir"]).arg(cache());
    // The built-in model, which has heads of its own, and another.
    command.env("KINDRED_MODEL", format!(",{}", model.display()));
    command.arg("--api-keys-file").arg(keys.path());
    let requests = [
        "GET /nearest?word=frog",
        "POST /nearest\n{\"queries\":[{\"word\":\"frog\"},{\"word\":\"nowhere-at-all\"}]}",
        "POST /models/tiny/rank\n{\"word\":\"east\",\"words\":[\"north\",\"west\"]}",
        "POST /similarity\n{\"pairs\":[[\"frog\",\"toad\"],[\"king\",\"queen\"],[\"a\",\"the\"]]}",
        "POST /classify\n{\"texts\":[\"a good film\",\"a bad film\"]}",
        "POST /classify\n{\"text\":\"good\",\"head\":\"none\"}",
        "GET /classify?text=a+funny+film",
        "GET /models/demo/expand?text=funny&top=3",
        "GET /expand?text=funny&head=none",
        "GET /classify?texts=funny",
        "GET /models/tiny/words/east",
        "GET /nearest?word=nowhere-at-all",
        "GET /models/elsewhere/nearest?word=frog",
        "GET /health/live",
        "GET /version",
    ];
    let expected = json!([
        ["search-frontend", "demo", null, 1],
        ["search-frontend", "demo", null, 2],
        ["search-frontend", "tiny", null, 1],
        ["search-frontend", "demo", null, 3],
        ["search-frontend", "demo", "sentiment", 2],
        ["search-frontend", "demo", null, 1],
        ["search-frontend", "demo", "sentiment", 1],
        ["search-frontend", "demo", "nearby", 1],
        ["search-frontend", "demo", null, 1],
        ["search-frontend", "demo", null, null],
        ["search-frontend", "tiny", null, null],
        ["search-frontend", "demo", null, 1],
        ["search-frontend", null, null, null],
        ["search-frontend", null, null, null],
        ["search-frontend", null, null, null],
    ]);
    let (_, log) = logged_by(command, &format!("Authorization: Bearer {key}\r\n"), &requests);
    let fields = |line: &Value| json!([line["key"], line["model"], line["head"], line["queries"]]);
    let found: Vec<Value> = lines_of_requests(&log).iter().map(fields).collect();
    assert_eq!(json!(found), expected, "{log}");
    assert!(!log.contains(&key), "the key itself is secret");
    assert!(!log.contains("funny"), "so is the text of a GET: {log}");

    // Without keys there is none, and no field of it.
    let (_, log) = logged(&model, &["--access-log-one-in", "1"], &["GET /nearest?word=east"]);
    let line = log.lines().find(|line| line.contains("answered")).unwrap();
    assert!(line.contains(r#"path="/nearest" model="tiny" queries=1 status=200"#), "{line}");
    assert!(!line.contains("key="), "{line}");
}

#[test]
fn a_line_says_who_asked_what_and_how_long_it_took_but_not_the_query() {
    let (_place, model) = prepared(TINY);
    let requests = ["GET /nearest?word=east", "GET /words/nowhere", "DELETE /health/live"];
    let json = ["--access-log-one-in", "1", "--log-format", "json"];
    let (replies, log) = logged(&model, &json, &requests);
    let lines = lines_of_requests(&log);
    assert_eq!(lines.len(), 3, "{log}");
    let line = &lines[0];
    for (field, value) in [
        ("client", json!("127.0.0.1")),
        ("method", json!("GET")),
        ("path", json!("/nearest")),
        ("status", json!(200)),
        ("bytes", json!(replies[0].body.len())),
        ("user_agent", json!("te\"st\u{9b}\u{202e}")),
        ("message", json!("answered")),
    ] {
        assert_eq!(line[field], value, "{line}");
    }
    let number = |field: &str| line[field].as_f64().unwrap_or_else(|| panic!("{field}: {line}"));
    let parts = number("queue_milliseconds") + number("engine_milliseconds");
    assert!(parts > 0.0 && parts <= number("milliseconds"), "{line}");
    // A word in a path is what somebody looks for, too.
    assert_eq!((&lines[1]["path"], &lines[1]["status"]), (&json!("/words/{word}"), &json!(404)));
    assert!(lines[1].get("engine_milliseconds").is_none(), "nothing was searched: {}", lines[1]);
    assert_eq!((&lines[2]["method"], &lines[2]["status"]), (&json!("DELETE"), &json!(405)));
    assert!(!log.contains("word=east") && !log.contains("nowhere"), "{log}");

    let with_query = [&json[..], &["--access-log-query", "true"]].concat();
    let (_, log) = logged(&model, &with_query, &requests);
    assert_eq!(lines_of_requests(&log)[0]["path"], "/nearest?word=east");
    assert_eq!(lines_of_requests(&log)[1]["path"], "/words/nowhere");

    // For people: the same, quoted, so that no client can write lines of its own.
    let (_, log) = logged(&model, &["--access-log-one-in", "1"], &requests);
    let line =
        log.lines().find(|line| line.contains("/nearest")).unwrap_or_else(|| panic!("{log}"));
    assert!(
        line.contains(r#"method="GET" path="/nearest" model="tiny" queries=1 status=200"#),
        "{line}"
    );
    assert!(line.contains(r#"user_agent="te\"st\u{9b}\u{202e}""#), "{line}");
}

#[test]
fn no_log_has_the_query_or_what_would_steer_a_terminal() {
    let (_place, model) = prepared(TINY);
    let requests = [
        "GET /nearest?word=east",
        "GET /words/nowhere\u{9b}",
        "GET /elsewhere\u{9b}\u{202e}?secret=west",
        "POST /nearest\n{\"word\":\"unheard\"}",
        "POST /nearest?nowhere=1\n{\"word\":\"nowhere\u{9b}\"",
    ];
    for form in ["text", "json"] {
        let all = ["--access-log-one-in", "1", "--log-format", form, "--log-level", "trace"];
        let (_, log) = logged(&model, &all, &requests);
        assert!(log.contains("request") && log.contains("/elsewhere"), "{log}");
        let steers =
            |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{202a}'..='\u{202e}'));
        assert!(!log.contains(steers), "{log:?}");
        for word in ["east", "nowhere", "west", "unheard"] {
            assert!(!log.contains(word), "{word}: {log}");
        }
        // As a span, too, it has the query where that is allowed.
        let (_, log) =
            logged(&model, &[&all[..], &["--access-log-query", "true"]].concat(), &requests);
        assert!(log.contains("/nearest?word=east"), "{log}");
        assert!(!log.contains(steers), "{log:?}");
    }
}

#[test]
fn one_request_in_so_many_is_logged_and_none_unless_asked_for() {
    let (_place, model) = prepared(TINY);
    let requests = vec!["GET /nearest?word=east"; 25];
    for (arguments, lines) in
        [(&[][..], 0), (&["--access-log-one-in", "0"], 0), (&["--access-log-one-in", "10"], 3)]
    {
        let arguments = [arguments, &["--log-format", "json"]].concat();
        let (_, log) = logged(&model, &arguments, &requests);
        assert_eq!(lines_of_requests(&log).len(), lines, "{arguments:?}: {log}");
    }
}

#[test]
fn what_the_service_fails_is_always_logged() {
    let (_place, model) = prepared(TINY);
    let vector = vec![0.5; 2];
    let queries = vec![json!({"vector": vector, "k": 6}); 1024];
    let slow = format!("POST /nearest\n{}", json!({"queries": queries}));
    let mut requests = vec!["GET /nearest?word=east"; 3];
    requests.extend(["GET /nearest?word=nowhere", &slow, &slow, &slow]);
    let late = ["--log-format", "json", "--access-log-one-in", "1000", "--max-batch-queries", "1"];
    let (replies, log) =
        logged(&model, &[&late[..], &["--request-timeout-ms", "1"]].concat(), &requests);
    let failed = replies.iter().filter(|reply| reply.status == 504).count();
    assert!(failed >= 2, "passes of one query each take longer than a millisecond");
    // And the first one, which is the one in a thousand; on a busy machine it is late, too.
    let lines = lines_of_requests(&log);
    let sampled = usize::from(replies[0].status != 504);
    assert_eq!(lines.len(), sampled + failed, "{log}");
    assert_eq!(lines.iter().filter(|line| line["status"] == 504).count(), failed, "{log}");
}

#[test]
fn the_first_line_says_what_differs_from_the_defaults() {
    let (_place, model) = prepared(TINY);
    let (_, log) = logged(&model, &["--log-format", "json", "--max-batch-queries", "7"], &[]);
    let first: Value = serde_json::from_str(log.lines().next().unwrap()).unwrap();
    assert_eq!(first["message"], "starting kindred");
    assert_eq!(first["version"], env!("CARGO_PKG_VERSION"));
    let settings = first["settings"].as_str().unwrap();
    assert!(settings.contains("max_batch_queries = 7"), "{settings}");
    assert!(settings.contains("http_threads = 1") && !settings.contains("drain"), "{settings}");
}
