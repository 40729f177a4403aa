//! Requests at random that are no searches, and those with parameters.

use serde_json::{Value, json};

use super::asked::Asked;
use super::filters::encoded;
use super::searches::Maker;

impl Maker {
    pub(crate) fn rank(&mut self) -> Asked {
        let left = self.left(1);
        let route = if self.random.one_in(2) { "/nearest" } else { "/analogy" };
        let mut body = self.query(route, &left);
        body.retain(|name, _| {
            let of_lists = [
                "k",
                "offset",
                "distinct",
                "with_vectors",
                "with_text",
                "with_attributes",
                "explain",
                "fold_case",
            ];
            !of_lists.contains(&name.as_str())
        });
        let number = self.random.size(1000);
        let words = self.known(number);
        body.insert("words".to_owned(), json!(words));
        Asked::post("/rank", &Value::Object(body))
    }

    pub(crate) fn similarity(&mut self) -> Asked {
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

    pub(crate) fn odd_one_out(&mut self) -> Asked {
        let number = self.random.size(256).max(3);
        let words = self.any(number);
        Asked::post("/odd-one-out", &json!({"words": words, "unknown": "skip"}))
    }

    pub(crate) fn embed(&mut self) -> Asked {
        let texts = self.random.size(1024);
        let most = self.random.size(256).min(60_000 / texts).max(1);
        let texts: Vec<String> = (0..texts).map(|_| self.any(most).join(" ")).collect();
        match texts.len() % 4 {
            1 => Asked::post("/embed", &json!({"inputs": texts, "normalize": false})),
            2 => Asked::post("/v1/embeddings", &json!({"input": texts})),
            3 => {
                Asked::post("/v1/embeddings", &json!({"input": texts, "encoding_format": "base64"}))
            }
            _ => Asked::post("/embed", &json!({"texts": texts, "truncate": false})),
        }
    }

    pub(crate) fn classify(&mut self) -> Asked {
        let explain = self.random.one_in(4);
        let texts = self.random.size(if explain { 16 } else { 1024 });
        let most = self.random.size(512).min(60_000 / texts).max(1);
        let mut text = || {
            let words = self.any(most);
            if self.random.one_in(2) { json!(words) } else { json!(words.join(" ")) }
        };
        let texts: Vec<Value> = (0..texts).map(|_| text()).collect();
        Asked::post("/classify", &json!({"texts": texts, "explain": explain, "scores": true}))
    }

    /// An explanation around one word that the model does not have, of up to 1 MB.
    pub(crate) fn explain_long(&mut self) -> Asked {
        let long = "x".repeat(self.random.size(1 << 20));
        let text = format!("{} {long} {}", self.word(), self.word());
        Asked::post("/classify", &json!({"text": text, "explain": true}))
    }

    pub(crate) fn expand(&mut self) -> Asked {
        let texts = self.random.size(1024);
        let most = self.random.size(512).min(4096 / texts).max(1);
        let top = self.random.size(1000).min(65_536 / texts);
        let format = self.random.of(&["terms", "impacts", "rank_features", "qdrant", "vespa"]);
        let explain = format == "terms" && self.random.one_in(2);
        let mut text = || {
            let words = self.any(most);
            if self.random.one_in(2) { json!(words) } else { json!(words.join(" ")) }
        };
        let texts: Vec<Value> = (0..texts).map(|_| text()).collect();
        let mut body = json!({"texts": texts, "top": top, "format": format, "explain": explain});
        if self.random.one_in(4) {
            let number = self.random.size(64);
            let vectors: Vec<Value> = (0..number)
                .map(|_| json!((0..self.dim).map(|_| self.random.number()).collect::<Vec<_>>()))
                .collect();
            body = json!({"vectors": vectors, "top": top, "format": format, "explain": explain});
        }
        if let Some(filter) = self.some_filter(256) {
            body["filter"] = json!(filter);
        }
        Asked::post("/expand", &body)
    }

    /// The same as a GET, of one text with a filter.
    pub(crate) fn get_expand(&mut self) -> Asked {
        let words = self.filters.size(200);
        let words = (0..words).map(|_| self.filters.below(self.words.len()));
        let text: Vec<usize> = words.collect();
        let text: Vec<&str> = text.into_iter().map(|word| &self.words[word][..]).collect();
        let (text, top) = (text.join("+"), self.filters.size(1000));
        let filter = self.filter(256);
        let target = format!("/expand?text={text}&top={top}&filter={}", encoded(&filter));
        Asked::get("/expand", target)
    }

    /// Vectors as a NumPy file, to either route that takes them.
    pub(crate) fn array(&mut self) -> Asked {
        let (dim, count) = (self.dim, self.random.size(1024));
        let (kind, bytes) = [("'<f2'", 2), ("'<f4'", 4), ("'<f8'", 8)][self.random.below(3)];
        let mut file = |shape: &[u64]| {
            let numbers = shape.iter().product::<u64>() as usize;
            let mut file = model_store::npy::head(kind, shape);
            for _ in 0..numbers {
                match bytes {
                    // From 1 to 2: the fraction is random.
                    2 => file.extend((0x3c00 + self.random.below(1024) as u16).to_le_bytes()),
                    4 => file.extend((self.random.number() as f32).to_le_bytes()),
                    _ => file.extend(self.random.number().to_le_bytes()),
                }
            }
            file
        };
        let [texts, tokens] = [count.div_ceil(16), count % 16 + 1];
        let to_expand = file(&[texts as u64, tokens as u64, dim as u64]);
        let to_search = file(&[count as u64, dim as u64]);
        if self.random.one_in(4) {
            let top = self.random.size(1000).min(65_536 / texts);
            return Asked::array("/expand", format!("/expand?top={top}"), to_expand, false);
        }
        let with_vectors = self.random.one_in(3);
        let most = if with_vectors { 4_000_000 / (count * dim) } else { 65_536 / count };
        let k = self.random.size(most.clamp(1, 1000));
        let mut target = format!("/nearest?k={k}&with_vectors={with_vectors}");
        if self.random.one_in(3) {
            let words = self.random.size(400);
            let excluded: Vec<String> = (0..words).map(|_| self.word()).collect();
            excluded.iter().for_each(|word| target += &format!("&exclude={word}"));
        }
        for option in ["&fold_case=true", "&min_score=0.3", "&vocab_limit=2000"] {
            target += if self.random.one_in(6) { option } else { "" };
        }
        if let Some(filter) = self.some_filter(64) {
            target += &format!("&filter={}", encoded(&filter));
        }
        let wants_array = !self.random.one_in(4);
        Asked::array("/nearest", target, to_search, wants_array)
    }

    pub(crate) fn get_nearest(&mut self) -> Asked {
        let target = if self.random.one_in(2) {
            format!("text={}", self.text().replace(' ', "+"))
        } else {
            format!("word={}", self.any_word())
        };
        Asked::get("/nearest", format!("/nearest?{target}{}", self.parameters()))
    }

    pub(crate) fn get_analogy(&mut self) -> Asked {
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
        let flag = self.random.of(&flags);
        parameters += flag;
        parameters += self.random.of(&["", "&include_query=true"]);
        if let Some(filter) = self.some_filter(256) {
            parameters += &format!("&filter={}", encoded(&filter));
        }
        let offset = self.filters.size(999);
        if self.filters.one_in(3) && k + offset <= 1000 {
            parameters += &format!("&offset={offset}");
        }
        if self.has_attributes && self.filters.one_in(4) && !flag.contains("fold_case") {
            let attribute = self.filters.of(&["price", "weight", "kind", "fresh"]);
            parameters += &format!("&distinct={attribute}");
        }
        parameters
    }

    pub(crate) fn list_words(&mut self) -> Asked {
        let word = self.word();
        let prefix = &word[..self.random.below(3).min(word.len())];
        let limit = self.random.size(1000);
        Asked::get("/words", format!("/words?prefix={prefix}&limit={limit}"))
    }

    /// Known, misspelled, or long.
    pub(crate) fn one_word(&mut self) -> Asked {
        let mut word = self.word();
        match self.random.below(4) {
            0 => {}
            1 => word = self.known(4).concat().chars().take(32).collect(),
            _ => {
                let index = self.random.below(word.len());
                word.replace_range(index..=index, "q");
            }
        }
        if self.random.one_in(2) {
            return Asked::get("/words", format!("/words?word={word}&with_vector=true"));
        }
        Asked::get("/words/{word}", format!("/words/{word}"))
    }

    /// With as many components in its answer as the service allows.
    pub(crate) fn all_vectors(&mut self) -> Asked {
        let words = self.known(1000);
        let queries: Vec<Value> = words.iter().map(|word| json!({"word": word})).collect();
        let k = 4_000_000 / words.len() / self.dim;
        Asked::post("/nearest", &json!({"queries": queries, "k": k, "with_vectors": true}))
    }

    /// Up to a few megabytes of what the other requests have little of.
    pub(crate) fn large(&mut self) -> Asked {
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
