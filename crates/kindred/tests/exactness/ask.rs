//! Asks an engine the questions of a case, mixed, and says which answers differ.

use std::thread;

use kindred::heads::WantedTerms;
use kindred::{Answer, Kindred, Model, Placed, Ranks, Settings};
use serde_json::Value;

use crate::Case;
use crate::engines::Make;
use crate::naive::Source;
use crate::oracle::{Found, Placed as Expected, Words};
use crate::question::{Question, Wanted, joined};
use crate::random::Random;
use crate::world::World;

/// Callers that ask at the same time.
const CALLERS: usize = 3;

/// The most questions that a caller asks together.
const TOGETHER: u64 = 25;

/// What is wrong with an engine's answers, each in words.
pub(crate) fn differences(case: &Case, make: &Make) -> Vec<String> {
    let make = make.clone();
    let model = Model::from(case.world.store.clone());
    let max_batch_queries = [1024, 7, 64][case.number % 3];
    let settings = Settings { max_batch_queries, ..Settings::default() };
    let kindred = Kindred::with_engine(model, settings, move |store| Ok(make(store)));
    let kindred = kindred.unwrap().for_long_work();
    // What texts are classified as beside no other question is what they always are.
    let expected: Vec<Found> = case
        .asked
        .iter()
        .map(|(question, answer)| answer.clone().unwrap_or_else(|| one(&kindred, case, question)))
        .collect();
    let of_callers = thread::scope(|scope| {
        let callers: Vec<_> = (0..CALLERS)
            .map(|caller| {
                let (own, expected) = (kindred.another_caller(), &expected);
                scope.spawn(move || differ(&own, case, expected, caller))
            })
            .collect();
        callers.into_iter().map(|caller| caller.join().unwrap()).collect::<Vec<_>>()
    });
    of_callers.concat()
}

/// What is wrong with the answers of one of the callers.
fn differ(kindred: &Kindred, case: &Case, expected: &[Found], caller: usize) -> Vec<String> {
    let mut random = Random((case.number * CALLERS + caller) as u64);
    let mut left: Vec<usize> = (caller..case.asked.len()).step_by(CALLERS).collect();
    let mut wrong = Vec::new();
    while !left.is_empty() {
        let count = (1 + random.below(TOGETHER) as usize).min(left.len());
        let indices: Vec<usize> = left.drain(..count).collect();
        let questions: Vec<&Question> = indices.iter().map(|&at| &case.asked[at].0).collect();
        for (at, found) in indices.into_iter().zip(together(kindred, case, &questions)) {
            if found != expected[at] {
                let question = &case.asked[at].0;
                let expected = &expected[at];
                let of = format!("question {at} of world {}: {question:?}", case.number);
                wrong.push(format!("{of}\n   found {found:?}\nexpected {expected:?}"));
            }
        }
    }
    wrong
}

/// Asks all searches in one batch, and the other questions one by one.
fn together(kindred: &Kindred, case: &Case, questions: &[&Question]) -> Vec<Found> {
    let world = &case.world;
    let searches = questions.iter().filter_map(|question| match question {
        Question::Search(of, rules) => Some((of.target(world), rules.options(world))),
        _ => None,
    });
    let mut found = kindred.ask_all(searches).wait().unwrap().into_iter();
    let each = questions.iter().map(|question| match question {
        Question::Search(..) => {
            let answer = found.next().unwrap();
            answer.map_or(Found::Error, neighbors)
        }
        others => one(kindred, case, others),
    });
    each.collect()
}

/// Asks a question that is no search.
fn one(kindred: &Kindred, case: &Case, question: &Question) -> Found {
    let (world, expander) = (&case.world, &case.world.expander);
    match question {
        Question::Search(..) => unreachable!("searches are asked together"),
        Question::Rank(words, of, rules) => {
            let words = words.iter().map(|word| word.written(world));
            let found = kindred.rank(words, of.target(world), rules.options(world)).wait();
            found.map_or(Found::Error, ranks)
        }
        Question::Expand(texts, wanted) => {
            let texts = texts.iter().map(|text| joined(world, text));
            let found = kindred.expand(expander, texts, wanted_terms(wanted)).wait().unwrap();
            Found::Terms(found.into_iter().map(|text| text.ok().map(|it| terms(&it))).collect())
        }
        Question::ExpandVectors(texts, wanted) => {
            let texts = texts.iter().cloned();
            let found = kindred.expand_vectors(expander, texts, wanted_terms(wanted)).wait();
            Found::Terms(found.unwrap().iter().map(|text| Some(terms(text))).collect())
        }
        Question::Count(source) => Found::Count(kindred.count(&source.written()).unwrap()),
        Question::Classify(words) => labels(kindred, world, &joined(world, words)),
    }
}

fn wanted_terms(wanted: &Wanted) -> WantedTerms {
    let &Wanted { top, min_weight, max_ratio, ref filter } = wanted;
    WantedTerms { top, min_weight, max_ratio, filter: filter.as_ref().map(Source::written) }
}

fn terms(found: &kindred::ImpliedTerms) -> Vec<(u32, u64, u32)> {
    let terms = found.terms.iter();
    terms.map(|term| (term.row, term.weight.to_bits(), term.token.position)).collect()
}

fn labels(kindred: &Kindred, world: &World, text: &str) -> Found {
    match kindred.classify(&world.head, [text]).wait().unwrap().remove(0) {
        Err(_) => Found::Error,
        Ok(found) => {
            let labels = found.labels.into_iter();
            Found::Labels(labels.map(|label| (label.name, label.score.to_bits())).collect())
        }
    }
}

fn words_of(used: Option<Vec<std::borrow::Cow<'_, str>>>, skipped: Option<Vec<String>>) -> Words {
    let used = used.map(|words| words.into_iter().map(std::borrow::Cow::into_owned).collect());
    (used, skipped)
}

fn placed(found: &[Placed<'_>]) -> Vec<Expected> {
    found.iter().map(|one| (one.row, one.score.map(f64::to_bits), one.rank)).collect()
}

fn ranks(found: Ranks<'_>) -> Found {
    Found::Ranks { ranked: placed(&found.ranked), words: words_of(found.used, found.skipped) }
}

fn neighbors(answer: Answer<'_>) -> Found {
    let bits = |vector: &[f32]| vector.iter().map(|one| one.to_bits()).collect();
    let neighbors = &answer.neighbors;
    let vectors = neighbors.iter().filter_map(|one| one.vector.as_deref().map(bits));
    let attributes = neighbors.iter().filter_map(|one| one.attributes.clone().map(Value::Object));
    Found::Neighbors {
        hits: neighbors.iter().map(|one| (one.row, one.score.to_bits())).collect(),
        vectors: vectors.collect(),
        attributes: attributes.collect(),
        inputs: answer.inputs.as_deref().map(placed),
        words: words_of(answer.used, answer.skipped),
    }
}
