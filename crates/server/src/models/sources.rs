//! What followers tell of the systems that a table follows: how far they have applied what is
//! there, and how far behind that is.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use kindred::live::changes::{SourcePosition, Sources};
use tokio::sync::watch;

/// The state of one source, as its follower tells it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Report {
    /// Everything up to here was applied: changes of other tables leave no batch.
    pub(crate) reached: SourcePosition,
    /// Bytes, or messages, of the source that were not applied then.
    pub(crate) behind: u64,
    /// Time by which the rows were behind the source then.
    pub(crate) behind_by: Duration,
    /// Bytes that the source keeps for this follower.
    pub(crate) retained: u64,
    /// When it was told.
    pub(crate) at: Instant,
}

impl Report {
    /// The position that it tells, if that is later than the stored one.
    pub(crate) fn ahead_of(&self, stored: Option<SourcePosition>) -> Option<SourcePosition> {
        let is_ahead = stored.is_none_or(|stored| self.reached.number > stored.number);
        is_ahead.then_some(self.reached)
    }

    /// Time by which the rows may be behind the source now: a follower that tells nothing more may
    /// have stopped.
    pub(crate) fn behind_now(&self) -> Duration {
        self.behind_by + self.at.elapsed()
    }
}

/// The last report of each source of a table.
#[derive(Debug)]
pub(crate) struct SourceReports {
    reports: Mutex<BTreeMap<Box<str>, Report>>,
    /// Counts what was told.
    told: watch::Sender<u64>,
}

impl Default for SourceReports {
    fn default() -> Self {
        Self { reports: Mutex::default(), told: watch::channel(0).0 }
    }
}

impl SourceReports {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<Box<str>, Report>> {
        // Only complete values are ever there.
        self.reports.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the report of a source in the place of the one before.
    pub(crate) fn put(&self, name: &str, report: Report) {
        self.lock().insert(name.into(), report);
        self.told.send_modify(|told| *told += 1);
    }

    /// Drops the reports of sources that are forgotten: one of the same name begins anew.
    pub(crate) fn forget<'a>(&self, names: impl Iterator<Item = &'a str>) {
        let mut reports = self.lock();
        for name in names {
            reports.remove(name);
        }
    }

    /// The last report of a source.
    pub(crate) fn of(&self, name: &str) -> Option<Report> {
        self.lock().get(name).copied()
    }

    /// Changes with each report.
    pub(crate) fn told(&self) -> watch::Receiver<u64> {
        self.told.subscribe()
    }

    /// The position up to which everything of a source was applied to rows that have stored
    /// `stored`: that one, or a later one of the last report.
    pub(crate) fn reached(&self, stored: &Sources, name: &str) -> Option<SourcePosition> {
        let stored = stored.get(name);
        self.of(name).and_then(|report| report.ahead_of(stored)).or(stored)
    }

    /// Whether everything up to these positions was applied to rows that have stored `stored`.
    pub(crate) fn have_reached(&self, stored: &Sources, wanted: &Sources) -> bool {
        wanted.iter().all(|(name, wanted)| {
            self.reached(stored, name).map_or(0, |position| position.number) >= wanted.number
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_position_is_reached_by_a_batch_or_by_a_report() {
        let reports = SourceReports::default();
        let stored: Sources = "postgres:0/10,kafka/0:5".parse().unwrap();
        let reached = |text: &str| reports.have_reached(&stored, &text.parse().unwrap());
        assert!(reached("postgres:0/10") && reached("kafka/0:5,postgres:0/1"));
        assert!(!reached("postgres:0/11") && !reached("kafka/0:5,postgres:0/11"));
        assert!(!reached("other:1") && reached("other:0"));
        let mut told = reports.told();
        let (behind, behind_by, at) = (7, Duration::from_secs(2), Instant::now());
        let retained = 0;
        let report = Report { reached: "0/20".parse().unwrap(), behind, behind_by, retained, at };
        reports.put("postgres", report);
        assert!(told.has_changed().unwrap());
        told.mark_unchanged();
        assert!(reached("postgres:0/20") && !reached("postgres:0/21"));
        assert!((2..3).contains(&reports.of("postgres").unwrap().behind_now().as_secs()));
        assert!(reports.of("kafka/0").is_none());
        reports.forget(["postgres", "other"].into_iter());
        assert!(reports.of("postgres").is_none() && !reached("postgres:0/20"));
    }
}
