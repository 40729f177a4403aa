//! Where the products of tokens are kept: which token has which slot.

use std::collections::HashMap;

use contract::{Token, TokenClassifier};

/// The part of the slots that is for rare words, in turns.
const RARE_PART: usize = 8;

/// Slots for tokens. The model's most frequent words each have their own; if there is not room for
/// all tokens, the others take turns.
#[derive(Debug)]
pub struct Slots {
    /// Whether the products of the most frequent tokens are there. Each of these has the slot of
    /// its own number.
    is_loaded: Vec<bool>,
    /// How many of these are not loaded.
    not_loaded: usize,
    /// The slots of others.
    rare: HashMap<u32, u32>,
    /// How many of these there may be at a time.
    most_rare: usize,
}

/// The slots of some texts.
#[derive(Debug, Default)]
pub struct Assigned {
    /// The number of texts.
    pub texts: usize,
    /// The slots of all their tokens, text by text.
    pub slots: Vec<u32>,
    /// Where each text ends.
    pub ends: Vec<usize>,
    /// Tokens whose products must be put into these slots first.
    pub missing: Vec<(Token, u32)>,
}

impl Slots {
    /// About `most` slots for the tokens of a classifier, at least as many as one text needs.
    pub fn new(head: &dyn TokenClassifier, most: usize) -> Self {
        let (frequent, most_rare) = match most >= head.tokens() {
            true => (head.tokens(), 0),
            false => (most - most / RARE_PART, (most / RARE_PART).max(head.longest_text())),
        };
        Self {
            is_loaded: vec![false; frequent],
            not_loaded: frequent,
            rare: HashMap::new(),
            most_rare,
        }
    }

    /// The number of slots.
    pub fn count(&self) -> usize {
        self.is_loaded.len() + self.most_rare
    }

    /// Whether every token has the slot of its own number, and is loaded.
    pub fn is_whole(&self) -> bool {
        self.not_loaded == 0 && self.most_rare == 0
    }

    /// The slot of a token that is loaded.
    pub fn loaded(&self, token: Token) -> Option<u32> {
        match self.is_loaded.get(token.0 as usize) {
            Some(is_loaded) => is_loaded.then_some(token.0),
            None => self.rare.get(&token.0).copied(),
        }
    }

    /// Assigns slots to the tokens of these texts, of as many as there is room for, at least one.
    /// The caller loads what is missing before it assigns again, and no longer uses slots that were
    /// assigned earlier.
    pub fn assign(&mut self, texts: &[&[Token]]) -> Assigned {
        let mut assigned = Assigned::default();
        for text in texts {
            if self.put(text, &mut assigned) {
                continue;
            }
            // What was begun for this one is loaded all the same.
            if assigned.texts == 0 {
                // Nothing else needs the rare words that are there.
                self.rare.clear();
                assigned.missing.retain(|(token, _)| (token.0 as usize) < self.is_loaded.len());
                assert!(self.put(text, &mut assigned), "there is room for one text");
            }
            break;
        }
        assigned
    }

    /// Takes back the last of the tokens that were assigned, whose products were not loaded.
    pub fn forget(&mut self, missing: &[(Token, u32)]) {
        for (token, _) in missing {
            match self.is_loaded.get_mut(token.0 as usize) {
                Some(is_loaded) => {
                    *is_loaded = false;
                    self.not_loaded += 1;
                }
                // Later ones are gone, too, so that the next one has the slot of the first of them.
                None => drop(self.rare.remove(&token.0)),
            }
        }
    }

    /// Appends a text, if there is room for it.
    fn put(&mut self, text: &[Token], assigned: &mut Assigned) -> bool {
        let before = assigned.slots.len();
        for &token in text {
            let Some(slot) = self.slot(token, &mut assigned.missing) else {
                assigned.slots.truncate(before);
                return false;
            };
            assigned.slots.push(slot);
        }
        assigned.ends.push(assigned.slots.len());
        assigned.texts += 1;
        true
    }

    /// The slot of a token. If it is new, it is `missing`; `None` if there is no room.
    fn slot(&mut self, token: Token, missing: &mut Vec<(Token, u32)>) -> Option<u32> {
        if let Some(is_loaded) = self.is_loaded.get_mut(token.0 as usize) {
            if !std::mem::replace(is_loaded, true) {
                self.not_loaded -= 1;
                missing.push((token, token.0));
            }
            return Some(token.0);
        }
        if let Some(&slot) = self.rare.get(&token.0) {
            return Some(slot);
        }
        if self.rare.len() == self.most_rare {
            return None;
        }
        let slot = (self.is_loaded.len() + self.rare.len()) as u32;
        self.rare.insert(token.0, slot);
        missing.push((token, slot));
        Some(slot)
    }
}
