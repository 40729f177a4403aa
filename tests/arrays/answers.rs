//! The same answers as in JSON, bit for bit.

use super::{
    Cell, JSON, NPY, WANTS_NPY, array, ask, cells, expected, f4, f8, fails, file, shown,
    some_queries, some_rows,
};
use crate::support::{Service, TINY, prepared};
use serde_json::{Value, json};

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
        ("?offset=4&k=3", json!({"offset": 4, "k": 3})),
        ("?offset=999&k=1", json!({"offset": 999, "k": 1})),
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
    fails(&reply, 406, "not_acceptable", "the answer is application/json (POST /nearest");
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
