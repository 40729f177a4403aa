//! The data of the plots and tables in docs/simulation.md, as CSV. deploy/simulate/plot.py draws them.

use crate::balance::Rule;
use crate::pass::Curve;
use crate::scenario::{Change, Outcome, Scenario};
use crate::service::simulate;

const SIZES: [usize; 3] = [10, 100, 1000];
/// Engines, and the p99 in seconds that counts as too slow for the headroom.
const ENGINES: [(&str, f64); 2] = [("h200", 0.001), ("cpu16", 0.015)];
/// The share of requests that may be refused at the headroom.
const REFUSED: f64 = 0.001;
const FIGURES: [(&str, fn()); 5] = [
    ("latency", latency),
    ("headroom", headroom),
    ("balancers", balancers),
    ("failures", failures),
    ("updates", updates),
];

/// Prints these, or all.
pub fn print(names: &[&str]) -> Result<(), String> {
    let known = |name: &&&str| !FIGURES.iter().any(|(figure, _)| figure == *name);
    if let Some(unknown) = names.iter().find(known) {
        let names = FIGURES.map(|(figure, _)| figure).join(", ");
        return Err(format!("`{unknown}` is no figure: {names}"));
    }
    for (name, print) in FIGURES {
        if names.is_empty() || names.contains(&name) {
            print();
        }
    }
    Ok(())
}

fn scenario(engine: &str, replicas: usize, rule: Rule, load: f64) -> Scenario {
    Scenario::new(replicas, Curve::parse(engine).expect("it is measured"), rule, load)
}

/// p50, p99, p99.9 in milliseconds, and the share refused or failed.
fn columns(outcome: &Outcome) -> String {
    let ms = |share| outcome.latencies.quantile(share) * 1e3;
    let missing = (outcome.refused + outcome.failed) as f64;
    let share = missing / (missing + outcome.latencies.count() as f64);
    format!("{:.3},{:.3},{:.3},{share:.5}", ms(0.5), ms(0.99), ms(0.999))
}

fn latency() {
    println!("figure,engine,rule,replicas,load,p50_ms,p99_ms,p999_ms,missing,busiest");
    for (engine, _) in ENGINES {
        for rule in Rule::ALL {
            for replicas in SIZES {
                let outcome = simulate(&scenario(engine, replicas, rule, 0.7));
                println!(
                    "latency,{engine},{rule},{replicas},0.7,{},{:.3}",
                    columns(&outcome),
                    outcome.busiest
                );
            }
        }
    }
}

/// The highest load, in hundredths of the peak, at which p99 stays below the limit and next to nothing is refused.
fn headroom() {
    println!("figure,engine,rule,replicas,limit_ms,load");
    for (engine, limit) in ENGINES {
        for rule in Rule::ALL {
            for replicas in SIZES {
                let (mut holds, mut fails) = (0, 100);
                while fails - holds > 1 {
                    let load = (holds + fails) / 2;
                    let outcome =
                        simulate(&scenario(engine, replicas, rule, f64::from(load) / 100.0));
                    let missing = (outcome.refused + outcome.failed) as f64;
                    let is_kept = outcome.latencies.quantile(0.99) <= limit
                        && missing <= REFUSED * outcome.latencies.count() as f64;
                    *(if is_kept { &mut holds } else { &mut fails }) = load;
                }
                println!(
                    "headroom,{engine},{rule},{replicas},{},{:.2}",
                    limit * 1e3,
                    f64::from(holds) / 100.0
                );
            }
        }
    }
}

/// Balancers that do not know of each other.
fn balancers() {
    println!("figure,engine,rule,replicas,load,p50_ms,p99_ms,p999_ms,missing,balancers");
    for rule in [Rule::RoundRobin, Rule::TwoChoices, Rule::Least] {
        for balancers in [1, 10, 100, 1000] {
            let scenario = Scenario { balancers, ..scenario("cpu16", 100, rule, 0.9) };
            println!(
                "balancers,cpu16,{rule},100,0.9,{},{balancers}",
                columns(&simulate(&scenario))
            );
        }
    }
}

/// One replica of several dies, freezes or is slow, from second 5 to 15.
fn failures() {
    println!(
        "figure,engine,rule,replicas,load,p50_ms,p99_ms,p999_ms,missing,what,slow,retried,timeline_p99_ms"
    );
    let (replica, at, lasting) = (3, 5.0, 10.0);
    let changes = [
        ("dies", Change::Die { replica, at, lasting }),
        ("freezes", Change::Freeze { replica, at, lasting }),
        ("slow", Change::Slow { replica, at, lasting, factor: 5.0 }),
    ];
    for (what, change) in changes {
        for rule in Rule::ALL {
            for replicas in [10, 100] {
                // Equal callers: what heavy ones do is another figure.
                let scenario = Scenario {
                    callers: (1000 * replicas, 0.0, 1),
                    changes: vec![change],
                    from: 4.0,
                    until: 20.0,
                    interval: 0.25,
                    ..scenario("cpu16", replicas, rule, 0.6)
                };
                let outcome = simulate(&scenario);
                let slow = outcome.latencies.share_above(0.1);
                let timeline: Vec<String> = outcome
                    .intervals
                    .iter()
                    .map(|part| format!("{:.1}", part.quantile(0.99) * 1e3))
                    .collect();
                let timeline = timeline.join(" ");
                println!(
                    "failures,cpu16,{rule},{replicas},0.6,{},{what},{slow:.5},{},{timeline}",
                    columns(&outcome),
                    outcome.retried
                );
            }
        }
    }
}

/// A rolling update: each replica is away for 3 s, and 15 times as slow for 2 s (it scores every row until its table is
/// derived), or at full speed at once (its table was kept).
fn updates() {
    println!(
        "figure,engine,rule,replicas,load,p50_ms,p99_ms,p999_ms,missing,at_once,warming,worst_p99_ms,seconds"
    );
    for (warming, factor) in [(0.0, 1.0), (2.0, 15.0)] {
        for (replicas, at_once) in [(10, 1), (10, 3), (100, 1), (100, 10), (100, 25)] {
            for rule in [Rule::Random, Rule::TwoChoices, Rule::Least] {
                for load in [0.5, 0.6, 0.7] {
                    let scenario = Scenario {
                        changes: vec![Change::Update {
                            at: 2.0,
                            at_once,
                            down: 3.0,
                            warming,
                            factor,
                        }],
                        from: 2.0,
                        until: 17.0,
                        interval: 0.25,
                        ..scenario("cpu16", replicas, rule, load)
                    };
                    let outcome = simulate(&scenario);
                    let worst = outcome
                        .intervals
                        .iter()
                        .map(|part| part.quantile(0.99))
                        .fold(0.0, f64::max);
                    let seconds = outcome.updated_at.map_or(f64::NAN, |at| at - 2.0);
                    println!(
                        "updates,cpu16,{rule},{replicas},{load},{},{at_once},{warming},{:.1},{seconds:.1}",
                        columns(&outcome),
                        worst * 1e3
                    );
                }
            }
        }
    }
}
