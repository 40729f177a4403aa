//! Holds JSON against the schemas of openapi.yaml. It knows the keywords of JSON Schema that are
//! used there, and panics on any other, so that nothing passes unchecked.

use std::fmt::Display;

use serde_json::Value;

/// Keywords for readers, by which no value is wrong. For JSON Schema 2020-12 `format` is one, too.
const ANNOTATIONS: [&str; 4] = ["default", "description", "examples", "format"];

/// The part of the document that a reference leads to.
///
/// # Panics
/// If it leads nowhere.
pub(super) fn referred<'a>(document: &'a Value, reference: &str) -> &'a Value {
    let found = reference.strip_prefix('#').and_then(|pointer| document.pointer(pointer));
    found.unwrap_or_else(|| panic!("{reference} leads nowhere"))
}

/// The faults of a value, by a schema of this document: each begins with the JSON pointer to it.
///
/// # Panics
/// On keywords, types and patterns that it does not know, and on references that lead nowhere.
pub(super) fn violations(document: &Value, schema: &Value, value: &Value) -> Vec<String> {
    let keywords = match schema {
        Value::Bool(true) => return Vec::new(),
        Value::Bool(false) => return vec![": it should not be there".to_owned()],
        _ => schema.as_object().unwrap_or_else(|| panic!("{schema} is not a schema")),
    };
    let of = |schema: &Value, value: &Value| violations(document, schema, value);
    let inside = |name: &dyn Display, schema: &Value, value: &Value| -> Vec<String> {
        of(schema, value).into_iter().map(|fault| format!("/{name}{fault}")).collect()
    };
    let fields = || value.as_object().into_iter().flatten();
    let items = || value.as_array().into_iter().flatten();
    let mut faults = Vec::new();
    for (keyword, wanted) in keywords {
        match &keyword[..] {
            "$ref" => faults.extend(of(referred(document, text(wanted)), value)),
            "properties" => {
                for (name, field) in fields() {
                    if let Some(schema) = wanted.get(name) {
                        faults.extend(inside(name, schema, field));
                    }
                }
            }
            "additionalProperties" => {
                for (name, field) in fields() {
                    if schema["properties"].get(name).is_none() {
                        faults.extend(inside(name, wanted, field));
                    }
                }
            }
            "items" => {
                for (index, item) in items().enumerate() {
                    faults.extend(inside(&index, wanted, item));
                }
            }
            "oneOf" | "anyOf" => {
                let of_each: Vec<_> = list(wanted).iter().map(|schema| of(schema, value)).collect();
                let fits = of_each.iter().filter(|faults| faults.is_empty()).count();
                if fits == 0 {
                    faults.push(format!(": it fits none of `{keyword}`: {of_each:?}"));
                } else if fits > 1 && keyword == "oneOf" {
                    faults.push(format!(": it fits {fits} of `oneOf`"));
                }
            }
            other if ANNOTATIONS.contains(&other) => {}
            other if !is_as_wanted(other, wanted, value) => {
                faults.push(format!(": {} is against {keyword}: {wanted}", shown(value)));
            }
            _ => {}
        }
    }
    faults
}

/// Whether a value is right by a keyword that holds no other schema.
fn is_as_wanted(keyword: &str, wanted: &Value, value: &Value) -> bool {
    let of_number = |is_right: fn(f64, f64) -> bool| {
        value.as_f64().is_none_or(|number| is_right(number, bound(wanted)))
    };
    let of_count = |count: Option<usize>, is_right: fn(f64, f64) -> bool| {
        count.is_none_or(|count| is_right(count as f64, bound(wanted)))
    };
    let items = value.as_array().map(Vec::len);
    match keyword {
        "type" => match wanted {
            Value::Array(kinds) => kinds.iter().any(|kind| is_of(text(kind), value)),
            kind => is_of(text(kind), value),
        },
        "const" => is_same(wanted, value),
        "enum" => list(wanted).iter().any(|known| is_same(known, value)),
        "required" => {
            let has = |name| value.get(text(name)).is_some();
            !value.is_object() || list(wanted).iter().all(has)
        }
        "minItems" => of_count(items, |count, least| count >= least),
        "maxItems" => of_count(items, |count, most| count <= most),
        "minimum" => of_number(|number, least| number >= least),
        "maximum" => of_number(|number, most| number <= most),
        "exclusiveMinimum" => of_number(|number, below| number > below),
        "minLength" => {
            let count = value.as_str().map(|text| text.chars().count());
            of_count(count, |count, least| count >= least)
        }
        "pattern" => value.as_str().is_none_or(|value| matches(text(wanted), value)),
        other => panic!("the keyword `{other}` is not known here"),
    }
}

fn is_of(kind: &str, value: &Value) -> bool {
    match kind {
        "array" => value.is_array(),
        "boolean" => value.is_boolean(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "object" => value.is_object(),
        "string" => value.is_string(),
        other => panic!("the type `{other}` is not known here"),
    }
}

/// 1 and 1.0 are the same.
fn is_same(wanted: &Value, value: &Value) -> bool {
    assert!(!wanted.is_array() && !wanted.is_object(), "only single values are compared: {wanted}");
    let is_same_number = || wanted.is_number() && wanted.as_f64() == value.as_f64();
    wanted == value || is_same_number()
}

fn text(wanted: &Value) -> &str {
    wanted.as_str().unwrap_or_else(|| panic!("{wanted} should be a text"))
}

fn list(wanted: &Value) -> &[Value] {
    wanted.as_array().unwrap_or_else(|| panic!("{wanted} should be an array"))
}

fn bound(wanted: &Value) -> f64 {
    wanted.as_f64().unwrap_or_else(|| panic!("{wanted} should be a number"))
}

/// A value in a message: answers are long.
fn shown(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("an array of {}", items.len()),
        Value::Object(fields) => format!("an object with {:?}", fields.keys().collect::<Vec<_>>()),
        single => single.to_string(),
    }
}

/// Some characters of a set, one after another.
struct Run {
    /// Ranges, each with its first and last character.
    set: Vec<(char, char)>,
    least: usize,
    most: usize,
}

/// Whether a pattern describes a text. It is for whole texts, `^…$`, and consists of characters,
/// `\d`, other escaped signs and sets such as `[0-9a-f_]`, each once, with `+` or with `{n}`.
fn matches(pattern: &str, text: &str) -> bool {
    let runs = runs(pattern).unwrap_or_else(|| panic!("the pattern `{pattern}` is not known here"));
    let text: Vec<char> = text.chars().collect();
    is_made_of(&runs, &text)
}

fn is_made_of(runs: &[Run], text: &[char]) -> bool {
    let Some((run, others)) = runs.split_first() else { return text.is_empty() };
    let is_in_set = |c: &&char| run.set.iter().any(|(first, last)| (first..=last).contains(c));
    let fits = text.iter().take(run.most).take_while(is_in_set).count();
    (run.least..=fits).rev().any(|taken| is_made_of(others, &text[taken..]))
}

/// The parts of a pattern; `None` if it has others than [`matches`] knows.
fn runs(pattern: &str) -> Option<Vec<Run>> {
    let mut rest = pattern.strip_prefix('^')?.strip_suffix('$')?;
    let mut runs = Vec::new();
    while let Some(sign) = rest.chars().next() {
        rest = &rest[sign.len_utf8()..];
        let set = match sign {
            '[' => {
                let (set, after) = rest.split_once(']')?;
                rest = after;
                set_of(set)?
            }
            '\\' => {
                let escaped = rest.chars().next()?;
                rest = &rest[escaped.len_utf8()..];
                match escaped {
                    'd' => vec![('0', '9')],
                    sign if sign.is_ascii_punctuation() => vec![(sign, sign)],
                    _ => return None,
                }
            }
            sign if "^$.|?*+(){}]".contains(sign) => return None,
            plain => vec![(plain, plain)],
        };
        let (mut least, mut most) = (1, 1);
        if let Some(after) = rest.strip_prefix('+') {
            (most, rest) = (usize::MAX, after);
        } else if let Some(after) = rest.strip_prefix('{') {
            let (times, after) = after.split_once('}')?;
            least = times.parse().ok()?;
            (most, rest) = (least, after);
        }
        runs.push(Run { set, least, most });
    }
    Some(runs)
}

/// The inside of `[…]`: characters, and ranges such as `a-f`.
fn set_of(inside: &str) -> Option<Vec<(char, char)>> {
    let mut signs = inside.chars().peekable();
    let mut set = Vec::new();
    while let Some(first) = signs.next() {
        if "^\\[-".contains(first) {
            return None;
        }
        let last = if signs.next_if_eq(&'-').is_some() { signs.next()? } else { first };
        set.push((first, last));
    }
    (!set.is_empty()).then_some(set)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use serde_json::json;

    /// For each keyword a document with a schema, an array of right values and one of wrong values.
    fn cases() -> Vec<(Value, Value, Value)> {
        let referring = json!({
            "$ref": "#/components/schemas/Few",
            "components": {"schemas": {"Few": {"maximum": 3}}},
        });
        vec![
            (referring, json!([3, "x"]), json!([4])),
            (json!({"type": "array"}), json!([[], [1]]), json!([{}, "[]", null])),
            (json!({"type": "boolean"}), json!([true, false]), json!([0, "true", null])),
            (json!({"type": "integer"}), json!([0, -3, 2.0, u64::MAX]), json!([0.5, "1", null])),
            (json!({"type": "null"}), json!([null]), json!([0, false, "", [], {}])),
            (json!({"type": "number"}), json!([0, -0.5, 1e300]), json!(["1", true, null])),
            (json!({"type": "object"}), json!([{}, {"a": 1}]), json!([[], "{}", null])),
            (json!({"type": "string"}), json!(["", "a"]), json!([1, null, ["a"]])),
            (json!({"type": ["integer", "null"]}), json!([1, null]), json!([1.5, "1", [], false])),
            (json!({"const": "live"}), json!(["live"]), json!(["alive", 1, null, ["live"]])),
            (json!({"const": 1}), json!([1, 1.0]), json!([true, "1", 2, null])),
            (json!({"enum": ["a", null]}), json!(["a", null]), json!(["b", "", 0, ["a"]])),
            (
                json!({"properties": {"a": {"type": "string"}}}),
                json!([{}, {"a": ""}, {"b": 1}, "no object"]),
                json!([{"a": 1}, {"b": "", "a": null}]),
            ),
            (
                json!({"properties": {"a": true}, "additionalProperties": false}),
                json!([{}, {"a": 1}, ["no object"]]),
                json!([{"b": 1}, {"a": 1, "b": null}]),
            ),
            (
                json!({"additionalProperties": {"exclusiveMinimum": 0}}),
                json!([{}, {"a": 1, "b": 0.5}]),
                json!([{"a": 0}, {"a": 1, "b": -1}]),
            ),
            (
                json!({"required": ["a", "b"]}),
                json!([{"a": null, "b": 1}, "no object"]),
                json!([{}, {"a": 1}, {"b": 1}]),
            ),
            (
                json!({"items": {"type": "integer"}}),
                json!([[], [1, 2], "no array"]),
                json!([["a"], [1, 2, 2.5]]),
            ),
            (json!({"minItems": 2}), json!([[1, 2], [1, 2, 3], "a"]), json!([[], [1]])),
            (json!({"maxItems": 2}), json!([[], [1, 2], "abc"]), json!([[1, 2, 3]])),
            (json!({"minimum": 1}), json!([1, 1.5, 2, "0"]), json!([0, 0.99, -1])),
            (json!({"maximum": 1}), json!([1, 0.5, -2, "2"]), json!([2, 1.01])),
            (json!({"exclusiveMinimum": 0}), json!([1, 1e-9, "0"]), json!([0, 0.0, -1])),
            (json!({"minLength": 2}), json!(["ab", "äöü", 1]), json!(["", "a", "ä"])),
            (json!({"pattern": "^[0-9a-f]{2}$"}), json!(["0f", 1]), json!(["0g", "0", "0f0", ""])),
            (
                json!({"oneOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!([{"a": 1}, {"b": 1}]),
                json!([{}, {"a": 1, "b": 1}]),
            ),
            (
                json!({"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}),
                json!([{"a": 1}, {"b": 1}, {"a": 1, "b": 1}]),
                json!([{}, {"c": 1}]),
            ),
        ]
    }

    /// The schema stands at the top of its document.
    fn faults(schema: &Value, value: &Value) -> Vec<String> {
        let mut plain = schema.clone();
        plain.as_object_mut().unwrap().remove("components");
        violations(schema, &plain, value)
    }

    #[test]
    fn each_keyword_accepts_right_values_and_refuses_wrong_ones() {
        for (schema, right, wrong) in cases() {
            for value in right.as_array().unwrap() {
                assert_eq!(faults(&schema, value), [""; 0], "{schema} {value}");
            }
            for value in wrong.as_array().unwrap() {
                assert_eq!(faults(&schema, value).len(), 1, "{schema} {value}");
            }
        }
    }

    #[test]
    fn the_contract_has_no_keyword_that_is_not_tried() {
        /// The keywords of a schema and of those in it.
        fn keywords(schema: &Value, found: &mut BTreeSet<String>) {
            for (keyword, wanted) in schema.as_object().into_iter().flatten() {
                found.insert(keyword.clone());
                match &keyword[..] {
                    "properties" => {
                        wanted.as_object().unwrap().values().for_each(|one| keywords(one, found));
                    }
                    "oneOf" | "anyOf" => list(wanted).iter().for_each(|one| keywords(one, found)),
                    "items" | "additionalProperties" => keywords(wanted, found),
                    _ => {}
                }
            }
        }
        /// Those of every schema that stands in a part of a document.
        fn used(part: &Value, found: &mut BTreeSet<String>) {
            for (name, inner) in part.as_object().into_iter().flatten() {
                match &name[..] {
                    "schema" => keywords(inner, found),
                    "schemas" => {
                        inner.as_object().unwrap().values().for_each(|one| keywords(one, found));
                    }
                    _ => used(inner, found),
                }
            }
            part.as_array().into_iter().flatten().for_each(|inner| used(inner, found));
        }
        let contract: Value =
            serde_saphyr::from_str(include_str!("../../openapi.yaml")).expect("it is YAML");
        let mut found = BTreeSet::new();
        used(&contract, &mut found);
        let mut tried: BTreeSet<String> = ANNOTATIONS.map(str::to_owned).into();
        for (schema, ..) in cases() {
            keywords(&schema, &mut tried);
        }
        let untried: Vec<_> = found.difference(&tried).collect();
        assert!(untried.is_empty() && found.len() >= 20, "{untried:?} {found:?}");
    }

    #[test]
    fn faults_say_where_they_are() {
        let schema = json!({"properties": {"a": {"items": {"type": "integer"}}, "b": false}});
        let found = faults(&schema, &json!({"a": [1, "x", [2]], "b": 1}));
        assert_eq!(
            found,
            [
                r#"/a/1: "x" is against type: "integer""#,
                r#"/a/2: an array of 1 is against type: "integer""#,
                "/b: it should not be there",
            ]
        );
        let several = json!({"oneOf": [{"minimum": 1}, {"maximum": 1}, {"type": "string"}]});
        assert_eq!(faults(&several, &json!(1)), [": it fits 2 of `oneOf`"]);
    }

    #[test]
    fn patterns_describe_whole_texts() {
        for (pattern, right, wrong) in [
            ("^ab$", &["ab"][..], &["", "a", "abc", "xab", "AB", "ab\n"][..]),
            ("^a+b$", &["ab", "aaab"], &["b", "aa", "abb"]),
            ("^[a-c_]+c$", &["ac", "_bcc"], &["c", "dc", "ca", "-c"]),
            (r"^\d{3}\.$", &["123."], &["12.", "1234.", "123x", "a23."]),
            ("^a:[0-9a-f]{2}$", &["a:0f"], &["a:0", "a:0F", "a:0f0", "a0f"]),
        ] {
            for text in right {
                assert!(matches(pattern, text), "{pattern} {text}");
            }
            for text in wrong {
                assert!(!matches(pattern, text), "{pattern} {text}");
            }
        }
    }

    #[test]
    fn nothing_unknown_passes() {
        let is_known = |schema: Value, value: Value| {
            std::panic::catch_unwind(|| violations(&schema, &schema, &value)).is_ok()
        };
        for schema in [
            json!({"not": {}}),
            json!({"allOf": []}),
            json!({"maxLength": 3}),
            json!({"type": "text"}),
            json!({"const": [1]}),
            json!({"enum": [{}]}),
            json!({"minimum": "1"}),
            json!({"$ref": "#/components/schemas/None"}),
            json!({"$ref": "other.yaml"}),
            json!({"items": 7}),
            json!("a schema"),
        ] {
            assert!(!is_known(schema.clone(), json!([1])) || !is_known(schema.clone(), json!(1)));
        }
        for pattern in ["a", "^a", "a$", "^a*$", "^(a)$", "^a|b$", "^.$", r"^\w$", "^[^a]$", "^[a$"]
        {
            assert!(!is_known(json!({"pattern": pattern}), json!("a")), "{pattern}");
        }
        for pattern in ["^[]$", "^[a-]$", "^a{1,2}$", "^a{2$", "^a?$", r"^a\$", "^a++$"] {
            assert!(!is_known(json!({"pattern": pattern}), json!("a")), "{pattern}");
        }
        assert!(is_known(json!({"pattern": "^a$"}), json!("a")));
    }
}
