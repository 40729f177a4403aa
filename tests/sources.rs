//! Tables that follow other systems: their positions are stored with the rows, a change may be for
//! one position only, and everybody hears how far behind a table is.

use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::supervision::code;
use crate::support::{Reply, Service, kindred};

/// A service of the folder, with the empty table `t` if it is new.
fn serve(tables: &Path, more: &[&str]) -> Service {
    let service = Service::start(&[&["--models-dir", tables.to_str().unwrap()], more].concat());
    if !tables.join("t").exists() {
        let table = json!({"name": "t", "dim": 2, "attributes": {"n": "integer"}});
        assert_eq!(service.post("/models", &table).status, 201);
    }
    service
}

fn folder() -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let tables = scratch.path().join("tables");
    std::fs::create_dir(&tables).unwrap();
    (scratch, tables)
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn change(service: &Service, body: &Value, headers: &[(&str, &str)]) -> Reply {
    let headers = [&[JSON], headers].concat();
    service.send("POST", b"/rows", &headers, body.to_string().as_bytes())
}

fn done(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

fn row(key: &str) -> Value {
    json!({"key": key, "vector": [1, 2]})
}

fn sources(service: &Service) -> Value {
    service.get("/sources").json()["sources"].clone()
}

#[test]
fn positions_of_sources_are_stored_with_the_rows_in_one_batch() {
    let (_scratch, tables) = folder();
    let service = serve(&tables, &[]);
    assert_eq!(sources(&service), json!([]));
    let at = |text: &'static str| [("Source-Position", text)];
    let first = json!({"rows": [row("a"), row("b")]});
    assert_eq!(done(&change(&service, &first, &at("postgres:0/16B3748")))["position"], 1);
    // Upserts, deletes and a position in one batch; a position alone is one, too.
    let both = json!({"rows": [row("c")], "delete": ["a", "x", "a"]});
    let changed = done(&change(&service, &both, &at("postgres:1/0,kafka/t/0:7")));
    let counts = ["position", "inserted", "deleted", "missing"].map(|name| changed[name].clone());
    assert_eq!(counts, [2, 1, 1, 1].map(Value::from));
    let none = json!({"rows": []});
    assert_eq!(done(&change(&service, &none, &at("kafka/t/0:8")))["position"], 3);
    assert_eq!(code(&change(&service, &none, &[])), (422, "invalid_value".to_owned()));
    let only = json!({"delete": ["b"]});
    assert_eq!(done(&change(&service, &only, &[]))["deleted"], 1);
    let filter = json!({"filter": "key = \"c\""}).to_string();
    let headers = [JSON, at("postgres:1/1")[0]];
    let deleted = done(&service.send("POST", b"/rows/delete", &headers, filter.as_bytes()));
    assert_eq!((&deleted["position"], &deleted["deleted"]), (&json!(5), &json!(1)));
    let expected = json!([
        {"name": "kafka/t/0", "position": "8"},
        {"name": "postgres", "position": "1/1"},
    ]);
    assert_eq!(sources(&service), expected);
    // The command line tells them, beside the service.
    let exported = kindred(&["changes", "export"]).arg(tables.join("t")).output().unwrap();
    let lines: Vec<Value> = String::from_utf8(exported.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(lines[1]["sources"], json!({"kafka/t/0": "7", "postgres": "1/0"}));
    assert_eq!((lines.len(), lines[3].get("sources")), (5, None));
    // Folded, and read again.
    assert_eq!(service.post("/fold", &json!({})).status, 200);
    assert_eq!(sources(&service), expected);
    drop(service);
    let again = serve(&tables, &[]);
    assert_eq!(sources(&again), expected);
    for text in ["", "postgres", "postgres:", "a b:1", "postgres:0/16B3748,"] {
        let reply = change(&again, &none, &[("Source-Position", text)]);
        assert_eq!(code(&reply), (422, "invalid_value".to_owned()), "{text}: {}", reply.text());
    }
    assert_eq!(again.get("/model").json()["position"], 5);
}

#[test]
fn a_source_that_is_forgotten_is_gone_with_its_reports() {
    let (_scratch, tables) = folder();
    let service = serve(&tables, &["--max-lag-seconds", "5"]);
    let none = json!({"rows": []});
    let put = |positions: &str| change(&service, &none, &[("Source-Position", positions)]);
    done(&put("files/a:5,files/b:7"));
    let late = json!({"name": "files/a", "position": "9", "behind_seconds": 60});
    let other = json!({"name": "files/b", "position": "7"});
    let told = done(&service.post("/sources", &json!({"sources": [late, other]})));
    assert_eq!(told["sources"][0]["reached"], "9");
    assert_eq!(service.get("/health/ready").status, 503);
    let waits =
        |position: &str| service.send("GET", b"/rows", &[("Min-Position", position)], b"").status;
    assert_eq!(waits("files/a:9"), 200);
    done(&put("files/a:-,files/none:-"));
    let left = sources(&service);
    assert_eq!((left.as_array().map(Vec::len), &left[0]["name"]), (Some(1), &json!("files/b")));
    assert_eq!(service.get("/health/ready").status, 200);
    // One of the same name begins anew, without the report on the one before.
    done(&put("files/a:1"));
    assert_eq!((waits("files/a:1"), waits("files/a:2")), (200, 503));
    assert_eq!(waits("files/a:-"), 422);
    let exported = kindred(&["changes", "export"]).arg(tables.join("t")).output().unwrap();
    let exported = String::from_utf8(exported.stdout).unwrap();
    assert!(exported.contains(r#""sources":{"files/a":"-","files/none":"-"}"#), "{exported}");
    assert_eq!(service.post("/fold", &json!({})).status, 200);
    drop(service);
    let again = serve(&tables, &[]);
    let expected = ["files/a", "files/b"].map(|name| json!(name));
    let found = sources(&again);
    assert_eq!([0, 1].map(|place| found[place]["name"].clone()), expected);
}

#[test]
fn rows_vectors_and_keys_to_delete_are_parts_of_one_body() {
    let (_scratch, tables) = folder();
    let service = serve(&tables, &[]);
    done(&change(&service, &json!({"rows": [row("old")]}), &[]));
    let part = |name: &str, content: &[u8]| {
        let head = format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n");
        [head.as_bytes(), content, b"\r\n"].concat()
    };
    let numbers = [1.5f32, 2.5].map(f32::to_le_bytes).concat();
    let vectors = [model_store::npy::head("'<f4'", &[1, 2]), numbers].concat();
    let send = |delete: &str| {
        let body = [
            part("rows", b"{\"key\": \"new\", \"attributes\": {\"n\": 3}}"),
            part("vectors", &vectors),
            part("delete", delete.as_bytes()),
            b"--b--\r\n".to_vec(),
        ];
        let declared = [("Content-Type", "multipart/form-data; boundary=b")];
        service.send("POST", b"/rows", &declared, &body.concat())
    };
    let changed = done(&send("[\"old\"]"));
    let counts = ["position", "inserted", "deleted"].map(|name| changed[name].clone());
    assert_eq!(counts, [2, 1, 1].map(Value::from));
    assert_eq!(service.get("/rows/new").json()["vector"], json!([1.5, 2.5]));
    for bad in ["", "{}", "[1]", "\"old\""] {
        assert_eq!(code(&send(bad)), (422, "invalid_value".to_owned()), "{bad}");
    }
    // A row that is put and deleted at once is neither.
    assert_eq!(code(&send("[\"new\"]")), (422, "bad_rows".to_owned()));
    assert_eq!(service.get("/model").json()["position"], 2);
}

#[test]
fn a_change_for_one_position_is_refused_at_every_other() {
    let (_scratch, tables) = folder();
    let service = serve(&tables, &[]);
    let version = service.get("/model").json()["version"].as_str().unwrap().to_owned();
    let only_at = |position: &str, key: &str| {
        change(&service, &json!({"rows": [row(key)]}), &[("If-Position", position)])
    };
    assert_eq!(done(&only_at(&format!("{version}/0"), "a"))["position"], 1);
    let late = only_at(&format!("{version}/0"), "b");
    assert_eq!(code(&late), (412, "position_changed".to_owned()));
    assert!(late.text().contains(&format!("the table is at {version}/1")), "{}", late.text());
    for (position, status) in [("x/1", 412), ("1", 422), ("", 422), ("x/-1", 422)] {
        assert_eq!(only_at(position, "b").status, status, "{position}");
    }
    let both = [JSON, ("If-Position", &*format!("{version}/0"))];
    for body in [json!({"keys": ["a"]}), json!({"filter": "key = \"a\""})] {
        let body = body.to_string();
        let reply = service.send("POST", b"/rows/delete", &both, body.as_bytes());
        assert_eq!(code(&reply), (412, "position_changed".to_owned()), "{}", reply.text());
    }
    assert_eq!(service.send("DELETE", b"/rows/a", &both[1..], b"").status, 412);
    // Of many that are for one position, one is done.
    let at = format!("{version}/1");
    let statuses: Vec<u16> = thread::scope(|scope| {
        let (at, only_at) = (&at, &only_at);
        let send = |sender| scope.spawn(move || only_at(at, &format!("s{sender}")).status);
        let senders: Vec<_> = (0..16).map(send).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 412].contains(status)), "{statuses:?}");
    assert_eq!(service.get("/model").json()["rows"], 2);
}

#[test]
fn who_wrote_to_a_source_reads_the_rows_that_have_it() {
    let (_scratch, tables) = folder();
    let service = serve(&tables, &[]);
    let at = |text: &'static str| [("Source-Position", text)];
    done(&change(&service, &json!({"rows": [row("a"), row("b")]}), &at("postgres:0/10")));
    let ask =
        |wanted: &str| service.send("GET", b"/nearest?word=a", &[("Min-Position", wanted)], b"");
    assert_eq!(ask("postgres:0/10").status, 200);
    assert_eq!(ask("postgres:0/F").status, 200);
    let begun = Instant::now();
    let late = ask("postgres:0/11");
    assert_eq!(code(&late), (503, "position_not_reached".to_owned()));
    assert!(late.text().contains("the table is at postgres:0/10"), "{}", late.text());
    assert_eq!(late.header("retry-after"), Some("1"));
    assert!(begun.elapsed() >= Duration::from_secs(2), "it waits for it");
    let other = ask("kafka/t/0:1");
    assert!(other.text().contains("no position of kafka/t/0"), "{}", other.text());
    assert_eq!(ask("postgres:x").status, 422);
    // Who waits gets it with the batch, or with a report that there is nothing up to there.
    thread::scope(|scope| {
        let waits = scope.spawn(|| ask("postgres:0/11"));
        thread::sleep(Duration::from_millis(200));
        done(&change(&service, &json!({"rows": [row("c")]}), &at("postgres:0/12")));
        let answer = waits.join().unwrap();
        assert_eq!((answer.status, &answer.json()["position"]), (200, &json!(2)));
        let waits = scope.spawn(|| ask("postgres:0/20"));
        thread::sleep(Duration::from_millis(200));
        let report = json!({"sources": [{"name": "postgres", "position": "0/20", "behind": 0}]});
        assert_eq!(service.post("/sources", &report).status, 200);
        let answer = waits.join().unwrap();
        assert_eq!((answer.status, &answer.json()["position"]), (200, &json!(2)));
    });
    let known = sources(&service);
    let of = |name: &str| known[0][name].clone();
    assert_eq!((of("position"), of("reached")), (json!("0/12"), json!("0/20")));
    assert_eq!(of("behind"), 0);
}

#[test]
fn reports_tell_how_far_behind_a_table_is_and_a_service_that_is_too_far_is_not_ready() {
    let (_scratch, tables) = folder();
    let service = serve(&tables, &["--max-lag-seconds", "2"]);
    assert_eq!(service.get("/health/ready").status, 200, "it follows nothing");
    let report = |behind: u64, seconds: f64| {
        let source = json!({
            "name": "postgres", "position": "0/10", "behind": behind, "behind_seconds": seconds,
        });
        service.post("/sources", &json!({"sources": [source]}))
    };
    let unknown = report(0, 0.0);
    assert_eq!(code(&unknown), (404, "no_such_source".to_owned()), "{}", unknown.text());
    done(&change(&service, &json!({"rows": []}), &[("Source-Position", "postgres:0/10")]));
    let ready = || service.get("/health/ready");
    assert!(ready().text().contains("has not reported since the service started"));
    done(&report(1000, 0.25));
    assert_eq!(ready().status, 200, "{}", ready().text());
    let metrics = service.get("/metrics").text().to_owned();
    let labels = "{model=\"t\",source=\"postgres\"}";
    assert!(metrics.contains(&format!("kindred_source_behind{labels} 1000")), "{metrics}");
    assert!(metrics.contains(&format!("kindred_source_behind_seconds{labels} 0.")), "{metrics}");
    done(&report(1000, 1e6));
    let late = ready();
    assert_eq!((late.status, late.json()["code"].as_str()), (503, Some("not_ready")));
    assert!(late.text().contains("behind its source `postgres`, more than max_lag_seconds = 2"));
    assert!(service.get("/metrics").text().contains("kindred_ready 0"));
    done(&report(0, 0.0));
    assert_eq!(ready().status, 200);
    // A follower that tells nothing more may have stopped.
    thread::sleep(Duration::from_millis(2200));
    assert_eq!(ready().status, 503);
    for bad in [json!([]), json!([{"name": "postgres"}]), json!(1)] {
        assert_eq!(service.post("/sources", &json!({"sources": bad})).status, 422, "{bad}");
    }
    for (name, value) in [
        ("position", json!(1)),
        ("position", json!("x")),
        ("behind", json!(-1)),
        ("behind_seconds", json!(-1.0)),
        ("more", json!(1)),
    ] {
        let mut source = json!({"name": "postgres", "position": "0/10"});
        source[name] = value;
        let reply = service.post("/sources", &json!({"sources": [source]}));
        assert_eq!(reply.status, 422, "{source}: {}", reply.text());
    }
}

#[test]
fn a_model_that_nobody_changes_has_no_sources() {
    let service = Service::start(&[]);
    assert_eq!(sources(&service), json!([]));
    let report = json!({"sources": [{"name": "postgres", "position": "1"}]});
    assert_eq!(code(&service.post("/sources", &report)), (403, "not_writable".to_owned()));
}
