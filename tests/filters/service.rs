//! Filters and the service around them: deadlines, metrics, faults, caches.

use serde_json::json;

use super::{Shop, encoded};
use crate::support::{Service, kindred};

#[test]
fn a_deadline_holds_while_a_set_is_made() {
    const ROWS: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let rows: String = (0..ROWS).map(|row| format!("w{row} 1 {}\n", row % 9)).collect();
    let values = (0..ROWS).map(|row| format!("{}\n", row % 1000));
    std::fs::write(path("rows.txt"), rows).unwrap();
    std::fs::write(path("rows.csv"), "n\n".to_owned() + &values.collect::<String>()).unwrap();
    let model = path("model");
    let flags = ["prepare", &path("rows.txt"), "--attributes", &path("rows.csv"), "--out", &model];
    assert!(kindred(&flags).output().unwrap().status.success());
    let service = Service::start(&["--model", &model, "--device", "cpu"]);
    // No row decides any of these tests before the last.
    let tests: Vec<String> = (0..255).map(|n| format!("n != {}", n + 2000)).collect();
    let filter = |last: usize| format!("{} AND n < {last}", tests.join(" AND "));
    let mut late = 0;
    for last in 1..6 {
        let reply = service.post("/count", &json!({"filter": filter(last), "timeout_ms": 2}));
        match reply.status {
            504 => late += 1,
            status => assert_eq!(status, 200, "{}", reply.text()),
        }
    }
    assert!(late > 0, "15 million tests of rows take more than 2 ms");
    // Whoever has the time gets the answer.
    let reply = service.post("/count", &json!({"filter": filter(2)}));
    assert_eq!((reply.status, &reply.json()["count"]), (200, &json!(ROWS / 1000 * 2)));
    let nearest = service.get("/nearest?word=w1&k=3&filter=n%3C2");
    assert_eq!(nearest.json()["neighbors"].as_array().unwrap().len(), 3);
}

#[test]
fn sets_of_filters_have_metrics() {
    let shop = Shop::open();
    let ask = |filter: &str| {
        let query = format!("/nearest?word=suit&filter={}", encoded(filter));
        assert_eq!(shop.service.get(&query).status, 200);
    };
    ["price < 80", "price<80", "price < 80", "stock > 0"].iter().for_each(|filter| ask(filter));
    let metrics = shop.service.get("/metrics").text().to_owned();
    let of = |name: &str| -> f64 {
        let name = format!("kindred_filter_{name}{{model=\"products\"}} ");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
    };
    assert_eq!([of("sets"), of("sets_made_total"), of("set_hits_total")], [2.0, 2.0, 2.0]);
    assert_eq!(of("sets_dropped_total"), 0.0);
    assert!(of("set_bytes") > 0.0 && of("set_bytes") < of("set_capacity_bytes"));
}

#[test]
fn faults_are_told_with_their_place_and_the_cure() {
    let shop = Shop::open();
    for (filter, column, detail) in [
        ("", 1, "expected"),
        ("price <", 8, "expected"),
        ("price < 80 && stock > 1", 12, "write AND"),
        ("prize < 80", 1, "did you mean `price`?"),
        ("stock > 1 AND colour = red", 15, "the model has no attribute `colour`"),
        ("stock > few", 9, "`stock` is an integer"),
        ("category < 5", 10, "`category` is a text"),
        ("on_sale = yes", 11, "`true` or `false`"),
        ("added > yesterday", 9, "RFC 3339"),
        ("price = NaN", 9, "a number"),
        ("key < a", 5, "`key` is a row's word"),
        ("(price < 80", 12, "expected"),
        ("price < 80 price > 5", 12, "expected"),
    ] {
        let by_get = shop.service.get(&format!("/count?filter={}", encoded(filter)));
        let searched = shop.service.post("/nearest", &json!({"word": "suit", "filter": filter}));
        for problem in [by_get, searched] {
            assert_eq!(problem.status, 422, "{filter}: {}", problem.text());
            let problem = problem.json();
            assert_eq!(problem["code"], "invalid_filter", "{problem}");
            assert_eq!((&problem["field"], &problem["column"]), (&json!("filter"), &json!(column)));
            assert!(problem["detail"].as_str().unwrap().contains(detail), "{problem}");
        }
    }
    let known = shop.service.get("/count?filter=prize=1").json()["known"].clone();
    assert_eq!(known, json!(["added", "category", "on_sale", "price", "stock", "tags"]));
    for (path, code) in [
        ("/count", "invalid_request"),
        ("/count?filter=price=1&filter=price=2", "invalid_request"),
        ("/count?filtre=price=1", "unknown_field"),
        ("/nearest?word=suit&filter=price=1&filter=price=2", "invalid_request"),
    ] {
        assert_eq!(shop.service.get(path).json()["code"], code, "{path}");
    }
    for body in [json!({}), json!({"filter": 5}), json!({"filter": null})] {
        assert_eq!(shop.service.post("/count", &body).status, 422, "{body}");
    }
    // A model without attributes has its words.
    let plain = Service::with_default_model();
    assert_eq!(plain.get("/count?filter=key=frog").json()["count"], 1);
    let problem = plain.get("/count?filter=price=1").json();
    assert!(problem["detail"].as_str().unwrap().contains("none but `key`"), "{problem}");
}

#[test]
fn counts_are_cached_and_have_a_head() {
    let shop = Shop::open();
    let path = "/count?filter=price=18";
    let first = shop.service.get(path);
    let tag = first.header("etag").expect("a tag").to_owned();
    let again = shop.service.send("GET", path.as_bytes(), &[("If-None-Match", &tag)], b"");
    assert_eq!((again.status, again.body.len()), (304, 0));
    let head = shop.service.send("HEAD", path.as_bytes(), &[], b"");
    assert_eq!((head.status, head.header("etag")), (200, Some(&*tag)));
    let put = shop.service.send("PUT", path.as_bytes(), &[], b"");
    assert_eq!((put.status, put.header("allow")), (405, Some("GET,HEAD,POST")));
    let named = shop.service.get("/models/products/count?filter=price=18");
    assert_eq!(named.json(), first.json());
}
