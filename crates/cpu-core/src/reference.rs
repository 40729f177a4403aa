//! The reference engine: a plain loop that all other engines are compared with.

use std::sync::Arc;

use contract::full_pass::first_of_each;
use contract::{
    Device, EngineDescription, EngineError, Expansion, Filter, FullPassAnswer, FullPassEngine,
    FullPassPart, FullPassQuery, HasTable, HeadEngine, Hit, PartOfExpansion, Query, RankedRow, Row,
    SearchEngine, Table, Term, TokenText,
};

/// The oracle: scores every row by the contract's formula, sorts all scores, takes the first `k`.
#[derive(Debug)]
pub struct ReferenceEngine {
    model: Arc<dyn HasTable>,
}

impl ReferenceEngine {
    /// An engine for this table.
    pub fn new(model: Arc<dyn HasTable>) -> Self {
        Self { model }
    }
}

impl Device for ReferenceEngine {
    fn description(&self) -> EngineDescription {
        EngineDescription { name: "reference", detail: "one plain loop, one thread".into() }
    }
}

impl SearchEngine for ReferenceEngine {
    fn preferred_batch(&self, _waiting: usize) -> usize {
        1
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let table = self.model.table();
        if !batch.iter().all(|query| query.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        Ok(batch.iter().map(|query| search_one(&table, query)).collect())
    }
}

impl FullPassEngine for ReferenceEngine {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        let table = self.model.table();
        if !parts.iter().all(|part| part.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        for (index, row) in (from as u32..table.rows() as u32).map(Row).enumerate() {
            if index > 0 && !go_on() {
                return Ok(Some(row.index()));
            }
            for part in parts.iter_mut().filter(|part| !part.is_answered()) {
                part.prepare(&table);
                let score = part.query().score(&table, row).unwrap_or(f64::NAN);
                let mut share = part.share();
                part.add_scores(&mut share, row, &[score]);
                part.merge(share);
            }
        }
        Ok(None)
    }

    /// Uses no parts and shares, because the engines that use them are tested against it.
    fn full_pass(
        &mut self,
        queries: &[&FullPassQuery],
    ) -> Result<Vec<FullPassAnswer>, EngineError> {
        let table = self.model.table();
        if !queries.iter().all(|query| query.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        Ok(queries.iter().map(|query| full_pass_one(&table, query)).collect())
    }
}

impl HeadEngine for ReferenceEngine {
    fn classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        Ok(texts.iter().map(|text| text.scores(&self.model.table())).collect())
    }

    fn expand_part(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        let table = self.model.table();
        for part in parts {
            while !part.is_complete() {
                let query = part.expansion().query(&table, part.searched());
                let terms = part.expansion().expander().terms().clone();
                let hits = query.map(|query| search_one(&terms.table(), &query));
                part.add(&hits.unwrap_or_default());
                if !go_on() {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// By the formula, because what joins the searches of tokens is tested against it.
    fn expand(&mut self, texts: &[&Expansion]) -> Result<Vec<Vec<Term>>, EngineError> {
        let table = self.model.table();
        if !texts.iter().all(|text| text.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        Ok(texts.iter().map(|text| text.terms(&table)).collect())
    }
}

/// All rows that have a score and pass the filter, best first.
fn ranking(table: &Table<'_>, filter: &Filter, score: impl Fn(Row) -> Option<f64>) -> Vec<Hit> {
    let mut hits = Vec::new();
    for row in (0..table.rows() as u32).map(Row) {
        if let Some(score) = score(row)
            && filter.admits(row, score)
        {
            hits.push(Hit { row, score });
        }
    }
    hits.sort();
    hits
}

fn search_one(table: &Table<'_>, query: &Query) -> Vec<Hit> {
    let mut hits = ranking(table, &query.filter, |row| query.score(table, row));
    hits.truncate(query.k);
    // Otherwise each answer would keep the memory of all scores.
    hits.shrink_to_fit();
    hits
}

fn full_pass_one(table: &Table<'_>, query: &FullPassQuery) -> FullPassAnswer {
    let mut hits = ranking(table, &query.filter, |row| query.score(table, row));
    let rank = |&row: &Row| {
        let index = hits.iter().position(|hit| hit.row == row);
        RankedRow { row, score: query.score(table, row), rank: index.map(|index| index as u32 + 1) }
    };
    let ranks = query.ranked.iter().map(rank).collect();
    let higher = |&score: &f64| hits.iter().filter(|hit| hit.score > score).count() as u32;
    let above = query.above.iter().map(higher).collect();
    if let Some(groups) = &query.groups {
        first_of_each(&**groups, &mut hits);
    }
    hits.truncate(query.k);
    hits.shrink_to_fit();
    FullPassAnswer { hits, ranks, above }
}
