//! Why a filter can't be used, and where.

/// Names of attributes that an error lists at most.
const MAX_NAMES: usize = 10;

/// Characters of a filter that are shown before and behind a fault.
const SHOWN: (usize, usize) = (50, 25);

/// Why a filter can't be used, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the filter has a fault at column {column}: {fault}")]
pub struct FilterError {
    /// Character of the filter, from 1.
    pub column: usize,
    /// What is wrong there.
    pub fault: FilterFault,
}

/// Why there is no set of a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SetError {
    /// The filter can't be used.
    #[error(transparent)]
    Invalid(#[from] FilterError),
    /// Its caller did not want it any more before it was made.
    #[error("the set of the filter was not made in time")]
    Unwanted,
}

/// What is wrong with a filter.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FilterFault {
    /// It can't be read.
    #[error("expected {expected}{}", in_parentheses(*hint))]
    Syntax {
        /// What should stand there.
        expected: &'static str,
        /// What the writer may have meant.
        hint: Option<&'static str>,
    },
    /// It has more of something than it may.
    #[error("{limit} {of} are the maximum")]
    TooMany {
        /// Of what.
        of: &'static str,
        /// At most so many.
        limit: usize,
    },
    /// The model has no such attribute.
    #[error("the model has no attribute `{name}`{}", others(alike.as_deref(), known))]
    UnknownAttribute {
        /// The name that was written.
        name: String,
        /// The name that is most like it.
        alike: Option<String>,
        /// The names of all attributes.
        known: Vec<String>,
    },
    /// Values of this type are not compared so.
    #[error("`{name}` is {kind}, which takes {takes}, and not {found}")]
    Operator {
        /// The attribute.
        name: String,
        /// Its type.
        kind: &'static str,
        /// The operators that it takes.
        takes: &'static str,
        /// What was written.
        found: &'static str,
    },
    /// The attribute has no such values.
    #[error("`{name}` is {kind}, so it is compared with {expected}, and not with `{found}`")]
    Value {
        /// The attribute.
        name: String,
        /// Its type.
        kind: &'static str,
        /// What would be right.
        expected: &'static str,
        /// What was written.
        found: String,
    },
}

impl FilterFault {
    /// What should stand there, if there is a short answer.
    pub fn expected(&self) -> Option<&str> {
        match self {
            Self::Syntax { expected, .. } | Self::Value { expected, .. } => Some(expected),
            Self::Operator { takes, .. } => Some(takes),
            Self::UnknownAttribute { .. } | Self::TooMany { .. } => None,
        }
    }

    /// The names that would be right in the place of an unknown one.
    pub fn known(&self) -> &[String] {
        match self {
            Self::UnknownAttribute { known, .. } => known,
            _ => &[],
        }
    }
}

fn in_parentheses(hint: Option<&str>) -> String {
    hint.map(|hint| format!(" ({hint})")).unwrap_or_default()
}

/// The attributes that a model has, in words.
fn others(alike: Option<&str>, known: &[String]) -> String {
    let names: Vec<String> = known.iter().take(MAX_NAMES).map(|name| format!("`{name}`")).collect();
    let known = match known.len() {
        0 => "none but `key`, which is a row's word".to_owned(),
        all if all > MAX_NAMES => format!("{} and {} more", names.join(", "), all - MAX_NAMES),
        _ => names.join(", "),
    };
    match alike {
        Some(alike) => format!("; did you mean `{alike}`? It has {known}"),
        None => format!("; it has {known}"),
    }
}

impl FilterError {
    pub(super) fn expected(column: usize, expected: &'static str) -> Self {
        Self { column, fault: FilterFault::Syntax { expected, hint: None } }
    }

    pub(super) fn hinting(mut self, text: &'static str) -> Self {
        if let FilterFault::Syntax { hint, .. } = &mut self.fault {
            *hint = Some(text);
        }
        self
    }

    pub(super) fn too_many(column: usize, of: &'static str, limit: usize) -> Self {
        Self { column, fault: FilterFault::TooMany { of, limit } }
    }

    /// The part of the filter around the fault, and below it a caret that points at it: two lines
    /// for a terminal.
    ///
    /// ```
    /// use filters::parse;
    ///
    /// let filter = "price < 80 && category = shoes";
    /// let error = parse(filter).unwrap_err();
    /// assert_eq!(error.caret(filter), "price < 80 && category = shoes\n           ^");
    /// ```
    pub fn caret(&self, filter: &str) -> String {
        let (before, behind) = SHOWN;
        let at = self.column.saturating_sub(1);
        let start = at.saturating_sub(before);
        let plain = |c: char| if c.is_whitespace() || c.is_control() { ' ' } else { c };
        let mut rest = filter.chars().skip(start).map(plain);
        let shown: String = rest.by_ref().take(at - start + behind).collect();
        let [left, right] =
            [start > 0, rest.next().is_some()].map(|cut| if cut { "…" } else { "" });
        let indent = " ".repeat(at - start + left.chars().count());
        format!("{left}{shown}{right}\n{indent}^")
    }
}
