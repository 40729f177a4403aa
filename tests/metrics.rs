//! `GET /metrics`: that what was done is what is counted.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::time::{Duration, Instant};

use crate::support::{self, Service, TINY, prepared, read_reply};
use serde_json::json;

const GUIDE: &str = include_str!("../docs/operating.md");

/// Samples by name and labels, as they are written.
struct Metrics(BTreeMap<String, f64>);

impl Metrics {
    fn of(service: &Service) -> Self {
        let reply = service.get("/metrics");
        assert_eq!(reply.status, 200);
        assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
        let samples = reply.text().lines().filter(|line| !line.starts_with('#')).map(|line| {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            (name.to_owned(), value.parse().expect("a number"))
        });
        Self(samples.collect())
    }

    /// Nothing that is not there was ever counted.
    fn get(&self, name: &str) -> f64 {
        self.0.get(name).copied().unwrap_or(0.0)
    }

    /// Names without labels.
    fn names(&self) -> BTreeSet<&str> {
        self.0.keys().map(|name| name.split('{').next().unwrap()).collect()
    }

    fn sum(&self, name: &str) -> f64 {
        let of_name = self.0.iter().filter(|(found, _)| found.split('{').next() == Some(name));
        of_name.map(|(_, value)| value).sum()
    }
}

/// Waits for what comes a moment after an answer or the end of a connection.
fn eventually(service: &Service, name: &str, value: f64) {
    let deadline = Instant::now() + Duration::from_secs(20);
    let mut found = f64::NAN;
    while Instant::now() < deadline {
        found = Metrics::of(service).get(name);
        if found == value {
            return;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    panic!("{name} is {found}, not {value}");
}

fn tiny(arguments: &[&str]) -> (tempfile::TempDir, Service) {
    let (scratch, model) = prepared(TINY);
    let model = ["--model", model.to_str().unwrap(), "--device", "cpu"];
    let service = Service::start(&[&model, arguments].concat());
    (scratch, service)
}

#[test]
fn each_request_is_counted_once_under_its_route_method_and_status() {
    let (_place, service) = tiny(&[]);
    let mut bytes = 0;
    let mut count = |reply: support::Reply| bytes += reply.body.len();
    for _ in 0..3 {
        count(service.get("/nearest?word=east"));
    }
    count(service.get("/nearest?word=nowhere"));
    count(service.get("/nearest?word=east&k=0"));
    count(service.get("/analogy?expression=east+%2B+north"));
    let queries = json!({"queries": [{"word": "east"}, {"word": "north"}, {"word": "nowhere"}]});
    count(service.post("/nearest", &queries));
    count(service.post("/rank", &json!({"words": ["east"], "word": "north"})));
    count(service.get("/words/east"));
    count(service.get("/words/north"));
    count(service.get("/made/up"));
    count(service.get("/made-up?as=well"));
    count(service.send("BREW", b"/nearest", &[], b""));
    count(service.send("DELETE", b"/nearest", &[], b""));
    service.send("HEAD", b"/nearest?word=east", &[], b"");

    let metrics = Metrics::of(&service);
    let requests = |route: &str, method: &str, status: &str| {
        let labels = format!(r#"{{route="{route}",method="{method}",status="{status}"}}"#);
        metrics.get(&format!("kindred_requests_total{labels}"))
    };
    assert_eq!(requests("/nearest", "GET", "200"), 3.0);
    assert_eq!(requests("/nearest", "GET", "404"), 1.0);
    assert_eq!(requests("/nearest", "GET", "422"), 1.0);
    assert_eq!(requests("/nearest", "POST", "200"), 1.0);
    assert_eq!(requests("/nearest", "HEAD", "200"), 1.0);
    assert_eq!(requests("/nearest", "DELETE", "405"), 1.0);
    assert_eq!(requests("/nearest", "other", "405"), 1.0);
    assert_eq!(requests("/analogy", "GET", "200"), 1.0);
    assert_eq!(requests("/rank", "POST", "200"), 1.0);
    assert_eq!(requests("/words/{word}", "GET", "200"), 2.0);
    assert_eq!(requests("other", "GET", "404"), 2.0);
    assert_eq!(metrics.sum("kindred_requests_total"), 15.0, "and no other");

    // The scrape itself is still in work.
    assert_eq!(metrics.get("kindred_requests_in_flight"), 1.0);
    assert_eq!(metrics.get("kindred_requests_abandoned_total"), 0.0);
    assert_eq!(metrics.get("kindred_response_bytes_total"), bytes as f64);
    assert_eq!(metrics.sum("kindred_request_seconds_count"), 15.0);
    // Six searches and one rank took passes.
    assert_eq!(metrics.get("kindred_request_engine_seconds_count"), 7.0);
    assert_eq!(metrics.get("kindred_request_queue_seconds_count"), 7.0);
    assert_eq!(metrics.get("kindred_request_encode_seconds_count"), 7.0);
    let seconds = |stage: &str| metrics.sum(&format!("kindred_request_{stage}seconds_sum"));
    let stages = seconds("queue_") + seconds("engine_") + seconds("encode_");
    assert!(stages > 0.0 && stages <= seconds(""), "{stages} of {}", seconds(""));

    // Five single searches, one of two queries, and the questions of readiness checks.
    let label = r#"{model="tiny",lane="search"}"#;
    let queries = metrics.get(&format!("kindred_pass_queries_total{label}"));
    assert!((7.0..=9.0).contains(&queries), "{queries}");
    let full = r#"{model="tiny",lane="full_pass"}"#;
    assert_eq!(metrics.get(&format!("kindred_passes_total{full}")), 1.0);
    let model = r#"{model="tiny"}"#;
    assert_eq!(metrics.sum("kindred_batch_queries_sum"), queries + 1.0);
    assert_eq!(metrics.sum("kindred_batch_queries_count"), metrics.sum("kindred_passes_total"));
    // The engine counts the two questions of its self-check as well.
    assert_eq!(metrics.get(&format!("kindred_full_pass_queries_total{model}")), 3.0);
    assert_eq!(metrics.get(&format!("kindred_model_rows{model}")), 6.0);
    assert_eq!(metrics.get(&format!("kindred_model_dimensions{model}")), 2.0);
    assert_eq!(metrics.get(&format!("kindred_model_bytes{model}")), 6.0 * (2.0 * 4.0 + 8.0));
    assert_eq!(metrics.get("kindred_ready"), 1.0);
}

#[test]
fn what_requests_are_estimated_to_take_is_counted() {
    let (_place, service) = tiny(&[]);
    let search = "kindred_search_work_queries_total{model=\"tiny\"}";
    let full_pass = "kindred_full_pass_work_components_total{model=\"tiny\"}";
    let stages = "kindred_stage_work_seconds_total";
    let counted = |pool: &str| format!("kindred_memory_counted_bytes_total{{pool=\"{pool}\"}}");
    let before = Metrics::of(&service);
    // A body that is counted, and an answer that is not.
    let long = "x".repeat(10_000);
    let queries = json!({"queries": [{"word": "east"}, {"word": "north"}, {"word": long}]});
    service.post("/nearest", &queries);
    service.post("/rank", &json!({"words": ["east"], "word": "north"}));
    let after = Metrics::of(&service);
    let more = |name: &str| after.get(name) - before.get(name);
    assert!((2.0..=4.0).contains(&more(search)), "{}", more(search));
    assert_eq!(more(full_pass), 128.0 + 10.0 + 4.0 + 30.0);
    // 4 ns a byte of the body, as the first part of it.
    assert!((0.000_04..0.1).contains(&more(stages)), "{}", more(stages));
    // The body, and the search for words that resemble the unknown one.
    let requests = more(&counted("requests"));
    assert!((60e3..4e6).contains(&requests), "{requests}");
    for pool in ["requests", "answers"] {
        let of = |name: &str| after.get(&format!("kindred_memory_{name}bytes{{pool=\"{pool}\"}}"));
        assert_eq!(of("capacity_"), 1024e6);
        assert_eq!(of(""), 0.0, "{pool}");
    }
}

/// An answer that was expected to be small may repeat words of the request, which are long.
#[test]
fn answers_are_counted_with_the_words_that_they_repeat() {
    let (_place, service) = tiny(&[]);
    let answers =
        || Metrics::of(&service).get("kindred_memory_counted_bytes_total{pool=\"answers\"}");
    let long: Vec<String> = (0..40).map(|number| format!("{number}x").repeat(3000)).collect();
    let words = [&["east", "north", "west"].map(str::to_owned), &long[..]].concat();
    let text = words.join(" ");
    for (route, body) in [
        ("/nearest", json!({"text": text})),
        ("/nearest", json!({"queries": [{"text": text}, {"word": "east"}]})),
        ("/rank", json!({"words": words, "word": "north", "unknown": "skip"})),
        ("/odd-one-out", json!({"words": words, "unknown": "skip"})),
    ] {
        let before = answers();
        let reply = service.post(route, &body);
        assert_eq!(reply.status, 200, "{route}: {}", reply.text());
        let (length, counted) = (reply.text().len() as f64, answers() - before);
        assert!(length > 100e3, "{route}: {length}");
        assert!((length..4.0 * length).contains(&counted), "{route}: {length}, {counted}");
    }
}

#[test]
fn clients_can_not_make_up_series() {
    let (_place, service) = tiny(&[]);
    let series = || Metrics::of(&service).0.len();
    let ask = |number: usize| {
        service.get(&format!("/made-up-{number}?x={number}"));
        service.get(&format!("/words/made-up-{number}"));
        service.get(&format!("/nearest?word=made-up-{number}"));
        service.send(&format!("MADE{number}"), b"/", &[], b"");
        service.send("GET", b"/", &[("User-Agent", &format!("made-up-{number}"))], b"");
    };
    ask(0);
    // One scrape is counted in the next.
    series();
    let before = series();
    (1..40).for_each(ask);
    assert_eq!(series(), before);
}

#[test]
fn jobs_that_got_no_answer_are_counted_by_their_reason() {
    let model = r#"{model="demo"}"#;
    let many = json!({"queries": vec![json!({"word": "king", "k": 60}); 1024]});
    let cache = concat!(env!("CARGO_TARGET_TMPDIR"), "/cache");
    let full =
        Service::start(&["--cache-dir", cache, "--threads", "1", "--queue-capacity-queries", "1"]);
    let capacity = Metrics::of(&full).get(&format!("kindred_queue_capacity_queries{model}"));
    assert_eq!(capacity, 1.0);
    let refused = std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let replies = (0..5).map(|_| full.post("/nearest", &many).status);
                    replies.filter(|&status| status == 429).count()
                })
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).sum::<usize>()
    });
    assert!(refused > 0, "of four at once, one is let in");
    let metrics = Metrics::of(&full);
    assert_eq!(metrics.get(&format!("kindred_jobs_refused_total{model}")), refused as f64);
    let status = r#"{route="/nearest",method="POST",status="429"}"#;
    assert_eq!(metrics.get(&format!("kindred_requests_total{status}")), refused as f64);
    assert_eq!(metrics.sum("kindred_queue_queries"), 0.0, "none is left");

    // Some may be late before they become jobs.
    let late = Service::start(&["--cache-dir", cache, "--threads", "1"]);
    let mut hasty = many;
    hasty["timeout_ms"] = json!(15);
    let mut too_late = 0;
    for _ in 0..100 {
        too_late += usize::from(late.post("/nearest", &hasty).status == 504);
        let counted = Metrics::of(&late).get(&format!("kindred_jobs_late_total{model}"));
        assert!(counted <= too_late as f64, "{counted} of {too_late}");
        if counted > 0.0 {
            return;
        }
    }
    panic!("no job was late, and {too_late} requests");
}

#[test]
fn connections_and_callers_that_go_are_seen() {
    let service = Service::with_default_model();
    // One for the scrapes themselves.
    service.get("/health/live");
    let held: Vec<_> = (0..5).map(|_| service.connect()).collect();
    eventually(&service, "kindred_connections", 6.0);
    drop(held);
    eventually(&service, "kindred_connections", 1.0);
    assert_eq!(Metrics::of(&service).get("kindred_connections_opened_total"), 6.0);

    let body = json!({"queries": vec![json!({"word": "king", "k": 60}); 1024]}).to_string();
    let head = "POST /nearest HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json";
    let request = format!("{head}\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    // Beside a build the service may need long to queue it: then it has no job yet.
    for (wait, gone) in [20, 50, 100, 200, 400].into_iter().zip(1..) {
        let mut hasty = service.connect();
        hasty.write_all(request.as_bytes()).unwrap();
        eventually(&service, "kindred_requests_in_flight", 2.0);
        std::thread::sleep(Duration::from_millis(wait));
        drop(hasty);
        eventually(&service, "kindred_requests_abandoned_total", f64::from(gone));
        eventually(&service, "kindred_requests_in_flight", 1.0);
        if Metrics::of(&service).get("kindred_jobs_abandoned_total{model=\"demo\"}") > 0.0 {
            return;
        }
    }
    panic!("no job is counted as abandoned");
}

#[test]
fn a_request_that_never_ends_is_in_flight_and_keeps_no_figures_waiting() {
    let (_place, service) = tiny(&["--queue-capacity-queries", "4"]);
    let mut slow = service.connect();
    // A request that never ends holds a connection, and no slot of the queue.
    slow.write_all(b"POST /nearest HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{").unwrap();
    let started = Instant::now();
    eventually(&service, "kindred_requests_in_flight", 2.0);
    assert!(started.elapsed() < Duration::from_secs(5), "{:?}", started.elapsed());
    slow.write_all(&[b' '; 99]).unwrap();
    assert_eq!(read_reply(&mut slow).status, 400);
    eventually(&service, "kindred_requests_in_flight", 1.0);
}

#[test]
fn who_names_open_metrics_gets_it_and_who_takes_neither_is_told() {
    let (_place, service) = tiny(&[]);
    let ask = |accept: &str| service.send("GET", b"/metrics", &[("Accept", accept)], b"");
    let open = ask("application/openmetrics-text;version=1.0.0,text/plain;version=0.0.4;q=0.5");
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert_eq!(open.header("content-type"), Some(kind));
    assert!(open.text().ends_with("# EOF\n"));
    assert!(open.text().contains("# TYPE kindred_jobs_refused counter\n"));
    assert!(!ask("text/plain").text().contains("# EOF"));
    assert_eq!(ask("application/json").status, 406);
    assert_eq!(service.get("/metrics?name=x").status, 422);
}

#[test]
fn the_guide_lists_what_there_is() {
    let (_place, service) = tiny(&[]);
    service.get("/nearest?word=east");
    let metrics = Metrics::of(&service);
    let parts = ["_bucket", "_sum", "_count"];
    let histograms: BTreeSet<&str> =
        metrics.names().iter().filter_map(|name| name.strip_suffix("_bucket")).collect();
    let families: BTreeSet<&str> = metrics
        .names()
        .into_iter()
        .map(|name| {
            let whole = parts.iter().find_map(|part| name.strip_suffix(part));
            whole.filter(|whole| histograms.contains(whole)).unwrap_or(name)
        })
        .collect();
    let listed: BTreeSet<&str> = GUIDE
        .lines()
        .filter_map(|line| line.strip_prefix("| `"))
        .filter_map(|rest| rest.split(['`', '{']).next())
        .filter(|name| name.starts_with("kindred_") || name.starts_with("process_"))
        .collect();
    // Only a GPU's engine counts these, a model with heads, a service with a certificate, or a table
    // that follows another system.
    let elsewhere = BTreeSet::from([
        "kindred_certificate_expiry_timestamp_seconds",
        "kindred_cut_texts_total",
        "kindred_expanded_texts_total",
        "kindred_ranked_queries_total",
        "kindred_scan_gathered_queries_total",
        "kindred_scan_retried_queries_total",
        "kindred_source_behind",
        "kindred_source_behind_seconds",
        "kindred_source_retained_bytes",
        "kindred_texts_with_unknown_words_total",
    ]);
    assert_eq!(listed.difference(&families).copied().collect::<BTreeSet<_>>(), elsewhere);
    assert!(families.is_subset(&listed), "{:?}", families.difference(&listed));
}

#[test]
fn stages_are_counted_across_origins_as_well() {
    let (_folder, service) = tiny(&["--cors-origins", "https://a.example"]);
    for origin in [None, Some("https://a.example")] {
        let headers: Vec<_> = origin.map(|origin| ("Origin", origin)).into_iter().collect();
        let reply = service.send("GET", b"/nearest?word=east", &headers, b"");
        assert_eq!(reply.status, 200);
    }
    let metrics = Metrics::of(&service);
    assert_eq!(metrics.get("kindred_request_engine_seconds_count"), 2.0);
    assert_eq!(metrics.get("kindred_request_encode_seconds_count"), 2.0);
}

#[test]
fn failed_reloads_are_counted_by_what_failed() {
    let (scratch, model) = prepared(TINY);
    let path = |name: &str| scratch.path().join(name);
    let write = |name: &str, text: &str| std::fs::write(path(name), text).unwrap();
    let (settings, keys) = (path("settings.toml"), path("keys"));
    let (key, line) = support::api_key(&["operator", "--admin"]);
    let models = |folder: &std::path::Path| format!("model = ['{}']\n", folder.display());
    write("keys", &line);
    write("settings.toml", &models(&model));
    let files = ["--config", settings.to_str().unwrap(), "--api-keys-file", keys.to_str().unwrap()];
    let mut service = Service::start(&files);
    service.key = Some(key);
    let counted = |service: &Service| {
        let metrics = Metrics::of(service);
        ["model", "head", "certificate", "keys"].map(|what| {
            let name = format!("kindred_reload_failures_total{{what=\"{what}\"}}");
            *metrics.0.get(&name).expect("it is there from the start")
        })
    };
    let reload = |service: &Service| service.send("POST", b"/admin/reload", &[], b"").status;
    assert_eq!(counted(&service), [0.0; 4]);
    write("keys", "no key");
    assert_eq!((reload(&service), counted(&service)), (422, [0.0, 0.0, 0.0, 1.0]));
    write("keys", &line);
    write("settings.toml", &models(&path("nowhere")));
    assert_eq!((reload(&service), counted(&service)), (422, [1.0, 0.0, 0.0, 1.0]));
    write("settings.toml", &format!("{}head = ['/no/such/head']\n", models(&model)));
    assert_eq!((reload(&service), counted(&service)), (422, [1.0, 1.0, 0.0, 1.0]));
    write("settings.toml", "model = 5 5");
    assert_eq!((reload(&service), counted(&service)), (422, [2.0, 1.0, 0.0, 1.0]));
    write("settings.toml", &models(&model));
    assert_eq!((reload(&service), counted(&service)), (200, [2.0, 1.0, 0.0, 1.0]));
    // A signal counts as a request does.
    write("keys", "no key");
    service.signal("HUP");
    eventually(&service, "kindred_reload_failures_total{what=\"keys\"}", 2.0);
}
