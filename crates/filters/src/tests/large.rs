//! Filters over more rows than a block and than a sample, against a plain loop over the rows.

use std::cell::Cell;
use std::collections::HashSet;

use proptest::prelude::*;

use super::{Item, found, model};
use crate::{check, parse};

/// More than two blocks, and not whole words.
const ROWS: usize = 2 * 512 * 64 + 4321;

/// A number that looks random, below another.
fn mixed(row: usize, salt: u64, below: u64) -> u64 {
    let mixed = (row as u64 ^ (salt << 40)).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    let mixed = (mixed ^ (mixed >> 29)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    ((u128::from(mixed ^ (mixed >> 32)) * u128::from(below)) >> 64) as u64
}

/// An index that is frequent if it is small.
fn skewed(row: usize, salt: u64, below: u64) -> u64 {
    let uniform = mixed(row, salt, 1 << 30) as f64 / (1u64 << 30) as f64;
    ((below as f64).powf(uniform) - 1.0) as u64
}

/// Attributes with frequent and rare values, many more than there are bins.
fn items() -> Vec<Item> {
    let item = |row: usize| Item {
        year: (row % 7 != 3).then(|| match mixed(row, 1, 3) {
            0 => 7,
            1 => mixed(row, 2, 5000) as i64 - 2500,
            _ => mixed(row, 2, u64::MAX) as i64,
        }),
        price: (row % 64 != 63).then(|| mixed(row, 3, 100_000) as f64 / 100.0 - 50.0),
        sold: (!row.is_multiple_of(3)).then_some(row.is_multiple_of(2)),
        made: Some(mixed(row, 4, 4_000_000_000) as i64 * 1000),
        brand: (row % 1000 != 5).then(|| format!("b{}", skewed(row, 5, 3000))),
        tags: (!row.is_multiple_of(11)).then(|| {
            (0..mixed(row, 6, 4)).map(|n| format!("t{}", skewed(row, 7 + n, 900))).collect()
        }),
        serial: None,
    };
    (0..ROWS).map(item).collect()
}

type Meets = Box<dyn Fn(usize, &Item) -> bool>;

/// A test of some attribute, and whether a row meets it. `at` chooses the values.
fn test(kind: u64, at: u64) -> (String, Meets) {
    let n = move |salt: u64, below: u64| mixed(at as usize, 50 + salt, below);
    let number = move |salt: u64| n(salt, 100_000) as f64 / 100.0 - 50.0;
    let texts = |letter: char, count: u64, of: u64| -> Vec<String> {
        (0..count).map(|i| format!("{letter}{}", mixed(i as usize, at, of))).collect()
    };
    let year = move |item: &Item, meets: &dyn Fn(i64) -> bool| item.year.is_some_and(meets);
    match kind {
        0 => {
            let from = n(0, 6000) as i64 - 3000;
            (format!("year > {from}"), Box::new(move |_, item| year(item, &|own| own > from)))
        }
        1 => {
            let to = n(0, 6000) as i64 - 3000;
            let text = format!("year -3000 TO {to}");
            (text, Box::new(move |_, item| year(item, &|own| (-3000..=to).contains(&own))))
        }
        2 => {
            let wanted = if at.is_multiple_of(3) { 7 } else { n(0, 6000) as i64 - 3000 };
            (format!("year = {wanted}"), Box::new(move |_, item| item.year == Some(wanted)))
        }
        3 => {
            let count = if at.is_multiple_of(2) { 5 } else { 500 };
            let wanted: Vec<i64> = (0..count).map(|i| n(i, 6000) as i64 - 3000).collect();
            let list: Vec<String> = wanted.iter().map(i64::to_string).collect();
            let text = format!("year IN [{}]", list.join(","));
            let wanted: HashSet<i64> = wanted.into_iter().collect();
            (text, Box::new(move |_, item| year(item, &|own| wanted.contains(&own))))
        }
        4 => {
            let to = number(0);
            (format!("price < {to}"), Box::new(move |_, item| item.price.is_some_and(|x| x < to)))
        }
        5 => {
            let (from, to) = (number(0).min(number(1)), number(0).max(number(1)));
            let text = format!("price {from} TO {to}");
            (text, Box::new(move |_, item| item.price.is_some_and(|x| (from..=to).contains(&x))))
        }
        6 => {
            let count = if at.is_multiple_of(2) { 3 } else { 300 };
            let wanted: Vec<f64> = (0..count).map(number).collect();
            let list: Vec<String> = wanted.iter().map(f64::to_string).collect();
            let text = format!("price IN [{}]", list.join(","));
            let wanted: HashSet<u64> = wanted.into_iter().map(f64::to_bits).collect();
            let has = move |x: f64| wanted.contains(&x.to_bits());
            (text, Box::new(move |_, item| item.price.is_some_and(&has)))
        }
        7 => {
            let wanted = at.is_multiple_of(2);
            (format!("sold = {wanted}"), Box::new(move |_, item| item.sold == Some(wanted)))
        }
        8 => {
            let seconds = n(0, 4000);
            let to = format!(
                "1970-01-01T{:02}:{:02}:{:02}Z",
                seconds / 3600,
                seconds / 60 % 60,
                seconds % 60
            );
            let to_micros = seconds as i64 * 1_000_000;
            (format!("made <= {to}"), Box::new(move |_, item| item.made <= Some(to_micros)))
        }
        9 | 10 => {
            let count = [1, 1, 3, 40, 2000][at as usize % 5];
            let wanted = texts('b', count, if at.is_multiple_of(2) { 20 } else { 4000 });
            let text = format!("brand IN [{}]", wanted.join(","));
            let wanted: HashSet<String> = wanted.into_iter().collect();
            let has = move |own: &String| wanted.contains(own);
            (text, Box::new(move |_, item| item.brand.as_ref().is_some_and(&has)))
        }
        11 => {
            let prefix = format!("b{}", n(0, 40));
            let text = format!("brand STARTS WITH {prefix}");
            let has = move |own: &String| own.starts_with(&prefix);
            (text, Box::new(move |_, item| item.brand.as_ref().is_some_and(&has)))
        }
        12 | 13 => {
            let count = [1, 2, 60, 500, 1800][at as usize % 5];
            let wanted = texts('t', count, if at.is_multiple_of(2) { 20 } else { 1000 });
            let text = format!("tags IN [{}]", wanted.join(","));
            let wanted: HashSet<String> = wanted.into_iter().collect();
            let has = move |own: &String| wanted.contains(own);
            (text, Box::new(move |_, item| item.tags.iter().flatten().any(&has)))
        }
        14 => {
            let prefix = format!("t{}", ["", "1", "12", "123"][at as usize % 4]);
            let text = format!("tags STARTS WITH {prefix}");
            let has = move |own: &String| own.starts_with(&prefix);
            (text, Box::new(move |_, item| item.tags.iter().flatten().any(&has)))
        }
        15 => ("tags EXISTS".to_owned(), Box::new(|_, item| item.tags.is_some())),
        _ => {
            let rows: Vec<usize> = (0..20).map(|i| n(i, ROWS as u64 + 9) as usize).collect();
            let list: Vec<String> = rows.iter().map(|row| format!("w{row}")).collect();
            let text = format!("key IN [{}]", list.join(","));
            (text, Box::new(move |row, _| rows.contains(&row)))
        }
    }
}

#[test]
fn filters_of_many_rows_find_what_a_plain_loop_finds() {
    let items = items();
    let model = model(&items);
    let check = |filter: &str, meets: &dyn Fn(usize, &Item) -> bool| {
        let expected = (0..ROWS).filter(|&row| meets(row, &items[row])).map(|row| row as u32);
        let expected: Vec<u32> = expected.collect();
        assert!(found(&model, filter).unwrap() == expected, "{filter}");
        expected.len()
    };
    let mut with_some = 0;
    for kind in 0..17 {
        for at in 0..10 {
            let (filter, meets) = test(kind, 1000 * kind + at);
            with_some += usize::from(check(&filter, &meets) > 0);
            check(&format!("NOT ({filter})"), &|row, item| !meets(row, item));
        }
    }
    assert!(with_some > 130, "{with_some} of 170 have rows");
    for at in 0..60 {
        let [a, b, c] = [0, 1, 2].map(|n| test(mixed(at, n, 17), at as u64 * 3 + n));
        let (first, second) =
            [("AND", "OR"), ("OR", "AND"), ("AND NOT", "AND"), ("OR NOT", "OR")][at % 4];
        let filter = format!("({} {first} {}) {second} {}", a.0, b.0, c.0);
        check(&filter, &|row, item| {
            let [a, b, c] = [&a.1, &b.1, &c.1].map(|meets| meets(row, item));
            match at % 4 {
                0 => a && b || c,
                1 => (a || b) && c,
                2 => a && !b && c,
                _ => a || !b || c,
            }
        });
    }
}

#[test]
fn a_plan_ends_when_its_set_is_not_wanted_any_more() {
    let items: Vec<Item> = items().into_iter().take(40_000).collect();
    let model = model(&items);
    let filter = parse("year > 3 AND (price < 10 OR tags = t1) OR NOT sold = true").unwrap();
    let plan = check(&filter, &model).unwrap();
    let asked = Cell::new(0);
    let up_to = |most: usize| {
        asked.set(0);
        let goes_on = || {
            asked.set(asked.get() + 1);
            asked.get() <= most
        };
        plan.bitmap_while("v", &goes_on)
    };
    let whole = up_to(usize::MAX).unwrap();
    let all = asked.get();
    assert!(all >= 8, "{all}: before each test of a block, of which there are two");
    assert_eq!(whole.words(), plan.bitmap("v").words());
    for most in 0..all {
        assert!(up_to(most).is_none(), "{most} of {all}");
        assert_eq!(asked.get(), most + 1, "it is not asked again");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn values_at_the_ends_of_bins_are_found(
        years in prop::collection::vec(any::<i64>(), 300..700),
        picks in prop::collection::vec(any::<prop::sample::Index>(), 2),
    ) {
        let item = |&year: &i64| {
            Item { year: Some(year), price: Some(year as f64), ..Item::default() }
        };
        let items: Vec<Item> = years.iter().map(item).collect();
        let model = model(&items);
        let [a, b] = [0, 1].map(|n| years[picks[n].index(years.len())]);
        let (from, to) = (a.min(b), a.max(b));
        let rows = |meets: &dyn Fn(i64) -> bool| -> Vec<u32> {
            (0..years.len()).filter(|&row| meets(years[row])).map(|row| row as u32).collect()
        };
        for (filter, expected) in [
            (format!("year {from} TO {to}"), rows(&|own| own >= from && own <= to)),
            (format!("year > {from} AND year < {to}"), rows(&|own| own > from && own < to)),
            (format!("year = {from}"), rows(&|own| own == from)),
            (format!("year != {to}"), rows(&|own| own != to)),
            (format!("year < {from}"), rows(&|own| own < from)),
            (format!("price >= {:?}", to as f64), rows(&|own| own as f64 >= to as f64)),
            (format!("price < {:?}", from as f64), rows(&|own| (own as f64) < from as f64)),
        ] {
            prop_assert_eq!(found(&model, &filter).unwrap(), expected, "{}", filter);
        }
    }
}
