//! Requests at random: searches, in every shape and with every option.

use serde_json::{Map, Value, json};

use super::asked::{Asked, Random};

/// What requests are made of.
pub(crate) struct Maker {
    pub(crate) random: Random,
    /// Of filters: the other requests stay those of a model without attributes.
    pub(crate) filters: Random,
    pub(crate) has_attributes: bool,
    pub(crate) words: Vec<String>,
    pub(crate) dim: usize,
}

/// What one request may ask for at most, over all its queries.
#[derive(Clone, Copy)]
pub(crate) struct Left {
    results: usize,
    components: usize,
    terms: usize,
    full_pass_words: usize,
    excluded: usize,
    tests: usize,
}

impl Maker {
    /// The request with this number: each route comes again and again.
    pub(crate) fn make(&mut self, number: usize) -> Asked {
        let mut asked = match number % 19 {
            0 => self.get_nearest(),
            1 => self.get_analogy(),
            2 => self.single("/nearest"),
            3 => self.single("/analogy"),
            4..=6 => self.batch("/nearest"),
            7..=9 => self.batch("/analogy"),
            10 | 11 => self.rank(),
            12 => self.similarity(),
            13 => self.odd_one_out(),
            14 => self.list_words(),
            15 => self.one_word(),
            16 => self.classify(),
            17 => self.embed(),
            _ => self.large(),
        };
        if asked.accept.is_none() && self.random.one_in(4) {
            asked.accept = Some("gzip");
        }
        asked
    }

    pub(crate) fn word(&mut self) -> String {
        let index = self.random.below(self.words.len());
        self.words[index].clone()
    }

    /// Mostly one that the model has.
    pub(crate) fn any_word(&mut self) -> String {
        let word = self.word();
        if self.random.one_in(30) { format!("{word}{word}x") } else { word }
    }

    pub(crate) fn known(&mut self, number: usize) -> Vec<String> {
        (0..number).map(|_| self.word()).collect()
    }

    pub(crate) fn any(&mut self, number: usize) -> Vec<String> {
        (0..number).map(|_| self.any_word()).collect()
    }

    pub(crate) fn text(&mut self) -> String {
        let number = self.random.size(256);
        self.known(number).join(self.random.of(&[" ", ", ", "! "]))
    }

    pub(crate) fn vector(&mut self) -> Vec<f64> {
        (0..self.dim).map(|_| self.random.number()).collect()
    }

    pub(crate) fn left(&self, queries: usize) -> Left {
        Left {
            results: 65_536 / queries,
            terms: 100_000 / queries,
            excluded: 60_000 / queries,
            // No bounds of the service's, which are higher, but of the time that this test takes;
            // `all_vectors` asks for as many components as it allows.
            components: 1_000_000 / queries,
            full_pass_words: 256 / queries,
            tests: (1024 / queries).min(256),
        }
    }

    /// Options for a query with n words.
    fn options(&mut self, left: &Left, words: usize) -> Map<String, Value> {
        let mut options = Map::new();
        let mut set = |name: &str, value: Value| options.insert(name.to_owned(), value);
        let random = &mut self.random;
        let mut k = 10;
        if !random.one_in(3) {
            k = random.size(left.results.min(1000));
            set("k", json!(k));
        }
        if random.one_in(4) && k * self.dim <= left.components {
            set("with_vectors", json!(true));
        }
        if random.one_in(4) && k * words <= left.terms {
            set("explain", json!(true));
        }
        if random.one_in(4) {
            set("fold_case", json!(true));
        }
        if random.one_in(4) {
            set("include_query", json!(true));
        }
        if random.one_in(4) {
            set("vocab_limit", json!(random.size(100_000)));
        }
        let min = random.one_in(4).then(|| random.number());
        // Below most of what is found, so that many rows are above it.
        let max = random.one_in(5).then(|| random.number() * 0.7);
        if let Some(min) = min {
            // A minimum above the maximum is an error.
            set("min_score", json!(min.min(max.unwrap_or(min))));
        }
        if let Some(max) = max {
            set("max_score", json!(max));
        }
        if random.one_in(2) {
            set("unknown", json!("skip"));
        }
        if random.one_in(3) && left.excluded > 0 {
            let number = random.size(left.excluded.min(1000));
            let excluded = self.any(number);
            options.insert("exclude".to_owned(), json!(excluded));
        }
        if let Some(filter) = self.some_filter(left.tests) {
            options.insert("filter".to_owned(), json!(filter));
        }
        if self.filters.one_in(6) && k <= left.terms / 8 {
            options.insert("with_attributes".to_owned(), json!(true));
        }
        if self.has_attributes && self.filters.one_in(6) && k <= left.terms / 8 {
            options.insert("with_text".to_owned(), json!(true));
        }
        let offset = self.filters.size(999);
        if self.filters.one_in(6) && k + offset <= left.results.min(1000) {
            options.insert("offset".to_owned(), json!(offset));
        }
        // A query may take a full pass.
        let has_time = left.full_pass_words >= 3 && self.has_attributes;
        if has_time && self.filters.one_in(6) && !options.contains_key("fold_case") {
            let attribute = self.filters.of(&["price", "weight", "kind", "fresh"]);
            options.insert("distinct".to_owned(), json!(attribute));
        }
        options
    }

    /// A query for neighbours of one thing.
    fn nearest(&mut self, left: &Left) -> Map<String, Value> {
        let (target, value, words) = match self.random.below(4) {
            0 => ("vector", json!(self.vector()), 0),
            1 => ("text", json!(self.text()), 256),
            _ => ("word", json!(self.any_word()), 1),
        };
        let mut query = self.options(left, words);
        query.insert(target.to_owned(), value);
        query
    }

    /// A query for an analogy.
    fn analogy(&mut self, left: &Left) -> Map<String, Value> {
        let full = left.full_pass_words >= 3;
        let method = if full { self.random.below(3) } else { 0 };
        let words = match method {
            0 => self.random.size(64),
            1 => self.random.size(left.full_pass_words.min(32)),
            _ => 3,
        };
        let mut query = self.options(left, words);
        let mut set = |name: &str, value: Value| query.insert(name.to_owned(), value);
        if method > 0 {
            set("method", json!(["3cosadd", "3cosmul", "pairdirection"][method]));
        }
        let negative = if method == 2 { 1 } else { words / 3 };
        let (plus, minus) = (self.known(words - negative), self.known(negative));
        if self.random.one_in(3) {
            let minus =
                if minus.is_empty() { String::new() } else { format!(" - {}", minus.join(" - ")) };
            set("expression", json!(format!("{}{minus}", plus.join(" + "))));
        } else {
            let weighted = method == 0 && self.random.one_in(2);
            let mut list = |words: Vec<String>| -> Vec<Value> {
                let weigh = |word| json!({"word": word, "weight": self.random.number() + 2.0});
                let plain = |word| json!(word);
                if weighted {
                    words.into_iter().map(weigh).collect()
                } else {
                    words.into_iter().map(plain).collect()
                }
            };
            set("positive", json!(list(plus)));
            if negative > 0 {
                set("negative", json!(list(minus)));
            }
        }
        query
    }

    pub(crate) fn query(&mut self, route: &str, left: &Left) -> Map<String, Value> {
        if route == "/nearest" { self.nearest(left) } else { self.analogy(left) }
    }

    fn single(&mut self, route: &'static str) -> Asked {
        let left = self.left(1);
        Asked::post(route, &Value::Object(self.query(route, &left)))
    }

    fn batch(&mut self, route: &'static str) -> Asked {
        let queries = self.random.size(1024);
        let left = self.left(queries);
        let all_alike = self.random.one_in(2);
        let mut common = Map::new();
        if all_alike {
            // What all leave out is written once, however many they are.
            common = self.options(&Left { excluded: 1000, ..left }, 256);
            if self.random.one_in(2)
                && !common.contains_key("with_vectors")
                && !common.contains_key("explain")
                && !common.contains_key("offset")
            {
                common.insert("k".to_owned(), json!(left.results.min(1000)));
            }
        }
        // Which goes with nothing else that says which rows stay.
        let is_distinct = common.contains_key("distinct");
        let mut items = Vec::with_capacity(queries);
        for _ in 0..queries {
            let mut item = self.query(route, &left);
            if all_alike {
                let of_all = [
                    "k",
                    "offset",
                    "distinct",
                    "explain",
                    "with_vectors",
                    "with_text",
                    "with_attributes",
                    "exclude",
                ];
                item.retain(|name, _| !of_all.contains(&name.as_str()));
                if is_distinct {
                    item.remove("fold_case");
                }
            }
            items.push(Value::Object(item));
        }
        common.insert("queries".to_owned(), json!(items));
        Asked::post(route, &Value::Object(common))
    }
}
