//! Files that are no plain text in UTF-8, and how to convert them.

use super::kind::FileKind;
use super::signature::is_safetensors;
use crate::npy;

/// The fault of a text that begins like this, if it is UTF-16, or UTF-32 with its mark. Read as
/// UTF-8, it would be letters with NUL characters between them.
pub fn utf16_reason(start: &[u8]) -> Option<String> {
    let name = utf16_name(start)?;
    let kind = if name == UTF_32 { UTF_32 } else { "UTF-16" };
    Some(format!("it is {kind} text; convert it first: iconv -f {name} -t UTF-8"))
}

/// The same of a file whose encoding can be named.
pub fn utf16_cure(start: &[u8]) -> Option<String> {
    let (reason, name) = (utf16_reason(start)?, utf16_name(start)?);
    // The Encoding Standard does not have it.
    if name == UTF_32 {
        return Some(reason);
    }
    Some(format!("{reason}, or add --encoding {name}"))
}

const UTF_32: &str = "UTF-32";

fn utf16_name(start: &[u8]) -> Option<&'static str> {
    match start {
        [0xff, 0xfe, 0, 0, ..] | [0, 0, 0xfe, 0xff, ..] => Some(UTF_32),
        [0xff, 0xfe, ..] | [0xfe, 0xff, ..] => Some("UTF-16"),
        _ => utf16_without_mark(start),
    }
}

/// The fault of a text file that begins like this, if it is compressed, of another kind, or
/// UTF-16: for files that are read as they are.
pub fn not_plain_reason(start: &[u8]) -> Option<String> {
    other_kind_reason(start).or_else(|| utf16_reason(start))
}

/// The fault of a text file that begins like this, if it is compressed or of another kind.
pub fn other_kind_reason(start: &[u8]) -> Option<String> {
    let name = match FileKind::of(start) {
        Some(kind) if kind.is_container() => return Some(kind.reason()),
        Some(kind) => kind.name().to_owned(),
        None if npy::Numbers::begins(start) => "a NumPy file (.npy)".to_owned(),
        None if is_safetensors(start) => "a safetensors file".to_owned(),
        None => return None,
    };
    Some(format!("it is {name}, and text is needed here; save it as text in UTF-8"))
}

/// Which UTF-16 this is, if it has no byte order mark. The higher half of most characters is 0
/// then, or up to 6 as in Greek, Cyrillic, Hebrew and Arabic, where spaces and ends of lines still
/// have a 0. Single NUL characters within a text do not make it UTF-16.
fn utf16_without_mark(start: &[u8]) -> Option<&'static str> {
    /// Bytes that tell it.
    const ENOUGH: usize = 4096;
    /// Fewer NULs say nothing.
    const FEWEST: usize = 4;
    const HIGHEST: u8 = 6;
    let start = &start[..start.len().min(ENOUGH)];
    let has_halves = |higher: usize| {
        let pairs = || start.chunks_exact(2).map(move |pair| (pair[higher], pair[1 - higher]));
        let zeros = pairs().filter(|&(higher, lower)| higher == 0 && lower != 0).count();
        let letters = pairs().filter(|&(higher, lower)| higher <= HIGHEST && lower > HIGHEST);
        zeros >= FEWEST && 3 * letters.count() >= 2 * pairs().len()
    };
    let kinds = [(1, "UTF-16LE"), (0, "UTF-16BE")];
    kinds.into_iter().find(|&(higher, _)| has_halves(higher)).map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn little(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_le_bytes).collect()
    }

    fn big(text: &str) -> Vec<u8> {
        text.encode_utf16().flat_map(u16::to_be_bytes).collect()
    }

    #[test]
    fn utf16_is_known_with_and_without_its_mark() {
        let long = "pos\tbon film, très drôle\n".repeat(1000);
        let texts = [
            "good",
            "text,label\r\nfine,1\r\n",
            "Zażółć gęślą jaźń\n",
            "“so so” — a film\n",
            "весь фильм был очень скучный\nочень\n",
            "η ταινία ήταν πολύ καλή\nναι\n",
            &long,
        ];
        for text in texts {
            for (bytes, name) in [(little(text), "UTF-16LE"), (big(text), "UTF-16BE")] {
                let said = utf16_reason(&bytes).unwrap_or_else(|| panic!("{text}"));
                assert!(said.ends_with(&format!("iconv -f {name} -t UTF-8")), "{said}");
            }
            for bytes in [little(&format!("\u{feff}{text}")), big(&format!("\u{feff}{text}"))] {
                let said = utf16_reason(&bytes).unwrap();
                assert!(said.ends_with("iconv -f UTF-16 -t UTF-8"), "{said}");
            }
        }
    }

    #[test]
    fn utf32_is_known_by_its_mark() {
        let little = |c: char| u32::from(c).to_le_bytes();
        let big = |c: char| u32::from(c).to_be_bytes();
        let text = "\u{feff}good 0.5 1\n";
        let little: Vec<u8> = text.chars().flat_map(little).collect();
        let big: Vec<u8> = text.chars().flat_map(big).collect();
        for bytes in [little, big] {
            let said = utf16_cure(&bytes).unwrap();
            assert_eq!(said, "it is UTF-32 text; convert it first: iconv -f UTF-32 -t UTF-8");
        }
    }

    #[test]
    fn single_nuls_do_not_make_a_text_utf16() {
        let rows = ["good\0\n", "bad\0bad\n", "a\0b\n", "0\t1\0\n"].map(|row| row.repeat(2000));
        let tables = ["1\u{1}0\u{1}1\n".repeat(2000), "\u{1}\u{2}\u{3}\n".repeat(9)];
        for text in rows.iter().chain(&tables) {
            assert_eq!(utf16_reason(text.as_bytes()), None, "{:?}", &text[..9]);
        }
        for bytes in [&b""[..], b"\0", b"a\0b\0c\0", &[0; 99], &[7; 99], b"\xff", b"\xef\xbb\xbfa"]
        {
            assert_eq!(utf16_reason(bytes), None, "{bytes:?}");
        }
        // float32, as rows of norms and components have them.
        let numbers = (0..2000).map(|n| n as f32).chain((0..2000).map(|n| 1.0 / (1 + n) as f32));
        let numbers: Vec<u8> = numbers.flat_map(f32::to_le_bytes).collect();
        assert_eq!(utf16_reason(&numbers), None);
    }

    #[test]
    fn compressed_files_are_named_with_their_command() {
        for (start, expected) in [
            (&b"\x1f\x8b\x08\0\0\0\0\0\0\0"[..], "gzip; unpack it first: gunzip"),
            (b"\x28\xb5\x2f\xfd\0\0", "zstd; unpack it first: unzstd"),
            (b"\xfd7zXZ\0\0", "xz; unpack it first: unxz"),
            (b"PK\x03\x04\x14\0\0\0", "zip; unpack it first: unzip"),
            (b"BZh91AY&SY\xa8\xd3", "bzip2; unpack it first: bunzip2"),
        ] {
            let said = not_plain_reason(start).unwrap();
            assert!(said.contains(expected), "{said}");
        }
        for (start, expected) in [
            (&b"\x93NUMPY\x01\0"[..], "it is a NumPy file (.npy), and text is needed here"),
            (b"\x80\x02\0\0\0\0\0\0{\"a\"", "it is a safetensors file, and text is needed here"),
            (b"PAR1\x15\x04\x15\0", "it is a Parquet file, and text is needed here"),
            (b"7z\xbc\xaf\x27\x1c\0\x04", "it is a 7z archive; unpack it first"),
            (b"version https://git-lfs.github.com/spec/v1\noid", "git lfs pull"),
        ] {
            let said = not_plain_reason(start).unwrap();
            assert!(said.contains(expected), "{said}");
        }
        assert!(not_plain_reason(&little("a\tgood film\n")).unwrap().contains("iconv"));
        assert_eq!(not_plain_reason(b"PK is a label\tof this text\n"), None);
    }

    proptest! {
        #[test]
        fn any_ascii_text_is_known_as_utf16(text in "[ -~\t\n]{4,300}") {
            for bytes in [little(&text), big(&text)] {
                prop_assert!(not_plain_reason(&bytes).is_some());
            }
        }

        #[test]
        fn words_between_nuls_are_no_utf16(words in prop::collection::vec("[ -~\n]{3,9}", 0..99)) {
            prop_assert_eq!(utf16_reason(words.join("\0").as_bytes()), None);
        }
    }
}
