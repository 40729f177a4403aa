//! Heads as shards take them: a classifier whose tokens may be rows that a shard does not have, an
//! expander with some of the terms.
//!
//! What is made here lasts as long as somebody else has the head.

use std::sync::Arc;

use contract::classifier::Classifier;
use contract::token_search::is_same;
use contract::{
    Expansion, HasTable, PartOfExpansion, Row, Table, Term, TermExpander, Token, TokenClassifier,
    VectorSource,
};

use crate::shard::{Part, RowRange, Shard, split_evenly};

/// A classifier for one shard.
#[derive(Debug)]
struct ShardClassifier {
    of: Arc<dyn TokenClassifier>,
    shard: Shard,
}

impl TokenClassifier for ShardClassifier {
    fn classifier(&self) -> &Classifier {
        self.of.classifier()
    }

    fn tokens(&self) -> usize {
        self.of.tokens()
    }

    fn longest_text(&self) -> usize {
        self.of.longest_text()
    }

    fn source(&self, token: Token) -> VectorSource<'_> {
        let source = self.of.source(token);
        let VectorSource::Row { row, scale } = source else { return source };
        match self.shard.here(row) {
            Some(row) => VectorSource::Row { row, scale },
            None => VectorSource::Elsewhere { row: self.shard.of.table().row(row), scale },
        }
    }
}

/// An expander with some of the terms.
#[derive(Debug)]
struct SomeTerms {
    of: Arc<dyn TermExpander>,
    terms: Arc<dyn HasTable>,
}

impl TermExpander for SomeTerms {
    fn terms(&self) -> &Arc<dyn HasTable> {
        &self.terms
    }

    fn projection(&self) -> Option<&[f32]> {
        self.of.projection()
    }
}

/// Classifiers in use, with those made for the shards.
#[derive(Default)]
pub(crate) struct Classifiers(Vec<(Arc<dyn TokenClassifier>, ShardClassifiers)>);

/// One for each shard.
type ShardClassifiers = Vec<Arc<dyn TokenClassifier>>;

impl Classifiers {
    /// The classifier for each shard.
    pub(crate) fn of(
        &mut self,
        classifier: &Arc<dyn TokenClassifier>,
        shards: &[Shard],
    ) -> ShardClassifiers {
        self.0.retain(|(of, _)| Arc::strong_count(of) > 1 + shards.len());
        if let Some((_, made)) = self.0.iter().find(|(of, _)| Arc::ptr_eq(of, classifier)) {
            return made.clone();
        }
        let make = |shard: &Shard| -> Arc<dyn TokenClassifier> {
            Arc::new(ShardClassifier { of: classifier.clone(), shard: shard.clone() })
        };
        let made: Vec<_> = shards.iter().map(make).collect();
        self.0.push((classifier.clone(), made.clone()));
        made
    }
}

/// An expander's terms on the shards.
#[derive(Clone)]
pub(crate) struct TermShards {
    /// For each shard its expander, and the first of its terms; `None` if it has no terms.
    pub(crate) each: Vec<Option<(Arc<dyn TermExpander>, u32)>>,
}

impl TermShards {
    /// A text for each shard; `None` if it has none of the terms that the text may have. `model` is
    /// the table whose rows the tokens may be.
    pub(crate) fn pieces(
        &self,
        text: &Expansion,
        model: &Table<'_>,
    ) -> Vec<Option<PartOfExpansion>> {
        let piece = |(some, first): &(Arc<dyn TermExpander>, u32)| {
            let (first, terms) = (*first as usize, some.terms().table().rows());
            let rows = text.rows().part(&(first..first + terms))?;
            Some(PartOfExpansion::new(text.moved(some.clone(), rows, model)))
        };
        self.each.iter().map(|own| own.as_ref().and_then(piece)).collect()
    }

    /// The terms that the shards found, in any order.
    pub(crate) fn join(&self, done: Vec<Option<PartOfExpansion>>) -> Vec<Term> {
        let found = self.each.iter().zip(done);
        let found = found.filter_map(|(own, done)| Some((own.as_ref()?.1, done?)));
        let moved = found.flat_map(|(first, done)| {
            let moved = move |term: Term| Term { row: Row(term.row.0 + first), ..term };
            done.into_terms().into_iter().map(moved)
        });
        moved.collect()
    }
}

/// Expanders in use, with those made for the shards.
#[derive(Default)]
pub(crate) struct Expanders(Vec<(Arc<dyn TermExpander>, TermShards)>);

impl Expanders {
    /// The expander for each shard. If its terms are the model's rows, those of a shard are its
    /// own.
    pub(crate) fn of(&mut self, expander: &Arc<dyn TermExpander>, shards: &[Shard]) -> TermShards {
        let made_of = |made: &TermShards| made.each.iter().flatten().count();
        self.0.retain(|(of, made)| Arc::strong_count(of) > 1 + made_of(made));
        if let Some((_, made)) = self.0.iter().find(|(of, _)| Arc::ptr_eq(of, expander)) {
            return made.clone();
        }
        let terms = expander.terms();
        let of_model = is_same(terms, &shards[0].of);
        let ranges = split_evenly(terms.table().rows(), shards.len());
        let make = |(shard, range): (&Shard, std::ops::Range<usize>)| {
            let (start, terms): (usize, Arc<dyn HasTable>) = match of_model {
                true => (shard.rows.start, shard.table.clone()),
                false if range.is_empty() => return None,
                false => (range.start, Arc::new(RowRange::new(terms.clone(), range))),
            };
            let some: Arc<dyn TermExpander> = Arc::new(SomeTerms { of: expander.clone(), terms });
            Some((some, start as u32))
        };
        let made = TermShards { each: shards.iter().zip(ranges).map(make).collect() };
        self.0.push((expander.clone(), made.clone()));
        made
    }
}
