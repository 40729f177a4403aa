//! The texts of a vocabulary as a double array: which of them a text begins with, a byte a step.

/// No text ends here, or no state is here.
const NONE: u32 = u32::MAX;

/// A state: where those behind it are, which one is before it, and the id of the text that ends.
#[derive(Debug, Clone, Copy)]
struct State {
    base: u32,
    before: u32,
    id: u32,
}

const FREE: State = State { base: 0, before: NONE, id: NONE };

/// A text and its id.
type Text<'a> = (&'a [u8], u32);

/// Texts with their ids.
#[derive(Debug)]
pub(super) struct Trie {
    states: Vec<State>,
}

/// The next states of one are at `base ^ byte`, and so within a block of 256.
const BLOCK: usize = 256;

/// So many free places are tried for a state with several next ones, before a block is added.
const TRIED: usize = 64;

impl Trie {
    /// Of texts with their ids. Of equal ones the last counts; empty ones are left out.
    pub(super) fn new<'a>(texts: impl Iterator<Item = (&'a [u8], u32)>) -> Self {
        let mut texts: Vec<Text<'_>> = texts.filter(|(text, _)| !text.is_empty()).collect();
        // A stable order, so the last of equal ones is the last.
        texts.sort_by_key(|(text, _)| *text);
        let mut builder = Builder { states: vec![FREE; BLOCK], free: (1..BLOCK as u32).collect() };
        // The root is before itself, so nobody else takes its place.
        builder.states[0].before = 0;
        // States whose texts, all that go on behind so many bytes, have not been placed yet.
        let mut open = vec![(0u32, 0usize, &texts[..])];
        let mut next: Vec<(u8, &[Text<'_>])> = Vec::new();
        while let Some((state, depth, texts)) = open.pop() {
            next.clear();
            for same in texts.chunk_by(|a, b| a.0[depth] == b.0[depth]) {
                next.push((same[0].0[depth], same));
            }
            if next.is_empty() {
                continue;
            }
            let base = builder.place(&next);
            builder.states[state as usize].base = base;
            for (byte, same) in &next {
                let at = base ^ u32::from(*byte);
                let ended = same.iter().take_while(|(text, _)| text.len() == depth + 1).count();
                let id = same[..ended].last().map_or(NONE, |(_, id)| *id);
                builder.states[at as usize] = State { base: 0, before: state, id };
                if ended < same.len() {
                    open.push((at, depth + 1, &same[ended..]));
                }
            }
        }
        Self { states: builder.states }
    }

    /// Calls for each text that a text begins with, the shortest first: its length and id.
    pub(super) fn for_each_prefix(&self, text: &[u8], mut each: impl FnMut(usize, u32)) {
        let mut state = 0u32;
        for (at, byte) in text.iter().enumerate() {
            let next = self.states[state as usize].base ^ u32::from(*byte);
            let Some(found) = self.states.get(next as usize) else { return };
            // The root is before itself, and behind nothing.
            if found.before != state || next == 0 {
                return;
            }
            if found.id != NONE {
                each(at + 1, found.id);
            }
            state = next;
        }
    }

    /// The longest of the texts that a text begins with: its length and id.
    pub(super) fn longest(&self, text: &[u8]) -> Option<(usize, u32)> {
        let mut longest = None;
        self.for_each_prefix(text, |length, id| longest = Some((length, id)));
        longest
    }
}

struct Builder {
    states: Vec<State>,
    /// Free places, those that were added last at the end. Some may be taken by now.
    free: Vec<u32>,
}

impl Builder {
    /// A base with which all of the next states have a free place. They are taken.
    fn place(&mut self, next: &[(u8, &[Text<'_>])]) -> u32 {
        let first = u32::from(next[0].0);
        let mut tried = 0;
        let mut at = self.free.len();
        while at > 0 && tried < TRIED {
            at -= 1;
            let place = self.free[at];
            if self.is_taken(place) {
                self.free.swap_remove(at);
                continue;
            }
            let base = place ^ first;
            if next.iter().all(|(byte, _)| !self.is_taken(base ^ u32::from(*byte))) {
                self.free.swap_remove(at);
                self.take(base, next);
                return base;
            }
            tried += 1;
        }
        let base = self.states.len() as u32;
        self.states.resize(self.states.len() + BLOCK, FREE);
        self.take(base, next);
        self.free.extend(
            (base..base + BLOCK as u32).filter(|place| !self.states[*place as usize].is_taken()),
        );
        base
    }

    fn is_taken(&self, place: u32) -> bool {
        self.states[place as usize].is_taken()
    }

    fn take(&mut self, base: u32, next: &[(u8, &[Text<'_>])]) {
        for (byte, _) in next {
            self.states[(base ^ u32::from(*byte)) as usize].before = 0;
        }
    }
}

impl State {
    fn is_taken(self) -> bool {
        self.before != NONE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefixes(texts: &[&str], text: &str) -> Vec<(usize, u32)> {
        let trie = Trie::new(texts.iter().map(|text| text.as_bytes()).zip(0..));
        let mut found = Vec::new();
        trie.for_each_prefix(text.as_bytes(), |length, id| found.push((length, id)));
        found
    }

    #[test]
    fn the_texts_that_a_text_begins_with_are_found_shortest_first() {
        let texts = ["a", "abc", "b", "\u{e9}", "", "ab", "a"];
        assert_eq!(prefixes(&texts, "abcd"), [(1, 6), (2, 5), (3, 1)]);
        assert_eq!(prefixes(&texts, "\u{e9}"), [(2, 3)]);
        assert_eq!(prefixes(&texts, "\u{e8}"), []);
        assert_eq!(prefixes(&texts, "\0"), []);
        assert_eq!(prefixes(&[], "a"), []);
        assert_eq!(prefixes(&["\0", "\0\0"], "\0\0\0"), [(1, 0), (2, 1)]);
    }

    #[test]
    fn a_large_vocabulary_is_found_whole() {
        let texts: Vec<String> =
            (0..30_000u64).map(|n| format!("{:x}", n.wrapping_mul(0x9e37_79b9) % 65_521)).collect();
        let trie = Trie::new(texts.iter().map(|text| text.as_bytes()).zip(0..));
        for (text, id) in texts.iter().zip(0..) {
            let last = texts.iter().rposition(|other| other == text).filter(|_| id % 50 == 0);
            if let Some(last) = last {
                assert_eq!(trie.longest(text.as_bytes()), Some((text.len(), last as u32)));
            }
            assert!(trie.longest(text.as_bytes()).is_some());
        }
    }
}
