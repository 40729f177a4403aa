//! A row as a line of text.

/// One line of text: the word, then each component in the shortest decimals that read back as the
/// same float32.
pub(super) fn write_line(word: &[u8], components: &[f32], out: &mut Vec<u8>) {
    let mut buffer = zmij::Buffer::new();
    out.extend_from_slice(word);
    for &component in components {
        out.push(b' ');
        out.extend_from_slice(buffer.format_finite(component).as_bytes());
    }
    out.push(b'\n');
}
