//! The certified engine: scans a table of 8 or 4 bits per component, which provably rules out all
//! but a few rows, and scores those by the contract's formula.
//!
//! # Algorithm
//!
//! The derived table has every row, divided by its norm and rotated, as integers of 8 bits with a
//! step and a bound on what rounding took away; queries are rounded in the same way. So an integer
//! dot product gives a lower and an upper bound of a row's score. A query's *floor* is a lower
//! bound of its `k`-th best score; all threads share it, and it only rises.
//!
//! ```text
//! floor ← the rank-th best lower bound in a sample of strips      sample.rs, for each query
//!         or, of a set, the k-th best score of some members       members.rs
//! each thread, while tasks of strips are left:                    worker
//!     for each strip and each query:
//!         rows ← those whose upper bound, by its first plane, reaches the floor
//!         for each of these rows that the filter's row set has:
//!             if only high halves were read: bounds ← by all 8 bits and both planes
//!             if upper < floor: next row
//!             candidates += (row, upper); offer lower to the floor
//!     a query with too many candidates has no certificate
//! for each query that has one:                                    rescore.rs
//!     for its candidates, highest upper bound first:
//!         if k rows are kept and upper < the worst of them: stop
//!         keep the row if its score by the formula is among the best k
//! ```
//!
//! Of a set with few members, not strips but these rows are looked at, in a table by rows
//! (row_table.rs, kernels/gather.rs); plan.rs decides for each set of a batch.
//!
//! A query that ranks by a formula is scanned as several half-spaces (`columns.rs`); rows that one
//! of them may contain are scored at once, and their scores serve as bounds.
//!
//! # Why the answer is exact
//!
//! The floor is the least of `k` lower bounds of different rows that the filter admits, or the
//! filter's minimum score. A row that the filter admits is dropped only if its upper bound is below
//! a floor: then `k` others have higher scores. One that ties with the `k`-th best reaches the
//! floor and stays. Bounds are rounded outwards, and one that is NaN keeps its row. What stays is
//! scored by the formula itself. docs/certificate.md has the theorems.
//!
//! A pass reads `rows · dim` bytes once for all of its queries, or half of that if high halves are
//! read first, and multiplies `rows · dim · queries` integers; then `dim` numbers for each
//! candidate that is scored. A query without a certificate is left to a full pass.

pub(crate) mod bounds;
mod cache;
mod columns;
mod cost;
mod derive;
mod floor;
pub(crate) mod kernels;
pub(crate) mod layout;
mod members;
mod pass;
mod plan;
pub(crate) mod quantise;
pub(crate) mod query;
mod rescore;
mod row_table;
mod sample;
mod score;
mod tables;
mod worker;

use std::cmp::Reverse;
use std::path::PathBuf;
use std::time::Duration;

use contract::certificate::{Lift, MAX_DIM};
use contract::{EngineError, Hit, Precision, Query, RowBitmap, SearchEngine};

use crate::InstructionSet;
use crate::full_scan::{FullScanEngine, StartError};
use crate::threads::Workers;
pub(crate) use cache::KeepIn;
pub use cache::table_file;
pub(crate) use cost::Costs;
use cost::{SHORT_FULL_SCAN, expected_hits};
use derive::Deriving;
pub(crate) use derive::TableBytes;
pub use derive::{Origin, TablesReport};
pub use pass::FirstLook;
use pass::{Look, Members, Pass};
use plan::Plan;
use rescore::Rescored;
use row_table::{ByRows, RowTable};
use score::Scorer;
use tables::Tables;

/// Maximum number of queries per pass, or of half-spaces of their formulas; a larger batch takes
/// several passes.
const MAX_PASS: usize = 256;

/// Maximum number of a query's candidates. Beyond it, scoring every row is better.
const MAX_CANDIDATES: usize = 1 << 16;

/// A thread scores this many candidates before another one would be awake.
const WORTH_WAKING: usize = 256;

/// Passes with at most this many queries, and this many hits of all of them, are bound by memory,
/// and scan high halves first.
const FOUR_BIT_QUERIES: usize = 6;
const FOUR_BIT_HITS: usize = 56;

/// A table of at most this many bytes is bound by caches; there, only passes with at most this many
/// queries and hits scan high halves first.
const SMALL_TABLE: usize = 64 << 20;
const SMALL_FOUR_BIT: (usize, usize) = (1, 16);

/// The costs of a pass besides products: per row and query, in components, and per table, in
/// queries. They decide how many threads to use.
const ROW_COMPONENTS: usize = 64;
const TABLE_QUERIES: usize = 8;

/// Options of the engine for machines without a GPU.
#[derive(Default)]
pub struct Options {
    /// Number of search threads. 0: one per core.
    pub threads: usize,
    /// Instructions to use; by default the best available.
    pub instructions: Option<InstructionSet>,
    /// The file that stores the derived table between starts. Without it, or if it can't be
    /// written, the table is derived at each start.
    pub keep_in: Option<PathBuf>,
    /// Forces paths that the engine would choose itself, for tests and benchmarks.
    pub paths: Paths,
    /// The most memory for the products of a classifier, in bytes;
    /// [`PRODUCTS_MEMORY`](crate::heads::classify::PRODUCTS_MEMORY) if `None`.
    pub products: Option<u64>,
    /// How they are kept.
    pub precision: Precision,
    /// Called on the thread that derives the table, before it starts; threads that it starts
    /// inherit its priority where threads have one.
    pub before_deriving: Option<Box<dyn FnOnce() + Send>>,
    /// Called on a separate thread once the derived table is ready, or can't be.
    pub report: Option<Box<dyn FnOnce(TablesReport) + Send>>,
    /// Queries for rows of a set may have another derived table, by rows. The first of them starts
    /// to derive it.
    pub by_rows: bool,
    /// As `report`, for the table by rows.
    pub report_by_rows: Option<Box<dyn FnOnce(TablesReport) + Send>>,
}

/// Which of an engine's paths queries take; by default the fastest.
#[derive(Debug, Clone, Copy, Default)]
pub struct Paths {
    /// Every query takes the certified pass, even if the full scan would be faster.
    pub always_certify: bool,
    /// How much of the table the scan reads first.
    pub first_look: Option<FirstLook>,
    /// Maximum number of a query's candidates in each thread.
    pub room: Option<usize>,
    /// Whether members of sets are gathered from the table by rows: always if there is one, whatever
    /// the set, or never.
    pub gather: Option<bool>,
    /// All threads take part, even in passes that are too short for them.
    pub all_threads: bool,
}

/// Searches a table. It can answer immediately: by the full scan, until the derived table is loaded
/// or derived.
#[derive(Debug)]
pub(crate) struct CertifiedSearch {
    /// The engine that scores every row.
    pub(crate) full: FullScanEngine,
    paths: Paths,
    pub(crate) costs: Costs,
    pub(crate) deriving: Deriving<Tables>,
    by_rows: ByRows,
    pub(crate) counters: Counters,
}

contract::counters! {
    /// The counters of an engine since its start.
    Counters {
        /// Certified passes over the table.
        passes: "passes",
        /// Queries answered with a certificate.
        certified: "certified",
        /// Queries that only scoring every row can answer: no derived table yet, or `k` is a large
        /// part of all rows.
        full: "full",
        /// Queries without a certificate, which were left to a full pass.
        fallbacks: "fallbacks",
        /// Rows that a scan of high halves did not rule out, so they were compared again with all
        /// bits.
        second_looks: "second_looks",
        /// Rows that neither the scan nor a second comparison ruled out.
        candidates: "candidates",
        /// Candidates scored by the formula.
        survivors: "survivors",
        /// Queries of completed full passes.
        full_pass_queries: "full_pass_queries",
        /// Texts whose class scores were computed.
        classified: "classified",
        /// Texts whose terms were found.
        expanded: "expanded_parts",
    }
}

impl CertifiedSearch {
    /// Searches the table of `full`, which answers what has no certificate, for queries whose norm
    /// is about `query_norm` (`None`: as long as rows); others have certificates as well. The
    /// derived table takes one byte per component and 8 bytes per row.
    ///
    /// # Errors
    /// If the system refuses to start the threads.
    pub(crate) fn new(
        full: FullScanEngine,
        keep_in: Option<KeepIn>,
        query_norm: Option<f64>,
        options: Options,
    ) -> Result<Self, StartError> {
        let (threads, instructions) = (full.pool.current_num_threads(), full.instructions);
        let (paths, table) = (options.paths, full.model.table());
        let lift = Lift::of(&table, query_norm);
        let Options { before_deriving, report, .. } = options;
        let wanted = options.by_rows && paths.gather != Some(false);
        let by_rows = ByRows::new(wanted, options.report_by_rows, threads, instructions);
        let deriving = if lift.dim(table.dim()) <= MAX_DIM {
            let (model, before) = (&full.model, before_deriving);
            Deriving::start(model, lift, instructions, threads, keep_in, before, report)?
        } else {
            let reason = format!("vectors of more than {MAX_DIM} components have no certificate");
            let (took, bytes, origin) = (Duration::ZERO, 0, Origin::None(reason));
            if let Some(report) = report {
                report(TablesReport { took, bytes, origin });
            }
            Deriving::nothing()
        };
        let (rows, dim, always_certify) = (table.rows(), table.dim(), paths.always_certify);
        let costs = Costs { rows, dim, instructions, always_certify, by_rows: wanted };
        let counters = Counters::default();
        Ok(Self { full, paths, costs, deriving, by_rows, counters })
    }

    /// Waits until all derived tables are ready, or can't be; for tests and benchmarks.
    pub(crate) fn wait_for_tables(&mut self) {
        self.deriving.wait();
        if let Some(tables) = self.deriving.ready() {
            self.by_rows.wait(&tables);
        }
    }

    /// The number of threads worth waking for a pass over this many rows.
    fn threads_for(&self, queries: usize, rows: usize, tables: &Tables) -> usize {
        let row = tables.layout.dim + ROW_COMPONENTS;
        let work = rows.saturating_mul(row).saturating_mul(queries + TABLE_QUERIES);
        let shares = work / self.full.instructions.thread_share();
        let most = self.full.pool.current_num_threads();
        if self.paths.all_threads { most } else { shares.clamp(1, most) }
    }

    /// Runs one certified pass for the queries at `indices`, all of which have this set if its
    /// members are gathered. Queries without a certificate stay unanswered.
    fn certified(
        &mut self,
        (tables, by_rows): (&Tables, Option<&RowTable>),
        gathered: Option<&RowBitmap>,
        batch: &[&Query],
        indices: &[usize],
        answers: &mut [Option<Vec<Hit>>],
    ) {
        let FullScanEngine { model, pool, instructions } = &self.full;
        let (table, instructions) = (model.table(), *instructions);
        let mut indices = indices.to_vec();
        // So that the queries that cover a row are always a prefix.
        let limit = |index: &usize| batch[*index].filter.row_limit(table.rows());
        indices.sort_by_key(|index| Reverse(limit(index)));
        let queries: Vec<&Query> = indices.iter().map(|&index| batch[index]).collect();
        let columns = columns::columns(&queries, &table, &tables.lift);
        let hits = |query: &&Query| expected_hits(query);
        let room = self.paths.room.unwrap_or(
            MAX_CANDIDATES / pool.current_num_threads()
                + 8 * queries.iter().map(hits).max().unwrap_or(0),
        );
        let small = tables.bytes().len() <= SMALL_TABLE;
        let (most, most_hits) =
            if small { SMALL_FOUR_BIT } else { (FOUR_BIT_QUERIES, FOUR_BIT_HITS) };
        let few = columns.len() <= most && queries.iter().map(hits).sum::<usize>() <= most_hits;
        let fastest = if few { FirstLook::FourBits } else { FirstLook::EightBits };
        let first_look = self.paths.first_look.unwrap_or(fastest);
        let rows = gathered.map_or(table.rows(), RowBitmap::len);
        let threads = self.threads_for(columns.len(), rows, tables);
        let workers = Workers { pool, threads, instructions };
        // Each row that half-spaces of a formula may contain is scored, so they need both planes.
        let may_change =
            self.paths.first_look.is_none() && columns.iter().all(|column| column.is_query());
        let shared = gathered.or_else(|| shared_set(&queries));
        let members = shared.zip(by_rows).map(|(bitmap, table)| Members { bitmap, table });
        let only_members = gathered.is_some();
        let look = Look { first: first_look, may_change, members, only_members };
        let pass = Pass::new(tables, workers, look, &queries, columns, table, room);
        let found = workers.each(|| worker::run_tasks(&pass));
        let total = found.iter().flatten().map(Vec::len).sum::<usize>();
        let mut rescored: Vec<Option<Rescored>> = queries.iter().map(|_| None).collect();
        let parts = queries.iter().zip(&mut rescored).enumerate().collect();
        workers.at_most(total.div_ceil(WORTH_WAKING)).share(parts, |parts| {
            let mut scorer = Scorer::new(queries[0], table, instructions);
            for (i, (query, rescored)) in parts {
                let candidates = pass.candidates(i, &found);
                *rescored = candidates
                    .map(|found| rescore::rescore(query, pass.units[i], found, &mut scorer));
            }
        });

        let scored = pass.scored.into_inner();
        self.counters.passes += 1;
        self.counters.second_looks += pass.second_looks.into_inner();
        self.counters.candidates += scored;
        self.counters.survivors += scored;
        for (index, rescored) in indices.into_iter().zip(rescored) {
            let Some(rescored) = rescored else {
                self.counters.fallbacks += 1;
                continue;
            };
            self.counters.certified += 1;
            self.counters.candidates += rescored.candidates as u64;
            self.counters.survivors += rescored.scored as u64;
            answers[index] = Some(rescored.hits);
        }
    }

    /// Runs as many certified passes as these queries need.
    fn certified_in_passes(
        &mut self,
        tables: (&Tables, Option<&RowTable>),
        gathered: Option<&RowBitmap>,
        batch: &[&Query],
        mut indices: &[usize],
        answers: &mut [Option<Vec<Hit>>],
    ) {
        while !indices.is_empty() {
            let (now, later) = indices.split_at(pass_length(batch, indices));
            self.certified(tables, gathered, batch, now, answers);
            indices = later;
        }
    }

    /// The answer to each query; `None` for those that would take far longer than a search should.
    /// See [`SearchEngine::search_overlapped`].
    pub(crate) fn search_overlapped(
        &mut self,
        queries: &[&Query],
        meanwhile: &mut dyn FnMut(),
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        meanwhile();
        if self.deriving.ready().is_none() {
            // Waiting for as long as the full scan would take, and scanning only then, takes twice
            // as long at worst.
            let scan = self.costs.full_scan_time(queries, &self.full.pool);
            self.deriving.wait_at_most(scan);
        }
        self.search_now(queries)
    }

    /// The same without waiting for the derived table.
    pub(crate) fn search_now(
        &mut self,
        queries: &[&Query],
    ) -> Result<Vec<Option<Vec<Hit>>>, EngineError> {
        let table = self.full.model.table();
        if !queries.iter().all(|query| query.fits(&table)) {
            return Err(EngineError::ForeignQuery);
        }
        let tables = self.deriving.ready();
        let nothing = |query: &&Query| (query.k == 0).then(Vec::new);
        let mut answers: Vec<Option<Vec<Hit>>> = queries.iter().map(nothing).collect();
        let asked = (0..queries.len()).filter(|&index| queries[index].k > 0);
        let is_useful = |index: usize| {
            let unit = |tables: &Tables| tables.lift.unit(queries[index].vectors()[0].norm);
            tables.as_deref().is_some_and(|tables| unit(tables).is_useful())
        };
        let always = self.paths.gather == Some(true);
        let costs = self.costs;
        let may_gather =
            |&index: &usize| is_useful(index) && costs.may_gather(queries[index], always);
        let (mut of_sets, mut others): (Vec<usize>, Vec<usize>) = asked.partition(may_gather);
        let by_rows = match &tables {
            Some(tables) if !of_sets.is_empty() => self.by_rows.ready(tables),
            _ => None,
        };
        if by_rows.is_none() {
            others.append(&mut of_sets);
        }
        let Plan { gathered, scanned } = Plan::new(&costs, queries, of_sets, always);
        others.extend(scanned);
        let suits = |&index: &usize| is_useful(index) && costs.suits(queries[index]);
        let (certified, full): (Vec<usize>, Vec<usize>) = others.into_iter().partition(suits);
        self.counters.full += full.len() as u64;
        if let Some(tables) = &tables {
            let tables = (&**tables, by_rows.as_deref());
            for (bitmap, indices) in gathered {
                self.certified_in_passes(tables, Some(bitmap), queries, &indices, &mut answers);
            }
            self.certified_in_passes(tables, None, queries, &certified, &mut answers);
        }
        let products: usize =
            full.iter().map(|&index| self.costs.full_scan_products(queries[index])).sum();
        if !full.is_empty() && products <= SHORT_FULL_SCAN {
            let few: Vec<&Query> = full.iter().map(|&index| queries[index]).collect();
            for (index, hits) in full.into_iter().zip(self.full.search(&few)?) {
                answers[index] = Some(hits);
            }
        }
        Ok(answers)
    }
}

/// The bitmap that all of these queries have.
fn shared_set<'a>(queries: &[&'a Query]) -> Option<&'a RowBitmap> {
    let (first, others) = queries.split_first()?;
    let shared = first.filter.rows.bitmap()?;
    let is_shared = |query: &&Query| {
        query.filter.rows.bitmap().is_some_and(|bitmap| bitmap.id() == shared.id())
    };
    others.iter().all(is_shared).then_some(&**shared)
}

/// How many of these queries, from the first on, one pass takes; at least 1.
fn pass_length(batch: &[&Query], indices: &[usize]) -> usize {
    let mut columns = 0;
    let fits = |&&index: &&usize| {
        columns += batch[index].columns().unwrap_or(1);
        columns <= MAX_PASS
    };
    indices.iter().take_while(fits).count().max(1)
}
