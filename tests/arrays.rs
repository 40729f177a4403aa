//! Arrays of vectors over HTTP, in NumPy's format (.npy): the same answers as in JSON, bit for bit,
//! and every way to send a wrong one.

use crate::support::{Reply, Service, TINY, prepared, random_vectors};
use serde_json::{Value, json};

const NPY: (&str, &str) = ("Content-Type", "application/x-npy");
const WANTS_NPY: (&str, &str) = ("Accept", "application/x-npy");
const JSON: (&str, &str) = ("Content-Type", "application/json");

/// A file of version 1.0, 2.0 or 3.0, as NEP 1 describes it.
fn file(version: u8, dictionary: &str, numbers: &[u8]) -> Vec<u8> {
    let mut file = [b"\x93NUMPY", &[version, 0][..]].concat();
    match version {
        1 => file.extend((dictionary.len() as u16).to_le_bytes()),
        _ => file.extend((dictionary.len() as u32).to_le_bytes()),
    }
    file.extend(dictionary.bytes());
    file.extend(numbers);
    file
}

fn array(descr: &str, shape: &str, numbers: &[u8]) -> Vec<u8> {
    let dictionary =
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
    file(1, &dictionary, numbers)
}

fn f4(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

fn f8(numbers: &[f64]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// A neighbour of an answer: row, the bits of its score, and its vector.
type Cell = (i64, u64, Vec<f32>);

/// An answer that is an array: its shape, and its elements.
fn cells(reply: &Reply) -> (Vec<usize>, Vec<Cell>) {
    assert_eq!(reply.status, 200, "{}", String::from_utf8_lossy(&reply.body));
    assert_eq!(reply.header("content-type"), Some("application/x-npy"));
    let body = &reply.body;
    assert_eq!(body[..8], *b"\x93NUMPY\x01\x00");
    let length = usize::from(u16::from_le_bytes([body[8], body[9]]));
    let (head, mut rest) = body[10..].split_at(length);
    assert_eq!((length + 10) % 64, 0);
    let head = std::str::from_utf8(head).unwrap();
    let (kind, after) = head.split_once("], 'fortran_order': False, 'shape': (").expect(head);
    let kind = kind.strip_prefix("{'descr': [('row', '<i8'), ('score', '<f8')").expect(head);
    let dim = match kind {
        "" => 0,
        vector => {
            let dim = vector.strip_prefix(", ('vector', '<f4', (").expect(head);
            dim.strip_suffix(",))").expect(head).parse().unwrap()
        }
    };
    let shape = after.split_once(')').expect(head).0.split(',').map(str::trim);
    let shape: Vec<usize> =
        shape.filter(|length| !length.is_empty()).map(|length| length.parse().unwrap()).collect();
    let mut found = Vec::new();
    while let Some((row, after)) = rest.split_first_chunk() {
        let (score, after) = after.split_first_chunk().unwrap();
        let (vector, after) = after.split_at(dim * 4);
        let vector = vector.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));
        found.push((i64::from_le_bytes(*row), u64::from_le_bytes(*score), vector.collect()));
        rest = after;
    }
    assert_eq!(found.len(), shape.iter().product::<usize>());
    (shape, found)
}

/// What an array must have for an answer in JSON.
fn expected(results: &[Value], k: usize, dim: usize) -> Vec<Cell> {
    let nothing = || (-1, f64::NAN.to_bits(), vec![f32::NAN; dim]);
    let of_one = |result: &Value| {
        let neighbors = result["neighbors"].as_array().expect("neighbours").clone();
        let cells = neighbors.into_iter().map(move |neighbor| {
            let vector = neighbor["vector"].as_array().cloned().unwrap_or_default();
            let vector = vector.iter().map(|number| number.as_f64().unwrap() as f32).collect();
            let score = neighbor["score"].as_f64().unwrap();
            (neighbor["row"].as_i64().unwrap(), score.to_bits(), vector)
        });
        cells.chain(std::iter::repeat_with(nothing)).take(k).collect::<Vec<_>>()
    };
    results.iter().flat_map(of_one).collect()
}

/// As text: no NaN is equal to itself, and what differs is shown.
fn shown(cells: &[Cell]) -> Vec<String> {
    cells.iter().map(|cell| format!("{cell:?}")).collect()
}

fn ask(service: &Service, target: &str, headers: &[(&str, &str)], body: &[u8]) -> Reply {
    service.send("POST", target.as_bytes(), headers, body)
}

#[track_caller]
fn fails(reply: &Reply, status: u16, code: &str, says: &str) {
    let problem = reply.json();
    assert_eq!((reply.status, problem["code"].as_str()), (status, Some(code)), "{problem}");
    let detail = problem["detail"].as_str().unwrap();
    assert!(detail.contains(says), "{detail}");
}

/// 300 rows in three dimensions, some of them equal, and the service over them.
fn some_rows() -> (tempfile::TempDir, Service) {
    let (scratch, model) = prepared(&random_vectors((0..300).map(|row| format!("w{row}"))));
    (scratch, Service::start(&["--model", model.to_str().unwrap()]))
}

/// Vectors whose components no short decimal number is.
fn some_queries(count: usize) -> Vec<f32> {
    (0..count * 3).map(|at| ((at * 37 % 101) as f32 - 50.3) / 7.0).collect()
}

#[test]
fn every_way_to_send_vectors_and_to_take_neighbours_gives_the_same_bits() {
    let (_scratch, service) = some_rows();
    let queries = some_queries(20);
    for (query, options) in [
        ("", json!({})),
        ("?k=1", json!({"k": 1})),
        ("?k=7&min_score=0.5", json!({"k": 7, "min_score": 0.5})),
        ("?k=1000&with_vectors=true", json!({"k": 1000, "with_vectors": true})),
        ("?k=400&max_score=-0.25", json!({"k": 400, "max_score": -0.25})),
        (
            "?exclude=w1&exclude=w2&vocab_limit=40",
            json!({"exclude": ["w1", "w2"], "vocab_limit": 40}),
        ),
        ("?fold_case=true&k=9", json!({"fold_case": true, "k": 9})),
        ("?min_score=2", json!({"min_score": 2})),
    ] {
        let k = options["k"].as_u64().unwrap_or(10) as usize;
        let dim = if options["with_vectors"] == true { 3 } else { 0 };
        let of_vectors = |count: usize| -> Vec<Value> {
            queries.chunks(3).take(count).map(|vector| json!({"vector": vector})).collect()
        };
        let mut batch = options.clone();
        batch["queries"] = of_vectors(20).into();
        let in_json = service.post("/nearest", &batch);
        assert_eq!(in_json.status, 200, "{}", in_json.text());
        let results = in_json.json()["results"].as_array().unwrap().clone();
        let target = format!("/nearest{query}");
        let wide: Vec<f64> = queries.iter().map(|&number| number.into()).collect();
        for (descr, numbers) in [("<f4", f4(&queries)), ("<f8", f8(&wide))] {
            let body = array(descr, "(20, 3)", &numbers);
            let same = ask(&service, &target, &[NPY], &body);
            assert_eq!(same.text(), in_json.text(), "{query} {descr}");
            let found = cells(&ask(&service, &target, &[NPY, WANTS_NPY], &body));
            assert_eq!(found.0, [20, k]);
            assert_eq!(shown(&found.1), shown(&expected(&results, k, dim)), "{query} {descr}");
            // A single vector, and a list of one.
            let width = numbers.len() / 20;
            let one = array(descr, "(3,)", &numbers[..width]);
            let single = ask(&service, &target, &[NPY, WANTS_NPY], &one);
            assert_eq!(cells(&single).0, [k]);
            assert_eq!(shown(&cells(&single).1), shown(&expected(&results[..1], k, dim)));
            let of_one = array(descr, "(1, 3)", &numbers[..width]);
            let of_one = ask(&service, &target, &[NPY, WANTS_NPY], &of_one);
            assert_eq!(cells(&of_one).0, [1, k]);
            assert_eq!(cells(&of_one).1.len(), k);
            let mut asked = options.clone();
            asked["vector"] = json!(queries[..3]);
            let in_json = service.post("/nearest", &asked);
            assert_eq!(ask(&service, &target, &[NPY], &one).text(), in_json.text());
        }
        // Asked in JSON, answered as an array.
        let body = batch.to_string();
        let found = cells(&ask(&service, "/nearest", &[JSON, WANTS_NPY], body.as_bytes()));
        assert_eq!(shown(&found.1), shown(&expected(&results, k, dim)), "{query}");
    }
}

#[test]
fn the_largest_k_is_that_of_all_and_words_and_texts_are_asked_as_well() {
    let (_scratch, service) = some_rows();
    let batch = json!({"k": 2, "queries": [
        {"word": "w5"}, {"text": "w7 and w9", "k": 4, "with_vectors": true}, {"vector": [1, 2, 3], "k": 1}]});
    let results = service.post("/nearest", &batch).json()["results"].as_array().unwrap().clone();
    let found = cells(&ask(&service, "/nearest", &[JSON, WANTS_NPY], batch.to_string().as_bytes()));
    assert_eq!(found.0, [3, 4]);
    let rows = |cells: &[Cell]| cells.iter().map(|cell| (cell.0, cell.1)).collect::<Vec<_>>();
    assert_eq!(rows(&found.1), rows(&expected(&results, 4, 3)));
    // One query asks for vectors, so all neighbours have theirs.
    for (row, _, vector) in &found.1 {
        assert_eq!(vector.len(), 3);
        if *row >= 0 {
            let known =
                service.get(&format!("/words/w{row}?with_vector=true")).json()["vector"].clone();
            assert_eq!(json!(vector), known);
        }
    }
    let single = ask(&service, "/nearest", &[JSON, WANTS_NPY], br#"{"word": "w5", "k": 3}"#);
    assert_eq!(cells(&single).0, [3]);
    // Half precision, and the newer versions of the format.
    let halves: Vec<u8> =
        [0x3c00u16, 0x4000, 0x4200].iter().flat_map(|bits| bits.to_le_bytes()).collect();
    let asked = [array("<f2", "(3,)", &halves)].into_iter().chain([2, 3].map(|version| {
        let dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }\n";
        file(version, dictionary, &f4(&[1.0, 2.0, 3.0]))
    }));
    for body in asked {
        let found = cells(&ask(&service, "/nearest?k=1", &[NPY, WANTS_NPY], &body));
        assert_eq!(rows(&found.1), rows(&expected(&results[2..], 1, 0)));
    }
}

#[test]
fn what_is_no_array_of_vectors_is_refused_with_the_reason_and_the_cure() {
    let (_scratch, service) = some_rows();
    let right = array("<f4", "(2, 3)", &f4(&some_queries(2)));
    let fortran = "{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }";
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
        (array("|O", "(2, 3)", &[0; 48]), 400, "not_npy", "|O"),
        (cut(1), 400, "not_npy", "announces 2 × 3 numbers of 4 bytes, but 23 bytes follow"),
        (cut(24), 400, "not_npy", "but 0 bytes follow"),
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
fn an_error_of_one_query_has_its_place_in_json_and_fails_an_array() {
    let (_scratch, service) = some_rows();
    let mut queries = some_queries(4);
    queries[3..6].fill(0.0);
    queries[11] = f32::INFINITY;
    let body = array("<f4", "(4, 3)", &f4(&queries));
    let results = ask(&service, "/nearest?k=2", &[NPY], &body).json()["results"].clone();
    let codes: Vec<&str> = results
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["error"]["code"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(codes, ["", "zero_query", "", "not_finite"]);
    let reply = ask(&service, "/nearest?k=2", &[NPY, WANTS_NPY], &body);
    fails(&reply, 422, "zero_query", "`queries[1]`: the query is a zero vector");
    fails(&reply, 422, "zero_query", "accept application/json");
    assert_eq!(reply.json()["query"], 1);
    queries[3] = 1.0;
    let body = array("<f4", "(4, 3)", &f4(&queries));
    let reply = ask(&service, "/nearest?k=2", &[NPY, WANTS_NPY], &body);
    fails(&reply, 422, "not_finite", "`queries[3]`: component 2 of the vector");
    // A word that the model does not have still gets its suggestions.
    let body = json!({"queries": [{"word": "w1"}, {"word": "W1"}]}).to_string();
    let reply = ask(&service, "/nearest", &[JSON, WANTS_NPY], body.as_bytes());
    fails(
        &reply,
        404,
        "unknown_word",
        "`queries[1]`: the model does not have `W1`; did you mean w1",
    );
    assert_eq!(reply.json()["unknown"][0]["suggestions"][0], "w1");
    let body = json!({"queries": [{"word": "w1"}], "explain": true}).to_string();
    let reply = ask(&service, "/nearest", &[JSON, WANTS_NPY], body.as_bytes());
    fails(&reply, 422, "invalid_request", "`explain`");
    let explained = array("<f4", "(3,)", &f4(&[1.0, 2.0, 3.0]));
    fails(
        &ask(&service, "/nearest?explain=true", &[NPY, WANTS_NPY], &explained),
        422,
        "invalid_request",
        "JSON",
    );
    assert_eq!(ask(&service, "/nearest?explain=true", &[NPY], &explained).status, 200);
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
        fails(&get(path), 406, "not_acceptable", "the answer is application/json,");
    }
    let analogy = ask(&service, "/analogy", &[JSON, WANTS_NPY], br#"{"expression": "w1 + w2"}"#);
    fails(&analogy, 406, "not_acceptable", "the answer is application/json,");
}

#[test]
fn a_words_vector_is_an_array_with_a_tag_of_its_own() {
    let (_scratch, service) = some_rows();
    let send = |method: &str, path: &str, headers: &[(&str, &str)]| {
        service.send(method, path.as_bytes(), headers, b"")
    };
    let vector = service.get("/words/w7?with_vector=true").json()["vector"].clone();
    let numbers: Vec<f32> =
        vector.as_array().unwrap().iter().map(|number| number.as_f64().unwrap() as f32).collect();
    for path in ["/words/w7", "/words?word=w7", "/words/w7?with_vector=true"] {
        let reply = send("GET", path, &[WANTS_NPY]);
        assert_eq!(reply.status, 200);
        assert!(reply.body.starts_with(b"\x93NUMPY\x01\x00"));
        let text = String::from_utf8_lossy(&reply.body).into_owned();
        assert!(
            text.contains("{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }"),
            "{text}"
        );
        assert!(reply.body.ends_with(&f4(&numbers)) && reply.body.len() == 128 + 12);
        assert_eq!(reply.header("vary"), Some("accept"));
        let head = send("HEAD", path, &[WANTS_NPY]);
        assert!(head.body.is_empty() && head.header("content-length") == Some("140"));
        let tag = reply.header("etag").unwrap();
        let in_json = send("GET", path, &[]);
        assert_eq!(in_json.header("vary"), Some("accept"));
        assert_ne!(in_json.header("etag"), Some(tag));
        let again = send("GET", path, &[WANTS_NPY, ("If-None-Match", tag)]);
        assert_eq!((again.status, again.header("etag")), (304, Some(tag)));
        assert_eq!(send("GET", path, &[("If-None-Match", tag)]).status, 200, "it is not JSON's");
        let json_tag = in_json.header("etag").unwrap();
        assert_eq!(send("GET", path, &[WANTS_NPY, ("If-None-Match", json_tag)]).status, 200);
    }
    fails(&send("GET", "/words/nothing", &[WANTS_NPY]), 404, "unknown_word", "nothing");
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

/// The value of a metric.
fn metric(service: &Service, name: &str) -> f64 {
    let reply = service.get("/metrics");
    let line = reply.text().lines().find(|line| line.starts_with(name));
    let line = line.unwrap_or_else(|| panic!("{name}: {}", reply.text()));
    line.rsplit(' ').next().unwrap().parse().unwrap()
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

#[test]
fn token_vectors_are_expanded_as_in_json() {
    let service = Service::with_default_model();
    let words = ["cheap", "flights", "frog", "pond"];
    let vectors: Vec<Vec<f32>> = words
        .iter()
        .map(|word| {
            let reply = service.send("GET", format!("/words/{word}").as_bytes(), &[WANTS_NPY], b"");
            let numbers = &reply.body[reply.body.len() - 400..];
            numbers.chunks(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
        })
        .collect();
    let one = json!({"vectors": &vectors[..2], "top": 5, "explain": true});
    let body = array("<f4", "(2, 100)", &f4(&vectors[..2].concat()));
    let reply = ask(&service, "/expand?top=5&explain=true", &[NPY], &body);
    assert_eq!(reply.text(), service.post("/expand", &one).text());
    assert_eq!(reply.json()["terms"].as_array().unwrap().len(), 5);
    let several = json!({"texts": [{"vectors": &vectors[..2]}, {"vectors": &vectors[2..]}],
        "top": 4, "max_ratio": 0.1, "format": "impacts", "head": "nearby"});
    let body = array("<f4", "(2, 2, 100)", &f4(&vectors.concat()));
    let target = "/expand?top=4&max_ratio=0.1&format=impacts&head=nearby";
    let reply = ask(&service, target, &[NPY], &body);
    assert_eq!(reply.text(), service.post("/expand", &several).text());
    assert_eq!(reply.json()["results"].as_array().unwrap().len(), 2);
    // A bad text has its place in the results.
    let mut bad = vectors.concat();
    bad[250] = f32::NAN;
    let reply = ask(&service, "/expand", &[NPY], &array("<f4", "(2, 2, 100)", &f4(&bad)));
    let results = reply.json()["results"].clone();
    assert_eq!(results[1]["error"]["code"], "not_finite");
    assert!(results[0]["terms"].is_array(), "{results}");
    for (body, target, status, code, says) in [
        (array("<f4", "(100,)", &[0; 400]), "/expand", 422, "invalid_request", "[tokens, dim]"),
        (array("<f4", "(0, 100)", b""), "/expand", 422, "invalid_request", "0 tokens"),
        (array("<f4", "(0, 1, 100)", b""), "/expand", 422, "invalid_request", "0 texts"),
        (array("<f4", "(9999999, 0)", b""), "/expand", 422, "invalid_request", "9999999 tokens"),
        (array("<f4", "(1, 0)", b""), "/expand", 422, "invalid_request", "at least one component"),
        (array("<f4", "(1, 99)", &[0; 396]), "/expand", 422, "dimension_mismatch", "99"),
        (array("<f4", "(1, 100)", &[0; 396]), "/expand", 400, "not_npy", "396 bytes follow"),
        (array("<f4", "(1, 100)", &[0; 400]), "/expand?text=a", 422, "unknown_field", "`text`"),
        (array("<f4", "(1, 100)", &[0; 400]), "/expand?top=0", 422, "invalid_value", "`top`"),
        (array("<f4", "(1, 100)", &[0; 400]), "/expand?format=x", 422, "invalid_value", "`format`"),
        (array("<f4", "(1, 100)", &[0; 400]), "/expand?head=x", 404, "no_such_head", "`x`"),
        (b"{}".to_vec(), "/expand", 400, "not_npy", "--data-binary"),
    ] {
        fails(&ask(&service, target, &[NPY], &body), status, code, says);
    }
    let reply = ask(&service, "/expand", &[NPY, WANTS_NPY], &body);
    fails(&reply, 406, "not_acceptable", "the answer is application/json,");
}

#[test]
fn rows_that_tie_or_are_zero_come_as_in_json() {
    let (_scratch, model) = prepared(TINY);
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    let body = array("<f8", "(2, 2)", &f8(&[1.0, 0.0, -3.0, 1e-9]));
    let (shape, found) = cells(&ask(&service, "/nearest?k=9", &[NPY, WANTS_NPY], &body));
    assert_eq!(shape, [2, 9]);
    let rows: Vec<i64> = found.iter().map(|cell| cell.0).collect();
    assert_eq!(rows[..9], [0, 5, 2, 1, 3, -1, -1, -1, -1]);
    assert!(found[5].1 == f64::NAN.to_bits() && found[0].1 == 1f64.to_bits());
}
