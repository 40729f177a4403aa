//! What documents show of a terminal: blocks of ```` ```console ````, in which a line behind `$
//! ` is a command and what follows, up to the next one, is its output.

use std::fs;

use super::top;

/// A command and the output that a document shows for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Shown {
    /// Its first line in the document, from 1.
    pub line: usize,
    /// As a shell would be given it; over several lines if a quote is open or the line ends in a
    /// backslash.
    pub command: String,
    /// Where the output stands: its first line and the one behind it, from 0.
    pub output_lines: (usize, usize),
    /// The output, without line feeds at its end.
    pub output: String,
}

/// The documents of `docs` and the README, as paths from the top.
pub fn documents() -> Vec<String> {
    let folder = fs::read_dir(top().join("docs")).expect("docs can be listed");
    let names = folder.map(|entry| entry.expect("an entry").file_name().into_string());
    let names = names.map(|name| format!("docs/{}", name.expect("UTF-8")));
    let mut documents: Vec<String> = names.filter(|name| name.ends_with(".md")).collect();
    documents.push("README.md".to_owned());
    documents.sort();
    documents
}

/// All commands that a document shows, in order.
pub fn commands(document: &str) -> Vec<Shown> {
    let lines: Vec<&str> = document.lines().collect();
    let mut found = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        at += 1;
        if lines[at - 1].trim() != "```console" {
            continue;
        }
        while lines.get(at).is_some_and(|line| line.trim() != "```") {
            let first = at;
            at += 1;
            // Other prompts than a shell's, for one.
            let Some(command) = lines[first].strip_prefix("$ ") else { continue };
            let mut command = command.to_owned();
            let quotes = command.starts_with("curl ");
            while command.ends_with('\\') || quotes && command.matches('\'').count() % 2 == 1 {
                command += "\n";
                command += lines.get(at).expect("the command ends");
                at += 1;
            }
            let start = at;
            while lines.get(at).is_some_and(|line| !line.starts_with("$ ") && line.trim() != "```")
            {
                at += 1;
            }
            let output = lines[start..at].join("\n").trim_end().to_owned();
            let end = at - lines[start..at].iter().rev().take_while(|l| l.is_empty()).count();
            found.push(Shown { line: first + 1, command, output_lines: (start, end), output });
        }
    }
    found
}

/// The words of a command line, by the shell's rules for single quotes and for backslashes at the
/// ends of lines.
pub fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quoted = false;
    for c in command.replace("\\\n", " ").chars() {
        match c {
            '\'' => {
                quoted = !quoted;
                word.get_or_insert_default();
            }
            ' ' | '\n' if !quoted => words.extend(word.take()),
            c => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}
