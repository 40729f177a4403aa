//! Asks the questions of a set and counts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use model_store::contract::analogy::analogy_vector;
use model_store::{
    Engine, Filter, FullPassQuery, ModelStore, Query, QueryVector, Row, Scoring, Table,
    WeightedWord,
};

use super::EvaluationError;
use super::analogies::{Question, Section};
use super::results::{AnalogyResult, Case, Method, MethodResult, SectionResult, SimilarityResult};
use super::similarities::Pair;
use super::spearman::spearman;

/// Questions that go to the engine together. In sets of analogies each word is in many questions, and a full
/// pass compares a word that several share with the rows once: 2,048 at a time took a fifth less time than
/// 512 (docs/performance.md). With more, progress would jump.
const BATCH: usize = 2048;

/// A model, and the engine that answers for it.
pub struct Evaluation<'a> {
    /// The model.
    pub model: Arc<ModelStore>,
    /// Its engine.
    pub engine: &'a mut dyn Engine,
    /// How words are looked up.
    pub case: Case,
    /// The methods that analogies are answered by.
    pub methods: Vec<Method>,
}

/// A question whose words the model has.
struct Asked {
    a: Row,
    b: Row,
    c: Row,
    answers: Vec<Row>,
}

impl Evaluation<'_> {
    /// Asks all questions of a set by all methods. A question with a word that the model does not have is
    /// wrong, and so is one that has no answer by a method, as PairDirection has none where a is b. The three
    /// words themselves are no answers. `progress` hears how many questions were asked since it last did.
    ///
    /// # Errors
    /// Only if the engine fails.
    pub fn analogies(
        &mut self,
        set: &str,
        sections: &[Section],
        mut progress: impl FnMut(usize),
    ) -> Result<AnalogyResult, EvaluationError> {
        let mut results = Vec::with_capacity(sections.len());
        for section in sections {
            results.push(self.section(section, &mut progress)?);
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

    fn section(
        &mut self,
        section: &Section,
        progress: &mut impl FnMut(usize),
    ) -> Result<SectionResult, EvaluationError> {
        let (mut in_vocabulary, mut methods) = (0, BTreeMap::new());
        for start in (0..section.len()).step_by(BATCH) {
            let end = section.len().min(start + BATCH);
            let batch: Vec<Asked> =
                (start..end).filter_map(|place| self.look_up(section.question(place))).collect();
            in_vocabulary += batch.len();
            for &method in &self.methods.clone() {
                let started = Instant::now();
                let right = self.right(method, &batch)?;
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

    /// How many of these questions a method answers right.
    fn right(&mut self, method: Method, batch: &[Asked]) -> Result<usize, EvaluationError> {
        let table = self.model.table();
        let best: Vec<(Option<Row>, &Asked)> = if method == Method::ThreeCosAdd {
            let query = |asked| Some((Asked::search(asked, &table)?, asked));
            let asked: Vec<(Query, &Asked)> = batch.iter().filter_map(query).collect();
            let answers = self.engine.search(&asked.iter().map(|(query, _)| query).collect())?;
            let best = answers.iter().map(|hits| hits.first().map(|hit| hit.row));
            best.zip(asked.iter().map(|(_, asked)| *asked)).collect()
        } else {
            let query = |asked| Some((Asked::full_pass(asked, &table, method)?, asked));
            let asked: Vec<(FullPassQuery, &Asked)> = batch.iter().filter_map(query).collect();
            let queries: Vec<&FullPassQuery> = asked.iter().map(|(query, _)| query).collect();
            let answers = self.engine.full_pass(&queries)?;
            let best = answers.iter().map(|answer| answer.hits.first().map(|hit| hit.row));
            best.zip(asked.iter().map(|(_, asked)| *asked)).collect()
        };
        let is_right = |(best, asked): &&(Option<Row>, &Asked)| {
            best.is_some_and(|row| asked.answers.contains(&row))
        };
        Ok(best.iter().filter(is_right).count())
    }

    /// Compares the model's cosine similarities of the pairs of a set with people's scores.
    pub fn similarities(&self, set: &str, pairs: &[Pair]) -> SimilarityResult {
        let table = self.model.table();
        let compared = |pair: &Pair| {
            let (one, other) = (self.row(&pair.words[0])?, self.row(&pair.words[1])?);
            let norm = Some(table.norm(one)).filter(|&norm| norm > 0.0)?;
            Some((table.score(table.row(one), norm, other)?, pair.score))
        };
        let compared: Vec<(f64, f64)> = pairs.iter().filter_map(compared).collect();
        let (found, spearman) = (compared.len(), spearman(&compared));
        SimilarityResult { set: set.to_owned(), pairs: pairs.len(), found, spearman }
    }

    fn look_up(&self, question: Question<'_>) -> Option<Asked> {
        let answers: Vec<Row> =
            question.answers.iter().filter_map(|answer| self.row(answer)).collect();
        let b = question.b.iter().find_map(|b| self.row(b))?;
        let (a, c) = (self.row(question.a)?, self.row(question.c)?);
        (!answers.is_empty()).then_some(Asked { a, b, c, answers })
    }

    fn row(&self, word: &str) -> Option<Row> {
        let words = self.model.words();
        let lower = || words.row(&word.to_lowercase());
        words.row(word).or_else(|| if self.case == Case::Lower { lower() } else { None })
    }
}

impl Asked {
    /// 3CosAdd. `None`: the vectors of the words lead nowhere.
    fn search(&self, table: &Table<'_>) -> Option<Query> {
        let words = [(self.b, 1.0), (self.c, 1.0), (self.a, -1.0)];
        let words = words.map(|(row, weight)| WeightedWord { row, weight });
        let vector = QueryVector::Components(analogy_vector(table, &words).ok()?);
        Query::new(table, vector, 1, self.filter()).ok()
    }

    /// The other methods. `None`: there is nothing to score by.
    fn full_pass(&self, table: &Table<'_>, method: Method) -> Option<FullPassQuery> {
        let scoring = match method {
            Method::PairDirection => Scoring::pair_direction(table, self.b, self.c, self.a).ok()?,
            Method::ThreeCosMul => {
                Scoring::three_cos_mul(table, &[self.b, self.c], &[self.a]).ok()?
            }
            Method::ThreeCosAdd => {
                Scoring::cosine(table, self.search(table)?.vector().clone()).ok()?
            }
        };
        Some(FullPassQuery::new(scoring, 1, self.filter(), Vec::new()))
    }

    fn filter(&self) -> Filter {
        Filter::excluding(vec![self.a, self.b, self.c])
    }
}

fn part(right: usize, of: usize) -> f64 {
    if of == 0 { 0.0 } else { right as f64 / of as f64 }
}
