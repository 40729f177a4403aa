//! Prints answers as tab-separated columns, for other programs: where standard output is no
//! terminal. Everything else, such as times, goes to standard error.

use std::io::{self, Write};

use kindred::Answer;
use kindred::heads::{Explanation, NGram};

use super::answer::{Found, Label, TextAnswer};
use super::print::{Form, NO_NEIGHBORS, note, placed_in_words, terms_in_words};
use server::escape::escaped;

/// A question, and the number of its line if it came from a pipe.
type Question<'a> = (&'a str, Option<u64>);

impl Form {
    /// Prints a line for each neighbour: the question, if there may be several, the word, its score
    /// and its row; its text, if that is wanted; attributes that are wanted as a JSON object; with
    /// an explanation, also what each word contributes.
    pub(super) fn columns_of_neighbors(
        self,
        out: &mut dyn Write,
        question: Question<'_>,
        answer: &Answer<'_>,
    ) -> io::Result<()> {
        for neighbor in &answer.neighbors {
            let (score, row) = (neighbor.score.to_string(), neighbor.row.to_string());
            let text = neighbor.text.as_ref().map(|text| text.as_str().unwrap_or_default());
            let attributes = neighbor.attributes.as_ref();
            let attributes = attributes.map(|all| serde_json::json!(all).to_string());
            let terms = neighbor.terms.as_deref().map(terms_in_words);
            let [word, attributes] = [Some(&*neighbor.word), attributes.as_deref()];
            let columns = [word, Some(&*score), Some(&*row), text, attributes, terms.as_deref()];
            write_columns(out, question, columns)?;
        }
        let (_, line) = question;
        if answer.neighbors.is_empty() {
            note(line, NO_NEIGHBORS);
        }
        answer.inputs.iter().flatten().for_each(|placed| note(line, &placed_in_words(placed)));
        self.of_subwords(out, line, answer.subwords.as_deref())?;
        self.of_tokens(out, line, answer.tokens)?;
        self.left_out(out, line, answer.skipped.as_deref())
    }

    /// Prints a line for each label or term of a text: the text, if there may be several, the label
    /// or term, and its probability or weight; of a term also the token that gave it, and with an
    /// explanation of a label the n-grams that decided.
    pub(super) fn columns_of_text(
        self,
        out: &mut dyn Write,
        question: Question<'_>,
        answer: &TextAnswer<'_>,
    ) -> io::Result<()> {
        match &answer.found {
            Found::Labels(labels) => {
                for Label { label, probability } in labels {
                    let probability = probability.to_string();
                    let why = answer.explanation.as_ref().map(|why| reasons(why, label));
                    let columns = [Some(&**label), Some(&*probability), why.as_deref()];
                    write_columns(out, question, columns)?;
                }
            }
            Found::Terms(terms) => {
                for term in terms {
                    let weight = term.weight.to_string();
                    let token = term.token.text.as_deref();
                    write_columns(out, question, [Some(&*term.word), Some(&*weight), token])?;
                }
            }
        }
        let (_, line) = question;
        self.left_out(out, line, Some(&answer.unknown))?;
        if answer.cut {
            note(line, "the text was too long; a part of it was left out");
        }
        Ok(())
    }
}

/// The n-grams that decided for this label, each with its share; nothing for other labels.
pub(crate) fn reasons(why: &Explanation<'_>, label: &str) -> String {
    if why.label != label {
        return String::new();
    }
    let reason = |NGram { text, share, .. }: &NGram<'_>| format!("{text} {share:+.3}");
    why.ngrams.iter().map(reason).collect::<Vec<_>>().join(", ")
}

/// Writes a line. A question from a pipe is its first column, because there may be several.
fn write_columns<const N: usize>(
    out: &mut dyn Write,
    (asked, line): Question<'_>,
    columns: [Option<&str>; N],
) -> io::Result<()> {
    let columns = columns.into_iter().flatten();
    writeln!(out, "{}", tab_separated(line.map(|_| asked).into_iter().chain(columns)))
}

/// Columns as a line, without its end. None has a tab or a line's end in it: those are escaped.
pub(crate) fn tab_separated<'a>(columns: impl IntoIterator<Item = &'a str>) -> String {
    columns.into_iter().map(escaped).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_column_never_ends_early() {
        assert_eq!(tab_separated(["a\tb\nc", "0.5", "d"]), "a\\u{9}b\\u{a}c\t0.5\td");
    }

    #[test]
    fn each_neighbour_is_a_line_and_a_question_from_a_pipe_its_first_column() {
        let terms = json!([{"word": "b", "weight": -1.0, "cosine": 0.5, "contribution": -0.25}]);
        let found: Answer<'_> = serde_json::from_value(json!({"neighbors": [
            {"word": "new\tyork", "score": 1.0 / 3.0, "row": 7, "terms": terms},
            {"word": "toad", "score": -0.0, "row": 0},
        ]}))
        .unwrap();
        let print = |line| {
            let mut out = Vec::new();
            Form::test(false).columns_of_neighbors(&mut out, ("a b", line), &found).unwrap();
            String::from_utf8(out).unwrap()
        };
        let expected = "new\\u{9}york\t0.3333333333333333\t7\tb -0.2500\ntoad\t-0\t0\n";
        assert_eq!(print(None), expected);
        let expected = expected.replace("new", "a b\tnew").replace("toad", "a b\ttoad");
        assert_eq!(print(Some(3)), expected);
    }

    #[test]
    fn each_label_and_each_term_is_a_line() {
        let print = |answer: serde_json::Value| {
            let answer: TextAnswer<'_> = serde_json::from_value(answer).unwrap();
            let mut out = Vec::new();
            Form::test(false).columns_of_text(&mut out, ("t", Some(1)), &answer).unwrap();
            String::from_utf8(out).unwrap()
        };
        let ngram = json!({"text": "a b", "start": 0, "end": 3, "share": -0.25});
        let labels = print(json!({"model": "m", "version": "v", "head": "h",
            "labels": [{"label": "p", "probability": 0.75}, {"label": "n", "probability": 0.25}],
            "explanation": {"label": "p", "score": 1.0, "base": 0.0, "ngrams": [ngram],
                "others": 0.0, "exact": true}}));
        assert_eq!(labels, "t\tp\t0.75\ta b -0.250\nt\tn\t0.25\t\n");
        let token = json!({"position": 0, "text": "x", "start": 0, "end": 1});
        let terms = print(json!({"model": "m", "version": "v", "head": "h",
            "terms": [{"term": "y", "weight": 0.5, "token": token}], "unknown": ["q"]}));
        assert_eq!(terms, "t\ty\t0.5\tx\n");
    }
}
