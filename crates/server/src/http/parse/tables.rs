//! The body of `POST /models`: name and shape of a table.

use std::fmt;

use kindred::attributes::AttributeType;
use kindred::contract::Metric;
use kindred::live::changes::Schema;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use super::invalid;
use super::json::json_body;
use crate::http::ApiError;

json_body! {
    /// The body of `POST /models`.
    TableBody {
        name: String,
        dim: usize,
        metric: NamedMetric,
        attributes: AttributeTypes,
    }
}

/// A metric by its name.
#[derive(Debug, Clone, Copy, serde::Deserialize)]
#[serde(rename_all = "lowercase")]
pub(in crate::http) enum NamedMetric {
    Cosine,
    Dot,
}

/// Names and types of attributes, in their order.
#[derive(Debug, Default)]
pub(in crate::http) struct AttributeTypes(Vec<(String, AttributeType)>);

impl<'de> Deserialize<'de> for AttributeTypes {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Types;
        impl<'de> Visitor<'de> for Types {
            type Value = AttributeTypes;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object of names and types")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut types = Vec::new();
                while let Some(entry) = map.next_entry()? {
                    types.push(entry);
                }
                Ok(AttributeTypes(types))
            }
        }
        deserializer.deserialize_map(Types)
    }
}

impl TableBody {
    /// Checks its form. Returns the name and the shape of the table.
    pub(in crate::http) fn check(self) -> Result<(String, Schema), ApiError> {
        let name = self.name.ok_or_else(|| missing("name"))?;
        let dim = self.dim.ok_or_else(|| missing("dim"))?;
        if dim == 0 {
            return Err(invalid("dim").with_found(Some("0".to_owned())));
        }
        let metric = match self.metric {
            None | Some(NamedMetric::Cosine) => Metric::Cosine,
            Some(NamedMetric::Dot) => Metric::Dot,
        };
        let AttributeTypes(columns) = self.attributes.unwrap_or_default();
        Ok((name, Schema { dim, metric, columns }))
    }
}

fn missing(field: &str) -> ApiError {
    ApiError::invalid_request(format!("the field `{field}` is missing"))
}
