//! From a finished pass back to its callers.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::Workload;

use crate::error::SubmitError;
use crate::job::{Answered, Ticket, tell};
use crate::statistics::Statistics;
use crate::sync::Home;

/// A job that is answered.
pub(crate) struct Done<W: Workload> {
    pub(crate) ticket: Ticket<W::Response>,
    pub(crate) deadline: Instant,
    /// Its requests in its last pass.
    pub(crate) requests: std::vec::IntoIter<W::Request>,
    /// How many of the pass's responses belong to it.
    pub(crate) number: usize,
    /// All of its responses, if several passes gave them.
    pub(crate) answered: Option<Answered<W::Response>>,
}

/// The jobs that a pass finished, and its responses in their order.
pub(crate) struct Finished<W: Workload> {
    pub(crate) jobs: Vec<Done<W>>,
    pub(crate) responses: Vec<W::Response>,
    pub(crate) started: Instant,
    pub(crate) took: Duration,
}

/// The answers of a pass, whatever its workload is.
pub(crate) trait HandOut: Send {
    /// Starts sending the answers. That costs about as much as all other host work for the requests, so it happens on
    /// the callers' runtimes: one task for each runtime, which wakes each thread once and not once for each caller.
    fn hand_out(self: Box<Self>, statistics: &Arc<Statistics>);
}

/// What a pass finished for the callers on one runtime.
struct OfHome<W: Workload> {
    home: Home,
    jobs: Vec<Done<W>>,
    responses: Vec<W::Response>,
}

impl<W: Workload> HandOut for Finished<W> {
    fn hand_out(self: Box<Self>, statistics: &Arc<Statistics>) {
        let Self { jobs, responses, started, took } = *self;
        let mut homes: Vec<OfHome<W>> = Vec::new();
        let mut responses = responses.into_iter();
        for job in jobs {
            let index = homes.iter().position(|other| other.home.is_same(&job.ticket.home));
            let index = index.unwrap_or_else(|| {
                let home = job.ticket.home.clone();
                homes.push(OfHome { home, jobs: Vec::new(), responses: Vec::new() });
                homes.len() - 1
            });
            homes[index].responses.extend(responses.by_ref().take(job.number));
            homes[index].jobs.push(job);
        }
        for OfHome { home, jobs, responses } in homes {
            let statistics = statistics.clone();
            home.run(move || {
                let (mut responses, now) = (responses.into_iter(), Instant::now());
                for job in jobs {
                    job.answer(&mut responses, started, took, now, &statistics);
                }
            });
        }
    }
}

impl<W: Workload> Done<W> {
    /// Sends the answer, unless the deadline has passed by now.
    fn answer(
        self,
        responses: &mut impl Iterator<Item = W::Response>,
        started: Instant,
        took: Duration,
        now: Instant,
        statistics: &Statistics,
    ) {
        let Self { ticket, deadline, requests, number, answered } = self;
        let Ticket { reply, entered, slots, .. } = ticket;
        let answered = answered.unwrap_or_else(|| {
            let mut own = Vec::with_capacity(number);
            own.extend(responses.take(number));
            let queued = started.saturating_duration_since(entered);
            Answered { responses: own, queued, device: took }
        });
        // Freed first, so that the caller's next request can use them.
        drop(slots);
        let result = if now < deadline { Ok(answered) } else { Err(SubmitError::DeadlinePassed) };
        tell(reply, result, statistics);
        // Last: they may be large, and nobody waits for this.
        drop(requests);
    }
}
