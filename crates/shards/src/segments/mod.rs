//! One engine for a base and the rows that came after it: the segments of a table that changes.
//!
//! The base has an engine of any kind. The rows behind it are [appended](SearchEngine::append) to
//! those on its device, as far as there is room. Those behind them, the *tail*, are cut into pieces
//! ([`tail`]), and what all of them find is joined as that of shards is.
//!
//! # Positions
//!
//! A row is given once and never changes; a batch adds rows, and takes some out of the set of those
//! that live. So a position is a row set: the rows that lived at it. Every query carries its own,
//! and an answer is that of its position however many rows have come since: those are not in its
//! set. Engines test sets anyway, so a position is no field of a query, and queries of several
//! positions may be in one batch.
//!
//! # Algorithm
//!
//! ```text
//! search(query, k):
//!     best ← the base's best k in the query's set
//!     for each piece of the tail, in order:
//!         least ← the score of the k-th best, if there are k
//!         best ← best and the piece's best k whose scores are above least; the first k
//! ```
//!
//! A row of the tail comes behind those of the base, so with an equal score it ranks after them:
//! what is not above the k-th best score can't be in the answer. A device that searches the base
//! while the CPU does something else has the CPU search the tail meanwhile, without that bound.
//!
//! Ranks, distinct values and formulas are those of full passes, segment by segment.
//!
//! The tail has engines of the CPU, not of the base's kind: it is small until it is folded, and with
//! that bound its pieces cost little more than their scan. Full passes have the rows of the base on
//! its device, and all others on the CPU.

mod tail;

use std::collections::VecDeque;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;

use changes::{Snapshot, TableAt, TailRows};
use contract::{
    Device, Engine, EngineDescription, EngineError, Expansion, Filter, FullPassEngine,
    FullPassPart, FullPassQuery, HasTable, HeadEngine, Hit, PartOfExpansion, Query, Row,
    SearchEngine, TableRows, TokenText, UsualCosts, complete,
};
use cpu_core::{FullScanEngine, StartError};

use crate::join::merge;
use crate::ranks;
use crate::shard::Part;
use tail::{Piece, Tail};

/// The rows of a table as they are now: at least those of every query that was made before.
pub type Now = Arc<dyn Fn() -> Snapshot + Send + Sync>;

/// One engine for a base and its tail.
pub struct Segments {
    base: Box<dyn Engine>,
    of: Arc<dyn HasTable>,
    now: Now,
    /// Rows that searches with the base's engine see: the base's, and those that were appended.
    end: usize,
    /// Whether the base's device takes no more.
    is_full: bool,
    tail: Tail,
    /// Searches that the base's engine has started, each query in its terms.
    started: VecDeque<Vec<Option<Query>>>,
    pass: Option<Pass>,
}

/// A full pass between two slices.
struct Pass {
    segments: Vec<Segment>,
    /// The engines of the tail's segments, which follow the base.
    engines: Vec<FullScanEngine>,
    /// The segment whose turn it is, and the row of it where its next slice starts.
    at: usize,
    from: usize,
}

/// The base, or a piece of the tail.
#[derive(Clone)]
struct Segment {
    rows: Range<usize>,
    whole: Whole,
}

/// All rows, dead ones with them, at some position.
#[derive(Clone)]
struct Whole {
    base: Arc<dyn HasTable>,
    snapshot: Snapshot,
}

type Hits = Result<Vec<Option<Vec<Hit>>>, EngineError>;

impl Segments {
    /// An engine for a base, whose own engine this is, and the rows that `now` has behind it. The
    /// tail is searched by this many threads; 0 means one per core.
    ///
    /// # Errors
    /// If the threads can't be started.
    pub fn new(
        base: Box<dyn Engine>,
        of: Arc<dyn HasTable>,
        now: Now,
        threads: usize,
    ) -> Result<Self, StartError> {
        let (tail, end) = (Tail::new(&of, threads)?, of.table().rows());
        let (started, pass) = (VecDeque::new(), None);
        Ok(Self { base, of, now, end, is_full: false, tail, started, pass })
    }

    /// Takes the rows that came since the last call.
    ///
    /// # Errors
    /// If a device fails, or the system refuses to start a thread.
    pub fn extend(&mut self) -> Result<(), EngineError> {
        self.extend_to(&(self.now)())
    }

    fn extend_to(&mut self, snapshot: &Snapshot) -> Result<(), EngineError> {
        if !self.is_full && snapshot.rows() > self.end {
            let metric = self.of.table().metric();
            for part in snapshot.tail() {
                let Range { start: first, end } = part.rows();
                if end <= self.end {
                    continue;
                }
                let rows = TailRows::new(part, self.end - first..part.len(), metric);
                self.end += self.base.append(&rows.table())?;
                if self.end < end {
                    self.is_full = true;
                    break;
                }
            }
        }
        let extended = self.tail.extend(snapshot, self.end);
        extended.map_err(|error| EngineError::Device(error.into()))
    }

    /// The rows as they are now, of which the tail has its pieces. Every query must be of these, or
    /// of those of a position before.
    fn rows_for<'q>(
        &mut self,
        mut filters: impl Iterator<Item = &'q Filter>,
        fits: impl Fn(&dyn TableRows) -> bool,
    ) -> Result<Whole, EngineError> {
        let whole = Whole { base: self.of.clone(), snapshot: (self.now)() };
        if !(filters.all(|filter| whole.has(filter)) && fits(&whole.table())) {
            return Err(EngineError::ForeignQuery);
        }
        self.extend_to(&whole.snapshot)?;
        Ok(whole)
    }

    /// The queries for the base's engine. `None` where none of its rows passes the filter.
    fn of_base(&self, whole: &Whole, queries: &[&Query]) -> Vec<Option<Query>> {
        let (first, end) = (whole.snapshot.base_rows(), self.end);
        let segment = Segment { rows: 0..end, whole: whole.clone() };
        let own = |query: &&Query| match query.filter.rows.bitmap() {
            // The engine takes it as it is: a part would be another set, for each number of rows.
            Some(bitmap) if end > first && bitmap.rows() <= end => {
                let filter = query.filter.clone();
                (!bitmap.is_empty()).then(|| query.moved(|vector| segment.vector(vector), filter))
            }
            _ => segment.query(query),
        };
        queries.iter().map(own).collect()
    }

    fn whole_for(&mut self, queries: &[&Query]) -> Result<Whole, EngineError> {
        let fits = |table: &dyn TableRows| {
            queries.iter().flat_map(|query| query.vectors()).all(|vector| vector.fits(table))
        };
        self.rows_for(queries.iter().map(|query| &query.filter), fits)
    }

    /// Asks the base, and then the tail for what is better.
    fn ask(
        &mut self,
        queries: &[&Query],
        of_base: impl FnOnce(&mut dyn Engine, &[&Query]) -> Hits,
    ) -> Hits {
        let whole = self.whole_for(queries)?;
        let own = self.of_base(&whole, queries);
        let mut found = ask_those(&own, |batch| of_base(&mut *self.base, batch))?;
        self.tail.search(&whole, queries, &mut found)?;
        Ok(found)
    }
}

/// Asks those queries that have rows here. The others have no hits.
fn ask_those(own: &[Option<Query>], search: impl FnOnce(&[&Query]) -> Hits) -> Hits {
    let batch: Vec<&Query> = own.iter().flatten().collect();
    if batch.is_empty() {
        return Ok(vec![Some(Vec::new()); own.len()]);
    }
    let mut found = search(&batch)?.into_iter();
    let answer = |own: &Option<Query>| match own {
        Some(_) => found.next().expect("an answer for each query"),
        None => Some(Vec::new()),
    };
    Ok(own.iter().map(answer).collect())
}

impl Whole {
    fn table(&self) -> TableAt<'_> {
        TableAt::new(self.base.table(), Some(&self.snapshot))
    }

    fn of_base(&self) -> Segment {
        Segment { rows: 0..self.snapshot.base_rows(), whole: self.clone() }
    }

    /// Whether a filter is of rows at this position, or at one before.
    fn has(&self, filter: &Filter) -> bool {
        let (base, all) = (self.snapshot.base_rows(), self.snapshot.rows());
        match (filter.rows.bitmap(), filter.rows.limit()) {
            (Some(bitmap), _) => (base..=all).contains(&bitmap.rows()),
            // Without either it would be of all rows, of whatever position, dead ones with them.
            (None, limit) => limit.is_some() || (all == base && self.snapshot.dead().is_empty()),
        }
    }
}

impl Part for Segment {
    fn rows(&self) -> Range<usize> {
        self.rows.clone()
    }

    fn components(&self, row: Row) -> Vec<f32> {
        self.whole.table().row(row).to_vec()
    }
}

impl Device for Segments {
    fn description(&self) -> EngineDescription {
        let EngineDescription { name, detail } = self.base.description();
        EngineDescription { name, detail: format!("{detail}; with changes") }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.base.counters()
    }

    fn overlaps(&self) -> bool {
        self.base.overlaps()
    }

    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        self.base.wait_until_almost_over().inspect_err(|_| self.started.clear())
    }
}

impl SearchEngine for Segments {
    fn preferred_batch(&self, waiting: usize) -> usize {
        self.base.preferred_batch(waiting)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let found = self.search_overlapped(batch, &mut || ())?;
        complete(batch, found, |rest| self.search_in_full_pass(rest))
    }

    fn search_overlapped(&mut self, batch: &[&Query], meanwhile: &mut dyn FnMut()) -> Hits {
        self.ask(batch, |base, batch| base.search_overlapped(batch, meanwhile))
    }

    fn start_search(&mut self, queries: &[&Query]) -> Result<bool, EngineError> {
        let whole = self.whole_for(queries)?;
        let own = self.of_base(&whole, queries);
        let batch: Vec<&Query> = own.iter().flatten().collect();
        let is_started = !batch.is_empty()
            && self.base.start_search(&batch).inspect_err(|_| self.started.clear())?;
        if is_started {
            self.started.push_back(own);
        }
        Ok(is_started)
    }

    fn finish_search(&mut self, queries: &[&Query]) -> Hits {
        let own = self.started.pop_front().expect("a search was started");
        let mut finish = || -> Hits {
            let whole = self.whole_for(queries)?;
            // The device works on the base meanwhile.
            let mut of_tail = vec![Some(Vec::new()); queries.len()];
            self.tail.search(&whole, queries, &mut of_tail)?;
            let found = ask_those(&own, |batch| self.base.finish_search(batch))?;
            let all = Segment { rows: 0..whole.snapshot.rows(), whole };
            let each = queries.iter().zip(found).zip(of_tail);
            let joined = each.map(|((query, found), of_tail)| {
                Some(merge([(&all, found?), (&all, of_tail?)].into_iter(), query.k))
            });
            Ok(joined.collect())
        };
        let found = finish();
        found.inspect_err(|_| self.started.clear())
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.base.search_cost(query)
    }

    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        self.base.usual_costs()
    }
}

impl FullPassEngine for Segments {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        let mut open: Vec<&mut FullPassPart> =
            parts.iter_mut().filter(|part| !part.is_answered()).collect();
        if open.is_empty() {
            return Ok(None);
        }
        if open.iter_mut().any(|part| part.shards().is_empty()) {
            // A pass that has just begun.
            self.pass = self.begin(&mut open, go_on)?;
        }
        // Each slice has a number of its own.
        let next = Ok(Some(from + 1));
        let Some(pass) = &mut self.pass else { return next };
        while pass.at < pass.segments.len() {
            let own = open.iter_mut().enumerate();
            let own = own.filter_map(|(index, part)| Some((index, part.shards()[pass.at].take()?)));
            let (indices, mut own): (Vec<usize>, Vec<FullPassPart>) = own.unzip();
            let then = match pass.at {
                _ if own.is_empty() => None,
                0 => self.base.full_pass_part(&mut own, pass.from, go_on)?,
                at => pass.engines[at - 1].full_pass_part(&mut own, pass.from, go_on)?,
            };
            for (index, own) in indices.into_iter().zip(own) {
                open[index].shards()[pass.at] = Some(own);
            }
            (pass.at, pass.from) = match then {
                Some(from) => (pass.at, from),
                None => (pass.at + 1, 0),
            };
            if pass.at < pass.segments.len() && !go_on() {
                return next;
            }
        }
        for part in open {
            let done = std::mem::take(part.shards()).into_iter().zip(&pass.segments);
            let answers = done.filter_map(|(done, segment)| Some((segment, done?.into_answer())));
            let answer = ranks::join(part, answers.collect());
            part.complete(answer);
        }
        self.pass = None;
        Ok(None)
    }

    fn full_pass_vectors(&self) -> usize {
        self.base.full_pass_vectors()
    }

    fn full_pass_cost(&self, query: &FullPassQuery) -> usize {
        self.base.full_pass_cost(query)
    }
}

impl Segments {
    /// Cuts the queries of a pass for the segments. `None` while the ranked rows have no scores yet.
    fn begin(
        &mut self,
        open: &mut [&mut FullPassPart],
        go_on: &dyn Fn() -> bool,
    ) -> Result<Option<Pass>, EngineError> {
        let whole = {
            let queries: Vec<&FullPassQuery> = open.iter().map(|part| part.query()).collect();
            let fits = |table: &dyn TableRows| {
                let is_there = |row: &Row| row.index() < table.rows();
                let mut vectors = queries.iter().flat_map(|query| query.scoring.vectors());
                queries.iter().all(|query| query.ranked.iter().all(is_there))
                    && vectors.all(|vector| vector.fits(table))
            };
            self.rows_for(queries.iter().map(|query| &query.filter), fits)?
        };
        for part in open.iter_mut() {
            if !ranks::score(part, &whole.table(), go_on) {
                return Ok(None);
            }
        }
        let mut segments = vec![whole.of_base()];
        let mut engines = Vec::new();
        let snapshot = &whole.snapshot;
        // Those on the base's device, too.
        for Piece { rows, engine } in
            self.tail.scans(snapshot, snapshot.base_rows()..snapshot.rows())
        {
            segments.push(Segment { rows, whole: whole.clone() });
            engines.push(engine);
        }
        for part in open.iter_mut() {
            let of_segment = |segment| ranks::query(part, segment).map(FullPassPart::new);
            *part.shards() = segments.iter().map(of_segment).collect();
        }
        Ok(Some(Pass { segments, engines, at: 0, from: 0 }))
    }
}

/// Heads are over the rows of the base.
impl HeadEngine for Segments {
    fn classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        self.base.classify(texts)
    }

    fn classify_part(
        &mut self,
        texts: &[&TokenText],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<Vec<f64>>, EngineError> {
        self.base.classify_part(texts, go_on)
    }

    fn classification_cost(&self, text: &TokenText) -> usize {
        self.base.classification_cost(text)
    }

    fn start_classify(&mut self, texts: &[&TokenText]) -> Result<bool, EngineError> {
        self.base.start_classify(texts)
    }

    fn finish_classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        self.base.finish_classify(texts)
    }

    fn tokens_per_pass(&self) -> usize {
        self.base.tokens_per_pass()
    }

    fn expand_part(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        self.base.expand_part(parts, go_on)
    }

    fn expansion_cost(&self, text: &Expansion) -> usize {
        self.base.expansion_cost(text)
    }
}

impl fmt::Debug for Segments {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, {:?}", self.base.description(), self.tail)
    }
}
