//! Training: what is touched against the plain loops, gradients of the whole loss against finite differences, a planted task, and the
//! same weights on any number of threads.

use contract::{Table, score};
use model_store::synth::split_mix;
use proptest::prelude::*;

use super::batch::project;
use super::forward::Forward;
use super::*;
use crate::heads::expand::gradients::{TextVectors, Touched, touched};

fn pool(threads: usize) -> ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Random numbers in [−1, 1).
fn random(count: usize, seed: u64) -> Vec<f32> {
    let number = |i: u64| (split_mix(seed << 32 | i) >> 40) as f32 / (1u32 << 23) as f32 - 1.0;
    (0..count as u64).map(number).collect()
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// What texts of words touch, by the plain loops.
fn plain(
    words: &[f32],
    texts: &[Vec<u32>],
    terms: &[f32],
    biases: &[f32],
    dim: usize,
) -> Vec<Touched> {
    let row = |&word: &u32| &words[word as usize * dim..][..dim];
    let expanded: Vec<f32> = texts.iter().flatten().flat_map(row).copied().collect();
    let ends: Vec<usize> = (1..=texts.len()).map(|to| texts[..to].concat().len()).collect();
    let norms = vec![0.0; biases.len()];
    let table = Table::new(terms, &norms, dim).under_dot(Some(biases));
    touched(TextVectors::new(&expanded, dim, &ends), &table)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_forward_touches_what_the_plain_loops_do(
        dim in 1usize..70, terms in 1usize..60, seed: u32, bias in -3f32..1.0, few_values: bool, huge: bool,
        texts in prop::collection::vec(prop::collection::vec(0u32..20, 0..12), 0..8),
    ) {
        let seed = u64::from(seed);
        let round = |x: &f32| match (few_values, huge) {
            // Scores tie, and are zero.
            (true, _) => (x * 2.0).round(),
            // Products overflow in float32.
            (false, true) => x * 1e25,
            (false, false) => *x,
        };
        let numbers = |count, seed| -> Vec<f32> { random(count, seed).iter().map(round).collect() };
        let (words, rows) = (numbers(20 * dim, seed), numbers(terms * dim, seed + 1));
        let biases: Vec<f32> = random(terms, seed + 2).iter().map(|x| round(x) + bias.round()).collect();
        let forward = Forward { words: &words, texts: &texts, terms: &rows, biases: &biases, dim };
        let expected = plain(&words, &texts, &rows, &biases, dim);
        for threads in [1, 3] {
            let (found, ends) = forward.touched(&pool(threads));
            prop_assert_eq!(&found, &expected);
            prop_assert_eq!(ends.last().copied().unwrap_or_default(), found.len());
        }
    }
}

#[test]
fn scores_that_float32_cannot_tell_apart_are_decided_in_float64() {
    // The second is larger by less than float32 resolves in the sum.
    let words = [1000.0, 1.0, 1000.0, 1.0 + f32::EPSILON];
    let forward = |bias: f32, text: Vec<u32>| {
        let (texts, biases) = (vec![text], vec![bias]);
        let forward = Forward {
            words: &words,
            texts: &texts,
            terms: &[1000.0, 1.0],
            biases: &biases,
            dim: 2,
        };
        let (found, _) = forward.touched(&pool(1));
        assert_eq!(found, plain(&words, &texts, &[1000.0, 1.0], &biases, 2));
        found.first().map(|one| one.position)
    };
    assert_eq!(forward(0.0, vec![0, 1]), Some(1));
    assert_eq!(forward(-1_000_001.0, vec![0]), None);
    assert_eq!(forward(-1_000_001.0, vec![0, 1]), Some(1));
}

/// Words of a tiny vocabulary, of which the first are terms; some texts are equal, empty, or repeat words.
fn tiny() -> (Vec<f32>, Vec<Example>) {
    let example = |query: &[u32], relevant: &[u32], irrelevant: &[u32]| Example {
        query: query.to_vec(),
        relevant: relevant.to_vec(),
        irrelevant: Some(irrelevant.to_vec()),
    };
    let examples = vec![
        example(&[0, 9, 0], &[1, 2, 10, 2], &[3, 4]),
        example(&[5, 6], &[7, 8, 11], &[1, 2, 10, 2]),
        example(&[2], &[1, 2, 10, 2], &[]),
        example(&[10, 3, 4], &[6, 5, 7, 1], &[8, 11, 0]),
    ];
    (random(12 * 4, 17), examples)
}

/// All parts of what is trained, in float64.
#[derive(Clone)]
struct Parts {
    biases: Vec<f64>,
    projection: Vec<f64>,
    vectors: Vec<f64>,
}

/// The whole loss, word for word, in float64.
fn plain_loss(
    settings: &Settings,
    vectors: &[f32],
    dim: usize,
    examples: &[Example],
    parts: &Parts,
    flops: [f64; 2],
) -> f64 {
    let weights = |text: &[u32]| -> Vec<f64> {
        let x = |&word: &u32| -> Vec<f64> {
            let e = &vectors[word as usize * dim..][..dim];
            let component = |p: &[f64]| p.iter().zip(e).map(|(p, e)| p * f64::from(*e)).sum();
            parts.projection.chunks_exact(dim).map(component).collect()
        };
        let tokens: Vec<Vec<f64>> = text.iter().map(x).collect();
        let weight = |(w, bias): (&[f64], &f64)| {
            let score = |x: &Vec<f64>| x.iter().zip(w).map(|(x, w)| x * w).sum::<f64>() + bias;
            let f = tokens.iter().map(score).fold(0.0, f64::max);
            if settings.log1p { f.ln_1p() } else { f }
        };
        parts.vectors.chunks_exact(dim).zip(&parts.biases).map(weight).collect()
    };
    let queries: Vec<Vec<f64>> = examples.iter().map(|one| weights(&one.query)).collect();
    let relevant = examples.iter().map(|one| &one.relevant);
    let given: Vec<&Vec<u32>> =
        relevant.chain(examples.iter().filter_map(|one| one.irrelevant.as_ref())).collect();
    let texts: Vec<Vec<f64>> = given.iter().map(|text| weights(text)).collect();
    let dot = |a: &[f64], b: &[f64]| a.iter().zip(b).map(|(a, b)| a * b).sum::<f64>();
    let of_query = |(index, query): (usize, &Vec<f64>)| {
        let score = |text: usize| dot(query, &texts[text]);
        match settings.loss {
            Loss::InfoNce { temperature } => {
                let others =
                    (0..texts.len()).filter(|&at| at == index || given[at] != given[index]);
                let scaled = |at: usize| (score(at) / f64::from(temperature)).exp();
                -(scaled(index) / others.map(scaled).sum::<f64>()).ln()
            }
            Loss::Margin { margin } => {
                let irrelevant = score(examples.len() + index);
                (f64::from(margin) - score(index) + irrelevant).max(0.0)
            }
        }
    };
    let mean = queries.iter().enumerate().map(of_query).sum::<f64>() / queries.len() as f64;
    let square = |all: &[Vec<f64>]| -> f64 {
        let mean = |v: usize| all.iter().map(|one| one[v]).sum::<f64>() / all.len() as f64;
        (0..parts.biases.len()).map(|v| mean(v).powi(2)).sum()
    };
    mean + flops[0] * square(&queries) + flops[1] * square(&texts)
}

#[test]
fn gradients_of_the_whole_loss_are_those_of_finite_differences() {
    let (dim, (vectors, examples)) = (4, tiny());
    let data = Data { train: &examples, dev: &[], vectors: &vectors, dim, terms: Terms::First(9) };
    let pool = pool(2);
    for (loss, log1p) in [
        (Loss::InfoNce { temperature: 0.7 }, true),
        (Loss::InfoNce { temperature: 2.0 }, false),
        (Loss::Margin { margin: 1.5 }, true),
        (Loss::Margin { margin: 0.4 }, false),
    ] {
        let settings = Settings {
            loss,
            log1p,
            bias: StartBias::Value(-0.1),
            own_vectors: true,
            ..Settings::default()
        };
        let mut trainer = Trainer::new(data, &settings, &pool);
        let near = |all: &mut [f32], seed| {
            let shift = random(all.len(), seed);
            all.iter_mut().zip(shift).for_each(|(x, shift)| *x += 0.2 * shift);
        };
        near(trainer.projection.as_mut().unwrap(), 3);
        near(trainer.vectors.to_mut(), 4);
        near(&mut trainer.biases, 5);
        let all: Vec<&Example> = examples.iter().collect();
        let flops = [0.3, 0.2];
        let found = trainer.gradients(&Batch::new(&all), flops);

        let wide = |all: &[f32]| -> Vec<f64> { all.iter().map(|&x| f64::from(x)).collect() };
        let mut parts = Parts {
            biases: wide(&trainer.biases),
            projection: wide(trainer.projection.as_ref().unwrap()),
            vectors: wide(&trainer.vectors),
        };
        let whole = |parts: &Parts| plain_loss(&settings, &vectors, dim, &examples, parts, flops);
        let Means { loss, flops_queries, flops_texts, .. } = found.means;
        let sum = loss + flops[0] * flops_queries + flops[1] * flops_texts;
        assert!((sum - whole(&parts)).abs() < 1e-5, "{sum} and {}", whole(&parts));

        let of_vectors = found.vectors.unwrap();
        let mut dense = vec![0.0; trainer.vectors.len()];
        for (row, &term) in of_vectors.terms.unwrap().iter().enumerate() {
            let own = &of_vectors.vectors[row * dim..][..dim];
            dense[term as usize * dim..][..dim].copy_from_slice(own);
        }
        // Smaller than the distance of any maximum from the next, and of any from zero.
        const STEP: f64 = 1e-6;
        type Part = fn(&mut Parts) -> &mut Vec<f64>;
        let all: [(&[f32], Part); 3] = [
            (&found.biases, |parts| &mut parts.biases),
            (found.projection.as_ref().unwrap(), |parts| &mut parts.projection),
            (&dense, |parts| &mut parts.vectors),
        ];
        let mut largest = 0.0f64;
        for (which, (gradients, part)) in all.into_iter().enumerate() {
            for (index, &gradient) in gradients.iter().enumerate() {
                let around = [STEP, -2.0 * STEP].map(|step| {
                    part(&mut parts)[index] += step;
                    whole(&parts)
                });
                part(&mut parts)[index] += STEP;
                let slope = (around[0] - around[1]) / (2.0 * STEP);
                let error = (slope - f64::from(gradient)).abs();
                assert!(error < 1e-5 * (1.0 + slope.abs()), "{which}: {slope} and {gradient}");
                largest = largest.max(slope.abs());
            }
        }
        assert!(largest > 0.1, "{loss:?}: {largest}");
    }
}

const HIDDEN: usize = 24;
const PLANTED_TERMS: usize = 120;
/// The words of queries for the last terms are in no example to learn from.
const LEARNED: usize = 100;

/// A planted task. The second half of a vector has what a term means. Terms have that alone; for each there is a word of queries whose
/// first half has the same under a hidden projection, and whose second half mostly misleads. A text has the terms of its query.
fn planted(count: usize) -> (Vec<f32>, Vec<Example>) {
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

fn planted_settings() -> Settings {
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
    let before = recall(&vectors, &train(data, &untrained, &pool(2), &mut go_on));
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
        let trained = train(data, &settings, &pool(2), &mut go_on);
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
        });
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
        train(data, &settings, &pool(threads), &mut go_on)
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
        });
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
        });
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
    let trained = train(data, &settings, &pool(1), &mut go_on);
    assert!(trained.biases.iter().all(|bias| *bias == -1e3));
    // All scores are equal, so the relevant text comes last.
    assert_eq!(trained.quality, Some(0.25));
    let settings = Settings { bias: StartBias::Value(0.0), ..settings };
    let trained = train(data, &settings, &pool(1), &mut go_on);
    assert!(trained.biases.iter().all(|bias| bias.is_finite()));
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
