//! A text while it is normalised, and how much of its beginning came from the original's beginning.
//!
//! A Metaspace whose `prepend_scheme` is `first` puts its sign before a piece if that begins where
//! the original text does. `tokenizers` finds this by the place in the original of each byte; here,
//! the number of bytes at the beginning is kept whose place is 0. Places never go down, so this is
//! enough.

use std::mem;

/// A text that is rewritten step by step.
#[derive(Debug, Default)]
pub(super) struct Normal {
    pub(super) text: String,
    /// The text before the last step: memory that is used again.
    spare: String,
    /// How many bytes of the text are from the original's beginning; `None`: nobody asks.
    pub(super) head: Option<usize>,
}

impl Normal {
    /// Begins with a part of a text. `head`: whether it is the first, and somebody asks.
    pub(super) fn begin(&mut self, text: &str, head: bool) {
        self.text.clear();
        self.text.push_str(text);
        self.head = head.then(|| text.chars().next().map_or(0, char::len_utf8));
    }

    /// A step that writes the new text and returns the new head.
    pub(super) fn step(
        &mut self,
        step: impl FnOnce(&str, Option<usize>, &mut String) -> Option<usize>,
    ) {
        self.spare.clear();
        self.head = step(&self.text, self.head, &mut self.spare);
        mem::swap(&mut self.text, &mut self.spare);
    }

    /// Leaves out the other characters.
    pub(super) fn keep(&mut self, keep: impl Fn(char) -> bool) {
        self.step(|text, head, normal| {
            let kept = text.chars().filter(|sign| keep(*sign));
            if head.is_none() {
                normal.extend(kept);
                return None;
            }
            let removed = text.chars().take_while(|sign| !keep(*sign)).count();
            let mut changes: Vec<(char, isize)> = Vec::new();
            for sign in text.chars() {
                if keep(sign) {
                    changes.push((sign, 0));
                } else if let Some((_, change)) = changes.last_mut() {
                    *change -= 1;
                }
            }
            rewrite(text, head, removed, changes.into_iter(), normal)
        });
    }

    /// Puts a text before it, if there is any.
    pub(super) fn prepend(&mut self, before: &str) {
        if self.text.is_empty() {
            return;
        }
        self.text.insert_str(0, before);
        // It is from the same place as the first character.
        self.head = self.head.map(|head| if head > 0 { head + before.len() } else { 0 });
    }
}

/// Writes characters with their changes and returns the head of what was written.
///
/// A change is 0 for a character that stands for the next one of the text, 1 for one more, and
/// less than 0 for one that stands for the next and as many behind it. `removed` characters at the
/// beginning of the text have gone. So `tokenizers` has it.
pub(super) fn rewrite(
    text: &str,
    head: Option<usize>,
    removed: usize,
    mut changes: impl Iterator<Item = (char, isize)>,
    normal: &mut String,
) -> Option<usize> {
    let Some(head) = head else {
        normal.extend(changes.map(|(sign, _)| sign));
        return None;
    };
    let mut signs = text.chars();
    let mut skip = |count: usize| signs_len(&mut signs, count);
    let mut at = skip(removed);
    let mut new_head = 0;
    for (sign, change) in changes.by_ref() {
        let is_first = if change > 0 { at == 0 || at <= head } else { at < head };
        normal.push(sign);
        if !is_first {
            break;
        }
        new_head = normal.len();
        if change <= 0 {
            at += skip(1 + change.unsigned_abs());
        }
    }
    normal.extend(changes.map(|(sign, _)| sign));
    Some(new_head)
}

/// The bytes of the next characters, which are read.
fn signs_len(signs: &mut std::str::Chars<'_>, count: usize) -> usize {
    signs.take(count).map(char::len_utf8).sum()
}

/// Writes the text with another text for the ranges that match, and returns the head of what was
/// written.
pub(super) fn replace(
    text: &str,
    head: Option<usize>,
    matches: impl Iterator<Item = std::ops::Range<usize>>,
    with: &str,
    normal: &mut String,
) -> Option<usize> {
    let (asked, start) = (head, normal.len());
    let head = head.unwrap_or(0);
    let (mut behind, mut new_head) = (0, 0);
    for found in matches {
        if head > behind {
            new_head = normal.len() - start + head.min(found.start) - behind;
        }
        normal.push_str(&text[behind..found.start]);
        normal.push_str(with);
        // What is put in has the place of the last byte that it is for.
        if found.end <= head && !with.is_empty() {
            new_head = normal.len() - start;
        }
        behind = found.end;
    }
    if head > behind {
        new_head = normal.len() - start + head - behind;
    }
    normal.push_str(&text[behind..]);
    asked.map(|_| new_head)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head_of(text: &str, removed: usize, changes: &[(char, isize)]) -> (String, usize) {
        let mut normal = String::new();
        let first = text.chars().next().map(char::len_utf8);
        let head = rewrite(text, first, removed, changes.iter().copied(), &mut normal);
        (normal, head.unwrap())
    }

    #[test]
    fn the_head_grows_with_characters_for_the_first_and_goes_with_it() {
        // As NFKC writes an ellipsis.
        assert_eq!(head_of("\u{2026}x", 0, &[('.', 0), ('.', 1), ('.', 1), ('x', 0)]).1, 3);
        assert_eq!(head_of(" x", 1, &[('x', 0)]), ("x".into(), 0));
        assert_eq!(head_of("e\u{301}x", 0, &[('\u{e9}', -1), ('x', 0)]).1, 2);
        let mut normal = Normal::default();
        normal.begin("ab", true);
        normal.prepend("--");
        assert_eq!((&normal.text[..], normal.head), ("--ab", Some(3)));
        normal.keep(|sign| sign != '-');
        assert_eq!((&normal.text[..], normal.head), ("ab", Some(1)));
        normal.keep(|sign| sign != 'a');
        assert_eq!((&normal.text[..], normal.head), ("b", Some(0)));
    }

    #[test]
    fn a_replaced_beginning_has_the_place_of_its_last_byte() {
        let of = |text: &str, ranges: &[[usize; 2]], with: &str| {
            let mut normal = String::new();
            let first = text.chars().next().map(char::len_utf8);
            let head =
                replace(text, first, ranges.iter().map(|[from, to]| *from..*to), with, &mut normal);
            (normal, head.unwrap())
        };
        assert_eq!(of(" a", &[[0, 1]], "__"), ("__a".into(), 2));
        assert_eq!(of("  a", &[[0, 2]], "_"), ("_a".into(), 0));
        assert_eq!(of("a  b", &[[1, 3]], "_"), ("a_b".into(), 1));
        assert_eq!(of("ab", &[], "_"), ("ab".into(), 1));
        assert_eq!(of(" ", &[[0, 1]], ""), (String::new(), 0));
    }
}
