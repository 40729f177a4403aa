//! Whom the service traces, and what callers can do with that.

use std::collections::BTreeSet;
use std::time::Instant;

use super::{CALLER, TRACE, ask_all, metric, start, traceparent};
use crate::support::Reply;
use crate::support::collector::{Collector, attribute, hexadecimal, requests};

#[test]
fn the_ratio_is_that_of_the_traces_and_callers_decide_for_theirs() {
    let collector = Collector::start();
    let traced = start(&collector.url(), &["--traces-sample-ratio", "0.25"]);
    const ASKED: usize = 4000;
    let replies = ask_all(&traced.service, "/nearest?word=east", &vec![String::new(); ASKED]);
    assert!(replies.iter().all(|reply| reply.status == 200));
    let is_traced = |reply: &&Reply| format!("{:?}", reply.headers).contains("traceparent");
    let expected = replies.iter().filter(is_traced).count();
    // Six standard deviations of the binomial distribution.
    assert!(expected.abs_diff(ASKED / 4) < 165, "{expected} of {ASKED}");
    let spans = collector.wait_for_traces(expected);
    assert_eq!(requests(&spans).count(), expected);
    let ids: BTreeSet<_> = spans.iter().map(|span| span.trace_id.clone()).collect();
    assert_eq!(ids.len(), expected);
    assert!(requests(&spans).all(|span| span.parent_span_id.is_empty()));

    // A caller that does not trace its request is not traced here.
    let unsampled = format!("traceparent: {}\r\n", traceparent("00"));
    let replies = ask_all(&traced.service, "/nearest?word=east", &vec![unsampled; 200]);
    assert!(!replies.iter().any(|reply| is_traced(&reply)));
}

#[test]
fn a_client_that_asks_for_a_trace_each_time_gets_so_many_a_second() {
    let collector = Collector::start();
    let limits = ["--traces-sample-ratio", "0", "--traces-asked-per-second", "5"];
    let traced = start(&collector.url(), &limits);
    let since = Instant::now();
    let sampled = format!("traceparent: {}\r\n", traceparent("01"));
    ask_all(&traced.service, "/nearest?word=east", &vec![sampled; 300]);
    // The seconds that these requests touched.
    let at_most = 5 * (since.elapsed().as_secs() as usize + 2);
    let refused = metric(&traced.service, "kindred_traces_refused_total") as usize;
    let given = 300 - refused;
    assert!((5..=at_most).contains(&given), "{given}, at most {at_most}");
    assert_eq!(requests(&collector.wait_for_traces(given)).count(), given);

    // Without trust in callers their header is not even read.
    let distrusts = ["--traces-sample-ratio", "1", "--traces-asked-per-second", "0"];
    let traced = start(&collector.url(), &distrusts);
    traced.service.send("GET", b"/nearest?word=east", &[("traceparent", &traceparent("00"))], b"");
    let spans = collector.wait_for_traces(given + 1);
    let last = requests(&spans).find(|span| hexadecimal(&span.trace_id) != TRACE).unwrap();
    assert!(last.parent_span_id.is_empty());
}

#[test]
fn hostile_headers_are_no_parents_and_change_no_answer() {
    let collector = Collector::start();
    let traced = start(&collector.url(), &["--traces-sample-ratio", "0"]);
    let plain = traced.service.get("/nearest?word=east");
    let good = traceparent("01");
    let (zero, no_span) =
        (good.replace(TRACE, &"0".repeat(32)), good.replace(CALLER, &"0".repeat(16)));
    let hostile = [
        "",
        "00",
        "-",
        &good[..54],
        &format!("{good}-00"),
        &format!("ff{}", &good[2..]),
        &good.to_uppercase(),
        &zero,
        &no_span,
        &good.replace('-', " "),
        &good.replace("4b", "\u{e4}"),
        &"a".repeat(8000),
        &"00-".repeat(2000),
        &format!("{good}\r\ntraceparent: {good}"),
        &format!("{good}, {good}"),
    ];
    let headers = hostile.map(|value| format!("traceparent: {value}\r\ntracestate: {value}\r\n"));
    // A state without a parent, and one that is no state.
    let states =
        ["tracestate: a=b\r\n".to_owned(), format!("tracestate: {}\r\n", "=,".repeat(3000))];
    for reply in ask_all(&traced.service, "/nearest?word=east", &[&headers[..], &states].concat()) {
        assert_eq!((reply.status, &reply.body), (200, &plain.body));
    }
    // Now a good one with a bad state: it is the only trace.
    let state = format!(
        "traceparent: {good}\r\ntracestate: {}\r\n",
        "\u{e4}=\u{1}".repeat(10).replace('\u{1}', "\t")
    );
    ask_all(&traced.service, "/nearest?word=east", &[state]);
    let spans = collector.wait_for_traces(1);
    assert_eq!(requests(&spans).count(), 1);
    assert_eq!(metric(&traced.service, "kindred_trace_spans_total{outcome=\"exported\"}"), 4.0);
    assert_eq!(metric(&traced.service, "kindred_traces_refused_total"), 0.0);
}

#[test]
fn neither_a_word_nor_a_query_is_in_a_trace_unless_the_access_log_may_have_it() {
    for (shown, path, query) in [
        ("false", "/words/{word}", None),
        ("true", "/words/private", Some("lang=secret".to_owned())),
    ] {
        let collector = Collector::start();
        let all = ["--traces-sample-ratio", "1", "--access-log-query", shown];
        let traced = start(&collector.url(), &all);
        traced.service.get("/words/private?lang=secret");
        let spans = collector.wait_for_traces(1);
        let request = requests(&spans).next().unwrap();
        assert_eq!(request.name, "GET /words/{word}");
        assert_eq!(attribute(&request.attributes, "url.path").as_deref(), Some(path));
        assert_eq!(attribute(&request.attributes, "url.query"), query);
        let said = format!("{spans:?}");
        assert_eq!(said.contains("private") || said.contains("secret"), shown == "true", "{said}");
    }
}
