//! Sets of analogies: a is to b as c is to what?
//!
//! The forms in which they come:
//! - Google's questions-words: `: section` lines, and four words a line;
//! - four words a line without sections, or five fields, one of them a tag such as `JJ_JJR` that
//!   names the section, first or last, as the MSR set has them;
//! - BATS: two fields a line, a word and what it becomes, `a b1/b2/…`, where every pair is asked
//!   against every other: a file is a section.
//!
//! Words stand between tabs, commas or white space, the same in the whole file.

use super::EvaluationError;
use super::fields::{Line, Separator, lines, separated, split};
use super::source::Source;

/// Questions that are counted together.
#[derive(Debug, Clone, PartialEq)]
pub struct Section {
    /// Its name.
    pub name: String,
    questions: Questions,
}

#[derive(Debug, Clone, PartialEq)]
enum Questions {
    /// a, b, c and the answer.
    Listed(Vec<[String; 4]>),
    /// Each pair against every other.
    Pairs(Vec<Pair>),
}

#[derive(Debug, Clone, PartialEq)]
struct Pair {
    word: String,
    /// What it becomes, one or more.
    becomes: Vec<String>,
}

/// a is to b as c is to what?
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Question<'a> {
    /// The word b is made of.
    pub a: &'a str,
    /// What a becomes; of several words, the first that the model has is taken.
    pub b: &'a [String],
    /// The word the answer is made of.
    pub c: &'a str,
    /// The answers that are right.
    pub answers: &'a [String],
}

impl Section {
    /// Questions one by one: a, b, c and the answer.
    pub fn listed(name: String, questions: Vec<[String; 4]>) -> Self {
        Self { name, questions: Questions::Listed(questions) }
    }

    /// Number of questions.
    pub fn len(&self) -> usize {
        match &self.questions {
            Questions::Listed(listed) => listed.len(),
            Questions::Pairs(pairs) => pairs.len() * pairs.len().saturating_sub(1),
        }
    }

    /// Whether there is nothing to ask.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// A question by its index. Questions of pairs are only made here, because there are as many as
    /// the square of the pairs.
    ///
    /// # Panics
    /// If there are not that many.
    pub fn question(&self, index: usize) -> Question<'_> {
        match &self.questions {
            Questions::Listed(listed) => {
                let [a, b, c, answer] = &listed[index];
                let one = std::slice::from_ref;
                Question { a, b: one(b), c, answers: one(answer) }
            }
            Questions::Pairs(pairs) => {
                let others = pairs.len() - 1;
                let (first, second) = (index / others, index % others);
                let (from, to) = (&pairs[first], &pairs[second + usize::from(second >= first)]);
                Question { a: &from.word, b: &from.becomes, c: &to.word, answers: &to.becomes }
            }
        }
    }
}

/// Reads the sections of a file.
///
/// # Errors
/// Names the line that can't be read, or can be read in more than one way, and the cure.
pub fn parse(source: &Source) -> Result<Vec<Section>, EvaluationError> {
    if lines(&source.text).any(|(_, line)| line.trim_start().starts_with(':')) {
        return with_sections(source);
    }
    let lines = even_lines(source)?;
    match lines[0].fields.len() {
        2 => Ok(vec![pairs(source, lines)?]),
        4 => {
            let questions = lines.into_iter().map(four).collect();
            Ok(vec![Section::listed(source.name.clone(), questions)])
        }
        _ => tagged(source, lines),
    }
}

/// Google's form.
fn with_sections(source: &Source) -> Result<Vec<Section>, EvaluationError> {
    let mut sections: Vec<(String, Vec<[String; 4]>)> = Vec::new();
    for line in split(&source.text, Separator::WhiteSpace) {
        if let Some(name) = line.fields[0].strip_prefix(':') {
            let mut name = name.to_owned();
            for part in &line.fields[1..] {
                name.push_str(if name.is_empty() { "" } else { " " });
                name.push_str(part);
            }
            if name.is_empty() {
                return Err(
                    source.error(line.number, "the section has no name; write it after the `:`")
                );
            }
            sections.push((name, Vec::new()));
        } else if line.fields.len() != 4 {
            let found = line.fields.len();
            let what = format!("{found} words instead of four: a is to b as c is to d");
            return Err(source.error(line.number, what));
        } else if let Some((_, questions)) = sections.last_mut() {
            questions.push(four(line));
        } else {
            let what = "there is a question before the first section; add a line `: name` above it";
            return Err(source.error(line.number, what));
        }
    }
    if sections.iter().all(|(_, questions)| questions.is_empty()) {
        return Err(source.empty("the sections have no questions; add lines `a b c d` below them"));
    }
    Ok(sections.into_iter().map(|(name, questions)| Section::listed(name, questions)).collect())
}

fn four(line: Line) -> [String; 4] {
    line.fields.try_into().expect("lines of four fields")
}

/// The lines by the separator that gives all of them two, four or five fields; if several do, they
/// must agree on the number.
fn even_lines(source: &Source) -> Result<Vec<Line>, EvaluationError> {
    let empty = "there are no questions; add lines `a b c d`, or pairs `a b`";
    let unknown = "unknown format: there are no `: section` lines, and lines are neither four \
                   words (a b c d), nor four words and a tag, nor a pair (a b), separated by tabs, \
                   commas or spaces";
    let separators = [Separator::Tab, Separator::Comma, Separator::WhiteSpace];
    let is_form = |fields: usize| matches!(fields, 2 | 4 | 5);
    let mut even = separated(source, &separators, is_form, [empty, unknown])?;
    let fields = |lines: &[Line]| lines[0].fields.len();
    if let [(one, some), .., (other, others)] = &even[..]
        && fields(some) != fields(others)
    {
        let what = format!(
            "the file has {} fields separated by {}, but {} by {}; use only one separator",
            fields(some),
            one.name(),
            fields(others),
            other.name()
        );
        return Err(source.error(some[0].number, what));
    }
    Ok(even.swap_remove(0).1)
}

/// Five fields, one of them a tag.
fn tagged(source: &Source, lines: Vec<Line>) -> Result<Vec<Section>, EvaluationError> {
    let is_tag = |field: &String| field.contains('_') && !field.chars().any(char::is_lowercase);
    let are_tags = |index: usize| lines.iter().all(|line| is_tag(&line.fields[index]));
    let index = match (are_tags(0), are_tags(4)) {
        (true, false) => 0,
        (false, true) => 4,
        _ => {
            let what = "lines have five fields, but neither the first nor the last is always a tag such as \
                 JJ_JJR; keep only the four words";
            return Err(source.error(lines[0].number, what));
        }
    };
    let mut sections: Vec<(String, Vec<[String; 4]>)> = Vec::new();
    for mut line in lines {
        let tag = line.fields.remove(index);
        let known = sections.iter().position(|(name, _)| *name == tag);
        let known = known.unwrap_or_else(|| {
            sections.push((tag, Vec::new()));
            sections.len() - 1
        });
        sections[known].1.push(four(line));
    }
    Ok(sections.into_iter().map(|(name, questions)| Section::listed(name, questions)).collect())
}

/// BATS.
fn pairs(source: &Source, lines: Vec<Line>) -> Result<Section, EvaluationError> {
    let mut pairs = Vec::with_capacity(lines.len());
    for mut line in lines {
        let (becomes, word) = (line.fields.remove(1), line.fields.remove(0));
        let becomes: Vec<String> =
            becomes.split('/').filter(|word| !word.is_empty()).map(str::to_owned).collect();
        if word.is_empty() || becomes.is_empty() {
            return Err(source.error(line.number, "one word of the pair is missing; give both"));
        }
        pairs.push(Pair { word, becomes });
    }
    if pairs.len() < 2 {
        return Err(source.empty(
            "there is only one pair; pairs are combined with each other, so give at least \
             two",
        ));
    }
    Ok(Section { name: source.name.clone(), questions: Questions::Pairs(pairs) })
}

#[cfg(test)]
mod tests;
