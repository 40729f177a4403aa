//! Lines of fastText.

use super::Labelled;

/// The start of a label.
pub(super) const PREFIX: &str = "__label__";

/// Reads a line. As for fastText, labels may stand anywhere between white space.
pub(super) fn read(line: &str) -> Result<Labelled, String> {
    let (mut labels, mut words) = (Vec::new(), Vec::new());
    for word in line.split_whitespace() {
        match word.strip_prefix(PREFIX) {
            Some(label) if label.contains(&format!(",{PREFIX}")) => {
                return Err(format!(
                    "commas separate its labels `{word}`; write spaces instead: \
                     `{PREFIX}x {PREFIX}y`"
                ));
            }
            Some(label) => labels.push(label.to_owned()),
            None => words.push(word),
        }
    }
    match labels.is_empty() {
        true => Err(format!("it has no label such as `{PREFIX}x`")),
        false => Ok(Labelled { labels, text: words.join(" ") }),
    }
}

/// Whether a line has a label.
pub(super) fn has_label(line: &str) -> bool {
    line.split_whitespace().any(|word| word.len() > PREFIX.len() && word.starts_with(PREFIX))
}
