//! Unigram, as SentencePiece trains it: the pieces of a text whose scores have the largest sum.

use super::bytes::ByteTokens;
use super::fault::Fault;
use super::trie::Trie;

/// So much less than the smallest score has a character without a piece.
const PENALTY: f64 = 10.0;

/// The vocabulary of a Unigram tokeniser.
#[derive(Debug)]
pub(super) struct Unigram {
    pieces: Trie,
    scores: Vec<f64>,
    unknown: u32,
    unknown_score: f64,
    /// What unknown characters are cut into, if it has a token for each byte of them.
    bytes: Option<ByteTokens>,
}

/// The best way to a place in the text.
#[derive(Debug, Clone, Copy)]
pub(super) struct Best {
    score: f64,
    /// Where its last piece begins; [`NOWHERE`] if no way leads here.
    start: u32,
    id: u32,
}

const NOWHERE: u32 = u32::MAX;

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Work {
    best: Vec<Best>,
    /// Pieces from the end of the text to its beginning.
    pieces: Vec<(u32, usize, usize)>,
}

impl Unigram {
    /// Of the pieces by their ids, with their scores.
    pub(super) fn new(
        tokens: &[String],
        scores: Vec<f64>,
        unknown: u32,
        byte_fallback: bool,
    ) -> Result<Self, Fault> {
        if unknown as usize >= tokens.len() {
            let count = tokens.len();
            return Err(Fault::Faulty(format!("its unk_id is {unknown}, of {count} pieces")));
        }
        // Of equal pieces the last counts, as in the trie, but the smallest score is that of all.
        let unknown_score = scores.iter().copied().fold(f64::INFINITY, f64::min) - PENALTY;
        let pieces = Trie::new(tokens.iter().map(|token| token.as_bytes()).zip(0..));
        let bytes = byte_fallback.then(|| ByteTokens::new(|token| id_of(&pieces, token)));
        Ok(Self { scores, unknown, unknown_score, bytes, pieces })
    }

    pub(super) fn unknown(&self) -> u32 {
        self.unknown
    }

    /// Appends the ids of a text's pieces.
    pub(super) fn encode(&self, text: &str, work: &mut Work, ids: &mut Vec<u32>) {
        let Work { best, pieces } = work;
        best.clear();
        best.resize(text.len() + 1, Best { score: 0.0, start: NOWHERE, id: 0 });
        let mut at = 0;
        for sign in text.chars() {
            let (here, length) = (best[at].score, sign.len_utf8());
            let mut has_sign = false;
            self.pieces.for_each_prefix(&text.as_bytes()[at..], |piece, id| {
                has_sign |= piece == length;
                let score = self.scores[id as usize] + here;
                better(&mut best[at + piece], score, at, id);
            });
            if !has_sign {
                better(&mut best[at + length], self.unknown_score + here, at, self.unknown);
            }
            at += length;
        }
        pieces.clear();
        let mut end = text.len();
        while end > 0 {
            let Best { start, id, .. } = best[end];
            let start = start as usize;
            match pieces.last_mut() {
                // Unknown ones beside each other are one.
                Some((last, from, _)) if id == self.unknown && *last == id => *from = start,
                _ => pieces.push((id, start, end)),
            }
            end = start;
        }
        for (id, start, end) in pieces.drain(..).rev() {
            if id == self.unknown {
                self.encode_unknown(&text[start..end], ids);
            } else {
                ids.push(id);
            }
        }
    }

    /// The ids of a text that is unknown: it may be a piece all the same, or have bytes.
    fn encode_unknown(&self, text: &str, ids: &mut Vec<u32>) {
        if let Some(id) = id_of(&self.pieces, text) {
            ids.push(id);
        } else if !self.bytes.as_ref().is_some_and(|bytes| bytes.encode(text, ids)) {
            ids.push(self.unknown);
        }
    }
}

fn better(best: &mut Best, score: f64, start: usize, id: u32) {
    if best.start == NOWHERE || score > best.score {
        // Texts are shorter than that by far (MAX_TEXT_BYTES).
        *best = Best { score, start: start as u32, id };
    }
}

/// The id of a whole text.
fn id_of(pieces: &Trie, text: &str) -> Option<u32> {
    pieces.longest(text.as_bytes()).filter(|(length, _)| *length == text.len()).map(|(_, id)| id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ids_of(pieces: &[(&str, f64)], byte_fallback: bool, text: &str) -> Vec<u32> {
        let tokens: Vec<String> = pieces.iter().map(|(piece, _)| (*piece).to_owned()).collect();
        let scores = pieces.iter().map(|(_, score)| *score).collect();
        let model = Unigram::new(&tokens, scores, 0, byte_fallback).unwrap();
        let (mut ids, mut work) = (vec![9], Work::default());
        model.encode(text, &mut work, &mut ids);
        model.encode(text, &mut work, &mut ids);
        let half = ids.len() / 2;
        assert_eq!(ids[1..=half], ids[half + 1..], "the same again");
        ids[1..=half].to_vec()
    }

    const PIECES: [(&str, f64); 7] = [
        ("<unk>", 0.0),
        ("a", -1.0),
        ("b", -2.0),
        ("ab", -3.5),
        ("abc", -9.0),
        ("<0xC3>", -9.0),
        ("<0xA9>", -9.0),
    ];

    #[test]
    fn the_largest_sum_of_scores_is_taken() {
        let ids = |text: &str| ids_of(&PIECES, false, text);
        assert_eq!(ids("ab"), [1, 2]);
        assert_eq!(ids("abcb"), [4, 2]);
        assert_eq!(ids(""), [0; 0]);
        // As good: the last piece that begins first.
        assert_eq!(ids_of(&[("?", -9.0), ("a", -1.0), ("aa", -2.0)], false, "aaa"), [1, 2]);
    }

    #[test]
    fn unknown_characters_are_one_token_or_their_bytes() {
        assert_eq!(ids_of(&PIECES, false, "xya\u{e9}"), [0, 1, 0]);
        assert_eq!(ids_of(&PIECES, true, "xa\u{e9}"), [0, 1, 5, 6]);
        // All bytes of unknown characters beside each other must have tokens.
        assert_eq!(ids_of(&PIECES, true, "\u{e9}x"), [0]);
        assert_eq!(ids_of(&PIECES, true, "<unk>"), [0]);
        assert_eq!(ids_of(&PIECES, true, "<unk>\u{e9}"), [0]);
    }

    #[test]
    fn an_unknown_id_that_is_no_piece_is_refused() {
        assert!(Unigram::new(&[], Vec::new(), 0, false).is_err());
    }
}
