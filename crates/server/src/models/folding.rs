//! Changes of tables are folded into a new base: when an operator asks for it, and when there are
//! many. Questions are answered and changes committed meanwhile.

use std::collections::HashMap;
use std::convert::Infallible;
use std::ops::ControlFlow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use kindred::background::in_background;
use kindred::live::Live;
use kindred::live::changes::ChangeError;
use kindred::rows::Rows as _;
use tokio::sync::oneshot;
use tracing::{info, warn};

use super::create::TableError;
use super::opened::Opened;
use super::reload::Reloader;
use super::{ServedModel, Writer};
use crate::config::ModelSource;

/// Interval of the checks whether tables are to be folded.
const EVERY: Duration = Duration::from_secs(5);
/// Fewer changed rows are not folded because of their number: a search of them costs little.
const MIN_CHANGED_ROWS: usize = 1000;
/// The pause after a fold, as a multiple of its duration. So a table that changes all the time is
/// being folded for at most a fifth of the time.
const REST: u32 = 4;
/// After a fold that failed, the next one is not tried before.
const TRY_AGAIN: Duration = Duration::from_secs(300);

impl Reloader {
    /// Folds the changes of a table into a new base, and serves it once its engine is as fast as
    /// the old one. Returns the rows that live; `None` if nothing was changed since the last fold.
    /// It goes on if the caller hangs up.
    ///
    /// # Errors
    /// If there is no table of this name, it is being folded, the disk is too full or the new base
    /// has no engine. The table answers and takes changes as before.
    pub async fn fold_table(self: &Arc<Self>, name: &str) -> Result<Option<usize>, TableError> {
        let current = self.models().current();
        let Some(served) = current.named(name) else {
            let known = current.models().iter().map(|model| model.name().to_owned()).collect();
            return Err(TableError::NotThere { name: name.to_owned(), known });
        };
        let both = served.live.clone().zip(served.writer.clone());
        let (live, writer) = both.ok_or_else(|| TableError::OfSettings(name.to_owned()))?;
        let (report, reported) = oneshot::channel();
        let (reloader, served) = (self.clone(), served.clone());
        let (runtime, name) = (tokio::runtime::Handle::current(), name.to_owned());
        drop(current);
        let fold = move || {
            let started = Instant::now();
            // Checksums take several cores.
            let folded = in_background(|| live.fold(&mut |_| ControlFlow::Continue(())));
            let folded = match folded {
                Ok(Ok(Some(folded))) => runtime
                    .block_on(reloader.serve_folded(served, folded, writer))
                    .inspect(|rows| {
                        let seconds = started.elapsed().as_secs_f64();
                        info!(model = name, rows, seconds, "folded the changes of a table");
                    })
                    .map(Some),
                Ok(Ok(None)) => Ok(None),
                Ok(Err(why)) => Err(why.into()),
                Err(_) => Err(TableError::Broken),
            };
            let _ = report.send(folded);
        };
        let thread = std::thread::Builder::new().name("kindred-fold".into());
        thread.spawn(fold).map_err(|_| TableError::Broken)?;
        reported.await.unwrap_or(Err(TableError::Broken))
    }

    /// Serves a table over its new base in the place of the old one.
    async fn serve_folded(
        self: &Arc<Self>,
        served: Arc<ServedModel>,
        folded: Live,
        writer: Arc<Writer>,
    ) -> Result<usize, TableError> {
        self.in_turn(move |reloader| {
            let (config, rows) = (&reloader.started, folded.now().live_rows());
            let name = served.name().to_owned();
            let folder = Some(config.models_dir.join(&name));
            let source = ModelSource { name: Some(name.clone()), folder };
            let opened = Opened::folded(folded, writer);
            let started = reloader.loader.start_table(&source, opened, config)?;
            let current = reloader.models.current();
            if current.named(&name).is_none_or(|now| !Arc::ptr_eq(now, &served)) {
                // It was deleted meanwhile.
                return Ok(rows);
            }
            reloader.models.replace(current.with(reloader.loader.watched(started)));
            Ok(rows)
        })
        .await
    }

    /// Folds the changes of each table when the settings say so: when many rows were changed, or
    /// changes are old.
    pub async fn fold_when_due(self: &Arc<Self>) -> Infallible {
        let mut seen: HashMap<String, Seen> = HashMap::new();
        loop {
            tokio::time::sleep(EVERY).await;
            let now = Instant::now();
            for served in self.models().current().models() {
                let Some(live) = served.live.as_ref().filter(|_| served.writer.is_some()) else {
                    continue;
                };
                let state = seen.entry(served.name().to_owned()).or_default();
                let (at, config) = (live.now(), &self.started);
                let rows = Rows { base: live.base().rows(), all: at.count(), live: at.live_rows() };
                let age = Duration::from_secs(config.fold_age_s);
                if !state.is_due(rows, config.fold_changed_ratio, age, now) {
                    continue;
                }
                let began = Instant::now();
                match self.fold_table(served.name()).await {
                    Ok(_) => {
                        let not_before = Instant::now() + REST * began.elapsed();
                        *state = Seen { not_before: Some(not_before), ..Seen::default() };
                    }
                    Err(why) => {
                        warn!(model = served.name(), "the changes were not folded: {why}");
                        state.not_before = Some(now + TRY_AGAIN);
                    }
                }
            }
        }
    }
}

/// The state of a table between two checks.
#[derive(Debug, Default)]
struct Seen {
    /// Since when it has changes.
    changed_since: Option<Instant>,
    /// Rows that lived at the last check.
    live: Option<usize>,
    not_before: Option<Instant>,
}

/// Numbers of a table's rows: of its base, with those behind it, and of these all that live.
#[derive(Debug, Clone, Copy)]
struct Rows {
    base: usize,
    all: usize,
    live: usize,
}

impl Seen {
    /// Whether a table with these rows is to be folded now. It is asked once in [`EVERY`]. The ratio
    /// and the age are those of the settings; neither counts if it is 0.
    fn is_due(&mut self, rows: Rows, ratio: f64, age: Duration, now: Instant) -> bool {
        let Rows { base, all, live } = rows;
        // Those behind the base, and those that are no longer there.
        let changed = (all - base) + (all - live);
        let before = self.live.replace(live).unwrap_or(base);
        if changed == 0 {
            self.changed_since = None;
            return false;
        }
        let since = *self.changed_since.get_or_insert(now);
        let many = ratio * live.max(base) as f64;
        // A table that is being filled would be due again before its fold is over. It can't grow like
        // that for long; one whose rows are only replaced may go on for ever.
        let is_filled = live.saturating_sub(before) as f64 >= many;
        let is_much =
            ratio > 0.0 && changed >= MIN_CHANGED_ROWS && changed as f64 >= many && !is_filled;
        let is_old = !age.is_zero() && now.duration_since(since) >= age;
        (is_much || is_old) && self.not_before.is_none_or(|until| now >= until)
    }
}

impl From<ChangeError> for TableError {
    fn from(why: ChangeError) -> Self {
        match why {
            ChangeError::Folding { .. } => Self::Folding,
            ChangeError::NoSpaceToFold { needed, free, .. } => Self::NoSpaceToFold { needed, free },
            why => Self::Load(why.into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whether a fold is due, with the ratio 0.1, at each of some checks. The base has 100,000 rows;
    /// each check has a number of rows behind it.
    fn due(behind: &[usize]) -> Vec<bool> {
        let (mut seen, mut now) = (Seen::default(), Instant::now());
        let check = |&behind: &usize| {
            now += EVERY;
            let all = 100_000 + behind;
            seen.is_due(Rows { base: 100_000, all, live: all }, 0.1, Duration::ZERO, now)
        };
        behind.iter().map(check).collect()
    }

    #[test]
    fn many_changes_are_folded_at_once_and_a_table_that_is_filled_when_that_slows_down() {
        assert_eq!(due(&[0, 4_000, 9_000, 13_000]), [false, false, false, true]);
        assert_eq!(due(&[50_000, 90_000, 130_000, 131_000]), [false, false, false, true]);
        assert_eq!(due(&[200_000, 200_000]), [false, true]);
        // A tenth of the rows is replaced between two checks, for ever.
        let (mut seen, now) = (Seen::default(), Instant::now());
        let replaced = |n: usize| Rows { base: 100_000, all: 100_000 + n, live: 100_000 };
        let mut due = |n| seen.is_due(replaced(n), 0.1, Duration::ZERO, now);
        assert!(!due(4_000) && due(14_000) && due(24_000) && due(34_000));
    }

    #[test]
    fn few_changes_are_folded_when_they_are_old_and_none_before_the_last_fold_has_rested() {
        let (age, began) = (Duration::from_secs(60), Instant::now());
        let rows = Rows { base: 500, all: 510, live: 505 };
        let at = |seconds| began + Duration::from_secs(seconds);
        let mut seen = Seen::default();
        assert!(!seen.is_due(rows, 0.001, age, at(0)), "fewer than 1,000 rows");
        assert!(!seen.is_due(rows, 0.001, age, at(59)));
        assert!(seen.is_due(rows, 0.0, age, at(60)));
        seen.not_before = Some(at(100));
        assert!(!seen.is_due(rows, 0.0, age, at(99)) && seen.is_due(rows, 0.0, age, at(100)));
        let unchanged = Rows { base: 510, all: 510, live: 510 };
        assert!(!seen.is_due(unchanged, 0.001, age, at(1000)));
        assert!(!seen.is_due(rows, 0.0, age, at(1001)), "its changes are new");
    }
}
