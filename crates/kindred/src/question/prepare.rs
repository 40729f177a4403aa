//! From targets and options to checked queries.

use std::sync::Arc;

use contract::full_pass::Groups;
use contract::{
    Filter, FullPassQuery, Query, QueryError, QueryVector, Row, RowBitmap, RowSet, ScoringVector,
    WeightedWord,
};
use filters::SetsWhile;

use super::distinct::same_value;
use super::encode::{EncodeOptions, EncodedText, encode, encoder};
use super::excluded::Excluded;
use super::explain::Explanation;
use super::formula::{Formula, check_form};
use super::included::Included;
use super::look_up::{look_up, row_or_added, rule, unknown_words};
use super::notes::{Notes, each_row_once};
use super::pick::{Fold, Pick, Rule};
use super::target::{Target, WordWithWeight};
use super::text::{MAX_TEXT_WORDS, Most, sum_of_text};
use super::with_added::{WithAdded, extended};
use crate::added::AddedWords;
use crate::options::{DEFAULT_K, MAX_K, Unknown};
use crate::rows::Rows;
use crate::{Error, Method, Options};

/// Options of a whole request, for its queries without their own.
#[derive(Debug, Default)]
pub struct Common {
    options: Options,
    excluded: Option<Arc<Excluded>>,
    within: Option<Arc<RowBitmap>>,
}

impl Common {
    /// Checks the options, looks up the words that all queries exclude, and makes the set of the
    /// filter that they have in common, unless it is among `sets`.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for an option that is out of bounds; [`Error::InvalidFilter`];
    /// [`Error::NotAnswered`] if the set was not wanted any more.
    pub fn new<'a>(
        model: &dyn Rows,
        sets: impl Into<SetsWhile<'a>>,
        mut options: Options,
    ) -> Result<Self, Error> {
        let words = options.exclude.take();
        let excluded = words.map(|words| Excluded::new(model, words)).transpose()?;
        if let Some(wrong) = options.out_of_bounds() {
            return Err(Error::out_of_bounds(wrong));
        }
        let within = options.filter.take().map(|filter| meeting(model, sets, &filter));
        Ok(Self { options, excluded, within: within.transpose()? })
    }
}

/// The options of a query, within their bounds, with defaults where nothing was given.
#[derive(Debug, Clone)]
pub struct Checked {
    /// How many neighbours at most.
    pub k: usize,
    /// How many of the best come before them.
    pub offset: usize,
    /// Of each of these groups of rows, the best is a neighbour.
    distinct: Option<Arc<dyn Groups>>,
    /// `None` for most queries.
    excluded: Option<Arc<Excluded>>,
    /// The rows that meet the filter, if there is one.
    within: Option<Arc<RowBitmap>>,
    /// The rows without a filter.
    live: RowSet,
    include_query: bool,
    vocab_limit: Option<u32>,
    min_score: Option<f64>,
    max_score: Option<f64>,
    /// The parts of each neighbour in the answer.
    pub included: Included,
    /// The option `unknown`, if given; the default depends on the target.
    pub(super) unknown: Option<Unknown>,
    fold_case: bool,
    /// Whether the answer is explained.
    pub explain: bool,
    pub(super) method: Method,
}

impl Checked {
    /// `own` options, `common` ones where there are none, defaults where there are neither. Makes
    /// the set of an own filter, unless it is among `sets`.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] for the first option that is out of bounds;
    /// [`Error::InvalidRequest`] for a minimum score above the maximum; [`Error::InvalidFilter`];
    /// [`Error::NotAnswered`] if the set was not wanted any more.
    pub fn new<'a>(
        model: &dyn Rows,
        sets: impl Into<SetsWhile<'a>>,
        own: Options,
        common: Option<&Common>,
    ) -> Result<Self, Error> {
        let options = match common {
            Some(common) => own.or(&common.options),
            None => own,
        };
        if let Some(wrong) = options.out_of_bounds() {
            return Err(Error::out_of_bounds(wrong));
        }
        // All fields are named here, so that none that is declared is forgotten. The caller uses
        // `timeout_ms`.
        let Options {
            method,
            k,
            offset,
            exclude,
            include_query,
            vocab_limit,
            min_score,
            max_score,
            filter,
            distinct,
            with_vectors,
            with_text,
            with_attributes,
            unknown,
            fold_case,
            explain,
            timeout_ms: _,
        } = options;
        if let (Some(min), Some(max)) = (min_score, max_score)
            && min > max
        {
            let reason = format!(
                "`min_score` ({min}) is above `max_score` ({max}), so no score passes; exchange \
                 them, or leave one out"
            );
            return Err(Error::InvalidRequest { reason });
        }
        let (k, offset) = page(k.unwrap_or(DEFAULT_K), offset.unwrap_or(0))?;
        let fold_case = fold_case.unwrap_or(false);
        let distinct = distinct.map(|attribute| same_value(model, attribute)).transpose()?;
        if fold_case && distinct.is_some() {
            let reason = "`fold_case` and `distinct` each say which of several rows stays, so they \
                          can't be used together; leave one out";
            return Err(Error::InvalidRequest { reason: reason.to_owned() });
        }
        let excluded = match (exclude, common) {
            (Some(words), _) => {
                let mut own = Excluded::new(model, words)?;
                if !fold_case && let Some(own) = Arc::get_mut(&mut own) {
                    // Only folding needs them, and dropping thousands of words later would take a
                    // while.
                    own.words = Vec::new();
                }
                Some(own)
            }
            (None, Some(common)) => common.excluded.clone(),
            (None, None) => None,
        };
        let included = Included::new(model, with_vectors, with_text, with_attributes)?;
        // The last check, because it takes the longest.
        let within = match (filter, common) {
            (Some(filter), _) => Some(meeting(model, sets, &filter)?),
            (None, Some(common)) => common.within.clone(),
            (None, None) => None,
        };
        Ok(Self {
            k,
            offset,
            distinct,
            excluded,
            within,
            live: model.live(),
            include_query: include_query.unwrap_or(false),
            vocab_limit: vocab_limit.map(|limit| rows_before(model, limit)),
            min_score,
            max_score,
            included,
            unknown,
            fold_case,
            explain: explain.unwrap_or(false),
            method: method.unwrap_or(Method::ThreeCosAdd),
        })
    }

    /// How far down the ranking the answer reaches: `offset` + `k`.
    pub fn depth(&self) -> usize {
        self.offset + self.k
    }

    /// The same options for those rows that are in a set as well.
    ///
    /// # Errors
    /// [`Error::Internal`] if it is a set of rows of another model, or of another version of it.
    pub fn within(self, model: &dyn Rows, rows: Arc<RowBitmap>) -> Result<Self, Error> {
        // Sets have places of rows, which a fold changes.
        if rows.version() != model.base().content() || rows.rows() != model.count() {
            return Err(Error::Internal);
        }
        let within = match self.within {
            Some(own) => Arc::new(own.and(&rows)),
            None => rows,
        };
        Ok(Self { within: Some(within), ..self })
    }

    /// The rows that meet the filter, if there is one.
    pub fn rows(&self) -> Option<&Arc<RowBitmap>> {
        self.within.as_ref()
    }

    /// How many rows these options exclude, besides the words of the query.
    pub fn excluded_rows(&self) -> usize {
        self.excluded.as_ref().map_or(0, |excluded| excluded.rows.len())
    }

    /// The filter of these options. It also excludes the words of the query, unless `include_query`
    /// is set.
    pub(super) fn filter(&self, inputs: Vec<Row>) -> Filter {
        let left_out = if self.include_query { Vec::new() } else { inputs };
        let excluded = self.excluded.as_ref().map_or(&[][..], |excluded| &excluded.rows[..]);
        let &Self { vocab_limit, min_score, max_score, .. } = self;
        let rows = self.within.clone().map_or_else(|| self.live.clone(), RowSet::of);
        let rows = rows.limited(vocab_limit).less(excluded.to_vec()).less(left_out);
        Filter { rows, min_score, max_score }
    }

    /// Which hits are neighbours, if not all are. `inputs` are the words of the query.
    fn rule(&self, model: &dyn Rows, inputs: &[Row]) -> Option<Rule> {
        if let Some(groups) = &self.distinct {
            return Some(Rule::Distinct(groups.clone()));
        }
        if self.fold_case {
            let own: &[Row] = if self.include_query { &[] } else { inputs };
            let own = own.iter().map(|&row| model.word(row));
            return Some(Rule::Fold(Fold::new(own, self.excluded.clone())));
        }
        (self.offset > 0).then_some(Rule::All)
    }

    /// The query for a vector that is no row, with the hits before `offset`.
    pub fn query_of(&self, vector: ScoringVector) -> Query {
        Query::of_vector(vector, self.depth(), self.filter(Vec::new()))
    }

    /// The query for a row, with the hits before `offset`, or `None` if the row is zero and so has
    /// no neighbours.
    ///
    /// # Errors
    /// [`Error::InvalidValue`] if the model has no such row.
    pub fn query_of_row(&self, model: &dyn Rows, row: u32) -> Result<Option<Query>, Error> {
        let row = row_of_number(model, row)?;
        let filter = self.filter(vec![row]);
        match Query::new(&model.table(), QueryVector::Row(row), self.depth(), filter) {
            Ok(query) => Ok(Some(query)),
            Err(QueryError::Zero) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }
}

/// The options `k` and `offset`.
///
/// # Errors
/// [`Error::InvalidValue`] if an answer would reach too far down the ranking.
fn page(k: u64, offset: u64) -> Result<(usize, usize), Error> {
    if k + offset > MAX_K {
        let most = MAX_K - k;
        let expected = format!(
            "a whole number from 0 to {most}, because `k` is {k} and the sum is at most {MAX_K}"
        );
        let found = Some(offset.to_string().into());
        return Err(Error::InvalidValue {
            field: "offset".into(),
            expected: expected.into(),
            found,
        });
    }
    Ok((k as usize, offset as usize))
}

/// A target with its words looked up.
pub(super) struct Resolved {
    pub(super) formula: Formula,
    /// The rows of the words as they were written, with repetitions.
    pub(super) inputs: Vec<Row>,
    /// The words that are no rows, which the formula has as such.
    pub(super) added: AddedWords,
    pub(super) notes: Notes,
}

/// A text by the model's encoder. Its tokens that are rows are the words of the query.
fn encoded(model: &dyn Rows, text: &str, unknown: Option<Unknown>) -> Result<Resolved, Error> {
    let options = EncodeOptions { unknown, ..EncodeOptions::default() };
    let EncodedText { vector, notes, tokens } = encode(model, text, &options)?;
    let (inputs, added) = (notes.used.clone().unwrap_or_default(), AddedWords::default());
    let notes = Notes { tokens: Some(Box::new(tokens)), ..notes };
    Ok(Resolved { formula: Formula::of_vector(vector), inputs, added, notes })
}

/// Looks up the words of a query. `unknown` is the option of this name, if given.
pub(super) fn resolve(
    model: &dyn Rows,
    target: Target,
    method: Method,
    unknown: Option<Unknown>,
    explain: bool,
) -> Result<Resolved, Error> {
    if let Target::Text(text) = &target
        && encoder(model)?.is_some()
    {
        return encoded(model, text, unknown);
    }
    // A search for a text should not fail because of one unknown word.
    let otherwise = if let Target::Text(_) = target { Unknown::Skip } else { Unknown::Error };
    let unknown = rule(model, unknown, otherwise)?;
    let mut notes = Notes::default();
    let (mut skipped, mut added) = (Vec::new(), AddedWords::default());
    let (formula, mut inputs) = match target {
        Target::Word(word) => {
            let row = row_or_added(model, word, unknown, &mut added);
            let row = row.map_err(|word| unknown_words([word]))?;
            (Formula::of_row(&WithAdded { rows: model, added: &added }, row)?, vec![row])
        }
        Target::Row(row) => {
            let row = row_of_number(model, row)?;
            (Formula::of_row(model, row)?, vec![row])
        }
        Target::Vector(vector) => {
            // Rounded to float32; numbers out of its range become infinite and are refused.
            let vector = vector.into_iter().map(|x| x as f32).collect();
            (Formula::of_vector(vector), Vec::new())
        }
        Target::Components(vector) => (Formula::of_vector(vector), Vec::new()),
        Target::Text(text) => {
            let sum =
                sum_of_text(model, &text, Most::OrRefused(MAX_TEXT_WORDS), unknown, &mut added)?;
            skipped = sum.skipped;
            notes.used = Some(sum.used);
            (sum.formula, sum.rows)
        }
        Target::Words(asked) => {
            check_form(method, asked.iter().map(|w| (w.weight, &w.word[..])))?;
            let found = asked.into_iter().map(|WordWithWeight { word, weight }| {
                let row = row_or_added(model, word, unknown, &mut added);
                row.map(|row| WeightedWord { row, weight })
            });
            let weighted;
            (weighted, skipped) = look_up(found, unknown)?;
            let with = WithAdded { rows: model, added: &added };
            let formula = Formula::of_analogy(&with, &weighted, method)?;
            (formula, weighted.into_iter().map(|word| word.row).collect())
        }
    };
    inputs.retain(|&row| !added.has(row));
    notes.skipped = (unknown == Unknown::Skip).then_some(skipped);
    notes.subwords = added.told(extended(model), explain);
    Ok(Resolved { formula, inputs, added, notes })
}

/// A query that is ready to be asked, and what its answer will need.
#[derive(Debug)]
pub struct Prepared {
    /// For the engine.
    pub query: Query,
    /// The parts of each neighbour in the answer.
    pub included: Included,
    /// What the answer says of the words that were asked for.
    pub notes: Notes,
    /// Which of its hits are neighbours, if not all are.
    pub pick: Option<Box<Pick>>,
    /// Its explanation, if it has one, without the ranks of the query's own words.
    pub explanation: Option<Box<Explanation>>,
    /// Asks for these ranks.
    pub ranks: Option<Box<FullPassQuery>>,
}

impl Prepared {
    /// Bytes that are kept for its explanation of words that are no rows.
    pub fn added_bytes(&self) -> usize {
        self.explanation.as_ref().map_or(0, |explanation| explanation.added.bytes())
    }
}

/// Looks up the words of a target and makes its query.
///
/// # Errors
/// Words that the model does not have; a vector or sum of words that points nowhere or is not
/// finite; words that the method does not take.
pub fn prepare(model: &dyn Rows, target: Target, options: &Checked) -> Result<Prepared, Error> {
    let &Checked { method, unknown, explain, .. } = options;
    let Resolved { formula, inputs, added, notes } =
        resolve(model, target, method, unknown, explain)?;
    let with = WithAdded { rows: model, added: &added };
    let pick = options.rule(model, &inputs);
    let pick = pick.map(|rule| Box::new(Pick::new(options.k, options.offset, rule)));
    let k = pick.as_ref().map_or(options.k, |pick| pick.first_k());
    let mut ranks = None;
    if explain && !inputs.is_empty() {
        let (scoring, filter) = (formula.scoring(&with)?, options.filter(Vec::new()));
        let asked = FullPassQuery::new(scoring, 0, filter, each_row_once(&inputs));
        ranks = Some(Box::new(asked));
    }
    let filter = options.filter(inputs);
    let query = match &formula {
        Formula::Vector { vector, .. } => Query::new(&model.table(), vector.clone(), k, filter)?,
        _ => Query::by(formula.scoring(&with)?, k, filter),
    };
    let explanation = explain.then(|| Box::new(Explanation { formula, added, inputs: Vec::new() }));
    let included = options.included.clone();
    Ok(Prepared { query, included, notes, pick, explanation, ranks })
}

/// The rows that meet a filter, whose part in the base is one of these sets, or made.
///
/// # Errors
/// [`Error::InvalidFilter`]; [`Error::NotAnswered`] if the set was not wanted any more.
pub fn meeting<'a>(
    model: &dyn Rows,
    sets: impl Into<SetsWhile<'a>>,
    filter: &str,
) -> Result<Arc<RowBitmap>, Error> {
    Ok(model.meeting(filter, sets.into().of(filter)?)?)
}

/// Number of rows before the row whose number is the limit. One above `u32::MAX` means all rows.
fn rows_before(model: &dyn Rows, limit: u64) -> u32 {
    match u32::try_from(limit) {
        // Nothing is behind the last row: the limit itself stays, as it was given.
        Ok(limit) if model.snapshot().is_none() => limit,
        Ok(limit) => model.row_from(limit).0,
        Err(_) => u32::MAX,
    }
}

/// The row that lives and has this number.
fn row_of_number(model: &dyn Rows, number: u32) -> Result<Row, Error> {
    let row = model.row_from(number);
    if model.is_live(row) && model.number(row) == number {
        return Ok(row);
    }
    // The row behind the last is the first that was never there.
    let expected = match row.index() < model.count() {
        true => format!("a row of the model (and not {number}, which was replaced or deleted)"),
        false => {
            let last =
                model.count().checked_sub(1).map_or(0, |last| model.number(Row(last as u32)));
            format!("a row of the model, 0 to {last} (and not {number})")
        }
    };
    Err(Error::invalid("row", &expected))
}
