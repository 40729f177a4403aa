//! Analogies by their methods, ranks and explanations, against the formulas in a plain loop.

use crate::support::{Reply, Service, TINY, prepared, random_vectors, words};
use contract::{Hit, Row};
use model_store::ModelStore;
use serde_json::{Value, json};

/// A small model of random vectors, and the service over it.
struct Random {
    model: ModelStore,
    service: Service,
    _folder: tempfile::TempDir,
}

fn random() -> Random {
    let words = (0..300).map(|i| format!("w{i}"));
    let (folder, path) = prepared(&random_vectors(words));
    let model = ModelStore::open(&path).unwrap();
    let service = Service::start(&["--model", path.to_str().unwrap(), "--device", "cpu"]);
    Random { model, service, _folder: folder }
}

impl Random {
    fn row(&self, word: &str) -> Row {
        self.model.words().row(word).unwrap()
    }

    /// The contract's score of a row against a word.
    fn cosine(&self, word: &str, row: Row) -> Option<f64> {
        let (table, of) = (self.model.table(), self.row(word));
        table.score(table.row(of), table.norm(of), row)
    }

    /// All rows by a formula, best first.
    fn ranked(&self, score: impl Fn(Row) -> Option<f64>) -> Vec<Hit> {
        let rows = (0..self.model.rows() as u32).map(Row);
        let mut hits: Vec<Hit> =
            rows.filter_map(|row| Some(Hit { row, score: score(row)? + 0.0 })).collect();
        hits.sort();
        hits
    }

    fn three_cos_mul(&self, positive: &[&str], negative: &[&str], row: Row) -> Option<f64> {
        let mut above = 1.0;
        for word in positive {
            above *= (self.cosine(word, row)? + 1.0) / 2.0;
        }
        let mut below = 1.0;
        for word in negative {
            below *= (self.cosine(word, row)? + 1.0) / 2.0 + 0.001;
        }
        Some(above / below)
    }

    fn pair_direction(&self, b: &str, c: &str, a: &str, row: Row) -> Option<f64> {
        let [s_b, s_c, s_a] = [b, c, a].map(|word| self.cosine(word, row));
        let (s_b, s_c, s_a) = (s_b?, s_c?, s_a?);
        let of_c = |word| self.cosine(word, self.row(c)).unwrap();
        let of_ab = self.cosine(a, self.row(b)).unwrap();
        if 2.0 - 2.0 * s_c < 1e-12 {
            return None;
        }
        let below = (2.0 - 2.0 * s_c).sqrt() * (2.0 - 2.0 * of_ab).sqrt();
        Some(((s_b - s_a) - (of_c(b) - of_c(a))) / below)
    }

    fn neighbors(&self, hits: &[Hit], without: &[&str], k: usize) -> Value {
        let written = |hit: &&Hit| !without.contains(&self.model.words().word(hit.row));
        hits.iter()
            .filter(written)
            .take(k)
            .map(|hit| {
                let word = self.model.words().word(hit.row);
                json!({"word": word, "score": hit.score, "row": hit.row.0})
            })
            .collect()
    }
}

fn ok(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    let timing = reply.header("server-timing").expect("every answer carries Server-Timing");
    assert!(timing.contains("queue;dur=") && timing.contains("engine;desc=\"cpu\""), "{timing}");
    reply.json()
}

#[test]
fn every_method_gives_what_its_formula_says_to_the_bit() {
    let random = random();
    let (mut queries, mut expected) = (Vec::new(), Vec::new());
    for i in 0..40 {
        let [b, a, c] = [i, i * 7 + 40, i * 5 + 80].map(|i| format!("w{}", i % 300));
        let (b, a, c) = (&b[..], &a[..], &c[..]);
        let [in_b, in_c, in_a] = [b, c, a].map(|word| random.model.table().norm(random.row(word)));
        let is_direction = in_b * in_c * in_a > 0.0
            && 2.0 - 2.0 * random.cosine(a, random.row(b)).unwrap() >= 1e-12;
        if !is_direction {
            continue;
        }
        let k = [1, 10, 1000][i % 3];
        let expression = format!("{b} - {a} + {c}");
        let product = random.ranked(|row| random.three_cos_mul(&[b, c], &[a], row));
        queries.push(json!({"expression": expression, "method": "3cosmul", "k": k}));
        expected.push(random.neighbors(&product, &[a, b, c], k));
        let direction = random.ranked(|row| random.pair_direction(b, c, a, row));
        queries.push(json!({
            "positive": [b, c], "negative": [a], "method": "pairdirection", "k": k,
            "include_query": true
        }));
        expected.push(random.neighbors(&direction, &[], k));
        let of_many = random.ranked(|row| random.three_cos_mul(&[a, a, b], &[c, b], row));
        queries.push(json!({
            "positive": [a, a, b], "negative": [c, b], "method": "3cosmul", "k": k,
            "min_score": 0.5
        }));
        let of_many: Vec<Hit> = of_many.into_iter().filter(|hit| hit.score >= 0.5).collect();
        expected.push(random.neighbors(&of_many, &[a, b, c], k));
        queries.push(json!({"expression": expression, "method": "3cosadd", "k": k}));
        let add = random.service.post("/analogy", &json!({"expression": expression, "k": k}));
        expected.push(ok(&add)["neighbors"].clone());
    }
    assert!(expected.len() > 100, "{}", expected.len());
    let answer = ok(&random.service.post("/analogy", &json!({"queries": queries})));
    for ((result, expected), query) in
        answer["results"].as_array().unwrap().iter().zip(&expected).zip(&queries)
    {
        assert_eq!(&result["neighbors"], expected, "{query}");
    }
    // One at a time, by GET, and as the default of a batch.
    let by_get = random.service.get("/analogy?expression=w1+-+w2+%2B+w3&method=pairdirection&k=7");
    let query = json!({"expression": "w1 - w2 + w3"});
    let common = json!({"queries": [query], "method": "pairdirection", "k": 7});
    assert_eq!(
        ok(&by_get)["neighbors"],
        ok(&random.service.post("/analogy", &common))["results"][0]["neighbors"]
    );
}

#[test]
fn words_that_a_method_does_not_take_are_refused() {
    let (_folder, path) = prepared(TINY);
    let service = Service::start(&["--model", path.to_str().unwrap(), "--device", "cpu"]);
    let code = |body: Value| {
        let problem = service.post("/analogy", &body).json();
        assert_eq!(problem["status"], 422, "{problem}");
        problem["code"].as_str().unwrap().to_owned()
    };
    let mismatch = |expression: &str, method: &str| {
        assert_eq!(code(json!({"expression": expression, "method": method})), "method_mismatch");
    };
    mismatch("0.5*east + north", "3cosmul");
    mismatch("2*east", "3cosmul");
    mismatch("0*east + north", "3cosmul");
    mismatch("east + north", "pairdirection");
    mismatch("east - north - west", "pairdirection");
    mismatch("east + north - 2*west", "pairdirection");
    mismatch("east + north + west", "pairdirection");
    mismatch(&["east"; 33].join(" + "), "3cosmul");
    // The form comes before unknown words.
    mismatch("xyz + north", "pairdirection");
    let skipped =
        json!({"expression": "east - xyz + north", "method": "pairdirection", "unknown": "skip"});
    assert_eq!(code(skipped), "method_mismatch");
    let zero = |expression: &str, method: &str| {
        assert_eq!(code(json!({"expression": expression, "method": method})), "zero_query");
    };
    zero("east - East + north", "pairdirection");
    zero("east - zero + north", "pairdirection");
    zero("east + zero", "3cosmul");
    assert_eq!(code(json!({"positive": [], "negative": [], "method": "3cosmul"})), "zero_query");
    // What cancels in a sum does not in a product.
    let product =
        service.post("/analogy", &json!({"expression": "east - east", "method": "3cosmul"}));
    assert_eq!(ok(&product)["neighbors"].as_array().unwrap().len(), 4);
    let most = json!({"positive": vec!["east"; 32], "method": "3cosmul", "k": 1});
    assert_eq!(words(&ok(&service.post("/analogy", &most))), ["East"]);
    assert_eq!(service.get("/analogy?expression=east&method=mul").json()["field"], "method");
    // Items fail alone.
    let items = json!({"queries": [
        {"expression": "east"}, {"expression": "2*east"}, {"expression": "north"},
    ], "method": "3cosmul", "k": 1});
    let answer = ok(&service.post("/analogy", &items));
    assert_eq!(words(&answer["results"][0]), ["East"]);
    assert_eq!(answer["results"][1]["error"]["code"], "method_mismatch");
    assert_eq!(words(&answer["results"][2]), ["northeast"]);
}

/// Holds an explained answer against the scores that it explains.
fn check_terms(
    random: &Random,
    result: &Value,
    of_terms: impl Fn(&[&Value]) -> f64,
    tolerance: f64,
) {
    let neighbors = result["neighbors"].as_array().unwrap();
    assert!(!neighbors.is_empty());
    for neighbor in neighbors {
        let terms: Vec<&Value> = neighbor["terms"].as_array().unwrap().iter().collect();
        let score = neighbor["score"].as_f64().unwrap();
        let explained = of_terms(&terms);
        assert!((explained - score).abs() <= tolerance, "{explained} {score} {neighbor}");
        let row = Row(neighbor["row"].as_u64().unwrap() as u32);
        for term in terms {
            let cosine = random.cosine(term["word"].as_str().unwrap(), row);
            assert_eq!(term["cosine"].as_f64(), cosine, "{term}");
        }
    }
}

#[test]
fn terms_make_up_the_score() {
    let random = random();
    let part = |name: &'static str| {
        move |terms: &[&Value]| -> Vec<f64> {
            terms.iter().map(|term| term[name].as_f64().unwrap()).collect()
        }
    };
    let sum = |terms: &[&Value]| part("contribution")(terms).iter().sum::<f64>();
    let product = |terms: &[&Value]| part("factor")(terms).iter().product::<f64>();
    let ask = |path: &str, body: Value| {
        let mut body = body;
        body["explain"] = json!(true);
        body["k"] = json!(50);
        ok(&random.service.post(path, &body))
    };
    for i in 0..20 {
        let [b, a, c] = [i, i + 100, i * 2 + 200].map(|i| format!("w{}", i % 300));
        let expression = format!("{b} - 0.5*{a} + 3*{c} + {b}");
        let answer = ask("/analogy", json!({"expression": expression, "unknown": "skip"}));
        check_terms(&random, &answer, sum, 1e-6);
        let weights: Vec<_> = answer["neighbors"][0]["terms"]
            .as_array()
            .unwrap()
            .iter()
            .map(|term| (term["word"].clone(), term["weight"].as_f64().unwrap()))
            .collect();
        assert_eq!(weights, [(json!(b), 2.0), (json!(a), -0.5), (json!(c), 3.0)]);
        let expression = format!("{b} - {a} + {c} + {c}");
        let answer = ask("/analogy", json!({"expression": expression, "method": "3cosmul"}));
        check_terms(
            &random,
            &answer,
            product,
            1e-9 * answer["neighbors"][0]["score"].as_f64().unwrap(),
        );
        assert_eq!(answer["neighbors"][0]["terms"].as_array().unwrap().len(), 4);
        let expression = format!("{b} - {a} + {c}");
        let answer = ask("/analogy", json!({"expression": expression, "method": "pairdirection"}));
        check_terms(&random, &answer, sum, 1e-9);
        assert_eq!(answer["neighbors"][0]["terms"][1]["contribution"], 0.0);
        let answer = ask("/nearest", json!({"word": b}));
        check_terms(&random, &answer, sum, 0.0);
        let answer = ask("/nearest", json!({"text": format!("{b} {a}, {b}")}));
        check_terms(&random, &answer, sum, 1e-6);
        assert_eq!(answer["neighbors"][0]["terms"][0]["weight"], 2.0);
    }
    let answer = ask("/nearest", json!({"vector": [1, 2, 3]}));
    assert_eq!((&answer["neighbors"][0]["terms"], &answer["inputs"]), (&json!([]), &json!([])));
    let plain = ok(&random.service.get("/nearest?word=w1"));
    assert!(plain.get("inputs").is_none() && plain["neighbors"][0].get("terms").is_none());
}

#[test]
fn inputs_stand_where_they_would_if_they_were_not_left_out() {
    let random = random();
    for body in [
        json!({"expression": "w1 - w2 + w3"}),
        json!({"expression": "w1 - w2 + w3", "method": "3cosmul", "exclude": ["w9"]}),
        json!({"expression": "w1 - w2 + w3", "method": "pairdirection"}),
        json!({"expression": "w1 - w2 + w3 + w1", "min_score": 0.0, "fold_case": true}),
        json!({"expression": "w5", "vocab_limit": 100, "include_query": true}),
    ] {
        let asked = |more: Value| {
            let mut body = body.clone();
            body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            ok(&random.service.post("/analogy", &body))
        };
        let explained = asked(json!({"explain": true}));
        let all = asked(json!({"include_query": true, "k": 1000, "fold_case": false}));
        let all = all["neighbors"].as_array().unwrap();
        let inputs = explained["inputs"].as_array().unwrap();
        assert_eq!(inputs.len(), if body["expression"] == "w5" { 1 } else { 3 });
        for input in inputs {
            let index = all.iter().position(|n| n["row"] == input["row"]);
            assert_eq!(input["rank"], json!(index.map(|index| index + 1)), "{input} {body}");
            if let Some(index) = index {
                assert_eq!(input["score"], all[index]["score"]);
            }
        }
    }
}

#[test]
fn ranks_are_the_places_among_all_neighbours() {
    let random = random();
    let asked: Vec<String> = (0..300).step_by(7).map(|i| format!("w{i}")).collect();
    for (path, query) in [
        ("/nearest", json!({"word": "w7"})),
        ("/nearest", json!({"word": "w7", "include_query": true, "vocab_limit": 200})),
        ("/nearest", json!({"text": "W7, w14", "min_score": 0.1})),
        ("/nearest", json!({"vector": [1, -2, 0.5], "exclude": ["w14", "w21"]})),
        ("/analogy", json!({"expression": "w1 - w2 + w3"})),
        ("/analogy", json!({"positive": ["w1", "w3"], "negative": ["w2"], "method": "3cosmul"})),
        ("/analogy", json!({"expression": "w1 - w2 + w3", "method": "pairdirection"})),
    ] {
        let mut neighbors = query.clone();
        neighbors["k"] = json!(1000);
        let all = ok(&random.service.post(path, &neighbors));
        let all = all["neighbors"].as_array().unwrap();
        let mut body = query.clone();
        body["words"] = json!(asked);
        let answer = ok(&random.service.post("/rank", &body));
        let ranked = answer["ranked"].as_array().unwrap();
        assert_eq!(ranked.len(), asked.len());
        for (ranked, word) in ranked.iter().zip(&asked) {
            let index = all.iter().position(|n| n["word"] == ranked["word"]);
            assert_eq!(&ranked["word"], word);
            assert_eq!(ranked["rank"], json!(index.map(|index| index + 1)), "{ranked} {query}");
            if let Some(index) = index {
                assert_eq!(ranked["score"], all[index]["score"], "{query}");
            }
        }
        assert_eq!(answer.get("used").is_some(), query.get("text").is_some());
    }
}

#[test]
fn faults_of_a_ranking_are_found_in_the_documented_order() {
    let (_folder, path) = prepared(TINY);
    let service = Service::start(&["--model", path.to_str().unwrap(), "--device", "cpu"]);
    let problem = |body: Value| service.post("/rank", &body).json();
    for (body, code) in [
        (json!({"word": "east"}), "invalid_value"),
        (json!({"words": [], "word": "east"}), "invalid_value"),
        (json!({"words": vec!["east"; 1001], "word": "east"}), "invalid_value"),
        (json!({"words": ["east"]}), "invalid_request"),
        (json!({"words": ["east"], "word": "east", "text": "east"}), "invalid_request"),
        (json!({"words": ["east"], "word": "east", "expression": "east"}), "invalid_request"),
        (json!({"words": ["east"], "word": "east", "method": "3cosmul"}), "invalid_request"),
        (json!({"words": ["xyz"], "word": "east", "k": 3}), "unknown_field"),
        (json!({"words": ["xyz"], "expression": "east +"}), "bad_expression"),
        (json!({"words": ["xyz"], "expression": "2*est", "method": "3cosmul"}), "method_mismatch"),
        (json!({"words": ["xyz"], "vector": [1]}), "dimension_mismatch"),
        (json!({"words": ["xyz"], "text": " "}), "invalid_value"),
        (json!({"words": ["xyz"], "word": "zero"}), "unknown_word"),
        (json!({"words": ["east"], "word": "zero"}), "zero_query"),
        (json!({"words": ["east"], "word": "east", "min_score": "x"}), "invalid_value"),
    ] {
        assert_eq!(problem(body.clone())["code"], code, "{body}");
    }
    let both = problem(json!({"words": ["xyz", "est"], "expression": "qqq + est"}));
    let unknown: Vec<_> =
        both["unknown"].as_array().unwrap().iter().map(|u| u["word"].clone()).collect();
    assert_eq!(unknown, ["qqq", "est", "xyz"]);
    let body = json!({"words": ["xyz", "west", "zero", "est"], "expression": "east + qqq", "unknown": "skip"});
    let answer = ok(&service.post("/rank", &body));
    assert_eq!(answer["skipped"], json!(["qqq", "xyz", "est"]));
    let west = json!({"word": "west", "row": 3, "score": -1.0, "rank": 4});
    assert_eq!(
        answer["ranked"],
        json!([west, {"word": "zero", "row": 4, "score": null, "rank": null}])
    );
}
