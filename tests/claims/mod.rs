//! Claims of documents that can be compared: here numbers, with the code and where they stand a
//! second time.

mod code;
mod commands;
mod text;

use crate::structure::files;
use text::{documents, numbers, one_number, read, rounded_to_the_digits_of};

/// Fails with all faults.
fn none(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}", faults.join("\n"));
}

/// Whether a line of the table repeats its source.
fn fault_of(line: &str, truth: f64, source: &str) -> Result<(), String> {
    let (line, is_rounded) = line.strip_prefix("~ ").map_or((line, false), |line| (line, true));
    let (number, written) = one_number(line)?;
    let expected = if is_rounded { rounded_to_the_digits_of(truth, &written) } else { truth };
    let is_same = (number - expected).abs() <= 1e-9 * expected.abs();
    is_same.then_some(()).ok_or_else(|| format!("{line} is {number}, but {source} is {truth}"))
}

#[test]
fn numbers_that_stand_in_several_places_are_the_same() {
    let (mut faults, mut groups) = (Vec::new(), 0);
    let table = read("tests/claims/same.txt");
    for group in table.split("\n\n") {
        let mut lines = group.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
        let Some(source) = lines.next() else { continue };
        groups += 1;
        let wrong = one_number(source).map(|(truth, _)| {
            let faults = lines.map(|line| fault_of(line, truth, source)).filter_map(Result::err);
            faults.collect::<Vec<_>>()
        });
        faults.extend(wrong.unwrap_or_else(|fault| vec![fault]));
    }
    none(&faults);
    assert!(groups > 40, "{groups}");
}

/// Numbers that have to be counted.
#[test]
fn counts_are_those_of_what_is_counted() {
    let lines = |file: &str| read(file).lines().count();
    let count = |file: &str, part: &str| read(file).matches(part).count();
    let words = flate2::read::GzDecoder::new(
        std::fs::File::open(files::top().join("models/demo/demo-100d.txt.gz")).unwrap(),
    );
    let words: Vec<String> =
        std::io::BufRead::lines(std::io::BufReader::new(words)).map(Result::unwrap).collect();
    let dimensions = words[0].split(' ').count() - 1;
    let explorer = files::below(&files::top(), "crates/server/explorer".as_ref(), |_| true);
    let bytes: usize = explorer.iter().map(|file| files::read(&files::top(), file).len()).sum();
    let attacks = read("tests/load/attackers.py");
    let attacks = attacks.split_once("ATTACKS = {\n").unwrap().1.split_once("\n}").unwrap().0;
    let gensim = read("bindings/python/tests/test_gensim_own.py");
    let part = |from: &str, to: &str| {
        gensim.split_once(from).unwrap().1.split_once(to).unwrap().0.matches("Test").count()
    };
    let (pass, fail) = (part("PASSES = \"\"\"", "\"\"\""), part("FAILS = {", "\n}"));
    let claims = [
        (words.len(), "README.md: `demo` (English, {} words"),
        (words.len(), "CHANGELOG.md: `demo`, of {} words"),
        (words.len(), "docs/performance.md: The built-in model ({} ×"),
        (words.len(), "models/demo/MODEL_CARD.md: {} words in descending"),
        (dimensions, "README.md: 30,000 words × {} dimensions"),
        (dimensions, "CHANGELOG.md: 30,000 words × {} dimensions"),
        (dimensions, "docs/performance.md: The built-in model (30,000 × {},"),
        (lines("examples/query_expansion.py"), "docs/embedding.md: in {} lines of Python"),
        (lines("examples/query_expansion.mjs"), "docs/embedding.md: in {} lines of Python"),
        (lines("examples/requests.tsv"), "docs/classify.md: requests.tsv` has {} requests"),
        (lines("examples/requests-test.tsv"), "docs/classify.md: requests-test.tsv` {} others"),
        (
            lines("examples/search/documents.jsonl"),
            "examples/search/README.md: {} short texts about",
        ),
        (lines("crates/server/explorer/api.js"), "clients/typescript/README.md: has {} lines"),
        (explorer.len(), "docs/performance.md: The explorer is 199 kB in {} files"),
        ((bytes + 500) / 1000, "docs/performance.md: The explorer is {} kB in"),
        (attacks.lines().count(), "CHANGELOG.md: the effect of {} kinds of attack"),
        (
            count("tests/prometheus.rs", "\n        trial("),
            "docs/reliability.md: Debian's Prometheus | {} tests",
        ),
        (pass, "docs/gensim.md: unmodified: {} of"),
        (pass + fail, "docs/gensim.md: 32 of {} pass"),
        (pass, "CHANGELOG.md: gensim's read interface; {} of"),
        (pass + fail, "CHANGELOG.md: of gensim's own {} tests"),
    ];
    let faults = claims.map(|(truth, line)| fault_of(line, truth as f64, "the count"));
    none(&faults.into_iter().filter_map(Result::err).collect::<Vec<_>>());
}

#[test]
fn defaults_of_settings_are_those_of_the_file() {
    let settings: toml::Table = read("config/kindred.toml").parse().unwrap();
    let (mut faults, mut checked) = (Vec::new(), 0);
    for document in documents() {
        for (key, value) in &settings {
            let whole = value.as_integer().map(|number| number as f64);
            let Some(default) = whole.or(value.as_float()) else { continue };
            // `key` (1,024), `key` (0, one per core): …, | `key` | 0.01 |
            for (around, ends) in [("(", &[")", ",", ":"][..]), ("| ", &[" |"][..])] {
                for end in ends {
                    let pattern = format!("`{key}` {around}{{}}{end}");
                    for (number, _) in numbers(&document.prose, &pattern) {
                        checked += 1;
                        if number != default {
                            faults.push(format!("{}: {pattern} is {default}", document.path));
                        }
                    }
                }
            }
        }
    }
    none(&faults);
    assert!(checked >= 10, "{checked}");
}
