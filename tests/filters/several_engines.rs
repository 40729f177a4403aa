//! Filters where several engines share a model (the example `faulty`): replicas, shards, and both,
//! also while the model is replaced by one with other attributes.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::{encoded, neighbors};
use crate::supervision::command;
use crate::support::{self, Reply, Service, Stops, errors, kindred, products};

/// Filters, of which each has other rows in either version.
const FILTERS: [&str; 4] = [
    "price < 80",
    "price 50 TO 150 AND NOT category = shoes",
    "stock > 10 OR on_sale = true",
    "key != suit AND price > 100",
];

/// The neighbours of each filter, and how many rows meet it; by the version of the model.
type Expected = HashMap<String, Vec<(Vec<Value>, Value)>>;

/// The service with two versions of the products: the second has the attributes of other rows.
struct TwoVersions {
    folder: tempfile::TempDir,
    service: Service,
}

impl TwoVersions {
    fn open(arguments: &[&str]) -> Self {
        let (folder, model) = products::prepared();
        let (key, line) = support::api_key(&["operator", "--admin"]);
        let keys = folder.path().join("keys");
        fs::write(&keys, line).unwrap();
        let (_tiny, mut command) = command(arguments, &[]);
        command.env("KINDRED_MODEL", model).env("KINDRED_API_KEYS_FILE", keys);
        let mut service = Service::spawn(command);
        service.key = Some(key);
        Self { folder, service }
    }

    /// Puts the attributes of each product beside another one.
    fn exchange(&self) {
        let items = products::items();
        let moved = items.iter().enumerate().map(|(row, item)| {
            let mut other = items[(row + 7) % items.len()].clone();
            other["name"] = item["name"].clone();
            format!("{other}\n")
        });
        fs::write(self.path("others.jsonl"), moved.collect::<String>()).unwrap();
        let arguments =
            ["prepare", "products.txt", "--attributes", "others.jsonl", "--key", "name", "--out"];
        let mut prepare = kindred(&[&arguments[..], &["products", "--replace"]].concat());
        let output = prepare.current_dir(self.folder.path()).output().unwrap();
        assert!(output.status.success(), "{}", errors(&output));
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        Path::new(self.folder.path()).join(name)
    }

    /// Adds what the version that is served has to answer: from its whole ranking and all of its
    /// attributes, by the answers of the filter's tests one row after the other.
    fn expect(&self, expected: &mut Expected) {
        let all = json!({"word": "sneaker", "k": 1000, "with_attributes": true});
        let reply = self.service.post("/nearest", &all);
        assert_eq!(reply.status, 200, "{}", reply.text());
        let found = reply.json();
        let meets = |filter: usize, one: &Value| {
            let of = |name: &str| &one["attributes"][name];
            let price = of("price").as_f64();
            match filter {
                0 => price.is_some_and(|price| price < 80.0),
                1 => {
                    price.is_some_and(|price| (50.0..=150.0).contains(&price))
                        && of("category") != "shoes"
                }
                2 => of("stock").as_i64().is_some_and(|stock| stock > 10) || of("on_sale") == true,
                _ => one["word"] != "suit" && price.is_some_and(|price| price > 100.0),
            }
        };
        // The word itself is no neighbour, but a row.
        let itself = json!({"word": "sneaker", "k": 1, "with_attributes": true,
            "include_query": true});
        let itself = neighbors(&self.service.post("/nearest", &itself).json());
        let of_version = (0..FILTERS.len()).map(|filter| {
            let rows: Vec<Value> =
                neighbors(&found).into_iter().filter(|one| meets(filter, one)).collect();
            let count = rows.len() + usize::from(meets(filter, &itself[0]));
            (rows, json!(count))
        });
        let version = found["version"].as_str().unwrap().to_owned();
        expected.insert(version, of_version.collect());
    }
}

/// Asks each filter alone, all of them in a batch, and how many rows meet each.
fn ask(service: &Service, seen: &Mutex<Vec<(usize, Reply)>>) {
    for (index, filter) in FILTERS.iter().enumerate() {
        let of = |route: &str| service.get(&format!("{route}filter={}", encoded(filter)));
        let alone = of("/nearest?word=sneaker&k=1000&with_attributes=true&");
        let count = of("/count?");
        seen.lock().unwrap().extend([(index, alone), (index, count)]);
    }
    let queries = FILTERS.map(|filter| json!({"word": "sneaker", "filter": filter}));
    let batch = json!({"queries": queries, "k": 1000, "with_attributes": true});
    let batch = service.post("/nearest", &batch);
    seen.lock().unwrap().push((FILTERS.len(), batch));
}

/// Checks an answer against the version that it names.
fn check(expected: &Expected, index: usize, reply: &Reply) -> String {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let found = reply.json();
    let version = found["version"].as_str().unwrap();
    let of_version = &expected[version];
    if let Some(results) = found["results"].as_array() {
        for (result, (rows, _)) in results.iter().zip(of_version) {
            assert_eq!(&neighbors(result), rows);
        }
    } else if found.get("count").is_some() {
        assert_eq!(found["count"], of_version[index].1, "{}", FILTERS[index]);
    } else {
        assert_eq!(neighbors(&found), of_version[index].0, "{}", FILTERS[index]);
    }
    version.to_owned()
}

#[test]
fn answers_are_of_one_version_with_the_sets_of_that_version() {
    for arguments in [
        &["--replicas", "3"][..],
        &["--shards", "3"],
        &["--replicas", "2", "--shards", "2", "--most-engines", "2"],
    ] {
        let shop = TwoVersions::open(arguments);
        let mut expected = Expected::new();
        shop.expect(&mut expected);
        shop.exchange();
        let (stop, seen) = (AtomicBool::new(false), Mutex::new(Vec::new()));
        std::thread::scope(|scope| {
            let _stops = Stops(&stop);
            for _ in 0..4 {
                scope.spawn(|| {
                    while !stop.load(Ordering::Relaxed) {
                        ask(&shop.service, &seen);
                    }
                });
            }
            let asked = |more: usize| {
                let deadline = Instant::now() + Duration::from_secs(30);
                let until = seen.lock().unwrap().len() + more;
                while seen.lock().unwrap().len() < until {
                    assert!(Instant::now() < deadline, "the service answers");
                    std::thread::sleep(Duration::from_millis(5));
                }
            };
            asked(50);
            let reloaded = shop.service.send("POST", b"/admin/reload", &[], b"");
            assert_eq!(reloaded.status, 200, "{}", reloaded.text());
            asked(50);
        });
        shop.expect(&mut expected);
        assert_eq!(expected.len(), 2, "the attributes belong to the version");
        let versions: Vec<&Vec<(Vec<Value>, Value)>> = expected.values().collect();
        for (one, other) in versions[0].iter().zip(versions[1]) {
            assert_ne!(one.0, other.0, "each filter tells the versions apart");
        }
        let mut answers: HashMap<String, usize> = HashMap::new();
        for (index, reply) in seen.into_inner().unwrap() {
            *answers.entry(check(&expected, index, &reply)).or_default() += 1;
        }
        assert!(answers.len() == 2 && answers.values().all(|&count| count >= 40), "{answers:?}");
    }
}
