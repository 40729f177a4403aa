//! Ctrl-C in commands that keep no work: the exit code is 130, and a line says what is left and how
//! to go on. Work that is kept is in `bulk.rs` and `graph.rs`, that which is removed in `cli.rs`.

use std::io::{BufRead, BufReader, Read};
use std::process::{Command, Stdio};

use crate::support::{cache, kindred};

/// Each is ready when it names its model, or when it asks a service that never answers.
#[test]
fn ctrl_c_ends_every_command_alike() {
    let cache = cache();
    let cache = cache.to_str().unwrap();
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", silent.local_addr().unwrap());
    for (arguments, part) in [
        (&["classify", "--cache-dir", cache][..], "the lines that were printed are right"),
        (&["expand", "--cache-dir", cache], "the lines that were printed are right"),
        (&["nearest", "frog", "--url", &url], "nothing was written"),
        (&["similarity", "frog", "toad", "--url", &url], "nothing was written"),
        (&["bulk", "nearest", "--in", "-", "--out", "-", "--url", &url], "nothing was written"),
    ] {
        let mut command = kindred(arguments);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut stderr = BufReader::new(child.stderr.take().unwrap());
        let asked = arguments.contains(&"--url").then(|| silent.accept().unwrap());
        let mut text = String::new();
        if asked.is_none() {
            // The line that names the model.
            stderr.read_line(&mut text).unwrap();
        }
        let id = child.id().to_string();
        assert!(Command::new("kill").args(["-s", "INT", &id]).status().unwrap().success());
        stderr.read_to_string(&mut text).unwrap();
        assert_eq!(child.wait().unwrap().code(), Some(130), "{arguments:?}: {text}");
        for part in ["kindred: stopped; ", part, "the same command begins anew"] {
            assert!(text.contains(part), "{arguments:?}: {text}");
        }
    }
}
