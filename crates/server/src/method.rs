//! The methods of analogies, as the command line, requests and results name them.

use std::str::FromStr;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

/// How an analogy is answered; see the contract (`contract`) for the formulas.
///
/// It is read by the name that the command line and requests have for it, and written by its usual name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(try_from = "String")]
pub enum Method {
    /// The word nearest to b − a + c
    #[value(name = "3cosadd")]
    #[serde(rename = "3CosAdd")]
    ThreeCosAdd,
    /// Similarity to b times similarity to c, divided by similarity to a
    #[value(name = "3cosmul")]
    #[serde(rename = "3CosMul")]
    ThreeCosMul,
    /// The step from c most parallel to the step from a to b
    #[value(name = "pairdirection")]
    #[serde(rename = "PairDirection")]
    PairDirection,
}

impl Method {
    /// All, in the order of tables.
    pub const ALL: [Self; 3] = [Self::ThreeCosAdd, Self::ThreeCosMul, Self::PairDirection];

    /// Its usual name.
    pub fn name(self) -> &'static str {
        match self {
            Self::ThreeCosAdd => "3CosAdd",
            Self::ThreeCosMul => "3CosMul",
            Self::PairDirection => "PairDirection",
        }
    }

    /// Its name on the command line and in requests.
    pub fn short_name(self) -> String {
        let value = self.to_possible_value().expect("no method is hidden");
        value.get_name().to_owned()
    }
}

impl FromStr for Method {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        <Self as ValueEnum>::from_str(name, false)
    }
}

impl TryFrom<String> for Method {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}
