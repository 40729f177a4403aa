//! Terms and weights in the forms that search engines take.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::json;

/// A form of weighted terms.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Form {
    /// A list of objects with `term` and `weight`.
    #[default]
    Terms,
    /// Whole numbers: `round(100 · weight)`, without those that are 0, as Anserini and Pyserini index them.
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

impl Form {
    /// All forms.
    pub const ALL: [Self; 6] = [
        Self::Terms,
        Self::Impacts,
        Self::RankFeatures,
        Self::SparseVector,
        Self::Qdrant,
        Self::Vespa,
    ];

    /// Its name.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Terms => "terms",
            Self::Impacts => "impacts",
            Self::RankFeatures => "rank_features",
            Self::SparseVector => "sparse_vector",
            Self::Qdrant => "qdrant",
            Self::Vespa => "vespa",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Form {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|form| form.name() == name).ok_or_else(|| {
            let names: Vec<_> = Self::ALL.iter().map(|form| form.name()).collect();
            format!("unknown form `{name}`; forms: {}", names.join(", "))
        })
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
            Form::Terms => serializer.collect_seq(
                weights().map(|(term, weight)| json!({"term": term, "weight": weight})),
            ),
            Form::Impacts => {
                let impacts = weights().map(|(term, weight)| (term, (100.0 * weight).round()));
                // Larger ones than any weight that log1p gives.
                let impacts = impacts.map(|(term, impact)| (term, impact as u64));
                serializer.collect_map(impacts.filter(|&(_, impact)| impact > 0))
            }
            Form::RankFeatures | Form::SparseVector => features(&self.terms, serializer),
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

/// An object of names and positive weights. Names must not have dots, for these make a path: `_` stands for each, and of two terms
/// with the same name the larger weight stays.
fn features<S: Serializer>(terms: &[(u32, &str, f64)], serializer: S) -> Result<S::Ok, S::Error> {
    let has_dots = terms.iter().any(|(_, term, _)| term.contains('.'));
    let kept = terms.iter().filter_map(|&(_, term, weight)| Some((term, float(weight)?)));
    if !has_dots {
        return serializer.collect_map(kept);
    }
    let mut names = BTreeSet::new();
    let mut ordered = Vec::new();
    for (term, weight) in kept {
        let name = term.replace('.', "_");
        if names.insert(name.clone()) {
            ordered.push((name, weight));
        }
    }
    serializer.collect_map(ordered)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

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
            (Form::Impacts, r#"{"u.s.":250,"u_s_":125,"a \"b\"":50}"#),
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

    #[test]
    fn values_are_strictly_positive_floats() {
        let extremes = [(0, "huge", 1e300), (1, "tiny", 1e-300), (2, "subnormal", 1e-40)];
        for form in [Form::RankFeatures, Form::SparseVector] {
            let json: BTreeMap<String, f32> =
                serde_json::from_str(&formed(form, &extremes)).unwrap();
            assert_eq!(json, BTreeMap::from([("huge".to_owned(), f32::MAX)]));
        }
        assert_eq!(formed(Form::Impacts, &extremes), format!("{{\"huge\":{}}}", u64::MAX));
        let (qdrant, none) = (formed(Form::Qdrant, &extremes), formed(Form::Vespa, &[]));
        assert!(qdrant.starts_with("{\"indices\":[0],"), "{qdrant}");
        assert_eq!(none, "{\"cells\":{}}");
    }
}
