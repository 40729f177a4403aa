//! What the documents show is what the program says: every `curl` command of a ````
//! ```console ```` block is sent to the service with the built-in model, and its output is compared character for character.
//!
//! The commands are read here, so that this needs no curl; where there is one that knows their
//! options (7.74 or later) it runs them too.
//! `UPDATE_DOCS=1 cargo test -p cli --test conditional docs::` writes what came into the
//! documents.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::console::{Shown, commands, documents, words};
use crate::support::{Reply, Service, products, top};
use libtest_mimic::{Failed, Trial};

/// As the documents write it.
const ADDRESS: &str = "127.0.0.1:8080";

/// The environment's wish that the documents be written anew.
const UPDATE: &str = "UPDATE_DOCS";

/// Documents whose commands need more than the service: images, clusters.
const NOT_RUN: [&str; 1] = ["docs/containers.md"];

pub(crate) fn trials() -> Vec<Trial> {
    let mut trials = vec![
        Trial::test("docs::the_table_of_codes_is_complete", the_table_of_codes_is_complete),
        Trial::test("docs::commands_are_found_and_taken_apart", commands_are_found_and_taken_apart),
        Trial::test("docs::names_that_the_documents_mention_exist", names_exist),
    ];
    let (has_curl, updates) = (has_curl(), std::env::var_os(UPDATE).is_some());
    for name in documents() {
        let shown = curl_commands(&name);
        if shown.is_empty() || NOT_RUN.contains(&&name[..]) {
            continue;
        }
        let what = format!("docs::{name}: the output of its {} curl commands", shown.len());
        let of_curl = format!("docs::{name}: the same by curl itself");
        let (document, again) = (name.clone(), shown.clone());
        trials.push(Trial::test(what, move || compare(&document, &shown, by_hand)));
        let trial = Trial::test(of_curl, move || compare(&name, &again, by_curl));
        trials.push(trial.with_ignored_flag(!has_curl || updates));
    }
    if !has_curl {
        println!("some skipped: no curl of 7.74 or later, or no bash");
    }
    trials
}

fn curl_commands(name: &str) -> Vec<Shown> {
    let document = fs::read_to_string(top().join(name)).expect("the document can be read");
    let mut shown = commands(&document);
    shown.retain(|shown| shown.command.starts_with("curl "));
    shown
}

fn compare(
    name: &str,
    shown: &[Shown],
    run: fn(&Service, &Path, &str) -> Result<String, String>,
) -> Result<(), Failed> {
    // One document has data of its own.
    let products = (name == "docs/filters.md").then(products::prepared);
    let service = match &products {
        Some((_, model)) => Service::start(&["--model", model.to_str().ok_or("a path")?]),
        None => Service::with_default_model(),
    };
    // Commands may write files that later ones send.
    let folder = tempfile::tempdir()?;
    let mut came = Vec::new();
    let mut wrong = Vec::new();
    for Shown { line, command, output, .. } in shown {
        let output_now =
            run(&service, folder.path(), command).map_err(|e| format!("{name}:{line}: {e}"))?;
        // Lines of heads end in carriage returns, which no terminal shows.
        let output_now = output_now.trim_end().replace('\r', "").replace(&service.address, ADDRESS);
        if output_now != *output {
            wrong.push(format!(
                "{name}:{line}: {command}\n  shown: {output}\n  is:    {output_now}"
            ));
        }
        came.push(output_now);
    }
    if wrong.is_empty() {
        return Ok(());
    }
    if std::env::var_os(UPDATE).is_some() {
        update(name, shown, &came)?;
    }
    Err(wrong.join("\n").into())
}

/// Writes the outputs into the document.
fn update(name: &str, shown: &[Shown], came: &[String]) -> Result<(), Failed> {
    let path = top().join(name);
    let document = fs::read_to_string(&path)?;
    let mut lines: Vec<&str> = document.lines().collect();
    for (shown, came) in shown.iter().zip(came).rev() {
        lines.splice(shown.output_lines.0..shown.output_lines.1, came.lines());
    }
    fs::write(path, lines.join("\n") + "\n")?;
    Ok(())
}

/// What curl would print, of the options that the documents use.
fn by_hand(service: &Service, folder: &Path, command: &str) -> Result<String, String> {
    let mut words = words(command).into_iter().skip(1);
    let (mut path, mut body, mut form) = (None, None, Vec::new());
    let (mut headers, mut method): (Vec<(String, String)>, _) = (Vec::new(), None);
    let (mut output, mut format, mut is_get) = (None, String::new(), false);
    let (mut shows_head, mut filter) = (false, None);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value"));
        match &word[..] {
            "-s" => {}
            "-G" => is_get = true,
            "-D" => {
                assert_eq!(value()?, "-", "heads are shown");
                shows_head = true;
            }
            "|" => filter = Some(words.by_ref().collect::<Vec<_>>()),
            "-H" => {
                let header = value()?;
                let (name, value) = header.split_once(": ").ok_or("a header has a colon")?;
                headers.push((name.to_owned(), value.to_owned()));
            }
            "-X" => method = Some(value()?),
            "-d" => form.push(value()?),
            "--data-urlencode" => form.push(url_encoded(&value()?)?),
            "--data-binary" => {
                let file = value()?;
                let file = file.strip_prefix('@').ok_or("--data-binary takes @FILE")?;
                body = Some(fs::read(folder.join(file)).map_err(|e| e.to_string())?);
            }
            "-o" => output = Some(value()?),
            "-w" => format = value()?,
            address => {
                let found = address.trim_start_matches("http://").strip_prefix(ADDRESS);
                path = Some(found.ok_or_else(|| format!("no option: {address}"))?.to_owned());
            }
        }
    }
    let mut path = path.ok_or_else(|| format!("no address of {ADDRESS}"))?;
    if is_get {
        path += if path.contains('?') { "&" } else { "?" };
        path += &form.join("&");
    } else if !form.is_empty() {
        body = Some(form.join("&").into_bytes());
        if !headers.iter().any(|(name, _)| name == "Content-Type") {
            let form = "application/x-www-form-urlencoded";
            headers.push(("Content-Type".to_owned(), form.to_owned()));
        }
    }
    let method = method.unwrap_or_else(|| if body.is_some() { "POST" } else { "GET" }.to_owned());
    let headers: Vec<(&str, &str)> = headers.iter().map(|(n, v)| (&n[..], &v[..])).collect();
    let body = body.unwrap_or_default();
    let reply = service.send(&method, path.as_bytes(), &headers, &body);
    let body = match output.as_deref() {
        None => reply.text(),
        Some("/dev/null") => "",
        Some(file) => {
            fs::write(folder.join(file), &reply.body).map_err(|e| e.to_string())?;
            ""
        }
    };
    let lines = reply.headers.iter().map(|(name, value)| format!("{name}: {value}\n"));
    let head: String = if shows_head { lines.collect() } else { String::new() };
    let shown = format!("{head}{body}{}", written_out(&reply, &format));
    match filter {
        Some(filter) => filtered(&shown, &filter),
        None => Ok(shown),
    }
}

/// The lines that `grep -i '^START'` leaves of a text.
fn filtered(text: &str, filter: &[String]) -> Result<String, String> {
    let [grep, option, pattern] = filter else { return Err(format!("no filter: {filter:?}")) };
    let start = pattern.strip_prefix('^').filter(|_| grep == "grep" && option == "-i");
    let start = start.ok_or_else(|| format!("no filter: {filter:?}"))?.to_ascii_lowercase();
    let lines = text.lines().filter(|line| line.to_ascii_lowercase().starts_with(&start));
    Ok(lines.map(|line| format!("{line}\n")).collect())
}

/// `name=value`, of which curl encodes the value.
fn url_encoded(data: &str) -> Result<String, String> {
    let (name, value) = data.split_once('=').ok_or("--data-urlencode takes name=value")?;
    let value = percent_encoding::utf8_percent_encode(value, percent_encoding::NON_ALPHANUMERIC);
    Ok(format!("{name}={value}"))
}

/// What `-w` prints.
fn written_out(reply: &Reply, format: &str) -> String {
    format.replace("\\n", "\n").replace("%{http_code}", &reply.status.to_string())
}

fn by_curl(service: &Service, folder: &Path, command: &str) -> Result<String, String> {
    let command = command.replace(ADDRESS, &service.address);
    let mut shell = Command::new("bash");
    let output = shell.args(["-c", &command]).current_dir(folder).output();
    let output = output.map_err(|e| e.to_string())?;
    if !output.status.success() {
        return Err(format!("{command}: {output:?}"));
    }
    String::from_utf8(output.stdout).map_err(|e| e.to_string())
}

/// Whether there is a curl as old as the documents say, and a shell to quote for it.
fn has_curl() -> bool {
    let Ok(output) = Command::new("bash").args(["-c", "curl --version"]).output() else {
        return false;
    };
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    let mut numbers = said.split(' ').nth(1).unwrap_or_default().split('.');
    let mut number = || numbers.next().and_then(|number| number.parse::<u32>().ok()).unwrap_or(0);
    (number(), number()) >= (7, 74)
}

/// Every error code of openapi.yaml has its line in docs/http.md, and there are no others.
fn the_table_of_codes_is_complete() -> Result<(), Failed> {
    let openapi = fs::read_to_string(top().join("openapi.yaml"))?;
    let openapi: serde_json::Value = serde_saphyr::from_str(&openapi)?;
    let codes = &openapi["components"]["schemas"]["Problem"]["properties"]["code"]["enum"];
    let mut codes: Vec<&str> =
        codes.as_array().ok_or("no codes")?.iter().filter_map(|code| code.as_str()).collect();
    let document = fs::read_to_string(top().join("docs/http.md"))?;
    let (_, table) = document.split_once("| Status | `code` |").ok_or("no table of codes")?;
    let rows = table.lines().skip(2).take_while(|line| line.starts_with('|'));
    let mut shown: Vec<&str> = rows
        .flat_map(|row| row.split('|').nth(2).unwrap_or_default().split('`').skip(1).step_by(2))
        .collect();
    codes.sort_unstable();
    shown.sort_unstable();
    assert_eq!(shown, codes);
    Ok(())
}

fn commands_are_found_and_taken_apart() -> Result<(), Failed> {
    let document = "```console\n> a prompt\n$ curl -s 'a b'\none\ntwo\n\n$ curl -d '{\n}' \\\n  c\n```\n$ not\n";
    let found = commands(document);
    let commands: Vec<&str> = found.iter().map(|shown| &shown.command[..]).collect();
    assert_eq!(commands, ["curl -s 'a b'", "curl -d '{\n}' \\\n  c"]);
    assert_eq!(
        (&found[0].output[..], found[0].output_lines, found[0].line),
        ("one\ntwo", (3, 5), 3)
    );
    assert_eq!((&found[1].output[..], found[1].output_lines), ("", (9, 9)));
    assert_eq!(words(commands[0]), ["curl", "-s", "a b"]);
    assert_eq!(words(commands[1]), ["curl", "-d", "{\n}", "c"]);
    // The README's examples are the first that anyone tries.
    assert!(curl_commands("README.md").len() >= 3 && curl_commands("docs/http.md").len() >= 20);
    Ok(())
}

/// Settings, fields and metrics: what stands in backticks and has an underscore, and the keys of
/// settings files.
fn names_exist() -> Result<(), Failed> {
    let read = |name: &str| fs::read_to_string(top().join(name));
    let settings: toml::Table = read("config/kindred.toml")?.parse()?;
    let (openapi, guide) = (read("openapi.yaml")?, read("docs/operating.md")?);
    let mut checked = 0;
    for name in ["embedding", "faq", "http", "operating", "tuning"] {
        let document = read(&format!("docs/{name}.md"))?;
        for block in document.split("```toml\n").skip(1) {
            let shown: toml::Table = block.split("```").next().unwrap_or_default().parse()?;
            for (key, value) in shown {
                let known =
                    settings.get(&key).ok_or_else(|| format!("{name}: no setting {key}"))?;
                // A model may be a list as well.
                assert!(
                    known.same_type(&value) || key == "model",
                    "{name}: {key} has another type"
                );
                checked += 1;
            }
        }
        let prose = document.split("```").step_by(2).collect::<String>();
        for quoted in prose.split('`').skip(1).step_by(2).filter(|quoted| quoted.contains('_')) {
            let is_name = quoted.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
            let metric = quoted.starts_with("kindred_") || quoted.starts_with("process_");
            // The value of a label.
            if is_name && quoted != "full_pass" {
                let known = if metric {
                    guide.contains(&format!("| `{quoted}` |"))
                } else {
                    settings.contains_key(quoted) || openapi.contains(quoted)
                };
                assert!(known, "docs/{name}.md: `{quoted}` is no setting, field or metric");
                checked += 1;
            }
        }
    }
    assert!(checked >= 60, "{checked}");
    Ok(())
}
