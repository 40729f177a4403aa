//! Sets of word pairs with the similarity that people saw in them: WordSim-353, SimLex-999, MEN,
//! RG-65 and similar files.
//!
//! A line has two words and a score, with tabs, semicolons, commas or white space between them. A
//! first line that names the columns may say which is which; without one, the words are the two
//! columns of text and the score is the only column of numbers. What could be read in two ways is
//! refused.

use super::EvaluationError;
use super::fields::{Line, Separator, separated};
use super::source::Source;

/// Two words and how similar people find them.
#[derive(Debug, Clone, PartialEq)]
pub struct Pair {
    /// The words, as written.
    pub words: [String; 2],
    /// Higher is more similar; the scale does not matter.
    pub score: f64,
}

/// Names of columns of words, in lower case, only letters and digits.
const WORDS: [[&str; 2]; 3] = [["word1", "word2"], ["w1", "w2"], ["worda", "wordb"]];

/// Names of columns of scores.
const SCORES: [&str; 8] =
    ["simlex999", "score", "humanmean", "human", "similarity", "mean", "rating", "average"];

/// Reads a set.
///
/// # Errors
/// Names the line that can't be read, or can be read in more than one way, and the cure.
pub fn parse(source: &Source) -> Result<Vec<Pair>, EvaluationError> {
    let lines = even_lines(source)?;
    // The first line may be a header; the second shows which columns are numbers.
    let example = lines.get(1).unwrap_or(&lines[0]);
    let numbers: Vec<usize> =
        (0..example.fields.len()).filter(|&column| is_number(&example.fields[column])).collect();
    if numbers.is_empty() {
        let what = "the line has no number; give each pair a score: word, word, score";
        return Err(source.error(example.number, what));
    }
    let first = &lines[0];
    let has_header = numbers.iter().any(|&column| !is_number(&first.fields[column]));
    let header: Vec<String> = if has_header {
        first.fields.iter().map(|name| simple(name)).collect()
    } else {
        Vec::new()
    };
    if has_header && !header.iter().any(|name| names_a_column(name)) {
        let what = "the line has no score and is not a header; add a score, or make it the header `word1`, \
             `word2`, `score`";
        return Err(source.error(first.number, what));
    }
    let words = word_columns(source, example, &header, &numbers)?;
    let score = score_column(source, example, &header, &numbers)?;
    let pair = |line: &Line| {
        let score = &line.fields[score];
        let number = score.parse().ok().filter(|number: &f64| number.is_finite());
        let Some(score) = number else {
            let what = format!("the pair's score `{score}` is not a number");
            return Err(source.error(line.number, what));
        };
        let words = words.map(|column| line.fields[column].clone());
        if words.iter().any(String::is_empty) {
            return Err(source.error(line.number, "a word is missing; each pair needs two"));
        }
        Ok(Pair { words, score })
    };
    lines[usize::from(has_header)..].iter().map(pair).collect()
}

/// The lines by the separator that gives all of them the same number of fields, at least three.
fn even_lines(source: &Source) -> Result<Vec<Line>, EvaluationError> {
    let empty = "there are no pairs; add a line `word word score` for each";
    let unknown = "the line has fewer than three fields; give two words and a score, separated by \
                   tabs, commas or spaces";
    let separators =
        [Separator::Tab, Separator::Semicolon, Separator::Comma, Separator::WhiteSpace];
    Ok(separated(source, &separators, |fields| fields >= 3, [empty, unknown])?.swap_remove(0).1)
}

fn word_columns(
    source: &Source,
    example: &Line,
    header: &[String],
    numbers: &[usize],
) -> Result<[usize; 2], EvaluationError> {
    let column = |name: &str| header.iter().position(|column| column == name);
    for [one, other] in WORDS {
        if let (Some(one), Some(other)) = (column(one), column(other)) {
            return Ok([one, other]);
        }
    }
    let texts: Vec<usize> =
        (0..example.fields.len()).filter(|column| !numbers.contains(column)).collect();
    if let [one, other] = texts[..] {
        return Ok([one, other]);
    }
    let what = format!(
        "there are {} text columns, so the words are ambiguous; add a header line with `word1`, `word2` and \
         `score`, or remove the other columns",
        texts.len()
    );
    Err(source.error(example.number, what))
}

fn score_column(
    source: &Source,
    example: &Line,
    header: &[String],
    numbers: &[usize],
) -> Result<usize, EvaluationError> {
    if let [score] = numbers[..] {
        return Ok(score);
    }
    let is_score =
        |&&column: &&usize| header.get(column).is_some_and(|name| SCORES.contains(&name.as_str()));
    let named: Vec<&usize> = numbers.iter().filter(is_score).collect();
    if let [score] = named[..] {
        return Ok(*score);
    }
    let what = format!(
        "there are {} number columns{}, so the score is ambiguous; add a header line that names one `score`, \
         or remove the others",
        numbers.len(),
        if named.is_empty() { "" } else { ", several of them named as scores" }
    );
    Err(source.error(example.number, what))
}

fn is_number(field: &str) -> bool {
    field.parse().is_ok_and(f64::is_finite)
}

fn simple(name: &str) -> String {
    name.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

fn names_a_column(name: &str) -> bool {
    SCORES.contains(&name) || WORDS.iter().flatten().any(|known| name == *known)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &str) -> Source {
        Source { file: "set.txt".into(), name: "set".into(), text: text.into() }
    }

    fn read(text: &str) -> Vec<(String, String, f64)> {
        let pairs = parse(&source(text)).unwrap_or_else(|e| panic!("{text:?}: {e}"));
        let flat = |Pair { words: [one, other], score }| (one, other, score);
        pairs.into_iter().map(flat).collect()
    }

    fn error(text: &str) -> String {
        parse(&source(text)).unwrap_err().to_string()
    }

    #[test]
    fn the_forms_of_the_standard_sets_are_read() {
        let expected = vec![
            ("old".to_owned(), "new".to_owned(), 1.58),
            ("gem".to_owned(), "jewel".to_owned(), 9.0),
        ];
        for text in [
            "old\tnew\t1.58\r\ngem\tjewel\t9\r\n",
            "old new 1.58\ngem   jewel 9.00\n",
            "old;new;1.58\ngem;jewel;9\n",
            "Word 1,Word 2,Human (mean)\nold,new,1.58\ngem,jewel,9\n",
            "word1,word2,score\n\"old\",\"new\",1.58\n\n\"gem\",\"jewel\",9\n",
            "# Word 1\tWord 2\tHuman (Mean)\nold\tnew\t1.58\ngem\tjewel\t9\n",
            // SimLex-999 as it is published, and WordSim-353 with its relation first.
            "word1\tword2\tPOS\tSimLex999\tconc(w1)\tSD(SimLex)\nold\tnew\tA\t1.58\t2.72\t0.41\n\
             gem\tjewel\tN\t9\t2.75\t0.67\n",
            "relation\tword1\tword2\tscore\nt\told\tnew\t1.58\nS\tgem\tjewel\t9\n",
        ] {
            assert_eq!(read(text), expected, "{text}");
        }
        assert_eq!(read("new york\tcity\t3")[0].0, "new york");
    }

    #[test]
    fn what_could_be_read_in_two_ways_is_refused_with_the_cure() {
        for (text, parts) in [
            ("old new A 1.58\ngem jewel N 9", &["line 2", "3 text columns", "`word1`"][..]),
            ("old new 1.58 2.7\ngem jewel 9 2.7", &["line 2", "2 number columns", "`score`"]),
            (
                "word1 word2 score mean\nold new 1.58 2.7\n",
                &["line 2", "several of them named as scores"],
            ),
            ("old new oops\ngem jewel 9", &["line 1", "the line has no score", "`word2`"]),
        ] {
            let error = error(text);
            assert!(error.starts_with("set.txt, "), "{error}");
            assert!(parts.iter().all(|part| error.contains(part)), "{text:?}: {error}");
        }
    }

    #[test]
    fn what_can_not_be_read_is_named_by_its_line() {
        for (text, part) in [
            ("", "set.txt: there are no pairs"),
            ("old new\ngem jewel", "line 1: the line has fewer than three fields"),
            ("old new 1\n\ngem jewel\n", "line 3: the line has 2 fields, but the first line has 3"),
            ("old new low\ngem jewel high\n", "line 2: the line has no number"),
            (
                "old new 1\ngem jewel 2\ncar auto inf\n",
                "line 3: the pair's score `inf` is not a number",
            ),
            ("old,new,1\ngem,,2\n", "line 2: a word is missing"),
        ] {
            assert!(error(text).contains(part), "{text:?}: {}", error(text));
        }
    }
}
