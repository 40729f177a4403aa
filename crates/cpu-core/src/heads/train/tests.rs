//! Training: gradients against finite differences of the formula in float64, and against PyTorch;
//! the same weights on any number of threads.

use contract::classifier::{sigmoid, softmax};
use model_store::synth::split_mix;

use super::backward::text_weight;
use super::*;

fn pool(threads: usize) -> ThreadPool {
    rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap()
}

/// Texts of random words, whose class is whether word 0 is directly before word 1.
fn examples(count: u64, words: u64) -> Vec<Example> {
    (0..count)
        .map(|text| {
            let random = |n: u64| split_mix(1000 * text + n);
            let mut own: Vec<u32> =
                (0..3 + random(0) % 7).map(|n| (2 + random(n + 1) % (words - 2)) as u32).collect();
            let class = (random(50) % 2) as u32;
            let at = random(51) as usize % (own.len() + 1);
            let pair = if class == 1 { [0, 1] } else { [1, 0] };
            own.splice(at..at, pair);
            Example { words: own, classes: vec![class] }
        })
        .collect()
}

fn vectors(words: usize, dim: usize) -> Vec<f32> {
    Numbers::new(5).within(1.0, words * dim)
}

fn go_on(_: Progress) -> ControlFlow<()> {
    ControlFlow::Continue(())
}

/// The mean loss by the formula in float64. Softmax: each text by its class's weight. Sigmoid: the
/// sum over classes.
fn loss(trainer: &Trainer<'_>, vectors: &[f32], examples: &[&Example], weights: &[f32]) -> f64 {
    let (dim, classifier) = (trainer.data.dim, trainer.trained(0.0, 0).classifier);
    let weight = |class: u32| f64::from(weights[class as usize]);
    let scores = |one: &&Example| {
        let row = |&word: &u32| &vectors[word as usize * dim..][..dim];
        let tokens: Vec<&[f32]> = one.words.iter().map(row).collect();
        classifier.forward(&tokens).scores
    };
    match trainer.settings.probabilities {
        Probabilities::Softmax => {
            let all: f64 = examples.iter().map(|one| weight(one.classes[0])).sum();
            let of = |one: &&Example| {
                let class = one.classes[0];
                -softmax(&scores(one), 1.0)[class as usize].ln() * weight(class)
            };
            examples.iter().map(of).sum::<f64>() / all
        }
        Probabilities::Sigmoid => {
            let of = |one: &&Example| -> f64 {
                let of_class = |(class, score): (u32, f64)| match one.classes.contains(&class) {
                    true => -sigmoid(score, 1.0).ln() * weight(class),
                    false => -sigmoid(-score, 1.0).ln(),
                };
                (0..).zip(scores(one)).map(of_class).sum()
            };
            examples.iter().map(of).sum::<f64>() / examples.len() as f64
        }
    }
}

#[test]
fn gradients_are_those_of_the_formula() {
    let (dim, words) = (3, 12);
    let (examples, vectors) = (examples(6, words), vectors(words as usize, dim));
    // A short text, and an empty one.
    let more = [vec![7], vec![]].map(|words| Example { words, classes: vec![0] });
    let one_each: Vec<Example> = examples.into_iter().chain(more).collect();
    // Texts with no class, one, and both.
    let mut any_number = one_each.clone();
    any_number[1].classes.clear();
    any_number[2].classes = vec![1, 0];
    for (padding, probabilities, examples) in [
        (false, Probabilities::Softmax, &one_each),
        (true, Probabilities::Softmax, &one_each),
        (true, Probabilities::Sigmoid, &any_number),
    ] {
        let chosen: Vec<&Example> = examples.iter().collect();
        let settings = Settings {
            widths: vec![2, 3],
            channels: 4,
            padding,
            probabilities,
            class_weights: vec![1.0, 3.0],
            ..Settings::default()
        };
        let data = Data { train: examples, dev: examples, vectors: &vectors, dim, classes: 2 };
        let pool = pool(2);
        let mut trainer = Trainer::new(data, &settings, &pool);
        let batch = Batch::new(chosen.iter().map(|one| &one.words[..]));
        let forward = trainer.forward(&batch);
        let masks = vec![1.0; chosen.len() * trainer.features()];
        let found = Gradients::new(&trainer, &chosen, &batch, &forward, &masks);

        // The forward of the batch is the formula's, up to float32.
        for (index, one) in chosen.iter().enumerate() {
            let row = |&word: &u32| &vectors[word as usize * dim..][..dim];
            let tokens: Vec<&[f32]> = one.words.iter().map(row).collect();
            let expected = trainer.trained(0.0, 0).classifier.forward(&tokens);
            let own = &forward.features[index * 8..][..8];
            for (feature, expected) in own.iter().zip(&expected.features) {
                assert!((f64::from(*feature) - expected).abs() < 1e-5, "{feature} {expected}");
            }
        }

        // Small, so that no maximum moves to another position within it.
        const STEP: f32 = 1.0 / 8192.0;
        let class_weights = [1.0, 3.0];
        let mut checked = 0;
        let mut check = |difference: f64, gradient: f32, what: &str| {
            let slope = difference / (2.0 * f64::from(STEP));
            let near = (slope - f64::from(gradient)).abs();
            assert!(near < 2e-3 * (1.0 + slope.abs()), "{what}: {slope} and {gradient}");
            checked += 1;
        };
        for width in 0..2 {
            for index in 0..trainer.filters[width].weights.len() {
                let around = [STEP, -2.0 * STEP].map(|step| {
                    trainer.filters[width].weights[index] += step;
                    loss(&trainer, &vectors, &chosen, &class_weights)
                });
                trainer.filters[width].weights[index] += STEP;
                check(around[0] - around[1], found.filters[width].weights[index], "filter");
            }
            for index in 0..4 {
                let around = [STEP, -2.0 * STEP].map(|step| {
                    trainer.filters[width].bias[index] += step;
                    loss(&trainer, &vectors, &chosen, &class_weights)
                });
                trainer.filters[width].bias[index] += STEP;
                check(around[0] - around[1], found.filters[width].bias[index], "bias");
            }
        }
        for index in 0..trainer.dense.weights.len() {
            let around = [STEP, -2.0 * STEP].map(|step| {
                trainer.dense.weights[index] += step;
                loss(&trainer, &vectors, &chosen, &class_weights)
            });
            trainer.dense.weights[index] += STEP;
            check(around[0] - around[1], found.dense.weights[index], "dense");
        }
        for (own, &word) in batch.words.iter().enumerate() {
            for component in 0..dim {
                let mut changed = vectors.clone();
                let around = [STEP, -2.0 * STEP].map(|step| {
                    changed[word as usize * dim + component] += step;
                    loss(&trainer, &changed, &chosen, &class_weights)
                });
                check(around[0] - around[1], found.vectors[own * dim + component], "vector");
            }
        }
        assert!(checked > 100, "{checked}");
    }
}

/// The numbers of a list in JSON.
fn floats(list: &serde_json::Value) -> Vec<f32> {
    let number = |number: &serde_json::Value| number.as_f64().expect("a number") as f32;
    list.as_array().expect("a list").iter().map(number).collect()
}

#[track_caller]
fn near(found: &[f32], expected: &[f32], tolerance: f32, what: &str) {
    assert_eq!(found.len(), expected.len(), "{what}");
    for (found, expected) in found.iter().zip(expected) {
        assert!((found - expected).abs() < tolerance, "{what}: {found}; by PyTorch {expected}");
    }
}

/// `tests/pytorch/gradients.py` wrote what is expected.
#[test]
fn gradients_and_steps_are_those_of_pytorch() {
    let expected = include_str!("../../../../../tests/pytorch/recorded/gradients.json");
    let expected: serde_json::Value = serde_json::from_str(expected).unwrap();
    let count = |name: &str| expected[name].as_u64().unwrap() as usize;
    let number = |name: &str| expected[name].as_f64().unwrap() as f32;
    let dim = count("dim");
    let widths: Vec<usize> =
        floats(&expected["widths"]).iter().map(|&width| width as usize).collect();
    for case in expected["cases"].as_array().unwrap() {
        let whole = |list| floats(list).into_iter().map(|number| number as u32).collect();
        let lists = |name: &str| case[name].as_array().unwrap().iter();
        let examples: Vec<Example> = lists("texts")
            .zip(lists("classes"))
            .map(|(words, classes)| Example { words: whole(words), classes: whole(classes) })
            .collect();
        let chosen: Vec<&Example> = examples.iter().collect();
        let (start, gradients, end) = (&case["start"], &case["gradients"], &case["end"]);
        let vectors = floats(&start["vectors"]);
        let dense_bias = floats(&start["dense_bias"]);
        let settings = Settings {
            widths: widths.clone(),
            channels: count("channels"),
            padding: case["padding"].as_bool().unwrap(),
            probabilities: serde_json::from_value(case["probabilities"].clone()).unwrap(),
            dropout: 0.0,
            learning_rate: number("learning_rate"),
            weight_decay: number("weight_decay"),
            class_weights: floats(&expected["class_weights"]),
            ..Settings::default()
        };
        let classes = dense_bias.len();
        let data = Data { train: &examples, dev: &examples, vectors: &vectors, dim, classes };
        let pool = pool(2);
        let mut trainer = Trainer::new(data, &settings, &pool);
        for (index, own) in trainer.filters.iter_mut().enumerate() {
            own.weights = floats(&start["filters"][index]);
            own.bias = floats(&start["biases"][index]);
        }
        trainer.dense = Layer { weights: floats(&start["dense"]), bias: dense_bias };

        let batch = Batch::new(chosen.iter().map(|one| &one.words[..]));
        let forward = trainer.forward(&batch);
        let masks = vec![1.0; chosen.len() * trainer.features()];
        let found = Gradients::new(&trainer, &chosen, &batch, &forward, &masks);
        // Ours is the sum, theirs the mean.
        let weight = |one: &&Example| f64::from(text_weight(&settings, one));
        let mean = found.loss / chosen.iter().map(weight).sum::<f64>();
        assert!((mean - case["loss"].as_f64().unwrap()).abs() < 1e-5, "{mean}");
        for (index, own) in found.filters.iter().enumerate() {
            near(&own.weights, &floats(&gradients["filters"][index]), 1e-5, "filters");
            near(&own.bias, &floats(&gradients["biases"][index]), 1e-5, "biases");
        }
        near(&found.dense.weights, &floats(&gradients["dense"]), 1e-5, "dense");
        near(&found.dense.bias, &floats(&gradients["dense_bias"]), 1e-5, "dense bias");
        let of_vectors = floats(&gradients["vectors"]);
        for (own, &word) in found.vectors.chunks_exact(dim).zip(&batch.words) {
            near(own, &of_vectors[word as usize * dim..][..dim], 1e-5, "vectors");
        }

        for _ in 0..count("steps") {
            trainer.step(&chosen);
        }
        for (index, own) in trainer.filters.iter().enumerate() {
            near(&own.weights, &floats(&end["filters"][index]), 1e-4, "filters after the steps");
            near(&own.bias, &floats(&end["biases"][index]), 1e-4, "biases after the steps");
        }
        near(&trainer.dense.weights, &floats(&end["dense"]), 1e-4, "dense after the steps");
        near(&trainer.dense.bias, &floats(&end["dense_bias"]), 1e-4, "dense bias after the steps");
        near(&trainer.vectors, &floats(&end["vectors"]), 1e-4, "vectors after the steps");
    }
}

#[test]
fn the_same_weights_on_any_number_of_threads_and_others_for_another_seed() {
    let (dim, words) = (5, 40);
    let (train_on, dev, vectors) = (examples(120, words), examples(30, words), vectors(40, dim));
    let data = Data { train: &train_on, dev: &dev, vectors: &vectors, dim, classes: 2 };
    let trained = |threads, seed| {
        let settings = Settings { epochs: 3, channels: 7, batch: 16, seed, ..Settings::default() };
        train(data, &settings, &pool(threads), &mut go_on).unwrap().unwrap()
    };
    let one = trained(1, 1);
    assert_eq!(one, trained(2, 1));
    assert_eq!(one, trained(5, 1));
    assert_ne!(one.classifier, trained(1, 2).classifier);
}

#[test]
fn it_learns_what_only_the_order_of_words_tells() {
    let (dim, words) = (8, 60);
    let (train_on, dev, vectors) = (examples(800, words), examples(900, words), vectors(60, dim));
    let dev = &dev[800..];
    for fine_tune in [false, true] {
        let settings = Settings { fine_tune, channels: 30, epochs: 20, ..Settings::default() };
        let data = Data { train: &train_on, dev, vectors: &vectors, dim, classes: 2 };
        let mut last = 0;
        let found = train(data, &settings, &pool(2), &mut |progress| {
            last = last.max(progress.epoch);
            ControlFlow::Continue(())
        })
        .unwrap()
        .unwrap();
        assert!(found.quality > 0.97, "{fine_tune}: {}", found.quality);
        assert!(found.epoch <= last);
        match found.vectors {
            // Of a word that no text to learn from has, the vector stays.
            Some(tuned) => assert!(tuned != vectors && tuned.iter().all(|x| x.is_finite())),
            None => assert!(!fine_tune),
        }
    }
}

#[test]
fn stopped_early_it_gives_the_best_so_far_or_nothing() {
    let (dim, words) = (4, 20);
    let (texts, vectors) = (examples(60, words), vectors(20, dim));
    let data = Data { train: &texts, dev: &texts, vectors: &vectors, dim, classes: 2 };
    let settings = Settings { channels: 5, batch: 20, ..Settings::default() };
    let stopped_after = |calls: usize| {
        let mut left = calls;
        train(data, &settings, &pool(1), &mut |_| {
            left -= 1;
            if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })
        .unwrap()
    };
    assert_eq!(stopped_after(2), None, "in the first epoch");
    // Three batches and the end of the epoch.
    assert_eq!(stopped_after(4).unwrap().epoch, 1);
    assert_eq!(stopped_after(6).unwrap().epoch, 1, "in the second");
}

#[test]
fn steps_that_leave_the_numbers_end_the_training() {
    let (dim, words) = (4, 20);
    let (texts, vectors) = (examples(60, words), vectors(20, dim));
    let data = Data { train: &texts, dev: &texts, vectors: &vectors, dim, classes: 2 };
    let mut diverged = 0;
    for learning_rate in (-3..=38).map(|power| 10f32.powi(power)).chain([f32::MAX]) {
        for probabilities in [Probabilities::Softmax, Probabilities::Sigmoid] {
            for fine_tune in [false, true] {
                let settings = Settings {
                    channels: 5,
                    batch: 20,
                    epochs: 3,
                    learning_rate,
                    probabilities,
                    fine_tune,
                    ..Settings::default()
                };
                match train(data, &settings, &pool(2), &mut go_on) {
                    Ok(found) => assert!(found.is_some() && learning_rate < 1e30),
                    Err(Diverged { epoch }) => {
                        assert!(epoch <= 3 && learning_rate > 10.0, "{learning_rate}");
                        diverged += 1;
                    }
                }
            }
        }
    }
    assert!(diverged >= 36, "{diverged}");
}

#[test]
fn it_learns_any_number_of_classes() {
    let (dim, words) = (8, 60);
    let mut texts = examples(900, words);
    // Class 0: word 0 comes first; class 1: the text has word 2 or 3.
    for one in &mut texts {
        let is_first = one.words.iter().find(|&&word| word < 2) == Some(&0);
        let is_in = one.words.iter().any(|word| [2, 3].contains(word));
        one.classes = [(0, is_first), (1, is_in)]
            .into_iter()
            .filter_map(|(class, is)| is.then_some(class))
            .collect();
    }
    let vectors = vectors(60, dim);
    let (train_on, dev) = texts.split_at(800);
    let data = Data { train: train_on, dev, vectors: &vectors, dim, classes: 2 };
    let probabilities = Probabilities::Sigmoid;
    let settings = Settings { channels: 30, epochs: 20, probabilities, ..Settings::default() };
    let found = train(data, &settings, &pool(2), &mut go_on).unwrap().unwrap();
    assert!(found.quality > 0.95, "{}", found.quality);
    // A class that counts for much is found more often than it is there.
    let given = |weight: f32| {
        let class_weights = vec![1.0, weight];
        let settings = Settings { epochs: 1, class_weights, ..settings.clone() };
        let found = train(data, &settings, &pool(2), &mut go_on).unwrap().unwrap();
        let vectors = found.vectors.unwrap();
        let is_given = |one: &&Example| {
            let row = |&word: &u32| &vectors[word as usize * dim..][..dim];
            let tokens: Vec<&[f32]> = one.words.iter().map(row).collect();
            found.classifier.forward(&tokens).scores[1] > 0.0
        };
        dev.iter().filter(is_given).count()
    };
    assert!(given(20.0) > given(1.0));
}

#[test]
fn quality_is_accuracy_or_f1() {
    let mut counts = Counts::default();
    assert_eq!(counts.f1(), 1.0);
    counts.add(&[0], &[0]);
    counts.add(&[1], &[0]);
    assert_eq!(counts.f1(), 0.5, "one class of each: accuracy");
    // Two of three given are right, of four that are there.
    counts.add(&[2], &[0, 2]);
    assert_eq!(counts.f1(), 4.0 / 7.0);
}

#[test]
#[should_panic(expected = "words and classes that exist")]
fn a_text_with_two_classes_where_one_is_right_is_refused() {
    let texts = [Example { words: vec![0], classes: vec![0, 1] }];
    let data = Data { train: &texts, dev: &[], vectors: &[0.0; 6], dim: 2, classes: 2 };
    let _ = train(data, &Settings::default(), &pool(1), &mut go_on);
}

#[test]
#[should_panic(expected = "words and classes that exist")]
fn a_word_that_does_not_exist_is_refused() {
    let texts = [Example { words: vec![3], classes: vec![0] }];
    let data = Data { train: &texts, dev: &[], vectors: &[0.0; 6], dim: 2, classes: 1 };
    let _ = train(data, &Settings::default(), &pool(1), &mut go_on);
}
