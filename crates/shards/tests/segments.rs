//! A base and its tail give the answers of the plain reference over the rows that live at a
//! position, to the bit: whatever came since, and whatever engine the base has.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use changes::{
    BatchBuilder, ChangeOptions, Changes, Durability, Schema, Snapshot, TableAt, Upsert, create,
};
use contract::full_pass::Groups;
use contract::{
    Engine, EngineError, Filter, FullPassAnswer, FullPassEngine, FullPassPart, FullPassQuery,
    HasTable, Hit, Metric, Query, QueryVector, Row, RowBitmap, RowSet, Scoring, SearchEngine,
    TableRows,
};
use cpu_core::{CpuEngine, Options, Paths, ReferenceEngine};
use fastrand::Rng;
use model_store::ModelStore;
use model_store::prepare::{Input, PrepareOptions, prepare_folder};
use shards::{Segments, Shards, split_evenly};

use crate::appending::Appending;
use crate::support::model_under_dot;

/// A row, as a person would keep it.
#[derive(Debug, Clone)]
struct NaiveRow {
    key: u32,
    vector: Vec<f32>,
    bias: f32,
}

/// A table with every row that it was ever given, and those that live.
#[derive(Debug, Clone)]
struct Naive {
    dim: usize,
    metric: Metric,
    rows: Vec<NaiveRow>,
    live: Vec<bool>,
}

/// The rows of a naive table that live, for the reference.
struct Map {
    model: Option<Arc<ModelStore>>,
    /// The number of each row in the whole table.
    rows: Vec<Row>,
}

impl Naive {
    fn upsert(&mut self, row: NaiveRow) {
        self.delete(row.key);
        self.rows.push(row);
        self.live.push(true);
    }

    fn delete(&mut self, key: u32) {
        let same = self.rows.iter().zip(&mut self.live).filter(|(row, _)| row.key == key);
        same.for_each(|(_, is_live)| *is_live = false);
    }

    /// The rows that live have places without gaps then, as in a new base.
    fn forget_the_dead(&mut self) {
        let mut live = self.live.iter();
        self.rows.retain(|_| *live.next().unwrap());
        self.live = vec![true; self.rows.len()];
    }

    fn map(&self) -> Map {
        let live = (0..self.rows.len()).filter(|&row| self.live[row]);
        let rows: Vec<Row> = live.map(|row| Row(row as u32)).collect();
        let vectors: Vec<Vec<f32>> =
            rows.iter().map(|row| self.rows[row.index()].vector.clone()).collect();
        let biases: Vec<f32> = rows.iter().map(|row| self.rows[row.index()].bias).collect();
        // There is no model of no rows in memory, and no query of its rows.
        let model = (!rows.is_empty()).then(|| match self.metric {
            Metric::Cosine => crate::support::model(self.dim, &vectors),
            Metric::Dot => model_under_dot(self.dim, &vectors, Some(&biases)),
        });
        Map { model: model.map(Arc::new), rows }
    }
}

impl Map {
    fn here(&self, row: Row) -> Row {
        Row(self.rows.binary_search(&row).unwrap() as u32)
    }

    /// The rows of the whole table as the map numbers them.
    fn rows(&self, set: &RowSet) -> RowSet {
        let members = self.rows.iter().filter(|row| set.contains(**row));
        let members: Vec<Row> = members.map(|row| self.here(*row)).collect();
        RowSet::of(Arc::new(RowBitmap::of_rows(members, self.rows.len(), "map")))
    }

    fn vector(&self, vector: &QueryVector) -> QueryVector {
        match vector {
            QueryVector::Row(row) => QueryVector::Row(self.here(*row)),
            components => components.clone(),
        }
    }

    /// A query for the whole table as one for the map.
    fn query(&self, query: &Query) -> Query {
        let filter = Filter { rows: self.rows(&query.filter.rows), ..query.filter };
        query.moved(
            |vector| contract::ScoringVector {
                vector: self.vector(&vector.vector),
                norm: vector.norm,
            },
            filter,
        )
    }

    fn reference(&self) -> Option<ReferenceEngine> {
        Some(ReferenceEngine::new(self.model.clone()?))
    }

    fn expected(&self, queries: &[Query]) -> Vec<Vec<(u32, u64)>> {
        let Some(mut reference) = self.reference() else { return vec![Vec::new(); queries.len()] };
        let own: Vec<Query> = queries.iter().map(|query| self.query(query)).collect();
        let batch: Vec<&Query> = own.iter().collect();
        let found = reference.search(&batch).unwrap();
        let hit = |hit: &Hit| (self.rows[hit.row.index()].0, hit.score.to_bits());
        found.iter().map(|hits| hits.iter().map(hit).collect()).collect()
    }
}

/// The rows that live at a position, by the snapshot.
fn live(snapshot: &Snapshot) -> Arc<RowBitmap> {
    let rows = snapshot.rows();
    Arc::new(RowBitmap::new(snapshot.dead().live_bits(rows), rows, "v"))
}

fn component(rng: &mut Rng) -> f32 {
    match rng.u32(0..12) {
        0..8 => [0.0, 1.0, -1.0, 2.0][rng.usize(0..4)],
        8..11 => rng.f32() * 2.0 - 1.0,
        _ => 3.0e38,
    }
}

fn vector(rng: &mut Rng, dim: usize) -> Vec<f32> {
    match rng.u32(0..12) {
        0 => vec![0.0; dim],
        _ => (0..dim).map(|_| component(rng)).collect(),
    }
}

/// A table that changes, with its naive twin, and an engine.
struct World {
    scratch: tempfile::TempDir,
    changes: Arc<Mutex<Changes>>,
    engine: Segments,
    naive: Naive,
    /// All positions so far.
    seen: Vec<(Snapshot, Naive)>,
    threads: usize,
}

fn base_engine(rng: &mut Rng, of: &Arc<dyn HasTable>) -> Box<dyn Engine> {
    let certified = |table| -> Result<Box<dyn Engine>, cpu_core::StartError> {
        let paths = Paths { always_certify: true, ..Paths::default() };
        let options = Options { threads: 1, paths, by_rows: true, ..Options::default() };
        let mut engine = CpuEngine::over(table, options)?;
        engine.wait_for_tables();
        Ok(Box::new(engine))
    };
    // There are no shards of no rows.
    let kinds = if of.table().rows() == 0 { 3 } else { 4 };
    match rng.u32(0..kinds) {
        0 => Box::new(ReferenceEngine::new(of.clone())),
        1 => certified(of.clone()).unwrap(),
        2 => Box::new(Appending::new(of, [3, 100, 700, 100_000][rng.usize(0..4)])),
        _ => {
            let ranges = split_evenly(of.table().rows(), 2);
            Box::new(Shards::new(of.clone(), ranges, move |_, table| certified(table)).unwrap())
        }
    }
}

impl World {
    fn new(rng: &mut Rng, dim: usize, base_rows: u32, metric: Metric) -> Self {
        let scratch = tempfile::tempdir().unwrap();
        let rows: Vec<NaiveRow> = (0..base_rows)
            .map(|key| NaiveRow { key, vector: vector(rng, dim), bias: 0.0 })
            .collect();
        let line = |row: &NaiveRow| {
            let numbers: Vec<String> = row.vector.iter().map(|x| format!("{x:e}")).collect();
            format!("k{} {}\n", row.key, numbers.join(" "))
        };
        let text: String = rows.iter().map(line).collect();
        let input = Input::Bytes { name: "m", bytes: text.as_bytes() };
        let options = PrepareOptions { metric, ..PrepareOptions::default() };
        let folder = scratch.path().join("m");
        if rows.is_empty() {
            create(&folder, &Schema { dim, metric, columns: Vec::new() }).unwrap();
        } else {
            let go_on = &mut |_| ControlFlow::Continue(());
            prepare_folder(input, &folder, &options, go_on).unwrap();
        }
        let naive = Naive { dim, metric, live: vec![true; rows.len()], rows };
        let changes = Self::open(&folder);
        let engine = Self::engine(rng, &changes, 1);
        let seen = vec![(changes.lock().unwrap().snapshot(), naive.clone())];
        Self { scratch, changes, engine, naive, seen, threads: 1 }
    }

    fn open(folder: &Path) -> Arc<Mutex<Changes>> {
        Arc::new(Mutex::new(Changes::open(folder, ChangeOptions::default()).unwrap()))
    }

    fn engine(rng: &mut Rng, changes: &Arc<Mutex<Changes>>, threads: usize) -> Segments {
        let of: Arc<dyn HasTable> = changes.lock().unwrap().base();
        Self::engine_over(base_engine(rng, &of), changes, threads)
    }

    fn engine_over(
        base: Box<dyn Engine>,
        changes: &Arc<Mutex<Changes>>,
        threads: usize,
    ) -> Segments {
        let generation = changes.lock().unwrap().current();
        let of: Arc<dyn HasTable> = generation.base().clone();
        let now = Arc::new(move || generation.snapshot());
        Segments::new(base, of, now, threads).unwrap()
    }

    fn reopen(&mut self, rng: &mut Rng) {
        let nobody = Segments::new(
            Box::new(ReferenceEngine::new(self.of())),
            self.of(),
            Arc::new({
                let snapshot = self.changes.lock().unwrap().snapshot();
                move || snapshot.clone()
            }),
            1,
        );
        // The engine and the table end, and begin again.
        self.engine = nobody.unwrap();
        let meanwhile = Arc::new(Mutex::new(self.read()));
        let ended = std::mem::replace(&mut self.changes, meanwhile);
        Arc::into_inner(ended).unwrap().into_inner().unwrap().close().unwrap();
        self.changes = Self::open(&self.scratch.path().join("m"));
        self.engine = Self::engine(rng, &self.changes, self.threads);
    }

    fn read(&self) -> Changes {
        let options = ChangeOptions { access: changes::Access::Read, ..Default::default() };
        Changes::open(&self.scratch.path().join("m"), options).unwrap()
    }

    fn of(&self) -> Arc<dyn HasTable> {
        self.changes.lock().unwrap().base()
    }

    /// Folds the changes. The engine of the old base still answers; then there is one of the new.
    fn fold(&mut self, rng: &mut Rng, what: &str) {
        let of = self.of();
        let go_on = &mut |_| ControlFlow::Continue(());
        let folded = self.changes.lock().unwrap().fold(go_on).unwrap();
        check_over(self, &of, rng, what);
        if folded.is_some() {
            self.engine = Self::engine(rng, &self.changes, self.threads);
            self.naive.forget_the_dead();
            self.seen = vec![(self.changes.lock().unwrap().snapshot(), self.naive.clone())];
        }
    }

    /// Commits a batch of this many upserts and a few deletes, of few keys or of new ones.
    fn change(&mut self, rng: &mut Rng, upserts: usize, keys: u32) {
        let dim = self.naive.dim;
        let changes = self.changes.lock().unwrap();
        let mut batch = BatchBuilder::new(changes.schema());
        let mut taken = std::collections::HashSet::new();
        for _ in 0..upserts {
            let key = rng.u32(0..keys);
            if !taken.insert(key) {
                continue;
            }
            let bias = if self.naive.metric == Metric::Dot { rng.u32(0..3) as f32 } else { 0.0 };
            let row = NaiveRow { key, vector: vector(rng, dim), bias };
            let bias = (self.naive.metric == Metric::Dot).then_some(bias);
            let (key, vector) = (format!("k{key}"), &row.vector[..]);
            batch.upsert(Upsert { key: &key, vector, bias, attributes: &[] });
            self.naive.upsert(row);
        }
        for _ in 0..rng.usize(0..4) {
            let key = rng.u32(0..keys);
            if taken.insert(key) {
                batch.delete(&format!("k{key}"));
                self.naive.delete(key);
            }
        }
        let Some(batch) = batch.finish().unwrap() else { return };
        changes.commit(batch, Durability::None, None).unwrap();
        self.seen.push((changes.snapshot(), self.naive.clone()));
    }
}

/// A query for the whole table at a position: of a row, a vector or a formula.
fn query(rng: &mut Rng, snapshot: &Snapshot, table: &TableAt<'_>, map: &Map) -> Option<Query> {
    let k = [1, 3, 10, 60, 1000][rng.usize(0..5)];
    if map.rows.is_empty() {
        let scoring = Scoring::vector(table, vector(rng, table.dim()).into()).ok()?;
        return Some(Query::by(scoring, k, Filter::of(set(rng, snapshot))));
    }
    let mut row = || map.rows[rng.usize(0..map.rows.len())];
    let rows = [row(), row(), row()];
    let scoring = match rng.u32(0..6) {
        0..2 => Scoring::vector(table, QueryVector::Row(rows[0])).ok()?,
        2..4 => Scoring::vector(table, vector(rng, table.dim()).into()).ok()?,
        4 => Scoring::three_cos_mul(table, &rows[..2], &rows[2..]).ok()?,
        _ => Scoring::pair_direction(table, rows[0], rows[1], rows[2]).ok()?,
    };
    let score = |rng: &mut Rng| {
        let row = map.rows[rng.usize(0..map.rows.len())];
        scoring.score_of_row(table, row).filter(|_| rng.u32(0..4) == 0)
    };
    let filter = Filter { rows: set(rng, snapshot), min_score: score(rng), max_score: score(rng) };
    Some(Query::by(scoring, k, filter))
}

/// Rows that live: all, or some.
fn set(rng: &mut Rng, snapshot: &Snapshot) -> RowSet {
    let all = snapshot.rows();
    let is_untouched = snapshot.dead().is_empty();
    let mut set = match rng.u32(0..4) {
        0 if is_untouched => RowSet::first(all as u32),
        1 => {
            let members = (0..all as u32).filter(|_| rng.bool()).map(Row);
            let some = RowBitmap::of_rows(members, all, "v");
            RowSet::of(live(snapshot)).within(Arc::new(some))
        }
        2 => RowSet::of(live(snapshot)).limited(Some(rng.u32(0..all as u32 + 5))),
        _ => RowSet::of(live(snapshot)),
    };
    if rng.bool() {
        set = set.less((0..3).map(|_| Row(rng.u32(0..all.max(1) as u32))).collect());
    }
    set
}

fn found(hits: &[Vec<Hit>]) -> Vec<Vec<(u32, u64)>> {
    crate::support::bits(hits)
}

/// Asks queries of some positions together, in every way in which an engine is asked.
fn check(world: &mut World, rng: &mut Rng, what: &str) {
    let base = world.of();
    check_over(world, &base, rng, what);
}

/// The same of positions over a base that may not be the last.
fn check_over(world: &mut World, base: &Arc<dyn HasTable>, rng: &mut Rng, what: &str) {
    let (mut queries, mut expected) = (Vec::new(), Vec::new());
    for _ in 0..3 {
        let at = match rng.u32(0..2) {
            0 => world.seen.len() - 1,
            _ => rng.usize(0..world.seen.len()),
        };
        let (snapshot, naive) = &world.seen[at];
        let map = naive.map();
        let table = TableAt::new(base.table(), Some(snapshot));
        let own: Vec<Query> = (0..4).filter_map(|_| query(rng, snapshot, &table, &map)).collect();
        expected.extend(map.expected(&own));
        check_ranks(world, rng, &own, &map, what);
        queries.extend(own);
    }
    let batch: Vec<&Query> = queries.iter().collect();
    assert_eq!(found(&world.engine.search(&batch).unwrap()), expected, "{what}");
    let mut answers = world.engine.search_overlapped(&batch, &mut || ()).unwrap();
    if world.engine.start_search(&batch).unwrap() {
        answers = world.engine.finish_search(&batch).unwrap();
    }
    for ((query, answer), expected) in queries.iter().zip(answers).zip(&expected) {
        let hits = match answer {
            Some(hits) => hits,
            // Without a certificate.
            None => {
                let pass = FullPassQuery::of_search(query);
                world.engine.full_pass(&[&pass]).unwrap().remove(0).hits
            }
        };
        assert_eq!(&found(&[hits])[0], expected, "{what}: {query:?}");
    }
}

fn ranks(
    answer: &FullPassAnswer,
    number: impl Fn(Row) -> Row,
) -> Vec<(Row, Option<u64>, Option<u32>)> {
    let bits = |score: Option<f64>| score.map(f64::to_bits);
    answer.ranks.iter().map(|rank| (number(rank.row), bits(rank.score), rank.rank)).collect()
}

/// Groups of a map's rows.
#[derive(Debug)]
struct OfMap(Vec<Row>);

impl Groups for OfMap {
    fn group(&self, row: Row) -> Option<u64> {
        Mod3.group(self.0[row.index()])
    }
}

#[derive(Debug)]
struct Mod3;

impl Groups for Mod3 {
    fn group(&self, row: Row) -> Option<u64> {
        (!row.0.is_multiple_of(4)).then_some(u64::from(row.0 % 3))
    }
}

/// Full passes in slices: the best rows, ranks, and the best of each group.
fn check_ranks(world: &mut World, rng: &mut Rng, queries: &[Query], map: &Map, what: &str) {
    let Some(mut reference) = map.reference() else { return };
    let mut passes = Vec::new();
    let mut own = Vec::new();
    for query in queries {
        let of_map = map.query(query);
        let ranked: Vec<Row> = (0..3).map(|_| map.rows[rng.usize(0..map.rows.len())]).collect();
        let here = ranked.iter().map(|row| map.here(*row)).collect();
        let mut pass = FullPassQuery { ranked, ..FullPassQuery::of_search(query) };
        let mut for_map = FullPassQuery { ranked: here, ..FullPassQuery::of_search(&of_map) };
        if rng.bool() {
            pass.groups = Some(Arc::new(Mod3));
            for_map.groups = Some(Arc::new(OfMap(map.rows.clone())));
        }
        passes.push(pass);
        own.push(for_map);
    }
    let references: Vec<&FullPassQuery> = own.iter().collect();
    let expected = reference.full_pass(&references).unwrap();
    let mut parts: Vec<FullPassPart> = passes.iter().cloned().map(FullPassPart::new).collect();
    let (mut next, is_patient) = (Some(0), rng.bool());
    while let Some(from) = next {
        next = world.engine.full_pass_part(&mut parts, from, &|| is_patient).unwrap();
    }
    for (part, expected) in parts.into_iter().zip(&expected) {
        let answer = part.into_answer();
        let everywhere = |row: Row| map.rows[row.index()];
        assert_eq!(ranks(&answer, |row| row), ranks(expected, everywhere), "{what}");
        let hits = expected.hits.iter().map(|hit| Hit { row: everywhere(hit.row), ..*hit });
        assert_eq!(found(&[answer.hits]), found(&[hits.collect()]), "{what}");
    }
}

#[test]
fn random_histories_are_answered_at_every_position() {
    let mut folds = 0;
    for seed in 0..36 {
        let mut rng = Rng::with_seed(seed);
        let metric = if rng.u32(0..3) == 0 { Metric::Dot } else { Metric::Cosine };
        // A third of them begin without rows.
        let base_rows = if seed % 3 == 0 { 0 } else { rng.u32(1..150) };
        let dim = rng.usize(1..40);
        let mut world = World::new(&mut rng, dim, base_rows, metric);
        let keys = rng.u32(20..300);
        for step in 0..rng.usize(3..14) {
            match rng.u32(0..8) {
                // Enough to fill strips.
                0 => world.change(&mut rng, 1500, 5000),
                1 => {
                    world.reopen(&mut rng);
                    folds += usize::from(world.changes.lock().unwrap().current().number() > 1);
                }
                2 | 3 => world.fold(&mut rng, &format!("seed {seed}, fold {step}")),
                _ => {
                    let upserts = rng.usize(0..30);
                    world.change(&mut rng, upserts, keys);
                }
            }
            check(&mut world, &mut rng, &format!("seed {seed}, step {step}"));
        }
    }
    assert!(folds > 0, "a folded table was opened again");
}

#[test]
fn a_tail_of_several_parts_is_searched_as_it_fills() {
    // A part has 2,048 rows: four strips.
    let mut rng = Rng::with_seed(7);
    let mut world = World::new(&mut rng, 512, 50, Metric::Cosine);
    let reference = Box::new(ReferenceEngine::new(world.of()));
    world.engine = World::engine_over(reference, &world.changes, 2);
    for step in 0..12 {
        world.change(&mut rng, 400 + 100 * (step % 3), 1 << 20);
        check(&mut world, &mut rng, &format!("step {step}"));
    }
    assert!(world.naive.rows.len() > 2 * 2048);
    // In the end there are few pieces, and hardly any row without one.
    let until = Instant::now() + Duration::from_secs(60);
    loop {
        world.engine.extend().unwrap();
        let said = format!("{:?}", world.engine);
        let numbers = said.split("a tail of ").nth(1).unwrap().split(' ');
        let numbers: Vec<usize> = numbers.filter_map(|word| word.parse().ok()).collect();
        if (1..4).contains(&numbers[0]) && numbers[1] < 512 {
            break;
        }
        assert!(Instant::now() < until, "{said}");
        std::thread::sleep(Duration::from_millis(5));
    }
    check(&mut world, &mut rng, "in pieces");
}

#[test]
fn queries_of_no_position_or_of_another_table_are_refused() {
    let mut rng = Rng::with_seed(3);
    let mut world = World::new(&mut rng, 3, 10, Metric::Cosine);
    let of_all = |rows: RowSet| {
        let (row, norm) = ([1.0, 1.0, 1.0], [3.0_f64.sqrt()]);
        let table = contract::Table::new(&row, &norm, 3);
        Query::new(&table, vec![1.0, 0.0, 0.0].into(), 3, Filter::of(rows)).unwrap()
    };
    assert!(world.engine.search(&[&of_all(RowSet::all())]).is_ok(), "nothing was changed");
    world.change(&mut rng, 5, 1000);
    let refused = |engine: &mut Segments, rows: RowSet| {
        let query = of_all(rows);
        let pass = FullPassQuery::of_search(&query);
        let foreign = |error| matches!(error, EngineError::ForeignQuery);
        let refused = engine.search(&[&query]).is_err_and(foreign);
        assert_eq!(engine.full_pass(&[&pass]).is_err_and(foreign), refused);
        assert_eq!(engine.start_search(&[&query]).is_err_and(foreign), refused);
        refused
    };
    let bitmap = |rows| RowSet::of(Arc::new(RowBitmap::of_rows([Row(0)], rows, "v")));
    let all = world.seen[1].0.rows();
    assert!(refused(&mut world.engine, RowSet::all()));
    assert!(refused(&mut world.engine, bitmap(9)));
    assert!(refused(&mut world.engine, bitmap(all + 1)));
    for rows in [bitmap(10), bitmap(all), RowSet::first(10)] {
        assert!(!refused(&mut world.engine, rows));
    }
    let row = Query::new(&world.of().table(), QueryVector::Row(Row(2)), 3, Filter::default());
    if let Ok(query) = row {
        let far = |vector: &contract::ScoringVector| contract::ScoringVector {
            vector: QueryVector::Row(Row(all as u32)),
            norm: vector.norm,
        };
        let query = query.moved(far, Filter::of(RowSet::first(10)));
        assert!(matches!(world.engine.search(&[&query]), Err(EngineError::ForeignQuery)));
    }
}
