//! The programs in `examples` against the real service, as docs/embedding.md shows them; and
//! against services that are busy or not there.
//!
//! Without python3 or node (18 or later, in the PATH or where scripts/install-node puts it) the
//! tests of the one or the other are reported as ignored.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::support::console::{self, commands};
use crate::support::{Service, program, top};
use libtest_mimic::{Failed, Trial};

/// What runs a program of `examples`, and its file there.
#[derive(Debug, Clone, Copy)]
struct Example {
    program: &'static str,
    file: &'static str,
    /// What the program runs to say whether it is new enough.
    new_enough: [&'static str; 2],
}

const EXAMPLES: [Example; 2] = [
    Example {
        program: "python3",
        file: "query_expansion.py",
        new_enough: ["-c", "import sys; sys.exit(sys.version_info < (3, 8))"],
    },
    Example {
        program: "node",
        file: "query_expansion.mjs",
        new_enough: ["-e", "process.exit(parseInt(process.versions.node) < 18 ? 1 : 0)"],
    },
];

/// Writes a synonyms file of what `kindred expand` prints.
const SYNONYMS: &str = "synonyms.py";

type TestOf = fn(Example) -> Result<(), Failed>;
type Test = fn() -> Result<(), Failed>;

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("examples::the_document_has_the_programs_as_they_are", same_text),
        Trial::test("examples::they_have_the_stop_words_of_the_built_in_expander", same_stop_words),
    ];
    let no_python = EXAMPLES[0].runner().is_none();
    let tests: [(&str, Test); 2] = [
        ("prints_what_the_document_shows", synonyms_as_shown),
        ("escapes_what_separates_terms", synonyms_are_escaped),
    ];
    trials.extend(tests.map(|(name, test)| {
        Trial::test(format!("examples::{SYNONYMS}: {name}"), test).with_ignored_flag(no_python)
    }));
    for example in EXAMPLES {
        let Example { program, file, .. } = example;
        let missing = example.runner().is_none();
        if missing {
            println!(
                "{file}: skipped, for there is no {program} (scripts/install-node installs node)"
            );
        }
        let tests: [(&str, TestOf); 7] = [
            ("prints_what_the_document_shows", as_shown),
            ("asks_again_when_a_busy_service_says_when", asks_again),
            ("does_not_wait_long", does_not_wait_long),
            ("searches_as_typed_without_a_service", as_typed),
            ("quotes_words_that_would_read_as_operators", quotes_operators),
            ("leaves_out_stop_words", leaves_out_stop_words),
            ("weighs_terms_by_their_part_of_the_largest_weight", weighs_terms),
        ];
        trials.extend(tests.map(|(name, test)| {
            let name = format!("examples::{file}: {name}");
            Trial::test(name, move || test(example)).with_ignored_flag(missing)
        }));
    }
    trials
}

impl Example {
    /// The program that runs it, in the PATH or of scripts/install-node.
    fn runner(&self) -> Option<PathBuf> {
        let installed = top().join(".tools/node/bin").join(self.program);
        [PathBuf::from(self.program), installed].into_iter().find(|program| {
            let said = Command::new(program).args(self.new_enough).output();
            said.is_ok_and(|output| output.status.success())
        })
    }

    /// What it prints about a query, faults first.
    fn run(&self, query: &str, url: &str) -> Result<String, Failed> {
        let program = self.runner().expect("not ignored");
        let mut command = Command::new(program);
        command.arg(top().join("examples").join(self.file)).arg(query).env("WORDS_URL", url);
        let output = command.output()?;
        assert!(output.status.success(), "{output:?}");
        Ok(String::from_utf8([output.stderr, output.stdout].concat())?)
    }
}

fn document() -> Result<String, Failed> {
    Ok(fs::read_to_string(top().join("docs/embedding.md"))?)
}

fn same_text() -> Result<(), Failed> {
    let document = document()?;
    for (example, language) in EXAMPLES.iter().zip(["python", "javascript"]) {
        let text = fs::read_to_string(top().join("examples").join(example.file))?;
        assert!(text.lines().count() <= 35, "{} is to be read in a minute", example.file);
        let block = format!("```{language}\n{text}```\n");
        assert!(document.contains(&block), "docs/embedding.md has another {}", example.file);
    }
    Ok(())
}

fn same_stop_words() -> Result<(), Failed> {
    for (example, start, end) in
        [(EXAMPLES[0], "STOP = \"\"\"", "\"\"\""), (EXAMPLES[1], "new Set((", ").split")]
    {
        let text = fs::read_to_string(top().join("examples").join(example.file))?;
        let (_, list) = text.split_once(start).ok_or("no list of stop words")?;
        let (list, _) = list.split_once(end).ok_or("the list has no end")?;
        let list = list.replace(['"', '+'], "");
        let words: Vec<&str> = list.split_whitespace().collect();
        assert_eq!(words, ::kindred::heads::STOP_WORDS, "{}", example.file);
    }
    Ok(())
}

/// The rules that it makes of these lines.
fn synonyms(lines: &str) -> Result<String, Failed> {
    let mut command = Command::new(EXAMPLES[0].runner().expect("not ignored"));
    command.arg(top().join("examples").join(SYNONYMS)).stdin(Stdio::piped());
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::inherit()).spawn()?;
    child.stdin.take().expect("it is piped").write_all(lines.as_bytes())?;
    let output = child.wait_with_output()?;
    assert!(output.status.success(), "{output:?}");
    Ok(String::from_utf8(output.stdout)?)
}

fn synonyms_as_shown() -> Result<(), Failed> {
    let text = fs::read_to_string(top().join("examples").join(SYNONYMS))?;
    assert!(text.lines().count() <= 40, "it is to be read in a minute");
    let shown = commands(&document()?);
    let end = format!("| python3 examples/{SYNONYMS}");
    let shown = shown.iter().find(|shown| shown.command.ends_with(&end));
    let shown = shown.ok_or("the document does not show it")?;
    let cache = tempfile::tempdir()?;
    let script = format!("kindred() {{ \"$KINDRED\" \"$@\"; }}\n{}", shown.command);
    let mut shell = Command::new("sh");
    shell.args(["-ec", &script]).current_dir(top());
    let output = shell.env("KINDRED", program()).env("XDG_CACHE_HOME", cache.path()).output()?;
    assert!(output.status.success(), "{output:?}");
    let said = String::from_utf8(output.stdout)?;
    assert_eq!(said.trim_end(), shown.output, "docs/embedding.md:{}", shown.line);
    Ok(())
}

fn synonyms_are_escaped() -> Result<(), Failed> {
    let answer = |text: &str, terms: &[&str]| {
        let term = |word: &&str| serde_json::json!({"term": word, "weight": 0.5});
        let terms: Vec<_> = terms.iter().map(term).collect();
        format!("{}\n", serde_json::json!({"text": text, "head": "near", "terms": terms}))
    };
    let lines = [
        answer("a,b", &["a,b", "c\\d", "x=>y", "#tag", ",", "a=b", "c#", "a,b"]),
        answer("  new   york ", &["nyc", "New York"]),
        answer("Wi-Fi", &["wi", "fi", "wlan"]),
        // Nothing to add, no word, and a word that the model lacks.
        answer("lone", &["lone", "?!"]),
        answer("?", &["frog"]),
        answer("the", &[]),
        "{\"text\": \"xyzzyq\", \"error\": \"unknown\"}\n".to_owned(),
    ];
    let expected = [
        "a\\,b => a\\,b, c\\\\d, x\\=>y, \\#tag, a=b, c#",
        "new york => new york, nyc, New York",
        "Wi-Fi => Wi-Fi, wlan",
    ];
    assert_eq!(synonyms(&lines.concat())?.lines().collect::<Vec<_>>(), expected);
    Ok(())
}

fn as_shown(example: Example) -> Result<(), Failed> {
    let service = Service::with_default_model();
    let start = format!("{} examples/{} ", example.program, example.file);
    let mut shown = commands(&document()?);
    shown.retain(|shown| shown.command.starts_with(&start));
    assert!(shown.len() >= 2, "the document shows too little of {}", example.file);
    for shown in shown {
        let query = console::words(&shown.command).pop().expect("a query");
        let said = example.run(&query, &service.url(""))?;
        assert_eq!(said.trim_end(), shown.output, "docs/embedding.md:{}", shown.line);
    }
    Ok(())
}

fn quotes_operators(example: Example) -> Result<(), Failed> {
    let service = Service::with_default_model();
    // A stop word, unless there is no other word.
    let said = example.run("frog NOT", &service.url(""))?;
    assert!(said.starts_with("(frog OR frogs^") && !said.contains("NOT"), "{said}");
    assert_eq!(example.run("NOT", &service.url(""))?, "\"NOT\"\n");
    Ok(())
}

fn leaves_out_stop_words(example: Example) -> Result<(), Failed> {
    let service = Service::with_default_model();
    let ask = |query: &str| example.run(query, &service.url(""));
    assert_eq!(ask("The frog in A pond")?, ask("frog pond")?);
    let said = ask("to be or not")?;
    assert_eq!(said.matches(" AND ").count(), 3, "a query of stop words keeps them: {said}");
    // Nor are they added: `and` is near `or`.
    let added: Vec<&str> = said.split(" OR ").skip(1).collect();
    let is_stop = |term: &&str| {
        ["and", "not", "to", "be", "the"].contains(&term.split('^').next().unwrap_or(""))
    };
    assert!(!added.iter().any(is_stop), "{said}");
    Ok(())
}

fn weighs_terms(example: Example) -> Result<(), Failed> {
    let service = Service::with_default_model();
    let body = serde_json::json!({"text": "frog", "top": 3, "max_ratio": 0.35});
    let answer = service.post("/expand", &body).json();
    let terms = answer["terms"].as_array().expect("terms");
    let weight = |term: &serde_json::Value| term["weight"].as_f64().expect("a weight");
    let boosted = terms[1..].iter().map(|term| {
        let word = term["term"].as_str().expect("a term");
        format!(" OR {word}^{:.2}", weight(term) / weight(&terms[0]))
    });
    let expected = format!("(frog{})\n", boosted.collect::<String>());
    assert_eq!(example.run("frog", &service.url(""))?, expected);
    Ok(())
}

/// A service that gives one of these answers to each connection, and how many it has given.
fn answering(answers: Vec<String>) -> Result<(String, thread::JoinHandle<usize>), Failed> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let thread = thread::spawn(move || {
        let mut given = 0;
        for answer in answers {
            let (mut connection, _) = listener.accept().expect("a connection");
            let mut asked = Vec::new();
            let mut buffer = [0; 4096];
            while !asked.ends_with(b"\"]}") {
                let read = connection.read(&mut buffer).expect("a request");
                asked.extend(&buffer[..read]);
            }
            connection.write_all(answer.as_bytes()).expect("the answer can be sent");
            given += 1;
        }
        given
    });
    Ok((url, thread))
}

fn busy(status: &str, header: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{header}Content-Length: 0\r\nConnection: close\r\n\r\n")
}

fn asks_again(example: Example) -> Result<(), Failed> {
    let body = r#"{"results":[{"terms":[{"term":"frog","weight":0.4},{"term":"toad","weight":0.2},
        {"term":"tree frog","weight":0.1},{"term":"of","weight":0.1},{"term":",","weight":0.1}]}]}"#;
    let length = body.len();
    let right =
        format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}");
    let full = busy("429 Too Many Requests", "Retry-After: 1\r\n");
    let restarting = busy("503 Service Unavailable", "Retry-After: 1\r\n");
    let (url, service) = answering(vec![full, restarting, right])?;
    let start = Instant::now();
    assert_eq!(example.run("frog", &url)?, "(frog OR toad^0.50 OR \"tree frog\"^0.25)\n");
    assert!(start.elapsed() >= Duration::from_secs(2), "it asked sooner than it was told");
    assert_eq!(service.join().expect("it gave its answers"), 3);
    Ok(())
}

fn does_not_wait_long(example: Example) -> Result<(), Failed> {
    for header in ["Retry-After: 3600\r\n", "Retry-After: Fri, 31 Dec 2100 23:59:59 GMT\r\n", ""] {
        let (url, service) = answering(vec![busy("503 Service Unavailable", header)])?;
        let start = Instant::now();
        let said = example.run("frog pond", &url)?;
        assert!(said.starts_with("not expanded: ") && said.contains("503"), "{said}");
        assert!(said.ends_with("\nfrog AND pond\n"), "{said}");
        assert!(start.elapsed() < Duration::from_secs(60));
        assert_eq!(service.join().expect("it gave its answer"), 1);
    }
    Ok(())
}

fn as_typed(example: Example) -> Result<(), Failed> {
    // Free a moment ago.
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let said = example.run("frog pond", &format!("http://{address}"))?;
    assert!(said.starts_with("not expanded: ") && said.ends_with("\nfrog AND pond\n"), "{said}");
    Ok(())
}
