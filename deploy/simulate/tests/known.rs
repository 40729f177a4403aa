//! Compares the simulation with results of queueing theory.

use simulate::balance::Rule;
use simulate::pass::Curve;
use simulate::scenario::{Outcome, Scenario, Variation};
use simulate::service::simulate;

/// Servers that answer one request at a time, in `mean` milliseconds.
fn one_by_one(replicas: usize, rule: Rule, load: f64, requests: f64) -> Scenario {
    let scenario = Scenario::new(replicas, Curve::parse("1:1").unwrap(), rule, load);
    let until = requests / scenario.rate;
    Scenario { from: until / 10.0, until, capacity: usize::MAX, ..scenario }
}

fn exponential(scenario: Scenario) -> Scenario {
    Scenario { variation: Variation::Exponential, ..scenario }
}

#[track_caller]
fn assert_near(what: &str, found: f64, expected: f64, tolerance: f64) {
    let off = found / expected - 1.0;
    assert!(
        off.abs() <= tolerance,
        "{what}: {found}, and theory says {expected}: off by {:.1} %",
        off * 100.0
    );
}

fn mean_ms(outcome: &Outcome) -> f64 {
    outcome.latencies.mean() * 1e3
}

#[test]
fn one_server_with_exponential_times_is_m_m_1() {
    for load in [0.3, 0.7, 0.9] {
        let outcome = simulate(&exponential(one_by_one(1, Rule::Random, load, 4e6)));
        // The sojourn is exponential with mean 1 / (1 − ρ).
        let mean = 1.0 / (1.0 - load);
        assert_near("mean", mean_ms(&outcome), mean, 0.03);
        for share in [0.5, 0.99, 0.999] {
            let expected = -mean * f64::ln(1.0 - share);
            assert_near("quantile", outcome.latencies.quantile(share) * 1e3, expected, 0.06);
        }
        assert_near("share of time busy", outcome.busy, load, 0.01);
    }
}

#[test]
fn one_server_with_constant_times_is_m_d_1() {
    for load in [0.3, 0.7, 0.9] {
        let outcome = simulate(&one_by_one(1, Rule::Random, load, 4e6));
        let expected = 1.0 + load / (2.0 * (1.0 - load));
        assert_near("mean", mean_ms(&outcome), expected, 0.02);
    }
}

#[test]
fn engines_that_share_a_queue_are_m_m_n() {
    for (engines, load) in [(2, 0.8), (8, 0.8), (8, 0.95)] {
        let mut scenario = exponential(one_by_one(1, Rule::Random, load, 4e6));
        scenario.engines = engines;
        scenario.rate *= engines as f64;
        scenario.until /= engines as f64;
        scenario.from /= engines as f64;
        let outcome = simulate(&scenario);
        // Erlang's C: the share of requests that wait.
        let offered = engines as f64 * load;
        let mut blocked = 1.0;
        for n in 1..=engines {
            blocked = offered * blocked / (n as f64 + offered * blocked);
        }
        let waits = blocked / (1.0 - load * (1.0 - blocked));
        let expected = 1.0 + waits / (engines as f64 * (1.0 - load));
        assert_near("mean", mean_ms(&outcome), expected, 0.05);
    }
}

#[test]
fn random_replicas_are_independent_servers() {
    let outcome = simulate(&exponential(one_by_one(20, Rule::Random, 0.8, 4e6)));
    assert_near("mean", mean_ms(&outcome), 5.0, 0.04);
}

/// Mitzenmacher 1996; Vvedenskaya, Dobrushin and Karpelevich 1996: with two choices among many servers, the share of
/// queues of at least i is ρ to the power of 2^i − 1.
#[test]
fn two_choices_are_the_supermarket_model() {
    for load in [0.7f64, 0.9, 0.95] {
        let scenario = exponential(one_by_one(1000, Rule::TwoChoices, load, 3e6));
        let expected: f64 = (1..8).map(|i| load.powi((1 << i) - 2)).sum();
        assert_near("mean", mean_ms(&simulate(&scenario)), expected, 0.02);
    }
}

/// A pass that takes all that wait, in constant time D: it is followed by another one unless nobody came meanwhile.
#[test]
fn passes_of_constant_time_make_requests_wait_half_a_pass() {
    for arrivals in [0.5f64, 2.0, 10.0] {
        let curve = Curve::parse("1:1,100000:1").unwrap();
        let scenario = Scenario {
            rate: arrivals * 1e3,
            from: 1.0,
            until: 1000.0,
            ..Scenario::new(1, curve, Rule::Random, 1.0)
        };
        let outcome = simulate(&scenario);
        let busy = 1.0 / (1.0 + (-arrivals).exp() / arrivals);
        assert_near("busy", outcome.busy, busy, 0.01);
        assert_near("mean", mean_ms(&outcome), 1.0 + busy / 2.0, 0.01);
        assert_near("batch", outcome.batch, arrivals / busy, 0.01);
    }
}

/// With many requests a pass is a + b · batch, and the batch what came during the last one: a / (1 − λ b).
#[test]
fn passes_grow_until_they_keep_up() {
    for load in [0.3, 0.6, 0.8] {
        let curve = Curve::parse("1:1.001,100000:101").unwrap();
        let scenario = Scenario {
            rate: load * 1e6,
            capacity: usize::MAX,
            from: 0.2,
            until: 2.0,
            ..Scenario::new(1, curve, Rule::Random, 1.0)
        };
        let outcome = simulate(&scenario);
        let pass = 1.0 / (1.0 - load);
        assert_near("mean", mean_ms(&outcome), 1.5 * pass, 0.02);
        assert_near("p99", outcome.latencies.quantile(0.99) * 1e3, 2.0 * pass, 0.06);
        assert_near("batch", outcome.batch, pass * load * 1e3, 0.02);
    }
}

/// Two queues, the shorter one for each request: Flatto and McKean 1977; the mean lies between that of one queue for two
/// servers, which nothing beats, and that of two choices at random.
#[test]
fn rules_that_know_more_are_better() {
    let mean = |rule, replicas| {
        let outcome = simulate(&exponential(one_by_one(replicas, rule, 0.9, 4e6)));
        (mean_ms(&outcome), outcome.latencies.quantile(0.999))
    };
    let by_rule =
        [Rule::Least, Rule::TwoChoices, Rule::RoundRobin, Rule::Random].map(|rule| mean(rule, 20));
    for pair in by_rule.windows(2) {
        assert!(pair[0].0 < pair[1].0 && pair[0].1 < pair[1].1, "{by_rule:?}");
    }
    let shared = 1.0 / (1.0 - 0.9 * 0.9);
    let (shorter, _) = mean(Rule::Least, 2);
    assert!(shorter > shared && shorter < 1.1 * shared, "{shorter} of {shared}");
}
