//! The events: arrivals, ends of passes, failures, checks, updates.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use crate::balance::{Balancers, Rule};
use crate::callers::Callers;
use crate::latencies::Latencies;
use crate::random::Random;
use crate::scenario::{Change, Outcome, Scenario, Variation};

#[derive(Debug, Clone, Copy)]
struct Request {
    arrived: f64,
    /// The connection, for the rule `Connection`.
    connection: u32,
    balancer: u16,
    retries: u8,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Up,
    /// Accepts connections, and answers nothing.
    Frozen,
    /// Out of rotation for an update; answers what it has.
    Leaving,
    Down,
}

#[derive(Debug)]
struct Replica {
    state: State,
    waiting: VecDeque<Request>,
    /// By engine; empty if it has no pass.
    passes: Vec<Pass>,
    held: usize,
    factor: f64,
    frozen_at: f64,
    thaws_at: f64,
    busy: f64,
}

#[derive(Debug, Default)]
struct Pass {
    requests: Vec<Request>,
    /// Counts the passes, so that the end of one that was given up is told from the end of the next.
    number: u64,
}

#[derive(Debug, Clone, Copy)]
enum Event {
    PassEnds {
        replica: u32,
        engine: u32,
        number: u64,
    },
    Happens(Change),
    TakeOut {
        replica: usize,
    },
    Returns {
        replica: usize,
    },
    PutIn {
        replica: usize,
    },
    Thaws {
        replica: usize,
    },
    HasSpeed {
        replica: usize,
        factor: f64,
    },
    /// A replica that was replaced starts.
    Starts {
        replica: usize,
        warming: f64,
        factor: f64,
    },
}

#[derive(Debug)]
struct Timed {
    at: f64,
    /// Events at the same time come in the order in which they were planned.
    number: u64,
    event: Event,
}

impl Ord for Timed {
    fn cmp(&self, other: &Self) -> Ordering {
        // The heap gives the greatest, and the earliest is wanted.
        other.at.total_cmp(&self.at).then(other.number.cmp(&self.number))
    }
}
impl PartialOrd for Timed {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl PartialEq for Timed {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}
impl Eq for Timed {}

struct Service<'a> {
    scenario: &'a Scenario,
    now: f64,
    random: Random,
    callers: Option<Callers>,
    balancers: Balancers,
    replicas: Vec<Replica>,
    events: BinaryHeap<Timed>,
    planned: u64,
    outcome: Outcome,
    passes: u64,
    in_passes: u64,
    /// The update that goes on: what it is, and the next replica.
    update: Option<(Change, usize)>,
    updated: usize,
}

/// Simulates it.
///
/// # Panics
///
/// If [`Scenario::fault`] has one.
pub fn simulate(scenario: &Scenario) -> Outcome {
    assert_eq!(scenario.fault(), None);
    let mut random = Random::new(scenario.seed);
    let (callers, exponent, connections) = scenario.callers;
    let callers = (scenario.rule == Rule::Connection)
        .then(|| Callers::new(callers, exponent, connections, scenario.replicas, &mut random));
    let balancers =
        Balancers::new(scenario.rule, scenario.balancers, scenario.replicas, &mut random);
    let replica = |_| Replica {
        state: State::Up,
        waiting: VecDeque::new(),
        passes: (0..scenario.engines).map(|_| Pass::default()).collect(),
        held: 0,
        factor: 1.0,
        frozen_at: 0.0,
        thaws_at: 0.0,
        busy: 0.0,
    };
    let mut service = Service {
        scenario,
        now: 0.0,
        random,
        callers,
        balancers,
        replicas: (0..scenario.replicas).map(replica).collect(),
        events: BinaryHeap::new(),
        planned: 0,
        outcome: Outcome::default(),
        passes: 0,
        in_passes: 0,
        update: None,
        updated: 0,
    };
    service.run();
    service.outcome
}

impl Service<'_> {
    fn run(&mut self) {
        for &change in &self.scenario.changes {
            let (Change::Die { at, .. }
            | Change::Freeze { at, .. }
            | Change::Slow { at, .. }
            | Change::Update { at, .. }) = change;
            self.plan(at, Event::Happens(change));
        }
        let mean = 1.0 / self.scenario.rate;
        let mut next = self.random.exponential(mean);
        loop {
            let event_at = self.events.peek().map_or(f64::INFINITY, |timed| timed.at);
            if next < self.scenario.until && next <= event_at {
                self.now = next;
                self.arrives();
                next += self.random.exponential(mean);
            } else if let Some(Timed { at, event, .. }) = self.events.pop() {
                self.now = at;
                self.happens(event);
            } else {
                break;
            }
        }
        let engines_seconds = self.scenario.until * self.scenario.engines as f64;
        let busy = self.replicas.iter().map(|replica| replica.busy / engines_seconds);
        self.outcome.busy = busy.clone().sum::<f64>() / self.replicas.len() as f64;
        self.outcome.busiest = busy.fold(0.0, f64::max);
        self.outcome.batch = self.in_passes as f64 / self.passes as f64;
    }

    fn plan(&mut self, at: f64, event: Event) {
        self.planned += 1;
        self.events.push(Timed { at, number: self.planned, event });
    }

    fn arrives(&mut self) {
        let balancer = self.random.below(self.scenario.balancers);
        let connection = self.callers.as_ref().map_or(0, |callers| callers.next(&mut self.random));
        let request = Request {
            arrived: self.now,
            connection: connection as u32,
            balancer: balancer as u16,
            retries: self.scenario.retries,
        };
        self.send(request, None);
    }

    /// Sends a request to a replica, other than the one that it comes from.
    fn send(&mut self, request: Request, not: Option<usize>) {
        let pinned =
            self.callers.as_ref().map(|callers| callers.replica(request.connection as usize));
        let pinned =
            pinned.filter(|&replica| Some(replica) != not && self.balancers.rotation.has(replica));
        let chosen = pinned.or_else(|| {
            self.balancers.choose(usize::from(request.balancer), not, &mut self.random)
        });
        let Some(index) = chosen else { return self.fails(request) };
        if let (Some(callers), None) = (&mut self.callers, pinned) {
            callers.connect(request.connection as usize, index);
        }
        let replica = &mut self.replicas[index];
        if replica.state == State::Down {
            return self.again(request, index, false);
        }
        // The system accepts for a process that is stopped.
        if replica.held >= self.scenario.capacity && replica.state != State::Frozen {
            return self.again(request, index, true);
        }
        replica.waiting.push_back(request);
        replica.held += 1;
        self.balancers.sent(usize::from(request.balancer), index);
        if let Some(engine) =
            self.replicas[index].passes.iter().position(|pass| pass.requests.is_empty())
        {
            self.start_pass(index, engine);
        }
    }

    /// A replica did not take it.
    fn again(&mut self, mut request: Request, from: usize, was_refused: bool) {
        // Where a connection leads to one replica, nobody asks another one because that is full.
        let is_answer = was_refused && self.callers.is_some();
        if request.retries > 0 && !is_answer {
            request.retries -= 1;
            self.outcome.retried += 1;
            self.send(request, Some(from));
        } else if was_refused {
            self.outcome.refused += u64::from(self.counts(request));
        } else {
            self.fails(request);
        }
    }

    fn fails(&mut self, request: Request) {
        self.outcome.failed += u64::from(self.counts(request));
    }

    fn counts(&self, request: Request) -> bool {
        request.arrived >= self.scenario.from
    }

    fn start_pass(&mut self, index: usize, engine: usize) {
        let scenario = self.scenario;
        let replica = &mut self.replicas[index];
        if replica.waiting.is_empty() || !matches!(replica.state, State::Up | State::Leaving) {
            return;
        }
        let batch = replica.waiting.len().min(scenario.curve.largest_batch());
        let mut seconds = scenario.curve.seconds(batch) * replica.factor;
        if scenario.variation == Variation::Exponential {
            seconds = self.random.exponential(seconds);
        }
        let pass = &mut replica.passes[engine];
        pass.requests.extend(replica.waiting.drain(..batch));
        pass.number += 1;
        let number = pass.number;
        // What goes on after the last arrival does not count: the share is of the time until then.
        replica.busy += seconds.min((scenario.until - self.now).max(0.0));
        self.passes += 1;
        self.in_passes += batch as u64;
        let event = Event::PassEnds { replica: index as u32, engine: engine as u32, number };
        self.plan(self.now + seconds, event);
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::PassEnds { replica, engine, number } => {
                self.pass_ends(replica as usize, engine as usize, number);
            }
            Event::Happens(change) => self.changes(change),
            Event::TakeOut { replica } => self.take_out(replica),
            Event::PutIn { replica } => self.balancers.put_in(replica),
            Event::HasSpeed { replica, factor } => self.replicas[replica].factor = factor,
            Event::Returns { replica } => {
                self.replicas[replica].state = State::Up;
                self.plan(self.now + self.scenario.recovery, Event::PutIn { replica });
            }
            Event::Thaws { replica } => {
                self.replicas[replica].state = State::Up;
                self.plan(self.now + self.scenario.recovery, Event::PutIn { replica });
                for engine in 0..self.scenario.engines {
                    if self.replicas[replica].passes[engine].requests.is_empty() {
                        self.start_pass(replica, engine);
                    }
                }
            }
            Event::Starts { replica, warming, factor } => {
                self.replicas[replica].state = State::Up;
                self.replicas[replica].factor = factor;
                self.balancers.put_in(replica);
                self.plan(self.now + warming, Event::HasSpeed { replica, factor: 1.0 });
                self.updated += 1;
                if self.updated == self.replicas.len() {
                    self.outcome.updated_at = Some(self.now);
                }
                self.next_leaves();
            }
        }
    }

    fn pass_ends(&mut self, index: usize, engine: usize, number: u64) {
        let replica = &mut self.replicas[index];
        if replica.passes[engine].number != number || replica.passes[engine].requests.is_empty() {
            return; // It was given up.
        }
        if replica.state == State::Frozen {
            let remaining = self.now - replica.frozen_at;
            let event = Event::PassEnds { replica: index as u32, engine: engine as u32, number };
            let at = replica.thaws_at + remaining;
            return self.plan(at, event);
        }
        let mut requests = std::mem::take(&mut replica.passes[engine].requests);
        replica.held -= requests.len();
        for request in &requests {
            self.balancers.done(usize::from(request.balancer), index);
            let latency = self.now - request.arrived;
            if request.arrived >= self.scenario.from {
                self.outcome.latencies.add(latency);
            }
            if self.scenario.interval > 0.0 {
                let interval = (request.arrived / self.scenario.interval) as usize;
                if self.outcome.intervals.len() <= interval {
                    self.outcome.intervals.resize(interval + 1, Latencies::default());
                }
                self.outcome.intervals[interval].add(latency);
            }
        }
        // The memory is used again.
        requests.clear();
        self.replicas[index].passes[engine].requests = requests;
        self.start_pass(index, engine);
        self.leaves_if_done(index);
    }

    fn changes(&mut self, change: Change) {
        match change {
            Change::Die { replica, lasting, .. } => {
                self.replicas[replica].state = State::Down;
                self.plan(self.now + self.scenario.detection, Event::TakeOut { replica });
                self.plan(self.now + lasting, Event::Returns { replica });
                self.send_all_elsewhere(replica);
            }
            Change::Freeze { replica, lasting, .. } => {
                let thaws_at = self.now + lasting;
                let frozen = &mut self.replicas[replica];
                frozen.state = State::Frozen;
                (frozen.frozen_at, frozen.thaws_at) = (self.now, thaws_at);
                self.plan(self.now + self.scenario.detection, Event::TakeOut { replica });
                self.plan(thaws_at, Event::Thaws { replica });
            }
            Change::Slow { replica, lasting, factor, .. } => {
                self.replicas[replica].factor = factor;
                self.plan(self.now + lasting, Event::HasSpeed { replica, factor: 1.0 });
            }
            Change::Update { at_once, .. } => {
                self.update = Some((change, 0));
                (0..at_once).for_each(|_| self.next_leaves());
            }
        }
    }

    /// The balancers' checks have found that a replica does not work, if that is still so. They close its connections.
    fn take_out(&mut self, index: usize) {
        if matches!(self.replicas[index].state, State::Frozen | State::Down) {
            self.balancers.take_out(index);
            self.send_all_elsewhere(index);
        }
    }

    fn send_all_elsewhere(&mut self, index: usize) {
        let replica = &mut self.replicas[index];
        let mut requests: Vec<Request> =
            replica.passes.iter_mut().flat_map(|pass| pass.requests.drain(..)).collect();
        requests.extend(replica.waiting.drain(..));
        replica.held = 0;
        for &request in &requests {
            self.balancers.done(usize::from(request.balancer), index);
        }
        for request in requests {
            self.again(request, index, false);
        }
    }

    /// The next replica of an update leaves the rotation.
    fn next_leaves(&mut self) {
        if let Some((_, next)) = &mut self.update
            && *next < self.replicas.len()
        {
            let index = *next;
            *next += 1;
            self.balancers.take_out(index);
            self.replicas[index].state = State::Leaving;
            self.leaves_if_done(index);
        }
    }

    fn leaves_if_done(&mut self, index: usize) {
        let replica = &mut self.replicas[index];
        let Some((Change::Update { down, warming, factor, .. }, _)) = self.update else { return };
        if replica.state == State::Leaving && replica.held == 0 {
            replica.state = State::Down;
            self.plan(self.now + down, Event::Starts { replica: index, warming, factor });
        }
    }
}
