//! The options of questions in openapi.yaml and docs/http.md, against their declaration.

use kindred::options::{DECLARATIONS, DEFAULT_K, Declaration, Values};
use serde_json::{Value, json};

use super::Contract;

/// `min_score` as components are called: `MinScore`.
fn component(option: &str) -> String {
    let capital = |part: &str| part[..1].to_uppercase() + &part[1..];
    option.split('_').map(capital).collect()
}

/// What a schema says of the values of an option.
fn declared(option: &Declaration) -> Value {
    match option.values {
        Values::Whole { from, to: u64::MAX } => json!({"type": "integer", "minimum": from}),
        Values::Whole { from, to } => {
            json!({"type": "integer", "minimum": from, "maximum": to})
        }
        Values::Number => json!({"type": "number"}),
        Values::Switch => json!({"type": "boolean", "default": false}),
        Values::Words { most } => json!({"type": "array", "maxItems": most}),
        Values::Text => json!({"type": "string"}),
        Values::Names { most } => json!({"type": ["boolean", "array"], "maxItems": most}),
        Values::Name { of } => json!({"type": "string", "enum": of}),
    }
}

#[test]
fn options_are_documented_as_they_are_declared() {
    let contract = Contract::read();
    let components = &contract.0["components"];
    for option in DECLARATIONS {
        let name = component(option.name);
        let parameter = &components["parameters"][&name];
        assert_eq!(parameter["name"], option.name, "the parameter {name}");
        assert_eq!(parameter["in"], "query", "the parameter {name}");
        let schema = contract.resolve(&parameter["schema"]);
        assert_eq!(schema, &components["schemas"][&name], "the schema {name}");
        let declared = declared(option);
        for key in ["type", "minimum", "maximum", "maxItems", "enum"] {
            // The largest whole number of many languages stands for no bound.
            let is_open = key == "maximum" && schema[key] == i64::MAX;
            assert!(is_open || schema[key] == declared[key], "{name}: {key} is {}", declared[key]);
        }
        if option.values == Values::Switch {
            assert_eq!(schema["default"], declared["default"], "{name}");
        }
    }
    assert_eq!(components["schemas"]["K"]["default"], DEFAULT_K);
}

#[test]
fn every_option_is_in_the_table_of_the_guide() {
    let guide = include_str!("../../docs/http.md");
    let (_, table) = guide.split_once("\n| Option | Effect |\n").expect("a table of options");
    let first = |row: &str| row.split('|').nth(1).unwrap_or_default().to_owned();
    let listed: String = table.lines().take_while(|row| row.starts_with('|')).map(first).collect();
    for option in DECLARATIONS {
        assert!(listed.contains(&format!("`{}`", option.name)), "docs/http.md: {}", option.name);
    }
}
