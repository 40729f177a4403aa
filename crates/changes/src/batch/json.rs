//! Rows as objects of JSON: `{"key": "frog", "vector": [0.5, 1], "attributes": {"year": 2026}}`,
//! under the dot product also with a `bias`; with a `text` instead of the vector, if somebody makes
//! one of it.

use std::borrow::Cow;

use model_store::attributes::{AttributeType, Value};
use model_store::prepare::json_fields;
use serde::Serialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json};

use super::{BatchBuilder, RowTexts, Upsert};
use crate::schema::Schema;

/// The fields of a row.
const FIELDS: &str = "a row has `key`, `vector` or `text`, `attributes` and, under the dot product, \
                      `bias`";

/// A row that was read from JSON.
#[derive(Debug, Default, PartialEq)]
struct JsonRow {
    key: Option<String>,
    vector: Option<Vec<f32>>,
    text: Option<String>,
    bias: Option<f32>,
    attributes: Vec<(String, Value<'static>)>,
}

impl BatchBuilder<'_> {
    /// Adds a row that is an object of JSON. A component is the float32 that is nearest to the
    /// float64 that is nearest to the number. An attribute takes the values that it takes in JSON
    /// lines of `kindred prepare`.
    pub fn upsert_json(&mut self, json: &str) {
        self.upsert_either(json, None);
    }

    /// The same of an object without a `vector`, and its vector.
    pub fn upsert_json_with(&mut self, json: &str, vector: &[f32]) {
        self.upsert_either(json, Some(vector));
    }

    fn upsert_either(&mut self, json: &str, beside: Option<&[f32]>) {
        let mut row = JsonRow::default();
        let read = row.read(self.schema, json, beside.is_some());
        if let Err(reason) = read.and_then(|()| row.encode(self.schema, self.texts)) {
            return self.refuse(&row.key.unwrap_or_default(), reason);
        }
        let attributes: Vec<(&str, Value<'_>)> =
            row.attributes.iter().map(|(name, value)| (name.as_str(), value.clone())).collect();
        let (key, vector) = (row.key.as_deref().unwrap_or_default(), row.vector.as_deref());
        let (vector, bias) = (beside.or(vector).unwrap_or_default(), row.bias);
        self.upsert(Upsert { key, vector, bias, attributes: &attributes });
    }
}

impl JsonRow {
    /// Reads as many fields as are good. Its vector may be beside it.
    fn read(&mut self, schema: &Schema, json: &str, is_beside: bool) -> Result<(), String> {
        let fields = json_fields::object(json)?;
        let mut seen: Vec<&str> = Vec::with_capacity(fields.len());
        for (name, _) in &fields {
            if seen.contains(&&**name) {
                return Err(format!("it has the field `{name}` twice"));
            }
            seen.push(name);
        }
        // First, so that other faults are told with it.
        if let Some((_, value)) = fields.iter().find(|(name, _)| name == "key") {
            let key: Result<String, _> = serde_json::from_str(value.get());
            self.key = Some(key.map_err(|_| "its `key` is not a text".to_owned())?);
        }
        for (name, value) in &fields {
            match &**name {
                // The table gives the row.
                "key" | "row" => (),
                "vector" => self.vector = Some(numbers(value)?),
                "text" => {
                    let text: Result<String, _> = serde_json::from_str(value.get());
                    self.text = Some(text.map_err(|_| "its `text` is not a text".to_owned())?);
                }
                "bias" => {
                    let bias: Result<f64, _> = serde_json::from_str(value.get());
                    self.bias = Some(bias.map_err(|_| "its `bias` is not a number")? as f32);
                }
                "attributes" => self.attributes = attributes(schema, value)?,
                _ => return Err(format!("it has the field `{name}`; {FIELDS}")),
            }
        }
        let own = match (&self.vector, &self.text) {
            (Some(_), Some(_)) => return Err(format!("it has a `vector` and a `text`; {FIELDS}")),
            (Some(_), None) => Some("vector"),
            (None, Some(_)) => Some("text"),
            (None, None) => None,
        };
        match (&self.key, own) {
            (None, _) => Err(format!("it has no `key`; {FIELDS}")),
            (_, None) if !is_beside => Err(format!("it has no `vector`; {FIELDS}")),
            (_, Some(own)) if is_beside => {
                Err(format!("it has a `{own}` of its own, beside the vector of the array"))
            }
            _ => Ok(()),
        }
    }

    /// Makes the vector of its text, if it has one. A table that keeps texts keeps this one, unless
    /// the attributes have another.
    fn encode(&mut self, schema: &Schema, texts: Option<&dyn RowTexts>) -> Result<(), String> {
        let Some(text) = &self.text else { return Ok(()) };
        let no_texts = || "it has a `text`, of which nobody makes a vector here; give its `vector`";
        let texts = texts.ok_or_else(no_texts)?;
        self.vector = Some(texts.vector(text).map_err(|reason| format!("its `text`: {reason}"))?);
        let stored = schema.columns.iter().find(|(_, kind)| *kind == AttributeType::Stored);
        if let Some((name, _)) = stored
            && self.attributes.iter().all(|(own, _)| own != name)
        {
            self.attributes.push((name.clone(), Value::Text(text.clone().into())));
        }
        Ok(())
    }
}

fn numbers(json: &RawValue) -> Result<Vec<f32>, String> {
    let numbers: Vec<f64> = serde_json::from_str(json.get())
        .map_err(|_| "its `vector` is not an array of numbers".to_owned())?;
    // Numbers out of range become infinite, and are refused as such.
    Ok(numbers.into_iter().map(|number| number as f32).collect())
}

fn attributes(schema: &Schema, json: &RawValue) -> Result<Vec<(String, Value<'static>)>, String> {
    let fields = json_fields::object(json.get())
        .map_err(|_| "its `attributes` are not an object, such as {\"price\": 1.5}".to_owned())?;
    let mut all = Vec::with_capacity(fields.len());
    for (name, value) in &fields {
        let known = schema.columns.iter().find(|(known, _)| *known == **name);
        // The batch tells of those that the table does not have.
        let kind = known.map_or(AttributeType::Text, |(_, kind)| *kind);
        let value = json_fields::value(value.get(), kind);
        let value = value.map_err(|reason| format!("its attribute `{name}` {reason}"));
        match value {
            Ok(Some(value)) => all.push((name.to_string(), value)),
            Ok(None) if known.is_some() => (),
            Ok(None) => all.push((name.to_string(), Value::Boolean(false))),
            Err(_) if known.is_none() => all.push((name.to_string(), Value::Boolean(false))),
            Err(reason) => return Err(reason),
        }
    }
    Ok(all)
}

/// A row as an object of JSON, as [`BatchBuilder::upsert_json`] reads it. Attributes that are
/// missing are left out.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RowJson<'a> {
    /// Its number, if it is told. It is not read: the table gives another.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub row: Option<u32>,
    /// Its key.
    pub key: &'a str,
    /// Its components, if they are told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vector: Option<&'a [f32]>,
    /// Its bias, under the dot product.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bias: Option<f32>,
    /// Its attributes.
    #[serde(skip_serializing_if = "Map::is_empty")]
    pub attributes: Map<String, Json>,
}

impl<'a> RowJson<'a> {
    /// A row with these attributes, in the order of the columns.
    pub fn new<'v>(
        key: &'a str,
        vector: &'a [f32],
        bias: Option<f32>,
        attributes: impl Iterator<Item = (&'v str, Option<Cow<'v, Value<'v>>>)>,
    ) -> Self {
        let attributes = attributes.filter_map(|(name, value)| {
            let value = serde_json::to_value(&*value?).expect("values become JSON");
            Some((name.to_owned(), value))
        });
        Self { row: None, key, vector: Some(vector), bias, attributes: attributes.collect() }
    }
}

#[cfg(test)]
mod tests {
    use contract::Metric;

    use super::*;

    fn schema() -> Schema {
        let columns = AttributeType::ALL.map(|kind| (kind.to_string(), kind));
        Schema { dim: 2, metric: Metric::Dot, columns: columns.into() }
    }

    /// The batch of this row alone, or what is wrong with it.
    fn batch(json: &str) -> Result<Vec<u8>, String> {
        let schema = schema();
        let mut batch = BatchBuilder::new(&schema);
        batch.upsert_json(json);
        let batch = batch.finish().map_err(|bad| bad.0[0].to_string())?;
        Ok(batch.unwrap().record.bytes().to_vec())
    }

    #[test]
    fn a_row_of_json_is_the_row_of_its_values() {
        let schema = schema();
        let attributes = [
            ("text", Value::Text("é\"".into())),
            ("list", Value::List(vec!["a".into()])),
            ("integer", Value::Integer(-7)),
            ("number", Value::Number(0.5)),
            ("boolean", Value::Boolean(true)),
            ("date-time", Value::DateTime(1_000_000)),
            ("stored", Value::Text("s".into())),
        ];
        let names = schema.columns.iter().map(|(name, _)| name.as_str());
        assert!(names.eq(attributes.iter().map(|(name, _)| *name)));
        let (key, vector, bias) = ("a/b\u{1f438}", &[0.1, -3.0e38][..], Some(2.5));
        let mut expected = BatchBuilder::new(&schema);
        expected.upsert(Upsert { key, vector, bias, attributes: &attributes });
        let expected = expected.finish().unwrap().unwrap();
        let values = attributes.iter().map(|(name, value)| (*name, Some(Cow::Borrowed(value))));
        let json = serde_json::to_string(&RowJson::new(key, vector, bias, values)).unwrap();
        assert_eq!(batch(&json).unwrap(), expected.record.bytes(), "{json}");
        // In any order, and with numbers as other programs write them.
        let json = r#"{"attributes": {"number": 5e-1, "boolean": true, "text": "\u00e9\"",
            "date-time": "1970-01-01T00:00:01Z", "list": ["a"], "integer": -7.0,
            "stored": "s"},
            "bias": 2.5, "vector": [0.1, -3e38], "key": "a/b🐸"}"#;
        assert_eq!(batch(json).unwrap(), expected.record.bytes());
        let few = r#"{"key": "k", "vector": [1, 2], "attributes": {"text": null}}"#;
        let mut expected = BatchBuilder::new(&schema);
        expected.upsert(Upsert { key: "k", vector: &[1.0, 2.0], bias: None, attributes: &[] });
        assert_eq!(batch(few).unwrap(), expected.finish().unwrap().unwrap().record.bytes());
    }

    #[test]
    fn rows_that_are_none_are_named_with_the_fault() {
        for (json, part) in [
            ("", "not a JSON object"),
            ("[]", "not a JSON object"),
            (r#"{"vector": [1, 2]}"#, "it has no `key`"),
            (r#"{"key": "k"}"#, "(\"k\"): it has no `vector`"),
            (r#"{"key": 1, "vector": [1, 2]}"#, "its `key` is not a text"),
            (r#"{"vector": [1, 2], "key": "a", "key": "b"}"#, "the field `key` twice"),
            (r#"{"vector": [1, 2], "\u006bey": "a", "key": "b"}"#, "the field `key` twice"),
            (r#"{"key": "k", "vector": [1, 2], "word": "k"}"#, "the field `word`; a row has"),
            (r#"{"key": "k", "vector": "1 2"}"#, "not an array of numbers"),
            (r#"{"key": "k", "vector": [1, null]}"#, "not an array of numbers"),
            (r#"{"key": "k", "vector": [1, 1e300]}"#, "component 1 of its vector is not a finite"),
            (r#"{"key": "k", "vector": [1]}"#, "1 component instead of 2"),
            (r#"{"key": "k", "vector": [1, 2], "bias": "x"}"#, "its `bias` is not a number"),
            (r#"{"key": "k", "vector": [1, 2], "attributes": []}"#, "not an object"),
            (r#"{"key": "k", "vector": [1, 2], "attributes": {"size": 1}}"#, "no attribute `size`"),
            (r#"{"key": "k", "vector": [1, 2], "attributes": {"integer": 1.5}}"#, "`integer` is"),
            (
                r#"{"key": "k", "vector": [1, 2], "attributes": {"text": "a", "text": "b"}}"#,
                "`text` is there twice",
            ),
        ] {
            let error = batch(json).unwrap_err();
            assert!(error.contains(part), "{json}: {error}");
        }
    }
}
