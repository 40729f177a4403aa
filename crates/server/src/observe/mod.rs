//! The service's doings, for its operators: figures for Prometheus and lines in the access log.
//!
//! A request costs a few plain additions: each HTTP thread counts for itself (`thread_figures`),
//! and the sums are made when the metrics are read (`exposition`). The queue and the engine count
//! for themselves as well ([`EngineFigures`]). `docs/operating.md` lists the metrics.

mod access_log;
mod counter;
mod engine_figures;
mod exposition;
mod families;
mod family;
mod labels;
mod process;
mod reloads;
mod request;
mod thread_figures;

use std::cell::RefCell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::thread::ThreadId;

pub use access_log::AccessLog;
pub(crate) use access_log::LoggedRequest;
pub use counter::Histogram;
pub use engine_figures::{EngineFigures, SourceFigures};
pub use families::Known;
pub(crate) use labels::MAX_ROUTES;
pub use reloads::{ReloadFigures, Reloadable};
pub(crate) use request::Connection;
pub(crate) use thread_figures::Stages;

use thread_figures::ThreadFigures;

/// Counts the connections and requests of a service. Its queues and engines count for themselves.
#[derive(Debug, Default)]
pub struct Observer {
    access_log: AccessLog,
    /// The labels of the routes, by index.
    routes: &'static [&'static str],
    threads: Mutex<Vec<(ThreadId, Arc<ThreadFigures>)>>,
    connections_opened: AtomicU64,
    connections_closed: AtomicU64,
    reloads: Arc<ReloadFigures>,
}

impl Observer {
    /// Counts requests by route, and logs them as `access_log` says. `routes` contains the routes'
    /// labels, and `reloads` the figures of those who reload.
    ///
    /// # Panics
    /// If there are more than `MAX_ROUTES` routes.
    pub fn new(
        access_log: AccessLog,
        routes: &'static [&'static str],
        reloads: Arc<ReloadFigures>,
    ) -> Arc<Self> {
        assert!(routes.len() <= MAX_ROUTES, "{} routes", routes.len());
        Arc::new(Self { access_log, routes, reloads, ..Self::default() })
    }

    /// The figures of reloads.
    pub(crate) fn reloads(&self) -> &ReloadFigures {
        &self.reloads
    }

    fn threads(&self) -> MutexGuard<'_, Vec<(ThreadId, Arc<ThreadFigures>)>> {
        self.threads.lock().expect("nothing panics while it holds this lock")
    }

    /// The figures of the calling thread, which no other thread writes.
    fn thread_figures(&self) -> Arc<ThreadFigures> {
        let this = std::thread::current().id();
        let mut threads = self.threads();
        let known = threads.iter().find(|(id, _)| *id == this);
        known.map(|(_, figures)| figures.clone()).unwrap_or_else(|| {
            let figures = Arc::<ThreadFigures>::default();
            threads.push((this, figures.clone()));
            figures
        })
    }

    /// Counts a stage of a request outside the engine, with its estimated nanoseconds of one core.
    /// It counts for the calling thread, whichever thread does the work.
    pub(crate) fn count_stage(self: &Arc<Self>, nanoseconds: u64) {
        type OfThread = (Weak<Observer>, Arc<ThreadFigures>);
        thread_local! {
            /// This thread's figures, and their observer. Kept so that counting a stage takes no
            /// lock.
            static LAST: RefCell<Option<OfThread>> = const { RefCell::new(None) };
        }
        LAST.with_borrow_mut(|last| {
            let (_, figures) = match last {
                Some(known) if std::ptr::eq(known.0.as_ptr(), Arc::as_ptr(self)) => known,
                _ => last.insert((Arc::downgrade(self), self.thread_figures())),
            };
            figures.stage_nanoseconds.add(nanoseconds);
        });
    }

    fn connections_open(&self) -> u64 {
        // In this order, because connections that close meanwhile must not make the result
        // negative.
        let closed = self.connections_closed.load(Ordering::Acquire);
        self.connections_opened.load(Ordering::Acquire).saturating_sub(closed)
    }
}
