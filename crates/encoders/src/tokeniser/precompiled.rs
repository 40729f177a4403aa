//! `Precompiled`: SentencePiece's table of texts for characters, as its models have it.
//!
//! The table is a double array of texts and, behind it, what stands for them. `tokenizers` looks up
//! the whole of a grapheme of less than 6 bytes, and then takes what the *shortest* beginning that
//! the table has says; other graphemes go character by character. So it is done here.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use unicode_segmentation::UnicodeSegmentation;

use super::fault::Fault;
use super::normal::rewrite;

/// Longer graphemes, in bytes, are looked up character by character.
const SHORT: usize = 6;

/// The table.
#[derive(Debug)]
pub(super) struct Precompiled {
    units: Vec<u32>,
    /// Texts, each with a zero behind it.
    texts: String,
    /// Those of ASCII, found once.
    ascii: Vec<Option<String>>,
}

/// The fields of `tokenizer.json`.
#[derive(Deserialize)]
pub(super) struct Fields {
    precompiled_charsmap: String,
}

impl Precompiled {
    pub(super) fn new(fields: &Fields) -> Result<Self, Fault> {
        let faulty = |what: &str| Fault::Faulty(format!("its precompiled_charsmap {what}"));
        let bytes = STANDARD.decode(&fields.precompiled_charsmap);
        let bytes = bytes.map_err(|error| faulty(&format!("is no base64: {error}")))?;
        let Some((size, rest)) = bytes.split_first_chunk() else {
            return Err(faulty("ends within its size"));
        };
        let size = u32::from_le_bytes(*size) as usize / 4 * 4;
        let Some((units, texts)) = rest.split_at_checked(size) else {
            return Err(faulty(&format!("has {size} bytes of a table, of {} there", rest.len())));
        };
        let units: Vec<u32> =
            units.as_chunks().0.iter().map(|unit| u32::from_le_bytes(*unit)).collect();
        if units.is_empty() {
            return Err(faulty("has an empty table"));
        }
        let texts = String::from_utf8(texts.to_vec()).map_err(|_| faulty("is no UTF-8"))?;
        let mut table = Self { units, texts, ascii: Vec::new() };
        table.ascii = (0..128u8)
            .map(|byte| table.text_for(char::from(byte).encode_utf8(&mut [0])).map(str::to_owned))
            .collect();
        Ok(table)
    }

    /// Writes the text that stands for a text, and returns the new head.
    pub(super) fn normalize(
        &self,
        text: &str,
        head: Option<usize>,
        normal: &mut String,
    ) -> Option<usize> {
        if head.is_none() {
            self.each_part(text, |part, with| normal.push_str(with.unwrap_or(part)));
            return None;
        }
        let (mut changes, mut changed) = (Vec::new(), false);
        self.each_part(text, |part, with| {
            changed |= with.is_some();
            push_changes(&mut changes, part, with.unwrap_or(part));
        });
        if changed {
            return rewrite(text, head, 0, changes.into_iter(), normal);
        }
        normal.push_str(text);
        head
    }

    /// Calls for each part of a text with what stands for it, if that is another text.
    fn each_part<'a>(&'a self, text: &'a str, mut each: impl FnMut(&'a str, Option<&'a str>)) {
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let is_alone = |at: usize| {
                bytes[at].is_ascii()
                    && bytes[at] != b'\r'
                    && bytes.get(at + 1).is_none_or(u8::is_ascii)
            };
            if is_alone(at) {
                each(&text[at..=at], self.ascii[usize::from(bytes[at])].as_deref());
                at += 1;
                continue;
            }
            // A grapheme ends between two of ASCII, but for a line break of both.
            let end = (at..bytes.len()).find(|at| is_alone(*at)).map_or(bytes.len(), |at| at + 1);
            for grapheme in text[at..end].graphemes(true) {
                if grapheme.len() < SHORT
                    && let Some(with) = self.text_for(grapheme)
                {
                    each(grapheme, Some(with));
                    continue;
                }
                for (from, sign) in grapheme.char_indices() {
                    let part = &grapheme[from..from + sign.len_utf8()];
                    each(part, self.text_for(part));
                }
            }
            at = end;
        }
    }

    /// What the shortest beginning of a text that the table has stands for.
    fn text_for(&self, text: &str) -> Option<&str> {
        let at = self.shortest(text.as_bytes())? as usize;
        let rest = self.texts.get(at..).unwrap_or_default();
        let end = rest.bytes().position(|byte| byte == 0).unwrap_or(rest.len());
        Some(&rest[..end])
    }

    /// The value of the shortest beginning in the double array.
    fn shortest(&self, text: &[u8]) -> Option<u32> {
        let mut at = offset(self.units[0]);
        for byte in text.iter().copied().take_while(|byte| *byte != 0) {
            at ^= usize::from(byte);
            let unit = *self.units.get(at)?;
            if unit & (1 << 31 | 0xff) != u32::from(byte) {
                return None;
            }
            at ^= offset(unit);
            if unit >> 8 & 1 == 1 {
                return Some(self.units.get(at)? & !(1 << 31));
            }
        }
        None
    }
}

/// Where the next units of one are, as the library Darts writes it.
fn offset(unit: u32) -> usize {
    ((unit >> 10) as usize) << ((unit & 1 << 9) >> 6)
}

/// The changes of characters for a part, as `tokenizers` counts them.
fn push_changes(changes: &mut Vec<(char, isize)>, part: &str, with: &str) {
    let count = |text: &str| isize::try_from(text.chars().count()).expect("within memory");
    let more = count(with) - count(part);
    changes.extend(with.chars().map(|sign| (sign, 0)));
    if more > 0 {
        changes.iter_mut().rev().take(more.unsigned_abs()).for_each(|(_, change)| *change = 1);
    } else if let Some((_, change)) = changes.last_mut() {
        *change += more;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The bytes of a table with `a` → `xy`, `b` → nothing, and `e\u{301}` only by its `e` → `E`.
    fn table() -> Vec<u8> {
        // The root's next units are at 0 ^ byte, and the values of each behind them at 256 ^ byte.
        let mut units = vec![0u32; 512];
        for (byte, value) in [(b'a', 0u32), (b'b', 3), (b'e', 4)] {
            let at = usize::from(byte);
            // The offset leads from the unit to the one that has the value.
            let offset = (at ^ (256 + at)) as u32;
            units[at] = u32::from(byte) | 1 << 8 | offset << 10;
            units[256 + at] = value | 1 << 31;
        }
        let mut bytes = (512u32 * 4).to_le_bytes().to_vec();
        bytes.extend(units.iter().flat_map(|unit| unit.to_le_bytes()));
        bytes.extend(b"xy\0\0E\0");
        bytes
    }

    fn of(bytes: &[u8]) -> Result<Precompiled, Fault> {
        Precompiled::new(&Fields { precompiled_charsmap: STANDARD.encode(bytes) })
    }

    #[test]
    fn the_shortest_beginning_of_a_short_grapheme_stands_for_all_of_it() {
        let table = of(&table()).unwrap();
        let normal = |text: &str| {
            let mut normal = String::new();
            assert_eq!(table.normalize(text, None, &mut normal), None);
            let mut again = String::new();
            table.normalize(text, Some(1), &mut again);
            assert_eq!(normal, again);
            normal
        };
        assert_eq!(normal("cabc"), "cxyc");
        assert_eq!(normal("e\u{301}c"), "Ec");
        // Six bytes: by characters.
        assert_eq!(normal("ea\u{301}\u{301}\u{301}"), "Exy\u{301}\u{301}\u{301}");
        assert_eq!(normal("\r\na\u{e9}\0"), "\r\nxy\u{e9}\0");
    }

    #[test]
    fn a_head_is_that_of_the_characters() {
        let table = of(&table()).unwrap();
        let head = |text: &str| table.normalize(text, Some(1), &mut String::new());
        assert_eq!(head("ac"), Some(2));
        assert_eq!(head("ca"), Some(1));
        // What has gone at the beginning is not counted there.
        assert_eq!(head("bc"), Some(1));
    }

    #[test]
    fn a_damaged_table_is_refused_or_read_without_a_panic() {
        let whole = table();
        for length in [0, 3, 4, 5, 600] {
            assert!(of(&whole[..length]).is_err(), "{length}");
        }
        assert!(Precompiled::new(&Fields { precompiled_charsmap: "!".into() }).is_err());
        for at in 4..whole.len() {
            let mut bytes = whole.clone();
            bytes[at] ^= 0xff;
            if let Ok(table) = of(&bytes) {
                table.normalize("abe\u{301}xyz", Some(1), &mut String::new());
            }
        }
    }
}
