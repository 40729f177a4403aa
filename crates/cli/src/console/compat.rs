//! The input format of the 2020 report's program: `bottle 0`, `snake 1`, `king - queen ! 0`.

use kindred::Target;
use kindred::question::WordWithWeight;

use crate::error::CommandError;

const FORM: &str = "lines must be WORD FLAG or WORD + WORD - WORD ! FLAG; flag 0 runs the engine only, flag 1 \
     also the sequential CPU search: `bottle 0`, `snake 1`, `king - queen ! 0`";

/// Parses a line: its question, and whether to compare the answer with the reference's.
pub(super) fn read(line: &str) -> Result<(Target, bool), CommandError> {
    let bad = || CommandError::BadLine(format!("`{}`: {FORM}", line.trim()));
    let words: Vec<&str> = line.split_whitespace().collect();
    let (flag, words) = words.split_last().ok_or_else(bad)?;
    let compared = match *flag {
        "0" => false,
        "1" => true,
        _ => return Err(bad()),
    };
    let question = match words {
        [word] => Target::word(*word),
        [first, rest @ .., "!"] if rest.len() % 2 == 0 => {
            let term = |word: &str, weight| WordWithWeight { word: word.to_owned(), weight };
            let mut sum = vec![term(first, 1.0)];
            for pair in rest.chunks_exact(2) {
                let weight = match pair[0] {
                    "+" => 1.0,
                    "-" => -1.0,
                    _ => return Err(bad()),
                };
                sum.push(term(pair[1], weight));
            }
            Target::sum(sum, Vec::new())?
        }
        _ => return Err(bad()),
    };
    Ok((question, compared))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lines_of_the_report_are_read() {
        let nearest = |word: &str| Target::word(word);
        let sum = |words: &[(&str, f64)]| {
            let term = |&(word, weight): &(&str, f64)| WordWithWeight { word: word.into(), weight };
            Target::Words(words.iter().map(term).collect())
        };
        for (line, expected) in [
            ("bottle 0", (nearest("bottle"), false)),
            ("snake 1\r", (nearest("snake"), true)),
            ("0 1", (nearest("0"), true)),
            ("! 0", (nearest("!"), false)),
            ("king - queen ! 0", (sum(&[("king", 1.0), ("queen", -1.0)]), false)),
            ("a - b + c ! 1", (sum(&[("a", 1.0), ("b", -1.0), ("c", 1.0)]), true)),
        ] {
            assert_eq!(read(line).unwrap(), expected, "{line}");
        }
    }

    #[test]
    fn anything_else_is_an_error_that_shows_the_form() {
        for line in [
            "",
            "bottle",
            "bottle 2",
            "0",
            "a b 0",
            "king - queen 0",
            "king - ! 0",
            "a * b ! 0",
            ":k 5",
        ] {
            let said = read(line).unwrap_err().to_string();
            assert!(said.contains("king - queen ! 0"), "{line}: {said}");
        }
    }
}
