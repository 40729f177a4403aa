//! `kindred attributes`: the attributes of a model, as a table or as JSON.

use indicatif::HumanCount;
use kindred::ModelStore;
use kindred::attributes::{AttributeDescription, ColumnSummary, Frequent, Value};
use serde::Serialize;
use server::escape::escaped;
use unicode_width::UnicodeWidthStr as _;

use super::progress::counted;
use super::{CommandError, heading, model_of};
use crate::arguments::AttributesArguments;

/// The attributes of a model. JSON has these names, in this order.
#[derive(Serialize)]
struct AllAttributes<'a> {
    model: &'a str,
    version: &'a str,
    rows: usize,
    attributes: &'a [ColumnSummary<'a>],
}

/// Prints the attributes of a model.
pub(super) fn attributes(arguments: &AttributesArguments) -> Result<(), CommandError> {
    let model = model_of(&arguments.model.arguments())?.model;
    let columns = model.attributes().map(|all| all.columns()).unwrap_or_default();
    let summaries: Vec<ColumnSummary<'_>> =
        columns.iter().map(|column| column.summary(arguments.values)).collect();
    if arguments.json {
        let all = AllAttributes {
            model: model.name(),
            version: model.version(),
            rows: model.rows(),
            attributes: &summaries,
        };
        return say!("{}", serde_json::to_string(&all).expect("texts and numbers become JSON"));
    }
    say!("{}", first_line(&model, summaries.len()))?;
    for line in table(&summaries) {
        say!("{line}")?;
    }
    Ok(())
}

fn first_line(model: &ModelStore, attributes: usize) -> String {
    let heading = heading(None, model.name(), model.version());
    let rows = counted(model.rows() as u64, "row");
    match attributes {
        0 => format!("{heading}: {rows}, no attributes; `kindred prepare --attributes` adds them"),
        _ => format!("{heading}: {rows}, {}", counted(attributes as u64, "attribute")),
    }
}

/// The lines of the table, with its head, if there are any attributes.
fn table(summaries: &[ColumnSummary<'_>]) -> Vec<String> {
    if summaries.is_empty() {
        return Vec::new();
    }
    let head = ["name", "type", "distinct", "missing", "values"].map(str::to_owned);
    let lines: Vec<[String; 5]> =
        std::iter::once(head).chain(summaries.iter().map(cells)).collect();
    let wide = |cell: usize| lines.iter().map(|line| line[cell].width()).max().unwrap_or_default();
    let widths = [0, 1, 2, 3].map(wide);
    let line = |[name, kind, distinct, missing, values]: &[String; 5]| {
        let [name_wide, kind_wide, distinct_wide, missing_wide] = widths;
        // A name may be wider than it has characters.
        let spaces = " ".repeat(name_wide - name.width());
        let line = format!(
            "{name}{spaces}  {kind:kind_wide$}  {distinct:>distinct_wide$}  \
             {missing:>missing_wide$}  {values}"
        );
        line.trim_end().to_owned()
    };
    lines.iter().map(line).collect()
}

fn cells(summary: &ColumnSummary<'_>) -> [String; 5] {
    let AttributeDescription { name, kind, distinct, missing } = summary.description;
    let count = |number: usize| HumanCount(number as u64).to_string();
    let values = match (&summary.smallest, &summary.largest) {
        (Some(smallest), Some(largest)) if smallest == largest => shown(smallest),
        (Some(smallest), Some(largest)) => format!("{} to {}", shown(smallest), shown(largest)),
        _ => frequent(&summary.frequent, *distinct),
    };
    [escaped(name), kind.to_string(), count(*distinct), count(*missing), values]
}

/// The most frequent values, each with its number of rows.
fn frequent(values: &[Frequent<'_>], distinct: usize) -> String {
    let one =
        |one: &Frequent<'_>| format!("{} ({})", shown(&one.value), HumanCount(one.rows as u64));
    let mut texts: Vec<String> = values.iter().map(one).collect();
    if !values.is_empty() && distinct > values.len() {
        texts.push("…".to_owned());
    }
    texts.join(", ")
}

/// A value, cut if it is long.
fn shown(value: &Value<'_>) -> String {
    /// Characters that are shown.
    const MOST: usize = 32;
    let text = escaped(&value.to_string());
    match text.chars().count() > MOST {
        true => text.chars().take(MOST - 1).chain(['…']).collect(),
        false => text,
    }
}

#[cfg(test)]
mod tests {
    use kindred::attributes::{AttributeType, Attributes, ColumnBuilder};

    use super::*;

    #[test]
    fn a_table_has_ranges_and_frequent_values() {
        let mut price = ColumnBuilder::new("price", AttributeType::Number);
        let mut brand = ColumnBuilder::new("marke", AttributeType::Text);
        let mut note = ColumnBuilder::new("note", AttributeType::Text);
        for (number, text) in [(Some(9.5), "acme"), (None, "bolt"), (Some(120.0), "acme")] {
            price.push(number.map(Value::Number));
            brand.push(Some(Value::Text(text.into())));
            note.push(None);
        }
        let attributes = Attributes::from_columns(vec![price, brand, note]).unwrap();
        let summaries: Vec<_> =
            attributes.columns().iter().map(|column| column.summary(1)).collect();
        assert_eq!(
            table(&summaries),
            [
                "name   type    distinct  missing  values",
                "price  number         2        1  9.5 to 120.0",
                "marke  text           2        0  acme (2), …",
                "note   text           0        3",
            ]
        );
        assert_eq!(table(&[]), [""; 0]);
        let long = Value::Text("a\n".repeat(40).into());
        assert_eq!(shown(&long).chars().count(), 32);
    }
}
