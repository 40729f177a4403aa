//! What is refused, negotiated and counted.

use super::{
    JSON, NPY, WANTS_NPY, array, ask, cells, f4, f8, fails, file, metric, some_queries, some_rows,
};
use crate::support::{Reply, Service, prepared};
use serde_json::json;

#[test]
fn what_is_no_array_of_vectors_is_refused_with_the_reason_and_the_cure() {
    let (_scratch, service) = some_rows();
    let right = array("<f4", "(2, 3)", &f4(&some_queries(2)));
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
    let without_line_feeds = right.iter().copied().filter(|&byte| byte != b'\n').collect();
    let cut = |bytes: usize| right[..right.len() - bytes].to_vec();
    for (body, status, code, says) in [
        (b"".to_vec(), 400, "not_npy", "it is empty"),
        (b"[1, 2, 3]".to_vec(), 400, "not_npy", "--data-binary"),
        (b"\x93NUMPY".to_vec(), 400, "not_npy", "cut off"),
        (b"\x93NUMPY\x09\x00\x01\x00 ".to_vec(), 400, "not_npy", "version"),
        (file(1, "{'descr': '<f4'}", b""), 400, "not_npy", "descr, fortran_order and shape"),
        (file(1, fortran, &f4(&some_queries(2))), 400, "not_npy", "numpy.ascontiguousarray"),
        (array(">f4", "(2, 3)", &[0; 24]), 400, "not_npy", ">f4; save it as little-endian"),
        (array("<i8", "(2, 3)", &[0; 48]), 400, "not_npy", "<i8; save it as"),
        (array("|O", "(2, 3)", &[0; 48]), 400, "not_npy", "Python objects"),
        (cut(1), 400, "not_npy", "announces 2 × 3 numbers of 4 bytes, but 23 bytes follow"),
        (cut(24), 400, "not_npy", "but 0 bytes follow"),
        (without_line_feeds, 400, "not_npy", "(curl: --data-binary, not -d)"),
        ([&right[..], b"\n"].concat(), 400, "not_npy", "but 25 bytes follow"),
        (array("<f4", "(99999999999, 3)", &[0; 12]), 400, "not_npy", "99999999999 × 3"),
        (array("<f4", "()", &[0; 4]), 422, "invalid_request", "the shape []; send [dim]"),
        (array("<f4", "(1, 1, 3)", &[0; 12]), 422, "invalid_request", "[1, 1, 3]; send [dim]"),
        (array("<f4", "(0, 3)", b""), 422, "invalid_request", "0 vectors; send 1 to 1024"),
        (array("<f4", "(1025, 3)", &[1; 12300]), 422, "invalid_request", "1025 vectors"),
        (array("<f4", "(2, 4)", &[0; 32]), 422, "dimension_mismatch", "4 components"),
        (array("<f4", "(4,)", &[0; 16]), 422, "dimension_mismatch", "3 dimensions"),
        (array("<f4", "(9999999, 0)", b""), 422, "dimension_mismatch", "0 components"),
        (array("<f4", "(3,)", &[0; 12]), 422, "zero_query", "zero vector"),
        (array("<f4", "(3,)", &f4(&[1.0, f32::NAN, 1.0])), 422, "not_finite", "component 1"),
        (array("<f8", "(3,)", &f8(&[1.0, 1.0, 1e39])), 422, "not_finite", "component 2"),
    ] {
        for accept in ["application/json", "application/x-npy"] {
            let reply = ask(&service, "/nearest", &[NPY, ("Accept", accept)], &body);
            fails(&reply, status, code, says);
            assert_eq!(reply.header("content-type"), Some("application/problem+json"));
        }
    }
    for (target, status, code, says) in [
        ("/nearest?k=0", 422, "invalid_value", "`k` must be"),
        ("/nearest?k=x", 422, "invalid_value", "`k` must be"),
        ("/nearest?k=1&k=2", 422, "invalid_request", "given 2 times"),
        ("/nearest?word=w1", 422, "unknown_field", "`word`"),
        ("/nearest?queries=1", 422, "unknown_field", "`queries`"),
        ("/nearest?timeout_ms=0", 422, "invalid_value", "timeout_ms"),
        ("/nearest?exclude=%ff", 400, "not_utf8", "exclude"),
    ] {
        fails(&ask(&service, target, &[NPY], &right), status, code, says);
    }
    // Where no vectors are taken, an array is refused by its type.
    for path in ["/analogy", "/rank", "/similarity", "/odd-one-out", "/classify"] {
        fails(&ask(&service, path, &[NPY], &right), 415, "unsupported_media_type", "x-npy");
    }
    // Declared as JSON, it is none.
    fails(&ask(&service, "/nearest", &[JSON], &right), 400, "not_utf8", "the body");
}

#[test]
fn accept_decides_and_a_route_says_what_it_has() {
    let (_scratch, service) = some_rows();
    let body = array("<f4", "(3,)", &f4(&[1.0, 2.0, 3.0]));
    let sent = |accept: &str| {
        let reply = ask(&service, "/nearest", &[NPY, ("Accept", accept)], &body);
        (reply.status, reply.header("content-type").unwrap().to_owned())
    };
    for (accept, media) in [
        ("*/*", "application/json"),
        ("application/x-npy;q=0.5, application/json", "application/json"),
        ("application/json;q=0.5, application/x-npy", "application/x-npy"),
        ("application/x-npy, */*;q=0.1", "application/x-npy"),
    ] {
        assert_eq!(sent(accept), (200, media.to_owned()), "{accept}");
    }
    let reply = ask(&service, "/nearest", &[NPY, ("Accept", "text/html")], &body);
    fails(&reply, 406, "not_acceptable", "application/json or application/x-npy");
    let get = |path: &str| service.send("GET", path.as_bytes(), &[WANTS_NPY], b"");
    for path in ["/nearest?word=w1", "/words?prefix=w", "/model"] {
        fails(&get(path), 406, "not_acceptable", "the answer is application/json (POST /nearest");
    }
    let analogy = ask(&service, "/analogy", &[JSON, WANTS_NPY], br#"{"expression": "w1 + w2"}"#);
    fails(&analogy, 406, "not_acceptable", "the answer is application/json (POST /nearest");
}

#[test]
fn an_array_is_not_compressed_and_the_same_in_json_is() {
    let (_scratch, service) = some_rows();
    let body = array("<f4", "(20, 3)", &f4(&some_queries(20)));
    let coded = ("Accept-Encoding", "gzip, br");
    let target = "/nearest?k=100";
    let reply = ask(&service, target, &[NPY, WANTS_NPY, coded], &body);
    assert_eq!(cells(&reply).0, [20, 100]);
    assert!(reply.body.len() > 30_000 && reply.header("content-encoding").is_none());
    assert!(ask(&service, target, &[NPY, coded], &body).header("content-encoding").is_some());
}

#[test]
fn the_limits_of_a_request_hold_for_arrays() {
    // The most that a request may ask for, by default.
    let text: String = (0..40)
        .map(|row| {
            let numbers: Vec<String> =
                (0..300).map(|at| ((row * 7 + at) % 11).to_string()).collect();
            format!("w{row} {}\n", numbers.join(" "))
        })
        .collect();
    let (_scratch, model) = prepared(&text);
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    let queries: Vec<f64> = (0..1024 * 300).map(|at| f64::from(at * 31 % 17) - 7.9).collect();
    let body = array("<f8", "(1024, 300)", &f8(&queries));
    let (shape, found) = cells(&ask(&service, "/nearest?k=64", &[NPY, WANTS_NPY], &body));
    assert_eq!(shape, [1024, 64]);
    assert!(found.chunks(64).all(|cells| cells[39].0 >= 0 && cells[40].0 == -1));
    let too_many = ask(&service, "/nearest?k=65", &[NPY, WANTS_NPY], &body);
    fails(&too_many, 422, "too_many_results", "66560; the maximum is 65536");
    // The sum of k is small, but an array has the largest for all.
    let mut queries = vec![json!({"word": "w1", "k": 1}); 1023];
    queries.push(json!({"word": "w1", "k": 1000}));
    let uneven = json!({"queries": queries}).to_string();
    let reply = ask(&service, "/nearest", &[JSON, WANTS_NPY], uneven.as_bytes());
    fails(&reply, 422, "too_many_results", "1024 × 1000");
    assert_eq!(ask(&service, "/nearest", &[JSON], uneven.as_bytes()).status, 200);
    let vectors = ask(&service, "/nearest?k=14&with_vectors=true", &[NPY, WANTS_NPY], &body);
    fails(&vectors, 422, "too_many_results", "4300800; the maximum is 4000000");
    let declared = [NPY, ("Content-Length", "90000000")];
    fails(&ask(&service, "/nearest", &declared, b""), 413, "body_too_large", "bytes");
    let long = array("<f4", "(99999, 300)", &vec![0; 16_000_000]);
    let chunked = [b"f42400\r\n", &long[..16_000_000], b"\r\n0\r\n\r\n"].concat();
    let head = "POST /nearest HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Type: application/x-npy\r\n\
                Transfer-Encoding: chunked\r\n\r\n";
    fails(&service.raw(&[head.as_bytes(), &chunked].concat()), 413, "body_too_large", "bytes");
    let late = ask(&service, "/nearest?timeout_ms=1&k=64", &[NPY], &body);
    fails(&late, 504, "deadline_passed", "deadline");
}

#[test]
fn memory_and_the_queue_are_counted_for_arrays() {
    let (_scratch, service) = some_rows();
    let requests = || metric(&service, "kindred_memory_counted_bytes_total{pool=\"requests\"}");
    let answers = || metric(&service, "kindred_memory_counted_bytes_total{pool=\"answers\"}");
    let body = array("<f4", "(1024, 3)", &f4(&some_queries(1024)));
    let counted = |query: &str| {
        let before = (requests(), answers());
        let reply = ask(&service, &format!("/nearest?k=5{query}"), &[NPY, WANTS_NPY], &body);
        assert_eq!(reply.status, 200);
        (requests() - before.0, answers() - before.1)
    };
    // The body twice, and a query's structures and components.
    let (of_request, of_answer) = counted("");
    assert!((200_000.0..2_000_000.0).contains(&of_request), "{of_request}");
    assert!((1024.0 * 5.0 * 32.0..400_000.0).contains(&of_answer), "{of_answer}");
    // Each query has its own list of excluded rows.
    let excluded: String = (0..250).map(|row| format!("&exclude=w{row}")).collect();
    let more = counted(&excluded).0 - of_request;
    assert!((1024.0 * 250.0 * 4.0..2_000_000.0).contains(&more), "{more}");

    // A batch takes as many slots as it has vectors, and what does not fit is refused.
    let full = Service::start(&["--queue-capacity-queries", "64", "--threads", "1"]);
    let vectors: Vec<f32> = (0..6400).map(|at| (at * 31 % 17) as f32 - 7.9).collect();
    let body = array("<f4", "(64, 100)", &f4(&vectors));
    let replies: Vec<Reply> = std::thread::scope(|scope| {
        let send = || ask(&full, "/nearest?k=1000", &[NPY, WANTS_NPY], &body);
        let senders: Vec<_> = (0..12).map(|_| scope.spawn(send)).collect();
        senders.into_iter().map(|sender| sender.join().unwrap()).collect()
    });
    let refused: Vec<&Reply> = replies.iter().filter(|reply| reply.status == 429).collect();
    assert!(!refused.is_empty() && refused.len() < 12, "{}", refused.len());
    for reply in refused {
        fails(reply, 429, "queue_full", "the queue is full");
        assert!(reply.header("retry-after").is_some());
    }
}
