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
use crate::config::{Config, ModelSource};

/// Interval of the checks whether tables are to be folded.
const EVERY: Duration = Duration::from_secs(5);
/// Fewer changed rows are not folded because of their number: a search of them costs little.
const MIN_CHANGED_ROWS: usize = 1000;
/// After a fold, the next one does not begin before so many times as long as it took: a table that is
/// filled faster than it is folded spends a fifth of the time on that.
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
                if !state.is_due(live, &self.started, now) {
                    continue;
                }
                let began = Instant::now();
                match self.fold_table(served.name()).await {
                    Ok(_) => {
                        let not_before = Instant::now() + REST * began.elapsed();
                        *state = Seen { changed_since: None, not_before: Some(not_before) };
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
    not_before: Option<Instant>,
}

impl Seen {
    fn is_due(&mut self, live: &Live, config: &Config, now: Instant) -> bool {
        let at = live.now();
        let (base, all, rows) = (live.base().rows(), at.count(), at.live_rows());
        // Those behind the base, and those that are no longer there.
        let changed = (all - base) + (all - rows);
        if changed == 0 {
            self.changed_since = None;
            return false;
        }
        let since = *self.changed_since.get_or_insert(now);
        let (ratio, age) = (config.fold_changed_ratio, Duration::from_secs(config.fold_age_s));
        let is_much = ratio > 0.0
            && changed >= MIN_CHANGED_ROWS
            && changed as f64 >= ratio * rows.max(base) as f64;
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
