//! The JSON bodies of `/nearest`, `/analogy` and `/rank`: their own fields, and the options that
//! are declared for them ([`kindred::options`]).

use kindred::options::MAX_EXCLUDED;
use kindred::question::MAX_RANKED;
use kindred::{Method, Options, Target, Unknown, with_options};
use serde_json::value::RawValue;

use super::at_most::AtMost;
use super::json::json_body;
use super::limits::MAX_QUERIES;
use super::targets::{RawTarget, WeightedWords};
use super::{list_of_words, not_exactly_one};
use crate::http::ApiError;

/// The queries of one request, each as unparsed JSON.
pub(in crate::http) type Queries<'a> = AtMost<&'a RawValue, MAX_QUERIES>;

/// The parts of a request's body, or of one item of its `queries`.
#[derive(Debug, Clone)]
pub(in crate::http) struct Parts<'a> {
    pub(in crate::http) target: RawTarget,
    pub(in crate::http) queries: Option<Queries<'a>>,
    pub(in crate::http) options: Options,
}

/// How an option is read from JSON.
pub(in crate::http) trait FromJson: Sized {
    type Read;
    fn from_read(read: Self::Read) -> Self;
}

macro_rules! as_it_is {
    ($($type:ty),+) => {
        $(impl FromJson for $type {
            type Read = Self;

            #[inline]
            fn from_read(read: Self) -> Self {
                read
            }
        })+
    };
}

as_it_is!(u64, f64, bool, Unknown, Method);

/// If there are too many words, keeps one too many, so that a later check notices.
impl FromJson for Vec<String> {
    type Read = AtMost<String, MAX_EXCLUDED>;

    fn from_read(read: Self::Read) -> Self {
        read.first()
    }
}

/// Defines a JSON body: its own fields, and the options of its kind of question.
macro_rules! body {
    (
        $(#[$meta:meta])* $name:ident $(<$life:lifetime>)? {
            $($(#[$attribute:meta])* $field:ident: $type:ty),+ $(,)?
        }
        $(also { $($more:tt)* })?
        options { $($option:ident: $option_type:ty { $($about:tt)* })+ }
    ) => {
        json_body! {
            $(#[$meta])*
            $name $(<$life>)? {
                $($(#[$attribute])* $field: $type,)+
                $($option: <$option_type as FromJson>::Read,)+
            }
            $($($more)*)?
        }

        impl$(<$life>)? $name$(<$life>)? {
            fn take_options(&mut self) -> Options {
                let mut options = Options::new();
                $(
                    let read = self.$option.take();
                    options.$option = read.map(<$option_type as FromJson>::from_read);
                )+
                options
            }
        }
    };
}

with_options! { nearest: body! {
    /// The body of `POST /nearest`.
    NearestBody<'a> {
        word: String,
        vector: Vec<f64>,
        text: String,
        #[serde(borrow)]
        queries: Queries<'a>,
    }
} }

with_options! { analogy: body! {
    /// The body of `POST /analogy`.
    AnalogyBody<'a> {
        expression: String,
        positive: WeightedWords,
        negative: WeightedWords,
        #[serde(borrow)]
        queries: Queries<'a>,
    }
    also {
        fn expression(&self) -> Option<&str> {
            self.expression.as_deref()
        }
    }
} }

with_options! { rank: body! {
    /// The body of `POST /rank`: words to rank, and a query as in `/nearest` or `/analogy`.
    RankBody {
        words: AtMost<String, MAX_RANKED>,
        word: String,
        vector: Vec<f64>,
        text: String,
        expression: String,
        positive: WeightedWords,
        negative: WeightedWords,
    }
    also {
        fn expression(&self) -> Option<&str> {
            self.expression.as_deref()
        }
    }
} }

impl<'a> From<NearestBody<'a>> for Parts<'a> {
    fn from(mut body: NearestBody<'a>) -> Self {
        let options = body.take_options();
        let NearestBody { word, vector, text, queries, .. } = body;
        Self { target: RawTarget::Nearest { word, vector, text }, queries, options }
    }
}

impl<'a> From<AnalogyBody<'a>> for Parts<'a> {
    fn from(mut body: AnalogyBody<'a>) -> Self {
        let options = body.take_options();
        let AnalogyBody { expression, positive, negative, queries, .. } = body;
        Self { target: RawTarget::Analogy { expression, positive, negative }, queries, options }
    }
}

impl RankBody {
    /// Checks the form of the body. Returns the words to rank, and the query among whose neighbours
    /// they are ranked.
    pub(in crate::http) fn check(mut self) -> Result<(Vec<String>, Target, Options), ApiError> {
        const ALTERNATIVES: &str =
            "`word`, `vector`, `text`, `expression`, or `positive` and/or `negative`";
        let options = self.take_options();
        let words = list_of_words(self.words, 1, "rank")?;
        let Self { word, vector, text, expression, positive, negative, .. } = self;
        let nearest = RawTarget::Nearest { word, vector, text };
        let analogy = RawTarget::Analogy { expression, positive, negative };
        let target = match (nearest.is_given(), analogy.is_given()) {
            (true, false) if options.method.is_some() => {
                let reason = "`method` goes with `expression`, `positive` and `negative` only";
                return Err(ApiError::invalid_request(reason));
            }
            (true, false) => nearest,
            (false, true) => analogy,
            _ => return Err(not_exactly_one(ALTERNATIVES)),
        };
        Ok((words, target.resolve_among(ALTERNATIVES)?, options))
    }
}
