//! What is served is verified: a damaged model does not start, or is not ready soon after the
//! start.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::support::{Service, TINY, errors, kindred, prepared};
use contract::Metric;
use kindred::heads::{
    Cut, ExpanderDescription, ExpanderWeights, MadeFor, TermsFrom, Tokeniser, Tokens,
    write_expander,
};
use model_store::ModelStore;
use serde_json::json;

/// The service with this model, and the file of its log.
fn serve(arguments: &[&str]) -> (tempfile::NamedTempFile, Service) {
    let log = tempfile::NamedTempFile::new().unwrap();
    let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--device", "cpu"]);
    command.args(arguments).stderr(Stdio::from(log.reopen().unwrap()));
    (log, Service::spawn(command))
}

/// Waits until the log has this.
fn wait_for(log: &tempfile::NamedTempFile, text: &str) {
    let deadline = Instant::now() + Duration::from_secs(60);
    while !fs::read_to_string(log.path()).unwrap().contains(text) {
        let said = fs::read_to_string(log.path()).unwrap();
        assert!(Instant::now() < deadline, "{text} is not logged: {said}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Flips a bit of a file, as another file: the old one may be mapped.
fn flip(path: &Path, byte: usize, bit: u8) {
    let mut bytes = fs::read(path).unwrap();
    bytes[byte] ^= 1 << bit;
    fs::remove_file(path).unwrap();
    fs::write(path, bytes).unwrap();
}

fn damaged_files(service: &Service, model: &str) -> f64 {
    let metrics = service.get("/metrics");
    let name = format!("kindred_model_damaged_files{{model=\"{model}\"}} ");
    let value = metrics.text().lines().find_map(|line| line.strip_prefix(&name));
    value.expect("the metric is there").parse().unwrap()
}

#[test]
fn a_model_with_a_flipped_bit_is_not_ready_until_it_is_loaded_anew() {
    // From the end: 7 offsets of words, 6 norms, 6 rows of 2 components.
    let length =
        |folder: &Path| fs::metadata(folder.join("vectors.safetensors")).unwrap().len() as usize;
    let (offsets, norms, rows) = (7 * 8, 6 * 8, 6 * 2 * 4);
    let (scratch, whole) = prepared(TINY);
    let norm = length(&whole) - offsets - norms;
    for (name, byte) in [
        ("vectors.safetensors", norm),
        ("vectors.safetensors", norm + 8),
        ("vectors.safetensors", norm - rows + 1),
        ("words.txt", 0),
    ] {
        let folder = scratch.path().join("m");
        let copy = || {
            fs::create_dir_all(&folder).unwrap();
            for file in fs::read_dir(&whole).unwrap() {
                let file = file.unwrap();
                let _ = fs::remove_file(folder.join(file.file_name()));
                fs::copy(file.path(), folder.join(file.file_name())).unwrap();
            }
        };
        copy();
        flip(&folder.join(name), byte, 0);
        let (log, mut service) = serve(&["--model", folder.to_str().unwrap()]);
        wait_for(&log, "damaged");
        let said = fs::read_to_string(log.path()).unwrap();
        let line = said.lines().find(|line| line.contains("damaged")).unwrap();
        assert!(line.contains("ERROR") && line.contains(name), "{line}");
        assert!(line.contains("copy the model folder again"), "{line}");
        assert!(!said.contains("verified the model"), "{said}");
        let reply = service.get("/health/ready");
        assert_eq!((reply.status, &reply.json()["code"]), (503, &json!("not_ready")));
        let detail = reply.json()["detail"].as_str().unwrap().to_owned();
        assert!(detail.contains("the model `m`: its files are damaged"), "{detail}");
        assert_eq!(damaged_files(&service, "m"), 1.0);
        assert!(service.get("/metrics").text().contains("\nkindred_ready 0"));
        assert_eq!(service.get("/nearest?word=north").status, 200, "it still answers");

        // A reload of what is still damaged does not help; of a whole copy, it does.
        service.signal("HUP");
        wait_for(&log, "the reload failed");
        assert_eq!(service.get("/health/ready").status, 503);
        copy();
        service.signal("HUP");
        wait_for(&log, "outcome=\"loaded\"");
        assert_eq!(service.get("/health/ready").status, 200);
        assert_eq!(damaged_files(&service, "m"), 0.0);
        service.signal("TERM");
        assert_eq!(service.exit_code(), Some(0));
    }
}

#[test]
fn damage_that_opening_finds_stops_the_start() {
    let (_scratch, folder) = prepared(TINY);
    for (name, byte) in [("vectors.safetensors", 100), ("words.fst", 20)] {
        flip(&folder.join(name), byte, 2);
        let serve = ["serve", "--listen", "127.0.0.1:0", "--model", folder.to_str().unwrap()];
        let output = kindred(&serve).output().unwrap();
        assert!(output.status.code() == Some(1) && errors(&output).contains(name), "{output:?}");
        flip(&folder.join(name), byte, 2);
    }
    let (log, service) = serve(&["--model", folder.to_str().unwrap()]);
    wait_for(&log, "verified the model: every checksum matches model=\"tiny\"");
    assert_eq!((service.get("/health/ready").status, damaged_files(&service, "tiny")), (200, 0.0));
}

/// A head that takes its terms from a folder beside it.
fn head_of_folder(scratch: &Path, model: &Path) -> (PathBuf, PathBuf) {
    let (head, terms) = (scratch.join("head"), scratch.join("terms"));
    let input = scratch.join("terms.txt");
    fs::write(&input, "x 1 0\ny 0 2\nz 1 1\n").unwrap();
    let arguments = ["prepare", input.to_str().unwrap(), "--metric", Metric::Dot.name()];
    let output = kindred(&arguments).arg("--out").arg(&terms).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let model = Arc::new(ModelStore::open(model).unwrap());
    let tokens =
        Tokens { tokeniser: Tokeniser::Words, lower_case: true, limit: 512, cut: Cut::End };
    let from = MadeFor::of(&ModelStore::open(&terms).unwrap());
    let description = ExpanderDescription {
        terms: TermsFrom::Folder { path: "../terms".into(), model: from },
        ..ExpanderDescription::of_model(&model, tokens)
    };
    let weights = ExpanderWeights { biases: Some(vec![0.5, 0.25, 0.0]), ..Default::default() };
    write_expander(&head, false, &description, &weights, &model).unwrap();
    (head, terms)
}

#[test]
fn every_file_of_a_head_is_verified() {
    let (scratch, model) = prepared(TINY);
    let (head, terms) = head_of_folder(scratch.path(), &model);
    let [model, head_text] = [&model, &head].map(|path| path.to_str().unwrap());
    let verify = || kindred(&["verify", model, "--head", head_text]).output().unwrap();
    assert!(verify().status.success(), "{}", errors(&verify()));

    let json = fs::read_to_string(head.join("head.json")).unwrap();
    let setting = json.find("\"limit\": 512").unwrap() + "\"limit\": 51".len();
    let last = fs::metadata(head.join("weights.safetensors")).unwrap().len() as usize - 1;
    for (name, byte) in [("head.json", setting), ("weights.safetensors", last)] {
        flip(&head.join(name), byte, 0);
        let serve = ["serve", "--listen", "127.0.0.1:0", "--model", model, "--head", head_text];
        for output in [verify(), kindred(&serve).output().unwrap()] {
            let said = errors(&output);
            assert!(output.status.code() == Some(1) && said.contains(name), "{output:?}");
            assert!(said.contains("its checksum is") && said.contains("copy the head"), "{said}");
        }
        flip(&head.join(name), byte, 0);
    }

    // What opening a head does not read.
    let vectors = terms.join("vectors.safetensors");
    let norm = fs::metadata(&vectors).unwrap().len() as usize - 4 * 8 - 3 * 8;
    flip(&vectors, norm, 3);
    assert!(errors(&verify()).contains("terms/vectors.safetensors is damaged"), "{:?}", verify());
    let (log, service) = serve(&["--model", model, "--head", head_text]);
    wait_for(&log, "terms/vectors.safetensors is damaged");
    assert_eq!((service.get("/health/ready").status, damaged_files(&service, "tiny")), (503, 1.0));
    service.signal("HUP");
    wait_for(&log, "the reload failed");
    flip(&vectors, norm, 3);
    service.signal("HUP");
    wait_for(&log, "outcome=\"loaded\"");
    assert_eq!((service.get("/health/ready").status, damaged_files(&service, "tiny")), (200, 0.0));
    // Damage that comes later is found by the next reload, although the model is the same.
    flip(&vectors, norm, 3);
    service.signal("HUP");
    let deadline = Instant::now() + Duration::from_secs(30);
    while fs::read_to_string(log.path()).unwrap().matches("the reload failed").count() < 2 {
        assert!(Instant::now() < deadline, "the reload does not fail");
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!(service.get("/health/ready").status, 200, "what is served is whole");
}

#[test]
fn labels_that_were_swapped_are_found_and_old_heads_are_named() {
    let scratch = tempfile::tempdir().unwrap();
    let head = scratch.path().join("head");
    let cache = crate::support::cache();
    let made = kindred(&["train", "expander", "--out", head.to_str().unwrap()])
        .arg("--cache-dir")
        .arg(&cache)
        .output()
        .unwrap();
    assert!(made.status.success(), "{made:?}");
    let path = head.join("head.json");
    let json = fs::read_to_string(&path).unwrap();
    let expand = || {
        let arguments = ["expand", "frog", "--head", head.to_str().unwrap(), "--json"];
        kindred(&arguments).arg("--cache-dir").arg(&cache).output().unwrap()
    };
    assert!(expand().status.success(), "{:?}", expand());
    fs::write(&path, json.replace("\"log1p\": true", "\"log1p\": false")).unwrap();
    let said = errors(&expand());
    assert!(said.contains("head.json is damaged: its checksum is"), "{said}");
    // As earlier versions wrote it.
    let mut old: serde_json::Value = serde_json::from_str(&json).unwrap();
    let checksum = old.as_object_mut().unwrap().remove("checksum").expect("it has one");
    fs::write(&path, old.to_string()).unwrap();
    assert!(expand().status.success(), "{:?}", expand());
    let mut cached = fs::read_dir(&cache).unwrap().flatten();
    let is_demo = |entry: &fs::DirEntry| entry.file_name().to_string_lossy().starts_with("demo-");
    let demo = cached.find(is_demo).expect("the built-in model").path();
    let verified = kindred(&["verify"]).arg(demo).arg("--head").arg(&head).output().unwrap();
    let said = String::from_utf8(verified.stdout).unwrap();
    assert!(verified.status.success() && said.contains("has none of its own"), "{said}");
    assert!(said.contains(&format!("add \"checksum\": {checksum}")), "{said}");
}

#[test]
fn a_stop_or_a_reload_does_not_wait_for_the_verification() {
    let scratch = tempfile::tempdir().unwrap();
    let model = scratch.path().join("m");
    let synth = |seed: &str| {
        let size = ["synth", "--rows", "150000", "--dim", "100", "--seed", seed, "--replace"];
        let output = kindred(&size).arg("--out").arg(&model).output().unwrap();
        assert!(output.status.success(), "{output:?}");
    };
    synth("1");
    let (_log, mut service) = serve(&["--model", model.to_str().unwrap()]);
    service.signal("TERM");
    let stopping = Instant::now();
    assert_eq!(service.exit_code(), Some(0));
    assert!(stopping.elapsed() < Duration::from_secs(10), "{:?}", stopping.elapsed());

    let (log, service) = serve(&["--model", model.to_str().unwrap()]);
    let before = service.get("/model").json()["version"].clone();
    synth("2");
    service.signal("HUP");
    wait_for(&log, "outcome=\"loaded\"");
    assert_ne!(service.get("/model").json()["version"], before);
    assert_eq!((service.get("/health/ready").status, damaged_files(&service, "m")), (200, 0.0));
}

#[test]
fn a_command_that_writes_or_measures_refuses_a_damaged_model() {
    let (scratch, model) = prepared(TINY);
    let vectors = model.join("vectors.safetensors");
    let length = fs::metadata(&vectors).unwrap().len() as usize;
    let path = |name: &str| scratch.path().join(name).to_str().unwrap().to_owned();
    fs::write(path("words.txt"), "east\nnorth\n").unwrap();
    let texts: String = (0..20).map(|n| format!("{}\teast north\n", n % 2)).collect();
    fs::write(path("texts.tsv"), texts).unwrap();
    fs::write(path("pairs.tsv"), "east\tnorth\t9\neast\tEast\t10\n").unwrap();
    let commands = |out: &str| {
        let (words, texts, pairs) = (path("words.txt"), path("texts.tsv"), path("pairs.tsv"));
        let vectors = format!("{out}.vec");
        [
            vec!["bulk", "nearest", "--in", &words, "--out", &format!("{out}.jsonl"), "--model"],
            vec!["graph", "-k", "2", "--out", &format!("{out}.npz"), "--model"],
            vec!["export", "--format", "word2vec", "--out", &vectors],
            vec![
                "train",
                "classifier",
                "--data",
                &texts,
                "--out",
                &format!("{out}.head"),
                "--model",
            ],
            vec!["eval", "--similarities", &pairs, "--"],
        ]
        .map(|command| command.into_iter().map(str::to_owned).collect::<Vec<_>>())
    };
    let run = |arguments: &[String]| {
        let mut command = kindred(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
        command.arg(&model).output().unwrap()
    };
    for command in commands(&path("whole")) {
        let done = run(&command);
        assert!(done.status.success(), "{command:?}: {}", errors(&done));
    }
    // A norm: nothing but its checksum shows it.
    flip(&vectors, length - 7 * 8 - 6 * 8, 0);
    for command in commands(&path("damaged")) {
        let refused = run(&command);
        assert!(!refused.status.success(), "{command:?}");
        let said = errors(&refused);
        assert!(said.contains("the checksum of its norms"), "{command:?}: {said}");
        assert!(said.contains("again with a whole model"), "{command:?}: {said}");
        assert!(refused.stdout.is_empty(), "{command:?}");
    }
    assert!(!Path::new(&path("damaged.head")).exists());
}
