//! What one caller at a time does for a group: gives positions, writes, and shows.

use std::sync::{Arc, Weak};
use std::time::{SystemTime, UNIX_EPOCH};

use model_store::ModelStore;

use super::batch::Payload;
use super::error::ChangeError;
use super::fields::Aligned;
use super::fold::Onto;
use super::generation::Generation;
use super::record::HEADER_BYTES;
use super::requests::{Answer, Requests};
use super::schema::Schema;
use super::sources::{MAX_SOURCES, Sources};
use super::state::{Counts, Prepared, State};
use super::storage::Storage;
use super::writer::Writer;

/// When a batch counts as committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// When it is on disk.
    #[default]
    Synced,
    /// When it was handed to the system: it survives the end of the process, but not of the
    /// machine.
    None,
}

/// A batch that was committed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Committed {
    /// The batch's position: snapshots from here on have it.
    pub position: u64,
    /// What it did.
    pub counts: Counts,
    /// Whether it is on disk.
    pub is_durable: bool,
    /// Whether it had been committed before, by a request with the same idempotency key.
    pub is_repeated: bool,
}

/// A batch that waits for its turn.
pub(crate) struct Job {
    pub(crate) record: Aligned,
    pub(crate) payload_crc: u32,
    pub(crate) prepared: Option<Prepared>,
    pub(crate) upserts: usize,
    pub(crate) durability: Durability,
    pub(crate) request: Option<RequestOf>,
    pub(crate) sources: Sources,
    /// The position that the table must have.
    pub(crate) only_at: Option<u64>,
}

/// The idempotency key of a batch, and a hash of its changes.
pub(crate) struct RequestOf {
    pub(crate) key: Box<str>,
    pub(crate) at: u64,
    pub(crate) content: [u8; 16],
}

type Outcome = Result<Committed, ChangeError>;

/// The rows, and the one that writes.
pub(crate) struct Core {
    pub(crate) schema: Schema,
    pub(crate) state: State,
    pub(crate) current: Arc<Generation>,
    /// The rows in terms of bases before, for those who hold them.
    pub(crate) earlier: Vec<(State, Weak<Generation>)>,
    pub(crate) requests: Requests,
    /// `None` if it was opened to be read.
    pub(crate) writer: Option<Writer>,
}

/// What becomes of a job in its group.
enum Plan {
    Write,
    Told(Outcome),
    /// It repeats the job at this place.
    As(usize),
}

impl Core {
    /// Commits the batches of a group: one write, and one sync if any is to be durable. The
    /// outcomes are in the order of the jobs.
    pub(crate) fn run(&mut self, jobs: &mut [Job], storage: &dyn Storage) -> Vec<Outcome> {
        let plans = self.plan(jobs, storage);
        let is_durable = jobs.iter().any(|job| job.durability == Durability::Synced);
        let mut written = Vec::new();
        for (job, plan) in jobs.iter_mut().zip(&plans) {
            if matches!(plan, Plan::Write) {
                written.push((&mut job.record, job.payload_crc));
            }
        }
        let first = match &mut self.writer {
            Some(writer) if !written.is_empty() => writer.write(&mut written, is_durable),
            // A batch that was not synced at first may be asked for again, to be durable.
            Some(writer) if is_durable && writer.has_unsynced() => writer.sync().map(|()| 0),
            _ => Ok(0),
        };
        let is_durable = self.writer.as_ref().is_some_and(|writer| !writer.has_unsynced());
        let mut position = first.clone().unwrap_or(0);
        let mut outcomes: Vec<Outcome> = Vec::with_capacity(jobs.len());
        for (job, plan) in jobs.iter_mut().zip(plans) {
            let is_enough = is_durable || job.durability == Durability::None;
            let outcome = match (plan, &first) {
                (Plan::Told(told), Ok(_)) => told.map(|told| Committed { is_durable, ..told }),
                (Plan::Told(Ok(told)), _) if is_enough => Ok(Committed { is_durable, ..told }),
                (Plan::Told(Err(error)), _) => Err(error),
                (Plan::As(other), _) => {
                    let again = |other| Committed { is_repeated: true, ..other };
                    outcomes[other].clone().map(again)
                }
                (_, Err(error)) => Err(error.clone()),
                (Plan::Write, Ok(_)) => {
                    let counts = self.show(job, position);
                    let is_repeated = false;
                    let committed = Committed { position, counts, is_durable, is_repeated };
                    position += 1;
                    Ok(committed)
                }
            };
            outcomes.push(outcome);
        }
        outcomes
    }

    /// Shows readers what was committed.
    pub(crate) fn publish(&mut self) {
        self.current.publish(self.state.snapshot());
        self.earlier.retain(|(state, generation)| {
            let generation = generation.upgrade();
            generation.inspect(|one| one.publish(state.snapshot())).is_some()
        });
    }

    /// From now on the base of a fold is the current one.
    pub(crate) fn swap(&mut self, base: Arc<ModelStore>, mut onto: Onto) -> Arc<Generation> {
        onto.advance(&self.state.snapshot());
        let new = Generation::new(base, onto.state.snapshot());
        let earlier = std::mem::replace(&mut self.current, Arc::clone(&new));
        let state = std::mem::replace(&mut self.state, onto.state);
        self.earlier.push((state, Arc::downgrade(&earlier)));
        new
    }

    /// Syncs what is written, and closes the log.
    pub(crate) fn close(&mut self) -> Result<(), ChangeError> {
        self.writer.as_mut().map_or(Ok(()), Writer::close)
    }

    fn plan(&self, jobs: &[Job], storage: &dyn Storage) -> Vec<Plan> {
        let (mut rows, mut sources) = (0, Arc::clone(self.state.sources()));
        let mut is_first = true;
        let mut plans = Vec::with_capacity(jobs.len());
        for (index, job) in jobs.iter().enumerate() {
            let at = self.writer.as_ref().map(Writer::position);
            let elsewhere = job.only_at.filter(|only_at| !is_first || at != Some(*only_at));
            let plan = match self.repeated(&jobs[..index], job) {
                _ if self.writer.is_none() => {
                    Plan::Told(Err(ChangeError::OpenedToRead { path: storage.path("") }))
                }
                Some(plan) => plan,
                None if elsewhere.is_some() => {
                    let wanted = elsewhere.unwrap_or_default();
                    Plan::Told(Err(ChangeError::OtherPosition { wanted }))
                }
                None if sources.len_with(&job.sources) > MAX_SOURCES => {
                    Plan::Told(Err(ChangeError::TooManySources))
                }
                None if !self.state.has_numbers_for(rows + job.upserts) => {
                    Plan::Told(Err(ChangeError::TooManyRows { rows: job.upserts }))
                }
                None => {
                    is_first = false;
                    rows += job.upserts;
                    if !job.sources.is_empty() {
                        Arc::make_mut(&mut sources).take(&job.sources);
                    }
                    Plan::Write
                }
            };
            plans.push(plan);
        }
        plans
    }

    /// What becomes of a job whose idempotency key is known, from before or from its group.
    fn repeated(&self, before: &[Job], job: &Job) -> Option<Plan> {
        let RequestOf { key, at, content } = job.request.as_ref()?;
        let reused = || ChangeError::RequestKeyReused { key: key.to_string() };
        if let Some(answer) = self.requests.get(key, *at) {
            let Answer { content: known, position, counts } = answer;
            let told = Committed { position, counts, is_durable: false, is_repeated: true };
            let told = if known == *content { Ok(told) } else { Err(reused()) };
            return Some(Plan::Told(told));
        }
        let same = |other: &Job| other.request.as_ref().is_some_and(|other| other.key == *key);
        let other = before.iter().position(same)?;
        let is_same = before[other].request.as_ref().is_some_and(|other| other.content == *content);
        Some(if is_same { Plan::As(other) } else { Plan::Told(Err(reused())) })
    }

    /// Applies a batch that was written.
    fn show(&mut self, job: &mut Job, position: u64) -> Counts {
        let bytes = &job.record.bytes()[HEADER_BYTES..];
        let payload = Payload::again(&self.schema, bytes).expect("it was read before");
        let prepared = job.prepared.take().expect("a batch is shown once");
        for (state, _) in &mut self.earlier {
            state.apply(&payload, prepared.clone(), position);
        }
        let counts = self.state.apply(&payload, prepared, position);
        if let Some(RequestOf { key, at, content }) = &job.request {
            let answer = Answer { content: *content, position, counts };
            self.requests.put(key, *at, answer);
        }
        counts
    }
}

/// Milliseconds since 1970.
pub(crate) fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
