//! Filters and the service around them: deadlines, metrics, faults, caches.

use serde_json::json;

use super::{Shop, encoded};
use crate::support::{Reply, Service, kindred};

#[test]
fn a_set_is_not_made_any_longer_than_its_deadline() {
    const ROWS: usize = 60_000;
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).to_str().unwrap().to_owned();
    let rows: String = (0..ROWS).map(|row| format!("w{row} 1 {}\n", row % 9)).collect();
    let rare: Vec<String> = (0..620).map(|n| format!("r{n}")).collect();
    let tags = |row: usize| if row == 7 { json!(rare) } else { json!(["a", "b", "c"]) };
    let lines = (0..ROWS).map(|row| format!("{}\n", json!({"n": row % 1000, "tags": tags(row)})));
    std::fs::write(path("rows.txt"), rows).unwrap();
    std::fs::write(path("rows.jsonl"), lines.collect::<String>()).unwrap();
    let model = path("model");
    let flags =
        ["prepare", &path("rows.txt"), "--attributes", &path("rows.jsonl"), "--out", &model];
    assert!(kindred(&flags).output().unwrap().status.success());
    let service = Service::start(&["--model", &model, "--device", "cpu"]);
    let made = || {
        let metrics = service.get("/metrics").text().to_owned();
        let made = metrics.lines().find(|line| line.starts_with("kindred_filter_sets_made_total"));
        made.unwrap().rsplit(' ').next().unwrap().parse::<f64>().unwrap()
    };
    // So many texts are wanted that all lists are looked at, again and again: no row but one has
    // any of them.
    let tests: Vec<String> =
        (0..120).map(|n| format!("tags STARTS WITH r AND n != {}", 5000 + n)).collect();
    let filter = |n: usize| format!("{} OR n = {n}", tests.join(" OR "));
    let late = |reply: Reply| assert_eq!(reply.status, 504, "{}", reply.text());
    late(service.post("/count", &json!({"filter": filter(1), "timeout_ms": 9})));
    let search = json!({"word": "w1", "filter": filter(2), "timeout_ms": 9});
    late(service.post("/nearest", &search));
    let rank = json!({"word": "w1", "words": ["w2"], "filter": filter(3), "timeout_ms": 9});
    late(service.post("/rank", &rank));
    let batch = json!({"queries": [{"word": "w1", "filter": filter(4)}], "timeout_ms": 9});
    late(service.post("/nearest", &batch));
    let by_get = encoded(&filter(5));
    late(service.get(&format!("/nearest?word=w1&timeout_ms=9&filter={by_get}")));
    late(service.get(&format!("/count?timeout_ms=9&filter={by_get}")));
    // A set that is begun and left is not made, however long one waits.
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert_eq!(made(), 0.0);
    // Whoever has the time gets the answer.
    let reply = service.post("/count", &json!({"filter": filter(1)}));
    assert_eq!((reply.status, &reply.json()["count"]), (200, &json!(ROWS / 1000 + 1)));
    let nearest = service.get("/nearest?word=w1&k=3&filter=n%3C2");
    assert_eq!(nearest.json()["neighbors"].as_array().unwrap().len(), 3);
    assert_eq!(made(), 2.0);
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
        let name = format!("kindred_{name}{{model=\"products\"}} ");
        let value = metrics.lines().find_map(|line| line.strip_prefix(&name));
        value.unwrap_or_else(|| panic!("{name} in {metrics}")).parse().unwrap()
    };
    let filter = |name: &str| of(&format!("filter_{name}"));
    let counts = [filter("sets"), filter("sets_made_total"), filter("set_hits_total")];
    assert_eq!(counts, [2.0, 2.0, 2.0]);
    assert_eq!(filter("sets_dropped_total"), 0.0);
    assert!(filter("set_bytes") > 0.0 && filter("set_bytes") < filter("set_capacity_bytes"));
    // A byte for each row of five columns, and the ends of bins.
    assert!((100.0..100_000.0).contains(&of("attribute_index_bytes")));
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
