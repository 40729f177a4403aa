//! From fields to checked queries.

use std::collections::HashSet;
use std::sync::{Arc, OnceLock};

use contract::{Filter, FullPassQuery, Query, Row, WeightedWord};
use model_store::ModelStore;

use super::ApiError;
use super::answer::Notes;
use super::explain::MAX_EXPLAINED_TERMS;
use super::fields::{
    DEFAULT_K, ExcludedWords, MAX_K, MAX_RESULTS, MAX_VECTOR_COMPONENTS, RawOptions, RawTarget,
    Unknown, WeightedWords, WordWithWeight, invalid,
};
use super::fold_case::Fold;
use super::formula::{Ask, Formula, MAX_FULL_PASS_WORDS, check_form};
use super::look_up::{LookedUp, leave_out, look_up, unknown_words};
use super::text::{Token, tokens};
use kindred::expression::{self, MAX_TERMS};
use kindred::method::Method;

/// What a query is for, its form checked, its words not yet looked up.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    Word(String),
    Vector(Vec<f64>),
    Text(String),
    Words(Vec<WordWithWeight>),
}

/// The words that queries leave out, looked up once for all queries that share them.
#[derive(Debug, Default)]
pub(super) struct Excluded {
    words: Vec<String>,
    /// Ascending.
    rows: Vec<Row>,
    /// The words in lower case, where a query needs them.
    folded: OnceLock<HashSet<String>>,
}

impl Excluded {
    /// Those of the words that the model has; the others can't be found anyway.
    pub(super) fn new(
        model: &ModelStore,
        words: Option<ExcludedWords>,
    ) -> Result<Arc<Self>, ApiError> {
        let words = words.map_or(Some(Vec::new()), ExcludedWords::all);
        let words = words.ok_or_else(|| invalid("exclude"))?;
        let mut rows: Vec<Row> = words.iter().filter_map(|word| model.words().row(word)).collect();
        rows.sort_unstable();
        rows.dedup();
        Ok(Arc::new(Self { words, rows, folded: OnceLock::new() }))
    }

    /// The words in lower case, each once.
    pub(super) fn folded(&self) -> &HashSet<String> {
        self.folded.get_or_init(|| self.words.iter().map(|word| word.to_lowercase()).collect())
    }
}

/// What holds for all queries of a request that say nothing else.
pub(super) struct Common {
    options: RawOptions,
    excluded: Arc<Excluded>,
}

impl Common {
    /// Checks them; they are part of the envelope.
    pub(super) fn new(model: &ModelStore, mut options: RawOptions) -> Result<Self, ApiError> {
        let excluded = Excluded::new(model, options.exclude.take())?;
        let common = Self { options, excluded };
        Options::new(model, RawOptions::default(), &common)?;
        Ok(common)
    }

    /// Of a request with one query.
    pub(super) fn none() -> Self {
        Self { options: RawOptions::default(), excluded: Arc::default() }
    }
}

/// The options of a query, checked, with defaults where nothing was given.
#[derive(Debug, Clone)]
pub(super) struct Options {
    pub(super) k: usize,
    pub(super) excluded: Arc<Excluded>,
    pub(super) include_query: bool,
    pub(super) vocab_limit: Option<u32>,
    pub(super) min_score: Option<f64>,
    pub(super) with_vectors: bool,
    /// What was said of unknown words; what a target does without a word of it, it knows itself.
    pub(super) unknown: Option<Unknown>,
    pub(super) fold_case: bool,
    pub(super) explain: bool,
    pub(super) method: Method,
}

impl Options {
    /// `own` options, `common` ones where there are none, defaults where there are neither.
    pub(super) fn new(
        model: &ModelStore,
        own: RawOptions,
        common: &Common,
    ) -> Result<Self, ApiError> {
        let Common { options: common, excluded } = common;
        let k = own.k.or(common.k).unwrap_or(DEFAULT_K);
        if !(1..=MAX_K).contains(&k) {
            return Err(invalid("k"));
        }
        let own_folds = own.fold_case.or(common.fold_case).unwrap_or(false);
        let excluded = match own.exclude {
            Some(words) => {
                let mut own = Excluded::new(model, Some(words))?;
                if !own_folds && let Some(own) = Arc::get_mut(&mut own) {
                    // Nobody needs them any more, and thousands of words take a while to be dropped.
                    own.words = Vec::new();
                }
                own
            }
            None => excluded.clone(),
        };
        let vocab_limit = own.vocab_limit.or(common.vocab_limit);
        if vocab_limit == Some(0) {
            return Err(invalid("vocab_limit"));
        }
        let min_score = own.min_score.or(common.min_score);
        if min_score.is_some_and(|min| !min.is_finite()) {
            return Err(invalid("min_score"));
        }
        Ok(Self {
            k: k as usize,
            excluded,
            include_query: own.include_query.or(common.include_query).unwrap_or(false),
            // More rows than can be counted are all rows.
            vocab_limit: vocab_limit.map(|limit| u32::try_from(limit).unwrap_or(u32::MAX)),
            min_score,
            with_vectors: own.with_vectors.or(common.with_vectors).unwrap_or(false),
            unknown: own.unknown.or(common.unknown),
            fold_case: own.fold_case.or(common.fold_case).unwrap_or(false),
            explain: own.explain.or(common.explain).unwrap_or(false),
            method: own.method.or(common.method).unwrap_or(Method::ThreeCosAdd),
        })
    }
}

impl RawTarget {
    /// Whether the request says anything of what it is for.
    pub(super) fn is_given(&self) -> bool {
        match self {
            Self::Nearest { word, vector, text } => {
                word.is_some() || vector.is_some() || text.is_some()
            }
            Self::Analogy { expression, positive, negative } => {
                expression.is_some() || positive.is_some() || negative.is_some()
            }
        }
    }

    /// The alternatives, for messages.
    pub(super) fn alternatives(&self) -> &'static str {
        match self {
            Self::Nearest { .. } => "`word`, `vector`, `text` or `queries`",
            Self::Analogy { .. } => "`expression`, `positive` and/or `negative`, or `queries`",
        }
    }

    /// The one thing that is asked for.
    pub(super) fn resolve(self) -> Result<Target, ApiError> {
        let alternatives = self.alternatives();
        self.resolve_among(alternatives)
    }

    /// The same, where there are these alternatives.
    pub(super) fn resolve_among(self, alternatives: &str) -> Result<Target, ApiError> {
        match self {
            Self::Nearest { word: Some(word), vector: None, text: None } => Ok(Target::Word(word)),
            Self::Nearest { word: None, vector: Some(vector), text: None } => {
                Ok(Target::Vector(vector))
            }
            Self::Nearest { word: None, vector: None, text: Some(text) } => Ok(Target::Text(text)),
            Self::Analogy { expression: Some(text), positive, negative } => {
                let terms = expression::parse(&text).map_err(ApiError::BadExpression)?;
                if positive.is_some() || negative.is_some() {
                    return Err(not_exactly_one(alternatives));
                }
                let words = terms
                    .into_iter()
                    .map(|term| WordWithWeight { word: term.word, weight: term.weight });
                Ok(Target::Words(words.collect()))
            }
            Self::Analogy { expression: None, positive, negative }
                if positive.is_some() || negative.is_some() =>
            {
                let found =
                    [&positive, &negative].map(|words| words.as_ref().map_or(0, |w| w.found));
                let found: usize = found.into_iter().sum();
                if found > MAX_TERMS {
                    let reason = format!(
                        "`positive` and `negative` have {found} words together; the maximum is {MAX_TERMS}",
                    );
                    return Err(ApiError::InvalidRequest { reason });
                }
                let all = |words: Option<WeightedWords>| words.and_then(WeightedWords::all);
                let mut words = all(positive).unwrap_or_default();
                let negative = all(negative).unwrap_or_default();
                words.extend(
                    negative.into_iter().map(|w| WordWithWeight { weight: -w.weight, ..w }),
                );
                Ok(Target::Words(words))
            }
            _ => Err(not_exactly_one(alternatives)),
        }
    }
}

pub(super) fn not_exactly_one(alternatives: &str) -> ApiError {
    ApiError::InvalidRequest { reason: format!("give exactly one of {alternatives}") }
}

/// What a query is for, its words looked up.
pub(super) struct Resolved {
    pub(super) formula: Formula,
    /// The words that were written, as often as they were.
    pub(super) inputs: Vec<Row>,
    pub(super) notes: Notes,
}

/// Looks up the words of a query. `unknown` is what was said of unknown ones, if anything was.
pub(super) fn resolve(
    model: &ModelStore,
    target: Target,
    method: Method,
    unknown: Option<Unknown>,
) -> Result<Resolved, ApiError> {
    let words = model.words();
    // Of a search for a text nobody expects that it fails for one odd word.
    let otherwise = if let Target::Text(_) = target { Unknown::Skip } else { Unknown::Error };
    let unknown = unknown.unwrap_or(otherwise);
    let mut notes = Notes::default();
    let mut skipped = Vec::new();
    let (formula, inputs) = match target {
        Target::Word(word) => {
            let row = words.row(&word).ok_or_else(|| unknown_words([word]))?;
            (Formula::of_row(row), vec![row])
        }
        Target::Vector(vector) => {
            // To the nearest float32; what is out of its range becomes infinite and is refused.
            let vector = vector.into_iter().map(|x| x as f32).collect();
            (Formula::of_vector(vector), Vec::new())
        }
        Target::Text(text) => {
            let found = words_of_text(model, &text, unknown)?;
            skipped = found.skipped;
            let rows: Vec<Row> = found.known.into_iter().map(|(row, ())| row).collect();
            let weighted: Vec<_> =
                rows.iter().map(|&row| WeightedWord { row, weight: 1.0 }).collect();
            notes.used = Some(each_row_once(&rows));
            (Formula::of_sum(model, &weighted)?, rows)
        }
        Target::Words(asked) => {
            check_form(method, asked.iter().map(|w| (w.weight, &w.word[..])))?;
            let found = look_up(words, asked.into_iter().map(|w| (w.word, w.weight)), unknown)?;
            skipped = found.skipped;
            let weighted: Vec<_> =
                found.known.into_iter().map(|(row, weight)| WeightedWord { row, weight }).collect();
            let formula = Formula::of_analogy(model, &weighted, method)?;
            (formula, weighted.into_iter().map(|word| word.row).collect())
        }
    };
    notes.skipped = (unknown == Unknown::Skip).then_some(skipped);
    Ok(Resolved { formula, inputs, notes })
}

/// A query that can be asked, and what its answer will need.
#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) ask: Ask,
    pub(super) with_vectors: bool,
    pub(super) notes: Notes,
    pub(super) fold: Option<Box<Fold>>,
    pub(super) explain: Option<Box<Explain>>,
}

/// What an explanation needs.
#[derive(Debug)]
pub(super) struct Explain {
    pub(super) formula: Formula,
    /// Asks where the words of the query stand themselves, if it has words.
    pub(super) inputs: Option<FullPassQuery>,
}

/// Looks up the words of a query and makes it.
pub(super) fn prepare(
    model: &ModelStore,
    target: Target,
    options: &Options,
) -> Result<Prepared, ApiError> {
    let Resolved { formula, inputs, notes } =
        resolve(model, target, options.method, options.unknown)?;
    let fold = options.fold_case.then(|| {
        let own: &[Row] = if options.include_query { &[] } else { &inputs };
        let own = own.iter().map(|&row| model.words().word(row));
        Box::new(Fold::new(options.k, own, options.excluded.clone()))
    });
    let k = fold.as_ref().map_or(options.k, |fold| fold.first_k());
    let explain = if options.explain {
        let inputs = each_row_once(&inputs);
        let ranks =
            |scoring| FullPassQuery::new(scoring, 0, filter(options, Vec::new()), inputs.clone());
        let asked = if inputs.is_empty() { None } else { Some(ranks(formula.scoring(model)?)) };
        Some(Box::new(Explain { formula: formula.clone(), inputs: asked }))
    } else {
        None
    };
    let left_out = if options.include_query { Vec::new() } else { inputs };
    let filter = filter(options, left_out);
    let ask = match formula {
        Formula::Cosine { vector, .. } => {
            Ask::Search(Query::new(&model.table(), vector, k, filter)?)
        }
        _ => {
            let query = FullPassQuery::new(formula.scoring(model)?, k, filter, Vec::new());
            Ask::FullPass(Box::new(query))
        }
    };
    Ok(Prepared { ask, with_vectors: options.with_vectors, notes, fold, explain })
}

/// The filter that the options ask for, which leaves out these rows besides.
pub(super) fn filter(options: &Options, left_out: Vec<Row>) -> Filter {
    let mut filter = Filter::excluding_besides(&options.excluded.rows, left_out);
    filter.first_rows = options.vocab_limit;
    filter.min_score = options.min_score;
    filter
}

fn words_of_text(
    model: &ModelStore,
    text: &str,
    unknown: Unknown,
) -> Result<LookedUp<()>, ApiError> {
    let (mut known, mut missing) = (Vec::new(), Vec::new());
    for token in tokens(model.words(), text)? {
        match token {
            Token::Known(row) => known.push((row, ())),
            Token::Unknown(word) => missing.push(word),
        }
    }
    leave_out(known, missing, unknown)
}

/// Rows without repetitions, by their first appearance.
pub(super) fn each_row_once(rows: &[Row]) -> Vec<Row> {
    let mut seen = HashSet::new();
    rows.iter().copied().filter(|&row| seen.insert(row)).collect()
}

/// What one answer may hold at most, over all its queries.
pub(super) fn check_size<'a>(
    options: impl Iterator<Item = &'a Options> + Clone,
    dim: usize,
) -> Result<(), ApiError> {
    let results: usize = options.clone().map(|options| options.k).sum();
    if results > MAX_RESULTS {
        let reason =
            format!("the sum of `k` over all queries is {results}; the maximum is {MAX_RESULTS}");
        return Err(ApiError::TooManyResults { reason });
    }
    let components: usize =
        options.filter(|options| options.with_vectors).map(|options| options.k * dim).sum();
    if components > MAX_VECTOR_COMPONENTS {
        let reason = format!(
            "the sum of `k` × {dim} over all queries with vectors is {components}; the maximum is \
             {MAX_VECTOR_COMPONENTS}"
        );
        return Err(ApiError::TooManyResults { reason });
    }
    Ok(())
}

/// What the words of all queries may add to the work of one request at most.
pub(super) fn check_work<'a>(
    prepared: impl Iterator<Item = (&'a Prepared, &'a Options)> + Clone,
) -> Result<(), ApiError> {
    let compared: usize = prepared
        .clone()
        .map(|(prepared, _)| match &prepared.ask {
            Ask::Search(_) => 0,
            Ask::FullPass(query) => query.scoring().vectors().len(),
        })
        .sum();
    if compared > MAX_FULL_PASS_WORDS {
        let reason = format!(
            "the queries with `3cosmul` or `pairdirection` have {compared} words together; the maximum is \
             {MAX_FULL_PASS_WORDS}"
        );
        return Err(ApiError::TooManyResults { reason });
    }
    let terms: usize = prepared
        .filter_map(|(prepared, options)| {
            Some(prepared.explain.as_ref()?.formula.number_of_words() * options.k)
        })
        .sum();
    if terms > MAX_EXPLAINED_TERMS {
        let reason = format!(
            "the sum of `k` × words over all queries with `explain` is {terms}; the maximum is \
             {MAX_EXPLAINED_TERMS}"
        );
        return Err(ApiError::TooManyResults { reason });
    }
    Ok(())
}
