//! A text while it is cut into pieces, and what each kind of cut does with the signs it is at.

use std::mem;
use std::ops::Range;

use serde::Deserialize;

/// The pieces of a text, in their order.
#[derive(Debug, Default)]
pub(super) struct Pieces {
    text: String,
    /// Where they are; none is empty.
    ranges: Vec<Range<usize>>,
    /// How many bytes of the text are from the original's beginning ([`super::normal`]).
    head: usize,
    /// The text and the ranges before the last step: memory that is used again.
    spare: (String, Vec<Range<usize>>),
}

/// What becomes of the signs at which a text is cut.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(super) enum Behavior {
    /// They go.
    Removed,
    /// Each is a piece.
    Isolated,
    /// Those beside each other are one piece.
    Contiguous,
    /// Each ends the piece before it.
    MergedWithPrevious,
    /// Each begins the piece behind it.
    MergedWithNext,
}

impl Pieces {
    /// Begins with a text that is one piece.
    pub(super) fn begin(&mut self, text: &str, head: usize) {
        self.text.clear();
        self.text.push_str(text);
        self.ranges.clear();
        self.ranges.extend((!text.is_empty()).then_some(0..text.len()));
        self.head = head;
    }

    /// The pieces.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        self.ranges.iter().map(|range| &self.text[range.clone()])
    }

    /// Cuts each piece: calls with it for the ranges in it that are pieces.
    pub(super) fn cut(&mut self, mut cut: impl FnMut(&str, &mut dyn FnMut(Range<usize>))) {
        let (_, cuts) = &mut self.spare;
        cuts.clear();
        for range in &self.ranges {
            cut(&self.text[range.clone()], &mut |part| {
                if !part.is_empty() {
                    cuts.push(range.start + part.start..range.start + part.end);
                }
            });
        }
        mem::swap(&mut self.ranges, cuts);
    }

    /// Writes each piece anew: calls with it, its head, and where to write. The head of what was
    /// written is returned.
    pub(super) fn write(&mut self, mut write: impl FnMut(&str, usize, &mut String) -> usize) {
        let (text, ranges) = &mut self.spare;
        text.clear();
        ranges.clear();
        let mut head = 0;
        for range in &self.ranges {
            let start = text.len();
            let own = self.head.clamp(range.start, range.end) - range.start;
            let own = write(&self.text[range.clone()], own, text);
            if own > 0 {
                head = start + own;
            }
            if start < text.len() {
                ranges.push(start..text.len());
            }
        }
        self.head = head;
        mem::swap(&mut self.text, text);
        mem::swap(&mut self.ranges, ranges);
    }
}

/// Cuts a text at the ranges that match; these are in their order, and not empty. If `inverted`,
/// it is cut at what is between them.
pub(super) fn cut_at(
    text: &str,
    matches: impl Iterator<Item = Range<usize>>,
    inverted: bool,
    behavior: Behavior,
    piece: &mut dyn FnMut(Range<usize>),
) {
    // The piece that may still grow, and whether it has, or is, a match.
    let (mut open, mut is_match) = (0..0, false);
    let mut next = |range: Range<usize>, matches: bool| {
        if range.is_empty() {
            return;
        }
        let joins = match behavior {
            Behavior::Removed | Behavior::Isolated => false,
            Behavior::Contiguous => matches == is_match,
            Behavior::MergedWithPrevious => matches && !is_match,
            Behavior::MergedWithNext => !matches && is_match,
        };
        if joins && !open.is_empty() {
            open.end = range.end;
        } else {
            piece(mem::replace(&mut open, range));
        }
        is_match = matches;
        if matches && behavior == Behavior::Removed {
            open = 0..0;
        }
    };
    let mut behind = 0;
    for found in matches {
        next(behind..found.start, inverted);
        behind = found.end;
        next(found, !inverted);
    }
    next(behind..text.len(), inverted);
    piece(open);
}

/// The characters of a text that match, each as a range.
pub(super) fn signs(text: &str, is: fn(char) -> bool) -> impl Iterator<Item = Range<usize>> {
    let found = text.char_indices().filter(move |(_, sign)| is(*sign));
    found.map(|(at, sign)| at..at + sign.len_utf8())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, behavior: Behavior) -> Vec<&str> {
        let mut pieces = Vec::new();
        cut_at(text, signs(text, |sign| sign == '-'), false, behavior, &mut |range| {
            if !range.is_empty() {
                pieces.push(&text[range]);
            }
        });
        pieces
    }

    #[test]
    fn signs_go_where_the_behavior_says() {
        let text = "the-final--countdown-";
        assert_eq!(cut(text, Behavior::Removed), ["the", "final", "countdown"]);
        assert_eq!(
            cut(text, Behavior::Isolated),
            ["the", "-", "final", "-", "-", "countdown", "-"]
        );
        assert_eq!(cut(text, Behavior::Contiguous), ["the", "-", "final", "--", "countdown", "-"]);
        assert_eq!(cut(text, Behavior::MergedWithPrevious), ["the-", "final-", "-", "countdown-"]);
        assert_eq!(cut(text, Behavior::MergedWithNext), ["the", "-final", "-", "-countdown", "-"]);
        for behavior in [Behavior::Removed, Behavior::Isolated, Behavior::MergedWithNext] {
            assert_eq!(cut("", behavior), [""; 0]);
        }
        assert_eq!(cut("--a", Behavior::MergedWithPrevious), ["-", "-", "a"]);
        assert_eq!(cut("--a", Behavior::Contiguous), ["--", "a"]);
    }

    #[test]
    fn pieces_are_written_anew_with_the_head_of_the_first() {
        let mut pieces = Pieces::default();
        pieces.begin("a-b", 1);
        pieces.cut(|text, piece| {
            cut_at(text, signs(text, |c| c == '-'), false, Behavior::Removed, piece);
        });
        let mut heads = Vec::new();
        pieces.write(|text, head, to| {
            heads.push(head);
            to.push_str(&text.repeat(2));
            head * 2
        });
        assert_eq!(pieces.iter().collect::<Vec<_>>(), ["aa", "bb"]);
        assert_eq!((heads, pieces.head), (vec![1, 0], 2));
        pieces.begin("", 0);
        assert_eq!(pieces.iter().count(), 0);
    }
}
