//! `/docs`: a page that asks nobody but the service, at relative addresses, and needs no key.

use crate::support::Service;

/// Where a browser goes from this path by a relative address (RFC 3986, section 5.2, as far as it
/// is needed).
fn resolve(from: &str, address: &str) -> String {
    assert!(!address.starts_with('/') && !address.contains("//"), "not relative: {address}");
    let mut folders: Vec<&str> = from.split('/').collect();
    folders.pop();
    for part in address.split('/') {
        match part {
            ".." => drop(folders.pop()),
            "." => {}
            name => folders.push(name),
        }
    }
    folders.join("/")
}

/// All that the page names, as links, scripts and pictures, and the file that its script asks for.
fn addresses(service: &Service) -> Vec<String> {
    let page = service.get("/docs").text().to_owned();
    let named = ["src=\"", "href=\""].into_iter().flat_map(|attribute| {
        page.split(attribute).skip(1).map(|rest| rest.split('"').next().unwrap().to_owned())
    });
    let script = service.get("/docs/start.js").text().to_owned();
    let asked = script.split("url: \"").nth(1).unwrap().split('"').next().unwrap().to_owned();
    named.chain([asked]).collect()
}

#[test]
fn all_that_the_page_names_is_here_and_nowhere_else() {
    let service = Service::with_default_model();
    let addresses = addresses(&service);
    assert!(addresses.len() >= 6, "{addresses:?}");
    for address in &addresses {
        let reply = service.get(&resolve("/docs", address));
        assert_eq!(reply.status, 200, "{address}");
        assert!(!reply.body.is_empty(), "{address}");
        // Behind a prefix, it stays behind it.
        let behind = resolve("/some/prefix/docs", address);
        assert_eq!(behind, format!("/some/prefix{}", resolve("/docs", address)));
    }
    let moved = service.send("GET", b"/docs/", &[], b"");
    assert_eq!(moved.status, 308);
    let to = moved.header("location").unwrap();
    assert_eq!(
        (resolve("/docs/", to), resolve("/a/b/docs/", to)),
        ("/docs".into(), "/a/b/docs".into())
    );
}

#[test]
fn the_page_may_run_the_services_scripts_and_ask_the_service_alone() {
    let service = Service::with_default_model();
    let page = service.get("/docs");
    let policy = page.header("content-security-policy").unwrap();
    assert!(policy.starts_with("default-src 'none'; "), "{policy}");
    for unsafe_source in ["unsafe-inline", "unsafe-eval", "*", "http:", "https:"] {
        assert!(!policy.contains(unsafe_source), "{policy}");
    }
    // So nothing inline would run, and nothing is.
    assert!(!page.text().contains("<style") && !page.text().contains("<script>"));
    // It may tell nobody else about the contract either.
    assert!(service.get("/docs/start.js").text().contains("validatorUrl: null"));
}

#[test]
fn files_come_packed_or_plain_and_heads_without_them() {
    let service = Service::with_default_model();
    let (name, gzip) = (b"/docs/swagger-ui-bundle.js", ("Accept-Encoding", "gzip, deflate, br"));
    let plain = service.send("GET", name, &[], b"");
    let packed = service.send("GET", name, &[gzip], b"");
    assert_eq!(packed.header("content-encoding"), Some("gzip"));
    assert!(plain.header("content-encoding").is_none() && packed.body.len() * 3 < plain.body.len());
    let mut unpacked = Vec::new();
    let mut decoder = flate2::read::GzDecoder::new(&packed.body[..]);
    std::io::Read::read_to_end(&mut decoder, &mut unpacked).unwrap();
    assert_eq!(unpacked, plain.body);
    assert_eq!(plain.header("etag"), packed.header("etag"));
    assert!(packed.header("vary").unwrap().to_lowercase().contains("accept-encoding"));

    let head = service.send("HEAD", name, &[gzip], b"");
    assert!(head.status == 200 && head.body.is_empty());
    assert_eq!(head.header("content-length"), Some(&*packed.body.len().to_string()));
    let tag = packed.header("etag").unwrap();
    let known = service.send("GET", name, &[gzip, ("If-None-Match", tag)], b"");
    assert!(known.status == 304 && known.body.is_empty());
    assert!(service.get("/docs/license.txt").text().contains("Apache License"));
    for missing in ["/docs/none.js", "/docs/index.html", "/models/demo/docs", "/docs/a/b"] {
        assert_eq!(service.get(missing).status, 404, "{missing}");
    }
}
