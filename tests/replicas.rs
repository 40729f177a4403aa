//! Three replicas of an engine (the example `faulty`): one fails, hangs or is replaced under load,
//! and no request notices.

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::supervision::{ASK, Faulty, assert_right, before_swap, code, start};
use crate::support::{Reply, Service, Stops};

/// What was seen while clients asked.
#[derive(Default)]
struct Seen {
    answers: Vec<Reply>,
    /// How many replicas worked, and of how many, in each check of readiness.
    working: Vec<(u64, u64)>,
}

fn replicas(reply: &Reply) -> (u64, u64) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let of = |key: &str| reply.json()["models"][0][key].as_u64().expect("a number");
    (of("replicas_working"), of("replicas"))
}

/// Asks from eight connections, and checks readiness, while `work` runs.
fn under_load<T>(service: &Service, work: impl FnOnce(&Mutex<Seen>) -> T) -> (T, Seen) {
    let (stop, seen) = (AtomicBool::new(false), Mutex::new(Seen::default()));
    let result = std::thread::scope(|scope| {
        let _stops = Stops(&stop);
        for _ in 0..8 {
            scope.spawn(|| {
                while !stop.load(Ordering::Relaxed) {
                    let reply = service.get(ASK);
                    seen.lock().unwrap().answers.push(reply);
                }
            });
        }
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                let found = replicas(&service.get("/health/ready"));
                seen.lock().unwrap().working.push(found);
                std::thread::sleep(Duration::from_millis(10));
            }
        });
        work(&seen)
    });
    (result, seen.into_inner().unwrap())
}

/// The value of a metric, with its labels.
fn metric(service: &Service, name: &str) -> f64 {
    let text = service.get("/metrics").text().to_owned();
    let line = text.lines().find(|line| line.starts_with(name)).unwrap_or_else(|| panic!("{text}"));
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

fn wait_until(what: &str, is_so: impl Fn() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !is_so() {
        assert!(Instant::now() < deadline, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn one_of_three_replicas_fails_panics_or_hangs_under_load_and_no_request_notices() {
    for how in ["error", "panic", "hang"] {
        let fault = format!("1:100={how}");
        // The first two attempts to make the engine again fail, so that it is away for a while.
        let arguments =
            ["--replicas", "3", "--fail-replica", &fault, "--fail-start", "4=error,5=panic"];
        let arguments = [&arguments[..], &["--hang-milliseconds", "1500"]].concat();
        let faulty = start(&arguments, &[("KINDRED_ENGINE_HANG_TIMEOUT_MS", "500")]);
        let service = &faulty.service;
        assert_eq!(replicas(&service.get("/health/ready")), (3, 3));
        let ((), seen) = under_load(service, |seen| {
            wait_until("one is away", || seen.lock().unwrap().working.contains(&(2, 3)));
            let back = || seen.lock().unwrap().working.last() == Some(&(3, 3));
            wait_until("it is back", back);
        });
        assert!(seen.answers.len() > 100, "{how}: {}", seen.answers.len());
        seen.answers.iter().for_each(assert_right);
        assert!(seen.working.iter().all(|&(working, of)| working >= 2 && of == 3), "{how}");
        let count = |name: &str| metric(service, name);
        assert!(count("kindred_jobs_asked_again_total{") >= 1.0, "{how}");
        assert_eq!(count("kindred_jobs_failed_total{"), 0.0, "{how}");
        assert_eq!(count("kindred_engine_restarts_total{"), 1.0, "{how}");
        assert_eq!(count("kindred_replicas{model=\"tiny\",state=\"working\"}"), 3.0, "{how}");
        assert_eq!(count("kindred_replicas{model=\"tiny\",state=\"hanging\"}"), 0.0, "{how}");
    }
}

#[test]
fn one_that_hangs_for_good_is_counted_and_the_service_goes_on() {
    let arguments = ["--replicas", "2", "--fail-replica", "0:10=hang"];
    let faulty = start(&arguments, &[("KINDRED_ENGINE_HANG_TIMEOUT_MS", "300")]);
    let ((), seen) = under_load(&faulty.service, |seen| {
        wait_until("one hangs", || seen.lock().unwrap().working.last() == Some(&(1, 2)));
        // Longer than the process would go on without an engine.
        std::thread::sleep(Duration::from_millis(1500));
    });
    seen.answers.iter().for_each(assert_right);
    let hanging = metric(&faulty.service, "kindred_replicas{model=\"tiny\",state=\"hanging\"}");
    assert_eq!(hanging, 1.0);
}

/// Only as many engines fit as there are replicas.
fn rolling(replicas: &str, more: &[&str]) -> Faulty {
    let arguments = ["--replicas", replicas, "--most-engines", replicas];
    let settings = [("KINDRED_ENGINE_HANG_TIMEOUT_MS", "20000"), ("KINDRED_HTTP_THREADS", "4")];
    before_swap(&[&arguments[..], more].concat(), &settings)
}

/// Each answer is right for the version that it names.
fn assert_of_one_version(reply: &Reply, old: &str) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let is_old = reply.json()["version"] == old;
    let expected = if is_old { ["northeast", "east"] } else { ["up", "east"] };
    assert_eq!(reply.words(), expected, "{}", reply.text());
}

#[test]
fn a_version_that_does_not_fit_beside_the_old_one_takes_one_device_after_another() {
    for number in [2, 3] {
        let faulty = rolling(&number.to_string(), &[]);
        let service = &faulty.service;
        let old = service.get(ASK).json()["version"].as_str().unwrap().to_owned();
        let started = Instant::now();
        let (reloaded, seen) =
            under_load(service, |_| service.send("POST", b"/admin/reload", &[], b""));
        assert_eq!(reloaded.status, 200, "{}", reloaded.text());
        // It waits for requests to the old version, but not for itself.
        assert!(started.elapsed() < Duration::from_secs(15), "{:?}", started.elapsed());
        seen.answers.iter().for_each(|reply| assert_of_one_version(reply, &old));
        assert_ne!(service.get(ASK).json()["version"], old);
        wait_until("all work", || replicas(&service.get("/health/ready")) == (number, number));
        // And back again: nothing of the first swap is left in the way.
        let vectors = faulty.scratch.path().join("third.txt");
        std::fs::write(&vectors, "east 0 1\nnorth 1 0\nup 1 3\n").unwrap();
        let mut prepare = crate::support::kindred(&["prepare", "--replace"]);
        prepare.arg(&vectors).arg("--out").arg(faulty.scratch.path().join("tiny"));
        assert!(prepare.output().unwrap().status.success());
        let reloaded = service.send("POST", b"/admin/reload", &[], b"");
        assert_eq!(reloaded.status, 200, "{}", reloaded.text());
    }
}

#[test]
fn a_new_version_of_which_one_replica_does_not_start_leaves_the_old_one_with_all_replicas() {
    // Attempts 1 to 3 start the service, 4 to 6 fail for lack of memory; then one device after
    // another is taken.
    for (fails, said) in [("7=error", "replica 1 of 3"), ("8=panic", "replica 2 of 3")] {
        let faulty = rolling("3", &["--fail-start", fails]);
        let service = &faulty.service;
        let old = service.get(ASK).json()["version"].as_str().unwrap().to_owned();
        let began = Instant::now();
        let (refused, seen) =
            under_load(service, |_| service.send("POST", b"/admin/reload", &[], b""));
        assert!(
            began.elapsed() < Duration::from_secs(10),
            "the reload does not wait for replicas whose turn never comes"
        );
        assert_eq!(code(&refused), (422, "reload_failed".to_owned()), "{fails}");
        assert!(refused.text().contains(said), "{fails}: {}", refused.text());
        seen.answers.iter().for_each(|reply| assert_of_one_version(reply, &old));
        assert_right(&service.get(ASK));
        wait_until("all work", || replicas(&service.get("/health/ready")) == (3, 3));
        let reloaded = service.send("POST", b"/admin/reload", &[], b"");
        assert_eq!(reloaded.status, 200, "{fails}: {}", reloaded.text());
        assert_eq!(service.get(ASK).words(), ["up", "east"]);
    }
}

#[test]
fn with_one_replica_a_version_that_does_not_fit_is_refused() {
    let faulty = rolling("1", &[]);
    let refused = faulty.service.send("POST", b"/admin/reload", &[], b"");
    assert_eq!(code(&refused), (422, "reload_failed".to_owned()));
    assert!(refused.text().contains("does not fit"), "{}", refused.text());
    assert_right(&faulty.service.get(ASK));
}
