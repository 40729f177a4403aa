//! Checks whether a model's engine still gives the right answer to a probe.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use kindred::ModelStore;
use kindred::contract::{Filter, Hit, Metric, Query, QueryVector, Row, RowSet};

use super::heads::ServedHead;
use kindred::queue::{DeviceState, QueueHandle, SubmitError};

/// The time for which a right answer counts.
const GOOD_FOR: Duration = Duration::from_secs(1);

/// Why a model does not count as ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum NotReady {
    /// The engine failed in the check's own pass, is being made again, or was lost for good.
    #[error(transparent)]
    Engine(SubmitError),
    /// The answer did not arrive in time.
    #[error("a query took longer than {0} ms")]
    TooSlow(u128),
    /// A file has not the content that it had when it was made.
    #[error("its files are damaged, as the log says: copy them again, then reload the models")]
    Damaged,
    /// The answer is not the one that the contract defines.
    #[error("the engine gave a wrong answer to a probe")]
    WrongAnswer,
}

/// A probe: a query with a known answer, to check whether the engine still gives that answer.
#[derive(Debug)]
pub(crate) struct Readiness {
    /// `None` if every row is zero: then there is no possible query.
    question: Option<(Query, Hit)>,
    timeout: Duration,
    last_good: Mutex<Option<Instant>>,
    /// Files that were found damaged: of the model, or of those that its heads need.
    damaged_files: AtomicU64,
    /// Allows one check at a time. A request that waits for a check uses its result, if it is good.
    checking: tokio::sync::Mutex<()>,
}

impl Readiness {
    /// The query is the first row that has a score, and searches the rows up to it. It must find
    /// itself, with the contract's score.
    pub(super) fn new(model: &ModelStore, timeout: Duration) -> Self {
        let table = model.table();
        let has_score = |row: &Row| table.metric() == Metric::Dot || table.norm(*row) > 0.0;
        let row = (0..table.rows() as u32).map(Row).find(has_score);
        let question = row.and_then(|row| {
            let filter = Filter::of(RowSet::first(row.0 + 1));
            let query = Query::new(&table, QueryVector::Row(row), 1, filter).ok()?;
            let score = table.score(table.row(row), table.norm(row), row)?;
            Some((query, Hit { row, score }))
        });
        Self {
            question,
            timeout,
            last_good: Mutex::new(None),
            damaged_files: AtomicU64::new(0),
            checking: tokio::sync::Mutex::new(()),
        }
    }

    /// Counts a file that was found damaged. The model is not ready from now on.
    pub(super) fn found_damage(&self) {
        self.damaged_files.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of files that were found damaged.
    pub(super) fn damaged_files(&self) -> u64 {
        self.damaged_files.load(Ordering::Relaxed)
    }

    fn is_fresh(&self) -> bool {
        let last = *self.last_good.lock().expect("nothing panics while it holds this lock");
        last.is_some_and(|last| last.elapsed() < GOOD_FOR)
    }

    fn too_slow(&self) -> NotReady {
        NotReady::TooSlow(self.timeout.as_millis())
    }

    /// Checks that nothing was found damaged, and that the engine behind this queue gives the right
    /// answers, now or within the last second: also those of the heads that are in use.
    pub(crate) async fn check(
        &self,
        queue: &QueueHandle,
        heads: &[ServedHead],
    ) -> Result<(), NotReady> {
        if self.damaged_files() > 0 {
            return Err(NotReady::Damaged);
        }
        // If the engine has failed since, the last good answer does not count.
        match queue.engine_state() {
            DeviceState::Working => {}
            DeviceState::Restarting { retry_after } => {
                return Err(NotReady::Engine(SubmitError::EngineRestarting { retry_after }));
            }
            DeviceState::Lost => return Err(NotReady::Engine(SubmitError::EngineGone)),
        }
        if self.is_fresh() {
            return Ok(());
        }
        let Ok(_one_at_a_time) = tokio::time::timeout(self.timeout, self.checking.lock()).await
        else {
            return Err(self.too_slow());
        };
        if self.is_fresh() {
            return Ok(());
        }
        let deadline = Instant::now() + self.timeout;
        let failed = |error| match error {
            SubmitError::Full { .. } | SubmitError::DeadlinePassed => self.too_slow(),
            of_engine => NotReady::Engine(of_engine),
        };
        if let Some((query, expected)) = &self.question {
            let answer = queue.submit_probe(query.clone(), deadline).await.map_err(failed)?;
            if answer.responses != [[*expected]] {
                return Err(NotReady::WrongAnswer);
            }
        }
        for head in heads {
            let Some(probe) = head.probe() else { continue };
            let scores = queue.classify_probe(probe.text(), deadline).await.map_err(failed)?;
            if !probe.is_right(&scores) {
                return Err(NotReady::WrongAnswer);
            }
        }
        *self.last_good.lock().expect("nothing panics while it holds this lock") =
            Some(Instant::now());
        Ok(())
    }
}
