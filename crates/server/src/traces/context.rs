//! The header `traceparent` (W3C Trace Context): `00-TRACE-PARENT-FLAGS`, in lower-case hexadecimal
//! digits.
//!
//! The SDK's propagator is not used: it allocates for each request, and takes the first of several
//! headers.

use std::cmp::Ordering;

use axum::http::HeaderMap;

/// Of version 00. Later versions may add fields.
const LENGTH: usize = 55;
/// Where the fields begin.
const TRACE: usize = 3;
const PARENT: usize = 36;
const FLAGS: usize = 53;

/// The span of the caller that a request belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parent {
    pub(super) trace: u128,
    pub(super) span: u64,
    /// Whether the caller traces it.
    pub(super) is_sampled: bool,
}

impl Parent {
    /// The parent of a request: `None` without a header, and if there are several or an invalid
    /// one, as the specification says.
    #[inline]
    pub(super) fn of(headers: &HeaderMap) -> Option<Self> {
        let mut sent = headers.get_all("traceparent").iter();
        match (sent.next(), sent.next()) {
            (Some(only), None) => Self::parse(only.as_bytes()),
            _ => None,
        }
    }

    fn parse(text: &[u8]) -> Option<Self> {
        let version = hexadecimal(text.get(..TRACE - 1)?)?;
        let is_known = match text.len().cmp(&LENGTH) {
            Ordering::Less => false,
            Ordering::Equal => version != 0xff,
            Ordering::Greater => (1..0xff).contains(&version) && text[LENGTH] == b'-',
        };
        if !is_known || [TRACE, PARENT, FLAGS].iter().any(|&field| text[field - 1] != b'-') {
            return None;
        }
        let trace = hexadecimal(&text[TRACE..PARENT - 1])?;
        let span = hexadecimal(&text[PARENT..FLAGS - 1])? as u64;
        let flags = hexadecimal(&text[FLAGS..LENGTH])?;
        (trace != 0 && span != 0).then_some(Self { trace, span, is_sampled: flags & 1 == 1 })
    }
}

/// A number in at most 32 lower-case hexadecimal digits.
fn hexadecimal(digits: &[u8]) -> Option<u128> {
    digits.iter().try_fold(0, |number, &digit| {
        let digit = match digit {
            b'0'..=b'9' => digit - b'0',
            b'a'..=b'f' => digit - b'a' + 10,
            _ => return None,
        };
        Some(number << 4 | u128::from(digit))
    })
}

#[cfg(test)]
mod tests {
    use axum::http::{HeaderName, HeaderValue};
    use proptest::prelude::*;

    use super::*;

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    fn parent(sent: &[&[u8]]) -> Option<Parent> {
        let name = HeaderName::from_static("traceparent");
        let mut headers = HeaderMap::new();
        for value in sent {
            headers.append(name.clone(), HeaderValue::from_bytes(value).unwrap());
        }
        Parent::of(&headers)
    }

    #[test]
    fn a_parent_is_read_to_the_last_bit() {
        let (trace, span) = (0x4bf9_2f35_77b3_4da6_a3ce_929d_0e0e_4736, 0x00f0_67aa_0ba9_02b7);
        let found = |sent: &str| parent(&[sent.as_bytes()]);
        assert_eq!(found(GOOD), Some(Parent { trace, span, is_sampled: true }));
        for (flags, is_sampled) in [("00", false), ("02", false), ("03", true), ("ff", true)] {
            let sent = format!("{}{flags}", &GOOD[..FLAGS]);
            assert_eq!(found(&sent), Some(Parent { trace, span, is_sampled }), "{sent}");
        }
        // Later versions may be longer.
        for later in ["", "-", "-what-ever"] {
            let sent = format!("cc{}{later}", &GOOD[2..]);
            assert_eq!(found(&sent), Some(Parent { trace, span, is_sampled: true }), "{sent}");
        }
    }

    #[test]
    fn what_the_specification_refuses_is_no_parent() {
        let zeros = "0".repeat(32);
        for sent in [
            "",
            "00",
            "00-",
            &GOOD[..54],
            &format!("{GOOD}-"),
            &format!("{GOOD}-more"),
            &format!("{GOOD}0"),
            &format!("ff{}", &GOOD[2..]),
            &format!("ff{}-more", &GOOD[2..]),
            &format!("cc{}more", &GOOD[2..]),
            &GOOD.to_uppercase(),
            &GOOD.replace('-', "_"),
            &GOOD.replace("4bf9", "4bfg"),
            &format!("00-{zeros}-00f067aa0ba902b7-01"),
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-0x",
            "+0-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            &"0".repeat(10_000),
        ] {
            assert_eq!(parent(&[sent.as_bytes()]), None, "{sent}");
        }
        assert_eq!(parent(&[]), None);
        assert_eq!(parent(&[GOOD.as_bytes(), GOOD.as_bytes()]), None, "two");
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(sent in proptest::collection::vec(b' '..=0xff, 0..80)) {
            let _ = Parent::parse(&sent);
        }

        #[test]
        fn what_is_written_is_read(trace in 1u128.., span in 1u64.., flags: u8) {
            let sent = format!("00-{trace:032x}-{span:016x}-{flags:02x}");
            let is_sampled = flags & 1 == 1;
            prop_assert_eq!(Parent::parse(sent.as_bytes()), Some(Parent { trace, span, is_sampled }));
        }
    }
}
