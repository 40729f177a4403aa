//! openapi.yaml against the program: routes, methods, parameters, fields, statuses and bodies.

mod options;
mod schema;
mod services;

use std::collections::{BTreeMap, BTreeSet};

use crate::support::{Reply, Service};
use serde_json::{Value, json};

const CONTRACT: &str = include_str!("../openapi.yaml");

/// The contract as data.
pub(crate) struct Contract(Value);

impl Contract {
    pub(crate) fn read() -> Self {
        Self(serde_saphyr::from_str(CONTRACT).expect("openapi.yaml is YAML"))
    }

    /// What a `$ref` leads to; anything else is itself.
    fn resolve<'a>(&'a self, node: &'a Value) -> &'a Value {
        match node["$ref"].as_str() {
            Some(reference) => self.resolve(schema::referred(&self.0, reference)),
            None => node,
        }
    }

    fn paths(&self) -> &serde_json::Map<String, Value> {
        self.0["paths"].as_object().expect("paths")
    }

    /// Method (upper case), path and operation.
    fn operations(&self) -> Vec<(String, &str, &Value)> {
        let methods = |path: &Value| path.as_object().expect("operations").clone();
        self.paths()
            .iter()
            .flat_map(|(path, operations)| {
                methods(operations).into_iter().map(move |(method, _)| {
                    (method.to_uppercase(), path.as_str(), &operations[&method])
                })
            })
            .collect()
    }

    /// The documented path that a path belongs to.
    fn route<'a>(&self, path: &'a str) -> &'a str {
        let path = path.split('?').next().unwrap();
        // The same routes, under the other server.
        let named = path.strip_prefix("/models/demo").or_else(|| path.strip_prefix("/models/t"));
        let path = named.unwrap_or(path);
        match path.rsplit_once('/') {
            Some(("/words", _)) => "/words/{word}",
            Some(("/rows", key)) if key != "delete" => "/rows/{key}",
            Some(("/docs", name)) if !name.is_empty() => "/docs/{file}",
            Some(("/explorer", _)) => "/explorer/{file}",
            _ => path,
        }
    }

    fn property_names(&self, schema: &str) -> BTreeSet<String> {
        let properties = &self.0["components"]["schemas"][schema]["properties"];
        properties.as_object().expect("properties").keys().cloned().collect()
    }

    /// Holds an answer against what the contract says of its route, method and status.
    pub(crate) fn check(&self, method: &str, path: &str, reply: &Reply) {
        let route = self.route(path);
        let what =
            format!("{method} {path} → {}: {}", reply.status, String::from_utf8_lossy(&reply.body));
        // Another method than the documented ones is documented with these.
        let operations = &self.paths()[route];
        let operation = match operations.get(method.to_lowercase()) {
            Some(operation) => operation,
            None => operations.as_object().unwrap().values().next().unwrap(),
        };
        let response = self.resolve(&operation["responses"][reply.status.to_string()]);
        assert!(response.is_object(), "the status is not documented: {what}");
        for header in response["headers"].as_object().into_iter().flatten() {
            assert!(reply.header(header.0).is_some(), "no {}: {what}", header.0);
        }
        let Some(content) = response["content"].as_object() else {
            assert!(reply.body.is_empty(), "no content is documented: {what}");
            return;
        };
        let sent = reply.header("content-type").expect("a content type").split(';').next().unwrap();
        let media = content.get(sent).unwrap_or_else(|| panic!("{sent} is not documented: {what}"));
        if sent.ends_with("json") {
            let errors = self.violations(&media["schema"], &reply.json());
            assert!(errors.is_empty(), "{what}\n{errors:?}");
        }
    }

    /// What is wrong with a value, by a schema of the contract.
    fn violations(&self, schema: &Value, value: &Value) -> Vec<String> {
        schema::violations(&self.0, schema, value)
    }
}

/// A documented path as someone asks for it.
fn asked_for(path: &str) -> String {
    let path = path.replace("{word}", "king").replace("{key}", "king");
    path.replace("/explorer/{file}", "/explorer/main.js").replace("{file}", "start.js")
}

const JSON: (&str, &str) = ("Content-Type", "application/json");
const NPY: (&str, &str) = ("Content-Type", "application/x-npy");
const WANTS_NPY: (&str, &str) = ("Accept", "application/x-npy");

/// A service with a table of two rows.
fn with_a_table() -> (tempfile::TempDir, Service) {
    let folder = tempfile::tempdir().unwrap();
    let service = Service::start(&["--models-dir", folder.path().to_str().unwrap()]);
    let table = json!({"name": "t", "dim": 2, "attributes": {"n": "integer"}});
    assert_eq!(service.post("/models", &table).status, 201);
    let rows = json!([{"key": "king", "vector": [1, 2]}, {"key": "b", "vector": [2, 1]}]);
    assert_eq!(service.post("/rows", &json!({"rows": rows})).status, 200);
    (folder, service)
}

/// An array of this shape.
fn vectors(shape: &[u64]) -> Vec<u8> {
    let numbers = (0..shape.iter().product()).map(|at| (at % 7) as f32 - 2.0);
    let numbers = numbers.flat_map(f32::to_le_bytes).collect();
    [model_store::npy::head("'<f4'", shape), numbers].concat()
}

#[test]
fn the_service_serves_this_very_file() {
    let reply = Service::with_default_model().get("/openapi.yaml");
    assert_eq!(reply.text(), CONTRACT);
    assert_eq!(reply.header("content-type"), Some("application/yaml"));
}

#[test]
fn the_routes_of_the_code_are_those_of_the_contract() {
    let contract = Contract::read();
    let documented = contract.operations().into_iter().map(|(method, path, _)| (method, path));
    let routes = server::http::routes().map(|(method, path)| (method.to_owned(), path));
    assert_eq!(routes.collect::<BTreeSet<_>>(), documented.collect());
}

#[test]
fn the_methods_of_each_route_are_the_documented_ones() {
    let (contract, service) = (Contract::read(), Service::with_default_model());
    for path in contract.paths().keys() {
        let asked = asked_for(path);
        let reply = service.send("PATCH", asked.as_bytes(), &[], b"");
        assert_eq!(reply.status, 405);
        contract.check("PATCH", &asked, &reply);
        let allowed = reply.header("allow").expect("Allow").split(',');
        let mut allowed: BTreeSet<String> =
            allowed.map(|method| method.trim().to_owned()).collect();
        let has_head = allowed.remove("HEAD");
        let documented: BTreeSet<String> = contract
            .operations()
            .into_iter()
            .filter(|(_, documented, _)| documented == path)
            .map(|(method, ..)| method)
            .collect();
        assert_eq!(allowed, documented, "{path}");
        assert_eq!(has_head, documented.contains("GET"), "HEAD comes with GET: {path}");
    }
}

#[test]
fn parameters_and_fields_are_the_documented_ones() {
    let (contract, service) = (Contract::read(), Service::with_default_model());
    let with_keys = Service::start_with_keys(&[]);
    let (_folder, tables) = with_a_table();
    let known = |problem: &Value| -> BTreeSet<String> {
        assert_eq!(problem["code"], "unknown_field", "{problem}");
        let known = problem["known"].as_array().unwrap();
        known.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
    };
    for (method, path, operation) in contract.operations() {
        let documented: BTreeSet<String> = operation["parameters"]
            .as_array()
            .into_iter()
            .flatten()
            .map(|parameter| contract.resolve(parameter))
            .filter(|parameter| parameter["in"] == "query")
            .map(|parameter| parameter["name"].as_str().unwrap().to_owned())
            .collect();
        if method == "GET" && !documented.is_empty() {
            // Everything else is right, so that only the unknown parameter can be the fault.
            let right = match path {
                "/nearest" => "word=king",
                "/analogy" => "expression=king",
                "/words" => "prefix=k",
                _ => "",
            };
            let asked = format!("{}?{right}&surprise=1", asked_for(path));
            let problem = service.get(&asked).json();
            assert_eq!(known(&problem), documented, "{method} {path}");
        } else if path.starts_with("/rows") && !documented.is_empty() {
            let lines = [("Content-Type", "application/x-ndjson")];
            let asked = format!("{path}?surprise=1");
            let problem = tables.send(&method, asked.as_bytes(), &lines, b"{}").json();
            assert_eq!(known(&problem), documented, "{method} {path}");
        } else if !documented.is_empty() {
            // They go with an array as the body. With JSON there are none.
            let asked = format!("{path}?surprise=1");
            let problem = service.send(&method, asked.as_bytes(), &[NPY], &vectors(&[1, 100]));
            assert_eq!(known(&problem.json()), documented, "{method} {path}");
            let asked = format!("{path}?timeout_ms=9");
            let reply = service.send(&method, asked.as_bytes(), &[JSON], b"{}");
            assert!(
                reply.status == 422 && reply.text().contains("no parameters"),
                "{method} {path}"
            );
        } else {
            assert!(documented.is_empty(), "{method} {path}");
            let service = match path {
                "/admin/reload" => &with_keys,
                "/models" | "/model" | "/fold" | "/rows/delete" | "/rows/{key}" | "/sources" => {
                    &tables
                }
                _ => &service,
            };
            // Only with its name is a model deleted.
            let under = if method == "DELETE" && path == "/model" { "/models/t" } else { "" };
            let asked = format!("{under}{}?surprise=1", asked_for(path));
            let reply = service.send(&method, asked.as_bytes(), &[JSON], b"{}");
            // In OpenAI's form, whatever is wrong with a request is a 400.
            let expected = if path == "/v1/embeddings" { 400 } else { 422 };
            assert_eq!(reply.status, expected, "{method} {path}");
            contract.check(&method, &asked, &reply);
        }
    }
    for (path, request, item) in [
        ("/nearest", "NearestRequest", "NearestQuery"),
        ("/analogy", "AnalogyRequest", "AnalogyQuery"),
    ] {
        let problem = service.post(path, &json!({"surprise": 1})).json();
        assert_eq!(known(&problem), contract.property_names(request));
        let mut of_item = contract.property_names(request);
        for of_the_whole_request in ["queries", "timeout_ms"] {
            assert!(of_item.remove(of_the_whole_request));
        }
        assert_eq!(of_item, contract.property_names(item));
    }
    for (path, request) in [
        ("/rank", "RankRequest"),
        ("/count", "CountRequest"),
        ("/similarity", "SimilarityRequest"),
        ("/odd-one-out", "OddOneOutRequest"),
        ("/embed", "EmbedRequest"),
        ("/classify", "ClassifyRequest"),
        ("/expand", "ExpandRequest"),
        ("/rows", "RowsRequest"),
        ("/rows/delete", "DeleteRequest"),
        ("/sources", "SourcesRequest"),
        ("/models", "TableRequest"),
    ] {
        let of_tables = path.starts_with("/rows") || path == "/sources";
        let service = if of_tables { &tables } else { &service };
        let problem = service.post(path, &json!({"surprise": 1})).json();
        assert_eq!(known(&problem), contract.property_names(request));
    }
}

#[test]
fn every_status_that_a_request_can_bring_about_is_documented_and_as_documented() {
    let (contract, service) = (Contract::read(), Service::with_default_model());
    let late = Service::start(&["--request-timeout-ms", "1", "--threads", "1"]);
    let many = json!({"queries": vec![json!({"word": "king", "k": 60}); 1024]}).to_string();
    let analogies = json!({"queries": vec![json!({"expression": "king"}); 1024]}).to_string();
    // Only declared: it is refused before any of it is read.
    let too_large = ("Content-Length", "9000000");

    let mut seen: BTreeMap<(String, String), BTreeSet<u16>> = BTreeMap::new();
    let mut check =
        |service: &Service, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]| {
            let reply = service.send(method, path.as_bytes(), headers, body);
            contract.check(method, path, &reply);
            let route = contract.route(path).to_owned();
            seen.entry((method.to_owned(), route)).or_default().insert(reply.status);
        };
    let impatient = Service::start(&["--body-read-timeout-ms", "1"]);
    let (long, large) = ("a".repeat(40_000), ("X-Large", &*"x".repeat(20_000)));
    for (path, operations) in contract.paths() {
        let path = &asked_for(path);
        check(&service, "PUT", path, &[], b"");
        for method in operations.as_object().unwrap().keys().map(|method| method.to_uppercase()) {
            check(&service, &method, &format!("{path}?{long}"), &[], b"");
            check(&service, &method, path, &[large], b"");
            let coded = ("Transfer-Encoding", "gzip, chunked");
            check(&service, &method, path, &[coded], b"0\r\n\r\n");
            if method == "POST" {
                // Announced, and never sent.
                check(&impatient, "POST", path, &[JSON, ("Content-Length", "10")], b"");
            }
        }
        if !["/nearest", "/analogy"].contains(&&path[..]) && operations.get("get").is_some() {
            check(&service, "GET", path, &[], b"");
            check(&service, "GET", path, &[("Accept", "image/png")], b"");
            check(&service, "GET", &format!("{path}?a=b"), &[], b"");
            check(&service, "GET", &format!("{path}?a=%ff"), &[], b"");
        }
    }
    for (path, key) in [("/nearest", "word"), ("/analogy", "expression")] {
        check(&service, "GET", &format!("{path}?{key}=king&with_vectors=true"), &[], b"");
        check(&service, "GET", &format!("{path}?{key}=kinx"), &[], b"");
        check(&service, "GET", &format!("{path}?{key}=%ff"), &[], b"");
        check(&service, "GET", &format!("{path}?{key}=king&k=0"), &[], b"");
        check(&service, "GET", &format!("{path}?{key}=king"), &[("Accept", "text/html")], b"");
        let single =
            json!({key: "king", "k": 3, "exclude": ["queen"], "min_score": 0.1}).to_string();
        let items = json!({"queries": [{key: "king"}, {key: "kinx"}, {key: "king", "k": 0}, 7]})
            .to_string();
        check(&service, "POST", path, &[JSON], single.as_bytes());
        check(&service, "POST", path, &[JSON], items.as_bytes());
        check(&service, "POST", path, &[JSON], json!({key: "kinx"}).to_string().as_bytes());
        check(&service, "POST", path, &[JSON], b"{");
        check(&service, "POST", path, &[JSON], b"{}");
        check(&service, "POST", path, &[JSON, too_large], b"");
        check(&service, "POST", path, &[("Content-Type", "text/plain")], single.as_bytes());
        check(&service, "POST", path, &[JSON, ("Accept", "text/html")], single.as_bytes());
        let slow = if path == "/nearest" { &many } else { &analogies };
        check(&late, "POST", path, &[JSON], slow.as_bytes());
    }
    for (path, right, unknown) in [
        (
            "/rank",
            r#"{"words": ["king", "queen"], "word": "king"}"#,
            Some(r#"{"words": ["king", "queen", "kinx"], "word": "king"}"#),
        ),
        ("/classify", r#"{"text": "king"}"#, Some(r#"{"text": "kinx"}"#)),
        ("/expand", r#"{"text": "king"}"#, Some(r#"{"text": "kinx"}"#)),
        ("/count", r#"{"filter": "key = king"}"#, None),
        ("/similarity", r#"{"pairs": [["king", "queen"], ["kinx", "king"], 7]}"#, None),
        ("/embed", r#"{"texts": ["king", "kinx", 7]}"#, None),
        ("/embed", r#"{"inputs": ["king"]}"#, Some(r#"{"inputs": ["king", "kinx"]}"#)),
        ("/", r#"{"inputs": "king"}"#, Some(r#"{"inputs": [7]}"#)),
        ("/v1/embeddings", r#"{"input": "king"}"#, Some(r#"{"input": ["king", "kinx"]}"#)),
        (
            "/v1/embeddings",
            r#"{"input": ["king"], "encoding_format": "base64"}"#,
            Some(r#"{"input": ["king"], "dimensions": 7}"#),
        ),
        (
            "/odd-one-out",
            r#"{"words": ["king", "queen", "frog"]}"#,
            Some(r#"{"words": ["king", "queen", "kinx"]}"#),
        ),
    ] {
        check(&service, "POST", path, &[JSON], right.as_bytes());
        if let Some(unknown) = unknown {
            check(&service, "POST", path, &[JSON], unknown.as_bytes());
        }
        check(&service, "POST", path, &[JSON], b"{");
        check(&service, "POST", path, &[JSON], b"{}");
        check(&service, "POST", path, &[JSON, too_large], b"");
        check(&service, "POST", path, &[("Content-Type", "text/plain")], right.as_bytes());
        check(&service, "POST", path, &[JSON, ("Accept", "text/html")], right.as_bytes());
    }
    let (_folder, tables) = with_a_table();
    for (method, path, body) in [
        ("POST", "/rows", r#"{"rows": [{"key": "c", "vector": [1, 1]}]}"#),
        ("POST", "/rows", r#"{"rows": [{"key": "c", "vector": [1]}]}"#),
        ("POST", "/rows", r#"{"rows": [{"vector": 7}], "on_error": "skip"}"#),
        ("POST", "/rows", r#"{"rows": []}"#),
        ("POST", "/rows", "{"),
        ("POST", "/rows/delete", r#"{"keys": ["c", "d"], "durability": "none"}"#),
        ("POST", "/rows/delete", r#"{"filter": "n = 1"}"#),
        ("POST", "/rows/delete", r#"{"filter": "m = 1"}"#),
        ("POST", "/rows/delete", "{}"),
        ("DELETE", "/rows", r#"{"keys": ["c"]}"#),
        ("DELETE", "/rows?key=c", ""),
        ("DELETE", "/rows/c", ""),
        ("GET", "/rows", ""),
        ("GET", "/rows?limit=1&with_vectors=false", ""),
        ("GET", "/rows?limit=0", ""),
        ("GET", "/rows?key=king", ""),
        ("GET", "/rows?after=9-1", ""),
        ("GET", "/rows/king", ""),
        ("GET", "/rows/nobody", ""),
        ("GET", "/rows?key=nobody", ""),
        ("GET", "/nearest?word=king", ""),
        ("GET", "/count?filter=n=1", ""),
        ("GET", "/words?prefix=k", ""),
        ("GET", "/words/king", ""),
        ("GET", "/model", ""),
        ("GET", "/models", ""),
        ("POST", "/rank", r#"{"words": ["king", "b"], "word": "king"}"#),
        ("POST", "/similarity", r#"{"pairs": [["king", "b"]]}"#),
        ("POST", "/models", r#"{"name": "t", "dim": 2}"#),
        ("POST", "/models", r#"{"name": "/", "dim": 2}"#),
        ("POST", "/models", r#"{"name": "u", "dim": 2, "metric": "dot"}"#),
        ("POST", "/fold", ""),
        ("DELETE", "/model", ""),
    ] {
        check(&tables, method, path, &[JSON], body.as_bytes());
    }
    let key = [JSON, ("Idempotency-Key", "k")];
    for key_of in ["e", "f"] {
        let body = json!({"keys": [key_of]}).to_string();
        check(&tables, "POST", "/rows/delete", &key, body.as_bytes());
    }
    check(&tables, "GET", "/rows/king", &[("Min-Position", "0123456789abcdef/1")], b"");
    check(&tables, "GET", "/rows", &[("Min-Position", "0123456789abcdef/1")], b"");
    let (one, keys) = (r#"{"rows": [{"key": "c", "vector": [1, 1]}]}"#, r#"{"keys": ["c"]}"#);
    let elsewhere = ("If-Position", "0123456789abcdef/1");
    for (method, path, body) in [
        ("POST", "/rows", one),
        ("POST", "/rows/delete", keys),
        ("DELETE", "/rows", keys),
        ("DELETE", "/rows/c", ""),
    ] {
        check(&tables, method, path, &[JSON, elsewhere], body.as_bytes());
    }
    check(&tables, "POST", "/rows", &[JSON, ("Source-Position", "x:0/1")], br#"{"rows": []}"#);
    let report = br#"{"sources": [{"name": "x", "position": "0/2", "behind": 1}]}"#;
    check(&tables, "POST", "/sources", &[JSON], report);
    check(
        &tables,
        "POST",
        "/sources",
        &[JSON],
        br#"{"sources": [{"name": "y", "position": "1"}]}"#,
    );
    check(&tables, "GET", "/sources", &[], b"");
    check(&tables, "GET", "/sources", &[("Min-Position", "x:0/3")], b"");
    for (method, path, body) in [
        ("POST", "/rows", one),
        ("POST", "/sources", r#"{"sources": [{"name": "x", "position": "1"}]}"#),
        ("POST", "/rows/delete", keys),
        ("DELETE", "/rows", keys),
        ("DELETE", "/rows/c", ""),
        ("POST", "/models", r#"{"name": "v", "dim": 2}"#),
        ("DELETE", "/models/t/model", ""),
        ("POST", "/fold", ""),
    ] {
        check(&tables, method, path, &[JSON, ("Accept", "image/png")], body.as_bytes());
        check(&tables, method, &format!("{path}?a=%ff"), &[JSON], body.as_bytes());
        check(&tables, method, &format!("{path}?a=b"), &[JSON], body.as_bytes());
        check(&service, method, &path.replace("/t/", "/demo/"), &[JSON], body.as_bytes());
        if !body.is_empty() {
            check(&tables, method, path, &[JSON, too_large], b"");
            check(&tables, method, path, &[("Content-Type", "text/plain")], b"{}");
            check(&tables, method, path, &[JSON], b"{");
        }
    }
    check(&tables, "POST", "/models/t/fold", &[], b"");
    check(&tables, "DELETE", "/models/t/model", &[], b"");
    let explained = json!({"queries": [
        {"expression": "king - man + woman"},
        {"expression": "king - man + woman", "method": "3cosmul", "fold_case": true},
        {"expression": "king - man + woman", "method": "pairdirection"},
        {"expression": "king - man", "method": "pairdirection"},
    ], "explain": true})
    .to_string();
    check(&service, "POST", "/analogy", &[JSON], explained.as_bytes());
    check(&service, "GET", "/nearest?text=The+king&explain=true&fold_case=true", &[], b"");
    check(&service, "GET", "/analogy?expression=king-man&method=3cosmul&unknown=skip", &[], b"");
    let most = service.get("/words?prefix=&limit=32").json();
    let factors: Vec<&Value> =
        most["words"].as_array().unwrap().iter().map(|w| &w["word"]).collect();
    let ranked = json!({"words": ["king"], "positive": factors, "method": "3cosmul"}).to_string();
    check(&late, "POST", "/rank", &[JSON], ranked.as_bytes());
    for path in [
        "/count?filter=key=king",
        "/words?prefix=k",
        "/words?word=king&with_vector=true",
        "/words/king",
    ] {
        check(&service, "GET", path, &[], b"");
        check(&service, "GET", path, &[("Accept", "text/html")], b"");
    }
    let version = service.get("/words?prefix=k").header("etag").expect("an entity tag").to_owned();
    for path in [
        "/nearest?word=king",
        "/analogy?expression=king",
        "/count?filter=key=king",
        "/words?prefix=k",
    ] {
        check(&service, "GET", path, &[("If-None-Match", &version)], b"");
    }
    for path in [
        "/docs",
        "/docs/start.js",
        "/explorer/main.js",
        "/heads",
        "/info",
        "/model",
        "/models",
        "/version",
    ] {
        let tag = service.get(path).header("etag").expect("an entity tag").to_owned();
        check(&service, "GET", path, &[("If-None-Match", &tag)], b"");
    }
    for path in ["/classify?text=a+funny+film", "/expand?text=cheap+flights"] {
        let tag = service.get(path).header("etag").expect("an entity tag").to_owned();
        check(&service, "GET", path, &[("If-None-Match", &tag)], b"");
        check(&service, "GET", &format!("{path}&explain=true&top=3"), &[], b"");
        check(&service, "GET", path, &[("Accept", "text/html")], b"");
        check(&service, "GET", &path.replace("text=", "text=zzxqy&head="), &[], b"");
    }
    for path in ["/classify?text=zzxqy", "/expand?text=zzxqy&format=impacts", "/version"] {
        check(&service, "GET", path, &[], b"");
    }
    check(&service, "GET", "/classify?text=film&explain_label=negative&scores=true", &[], b"");
    for text in ["what a waste of time", "zzxqy"] {
        let body = json!({"texts": [text, ""], "explain": true, "scores": true}).to_string();
        check(&service, "POST", "/classify", &[JSON], body.as_bytes());
        let body = json!({"text": text, "explain": true}).to_string();
        check(&service, "POST", "/classify", &[JSON], body.as_bytes());
    }
    for form in ["terms", "impacts", "rank_features", "sparse_vector", "qdrant", "vespa", "xml"] {
        let body = json!({"texts": ["the king", "zzxqy"], "format": form, "top": 5}).to_string();
        check(&service, "POST", "/expand", &[JSON], body.as_bytes());
        let body = json!({"text": "the king", "format": form, "explain": true}).to_string();
        check(&service, "POST", "/expand", &[JSON], body.as_bytes());
    }
    for path in ["/words/king", "/words?word=king", "/words?prefix=k"] {
        check(&service, "GET", path, &[WANTS_NPY], b"");
    }
    for (path, shape) in [("/nearest", &[2, 100][..]), ("/expand", &[2, 1, 100])] {
        for target in [path.to_owned(), format!("{path}?explain=true"), format!("{path}?x=1")] {
            check(&service, "POST", &target, &[NPY], &vectors(shape));
            check(&service, "POST", &target, &[NPY, WANTS_NPY], &vectors(shape));
        }
        check(&service, "POST", path, &[NPY], b"{}");
        check(&service, "POST", path, &[NPY, WANTS_NPY], &vectors(&[2, 2]));
    }
    let zero = [model_store::npy::head("'<f4'", &[1, 100]), vec![0; 400]].concat();
    check(&service, "POST", "/nearest?with_vectors=true", &[NPY, WANTS_NPY], &zero);
    let vector = service.get("/words?word=king&with_vector=true").json()["vector"].clone();
    let body = json!({"vectors": [vector], "explain": true}).to_string();
    check(&service, "POST", "/expand", &[JSON], body.as_bytes());
    let large = json!({"texts": vec!["time ".repeat(512); 100]}).to_string();
    check(&late, "POST", "/classify", &[JSON], large.as_bytes());
    check(&late, "POST", "/expand", &[JSON], large.as_bytes());
    check(&service, "GET", "/docs/none", &[], b"");
    check(&service, "GET", "/explorer/none", &[], b"");
    let page = ("Accept", "text/html");
    check(&service, "GET", "/", &[page], b"");
    let tag = service.send("GET", b"/", &[page], b"").header("etag").unwrap().to_owned();
    check(&service, "GET", "/", &[page, ("If-None-Match", &tag)], b"");
    check(&service, "GET", "/words/king", &[("If-None-Match", &version)], b"");
    check(&service, "GET", "/rows?limit=1", &[("If-None-Match", &version)], b"");
    check(&service, "GET", "/rows/king", &[("If-None-Match", &version)], b"");
    let with_keys = Service::start_with_keys(&[]);
    for path in ["/admin/reload", "/admin/reload?a=b", "/admin/reload?a=%ff"] {
        check(&with_keys, "POST", path, &[], b"");
    }
    check(&with_keys, "POST", "/admin/reload", &[("Accept", "image/png")], b"");
    check(&service, "POST", "/admin/reload", &[], b"");
    check(&service, "GET", "/words?word=kinx", &[], b"");
    let array = [JSON, ("Accept", "application/x-npy")];
    check(&service, "POST", "/embed", &array, br#"{"texts": ["king"]}"#);
    check(&service, "POST", "/embed", &array, br#"{"texts": ["kinx"]}"#);
    check(&service, "GET", "/words/kinx", &[], b"");
    check(&service, "GET", "/nearest?text=The+qwertyish+king!", &[], b"");
    check(&service, "GET", "/analogy?expression=king+-+kinx&unknown=skip", &[], b"");
    check(&service, "GET", "/analogy?expression=king+man", &[], b"");
    check(&service, "POST", "/analogy", &[JSON], br#"{"expression": "king +"}"#);

    // The other way round: what is documented was seen, but for what a healthy service that is not
    // overloaded does not answer. Other tests see those.
    let elsewhere = |method: &str, path: &str, status: u16| {
        let is_quick = |path: &str| {
            let of_texts = ["/embed", "/v1/embeddings", "/"];
            ["/count", "/similarity", "/odd-one-out"].contains(&path) || of_texts.contains(&path)
        };
        let is_of_tables = |path: &str| {
            let of_one = ["/rows", "/rows/delete", "/rows/{key}", "/sources", "/model", "/fold"];
            of_one.contains(&path) || path == "/models"
        };
        let of_tables = matches!(status, 202 | 404 | 408 | 500 | 504 | 507);
        matches!(status, 401 | 405 | 409 | 429 | 503)
            || (of_tables && method != "GET" && is_of_tables(path))
            || (status == 504 && (method == "GET" || is_quick(path)))
    };
    let mut unseen = Vec::new();
    for (method, path, operation) in contract.operations() {
        for status in operation["responses"].as_object().unwrap().keys() {
            let status: u16 = status.parse().unwrap();
            let statuses = &seen[&(method.clone(), path.to_owned())];
            if !statuses.contains(&status) && !elsewhere(&method, path, status) {
                unseen.push(format!("{method} {path} {status}"));
            }
        }
    }
    assert!(unseen.is_empty(), "{unseen:?}");
}

#[test]
fn the_examples_are_requests_that_are_answered() {
    let (contract, service) = (Contract::read(), Service::with_default_model());
    let mut examples = 0;
    for (method, path, operation) in contract.operations() {
        let media = &operation["requestBody"]["content"]["application/json"];
        for example in media["examples"].as_object().into_iter().flatten() {
            let body = &contract.resolve(example.1)["value"];
            let violations = contract.violations(&media["schema"], body);
            assert!(violations.is_empty(), "{}: {violations:?}", example.0);
            let reply =
                service.send(&method, path.as_bytes(), &[JSON], body.to_string().as_bytes());
            assert_eq!(reply.status, 200, "{}: {}", example.0, reply.text());
            contract.check(&method, path, &reply);
            let answers = &operation["responses"]["200"]["content"]["application/json"]["examples"];
            let answer = &contract.resolve(&answers[example.0])["value"];
            assert_eq!(&reply.json(), answer, "the answer to the example {}", example.0);
            examples += 1;
        }
    }
    assert!(examples >= 4, "{examples}");
}

/// What a page of documentation asks at the touch of a button: each parameter's example or, without
/// one, its default.
#[test]
fn every_get_with_its_examples_and_defaults_is_answered() {
    let (contract, service) = (Contract::read(), Service::with_default_model());
    let mut seen = 0;
    for (method, path, operation) in contract.operations() {
        if method != "GET" {
            continue;
        }
        let (mut target, mut query) = (path.to_owned(), Vec::new());
        for parameter in operation["parameters"].as_array().into_iter().flatten() {
            let parameter = contract.resolve(parameter);
            let schema = contract.resolve(&parameter["schema"]);
            let value = parameter.get("example").or_else(|| schema.get("default"));
            let Some(value) = value else {
                assert_ne!(parameter["required"], true, "{path} {parameter}");
                continue;
            };
            let violations = contract.violations(schema, value);
            assert!(violations.is_empty(), "{path} {parameter}: {violations:?}");
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let name = parameter["name"].as_str().unwrap();
            if parameter["in"] == "path" {
                target = target.replace(&format!("{{{name}}}"), &text);
            } else {
                let text = text.replace('+', "%2B").replace(' ', "+");
                query.push(format!("{name}={text}"));
            }
        }
        if !query.is_empty() {
            target = format!("{target}?{}", query.join("&"));
        }
        let reply = service.send("GET", target.as_bytes(), &[], b"");
        let expected = if path == "/docs/" { 308 } else { 200 };
        assert_eq!(reply.status, expected, "{target}: {}", reply.text());
        contract.check("GET", &target, &reply);
        seen += query.len();
    }
    assert!(seen >= 10, "{seen}");
}
