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
            Some(label) if label.contains(PREFIX) => {
                return Err(format!(
                    "nothing separates its labels `{word}`; write spaces between them: \
                     `{PREFIX}x {PREFIX}y`"
                ));
            }
            Some(label) if label.ends_with(',') => {
                return Err(format!(
                    "its label `{word}` ends in a comma, which would be part of it; write a space \
                     instead"
                ));
            }
            Some(label) => labels.push(label.to_owned()),
            None => words.push(word),
        }
    }
    match labels.is_empty() {
        true if is_between_quotes(line) => Err(format!(
            "it is between quotes, so it has no label such as `{PREFIX}x`; remove them: sed \
             's/^\"//; s/\"$//' FILE (pandas: quoting=csv.QUOTE_NONE)"
        )),
        true => Err(format!("it has no label such as `{PREFIX}x`")),
        false => Ok(Labelled { labels, text: words.join(" ") }),
    }
}

/// Whether a line with a label is between quotes, as programs for CSV write it.
fn is_between_quotes(line: &str) -> bool {
    line.trim_start().strip_prefix('"').is_some_and(|line| line.starts_with(PREFIX))
}

/// Whether a line has a label, or would have one without quotes around it.
pub(super) fn has_label(line: &str) -> bool {
    let is_label = |word: &str| word.len() > PREFIX.len() && word.starts_with(PREFIX);
    line.split_whitespace().any(is_label) || is_between_quotes(line)
}
