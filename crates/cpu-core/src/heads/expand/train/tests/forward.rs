//! What is touched, against the plain loops.

use proptest::prelude::*;

use super::super::forward::Forward;
use super::*;

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
