//! Requests at random: every route, shape and option.

use serde_json::{Map, Value, json};

/// SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    /// From 1 to `most`, small ones as often as large ones, and often the most itself.
    fn size(&mut self, most: usize) -> usize {
        if self.one_in(8) {
            return most;
        }
        let exponent = self.next() as f64 / u64::MAX as f64;
        ((most as f64).powf(exponent) as usize).clamp(1, most)
    }

    fn of<'a, T: ?Sized>(&mut self, any: &[&'a T]) -> &'a T {
        any[self.below(any.len())]
    }

    /// From −1 to 1.
    fn number(&mut self) -> f64 {
        self.next() as f64 / u64::MAX as f64 * 2.0 - 1.0
    }
}

/// A request.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    /// The path in openapi.yaml.
    pub(crate) route: &'static str,
    pub(crate) method: &'static str,
    pub(crate) target: String,
    /// What it says that it takes compressed.
    pub(crate) accept: Option<&'static str>,
    pub(crate) body: String,
}

impl Asked {
    pub(crate) fn get(route: &'static str, target: impl Into<String>) -> Self {
        let (method, target) = ("GET", target.into());
        Self { route, method, target, accept: None, body: String::new() }
    }

    pub(crate) fn post(route: &'static str, body: &Value) -> Self {
        let (method, target) = ("POST", route.to_owned());
        Self { route, method, target, accept: None, body: body.to_string() }
    }

    /// Enough of it to find it again.
    pub(crate) fn shown(&self) -> String {
        let start = |text: &str, most| text.chars().take(most).collect::<String>();
        let (target, body) = (start(&self.target, 200), start(&self.body, 300));
        let Self { method, accept, .. } = self;
        let bytes = self.target.len() + self.body.len();
        format!("{method} {target} {body} ({bytes} bytes, takes {accept:?})")
    }
}

/// Routes without anything to choose.
pub(crate) const PLAIN: [(&str, &str); 11] = [
    ("/", "/"),
    ("/explorer/{file}", "/explorer/main.js"),
    ("/model", "/model"),
    ("/models", "/models"),
    ("/docs", "/docs"),
    ("/docs/", "/docs/"),
    ("/docs/{file}", "/docs/swagger-ui-bundle.js"),
    ("/health/live", "/health/live"),
    ("/health/ready", "/health/ready"),
    ("/metrics", "/metrics"),
    ("/openapi.yaml", "/openapi.yaml"),
];

/// What requests are made of.
pub(crate) struct Maker {
    pub(crate) random: Random,
    pub(crate) words: Vec<String>,
    pub(crate) dim: usize,
}

/// What one request may ask for at most, over all its queries.
struct Left {
    results: usize,
    components: usize,
    terms: usize,
    full_pass_words: usize,
    excluded: usize,
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
            14 | 15 => self.evaluate(),
            16 => self.list_words(),
            17 => self.one_word(),
            _ => self.large(),
        };
        if asked.accept.is_none() && self.random.one_in(4) {
            asked.accept = Some(self.random.of(&["gzip", "br"]));
        }
        asked
    }

    fn word(&mut self) -> String {
        let place = self.random.below(self.words.len());
        self.words[place].clone()
    }

    /// Mostly one that the model has.
    fn any_word(&mut self) -> String {
        let word = self.word();
        if self.random.one_in(30) { format!("{word}{word}x") } else { word }
    }

    fn known(&mut self, number: usize) -> Vec<String> {
        (0..number).map(|_| self.word()).collect()
    }

    fn any(&mut self, number: usize) -> Vec<String> {
        (0..number).map(|_| self.any_word()).collect()
    }

    fn text(&mut self) -> String {
        let number = self.random.size(256);
        self.known(number).join(self.random.of(&[" ", ", ", "! "]))
    }

    fn vector(&mut self) -> Vec<f64> {
        (0..self.dim).map(|_| self.random.number()).collect()
    }

    fn left(&self, queries: usize) -> Left {
        Left {
            results: 65_536 / queries,
            components: 4_000_000 / queries,
            terms: 100_000 / queries,
            // No bounds of the service's, which are higher, but of the time that this test takes.
            full_pass_words: 1024 / queries,
            excluded: 60_000 / queries,
        }
    }

    /// Options for a query with so many words.
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
        if random.one_in(4) {
            set("min_score", json!(random.number()));
        }
        if random.one_in(2) {
            set("unknown", json!("skip"));
        }
        if random.one_in(3) && left.excluded > 0 {
            let number = random.size(left.excluded.min(1000));
            let excluded = self.any(number);
            options.insert("exclude".to_owned(), json!(excluded));
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

    fn query(&mut self, route: &str, left: &Left) -> Map<String, Value> {
        if route == "/nearest" { self.nearest(left) } else { self.analogy(left) }
    }

    fn single(&mut self, route: &'static str) -> Asked {
        let left = self.left(1);
        Asked::post(route, &Value::Object(self.query(route, &left)))
    }

    fn batch(&mut self, route: &'static str) -> Asked {
        let queries = self.random.size(1024);
        let left = self.left(2 * queries);
        let all_alike = self.random.one_in(3);
        let mut common = if all_alike { self.options(&left, 64) } else { Map::new() };
        let mut items = Vec::with_capacity(queries);
        for _ in 0..queries {
            let mut item = self.query(route, &left);
            if all_alike {
                let is_target =
                    |name: &str| !matches!(name, "k" | "explain" | "with_vectors" | "exclude");
                item.retain(|name, _| is_target(name));
            }
            items.push(Value::Object(item));
        }
        common.insert("queries".to_owned(), json!(items));
        Asked::post(route, &Value::Object(common))
    }

    fn rank(&mut self) -> Asked {
        let left = self.left(1);
        let route = if self.random.one_in(2) { "/nearest" } else { "/analogy" };
        let mut body = self.query(route, &left);
        body.retain(|name, _| {
            !matches!(name.as_str(), "k" | "with_vectors" | "explain" | "fold_case")
        });
        let number = self.random.size(1000);
        let words = self.known(number);
        body.insert("words".to_owned(), json!(words));
        Asked::post("/rank", &Value::Object(body))
    }

    fn similarity(&mut self) -> Asked {
        let (pairs, most) = (self.random.size(1024), self.random.size(256));
        let most = most.min(60_000 / pairs).max(1);
        let mut side = || match self.random.below(3) {
            0 => {
                let number = self.random.size(most);
                json!(self.any(number))
            }
            1 => json!(self.known(most)),
            _ => json!(self.any_word()),
        };
        let pairs: Vec<Value> = (0..pairs).map(|_| json!([side(), side()])).collect();
        Asked::post("/similarity", &json!({"pairs": pairs}))
    }

    fn odd_one_out(&mut self) -> Asked {
        let number = self.random.size(256).max(3);
        let words = self.any(number);
        Asked::post("/odd-one-out", &json!({"words": words, "unknown": "skip"}))
    }

    fn evaluate(&mut self) -> Asked {
        let form = self.random.below(3);
        // Full passes take most of the time.
        let questions = self.random.size(if form == 0 { 500 } else { 64 });
        let pairs = self.random.size(10_000);
        let questions: Vec<Value> = (0..questions).map(|_| json!(self.any(4))).collect();
        let pairs: Vec<Value> = (0..pairs)
            .map(|_| json!([self.any_word(), self.any_word(), self.random.number()]))
            .collect();
        let analogies = json!([{"name": "analogies", "questions": questions}]);
        let similarities = json!([{"name": "similarities", "pairs": pairs}]);
        Asked::post(
            "/evaluate",
            &match form {
                0 => json!({"analogies": analogies, "methods": ["3cosadd"]}),
                1 => json!({"similarities": similarities, "case": "exact"}),
                _ => json!({"analogies": analogies, "similarities": similarities}),
            },
        )
    }

    fn get_nearest(&mut self) -> Asked {
        let target = if self.random.one_in(2) {
            format!("text={}", self.text().replace(' ', "+"))
        } else {
            format!("word={}", self.any_word())
        };
        Asked::get("/nearest", format!("/nearest?{target}{}", self.parameters()))
    }

    fn get_analogy(&mut self) -> Asked {
        let number = self.random.size(200);
        let words = self.known(number);
        let target = if self.random.one_in(2) {
            format!("expression={}", words.join("+%2B+"))
        } else {
            let methods: &[&str] = if number <= 32 { &["", "&method=3cosmul"] } else { &[""] };
            format!("positive={}{}", words.join("&positive="), self.random.of(methods))
        };
        Asked::get("/analogy", format!("/analogy?{target}{}", self.parameters()))
    }

    fn parameters(&mut self) -> String {
        let k = self.random.size(1000);
        let excluded = self.random.size(1000);
        let mut parameters = format!("&k={k}");
        if self.random.one_in(3) {
            for word in self.known(excluded) {
                parameters += &format!("&exclude={word}");
            }
        }
        let flags =
            ["", "&with_vectors=true", "&fold_case=true", "&vocab_limit=5000", "&min_score=0.2"];
        parameters + self.random.of(&flags) + self.random.of(&["", "&include_query=true"])
    }

    fn list_words(&mut self) -> Asked {
        let word = self.word();
        let prefix = &word[..self.random.below(3).min(word.len())];
        let limit = self.random.size(1000);
        Asked::get("/words", format!("/words?prefix={prefix}&limit={limit}"))
    }

    /// Known, misspelled, or long.
    fn one_word(&mut self) -> Asked {
        let mut word = self.word();
        match self.random.below(4) {
            0 => {}
            1 => word = self.known(4).concat().chars().take(32).collect(),
            _ => {
                let place = self.random.below(word.len());
                word.replace_range(place..=place, "q");
            }
        }
        if self.random.one_in(2) {
            return Asked::get("/words", format!("/words?word={word}&with_vector=true"));
        }
        Asked::get("/words/{word}", format!("/words/{word}"))
    }

    /// Up to a few megabytes of what the other requests have little of.
    fn large(&mut self) -> Asked {
        let long = |bytes: usize| "x".repeat(bytes);
        let bytes = self.random.size(3 << 20);
        match self.random.below(6) {
            0 => Asked::post("/nearest", &json!({"word": long(bytes)})),
            1 => Asked::post("/nearest", &json!({"word": self.word(), "exclude": [long(bytes)]})),
            2 => Asked::post(
                "/nearest",
                &json!({"text": format!("{} {}", self.word(), self.random.of(&["é", "x", "X", "語", "-", "x-"]).repeat(bytes / 3))}),
            ),
            3 => {
                let queries: Vec<Value> =
                    (0..1024).map(|_| json!({"vector": self.vector()})).collect();
                Asked::post("/nearest", &json!({"queries": queries}))
            }
            4 => {
                let mut asked = Asked::post("/nearest", &json!({"word": self.word()}));
                asked.body += &" ".repeat(bytes);
                asked
            }
            _ => Asked::post(
                "/odd-one-out",
                &json!({"words": [self.word(), self.word(), self.word(), long(bytes)]}),
            ),
        }
    }
}
