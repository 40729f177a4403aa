//! Text in other encodings than UTF-8, by the names of the WHATWG's Encoding Standard.
//!
//! A byte order mark overrides the name.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, Read};
use std::str::FromStr;

use encoding_rs::{Decoder, DecoderResult, Encoding, UTF_8};

/// A character encoding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TextEncoding(&'static Encoding);

/// Replaces bytes that an encoding does not have. UTF-8 does not have it either, so its word is
/// refused.
const BROKEN: u8 = 0xff;

/// Why a text can't be decoded.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: it has bytes that are not {encoding}; give another --encoding")]
pub struct NotEncoded {
    /// The line, from 1.
    pub line: usize,
    encoding: TextEncoding,
}

impl TextEncoding {
    /// The encoding, unless it is UTF-8, which needs no decoding.
    pub(super) fn other_than_utf8(self) -> Option<Self> {
        (self.0 != UTF_8).then_some(self)
    }

    /// Reads text in this encoding as UTF-8.
    pub(super) fn reader<R: Read>(self, inner: R) -> DecodingReader<R> {
        DecodingReader {
            inner,
            decoder: self.0.new_decoder(),
            bytes: Vec::new(),
            used: 0,
            text: Vec::new(),
            taken: 0,
            at_end: false,
            is_over: false,
        }
    }

    /// These bytes as UTF-8, but for bytes that the encoding does not have.
    pub(super) fn to_utf8(self, bytes: &[u8]) -> Vec<u8> {
        // A reader has large buffers, and most of these bytes are single words.
        let (text, _, is_broken) = self.0.decode(bytes);
        if !is_broken {
            return text.into_owned().into_bytes();
        }
        let mut text = Vec::new();
        self.reader(bytes).read_to_end(&mut text).expect("bytes in memory can be read");
        text
    }

    /// The whole content of a file as text.
    ///
    /// # Errors
    /// If a line has bytes that the encoding does not have.
    pub fn decode(self, content: Vec<u8>) -> Result<String, NotEncoded> {
        let text = match self.other_than_utf8() {
            Some(other) => other.to_utf8(&content),
            None => content,
        };
        String::from_utf8(text).map_err(|error| {
            let before = &error.as_bytes()[..error.utf8_error().valid_up_to()];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count();
            NotEncoded { line, encoding: self }
        })
    }

    /// A word that was decoded, if all of its bytes were in the encoding.
    pub(super) fn word(self, decoded: &[u8]) -> Result<&str, String> {
        std::str::from_utf8(decoded)
            .map_err(|_| format!("the word has bytes that are not {self}; give another --encoding"))
    }
}

impl FromStr for TextEncoding {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let find = |name: &str| Encoding::for_label_no_replacement(name.as_bytes());
        if let Some(found) = find(name) {
            return Ok(Self(found));
        }
        // As Python and iconv write some.
        let plain: String = name.chars().filter(|c| !matches!(c, '-' | '_' | ' ')).collect();
        let meant = [name.replace('_', "-"), plain].into_iter().find(|name| find(name).is_some());
        let meant = meant.map(|meant| format!("do you mean `{meant}`? ")).unwrap_or_default();
        Err(format!(
            "unknown encoding `{name}`; {meant}it must be a name of the WHATWG's Encoding Standard, such \
             as windows-1252 (also latin1), windows-1251, shift_jis, gbk, euc-kr or utf-16le"
        ))
    }
}

impl fmt::Display for TextEncoding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.name())
    }
}

/// Reads text as UTF-8.
pub(super) struct DecodingReader<R> {
    inner: R,
    decoder: Decoder,
    /// Bytes that were read; the first `used` of them are decoded.
    bytes: Vec<u8>,
    used: usize,
    /// Decoded text; the first `taken` bytes of it were passed on.
    text: Vec<u8>,
    taken: usize,
    /// Whether there are no more bytes.
    at_end: bool,
    /// Whether there is no more text.
    is_over: bool,
}

impl<R: Read> DecodingReader<R> {
    /// Reads bytes if there are none, and decodes some.
    fn decode_more(&mut self) -> io::Result<()> {
        /// Bytes per read.
        const BYTES: usize = 64 << 10;
        /// No encoding makes more text of them.
        const TEXT_BYTES: usize = 3 * BYTES;
        if self.used == self.bytes.len() && !self.at_end {
            self.bytes.resize(BYTES, 0);
            let read = self.inner.read(&mut self.bytes);
            self.bytes.truncate(*read.as_ref().unwrap_or(&0));
            self.used = 0;
            self.at_end = read? == 0;
        }
        self.text.resize(TEXT_BYTES, 0);
        let (result, used, written) = self.decoder.decode_to_utf8_without_replacement(
            &self.bytes[self.used..],
            &mut self.text,
            self.at_end,
        );
        self.used += used;
        self.text.truncate(written);
        self.taken = 0;
        match result {
            DecoderResult::InputEmpty => self.is_over = self.at_end,
            DecoderResult::OutputFull => {}
            DecoderResult::Malformed(..) => self.text.push(BROKEN),
        }
        Ok(())
    }
}

impl<R: Read> Read for DecodingReader<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.text.len() {
            if self.is_over {
                return Ok(0);
            }
            self.decode_more()?;
        }
        let bytes = buffer.len().min(self.text.len() - self.taken);
        buffer[..bytes].copy_from_slice(&self.text[self.taken..self.taken + bytes]);
        self.taken += bytes;
        Ok(bytes)
    }
}

/// A word in this encoding, if any, as UTF-8 in which bytes that it does not have are not valid.
pub(super) fn word_in(encoding: Option<TextEncoding>, word: &[u8]) -> Cow<'_, [u8]> {
    match encoding {
        None => Cow::Borrowed(word),
        Some(encoding) => Cow::Owned(encoding.to_utf8(word)),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn named(name: &str) -> TextEncoding {
        name.parse().unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    #[test]
    fn names_are_those_of_the_encoding_standard_in_any_case() {
        for (name, expected) in [
            ("latin1", "windows-1252"),
            ("ISO-8859-1", "windows-1252"),
            ("iso-8859-15", "ISO-8859-15"),
            ("cp1251", "windows-1251"),
            ("Shift_JIS", "Shift_JIS"),
            ("gb2312", "GBK"),
            ("utf-16", "UTF-16LE"),
            ("utf8", "UTF-8"),
        ] {
            assert_eq!(named(name).to_string(), expected, "{name}");
        }
        for (name, meant) in [("latin-1", "`latin1`"), ("euc_jp", "`euc-jp`")] {
            let error = name.parse::<TextEncoding>().unwrap_err();
            assert!(error.contains(meant), "{error}");
        }
        // The last is none that text could be read in.
        for name in ["", "klingon", "iso-2022-kr"] {
            let error = name.parse::<TextEncoding>().unwrap_err();
            assert!(error.contains("; it must be") && error.contains("windows-1252"), "{error}");
        }
    }

    #[test]
    fn bytes_become_the_text_that_they_stand_for() {
        for (name, bytes, expected) in [
            ("latin1", &b"caf\xe9 \x80"[..], "café €"),
            ("koi8-r", b"\xc6\xc9\xcc\xd8\xcd", "фильм"),
            ("shift_jis", b"\x93\xfa\x96{", "日本"),
            ("gb18030", b"\x81\x30\x81\x30", "\u{80}"),
            ("utf-16be", b"\0a\xd8\x3d\xde\x00", "a😀"),
            // A mark says more than the name, and is no text.
            ("latin1", b"\xef\xbb\xbf\xc3\xa9", "é"),
            ("utf-16le", b"\xfe\xff\0a", "a"),
        ] {
            let text = named(name).decode(bytes.to_vec()).unwrap();
            assert_eq!(text, expected, "{name}");
        }
    }

    #[test]
    fn bytes_that_an_encoding_does_not_have_are_named() {
        for (name, bytes) in [
            ("shift_jis", &b"a\nb\n\xff\n"[..]),
            ("shift_jis", b"a\nb\n\x93"),
            ("utf-8", b"a\nb\n\xe9\n"),
            ("utf-16le", b"a\0\n\0b\0\n\0\0\xdc\n\0"),
            ("utf-16le", b"a\0\n\0b\0\n\0c"),
        ] {
            let error = named(name).decode(bytes.to_vec()).unwrap_err();
            assert_eq!(error.line, 3, "{name}: {error}");
            assert!(error.to_string().contains(&named(name).to_string()), "{error}");
        }
        assert!(named("shift_jis").word(&named("shift_jis").to_utf8(b"\xff")).is_err());
    }

    /// Passes its bytes on in pieces, and is interrupted between them.
    struct Pieces<'a>(Vec<&'a [u8]>, bool);

    impl Read for Pieces<'_> {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 = !self.1;
            if self.1 {
                return Err(io::ErrorKind::Interrupted.into());
            }
            let Some(piece) = self.0.pop() else { return Ok(0) };
            buffer[..piece.len()].copy_from_slice(piece);
            Ok(piece.len())
        }
    }

    proptest! {
        #[test]
        fn text_in_any_pieces_is_the_same(
            bytes in prop::collection::vec(any::<u8>(), 0..60),
            at in 0usize..60,
            name in prop_oneof![
                Just("windows-1252"), Just("shift_jis"), Just("gb18030"), Just("utf-16le"),
                Just("iso-2022-jp"),
            ],
        ) {
            let encoding = named(name);
            let (first, second) = bytes.split_at(at.min(bytes.len()));
            let pieces = [second, first].into_iter().filter(|piece| !piece.is_empty()).collect();
            let mut text = Vec::new();
            encoding.reader(Pieces(pieces, false)).read_to_end(&mut text).unwrap();
            prop_assert_eq!(text, encoding.to_utf8(&bytes));
        }

        #[test]
        fn long_text_comes_back(text in "[a-zé€\n]{0,40}", times in 1usize..3000) {
            let encoding = named("windows-1252");
            let bytes: Vec<u8> = text
                .chars()
                .map(|c| match c { 'é' => 0xe9, '€' => 0x80, c => c as u8 })
                .collect();
            prop_assert_eq!(encoding.decode(bytes.repeat(times)), Ok(text.repeat(times)));
        }
    }
}
