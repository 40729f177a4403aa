//! How far a table has followed other systems: a position of each, stored with the rows that came
//! from there.

use std::borrow::{Borrow, Cow};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Maximum length of a source's name, in bytes.
pub const MAX_SOURCE_NAME_BYTES: usize = 200;
/// In the place of a position: the source is forgotten.
const FORGET: &str = "-";
/// Maximum number of sources of a table.
pub const MAX_SOURCES: usize = 1000;

/// A position in a source: a number that grows, such as an offset of Kafka or an LSN of PostgreSQL.
///
/// It is written as it was given: `0/16B3748` or `23803720`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourcePosition {
    /// The number.
    pub number: u64,
    is_lsn: bool,
}

impl FromStr for SourcePosition {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        let is_hex = |text: &str| {
            (1..=8).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        match text.split_once('/') {
            Some((high, low)) if is_hex(high) && is_hex(low) => {
                let part = |text| u64::from_str_radix(text, 16).map_err(drop);
                Ok(Self { number: part(high)? << 32 | part(low)?, is_lsn: true })
            }
            None if text.bytes().all(|byte| byte.is_ascii_digit()) => {
                Ok(Self { number: text.parse().map_err(drop)?, is_lsn: false })
            }
            _ => Err(()),
        }
    }
}

impl fmt::Display for SourcePosition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.is_lsn {
            true => write!(f, "{:X}/{:X}", self.number >> 32, self.number as u32),
            false => write!(f, "{}", self.number),
        }
    }
}

/// Positions of sources by their names: `postgres:0/16B3748`, `kafka/items/0:1042`. As text they
/// are parted by commas. In a change, `kafka/items/0:-` forgets a source.
///
/// ```
/// use changes::Sources;
///
/// let sources: Sources = "kafka/items/1:7, kafka/items/0:1042".parse()?;
/// assert_eq!(sources.get("kafka/items/0").map(|position| position.number), Some(1042));
/// assert_eq!(sources.to_string(), "kafka/items/0:1042,kafka/items/1:7");
/// # Ok::<(), changes::BadSources>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Sources(BTreeMap<Box<str>, Option<SourcePosition>>);

/// A text that is no list of sources with their positions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error(
    "NAME:POSITION, several parted by commas; a name has at most 200 bytes without spaces, a \
     position is a whole number or an LSN of PostgreSQL such as 0/16B3748, or - to forget the \
     source"
)]
pub struct BadSources;

impl Sources {
    /// Whether there are none, not even one that is to be forgotten.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Number of sources.
    pub fn len(&self) -> usize {
        self.iter().count()
    }

    /// Names of sources that a change forgets.
    pub fn forgotten(&self) -> impl Iterator<Item = &str> {
        self.0.iter().filter(|(_, position)| position.is_none()).map(|(name, _)| &**name)
    }

    /// The position of one.
    pub fn get<Q: Ord + ?Sized>(&self, name: &Q) -> Option<SourcePosition>
    where
        Box<str>: Borrow<Q>,
    {
        self.0.get(name).copied().flatten()
    }

    /// Names and positions, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&str, SourcePosition)> {
        self.0.iter().filter_map(|(name, position)| Some((&**name, (*position)?)))
    }

    /// Takes the positions of a change, also earlier ones: a source may begin anew. Drops those
    /// that it forgets.
    pub fn take(&mut self, change: &Self) {
        for (name, position) in &change.0 {
            match position {
                Some(_) => self.0.insert(name.clone(), *position),
                None => self.0.remove(name),
            };
        }
    }

    /// The number of sources after a change.
    pub(crate) fn len_with(&self, change: &Self) -> usize {
        let kept = self.0.keys().filter(|name| !change.0.contains_key(*name)).count();
        kept + change.len()
    }
}

/// The positions in the base of a fold: a line of JSON among those of the idempotency keys.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    #[serde(borrow)]
    sources: Cow<'a, str>,
}

impl Sources {
    /// The line, if there are any.
    pub(crate) fn line(&self) -> Option<String> {
        let line = Line { sources: self.to_string().into() };
        let json = serde_json::to_string(&line).expect("a text becomes JSON");
        (!self.is_empty()).then(|| json + "\n")
    }

    /// The positions of these lines. Their checksum was right, so they are as they were written.
    pub(crate) fn of_lines(lines: &[u8]) -> Self {
        let mut lines = lines.split(|&byte| byte == b'\n');
        let sources = lines.find_map(|line| serde_json::from_slice::<Line<'_>>(line).ok());
        sources.and_then(|line| line.sources.parse().ok()).unwrap_or_default()
    }
}

impl FromStr for Sources {
    type Err = BadSources;

    fn from_str(text: &str) -> Result<Self, BadSources> {
        let mut all = BTreeMap::new();
        for one in text.split(',') {
            // A name may have colons.
            let (name, position) = one.trim().rsplit_once(':').ok_or(BadSources)?;
            let is_name = (1..=MAX_SOURCE_NAME_BYTES).contains(&name.len())
                && name.chars().all(|char| !char.is_whitespace() && !char.is_control());
            let position = match position {
                FORGET => None,
                position => Some(position.parse().map_err(|()| BadSources)?),
            };
            if !is_name || all.insert(name.into(), position).is_some() || all.len() > MAX_SOURCES {
                return Err(BadSources);
            }
        }
        Ok(Self(all))
    }
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, (name, position)) in self.0.iter().enumerate() {
            let comma = if index == 0 { "" } else { "," };
            match position {
                Some(position) => write!(f, "{comma}{name}:{position}")?,
                None => write!(f, "{comma}{name}:{FORGET}")?,
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_are_numbers_or_lsns_and_are_written_as_they_were_given() {
        for (text, number) in [
            ("0", 0),
            ("18446744073709551615", u64::MAX),
            ("0/0", 0),
            ("16/B374D848", 0x16_B374_D848),
            ("FFFFFFFF/FFFFFFFF", u64::MAX),
        ] {
            let position: SourcePosition = text.parse().unwrap();
            assert_eq!((position.number, &*position.to_string()), (number, text));
        }
        for text in ["", "-1", "+1", "1.5", "18446744073709551616", "0/", "/0", "0/123456789", "x"]
        {
            assert_eq!(text.parse::<SourcePosition>(), Err(()), "{text}");
        }
    }

    #[test]
    fn names_may_have_colons_and_no_spaces() {
        let sources: Sources = " a:b:1 ,é:0/2".parse().unwrap();
        assert_eq!(sources.to_string(), "a:b:1,é:0/2");
        assert_eq!(sources.to_string().parse(), Ok(sources));
        let long = format!("{}:1", "x".repeat(MAX_SOURCE_NAME_BYTES + 1));
        let many: String = (0..=MAX_SOURCES).map(|n| format!("{n}:1,")).collect();
        let many = many.trim_end_matches(',');
        for text in ["", "a", ":1", "a b:1", "a:1,", "a:1,a:2", "a:\t1", &long, many] {
            assert_eq!(text.parse::<Sources>(), Err(BadSources), "{text}");
        }
    }

    #[test]
    fn a_change_forgets_sources() {
        let mut sources: Sources = "a:5,b:1".parse().unwrap();
        let change: Sources = "a:-,c:2,d:-".parse().unwrap();
        assert_eq!((change.to_string().as_str(), change.len()), ("a:-,c:2,d:-", 1));
        assert_eq!(change.forgotten().collect::<Vec<_>>(), ["a", "d"]);
        assert_eq!((change.get("a"), change.is_empty()), (None, false));
        assert_eq!(sources.len_with(&change), 2);
        sources.take(&change);
        assert_eq!(sources.to_string(), "b:1,c:2");
        sources.take(&"b:-,c:-".parse().unwrap());
        assert!(sources.is_empty() && sources.line().is_none());
    }

    #[test]
    fn newer_positions_take_the_place_of_older_ones() {
        let mut sources: Sources = "a:5,b:1".parse().unwrap();
        let newer: Sources = "a:3,c:0/1".parse().unwrap();
        assert_eq!(sources.len_with(&newer), 3);
        sources.take(&newer);
        assert_eq!(sources.to_string(), "a:3,b:1,c:0/1");
    }

    #[test]
    fn a_fold_keeps_them_beside_idempotency_keys() {
        let sources: Sources = "\"a\\:3,b:0/1".parse().unwrap();
        let lines = format!("{{\"key\":\"k\"}}\n{}", sources.line().unwrap());
        assert_eq!(Sources::of_lines(lines.as_bytes()), sources);
        assert_eq!((Sources::default().line(), Sources::of_lines(b"")), (None, Sources::default()));
    }
}
