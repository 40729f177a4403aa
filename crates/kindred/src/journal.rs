//! Lines of a journal, each after the CRC-32 of the rest of the line: a line that was torn, and
//! what follows it, does not count.

/// A line with this text, which has no end of line.
pub(crate) fn line(text: &str) -> String {
    format!("{:08x} {text}\n", crc32fast::hash(text.as_bytes()))
}

/// The texts of the lines up to the first that is not whole, each with the place where its line
/// ends.
pub(crate) fn whole_lines(bytes: &[u8]) -> impl Iterator<Item = (&str, usize)> {
    let mut end = 0;
    bytes.split_inclusive(|&byte| byte == b'\n').map_while(move |line| {
        end += line.len();
        Some((whole(line)?, end))
    })
}

/// The text of a line, if the line is as it was written.
fn whole(line: &[u8]) -> Option<&str> {
    let line = std::str::from_utf8(line).ok()?.strip_suffix('\n')?;
    let (checksum, text) = line.split_at_checked(8)?;
    let text = text.strip_prefix(' ')?;
    (checksum == format!("{:08x}", crc32fast::hash(text.as_bytes()))).then_some(text)
}
