//! Random questions of all kinds.

use kindred::expression::Term;
use kindred::{Method, Options, Target, Unknown, WithAttributes};

use crate::draw::Draw;
use crate::naive::Source;
use crate::oracle;
use crate::world::World;

/// A word: that of a row, or one that the model does not have.
#[derive(Debug, Clone)]
pub(crate) enum Word {
    Known(usize),
    Unknown(String),
}

/// The target of a question.
#[derive(Debug, Clone)]
pub(crate) enum Of {
    Word(Word),
    Row(usize),
    /// `[dim]`; is it float32 already?
    Vector(Vec<f32>, bool),
    Text(Vec<Word>),
    /// Words with weights; is it written as an expression?
    Sum(Vec<(Word, f64)>, bool),
}

/// The options of a question.
#[derive(Debug, Clone)]
pub(crate) struct Rules {
    pub(crate) method: Method,
    pub(crate) k: u64,
    pub(crate) offset: u64,
    pub(crate) exclude: Vec<Word>,
    pub(crate) include_query: bool,
    pub(crate) vocab_limit: Option<u64>,
    pub(crate) min_score: Option<f64>,
    pub(crate) max_score: Option<f64>,
    pub(crate) filter: Option<Source>,
    pub(crate) distinct: Option<&'static str>,
    pub(crate) fold_case: bool,
    pub(crate) with_vectors: bool,
    pub(crate) with_attributes: Option<Vec<&'static str>>,
    pub(crate) unknown: Option<Unknown>,
    pub(crate) explain: bool,
}

/// The terms that are wanted.
#[derive(Debug, Clone)]
pub(crate) struct Wanted {
    pub(crate) top: usize,
    pub(crate) min_weight: f64,
    pub(crate) max_ratio: f64,
    pub(crate) filter: Option<Source>,
}

/// A question.
#[derive(Debug, Clone)]
pub(crate) enum Question {
    Search(Of, Rules),
    Rank(Vec<Word>, Of, Rules),
    Expand(Vec<Vec<Word>>, Wanted),
    /// `[tokens, dim]` for each text.
    ExpandVectors(Vec<Vec<f32>>, Wanted),
    Count(Source),
    Classify(Vec<Word>),
}

/// The names of all attributes.
pub(crate) const ATTRIBUTES: [&str; 7] =
    ["year", "price", "sold", "made", "brand", "tags", "serial"];

impl Question {
    /// A question to a model.
    pub(crate) fn new(world: &World, draw: &mut Draw) -> Self {
        match draw.random.below(20) {
            0..12 => {
                let (of, mut rules) = with_target(world, draw);
                page(&mut rules, draw);
                Self::Search(of, rules)
            }
            12..15 => {
                let (of, rules) = with_target(world, draw);
                let count = draw.random.pick(&[1, 2, 15, 40]);
                Self::Rank((0..count).map(|_| word(world, 100, draw)).collect(), of, rules)
            }
            15 | 16 => {
                let texts = (0..1 + draw.random.below(3)).map(|_| text(world, draw)).collect();
                Self::Expand(texts, wanted(draw))
            }
            17 => {
                let one = |draw: &mut Draw| -> Vec<f32> {
                    let tokens = 1 + draw.random.below(5);
                    (0..tokens).flat_map(|_| vector(world, draw)).collect()
                };
                let texts = (0..1 + draw.random.below(3)).map(|_| one(draw)).collect();
                Self::ExpandVectors(texts, wanted(draw))
            }
            18 => Self::Count(draw.source()),
            _ => Self::Classify(text(world, draw)),
        }
    }
}

fn word(world: &World, unknown: u64, draw: &mut Draw) -> Word {
    match draw.random.one_in(unknown) {
        true => Word::Unknown(format!("unknown{}", draw.random.below(3))),
        false => Word::Known(draw.random.below(world.words.len() as u64) as usize),
    }
}

fn text(world: &World, draw: &mut Draw) -> Vec<Word> {
    let length = draw.random.pick(&[1, 2, 3, 9]);
    (0..length).map(|_| word(world, 8, draw)).collect()
}

/// A vector at random, that of a row, or zero.
fn vector(world: &World, draw: &mut Draw) -> Vec<f32> {
    let dim = world.vectors[0].len();
    match draw.random.below(12) {
        0 => vec![0.0; dim],
        1..4 => world.vectors[draw.random.below(world.words.len() as u64) as usize].clone(),
        4..6 => (0..dim).map(|_| draw.random.below(5) as f32 - 2.0).collect(),
        _ => (0..dim).map(|_| draw.real()).collect(),
    }
}

fn target(world: &World, draw: &mut Draw) -> (Of, Method) {
    let by_vector = |of| (of, Method::ThreeCosAdd);
    let words = |count: u64, draw: &mut Draw| -> Vec<Word> {
        (0..count).map(|_| word(world, 60, draw)).collect()
    };
    match draw.random.below(12) {
        0..3 => by_vector(Of::Word(word(world, 50, draw))),
        3 => by_vector(Of::Row(draw.random.below(world.words.len() as u64) as usize)),
        4..6 => by_vector(Of::Vector(vector(world, draw), draw.random.one_in(2))),
        6..8 => by_vector(Of::Text(text(world, draw))),
        8 | 9 => {
            let words = words(1 + draw.random.below(4), draw).into_iter();
            let mut weight = || draw.random.pick(&[1.0, 1.0, -1.0, 0.5, -2.25, 3.0]);
            let sum = words.map(|word| (word, weight())).collect();
            by_vector(Of::Sum(sum, draw.random.one_in(2)))
        }
        10 => {
            let words = words(1 + draw.random.below(6), draw).into_iter();
            let mut weight = || draw.random.pick(&[1.0, -1.0]);
            let sum = words.map(|word| (word, weight())).collect();
            (Of::Sum(sum, draw.random.one_in(2)), Method::ThreeCosMul)
        }
        _ => {
            let words = words(3, draw).into_iter();
            let sum = words.zip([1.0, -1.0, 1.0]).collect();
            (Of::Sum(sum, draw.random.one_in(2)), Method::PairDirection)
        }
    }
}

/// A target, and options that every kind of question has.
fn with_target(world: &World, draw: &mut Draw) -> (Of, Rules) {
    let (of, method) = target(world, draw);
    let rows = world.words.len() as u64;
    let excluded = draw.random.pick(&[0, 0, 1, 3, 30]);
    let unknown = draw.random.pick(&[None, None, Some(Unknown::Skip), Some(Unknown::Error)]);
    let mut rules = Rules {
        method,
        k: 10,
        offset: 0,
        exclude: (0..excluded).map(|_| word(world, 10, draw)).collect(),
        include_query: draw.random.one_in(3),
        vocab_limit: draw.random.one_in(5).then(|| 1 + draw.random.below(rows + 5)),
        min_score: None,
        max_score: None,
        filter: (!draw.random.one_in(3)).then(|| draw.source()),
        distinct: None,
        fold_case: false,
        with_vectors: false,
        with_attributes: None,
        unknown,
        explain: false,
    };
    // Bounds are often the score of some row: both ends belong to the range.
    let bound = |draw: &mut Draw| {
        let row = draw.random.below(rows) as usize;
        let score = oracle::score_of(world, &of, &rules, row).filter(|_| !draw.random.one_in(3));
        score.unwrap_or_else(|| f64::from(draw.real()))
    };
    let (min, max) = (bound(draw), bound(draw));
    match draw.random.below(8) {
        0 => rules.min_score = Some(min),
        1 => rules.max_score = Some(max),
        2 => (rules.min_score, rules.max_score) = (Some(min.min(max)), Some(min.max(max))),
        _ => {}
    }
    (of, rules)
}

/// Options of searches alone.
fn page(rules: &mut Rules, draw: &mut Draw) {
    rules.k = draw.random.pick(&[1, 2, 3, 10, 10, 10, 100, 700, 1000]);
    rules.offset = draw.random.pick(&[0, 0, 0, 1, 7, 40, 500]).min(1000 - rules.k);
    match draw.random.below(8) {
        0..3 => {
            let names = ["year", "price", "sold", "made", "brand", "serial"];
            rules.distinct = Some(draw.random.pick(&names));
        }
        3 => rules.fold_case = true,
        _ => {}
    }
    rules.explain = draw.random.one_in(12);
    if rules.k <= 100 {
        rules.with_vectors = draw.random.one_in(12);
        rules.with_attributes = match draw.random.below(16) {
            0 => Some(ATTRIBUTES.to_vec()),
            1 => Some(vec![draw.random.pick(&ATTRIBUTES), draw.random.pick(&ATTRIBUTES)]),
            _ => None,
        };
    }
}

fn wanted(draw: &mut Draw) -> Wanted {
    Wanted {
        top: draw.random.pick(&[1, 3, 10, 100, 1000]),
        min_weight: draw.random.pick(&[0.0, 0.0, 0.0, 0.5, 2.0]),
        max_ratio: draw.random.pick(&[0.0, 0.0, 0.0, 0.5, 1.0]),
        filter: draw.random.one_in(2).then(|| draw.source()),
    }
}

impl Word {
    /// As it is written.
    pub(crate) fn written(&self, world: &World) -> String {
        match self {
            Self::Known(row) => world.words[*row].clone(),
            Self::Unknown(word) => word.clone(),
        }
    }
}

/// Words as they are written, with spaces between them.
pub(crate) fn joined(world: &World, words: &[Word]) -> String {
    words.iter().map(|word| word.written(world)).collect::<Vec<_>>().join(" ")
}

impl Of {
    /// As Kindred takes it.
    pub(crate) fn target(&self, world: &World) -> Target {
        match self {
            Self::Word(word) => Target::Word(word.written(world)),
            Self::Row(row) => Target::Row(*row as u32),
            Self::Vector(vector, true) => Target::Components(vector.clone()),
            Self::Vector(vector, false) => {
                Target::Vector(vector.iter().map(|&one| f64::from(one)).collect())
            }
            Self::Text(words) => Target::Text(joined(world, words)),
            Self::Sum(words, true) => {
                let term = |(word, weight): &(Word, f64)| {
                    let sign = if *weight < 0.0 { '-' } else { '+' };
                    format!("{sign}{}*\"{}\"", weight.abs(), word.written(world))
                };
                let terms: Vec<String> = words.iter().map(term).collect();
                Target::expression(&terms.join(" ")).unwrap()
            }
            Self::Sum(words, false) => Target::Words(
                words
                    .iter()
                    .map(|(word, weight)| Term { word: word.written(world), weight: *weight })
                    .collect(),
            ),
        }
    }
}

impl Rules {
    /// As Kindred takes them.
    pub(crate) fn options(&self, world: &World) -> Options {
        let exclude: Vec<String> = self.exclude.iter().map(|word| word.written(world)).collect();
        let names = |names: &Vec<&str>| match names.len() == ATTRIBUTES.len() {
            true => WithAttributes::All(true),
            false => WithAttributes::Named(names.iter().map(|&name| name.to_owned()).collect()),
        };
        Options {
            method: Some(self.method),
            k: Some(self.k),
            offset: Some(self.offset),
            exclude: (!exclude.is_empty()).then_some(exclude),
            include_query: Some(self.include_query),
            vocab_limit: self.vocab_limit,
            min_score: self.min_score,
            max_score: self.max_score,
            filter: self.filter.as_ref().map(Source::written),
            distinct: self.distinct.map(str::to_owned),
            with_vectors: Some(self.with_vectors),
            with_text: None,
            with_attributes: self.with_attributes.as_ref().map(names),
            unknown: self.unknown,
            fold_case: Some(self.fold_case),
            explain: Some(self.explain),
            timeout_ms: None,
        }
    }
}
