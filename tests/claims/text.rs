//! Documents taken apart: prose, command lines, numbers between other text.

use std::path::Path;

use pulldown_cmark::{Event, Options, Parser, Tag, TagEnd};

use crate::structure::files;

/// Documents that tell of what was.
const HISTORY: [&str; 2] = ["CHANGELOG.md", "docs/tried.md"];

/// A document.
pub(super) struct Document {
    pub(super) path: String,
    /// All of it; white space is a space.
    pub(super) prose: String,
    /// What is in backticks.
    pub(super) quoted: Vec<String>,
    /// The words of each command line in code, of `kindred` and `cargo`.
    pub(super) commands: Vec<Vec<String>>,
}

/// All documents of the repository but those of what was.
pub(super) fn documents() -> Vec<Document> {
    let is_document = |name: &str| name.ends_with(".md");
    let paths = files::below(&files::top(), Path::new(""), is_document).into_iter();
    let paths = paths.map(|path| path.to_str().expect("UTF-8").to_owned());
    let document = |path: String| {
        let text = read(&path);
        let (quoted, blocks) = code(&text);
        let commands = blocks.iter().chain(&quoted).flat_map(|line| of_programs(line)).collect();
        Document { prose: one_line(&text), quoted, commands, path }
    };
    paths.filter(|path| !HISTORY.contains(&&path[..])).map(document).collect()
}

/// A file of the repository.
pub(super) fn read(path: &str) -> String {
    files::read(&files::top(), Path::new(path))
}

/// Passes each word of a text that has these signs. A word is as many parts as stand together. Most
/// of a text has no such signs, and is passed over quickly.
pub(super) fn words_with(
    text: &str,
    signs: &str,
    is_part: impl Fn(char) -> bool + Copy,
    mut take: impl FnMut(&str),
) {
    let mut rest = text;
    while let Some(at) = rest.find(signs) {
        let start = rest[..at].trim_end_matches(is_part).len();
        let after = rest[at..].trim_start_matches(is_part);
        take(&rest[start..rest.len() - after.len()]);
        rest = after;
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The numbers in a text at the place of `{}` in a pattern, and as they are written.
pub(super) fn numbers(text: &str, pattern: &str) -> Vec<(f64, String)> {
    let (before, after) = pattern.split_once("{}").expect("a pattern has {}");
    let is_part = |c: char| c.is_ascii_alphanumeric() || "._,".contains(c);
    let at = |start: usize| {
        let rest = &text[start..];
        let longest = &rest[..rest.find(|c| !is_part(c)).unwrap_or(rest.len())];
        let ends = (1..=longest.len()).rev().filter(|&end| {
            // Not in the middle of 1,024.
            let goes_on = rest[end..].strip_prefix(',').unwrap_or(&rest[end..]);
            rest[end..].starts_with(after) && !goes_on.starts_with(|c: char| c.is_ascii_digit())
        });
        ends.map(|end| &rest[..end]).find_map(|number| Some((value(number)?, number.to_owned())))
    };
    let starts = text.match_indices(before).map(|(start, _)| start + before.len());
    // A pattern that begins with its number does not begin in the middle of one.
    let starts = starts.filter(|&start| !before.is_empty() || !text[..start].ends_with(is_part));
    starts.filter_map(at).collect()
}

/// 1,024, 65_536, .311, four.
fn value(written: &str) -> Option<f64> {
    const WORDS: [&str; 10] =
        ["zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine"];
    let named = WORDS.iter().position(|word| *word == written).map(|at| at as f64);
    let has_digits = written.bytes().all(|b| b.is_ascii_digit() || b"._,".contains(&b));
    named.or_else(|| if has_digits { written.replace([',', '_'], "").parse().ok() } else { None })
}

/// The number of a line `file: pattern`, which has to stand there once, or several times with one
/// value.
pub(super) fn one_number(line: &str) -> Result<(f64, String), String> {
    let (file, pattern) = line.split_once(": ").expect("a file, a colon, a pattern");
    let found = numbers(&one_line(&read(file)), pattern);
    let first = found.first().ok_or_else(|| format!("{file} has no `{pattern}`"))?;
    let is_one = found.iter().all(|(number, _)| *number == first.0);
    if is_one { Ok(first.clone()) } else { Err(format!("{line} is one of {found:?}")) }
}

/// A number with as many digits as the written one has: 2 of 0.12, 4 of 1,580 and 3 of 594,000.
pub(super) fn rounded_to_the_digits_of(number: f64, written: &str) -> f64 {
    let plain = written.replace([',', '_'], "");
    let step = match plain.split_once('.') {
        Some((_, decimals)) => 0.1_f64.powi(decimals.len() as i32),
        None => 10_f64.powi((plain.len() - plain.trim_end_matches('0').len()) as i32),
    };
    // A half goes either way: so are figures that were rounded twice.
    let (steps, claimed) = (number / step, plain.parse::<f64>().expect("a number"));
    if (steps - claimed / step).abs() <= 0.5 + 1e-6 { claimed } else { steps.round() * step }
}

/// What is in backticks, and the lines of code blocks.
fn code(text: &str) -> (Vec<String>, Vec<String>) {
    let (mut quoted, mut lines) = (Vec::new(), Vec::<String>::new());
    let mut block: Option<String> = None;
    for event in Parser::new_ext(text, Options::ENABLE_TABLES) {
        match event {
            Event::Start(Tag::CodeBlock(_)) => block = Some(String::new()),
            Event::Text(part) => block.iter_mut().for_each(|block| block.push_str(&part)),
            Event::End(TagEnd::CodeBlock) => {
                let code = block.take().expect("it began").replace("\\\n", " ");
                lines.extend(code.lines().map(str::to_owned));
            }
            Event::Code(code) => quoted.push(code.replace('\n', " ")),
            _ => {}
        }
    }
    (quoted, lines)
}

/// The command lines of `kindred` and `cargo` in a line of a shell.
fn of_programs(line: &str) -> Vec<Vec<String>> {
    let mut found: Vec<Vec<String>> = Vec::new();
    // The console's prompt.
    if line.starts_with("kindred>") {
        return found;
    }
    for words in simple_commands(line) {
        let is_setting = |word: &String| {
            let name = word.split('=').next().unwrap_or_default();
            word.contains('=') && name.bytes().all(|b| b.is_ascii_uppercase() || b == b'_')
        };
        let runs_another = ["$", "sudo", "time", "taskset", "nice"];
        let at =
            words.iter().position(|word| !is_setting(word) && !runs_another.contains(&&word[..]));
        let Some(at) = at else { continue };
        let program = words[at].rsplit('/').next().unwrap_or_default();
        if program == "kindred" || program == "cargo" {
            let mut words = words[at..].to_vec();
            words[0] = program.to_owned();
            found.push(words);
        }
    }
    found
}

/// The words of each simple command in a line of a shell; without comments and redirections.
fn simple_commands(line: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote) = (None::<String>, None::<char>);
    let mut is_redirected = false;
    for c in line.chars().chain(['\n']) {
        match (quote, c) {
            (Some(q), c) if c == q => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => break,
            (None, ' ' | '\n' | '|' | ';' | '&' | '<' | '>') => {
                if let Some(word) = word.take()
                    && !std::mem::take(&mut is_redirected)
                {
                    commands.last_mut().expect("one at least").push(word);
                }
                match c {
                    '|' | ';' | '&' => commands.push(Vec::new()),
                    '<' | '>' => is_redirected = true,
                    _ => {}
                }
            }
            // What may be left out.
            (None, '[' | ']') => {}
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    commands.last_mut().expect("one at least").extend(word);
    commands.retain(|words| !words.is_empty());
    commands
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_between_other_text() {
        let text = "at most 1,024 of them, at most four, at most 7. At most x; (.311 with) 0.12 ms";
        assert_eq!(numbers(text, "at most {}").len(), 3);
        assert_eq!(numbers(text, "at most {} of"), [(1024.0, "1,024".to_owned())]);
        assert_eq!(numbers(text, "at most {}."), [(7.0, "7".to_owned())]);
        assert_eq!(numbers(text, "({} with)"), [(0.311, ".311".to_owned())]);
        assert_eq!(numbers(text, "up to {}"), []);
        for (number, written, is_right) in [
            (0.125, "0.12", true),
            (0.131, "0.12", false),
            (1579.5, "1,580", true),
            (1579.5, "1,590", false),
            (593_604.0, "594,000", true),
            (593_604.0, "593,000", false),
        ] {
            let rounded = rounded_to_the_digits_of(number, written);
            let written = value(written).unwrap();
            assert_eq!((rounded - written).abs() < 1e-9 * written, is_right, "{number} {written}");
        }
    }

    #[test]
    fn words_have_all_their_parts() {
        let mut found = Vec::new();
        let is_part = |c: char| c.is_ascii_lowercase() || c == '_';
        words_with("_a é_b, c_d_Ef x x_ü__", "_", is_part, |word| found.push(word.to_owned()));
        assert_eq!(found, ["_a", "_b", "c_d_", "x_", "__"]);
    }

    #[test]
    fn command_lines_are_taken_apart() {
        let text = "`kindred eval DIR`, `not kindred`\n\n    \
                    $ X=1 target/debug/kindred nearest 'a b' -k 3  # why\n    \
                    zcat x | kindred bulk classify --in - \\\n      \
                    --out - > y && cargo test -p cli x::\n";
        let (quoted, blocks) = code(text);
        let lines = quoted.iter().chain(&blocks).flat_map(|line| of_programs(line));
        let found: Vec<String> = lines.map(|words| words.join("|")).collect();
        assert_eq!(
            found,
            [
                "kindred|eval|DIR",
                "kindred|nearest|a b|-k|3",
                "kindred|bulk|classify|--in|-|--out|-",
                "cargo|test|-p|cli|x::"
            ]
        );
    }
}
