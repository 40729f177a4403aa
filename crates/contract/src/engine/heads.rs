//! Heads: class scores of texts, and the terms that texts imply.

use crate::{Device, EngineError, Expansion, PartOfExpansion, Term, TokenText};

/// Tokens whose sums take a millisecond or two on two cores.
const TOKENS_PER_PASS: usize = 2048;

/// Runs the heads of a model over texts. A request has its head, so an engine has no list of them.
/// An engine without heads refuses: the defaults are its.
///
/// Class scores are `[texts][classes]`, float64, in the order of the texts and of the classifier's
/// classes; costs of classifying are counted in tokens. Terms are `[texts][terms]`, at most as many
/// as each text wants, best first; costs of expanding are counted in plain queries (k = 10, all
/// rows).
///
/// # Errors
/// [`EngineError::NoHeads`] if the engine classifies no texts; [`EngineError::NoExpander`] if it
/// expands none, or none of an expander; [`EngineError::ForeignQuery`] for a text to expand of
/// another table; [`EngineError::Device`]. After an error the parts can't be used.
pub trait HeadEngine: Device {
    /// The class scores of each text, in order. What is computed from a classifier's weights is
    /// made when it is asked for the first time, and dropped when nobody else has the classifier
    /// any more.
    fn classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        let _ = texts;
        Err(EngineError::NoHeads(self.description().name))
    }

    /// Runs a slice of a pass that classifies texts. Returns the class scores of the first of these
    /// texts: of all if `go_on` stays true; perhaps of none if what is computed from a classifier's
    /// weights is not ready, but then a part of that is done.
    ///
    /// The engine calls `go_on` between small pieces of work. The slice ends soon after it returns
    /// `false`.
    fn classify_part(
        &mut self,
        texts: &[&TokenText],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<f64>>, EngineError> {
        let _ = go_on;
        self.classify(texts)
    }

    /// Estimates the cost of classifying this text, in tokens that the engine has met before.
    fn classification_cost(&self, text: &TokenText) -> usize {
        text.tokens().len()
    }

    /// Starts classifying these texts and returns while the device works on them, after passes that
    /// were started before. Returns `false`, and starts nothing, if that is not possible for all of
    /// them, or with this engine.
    ///
    /// It is [finished](Self::finish_classify) like a
    /// [started search](crate::SearchEngine::start_search), in the order of all starts.
    fn start_classify(&mut self, texts: &[&TokenText]) -> Result<bool, EngineError> {
        let _ = texts;
        Ok(false)
    }

    /// Waits for the texts that were started first, which were these. Returns the class scores of
    /// each.
    fn finish_classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        let _ = texts;
        Err(EngineError::Device("no texts were started".into()))
    }

    /// The number of tokens that one pass should classify at most, of all texts together.
    fn tokens_per_pass(&self) -> usize {
        TOKENS_PER_PASS
    }

    /// Runs a slice of a pass that expands texts: searches for the terms of tokens that have not
    /// been searched, and [adds](PartOfExpansion::add) what it finds. All tokens have been searched
    /// in the end if `go_on` stays true.
    ///
    /// The engine calls `go_on` between small pieces of work. The slice ends soon after it returns
    /// `false`, but not before at least one piece is done. What is derived from an expander's terms
    /// is made when it is asked for the first time, and dropped when nobody else has the expander
    /// any more.
    fn expand_part(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        let _ = (parts, go_on);
        let reason = format!("`{}` has no expanders; use `--device cpu`", self.description().name);
        Err(EngineError::NoExpander(reason.into()))
    }

    /// Estimates the cost of expanding this text, in plain queries (k = 10, all rows) of a full
    /// batch.
    fn expansion_cost(&self, text: &Expansion) -> usize {
        text.tokens()
    }

    /// Expands texts in one slice: the terms of each, in order, best first.
    fn expand(&mut self, texts: &[&Expansion]) -> Result<Vec<Vec<Term>>, EngineError> {
        let parts = texts.iter().map(|&text| PartOfExpansion::new(text.clone()));
        let mut parts: Vec<PartOfExpansion> = parts.collect();
        while !parts.iter().all(PartOfExpansion::is_complete) {
            self.expand_part(&mut parts, &|| true)?;
        }
        Ok(parts.into_iter().map(PartOfExpansion::into_terms).collect())
    }
}
