//! The service over an engine that fails as it is told (the example `faulty`): which requests hear
//! of it, what readiness says, whether right answers come again, and how the process ends.

use std::io::{BufReader, Read};
use std::path::PathBuf;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::support::{
    self, Reply, Service, TINY, json_lines, kindred, prepared, program, until_listening,
};
use serde_json::{Value, json};

/// It takes the self-check's 4 passes until the service listens: the first request makes this one.
const FIRST_PASS: u32 = 5;

/// The example, which `cargo test` builds beside the program unless it is told which tests to
/// build.
fn faulty() -> PathBuf {
    let path = program().parent().expect("the program is in a folder").join("examples/faulty");
    assert!(
        path.exists(),
        "{} is missing: build it with `cargo build -p cli --example faulty`",
        path.display()
    );
    path
}

/// A command of it, over a small model that lives as long as what is returned.
pub(crate) fn command(
    arguments: &[&str],
    settings: &[(&str, &str)],
) -> (tempfile::TempDir, Command) {
    let (scratch, model) = prepared(TINY);
    let mut command = Command::new(faulty());
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("KINDRED_") {
            command.env_remove(variable);
        }
    }
    command.arg("127.0.0.1:0").args(arguments).env("KINDRED_MODEL", model);
    command
        .envs(settings.iter().copied())
        .env("KINDRED_LOG_LEVEL", "off")
        .env("RUST_BACKTRACE", "0");
    (scratch, command)
}

pub(crate) struct Faulty {
    pub(crate) service: Service,
    pub(crate) scratch: tempfile::TempDir,
}

pub(crate) fn start(arguments: &[&str], settings: &[(&str, &str)]) -> Faulty {
    let (scratch, command) = command(arguments, settings);
    Faulty { service: Service::spawn(command), scratch }
}

/// A start that is to be refused.
fn refused(arguments: &[&str]) -> (Option<i32>, String) {
    let (_place, mut command) = command(arguments, &[]);
    let Output { status, stderr, stdout } = command.output().expect("it runs");
    assert!(stdout.is_empty(), "it never listened");
    (status.code(), String::from_utf8(stderr).expect("errors are UTF-8"))
}

pub(crate) const ASK: &str = "/nearest?word=north&k=2";

pub(crate) fn code(reply: &Reply) -> (u16, String) {
    (reply.status, reply.json()["code"].as_str().unwrap_or_default().to_owned())
}

pub(crate) fn assert_right(reply: &Reply) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.words(), ["northeast", "east"], "{}", reply.text());
}

fn assert_retryable(reply: &Reply, expected: &str) {
    assert_eq!(code(reply), (503, expected.to_owned()));
    let seconds: u64 = reply.header("retry-after").expect("when to ask again").parse().unwrap();
    assert!((1..=60).contains(&seconds));
    assert_eq!(reply.json()["retry_after"], seconds);
}

impl Faulty {
    fn ask(&self) -> Reply {
        self.service.get(ASK)
    }

    fn until_ready(&self) -> u32 {
        let deadline = Instant::now() + Duration::from_secs(30);
        let mut not_ready = 0;
        loop {
            let reply = self.service.get("/health/ready");
            if reply.status == 200 {
                return not_ready;
            }
            assert_retryable(&reply, "engine_restarting");
            assert!(Instant::now() < deadline, "it does not get ready");
            not_ready += 1;
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

#[test]
fn without_faults_it_is_the_service() {
    let mut faulty = start(&["--max-batch", "1"], &[]);
    assert_right(&faulty.ask());
    assert_eq!(faulty.until_ready(), 0);
    faulty.service.signal("TERM");
    assert_eq!(faulty.service.exit_code(), Some(0));
}

#[test]
fn a_pass_that_fails_or_panics_fails_its_requests_and_right_answers_come_again() {
    for how in ["error", "panic"] {
        // A good readiness check just before: it must not count any more.
        let fault = format!("{}={how}", FIRST_PASS + 2);
        let faulty = start(&["--fail", &fault], &[]);
        assert_right(&faulty.ask());
        assert_eq!(faulty.until_ready(), 0);
        assert_retryable(&faulty.ask(), "engine_failed");
        let refused = faulty.ask();
        assert_retryable(&refused, "engine_restarting");
        let not_ready = faulty.until_ready();
        assert!(not_ready > 0, "readiness must be false until the engine is there again");
        for _ in 0..3 {
            assert_right(&faulty.ask());
        }
        assert_eq!(faulty.service.get("/health/live").status, 200);
    }
}

#[test]
fn only_the_pass_that_fails_is_lost_and_who_waits_is_answered_by_the_next_engine() {
    let fault = format!("{}=panic", FIRST_PASS + 3);
    let faulty =
        start(&["--fail", &fault, "--max-batch", "1", "--pass-microseconds", "100000"], &[]);
    // All are in the queue long before the fourth pass.
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| faulty.service.send("GET", ASK.as_bytes(), &[], b"")))
            .collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    let (good, bad): (Vec<_>, Vec<_>) = replies.iter().partition(|reply| reply.status == 200);
    assert_eq!((good.len(), bad.len()), (7, 1));
    good.into_iter().for_each(assert_right);
    assert_retryable(bad[0], "engine_failed");
}

#[test]
fn a_batch_of_which_one_pass_fails_fails_as_a_whole() {
    let fault = format!("{}=error", FIRST_PASS + 1);
    let faulty = start(&["--fail", &fault, "--max-batch", "2"], &[]);
    let queries: Vec<Value> = (0..6).map(|_| json!({"word": "north", "k": 2})).collect();
    let body = json!({"queries": queries});
    assert_retryable(&faulty.service.post("/nearest", &body), "engine_failed");
    faulty.until_ready();
    let reply = faulty.service.post("/nearest", &body);
    let results = reply.json()["results"].as_array().expect("results").clone();
    assert_eq!(results.len(), 6);
    assert!(results.iter().all(|one| support::words(one) == ["northeast", "east"]));
}

#[test]
fn a_pass_that_hangs_is_answered_503_and_ends_the_process_with_70_in_time() {
    let fault = format!("{}=hang", FIRST_PASS + 1);
    let settings = [("KINDRED_ENGINE_HANG_TIMEOUT_MS", "500")];
    let mut faulty = start(&["--fail", &fault], &settings);
    assert_eq!(faulty.until_ready(), 0);
    let started = Instant::now();
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let senders: Vec<_> = (0..4).map(|_| scope.spawn(|| faulty.ask())).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    assert!(started.elapsed() >= Duration::from_millis(500));
    for reply in &replies {
        assert_eq!(code(reply), (503, "engine_gone".into()));
    }
    // In the second that is left.
    assert_eq!(code(&faulty.ask()), (503, "engine_gone".into()));
    assert_eq!(code(&faulty.service.get("/health/ready")), (503, "engine_gone".into()));
    assert_eq!(faulty.service.exit_code(), Some(70));
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
}

#[test]
fn a_restart_that_hangs_ends_the_process_with_70() {
    let fault = format!("{FIRST_PASS}=error");
    let settings = [("KINDRED_ENGINE_HANG_TIMEOUT_MS", "500")];
    let mut faulty = start(&["--fail", &fault, "--fail-start", "2=hang"], &settings);
    assert_retryable(&faulty.ask(), "engine_failed");
    assert_eq!(faulty.service.exit_code(), Some(70));
}

#[test]
fn told_to_stop_while_a_pass_hangs_that_nobody_waits_for_it_still_ends() {
    let fault = format!("{FIRST_PASS}=hang");
    let settings = [("KINDRED_REQUEST_TIMEOUT_MS", "100"), ("KINDRED_DRAIN_TIMEOUT_MS", "1000")];
    let mut faulty = start(&["--fail", &fault], &settings);
    assert_eq!(code(&faulty.ask()), (504, "deadline_passed".into()));
    faulty.service.signal("TERM");
    assert_eq!(faulty.service.exit_code(), Some(1));
}

#[test]
fn an_engine_that_can_not_be_made_again_is_given_up_with_70() {
    let fault = format!("{FIRST_PASS}=error");
    let settings = [("KINDRED_ENGINE_MAX_RESTARTS", "3")];
    let mut faulty =
        start(&["--fail", &fault, "--fail-start", "2=error,3=panic,4=memory"], &settings);
    assert_retryable(&faulty.ask(), "engine_failed");
    let mut last = faulty.ask();
    assert_retryable(&last, "engine_restarting");
    let deadline = Instant::now() + Duration::from_secs(30);
    while code(&last).1 == "engine_restarting" {
        assert!(Instant::now() < deadline);
        std::thread::sleep(Duration::from_millis(20));
        last = faulty.ask();
    }
    assert_eq!(code(&last), (503, "engine_gone".into()));
    assert_eq!(faulty.service.exit_code(), Some(70));
}

#[test]
fn an_attempt_that_fails_is_followed_by_one_that_works() {
    let fault = format!("{FIRST_PASS}=panic");
    let faulty = start(&["--fail", &fault, "--fail-start", "2=memory,3=error"], &[]);
    assert_retryable(&faulty.ask(), "engine_failed");
    assert!(faulty.until_ready() > 0);
    assert_right(&faulty.ask());
}

#[test]
fn a_start_without_enough_memory_is_refused_with_the_cure() {
    let (code, said) = refused(&["--fail-start", "1=memory"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("does not fit") && said.contains("--device cpu"), "{said}");
    let (code, said) = refused(&["--fail-start", "1=panic"]);
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("attempt 1 to make an engine"), "{said}");
}

#[test]
fn an_engine_that_answers_its_self_check_wrong_is_never_used() {
    for from in 1..FIRST_PASS {
        let (code, said) = refused(&["--wrong-answers-from", &from.to_string()]);
        assert_eq!(code, Some(1), "{said}");
        for part in ["faulty gave a wrong answer", "asked for the", "it found", "the formula gives"]
        {
            assert!(said.contains(part), "{said}");
        }
    }
    // The first engine fails in its first pass, and all after it would answer wrong.
    let (fault, wrong) = (format!("{FIRST_PASS}=error"), (FIRST_PASS + 1).to_string());
    let settings = [("KINDRED_ENGINE_MAX_RESTARTS", "2")];
    let mut faulty = start(&["--fail", &fault, "--wrong-answers-from", &wrong], &settings);
    assert_retryable(&faulty.ask(), "engine_failed");
    loop {
        let reply = faulty.ask();
        assert_eq!(reply.status, 503, "a wrong answer: {}", reply.text());
        if code(&reply).1 == "engine_gone" {
            break;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(faulty.service.exit_code(), Some(70));
}

#[test]
fn what_was_lost_and_why_is_the_last_that_it_says() {
    let fault = format!("{FIRST_PASS}=error");
    let (_place, mut command) =
        command(&["--fail", &fault], &[("KINDRED_ENGINE_MAX_RESTARTS", "0")]);
    command.stderr(Stdio::piped());
    let mut service = Service::spawn(command);
    assert_eq!(service.get(ASK).status, 503);
    assert_eq!(service.exit_code(), Some(70));
    let mut said = String::new();
    service.child.stderr.take().expect("piped").read_to_string(&mut said).expect("text");
    let last = said.lines().last().unwrap_or_default();
    assert!(
        last.contains("engine_max_restarts") && last.contains(&format!("in pass {FIRST_PASS}")),
        "{said}"
    );
}

/// The service with an admin's key, and other vectors in the place of its model.
pub(crate) fn before_swap(arguments: &[&str], settings: &[(&str, &str)]) -> Faulty {
    let (key, line) = support::api_key(&["operator", "--admin"]);
    let (scratch, mut command) = command(arguments, settings);
    let keys = scratch.path().join("keys");
    std::fs::write(&keys, line).unwrap();
    command.env("KINDRED_API_KEYS_FILE", &keys);
    let mut service = Service::spawn(command);
    service.key = Some(key);
    let vectors = scratch.path().join("other.txt");
    std::fs::write(&vectors, "east 0 1\nnorth 1 0\nup 1 2\n").unwrap();
    let mut prepare = kindred(&["prepare", "--replace"]);
    prepare.arg(&vectors).arg("--out").arg(scratch.path().join("tiny"));
    assert!(prepare.output().unwrap().status.success());
    Faulty { service, scratch }
}

/// A swap to other vectors in which the new engine fails: what the reload answers, and the service.
fn swap_that_fails(arguments: &[&str], settings: &[(&str, &str)]) -> (Reply, Faulty) {
    let faulty = before_swap(arguments, settings);
    (faulty.service.send("POST", b"/admin/reload", &[], b""), faulty)
}

#[test]
fn an_engine_that_fails_in_a_swap_leaves_the_old_one_in_place() {
    for (how, said) in [
        ("error", "as ordered"),
        ("panic", "as ordered"),
        ("memory", "does not fit"),
        ("hang", "engine_hang_timeout_ms"),
    ] {
        let settings = [("KINDRED_ENGINE_HANG_TIMEOUT_MS", "700")];
        let fails = format!("2={how}");
        let (refused, mut faulty) = swap_that_fails(&["--fail-start", &fails], &settings);
        assert_eq!(code(&refused), (422, "reload_failed".to_owned()), "{how}");
        assert!(refused.text().contains(said), "{how}: {}", refused.text());
        assert_right(&faulty.ask());
        // Longer than the process would go on without an engine.
        std::thread::sleep(Duration::from_millis(1500));
        assert_eq!(faulty.service.get("/health/ready").status, 200, "{how}");
        // The next attempt is a new one.
        let reloaded = faulty.service.send("POST", b"/admin/reload", &[], b"");
        assert_eq!(reloaded.status, 200, "{how}: {}", reloaded.text());
        assert_eq!(faulty.ask().words(), ["up", "east"], "{how}");
        faulty.service.signal("TERM");
        faulty.service.exit_code();
    }
}

#[test]
fn an_engine_that_answers_wrong_in_a_swap_is_never_used() {
    let wrong_from = FIRST_PASS.to_string();
    for restarts in ["0", "5"] {
        let settings = [("KINDRED_ENGINE_MAX_RESTARTS", restarts)];
        let (refused, faulty) = swap_that_fails(&["--wrong-answers-from", &wrong_from], &settings);
        assert_eq!(code(&refused), (422, "reload_failed".to_owned()));
        assert!(refused.text().contains("wrong answer"), "{}", refused.text());
        std::thread::sleep(Duration::from_millis(1500));
        let rows = &faulty.service.get("/model").json()["rows"];
        assert_eq!(rows, 6, "the old model is served, and the process lives");
    }
}

#[test]
fn the_console_shows_a_wrong_answer_beside_the_reference() {
    let faulty = start(&["--wrong-answers-from", &FIRST_PASS.to_string()], &[]);
    let model = faulty.scratch.path().join("tiny");
    let (url, model) = (faulty.service.url(""), model.to_str().expect("UTF-8"));
    let ask = ["nearest", "north", "-k", "2", "--compare", "--url", &url, "--model", model];
    let Output { status, stdout, stderr } = kindred(&ask).output().expect("it runs");
    assert_eq!(status.code(), Some(1));
    let (shown, said) = (String::from_utf8_lossy(&stdout), String::from_utf8_lossy(&stderr));
    assert_eq!(shown, "east\t0\t0\n");
    for part in [
        "DIFFERENT: at rank 1 it has `east` (row 0",
        "DIFFERS from the reference's",
        "the reference has `northeast` (row 2",
        "bits 0x3fe6a09e667f3bc",
    ] {
        assert!(said.contains(part), "{part}: {said}");
    }
    let json = kindred(&[&ask[..], &["--json"]].concat()).output().expect("it runs");
    let answer: Value = serde_json::from_slice(&json.stdout).expect("JSON");
    assert_eq!((json.status.code(), &answer["compare"]["identical"]), (Some(1), &json!(false)));
}

#[test]
fn a_panic_is_a_line_of_the_log_where_that_is_in_json() {
    let fault = format!("{FIRST_PASS}=panic");
    let (_scratch, mut command) = command(&["--fail", &fault], &[]);
    command.env("KINDRED_LOG_FORMAT", "json").env("KINDRED_LOG_LEVEL", "info");
    let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut log = BufReader::new(child.stderr.take().expect("piped"));
    let (mut text, address) = until_listening(&mut log);
    let agent: ureq::Agent =
        ureq::Agent::config_builder().http_status_as_error(false).build().into();
    let reply = agent.get(format!("http://{address}{ASK}")).call().expect("it answers");
    assert_eq!(reply.status(), 503);
    child.kill().expect("it runs");
    log.read_to_string(&mut text).expect("the log is text");
    child.wait().expect("it has ended");
    let is_panic =
        |line: &Value| line["message"].as_str().is_some_and(|m| m.contains("panicked at"));
    assert!(json_lines(&text).iter().any(is_panic), "{text}");
}
