//! An expansion between two slices.

use super::{BestTerms, Expansion, Term, rank};
use crate::{FullPassPart, FullPassQuery, Hit, Query};

/// An expansion of which some tokens have been searched.
#[derive(Debug)]
pub struct PartOfExpansion {
    expansion: Expansion,
    searched: usize,
    best: BestTerms,
    /// The tokens from the next one on, if one of them needs a full pass.
    scan: Option<Scan>,
    /// The same text over parts of the terms, for an engine that is made of several.
    shards: Vec<Option<PartOfExpansion>>,
}

/// Tokens of which some are searched for by a full pass, which can be cut into slices.
#[derive(Debug)]
struct Scan {
    /// For each token its hits; `None` if the pass finds them.
    hits: Vec<Option<Vec<Hit>>>,
    /// A part for each `None`, in their order.
    parts: Vec<FullPassPart>,
    /// Where the next slice starts.
    from: usize,
}

impl PartOfExpansion {
    /// An expansion of which no token has been searched.
    pub fn new(expansion: Expansion) -> Self {
        let best = BestTerms::new(expansion.top());
        Self { expansion, searched: 0, best, scan: None, shards: Vec::new() }
    }

    /// The same text over parts of the terms. Only an engine that is made of several uses this; it
    /// is empty before the first slice.
    pub fn shards(&mut self) -> &mut Vec<Option<Self>> {
        &mut self.shards
    }

    /// The text.
    pub fn expansion(&self) -> &Expansion {
        &self.expansion
    }

    /// The tokens that have been searched are those before this one.
    pub fn searched(&self) -> usize {
        self.searched
    }

    /// Whether all tokens have been searched.
    pub fn is_complete(&self) -> bool {
        self.searched == self.expansion.tokens()
    }

    /// Whether a [full pass](Self::begin_scan) searches for the next tokens.
    pub fn is_scanned(&self) -> bool {
        self.scan.is_some()
    }

    /// Adds the hits of the next token, best first.
    pub fn add(&mut self, hits: &[Hit]) {
        let position = self.searched as u32;
        self.searched += 1;
        let term = |&Hit { row, score }: &Hit| Term { row, value: score, position };
        self.best.add(hits.iter().map(term).collect());
    }

    /// Leaves the next tokens to a full pass, but for those whose hits are known.
    pub fn begin_scan(&mut self, tokens: impl Iterator<Item = Result<Vec<Hit>, Query>>) {
        let (mut hits, mut parts) = (Vec::new(), Vec::new());
        for token in tokens {
            hits.push(match token {
                Ok(known) => Some(known),
                Err(query) => {
                    parts.push(FullPassPart::new(FullPassQuery::of_search(&query)));
                    None
                }
            });
        }
        self.scan = Some(Scan { hits, parts, from: 0 });
    }

    /// Has an engine run a slice of the full pass that was begun, from a row on, and adds the hits
    /// of its tokens if it was the last.
    ///
    /// # Errors
    /// Those of `slice`.
    pub fn scan<E>(
        &mut self,
        slice: impl FnOnce(&mut [FullPassPart], usize) -> Result<Option<usize>, E>,
    ) -> Result<(), E> {
        let Some(mut scan) = self.scan.take() else { return Ok(()) };
        if let Some(next) = slice(&mut scan.parts, scan.from)? {
            self.scan = Some(Scan { from: next, ..scan });
            return Ok(());
        }
        let mut found = scan.parts.into_iter().map(|part| part.into_answer().hits);
        for hits in scan.hits {
            let hits = hits.or_else(|| found.next()).expect("a part for each token");
            self.add(&hits);
        }
        Ok(())
    }

    /// Completes it with all of the text's terms above its least value, in any order.
    pub fn complete(&mut self, mut terms: Vec<Term>) {
        rank(&mut terms, self.expansion.top());
        self.best = BestTerms::new(self.expansion.top());
        self.best.add(terms);
        (self.searched, self.scan) = (self.expansion.tokens(), None);
    }

    /// The terms, once all tokens have been searched.
    ///
    /// # Panics
    /// If some have not.
    pub fn into_terms(self) -> Vec<Term> {
        assert!(self.is_complete(), "all tokens have been searched");
        self.best.finish()
    }
}
