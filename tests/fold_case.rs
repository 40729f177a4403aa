//! Words that differ only in case, taken for one: against a plain loop over the whole table.

use std::collections::HashSet;

use crate::support::{self, Service, prepared, random_vectors};
use contract::score;
use contract::{Hit, Row};
use model_store::ModelStore;
use serde_json::{Value, json};

/// Every word of up to three letters out of `aAbBéÉ`, the most frequent ones in no order of their
/// cases.
fn short_words() -> Vec<String> {
    let letters = ["b", "A", "É", "a", "B", "é"];
    let mut words: Vec<String> = letters.map(str::to_owned).to_vec();
    for length in [1, 2] {
        let longer: Vec<String> = words
            .iter()
            .filter(|word| word.chars().count() == length)
            .flat_map(|word| letters.map(|letter| format!("{letter}{word}")))
            .collect();
        words.extend(longer);
    }
    words
}

/// All rows for a vector, best first, with their words.
fn ranked(model: &ModelStore, vector: &[f32]) -> Vec<(String, f64)> {
    let (table, norm) = (model.table(), score::norm(vector));
    let rows = (0..model.rows() as u32).map(Row);
    let mut hits: Vec<Hit> =
        rows.filter_map(|row| Some(Hit { row, score: table.score(vector, norm, row)? })).collect();
    hits.sort();
    hits.into_iter().map(|hit| (model.words().word(hit.row).to_owned(), hit.score)).collect()
}

/// The definition: the best of each class of words, none of those left out, `k` of them.
fn folded(ranked: &[(String, f64)], left_out: &[&str], k: usize) -> Value {
    let mut seen: HashSet<String> = left_out.iter().map(|word| word.to_lowercase()).collect();
    let kept = ranked.iter().filter(|(word, _)| seen.insert(word.to_lowercase())).take(k);
    kept.map(|(word, score)| json!([word, score])).collect()
}

fn found(answer: &Value) -> Value {
    let neighbors =
        answer["neighbors"].as_array().unwrap_or_else(|| panic!("no neighbors: {answer}"));
    neighbors.iter().map(|n| json!([n["word"], n["score"]])).collect()
}

#[test]
fn the_best_of_each_word_is_what_a_plain_loop_finds() {
    let words = short_words();
    let (_folder, path) = prepared(&random_vectors(words.clone()));
    let model = ModelStore::open(&path).unwrap();
    let service = Service::start(&["--model", path.to_str().unwrap(), "--device", "cpu"]);
    let (mut queries, mut expected) = (Vec::new(), Vec::new());
    for (index, word) in words.iter().enumerate() {
        let row = model.words().row(word).unwrap();
        let vector = model.table().row(row);
        if model.table().norm(row) == 0.0 {
            continue;
        }
        let ranked = ranked(&model, vector);
        let k = [1, 3, 10, 60, 1000][index % 5];
        queries.push(json!({"word": word, "k": k}));
        expected.push(folded(&ranked, &[word], k));
        queries.push(json!({"word": word, "k": k, "include_query": true}));
        expected.push(folded(&ranked, &[], k));
        queries.push(json!({"vector": vector, "k": k, "exclude": ["bA", "É", "nowhere"]}));
        expected.push(folded(&ranked, &["bA", "É"], k));
    }
    let mut results = Vec::new();
    for part in queries.chunks(150) {
        let answer = service.post("/nearest", &json!({"queries": part, "fold_case": true}));
        results.extend(answer.json()["results"].as_array().unwrap().clone());
    }
    assert_eq!(results.len(), expected.len());
    for ((result, expected), query) in results.iter().zip(&expected).zip(&queries) {
        assert_eq!(&found(result), expected, "{query}");
    }
}

#[test]
fn enough_words_are_found_however_many_variants_come_before_them() {
    // 1024 variants of one word, all nearer than 20 others.
    let variants = (0..1024u32).map(|bits| {
        let letter = |i: u32| if bits >> i & 1 == 1 { 'A' } else { 'a' };
        (0..10).map(letter).collect::<String>()
    });
    let mut text: String = variants.map(|word| format!("{word} 1 0.001\n")).collect();
    text.extend((0..20).map(|i| format!("w{i} {} 1\nW{i} {} 1\n", 20 - i, 20 - i)));
    let (_folder, path) = prepared(&text);
    let service = Service::start(&["--model", path.to_str().unwrap(), "--device", "cpu"]);
    let ask = |body: Value| support::words(&service.post("/nearest", &body).json());
    for k in [1, 5, 20, 100] {
        let others: Vec<String> = (0..20.min(k)).map(|i| format!("w{i}")).collect();
        let of_word = ask(json!({"word": "aAaAaaaaaa", "k": k, "fold_case": true}));
        assert_eq!(of_word, others);
        let of_vector = ask(json!({"vector": [1, 0], "k": k, "fold_case": true}));
        assert_eq!(of_vector[0], "aaaaaaaaaa");
        assert_eq!(of_vector[1..], others[..others.len().min(k - 1)]);
    }
    let none_of_them =
        json!({"vector": [1, 0], "k": 2, "fold_case": true, "exclude": ["AAAAAAAAAA"]});
    assert_eq!(ask(none_of_them), ["w0", "w1"]);
    let few = json!({"word": "W3", "k": 9, "fold_case": true, "vocab_limit": 1026});
    assert_eq!(ask(few), ["w0", "aaaaaaaaaa"], "fewer than k, as no more pass the filter");
}

#[test]
fn it_goes_with_analogies_by_every_method() {
    let words = short_words();
    let (_folder, path) = prepared(&random_vectors(words));
    let service = Service::start(&["--model", path.to_str().unwrap(), "--device", "cpu"]);
    for method in ["3cosadd", "3cosmul", "pairdirection"] {
        let ask = |k: usize, fold_case: bool| {
            let body = json!({
                "expression": "ab - bé + É", "method": method, "k": k, "fold_case": fold_case
            });
            service.post("/analogy", &body).json()
        };
        let all = found(&ask(1000, false));
        let all: Vec<(String, f64)> = all
            .as_array()
            .unwrap()
            .iter()
            .map(|one| (one[0].as_str().unwrap().to_owned(), one[1].as_f64().unwrap()))
            .collect();
        assert!(all.len() > 200, "{method}: {}", all.len());
        for k in [1, 7, 30, 1000] {
            let expected = folded(&all, &["ab", "bé", "É"], k);
            assert_eq!(found(&ask(k, true)), expected, "{method} {k}");
        }
    }
}
