//! Asks the questions of a set through the queue, beside other callers, and counts right answers.

use std::collections::BTreeMap;
use std::time::Instant;

use contract::analogy::analogy_sum;
use contract::{
    Filter, Hit, Query, QueryVector, Row, RowSet, Scoring, ScoringError, TableRows, WeightedWord,
};

use super::analogies::{Question, Section};
use super::results::{AnalogyResult, Case, MethodResult, SectionResult, SimilarityResult};
use super::similarities::Pair;
use super::spearman::spearman;
use crate::Error;
use crate::asking::Asking;
use crate::method::Method;
use crate::queue::SubmitError;
use crate::rows::Rows;

/// Longer words, in bytes, are looked up as they are written only: no model has them in another
/// case either.
const LONGEST_FOLDED: usize = 4096;

/// How many questions are asked together: they fill a pass of an engine on the CPU. Each chunk
/// waits until the one before is answered. So other callers' turns come in between, and no
/// evaluation takes more slots than one chunk.
const TOGETHER: usize = 256;

/// A model, and how it is asked.
pub(crate) struct Evaluation<'a> {
    pub(crate) model: &'a dyn Rows,
    /// How words are looked up.
    pub(crate) case: Case,
    /// The methods that analogies are answered by.
    pub(crate) methods: &'a [Method],
}

/// A question whose words the model has.
struct KnownQuestion {
    a: Row,
    b: Row,
    c: Row,
    answers: Vec<Row>,
}

impl Evaluation<'_> {
    /// Asks all questions of a set by all methods. A question with a word that the model does not
    /// have is wrong, and so is one that has no answer by a method, such as PairDirection if a is
    /// b. The three words themselves are no answers. `progress` gets the number of questions that
    /// were asked since its last call.
    pub(crate) async fn analogies(
        &self,
        asking: Asking<'_>,
        set: &str,
        sections: &[Section],
        mut progress: impl FnMut(usize),
    ) -> Result<AnalogyResult, SubmitError> {
        let mut results = Vec::with_capacity(sections.len());
        for section in sections {
            results.push(self.section(asking, section, &mut progress).await?);
        }
        let mut total = SectionResult { name: "total".into(), ..SectionResult::default() };
        for result in &results {
            total.questions += result.questions;
            total.in_vocabulary += result.in_vocabulary;
            for (&method, result) in &result.methods {
                let sum = total.methods.entry(method).or_default();
                sum.right += result.right;
                sum.seconds += result.seconds;
            }
        }
        for result in total.methods.values_mut() {
            result.accuracy = part(result.right, total.questions);
        }
        Ok(AnalogyResult { set: set.to_owned(), sections: results, total })
    }

    async fn section(
        &self,
        asking: Asking<'_>,
        section: &Section,
        progress: &mut impl FnMut(usize),
    ) -> Result<SectionResult, SubmitError> {
        let (mut in_vocabulary, mut methods) = (0, BTreeMap::new());
        for start in (0..section.len()).step_by(TOGETHER) {
            let end = section.len().min(start + TOGETHER);
            let batch: Vec<KnownQuestion> =
                (start..end).filter_map(|index| self.look_up(section.question(index))).collect();
            in_vocabulary += batch.len();
            for &method in self.methods {
                let started = Instant::now();
                let right = self.right(asking, method, &batch).await?;
                let result: &mut MethodResult = methods.entry(method).or_default();
                result.right += right;
                result.seconds += started.elapsed().as_secs_f64();
                progress(end - start);
            }
        }
        for result in methods.values_mut() {
            result.accuracy = part(result.right, section.len());
        }
        let (name, questions) = (section.name.clone(), section.len());
        Ok(SectionResult { name, questions, in_vocabulary, methods })
    }

    /// Checks that the model can be asked by these methods.
    ///
    /// # Errors
    /// [`Error::MethodMismatch`] for 3CosMul and PairDirection under the metric `dot`.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let usable = Method::under(self.model.metric());
        match self.methods.iter().find(|method| !usable.contains(method)) {
            None => Ok(()),
            Some(method) => {
                let error = ScoringError::NotUnderDot { formula: method.name() };
                Err(Error::MethodMismatch { reason: error.to_string() })
            }
        }
    }

    /// How many of these questions a method answers right.
    async fn right(
        &self,
        asking: Asking<'_>,
        method: Method,
        batch: &[KnownQuestion],
    ) -> Result<usize, SubmitError> {
        // A chunk without queries does not reach the queue, which checks deadlines.
        if Instant::now() >= asking.deadline {
            return Err(SubmitError::DeadlinePassed);
        }
        let table = self.model.table();
        let live = self.model.live();
        let query = |asked| Some((asked, KnownQuestion::query(asked, &table, &live, method)?));
        let (asked, queries): (Vec<_>, Vec<_>) = batch.iter().filter_map(query).unzip();
        let found = asking.search(queries).await?;
        let is_right = |(asked, hits): &(&KnownQuestion, Vec<Hit>)| {
            hits.first().is_some_and(|best| asked.answers.contains(&best.row))
        };
        Ok(asked.into_iter().zip(found.responses).filter(is_right).count())
    }

    /// Compares the model's cosine similarities of the pairs of a set with people's scores.
    pub(crate) fn similarities(&self, set: &str, pairs: &[Pair]) -> SimilarityResult {
        let table = self.model.table();
        let compared = |pair: &Pair| {
            let (one, other) = (self.row(&pair.words[0])?, self.row(&pair.words[1])?);
            Some((table.similarity(one, other)?, pair.score))
        };
        let compared: Vec<(f64, f64)> = pairs.iter().filter_map(compared).collect();
        let (found, spearman) = (compared.len(), spearman(&compared));
        SimilarityResult { set: set.to_owned(), pairs: pairs.len(), found, spearman }
    }

    fn look_up(&self, question: Question<'_>) -> Option<KnownQuestion> {
        let answers: Vec<Row> =
            question.answers.iter().filter_map(|answer| self.row(answer)).collect();
        let b = question.b.iter().find_map(|b| self.row(b))?;
        let (a, c) = (self.row(question.a)?, self.row(question.c)?);
        (!answers.is_empty()).then_some(KnownQuestion { a, b, c, answers })
    }

    fn row(&self, word: &str) -> Option<Row> {
        let find = |word: &str| self.model.row_of(word);
        let lower = || (word.len() <= LONGEST_FOLDED).then(|| find(&word.to_lowercase()));
        find(word).or_else(|| if self.case == Case::Lower { lower()? } else { None })
    }
}

impl KnownQuestion {
    /// The query by a method. `None` if the words have no usable sum or can't be scored.
    fn query(&self, table: &dyn TableRows, live: &RowSet, method: Method) -> Option<Query> {
        let scoring = match method {
            Method::ThreeCosAdd => {
                let words = [(self.b, 1.0), (self.c, 1.0), (self.a, -1.0)];
                let words = words.map(|(row, weight)| WeightedWord { row, weight });
                let vector = QueryVector::from(analogy_sum(table, &words).ok()?.vector);
                return Query::new(table, vector, 1, self.filter(live)).ok();
            }
            Method::PairDirection => Scoring::pair_direction(table, self.b, self.c, self.a).ok()?,
            Method::ThreeCosMul => {
                Scoring::three_cos_mul(table, &[self.b, self.c], &[self.a]).ok()?
            }
        };
        Some(Query::by(scoring, 1, self.filter(live)))
    }

    fn filter(&self, live: &RowSet) -> Filter {
        Filter::of(live.clone().less(vec![self.a, self.b, self.c]))
    }
}

fn part(right: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { right as f64 / of as f64 }
}
