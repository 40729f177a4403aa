//! API keys, as people make and use them.

use std::fs;

use super::serve;
use crate::support;
use crate::support::api_key as make;

#[test]
fn with_keys_every_route_takes_one_but_the_public_ones() {
    let (key, line) = make(&["frontend"]);
    let (admin, admin_line) = make(&["operator", "--admin"]);
    assert!(admin_line.ends_with(" operator admin") && !line.contains(&key));
    let file = tempfile::NamedTempFile::new().unwrap();
    fs::write(file.path(), format!("# keys\n{line}\n{admin_line}\n")).unwrap();
    let service = serve(&["--api-keys-file", file.path().to_str().unwrap()]);
    let ask = |method: &str, path: &str, authorization: Option<&str>| {
        let headers: Vec<_> =
            authorization.map(|value| ("Authorization", value)).into_iter().collect();
        let body: &[u8] = if method == "POST" { b"{\"word\": \"frog\"}" } else { b"" };
        service.send(method, path.as_bytes(), &headers, body)
    };
    for key in [&key, &admin] {
        let authorization = format!("Bearer {key}");
        assert_eq!(ask("GET", "/nearest?word=frog", Some(&authorization)).status, 200);
        assert_eq!(ask("POST", "/nearest", Some(&authorization)).status, 200);
        assert_eq!(ask("GET", "/nowhere", Some(&authorization)).status, 404);
    }
    // Routes of each kind, what is not there, and what looks public.
    for (method, path) in [
        ("GET", "/nearest?word=frog"),
        ("POST", "/nearest"),
        ("HEAD", "/nearest?word=frog"),
        ("GET", "/model"),
        ("GET", "/nowhere"),
        ("GET", "//health/live"),
        ("GET", "/health/live/../../model"),
        ("GET", "/docsy"),
        ("GET", "/health/liv%65"),
        ("OPTIONS", "/nearest"),
    ] {
        for authorization in
            [None, Some("Bearer kindred_"), Some(&*format!("Bearer {key}1")), Some(&*key)]
        {
            let reply = ask(method, path, authorization);
            assert_eq!(reply.status, 401, "{method} {path} {authorization:?}");
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
            if method != "HEAD" {
                assert_eq!(reply.json()["code"], "unauthorized");
                assert!(!reply.text().contains("frogs"), "{}", reply.text());
            }
        }
    }
    for path in ["/health/live", "/health/ready", "/docs", "/docs/start.js", "/openapi.yaml"] {
        assert_eq!(ask("GET", path, None).status, 200, "{path}");
    }
    // What is below a public path is nothing else, however it is written.
    for path in
        ["/docs/../nearest?word=frog", "/docs/..%2fnearest", "/docs/%2e%2e/model", "/docs//model"]
    {
        assert_eq!(ask("GET", path, None).status, 404, "{path}");
    }
}

#[test]
fn bad_files_of_keys_stop_the_start_with_file_line_and_cure() {
    let (key, line) = make(&["a"]);
    let file = tempfile::NamedTempFile::new().unwrap();
    let path = file.path().to_str().unwrap();
    for (content, said) in
        [(format!("{line}\n{key} b\n"), "line 2"), (String::new(), "kindred api-key")]
    {
        fs::write(file.path(), content).unwrap();
        let output =
            support::kindred(&["serve", "--listen", "127.0.0.1:0", "--api-keys-file", path])
                .output()
                .unwrap();
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(
            !output.status.success() && error.contains(path) && error.contains(said),
            "{error}"
        );
        assert!(!error.contains(&key), "keys are not for logs: {error}");
    }
    let output = support::kindred(&["api-key", "a b"]).output().unwrap();
    assert!(!output.status.success() && output.stdout.is_empty());
}
