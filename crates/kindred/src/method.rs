//! The methods of analogies, as the command line, requests and results name them.

use std::fmt;
use std::str::FromStr;

use contract::Metric;
use serde::{Deserialize, Serialize};

/// How an analogy is answered; see the contract (`contract`) for the formulas.
///
/// It is read by the name that the command line and requests have for it, and written by its usual
/// name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub enum Method {
    /// The word nearest to b − a + c
    #[serde(rename = "3CosAdd")]
    ThreeCosAdd,
    /// Similarity to b times similarity to c, divided by similarity to a
    #[serde(rename = "3CosMul")]
    ThreeCosMul,
    /// The step from c most parallel to the step from a to b
    #[serde(rename = "PairDirection")]
    PairDirection,
}

impl Method {
    /// All, in the order of tables.
    pub const ALL: [Self; 3] = [Self::ThreeCosAdd, Self::ThreeCosMul, Self::PairDirection];

    /// Those that have a meaning under a metric.
    pub fn under(metric: Metric) -> &'static [Self] {
        match metric {
            Metric::Cosine => &Self::ALL,
            Metric::Dot => &Self::ALL[..1],
        }
    }

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThreeCosAdd => "3CosAdd",
            Self::ThreeCosMul => "3CosMul",
            Self::PairDirection => "PairDirection",
        }
    }

    /// Its name on the command line and in requests.
    pub fn short_name(self) -> &'static str {
        match self {
            Self::ThreeCosAdd => "3cosadd",
            Self::ThreeCosMul => "3cosmul",
            Self::PairDirection => "pairdirection",
        }
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|method| method.short_name() == name);
        found.ok_or_else(|| format!("`{name}` is none of 3cosadd, 3cosmul and pairdirection"))
    }
}

impl fmt::Display for Method {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.short_name())
    }
}

impl TryFrom<String> for Method {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}
