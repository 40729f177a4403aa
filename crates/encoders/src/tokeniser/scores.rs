//! The scores of Unigram pieces, rounded as `tokenizers` rounds them when it reads a file.
//!
//! Its reader of JSON takes a faster way, which may miss the nearest number by a bit. Where two
//! ways to cut a text have the same score but for rounding, that bit decides.

use serde_json::value::RawValue;

/// So many powers of ten are kept there.
const MOST: i32 = 308;

/// The number that a text of JSON is; `None` if it is no number, or too large.
pub(super) fn score(text: &RawValue) -> Option<f64> {
    let text = text.get();
    let (is_negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text),
    };
    let (digits, power) = match digits.split_once(['e', 'E']) {
        Some((digits, power)) => (digits, power.parse::<i32>().ok()?),
        None => (digits, 0),
    };
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    if !whole.bytes().chain(part.bytes()).all(|digit| digit.is_ascii_digit()) || whole.is_empty() {
        return None;
    }
    // Digits that do not fit are left out: they count by their number before the point alone.
    let (mut number, mut exponent, mut is_full) = (0u64, power, false);
    for (digit, is_part) in
        whole.bytes().map(|digit| (digit, false)).chain(part.bytes().map(|digit| (digit, true)))
    {
        let more = number.checked_mul(10).and_then(|n| n.checked_add(u64::from(digit - b'0')));
        is_full |= more.is_none();
        match more.filter(|_| !is_full) {
            Some(more) => (number, exponent) = (more, exponent.checked_sub(is_part.into())?),
            None => exponent = exponent.checked_add((!is_part).into())?,
        }
    }
    let score = scaled(number, exponent)?;
    Some(if is_negative { -score } else { score })
}

fn scaled(number: u64, mut exponent: i32) -> Option<f64> {
    let mut scaled = number as f64;
    while exponent < -MOST && scaled != 0.0 {
        scaled /= power(MOST);
        exponent += MOST;
    }
    if scaled == 0.0 {
        return Some(0.0);
    }
    if exponent > MOST {
        return None;
    }
    if exponent >= 0 {
        scaled *= power(exponent);
    } else {
        scaled /= power(-exponent);
    }
    scaled.is_finite().then_some(scaled)
}

/// A power of ten, the nearest that there is.
fn power(exponent: i32) -> f64 {
    format!("1e{exponent}").parse().expect("a number")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(text: &str) -> Option<f64> {
        score(&RawValue::from_string(text.to_owned()).unwrap())
    }

    #[test]
    fn most_scores_are_the_nearest_number_and_others_a_bit_off() {
        for text in
            ["0", "-1.5", "3e2", "1E-3", "-0.0", "12345", "0.1", "1e-320", "18446744073709551615"]
        {
            let (own, nearest) = (of(text).unwrap(), text.parse::<f64>().unwrap());
            assert!((own - nearest).abs() <= nearest.abs() * 1e-15, "{text}: {own}");
        }
        // Of 17 digits, as a float32 is written: rounded twice.
        let text = "-9.5686101913452148";
        assert!((of(text).unwrap() - text.parse::<f64>().unwrap()).abs() < 1e-14);
        // 20 digits: those that do not fit are left out.
        assert_eq!(of("1.0000000000000000001"), Some(1.0));
        assert_eq!(of("100000000000000000000000"), Some(1e23));
    }

    #[test]
    fn other_values_are_none() {
        for text in ["true", "\"1\"", "[]", "null", "1e400", "1e99999999999"] {
            assert_eq!(of(text), None, "{text}");
        }
        assert_eq!(of("0e9999"), Some(0.0));
    }
}
