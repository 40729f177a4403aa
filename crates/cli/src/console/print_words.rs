//! Prints comparisons of words: a table on a terminal, tab-separated columns elsewhere.

use std::io::{self, Write};

use kindred::Placed;

use super::answer::{OddAnswer, RankAnswer, SimilarityAnswer};
use super::columns::tab_separated;
use super::print::{CYAN, Form, bar, padded, widest};
use server::escape::escaped;

impl Form {
    /// Prints the score of two words or sets.
    pub(super) fn similarity(
        self,
        out: &mut dyn Write,
        [left, right]: &[String; 2],
        answer: &SimilarityAnswer<'_>,
    ) -> io::Result<()> {
        for pair in &answer.results {
            let score = pair.score;
            if self.terminal {
                let bar = self.coloured(CYAN, &bar(score));
                writeln!(out, "   {}  {}  {score:.6}  {bar}", escaped(left), escaped(right))?;
            } else {
                writeln!(out, "{}", tab_separated([&**left, &**right, &*score.to_string()]))?;
            }
            self.of_subwords(out, None, pair.subwords.as_deref())?;
            self.left_out(out, None, pair.skipped.as_deref())?;
        }
        Ok(())
    }

    /// Prints words by their similarity to all of them, and which is the odd one.
    pub(super) fn odd_one_out(self, out: &mut dyn Write, answer: &OddAnswer<'_>) -> io::Result<()> {
        let scored = answer.ranked.iter().map(|one| (&*one.word, one.score));
        for (start, one) in self.ranking(scored).iter().zip(&answer.ranked) {
            if self.terminal {
                writeln!(out, "{start}  {}", self.coloured(CYAN, &bar(one.score)))?;
            } else {
                let row = one.row.map_or_else(String::new, |row| row.to_string());
                let score = one.score.to_string();
                writeln!(out, "{}", tab_separated([&*one.word, &*score, &*row]))?;
            }
        }
        if self.terminal {
            writeln!(out, "   the odd one is {}", escaped(&answer.odd_one_out))?;
        }
        self.of_subwords(out, None, answer.subwords.as_deref())?;
        self.left_out(out, None, answer.skipped.as_deref())
    }

    /// Prints words with their ranks.
    pub(super) fn ranks(self, out: &mut dyn Write, answer: &RankAnswer<'_>) -> io::Result<()> {
        let names: Vec<String> = answer.ranked.iter().map(|one| escaped(&one.word)).collect();
        let wide = widest(&names);
        for (name, Placed { word, row, score, rank }) in names.iter().zip(&answer.ranked) {
            if self.terminal {
                let name = padded(name, wide);
                match (rank, score) {
                    (Some(rank), Some(score)) => {
                        writeln!(out, "   {name}  rank {rank:<9}  {score:.6}  row {row}")?;
                    }
                    _ => writeln!(
                        out,
                        "   {name}  no rank: a filter excludes it, or its vector is zero"
                    )?,
                }
                continue;
            }
            let rank = rank.map_or_else(String::new, |rank| rank.to_string());
            let score = score.map_or_else(String::new, |score| score.to_string());
            writeln!(out, "{}", tab_separated([&**word, &*rank, &*score, &*row.to_string()]))?;
        }
        self.of_subwords(out, None, answer.subwords.as_deref())?;
        self.left_out(out, None, answer.skipped.as_deref())
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn printed(print: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> String {
        let mut out = Vec::new();
        print(&mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_have_all_digits_and_nothing_steers_the_terminal() {
        let (terminal, pipe) = (Form::test(true), Form::test(false));
        let body = json!({"model": "m", "version": "v", "results": [{"score": 1.0 / 3.0}]});
        let answer: SimilarityAnswer<'_> = serde_json::from_value(body).unwrap();
        let sides = ["a\tb".to_owned(), "\u{1b}[2J".to_owned()];
        let text = printed(|out| pipe.similarity(out, &sides, &answer));
        assert_eq!(text, "a\\u{9}b\t\\u{1b}[2J\t0.3333333333333333\n");
        let text = printed(|out| terminal.similarity(out, &sides, &answer));
        assert!(text.contains("0.333333  ██████▋") && !text.contains('\u{1b}'), "{text}");

        let one =
            |word: &str, score: f64, row: u32| json!({"word": word, "score": score, "row": row});
        let ranked = [one("日本", 0.75, 3), one("b", 0.1 + 0.2, 0)];
        let body = json!({"model": "m", "version": "v", "odd_one_out": "b", "ranked": ranked});
        let answer: OddAnswer<'_> = serde_json::from_value(body).unwrap();
        let text = printed(|out| pipe.odd_one_out(out, &answer));
        assert_eq!(text, "日本\t0.75\t3\nb\t0.30000000000000004\t0\n");
        let text = printed(|out| terminal.odd_one_out(out, &answer));
        assert!(text.ends_with("   the odd one is b\n"), "{text}");

        let ranked = json!([{"word": "a", "row": 7, "score": 0.5, "rank": 12},
            {"word": "b", "row": 8, "score": null, "rank": null}]);
        let body = json!({"model": "m", "version": "v", "ranked": ranked});
        let answer: RankAnswer<'_> = serde_json::from_value(body).unwrap();
        assert_eq!(printed(|out| pipe.ranks(out, &answer)), "a\t12\t0.5\t7\nb\t\t\t8\n");
        let text = printed(|out| terminal.ranks(out, &answer));
        assert!(text.contains("a  rank 12 ") && text.contains("b  no rank: a filter"), "{text}");
    }
}
