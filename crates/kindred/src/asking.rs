//! Checked queries through the queue.

use std::sync::Arc;
use std::time::{Duration, Instant};

use contract::workload::TermsOfText;
use contract::{Expansion, FullPassAnswer, FullPassQuery, Hit, Query, Term, TokenText};
use scheduler::account::Account;

use crate::queue::{Answered, QueueHandle, SubmitError, Timeline, split};

/// What a query needs to be asked: a queue, an account and a deadline.
#[derive(Clone, Copy)]
pub struct Asking<'a> {
    queue: &'a QueueHandle,
    account: &'a Arc<Account>,
    /// An answer is of no use after it.
    pub(crate) deadline: Instant,
    timeline: Option<&'a Arc<Timeline>>,
}

/// Where the time of a question went.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Times {
    /// In the queue, before the first pass.
    pub queue: Duration,
    /// In passes of the engine.
    pub engine: Duration,
}

impl<'a> Asking<'a> {
    /// Asks through this queue, on this account. Notes in the timeline, if there is one, when jobs
    /// enter the queue, and their passes.
    #[inline]
    pub fn new(
        queue: &'a QueueHandle,
        account: &'a Arc<Account>,
        deadline: Instant,
        timeline: Option<&'a Arc<Timeline>>,
    ) -> Self {
        Self { queue, account, deadline, timeline }
    }

    /// The neighbours of each query, best first. Dropping the future abandons them: queries that
    /// have not been searched by then never will be.
    ///
    /// # Errors
    /// Immediately if the deadline has passed, the queue is full or there is no working engine;
    /// later if the deadline passes or the engine fails.
    #[inline]
    pub async fn search(self, queries: Vec<Query>) -> Result<Answered<Vec<Hit>>, SubmitError> {
        let Self { queue, account, deadline, timeline } = self;
        let answered = queue.search.submit(account, queries, deadline, timeline).await?;
        let (mut answer, unproven) = split(answered);
        if !unproven.is_empty() {
            // Boxed, because it is rare and must not make the future of every request larger.
            Box::pin(self.prove(unproven, &mut answer)).await?;
        }
        Ok(answer)
    }

    /// Answers by full passes the queries that a search could not prove.
    async fn prove(
        self,
        unproven: Vec<(usize, Query)>,
        answer: &mut Answered<Vec<Hit>>,
    ) -> Result<(), SubmitError> {
        let queries = unproven.iter().map(|(_, query)| FullPassQuery::of_search(query)).collect();
        let proved = self.full_pass(queries).await?;
        for ((index, _), proved) in unproven.into_iter().zip(proved.responses) {
            answer.responses[index] = proved.hits;
        }
        answer.queued += proved.queued;
        answer.device += proved.device;
        Ok(())
    }

    /// The answer to each query that takes a full pass, in order. They wait in a lane of their own,
    /// as texts do.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    #[inline]
    pub async fn full_pass(
        self,
        queries: Vec<FullPassQuery>,
    ) -> Result<Answered<FullPassAnswer>, SubmitError> {
        let Self { queue, account, deadline, timeline } = self;
        queue.full_pass.submit(account, queries, deadline, timeline).await
    }

    /// The class scores of each text, in order.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    #[inline]
    pub async fn classify(self, texts: Vec<TokenText>) -> Result<Answered<Vec<f64>>, SubmitError> {
        let Self { queue, account, deadline, timeline } = self;
        queue.classify.submit(account, texts, deadline, timeline).await
    }

    /// The terms of each text, in order, best first.
    ///
    /// # Errors
    /// As [`search`](Self::search).
    #[inline]
    pub async fn expand(self, texts: Vec<Expansion>) -> Result<Answered<Vec<Term>>, SubmitError> {
        let Self { queue, account, deadline, timeline } = self;
        let (parts, terms) = queue.expand.workload().parts(texts);
        let Answered { queued, device, .. } =
            queue.expand.submit(account, parts, deadline, timeline).await?;
        let responses = terms.into_iter().map(TermsOfText::take).collect();
        Ok(Answered { responses, queued, device })
    }

    /// Both kinds of queries. The searches come first: together they could need more slots than one
    /// caller may take.
    pub(crate) async fn both(
        self,
        searches: Vec<Query>,
        full_passes: Vec<FullPassQuery>,
    ) -> Result<(Vec<Vec<Hit>>, Vec<FullPassAnswer>, Times), SubmitError> {
        let searched = self.search(searches).await?;
        let passed = self.full_pass(full_passes).await?;
        let times = Times {
            queue: searched.queued + passed.queued,
            engine: searched.device + passed.device,
        };
        Ok((searched.responses, passed.responses, times))
    }
}
