//! The account is true: requests of every route, shape and option, at random, take no more than
//! three times what the service accounted for them, beside small constants. What is accounted
//! decides what is admitted, whose turn it is and what leaves the threads of HTTP, so a new feature
//! that takes more than is accounted for it is an attack.
//!
//! CPU time is what the system says of each thread, so that it does not matter what else the
//! machine does.

mod asked;
mod filters;
mod measure;
mod others;
mod rows;
mod searches;

#[path = "../../crates/encoders/tests/support.rs"]
#[allow(dead_code)]
mod fasttext;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Instant;

use serde_json::{Value, json};

use self::asked::{Asked, PLAIN, Random};
use self::fasttext::{File, classifier};
use self::measure::{Accounted, Cost, Measured};
use self::searches::Maker;
use crate::support::{Service, cache, kindred};

/// Of the random requests; TEST_SEED is another.
const SEED: u64 = 1;

/// Requests to each model.
const REQUESTS: usize = 150;

/// Requests to each model besides, for texts to expand.
const EXPANSIONS: usize = 15;

/// The same by GET, with a filter.
const GET_EXPANSIONS: usize = 6;

/// The same for rows to count.
const COUNTS: usize = 15;

/// The same for arrays of vectors.
const ARRAYS: usize = 25;

/// The same for texts of words that no text had before.
const NEW_WORDS: usize = 3;

/// Words of each of those texts.
const WORDS_OF_A_TEXT: usize = 250;

/// The same for explanations of texts with one very long word.
const LONG_WORDS: usize = 3;

/// What a usual request takes may change by this factor, after requests of all kinds: whatever they
/// contained, nothing that lasts depends on it.
const CHANGES: f64 = 2.0;

/// What a request takes may be this many times what was accounted.
const TIMES: f64 = 3.0;

/// Beside that.
const BESIDES: Cost = Cost {
    // A pass over a table for one query, which shares it with no other, and threads that wake up.
    engine: 3e6,
    // Connection, head, and the short stages of a GET, which are up to 0.4 ms by the estimate and
    // not counted.
    outside: 2e6,
    // Stacks, the connection's buffers, bodies and answers too small to be counted, and what the
    // allocator keeps.
    memory: 4e6,
};

/// Requests before any is measured, some of each route.
const WARM_UP: usize = 20;

/// Noise does not fail a request that once took no more.
const REPETITIONS: usize = 12;

/// What usual requests take, in nanoseconds.
#[derive(Debug)]
struct Units {
    /// For a nanosecond that was accounted for stages outside the engine, of an answer with many
    /// numbers: how slow this machine and program are. At least 1.
    stage: f64,
    /// For a plain query of a search.
    search: f64,
    /// For a component of a row of a full pass.
    full_pass: f64,
    /// For a token of a text to classify; 0 if no head needs the engine.
    token: f64,
    /// For a text to expand of 16 usual words.
    expanded: f64,
}

impl Units {
    fn of(measured: &mut Measured, maker: &Maker) -> Self {
        let words = maker.words.iter().cycle().take(1024);
        let queries: Vec<Value> = words.map(|word| json!({"word": word})).collect();
        let batch = Asked::post("/nearest", &json!({"queries": queries}));
        let one = &maker.words[7];
        let rank = Asked::post("/rank", &json!({"word": maker.words[8], "words": [one]}));
        let texts: Vec<String> =
            maker.words.chunks(16).take(512).map(|some| some.join(" ")).collect();
        let classify = Asked::post("/classify", &json!({"texts": texts, "top": 1}));
        // A head of fastText needs no engine.
        let before = measured.accounted();
        measured.ask(&classify);
        let has_head = (measured.accounted() - before).classified > 0.0;
        let usual: Vec<&str> =
            maker.words.iter().step_by(97).take(16).map(String::as_str).collect();
        let expand = Asked::post("/expand", &json!({"text": usual.join(" ")}));
        let write = json!({"queries": queries[..32], "k": 300, "with_vectors": true});
        let write = Asked::post("/nearest", &write);
        // The table of its terms is derived beside the first answers.
        for _ in 0..50 {
            measured.ask(&expand);
        }
        measured.rest();
        let mut median = |asked: &Asked, of: fn(Cost, Accounted) -> f64| {
            let mut took: Vec<f64> = (0..5)
                .map(|_| {
                    let before = measured.accounted();
                    let (cost, reply) = measured.take(asked);
                    assert_eq!(reply.status, 200);
                    of(cost, measured.accounted() - before)
                })
                .collect();
            took.sort_by(f64::total_cmp);
            took[took.len() / 2]
        };
        Self {
            expanded: median(&expand, |took, _| took.engine),
            search: median(&batch, |took, accounted| took.engine / accounted.searches),
            full_pass: median(&rank, |took, accounted| took.engine / accounted.full_passes),
            token: if has_head {
                median(&classify, |took, accounted| took.engine / accounted.classified)
            } else {
                0.0
            },
            stage: median(&write, |took, accounted| took.outside / accounted.stages).max(1.0),
        }
    }

    /// The largest factor between these and others.
    fn change(&self, other: &Self) -> f64 {
        let factor = |a: f64, b: f64| if a > 0.0 && b > 0.0 { (a / b).max(b / a) } else { 1.0 };
        let Self { stage, search, full_pass, token, expanded } = *self;
        [
            factor(stage, other.stage),
            factor(search, other.search),
            factor(full_pass, other.full_pass),
            factor(token, other.token),
            factor(expanded, other.expanded),
        ]
        .into_iter()
        .fold(1.0, f64::max)
    }

    fn cost(&self, accounted: Accounted) -> Cost {
        Cost {
            engine: accounted.searches * self.search
                + accounted.full_passes * self.full_pass
                + accounted.classified * self.token,
            outside: accounted.stages * self.stage,
            memory: accounted.memory,
        }
    }
}

/// By what factor reality exceeds the account, beside the constants.
fn times(took: Cost, accounted: Cost) -> [(&'static str, f64); 3] {
    let times =
        |took: f64, accounted: f64, besides: f64| (took - besides).max(0.0) / accounted.max(1.0);
    [
        ("engine", times(took.engine, accounted.engine, BESIDES.engine)),
        ("outside", times(took.outside, accounted.outside, BESIDES.outside)),
        ("memory", times(took.memory, accounted.memory, BESIDES.memory)),
    ]
}

/// What was found over all requests.
#[derive(Default)]
struct Found {
    routes: BTreeSet<&'static str>,
    statuses: BTreeMap<u16, usize>,
    worst: BTreeMap<&'static str, (f64, String)>,
    faults: Vec<String>,
}

impl Found {
    /// What is accounted, and the time, is measured of one service, and memory of another like it
    /// whose allocator gives back at once what is free.
    fn check(&mut self, services: &mut [Measured; 2], units: &Units, asked: &Asked) {
        self.check_each(services, units, std::iter::repeat_n(asked, REPETITIONS));
    }

    /// The same for several requests, of which one must take no more.
    fn check_each<'a>(
        &mut self,
        [timed, lean]: &mut [Measured; 2],
        units: &Units,
        requests: impl Iterator<Item = &'a Asked>,
    ) {
        let mut least: BTreeMap<&str, (f64, String)> = BTreeMap::new();
        for (repetition, asked) in requests.enumerate() {
            self.routes.insert(asked.route);
            let before = timed.accounted();
            let (mut took, reply) = timed.take(asked);
            let accounted = units.cost(timed.accounted() - before);
            took.memory = lean.take(asked).0.memory;
            if repetition == 0 {
                *self.statuses.entry(reply.status).or_default() += 1;
                let text = || {
                    String::from_utf8_lossy(&reply.bytes[..reply.bytes.len().min(1000)])
                        .into_owned()
                };
                assert!(reply.status < 500 && reply.status != 429, "{}: {}", asked.shown(), text());
            }
            for (what, times) in times(took, accounted) {
                let said = format!(
                    "{what} {times:.2} ×: {}\n  took {took:.0?}\n  for  {accounted:.0?}, answered {}",
                    asked.shown(),
                    reply.status
                );
                let best = least.entry(what).or_insert_with(|| (times, said.clone()));
                if times < best.0 {
                    *best = (times, said);
                }
            }
            if least.values().all(|(times, _)| *times <= TIMES) {
                break;
            }
        }
        for (what, (times, said)) in least {
            if times > TIMES {
                self.faults.push(said.clone());
            }
            let worst = self.worst.entry(what).or_default();
            if times > worst.0 {
                *worst = (times, said);
            }
        }
    }
}

/// Asks one model n requests. Returns what usual ones take.
fn ask_model(found: &mut Found, arguments: &[&str], seed: u64) -> Units {
    let serve = |purge_delay: Option<&str>| {
        let mut command = kindred(&["serve", "--listen", "127.0.0.1:0", "--log-level", "warn"]);
        command.args(arguments);
        command.envs(purge_delay.map(|delay| ("MIMALLOC_PURGE_DELAY", delay)));
        Measured::new(Service::spawn(command))
    };
    let mut services = [serve(None), serve(Some("0"))];
    let service = &services[0].service;
    let of_letter = |letter| service.get(&format!("/words?prefix={letter}&limit=1000")).json();
    let mut words = Vec::new();
    for letter in 'a'..='z' {
        let list = of_letter(letter);
        let listed = list["words"].as_array().expect("words").iter();
        let listed = listed.map(|one| one["word"].as_str().expect("a word").to_owned());
        words.extend(listed.filter(|word| word.bytes().all(|b| b.is_ascii_alphanumeric())));
    }
    // Nothing here is in the other lists.
    let known: BTreeSet<&String> = words.iter().collect();
    let mut new_words: Vec<String> = Vec::new();
    for (a, b) in ('a'..='z').flat_map(|a| ('a'..='z').map(move |b| (a, b))) {
        if new_words.len() >= 4 * NEW_WORDS * WORDS_OF_A_TEXT {
            break;
        }
        let list = service.get(&format!("/words?prefix={a}{b}&limit=1000")).json();
        let listed = list["words"].as_array().expect("words").iter();
        let listed = listed.filter_map(|one| one["word"].as_str().map(str::to_owned));
        new_words.extend(listed.filter(|word| !known.contains(word)));
    }
    let model = service.get("/model").json();
    let dim = model["dim"].as_u64().expect("a number") as usize;
    // The first request for a head, to one of the services only.
    let mut huge = vec![0.0; dim];
    huge[0] = 1e30;
    for vectors in [json!([huge]), json!([vec![1e-30; dim]])] {
        services[0].ask(&Asked::post("/expand", &json!({"vectors": vectors})));
    }
    let mut maker = Maker {
        random: Random(seed),
        filters: Random(seed),
        has_attributes: model["attributes"].is_array(),
        words,
        dim,
    };
    // What is made or mapped when it is first needed is no request's.
    let plain =
        PLAIN.map(|(route, target)| Asked { accept: Some("gzip"), ..Asked::get(route, target) });
    for service in &services {
        plain.iter().for_each(|asked| drop(service.ask(asked)));
        (0..WARM_UP).for_each(|number| drop(service.ask(&maker.make(number))));
    }
    // Other programs on the machine change them for a while, and something that lasts every time.
    let (mut units, mut others);
    let mut attempts = 0;
    loop {
        [units, others] = services.each_mut().map(|service| Units::of(service, &maker));
        attempts += 1;
        if units.change(&others) <= CHANGES {
            break;
        }
        if attempts == REPETITIONS {
            found.faults.push(format!("the first request decides: {units:?}, not {others:?}"));
            break;
        }
    }
    println!("{arguments:?}: {units:.1?}, after {attempts} attempts");
    for asked in &plain {
        found.check(&mut services, &units, asked);
    }
    for number in PLAIN.len()..REQUESTS {
        found.check(&mut services, &units, &maker.make(number));
    }
    found.check(&mut services, &units, &maker.all_vectors());
    for _ in 0..EXPANSIONS {
        found.check(&mut services, &units, &maker.expand());
    }
    for _ in 0..COUNTS {
        found.check(&mut services, &units, &maker.count());
    }
    for _ in 0..GET_EXPANSIONS {
        found.check(&mut services, &units, &maker.get_expand());
    }
    for _ in 0..ARRAYS {
        found.check(&mut services, &units, &maker.array());
    }
    for _ in 0..LONG_WORDS {
        found.check(&mut services, &units, &maker.explain_long());
    }
    let mut new_words = new_words
        .chunks_exact(WORDS_OF_A_TEXT)
        .take(4 * NEW_WORDS)
        .map(|some| Asked::post("/classify", &json!({"texts": [some.join(" ")]})));
    for _ in 0..NEW_WORDS {
        let some: Vec<Asked> = new_words.by_ref().take(4).collect();
        if units.token > 0.0 {
            found.check_each(&mut services, &units, some.iter());
        }
    }
    let mut change = String::new();
    for _ in 0..REPETITIONS {
        let after = Units::of(&mut services[0], &maker);
        if units.change(&after) <= CHANGES {
            return units;
        }
        change = format!("requests change what usual ones take: {units:?}, then {after:?}");
    }
    found.faults.push(change);
    units
}

/// The folder of a head of fastText with n-grams of all kinds and many labels.
fn labels(folder: &Path) -> String {
    let words = (0..200).map(|word| (format!("w{word}").into_bytes(), 300 - word, 0));
    let labels = (0..300).map(|label| (format!("__label__{label}").into_bytes(), 300 - label, 1));
    let file = File {
        dim: 64,
        bucket: 2000,
        minn: 2,
        maxn: 5,
        word_ngrams: 3,
        loss: 1,
        entries: words.chain(labels).collect(),
        ..classifier()
    };
    let (input, out) = (folder.join("labels.bin"), folder.join("labels"));
    std::fs::write(&input, file.bytes()).expect("it can be written");
    let made = kindred(&["import-head"]).arg(&input).arg("--out").arg(&out).output();
    assert!(made.is_ok_and(|output| output.status.success()));
    out.to_str().expect("a UTF-8 path").to_owned()
}

#[test]
#[cfg_attr(not(target_os = "linux"), ignore = "only Linux says what each thread took")]
#[cfg_attr(not(optimised), ignore = "the program is not optimised (CONTRIBUTING.md)")]
fn no_request_takes_more_than_three_times_what_is_accounted() {
    let seed = std::env::var("TEST_SEED").map_or(SEED, |seed| seed.parse().expect("a number"));
    println!("seed {seed}");
    let _alone = crate::alone();
    let started = Instant::now();
    let folder = tempfile::tempdir().expect("a folder");
    let synthetic = folder.path().join("synthetic");
    let synthetic = synthetic.to_str().expect("a UTF-8 path");
    filters::write_model(folder.path());
    let head = folder.path().join("nearby");
    let head = head.to_str().expect("a UTF-8 path");
    let made = kindred(&["train", "expander", "--model", synthetic, "--out", head]).output();
    assert!(made.is_ok_and(|output| output.status.success()));
    let (mut found, cache) = (Found::default(), cache());
    let cache = cache.to_str().expect("a UTF-8 path");
    ask_model(&mut found, &["--device", "cpu", "--cache-dir", cache], seed);
    let labels = labels(folder.path());
    let synthetic = ["--device", "cpu", "--model", synthetic, "--head", head, "--head", &labels];
    let units = ask_model(&mut found, &synthetic, !seed);
    rows::ask_table(&mut found, folder.path(), &units, seed);

    println!("answered {:?}, in {:.0?}; worst:", found.statuses, started.elapsed());
    found.worst.values().for_each(|(_, said)| println!("{said}"));
    let answered = found.statuses.get(&200).copied().unwrap_or(0);
    assert!(answered * 10 >= 2 * REQUESTS * 9, "nearly all requests are valid");
    let contract = include_str!("../../openapi.yaml").lines();
    let routes = contract
        .filter_map(|line| line.strip_prefix("  /").and_then(|line| line.strip_suffix(':')));
    let routes: BTreeSet<String> = routes.map(|route| format!("/{route}")).collect();
    let missing = routes.iter().filter(|route| !found.routes.contains(&route[..]));
    assert_eq!(missing.collect::<Vec<_>>(), ["/admin/reload", "/fold"], "those of operators");
    let faults = found.faults;
    assert!(
        faults.is_empty(),
        "{} requests took more than was accounted:\n{}",
        faults.len(),
        faults.join("\n")
    );
}
