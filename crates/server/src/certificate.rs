//! The parts of an X.509 certificate that rustls does not tell: from when and until when it is
//! valid, and its common name (RFC 5280, in DER).

/// The parts of a certificate that are read.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Certificate<'a> {
    /// When it becomes valid, in seconds since 1970.
    pub(crate) not_before: i64,
    /// Until when it is valid, in seconds since 1970.
    pub(crate) not_after: i64,
    /// The common name of its subject, if that is in ASCII or UTF-8.
    pub(crate) common_name: Option<&'a str>,
    /// Whether it has alternative names. Then the common name does not count.
    pub(crate) has_alternative_names: bool,
}

const OBJECT_IDENTIFIER: u8 = 0x06;
const UTF8_STRING: u8 = 0x0c;
const PRINTABLE_STRING: u8 = 0x13;
const IA5_STRING: u8 = 0x16;
const UTC_TIME: u8 = 0x17;
const GENERALISED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const VERSION: u8 = 0xa0;
const EXTENSIONS: u8 = 0xa3;

/// id-at-commonName, 2.5.4.3
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
/// id-ce-subjectAltName, 2.5.29.17
const ALTERNATIVE_NAMES: &[u8] = &[0x55, 0x1d, 0x11];

impl<'a> Certificate<'a> {
    /// Reads a certificate. `None` if this is none.
    pub(crate) fn read(der: &'a [u8]) -> Option<Self> {
        let mut whole = der;
        let mut certificate = inside(&mut whole, SEQUENCE)?;
        let mut fields = inside(&mut certificate, SEQUENCE)?;
        // Certificates of version 1 leave it out.
        if fields.first() == Some(&VERSION) {
            element(&mut fields)?;
        }
        let (_serial_number, _algorithm, _issuer) =
            (element(&mut fields)?, element(&mut fields)?, element(&mut fields)?);
        let mut validity = inside(&mut fields, SEQUENCE)?;
        let (not_before, not_after) = (time(&mut validity)?, time(&mut validity)?);
        let subject = inside(&mut fields, SEQUENCE)?;
        let _key = element(&mut fields)?;
        let has_alternative_names = has_alternative_names(fields)?;
        let common_name = common_name(subject);
        Some(Self { not_before, not_after, common_name, has_alternative_names })
    }
}

/// The next element of this input, as its tag and its content. The input is then what follows.
fn element<'a>(input: &mut &'a [u8]) -> Option<(u8, &'a [u8])> {
    let (&tag, rest) = input.split_first()?;
    let (&first, rest) = rest.split_first()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81..=0x84 => {
            let (bytes, rest) = rest.split_at_checked(usize::from(first & 0x7f))?;
            (bytes.iter().fold(0, |sum, &byte| (sum << 8) | usize::from(byte)), rest)
        }
        _ => return None,
    };
    let (content, rest) = rest.split_at_checked(length)?;
    *input = rest;
    Some((tag, content))
}

/// The content of the next element, if it has this tag.
fn inside<'a>(input: &mut &'a [u8], tag: u8) -> Option<&'a [u8]> {
    element(input).filter(|(found, _)| *found == tag).map(|(_, content)| content)
}

/// The next element as a time, in seconds since 1970.
fn time(input: &mut &[u8]) -> Option<i64> {
    let (tag, text) = element(input)?;
    let text = std::str::from_utf8(text).ok()?.strip_suffix('Z')?;
    let (year, rest) = match tag {
        UTC_TIME => {
            let (year, rest) = text.split_at_checked(2)?;
            let year: i64 = year.parse().ok()?;
            (if year < 50 { 2000 + year } else { 1900 + year }, rest)
        }
        GENERALISED_TIME => {
            let (year, rest) = text.split_at_checked(4)?;
            (year.parse().ok()?, rest)
        }
        _ => return None,
    };
    let is_whole = rest.len() == 10 && rest.bytes().all(|byte| byte.is_ascii_digit());
    let part = |at: usize| rest.get(at..at + 2)?.parse::<i64>().ok().filter(|_| is_whole);
    let (month, day) = (part(0)?, part(2)?);
    let seconds = (part(4)? * 60 + part(6)?) * 60 + part(8)?;
    (1..=12).contains(&month).then(|| days(year, month, day) * 24 * 60 * 60 + seconds)
}

/// Days from 1970 to this day of the Gregorian calendar.
fn days(year: i64, month: i64, day: i64) -> i64 {
    // Years begin in March here, so that a leap day is the last day of its year.
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let (leap_days, day_of_year) = (
        year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400),
        (153 * month + 2) / 5 + day - 1,
    );
    // 719,468 days from the first of March of year 0 to 1970.
    365 * year + leap_days + day_of_year - 719_468
}

/// The common name in a subject: sets of pairs of a type and a value.
fn common_name(mut subject: &[u8]) -> Option<&str> {
    while let Some(mut set) = inside(&mut subject, SET) {
        while let Some(mut pair) = inside(&mut set, SEQUENCE) {
            let is_meant = inside(&mut pair, OBJECT_IDENTIFIER) == Some(COMMON_NAME);
            match element(&mut pair) {
                Some((UTF8_STRING | PRINTABLE_STRING | IA5_STRING, text)) if is_meant => {
                    return std::str::from_utf8(text).ok();
                }
                _ => {}
            }
        }
    }
    None
}

/// Whether one of the extensions among the last fields of a certificate is that of its alternative
/// names.
fn has_alternative_names(mut fields: &[u8]) -> Option<bool> {
    while !fields.is_empty() {
        let (EXTENSIONS, mut content) = element(&mut fields)? else { continue };
        let mut extensions = inside(&mut content, SEQUENCE)?;
        while !extensions.is_empty() {
            let mut extension = inside(&mut extensions, SEQUENCE)?;
            if inside(&mut extension, OBJECT_IDENTIFIER)? == ALTERNATIVE_NAMES {
                return Some(true);
            }
        }
    }
    Some(false)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use tokio_rustls::rustls::pki_types::CertificateDer;
    use tokio_rustls::rustls::pki_types::pem::PemObject;

    use super::*;

    fn der(name: &str) -> CertificateDer<'static> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/tls");
        CertificateDer::from_pem_file(folder.join(name)).unwrap()
    }

    #[test]
    fn times_and_names_are_read() {
        // From 2020 to 2120: the first year has two digits, the other one four.
        let dated = Certificate {
            not_before: 1_577_836_800,
            not_after: 4_733_510_400,
            common_name: Some("Kindred, for tests only"),
            has_alternative_names: true,
        };
        assert_eq!(Certificate::read(&der("first.pem")), Some(dated));
        let default = der("default.pem");
        let default = Certificate::read(&default).unwrap();
        assert_eq!(
            (default.common_name, default.has_alternative_names),
            (Some("localhost"), false)
        );
        assert_eq!(default.not_after, 4_733_510_400);
    }

    #[test]
    fn days_are_counted_over_leap_years() {
        for (year, month, day, expected) in [
            (1970, 1, 1, 0),
            (1969, 12, 31, -1),
            (2000, 2, 29, 11_016),
            (2000, 3, 1, 11_017),
            (2100, 3, 1, 47_541),
            (2020, 1, 1, 18_262),
        ] {
            assert_eq!(days(year, month, day), expected, "{year}-{month}-{day}");
        }
    }

    #[test]
    fn times_that_are_none_are_not_read() {
        for (tag, text, expected) in [
            (UTC_TIME, "491231235959Z", Some(2_524_607_999)),
            (UTC_TIME, "500101000000Z", Some(-631_152_000)),
            (GENERALISED_TIME, "20500101000000Z", Some(2_524_608_000)),
            (GENERALISED_TIME, "20501301000000Z", None),
            (GENERALISED_TIME, "2050010100000Z", None),
            (GENERALISED_TIME, "20500101 00000Z", None),
            (GENERALISED_TIME, "20500101000000", None),
            (UTC_TIME, "Z", None),
            (UTC_TIME, "\u{e9}Z", None),
            (SET, "491231235959Z", None),
        ] {
            let bytes = [&[tag, text.len() as u8], text.as_bytes()].concat();
            assert_eq!(time(&mut &bytes[..]), expected, "{tag} {text}");
        }
    }

    #[test]
    fn what_is_cut_or_changed_is_no_reason_to_panic() {
        let whole = der("first.pem").to_vec();
        for length in 0..whole.len() {
            let _ = Certificate::read(&whole[..length]);
        }
        assert_eq!(Certificate::read(&whole[..100]), None);
        for at in 0..whole.len() {
            let mut changed = whole.clone();
            changed[at] ^= 0xff;
            let _ = Certificate::read(&changed);
        }
    }
}
