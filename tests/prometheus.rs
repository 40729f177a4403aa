//! docker/prometheus and docker/grafana against a real Prometheus that scrapes a real service.
//!
//! `prometheus` and `promtool` are looked for in the PATH and where scripts/install-prometheus puts
//! them; without them these tests are reported as ignored.

use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{Service, top};
use libtest_mimic::{Failed, Trial};
use serde_json::{Value, json};

/// The metric that a service without TLS does not have.
const OF_CERTIFICATES: &str = "kindred_certificate_expiry_timestamp_seconds";
/// Only tables that follow another system have them.
const OF_SOURCES: [&str; 2] = ["kindred_source_retained_bytes", "kindred_source_behind_seconds"];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |name: &str, test: fn() -> Result<(), Failed>| {
        let missing = tool("prometheus").is_none() || tool("promtool").is_none();
        Trial::test(format!("prometheus::{name}"), test).with_ignored_flag(missing)
    };
    let mut trials = vec![
        trial("promtool_accepts_configuration_and_rules", configuration_and_rules),
        trial("alerts_fire_when_they_should_and_not_before", alerts),
        trial("promtool_finds_no_fault_with_the_metrics", metrics_as_text),
        trial("every_rule_and_panel_can_be_asked_of_a_scraped_service", rules_and_panels),
    ];
    // These need no Prometheus.
    let tests: [(&str, Test); 2] = [
        ("every_rule_has_a_summary_and_a_description", rules_have_annotations),
        ("the_dashboard_asks_the_data_source_that_is_chosen", data_source),
    ];
    trials.extend(tests.map(|(name, test)| Trial::test(format!("prometheus::{name}"), test)));
    let skipped = trials.iter().filter(|trial| trial.has_ignored_flag()).count();
    if skipped > 0 {
        println!("{skipped} skipped: no prometheus and promtool (run scripts/install-prometheus)");
    }
    trials
}

type Test = fn() -> Result<(), Failed>;

/// A program of Prometheus's.
fn tool(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain([top().join(".tools/prometheus/usr/bin")]);
    folders.map(|folder| folder.join(name)).find(|program| program.is_file())
}

fn promtool(arguments: &[&str], input: &str) -> Result<String, Failed> {
    let mut command = Command::new(tool("promtool").expect("not ignored"));
    command.args(arguments).current_dir(top().join("docker/prometheus"));
    let scratch = tempfile::NamedTempFile::new()?;
    fs::write(scratch.path(), input)?;
    let output = command.stdin(fs::File::open(scratch.path())?).output()?;
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    if output.status.success() { Ok(said) } else { Err(said.into()) }
}

fn configuration_and_rules() -> Result<(), Failed> {
    let said = promtool(&["check", "config", "prometheus.yml"], "")?;
    assert!(said.contains("rules found"), "{said}");
    Ok(())
}

fn alerts() -> Result<(), Failed> {
    promtool(&["test", "rules", "rules.test.yml"], "")?;
    // Whatever is not true must not pass: the same tests of rules with other thresholds fail.
    let scratch = tempfile::tempdir()?;
    let folder = top().join("docker/prometheus");
    let tests = scratch.path().join("rules.test.yml");
    fs::copy(folder.join("rules.test.yml"), &tests)?;
    let rules = fs::read_to_string(folder.join("rules.yml"))?;
    for (threshold, other) in [
        ("> 0.01\n", "> 0.2\n"),
        ("> 0.05\n", "> 0.2\n"),
        ("== 0\n", "== 2\n"),
        (">= 5\n", ">= 0\n"),
        ("[1h]) > 0\n", "[1h]) > 1\n"),
        ("14 * 86400\n", "15 * 86400\n"),
        (" 2 * 86400\n", " 1 * 86400\n"),
    ] {
        assert!(rules.contains(threshold), "{threshold}");
        fs::write(scratch.path().join("rules.yml"), rules.replace(threshold, other))?;
        let passed = promtool(&["test", "rules", tests.to_str().expect("UTF-8")], "");
        assert!(passed.is_err(), "{threshold}: {passed:?}");
    }
    Ok(())
}

/// Each rule says what is wrong, and what to do; a ratio also how many cases it takes.
fn rules_have_annotations() -> Result<(), Failed> {
    let rules = fs::read_to_string(top().join("docker/prometheus/rules.yml"))?;
    let rules: Value = serde_saphyr::from_str(&rules)?;
    let rules = rules["groups"][0]["rules"].as_array().ok_or("no rules")?;
    assert!(rules.len() >= 15, "{}", rules.len());
    for rule in rules {
        let annotations = rule["annotations"].as_object().ok_or("no annotations")?;
        let names: BTreeSet<&str> = annotations.keys().map(String::as_str).collect();
        assert_eq!(names, BTreeSet::from(["description", "summary"]));
        let expression = rule["expr"].as_str().ok_or("no expression")?;
        let is_ratio = expression.contains("rate(") && expression.contains(" / ");
        let is_ratio_of_counts = is_ratio || expression.contains("histogram_quantile(");
        assert_eq!(is_ratio_of_counts, expression.contains(">= 5"), "{expression}");
    }
    Ok(())
}

/// A service that has answered, and failed to answer, all sorts of requests.
fn service() -> Service {
    let service = Service::with_default_model();
    for path in ["/nearest?word=king", "/analogy?expression=king+-+man", "/none", "/nearest?word=?"]
    {
        service.get(path);
    }
    service.post("/rank", &json!({"words": ["king"], "word": "queen"}));
    service
}

/// It reads the text form, and finds fault with names and helps that are not as they should be.
/// OpenMetrics is what a scrape asks for.
fn metrics_as_text() -> Result<(), Failed> {
    let said = promtool(&["check", "metrics"], service().get("/metrics").text())?;
    assert!(said.trim().is_empty(), "{said}");
    Ok(())
}

/// A Prometheus that scrapes a service. Killed when dropped.
struct Prometheus {
    child: Child,
    address: String,
    _data: tempfile::TempDir,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Prometheus {
    /// With our configuration, but for the service's address and how often it is scraped.
    fn start(service: &Service) -> Result<Self, Failed> {
        let data = tempfile::tempdir()?;
        let folder = top().join("docker/prometheus");
        let config = fs::read_to_string(folder.join("prometheus.yml"))?;
        let changed = config
            .replace("kindred:8080", &service.address)
            .replace("15s", "1s")
            .replace("scrape_timeout: 10s", "scrape_timeout: 1s");
        assert!(changed.contains(&service.address) && changed.contains("scrape_timeout: 1s"));
        fs::write(data.path().join("prometheus.yml"), changed)?;
        fs::copy(folder.join("rules.yml"), data.path().join("rules.yml"))?;
        // Free a moment ago, and nobody else takes ports that the system gives away in turn.
        let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
        let log = fs::File::create(data.path().join("log"))?;
        let child = Command::new(tool("prometheus").expect("not ignored"))
            .arg(format!("--config.file={}", data.path().join("prometheus.yml").display()))
            .arg(format!("--storage.tsdb.path={}", data.path().join("data").display()))
            .arg(format!("--web.listen-address={address}"))
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .spawn()?;
        Ok(Self { child, address, _data: data })
    }

    fn get(&self, path: &str, query: &[(&str, &str)]) -> Option<Value> {
        let agent: ureq::Agent =
            ureq::Agent::config_builder().http_status_as_error(false).build().into();
        let request = agent.get(format!("http://{}{path}", self.address));
        let request =
            query.iter().fold(request, |request, (key, value)| request.query(*key, *value));
        let body = request.call().ok()?.body_mut().read_to_vec().ok()?;
        serde_json::from_slice(&body).ok()
    }

    /// The samples of an expression, or what is wrong with it.
    fn ask(&self, expression: &str) -> Result<Vec<Value>, Failed> {
        let answer = self.get("/api/v1/query", &[("query", expression)]);
        let answer = answer.ok_or_else(|| format!("no answer to {expression}"))?;
        if answer["status"] != "success" {
            return Err(format!("{expression}: {answer}").into());
        }
        Ok(answer["data"]["result"].as_array().cloned().unwrap_or_default())
    }

    fn wait_for(&self, expression: &str) -> Result<Vec<Value>, Failed> {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            match self.ask(expression) {
                Ok(samples) if !samples.is_empty() => return Ok(samples),
                unfinished if Instant::now() > deadline => {
                    return Err(format!("{expression}: {unfinished:?}").into());
                }
                _ => std::thread::sleep(Duration::from_millis(100)),
            }
        }
    }
}

fn rules_and_panels() -> Result<(), Failed> {
    let service = service();
    let prometheus = Prometheus::start(&service)?;
    // Two scrapes, so that there are rates.
    prometheus.wait_for(r#"count_over_time(up{job="kindred"}[1m]) >= 2"#)?;
    let found = prometheus.wait_for(r#"kindred_requests_total{route="/nearest", status="200"}"#)?;
    assert_eq!(found[0]["value"][1], "1", "{found:?}");
    assert_eq!(found[0]["metric"]["method"], "GET");

    let names = prometheus.get("/api/v1/label/__name__/values", &[]).expect("names");
    let names: BTreeSet<&str> =
        names["data"].as_array().expect("names").iter().filter_map(Value::as_str).collect();
    let panels = expressions_of_panels()?;
    let rules = prometheus.get("/api/v1/rules", &[]).expect("rules");
    let rules = rules["data"]["groups"][0]["rules"].as_array().expect("rules").clone();
    let rules = rules.iter().map(|rule| rule["query"].as_str().expect("a query").to_owned());
    let rules: Vec<String> = rules.collect();
    assert!(rules.len() >= 8 && panels.len() >= 20, "{} {}", rules.len(), panels.len());
    for expression in rules.iter().chain(&panels) {
        prometheus.ask(expression)?;
        let used = metrics_in(expression);
        assert!(!used.is_empty(), "no metric in {expression}");
        let is_elsewhere =
            |metric: &&str| *metric == OF_CERTIFICATES || OF_SOURCES.contains(metric);
        for metric in used.into_iter().filter(|metric| !is_elsewhere(metric)) {
            assert!(names.contains(metric), "{metric} does not exist: {expression}");
        }
    }
    // Panels of a healthy service show something, or nobody would believe them in trouble.
    for expression in &panels {
        let shown = prometheus.wait_for(expression);
        shown.map_err(|e| format!("an empty panel: {e:?}"))?;
    }
    // And no alert fires. (One that waits to see whether it lasts is an alert as well.)
    let alerts = prometheus.get("/api/v1/alerts", &[]).expect("alerts");
    let firing = alerts["data"]["alerts"].as_array().expect("alerts");
    assert!(firing.iter().all(|alert| alert["state"] != "firing"), "{firing:?}");
    let ready = prometheus.wait_for("kindred_ready")?;
    assert_eq!(ready[0]["value"][1], "1");
    Ok(())
}

/// Of panels and variables: that of the variable `datasource`, so that the dashboard works wherever
/// it is imported.
fn data_source() -> Result<(), Failed> {
    let text = fs::read_to_string(top().join("docker/grafana/kindred.json"))?;
    let board: Value = serde_json::from_str(&text)?;
    let variables = board["templating"]["list"].as_array().ok_or("no variables")?;
    // The others are asked of it, so it comes first.
    assert_eq!(
        (&variables[0]["name"], &variables[0]["type"], &variables[0]["query"]),
        (&json!("datasource"), &json!("datasource"), &json!("prometheus"))
    );
    let panels = board["panels"].as_array().ok_or("no panels")?;
    let asked = panels.iter().filter(|panel| panel["targets"].is_array()).chain(&variables[1..]);
    let sources: Vec<&Value> = asked.map(|one| &one["datasource"]).collect();
    assert!(sources.len() >= 20, "{}", sources.len());
    let chosen = json!({"type": "prometheus", "uid": "${datasource}"});
    assert!(sources.iter().all(|source| **source == chosen), "{sources:?}");
    Ok(())
}

/// As Grafana would ask them: with a value for each of its variables.
fn expressions_of_panels() -> Result<Vec<String>, Failed> {
    let board: Value =
        serde_json::from_str(&fs::read_to_string(top().join("docker/grafana/kindred.json"))?)?;
    let panels = board["panels"].as_array().ok_or("no panels")?;
    let targets = panels.iter().filter_map(|panel| panel["targets"].as_array()).flatten();
    let expressions = targets.map(|target| {
        let expression = target["expr"].as_str().expect("an expression");
        let asked = expression.replace("$__rate_interval", "1m").replace("$instance", ".*");
        assert!(!asked.contains('$'), "a variable without a value: {asked}");
        asked
    });
    Ok(expressions.collect())
}

/// What looks like one of our metrics, outside of quoted values.
fn metrics_in(expression: &str) -> BTreeSet<&str> {
    let unquoted = expression.split('"').step_by(2);
    let words = unquoted.flat_map(|text| {
        text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == ':'))
    });
    words
        .filter(|word| ["kindred_", "process_", "up"].iter().any(|start| word.starts_with(start)))
        .collect()
}
