//! Tables whose rows change over HTTP: each answer is about one position, an acknowledged change is
//! there whatever happens, and only those may change rows who are let.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::{Reply, Service, Stops, api_key, errors, kindred, words};

/// A folder of tables with the table `t`, of some rows with three components.
fn tables(rows: &str) -> (tempfile::TempDir, PathBuf) {
    let scratch = tempfile::tempdir().unwrap();
    let (input, tables) = (scratch.path().join("in.txt"), scratch.path().join("tables"));
    std::fs::write(&input, rows).unwrap();
    let mut prepare = kindred(&["prepare"]);
    prepare.arg(&input).arg("--out").arg(tables.join("t"));
    let attributes = scratch.path().join("in.jsonl");
    let lines: String = rows.lines().map(|_| "{\"n\": 1}\n").collect();
    std::fs::write(&attributes, lines).unwrap();
    let output = prepare.arg("--attributes").arg(&attributes).output().unwrap();
    assert!(output.status.success(), "{}", errors(&output));
    (scratch, tables)
}

const ROWS: &str = "a 1 0 0\nb 1 1 0\nc 1 1 1\n";

fn serve(tables: &Path, more: &[&str]) -> Service {
    Service::start(&[&["--models-dir", tables.to_str().unwrap()], more].concat())
}

fn row(key: &str, vector: [f64; 3]) -> Value {
    json!({"key": key, "vector": vector})
}

/// The same with an attribute, by which filters find it.
fn marked(key: &str, vector: [f64; 3], n: u64) -> Value {
    json!({"key": key, "vector": vector, "attributes": {"n": n}})
}

/// The answer to a change that is done.
fn done(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

fn put(service: &Service, rows: &[Value]) -> Value {
    done(&service.post("/rows", &json!({"rows": rows})))
}

fn code(reply: &Reply) -> (u16, String) {
    (reply.status, reply.json()["code"].as_str().unwrap_or_default().to_owned())
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[test]
fn rows_are_put_read_and_deleted_and_are_there_after_a_restart() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let with = json!({"key": "d/e", "vector": [1, 0.1, 0], "attributes": {"n": 7}});
    let changed = put(&service, &[with.clone(), row("b", [0.0, 0.0, 1.0])]);
    let figures = |changed: &Value| {
        ["position", "inserted", "replaced", "deleted", "missing"].map(|name| changed[name].clone())
    };
    assert_eq!(figures(&changed), [1, 1, 1, 0, 0]);
    assert_eq!((&changed["durable"], &changed["repeated"]), (&json!(true), &json!(false)));
    let nearest = service.get("/nearest?word=a&with_attributes=true").json();
    assert_eq!(nearest["position"], 1);
    assert_eq!(words(&nearest), ["d/e", "c", "b"]);
    assert_eq!(nearest["neighbors"][0]["attributes"]["n"], 7);
    for path in ["/rows/d%2Fe", "/models/t/rows?key=d/e"] {
        let found = service.get(path).json();
        for (name, value) in with.as_object().unwrap() {
            assert_eq!(
                found[name].to_string(),
                value.to_string().replace("[1,0.1,0]", "[1.0,0.1,0.0]")
            );
        }
        assert_eq!((&found["row"], &found["position"]), (&json!(3), &json!(1)));
    }
    let lines =
        "{\"key\": \"x\", \"vector\": [0, 0, 1]}\r\n\n{\"key\": \"delete\", \"vector\": [0, 1, 0]}";
    let reply = service.send(
        "POST",
        b"/rows?durability=none",
        &[("Content-Type", "application/x-ndjson")],
        lines.as_bytes(),
    );
    assert_eq!(figures(&done(&reply)), [2, 2, 0, 0, 0]);
    let delete = |target: &str| done(&service.send("DELETE", target.as_bytes(), &[], b""));
    assert_eq!(figures(&delete("/rows/delete")), [3, 0, 0, 1, 0]);
    assert_eq!(figures(&delete("/rows?key=x")), [4, 0, 0, 1, 0]);
    assert_eq!(figures(&delete("/rows/x")), [5, 0, 0, 0, 1]);
    let deleted = done(&service.post("/rows/delete", &json!({"filter": "n > 5 OR key = a"})));
    assert_eq!(figures(&deleted), [6, 0, 0, 2, 0]);
    assert_eq!(code(&service.get("/rows/a")), is(404, "no_such_row"));
    assert_eq!(code(&service.get("/nearest?word=a")), is(404, "unknown_word"));
    let all = service.get("/rows").json();
    drop(service);
    let again = serve(&folder, &[]);
    assert_eq!(again.get("/rows").json(), all);
    assert_eq!(again.get("/model").json()["rows"], 2);
    // Positions that were reserved for changes without durability are not given again.
    assert!(put(&again, &[row("y", [1.0; 3])])["position"].as_u64() > Some(6));
    assert_eq!(again.get("/rows/y").json()["row"], 7, "numbers are given once");
}

#[test]
fn a_wrong_timeout_makes_and_folds_no_table() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    for (path, body) in [("/models", json!({"name": "u", "dim": 3})), ("/fold", json!(null))] {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        for wrong in ["0", "-1", "soon"] {
            let headers = [("Content-Type", "application/json"), ("Request-Timeout-Ms", wrong)];
            let refused = service.send("POST", path.as_bytes(), &headers, body.as_bytes());
            assert_eq!(code(&refused), is(422, "invalid_value"), "{path} {wrong}");
        }
    }
    assert_eq!(service.get("/models/u/model").status, 404);
}

#[test]
fn bad_rows_are_named_and_nothing_is_kept_unless_they_are_to_be_skipped() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let rows = json!([row("x", [1.0; 3]), {"key": "y", "vector": [1]}, {}, row("x", [2.0; 3]), 7]);
    let refused = service.post("/rows", &json!({"rows": rows}));
    assert_eq!(code(&refused), is(422, "bad_rows"));
    let named: Vec<u64> = refused.json()["rows"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["index"].as_u64().unwrap())
        .collect();
    assert_eq!(named, [1, 2, 3, 4]);
    assert!(refused.json()["detail"].as_str().unwrap().contains("1 component instead of 3"));
    assert_eq!(service.get("/model").json()["position"], 0);
    let kept = done(&service.post("/rows", &json!({"rows": rows, "on_error": "skip"})));
    assert_eq!((&kept["inserted"], kept["skipped"].as_array().unwrap().len()), (&json!(1), 4));
    let nothing = done(&service.post("/rows", &json!({"rows": [{}], "on_error": "skip"})));
    assert_eq!((&nothing["position"], &nothing["inserted"]), (&json!(1), &json!(0)));
    for (path, body) in [
        ("/rows", json!({})),
        ("/rows", json!({"rows": []})),
        ("/rows", json!({"rows": vec![0; 65_537]})),
        ("/rows", json!({"rows": [row("z", [1.0; 3])], "durability": "perhaps"})),
        ("/rows/delete", json!({})),
        ("/rows/delete", json!({"keys": []})),
        ("/rows/delete", json!({"keys": ["a"], "filter": "n = 1"})),
        ("/rows/delete", json!({"filter": "m = 1"})),
        ("/rows/delete", json!({"keys": vec!["a"; 65_537]})),
    ] {
        assert_eq!(service.post(path, &body).status, 422, "{path} {:.100}", body.to_string());
    }
    let both = br#"{"keys": ["b"]}"#;
    let json = [("Content-Type", "application/json")];
    assert_eq!(service.send("DELETE", b"/rows?key=a", &json, both).status, 422);
    assert_eq!(service.get("/model").json()["position"], 1);
}

#[test]
fn a_key_of_a_change_is_good_for_one_change() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let change = |key: &str, body: &Value| {
        let headers = [("Content-Type", "application/json"), ("Idempotency-Key", key)];
        service.send("POST", b"/rows", &headers, body.to_string().as_bytes())
    };
    let body = json!({"rows": [row("x", [1.0; 3])]});
    let first = done(&change("k", &body));
    put(&service, &[row("x", [2.0; 3])]);
    let again = done(&change("k", &body));
    assert_eq!((&again["position"], &again["repeated"]), (&first["position"], &json!(true)));
    assert_eq!(service.get("/rows/x").json()["vector"], json!([2.0, 2.0, 2.0]));
    let other = json!({"rows": [row("y", [1.0; 3])]});
    assert_eq!(code(&change("k", &other)), is(409, "idempotency_key_reused"));
    assert_eq!(code(&change(&"k".repeat(256), &other)), is(422, "invalid_value"));
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "f")];
    let filtered = service.send("POST", b"/rows/delete", &headers, br#"{"filter": "n = 1"}"#);
    assert_eq!(code(&filtered), is(422, "invalid_request"));
    drop(service);
    let service = serve(&folder, &[]);
    let headers = [("Content-Type", "application/json"), ("Idempotency-Key", "k")];
    let after = done(&service.send("POST", b"/rows", &headers, body.to_string().as_bytes()));
    assert_eq!(after["repeated"], true, "after a restart");
}

#[test]
fn only_keys_that_may_change_rows_do_and_models_of_the_settings_stay_as_they_are() {
    let (scratch, folder) = tables(ROWS);
    let made = [("asks", None), ("writes", Some("--write")), ("admin", Some("--admin"))];
    let made = made.map(|(name, right)| api_key(&[&[name], right.as_slice()].concat()));
    let file = scratch.path().join("keys");
    let lines: Vec<&str> = made.iter().map(|(_, line)| line.as_str()).collect();
    std::fs::write(&file, lines.join("\n")).unwrap();
    let frozen = scratch.path().join("frozen");
    std::fs::write(scratch.path().join("f.txt"), ROWS).unwrap();
    let prepared = kindred(&["prepare"])
        .arg(scratch.path().join("f.txt"))
        .arg("--out")
        .arg(&frozen)
        .output()
        .unwrap();
    assert!(prepared.status.success());
    let keys =
        ["--api-keys-file", file.to_str().unwrap(), "--public-routes", "/rows/*,/health/ready"];
    let arguments = [&["--model", frozen.to_str().unwrap()], &keys[..]].concat();
    let mut service = serve(&folder, &arguments);
    let change = |service: &Service, model: &str| {
        let body = json!({"rows": [row("x", [1.0; 3])]}).to_string();
        let path = format!("/models/{model}/rows");
        let json = [("Content-Type", "application/json")];
        service.send("POST", path.as_bytes(), &json, body.as_bytes())
    };
    assert_eq!(change(&service, "t").status, 401);
    assert_eq!(service.get("/rows/a").status, 200, "a public route");
    let public = service.send("DELETE", b"/rows/a", &[], b"");
    assert_eq!(code(&public), is(403, "forbidden"), "public to be read");
    for ((key, _), status) in made.iter().zip([403, 200, 200]) {
        service.key = Some(key.clone());
        assert_eq!(change(&service, "t").status, status);
    }
    assert_eq!(code(&change(&service, "frozen")), is(403, "not_writable"));
    let writable =
        |model: &str| service.get(&format!("/models/{model}/model")).json()["writable"].clone();
    assert_eq!((writable("t"), writable("frozen")), (json!(true), Value::Null));
    assert_eq!(service.get("/rows/a").json().get("position"), None);
    assert_eq!(service.get("/rows?limit=2").json()["next"], "0-1");
    assert_eq!(words(&service.get("/models/t/nearest?word=c").json()), ["x", "b", "a"]);
}

#[test]
fn without_keys_others_machines_are_only_let_if_that_is_said() {
    let (_scratch, folder) = tables(ROWS);
    let folder = folder.to_str().unwrap();
    let check = |more: &[&str]| {
        let arguments = ["serve", "--check", "--models-dir", folder, "--listen"];
        kindred(&[&arguments, more].concat()).output().unwrap()
    };
    let refused = check(&["0.0.0.0:0"]);
    assert!(!refused.status.success());
    let said = errors(&refused);
    assert!(said.contains("models_dir") && said.contains("open_writes"), "{said}");
    for let_in in [&["0.0.0.0:0", "--open-writes"][..], &["127.0.0.1:0"], &["[::1]:0"]] {
        let output = check(let_in);
        assert!(output.status.success(), "{let_in:?}: {}", errors(&output));
    }
}

#[test]
fn pages_are_of_one_position_while_rows_change() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let many: Vec<Value> =
        (0..250).map(|n| marked(&format!("k{n}"), [1.0, f64::from(n), 1.0], 2)).collect();
    put(&service, &many);
    let first = service.get("/rows?limit=100&with_vectors=false").json();
    let deleted = done(&service.post("/rows/delete", &json!({"filter": "n = 2"})));
    assert_eq!(deleted["deleted"], 250);
    put(&service, &[row("new", [1.0; 3])]);
    let mut all: Vec<Value> = first["rows"].as_array().unwrap().clone();
    let mut next = first["next"].clone();
    while let Some(after) = next.as_str() {
        let page = service.get(&format!("/rows?limit=100&with_vectors=false&after={after}")).json();
        assert_eq!(page["position"], 1);
        all.extend_from_slice(page["rows"].as_array().unwrap());
        next = page["next"].clone();
    }
    let expected: Vec<Value> = ["a", "b", "c"]
        .map(String::from)
        .into_iter()
        .chain((0..250).map(|n| format!("k{n}")))
        .enumerate()
        .map(|(row, key)| json!({"row": row, "key": key}))
        .collect();
    let without_attributes = |row: &Value| json!({"row": row["row"], "key": row["key"]});
    assert_eq!(all.iter().map(without_attributes).collect::<Vec<_>>(), expected);
    assert_eq!(code(&service.get("/rows?after=99-1")), is(410, "position_gone"));
    let filtered = service.get("/rows?filter=NOT+n+EXISTS").json();
    assert_eq!(filtered["rows"][0]["key"], "new");
    assert_eq!(service.get("/rows?limit=0").status, 422);
}

#[test]
fn who_names_a_position_sees_it_or_is_told() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let version = service.get("/model").json()["version"].as_str().unwrap().to_owned();
    let ask = |position: &str| {
        service.send("GET", b"/nearest?word=a", &[("Min-Position", position)], b"")
    };
    assert_eq!(ask(&format!("{version}/0")).status, 200);
    assert_eq!(code(&ask(&format!("{version}/1"))), is(503, "position_not_reached"));
    assert_eq!(ask(&format!("{version}/1")).header("retry-after"), Some("1"));
    assert_eq!(code(&ask("0123456789abcdef/0")), is(503, "position_not_reached"));
    for wrong in ["", "1", "x/y", &format!("{version}/-1")] {
        assert_eq!(code(&ask(wrong)), is(422, "invalid_value"), "{wrong}");
    }
    std::thread::scope(|scope| {
        let waits = scope.spawn(|| ask(&format!("{version}/1")));
        std::thread::sleep(Duration::from_millis(200));
        put(&service, &[row("d", [1.0, 0.01, 0.0])]);
        let answer = waits.join().unwrap();
        assert_eq!((answer.status, answer.words()[0].as_str()), (200, "d"));
    });
}

/// One of the rows of a naive map, in the order in which the table has them.
type Naive = BTreeMap<u64, (String, [f64; 3])>;

#[test]
fn answers_are_those_of_a_model_of_exactly_these_rows() {
    let (scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let mut naive: Naive = BTreeMap::new();
    let mut next = 0;
    let mut keep = |naive: &mut Naive, key: &str, vector: [f64; 3]| {
        naive.retain(|_, (other, _)| other != key);
        naive.insert(next, (key.to_owned(), vector));
        next += 1;
    };
    for (key, vector) in [("a", [1.0, 0.0, 0.0]), ("b", [1.0, 1.0, 0.0]), ("c", [1.0, 1.0, 1.0])] {
        keep(&mut naive, key, vector);
    }
    let mut state = 7_u64;
    let mut random = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    for round in 0..60 {
        // Few different numbers, so that many scores are equal.
        let size = 1 + random(30);
        let keys: Vec<String> = (0..size).map(|_| format!("k{}", random(80))).collect();
        let mut keys: Vec<String> = keys.into_iter().filter(|key| key != "a").collect();
        keys.sort_unstable();
        keys.dedup();
        if random(3) == 0 {
            done(&service.post("/rows/delete", &json!({"keys": keys})));
            naive.retain(|_, (key, _)| !keys.contains(key));
        } else {
            let mut rows = Vec::new();
            for key in &keys {
                let vector = [random(4), random(4), 1 + random(4)].map(|n| n as f64);
                rows.push(row(key, vector));
                keep(&mut naive, key, vector);
            }
            put(&service, &rows);
        }
        if round % 20 != 19 {
            continue;
        }
        let lines: String =
            naive.values().map(|(key, [x, y, z])| format!("{key} {x} {y} {z}\n")).collect();
        let input = scratch.path().join("now.txt");
        std::fs::write(&input, lines).unwrap();
        let out = scratch.path().join(format!("now{round}"));
        let prepare = kindred(&["prepare"]).arg(&input).arg("--out").arg(&out).output().unwrap();
        assert!(prepare.status.success(), "{}", errors(&prepare));
        let same = Service::start(&["--model", out.to_str().unwrap()]);
        for (key, _) in naive.values() {
            let path = format!("/nearest?word={key}&k=20");
            let [ours, expected] = [&service, &same].map(|service| service.get(&path).json());
            let scores = |answer: &Value| -> Vec<Value> {
                let neighbors = answer["neighbors"].as_array().unwrap();
                neighbors.iter().map(|one| json!([one["word"], one["score"]])).collect()
            };
            assert_eq!(scores(&ours), scores(&expected), "{key} at {}", ours["position"]);
        }
    }
}

/// Sends a request, however often it takes: the service may be killed meanwhile.
fn insist(
    address: &Mutex<String>,
    stop: &AtomicBool,
    path: &str,
    key: &str,
    body: &Value,
) -> Option<Value> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .http_status_as_error(false)
        .timeout_global(Some(Duration::from_secs(20)))
        .build()
        .into();
    loop {
        let url = {
            let address = address.lock().unwrap_or_else(PoisonError::into_inner);
            format!("http://{address}{path}")
        };
        let request = agent.post(&url).header("Idempotency-Key", key);
        let sent = request.content_type("application/json").send(body.to_string());
        if let Ok(mut answer) = sent
            && let Ok(text) = answer.body_mut().read_to_string()
        {
            assert!(answer.status() == 200 || answer.status() == 503, "{text}");
            if answer.status() == 200 {
                return Some(serde_json::from_str(&text).unwrap());
            }
        }
        if stop.load(Ordering::Relaxed) {
            return None;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn every_acknowledged_row_is_there_after_kills_and_nothing_is_done_twice() {
    const KILLS: usize = 5;
    let (_scratch, folder) = tables(ROWS);
    let arguments = ["--models-dir", folder.to_str().unwrap()];
    let mut service = Service::start(&arguments);
    let address = Mutex::new(service.address.clone());
    let stop = AtomicBool::new(false);
    let acknowledged: Mutex<HashMap<String, (u64, u64)>> = Mutex::default();
    std::thread::scope(|scope| {
        let until_here = Stops(&stop);
        for writer in 0..4 {
            let (address, stop, acknowledged) = (&address, &stop, &acknowledged);
            scope.spawn(move || {
                for count in 1_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let key = format!("w{writer}k{}", count % 5);
                    let body = json!({"rows": [row(&key, [1.0, count as f64, 1.0])]});
                    let request = format!("{writer}-{count}");
                    let answer = insist(address, stop, "/rows", &request, &body);
                    let Some(answer) = answer else { return };
                    let position = answer["position"].as_u64().unwrap();
                    let mut known = acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
                    let before = known.insert(key, (count, position));
                    assert!(before.is_none_or(|(_, before)| before < position));
                }
            });
        }
        for kill in 0..KILLS {
            let have = || acknowledged.lock().unwrap_or_else(PoisonError::into_inner);
            let before: u64 = have().values().map(|(count, _)| count).sum();
            let deadline = Instant::now() + Duration::from_secs(60);
            while have().values().map(|(count, _)| count).sum::<u64>() < before + 200 {
                assert!(Instant::now() < deadline, "nothing is acknowledged after {kill} kills");
                std::thread::sleep(Duration::from_millis(1));
            }
            service.signal("KILL");
            service.exit_code();
            service = Service::start(&arguments);
            *address.lock().unwrap_or_else(PoisonError::into_inner) = service.address.clone();
        }
        drop(until_here);
    });
    for (key, (count, _)) in acknowledged.into_inner().unwrap() {
        let found = service.get(&format!("/rows/{key}")).json()["vector"][1].as_f64().unwrap();
        // The last one of a writer may be there without an answer.
        assert!(found >= count as f64, "{key}: {found} instead of {count}");
    }
    let changes: Vec<String> = (0..4).map(|writer| format!("w{writer}k")).collect();
    let rows = service.get("/rows?with_vectors=false").json();
    let ours = rows["rows"].as_array().unwrap().iter().filter(|row| {
        changes.iter().any(|prefix| row["key"].as_str().unwrap().starts_with(prefix))
    });
    assert_eq!(ours.count(), 20, "each key once");
}

#[test]
fn a_reader_never_sees_less_than_what_was_acknowledged_before_it_asked() {
    const KEYS: usize = 8;
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let acknowledged: [AtomicU64; KEYS] = Default::default();
    let begun: [AtomicU64; KEYS] = Default::default();
    let stop = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    for key in 0..KEYS {
        put(&service, &[row(&format!("r{key}"), [1.0, 0.0, 1.0])]);
    }
    std::thread::scope(|scope| {
        let until_here = Stops(&stop);
        for key in 0..KEYS {
            let (service, stop, begun, acknowledged) = (&service, &stop, &begun, &acknowledged);
            scope.spawn(move || {
                for count in 1_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    begun[key].store(count, Ordering::SeqCst);
                    put(service, &[row(&format!("r{key}"), [1.0, count as f64, 1.0])]);
                    acknowledged[key].store(count, Ordering::SeqCst);
                }
            });
        }
        for reader in 0..24 {
            let (service, stop, begun) = (&service, &stop, &begun);
            let (acknowledged, reads) = (&acknowledged, &reads);
            scope.spawn(move || {
                let mut seen = [0; KEYS];
                let mut position = 0;
                for key in (0..KEYS).cycle().skip(reader) {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let least = acknowledged[key].load(Ordering::SeqCst).max(seen[key]);
                    let answer = service.get(&format!("/rows/r{key}")).json();
                    let most = begun[key].load(Ordering::SeqCst);
                    let found = answer["vector"][1].as_f64().unwrap() as u64;
                    assert!((least..=most).contains(&found), "{found} of {least} to {most}");
                    let now = answer["position"].as_u64().unwrap();
                    assert!(now >= position, "positions never go back");
                    (seen[key], position) = (found, now);
                    reads.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(Duration::from_secs(3));
        drop(until_here);
    });
    let written: u64 = acknowledged.iter().map(|count| count.load(Ordering::SeqCst)).sum();
    assert!(written > 50 && reads.load(Ordering::Relaxed) > 50, "{written} {reads:?}");
}

#[test]
fn an_empty_folder_of_tables_is_ready_and_says_how_one_is_made() {
    let scratch = tempfile::tempdir().unwrap();
    let service = serve(scratch.path(), &[]);
    assert_eq!(service.get("/health/ready").status, 200);
    assert_eq!(service.get("/models").json(), json!({"default": null, "models": []}));
    assert_eq!(service.get("/metrics").status, 200);
    for path in ["/nearest?word=a", "/model", "/rows", "/words?prefix=a", "/classify?text=a"] {
        let reply = service.get(path);
        assert_eq!(code(&reply), is(404, "no_such_model"), "{path}");
        assert!(reply.text().contains("POST /models"), "{}", reply.text());
    }
    assert_eq!(service.post("/nearest", &json!({"word": "a"})).status, 404);
    assert_eq!(service.get("/models/t/nearest?word=a").status, 404);
    assert_eq!(service.get("/nowhere").status, 404);
}

#[test]
fn tables_are_made_filled_deleted_and_made_again() {
    let scratch = tempfile::tempdir().unwrap();
    let service = serve(scratch.path(), &[]);
    let table =
        json!({"name": "products", "dim": 2, "attributes": {"price": "number", "tags": "list"}});
    let made = service.post("/models", &table);
    assert_eq!((made.status, made.header("location")), (201, Some("/models/products")));
    let names = |described: &Value| -> Vec<String> {
        let attributes = described["attributes"].as_array().unwrap();
        attributes.iter().map(|one| one["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&made.json()), ["price", "tags"]);
    assert_eq!((&made.json()["rows"], &made.json()["position"]), (&json!(0), &json!(0)));
    let version = made.json()["version"].clone();
    assert_eq!(code(&service.post("/models", &table)), is(409, "model_exists"));
    let nearest = || service.post("/models/products/nearest", &json!({"vector": [1, 2]}));
    assert_eq!(nearest().json()["neighbors"], json!([]));
    let rows = json!([{"key": "p", "vector": [1, 2], "attributes": {"price": 3, "tags": ["a"]}}]);
    done(&service.post("/models/products/rows", &json!({"rows": rows})));
    assert_eq!(words(&nearest().json()), ["p"]);
    assert_eq!(
        words(&service.get("/nearest?word=p&include_query=true&filter=tags=a").json()),
        ["p"]
    );
    for (body, said) in [
        (json!({"dim": 2}), "`name`"),
        (json!({"name": "x"}), "`dim`"),
        (json!({"name": "x", "dim": 0}), "`dim`"),
        (json!({"name": "x", "dim": 1_000_000}), "65536"),
        (json!({"name": "x", "dim": 2, "metric": "l2"}), "`cosine` or `dot`"),
        (json!({"name": "x", "dim": 2, "attributes": {"a": "float"}}), "date-time"),
        (json!({"name": "x", "dim": 2, "attributes": {"": "text"}}), "name"),
        (json!({"name": "../x", "dim": 2}), "can't be the name"),
        (json!({"name": ".x", "dim": 2}), "can't be the name"),
        (json!({"name": "", "dim": 2}), "can't be the name"),
    ] {
        let refused = service.post("/models", &body);
        assert_eq!(refused.status, 422, "{body}: {}", refused.text());
        assert!(refused.text().contains(said), "{body}: {}", refused.text());
    }
    let delete = |path: &str| service.send("DELETE", path.as_bytes(), &[], b"");
    assert_eq!(code(&delete("/model")), is(405, "method_not_allowed"));
    assert_eq!(code(&delete("/models/none")), is(404, "no_such_model"));
    let outcome = json!({"name": "products", "outcome": "deleted"});
    assert_eq!(delete("/models/products").json(), outcome);
    assert_eq!(code(&nearest()), is(404, "no_such_model"));
    let again = service.post("/models", &table);
    assert_eq!(again.status, 201);
    assert_ne!(again.json()["version"], version, "another table");
    drop(service);
    let service = serve(scratch.path(), &[]);
    assert_eq!(service.get("/models").json()["models"].as_array().unwrap().len(), 1);
    // What is deleted is removed beside the answers, or by the next start.
    let deadline = Instant::now() + Duration::from_secs(30);
    loop {
        let names: Vec<_> = std::fs::read_dir(scratch.path()).unwrap().collect();
        if names.len() == 1 {
            break;
        }
        assert!(Instant::now() < deadline, "{names:?}");
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn an_attribute_may_have_the_name_of_an_option() {
    let scratch = tempfile::tempdir().unwrap();
    let service = serve(scratch.path(), &[]);
    let table = json!({"name": "t", "dim": 1, "attributes": {"timeout_ms": "integer"}});
    assert_eq!(service.post("/models", &table).status, 201);
    let rows: Vec<Value> = (0..20_000)
        .map(|n| json!({"key": format!("k{n}"), "vector": [n], "attributes": {"timeout_ms": 1}}))
        .collect();
    assert_eq!(put(&service, &rows)["inserted"], 20_000);
    assert_eq!(service.get("/count?filter=timeout_ms+=+1").json()["count"], 20_000);
}

#[test]
fn only_an_admin_makes_tables_and_models_of_the_settings_are_not_deleted() {
    let (_scratch, folder) = tables(ROWS);
    let frozen = folder.join("t");
    let empty = tempfile::tempdir().unwrap();
    let arguments = ["--model", frozen.to_str().unwrap()];
    let delete = |service: &Service| service.send("DELETE", b"/models/t", &[], b"");
    let table = json!({"name": "x", "dim": 2});
    let service = Service::start(&arguments);
    assert_eq!(code(&service.post("/models", &table)), is(403, "table_refused"));
    drop(service);
    let service = serve(empty.path(), &arguments);
    assert_eq!(code(&delete(&service)), is(403, "table_refused"));
    drop(service);
    let (writer, line) = api_key(&["w", "--write"]);
    let file = empty.path().join(".keys");
    std::fs::write(&file, line).unwrap();
    let keys = ["--api-keys-file", file.to_str().unwrap()];
    let mut service = serve(empty.path(), &keys);
    service.key = Some(writer);
    assert_eq!(code(&service.post("/models", &table)), is(403, "forbidden"));
}

#[test]
fn rows_come_as_json_lines_beside_an_array_too() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let array = |shape: &str, numbers: &[f32]| {
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        let mut head = format!("{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}");
        head.push_str(&" ".repeat(63 - (10 + head.len()) % 64));
        head.push('\n');
        file.extend_from_slice(&(head.len() as u16).to_le_bytes());
        file.extend_from_slice(head.as_bytes());
        file.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        file
    };
    let send = |rows: &str, vectors: &[u8]| {
        let part = |name: &str| {
            format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n").into_bytes()
        };
        let body =
            [&part("rows"), rows.as_bytes(), b"\r\n", &part("vectors"), vectors, b"\r\n--b--\r\n"];
        let declared = [("Content-Type", "multipart/form-data; boundary=b")];
        service.send("POST", b"/rows", &declared, &body.concat())
    };
    let rows = "{\"key\": \"x\", \"attributes\": {\"n\": 5}}\n{\"key\": \"y\"}\n";
    let two = array("(2, 3)", &[1.0, 0.1, 0.0, 0.0, 0.5, 1.0]);
    assert_eq!(done(&send(rows, &two))["inserted"], 2);
    assert_eq!(service.get("/rows/x").json()["vector"], json!([1.0, 0.1, 0.0]));
    assert_eq!(service.get("/rows/x").json()["attributes"], json!({"n": 5}));
    for (rows, vectors, expected) in [
        (rows, array("(1, 3)", &[1.0; 3]), is(422, "invalid_request")),
        (rows, array("(2, 2)", &[1.0; 4]), is(422, "dimension_mismatch")),
        (rows, b"[[1, 2, 3]]".to_vec(), is(400, "not_npy")),
        (rows, array("(2, 3)", &[1.0, f32::NAN, 1.0, 1.0, 1.0, 1.0]), is(422, "bad_rows")),
        ("{\"key\": \"x\", \"vector\": [1, 2, 3]}\n{\"key\": \"y\"}", two, is(422, "bad_rows")),
    ] {
        assert_eq!(code(&send(rows, &vectors)), expected);
    }
    assert_eq!(service.get("/model").json()["position"], 1);
}

#[test]
fn a_fold_is_not_to_be_seen_while_others_read_and_write() {
    let (scratch, folder) = tables(ROWS);
    let service = serve(&folder, &["--fold-changed-ratio", "0"]);
    let many: Vec<Value> = (0..3000_u32)
        .map(|n| marked(&format!("k{n}"), [f64::from(n % 17), f64::from(n % 13), 1.0], 2))
        .collect();
    put(&service, &many);
    done(&service.post("/rows/delete", &json!({"filter": "key IN [a, k5, k6, k7]"})));
    let fold = || service.send("POST", b"/models/t/fold", &[], b"");
    let question = "/nearest?word=k100&k=50&with_vectors=true&with_attributes=true";
    let before = service.get(question).json();
    let rows = service.get("/rows?limit=1000&filter=n+=+2").json();
    let page = service.get("/rows?limit=10").json();
    let folded = done(&fold());
    assert_eq!(folded, json!({"name": "t", "outcome": "folded", "rows": 2999}));
    assert_eq!(service.get(question).json(), before);
    assert_eq!(service.get("/rows?limit=1000&filter=n+=+2").json(), rows);
    assert_eq!(done(&fold())["outcome"], "unchanged");
    // At the same position, the pages of before go on.
    let after = page["next"].as_str().unwrap();
    let next = service.get(&format!("/rows?limit=10&after={after}")).json();
    let first = |page: &Value| page["rows"][0]["row"].as_u64().unwrap();
    assert!(first(&next) > first(&page), "{next}");
    let numbers: Vec<u64> = [&page, &next]
        .iter()
        .flat_map(|page| page["rows"].as_array().unwrap())
        .map(|row| row["row"].as_u64().unwrap())
        .collect();
    assert!(numbers.is_sorted() && numbers.len() == 20, "{numbers:?}");

    // Writers, readers and folds at the same time.
    let stop = AtomicBool::new(false);
    let written = AtomicU64::new(0);
    std::thread::scope(|scope| {
        let until_here = Stops(&stop);
        for writer in 0..2 {
            let (service, stop, written) = (&service, &stop, &written);
            scope.spawn(move || {
                for count in 1_u64.. {
                    if stop.load(Ordering::Relaxed) {
                        return;
                    }
                    let key = format!("w{writer}");
                    put(service, &[row(&key, [1.0, count as f64, 1.0])]);
                    let found = service.get(&format!("/rows/{key}")).json();
                    assert_eq!(found["vector"][1], count as f64, "its own change");
                    written.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for _ in 0..3 {
            let (service, stop, before) = (&service, &stop, &before);
            scope.spawn(move || {
                let mut position = 0;
                while !stop.load(Ordering::Relaxed) {
                    // Rows of the writers are far from these.
                    let filtered = format!("{question}&filter=n+=+2");
                    let answer = service.get(&filtered).json();
                    assert_eq!(answer["neighbors"].as_array().unwrap().len(), 50);
                    let now = answer["position"].as_u64().unwrap();
                    assert!(now >= position);
                    position = now;
                    let known = |answer: &Value| -> Vec<Value> {
                        let neighbors = answer["neighbors"].as_array().unwrap();
                        let of_k = neighbors
                            .iter()
                            .filter(|one| one["word"].as_str().unwrap().starts_with('k'));
                        of_k.take(20).map(|one| json!([one["row"], one["score"]])).collect()
                    };
                    assert_eq!(known(&answer), known(before));
                }
            });
        }
        let mut folds = 0;
        let deadline = Instant::now() + Duration::from_secs(60);
        while folds < 6 {
            assert!(Instant::now() < deadline, "{folds} folds");
            folds += usize::from(done(&fold())["outcome"] == "folded");
        }
        drop(until_here);
    });
    assert!(written.load(Ordering::Relaxed) > 10);
    let all = service.get("/rows?limit=1000&with_vectors=false").json();
    drop(service);
    let again = serve(&folder, &[]);
    assert_eq!(again.get("/rows?limit=1000&with_vectors=false").json(), all);
    let version = again.get("/model").json()["version"].clone();
    assert_eq!(version, before["version"]);
    drop(scratch);
}

#[test]
fn many_changes_are_folded_without_being_asked_for() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    let many: Vec<Value> =
        (0..1500_u32).map(|n| row(&format!("k{n}"), [f64::from(n), 1.0, 1.0])).collect();
    put(&service, &many);
    let deadline = Instant::now() + Duration::from_secs(60);
    let is_folded = || {
        let names = std::fs::read_dir(folder.join("t")).unwrap();
        let is_base = |name: &str| name.starts_with("base-") && !name.ends_with(".new");
        names.flatten().any(|entry| is_base(&entry.file_name().to_string_lossy()))
    };
    while !is_folded() {
        assert!(Instant::now() < deadline, "it is not folded");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(service.get("/model").json()["rows"], 1503);
}

/// The description of the attribute `n`, with its counts.
fn counted(distinct: u64, missing: u64) -> Value {
    json!([{"name": "n", "type": "integer", "distinct": distinct, "missing": missing}])
}

#[test]
fn counts_of_attributes_are_those_of_the_rows_as_they_are_or_absent() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &["--fold-changed-ratio", "0"]);
    let attributes = |path: &str| service.get(path).json()["attributes"].clone();
    let fold = |path: &str| done(&service.send("POST", path.as_bytes(), &[], b""));
    let not_counted = json!([{"name": "n", "type": "integer"}]);
    assert_eq!(attributes("/model"), counted(1, 0));
    put(&service, &[marked("a", [1.0, 0.0, 0.0], 2), row("d", [1.0; 3])]);
    assert_eq!(attributes("/model"), not_counted);
    assert_eq!(service.get("/models").json()["models"][0]["attributes"], not_counted);
    fold("/fold");
    assert_eq!(attributes("/model"), counted(2, 1));
    done(&service.send("DELETE", b"/rows/d", &[], b""));
    assert_eq!(attributes("/model"), not_counted);
    fold("/fold");
    assert_eq!(attributes("/model"), counted(2, 0));

    // Frequent texts are still suggested, without numbers.
    let table = json!({"name": "u", "dim": 1, "attributes": {"brand": "text"}});
    assert!(service.post("/models", &table).status < 300);
    let acme = |key: &str| json!({"key": key, "vector": [1], "attributes": {"brand": "acme"}});
    done(&service.post("/models/u/rows", &json!({"rows": [acme("a"), acme("b")]})));
    assert_eq!(attributes("/models/u/model"), json!([{"name": "brand", "type": "text"}]));
    fold("/models/u/fold");
    let brand = &attributes("/models/u/model")[0];
    assert_eq!(brand["frequent"], json!([{"value": "acme", "rows": 2}]));
    done(&service.post("/models/u/rows", &json!({"rows": [acme("c")]})));
    let brand = &attributes("/models/u/model")[0];
    assert_eq!(brand["frequent"], json!([{"value": "acme"}]));
}

#[test]
fn a_table_that_is_served_takes_its_changes_there_alone() {
    let (_scratch, folder) = tables(ROWS);
    let service = serve(&folder, &[]);
    put(&service, &[row("d", [1.0; 3])]);
    let table = folder.join("t");
    let mut other = kindred(&["rows", "delete"]);
    let refused = other.arg(&table).arg("d").output().unwrap();
    assert!(!refused.status.success());
    assert!(errors(&refused).contains("another process changes"), "{}", errors(&refused));
    let read = kindred(&["rows", "get"]).arg(&table).arg("d").output().unwrap();
    assert!(read.status.success(), "reading is no change");
}
