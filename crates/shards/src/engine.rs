//! The engine that is made of the shards' engines.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::{Arc, Mutex, PoisonError};

use contract::{
    Device, Engine, EngineDescription, EngineError, Expansion, FullPassEngine, FullPassPart,
    FullPassQuery, HasTable, HeadEngine, Hit, PartOfExpansion, Query, SearchEngine, Table,
    TokenText, UsualCosts,
};

use crate::heads::{Classifiers, Expanders};
use crate::join::merge;
use crate::members::{Members, StartError};
use crate::ranks;
use crate::shard::{Part, Shard};

/// One engine made of several, each with some rows of a table.
pub struct Shards {
    // Dropped before the tables.
    members: Members,
    shards: Vec<Shard>,
    classifiers: Classifiers,
    expanders: Expanders,
    /// Where the next slice of the full pass starts on each shard; `None` when the shard is done.
    next: Vec<Option<usize>>,
    /// Searches that were started and not finished, in the order of their starts.
    started: VecDeque<Vec<ShardSearch>>,
}

impl Shards {
    /// Cuts a table into these ranges of rows, in order, and makes an engine for each: `make` gets
    /// the index of its range and its table, and runs on the thread that will own the engine. Empty
    /// ranges have no engine. To be called on the thread that will own this.
    ///
    /// # Errors
    /// The first error of `make`.
    ///
    /// # Panics
    /// If the ranges are not all rows of the table, in order, or there are no rows.
    pub fn new<E: Send + 'static>(
        of: Arc<dyn HasTable>,
        ranges: Vec<Range<usize>>,
        make: impl Fn(usize, Arc<dyn HasTable>) -> Result<Box<dyn Engine>, E> + Send + Sync + 'static,
    ) -> Result<Self, StartError<E>> {
        let mut end = 0;
        for range in &ranges {
            assert!(range.start == end && range.end >= end, "ranges in order: {ranges:?}");
            end = range.end;
        }
        assert!(end == of.table().rows() && end > 0, "all rows: {ranges:?}");
        let (indices, ranges): (Vec<usize>, Vec<Range<usize>>) =
            ranges.into_iter().enumerate().filter(|(_, range)| !range.is_empty()).unzip();
        let shards: Vec<Shard> = ranges.into_iter().map(|rows| Shard::new(&of, rows)).collect();
        let tables: Vec<Arc<dyn HasTable>> = shards.iter().map(|one| one.table.clone()).collect();
        let count = shards.len();
        let members =
            Members::new(count, move |index| make(indices[index], tables[index].clone()))?;
        let (classifiers, expanders) = (Classifiers::default(), Expanders::default());
        let (next, started) = (vec![None; count], VecDeque::new());
        Ok(Self { members, shards, classifiers, expanders, next, started })
    }

    /// Checks something against the whole table.
    fn fits(&self, fits: impl Fn(&Table<'_>) -> bool) -> Result<(), EngineError> {
        if fits(&self.shards[0].of.table()) { Ok(()) } else { Err(EngineError::ForeignQuery) }
    }

    /// Asks every shard for its hits, and merges them. `None` for a query that a shard did not
    /// answer.
    fn ask(
        &mut self,
        queries: &[&Query],
        own: impl FnOnce(&mut dyn Engine, &[&Query]) -> Hits,
        others: impl Fn(&mut dyn Engine, &[&Query]) -> Hits + Sync,
    ) -> Hits {
        self.fits(|table| queries.iter().all(|query| query.fits(table)))?;
        let shards = &self.shards;
        let found = self.members.each(
            |index, engine| {
                ShardSearch::new(&shards[index], queries).run(|batch| others(engine, batch))
            },
            |engine| ShardSearch::new(&shards[0], queries).run(|batch| own(engine, batch)),
        );
        joined(found, queries, shards)
    }
}

type Hits = Result<Vec<Option<Vec<Hit>>>, EngineError>;

/// A search on one shard.
struct ShardSearch {
    /// Each query in the shard's terms; `None` if no row of the shard passes its filter.
    own: Vec<Option<Query>>,
    /// Whether the shard's engine has started it. If not, it searches when the answers are wanted.
    is_started: bool,
}

impl ShardSearch {
    fn new(shard: &Shard, queries: &[&Query]) -> Self {
        let own = queries.iter().map(|query| shard.query(query)).collect();
        Self { own, is_started: false }
    }

    /// What a search of the shard's queries finds, for each query of the whole table.
    fn run(&self, search: impl FnOnce(&[&Query]) -> Hits) -> Hits {
        let batch: Vec<&Query> = self.own.iter().flatten().collect();
        if batch.is_empty() {
            return Ok(vec![Some(Vec::new()); self.own.len()]);
        }
        let mut found = search(&batch)?.into_iter();
        let answer = |own: &Option<Query>| match own {
            Some(_) => found.next().expect("an answer for each query"),
            None => Some(Vec::new()),
        };
        Ok(self.own.iter().map(answer).collect())
    }

    fn start(mut self, engine: &mut dyn Engine) -> Result<Self, EngineError> {
        let batch: Vec<&Query> = self.own.iter().flatten().collect();
        self.is_started = !batch.is_empty() && engine.start_search(&batch)?;
        Ok(self)
    }

    fn finish(&self, engine: &mut dyn Engine) -> Hits {
        self.run(|batch| {
            if self.is_started {
                engine.finish_search(batch)
            } else {
                engine.search_overlapped(batch, &mut || ())
            }
        })
    }

    /// Whether its engine must search for it later, which it can't while it works on a started
    /// search.
    fn must_search(&self) -> bool {
        !self.is_started && self.own.iter().any(Option::is_some)
    }
}

/// Merges what every shard found. `None` for a query that a shard did not answer.
fn joined(found: Vec<Hits>, queries: &[&Query], shards: &[Shard]) -> Hits {
    let mut found = found
        .into_iter()
        .map(|found| Ok(found?.into_iter()))
        .collect::<Result<Vec<_>, EngineError>>()?;
    let answers = queries.iter().map(|query| {
        // From every shard, also if one has none.
        let next = |one: &mut std::vec::IntoIter<_>| one.next().expect("one for each query");
        let lists: Vec<Option<Vec<Hit>>> = found.iter_mut().map(next).collect();
        let lists = lists.into_iter().collect::<Option<Vec<_>>>()?;
        Some(merge(shards.iter().zip(lists), query.k))
    });
    Ok(answers.collect())
}

impl Device for Shards {
    fn description(&self) -> EngineDescription {
        let each = self.members.descriptions.iter().zip(&self.shards).map(|(one, shard)| {
            let (first, last) = (shard.rows.start, shard.rows.end - 1);
            format!("rows {first} to {last} on {}", one.detail)
        });
        let each: Vec<String> = each.collect();
        let detail = format!("{} shards: {}", each.len(), each.join("; "));
        EngineDescription { name: self.members.descriptions[0].name, detail }
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        self.members.counters()
    }

    fn overlaps(&self) -> bool {
        self.members.first().overlaps()
    }

    fn wait_until_almost_over(&mut self) -> Result<(), EngineError> {
        let wait = |_: usize, engine: &mut dyn Engine| engine.wait_until_almost_over();
        let waited = self.members.each(wait, |engine| wait(0, engine));
        let waited = waited.into_iter().collect::<Result<(), EngineError>>();
        waited.inspect_err(|_| self.started.clear())
    }
}

impl SearchEngine for Shards {
    fn preferred_batch(&self, waiting: usize) -> usize {
        self.members.first().preferred_batch(waiting)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        let search = |engine: &mut dyn Engine, batch: &[&Query]| -> Hits {
            Ok(engine.search(batch)?.into_iter().map(Some).collect())
        };
        Ok(self.ask(batch, search, search)?.into_iter().map(Option::unwrap_or_default).collect())
    }

    fn search_overlapped(&mut self, batch: &[&Query], meanwhile: &mut dyn FnMut()) -> Hits {
        self.ask(
            batch,
            |engine, batch| engine.search_overlapped(batch, meanwhile),
            |engine, batch| engine.search_overlapped(batch, &mut || ()),
        )
    }

    fn start_search(&mut self, queries: &[&Query]) -> Result<bool, EngineError> {
        self.fits(|table| queries.iter().all(|query| query.fits(table)))?;
        if self.started.iter().flatten().any(ShardSearch::must_search) {
            return Ok(false);
        }
        let shards = &self.shards;
        let start = |index: usize, engine: &mut dyn Engine| {
            ShardSearch::new(&shards[index], queries).start(engine)
        };
        let each = self.members.each(start, |engine| start(0, engine));
        let each = each.into_iter().collect::<Result<Vec<_>, EngineError>>();
        let each = each.inspect_err(|_| self.started.clear())?;
        let is_started = each.iter().any(|one| one.is_started);
        if is_started {
            self.started.push_back(each);
        }
        Ok(is_started)
    }

    fn finish_search(&mut self, queries: &[&Query]) -> Hits {
        let started = self.started.pop_front().expect("a search was started");
        let finish = |index: usize, engine: &mut dyn Engine| started[index].finish(engine);
        let found = self.members.each(finish, |engine| finish(0, engine));
        let answers = joined(found, queries, &self.shards);
        answers.inspect_err(|_| self.started.clear())
    }

    fn search_cost(&self, query: &Query) -> usize {
        self.members.first().search_cost(query)
    }

    fn usual_costs(&self) -> Option<Arc<dyn UsualCosts>> {
        self.members.first().usual_costs()
    }
}

impl FullPassEngine for Shards {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.fits(|table| parts.iter().all(|part| part.fits(table)))?;
        let mut open: Vec<&mut FullPassPart> =
            parts.iter_mut().filter(|part| !part.is_answered()).collect();
        if open.is_empty() {
            return Ok(None);
        }
        if open.iter_mut().any(|part| part.shards().is_empty()) {
            // A pass that has just begun.
            for part in &mut open {
                if !ranks::score(part, &self.shards[0].of.table(), go_on) {
                    return Ok(Some(from));
                }
            }
            for part in &mut open {
                let of_shard = |shard| ranks::query(part, shard).map(FullPassPart::new);
                *part.shards() = self.shards.iter().map(of_shard).collect();
            }
            self.next = vec![Some(0); self.shards.len()];
        }
        let next = &self.next;
        let pieces = open.iter_mut().map(|part| part.shards());
        self.next = spread(&mut self.members, pieces.collect(), |shard, engine, pieces| {
            let from = next[shard].filter(|_| !pieces.is_empty());
            from.map_or(Ok(None), |from| engine.full_pass_part(pieces, from, go_on))
        })?;
        if self.next.iter().any(Option::is_some) {
            // Each shard has its own next row.
            return Ok(Some(from + 1));
        }
        for part in open {
            let done = std::mem::take(part.shards()).into_iter().zip(&self.shards);
            let answers = done.filter_map(|(done, shard)| Some((shard, done?.into_answer())));
            let answer = ranks::join(part, answers.collect());
            part.complete(answer);
        }
        Ok(None)
    }

    fn full_pass_vectors(&self) -> usize {
        self.members.first().full_pass_vectors()
    }

    fn full_pass_cost(&self, query: &FullPassQuery) -> usize {
        self.members.first().full_pass_cost(query)
    }
}

impl HeadEngine for Shards {
    fn classify(&mut self, texts: &[&TokenText]) -> Result<Vec<Vec<f64>>, EngineError> {
        let mut moved: Vec<Vec<TokenText>> = self.shards.iter().map(|_| Vec::new()).collect();
        let length = |text: &TokenText| 1 + text.tokens().len();
        let all: usize = texts.iter().map(|text| length(text)).sum();
        let (each, mut before) = (all.div_ceil(self.shards.len()).max(1), 0);
        for same in texts.chunk_by(|a, b| Arc::ptr_eq(a.classifier(), b.classifier())) {
            let classifiers = self.classifiers.of(same[0].classifier(), &self.shards);
            for text in same {
                let shard = before / each;
                before += length(text);
                let (classifier, tokens) = (classifiers[shard].clone(), text.tokens().to_vec());
                moved[shard].push(TokenText::new(classifier, tokens));
            }
        }
        let run = |shard: usize, engine: &mut dyn Engine| {
            let texts: Vec<&TokenText> = moved[shard].iter().collect();
            if texts.is_empty() { Ok(Vec::new()) } else { engine.classify(&texts) }
        };
        let scores = self.members.each(run, |engine| run(0, engine));
        let scores = scores.into_iter().collect::<Result<Vec<_>, EngineError>>()?;
        Ok(scores.into_iter().flatten().collect())
    }

    fn tokens_per_pass(&self) -> usize {
        self.members.first().tokens_per_pass() * self.shards.len()
    }

    fn expand_part(
        &mut self,
        parts: &mut [PartOfExpansion],
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<(), EngineError> {
        self.fits(|table| parts.iter().all(|part| part.expansion().fits(table)))?;
        let model = self.shards[0].of.clone();
        loop {
            let mut open: Vec<&mut PartOfExpansion> =
                parts.iter_mut().filter(|part| !part.is_complete()).collect();
            if open.is_empty() {
                return Ok(());
            }
            let mut terms = Vec::new();
            for part in &mut open {
                let own = self.expanders.of(part.expansion().expander(), &self.shards);
                if part.shards().is_empty() {
                    *part.shards() = own.pieces(part.expansion(), &model.table());
                }
                terms.push(own);
            }
            let pieces = open.iter_mut().map(|part| part.shards());
            // A piece each, because the caller's clock is its own thread's.
            spread(&mut self.members, pieces.collect(), |_, engine, pieces| {
                if pieces.iter().all(PartOfExpansion::is_complete) {
                    return Ok(());
                }
                engine.expand_part(pieces, &|| false)
            })?;
            for (part, terms) in open.into_iter().zip(terms) {
                if part.shards().iter().flatten().all(PartOfExpansion::is_complete) {
                    let done = std::mem::take(part.shards());
                    part.complete(terms.join(done));
                }
            }
            if !go_on() {
                return Ok(());
            }
        }
    }

    fn expansion_cost(&self, text: &Expansion) -> usize {
        self.members.first().expansion_cost(text)
    }
}

/// Runs `work` on each shard with the pieces that it has of all parts, `[parts][shards]`, which are
/// returned to their places. Returns what it said for each shard.
fn spread<P: Send, T: Send>(
    members: &mut Members,
    mut pieces: Vec<&mut Vec<Option<P>>>,
    work: impl Fn(usize, &mut dyn Engine, &mut [P]) -> Result<T, EngineError> + Sync,
) -> Result<Vec<T>, EngineError> {
    type Own<P> = Mutex<(Vec<usize>, Vec<P>)>;
    let shards = pieces.first().expect("a pass has parts").len();
    let of_shard = |shard: usize| -> Own<P> {
        let own = pieces.iter_mut().enumerate();
        let own = own.filter_map(|(part, pieces)| Some((part, pieces[shard].take()?)));
        Mutex::new(own.unzip())
    };
    let lent: Vec<Own<P>> = (0..shards).map(of_shard).collect();
    let run = |shard: usize, engine: &mut dyn Engine| {
        let mut own = lent[shard].lock().unwrap_or_else(PoisonError::into_inner);
        work(shard, engine, &mut own.1)
    };
    let said = members.each(run, |engine| run(0, engine));
    for (shard, own) in lent.into_iter().enumerate() {
        let (parts, own) = own.into_inner().unwrap_or_else(PoisonError::into_inner);
        for (part, piece) in parts.into_iter().zip(own) {
            pieces[part][shard] = Some(piece);
        }
    }
    said.into_iter().collect()
}
