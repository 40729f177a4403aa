//! From a finished pass back to its callers.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::Workload;

use crate::choose::Waiting;
use crate::error::SubmitError;
use crate::job::{Answered, Asker, Ticket, tell};
use crate::statistics::Statistics;
use crate::sync::Home;

/// What a pass finished.
pub(crate) struct Finished<W: Workload> {
    /// The jobs that it answered alone.
    pub(crate) whole: VecDeque<Waiting<W>>,
    /// Their responses, in their order.
    pub(crate) responses: Vec<W::Response>,
    /// The jobs of several passes of which it was the last.
    pub(crate) split: Vec<AnsweredJob<W>>,
    pub(crate) started: Instant,
    pub(crate) took: Duration,
}

/// A job of several passes that is answered.
pub(crate) struct AnsweredJob<W: Workload> {
    pub(crate) ticket: Ticket<W::Response>,
    pub(crate) deadline: Instant,
    pub(crate) answered: Answered<W::Response>,
}

/// The answers of a pass, whatever its workload is.
pub(crate) trait HandOut: Send {
    /// Starts sending the answers. That costs about as much as all other host work for the
    /// requests, so it happens on the callers' runtimes: one task for each runtime, which wakes
    /// each thread once and not once for each caller.
    fn hand_out(self: Box<Self>, statistics: &Arc<Statistics>);
}

/// What a pass finished for the callers on one runtime.
struct OfHome<W: Workload> {
    home: Home,
    whole: Vec<Waiting<W>>,
    responses: Vec<W::Response>,
    split: Vec<AnsweredJob<W>>,
}

/// The callers on this runtime.
fn of_home<'a, W: Workload>(homes: &'a mut Vec<OfHome<W>>, home: &Home) -> &'a mut OfHome<W> {
    let index = homes.iter().position(|other| other.home.is_same(home)).unwrap_or_else(|| {
        let (whole, responses, split) = (Vec::new(), Vec::new(), Vec::new());
        homes.push(OfHome { home: home.clone(), whole, responses, split });
        homes.len() - 1
    });
    &mut homes[index]
}

impl<W: Workload> HandOut for Finished<W> {
    fn hand_out(self: Box<Self>, statistics: &Arc<Statistics>) {
        let Self { whole, responses, split, started, took } = *self;
        let mut homes: Vec<OfHome<W>> = Vec::new();
        let mut responses = responses.into_iter();
        for job in whole {
            let Asker::Whole(ticket) = &job.asker else { continue };
            let home = of_home(&mut homes, &ticket.home);
            home.responses.extend(responses.by_ref().take(job.requests.len()));
            home.whole.push(job);
        }
        for done in split {
            of_home(&mut homes, &done.ticket.home).split.push(done);
        }
        for OfHome { home, whole, responses, split } in homes {
            let statistics = statistics.clone();
            home.run(move || {
                let (mut responses, now) = (responses.into_iter(), Instant::now());
                for job in whole {
                    let Waiting { requests, deadline, asker, .. } = job;
                    let Asker::Whole(ticket) = asker else { continue };
                    let mut own = Vec::with_capacity(requests.len());
                    own.extend(responses.by_ref().take(requests.len()));
                    let queued = started.saturating_duration_since(ticket.entered);
                    let answered = Answered { responses: own, queued, device: took };
                    AnsweredJob::<W> { ticket, deadline, answered }.answer(now, &statistics);
                    // The requests may be large. Their callers have their answers, so dropping them
                    // delays no one.
                    drop(requests);
                }
                split.into_iter().for_each(|done| done.answer(now, &statistics));
            });
        }
    }
}

impl<W: Workload> AnsweredJob<W> {
    /// Sends the answer, unless the deadline has passed by now.
    fn answer(self, now: Instant, statistics: &Statistics) {
        let Self { ticket, deadline, answered } = self;
        // Freed first, so that the caller's next request can use them.
        drop(ticket.slots);
        let result = if now < deadline { Ok(answered) } else { Err(SubmitError::DeadlinePassed) };
        tell(ticket.reply, result, statistics);
    }
}
