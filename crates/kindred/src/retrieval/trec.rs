//! TREC's markup: elements such as `<doc>`, in capitals or not, not all of them closed. It resembles XML, and is none.

use crate::evaluation::EvaluationError;
use crate::evaluation::source::Source;

/// The content of an element, and where it begins.
#[derive(Debug)]
pub(super) struct Element<'a> {
    /// The line of its first tag, from 1.
    pub(super) line: u64,
    content: &'a str,
}

/// The elements of a name, in order. What is between them is left out.
pub(super) fn elements<'a>(
    source: &'a Source,
    name: &str,
) -> Result<Vec<Element<'a>>, EvaluationError> {
    let mut found = Vec::new();
    let (mut open, mut line, mut counted) = (None, 1, 0);
    for tag in tags(&source.text) {
        if !tag.name.eq_ignore_ascii_case(name) {
            continue;
        }
        line += source.text[counted..tag.start].matches('\n').count() as u64;
        counted = tag.start;
        match (tag.closes, open) {
            (false, None) => open = Some((line, tag.end)),
            (true, Some((line, start))) => {
                found.push(Element { line, content: &source.text[start..tag.start] });
                open = None;
            }
            (false, Some((first, _))) => {
                let what =
                    format!("<{name}> is not closed before the one of line {line}; add </{name}>");
                return Err(source.error(first, what));
            }
            (true, None) => {
                let what = format!("</{name}> closes nothing; add <{name}> before it");
                return Err(source.error(line, what));
            }
        }
    }
    if let Some((line, _)) = open {
        return Err(source.error(line, format!("<{name}> is not closed; add </{name}>")));
    }
    if found.is_empty() {
        return Err(source.empty(format!("it has no <{name}>; give a file that has some")));
    }
    Ok(found)
}

impl Element<'_> {
    /// The texts of the closed elements of a name in it, without tags.
    pub(super) fn inside(&self, name: &str) -> Vec<String> {
        let (mut found, mut open) = (Vec::new(), None);
        for tag in tags(self.content).filter(|tag| tag.name.eq_ignore_ascii_case(name)) {
            match (tag.closes, open) {
                (false, _) => open = Some(tag.end),
                (true, Some(start)) => {
                    found.push(text(&self.content[start..tag.start], &[]));
                    open = None;
                }
                (true, None) => {}
            }
        }
        found
    }

    /// What stands between the first tag of a name and the next tag.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        let mut tags = tags(self.content);
        let start = tags.find(|tag| !tag.closes && tag.name.eq_ignore_ascii_case(name))?.end;
        let end = tags.next().map_or(self.content.len(), |tag| tag.start);
        Some(text(&self.content[start..end], &[]))
    }

    /// All of its text, without the elements of these names.
    pub(super) fn besides(&self, names: &[&str]) -> String {
        text(self.content, names)
    }
}

/// A tag, and where it is.
struct Tag<'a> {
    name: &'a str,
    closes: bool,
    start: usize,
    end: usize,
}

/// The tags of a text: `<`, a letter or `/`, and all up to `>`. A `<` before anything else is text.
fn tags(text: &str) -> impl Iterator<Item = Tag<'_>> {
    let mut from = 0;
    std::iter::from_fn(move || {
        loop {
            let start = from + text[from..].find('<')?;
            from = start + 1;
            let inner = &text[from..];
            let (closes, name) = match inner.strip_prefix('/') {
                Some(name) => (true, name),
                None => (false, inner),
            };
            if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
                continue;
            }
            let Some(length) = name.find(['<', '>']).filter(|&end| name[end..].starts_with('>'))
            else {
                continue;
            };
            let end = from + usize::from(closes) + length + 1;
            from = end;
            let name = name[..length].split(|c: char| c.is_whitespace() || c == '/').next();
            return Some(Tag { name: name.unwrap_or_default(), closes, start, end });
        }
    })
}

/// A text without tags, and without the elements of some names.
fn text(content: &str, without: &[&str]) -> String {
    let (mut found, mut from, mut skipped) = (String::new(), 0, None);
    for tag in tags(content) {
        match skipped {
            None => {
                found.push_str(&content[from..tag.start]);
                found.push(' ');
                let is_skipped = |name: &&&str| tag.name.eq_ignore_ascii_case(name);
                skipped = without.iter().find(is_skipped).filter(|_| !tag.closes);
            }
            Some(name) if tag.closes && tag.name.eq_ignore_ascii_case(name) => skipped = None,
            Some(_) => {}
        }
        from = tag.end;
    }
    if skipped.is_none() {
        found.push_str(&content[from..]);
    }
    unescaped(&found)
}

fn unescaped(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&apos;", "'").replace("&amp;", "&")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_that_begins_no_tag_is_text() {
        let names: Vec<&str> =
            tags("a < b <1> <p class='x'>c</p> <br/> <a <b> <").map(|tag| tag.name).collect();
        assert_eq!(names, ["p", "p", "br", "b"]);
        assert_eq!(text("a < b <p>c</p>&lt;p&gt; &amp;lt;", &[]), "a < b  c <p> &lt;");
    }

    #[test]
    fn elements_that_are_left_out_take_their_content_along() {
        assert_eq!(
            text("a<n>1<i>2</i></n>b<N>3</N>", &["n"]).split_whitespace().collect::<Vec<_>>(),
            ["a", "b"]
        );
        assert_eq!(text("a<n>1", &["n"]).trim(), "a", "also where they are not closed");
    }
}
