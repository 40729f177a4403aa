//! Signatures of the formats that are read: they count before those of all other files.

/// The byte order mark that some Windows programs write at the start of text.
pub(super) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";
/// The bytes that tell safetensors.
pub(super) const SAFETENSORS_BYTES: usize = 9;
/// The bytes that tell bzip2.
pub(super) const BZIP2_BYTES: usize = 10;

/// Whether a file with these first bytes is safetensors: the length of a header, below 16 MiB, and
/// the brace that begins the header. The length may look like another file's signature: 640 like
/// that of a pickle, 35,615 like that of gzip.
pub fn is_safetensors(start: &[u8]) -> bool {
    matches!(start, [_, _, _, 0, 0, 0, 0, 0, b'{', ..])
}

/// Whether more bytes may show that a file is safetensors.
pub(super) fn may_be_safetensors(start: &[u8]) -> bool {
    start.len() >= 4 && start[3..start.len().min(8)].iter().all(|&byte| byte == 0)
}

/// Whether these are the first bytes of bzip2, or as many of them as there are: a word may begin
/// with the first four.
pub(super) fn is_bzip2(start: &[u8]) -> bool {
    /// A block, or the end of a file without any.
    const NEXT: [&[u8]; 2] = [b"1AY&SY", b"\x17\x72\x45\x38\x50\x90"];
    let Some([b'1'..=b'9', rest @ ..]) = start.strip_prefix(b"BZh") else { return false };
    let begins = |next: &&[u8]| next.starts_with(rest) || rest.starts_with(next);
    !rest.is_empty() && NEXT.iter().any(begins)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_length_of_any_header_is_safetensors() {
        for length in [8_u64, 640, 648, 896, 1152, 1408, 35_615, 65_279, 1_000_000] {
            let start = [&length.to_le_bytes()[..], b"{\"a\":"].concat();
            assert!(is_safetensors(&start) && may_be_safetensors(&start[..6]), "{length}");
        }
        for other in [&b"\x80\x02}q\0.\0\0\0\0"[..], b"\x80\x02\0\0\0\0\0\0", b"{\"a\": 1}\n{", b""]
        {
            assert!(!is_safetensors(other), "{other:?}");
        }
    }

    #[test]
    fn words_are_no_bzip2() {
        for start in [&b"BZh91AY&SY\xa8\xd3"[..], b"BZh11A", b"BZh9\x17\x72\x45\x38\x50\x90\0\0"] {
            assert!(is_bzip2(start), "{start:?}");
        }
        for start in [&b"BZh9"[..], b"BZh9 0.5 1", b"BZh01AY&SY", b"BZhA1AY&SY", b"BZh91AY 1 2"] {
            assert!(!is_bzip2(start), "{start:?}");
        }
    }
}
