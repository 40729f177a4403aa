//! The command: one scenario, or the data of the plots in docs/simulation.md.

use std::process::ExitCode;
use std::str::FromStr;

use simulate::figures;
use simulate::pass::Curve;
use simulate::scenario::{Change, Scenario, Variation};
use simulate::service::simulate;

const HELP: &str = "\
Simulates a service of many replicas behind a load balancer.

usage: simulate run [OPTION VALUE]...
       simulate figures [latency | headroom | balancers | failures | updates]...      data of the plots, as CSV

  --engine NAME|POINTS     h200, cpu16, cpu2, or times of passes as in 1:0.5,64:1.5 (batch:ms) [h200]
  --replicas N             [10]
  --engines N              engines of a replica that share its queue [1]
  --rule RULE              connection, random, round-robin, two-choices, least [two-choices]
  --load SHARE             of the peak of all replicas together [0.7]
  --rate N                 requests per second, instead of --load
  --balancers N            that do not know of each other's requests [1]
  --callers N:EXPONENT:CONNECTIONS     by Zipf's law, for the rule connection [100 a replica:1:1]
  --capacity N             requests that a replica holds before it answers 429 [8192]
  --retries N              on another replica [1]
  --detection SECONDS      until a failed replica is taken out of the rotation [2]
  --recovery SECONDS       until it is put back after its return [1]
  --variation exponential  times of passes vary; without it they are as measured
  --die REPLICA:AT:LASTING                  a replica dies, and is back later (all in seconds)
  --freeze REPLICA:AT:LASTING               it stops answering, and continues
  --slow REPLICA:AT:LASTING:FACTOR          its passes take longer
  --update AT:AT_ONCE:DOWN:WARMING:FACTOR   all are replaced, some at once
  --warm-up SECONDS        requests that arrive before are not counted [ten full passes]
  --until SECONDS          the last arrival [forty full passes]
  --seed N                 [1]

Prints one JSON object. The same options give the same output. Times are milliseconds, from arrival to the end of the pass.

  simulate run --replicas 100 --rule least --load 0.8
  simulate run --engine cpu16 --until 20 --freeze 3:5:10 --rule random
  simulate run --engine cpu16 --until 60 --update 5:1:3:2:15
  simulate run --engine 1:50,8:50 --replicas 3 --rate 336 --until 60
  simulate figures latency > latency.csv";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let done = match words.as_slice() {
        [] | ["-h" | "--help", ..] | [_, "-h" | "--help"] => {
            println!("{HELP}");
            Ok(())
        }
        ["run", options @ ..] => scenario(options).map(|scenario| print(&scenario)),
        ["figures", names @ ..] => figures::print(names),
        [other, ..] => Err(format!("`{other}` is no command: run or figures")),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("simulate: {e}; see simulate --help");
            ExitCode::from(2)
        }
    }
}

fn number<T: FromStr>(option: &str, text: &str) -> Result<T, String> {
    text.parse().map_err(|_| format!("{option}: `{text}` is no such number"))
}

/// The parts of a value, between colons.
fn parts<const N: usize>(option: &str, text: &str) -> Result<[f64; N], String> {
    let found: Vec<f64> =
        text.split(':').map(|part| number(option, part)).collect::<Result<_, _>>()?;
    found
        .try_into()
        .map_err(|_| format!("{option}: `{text}` does not have {N} numbers between colons"))
}

fn whole(option: &str, number: f64) -> Result<usize, String> {
    let is_whole = number >= 0.0 && number.fract() == 0.0 && number < 1e9;
    is_whole
        .then_some(number as usize)
        .ok_or_else(|| format!("{option}: {number} is not a whole number"))
}

fn scenario(options: &[&str]) -> Result<Scenario, String> {
    let (pairs, rest) = options.as_chunks::<2>();
    if let [option] = rest {
        return Err(format!("{option}: a value is missing"));
    }
    let given = |name: &str| pairs.iter().rev().find(|pair| pair[0] == name).map(|pair| pair[1]);
    let curve = Curve::parse(given("--engine").unwrap_or("h200"))?;
    let replicas = number("--replicas", given("--replicas").unwrap_or("10"))?;
    let rule = given("--rule").unwrap_or("two-choices").parse()?;
    let load = number("--load", given("--load").unwrap_or("0.7"))?;
    let mut scenario = Scenario::new(replicas, curve, rule, load);
    for &[option, value] in pairs {
        match option {
            "--engine" | "--replicas" | "--rule" | "--load" => {}
            "--engines" => scenario.engines = number(option, value)?,
            "--rate" => scenario.rate = number(option, value)?,
            "--balancers" => scenario.balancers = number::<u16>(option, value)?.into(),
            "--capacity" => scenario.capacity = number(option, value)?,
            "--retries" => scenario.retries = number(option, value)?,
            "--detection" => scenario.detection = number(option, value)?,
            "--recovery" => scenario.recovery = number(option, value)?,
            "--warm-up" => scenario.from = number(option, value)?,
            "--until" => scenario.until = number(option, value)?,
            "--seed" => scenario.seed = number(option, value)?,
            "--variation" if value == "exponential" => scenario.variation = Variation::Exponential,
            "--callers" => {
                let [callers, exponent, connections] = parts(option, value)?;
                scenario.callers = (whole(option, callers)?, exponent, whole(option, connections)?);
            }
            "--die" | "--freeze" => {
                let [replica, at, lasting] = parts(option, value)?;
                let replica = whole(option, replica)?;
                scenario.changes.push(match option {
                    "--die" => Change::Die { replica, at, lasting },
                    _ => Change::Freeze { replica, at, lasting },
                });
            }
            "--slow" => {
                let [replica, at, lasting, factor] = parts(option, value)?;
                let replica = whole(option, replica)?;
                scenario.changes.push(Change::Slow { replica, at, lasting, factor });
            }
            "--update" => {
                let [at, at_once, down, warming, factor] = parts(option, value)?;
                let at_once = whole(option, at_once)?;
                scenario.changes.push(Change::Update { at, at_once, down, warming, factor });
            }
            _ => return Err(format!("{option} {value}: no such option")),
        }
    }
    scenario.fault().map_or(Ok(scenario), |fault| Err(fault.into()))
}

fn print(scenario: &Scenario) {
    let outcome = simulate(scenario);
    let latencies = &outcome.latencies;
    let ms = |seconds: f64| {
        if seconds.is_finite() { format!("{:.3}", seconds * 1e3) } else { "null".into() }
    };
    let share =
        |number: f64| if number.is_finite() { format!("{number:.4}") } else { "null".into() };
    let lines = [
        ("answered", latencies.count().to_string()),
        ("refused", outcome.refused.to_string()),
        ("failed", outcome.failed.to_string()),
        ("retried", outcome.retried.to_string()),
        ("mean_ms", ms(latencies.mean())),
        ("p50_ms", ms(latencies.quantile(0.5))),
        ("p90_ms", ms(latencies.quantile(0.9))),
        ("p99_ms", ms(latencies.quantile(0.99))),
        ("p999_ms", ms(latencies.quantile(0.999))),
        ("max_ms", ms(latencies.highest())),
        ("mean_batch", share(outcome.batch)),
        ("busy", share(outcome.busy)),
        ("busiest", share(outcome.busiest)),
        ("updated_after_ms", outcome.updated_at.map_or("null".into(), ms)),
    ];
    let lines: Vec<String> =
        lines.iter().map(|(name, value)| format!("  \"{name}\": {value}")).collect();
    println!("{{\n{}\n}}", lines.join(",\n"));
}
