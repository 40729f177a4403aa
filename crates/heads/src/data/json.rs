//! Lines of JSON.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::{Number, Value};

use super::{Labelled, TEXT, TextsOptions, wanted};
use crate::json_faults;

/// An object's fields, in order. A map would keep one of two with the same name.
struct Fields {
    names: Vec<String>,
    values: Vec<Value>,
}

impl<'de> Deserialize<'de> for Fields {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Fields;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Fields, A::Error> {
                let mut fields = Fields { names: Vec::new(), values: Vec::new() };
                while let Some((name, value)) = map.next_entry()? {
                    fields.names.push(name);
                    fields.values.push(value);
                }
                Ok(fields)
            }
        }
        deserializer.deserialize_map(Object)
    }
}

/// Reads a line.
pub(super) fn read(line: &str, options: &TextsOptions) -> Result<Labelled, String> {
    let Fields { names, values } = serde_json::from_str(line).map_err(|fault| {
        let goes_on = fault.is_eof() || !line.trim_start().starts_with('{');
        let why = json_faults::of_line(&fault);
        let cure = match (json_faults::cure(line, &fault), goes_on) {
            (Some(cure), _) => format!("; {cure}"),
            (None, true) => {
                "; if an object takes several lines, write each in one: jq -c . FILE".to_owned()
            }
            (None, false) => String::new(),
        };
        format!("{why}; a line is {{\"text\": \"…\", \"label\": \"…\"}}{cure}")
    })?;
    let [own_text, own_label] = [&options.text, &options.label].map(Option::as_deref);
    let (text_names, label_names) = (own_text.as_slice(), own_label.as_slice());
    let text_names = if own_text.is_some() { text_names } else { TEXT };
    let label_names = if own_label.is_some() { label_names } else { &["label"] };
    let [text, label] = wanted("field", [text_names, label_names]);
    let place = text.place(&names)?.ok_or_else(|| text.missing(&names))?;
    let Value::String(content) = &values[place] else {
        return Err(format!("its `{}` must be a string", names[place]));
    };
    let one = label.place(&names)?;
    let several = match own_label {
        Some(_) => None,
        None => wanted("field", [TEXT, &["labels"]])[1].place(&names)?,
    };
    let place = match (one, several) {
        (Some(place), None) | (None, Some(place)) => place,
        (None, None) if own_label.is_some() => return Err(label.missing(&names)),
        _ => {
            let found = names.join(", ");
            return Err(format!(
                "it needs either `label` or `labels`, or the name of another field with \
                 --label-column: {found}"
            ));
        }
    };
    let of_type = |value: &Value| {
        if let Some(number) = rounded(value) {
            return Err(format!(
                "the number {number} of `{}` has more digits than JSON numbers keep, so another \
                 label may become the same; write labels in quotes",
                names[place]
            ));
        }
        label_of(value).ok_or_else(|| {
            format!(
                "`{}` must be a string, a number, true or false, or a list of them",
                names[place]
            )
        })
    };
    let labels = match &values[place] {
        Value::Array(labels) => labels.iter().map(of_type).collect::<Result<_, _>>()?,
        label => vec![of_type(label)?],
    };
    Ok(Labelled { labels, text: content.clone() })
}

/// A label as people write it: a string, a number, or a truth value.
fn label_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) => Some(text.clone()),
        Value::Number(number) => Some(whole(number).unwrap_or_else(|| number.to_string())),
        Value::Bool(value) => Some(value.to_string()),
        Value::Null | Value::Array(_) | Value::Object(_) => None,
    }
}

/// A whole number that is written as another, as pandas writes `1.0` for 1 in columns with gaps.
fn whole(number: &Number) -> Option<String> {
    let value = number.as_f64().filter(|_| number.is_f64())?;
    (value.fract() == 0.0).then(|| (value as i64).to_string())
}

/// A number that is read as a float64 which is not the only one so near: two labels may become one.
fn rounded(value: &Value) -> Option<&Number> {
    /// From here on, float64 has not all whole numbers.
    const LARGEST: f64 = 9_007_199_254_740_992.0;
    let Value::Number(number) = value else { return None };
    (number.is_f64() && number.as_f64()?.abs() >= LARGEST).then_some(number)
}
