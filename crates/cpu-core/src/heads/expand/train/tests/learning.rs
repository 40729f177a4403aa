//! A planted task, the same weights on any number of threads, when training ends, and what is refused.

use contract::score;

use super::super::batch::project;
use super::*;

const HIDDEN: usize = 24;
const PLANTED_TERMS: usize = 120;
/// The words of queries for the last terms are in no example to learn from.
const LEARNED: usize = 100;

/// A planted task. The second half of a vector has what a term means. Terms have that alone; for each there is a word of queries whose
/// first half has the same under a hidden projection, and whose second half mostly misleads. A text has the terms of its query.
pub(super) fn planted(count: usize) -> (Vec<f32>, Vec<Example>) {
    let (half, terms) = (HIDDEN, PLANTED_TERMS);
    let meanings = random(terms * half, 1);
    // A reflection: I − 2 · u · uᵀ / |u|².
    let u = random(half, 2);
    let square = score::dot(&u, &u) as f32;
    let entry = |i: usize, j: usize| (if i == j { 1.0 } else { 0.0 }) - 2.0 * u[i] * u[j] / square;
    let hidden: Vec<f32> = (0..half * half).map(|at| entry(at / half, at % half)).collect();
    let garbled = random(half * half, 3);
    let mut vectors = Vec::new();
    for meaning in meanings.chunks_exact(half) {
        vectors.extend(vec![0.0; half]);
        vectors.extend(meaning);
    }
    for meaning in meanings.chunks_exact(half) {
        let dots = |matrix: &[f32]| -> Vec<f32> {
            matrix.chunks_exact(half).map(|row| score::dot(row, meaning) as f32).collect()
        };
        vectors.extend(dots(&hidden));
        let misleading = dots(&garbled);
        vectors.extend(meaning.iter().zip(misleading).map(|(x, other)| 0.4 * (x + other)));
    }
    let example = |index: u64| {
        let term = |n: u64| (split_mix(index << 8 | n) % LEARNED as u64) as u32;
        let own: Vec<u32> = (0..3).map(term).collect();
        Example {
            query: own.iter().map(|term| PLANTED_TERMS as u32 + term).collect(),
            relevant: own.into_iter().chain((3..5).map(term)).collect(),
            irrelevant: None,
        }
    };
    (vectors, (0..count as u64).map(example).collect())
}

/// Of the terms of queries whose words were in no example, the part that has the largest weights.
fn recall(vectors: &[f32], trained: &Trained) -> f64 {
    let dim = 2 * HIDDEN;
    let words = project(vectors.to_vec(), trained.projection.as_deref(), dim, &pool(2));
    let terms = trained.vectors.as_deref().unwrap_or(&vectors[..PLANTED_TERMS * dim]);
    let queries: Vec<Vec<u32>> = (0..60)
        .map(|query| {
            let term = |n: u64| LEARNED + (split_mix(query << 32 | n) % 20) as usize;
            (0..3).map(|n| (PLANTED_TERMS + term(n)) as u32).collect()
        })
        .collect();
    let touched = plain(&words, &queries, terms, &trained.biases, dim);
    let (mut found, mut all) = (0, 0);
    for (index, query) in queries.iter().enumerate() {
        let mut planted: Vec<u32> = query.iter().map(|word| word - PLANTED_TERMS as u32).collect();
        planted.sort_unstable();
        planted.dedup();
        let of_query = touched.iter().filter(|one| one.text as usize == index);
        let mut own: Vec<&Touched> = of_query.collect();
        own.sort_by(|a, b| b.value.total_cmp(&a.value));
        own.truncate(planted.len());
        found += own.iter().filter(|one| planted.contains(&one.term)).count();
        all += planted.len();
    }
    found as f64 / all as f64
}

pub(super) fn planted_settings() -> Settings {
    Settings {
        bias: StartBias::TermsPerText(20.0),
        flops_queries: 0.1,
        flops_texts: 0.1,
        warm_up: 100,
        epochs: 20,
        batch: 32,
        learning_rate: 3e-2,
        bias_learning_rate: 3e-2,
        ..Settings::default()
    }
}

#[test]
fn a_planted_projection_is_learned() {
    let (vectors, examples) = planted(1200);
    let (learned, dev) = examples.split_at(1100);
    let (dim, terms) = (2 * HIDDEN, Terms::First(PLANTED_TERMS));
    let data = Data { train: learned, dev, vectors: &vectors, dim, terms };
    let untrained = Settings { epochs: 0, ..planted_settings() };
    let before = recall(&vectors, &train(data, &untrained, &pool(2), &mut go_on).unwrap());
    assert!(before < 0.7, "{before}");
    for (loss, own_vectors) in [
        (Loss::InfoNce { temperature: 4.0 }, false),
        (Loss::InfoNce { temperature: 4.0 }, true),
        (Loss::Margin { margin: 8.0 }, false),
    ] {
        let mut learned = learned.to_vec();
        if let Loss::Margin { .. } = loss {
            for index in 0..learned.len() {
                learned[index].irrelevant = Some(examples[index + 1].relevant.clone());
            }
        }
        let mut dev = dev.to_vec();
        dev.iter_mut().for_each(|one| one.irrelevant = Some(vec![0]));
        let data = Data { train: &learned, dev: &dev, ..data };
        let settings = Settings { loss, own_vectors, ..planted_settings() };
        let trained = train(data, &settings, &pool(2), &mut go_on).unwrap();
        // With vectors of their own, terms may come to mean something else; texts are found all the same.
        if !own_vectors {
            let recall = recall(&vectors, &trained);
            assert!(recall > 0.95, "{loss:?}: {recall}");
        }
        assert!(trained.quality.unwrap() > 0.95, "{:?}", trained.quality);
        assert_eq!(trained.vectors.is_some(), own_vectors);
    }
}

#[test]
fn a_larger_regulariser_leaves_fewer_terms() {
    let (vectors, examples) = planted(640);
    let (dim, terms) = (2 * HIDDEN, Terms::First(PLANTED_TERMS));
    let data = Data { train: &examples, dev: &[], vectors: &vectors, dim, terms };
    let touched = |factor: f32| {
        let settings = Settings {
            flops_queries: factor,
            flops_texts: factor,
            epochs: 6,
            ..planted_settings()
        };
        let mut last = Means::default();
        train(data, &settings, &pool(2), &mut |progress| {
            last = progress.means;
            ControlFlow::Continue(())
        })
        .unwrap();
        (last.terms_per_query, last.terms_per_text)
    };
    let (few, many) = (touched(1.0), touched(0.0));
    assert!(few.0 < 0.8 * many.0 && few.1 < 0.8 * many.1, "{few:?} and {many:?}");
}

#[test]
fn the_same_weights_on_any_number_of_threads_and_others_for_another_seed() {
    let (vectors, examples) = planted(150);
    let words: Vec<u32> = (0..PLANTED_TERMS as u32).rev().collect();
    let terms = Terms::Words(&words);
    let dim = 2 * HIDDEN;
    let data = Data { train: &examples, dev: &examples[..40], vectors: &vectors, dim, terms };
    let trained = |threads, seed| {
        let settings =
            Settings { epochs: 2, own_vectors: true, warm_up: 0, seed, ..planted_settings() };
        train(data, &settings, &pool(threads), &mut go_on).unwrap()
    };
    let one = trained(1, 1);
    assert_eq!(one, trained(1, 1));
    assert_eq!(one, trained(2, 1));
    assert_eq!(one, trained(5, 1));
    assert_ne!(one.biases, trained(1, 2).biases);
    assert_eq!((one.steps, one.biases.len()), (8, PLANTED_TERMS));
}

#[test]
fn stopped_early_it_gives_the_last_step_or_the_best_epoch() {
    let (vectors, examples) = planted(96);
    let (dim, terms) = (2 * HIDDEN, Terms::First(PLANTED_TERMS));
    let stopped = |calls: usize, warm_up: usize, dev: usize| {
        let data = Data { train: &examples, dev: &examples[..dev], vectors: &vectors, dim, terms };
        let settings = Settings { warm_up, ..planted_settings() };
        let mut left = calls;
        let trained = train(data, &settings, &pool(1), &mut |progress| {
            assert_eq!(
                progress.quality.is_some(),
                dev > 0 && progress.examples == 96 && {
                    // Three steps, and the end of the epoch.
                    (calls - left) % 4 == 3
                }
            );
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap();
        (trained.steps, trained.quality.is_some())
    };
    assert_eq!(stopped(2, 0, 30), (2, false), "in the first epoch");
    assert_eq!(stopped(4, 0, 30), (3, true));
    assert_eq!(stopped(5, 0, 30), (3, true), "in the second");
    assert_eq!(stopped(5, 5, 30), (4, false), "before the warm-up was over");
    assert_eq!(stopped(5, 0, 0), (4, false), "nothing decides");
}

#[test]
fn texts_touch_as_many_terms_as_wanted_at_the_start() {
    let (vectors, examples) = planted(200);
    let (dim, terms) = (2 * HIDDEN, Terms::First(PLANTED_TERMS));
    let data = Data { train: &examples, dev: &[], vectors: &vectors, dim, terms };
    for wanted in [0.0, 5.0, 30.0, 1e6] {
        let settings = Settings {
            bias: StartBias::TermsPerText(wanted),
            bias_learning_rate: 0.0,
            learning_rate: 0.0,
            batch: 200,
            epochs: 1,
            ..Settings::default()
        };
        let mut found = 0.0;
        let trained = train(data, &settings, &pool(2), &mut |progress| {
            found = progress.means.terms_per_text;
            ControlFlow::Continue(())
        })
        .unwrap();
        let wanted = f64::from(wanted).min(PLANTED_TERMS as f64);
        assert!((found - wanted).abs() < 0.1 * wanted + 0.1, "{found} instead of {wanted}");
        assert!(trained.biases.iter().all(|bias| *bias == trained.biases[0]));
    }
}

#[test]
fn texts_without_terms_and_empty_texts_change_nothing() {
    let (vectors, mut examples) = planted(4);
    examples[1].query.clear();
    examples[2].relevant.clear();
    let (dim, terms) = (2 * HIDDEN, Terms::First(PLANTED_TERMS));
    let data = Data { train: &examples, dev: &examples, vectors: &vectors, dim, terms };
    let settings = Settings { bias: StartBias::Value(-1e3), warm_up: 0, ..planted_settings() };
    let trained = train(data, &settings, &pool(1), &mut go_on).unwrap();
    assert!(trained.biases.iter().all(|bias| *bias == -1e3));
    // All scores are equal, so the relevant text comes last.
    assert_eq!(trained.quality, Some(0.25));
    let settings = Settings { bias: StartBias::Value(0.0), ..settings };
    let trained = train(data, &settings, &pool(1), &mut go_on).unwrap();
    assert!(trained.biases.iter().all(|bias| bias.is_finite()));
}

#[test]
fn settings_that_leave_the_numbers_end_the_training() {
    let (vectors, mut examples) = planted(96);
    examples.iter_mut().for_each(|one| one.irrelevant = Some(vec![0]));
    let (dim, terms) = (2 * HIDDEN, Terms::First(PLANTED_TERMS));
    let data = Data { train: &examples, dev: &examples[..9], vectors: &vectors, dim, terms };
    let large = [1.0, 1e9, 1e20, 1e30, f32::MAX];
    let mut diverged = 0;
    for learning_rate in large {
        for bias_learning_rate in large {
            for (loss, flops) in [
                (Loss::InfoNce { temperature: 1.0 }, 0.1),
                (Loss::InfoNce { temperature: f32::MIN_POSITIVE }, f32::MAX),
                (Loss::Margin { margin: f32::MAX }, 1e20),
            ] {
                for (log1p, own_vectors) in [(true, false), (false, true)] {
                    let settings = Settings {
                        learning_rate,
                        bias_learning_rate,
                        loss,
                        log1p,
                        own_vectors,
                        flops_queries: flops,
                        flops_texts: flops,
                        epochs: 3,
                        ..planted_settings()
                    };
                    match train(data, &settings, &pool(2), &mut go_on) {
                        Ok(found) => {
                            let vectors = found.vectors.into_iter().flatten();
                            let all = found.biases.into_iter().chain(vectors);
                            let mut all = all.chain(found.projection.into_iter().flatten());
                            assert!(all.all(f32::is_finite), "{settings:?}");
                        }
                        Err(Diverged { epoch }) => {
                            assert!(epoch <= 3);
                            diverged += 1;
                        }
                    }
                }
            }
        }
    }
    assert!(diverged > 20, "{diverged}");
}

#[test]
#[should_panic(expected = "an irrelevant text for a margin")]
fn a_margin_needs_irrelevant_texts() {
    let (vectors, examples) = planted(4);
    let (dim, terms) = (2 * HIDDEN, Terms::First(PLANTED_TERMS));
    let data = Data { train: &examples, dev: &[], vectors: &vectors, dim, terms };
    let settings = Settings { loss: Loss::Margin { margin: 1.0 }, ..Settings::default() };
    let _ = train(data, &settings, &pool(1), &mut go_on);
}

#[test]
#[should_panic(expected = "terms that exist")]
fn a_term_that_does_not_exist_is_refused() {
    let (vectors, examples) = planted(4);
    let terms = Terms::Words(&[0, 240]);
    let data = Data { train: &examples, dev: &[], vectors: &vectors, dim: 2 * HIDDEN, terms };
    let _ = train(data, &Settings::default(), &pool(1), &mut go_on);
}
