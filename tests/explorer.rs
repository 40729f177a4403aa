//! The explorer's files as HTTP serves them. What the page does is tested in a browser
//! (tests/browser).

use crate::support::{Reply, Service, api_key};

const BROWSER: (&str, &str) =
    ("Accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8");

fn page(service: &Service, path: &str) -> Reply {
    service.send("GET", path.as_bytes(), &[BROWSER], b"")
}

/// What the page loads, from its own text.
fn loaded(page: &str) -> Vec<String> {
    let parts = page.split(['"']).filter(|part| part.starts_with("explorer/"));
    parts.map(|part| format!("/{part}")).collect()
}

#[test]
fn browsers_get_a_page_and_all_others_text() {
    let service = Service::with_default_model();
    let found = page(&service, "/");
    assert_eq!(
        (found.status, found.header("content-type")),
        (200, Some("text/html; charset=utf-8"))
    );
    assert!(found.header("vary").unwrap().contains("accept"));
    let policy = found.header("content-security-policy").unwrap();
    assert!(policy.contains("default-src 'self'") && !policy.contains("unsafe"), "{policy}");
    // Links to the page collect such on their way.
    assert_eq!(page(&service, "/?utm_source=a").body, found.body);

    for accept in ["*/*", "text/plain", "text/html;q=0"] {
        let reply = service.send("GET", b"/", &[("Accept", accept)], b"");
        let kind = reply.header("content-type").unwrap();
        let expected = if accept == "text/html;q=0" { (406, true) } else { (200, false) };
        assert_eq!((reply.status, kind.contains("problem")), expected, "{accept}");
        assert!(!kind.contains("html"), "{accept}");
    }
    assert_eq!(service.get("/?word=a").status, 422);
}

#[test]
fn all_that_the_page_loads_is_there_and_nothing_else() {
    let service = Service::with_default_model();
    let loaded = loaded(page(&service, "/").text());
    assert!(loaded.len() >= 5, "{loaded:?}");
    for path in &loaded {
        let file = service.get(path);
        let kind = match path.rsplit('.').next().unwrap() {
            "js" => "text/javascript; charset=utf-8",
            "css" => "text/css; charset=utf-8",
            _ => "image/svg+xml",
        };
        assert_eq!((file.status, file.header("content-type")), (200, Some(kind)), "{path}");
    }
    for path in ["/explorer/none.js", "/explorer/", "/explorer/..%2fCargo.toml", "/explorer/a/b"] {
        let reply = service.get(path);
        assert_eq!((reply.status, &reply.json()["code"]), (404, &"no_such_route".into()), "{path}");
    }
}

#[test]
fn who_has_a_file_is_not_sent_it_again() {
    let service = Service::with_default_model();
    for path in ["/", "/explorer/main.js"] {
        let first = page(&service, path);
        let tag = first.header("etag").unwrap();
        let headers = [BROWSER, ("If-None-Match", tag)];
        let again = service.send("GET", path.as_bytes(), &headers, b"");
        assert_eq!((again.status, again.body.len(), again.header("etag")), (304, 0, Some(tag)));
        let other = [BROWSER, ("If-None-Match", "\"0\"")];
        assert_eq!(service.send("GET", path.as_bytes(), &other, b"").body, first.body);
        assert_eq!(first.header("cache-control"), Some("no-cache"));
    }
}

#[test]
fn the_page_needs_no_key_but_what_it_asks_does() {
    let (_, line) = api_key(&["explorer"]);
    let folder = tempfile::tempdir().unwrap();
    let keys = folder.path().join("keys");
    std::fs::write(&keys, line).unwrap();
    let service = Service::start(&["--api-keys-file", keys.to_str().unwrap()]);
    for path in loaded(page(&service, "/").text()) {
        assert_eq!(service.get(&path).status, 200, "{path}");
    }
    for path in ["/models", "/nearest?word=a", "/words?prefix=a", "/explorerx"] {
        assert_eq!(service.get(path).status, 401, "{path}");
    }
}
