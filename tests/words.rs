//! Words compared with each other, listed and described, and texts, through the real program.

use crate::support::{Reply, Service, TINY, prepared, words};
use serde_json::{Value, json};

fn tiny() -> (tempfile::TempDir, Service) {
    let (folder, model) = prepared(TINY);
    let service = Service::start(&["--model", model.to_str().unwrap(), "--device", "cpu"]);
    (folder, service)
}

fn ok(reply: &Reply) -> Value {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/json"));
    reply.json()
}

#[test]
fn two_words_are_as_alike_as_the_search_says_to_the_bit() {
    let service = Service::with_default_model();
    let found = ok(&service.get("/nearest?word=king&k=1000"));
    let neighbors = found["neighbors"].as_array().unwrap();
    for sides in [["king", ""], ["", "king"]] {
        let pair = |n: &Value| {
            sides.map(|side| if side.is_empty() { n["word"].clone() } else { json!(side) })
        };
        let pairs: Vec<_> = neighbors.iter().map(pair).collect();
        let compared = ok(&service.post("/similarity", &json!({"pairs": pairs})));
        let scores: Vec<_> = neighbors.iter().map(|n| json!({"score": n["score"]})).collect();
        assert_eq!(compared["results"], json!(scores));
    }
}

#[test]
fn a_set_is_the_sum_that_an_analogy_looks_for_to_the_bit() {
    let service = Service::with_default_model();
    let set = ["red", "green", "blue", "red"];
    let found = ok(&service.post("/analogy", &json!({"positive": set, "k": 50})));
    let neighbors = found["neighbors"].as_array().unwrap();
    let pairs: Vec<_> = neighbors.iter().map(|n| json!([set, n["word"]])).collect();
    let compared = ok(&service.post("/similarity", &json!({"pairs": pairs})));
    let scores: Vec<_> = neighbors.iter().map(|n| json!({"score": n["score"]})).collect();
    assert_eq!(compared["results"], json!(scores));
}

#[test]
fn pairs_are_answered_in_order_with_faults_in_their_places() {
    let (_folder, service) = tiny();
    let pairs = json!([
        ["east", "west"],
        [["east", "north"], "northeast"],
        ["east", ["est", "west"]],
        ["east", "zero"],
        [["east", "west"], "north"],
        ["east"],
        ["east", []],
        ["east", "west", "north"],
        {"a": "east", "b": "west"},
        [["east"], ["East"]],
    ]);
    let answer = ok(&service.post("/similarity", &json!({"pairs": pairs})));
    let results = answer["results"].as_array().unwrap();
    assert_eq!(results.len(), 10);
    assert_eq!(results[0], json!({"score": -1.0}));
    // The sum was rounded to float32.
    assert!((results[1]["score"].as_f64().unwrap() - 1.0).abs() < 1e-7);
    assert_eq!(
        results[2]["error"]["unknown"],
        json!([{"word": "est", "suggestions": ["east", "west"]}])
    );
    assert_eq!(results[9], json!({"score": 1.0}));
    for (index, code) in [(3, "zero_query"), (4, "zero_query")] {
        assert_eq!(results[index]["error"]["code"], code);
    }
    for (index, result) in results.iter().enumerate().take(9).skip(5) {
        assert_eq!(result["error"]["code"], "invalid_value");
        assert_eq!(result["error"]["field"], format!("pairs[{index}]"));
    }
    let skipping =
        json!({"pairs": [["east", ["est", "west", "est"]], [["est"], "east"]], "unknown": "skip"});
    let answer = ok(&service.post("/similarity", &skipping));
    assert_eq!(answer["results"][0], json!({"score": -1.0, "skipped": ["est"]}));
    assert_eq!(answer["results"][1]["error"]["code"], "unknown_word");
}

#[test]
fn the_odd_one_is_the_last_by_its_cosine_to_the_mean() {
    let (_folder, service) = tiny();
    let ask = |body: Value| ok(&service.post("/odd-one-out", &body));
    let answer = ask(json!({"words": ["west", "north", "east", "northeast", "East"]}));
    assert_eq!(answer["odd_one_out"], "west");
    let ranked: Vec<_> =
        answer["ranked"].as_array().unwrap().iter().map(|n| n["word"].as_str().unwrap()).collect();
    // Between equal scores the lower row comes first, so the higher one is odd.
    assert_eq!(ranked, ["northeast", "east", "north", "East", "west"]);
    let tied =
        ask(json!({"words": ["East", "east", "xyz", "northeast", "east"], "unknown": "skip"}));
    assert_eq!((&tied["odd_one_out"], &tied["skipped"]), (&json!("northeast"), &json!(["xyz"])));
    let tied = ask(json!({"words": ["East", "north", "east", "north"]}));
    assert_eq!(tied["odd_one_out"], "East");
    assert_eq!(tied["ranked"].as_array().unwrap().len(), 3, "each word once");
    assert!(tied.get("skipped").is_none());
}

#[test]
fn the_odd_one_of_the_built_in_model_is_what_the_definition_says() {
    let service = Service::with_default_model();
    let asked = ["breakfast", "cereal", "dinner", "lunch"];
    let answer = ok(&service.post("/odd-one-out", &json!({"words": asked})));
    assert_eq!(answer["odd_one_out"], "cereal");
    let units: Vec<Vec<f64>> = asked
        .map(|word| ok(&service.get(&format!("/words/{word}?with_vector=true"))))
        .iter()
        .map(|known| {
            let norm = known["norm"].as_f64().unwrap();
            let vector = known["vector"].as_array().unwrap().iter();
            vector.map(|x| x.as_f64().unwrap() / norm).collect()
        })
        .collect();
    let mean: Vec<f64> =
        (0..units[0].len()).map(|i| units.iter().map(|unit| unit[i]).sum()).collect();
    let norm = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
    for (word, unit) in asked.iter().zip(&units) {
        let cosine = unit.iter().zip(&mean).map(|(a, b)| a * b).sum::<f64>() / norm;
        let ranked = answer["ranked"].as_array().unwrap();
        let found = ranked.iter().find(|n| n["word"] == *word).unwrap()["score"].as_f64().unwrap();
        assert!((cosine - found).abs() < 1e-7, "{word}: {cosine} {found}");
    }
}

#[test]
fn words_are_listed_by_row_and_described() {
    let (_folder, service) = tiny();
    let listed = ok(&service.get("/words?prefix=e&limit=5"));
    let version = &ok(&service.get("/model"))["version"];
    let words = json!([{"word": "east", "row": 0}]);
    assert_eq!(listed, json!({"model": "tiny", "version": version, "words": words}));
    let listed = ok(&service.get("/words?prefix=north"));
    assert_eq!(
        listed["words"],
        json!([{"word": "north", "row": 1}, {"word": "northeast", "row": 2}])
    );
    let all = ok(&service.get("/words?prefix="));
    assert_eq!(all["words"].as_array().unwrap().len(), 6);
    assert_eq!(ok(&service.get("/words?prefix=&limit=1"))["words"][0]["word"], "east");
    assert_eq!(ok(&service.get("/words?prefix=xyz"))["words"], json!([]));

    let east = json!({"model": "tiny", "version": version, "word": "east", "row": 0, "norm": 1.0, "suggestions": ["East"]});
    assert_eq!(ok(&service.get("/words/east")), east);
    assert_eq!(ok(&service.get("/words?word=east")), east);
    let zero = ok(&service.get("/words/zero?with_vector=true"));
    assert_eq!((&zero["norm"], &zero["vector"]), (&json!(0.0), &json!([0.0, 0.0])));
    let head = service.send("HEAD", b"/words/east", &[], b"");
    assert_eq!((head.status, head.body.len()), (200, 0));
}

#[test]
fn words_that_paths_do_not_bear_are_reached_all_the_same() {
    let (_folder, model) =
        prepared("a/b 1 2\n.. 2 1\nc++ 3 1\n100% 1 1\nnaïve 1 0\nnew york 0 1\n");
    let service = Service::start(&["--model", model.to_str().unwrap()]);
    for (word, path) in [
        ("a/b", "/words/a%2Fb"),
        ("a/b", "/words?word=a/b"),
        ("..", "/words?word=.."),
        ("c++", "/words/c++"),
        ("c++", "/words?word=c%2B%2B"),
        ("100%", "/words/100%25"),
        ("naïve", "/words/na%C3%AFve"),
        ("new york", "/words/new%20york"),
        ("new york", "/words?word=new+york"),
    ] {
        assert_eq!(ok(&service.get(path))["word"], word, "{path}");
    }
}

#[test]
fn a_text_is_the_sum_of_the_words_that_the_model_has() {
    let (_folder, service) = tiny();
    let text = json!({"text": "EAST, (north)/qwerty east zzz", "k": 9});
    let answer = ok(&service.post("/nearest", &text));
    assert_eq!(answer["used"], json!(["east", "north"]));
    assert_eq!(answer["skipped"], json!(["qwerty", "zzz"]));
    let sum =
        ok(&service.post("/analogy", &json!({"positive": ["east", "north", "east"], "k": 9})));
    assert_eq!(answer["neighbors"], sum["neighbors"]);
    assert_eq!(words(&answer), ["northeast", "East", "west"]);

    let by_get = service.get("/nearest?text=EAST,+(north)/qwerty+east+zzz&k=9");
    assert_eq!(ok(&by_get), answer);
    let many = ok(&service
        .post("/nearest", &json!({"queries": [text, {"word": "east"}], "include_query": true})));
    assert_eq!(many["results"][0]["skipped"], json!(["qwerty", "zzz"]));
    assert_eq!(words(&many["results"][0])[..2], ["northeast", "east"]);
    assert!(
        many["results"][1].get("used").is_none() && many["results"][1].get("skipped").is_none()
    );
    let strict = ok(&service.get("/nearest?text=East+north!&unknown=error"));
    assert_eq!((&strict["used"], strict.get("skipped")), (&json!(["East", "north"]), None));
}

#[test]
fn unknown_words_are_left_out_of_analogies_on_request() {
    let (_folder, service) = tiny();
    let known = ok(&service.get("/analogy?expression=northeast+-+0.5*north&k=9"));
    for asked in [
        service.get("/analogy?expression=northeast+-+0.5*north+-+3*xyz&k=9&unknown=skip"),
        service.post("/analogy", &json!({
            "positive": ["northeast", "xyz"], "negative": [{"word": "north", "weight": 0.5}, "xyz"],
            "k": 9, "unknown": "skip"
        })),
    ] {
        let answer = ok(&asked);
        assert_eq!(answer["neighbors"], known["neighbors"]);
        assert_eq!(answer["skipped"], json!(["xyz"]));
    }
    assert!(known.get("skipped").is_none());
    let queries = json!([
        {"expression": "east + xyz"},
        {"expression": "east + xyz", "unknown": "error"},
        {"expression": "east"},
    ]);
    let many = ok(&service.post("/analogy", &json!({"queries": queries, "unknown": "skip"})));
    assert_eq!(many["results"][0]["skipped"], json!(["xyz"]));
    assert_eq!(many["results"][1]["error"]["code"], "unknown_word");
    assert_eq!(many["results"][2]["skipped"], json!([]));
}
