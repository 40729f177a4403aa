//! Filters through HTTP, on the products of docs/filters.md: answers are those of the whole
//! ranking, evaluated here one by one.

mod service;
mod several_engines;

use serde_json::{Value, json};

use crate::support::products;
use crate::support::{Service, errors, kindred};

struct Shop {
    _folder: tempfile::TempDir,
    path: String,
    service: Service,
    items: Vec<Value>,
}

impl Shop {
    fn open() -> Self {
        let (folder, model) = products::prepared();
        let path = model.to_str().expect("a path").to_owned();
        let service = Service::start(&["--model", &path, "--device", "cpu"]);
        Self { _folder: folder, path, service, items: products::items() }
    }

    fn item(&self, word: &str) -> &Value {
        self.items.iter().find(|item| item["name"] == word).expect("a product")
    }

    /// The neighbours that a question has without a filter, all of them.
    fn all(&self, path: &str, asked: &Value) -> Vec<Value> {
        let mut asked = asked.clone();
        asked["k"] = json!(1000);
        neighbors(&self.service.post(path, &asked).json())
    }

    fn filtered(&self, path: &str, asked: &Value, filter: &str) -> Vec<Value> {
        let mut asked = asked.clone();
        asked["filter"] = json!(filter);
        neighbors(&self.service.post(path, &asked).json())
    }

    /// The number of rows that meet a filter, by GET and by POST.
    fn count(&self, filter: &str) -> usize {
        let by_post = self.service.post("/count", &json!({"filter": filter}));
        let by_get = self.service.get(&format!("/count?filter={}", encoded(filter)));
        assert_eq!((by_post.status, by_get.status), (200, 200), "{filter}: {}", by_post.text());
        assert_eq!(by_post.json(), by_get.json(), "{filter}");
        assert_eq!(by_post.json()["rows"], self.items.len());
        by_post.json()["count"].as_u64().expect("a number") as usize
    }
}

fn encoded(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

fn neighbors(answer: &Value) -> Vec<Value> {
    answer["neighbors"].as_array().unwrap_or_else(|| panic!("no neighbors: {answer}")).clone()
}

type Meets = fn(&Value) -> bool;

fn number(item: &Value, name: &str, meets: impl Fn(f64) -> bool) -> bool {
    item[name].as_f64().is_some_and(meets)
}

fn is(item: &Value, name: &str, text: &str) -> bool {
    item[name] == text
}

fn tagged(item: &Value, meets: impl Fn(&str) -> bool) -> bool {
    item["tags"].as_array().into_iter().flatten().any(|tag| meets(tag.as_str().unwrap()))
}

fn added(item: &Value, meets: impl Fn(&str) -> bool) -> bool {
    item["added"].as_str().is_some_and(meets)
}

/// Filters, and what they mean.
const FILTERS: &[(&str, Meets)] = &[
    ("category = shoes", |item| is(item, "category", "shoes")),
    ("category = Shoes", |_| false),
    ("category != shoes", |item| !is(item, "category", "shoes")),
    ("price < 80", |item| number(item, "price", |price| price < 80.0)),
    ("price <= 79.5", |item| number(item, "price", |price| price <= 79.5)),
    ("price > 79.5", |item| number(item, "price", |price| price > 79.5)),
    ("price >= 795e-1", |item| number(item, "price", |price| price >= 79.5)),
    ("price = 110", |item| number(item, "price", |price| price == 110.0)),
    ("not price<80", |item| !number(item, "price", |price| price < 80.0)),
    ("price 45 TO 95", |item| number(item, "price", |price| (45.0..=95.0).contains(&price))),
    ("price 95 to 45", |_| false),
    ("stock < 2.5", |item| number(item, "stock", |stock| stock < 2.5)),
    ("stock = 12.0", |item| number(item, "stock", |stock| stock == 12.0)),
    ("stock IN [0, 3, 7, 1e2]", |item| number(item, "stock", |n| [0., 3., 7., 100.].contains(&n))),
    ("stock NOT IN [0, 3]", |item| !number(item, "stock", |n| [0.0, 3.0].contains(&n))),
    ("stock EXISTS", |item| item["stock"].is_number()),
    ("stock IS NULL", |item| item["stock"].is_null()),
    ("stock is not null", |item| item["stock"].is_number()),
    ("on_sale = true", |item| item["on_sale"] == true),
    ("on_sale = false", |item| item["on_sale"] == false),
    ("on_sale != true", |item| item["on_sale"] != true),
    ("on_sale NOT EXISTS", |item| item["on_sale"].is_null()),
    ("tags = outdoor", |item| tagged(item, |tag| tag == "outdoor")),
    ("tags != outdoor", |item| !tagged(item, |tag| tag == "outdoor")),
    ("tags IN [formal, winter]", |item| tagged(item, |tag| tag == "formal" || tag == "winter")),
    ("tags STARTS WITH r", |item| tagged(item, |tag| tag.starts_with('r'))),
    ("tags NOT STARTS WITH r", |item| !tagged(item, |tag| tag.starts_with('r'))),
    (r#"tags = "rain \"storm\"""#, |item| tagged(item, |tag| tag == "rain \"storm\"")),
    ("tags EXISTS", |item| item["tags"].is_array()),
    ("added >= 2026-02-01T08:00:00Z", |item| added(item, |at| at >= "2026-02-01T08:00:00Z")),
    ("added < '2026-02-01T09:00:00+01:00'", |item| added(item, |at| at < "2026-02-01T08:00:00Z")),
    ("added 2025-10-05T08:00:00Z TO 2025-12-01T08:00:00Z", |item| {
        added(item, |at| ("2025-10-05T08:00:00Z"..="2025-12-01T08:00:00Z").contains(&at))
    }),
    ("key IN ['trail runner', suit, nothing]", |item| {
        is(item, "name", "trail runner") || is(item, "name", "suit")
    }),
    ("key != suit", |item| !is(item, "name", "suit")),
    ("category = shoes AND price < 100 OR tags = winter", |item| {
        is(item, "category", "shoes") && number(item, "price", |price| price < 100.0)
            || tagged(item, |tag| tag == "winter")
    }),
    ("category = shoes AND (price < 100 OR tags = formal) AND NOT key = sandal", |item| {
        is(item, "category", "shoes")
            && (number(item, "price", |price| price < 100.0) || tagged(item, |t| t == "formal"))
            && !is(item, "name", "sandal")
    }),
    ("NOT (category = shoes OR on_sale = true)", |item| {
        !(is(item, "category", "shoes") || item["on_sale"] == true)
    }),
    ("price < 0", |_| false),
];

#[test]
fn an_answer_has_the_rows_of_the_whole_ranking_that_meet_the_filter() {
    let shop = Shop::open();
    let questions = [
        ("/nearest", json!({"word": "sneaker"})),
        ("/nearest", json!({"vector": [1.0, 2.0, 3.0]})),
        ("/nearest", json!({"text": "suit parka"})),
        ("/analogy", json!({"expression": "suit - oxford + sneaker"})),
        (
            "/analogy",
            json!({"positive": ["suit", "sneaker"], "negative": ["oxford"],
            "method": "3cosmul"}),
        ),
    ];
    for (path, asked) in &questions {
        let all = shop.all(path, asked);
        for (filter, meets) in FILTERS {
            let meets = |one: &&Value| meets(shop.item(one["word"].as_str().unwrap()));
            let expected: Vec<Value> = all.iter().filter(meets).take(10).cloned().collect();
            assert_eq!(shop.filtered(path, asked, filter), expected, "{path} {asked} {filter}");
        }
    }
    for (filter, meets) in FILTERS {
        assert_eq!(shop.count(filter), shop.items.iter().filter(|item| meets(item)).count());
    }
    // A filter that nothing meets is answered with nothing.
    let nothing = shop.service.post("/nearest", &json!({"word": "suit", "filter": "price < 0"}));
    assert_eq!((nothing.status, &nothing.json()["neighbors"]), (200, &json!([])));
}

#[test]
fn get_arrays_and_the_command_line_have_the_same_answers() {
    let shop = Shop::open();
    let filter = "price < 100 AND NOT category IN [bags]";
    let asked = json!({"word": "sneaker", "k": 4, "filter": filter});
    let by_post = shop.service.post("/nearest", &asked).json();
    let query = format!("/nearest?word=sneaker&k=4&filter={}", encoded(filter));
    assert_eq!(shop.service.get(&query).json(), by_post);
    // The set is there by now, and the same filter may be written otherwise.
    assert_eq!(shop.service.get(&query).json(), by_post);
    let other = encoded("category!=bags and  price<1e2");
    let query = format!("/nearest?word=sneaker&k=4&filter={other}");
    assert_eq!(shop.service.get(&query).json(), by_post);
    let query = format!("/analogy?expression=suit-oxford&unknown=skip&filter={other}");
    assert_eq!(shop.service.get(&query).status, 404, "one word");

    let vector = [9.0f32, 1.0, 2.0];
    let body: Vec<u8> =
        [model_store::npy::head("'<f4'", &[1, 3]), vector.map(f32::to_le_bytes).concat()].concat();
    let target = format!("/nearest?k=4&exclude=sneaker&filter={}", encoded(filter));
    let headers = [("Content-Type", "application/x-npy")];
    let of_array = shop.service.send("POST", target.as_bytes(), &headers, &body).json();
    assert_eq!(of_array["results"][0]["neighbors"], by_post["neighbors"]);

    let flags = ["--model", &shop.path, "--filter", filter, "-k", "4", "--json"];
    let output = kindred(&[&["nearest", "sneaker"], &flags[..]].concat()).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    let printed: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(printed["neighbors"], by_post["neighbors"]);
    let flags = ["--model", &shop.path, "--filter", "prize < 5"];
    let output = kindred(&[&["nearest", "sneaker"], &flags[..]].concat()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success() && said.contains("did you mean `price`?"), "{said}");
}

#[test]
fn the_command_line_prints_attributes_that_are_wanted() {
    let shop = Shop::open();
    let flags = ["nearest", "sneaker", "--model", &shop.path, "-k", "2"];
    let by_post = |with: Value| {
        let body = json!({"word": "sneaker", "k": 2, "with_attributes": with});
        shop.service.post("/nearest", &body).json()["neighbors"].clone()
    };
    for (flag, with) in [
        ("--with-attributes", json!(true)),
        ("--with-attributes=price,category", json!(["price", "category"])),
    ] {
        let asked = |more: &[&str]| {
            let output = kindred(&[&flags[..], &[flag], more].concat()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        let printed: Value = serde_json::from_str(&asked(&["--json"])).unwrap();
        assert_eq!(printed["neighbors"], by_post(with.clone()));
        let lines = asked(&[]);
        for (line, neighbor) in lines.lines().zip(by_post(with).as_array().unwrap()) {
            let column = line.split('\t').nth(3).expect("a fourth column");
            assert_eq!(serde_json::from_str::<Value>(column).unwrap(), neighbor["attributes"]);
        }
    }
    let wrong = kindred(&[&flags[..], &["--with-attributes=prize"]].concat()).output().unwrap();
    assert!(errors(&wrong).contains("not `prize`"), "{}", errors(&wrong));
}

#[test]
fn the_queries_of_a_batch_may_have_filters_of_their_own() {
    let shop = Shop::open();
    let filters = ["category = shoes", "price < 50", "key = suit", "on_sale = true", "price < 0"];
    let mut queries: Vec<Value> =
        filters.iter().map(|filter| json!({"word": "sneaker", "filter": filter})).collect();
    queries.push(json!({"word": "sneaker"}));
    queries.push(json!({"word": "sneaker", "filter": "color = red"}));
    let together =
        shop.service.post("/nearest", &json!({"queries": queries, "filter": "tags = leather"}));
    let results = together.json()["results"].clone();
    for (index, filter) in filters.iter().chain([&"tags = leather"]).enumerate() {
        let alone = shop.filtered("/nearest", &json!({"word": "sneaker"}), filter);
        assert_eq!(neighbors(&results[index]), alone, "{filter}");
    }
    assert_eq!(results[6]["error"]["code"], "invalid_filter");
    // A fault of the filter that all have in common is one of the request.
    let wrong = json!({"queries": [{"word": "suit"}], "filter": "color = red"});
    let wrong = shop.service.post("/nearest", &wrong);
    assert_eq!((wrong.status, &wrong.json()["code"]), (422, &json!("invalid_filter")));
    // Many different ones.
    let many: Vec<Value> = (0..300)
        .map(|n| json!({"word": "suit", "k": 1, "filter": format!("price > {n} AND stock < 50")}))
        .collect();
    let results = shop.service.post("/nearest", &json!({"queries": many})).json();
    let all = shop.all("/nearest", &json!({"word": "suit"}));
    for (n, result) in results["results"].as_array().unwrap().iter().enumerate() {
        let meets = |one: &&Value| {
            let item = shop.item(one["word"].as_str().unwrap());
            number(item, "price", |price| price > n as f64)
                && number(item, "stock", |stock| stock < 50.0)
        };
        let expected: Vec<Value> = all.iter().filter(meets).take(1).cloned().collect();
        assert_eq!(neighbors(result), expected, "{n}");
    }
}

#[test]
fn a_filter_goes_together_with_the_other_options() {
    let shop = Shop::open();
    let all = shop.all("/nearest", &json!({"word": "sneaker"}));
    let index = |word: &str| shop.items.iter().position(|item| item["name"] == word).unwrap();
    let words = |found: &[Value]| -> Vec<String> {
        found.iter().map(|one| one["word"].as_str().unwrap().to_owned()).collect()
    };
    let cheap = |word: &str| number(shop.item(word), "price", |price| price < 100.0);
    let expected = |meets: &dyn Fn(&str) -> bool| -> Vec<String> {
        words(&all).into_iter().filter(|word| cheap(word) && meets(word)).take(10).collect()
    };
    let asked = |options: Value| {
        let mut asked = json!({"word": "sneaker", "filter": "price < 100"});
        asked.as_object_mut().unwrap().extend(options.as_object().unwrap().clone());
        let answer = shop.service.post("/nearest", &asked).json();
        words(&neighbors(&answer))
    };
    let excluded = ["gym bag", "sandal", "parka"];
    assert_eq!(asked(json!({"exclude": excluded})), expected(&|word| !excluded.contains(&word)));
    assert_eq!(asked(json!({"vocab_limit": 12})), expected(&|word| index(word) < 12));
    let both = json!({"vocab_limit": 12, "exclude": excluded});
    assert_eq!(asked(both), expected(&|word| index(word) < 12 && !excluded.contains(&word)));
    assert_eq!(asked(json!({"include_query": true}))[0], "sneaker");
    let score =
        |word: &str| all.iter().find(|one| one["word"] == word).unwrap()["score"].as_f64().unwrap();
    assert_eq!(asked(json!({"min_score": 0.9})), expected(&|word| score(word) >= 0.9));
    assert_eq!(asked(json!({"max_score": 0.5})), expected(&|word| score(word) <= 0.5));
    assert_eq!(asked(json!({"fold_case": true})), expected(&|_| true));

    // Ranks count the rows that pass; one that does not has none.
    let ranked = json!({"word": "sneaker", "words": ["sandal", "suit", "backpack"],
        "filter": "price < 100"});
    let ranked = shop.service.post("/rank", &ranked).json();
    let rank = |word: &str| expected(&|_| true).iter().position(|one| one == word).map(|at| at + 1);
    let ranks: Vec<Value> =
        ["sandal", "suit", "backpack"].iter().map(|word| json!(rank(word))).collect();
    let found: Vec<Value> =
        ranked["ranked"].as_array().unwrap().iter().map(|one| one["rank"].clone()).collect();
    assert_eq!((&found, &found[1]), (&ranks, &Value::Null));
}

#[test]
fn answers_have_attributes_on_request() {
    let shop = Shop::open();
    let asked = json!({"word": "sneaker", "k": 19, "with_attributes": true});
    for one in neighbors(&shop.service.post("/nearest", &asked).json()) {
        let item = shop.item(one["word"].as_str().unwrap());
        let attributes = one["attributes"].as_object().unwrap();
        assert_eq!(attributes.len(), 6, "{one}");
        for (name, value) in attributes {
            assert_eq!(*value, item[name], "{one}");
        }
    }
    let by_get = |query: &str| {
        let answer = shop.service.get(&format!("/nearest?word=sneaker&k=1&{query}"));
        neighbors(&answer.json()).remove(0)["attributes"].clone()
    };
    // The nearest is the gym bag.
    let some = json!({"category": "bags", "price": 45.0});
    assert_eq!(by_get("with_attributes=price&with_attributes=category"), some);
    assert_eq!(by_get("with_attributes=true").as_object().unwrap().len(), 6);
    assert_eq!(by_get("with_attributes=false"), Value::Null);
    assert_eq!(by_get(""), Value::Null);
    let batch = json!({"queries": [{"expression": "suit - oxford + sneaker"}], "k": 2,
        "with_attributes": ["stock"]});
    let batch = shop.service.post("/analogy", &batch).json();
    for one in neighbors(&batch["results"][0]) {
        assert_eq!(
            one["attributes"],
            json!({"stock": shop.item(one["word"].as_str().unwrap())["stock"]})
        );
    }
    let wrong = json!({"word": "sneaker", "with_attributes": ["price", "colour"]});
    let wrong = shop.service.post("/nearest", &wrong).json();
    assert_eq!(
        (&wrong["code"], &wrong["field"]),
        (&json!("invalid_value"), &json!("with_attributes"))
    );
    assert!(wrong["detail"].as_str().unwrap().ends_with("not `colour`"), "{wrong}");
    for with in [json!(5), json!("price"), json!(null), json!([5])] {
        let asked = json!({"word": "sneaker", "with_attributes": with});
        assert_eq!(shop.service.post("/nearest", &asked).json()["code"], "invalid_value");
    }
    let plain = Service::with_default_model().get("/nearest?word=frog&k=1&with_attributes=true");
    assert_eq!(neighbors(&plain.json())[0]["attributes"], json!({}));
}

#[test]
fn terms_of_texts_are_those_of_all_that_meet_the_filter() {
    let (folder, model) = products::prepared();
    let [model, head] =
        [model, folder.path().join("near")].map(|path| path.to_str().unwrap().to_owned());
    let train = ["train", "expander", "--model", &model, "--out", &head, "--terms", "15"];
    assert!(kindred(&train).output().unwrap().status.success());
    let service = Service::start(&["--model", &model, "--head", &head, "--device", "cpu"]);
    let items = products::items();
    let text = "sneaker suit parka";
    let all = service.post("/expand", &json!({"text": text, "top": 1000, "explain": true})).json();
    let all = all["terms"].as_array().unwrap();
    assert!(all.len() > 10, "{all:?}");
    let mut found_some = 0;
    for (filter, meets) in FILTERS {
        let of = |term: &Value| items.iter().find(|item| item["name"] == term["term"]).unwrap();
        let expected: Vec<&Value> = all.iter().filter(|term| meets(of(term))).take(3).collect();
        let asked = json!({"text": text, "top": 3, "explain": true, "filter": filter});
        let by_post = service.post("/expand", &asked).json();
        assert_eq!(by_post["terms"], json!(expected), "{filter}");
        found_some += usize::from(expected.len() == 3);
        let query = format!(
            "/expand?text=sneaker+suit+parka&top=3&explain=true&filter={}",
            encoded(filter)
        );
        assert_eq!(service.get(&query).json(), by_post, "{filter}");
    }
    assert!(found_some > 3, "{found_some} filters");

    // Vectors of tokens: here two of sneaker's, and one of suit's.
    let filter = "category = clothes AND price < 100";
    let rows: [[f32; 3]; 2] = [[9.0, 1.0, 2.0], [0.0, 9.0, 2.0]];
    let asked = json!({"vectors": rows, "top": 4, "filter": filter});
    let by_json = service.post("/expand", &asked).json();
    let npy = model_store::npy::head("'<f4'", &[2, 3]);
    let body = [npy, rows.as_flattened().iter().flat_map(|x| x.to_le_bytes()).collect()].concat();
    let target = format!("/expand?top=4&filter={}", encoded(filter));
    let headers = [("Content-Type", "application/x-npy")];
    let by_array = service.send("POST", target.as_bytes(), &headers, &body).json();
    assert_eq!(by_array, by_json);
    assert!(!by_json["terms"].as_array().unwrap().is_empty(), "{by_json}");

    // The command line, here and by a service, and bulk work.
    let by_post = service.post("/expand", &json!({"text": text, "filter": filter})).json();
    let url = service.url("");
    let run = |flags: &[&str]| {
        let output = kindred(flags).output().unwrap();
        (
            output.status.success(),
            String::from_utf8_lossy(&output.stderr).into_owned(),
            output.stdout,
        )
    };
    let (input, out) = (folder.path().join("in.txt"), folder.path().join("out.jsonl"));
    std::fs::write(&input, format!("{text}\n")).unwrap();
    let files = ["--in", input.to_str().unwrap(), "--out", out.to_str().unwrap(), "--replace"];
    let here = ["--model", &model, "--head", &head];
    for by in [&here[..], &["--url", &url]] {
        let flags = [&["expand", "--json", "--filter", filter], by, &[text]].concat();
        let (is_right, said, printed) = run(&flags);
        assert!(is_right, "{said}");
        let printed: Value = serde_json::from_slice(&printed).unwrap();
        assert_eq!(printed["terms"], by_post["terms"]);
        let (is_right, said, _) =
            run(&[&["bulk", "expand", "--filter", filter], &files[..], by].concat());
        assert!(is_right, "{said}");
        let written: Value = serde_json::from_slice(&std::fs::read(&out).unwrap()).unwrap();
        assert_eq!(written["terms"], by_post["terms"]);
        let flags = [&["expand", "--filter", "prize < 5"], by, &[text]].concat();
        let (is_right, said, _) = run(&flags);
        assert!(!is_right && said.contains("did you mean `price`?"), "{said}");
    }

    let wrong = service.post("/expand", &json!({"text": text, "filter": "price < few"}));
    assert_eq!((wrong.status, &wrong.json()["code"]), (422, &json!("invalid_filter")));
    let nothing = service.post("/expand", &json!({"text": text, "filter": "price < 0"})).json();
    assert_eq!(nothing["terms"], json!([]));
}
