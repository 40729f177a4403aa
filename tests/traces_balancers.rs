//! A trace from end to end: a client's trace through HAProxy or Envoy, over HTTP/1.1 and HTTP/2, to
//! two services and a collector.
//!
//! The programs are those of `scripts/install-balancers`, or what HAPROXY and ENVOY name, or in the
//! PATH. The test of one that is missing is reported as ignored.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::collector::{Collector, attribute, hexadecimal, requests};
use crate::support::{Service, TINY, kindred, prepared, top};
use libtest_mimic::{Failed, Trial};

/// A balancer, and how it is started at an address in front of two services, with its files in a
/// folder.
struct Balancer {
    name: &'static str,
    start: fn(&Path, &str, [&str; 2], &Path) -> Result<Command, Failed>,
    /// The versions of HTTP by which it asks the services.
    protocols: &'static [&'static str],
}

const BALANCERS: [Balancer; 2] = [
    Balancer { name: "haproxy", start: haproxy, protocols: &["1.1", "2"] },
    Balancer { name: "envoy", start: envoy, protocols: &["2"] },
];

pub(crate) fn trials() -> Vec<Trial> {
    let trial = |balancer: &'static Balancer| {
        let name = balancer.name;
        let program = program(name);
        let is_missing = program.is_none();
        if is_missing {
            println!("1 skipped: no {name} (scripts/install-balancers installs it)");
        }
        let run = move || through(balancer, &program.expect("not ignored"));
        let test = format!("traces_balancers::a_trace_goes_through_{name}");
        Trial::test(test, run).with_ignored_flag(is_missing)
    };
    BALANCERS.iter().map(trial).collect()
}

fn program(name: &str) -> Option<PathBuf> {
    let given = std::env::var_os(name.to_uppercase()).map(PathBuf::from);
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = [top().join(".tools/balancers/bin"), "/usr/sbin".into()];
    let folders = folders.into_iter().chain(std::env::split_paths(&path));
    given.into_iter().chain(folders.map(|folder| folder.join(name))).find(|file| file.is_file())
}

/// One service is asked over HTTP/1.1, the other over HTTP/2.
fn haproxy(
    program: &Path,
    address: &str,
    [one, two]: [&str; 2],
    folder: &Path,
) -> Result<Command, Failed> {
    let settings = format!(
        "defaults
  mode http
  timeout connect 5s
  timeout client 30s
  timeout server 30s
frontend words
  bind {address}
  default_backend kindred
backend kindred
  balance roundrobin
  server one {one}
  server two {two} proto h2
"
    );
    let file = folder.join("haproxy.cfg");
    std::fs::write(&file, settings)?;
    let mut command = Command::new(program);
    command.arg("-db").arg("-f").arg(&file);
    Ok(command)
}

/// The configuration that is deployed, with the addresses of this test.
fn envoy(
    program: &Path,
    address: &str,
    services: [&str; 2],
    folder: &Path,
) -> Result<Command, Failed> {
    let deployed = |name: &str| std::fs::read_to_string(top().join("deploy/envoy").join(name));
    let port = |address: &str| address.rsplit(':').next().map(str::to_owned).ok_or("no port");
    let replicas = folder.join("replicas.yaml");
    let listener = format!("address: 127.0.0.1, port_value: {}", port(address)?);
    let mut settings = deployed("envoy.yaml")?;
    for (deployed, here) in [
        ("address: 0.0.0.0, port_value: 8000", &listener[..]),
        // Any free port.
        ("port_value: 9901", "port_value: 0"),
        ("/etc/envoy/replicas.yaml", replicas.to_str().ok_or("a path of UTF-8")?),
    ] {
        assert!(settings.contains(deployed), "{deployed} is not in envoy.yaml");
        settings = settings.replace(deployed, here);
    }
    let list = deployed("replicas.yaml")?;
    let (head, _) = list.split_once("          - endpoint:").ok_or("no replicas")?;
    let mut list = head.to_owned();
    for service in services {
        let port = port(service)?;
        let address = format!("{{socket_address: {{address: 127.0.0.1, port_value: {port}}}}}");
        list += &format!("          - endpoint: {{address: {address}}}\n");
    }
    std::fs::write(&replicas, list)?;
    let file = folder.join("envoy.yaml");
    std::fs::write(&file, settings)?;
    let mut command = Command::new(program);
    command.arg("-c").arg(&file).args(["--concurrency", "1", "--disable-hot-restart"]);
    command.args(["--log-level", "error"]);
    Ok(command)
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn through(balancer: &Balancer, program: &Path) -> Result<(), Failed> {
    const ASKED: usize = 40;
    let collector = Collector::start();
    let (scratch, model) = prepared(TINY);
    let service = |name: &str| {
        let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--device", "cpu"]);
        command.arg("--model").arg(&model).args(["--log-level", "warn", "--traces-endpoint"]);
        command.arg(collector.url()).args(["--traces-sample-ratio", "0"]);
        command.env("OTEL_BSP_SCHEDULE_DELAY", "50");
        command.env("OTEL_RESOURCE_ATTRIBUTES", format!("service.instance.id={name}"));
        Service::spawn(command)
    };
    let services = [service("one"), service("two")];
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?.to_string();
    let addresses = services.each_ref().map(|service| &service.address[..]);
    let mut command = (balancer.start)(program, &address, addresses, scratch.path())?;
    let running = Running(command.stdin(Stdio::null()).spawn()?);
    let deadline = Instant::now() + Duration::from_secs(60);
    while ureq::get(format!("http://{address}/health/ready")).call().is_err() {
        assert!(Instant::now() < deadline, "{} gives no answer", balancer.name);
        std::thread::sleep(Duration::from_millis(20));
    }

    // Every second one is traced by its client.
    let trace = |number: usize| format!("{:032x}", (number as u128 + 1) << 64 | 0xabc);
    let mut told = BTreeSet::new();
    for number in 0..ASKED {
        let flags = if number % 2 == 0 { "01" } else { "00" };
        // Two at a time, which go to a server each if they go in turn, so that both get some that
        // are traced.
        for _ in 0..2 {
            let sent = format!("00-{}-00f067aa0ba902b7-{flags}", trace(number));
            let asked = ureq::get(format!("http://{address}/nearest?word=east"));
            let asked = asked.header("traceparent", &sent).header("tracestate", "vendor=opaque");
            let mut answer = asked.header("x-request-id", format!("id-{number}")).call()?;
            assert_eq!(answer.status(), 200);
            let timings = answer.headers().get_all("server-timing").iter();
            let timings: Vec<_> = timings.map(|value| value.to_str().unwrap().to_owned()).collect();
            let is_told = timings.iter().any(|timing| timing.contains(&trace(number)));
            assert_eq!(is_told, flags == "01", "{timings:?}");
            if is_told {
                told.insert(trace(number));
            }
            answer.body_mut().read_to_vec()?;
        }
    }
    assert_eq!(told.len(), ASKED / 2);
    let spans = collector.wait_for_traces(ASKED);
    drop(running);
    assert_eq!(requests(&spans).count(), ASKED, "both requests of every second trace");
    let found: BTreeSet<String> =
        requests(&spans).map(|span| hexadecimal(&span.trace_id)).collect();
    assert_eq!(found, told);
    for request in requests(&spans) {
        assert_eq!(hexadecimal(&request.parent_span_id), "00f067aa0ba902b7");
        assert_eq!(request.trace_state, "vendor=opaque");
        let number = (0..ASKED).find(|&number| trace(number) == hexadecimal(&request.trace_id));
        let id = attribute(&request.attributes, "kindred.request_id");
        assert_eq!(id, number.map(|number| format!("id-{number}")));
        let below = spans.iter().filter(|span| span.parent_span_id == request.span_id);
        let below: BTreeSet<&str> = below.map(|span| &span.name[..]).collect();
        assert_eq!(below, ["encode", "pass", "queue"].into());
    }
    let protocols: BTreeSet<_> = requests(&spans)
        .filter_map(|span| attribute(&span.attributes, "network.protocol.version"))
        .collect();
    assert_eq!(protocols, balancer.protocols.iter().map(|&version| version.to_owned()).collect());
    let taken = collector.taken();
    let instances: BTreeSet<_> = taken
        .resources
        .iter()
        .filter_map(|resource| attribute(resource, "service.instance.id"))
        .collect();
    assert_eq!(instances, ["one".to_owned(), "two".to_owned()].into());
    Ok(())
}
