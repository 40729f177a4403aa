//! `kindred prepare ADDRESS` and `import-head ADDRESS` against a server that breaks off, forgets and leads elsewhere.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::thread;

use crate::subwords::fasttext::classifier;
use crate::support::{errors, kindred};

/// A file on the web, and how its server behaves.
#[derive(Clone)]
struct Served {
    content: Vec<u8>,
    tag: Option<&'static str>,
    /// Answers break off after this many bytes.
    breaks_after: usize,
    knows_ranges: bool,
}

impl Served {
    fn new(content: &[u8]) -> Self {
        let (content, tag) = (content.to_vec(), Some("\"one\""));
        Self { content, tag, breaks_after: usize::MAX, knows_ranges: true }
    }
}

/// A server of one file, and the ranges that were asked for.
struct Server {
    address: String,
    served: Arc<Mutex<Served>>,
    asked: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start(served: Served) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let (served, asked) = (Arc::new(Mutex::new(served)), Arc::new(Mutex::new(Vec::new())));
        let (own, noted) = (served.clone(), asked.clone());
        thread::spawn(move || {
            for stream in listener.incoming() {
                let served = own.lock().unwrap().clone();
                answer(&mut stream.unwrap(), &served, &noted);
            }
        });
        Self { address, served, asked }
    }

    fn change(&self, change: impl FnOnce(&mut Served)) {
        change(&mut self.served.lock().unwrap());
    }

    /// The ranges that were asked for since the last call.
    fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn answer(stream: &mut TcpStream, served: &Served, asked: &Mutex<Vec<String>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let path = lines.next().unwrap_or_default().split(' ').nth(1).unwrap_or_default().to_owned();
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let field = |name: &str| {
        let of = |line: &String| Some(line.to_lowercase().strip_prefix(name)?.trim().to_owned());
        head.iter().find_map(of)
    };
    let simple = match &*path {
        "/moved" => Some("302 Found\r\nLocation: /v.txt?signed=1"),
        "/around" => Some("302 Found\r\nLocation: /around"),
        "/none.txt" => Some("404 Not Found"),
        _ => None,
    };
    if let Some(status) = simple {
        let _ =
            write!(stream, "HTTP/1.1 {status}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n");
        return;
    }
    let range = field("range:").unwrap_or_default();
    asked.lock().unwrap().push(range.clone());
    let is_same = field("if-range:").is_none_or(|tag| served.tag.is_some_and(|own| tag == own));
    let from: usize = range
        .strip_prefix("bytes=")
        .and_then(|range| range.strip_suffix('-')?.parse().ok())
        .filter(|_| served.knows_ranges && is_same)
        .unwrap_or(0);
    let size = served.content.len();
    let tag = served.tag.map_or_else(String::new, |tag| format!("ETag: {tag}\r\n"));
    let head = if from >= size {
        format!("416 Range Not Satisfiable\r\nContent-Range: bytes */{size}\r\nContent-Length: 0")
    } else if from > 0 {
        let (last, left) = (size - 1, size - from);
        format!(
            "206 Partial Content\r\nContent-Range: bytes {from}-{last}/{size}\r\nContent-Length: {left}"
        )
    } else {
        format!("200 OK\r\nContent-Length: {size}")
    };
    let rest = &served.content[from.min(size)..];
    let rest = &rest[..rest.len().min(served.breaks_after)];
    let _ = write!(stream, "HTTP/1.1 {head}\r\n{tag}Connection: close\r\n\r\n");
    let _ = stream.write_all(rest);
}

/// Runs `kindred prepare` of an address. Returns what it says, in success or in failure.
fn prepare(out: &Path, address: &str, more: &[&str]) -> Result<String, String> {
    let mut prepare = kindred(&["prepare", address]);
    let output = prepare.args(more).arg("--out").arg(out).output().unwrap();
    let said = errors(&output) + &String::from_utf8_lossy(&output.stdout);
    if output.status.success() { Ok(said) } else { Err(said) }
}

const ROWS: &[u8] = b"frog 1 0\ntoad 1 1\npond 0 1\n";
/// The SHA-256 of `ROWS`.
const SHA256: &str = "eddf951a077dfb18ccfe650c0180811ceef1b750a02c994ea749324f09f33bac";

#[test]
fn a_file_comes_in_parts_over_connections_that_break() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("m");
    let server = Server::start(Served { breaks_after: 10, ..Served::new(ROWS) });
    let said = prepare(&out, &format!("{}/v.txt", server.address), &[]).unwrap();
    assert!(said.contains("3 rows × 2 dimensions from 27 B of glove text"), "{said}");
    assert_eq!(server.asked(), ["", "bytes=10-", "bytes=20-"]);
    assert!(!scratch.path().join("m.download").exists(), "it is removed");

    // One that knows no ranges gives the whole file, in the end.
    let server = Server::start(Served { knows_ranges: false, ..Served::new(ROWS) });
    prepare(&out, &format!("{}/moved", server.address), &["--replace"]).unwrap();
}

#[test]
fn the_same_command_goes_on_unless_the_file_has_changed() {
    let scratch = tempfile::tempdir().unwrap();
    let (out, part) = (scratch.path().join("m"), scratch.path().join("m.download/v.txt"));
    let server = Server::start(Served { breaks_after: 0, ..Served::new(ROWS) });
    let address = format!("{}/v.txt", server.address);
    let error = prepare(&out, &address, &[]).unwrap_err();
    assert!(error.contains("the same command goes on") && !out.exists(), "{error}");
    assert_eq!(server.asked().len(), 5, "it gives up");
    // Ten bytes of the file are there; the bad rest of a row makes preparing fail, and all is kept.
    std::fs::write(&part, &ROWS[..10]).unwrap();
    server.change(|served| served.breaks_after = usize::MAX);
    let wrong = prepare(&out, &address, &["--dim", "7"]).unwrap_err();
    assert!(wrong.contains("line 1"), "{wrong}");
    assert_eq!(server.asked(), ["bytes=10-"]);
    assert_eq!(std::fs::read(&part).unwrap(), ROWS);
    prepare(&out, &address, &[]).unwrap();
    assert_eq!(server.asked(), ["bytes=27-"], "nothing is sent again");

    // A part of another version is not kept.
    std::fs::create_dir_all(part.parent().unwrap()).unwrap();
    std::fs::write(&part, b"newt 5").unwrap();
    let state = format!("{{\"url\": \"{address}\", \"validator\": \"\\\"old\\\"\"}}");
    std::fs::write(part.with_file_name(".download.json"), state).unwrap();
    let said = prepare(&out, &address, &["--replace"]).unwrap();
    assert!(said.contains("3 rows"), "{said}");
    // Nor one of which nobody knows of what it is a part, or of another address.
    for url in [address.clone(), format!("{}/other.txt", server.address)] {
        std::fs::create_dir_all(part.parent().unwrap()).unwrap();
        std::fs::write(&part, b"newt 5 5\n").unwrap();
        let validator = if url == address { "null" } else { "\"\\\"one\\\"\"" };
        let state = format!("{{\"url\": \"{url}\", \"validator\": {validator}}}");
        std::fs::write(part.with_file_name(".download.json"), state).unwrap();
        let said = prepare(&out, &address, &["--replace"]).unwrap();
        assert!(said.contains("3 rows"), "{said}");
    }
}

#[test]
fn a_checksum_is_compared_and_faults_of_addresses_are_told() {
    let scratch = tempfile::tempdir().unwrap();
    let out = scratch.path().join("m");
    let server = Server::start(Served::new(ROWS));
    let address = format!("{}/v.txt", server.address);
    let error = prepare(&out, &address, &["--sha256", &"0".repeat(64)]).unwrap_err();
    assert!(error.contains(&format!("SHA-256 {SHA256}")), "{error}");
    assert!(!scratch.path().join("m.download").exists() && !out.exists(), "it is removed");
    prepare(&out, &address, &["--sha256", &SHA256.to_uppercase()]).unwrap();
    for (address, said) in [
        (format!("{}/none.txt", server.address), "404"),
        (format!("{}/around", server.address), "without an end"),
        (format!("{}/", server.address), "names no file"),
        ("http://user:secret@127.0.0.1/v.txt".to_owned(), "no user and password"),
        ("http://127.0.0.1:99999/v.txt".to_owned(), "no URL"),
    ] {
        let error = prepare(&out, &address, &["--replace"]).unwrap_err();
        assert!(error.contains(said) && !error.contains("secret"), "{address}: {error}");
    }
    let local = scratch.path().join("v.txt");
    std::fs::write(&local, ROWS).unwrap();
    let error =
        prepare(&out, local.to_str().unwrap(), &["--replace", "--sha256", "00"]).unwrap_err();
    assert!(error.contains("no address"), "{error}");
    // Texts and their attributes are in the same file.
    let docs = b"{\"id\": \"a\", \"text\": \"frog\", \"n\": 7}\n{\"id\": \"b\", \"text\": \"pond\", \"n\": 8}\n";
    server.change(|served| served.content = docs.to_vec());
    let (docs, address) = (scratch.path().join("docs"), format!("{}/d.jsonl", server.address));
    let given = ["--encoder", out.to_str().unwrap(), "--key", "id", "--attributes", &address];
    let said = prepare(&docs, &address, &given).unwrap();
    assert!(said.contains("2 rows") && said.contains("attribute n: integer"), "{said}");
}

#[test]
fn a_head_of_fasttext_is_imported_from_an_address() {
    let folder = tempfile::tempdir().unwrap();
    let content = classifier().bytes();
    let server = Server::start(Served { breaks_after: 100, ..Served::new(&content) });
    let address = format!("{}/labels.bin", server.address);
    let import = |out: &str, more: &[&str]| {
        let out = folder.path().join(out);
        let mut command = kindred(&["import-head", &address]);
        command.arg("--out").arg(&out).args(more).output().unwrap()
    };
    let made = import("head", &[]);
    assert!(made.status.success(), "{}", errors(&made));
    assert!(server.asked().len() > 1, "it came in parts");
    assert_eq!(std::fs::read(folder.path().join("head/fasttext.bin")).unwrap(), content);
    let wrong = import("other", &["--sha256", "00"]);
    assert!(errors(&wrong).contains("SHA-256"), "{}", errors(&wrong));
    let left = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "only the head is left");
}
