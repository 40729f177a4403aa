//! What is simulated: the service, its load, and what happens to it.

use crate::balance::Rule;
use crate::latencies::Latencies;
use crate::pass::Curve;

/// How the time of a pass varies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Variation {
    /// As measured, always the same.
    None,
    /// Exponential with that mean: for comparing with results of queueing theory.
    Exponential,
}

/// Something that happens to replicas. Times are in seconds from the start.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Change {
    /// The process dies, and works again after `lasting`.
    Die { replica: usize, at: f64, lasting: f64 },
    /// The process stops, and continues after `lasting`: nothing is answered, nothing is refused.
    Freeze { replica: usize, at: f64, lasting: f64 },
    /// Passes take `factor` times as long.
    Slow { replica: usize, at: f64, lasting: f64, factor: f64 },
    /// All replicas are replaced, `at_once` at a time. Each leaves the rotation, answers what it has, is `down`, and returns;
    /// in its first `warming` seconds, passes take `factor` times as long.
    Update { at: f64, at_once: usize, down: f64, warming: f64, factor: f64 },
}

/// A service and its load.
#[derive(Debug, Clone)]
pub struct Scenario {
    pub replicas: usize,
    /// Engines of a replica that share its queue.
    pub engines: usize,
    pub curve: Curve,
    pub variation: Variation,
    /// Requests that a replica holds; it refuses more with 429.
    pub capacity: usize,
    pub rule: Rule,
    /// Balancers that do not know of each other's requests.
    pub balancers: usize,
    /// Callers by Zipf's law, for the rule `Connection`: how many, the exponent, and connections of each.
    pub callers: (usize, f64, usize),
    /// Requests per second of all callers together: a Poisson process.
    pub rate: f64,
    /// How often a request is tried again, elsewhere, after its replica died, was taken for dead, or refused it.
    pub retries: u8,
    /// Seconds from a failure until the balancers take the replica out of the rotation.
    pub detection: f64,
    /// Seconds from its return until they put it back.
    pub recovery: f64,
    pub changes: Vec<Change>,
    /// Requests count that arrive from here on, in seconds.
    pub from: f64,
    /// No request arrives from here on.
    pub until: f64,
    /// The length of the intervals for which percentiles are kept; 0 for none.
    pub interval: f64,
    pub seed: u64,
}

impl Scenario {
    /// A service with this share of its peak load, and defaults for the rest.
    pub fn new(replicas: usize, curve: Curve, rule: Rule, load: f64) -> Self {
        // Long enough for the queues to be what they are at this load.
        let pass = curve.seconds(curve.largest_batch());
        Self {
            replicas,
            engines: 1,
            rate: load * replicas as f64 * curve.peak(),
            curve,
            variation: Variation::None,
            capacity: 8192,
            rule,
            balancers: 1,
            callers: (100 * replicas, 1.0, 1),
            retries: 1,
            detection: 2.0,
            recovery: 1.0,
            changes: Vec::new(),
            from: 10.0 * pass,
            until: 40.0 * pass,
            interval: 0.0,
            seed: 1,
        }
    }

    /// What is wrong with it.
    pub fn fault(&self) -> Option<&'static str> {
        let is_time = |seconds: f64| seconds >= 0.0 && seconds.is_finite();
        let is_positive = |number: f64| number > 0.0 && number.is_finite();
        let has = |replica: usize| replica < self.replicas;
        let change_is_possible = |change: &Change| match *change {
            Change::Die { replica, at, lasting } | Change::Freeze { replica, at, lasting } => {
                has(replica) && is_time(at) && is_time(lasting)
            }
            Change::Slow { replica, at, lasting, factor } => {
                has(replica) && is_time(at) && is_time(lasting) && is_positive(factor)
            }
            Change::Update { at, at_once, down, warming, factor } => {
                let times = [at, down, warming].into_iter().all(is_time);
                (1..=self.replicas).contains(&at_once) && times && is_positive(factor)
            }
        };
        let (callers, exponent, connections) = self.callers;
        let touched = |change: &Change| match *change {
            Change::Die { replica, .. }
            | Change::Freeze { replica, .. }
            | Change::Slow { replica, .. } => Some(replica),
            Change::Update { .. } => None,
        };
        let is_apart = self.changes.iter().enumerate().all(|(number, change)| {
            self.changes[..number].iter().all(|other| match (touched(other), touched(change)) {
                (Some(one), Some(other)) => one != other,
                _ => false,
            })
        });
        [
            (
                self.replicas > 0 && self.engines > 0,
                "it needs at least one replica with one engine",
            ),
            (self.balancers > 0, "it needs at least one balancer"),
            (self.capacity > 0, "a replica holds at least one request"),
            (is_positive(self.rate), "the rate must be above 0"),
            (is_time(self.from) && self.until > self.from, "it must last longer than its warm-up"),
            (
                is_time(self.detection) && is_time(self.recovery),
                "times of detection and recovery are 0 or more",
            ),
            (
                callers > 0 && connections > 0 && is_time(exponent),
                "there is at least one caller, with a connection",
            ),
            (
                is_apart,
                "a replica has one change, and an update is not simulated beside other changes",
            ),
            (
                self.changes.iter().all(change_is_possible),
                "a change names a replica that is not there, or a time below 0",
            ),
        ]
        .into_iter()
        .find_map(|(is_right, fault)| (!is_right).then_some(fault))
    }
}

/// What came of it.
#[derive(Debug, Clone, Default)]
pub struct Outcome {
    /// From arrival to answer, of the requests that count.
    pub latencies: Latencies,
    /// The same by interval of arrival.
    pub intervals: Vec<Latencies>,
    /// Requests that count and were answered with 429.
    pub refused: u64,
    /// Requests that count and had no answer.
    pub failed: u64,
    /// Requests, whether they count or not, that were sent to another replica.
    pub retried: u64,
    /// Requests in the mean pass.
    pub batch: f64,
    /// The share of the time in which engines had a pass, on average and of the busiest replica.
    pub busy: f64,
    pub busiest: f64,
    /// When the last replica of an update was back, if all were.
    pub updated_at: Option<f64>,
}
