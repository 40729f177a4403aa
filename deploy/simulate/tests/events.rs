//! Failures, updates, refusals and heavy callers: nothing is lost uncounted, and what can be worked out by hand is so.

use simulate::balance::Rule;
use simulate::callers::Callers;
use simulate::pass::Curve;
use simulate::random::Random;
use simulate::scenario::{Change, Outcome, Scenario};
use simulate::service::simulate;

/// Everything counts, for 12 s.
fn scenario(replicas: usize, rule: Rule, load: f64) -> Scenario {
    let curve = Curve::parse("1:1.3,64:5.86,256:15.8").unwrap();
    Scenario { from: 0.0, until: 12.0, ..Scenario::new(replicas, curve, rule, load) }
}

fn all(outcome: &Outcome) -> u64 {
    outcome.latencies.count() + outcome.refused + outcome.failed
}

const FAILURES: [Change; 3] = [
    Change::Die { replica: 1, at: 5.0, lasting: 6.0 },
    Change::Freeze { replica: 1, at: 5.0, lasting: 6.0 },
    Change::Slow { replica: 1, at: 5.0, lasting: 6.0, factor: 20.0 },
];
const UPDATE: Change = Change::Update { at: 1.0, at_once: 2, down: 1.0, warming: 1.0, factor: 3.0 };

#[test]
fn every_request_is_answered_refused_or_failed_and_a_seed_decides_all() {
    for rule in Rule::ALL {
        for change in FAILURES.into_iter().chain([UPDATE]) {
            for (load, balancers, engines) in [(0.3, 1, 1), (1.1, 3, 1), (0.5, 2, 2)] {
                let changed = Scenario {
                    changes: vec![change],
                    balancers,
                    engines,
                    ..scenario(3, rule, load)
                };
                let outcome = simulate(&changed);
                let expected = changed.rate * changed.until;
                let off = all(&outcome) as f64 / expected - 1.0;
                assert!(off.abs() < 0.015, "{rule}, {change:?}: {} of {expected}", all(&outcome));
                let again = simulate(&changed);
                assert_eq!(format!("{outcome:?}"), format!("{again:?}"));
                let other = simulate(&Scenario { seed: 2, ..changed });
                assert_ne!(outcome.latencies.mean(), other.latencies.mean());
            }
        }
    }
}

#[test]
fn a_replica_that_dies_costs_what_was_on_it_and_what_came_until_it_was_found() {
    let died = |retries, rule| {
        let changes = vec![FAILURES[0]];
        simulate(&Scenario { retries, changes, detection: 2.0, ..scenario(6, rule, 0.5) })
    };
    // A sixth of the requests for two seconds, and at most a full pass and what waits for the next.
    let missed = scenario(6, Rule::Random, 0.5).rate / 6.0 * 2.0;
    for rule in [Rule::Random, Rule::RoundRobin] {
        let failed = died(0, rule).failed as f64;
        assert!(
            failed > 0.97 * missed && failed < 1.03 * missed + 512.0,
            "{rule}: {failed} of {missed}"
        );
    }
    // It has no requests outstanding, so the rules that look for few choose it more often.
    for rule in [Rule::TwoChoices, Rule::Least] {
        assert!(died(0, rule).failed as f64 > 1.5 * missed, "{rule}");
    }
    for rule in Rule::ALL {
        let outcome = died(1, rule);
        assert_eq!(outcome.failed, 0, "{rule}");
        // Connections break once, and are made again elsewhere.
        assert!(outcome.retried > if rule == Rule::Connection { 50 } else { 1000 }, "{rule}");
    }
}

#[test]
fn a_frozen_replica_holds_fewest_requests_where_they_are_counted() {
    let held = |rule| {
        let changes = vec![FAILURES[1]];
        let outcome = simulate(&Scenario { changes, ..scenario(6, rule, 0.5) });
        assert_eq!(outcome.failed, 0, "{rule}");
        assert!(outcome.latencies.highest() > 1.9 && outcome.latencies.highest() < 2.2, "{rule}");
        // They are asked again when it is found.
        assert!(
            outcome.latencies.share_above(0.1)
                > 0.9 * outcome.retried as f64 / all(&outcome) as f64
        );
        outcome.retried as f64
    };
    // A sixth of the requests until it is found, and what it had.
    let missed = scenario(6, Rule::Random, 0.5).rate / 6.0 * 2.0;
    let random = held(Rule::Random);
    assert!(random > 0.97 * missed && random < 1.03 * missed + 512.0, "{random} of {missed}");
    for rule in [Rule::TwoChoices, Rule::Least] {
        let held = held(rule);
        assert!(held > 10.0 && held < 0.02 * random, "{rule}: {held}, and at random {random}");
    }
}

#[test]
fn a_replica_that_continues_before_it_is_found_answers_all_it_has() {
    let changes = vec![Change::Freeze { replica: 0, at: 5.0, lasting: 1.0 }];
    let outcome = simulate(&Scenario { changes, ..scenario(3, Rule::Random, 0.3) });
    assert_eq!((outcome.failed, outcome.retried), (0, 0));
    let highest = outcome.latencies.highest();
    assert!(highest > 0.99 && highest < 2.0, "{highest}");
}

#[test]
fn an_update_loses_nothing_and_takes_its_time() {
    for (at_once, least) in [(1, 12.0), (2, 6.0), (4, 4.0)] {
        let change = Change::Update { at: 1.0, at_once, down: 2.0, warming: 0.5, factor: 3.0 };
        let outcome =
            simulate(&Scenario { changes: vec![change], ..scenario(6, Rule::Least, 0.3) });
        assert_eq!((outcome.failed, outcome.refused, outcome.retried), (0, 0, 0));
        let took = outcome.updated_at.unwrap() - 1.0;
        assert!(took >= least && took < least + 0.2, "{at_once} at once: {took}");
    }
    // All at once: there is nobody left.
    let change = Change::Update { at: 1.0, at_once: 6, down: 2.0, warming: 0.0, factor: 1.0 };
    let outcome = simulate(&Scenario { changes: vec![change], ..scenario(6, Rule::Least, 0.3) });
    let missed = scenario(6, Rule::Least, 0.3).rate * 2.0;
    assert!((outcome.failed as f64 / missed - 1.0).abs() < 0.03, "{} of {missed}", outcome.failed);
}

#[test]
fn more_than_the_peak_is_refused_and_the_rest_is_answered() {
    for rule in [Rule::RoundRobin, Rule::Least] {
        let overload = Scenario { capacity: 512, from: 1.0, ..scenario(4, rule, 2.0) };
        let outcome = simulate(&overload);
        let share = outcome.latencies.count() as f64 / all(&outcome) as f64;
        assert!((share - 0.5).abs() < 0.01, "{rule}: {share}");
        // At most two passes before its own, or what is left of one.
        assert!(outcome.latencies.highest() < 3.0 * 0.0158, "{rule}");
    }
}

#[test]
fn a_heavy_caller_overloads_its_replica_only_where_it_is_pinned_to_it() {
    let (replicas, callers) = (10, (1000, 1.0, 1));
    let shares = Callers::new(callers.0, callers.1, callers.2, replicas, &mut Random::new(1))
        .shares(replicas);
    assert!((shares.iter().sum::<f64>() - 1.0).abs() < 1e-9);
    let heaviest = shares.iter().copied().fold(0.0, f64::max);
    // The first caller alone has 1 / (1 + 1/2 + … + 1/1000).
    assert!(heaviest > 0.1335, "{heaviest}");

    let pinned =
        Scenario { callers, capacity: 512, from: 2.0, ..scenario(replicas, Rule::Connection, 0.7) };
    let outcome = simulate(&pinned);
    let refused = outcome.refused as f64 / all(&outcome) as f64;
    // What is above each replica's peak is refused.
    let above: f64 = shares.iter().map(|share| (share * 0.7 - 0.1).max(0.0)).sum::<f64>() / 0.7;
    assert!(
        above > 0.01 && (refused - above).abs() < 0.005,
        "{refused} refused, {above} above the peaks"
    );
    let balanced = simulate(&Scenario { rule: Rule::TwoChoices, ..pinned });
    assert_eq!(balanced.refused, 0);
    assert!(balanced.latencies.quantile(0.99) < 0.1 * outcome.latencies.quantile(0.99).max(0.3));
}
