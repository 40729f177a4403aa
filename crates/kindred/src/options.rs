//! The options of questions, declared once: name, type, bounds, what a value must be, and the
//! command line's flag.
//!
//! From [`with_options!`](crate::with_options) follow [`Options`] and its checks here, in the
//! server the parameters of GET requests and the fields of JSON bodies, the flags of the command
//! line and the console, and what Python's models and clients read. A new option is a new entry;
//! `question::Checked` then does not compile until it is used.
//!
//! One long file: the declaration is read together with the macros that hand it out.

mod value;

use std::str::FromStr;

use model_store::attributes::MAX_ATTRIBUTES;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use value::OptionValue;

/// Most neighbours that one query may ask for.
pub const MAX_K: u64 = 1000;
/// Most neighbours that an answer may leave out; with its own there are at most [`MAX_K`].
pub const MAX_OFFSET: u64 = MAX_K - 1;
/// Neighbours of a query that does not say how many.
pub const DEFAULT_K: u64 = 10;
/// Most words that one query may exclude.
pub const MAX_EXCLUDED: usize = 1000;

/// What becomes of words that the model does not have, where several are given.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", rename_all = "lowercase")]
pub enum Unknown {
    /// They fail the query.
    Error,
    /// They are left out, and the answer says which.
    Skip,
    /// They have the vectors of their subwords, as fastText computes them, and the answer says
    /// which. The default of models that have such vectors.
    Subwords,
}

/// Which attributes of each neighbour an answer has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum WithAttributes {
    /// All that the model has, or none.
    All(bool),
    /// Those of these names.
    Named(Vec<String>),
}

impl FromStr for Unknown {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, &'static str> {
        match text {
            "error" => Ok(Self::Error),
            "skip" => Ok(Self::Skip),
            "subwords" => Ok(Self::Subwords),
            _ => Err(must_be("unknown").unwrap_or_default()),
        }
    }
}

impl TryFrom<String> for Unknown {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, &'static str> {
        text.parse()
    }
}

/// Passes the options to another macro, after its other arguments.
///
/// The columns in brackets say what takes an option: searches for a word, text or vector;
/// analogies; ranks. After `nearest:`, `analogy:` or `rank:` the other macro gets the options of
/// that kind of question alone.
#[doc(hidden)]
#[macro_export]
macro_rules! with_options {
    ($then:ident! { $($rest:tt)* }) => {
        $crate::with_options! { @all [$crate::pass_options] [$then { $($rest)* }] }
    };
    ($kind:ident: $then:ident! { $($rest:tt)* }) => {
        $crate::with_options! { @all [$crate::pick_options] [$kind $then { $($rest)* } {}] }
    };
    // The declaration.
    (@all [$($macro:tt)+] [$($first:tt)*]) => {
        $($macro)+! { $($first)*
            method: $crate::Method [_ analogy rank] {
                values: Values::Name { of: &["3cosadd", "3cosmul", "pairdirection"] },
                must_be: "`3cosadd`, `3cosmul` or `pairdirection`",
                flag: None,
                help: "Analogy method",
            }
            k: u64 [nearest analogy _] {
                values: Values::Whole { from: 1, to: MAX_K },
                must_be: "a whole number from 1 to 1000",
                flag: Some(Flag { long: "k", short: Some('k'), value: "N" }),
                help: "Number of neighbours [default: 10]",
            }
            offset: u64 [nearest analogy _] {
                values: Values::Whole { from: 0, to: MAX_OFFSET },
                must_be: "a whole number from 0 to 999",
                flag: Some(Flag { long: "offset", short: None, value: "N" }),
                help: "Leave out the N best neighbours: those of earlier pages",
            }
            exclude: Vec<String> [nearest analogy rank] {
                values: Values::Words { most: MAX_EXCLUDED },
                must_be: "a list of at most 1000 words",
                flag: Some(Flag { long: "exclude", short: None, value: "WORD" }),
                help: "Exclude a word from the answers; may be repeated. A word that the model \
                       does not have is ignored",
            }
            include_query: bool [nearest analogy rank] {
                values: Values::Switch,
                must_be: "true or false",
                flag: Some(Flag { long: "include-query", short: None, value: "" }),
                help: "Allow the words of the query as answers",
            }
            vocab_limit: u64 [nearest analogy rank] {
                values: Values::Whole { from: 1, to: u64::MAX },
                must_be: "a whole number of at least 1 (the number of rows to search)",
                flag: Some(Flag { long: "vocab-limit", short: None, value: "N" }),
                help: "Search only the first N rows: the most frequent words",
            }
            min_score: f64 [nearest analogy rank] {
                values: Values::Number,
                must_be: "a finite number (cosines are from -1 to 1)",
                flag: Some(Flag { long: "min-score", short: None, value: "SCORE" }),
                help: "Minimum score of a neighbour",
            }
            max_score: f64 [nearest analogy rank] {
                values: Values::Number,
                must_be: "a finite number (cosines are from -1 to 1)",
                flag: Some(Flag { long: "max-score", short: None, value: "SCORE" }),
                help: "Maximum score of a neighbour",
            }
            filter: String [nearest analogy rank] {
                values: Values::Text,
                must_be: "an expression over the model's attributes, such as \
                          `price < 80 AND category = shoes`",
                flag: Some(Flag { long: "filter", short: None, value: "FILTER" }),
                help: "Search only the rows whose attributes meet this, such as 'price < 80'",
            }
            distinct: String [nearest analogy _] {
                values: Values::Text,
                must_be: "an attribute of the model that is no list and not stored",
                flag: Some(Flag { long: "distinct", short: None, value: "ATTRIBUTE" }),
                help: "Return only the best row of each value of an attribute",
            }
            with_vectors: bool [nearest analogy _] {
                values: Values::Switch,
                must_be: "true or false",
                flag: None,
                help: "Include the vector of each neighbour",
            }
            with_text: bool [nearest analogy _] {
                values: Values::Switch,
                must_be: "true or false",
                flag: Some(Flag { long: "with-text", short: None, value: "" }),
                help: "Print the text of each neighbour, of documents that keep theirs",
            }
            with_attributes: $crate::WithAttributes [nearest analogy _] {
                values: Values::Names { most: MAX_ATTRIBUTES },
                must_be: "true, or a list of attributes of the model",
                flag: Some(Flag {
                    long: "with-attributes",
                    short: None,
                    value: "ATTRIBUTE,…",
                }),
                help: "Print attributes of each neighbour: all, or those that are named after =",
            }
            unknown: $crate::Unknown [nearest analogy rank] {
                values: Values::Name { of: &["error", "skip", "subwords"] },
                must_be: "`error`, `skip` or `subwords`",
                flag: None,
                help: "Whether unknown words fail the query (error), are ignored (skip) or have the vectors of their subwords (subwords)",
            }
            fold_case: bool [nearest analogy _] {
                values: Values::Switch,
                must_be: "true or false",
                flag: Some(Flag { long: "fold-case", short: None, value: "" }),
                help: "Treat words that differ only in case as one word",
            }
            explain: bool [nearest analogy _] {
                values: Values::Switch,
                must_be: "true or false",
                flag: Some(Flag { long: "explain", short: None, value: "" }),
                help: "Show what each word contributes to each score",
            }
            timeout_ms: u64 [nearest analogy rank] {
                values: Values::Whole { from: 1, to: u64::MAX },
                must_be: "a whole number of milliseconds, at least 1",
                flag: None,
                help: "Time limit of the answer, in milliseconds",
            }
        }
    };
}

/// Passes all options to the macro that asked for them.
#[doc(hidden)]
#[macro_export]
macro_rules! pass_options {
    ($then:ident { $($rest:tt)* }
     $($name:ident: $type:ty [$nearest:tt $analogy:tt $rank:tt] { $($about:tt)* })+) => {
        $then! { $($rest)* options { $($name: $type { $($about)* })+ } }
    };
}

/// Passes the options of one kind of question to the macro that asked for them.
#[doc(hidden)]
#[macro_export]
macro_rules! pick_options {
    (nearest $then:ident $rest:tt { $($picked:tt)* }
     $name:ident: $type:ty [nearest $($in:tt)*] $about:tt $($more:tt)*) => {
        $crate::pick_options! { nearest $then $rest { $($picked)* $name: $type $about } $($more)* }
    };
    (analogy $then:ident $rest:tt { $($picked:tt)* }
     $name:ident: $type:ty [$a:tt analogy $b:tt] $about:tt $($more:tt)*) => {
        $crate::pick_options! { analogy $then $rest { $($picked)* $name: $type $about } $($more)* }
    };
    (rank $then:ident $rest:tt { $($picked:tt)* }
     $name:ident: $type:ty [$a:tt $b:tt rank] $about:tt $($more:tt)*) => {
        $crate::pick_options! { rank $then $rest { $($picked)* $name: $type $about } $($more)* }
    };
    ($kind:ident $then:ident $rest:tt $picked:tt
     $name:ident: $type:ty [$($in:tt)*] $about:tt $($more:tt)*) => {
        $crate::pick_options! { $kind $then $rest $picked $($more)* }
    };
    ($kind:ident $then:ident { $($rest:tt)* } { $($picked:tt)* }) => {
        $then! { $($rest)* options { $($picked)* } }
    };
}

/// The declaration of an option.
#[derive(Debug, Clone, Copy)]
pub struct Declaration {
    /// As in requests.
    pub name: &'static str,
    /// What values it may have.
    pub values: Values,
    /// The same in words: `k` must be “a whole number from 1 to 1000”.
    pub must_be: &'static str,
    /// How the command line takes it, if it does.
    pub flag: Option<Flag>,
    /// What it does.
    pub help: &'static str,
}

/// What values an option may have.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Values {
    /// A whole number within these bounds, both included.
    Whole {
        /// The smallest.
        from: u64,
        /// The largest.
        to: u64,
    },
    /// A finite number.
    Number,
    /// True or false.
    Switch,
    /// A list of words.
    Words {
        /// How many at most.
        most: usize,
    },
    /// A text.
    Text,
    /// True for all names that there are, false for none, or a list of some of them.
    Names {
        /// How many at most.
        most: usize,
    },
    /// A name.
    Name {
        /// All that there are.
        of: &'static [&'static str],
    },
}

/// An option on the command line.
#[derive(Debug, Clone, Copy)]
pub struct Flag {
    /// Its name, with dashes.
    pub long: &'static str,
    /// A single letter for it.
    pub short: Option<char>,
    /// What its value is called; empty for a switch.
    pub value: &'static str,
}

macro_rules! declare {
    (options { $($name:ident: $type:ty {
        values: $values:expr, must_be: $must_be:literal, flag: $flag:expr, help: $help:literal,
    })+ }) => {
        /// The options of a question, as far as they are given; all have defaults.
        ///
        /// ```
        /// use kindred::Options;
        ///
        /// let options = Options::new().k(3).explain(true);
        /// assert_eq!((options.k, options.min_score), (Some(3), None));
        /// ```
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct Options {
            $(#[doc = concat!($help, ": ", $must_be, ".")] pub $name: Option<$type>,)+
        }

        impl Options {
            $(
                #[doc = concat!($help, ": ", $must_be, ".")]
                #[must_use]
                pub fn $name(self, $name: $type) -> Self {
                    Self { $name: Some($name), ..self }
                }
            )+

            /// These options; those that are not given come from `others`.
            #[must_use]
            pub fn or(self, others: &Self) -> Self {
                Self { $($name: self.$name.or_else(|| others.$name.clone()),)+ }
            }

            /// The first option whose value is out of bounds, and this value in words.
            pub(crate) fn out_of_bounds(&self) -> Option<(&'static Declaration, String)> {
                let mut all = DECLARATIONS.iter();
                $(
                    let declared = all.next()?;
                    let is_wrong = |value: &&$type| !value.is_one_of(&declared.values);
                    if let Some(wrong) = self.$name.as_ref().filter(is_wrong) {
                        return Some((declared, wrong.in_words()));
                    }
                )+
                None
            }

            /// The options that are given, as the fields of a request's JSON body.
            pub fn to_json(&self) -> Value {
                let mut fields = serde_json::Map::new();
                $(
                    if let Some(value) = &self.$name {
                        fields.insert(stringify!($name).to_owned(), value.to_json());
                    }
                )+
                fields.into()
            }
        }

        /// All options, in their order.
        pub const DECLARATIONS: &[Declaration] = &[$(Declaration {
            name: stringify!($name),
            values: $values,
            must_be: $must_be,
            flag: $flag,
            help: $help,
        },)+];
    };
}

with_options! { declare! {} }

impl Options {
    /// No options given.
    pub fn new() -> Self {
        Self::default()
    }

    /// The first of those that are given and that answers in arrays do not have: they change the
    /// form of an answer, or may need several rounds.
    pub fn not_for_arrays(&self) -> Option<&'static str> {
        let with_attributes =
            self.with_attributes.as_ref().map(|wanted| *wanted != WithAttributes::All(false));
        let distinct = self.distinct.as_ref().map(|_| true);
        let forms = [
            ("with_vectors", self.with_vectors),
            ("with_text", self.with_text),
            ("with_attributes", with_attributes),
            ("fold_case", self.fold_case),
            ("distinct", distinct),
            ("explain", self.explain),
        ];
        forms.into_iter().find(|(_, given)| *given == Some(true)).map(|(option, _)| option)
    }

    /// Excludes these words from the answer, besides those excluded already.
    #[must_use]
    pub fn excluding<W: Into<String>>(mut self, words: impl IntoIterator<Item = W>) -> Self {
        self.exclude.get_or_insert_default().extend(words.into_iter().map(Into::into));
        self
    }
}

/// What a value of an option must be, in words.
pub fn must_be(option: &str) -> Option<&'static str> {
    DECLARATIONS.iter().find(|declared| declared.name == option).map(|declared| declared.must_be)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::method::Method;

    #[test]
    fn what_is_out_of_bounds_is_named() {
        let name = |options: Options| options.out_of_bounds().map(|(declared, _)| declared.name);
        let right = Options::new().k(1000).vocab_limit(u64::MAX).min_score(-7.5).timeout_ms(1);
        assert_eq!(name(right), None);
        for (options, expected) in [
            (Options::new().k(0), "k"),
            (Options::new().k(1001).min_score(f64::NAN), "k"),
            (Options::new().offset(1000), "offset"),
            (Options::new().min_score(f64::NEG_INFINITY), "min_score"),
            (Options::new().vocab_limit(0), "vocab_limit"),
            (Options::new().excluding(vec!["a"; MAX_EXCLUDED + 1]), "exclude"),
            (Options::new().timeout_ms(0), "timeout_ms"),
        ] {
            assert_eq!(name(options), Some(expected));
        }
    }

    #[test]
    fn what_is_out_of_bounds_is_told() {
        let found = |options: Options| options.out_of_bounds().map(|(_, found)| found);
        for (options, expected) in [
            (Options::new().k(1001), "1001"),
            (Options::new().min_score(f64::NAN), "NaN"),
            (Options::new().max_score(f64::INFINITY), "inf"),
            (Options::new().excluding(vec!["a"; MAX_EXCLUDED + 1]), "1001"),
        ] {
            assert_eq!(found(options).as_deref(), Some(expected));
        }
        assert_eq!(found(Options::new().k(1000)), None);
    }

    #[test]
    fn flags_are_called_as_their_options() {
        for declared in DECLARATIONS {
            let long =
                declared.flag.map_or(declared.name.replace('_', "-"), |flag| flag.long.into());
            assert_eq!(long, declared.name.replace('_', "-"));
        }
    }

    #[test]
    fn the_declared_names_are_those_that_are_read() {
        let of = |option: &str| {
            let declared = DECLARATIONS.iter().find(|declared| declared.name == option).unwrap();
            match declared.values {
                Values::Name { of } => of,
                _ => panic!("{declared:?}"),
            }
        };
        assert_eq!(of("method"), Method::ALL.map(Method::short_name));
        assert_eq!(of("unknown"), ["error", "skip", "subwords"]);
        assert!(of("unknown").iter().all(|name| name.parse::<Unknown>().is_ok()));
    }

    #[test]
    fn only_what_is_given_is_written_and_overrides_what_others_say() {
        let common = Options::new().k(3).unknown(Unknown::Skip);
        let own = Options::new().k(5).method(Method::ThreeCosMul).excluding(["a"]);
        let expected = json!({"k": 5, "method": "3cosmul", "exclude": ["a"], "unknown": "skip"});
        assert_eq!(own.or(&common).to_json(), expected);
    }
}
