//! Classifies texts through a running service, in batches over several connections, and prints the
//! rate: what `kindred bulk classify` does without HTTP. Input and output are the same JSON lines.
//!
//!     cargo run --release -p cli --example bulk_over_http -- http://127.0.0.1:8080 texts.jsonl labels.jsonl 4

use std::error::Error;
use std::io::{BufWriter, Write};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, mpsc};
use std::time::Instant;
use std::{env, fs, thread};

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// The most that a request may have.
const TOGETHER: usize = 1024;

#[derive(Deserialize)]
struct Row<'a> {
    #[serde(borrow)]
    text: &'a RawValue,
}

#[derive(Serialize)]
struct ClassifyBody<'a> {
    texts: Vec<&'a RawValue>,
    scores: bool,
}

#[derive(Deserialize)]
struct Answer<'a> {
    #[serde(borrow)]
    results: Vec<&'a RawValue>,
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [url, input, output, connections] = &arguments[..] else {
        return Err("usage: bulk_over_http URL TEXTS.jsonl LABELS.jsonl CONNECTIONS".into());
    };
    let (connections, url) = (connections.parse::<usize>()?, format!("{url}/classify"));
    let started = Instant::now();
    let content = fs::read_to_string(input)?;
    let lines: Vec<&str> = content.lines().collect();
    let batches: Vec<&[&str]> = lines.chunks(TOGETHER).collect();
    let next = AtomicUsize::new(0);
    let failed = Mutex::new(None::<String>);
    let (tell, told) = mpsc::sync_channel::<(usize, Vec<u8>)>(2 * connections);
    thread::scope(|scope| -> Result<(), Box<dyn Error>> {
        for _ in 0..connections {
            let (tell, batches, next, failed, url) = (tell.clone(), &batches, &next, &failed, &url);
            scope.spawn(move || {
                let agent = ureq::Agent::new_with_defaults();
                loop {
                    let number = next.fetch_add(1, Ordering::Relaxed);
                    let Some(batch) = batches.get(number) else { return };
                    match ask(&agent, url, batch, number * TOGETHER) {
                        Ok(lines) => drop(tell.send((number, lines))),
                        Err(error) => *failed.lock().expect("a lock") = Some(error.to_string()),
                    }
                }
            });
        }
        drop(tell);
        let mut out = BufWriter::new(fs::File::create(output)?);
        let mut waiting = std::collections::BTreeMap::new();
        let mut written = 0;
        for (number, lines) in told {
            waiting.insert(number, lines);
            while let Some(lines) = waiting.remove(&written) {
                out.write_all(&lines)?;
                written += 1;
            }
        }
        Ok(out.into_inner()?.sync_all()?)
    })?;
    if let Some(error) = failed.into_inner()? {
        return Err(error.into());
    }
    let (rows, seconds) = (lines.len(), started.elapsed().as_secs_f64());
    println!("{rows} texts in {seconds:.2} s, {:.0} texts/s", rows as f64 / seconds);
    Ok(())
}

/// The answers to a batch, as lines with an id.
fn ask(
    agent: &ureq::Agent,
    url: &str,
    batch: &[&str],
    first: usize,
) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut texts = Vec::with_capacity(batch.len());
    for line in batch {
        texts.push(serde_json::from_str::<Row<'_>>(line)?.text);
    }
    let asked_texts = texts.clone();
    let asked = serde_json::to_vec(&ClassifyBody { texts, scores: true })?;
    let mut response = agent.post(url).content_type("application/json").send(asked)?;
    let body = response.body_mut().with_config().limit(64 << 20).read_to_string()?;
    let answer: Answer<'_> = serde_json::from_str(&body)?;
    let mut lines = Vec::with_capacity(body.len());
    for (index, (result, text)) in answer.results.iter().zip(&asked_texts).enumerate() {
        let (id, asked) = (first + index + 1, serde_json::from_str::<String>(text.get())?);
        let (asked, result) = (serde_json::to_string(&asked)?, result.get().strip_prefix('{'));
        writeln!(lines, "{{\"id\":{id},\"asked\":{asked},{}", result.unwrap_or_default())?;
    }
    Ok(lines)
}
