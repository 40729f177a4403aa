//! Terms and weights in the forms that search engines take.

use std::collections::HashSet;
use std::str::FromStr;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// A form of weighted terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// A list of objects with `term` and `weight`.
    #[default]
    Terms,
    /// Whole numbers: `round(100 · weight)`, without those that are 0, as Anserini and Pyserini
    /// index them. They write a term that often into a text, and cut that at white space.
    Impacts,
    /// The field type `rank_features` of Lucene's engines: OpenSearch and Elasticsearch.
    RankFeatures,
    /// Elasticsearch's field type `sparse_vector`.
    SparseVector,
    /// A sparse vector of Qdrant: `indices`, which are rows of the terms, ascending, and `values`.
    Qdrant,
    /// The cells of a Vespa tensor with one mapped dimension.
    Vespa,
}

contract::names! { Form {
    Terms: "terms",
    Impacts: "impacts",
    RankFeatures: "rank_features",
    SparseVector: "sparse_vector",
    Qdrant: "qdrant",
    Vespa: "vespa",
} }

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let unknown =
            || format!("unknown form `{name}`; forms: {}", Self::ALL.map(Self::name).join(", "));
        Self::named(name).ok_or_else(unknown)
    }
}

/// Weighted terms in a form other than [`Form::Terms`], as JSON.
#[derive(Debug, Clone)]
pub struct Formed<'a> {
    /// The form.
    pub form: Form,
    /// Rows, words and weights of the terms, the largest weight first.
    pub terms: Vec<(u32, &'a str, f64)>,
}

impl Serialize for Formed<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let weights = || self.terms.iter().map(|&(_, term, weight)| (term, weight));
        match self.form {
            Form::Terms => {
                #[derive(Serialize)]
                struct Weighted<'a> {
                    term: &'a str,
                    weight: f64,
                }
                serializer.collect_seq(weights().map(|(term, weight)| Weighted { term, weight }))
            }
            Form::Impacts => {
                let impact = |weight: f64| (100.0 * weight).round().min(f64::from(i32::MAX)) as u32;
                let impacts = weights().map(|(term, weight)| (term, impact(weight)));
                let impacts = impacts.filter(|&(_, impact)| impact > 0);
                self.named(impacts, char::is_whitespace, serializer)
            }
            Form::RankFeatures | Form::SparseVector => {
                let features = weights().filter_map(|(term, w)| Some((term, float(w)?)));
                // Dots make a path.
                self.named(features, |c| c == '.', serializer)
            }
            Form::Qdrant => {
                let mut terms: Vec<(u32, f32)> =
                    self.terms.iter().filter_map(|&(row, _, w)| Some((row, float(w)?))).collect();
                terms.sort_unstable_by_key(|&(row, _)| row);
                let (indices, values): (Vec<u32>, Vec<f32>) = terms.into_iter().unzip();
                let mut vector = serializer.serialize_map(Some(2))?;
                vector.serialize_entry("indices", &indices)?;
                vector.serialize_entry("values", &values)?;
                vector.end()
            }
            Form::Vespa => {
                let cells: Cells<'_> = Cells(&self.terms);
                let mut tensor = serializer.serialize_map(Some(1))?;
                tensor.serialize_entry("cells", &cells)?;
                tensor.end()
            }
        }
    }
}

impl Formed<'_> {
    /// An object of some terms with their values. Where an engine takes a character for more than a
    /// part of the name, `_` stands for it, and of two terms with the same name the larger weight
    /// stays.
    fn named<'b, S: Serializer, T: Serialize>(
        &self,
        values: impl Iterator<Item = (&'b str, T)>,
        is_special: fn(char) -> bool,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        if !self.terms.iter().any(|(_, term, _)| term.contains(is_special)) {
            return serializer.collect_map(values);
        }
        let mut names = HashSet::new();
        let mut ordered = Vec::new();
        for (term, value) in values {
            let name = term.replace(is_special, "_");
            if names.insert(name.clone()) {
                ordered.push((name, value));
            }
        }
        serializer.collect_map(ordered)
    }
}

/// The short form of cells: labels with their values.
struct Cells<'a>(&'a [(u32, &'a str, f64)]);

impl Serialize for Cells<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().filter_map(|&(_, term, w)| Some((term, float(w)?))))
    }
}

/// A weight as a positive normal float32: these engines store no other.
fn float(weight: f64) -> Option<f32> {
    let float = weight.min(f64::from(f32::MAX)) as f32;
    (float >= f32::MIN_POSITIVE).then_some(float)
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn formed(form: Form, terms: &[(u32, &'static str, f64)]) -> String {
        serde_json::to_string(&Formed { form, terms: terms.to_vec() }).unwrap()
    }

    #[test]
    fn each_form_keeps_the_rules_of_its_engine() {
        let terms = [(7, "u.s.", 2.5), (9, "u_s_", 1.25), (3, "a \"b\"", 0.5), (1, "c", 0.004)];
        let expected = [
            (
                Form::Terms,
                r#"[{"term":"u.s.","weight":2.5},{"term":"u_s_","weight":1.25},{"term":"a \"b\"","weight":0.5},{"term":"c","weight":0.004}]"#,
            ),
            (Form::Impacts, r#"{"u.s.":250,"u_s_":125,"a_\"b\"":50}"#),
            (Form::RankFeatures, r#"{"u_s_":2.5,"a \"b\"":0.5,"c":0.004}"#),
            (Form::SparseVector, r#"{"u_s_":2.5,"a \"b\"":0.5,"c":0.004}"#),
            (Form::Qdrant, r#"{"indices":[1,3,7,9],"values":[0.004,0.5,2.5,1.25]}"#),
            (Form::Vespa, r#"{"cells":{"u.s.":2.5,"u_s_":1.25,"a \"b\"":0.5,"c":0.004}}"#),
        ];
        for (form, json) in expected {
            assert_eq!(formed(form, &terms), json, "{form}");
            assert_eq!(form.name().parse(), Ok(form));
        }
        assert!("terse".parse::<Form>().unwrap_err().contains("forms: terms, impacts"));
    }

    /// The rules of each engine, with where it states them. Terms are what is hardest for it.
    #[test]
    fn each_engine_takes_what_it_is_given() {
        let terms = [
            (u32::MAX, "new york", 1e300),
            (4, "new_york", 3.0),
            (0, "u.s.", 2.0),
            (9, "u_s_", 1.0),
            (2, "c", 0.5),
            (3, "{x:\"y\"}", 0.25),
            (5, "tiny", 1e-300),
            (6, "subnormal", 1e-40),
        ];
        let object = |form| -> serde_json::Map<String, Value> {
            serde_json::from_str(&formed(form, &terms)).unwrap()
        };
        // As engines read them: to the nearest float32.
        let is_float = |value: &Value| {
            let float = value.as_f64().unwrap() as f32;
            float.is_normal() && float > 0.0
        };

        // Lucene's `FeatureField.setFeatureValue`: a value is a finite, positive, normal float. The
        // mappers of Elasticsearch and OpenSearch (`RankFeaturesFieldMapper`,
        // `SparseVectorFieldMapper`): "fields do not support dots in feature names", and a feature
        // has one value in a document; of several, `sparse_vector` takes the largest.
        for form in [Form::RankFeatures, Form::SparseVector] {
            let features = object(form);
            assert!(features.keys().all(|name| !name.contains('.')), "{features:?}");
            assert!(features.values().all(is_float), "{features:?}");
            assert_eq!((features["u_s_"].as_f64(), features.len()), (Some(2.0), 5));
        }

        // Anserini's `JsonVectorCollection`: a value is a Java int, and the term is written that
        // often, with a space behind it.
        let impacts = object(Form::Impacts);
        let is_int = |value: &Value| (1..=i32::MAX as u64).contains(&value.as_u64().unwrap());
        assert!(impacts.values().all(is_int), "{impacts:?}");
        assert!(impacts.keys().all(|term| !term.contains(char::is_whitespace)), "{impacts:?}");
        assert_eq!(impacts["new_york"], i32::MAX, "the larger stays");

        // Qdrant's OpenAPI, `SparseVector`: "indices must be unique", unsigned integers of 32 bits;
        // "values and indices must be the same length", floats. No other field.
        let vector = object(Form::Qdrant);
        let [indices, values] = ["indices", "values"].map(|name| vector[name].as_array().unwrap());
        let indices: Vec<u64> = indices.iter().map(|index| index.as_u64().unwrap()).collect();
        assert!(indices.is_sorted_by(|a, b| a < b) && indices[5] == u64::from(u32::MAX));
        assert!(values.len() == indices.len() && values.iter().all(is_float));
        assert_eq!(vector.len(), 2);

        // Vespa's document JSON, "Short form for tensors with a single mapped dimension": an object
        // of labels, which are any strings, each of them once, with their values.
        let tensor = object(Form::Vespa);
        let cells = tensor["cells"].as_object().unwrap();
        assert!(cells.values().all(is_float) && cells.len() == 6, "{cells:?}");
        assert!(cells.contains_key("u.s.") && cells.contains_key("u_s_") && tensor.len() == 1);
    }

    #[test]
    fn no_terms_are_valid_in_each_form() {
        for (form, expected) in [
            (Form::Impacts, "{}"),
            (Form::RankFeatures, "{}"),
            (Form::SparseVector, "{}"),
            (Form::Qdrant, r#"{"indices":[],"values":[]}"#),
            (Form::Vespa, r#"{"cells":{}}"#),
        ] {
            assert_eq!(formed(form, &[]), expected);
        }
    }
}
