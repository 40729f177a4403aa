//! Several workers on one queue: CPU engines over one model.

use std::collections::HashSet;

use contract::Table;
use cpu_core::{FullScanEngine, ReferenceEngine};

use super::*;

/// A model of pseudo-random rows.
fn model() -> Arc<ModelStore> {
    let mut state = 1u32;
    let mut number = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) as f32 / (1 << 23) as f32 - 1.0
    };
    let rows: Vec<(String, Vec<f32>)> =
        (0..2000).map(|row| (format!("w{row}"), (0..16).map(|_| number()).collect())).collect();
    let rows = rows.iter().map(|(word, row)| (word.as_str(), &row[..]));
    Arc::new(ModelStore::from_rows("random", 16, rows).unwrap())
}

/// A full scan that notes which worker ran it.
struct Noted {
    engine: FullScanEngine,
    worker: usize,
    passes: Arc<Mutex<Vec<usize>>>,
}

impl Device for Noted {
    fn description(&self) -> EngineDescription {
        Device::description(&self.engine)
    }
}

impl SearchEngine for Noted {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting.min(3)
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.passes.lock().unwrap().push(self.worker);
        self.engine.search(batch)
    }
}

impl FullPassEngine for Noted {
    fn full_pass_part(
        &mut self,
        parts: &mut [FullPassPart],
        from: usize,
        go_on: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<usize>, EngineError> {
        self.engine.full_pass_part(parts, from, go_on)
    }
}

impl HeadEngine for Noted {}

fn query(table: &Table<'_>, row: usize) -> Query {
    let filter = Filter::excluding(vec![Row(row as u32)]);
    Query::new(table, QueryVector::Row(Row(row as u32)), 5, filter).unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_engines_answer_from_one_queue_as_one_does() {
    let (model, passes) = (model(), Arc::<Mutex<Vec<usize>>>::default());
    let maker = |worker: usize| {
        let (model, passes) = (model.clone(), passes.clone());
        move || -> Result<Box<dyn Engine>, String> {
            let engine = FullScanEngine::new(model.clone(), 1).map_err(|e| e.to_string())?;
            Ok(Box::new(Noted { engine, worker, passes: passes.clone() }))
        }
    };
    let limits = Limits { capacity_slots: 10_000, ..LIMITS };
    let (handle, workers) = start(limits, vec![maker(0), maker(1)]).unwrap();
    assert_eq!(workers.descriptions.len(), 2);
    let mut reference = ReferenceEngine::new(model.clone());
    let expected: Vec<Vec<Hit>> = (0..200)
        .map(|row| {
            let query = query(&model.table(), row);
            reference.search(&[&query]).unwrap().remove(0)
        })
        .collect();
    let expected = Arc::new(expected);
    let callers: Vec<_> = (0..8)
        .map(|caller: usize| {
            let (handle, model, expected) = (handle.clone(), model.clone(), expected.clone());
            tokio::spawn(async move {
                let account = Account::new();
                for round in 0..60 {
                    // Batches larger than a pass are divided between both engines.
                    let rows: Vec<usize> =
                        (0..1 + round % 7).map(|i| (caller * 31 + round * 7 + i) % 200).collect();
                    let queries = rows.iter().map(|&row| query(&model.table(), row)).collect();
                    let answer =
                        handle.search.submit(&account, queries, later(), None).await.unwrap();
                    for (row, found) in rows.into_iter().zip(answer.responses) {
                        let SearchResponse::Hits(hits) = found else { panic!("a scan proves all") };
                        assert_eq!(hits, expected[row]);
                    }
                    if round % 20 == 0 {
                        let scoring =
                            Scoring::three_cos_mul(&model.table(), &[Row(1), Row(2)], &[]).unwrap();
                        let full = FullPassQuery::new(scoring, 3, Filter::default(), vec![Row(9)]);
                        let answer =
                            handle.full_pass.submit(&account, vec![full], later(), None).await;
                        assert_eq!(answer.unwrap().responses[0].hits.len(), 3);
                    }
                }
            })
        })
        .collect();
    for caller in callers {
        caller.await.unwrap();
    }
    let by: HashSet<usize> = passes.lock().unwrap().iter().copied().collect();
    assert_eq!(by, HashSet::from([0, 1]), "both engines worked");
    assert_eq!(handle.statistics().searches.slots_taken, 0);
    drop(handle);
    ended(workers).await;
}

/// Callers get in, and their jobs are counted, while a worker holds the lock that workers share:
/// they never take it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn callers_do_not_take_the_lock_of_the_workers() {
    let mut scheduler = Scheduler::<dyn Engine>::new(LIMITS);
    let lane = scheduler.lane(Search { max_batch: 4, costs: Costs::default() });
    let core = scheduler.core(&[ReplicaState::Working; 2]);
    let held = core.dispatch();
    let callers: Vec<_> = (0..10)
        .map(|k| {
            let lane = lane.clone();
            let asks =
                async move { lane.submit(&Account::new(), queries([k + 1]), later(), None).await };
            // From threads of different runtimes: then they write to different shards.
            std::thread::spawn(move || {
                let runtime = runtime::Builder::new_current_thread().enable_all().build().unwrap();
                runtime.block_on(async {
                    tokio::time::timeout(Duration::from_millis(300), asks).await
                })
            })
        })
        .collect();
    let until = later();
    while lane.statistics().slots_taken < 10 {
        assert!(Instant::now() < until, "{:?}", lane.statistics());
        std::thread::sleep(Duration::from_millis(1));
    }
    assert!(core.has_arrived());
    for caller in callers {
        assert!(caller.join().unwrap().is_err(), "nobody answers");
    }
    drop(held);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn while_one_engine_is_made_again_the_other_answers() {
    let (fail, failed) = std_mpsc::channel::<()>();
    let failed = Arc::new(Mutex::new(failed));
    /// Fails in its first pass, and is then made again only when the test says so.
    struct Fails;
    impl Device for Fails {
        fn description(&self) -> EngineDescription {
            EngineDescription { name: "fails", detail: String::new() }
        }
    }

    impl SearchEngine for Fails {
        fn preferred_batch(&self, waiting: usize) -> usize {
            waiting.min(4)
        }

        fn search(&mut self, _: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
            Err(EngineError::Device("as ordered".into()))
        }
    }

    impl FullPassEngine for Fails {}

    impl HeadEngine for Fails {}
    let model = model();
    let maker = |fails: bool| {
        let (failed, model, mut made) = (failed.clone(), model.clone(), 0);
        move || -> Result<Box<dyn Engine>, String> {
            made += 1;
            if fails && made == 1 {
                return Ok(Box::new(Fails));
            }
            if fails {
                // Waits until the test is over.
                let _ = failed.lock().unwrap().recv();
            }
            Ok(Box::new(ReferenceEngine::new(model.clone())))
        }
    };
    let limits = Limits { capacity_slots: 1000, ..LIMITS };
    let (handle, workers) = start(limits, vec![maker(true), maker(false)]).unwrap();
    let account = Account::new();
    for row in 0..300 {
        let asked = vec![query(&model.table(), row % 100)];
        let answer = handle.search.submit(&account, asked, later(), None).await.unwrap();
        assert_eq!(answer.responses.len(), 1);
        assert_eq!(handle.state(), DeviceState::Working);
    }
    drop((handle, fail));
    ended(workers).await;
}
