//! A filter as it was understood, in one form for all ways to write it.

use std::cmp::Ordering;
use std::fmt;

use model_store::attributes::KEYWORDS;

/// A condition that rows meet or not.
///
/// It has one form for all filters that say the same in another order: conjunctions are flat, and
/// their parts sorted and distinct; so are the values of `IN`. A double negation is none. Filters
/// are equal if they have the same form, wherever their parts were written. `Display` writes it.
///
/// ```
/// use filters::parse;
///
/// let one = parse("price < 80 and category = 'big shoes'")?;
/// let other = parse("category IN [\"big shoes\"] AND NOT (NOT price<80)")?;
/// assert_eq!(one, other);
/// assert_eq!(one.to_string(), "category = \"big shoes\" AND price < 80");
/// # Ok::<(), filters::FilterError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Expression {
    /// Something about one attribute.
    Test(Test),
    /// Rows that do not meet this one.
    Not(Box<Expression>),
    /// Rows that meet all of these, at least two.
    And(Vec<Expression>),
    /// Rows that meet one of these, at least two.
    Or(Vec<Expression>),
}

/// Something about one attribute. A row whose value is missing does not meet it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Test {
    /// The attribute's name, or `key`.
    pub name: Written,
    /// What is said of its value.
    pub condition: Condition,
    /// Where the condition begins.
    pub place: Place,
}

/// What is said of a value.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// It is there.
    Exists,
    /// A comparison.
    Compare(Operator, Written),
    /// From one value to another, both included.
    Range(Written, Written),
    /// It is one of these: none, or at least two.
    In(Vec<Written>),
    /// It begins with this.
    StartsWith(Written),
}

/// An operator that compares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Operator {
    /// `=`
    Equal,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// A name or a value, without quotes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// As it was written.
    pub text: String,
    /// Where it begins.
    pub place: Place,
}

/// A character of a filter, from 1. All are equal, so that filters are compared by their form.
#[derive(Debug, Clone, Copy)]
pub struct Place(pub usize);

impl PartialEq for Place {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for Place {}

impl Ord for Place {
    fn cmp(&self, _: &Self) -> Ordering {
        Ordering::Equal
    }
}

impl PartialOrd for Place {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Expression {
    /// Rows that meet all of these, at least one.
    pub(super) fn all(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::And(parts) => parts,
            part => vec![part],
        });
        Self::joined(flat.collect(), Self::And)
    }

    /// Rows that meet one of these, at least one.
    pub(super) fn any(parts: Vec<Self>) -> Self {
        let flat = parts.into_iter().flat_map(|part| match part {
            Self::Or(parts) => parts,
            part => vec![part],
        });
        Self::joined(flat.collect(), Self::Or)
    }

    fn joined(mut parts: Vec<Self>, join: impl Fn(Vec<Self>) -> Self) -> Self {
        parts.sort();
        parts.dedup();
        match parts.len() {
            1 => parts.remove(0),
            _ => join(parts),
        }
    }

    /// Rows that do not meet this.
    pub(super) fn negated(self) -> Self {
        match self {
            Self::Not(inner) => *inner,
            other => Self::Not(Box::new(other)),
        }
    }

    /// The number of tests, each of which looks at one value of every row.
    pub fn tests(&self) -> usize {
        match self {
            Self::Test(_) => 1,
            Self::Not(inner) => inner.tests(),
            Self::And(parts) | Self::Or(parts) => parts.iter().map(Self::tests).sum(),
        }
    }
}

impl Condition {
    /// The value is one of these.
    pub(super) fn one_of(mut values: Vec<Written>) -> Self {
        values.sort();
        values.dedup();
        match values.len() {
            1 => Self::Compare(Operator::Equal, values.remove(0)),
            _ => Self::In(values),
        }
    }
}

impl Operator {
    /// As it is written.
    pub fn sign(self) -> &'static str {
        match self {
            Self::Equal => "=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
        }
    }
}

/// Whether a character may be in a word without quotes.
pub(super) fn is_bare(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !"()[],=<>!\"'".contains(c)
}

/// The keyword that this word is, in capitals. A value needs quotes to be one.
pub(super) fn keyword(word: &str) -> Option<&'static str> {
    KEYWORDS.into_iter().find(|keyword| keyword.eq_ignore_ascii_case(word))
}

impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Test(test) => test.write(f, false),
            Self::Not(inner) => match &**inner {
                Self::Test(test) => test.write(f, true),
                inner => write!(f, "NOT ({inner})"),
            },
            Self::And(parts) => write_joined(f, parts, " AND ", |part| matches!(part, Self::Or(_))),
            Self::Or(parts) => write_joined(f, parts, " OR ", |_| false),
        }
    }
}

fn write_joined(
    f: &mut fmt::Formatter<'_>,
    parts: &[Expression],
    between: &str,
    needs_parentheses: impl Fn(&Expression) -> bool,
) -> fmt::Result {
    for (index, part) in parts.iter().enumerate() {
        if index > 0 {
            f.write_str(between)?;
        }
        match needs_parentheses(part) {
            true => write!(f, "({part})")?,
            false => write!(f, "{part}")?,
        }
    }
    Ok(())
}

impl Test {
    /// Writes the test, or what does not meet it.
    fn write(&self, f: &mut fmt::Formatter<'_>, negated: bool) -> fmt::Result {
        let Self { name, condition, place: _ } = self;
        let not = if negated { "NOT " } else { "" };
        match condition {
            Condition::Exists => write!(f, "{name} {not}EXISTS"),
            Condition::Compare(Operator::Equal, value) if negated => write!(f, "{name} != {value}"),
            Condition::Compare(operator, value) => {
                write!(f, "{not}{name} {} {value}", operator.sign())
            }
            Condition::Range(from, to) => write!(f, "{not}{name} {from} TO {to}"),
            Condition::In(values) => {
                write!(f, "{name} {not}IN [")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if index > 0 { ", " } else { "" })?;
                }
                f.write_str("]")
            }
            Condition::StartsWith(prefix) => write!(f, "{name} {not}STARTS WITH {prefix}"),
        }
    }
}

/// As it stands in a filter: in quotes if it must.
impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { text, .. } = self;
        if !text.is_empty() && text.chars().all(is_bare) && keyword(text).is_none() {
            return f.write_str(text);
        }
        write!(f, "\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
    }
}
