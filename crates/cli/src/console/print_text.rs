//! Prints what heads find in texts: labels, or terms.

use std::io::{self, Write};

use kindred::ImpliedTerm;
use kindred::heads::{Explanation, NGram};

use super::answer::{Found, Label, TextAnswer};
use super::print::{CYAN, Form, bar, padded, widest};
use super::service::Reply;
use server::escape::escaped;

impl Form {
    /// Prints what a head finds in a text.
    pub(super) fn of_text(
        self,
        out: &mut dyn Write,
        asked: &str,
        line: Option<u64>,
        reply: &Reply<TextAnswer<'_>>,
    ) -> io::Result<()> {
        self.answer(out, asked, line, reply, None, |out| match self.terminal {
            true => self.found(out, &reply.answer),
            false => self.columns_of_text(out, (asked, line), &reply.answer),
        })
    }

    fn found(self, out: &mut dyn Write, answer: &TextAnswer<'_>) -> io::Result<()> {
        let TextAnswer { found, unknown, cut, explanation, .. } = answer;
        match found {
            Found::Labels(labels) => self.labels(out, labels, explanation.as_ref())?,
            Found::Terms(terms) => self.terms(out, terms)?,
        }
        self.left_out(out, None, Some(unknown))?;
        if *cut {
            writeln!(out, "   the text was too long; a part of it was left out")?;
        }
        Ok(())
    }

    fn labels(
        self,
        out: &mut dyn Write,
        labels: &[Label],
        explanation: Option<&Explanation<'_>>,
    ) -> io::Result<()> {
        let names: Vec<String> = labels.iter().map(|one| escaped(&one.label)).collect();
        let wide = widest(&names);
        for (name, Label { probability, .. }) in names.iter().zip(labels) {
            let (name, bar) = (padded(name, wide), self.coloured(CYAN, &bar(*probability)));
            writeln!(out, "   {name}  {:5.1} %  {bar}", 100.0 * probability)?;
        }
        for line in explanation.into_iter().flat_map(explanation_lines) {
            writeln!(out, "   {}", escaped(&line))?;
        }
        Ok(())
    }

    /// Prints a line for each term: its place, the term, its weight, and the token that gave it.
    fn terms(self, out: &mut dyn Write, terms: &[ImpliedTerm]) -> io::Result<()> {
        if terms.is_empty() {
            writeln!(out, "   no terms: none has a weight above 0")?;
        }
        let starts = self.ranking(terms.iter().map(|one| (one.word.as_str(), one.weight)));
        let tokens = terms.iter().map(|one| one.token.text.as_deref().unwrap_or_default());
        let tokens: Vec<String> = tokens.map(escaped).collect();
        let (wide, largest) = (widest(&tokens), terms.first().map_or(1.0, |first| first.weight));
        for ((start, token), ImpliedTerm { weight, .. }) in starts.iter().zip(&tokens).zip(terms) {
            let (token, bar) = (padded(token, wide), bar(weight / largest));
            writeln!(out, "{start}  from {token}  {}", self.coloured(CYAN, &bar))?;
        }
        Ok(())
    }
}

/// An explanation for people. Nothing is escaped yet.
pub(crate) fn explanation_lines(explanation: &Explanation<'_>) -> Vec<String> {
    let Explanation { label, ngrams, others, base, .. } = explanation;
    let ngram = |NGram { text, share, .. }: &NGram<'_>| format!("{share:+7.3}  {text}");
    let mut lines = vec![format!("{label} because of")];
    lines.extend(ngrams.iter().map(ngram));
    lines.push(format!("{others:+7.3}  other n-grams"));
    lines.push(format!("{base:+7.3}  without the text"));
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn terms_are_in_columns_and_nothing_steers_the_terminal() {
        let term = |term: &str, weight: f64, token: &str| json!({"term": term, "weight": weight, "token": {"position": 0, "text": token, "start": 0, "end": 1}});
        let terms = [
            term("日本", 0.5, "日"),
            term("a\u{1b}[2J", 0.25, "b\u{1b}[2J"),
            term("toad", 1.0 / 3.0, "frog"),
        ];
        let body = json!({"model": "m", "version": "v", "head": "h", "terms": terms, "unknown": ["q\u{1b}"], "cut": true});
        let answer = serde_json::from_value(body).unwrap();
        let answered: Reply<TextAnswer<'_>> = Reply { answer, times: None };
        let print = |form: Form, line| {
            let mut out = Vec::new();
            form.of_text(&mut out, "frog", line, &answered).unwrap();
            String::from_utf8(out).unwrap()
        };
        let (terminal, pipe) = (Form::test(true), Form::test(false));
        let text = print(terminal, None);
        assert!(!text.contains('\u{1b}') && text.contains(r"a\u{1b}[2J"), "{text}");
        let column = |part: &str| -> Vec<usize> {
            let widths = text.lines().take(3).map(|line| {
                unicode_width::UnicodeWidthStr::width(&line[..line.find(part).expect("a column")])
            });
            widths.collect()
        };
        for part in ["0.", "from ", "█"] {
            assert_eq!(column(part), [column(part)[0]; 3], "{text}");
        }
        assert!(text.contains("unknown: q") && text.contains("too long"), "{text}");
        let text = print(pipe, Some(1));
        assert!(text.contains("frog\ttoad\t0.3333333333333333\tfrog\n"), "{text}");
        let none =
            serde_json::from_str(r#"{"model": "m", "version": "v", "head": "h", "terms": []}"#)
                .unwrap();
        let mut out = Vec::new();
        let none = Reply { answer: none, times: None };
        terminal.of_text(&mut out, "frog", None, &none).unwrap();
        assert_eq!(String::from_utf8(out).unwrap(), "   no terms: none has a weight above 0\n");
    }
}
