//! What black-box tests share: the real program on a real port, and a client to speak to it.
#![allow(dead_code, unreachable_pub, reason = "each test program uses a part of it")]

#[cfg(feature = "traces")]
pub mod collector;
pub mod console;
pub mod http2;
pub mod long_work;
pub mod page;
pub mod products;
pub mod python;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;

/// Sets it when it goes: threads that work until then also end where a test fails, and the failure
/// is told.
pub struct Stops<'a>(pub &'a AtomicBool);

impl Drop for Stops<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// The top of the repository.
pub fn top() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The program under test: TEST_KINDRED where it was built elsewhere (scripts/run-gpu).
pub fn program() -> PathBuf {
    let path: PathBuf = std::env::var_os("TEST_KINDRED")
        .map_or_else(|| env!("CARGO_BIN_EXE_kindred").into(), PathBuf::from);
    // Some commands run in another folder.
    std::fs::canonicalize(&path).unwrap_or(path)
}

/// A command of the program, untouched by the environment that the tests run in.
pub fn kindred(arguments: &[&str]) -> Command {
    let mut command = Command::new(program());
    for (variable, _) in std::env::vars_os() {
        if variable.to_string_lossy().starts_with("KINDRED_") {
            command.env_remove(variable);
        }
    }
    command.args(arguments);
    command
}

/// A key of the program's making, and its line for the file of keys.
pub fn api_key(arguments: &[&str]) -> (String, String) {
    let output = kindred(&[&["api-key"], arguments].concat()).output().expect("it runs");
    assert!(output.status.success(), "{output:?}");
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let lines: Vec<&str> = text.lines().collect();
    let [_, key, "", _, line] = lines[..] else { panic!("{text}") };
    (key.to_owned(), line.to_owned())
}

/// A running service. Killed when dropped.
pub struct Service {
    pub child: Child,
    pub address: String,
    pub welcome: String,
    /// Sent with every request, if the service takes keys.
    pub key: Option<String>,
    agent: ureq::Agent,
}

/// What came back.
#[derive(Debug, Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Reply {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, v)| &v[..])
    }

    pub fn text(&self) -> &str {
        std::str::from_utf8(&self.body).expect("bodies are UTF-8")
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|e| panic!("not JSON ({e}): {}", String::from_utf8_lossy(&self.body)))
    }

    /// The words of a single answer.
    pub fn words(&self) -> Vec<String> {
        words(&self.json())
    }
}

/// The words of an answer with `neighbors`.
pub fn words(answer: &Value) -> Vec<String> {
    let neighbors =
        answer["neighbors"].as_array().unwrap_or_else(|| panic!("no neighbors: {answer}"));
    neighbors.iter().map(|n| n["word"].as_str().expect("a word").to_owned()).collect()
}

impl Service {
    /// The program with these arguments, on a port that the system chooses.
    pub fn start(arguments: &[&str]) -> Self {
        Self::start_at("127.0.0.1:0", arguments)
    }

    /// The program with these arguments, at this address.
    pub fn start_at(address: &str, arguments: &[&str]) -> Self {
        let mut command = kindred(&["serve", "--listen", address, "--log-level", "warn"]);
        command.args(arguments).stderr(Stdio::inherit());
        Self::spawn(command)
    }

    /// Any command that says where it listens as `serve` does.
    pub fn spawn(mut command: Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the program starts");
        let mut output = BufReader::new(child.stdout.take().expect("piped"));
        let mut welcome = String::new();
        while !welcome.contains("Ctrl-C") {
            let read = output.read_line(&mut welcome).expect("the welcome is text");
            assert!(read > 0, "the service ended before it listened:\n{welcome}");
        }
        let address =
            welcome.split("Listening on ").nth(1).and_then(|rest| rest.split_whitespace().next());
        let address = address.and_then(|address| address.split("://").nth(1));
        let address = address.expect("the welcome names the address").to_owned();
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(120)));
        Self { child, address, welcome, key: None, agent: config.build().into() }
    }

    /// As [`start`](Self::start), with API keys; asks as an admin.
    pub fn start_with_keys(arguments: &[&str]) -> Self {
        let (key, line) = api_key(&["operator", "--admin"]);
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), line).expect("the line is written");
        let path = file.into_temp_path().keep().expect("the file stays: it is read again");
        let keys = ["--api-keys-file", path.to_str().expect("a UTF-8 path")];
        let mut service = Self::start(&[arguments, &keys].concat());
        service.key = Some(key);
        service
    }

    /// With the built-in model, in a cache of its own that vanishes at once: prepared in memory if
    /// need be, never in the user's cache.
    pub fn with_default_model() -> Self {
        Self::start(&["--cache-dir", cache().to_str().expect("a UTF-8 path")])
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    pub fn get(&self, path: &str) -> Reply {
        let mut request = self.agent.get(self.url(path));
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        reply(request.call())
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        let mut request = self.agent.post(self.url(path));
        if let Some(key) = &self.key {
            request = request.header("Authorization", format!("Bearer {key}"));
        }
        reply(request.content_type("application/json; charset=utf-8").send(body.to_string()))
    }

    /// A request as bytes on a connection of its own, for what no client library would send.
    pub fn raw(&self, request: &[u8]) -> Reply {
        let mut connection = self.connect();
        connection.write_all(request).expect("the request can be sent");
        read_reply(&mut connection)
    }

    /// A request made of its parts; `Host`, `Connection: close` and the length are added.
    pub fn send(
        &self,
        method: &str,
        target: &[u8],
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut request = [method.as_bytes(), b" ", target, b" HTTP/1.1\r\n"].concat();
        request.extend(b"Host: localhost\r\nConnection: close\r\n");
        if let Some(key) = &self.key {
            request.extend(format!("Authorization: Bearer {key}\r\n").bytes());
        }
        for (name, value) in headers {
            request.extend(format!("{name}: {value}\r\n").bytes());
        }
        if !body.is_empty() {
            request.extend(format!("Content-Length: {}\r\n", body.len()).bytes());
        }
        request.extend(b"\r\n");
        request.extend(body);
        self.raw(&request)
    }

    pub fn connect(&self) -> TcpStream {
        let connection = TcpStream::connect(&self.address).expect("the service accepts");
        connection.set_read_timeout(Some(Duration::from_secs(60))).expect("a time-out is set");
        connection
    }

    /// Sends a signal by its name.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let status = Command::new("kill").args(["-s", name, &id]).status().expect("kill is there");
        assert!(status.success());
    }

    /// Waits for the end and gives the exit code.
    pub fn exit_code(&mut self) -> Option<i32> {
        let deadline = Instant::now() + Duration::from_secs(60);
        while Instant::now() < deadline {
            if let Some(status) = self.child.try_wait().expect("the child can be waited for") {
                return status.code();
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the service does not end");
    }
}

impl Drop for Service {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A cache for the built-in model that all tests of this build share.
pub fn cache() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("cache")
}

fn reply(result: Result<ureq::http::Response<ureq::Body>, ureq::Error>) -> Reply {
    let mut response = result.expect("the service answers");
    let headers = response.headers().iter();
    let headers = headers
        .map(|(name, value)| {
            (name.to_string(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let status = response.status().as_u16();
    let body = response.body_mut().with_config().limit(1 << 30).read_to_vec();
    Reply { status, headers, body: body.expect("the body arrives") }
}

/// Reads until the other side closes, or as far as the length says.
pub fn read_reply(connection: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let mut buffer = [0; 65536];
    loop {
        let reply = parse_reply(&bytes);
        if let Some((reply, true)) = reply {
            return reply;
        }
        match connection.read(&mut buffer) {
            Ok(0) | Err(_) => {
                let Some((reply, _)) = reply else {
                    panic!("no answer but {:?}", String::from_utf8_lossy(&bytes));
                };
                return reply;
            }
            Ok(n) => bytes.extend(&buffer[..n]),
        }
    }
}

/// What has come so far, and whether it is all that its Content-Length says.
fn parse_reply(bytes: &[u8]) -> Option<(Reply, bool)> {
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n")?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let status: u16 = lines.next()?.split(' ').nth(1)?.parse().ok()?;
    if status == 100 {
        return parse_reply(&bytes[end + 4..]);
    }
    let headers: Vec<(String, String)> = lines
        .filter_map(|line| line.split_once(": "))
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .collect();
    let body = bytes[end + 4..].to_vec();
    let reply = Reply { status, headers, body };
    let length = reply.header("content-length").and_then(|length| length.parse::<usize>().ok());
    let whole = length.is_some_and(|length| reply.body.len() >= length);
    Some((reply, whole))
}

/// Runs a command with this input.
pub fn piped(mut command: Command, input: impl AsRef<[u8]>) -> Output {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.as_ref().to_vec();
    // Who ends before the input does has not read all of it.
    let writing = std::thread::spawn(move || drop(stdin.write_all(&input)));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    output
}

/// The objects of `--json`, one a line.
pub fn objects(output: &Output) -> Vec<Value> {
    let text = std::str::from_utf8(&output.stdout).unwrap();
    text.lines().map(|line| serde_json::from_str(line).expect(line)).collect()
}

/// What a command said on standard error.
pub fn errors(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Writes a vectors file and prepares it; the folder lives as long as what is returned.
pub fn prepared(text: &str) -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().expect("a folder");
    let input = scratch.path().join("vectors.txt");
    std::fs::write(&input, text).expect("the input is written");
    let out = scratch.path().join("tiny");
    let output =
        kindred(&["prepare"]).arg(&input).arg("--out").arg(&out).output().expect("it runs");
    assert!(output.status.success(), "{}", errors(&output));
    (scratch, out)
}

/// Words for analogies. The first component is alike in all, the second is sex, the third is rank,
/// the fourth is age.
pub const ROYAL: &str = "\
man 1 0 0 0
woman 1 1 0 0
king 1 0 1 0
queen 1 1 1 0
boy 1 0 0 1
girl 1 1 0 1
prince 1 0 1 1
princess 1 1 1 1
stone -1 0 0 0
nothing 0 0 0 0
";

/// Words with pseudo-random vectors of three components, as a vectors file: the same each time.
pub fn random_vectors(words: impl IntoIterator<Item = String>) -> String {
    let mut state = 1u64;
    let mut component = move || {
        // Knuth's linear congruential generator (MMIX); only whole numbers, so that some rows tie.
        state =
            state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % 13
    };
    let lines = words.into_iter().map(|word| {
        let [a, b, c] = std::array::from_fn(|_| component() as f64 - 6.0);
        format!("{word} {a} {b} {c}\n")
    });
    lines.collect()
}

/// Reads a service's log, in either form, until it says where it listens. Returns what it read, and
/// the address.
pub fn until_listening(log: &mut impl BufRead) -> (String, String) {
    let mut text = String::new();
    loop {
        let begin = text.len();
        assert!(log.read_line(&mut text).expect("the log is text") > 0, "it has ended:\n{text}");
        let line = &text[begin..];
        if line.contains("listening")
            && let Some((_, rest)) = line.split_once("127.0.0.1:")
        {
            let port: String = rest.chars().take_while(char::is_ascii_digit).collect();
            let address = format!("127.0.0.1:{port}");
            return (text, address);
        }
    }
}

/// The lines of a log in JSON, each of which must be an object.
pub fn json_lines(log: &str) -> Vec<Value> {
    let line = |line: &str| serde_json::from_str::<Value>(line).expect(line);
    let lines: Vec<Value> = log.lines().map(line).collect();
    assert!(lines.iter().all(Value::is_object), "{log}");
    lines
}

/// A model small enough to know by heart; one row is zero.
pub const TINY: &str = "\
east 1 0
north 0 1
northeast 1 1
west -1 0
zero 0 0
East 2 0
";
