//! An answer that a service wrote, as JSON: kept as it is, so that no digit changes.

use std::fmt;
use std::io;

use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;

use super::work::BulkQuestion;

/// The fields of an answer in their order, each as it was written.
#[derive(Debug)]
pub struct JsonAnswer(Vec<(String, Box<RawValue>)>);

impl JsonAnswer {
    /// The field of this name; `None` if there is none, or it has another form.
    pub fn field<T: DeserializeOwned>(&self, name: &str) -> Option<T> {
        let (_, raw) = self.0.iter().find(|(field, _)| field == name)?;
        serde_json::from_str(raw.get()).ok()
    }

    /// Whether it has a field of this name.
    pub fn has(&self, name: &str) -> bool {
        self.0.iter().any(|(field, _)| field == name)
    }

    /// The labels, terms or neighbours, as the columns of CSV; an answer may have fewer columns
    /// than three.
    pub(super) fn table(&self, question: &BulkQuestion) -> io::Result<Vec<[String; 3]>> {
        #[derive(Deserialize)]
        struct Label {
            label: String,
            probability: f64,
            score: f64,
        }
        #[derive(Deserialize)]
        struct Term {
            term: String,
            weight: f64,
        }
        #[derive(Deserialize)]
        struct Near {
            word: String,
            score: f64,
            row: u32,
        }
        let name = question.field();
        let lines = match question {
            BulkQuestion::Classify(..) => self.field(name).map(|all: Vec<Label>| {
                let line = |one: Label| [one.label, number(one.probability), number(one.score)];
                all.into_iter().map(line).collect()
            }),
            BulkQuestion::Expand(..) => self.field(name).map(|all: Vec<Term>| {
                let line = |one: Term| [one.term, number(one.weight), String::new()];
                all.into_iter().map(line).collect()
            }),
            BulkQuestion::Nearest(_)
            | BulkQuestion::NearestOfTexts(_)
            | BulkQuestion::Analogy(_) => self.field(name).map(|all: Vec<Near>| {
                let line = |one: Near| [one.word, number(one.score), one.row.to_string()];
                all.into_iter().map(line).collect()
            }),
        };
        lines.ok_or_else(|| io::Error::other(format!("the answer has no {name} of the usual form")))
    }
}

/// In the shortest form that reads back as the same float64.
pub(super) fn number(number: f64) -> String {
    format!("{number:?}")
}

impl Serialize for JsonAnswer {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for JsonAnswer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;

        impl<'de> Visitor<'de> for Object {
            type Value = JsonAnswer;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<JsonAnswer, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry::<String, Box<RawValue>>()? {
                    fields.push(field);
                }
                Ok(JsonAnswer(fields))
            }
        }

        deserializer.deserialize_map(Object)
    }
}

#[cfg(test)]
mod tests {
    use kindred::Options;

    use super::*;

    #[test]
    fn no_byte_of_an_answer_changes_and_its_columns_have_its_digits() {
        let text = r#"{"neighbors":[{"word":"a\u0301","score":0.30000000000000004,"row":7},{"word":"b,\"","score":1e-7,"row":0}],"used":[]}"#;
        let answer: JsonAnswer = serde_json::from_str(text).unwrap();
        assert_eq!(serde_json::to_string(&answer).unwrap(), text);
        let question = BulkQuestion::NearestOfTexts(Options::new());
        let expected = [["a\u{301}", "0.30000000000000004", "7"], ["b,\"", "1e-7", "0"]];
        assert_eq!(answer.table(&question).unwrap(), expected);
        assert!(answer.has("used") && !answer.has("error"));
        let other = BulkQuestion::Analogy(Options::new());
        for strange in [r#"{}"#, r#"{"neighbors":3}"#, r#"{"neighbors":[{"word":"a"}]}"#] {
            let answer: JsonAnswer = serde_json::from_str(strange).unwrap();
            assert!(answer.table(&other).is_err(), "{strange}");
        }
    }
}
