//! A request, and the numbers that requests are made of.

use serde_json::Value;

/// Pseudo-random numbers: SplitMix64 (Steele, Lea and Flood 2014).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    pub(crate) fn one_in(&mut self, number: usize) -> bool {
        self.below(number) == 0
    }

    /// From 1 to `most`, small ones as often as large ones, and often the most itself.
    pub(crate) fn size(&mut self, most: usize) -> usize {
        if self.one_in(8) {
            return most;
        }
        let exponent = self.next() as f64 / u64::MAX as f64;
        ((most as f64).powf(exponent) as usize).clamp(1, most)
    }

    pub(crate) fn of<'a, T: ?Sized>(&mut self, any: &[&'a T]) -> &'a T {
        any[self.below(any.len())]
    }

    /// From −1 to 1.
    pub(crate) fn number(&mut self) -> f64 {
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
    /// A NumPy file as the body, and whether the answer shall be one.
    pub(crate) array: Option<(Vec<u8>, bool)>,
    /// The positions of sources that a change stores, if any.
    pub(crate) positions: String,
}

impl Asked {
    pub(crate) fn get(route: &'static str, target: impl Into<String>) -> Self {
        Self { method: "GET", ..Self::of(route, target.into()) }
    }

    pub(crate) fn post(route: &'static str, body: &Value) -> Self {
        Self { body: body.to_string(), ..Self::of(route, route.to_owned()) }
    }

    pub(crate) fn array(route: &'static str, target: String, file: Vec<u8>, wants: bool) -> Self {
        Self { array: Some((file, wants)), ..Self::of(route, target) }
    }

    fn of(route: &'static str, target: String) -> Self {
        let (body, positions) = (String::new(), String::new());
        Self { route, method: "POST", target, accept: None, body, array: None, positions }
    }

    /// The body's bytes.
    pub(crate) fn bytes(&self) -> &[u8] {
        self.array.as_ref().map_or(self.body.as_bytes(), |(file, _)| file)
    }

    /// Enough of it to find it again.
    pub(crate) fn shown(&self) -> String {
        let start = |text: &str, most| text.chars().take(most).collect::<String>();
        let (target, body) = (start(&self.target, 200), start(&self.body, 300));
        let Self { method, accept, .. } = self;
        let bytes = self.target.len() + self.bytes().len();
        format!("{method} {target} {body} ({bytes} bytes, takes {accept:?})")
    }
}

/// Routes without anything to choose.
pub(crate) const PLAIN: [(&str, &str); 16] = [
    ("/classify", "/classify?text=a+great+film&scores=true"),
    ("/expand", "/expand?text=cheap+flights&top=100"),
    ("/heads", "/heads"),
    ("/", "/"),
    ("/explorer/{file}", "/explorer/main.js"),
    ("/info", "/info"),
    ("/model", "/model"),
    ("/models", "/models"),
    ("/docs", "/docs"),
    ("/docs/", "/docs/"),
    ("/docs/{file}", "/docs/swagger-ui-bundle.js"),
    ("/health/live", "/health/live"),
    ("/health/ready", "/health/ready"),
    ("/metrics", "/metrics"),
    ("/openapi.yaml", "/openapi.yaml"),
    ("/version", "/version"),
];
