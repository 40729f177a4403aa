//! Expanding texts as a workload. A request is a part of a text, of a few tokens: so a long text
//! takes turns with others like a batch of queries, and nobody waits for all of it.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Costs, PassError, Slice, Workload, retain};
use crate::{BestTerms, Engine, Expansion, PartOfExpansion, Term};

/// A part of a text costs about this much, in plain queries, or has one token: a caller gets as
/// much of a pass of a small engine while others ask.
const COST_OF_A_PART: usize = 8;

/// Parts of texts. Costs are counted in plain queries (k = 10, all rows).
#[derive(Debug, Clone)]
pub struct Expand {
    /// Maximum cost of one pass; the engine may prefer less.
    pub max_batch: usize,
    /// The cost of a token at admission.
    pub costs: Costs,
}

/// A part of a text.
#[derive(Debug, Clone)]
pub struct PartOfText {
    tokens: Expansion,
    /// The position of its first token in the text.
    first: u32,
    /// Slots that it takes of the queue.
    slots: usize,
    found: Arc<Mutex<BestTerms>>,
}

/// The terms of a text, once all of its parts are answered.
#[derive(Debug)]
pub struct TermsOfText(Arc<Mutex<BestTerms>>);

impl TermsOfText {
    /// The terms, best first.
    pub fn take(self) -> Vec<Term> {
        let mut found = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *found, BestTerms::new(0)).finish()
    }
}

impl Expand {
    /// The parts of the texts of a job, which are its requests, and where the terms of each text
    /// will be.
    pub fn parts(
        &self,
        texts: impl IntoIterator<Item = Expansion>,
    ) -> (Vec<PartOfText>, Vec<TermsOfText>) {
        let (mut parts, mut terms) = (Vec::new(), Vec::new());
        let mut left = self.costs.most_of_texts();
        for text in texts {
            let found = Arc::new(Mutex::new(BestTerms::new(text.top())));
            terms.push(TermsOfText(found.clone()));
            // A text without tokens implies nothing, so no engine is asked.
            if text.tokens() == 0 {
                continue;
            }
            let of_token = self.costs.token(&text);
            let mut first = 0;
            for tokens in text.cut((COST_OF_A_PART / of_token).max(1)) {
                let count = tokens.tokens();
                let slots = of_token.saturating_mul(count).max(1).min(left);
                left -= slots;
                parts.push(PartOfText { tokens, first, slots, found: found.clone() });
                first += count as u32;
            }
        }
        (parts, terms)
    }
}

impl PartOfText {
    /// Adds its terms to those of the text. A part that is answered twice, because a device failed,
    /// changes nothing.
    fn add(&self, mut terms: Vec<Term>) {
        terms.iter_mut().for_each(|term| term.position += self.first);
        self.found.lock().unwrap_or_else(PoisonError::into_inner).add(terms);
    }
}

impl Workload for Expand {
    type Device = dyn Engine;
    type Request = PartOfText;
    /// The terms are in [`TermsOfText`].
    type Response = ();
    type Gathered = ();
    type Pass = Vec<PartOfExpansion>;

    fn name(&self) -> &'static str {
        "an expansion"
    }

    fn slots(&self, part: &PartOfText) -> usize {
        part.slots
    }

    fn cost(&self, engine: &Self::Device, part: &PartOfText) -> usize {
        engine.expansion_cost(&part.tokens).max(1)
    }

    fn room(&self, engine: &Self::Device, waiting: usize) -> usize {
        engine.preferred_batch(waiting).min(self.max_batch).max(1)
    }

    fn run(
        &self,
        engine: &mut Self::Device,
        texts: &[&PartOfText],
        parts: &mut Vec<PartOfExpansion>,
        slice: Slice<'_>,
    ) -> Result<Option<Vec<()>>, PassError> {
        if parts.is_empty() {
            *parts = texts.iter().map(|text| PartOfExpansion::new(text.tokens.clone())).collect();
        }
        (slice.meanwhile)();
        engine.expand_part(parts, slice.go_on)?;
        if !parts.iter().all(PartOfExpansion::is_complete) {
            return Ok(None);
        }
        let parts = std::mem::take(parts).into_iter().zip(texts);
        Ok(Some(parts.map(|(part, text)| text.add(part.into_terms())).collect()))
    }

    fn retain(&self, parts: &mut Vec<PartOfExpansion>, stays: &mut dyn FnMut(usize) -> bool) {
        retain(parts, stays);
    }
}
