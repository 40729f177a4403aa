//! Numbers as they are written, compared exactly with integers and with float64.

use super::ast::Operator;

/// Whole numbers of more digits are read as others are. A power of ten of so many digits fits
/// `i128`, and is beyond all integers.
const MAX_DIGITS: usize = 37;

/// No integer is at least this and at most that.
const NO_INTEGER: (i64, i64) = (0, -1);
/// No number is at least this and at most that.
const NO_NUMBER: (f64, f64) = (f64::INFINITY, f64::NEG_INFINITY);

/// A number that was written.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    /// Digits alone.
    Whole(i128),
    /// One with a point or an exponent, or very long.
    Real {
        /// The nearest float64; never NaN.
        nearest: f64,
        /// The largest whole number that is at most it, or one beyond all integers.
        floor: i128,
        /// Whether it is that number.
        is_whole: bool,
    },
}

impl Number {
    /// Reads a decimal number, with or without an exponent.
    pub(super) fn read(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(['+', '-']).unwrap_or(text);
        // Not `nan`, `inf` and the like.
        if !digits.starts_with(|c: char| c.is_ascii_digit() || c == '.') {
            return None;
        }
        if digits.len() <= MAX_DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return text.parse().ok().map(Self::Whole);
        }
        let nearest = text.parse().ok()?;
        let (floor, is_whole) = floor(text.starts_with('-'), digits);
        Some(Self::Real { nearest, floor, is_whole })
    }

    /// The integers for which `integer <operator> self` holds: at least the first and at most the
    /// second.
    pub(super) fn integers(self, operator: Operator) -> (i64, i64) {
        let (floor, is_whole) = match self {
            Self::Whole(number) => (number, true),
            Self::Real { floor, is_whole, .. } => (floor, is_whole),
        };
        let (least, most) = (i128::from(i64::MIN), i128::from(i64::MAX));
        let above = floor.saturating_add(1);
        let (from, to) = match operator {
            Operator::Equal if is_whole => (floor, floor),
            Operator::Equal => return NO_INTEGER,
            Operator::Less if is_whole => (least, floor.saturating_sub(1)),
            Operator::Less | Operator::LessOrEqual => (least, floor),
            Operator::GreaterOrEqual if is_whole => (floor, most),
            Operator::Greater | Operator::GreaterOrEqual => (above, most),
        };
        match (i64::try_from(from.max(least)), i64::try_from(to.min(most))) {
            (Ok(from), Ok(to)) => (from, to),
            _ => NO_INTEGER,
        }
    }

    /// The numbers for which `number <operator> self` holds: at least the first and at most the
    /// second.
    pub(super) fn numbers(self, operator: Operator) -> (f64, f64) {
        // The nearest numbers that are at most, and at least, what was written.
        let (below, above) = match self {
            Self::Real { nearest, .. } => (nearest, nearest),
            Self::Whole(number) => {
                let near = number as f64;
                // Exact: at most 10³⁷.
                match (near as i128).cmp(&number) {
                    std::cmp::Ordering::Equal => (near, near),
                    std::cmp::Ordering::Less => (near, near.next_up()),
                    std::cmp::Ordering::Greater => (near.next_down(), near),
                }
            }
        };
        let is_exact = below == above;
        match operator {
            Operator::Equal if is_exact => (below, above),
            Operator::Equal => NO_NUMBER,
            Operator::Less if is_exact => (f64::NEG_INFINITY, below.next_down()),
            Operator::Less | Operator::LessOrEqual => (f64::NEG_INFINITY, below),
            Operator::Greater if is_exact => (above.next_up(), f64::INFINITY),
            Operator::Greater | Operator::GreaterOrEqual => (above, f64::INFINITY),
        }
    }
}

/// The largest whole number that is at most a decimal number, and whether it is the same: exactly,
/// which float64 is not. `digits` is what follows the sign.
fn floor(is_negative: bool, digits: &str) -> (i128, bool) {
    let (mantissa, exponent) = digits.split_once(['e', 'E']).unwrap_or((digits, "0"));
    let (before, behind) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = [before, behind].concat();
    let significant = all.trim_start_matches('0');
    if significant.is_empty() {
        return (0, true);
    }
    // An exponent that is no i64 is beyond every number of digits.
    let beyond = if exponent.starts_with('-') { i64::MIN } else { i64::MAX };
    let zeros = all.len() - significant.len();
    // Digits before the point.
    let point =
        exponent.parse().unwrap_or(beyond).saturating_add(before.len() as i64 - zeros as i64);
    let (magnitude, is_whole) = if point > MAX_DIGITS as i64 {
        (10i128.pow(MAX_DIGITS as u32), true)
    } else {
        let whole = significant.len().min(usize::try_from(point).unwrap_or(0));
        let (digits, fraction) = significant.split_at(whole);
        let read = digits.bytes().fold(0, |sum, digit| 10 * sum + i128::from(digit - b'0'));
        let missing = u32::try_from(point - whole as i64).unwrap_or(0);
        (read * 10i128.pow(missing), fraction.bytes().all(|digit| digit == b'0'))
    };
    match (is_negative, is_whole) {
        (false, _) => (magnitude, is_whole),
        (true, true) => (-magnitude, true),
        (true, false) => (-magnitude - 1, false),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_read_and_not_a_number_is_none() {
        let long = "9".repeat(40);
        let beyond = 10i128.pow(MAX_DIGITS as u32);
        let real = |nearest, floor, is_whole| Number::Real { nearest, floor, is_whole };
        for (text, number) in [
            ("0", Number::Whole(0)),
            ("-17", Number::Whole(-17)),
            ("+5", Number::Whole(5)),
            ("9007199254740993", Number::Whole(9_007_199_254_740_993)),
            ("1.5", real(1.5, 1, false)),
            (".5", real(0.5, 0, false)),
            ("2.", real(2.0, 2, true)),
            ("-0.5", real(-0.5, -1, false)),
            ("-0.0", real(-0.0, 0, true)),
            ("0012.30e1", real(123.0, 123, true)),
            ("12.34E1", real(123.4, 123, false)),
            ("-1234.5e-2", real(-12.345, -13, false)),
            ("0.001e3", real(1.0, 1, true)),
            ("100e-3", real(0.1, 0, false)),
            ("9007199254740993.0", real(9007199254740992.0, 9_007_199_254_740_993, true)),
            ("-1e30", real(-1e30, -(10i128.pow(30)), true)),
            ("1e999", real(f64::INFINITY, beyond, true)),
            ("1e99999999999999999999", real(f64::INFINITY, beyond, true)),
            ("-1e-99999999999999999999", real(-0.0, -1, false)),
            ("0e99999999999999999999", real(0.0, 0, true)),
            (&long[..], real(1e40, beyond, true)),
        ] {
            assert_eq!(Number::read(text), Some(number), "{text}");
        }
        for text in
            ["", "-", "+-1", "nan", "NaN", "-inf", "infinity", "1,5", "0x10", "1e", ".", "٣"]
        {
            assert_eq!(Number::read(text), None, "{text}");
        }
    }

    #[test]
    fn integers_are_compared_exactly() {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        let (least, most) = (i64::MIN, i64::MAX);
        for (text, operator, expected) in [
            ("5", Equal, (5, 5)),
            ("5.0", Equal, (5, 5)),
            ("1.5", Less, (least, 1)),
            ("1.5", LessOrEqual, (least, 1)),
            ("1.5", Greater, (2, most)),
            ("1.5", GreaterOrEqual, (2, most)),
            ("-1.5", Less, (least, -2)),
            ("-1.5", Greater, (-1, most)),
            ("1", Less, (least, 0)),
            ("1", Greater, (2, most)),
            ("9007199254740993.0", Equal, (9_007_199_254_740_993, 9_007_199_254_740_993)),
            ("9007199254740992.5", Less, (least, 9_007_199_254_740_992)),
            ("9007199254740992.5", Greater, (9_007_199_254_740_993, most)),
            ("9223372036854775806.5", Greater, (most, most)),
            ("-9223372036854775807.5", Less, (least, least)),
            ("1e30", Less, (least, most)),
            ("-1e30", Greater, (least, most)),
            ("1e999", LessOrEqual, (least, most)),
            ("9223372036854775807", GreaterOrEqual, (most, most)),
            ("9223372036854775808", Less, (least, most)),
            ("-9223372036854775808", LessOrEqual, (least, least)),
        ] {
            let number = Number::read(text).unwrap();
            assert_eq!(number.integers(operator), expected, "{operator:?} {text}");
        }
        for (text, operator) in [
            ("1.5", Equal),
            ("9007199254740992.5", Equal),
            ("9223372036854775807.5", Greater),
            ("-9223372036854775808.5", Less),
            ("1e30", Equal),
            ("1e30", Greater),
            ("-1e30", LessOrEqual),
            ("1e999", Equal),
            ("9223372036854775807", Greater),
            ("-9223372036854775808", Less),
        ] {
            let (from, to) = Number::read(text).unwrap().integers(operator);
            assert!(from > to, "{operator:?} {text}");
        }
    }

    #[test]
    fn numbers_are_compared_exactly_with_whole_ones() {
        use Operator::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual};
        // 2⁵³ + 1 is between two float64.
        let (below, above) = (9_007_199_254_740_992.0, 9_007_199_254_740_994.0);
        let holds = |value: f64, text: &str, operator| {
            let (from, to) = Number::read(text).unwrap().numbers(operator);
            value >= from && value <= to
        };
        let odd = "9007199254740993";
        assert!(!holds(below, odd, Equal) && !holds(above, odd, Equal));
        assert!(holds(below, odd, Less) && holds(below, odd, LessOrEqual));
        assert!(holds(above, odd, Greater) && holds(above, odd, GreaterOrEqual));
        assert!(!holds(above, odd, LessOrEqual) && !holds(below, odd, GreaterOrEqual));
        let even = "9007199254740994";
        assert!(holds(above, even, Equal) && !holds(above, even, Less));
        assert!(holds(0.1, "0.1", Equal) && !holds(0.1, "0.1", Greater));
        assert!(holds(0.0, "-0", Equal) && holds(-0.0, "0", GreaterOrEqual));
        assert!(!holds(0.0, "0", Less) && !holds(f64::NAN, "0", LessOrEqual));
    }
}
