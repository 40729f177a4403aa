//! Random filters over random attributes, and which rows meet one, by a plain look at values.
//!
//! Knows nothing of the code that it judges, so that `tests/exactness` has it as well.

use std::cmp::Ordering;

use model_store::attributes::{AttributeType, Attributes, ColumnBuilder, Value};
use proptest::collection::SizeRange;
use proptest::prelude::*;

/// The attributes of a row.
#[derive(Debug, Clone, Default)]
pub(crate) struct Item {
    pub(crate) year: Option<i64>,
    pub(crate) price: Option<f64>,
    pub(crate) sold: Option<bool>,
    pub(crate) made: Option<i64>,
    pub(crate) brand: Option<String>,
    pub(crate) tags: Option<Vec<String>>,
    /// One of very many values.
    pub(crate) serial: Option<i64>,
}

/// The attributes of these rows.
pub(crate) fn attributes(items: &[Item]) -> Attributes {
    let column = |name, kind, value: fn(&Item) -> Option<Value<'_>>| {
        let mut column = ColumnBuilder::new(name, kind);
        items.iter().for_each(|item| column.push(value(item)));
        column
    };
    let columns = vec![
        column("year", AttributeType::Integer, |item| item.year.map(Value::Integer)),
        column("price", AttributeType::Number, |item| item.price.map(Value::Number)),
        column("sold", AttributeType::Boolean, |item| item.sold.map(Value::Boolean)),
        column("made", AttributeType::DateTime, |item| item.made.map(Value::DateTime)),
        column("brand", AttributeType::Text, |item| {
            Some(Value::Text(item.brand.as_deref()?.into()))
        }),
        column("tags", AttributeType::List, |item| {
            Some(Value::List(item.tags.as_ref()?.iter().map(|tag| (&**tag).into()).collect()))
        }),
        column("serial", AttributeType::Integer, |item| item.serial.map(Value::Integer)),
    ];
    Attributes::from_columns(columns).unwrap()
}

/// How a test compares.
#[derive(Debug, Clone, Copy, PartialEq)]
enum How {
    Equal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Range,
    In,
    Exists,
    StartsWith,
}

#[derive(Debug, Clone)]
pub(crate) struct Leaf {
    name: &'static str,
    how: How,
    values: Vec<String>,
    is_negated: bool,
    /// Chooses between ways to write it.
    style: u8,
}

/// A filter.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    Leaf(Leaf),
    Not(Box<Source>),
    And(Box<Source>, Box<Source>),
    Or(Box<Source>, Box<Source>),
}

const TEXTS: [&str; 8] = ["acme", "acme ltd", "AND", "a\"b", "it's", "", "größe", "back\\slash"];
const NUMBERS: [&str; 15] = [
    "0",
    "1",
    "-1",
    "1.5",
    "0.1",
    "-0.5",
    "2e0",
    "9007199254740993.0",
    "9007199254740992.5",
    "9007199254740993",
    "9007199254740992",
    "1e30",
    "-1e30",
    "9223372036854775807",
    "9223372036854775808",
];
/// Serial numbers are below this.
const SERIALS: usize = 3000;
const MOMENTS: [&str; 3] = ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"];

fn leaves() -> impl Strategy<Value = Leaf> {
    use How::{Equal, Exists, Greater, GreaterOrEqual, In, Less, LessOrEqual, Range, StartsWith};
    const ALL: [How; 8] = [Equal, Less, LessOrEqual, Greater, GreaterOrEqual, Range, In, Exists];
    let kinds: [(&'static str, &'static [How], &'static [&'static str]); 8] = [
        ("year", &ALL, &NUMBERS),
        ("price", &ALL, &NUMBERS),
        ("made", &ALL, &MOMENTS),
        ("sold", &[Equal, In, Exists], &["true", "False"]),
        ("brand", &[Equal, In, Exists, StartsWith], &TEXTS),
        ("tags", &[Equal, In, Exists, StartsWith], &TEXTS),
        ("key", &[Equal, In], &["w0", "w1", "W1", "w70", "w9999", "AND"]),
        ("serial", &ALL, &[]),
    ];
    let values = prop::collection::vec(any::<prop::sample::Index>(), 13);
    (0..kinds.len(), any::<prop::sample::Index>(), values, 0usize..14, any::<bool>(), any::<u8>())
        .prop_map(move |(kind, how, values, count, is_negated, style)| {
            let (name, hows, domain) = kinds[kind];
            let how = hows[how.index(hows.len())];
            let count = match how {
                How::In => count.min(values.len()),
                How::Range => 2,
                How::Exists => 0,
                _ => 1,
            };
            let values = values[..count].iter().map(|value| match domain {
                [] => (value.index(SERIALS + 20) as i64 - 10).to_string(),
                domain => domain[value.index(domain.len())].to_owned(),
            });
            Leaf { name, how, values: values.collect(), is_negated, style }
        })
}

/// Filters at random.
pub(crate) fn sources() -> impl Strategy<Value = Source> {
    leaves().prop_map(Source::Leaf).prop_recursive(4, 24, 2, |inner| {
        let two = || (inner.clone().prop_map(Box::new), inner.clone().prop_map(Box::new));
        prop_oneof![
            inner.clone().prop_map(|source| Source::Not(Box::new(source))),
            two().prop_map(|(a, b)| Source::And(a, b)),
            two().prop_map(|(a, b)| Source::Or(a, b)),
        ]
    })
}

impl Leaf {
    fn written(&self) -> String {
        let Self { name, how, style, is_negated, .. } = self;
        let upper = |keyword: &str| match style & 1 {
            0 => keyword.to_owned(),
            _ => keyword.to_lowercase(),
        };
        let quoted = |quote: char, text: &str| {
            let escaped = text.replace('\\', "\\\\").replace(quote, &format!("\\{quote}"));
            format!("{quote}{escaped}{quote}")
        };
        let value = |text: &str| match style >> 1 & 3 {
            0 => quoted('"', text),
            1 => quoted('\'', text),
            _ if is_bare(text) => text.to_owned(),
            _ => quoted('"', text),
        };
        let values: Vec<String> = self.values.iter().map(|text| value(text)).collect();
        let sign = match how {
            How::Equal => "=",
            How::Less => "<",
            How::LessOrEqual => "<=",
            How::Greater => ">",
            How::GreaterOrEqual => ">=",
            _ => "",
        };
        let (not, inner_not) = match (*is_negated, style >> 3 & 1 == 1) {
            (false, _) => (String::new(), String::new()),
            (true, false) => (upper("NOT") + " ", String::new()),
            (true, true) => (String::new(), upper("NOT") + " "),
        };
        match how {
            How::Equal if !inner_not.is_empty() => format!("{name}!={}", values[0]),
            How::Range => {
                let not = if *is_negated { upper("NOT") + " " } else { String::new() };
                format!("{not}{name} {} {} {}", values[0], upper("TO"), values[1])
            }
            How::In => format!("{not}{name} {inner_not}{}[{}]", upper("IN"), values.join(" , ")),
            How::Exists if style >> 4 & 1 == 1 => {
                let null = upper(if *is_negated { "IS NULL" } else { "IS NOT NULL" });
                format!("{name} {null}")
            }
            How::Exists => format!("{not}{name} {inner_not}{}", upper("EXISTS")),
            How::StartsWith => {
                format!("{not}{name} {inner_not}{} {}", upper("STARTS WITH"), values[0])
            }
            _ => {
                let not = if *is_negated { upper("NOT") + " " } else { String::new() };
                format!("{not}{name} {sign} {}", values[0])
            }
        }
    }

    /// Whether a row meets it: each kind of value by itself, without ranges.
    fn meets(&self, word: &str, item: &Item) -> bool {
        let by_order = |order: &dyn Fn(&str) -> Ordering| {
            let is = |value: &str, wanted: &[Ordering]| wanted.contains(&order(value));
            use Ordering::{Equal, Greater, Less};
            match self.how {
                How::Equal | How::In => self.values.iter().any(|value| is(value, &[Equal])),
                How::Less => is(&self.values[0], &[Less]),
                How::LessOrEqual => is(&self.values[0], &[Less, Equal]),
                How::Greater => is(&self.values[0], &[Greater]),
                How::GreaterOrEqual => is(&self.values[0], &[Greater, Equal]),
                How::Range => {
                    is(&self.values[0], &[Greater, Equal]) && is(&self.values[1], &[Less, Equal])
                }
                How::Exists => true,
                How::StartsWith => unreachable!("numbers have no beginning"),
            }
        };
        let by_text = |own: &str| match self.how {
            How::StartsWith => own.starts_with(&self.values[0]),
            How::Exists => true,
            _ => self.values.iter().any(|value| value == own),
        };
        let is_met = match self.name {
            "year" => item.year.is_some_and(|own| by_order(&|text| integer_order(own, text))),
            "serial" => item.serial.is_some_and(|own| by_order(&|text| integer_order(own, text))),
            "price" => item.price.is_some_and(|own| by_order(&|text| number_order(own, text))),
            "made" => item.made.is_some_and(|own| {
                by_order(&|text| own.cmp(&(text[17..19].parse::<i64>().unwrap() * 1_000_000)))
            }),
            "sold" => item.sold.is_some_and(|own| {
                let truth = |text: &String| text.to_lowercase() == own.to_string();
                self.how == How::Exists || self.values.iter().any(truth)
            }),
            "brand" => item.brand.as_ref().is_some_and(|own| by_text(own)),
            "tags" if self.how == How::Exists => item.tags.is_some(),
            "tags" => item.tags.iter().flatten().any(|own| by_text(own)),
            _ => by_text(word),
        };
        is_met != self.is_negated
    }
}

/// Whether a value needs no quotes: only these that the lists above have.
fn is_bare(text: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || "-+.:\\".contains(c);
    text != "AND" && !text.is_empty() && text.chars().all(is_plain)
}

fn integer_order(own: i64, text: &str) -> Ordering {
    let own = i128::from(own);
    if let Ok(number) = text.parse::<i128>() {
        return own.cmp(&number);
    }
    if let Some((whole, fraction)) = text.split_once('.') {
        let of_fraction = match (fraction.trim_matches('0').is_empty(), text.starts_with('-')) {
            (true, _) => Ordering::Equal,
            (false, false) => Ordering::Less,
            (false, true) => Ordering::Greater,
        };
        return own.cmp(&whole.parse().unwrap()).then(of_fraction);
    }
    let number: f64 = text.parse().unwrap();
    match number.abs() > 1e25 {
        true => 0.0f64.partial_cmp(&number).unwrap(),
        false => own.cmp(&(number as i128)),
    }
}

fn number_order(own: f64, text: &str) -> Ordering {
    match text.parse::<i128>() {
        Ok(number) if own.abs() < 1e25 => {
            (own.trunc() as i128).cmp(&number).then(own.fract().partial_cmp(&0.0).unwrap())
        }
        Ok(_) => own.partial_cmp(&0.0).unwrap(),
        Err(_) => own.partial_cmp(&text.parse().unwrap()).unwrap(),
    }
}

impl Source {
    /// As it is written.
    pub(crate) fn written(&self) -> String {
        let nested = |source: &Self| match source {
            Self::Leaf(leaf) => leaf.written(),
            other => format!("({})", other.written()),
        };
        match self {
            Self::Leaf(leaf) => leaf.written(),
            Self::Not(inner) => format!("NOT({})", inner.written()),
            Self::And(a, b) => format!("{} And {}", nested(a), nested(b)),
            Self::Or(a, b) => format!("{}\tOR {}", nested(a), nested(b)),
        }
    }

    /// Whether the row with this word and these attributes meets it.
    pub(crate) fn meets(&self, word: &str, item: &Item) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.meets(word, item),
            Self::Not(inner) => !inner.meets(word, item),
            Self::And(a, b) => a.meets(word, item) && b.meets(word, item),
            Self::Or(a, b) => a.meets(word, item) || b.meets(word, item),
        }
    }
}

/// Attributes at random; each value may be missing.
pub(crate) fn items(rows: impl Into<SizeRange>) -> impl Strategy<Value = Vec<Item>> {
    let years = [i64::MIN, -1, 0, 1, 2, 9_007_199_254_740_993, i64::MAX];
    let prices =
        [-1.5, -0.0, 0.0, 0.1, 1.0, 1.5, 9_007_199_254_740_992.0, 9_007_199_254_740_994.0, 1e30];
    let text = || prop::sample::select(TEXTS.to_vec()).prop_map(str::to_owned);
    let item = (
        prop::option::of(prop::sample::select(years.to_vec())),
        prop::option::of(prop::sample::select(prices.to_vec())),
        prop::option::of(any::<bool>()),
        prop::option::of((0i64..3).prop_map(|seconds| seconds * 1_000_000)),
        prop::option::of(text()),
        prop::option::of(prop::collection::vec(text(), 0..4)),
        prop::option::of((0..SERIALS).prop_map(|serial| serial as i64)),
    )
        .prop_map(|(year, price, sold, made, brand, tags, serial)| Item {
            year,
            price,
            sold,
            made,
            brand,
            tags,
            serial,
        });
    prop::collection::vec(item, rows)
}
