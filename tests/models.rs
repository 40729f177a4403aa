//! Several models, and models that are replaced while they are asked.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::support::{self, Reply, Service, TINY, kindred, random_vectors, words};
use serde_json::{Value, json};

/// A folder for models, and what makes them there.
struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().unwrap().to_owned()
    }

    /// Prepares these vectors as the model of this name, in place of one that may be there.
    fn prepare(&self, name: &str, vectors: &str) -> PathBuf {
        let input = self.path("vectors.txt");
        std::fs::write(&input, vectors).unwrap();
        let out = self.path(name);
        let mut command = kindred(&["prepare", "--replace"]);
        let output = command.arg(&input).arg("--out").arg(&out).output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        out
    }
}

fn ok(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    reply.json()
}

fn reload(service: &Service) -> Reply {
    service.send("POST", b"/admin/reload", &[], b"")
}

fn version(service: &Service, path: &str) -> String {
    ok(&service.get(path))["version"].as_str().expect("a version").to_owned()
}

const OTHER: &str = "east 0 1\nnorth 1 0\nup 1 2\n";

#[test]
fn each_model_has_its_routes_and_the_first_is_the_default() {
    let folder = Folder::new();
    folder.prepare("tiny", TINY);
    folder.prepare("other", OTHER);
    let named = format!("b c={}", folder.text("other"));
    let service = Service::start(&["--model", &folder.text("tiny"), "--model", &named]);
    assert!(
        service.welcome.contains("It also serves b c (3 rows × 2 dimensions)"),
        "{}",
        service.welcome
    );

    let listed = ok(&service.get("/models"));
    assert_eq!(listed["default"], "tiny");
    let names = |models: &Value| -> Vec<String> {
        let names = models["models"].as_array().unwrap().iter();
        names.map(|model| model["name"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(names(&listed), ["tiny", "b c"]);
    assert_eq!(listed["models"][1], ok(&service.get("/models/b%20c/model")));
    assert_eq!(listed["models"][1], ok(&service.get("/models/b%20c")));
    assert_eq!(listed["models"][0], ok(&service.get("/model")));

    for (path, model, found) in [
        ("/nearest?word=north&k=1", "tiny", "northeast"),
        ("/models/tiny/nearest?word=north&k=1", "tiny", "northeast"),
        ("/models/b%20c/nearest?word=north&k=1", "b c", "up"),
        ("/models/b%20c/analogy?expression=north&k=1", "b c", "up"),
    ] {
        let answer = ok(&service.get(path));
        assert_eq!((&answer["model"], &words(&answer)[..]), (&json!(model), &[found.into()][..]));
        assert_eq!(
            answer["version"],
            ok(&service.get(&format!("/models/{}", model.replace(' ', "%20"))))["version"]
        );
    }
    let body = json!({"words": ["up"], "word": "north"});
    assert_eq!(ok(&service.post("/models/b%20c/rank", &body))["model"], "b c");
    assert_eq!(service.post("/rank", &body).json()["unknown"][0]["word"], "up");
    assert_eq!(ok(&service.get("/models/b%20c/words/up"))["row"], 2);
    assert_eq!(ok(&service.get("/models/b%20c/words?prefix=u"))["words"][0]["word"], "up");

    let unknown = service.get("/models/nothing/nearest?word=north");
    assert_eq!((unknown.status, &unknown.json()["code"]), (404, &json!("no_such_model")));
    assert_eq!(unknown.json()["known"], json!(["tiny", "b c"]));
    assert_eq!(service.get("/models/%ff/nearest").json()["code"], "not_utf8");
    // What belongs to no model is not behind one.
    for path in ["/models/tiny/health/live", "/models/tiny/models", "/models/tiny/nearest/x"] {
        assert_eq!(service.get(path).json()["code"], "no_such_route", "{path}");
    }
    let wrong = service.send("DELETE", b"/models/tiny/nearest", &[], b"");
    assert_eq!((wrong.status, wrong.header("allow")), (405, Some("GET,HEAD,POST")));
}

#[test]
fn two_models_of_one_name_are_refused() {
    let folder = Folder::new();
    folder.prepare("tiny", TINY);
    let again = format!("tiny={}", folder.text("other"));
    let output = kindred(&["serve", "--model", &folder.text("tiny"), "--model", &again]).output();
    let output = output.unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && said.contains("would both have the name `tiny`"),
        "{said}"
    );
}

#[test]
fn a_reload_serves_what_is_new_and_keeps_what_can_not_be_replaced() {
    let folder = Folder::new();
    folder.prepare("m", TINY);
    let settings = folder.path("kindred.toml");
    let several = |names: &[&str]| {
        let models: Vec<String> = names.iter().map(|name| folder.text(name)).collect();
        std::fs::write(&settings, format!("model = {models:?}")).unwrap();
    };
    several(&["m"]);
    let service = Service::start_with_keys(&["--config", settings.to_str().unwrap()]);
    let first = version(&service, "/model");
    let outcomes = |reply: &Reply| -> BTreeMap<String, String> {
        let models = ok(reply)["models"].as_array().unwrap().clone();
        let text = |model: &Value, key: &str| model[key].as_str().unwrap().to_owned();
        models.iter().map(|model| (text(model, "name"), text(model, "outcome"))).collect()
    };
    let expected = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
        pairs.iter().map(|&(name, outcome)| (name.to_owned(), outcome.to_owned())).collect()
    };
    assert_eq!(outcomes(&reload(&service)), expected(&[("m", "unchanged")]));
    // The same words and numbers again are the same version.
    folder.prepare("m", TINY);
    assert_eq!(outcomes(&reload(&service)), expected(&[("m", "unchanged")]));

    folder.prepare("m", OTHER);
    assert_eq!(outcomes(&reload(&service)), expected(&[("m", "loaded")]));
    let second = version(&service, "/nearest?word=up");
    assert_ne!(first, second);

    // Damage that only a checksum finds, a folder that is none, and settings that can't be read.
    let vectors = folder.path("m").join("vectors.safetensors");
    folder.prepare("m", TINY);
    let mut bytes = std::fs::read(&vectors).unwrap();
    let components = bytes.len() - 6 * 8 - 7 * 8 - 6 * 2 * 4;
    bytes[components + 1] ^= 1;
    // As another file: what is served may be mapped.
    std::fs::remove_file(&vectors).unwrap();
    std::fs::write(&vectors, bytes).unwrap();
    let refused = reload(&service);
    assert_eq!((refused.status, &refused.json()["code"]), (422, &json!("reload_failed")));
    let detail = refused.json()["detail"].as_str().unwrap().to_owned();
    assert!(detail.contains("m: ") && detail.contains("vectors.safetensors"), "{detail}");
    std::fs::remove_dir_all(folder.path("m")).unwrap();
    assert!(reload(&service).text().contains("there is no such folder"));
    std::fs::write(&settings, "model = 5 5").unwrap();
    assert!(reload(&service).text().contains("is not TOML"));
    assert_eq!(version(&service, "/nearest?word=up"), second, "the old one is served");
    assert_eq!(service.get("/health/ready").status, 200);

    // One more model, then a failure beside a success, then one less.
    folder.prepare("m", OTHER);
    folder.prepare("n", TINY);
    several(&["m", "n"]);
    assert_eq!(outcomes(&reload(&service)), expected(&[("m", "unchanged"), ("n", "loaded")]));
    folder.prepare("m", TINY);
    several(&["m", "gone"]);
    assert!(reload(&service).text().contains("gone: "));
    assert_eq!(version(&service, "/models/m"), first, "what can be loaded is");
    assert_eq!(
        service.get("/models/n").status,
        200,
        "nothing is taken away while something is missing"
    );
    several(&["m"]);
    assert_eq!(outcomes(&reload(&service)), expected(&[("m", "unchanged"), ("n", "removed")]));
    assert_eq!(service.get("/models/n").status, 404);

    // Other settings need a restart, and the answer says which.
    let others = format!("model = [{:?}]\nqueue_capacity_queries = 77\n", folder.text("m"));
    std::fs::write(&settings, others).unwrap();
    assert_eq!(ok(&reload(&service))["needs_restart"], json!(["queue_capacity_queries"]));
    several(&["m"]);
    assert!(ok(&reload(&service)).get("needs_restart").is_none());
}

#[test]
fn a_model_that_memory_has_no_room_for_is_refused() {
    let folder = Folder::new();
    folder.prepare("m", TINY);
    let service = Service::start_with_keys(&[
        "--model",
        &folder.text("m"),
        "--memory-reserve-mb",
        "1000000000",
    ]);
    let before = version(&service, "/model");
    folder.prepare("m", OTHER);
    let said = reload(&service).text().to_owned();
    assert!(said.contains("memory_reserve_mb keeps 1000000000 MB free"), "{said}");
    assert_eq!(version(&service, "/model"), before);
}

#[test]
fn a_second_reload_is_told_of_the_first() {
    let folder = Folder::new();
    // Large enough that checking it takes a while.
    let vectors = random_vectors((0..60_000).map(|i| format!("w{i}")));
    folder.prepare("m", &vectors);
    let service = Service::start_with_keys(&["--model", &folder.text("m")]);
    folder.prepare("m", &vectors.replacen("w0 ", "W0 ", 1));
    let statuses: BTreeSet<u16> = std::thread::scope(|scope| {
        let asked: Vec<_> = (0..6).map(|_| scope.spawn(|| reload(&service).status)).collect();
        asked.into_iter().map(|one| one.join().unwrap()).collect()
    });
    assert_eq!(statuses, BTreeSet::from([200, 409]));
}

/// Swaps of the model under constant load, by a signal.
const SWAPS: usize = 20;

#[test]
fn no_request_fails_and_no_answer_is_mixed_while_models_are_swapped() {
    let folder = Folder::new();
    // The same words, the other way round, with other numbers.
    let names: Vec<String> = (0..3000).map(|i| format!("word{i}")).collect();
    let one = random_vectors(names.iter().cloned());
    let two = random_vectors(names.iter().rev().cloned());
    folder.prepare("m", &one);
    let service = Service::start_with_keys(&["--model", &folder.text("m")]);
    let ask = |word: &str| service.get(&format!("/nearest?word={word}&k=20"));
    // What each version answers, alone.
    let mut answers: BTreeMap<String, BTreeMap<&str, Value>> = BTreeMap::new();
    let (mut versions, mut tags) = (Vec::new(), BTreeMap::new());
    for vectors in [&two, &one] {
        folder.prepare("m", vectors);
        assert_eq!(reload(&service).status, 200);
        let version = version(&service, "/model");
        let of = names.iter().step_by(97).map(|word| (word.as_str(), ok(&ask(word)))).collect();
        answers.insert(version.clone(), of);
        tags.insert(version.clone(), ask("word0").header("etag").unwrap().to_owned());
        versions.push(version);
    }
    assert!(versions[0] != versions[1] && tags[&versions[0]] != tags[&versions[1]]);

    let (stop, asked) = (AtomicBool::new(false), AtomicUsize::new(0));
    let load = || -> BTreeMap<String, Vec<Duration>> {
        let mut latencies: BTreeMap<String, Vec<Duration>> = BTreeMap::new();
        while !stop.load(Ordering::Relaxed) {
            for word in names.iter().step_by(97) {
                let started = Instant::now();
                let reply = ask(word);
                let took = started.elapsed();
                let answer = ok(&reply);
                let version = answer["version"].as_str().unwrap();
                assert_eq!(answer, answers[version][word.as_str()], "{word}");
                assert_eq!(reply.header("etag").unwrap(), tags[version]);
                latencies.entry(version.to_owned()).or_default().push(took);
                asked.fetch_add(1, Ordering::Relaxed);
            }
        }
        latencies
    };
    let seen: Vec<BTreeMap<String, Vec<Duration>>> = std::thread::scope(|scope| {
        let until_here = support::Stops(&stop);
        let callers: Vec<_> = (0..3).map(|_| scope.spawn(load)).collect();
        for swap in 0..SWAPS {
            folder.prepare("m", if swap % 2 == 0 { &two } else { &one });
            service.signal("HUP");
            let deadline = Instant::now() + Duration::from_secs(60);
            while version(&service, "/model") != versions[swap % 2] {
                assert!(Instant::now() < deadline, "swap {swap} does not happen");
                std::thread::sleep(Duration::from_millis(2));
            }
            let before = asked.load(Ordering::Relaxed);
            while asked.load(Ordering::Relaxed) < before + 50 {
                assert!(Instant::now() < deadline, "nobody is answered after swap {swap}");
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        drop(until_here);
        callers.into_iter().map(|caller| caller.join().unwrap()).collect()
    });
    for caller in seen {
        assert_eq!(caller.keys().collect::<BTreeSet<_>>(), versions.iter().collect());
    }
    // The engines of all versions but the last have ended, and that is no fault: for longer than
    // the process would go on without one.
    std::thread::sleep(Duration::from_millis(1500));
    assert_eq!(service.get("/health/ready").status, 200);
    let table = format!("m.{}.cpu-table", std::env::consts::ARCH);
    assert!(!Path::new(&folder.path(&table)).exists(), "small tables are not kept");
}

/// Threads that the process has by now, by their names' beginnings.
#[cfg(target_os = "linux")]
fn threads(service: &Service, name: &str) -> usize {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", service.child.id())).unwrap();
    let names = tasks.flatten().map(|task| std::fs::read_to_string(task.path().join("comm")));
    names.flatten().filter(|found| found.trim() == name).count()
}

#[cfg(target_os = "linux")]
#[test]
fn what_was_replaced_goes_when_nobody_speaks_to_it_any_more() {
    let folder = Folder::new();
    folder.prepare("m", TINY);
    let service = Service::start_with_keys(&["--model", &folder.text("m")]);
    let mut idle = service.connect();
    std::io::Write::write_all(
        &mut idle,
        format!(
            "GET /nearest?word=east HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {}\r\n\r\n",
            service.key.as_ref().unwrap()
        )
        .as_bytes(),
    )
    .unwrap();
    assert_eq!(support::read_reply(&mut idle).status, 200);
    for vectors in [OTHER, TINY, OTHER] {
        folder.prepare("m", vectors);
        assert_eq!(reload(&service).status, 200);
    }
    // The connection that asked the first model is still open, and idle.
    let deadline = Instant::now() + Duration::from_secs(20);
    while threads(&service, "kindred-engine") > 1 {
        assert!(Instant::now() < deadline, "{} engines", threads(&service, "kindred-engine"));
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn keys_are_read_again_also_if_models_can_not_be_loaded() {
    let folder = Folder::new();
    folder.prepare("m", TINY);
    let (old, old_line) = support::api_key(&["a"]);
    let (new, new_line) = support::api_key(&["b"]);
    let keys = folder.path("keys");
    std::fs::write(&keys, &old_line).unwrap();
    let keys_file = keys.to_str().unwrap();
    let mut service = Service::start(&["--model", &folder.text("m"), "--api-keys-file", keys_file]);
    let status_with = |service: &mut Service, key: &str| {
        service.key = Some(key.to_owned());
        service.get("/nearest?word=east").status
    };
    assert_eq!((status_with(&mut service, &old), status_with(&mut service, &new)), (200, 401));
    // A key that is taken back goes, also if nothing else can be loaded.
    std::fs::write(&keys, &new_line).unwrap();
    std::fs::remove_dir_all(folder.path("m")).unwrap();
    service.signal("HUP");
    let deadline = Instant::now() + Duration::from_secs(30);
    while status_with(&mut service, &old) != 401 {
        assert!(Instant::now() < deadline, "the old key is in force");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(status_with(&mut service, &new), 200);
}
