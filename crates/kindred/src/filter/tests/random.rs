//! Random filters over random attributes, against a plain loop over the rows.

use std::cmp::Ordering;

use proptest::prelude::*;

use super::{Item, found, model};
use crate::filter::{Place, Written, check, parse};

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
struct Leaf {
    name: &'static str,
    how: How,
    values: Vec<&'static str>,
    is_negated: bool,
    /// Chooses between ways to write it.
    style: u8,
}

#[derive(Debug, Clone)]
enum Source {
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
const MOMENTS: [&str; 3] = ["1970-01-01T00:00:00Z", "1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"];

fn leaves() -> impl Strategy<Value = Leaf> {
    use How::{Equal, Exists, Greater, GreaterOrEqual, In, Less, LessOrEqual, Range, StartsWith};
    const ALL: [How; 8] = [Equal, Less, LessOrEqual, Greater, GreaterOrEqual, Range, In, Exists];
    let kinds: [(&'static str, &'static [How], &'static [&'static str]); 7] = [
        ("year", &ALL, &NUMBERS),
        ("price", &ALL, &NUMBERS),
        ("made", &ALL, &MOMENTS),
        ("sold", &[Equal, In, Exists], &["true", "False"]),
        ("brand", &[Equal, In, Exists, StartsWith], &TEXTS),
        ("tags", &[Equal, In, Exists, StartsWith], &TEXTS),
        ("key", &[Equal, In], &["w0", "w1", "w70", "w9999", "AND"]),
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
            let values = values[..count].iter().map(|value| domain[value.index(domain.len())]);
            Leaf { name, how, values: values.collect(), is_negated, style }
        })
}

fn sources() -> impl Strategy<Value = Source> {
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
            _ => Written { text: text.to_owned(), place: Place(0) }.to_string(),
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
    fn meets(&self, row: usize, item: &Item) -> bool {
        let by_order = |order: &dyn Fn(&str) -> Ordering| {
            let is = |value: &str, wanted: &[Ordering]| wanted.contains(&order(value));
            use Ordering::{Equal, Greater, Less};
            match self.how {
                How::Equal | How::In => self.values.iter().any(|value| is(value, &[Equal])),
                How::Less => is(self.values[0], &[Less]),
                How::LessOrEqual => is(self.values[0], &[Less, Equal]),
                How::Greater => is(self.values[0], &[Greater]),
                How::GreaterOrEqual => is(self.values[0], &[Greater, Equal]),
                How::Range => {
                    is(self.values[0], &[Greater, Equal]) && is(self.values[1], &[Less, Equal])
                }
                How::Exists => true,
                How::StartsWith => unreachable!("numbers have no beginning"),
            }
        };
        let by_text = |own: &str| match self.how {
            How::StartsWith => own.starts_with(self.values[0]),
            How::Exists => true,
            _ => self.values.contains(&own),
        };
        let is_met = match self.name {
            "year" => item.year.is_some_and(|own| by_order(&|text| integer_order(own, text))),
            "price" => item.price.is_some_and(|own| by_order(&|text| number_order(own, text))),
            "made" => item.made.is_some_and(|own| {
                by_order(&|text| own.cmp(&(text[17..19].parse::<i64>().unwrap() * 1_000_000)))
            }),
            "sold" => item.sold.is_some_and(|own| {
                let truth = |text: &&str| text.to_lowercase() == own.to_string();
                self.how == How::Exists || self.values.iter().any(truth)
            }),
            "brand" => item.brand.as_ref().is_some_and(|own| by_text(own)),
            "tags" if self.how == How::Exists => item.tags.is_some(),
            "tags" => item.tags.iter().flatten().any(|own| by_text(own)),
            _ => by_text(&format!("w{row}")),
        };
        is_met != self.is_negated
    }
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
    fn written(&self) -> String {
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

    fn meets(&self, row: usize, item: &Item) -> bool {
        match self {
            Self::Leaf(leaf) => leaf.meets(row, item),
            Self::Not(inner) => !inner.meets(row, item),
            Self::And(a, b) => a.meets(row, item) && b.meets(row, item),
            Self::Or(a, b) => a.meets(row, item) || b.meets(row, item),
        }
    }
}

fn items() -> impl Strategy<Value = Vec<Item>> {
    let years = [i64::MIN, -1, 0, 1, 2, 9_007_199_254_740_993, i64::MAX];
    let prices = [-1.5, 0.0, 0.1, 1.0, 1.5, 9_007_199_254_740_992.0, 9_007_199_254_740_994.0, 1e30];
    let text = || prop::sample::select(TEXTS.to_vec()).prop_map(str::to_owned);
    let item = (
        prop::option::of(prop::sample::select(years.to_vec())),
        prop::option::of(prop::sample::select(prices.to_vec())),
        prop::option::of(any::<bool>()),
        prop::option::of((0i64..3).prop_map(|seconds| seconds * 1_000_000)),
        prop::option::of(text()),
        prop::option::of(prop::collection::vec(text(), 0..4)),
    )
        .prop_map(|(year, price, sold, made, brand, tags)| Item {
            year,
            price,
            sold,
            made,
            brand,
            tags,
        });
    prop::collection::vec(item, 1..150)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]
    #[test]
    fn random_filters_find_what_a_plain_loop_finds(source in sources(), items in items()) {
        let filter = source.written();
        let model = model(&items);
        let expression = parse(&filter).unwrap();
        let again = parse(&expression.to_string()).unwrap();
        prop_assert_eq!(&again, &expression);
        prop_assert_eq!(again.to_string(), expression.to_string());
        let meets = |row: &usize| source.meets(*row, &items[*row]);
        let expected: Vec<u32> =
            (0..items.len()).filter(meets).map(|row| row as u32).collect();
        prop_assert_eq!(found(&model, &filter).unwrap(), &expected[..], "{}", filter);
        // Word by word.
        let plan = check(&expression, &model).unwrap();
        prop_assert_eq!(plan.rows(), items.len());
        let mut words = vec![0; items.len().div_ceil(64)];
        for (index, word) in words.iter_mut().enumerate() {
            plan.fill(index, std::slice::from_mut(word));
        }
        let has = |row: &usize| words[row / 64] >> (row % 64) & 1 == 1;
        let by_words: Vec<u32> = (0..items.len()).filter(has).map(|row| row as u32).collect();
        prop_assert_eq!(by_words, expected);
    }

    #[test]
    fn no_text_panics_and_every_fault_is_within_the_text(
        text in r#"([a-c=<>!()\[\],"'\\ 0-9.\n]|AND|or|NOT| IN |TO|is|null|starts with|é){0,30}"#,
    ) {
        match parse(&text) {
            Ok(filter) => prop_assert_eq!(parse(&filter.to_string()), Ok(filter)),
            Err(error) => {
                prop_assert!((1..=text.chars().count() + 1).contains(&error.column), "{}", error);
                prop_assert!(error.caret(&text).ends_with('^'));
            }
        }
    }
}
