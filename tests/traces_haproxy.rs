//! A trace from end to end: a client's trace through HAProxy, over HTTP/1.1 and HTTP/2, to two services and a collector.
//!
//! Without `haproxy` in the PATH or in /usr/sbin this test is reported as ignored.

use std::collections::BTreeSet;
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::collector::{Collector, attribute, hexadecimal, requests};
use crate::support::{Service, TINY, kindred, prepared};
use libtest_mimic::{Failed, Trial};

pub(crate) fn trials() -> Vec<Trial> {
    let trial = Trial::test("traces_haproxy::a_trace_goes_through_the_balancer", through_haproxy);
    let is_missing = haproxy().is_none();
    if is_missing {
        println!("1 skipped: no haproxy (Debian: apt-get install haproxy)");
    }
    vec![trial.with_ignored_flag(is_missing)]
}

fn haproxy() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into()]);
    folders.map(|folder| folder.join("haproxy")).find(|program| program.is_file())
}

/// Killed when dropped.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn through_haproxy() -> Result<(), Failed> {
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
    let [one, two] = services.each_ref().map(|service| &service.address);
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
    let file = scratch.path().join("haproxy.cfg");
    std::fs::write(&file, settings)?;
    let mut command = Command::new(haproxy().expect("not ignored"));
    let balancer = Running(command.arg("-db").arg("-f").arg(&file).stdin(Stdio::null()).spawn()?);
    let deadline = Instant::now() + Duration::from_secs(30);
    while TcpStream::connect(&address).is_err() {
        assert!(Instant::now() < deadline, "HAProxy does not listen");
        std::thread::sleep(Duration::from_millis(20));
    }

    // Every second one is traced by its client.
    let trace = |number: usize| format!("{:032x}", (number as u128 + 1) << 64 | 0xabc);
    let mut told = BTreeSet::new();
    for number in 0..ASKED {
        let flags = if number % 2 == 0 { "01" } else { "00" };
        // Two at a time to one server each, so that both get some that are traced.
        for _ in 0..2 {
            let sent = format!("00-{}-00f067aa0ba902b7-{flags}", trace(number));
            let url = format!("http://{address}/nearest?word=east");
            let mut answer = ureq::get(&url).header("traceparent", &sent).call()?;
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
    drop(balancer);
    assert_eq!(requests(&spans).count(), ASKED, "both requests of every second trace");
    let found: BTreeSet<String> =
        requests(&spans).map(|span| hexadecimal(&span.trace_id)).collect();
    assert_eq!(found, told);
    for request in requests(&spans) {
        assert_eq!(hexadecimal(&request.parent_span_id), "00f067aa0ba902b7");
        let below = spans.iter().filter(|span| span.parent_span_id == request.span_id);
        let below: BTreeSet<&str> = below.map(|span| &span.name[..]).collect();
        assert_eq!(below, ["encode", "pass", "queue"].into());
    }
    let protocols: BTreeSet<_> = requests(&spans)
        .filter_map(|span| attribute(&span.attributes, "network.protocol.version"))
        .collect();
    assert_eq!(protocols, ["1.1".to_owned(), "2".to_owned()].into());
    let taken = collector.taken();
    let instances: BTreeSet<_> = taken
        .resources
        .iter()
        .filter_map(|resource| attribute(resource, "service.instance.id"))
        .collect();
    assert_eq!(instances, ["one".to_owned(), "two".to_owned()].into());
    Ok(())
}
