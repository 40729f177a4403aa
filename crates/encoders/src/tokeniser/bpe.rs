//! BPE: a word's characters, of which those two beside each other whose merge is first in the
//! file's list become one, again and again.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};

use hashbrown::HashMap;
use serde::Deserialize;

use super::bytes::ByteTokens;
use super::fault::Fault;
use super::merges::{MergeMap, Merges, merges_of};

/// The fields of a BPE model in the file.
#[derive(Deserialize)]
pub(super) struct Fields {
    pub(super) vocab: BTreeMap<String, u32>,
    merges: Merges,
    dropout: Option<f64>,
    unk_token: Option<String>,
    continuing_subword_prefix: Option<String>,
    end_of_word_suffix: Option<String>,
    fuse_unk: Option<bool>,
    byte_fallback: Option<bool>,
    ignore_merges: Option<bool>,
}

/// The vocabulary of a BPE tokeniser.
#[derive(Debug)]
pub(super) struct Bpe {
    vocabulary: HashMap<Box<str>, u32>,
    /// The ids of tokens of a single character, where neither prefix nor suffix belongs to it.
    signs: HashMap<char, u32>,
    merges: MergeMap,
    unknown: Option<u32>,
    prefix: String,
    suffix: String,
    fuses: bool,
    bytes: Option<ByteTokens>,
    /// Whether a word that is a token is that token, whatever the merges.
    whole_words: bool,
}

/// A part of a word.
#[derive(Debug, Clone, Copy)]
struct Part {
    id: u32,
    before: usize,
    /// Where the next one is; [`NONE`] behind the last.
    next: usize,
    is_merged: bool,
}

const NONE: usize = usize::MAX;

/// Memory that is used again.
#[derive(Debug, Default)]
pub(super) struct Work {
    parts: Vec<Part>,
    ids: Vec<u32>,
    /// The first place in the list, then in the word, is on top; with it the merged id.
    queue: BinaryHeap<Reverse<(u32, usize, u32)>>,
    text: String,
}

impl Bpe {
    pub(super) fn new(fields: Fields) -> Result<Self, Fault> {
        let Fields { vocab, merges, dropout, .. } = fields;
        if dropout.is_some_and(|dropout| dropout != 0.0) {
            return Err(Fault::Unsupported(
                "its model has a dropout, with which a text has other tokens each time; set its \
                 dropout to null"
                    .into(),
            ));
        }
        let prefix = fields.continuing_subword_prefix.unwrap_or_default();
        let merges = merges_of(merges, &vocab, &prefix)?;
        let unknown =
            match fields.unk_token {
                Some(token) => Some(*vocab.get(&token).ok_or_else(|| {
                    Fault::Faulty(format!("its unknown token {token:?} has no id"))
                })?),
                None => None,
            };
        let by_byte = |token: &str| vocab.get(token).copied();
        let bytes = fields.byte_fallback.unwrap_or(false).then(|| ByteTokens::new(by_byte));
        let single = |token: &str| {
            let mut signs = token.chars();
            signs.next().filter(|_| signs.as_str().is_empty())
        };
        let signs = vocab.iter().filter_map(|(token, id)| Some((single(token)?, *id))).collect();
        Ok(Self {
            vocabulary: vocab.into_iter().map(|(token, id)| (token.into(), id)).collect(),
            signs,
            merges,
            unknown,
            prefix,
            suffix: fields.end_of_word_suffix.unwrap_or_default(),
            fuses: fields.fuse_unk.unwrap_or(false),
            bytes,
            whole_words: fields.ignore_merges.unwrap_or(false),
        })
    }

    pub(super) fn unknown(&self) -> Option<u32> {
        self.unknown
    }

    /// Appends the ids of a word's tokens.
    pub(super) fn encode(&self, word: &str, work: &mut Work, ids: &mut Vec<u32>) {
        if self.whole_words
            && let Some(id) = self.vocabulary.get(word)
        {
            ids.push(*id);
            return;
        }
        work.ids.clear();
        self.cut(word, work);
        self.merge(work, ids);
    }

    /// The ids of a word's characters.
    fn cut(&self, word: &str, work: &mut Work) {
        let Work { ids, text, .. } = work;
        // An unknown token is put where the next known character is. So `tokenizers` has it: bytes
        // that stand for a character go before it.
        let mut waits = false;
        for (at, sign) in word.char_indices() {
            let prefix = if at == 0 { "" } else { &self.prefix[..] };
            let is_last = at + sign.len_utf8() == word.len();
            let suffix = if is_last { &self.suffix[..] } else { "" };
            text.clear();
            let id = if prefix.is_empty() && suffix.is_empty() {
                self.signs.get(&sign)
            } else {
                text.push_str(prefix);
                text.push(sign);
                text.push_str(suffix);
                self.vocabulary.get(&text[..])
            };
            if let Some(id) = id {
                ids.extend(self.unknown.filter(|_| waits));
                waits = false;
                ids.push(*id);
                continue;
            }
            if text.is_empty() {
                text.push(sign);
            }
            if self.bytes.as_ref().is_some_and(|bytes| bytes.encode(text, ids)) {
                continue;
            }
            if !self.fuses {
                ids.extend(self.unknown.filter(|_| waits));
            }
            waits = true;
        }
        ids.extend(self.unknown.filter(|_| waits));
    }

    /// Merges the characters' ids and appends the word's.
    fn merge(&self, work: &mut Work, ids: &mut Vec<u32>) {
        let Work { parts, ids: own, queue, .. } = work;
        let merge = |left: u32, right: u32| self.merges.get(&(left, right)).copied();
        queue.clear();
        for (at, pair) in own.windows(2).enumerate() {
            if let Some((place, id)) = merge(pair[0], pair[1]) {
                queue.push(Reverse((place, at, id)));
            }
        }
        if queue.is_empty() {
            ids.extend_from_slice(own);
            return;
        }
        let count = own.len();
        parts.clear();
        parts.extend(own.iter().enumerate().map(|(at, id)| Part {
            id: *id,
            before: at.wrapping_sub(1),
            next: if at + 1 < count { at + 1 } else { NONE },
            is_merged: false,
        }));
        while let Some(Reverse((_, at, id))) = queue.pop() {
            let Part { id: left, next, before, is_merged } = parts[at];
            if is_merged || next == NONE {
                continue;
            }
            let right = parts[next];
            // Either part may have become another one since.
            if merge(left, right.id).is_none_or(|(_, now)| now != id) {
                continue;
            }
            parts[at].id = id;
            parts[at].next = right.next;
            parts[next].is_merged = true;
            if right.next != NONE {
                parts[right.next].before = at;
                if let Some((place, merged)) = merge(id, parts[right.next].id) {
                    queue.push(Reverse((place, at, merged)));
                }
            }
            if before != NONE
                && let Some((place, merged)) = merge(parts[before].id, id)
            {
                queue.push(Reverse((place, before, merged)));
            }
        }
        ids.extend(parts.iter().filter(|part| !part.is_merged).map(|part| part.id));
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn fields(more: &Value) -> Fields {
        let tokens = ["?", "a", "b", "c", "ab", "bc", "abc", "<0xC3>", "<0xA9>", "c$", "#b", "a#"];
        let vocab: serde_json::Map<String, Value> =
            tokens.iter().zip(0..).map(|(token, id)| ((*token).to_owned(), json!(id))).collect();
        let mut model = json!({"vocab": vocab, "merges": ["b c", "a b", "a bc"]});
        model.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(model).unwrap()
    }

    fn ids(more: &Value, word: &str) -> Vec<u32> {
        let model = Bpe::new(fields(more)).unwrap_or_else(|_| panic!("{more}"));
        let (mut ids, mut work) = (vec![9], Work::default());
        model.encode(word, &mut work, &mut ids);
        ids.split_off(1)
    }

    #[test]
    fn merges_are_taken_in_their_order() {
        assert_eq!(ids(&json!({}), "abc"), [6]);
        assert_eq!(ids(&json!({}), "abab"), [4, 4]);
        assert_eq!(ids(&json!({}), "bcbc"), [5, 5]);
        let pairs = json!({"merges": [["a", "b"], ["b", "c"]]});
        assert_eq!(ids(&pairs, "abc"), [4, 3]);
        assert_eq!(ids(&json!({"merges": [], "ignore_merges": true}), "abc"), [6]);
        assert_eq!(ids(&json!({"merges": []}), "abc"), [1, 2, 3]);
        assert_eq!(ids(&json!({"merges": ["#version: 0.2", "a b"]}), "ab"), [4]);
    }

    #[test]
    fn unknown_characters_are_left_out_or_have_a_token_each_or_together() {
        assert_eq!(ids(&json!({}), "axb"), [4]);
        assert_eq!(ids(&json!({"unk_token": "?"}), "xaxx"), [0, 1, 0, 0]);
        assert_eq!(ids(&json!({"unk_token": "?", "fuse_unk": true}), "xaxx"), [0, 1, 0]);
        let bytes = json!({"unk_token": "?", "byte_fallback": true});
        // Bytes come before an unknown token that waits.
        assert_eq!(ids(&bytes, "\u{e9}x\u{e9}a"), [7, 8, 7, 8, 0, 1]);
    }

    #[test]
    fn characters_have_a_prefix_within_a_word_and_a_suffix_at_its_end() {
        assert_eq!(ids(&json!({"end_of_word_suffix": "$", "merges": []}), "abc"), [1, 2, 9]);
        let prefix = json!({"continuing_subword_prefix": "#", "merges": ["a #b"]});
        assert_eq!(ids(&prefix, "ab"), [4]);
    }

    #[test]
    fn faults_are_named() {
        for (more, said) in [
            (json!({"dropout": 0.1}), "dropout"),
            (json!({"unk_token": "!"}), "\"!\" has no id"),
            (json!({"merges": ["a"]}), "merge \"a\" is not two parts"),
            (json!({"merges": ["a b c"]}), "not two parts"),
            (json!({"merges": ["a x"]}), "\"x\", which is in its merges"),
            (json!({"merges": ["a c"]}), "\"ac\", which is in its merges"),
            (json!({"continuing_subword_prefix": "####"}), "shorter than"),
        ] {
            let fault = Bpe::new(fields(&more)).expect_err(said);
            let (Fault::Faulty(reason) | Fault::Unsupported(reason)) = fault;
            assert!(reason.contains(said), "{reason}");
        }
        assert!(Bpe::new(fields(&json!({"dropout": 0.0}))).is_ok());
    }
}
