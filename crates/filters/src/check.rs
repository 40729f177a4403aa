//! Looks the attributes and values of a filter up in the attributes of a model.

use contract::Row;
use model_store::attributes::{
    AttributeType, Attributes, Bins, Classes, Dictionary, Indexed, KEY, Postings, parse_date_time,
};
use model_store::{ModelStore, cut};

use super::ast::{self, Condition, Expression, Operator, Place, Written};
use super::error::{FilterError, FilterFault};
use super::number::Number;
use super::plan::{Binned, Node, Plan, Test};
use super::wanted::{Codes, Wanted};

/// Names are alike from this on, by strsim's measure, where 1 is equal: as clap has it for flags.
const ALIKE: f64 = 0.7;

/// Up to this many texts are looked up by their rows, in each block of a plan.
const MAX_LISTED: usize = 512;

/// A row of a text takes as long as the bins of so many rows.
const FEW_ROWS: usize = 16;

/// A type of attributes, in the words of errors.
struct Kind {
    name: &'static str,
    /// The operators that it takes.
    takes: &'static str,
    /// The values that it is compared with.
    values: &'static str,
}

const ORDERED: &str = "`=`, `!=`, `<`, `<=`, `>`, `>=`, `TO`, `IN` and `EXISTS`";
const OF_TEXTS: &str = "`=`, `!=`, `IN`, `STARTS WITH` and `EXISTS`";

const INTEGER: Kind = Kind { name: "an integer", takes: ORDERED, values: "a number" };
const NUMBER: Kind = Kind { name: "a number", takes: ORDERED, values: "a number" };
const DATE_TIME: Kind = Kind {
    name: "a date-time",
    takes: ORDERED,
    values: "a date-time as in RFC 3339, such as 2026-05-01T12:00:00Z",
};
const BOOLEAN: Kind =
    Kind { name: "a boolean", takes: "`=`, `!=`, `IN` and `EXISTS`", values: "`true` or `false`" };
const TEXT: Kind = Kind { name: "a text", takes: OF_TEXTS, values: "a text" };
const STORED: Kind = Kind {
    name: "a stored text, which is for display",
    takes: "`EXISTS` alone; `kindred prepare --type NAME=text` makes one that filters compare",
    values: "nothing",
};
const LIST: Kind = Kind { name: "a list of texts", takes: OF_TEXTS, values: "a text" };
const KEYS: Kind = Kind { name: "a row's word", takes: "`=`, `!=` and `IN`", values: "a word" };

/// Looks up what a filter names.
///
/// # Errors
/// The first attribute that the model does not have, or that is compared with something else than
/// its values.
pub fn check<'a>(filter: &Expression, model: &'a ModelStore) -> Result<Plan<'a>, FilterError> {
    Ok(Plan::new(model.rows(), node(filter, model)?))
}

fn node<'a>(filter: &Expression, model: &'a ModelStore) -> Result<Node<'a>, FilterError> {
    Ok(match filter {
        Expression::Test(test) => of_test(test, model)?,
        Expression::Not(inner) => Node::Not(Box::new(node(inner, model)?)),
        Expression::And(parts) => Node::All(nodes(parts, model)?),
        Expression::Or(parts) => Node::Any(nodes(parts, model)?),
    })
}

/// Those of all parts, or the first error in the order in which they were written.
fn nodes<'a>(parts: &[Expression], model: &'a ModelStore) -> Result<Vec<Node<'a>>, FilterError> {
    let (mut nodes, mut first) = (Vec::with_capacity(parts.len()), None::<FilterError>);
    for part in parts {
        match node(part, model) {
            Ok(node) => nodes.push(node),
            Err(error) if first.as_ref().is_none_or(|first| error.column < first.column) => {
                first = Some(error);
            }
            Err(_) => {}
        }
    }
    match first {
        None => Ok(nodes),
        Some(error) => Err(error),
    }
}

fn of_test<'a>(test: &ast::Test, model: &'a ModelStore) -> Result<Node<'a>, FilterError> {
    let asked = |kind| Asked { test, kind };
    if test.name.text == KEY {
        let rows = asked(&KEYS).rows(model)?;
        return Ok(Node::Test { test: Test::Rows(rows), missing: None });
    }
    let Some(column) = model.attributes().and_then(|all| all.column(&test.name.text)) else {
        return Err(unknown(&test.name, model));
    };
    let missing = column.missing_bits();
    if test.condition == Condition::Exists {
        return Ok(Node::Test { test: Test::Exists, missing });
    }
    let with_bins = |values, bins: &'a Bins<i64>, wanted: Wanted<i64>| {
        let classes = bins.classes(|least, most| wanted.class(least, most));
        Test::Integers(Binned { bins: bins.of_rows(), classes, values, wanted })
    };
    let test = match column.indexed() {
        Indexed::Integers(values, bins) => with_bins(values, bins, integers(test)?),
        Indexed::Numbers(values, bins) => {
            let wanted = numbers(test)?;
            let classes = bins.classes(|least, most| wanted.class(least, most));
            Test::Numbers(Binned { bins: bins.of_rows(), classes, values, wanted })
        }
        Indexed::DateTimes(values, bins) => with_bins(values, bins, date_times(test)?),
        Indexed::Booleans(values) => Test::Booleans(values, Classes::of_booleans(booleans(test)?)),
        Indexed::Texts { codes: values, bins, postings, dictionary } => {
            let wanted = asked(&TEXT).codes(dictionary)?;
            if let Some(listed) = postings.and_then(|all| listed(&wanted, all))
                && listed.iter().map(|rows| rows.len()).sum::<usize>() < values.len() / FEW_ROWS
            {
                return Ok(Node::Test { test: Test::Listed(listed), missing });
            }
            let classes = bins.classes(|least, most| wanted.class(least, most));
            Test::Texts(Binned { bins: bins.of_rows(), classes, values, wanted })
        }
        Indexed::Lists { starts, codes, postings, dictionary } => {
            let wanted = asked(&LIST).codes(dictionary)?;
            match listed(&wanted, postings) {
                Some(listed) => Test::Listed(listed),
                None => Test::Lists { starts, codes, wanted },
            }
        }
        Indexed::Stored => return Err(stored(test)),
    };
    Ok(Node::Test { test, missing })
}

/// The error of a test of stored texts.
pub(super) fn stored(test: &ast::Test) -> FilterError {
    Asked { test, kind: &STORED }.operator()
}

/// The integers that a test wants.
pub(super) fn integers(test: &ast::Test) -> Result<Wanted<i64>, FilterError> {
    let range = |text: &str, operator| Some(Number::read(text)?.integers(operator));
    Asked { test, kind: &INTEGER }.ordered(range, |value| value as u64)
}

/// The numbers that a test wants.
pub(super) fn numbers(test: &ast::Test) -> Result<Wanted<f64>, FilterError> {
    let range = |text: &str, operator| Some(Number::read(text)?.numbers(operator));
    // Columns have no −0.
    Asked { test, kind: &NUMBER }.ordered(range, |value: f64| (value + 0.0).to_bits())
}

/// The date-times that a test wants, in microseconds.
pub(super) fn date_times(test: &ast::Test) -> Result<Wanted<i64>, FilterError> {
    let range = |text: &str, operator| {
        let micros = parse_date_time(text)?;
        Some(Number::Whole(micros.into()).integers(operator))
    };
    Asked { test, kind: &DATE_TIME }.ordered(range, |value| value as u64)
}

/// Whether a test wants false and true.
pub(super) fn booleans(test: &ast::Test) -> Result<[bool; 2], FilterError> {
    Asked { test, kind: &BOOLEAN }.booleans()
}

/// The texts that a test wants, of a text or of a list of them, if it does not want a prefix.
pub(super) fn texts(test: &ast::Test, kind: AttributeType) -> Result<&[Written], FilterError> {
    let kind = if kind == AttributeType::List { &LIST } else { &TEXT };
    Asked { test, kind }.equals()
}

/// The words that a test wants.
pub(super) fn keys(test: &ast::Test) -> Result<&[Written], FilterError> {
    Asked { test, kind: &KEYS }.equals()
}

/// The rows of each text that is wanted, if these are few.
fn listed<'a>(wanted: &Codes, postings: &'a Postings) -> Option<Vec<&'a [Row]>> {
    Some(wanted.up_to(MAX_LISTED)?.into_iter().map(|code| postings.of(code)).collect())
}

/// The error of an attribute that the model does not have.
pub(super) fn unknown(name: &Written, model: &ModelStore) -> FilterError {
    let columns = model.attributes().map(Attributes::columns).unwrap_or_default();
    let mut known: Vec<String> = columns.iter().map(|column| column.name().to_owned()).collect();
    known.sort();
    let alike = alike(&name.text, known.iter().map(String::as_str).chain([KEY]));
    let alike = alike.map(str::to_owned);
    let fault = FilterFault::UnknownAttribute { name: cut(name.text.clone()), alike, known };
    FilterError { column: name.place.0, fault }
}

/// The one of these names that is most like another, if one is like it.
pub fn alike<'a>(name: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = name.to_lowercase();
    names
        .map(|other| (other, strsim::jaro(&wanted, &other.to_lowercase())))
        .filter(|(_, likeness)| *likeness > ALIKE)
        .max_by(|(_, a), (_, b)| a.total_cmp(b))
        .map(|(other, _)| other)
}

/// A test of an attribute of this type.
#[derive(Clone, Copy)]
struct Asked<'t> {
    test: &'t ast::Test,
    kind: &'t Kind,
}

impl<'t> Asked<'t> {
    /// The error of an operator that values of the type do not have.
    fn operator(self) -> FilterError {
        let found = match &self.test.condition {
            Condition::Exists => "`EXISTS`",
            Condition::Compare(Operator::Equal, _) => "`=`",
            Condition::Compare(Operator::Less, _) => "`<`",
            Condition::Compare(Operator::LessOrEqual, _) => "`<=`",
            Condition::Compare(Operator::Greater, _) => "`>`",
            Condition::Compare(Operator::GreaterOrEqual, _) => "`>=`",
            Condition::Range(..) => "`TO`",
            Condition::In(_) => "`IN`",
            Condition::StartsWith(_) => "`STARTS WITH`",
        };
        let Kind { name: kind, takes, .. } = *self.kind;
        let name = cut(self.test.name.text.clone());
        let Place(column) = self.test.place;
        FilterError { column, fault: FilterFault::Operator { name, kind, takes, found } }
    }

    /// What a value was read as, or the error if it is none of the type.
    fn read<T>(self, value: &Written, read: Option<T>) -> Result<T, FilterError> {
        read.ok_or_else(|| {
            let Kind { name: kind, values: expected, .. } = *self.kind;
            let (name, found) = (cut(self.test.name.text.clone()), cut(value.text.clone()));
            let fault = FilterFault::Value { name, kind, expected, found };
            FilterError { column: value.place.0, fault }
        })
    }

    /// The values that are wanted of a type that has an order. `range` says for which values an
    /// operator holds: from one to another. `bits` are the same of equal values.
    fn ordered<T: Copy + PartialOrd>(
        self,
        range: impl Fn(&str, Operator) -> Option<(T, T)>,
        bits: impl Fn(T) -> u64,
    ) -> Result<Wanted<T>, FilterError> {
        let range = |value: &Written, operator| self.read(value, range(&value.text, operator));
        match &self.test.condition {
            Condition::Compare(operator, value) => {
                let (from, to) = range(value, *operator)?;
                Ok(Wanted::Range(from, to))
            }
            Condition::Range(from, to) => {
                let (from, most) = range(from, Operator::GreaterOrEqual)?;
                let (least, to) = range(to, Operator::LessOrEqual)?;
                // The ends of a range that has nothing mean nothing.
                Ok(match (from <= most, least <= to) {
                    (true, true) => Wanted::Range(from, to),
                    (false, _) => Wanted::Range(from, most),
                    (true, false) => Wanted::Range(least, to),
                })
            }
            Condition::In(values) => {
                let mut wanted = Vec::with_capacity(values.len());
                for value in values {
                    let (from, to) = range(value, Operator::Equal)?;
                    if from <= to {
                        wanted.push(from);
                    }
                }
                Ok(Wanted::one_of(wanted, bits))
            }
            Condition::Exists | Condition::StartsWith(_) => Err(self.operator()),
        }
    }

    /// The values of `=` and `IN`, which are all that types without an order have in common.
    fn equals(self) -> Result<&'t [Written], FilterError> {
        match &self.test.condition {
            Condition::Compare(Operator::Equal, value) => Ok(std::slice::from_ref(value)),
            Condition::In(values) => Ok(values),
            _ => Err(self.operator()),
        }
    }

    /// Whether false and true are wanted.
    fn booleans(self) -> Result<[bool; 2], FilterError> {
        let mut wanted = [false; 2];
        for value in self.equals()? {
            let truth = ["false", "true"].iter().position(|t| t.eq_ignore_ascii_case(&value.text));
            wanted[self.read(value, truth)?] = true;
        }
        Ok(wanted)
    }

    /// The codes that are wanted of a dictionary.
    fn codes(self, dictionary: &Dictionary) -> Result<Codes, FilterError> {
        if let Condition::StartsWith(prefix) = &self.test.condition {
            return Ok(Codes::Range(dictionary.starting_with(&prefix.text)));
        }
        let codes = self.equals()?.iter().filter_map(|value| dictionary.code(&value.text));
        Ok(Codes::one_of(codes.collect()))
    }

    /// The rows that are wanted by their words, ascending. Words that the model does not have are
    /// no rows.
    fn rows(self, model: &ModelStore) -> Result<Vec<Row>, FilterError> {
        let rows = self.equals()?.iter().filter_map(|value| model.words().row(&value.text));
        let mut rows: Vec<Row> = rows.collect();
        rows.sort_unstable();
        rows.dedup();
        Ok(rows)
    }
}
