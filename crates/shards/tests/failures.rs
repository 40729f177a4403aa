//! Engines that fail or panic, as makers or at work, on any shard: the caller gets an error or the
//! panic, and nothing hangs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contract::{
    Device, Engine, EngineDescription, EngineError, Filter, FullPassEngine, HasTable, HeadEngine,
    Hit, Query, QueryVector, Row, SearchEngine,
};
use cpu_core::ReferenceEngine;
use model_store::ModelStore;
use shards::{Shards, StartError, split_evenly};

use crate::support::model;

/// Alive engines.
#[derive(Clone, Default)]
struct Alive(Arc<AtomicUsize>);

impl Alive {
    fn count(&self) -> usize {
        self.0.load(Ordering::SeqCst)
    }
}

#[derive(Clone, Copy, PartialEq)]
enum How {
    Error,
    Panic,
}

/// Fails in its n-th search.
struct Failing {
    inner: ReferenceEngine,
    searches: usize,
    fails: Option<(usize, How)>,
    alive: Alive,
}

impl Drop for Failing {
    fn drop(&mut self) {
        self.alive.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Device for Failing {
    fn description(&self) -> EngineDescription {
        self.inner.description()
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        vec![("searches", self.searches as u64)]
    }
}

impl SearchEngine for Failing {
    fn preferred_batch(&self, waiting: usize) -> usize {
        waiting
    }

    fn search(&mut self, batch: &[&Query]) -> Result<Vec<Vec<Hit>>, EngineError> {
        self.searches += 1;
        match self.fails {
            Some((n, How::Error)) if n == self.searches => {
                Err(EngineError::Device("as it was told".into()))
            }
            Some((n, How::Panic)) if n == self.searches => panic!("as it was told"),
            _ => self.inner.search(batch),
        }
    }
}

impl FullPassEngine for Failing {}

impl HeadEngine for Failing {}

fn small() -> Arc<ModelStore> {
    Arc::new(model(2, &(0..40).map(|row| vec![1.0, row as f32]).collect::<Vec<_>>()))
}

#[test]
fn an_engine_that_fails_fails_the_pass_and_all_engines_end_with_the_shards() {
    let own = small();
    let query = Query::new(&own.table(), QueryVector::Row(Row(39)), 3, Filter::default()).unwrap();
    let expected = ReferenceEngine::new(own.clone()).search(&[&query]);
    for which in 0..3 {
        for how in [How::Error, How::Panic] {
            let alive = Alive::default();
            let for_engines = alive.clone();
            let make = move |index, table: Arc<dyn HasTable>| -> Result<Box<dyn Engine>, String> {
                for_engines.0.fetch_add(1, Ordering::SeqCst);
                let fails = (index == which).then_some((3, how));
                let (inner, alive) = (ReferenceEngine::new(table), for_engines.clone());
                Ok(Box::new(Failing { inner, searches: 0, fails, alive }))
            };
            let mut shards = Shards::new(own.clone(), split_evenly(40, 3), make).unwrap();
            assert_eq!(alive.count(), 3);
            let batch: Vec<&Query> = [&query].into_iter().collect();
            for _ in 0..2 {
                assert_eq!(shards.search(&batch), expected);
            }
            let failed = catch_unwind(AssertUnwindSafe(|| shards.search(&batch)));
            match how {
                How::Error => {
                    let error = failed.unwrap().unwrap_err();
                    assert_eq!(error, EngineError::Device("as it was told".into()));
                }
                How::Panic => {
                    assert_eq!(failed.unwrap_err().downcast_ref::<&str>(), Some(&"as it was told"));
                }
            }
            assert_eq!(shards.counters(), [("searches", 9)], "the others have finished theirs");
            drop(shards);
            assert_eq!(alive.count(), 0);
        }
    }
}

#[test]
fn an_engine_that_is_not_made_is_an_error_and_the_others_are_dropped() {
    for which in 0..3 {
        for panics in [false, true] {
            let alive = Alive::default();
            let for_engines = alive.clone();
            let make = move |index, table: Arc<dyn HasTable>| -> Result<Box<dyn Engine>, String> {
                if index == which {
                    assert!(!panics, "no such device");
                    return Err("no such device".to_owned());
                }
                for_engines.0.fetch_add(1, Ordering::SeqCst);
                let (inner, alive) = (ReferenceEngine::new(table), for_engines.clone());
                Ok(Box::new(Failing { inner, searches: 0, fails: None, alive }))
            };
            let Err(error) = Shards::new(small(), split_evenly(40, 3), make) else {
                panic!("it is not made");
            };
            assert!(error.to_string().contains("no such device"), "{error}");
            assert_eq!(matches!(error, StartError::Broken(_)), panics);
            assert_eq!(alive.count(), 0);
        }
    }
}

#[test]
fn idle_threads_sleep() {
    let make =
        |_, table| -> Result<Box<dyn Engine>, String> { Ok(Box::new(ReferenceEngine::new(table))) };
    let own = small();
    let mut shards = Shards::new(own.clone(), split_evenly(40, 4), make).unwrap();
    let query = Query::new(&own.table(), QueryVector::Row(Row(1)), 3, Filter::default()).unwrap();
    let batch: Vec<&Query> = [&query].into_iter().collect();
    // Long enough that all of them sleep, and once so short that none does.
    for pause in [0, 0, 20, 0, 5] {
        std::thread::sleep(std::time::Duration::from_millis(pause));
        assert_eq!(shards.search(&batch).unwrap()[0].len(), 3);
    }
    #[cfg(target_os = "linux")]
    {
        std::thread::sleep(std::time::Duration::from_millis(20));
        let states: Vec<String> = std::fs::read_dir("/proc/self/task")
            .unwrap()
            .filter_map(|task| std::fs::read_to_string(task.unwrap().path().join("stat")).ok())
            .filter(|stat| stat.contains("(kindred-shard)"))
            .map(|stat| stat.rsplit(')').next().unwrap().trim().chars().take(1).collect())
            .collect();
        assert!(states.len() >= 3, "{states:?}");
        // Other tests of this program may have shards at work.
        assert!(states.iter().filter(|state| *state == "S").count() >= 3, "{states:?}");
    }
}
