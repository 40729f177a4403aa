//! Filters by example.

mod large;
mod naive;
mod random;

use model_store::ModelStore;

use super::*;
use naive::{Item, attributes};

/// A model of these rows, at least one, whose words are `w0`, `w1` and so on.
fn model(items: &[Item]) -> ModelStore {
    let words: Vec<String> = (0..items.len()).map(|row| format!("w{row}")).collect();
    let rows = words.iter().map(|word| (&word[..], &[1.0f32][..]));
    let attributes = attributes(items);
    ModelStore::from_rows("shop", 1, rows).unwrap().with_attributes(attributes).unwrap()
}

/// The rows that meet a filter.
fn found(model: &ModelStore, filter: &str) -> Result<Vec<u32>, FilterError> {
    let bitmap = check(&parse(filter)?, model)?.bitmap(model.version());
    Ok(bitmap.members_in(0..model.rows()).map(|row| row.0).collect())
}

fn shop() -> ModelStore {
    let item = |price, brand: &str, tags: &[&str]| Item {
        price,
        brand: Some(brand.to_owned()).filter(|brand| !brand.is_empty()),
        tags: Some(tags.iter().map(|&tag| tag.to_owned()).collect()),
        ..Item::default()
    };
    model(&[
        Item { year: Some(2024), sold: Some(true), ..item(Some(79.5), "acme", &["shoes", "red"]) },
        Item { year: Some(2025), sold: Some(false), ..item(Some(80.0), "big foot", &["shoes"]) },
        Item { year: Some(2026), made: Some(5_000_000), ..item(None, "acme", &[]) },
        Item { tags: None, ..item(Some(-1.0), "", &[]) },
        Item { made: Some(7_000_000), ..item(Some(1e30), "Acme Ltd", &["AND", "it's"]) },
    ])
}

#[test]
fn each_test_by_example() {
    let shop = shop();
    for (filter, rows) in [
        ("price < 80", &[0, 3][..]),
        ("price <= 80", &[0, 1, 3]),
        ("price > 80", &[4]),
        ("price >= 80", &[1, 4]),
        ("price = 80.0", &[1]),
        ("price != 80", &[0, 2, 3, 4]),
        ("NOT price < 80", &[1, 2, 4]),
        ("price 79.5 TO 80", &[0, 1]),
        ("price 80 TO 79", &[]),
        ("price 1e30 TO 1e31", &[4]),
        ("year 1e30 TO 1e31", &[]),
        ("year 2024.5 to 2e3", &[]),
        ("year 2024.5 to 9999", &[1, 2]),
        ("year IN [2024, 2026.0, 7.5]", &[0, 2]),
        ("year NOT IN [2024, 2026]", &[1, 3, 4]),
        ("year IN []", &[]),
        ("year NOT IN []", &[0, 1, 2, 3, 4]),
        ("year EXISTS", &[0, 1, 2]),
        ("year NOT EXISTS", &[3, 4]),
        ("year IS NULL", &[3, 4]),
        ("year is not null", &[0, 1, 2]),
        ("sold = TRUE", &[0]),
        ("sold != true", &[1, 2, 3, 4]),
        ("sold IN [true, false]", &[0, 1]),
        ("made >= 1970-01-01T00:00:05Z", &[2, 4]),
        ("made < 1970-01-01T00:00:07Z", &[2]),
        ("made IN ['1970-01-01T00:00:07Z']", &[4]),
        ("brand = acme", &[0, 2]),
        ("brand = ACME", &[]),
        ("brand = 'big foot'", &[1]),
        ("brand != acme", &[1, 3, 4]),
        ("brand IN [acme, \"big foot\", nobody]", &[0, 1, 2]),
        ("brand STARTS WITH ac", &[0, 2]),
        ("brand starts with \"\"", &[0, 1, 2, 4]),
        ("brand NOT STARTS WITH a", &[1, 3, 4]),
        ("tags = shoes", &[0, 1]),
        ("tags != shoes", &[2, 3, 4]),
        ("tags IN [red, \"AND\"]", &[0, 4]),
        ("tags STARTS WITH sh", &[0, 1]),
        ("tags = 'it\\'s'", &[4]),
        ("tags EXISTS", &[0, 1, 2, 4]),
        ("key IN [w1, w3, w9]", &[1, 3]),
        ("key = w0 OR key != w0", &[0, 1, 2, 3, 4]),
        ("key NOT IN [w1]", &[0, 2, 3, 4]),
        ("brand = acme AND price < 80 OR year = 2025", &[0, 1]),
        ("brand = acme AND (price < 80 OR year = 2026)", &[0, 2]),
        ("NOT (brand = acme OR sold = false)", &[3, 4]),
        ("not not brand = acme", &[0, 2]),
    ] {
        assert_eq!(found(&shop, filter).as_deref(), Ok(rows), "{filter}");
    }
}

#[test]
fn filters_that_say_the_same_have_one_form() {
    for (form, filters) in [
        ("a = 1 AND b < 2", &["a=1 and b<2", "b < 2 AND (a = 1)", "(a='1') AND b<2 AND a = 1"][..]),
        ("a = 1 OR b = 2 AND c = 3", &["(c = 3 AND b = 2) OR a = 1", "a = 1 or (b=2 and c=3)"]),
        ("a = 1 AND (b = 2 OR c = 3)", &["(c = 3 OR b = 2) AND (a IN [1])"]),
        ("a != x", &["NOT a = x", "a NOT IN [x, 'x']", "NOT (NOT (a != x))"]),
        ("a NOT EXISTS", &["a IS NULL", "NOT a EXISTS", "NOT a IS NOT NULL"]),
        ("a IN [1, 2, 3]", &["a in [3,1,2,2]"]),
        ("NOT a 1 TO 2", &["not(a 1 to 2)"]),
        ("NOT a < 5", &["NOT NOT NOT a < 5"]),
        ("a NOT STARTS WITH \"b c\"", &["NOT a STARTS WITH 'b c'"]),
        ("NOT (a = 1 OR b = 1)", &["NOT (b = 1 OR (a = 1))"]),
        ("a = \"\"", &["a=''"]),
        ("a = \"not\"", &["a = 'not'"]),
        ("a = it\\s", &["a = \"it\\\\s\""]),
        ("a = \"say \\\"hi\\\"\"", &["a = 'say \"hi\"'"]),
        ("größe = 2024-05-01T10:00:00+02:00", &["größe\u{3000}=\n'2024-05-01T10:00:00+02:00'"]),
    ] {
        for filter in filters.iter().chain([&form]) {
            assert_eq!(parse(filter).unwrap().to_string(), form, "{filter}");
        }
    }
}

#[test]
fn faults_name_the_column_and_what_would_be_right() {
    let shop = shop();
    for (filter, column, said) in [
        ("", 1, "the name of an attribute"),
        ("   ", 4, "the name of an attribute"),
        ("price", 6, "expected `=`"),
        ("price 80", 7, "a value follows an operator"),
        ("price 10 < 20", 10, "price 10 TO 20"),
        ("price = 10 TO 20", 12, "a range has no sign"),
        ("10 < price < 20", 12, "need AND between"),
        ("price <", 8, "expected a value"),
        ("price == 80", 8, "write `=`"),
        ("price <> 80", 8, "write `!=`"),
        ("price => 80", 8, "`>=`"),
        ("! price = 1", 2, "NOT brand = acme"),
        ("brand:acme", 11, "a value follows `=`"),
        ("brand = big foot", 13, "needs quotes"),
        ("brand = acme, foot", 13, "IN [a, b]"),
        ("brand = acme && year = 1", 14, "write AND"),
        ("brand = acme || year = 1", 14, "write OR"),
        ("brand = not", 9, "a keyword needs quotes"),
        ("brand = null", 9, "IS NULL"),
        ("brand = [acme]", 9, "a list follows IN"),
        ("brand IN acme", 10, "values in brackets"),
        ("brand IN [acme", 15, "`,` or `]`"),
        ("brand IN [acme, ]", 17, "expected a value"),
        ("brand IN [acme foot]", 16, "`,` or `]`"),
        ("brand IS 5", 10, "`NULL` or `NOT NULL`"),
        ("brand STARTS acme", 14, "`WITH`"),
        ("brand NOT = acme", 11, "`IN`, `EXISTS`"),
        ("'brand' = acme", 1, "names have no quotes"),
        ("brand = 'acme", 14, "a closing quote"),
        ("brand = 'a\\nb'", 12, "after a backslash"),
        ("brand = don't", 12, "no quote inside a word"),
        ("brand = 'a'b", 12, "a space after the closing quote"),
        ("(brand = acme", 14, "`AND`, `OR` or `)`"),
        ("(brand = acme]", 14, "`AND`, `OR` or `)`"),
        ("brand = acme)", 13, "`AND`, `OR` or the end"),
        ("AND brand = acme", 1, "the name of an attribute"),
        ("brand = größe ü", 15, "needs quotes"),
        ("brand = \u{7}", 9, "control character"),
        ("prise < 80", 1, "no attribute `prise`; did you mean `price`? It has `brand`, `made`"),
        ("year = 1 AND (xyz EXISTS)", 15, "no attribute `xyz`; it has"),
        ("keys = w1", 1, "did you mean `key`?"),
        ("price = cheap", 9, "is a number, so it is compared with a number, and not with `cheap`"),
        ("price = NaN", 9, "is a number"),
        ("year IN [1, two]", 13, "is an integer"),
        ("made > 2026-05-01", 8, "as in RFC 3339"),
        ("sold = yes", 8, "`true` or `false`"),
        ("sold < true", 6, "and not `<`"),
        ("brand > acme", 7, "is a text, which takes `=`, `!=`, `IN`, `STARTS WITH`"),
        ("tags a TO b", 6, "is a list of texts"),
        ("year STARTS WITH 20", 6, "and not `STARTS WITH`"),
        ("key EXISTS", 5, "is a row's word"),
        ("year = x AND brand > acme", 8, "is an integer"),
        ("brand > acme AND year = x", 7, "is a text"),
    ] {
        let error = found(&shop, filter).expect_err(filter);
        assert_eq!(error.column, column, "{filter}: {error}");
        assert!(error.to_string().contains(said), "{filter}: {error}");
    }
}

#[test]
fn the_caret_is_below_the_fault_however_long_the_filter_is() {
    for before in [0, 10, 100] {
        let filter = format!("{}price < cheap AND {}", " \n".repeat(before), "a".repeat(100));
        let column = 2 * before + 9;
        let fault = FilterFault::TooMany { of: "tests", limit: 1 };
        let caret = FilterError { column, fault }.caret(&filter);
        let (shown, below) = caret.split_once('\n').unwrap();
        let at = below.chars().count() - 1;
        assert!(shown.chars().skip(at).collect::<String>().starts_with("cheap AND"), "{caret}");
        assert!(shown.ends_with('…') && shown.starts_with('…') == (before == 100), "{caret}");
    }
    let end = parse("a = ").unwrap_err();
    assert_eq!(end.caret("a = "), "a = \n    ^");
}

#[test]
fn length_nesting_tests_and_values_are_bounded() {
    let said = |filter: &str| parse(filter).unwrap_err().to_string();
    let nested = |depth| "(".repeat(depth) + "a = 1" + &")".repeat(depth);
    assert!(parse(&nested(MAX_NESTING)).is_ok());
    assert!(said(&nested(MAX_NESTING + 1)).contains("column 65: 64 open parentheses"));
    let tests = |count: usize| (0..count).map(|n| format!("a = {n}")).collect::<Vec<_>>();
    assert_eq!(parse(&tests(MAX_TESTS).join(" OR ")).unwrap().tests(), MAX_TESTS);
    assert!(said(&tests(MAX_TESTS + 1).join(" OR ")).contains("256 tests are the maximum"));
    let list = |count: usize| format!("a IN [{}]", vec!["x"; count].join(","));
    assert!(parse(&list(MAX_VALUES)).is_ok());
    assert!(said(&list(MAX_VALUES + 1)).contains("10000 values are the maximum"));
    let long = format!("a = {}", "ü".repeat(MAX_LENGTH / 2));
    assert!(said(&long).contains("65536 bytes are the maximum"));
    assert!(parse(&long).unwrap_err().column <= long.chars().count() + 1);
    assert!(parse(&"NOT ".repeat(16_000)).is_err(), "and the stack holds");
    assert_eq!(parse(&("NOT ".repeat(16_000) + "a = 1")).unwrap().to_string(), "a = 1");
}
